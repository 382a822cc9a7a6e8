//! Takes chosen members out of a gzipped tar archive.
//!
//! ```text
//! archive = (header of 512 bytes, contents padded to 512 bytes)*, zeros
//! header  = name [0..100], size in octal [124..136], kind [156]
//! ```

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use anyhow::{Context, bail};
use flate2::read::GzDecoder;

use super::fetch::part_of;

const BLOCK: u64 = 512;

/// Unpacks the members called `wanted`, in whatever folder of the archive, each `bytes` long, into `folder`.
///
/// Only these names are written, so no path of the archive can lead elsewhere.
pub fn unpack(archive: &Path, folder: &Path, wanted: &[&str], bytes: u64) -> anyhow::Result<()> {
    let reading = || format!("could not unpack {}", archive.display());
    let file = File::open(archive).with_context(reading)?;
    let mut reader = GzDecoder::new(BufReader::new(file));
    let mut missing: Vec<&str> = wanted.to_vec();
    let mut header = [0; BLOCK as usize];
    while !missing.is_empty() {
        reader.read_exact(&mut header).with_context(reading)?;
        if header.iter().all(|byte| *byte == 0) {
            break;
        }
        let name = text(&header[..100]);
        let size = text(&header[124..136]);
        let size = u64::from_str_radix(size.trim(), 8)
            .with_context(|| format!("{}: member {name} has the size `{size}`", archive.display()))?;
        let base = name.rsplit('/').next().unwrap_or_default();
        let place = missing.iter().position(|wanted| *wanted == base && matches!(header[156], 0 | b'0'));
        let padding = size.next_multiple_of(BLOCK) - size;
        let mut contents = reader.by_ref().take(size);
        if let Some(place) = place {
            if size != bytes {
                bail!("{}: member {name} has {size} bytes, not {bytes}", archive.display());
            }
            let target = folder.join(missing.swap_remove(place));
            let part = part_of(&target);
            let writing = || format!("could not write {}", part.display());
            let mut output = File::create(&part).with_context(writing)?;
            let copied = std::io::copy(&mut contents, &mut output).with_context(writing)?;
            if copied != size {
                bail!("{}: it ends within member {name}", archive.display());
            }
            output.flush().and_then(|()| output.sync_all()).with_context(writing)?;
            std::fs::rename(&part, &target).with_context(writing)?;
        } else {
            std::io::copy(&mut contents, &mut std::io::sink()).with_context(reading)?;
        }
        std::io::copy(&mut reader.by_ref().take(padding), &mut std::io::sink()).with_context(reading)?;
    }
    if !missing.is_empty() {
        bail!("{} lacks {}", archive.display(), missing.join(", "));
    }
    Ok(())
}

/// The text before the first zero byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (name, contents) in members {
            let mut header = vec![0; 512];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[124..135].copy_from_slice(format!("{:011o}", contents.len()).as_bytes());
            header[156] = b'0';
            tar.extend(header);
            tar.extend(*contents);
            tar.resize(tar.len().next_multiple_of(512), 0);
        }
        tar.extend([0; 1024]);
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&tar).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn wanted_members_come_out_and_others_stay() {
        let folder = std::env::temp_dir().join(format!("limitpoint-unpack-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (one, two) = ([1; 700], [2; 700]);
        let path = folder.join("a.tar.gz");
        let bytes = archive(&[("x/readme.html", b"hello"), ("x/b.bin", &one), ("../c.bin", &two)]);
        std::fs::write(&path, &bytes).unwrap();
        unpack(&path, &folder, &["b.bin", "c.bin"], 700).unwrap();
        assert_eq!(std::fs::read(folder.join("b.bin")).unwrap(), one);
        assert_eq!(std::fs::read(folder.join("c.bin")).unwrap(), two);
        assert!(!folder.join("readme.html").exists() && !folder.join("b.bin.part").exists());
        let error = |wanted: &[&str], size| format!("{:#}", unpack(&path, &folder, wanted, size).unwrap_err());
        assert!(error(&["d.bin"], 700).contains("lacks d.bin"));
        assert!(error(&["b.bin"], 701).contains("has 700 bytes, not 701"));
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(error(&["c.bin"], 700).contains("could not unpack"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
