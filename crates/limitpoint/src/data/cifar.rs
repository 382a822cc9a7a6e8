//! The binary form of CIFAR-10: records of one label byte and three 32×32 colour planes.
//!
//! ```text
//! record = label, 1024 red, 1024 green, 1024 blue   (3073 bytes, planes row by row)
//! ```

use std::path::Path;

use super::DataError;
use super::images::ByteImages;
use super::source::{Source, read_bytes};

/// Bytes of one image.
const PIXELS: usize = 3 * 32 * 32;

/// Appends the records of one batch file.
pub(crate) fn append(images: &mut ByteImages, bytes: &[u8], file: &str) -> Result<(), DataError> {
    let source = Source::new(file, "CIFAR-10");
    if bytes.is_empty() || !bytes.len().is_multiple_of(PIXELS + 1) {
        let problem = format!("{} bytes are not a whole number of records of {} bytes", bytes.len(), PIXELS + 1);
        return Err(source.refuse(
            "end",
            problem,
            "use the binary version of CIFAR-10, complete (30,730,000 bytes per batch)",
        ));
    }
    source.bound(images.pixels.len() + bytes.len())?;
    for (number, record) in bytes.chunks_exact(PIXELS + 1).enumerate() {
        if record[0] > 9 {
            let position = format!("byte {}, record {number} (counted from 0)", number * (PIXELS + 1));
            return Err(source.refuse(
                position,
                format!("label {}", record[0]),
                "labels are 0 to 9; is this the binary version?",
            ));
        }
        images.labels.push(record[0]);
        images.pixels.extend_from_slice(&record[1..]);
    }
    Ok(())
}

/// No images yet.
pub(crate) fn no_images(name: &str) -> ByteImages {
    ByteImages { name: name.to_owned(), shape: vec![3, 32, 32], classes: 10, labels: Vec::new(), pixels: Vec::new() }
}

/// The training batches `data_batch_1.bin` … `data_batch_5.bin` that are there, or `test_batch.bin`.
pub(crate) fn cifar10(folder: &Path, test: bool) -> Result<ByteImages, DataError> {
    let names: Vec<String> =
        if test { vec!["test_batch.bin".into()] } else { (1..=5).map(|i| format!("data_batch_{i}.bin")).collect() };
    let mut images = no_images(if test { "cifar10 test" } else { "cifar10" });
    for path in names.iter().map(|name| folder.join(name)).filter(|path| path.is_file()) {
        append(&mut images, &read_bytes(&path)?, &path.display().to_string())?;
    }
    if images.labels.is_empty() {
        return Err(DataError::Missing {
            what: names[0].clone(),
            searched: Some(folder.to_owned()),
            remedy: "put the binary version of CIFAR-10 there, set dir to its folder, or set test-count = 0 to do without a test set"
                .to_owned(),
        });
    }
    Ok(images)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::hostile::damaged;
    use crate::data::{DataSpec, ImageFolder};
    use crate::numeric::Streams;

    fn records(labels: &[u8]) -> Vec<u8> {
        labels
            .iter()
            .flat_map(|&label| std::iter::once(label).chain((0..PIXELS).map(move |i| (i / 1024) as u8 + label)))
            .collect()
    }

    #[test]
    fn records_become_images() {
        let mut images = no_images("c");
        append(&mut images, &records(&[3, 9]), "data_batch_1.bin").unwrap();
        append(&mut images, &records(&[0]), "data_batch_2.bin").unwrap();
        assert_eq!(images.labels, [3, 9, 0]);
        assert_eq!(
            (images.pixels.len(), images.pixels[0], images.pixels[1024], images.pixels[PIXELS]),
            (3 * PIXELS, 3, 4, 9)
        );
    }

    #[test]
    fn incomplete_records_and_foreign_labels_are_refused() {
        let whole = records(&[1, 2]);
        for bytes in [&whole[..whole.len() - 1], &[][..], &records(&[1, 10])] {
            assert!(matches!(append(&mut no_images("c"), bytes, "b"), Err(DataError::Format { .. })));
        }
    }

    #[test]
    fn a_folder_of_batches_is_loaded() {
        let folder = std::env::temp_dir().join(format!("limitpoint-cifar-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("data_batch_1.bin"), records(&[0, 1, 2, 1])).unwrap();
        std::fs::write(folder.join("data_batch_3.bin"), records(&[1, 0])).unwrap();
        let images = ImageFolder { dir: Some(folder.clone()), test_count: Some(0), ..Default::default() };
        let split = DataSpec::Cifar10(images.clone()).load(&Streams::new(0)).unwrap();
        assert_eq!((split.train.len(), &split.train.input_shape[..]), (6, &[3, 32, 32][..]));
        let halved = ImageFolder { halve: true, pair: Some([1, 0]), ..images.clone() };
        let split = DataSpec::Cifar10(halved).load(&Streams::new(0)).unwrap();
        assert_eq!((split.train.signs().unwrap(), split.train.dimension()), (&[-1.0, 1.0, 1.0, 1.0, -1.0][..], 768));
        let with_test = DataSpec::Cifar10(ImageFolder { test_count: None, ..images });
        let error = with_test.load(&Streams::new(0)).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("test_batch.bin"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in damaged(records(&[1, 2]))) {
            let mut images = no_images("c");
            if append(&mut images, &bytes, "b").is_ok() {
                prop_assert_eq!(images.pixels.len(), images.labels.len() * PIXELS);
                prop_assert!(images.labels.iter().all(|&label| label < 10));
            }
        }
    }
}
