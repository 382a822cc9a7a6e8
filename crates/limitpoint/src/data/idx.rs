//! IDX files, plain or gzipped, and the MNIST folder made of four of them.
//!
//! ```text
//! 0, 0, type, n   then n big-endian 32-bit sides   then the values, big-endian, last index fastest
//! ```
//!
//! Types: 8 = u8, 9 = i8, 11 = i16, 12 = i32, 13 = f32, 14 = f64. Images carry the magic number 2051 (type 8, three
//! sides), labels 2049 (type 8, one side).

use std::path::{Path, PathBuf};

use super::DataError;
use super::elements::{Array, Element};
use super::images::ByteImages;
use super::source::{Source, gunzip_if_needed, read_bytes};

/// A parsed header and the bytes after it.
#[derive(Debug)]
pub(crate) struct Idx {
    /// Sides.
    pub shape: Vec<usize>,
    element: Element,
    bytes: Vec<u8>,
    offset: usize,
}

impl Idx {
    /// The bytes of the values.
    pub fn values(&self) -> &[u8] {
        &self.bytes[self.offset..]
    }

    /// The values as numbers.
    pub fn array(&self) -> Array {
        // no 64-bit integers among the types, so decoding cannot fail
        let values = self.element.decode(self.values(), true).unwrap_or_default();
        Array { shape: self.shape.clone(), values }
    }
}

/// Reads an IDX file, gzipped or not.
pub(crate) fn parse(bytes: Vec<u8>, file: &str) -> Result<Idx, DataError> {
    let source = Source::new(file, "IDX");
    let bytes = gunzip_if_needed(bytes, source)?;
    let foreign = "check that this is an IDX file (MNIST's are called …-idx3-ubyte and …-idx1-ubyte)";
    let (element, sides) = match bytes[..] {
        [0, 0, kind, sides, ..] if sides > 0 => {
            let element = match kind {
                8 => Element::U8,
                9 => Element::I8,
                11 => Element::I16,
                12 => Element::I32,
                13 => Element::F32,
                14 => Element::F64,
                _ => return Err(source.refuse("byte 2", format!("type code {kind}"), foreign)),
            };
            (element, usize::from(sides))
        }
        _ => {
            let start = &bytes[..bytes.len().min(4)];
            return Err(source.refuse(
                "byte 0",
                format!("the file begins with {start:?}, not with 0, 0, type, sides"),
                foreign,
            ));
        }
    };
    let offset = 4 + 4 * sides;
    let Some(header) = bytes.get(4..offset) else {
        let problem = format!("{sides} sides announced, but the file ends at byte {}", bytes.len());
        return Err(source.refuse("byte 4", problem, "the file is cut short; fetch it again"));
    };
    let shape: Vec<usize> =
        header.chunks_exact(4).map(|side| u32::from_be_bytes([side[0], side[1], side[2], side[3]]) as usize).collect();
    source.check_shape(&shape, element.width(), bytes.len() - offset)?;
    Ok(Idx { shape, element, bytes, offset })
}

/// The training or test images of an MNIST folder.
pub(crate) fn mnist(folder: &Path, test: bool) -> Result<ByteImages, DataError> {
    let (stem, name) = if test { ("t10k", "mnist test") } else { ("train", "mnist") };
    let read = |kind: &str| -> Result<(Idx, String), DataError> {
        let path =
            locate(folder, &format!("{stem}-{kind}-ubyte"), &format!("{stem}-{}-ubyte", kind.replace('-', ".")))?;
        let file = path.display().to_string();
        Ok((parse(read_bytes(&path)?, &file)?, file))
    };
    let ((images, image_file), (labels, label_file)) = (read("images-idx3")?, read("labels-idx1")?);
    byte_images(name, &images, &image_file, &labels, &label_file)
}

/// Pairs an image file with its label file; labels must be below 10.
fn byte_images(
    name: &str,
    images: &Idx,
    image_file: &str,
    labels: &Idx,
    label_file: &str,
) -> Result<ByteImages, DataError> {
    let (image_source, label_source) = (Source::new(image_file, "IDX"), Source::new(label_file, "IDX"));
    if images.element != Element::U8 || images.shape.len() != 3 {
        let problem = format!("shape {:?}, type {:?}", images.shape, images.element);
        return Err(image_source.refuse("header", problem, "images need magic number 2051: three sides of bytes"));
    }
    if labels.element != Element::U8 || labels.shape.len() != 1 {
        let problem = format!("shape {:?}, type {:?}", labels.shape, labels.element);
        return Err(label_source.refuse("header", problem, "labels need magic number 2049: one side of bytes"));
    }
    if labels.shape[0] != images.shape[0] {
        let problem = format!("{} labels for the {} images of {image_file}", labels.shape[0], images.shape[0]);
        return Err(label_source.refuse("header", problem, "the two files must belong together"));
    }
    if let Some(at) = labels.values().iter().position(|&label| label > 9) {
        let problem = format!("label {}", labels.values()[at]);
        return Err(label_source.refuse(format!("label {at} (counted from 0)"), problem, "MNIST labels are 0 to 9"));
    }
    Ok(ByteImages {
        name: name.to_owned(),
        shape: images.shape[1..].to_vec(),
        classes: 10,
        labels: labels.values().to_vec(),
        pixels: images.values().to_vec(),
    })
}

/// The first of `name`, `name.gz` and the spelling `other` that exists.
fn locate(folder: &Path, name: &str, other: &str) -> Result<PathBuf, DataError> {
    let candidates = [name.to_owned(), format!("{name}.gz"), other.to_owned(), format!("{other}.gz")];
    candidates.iter().map(|candidate| folder.join(candidate)).find(|path| path.is_file()).ok_or_else(|| DataError::Missing {
        what: format!("{name}(.gz)"),
        searched: Some(folder.to_owned()),
        remedy: "put the four MNIST files there (train- and t10k-, images-idx3-ubyte and labels-idx1-ubyte, plain or .gz), \
                 or set dir to their folder"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::data::hostile::damaged;
    use crate::data::{DataSpec, ImageFolder, Targets};
    use crate::numeric::Streams;

    fn file(kind: u8, sides: &[u32], values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, kind, sides.len() as u8];
        sides.iter().for_each(|side| bytes.extend(side.to_be_bytes()));
        bytes.extend(values);
        bytes
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn magic_numbers_are_those_of_mnist() {
        assert_eq!(file(8, &[1, 1, 1], &[0])[..4], 2051_u32.to_be_bytes());
        assert_eq!(file(8, &[1], &[0])[..4], 2049_u32.to_be_bytes());
    }

    #[test]
    fn plain_and_gzipped_files_agree() {
        let plain = file(8, &[2, 3], &[1, 2, 3, 4, 5, 255]);
        let array = parse(plain.clone(), "x").unwrap().array();
        assert_eq!(array, parse(gzip(&plain), "x").unwrap().array());
        assert_eq!(array, Array { shape: vec![2, 3], values: vec![1.0, 2.0, 3.0, 4.0, 5.0, 255.0] });
        let shorts = parse(file(11, &[2], &[0xff, 0xfe, 1, 0]), "x").unwrap().array();
        assert_eq!(shorts.values, [-2.0, 256.0]);
        let doubles = parse(file(14, &[1], &2.5_f64.to_be_bytes()), "x").unwrap().array();
        assert_eq!(doubles.values, [2.5]);
    }

    #[test]
    fn lengths_in_the_header_are_not_believed() {
        for bytes in [
            file(8, &[u32::MAX, u32::MAX, u32::MAX], &[1, 2, 3]),
            file(8, &[4], &[1, 2, 3]),
            file(8, &[2], &[1, 2, 3]),
            file(14, &[0xffff_ffff], &[]),
            vec![0, 0, 8, 255, 1, 2],
            vec![0, 0, 8, 0],
            vec![0, 0, 10, 1, 0, 0, 0, 0],
            vec![],
        ] {
            assert!(matches!(parse(bytes.clone(), "hostile.idx"), Err(DataError::Format { .. })), "{bytes:?}");
        }
    }

    #[test]
    fn images_and_labels_must_belong_together() {
        let images = parse(file(8, &[2, 1, 2], &[1, 2, 3, 4]), "i").unwrap();
        let good = parse(file(8, &[2], &[9, 0]), "l").unwrap();
        assert_eq!(byte_images("m", &images, "i", &good, "l").unwrap().shape, [1, 2]);
        let few = parse(file(8, &[1], &[9]), "l").unwrap();
        let foreign = parse(file(8, &[2], &[9, 10]), "l").unwrap();
        assert!(byte_images("m", &images, "i", &few, "l").is_err());
        assert!(byte_images("m", &images, "i", &foreign, "l").unwrap_err().to_string().contains("label 1 "));
        assert!(byte_images("m", &good, "i", &good, "l").is_err());
        assert!(byte_images("m", &images, "i", &images, "l").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn no_bytes_make_the_parser_panic(
            bytes in damaged(file(8, &[3, 2, 2], &[7; 12])),
            packed in damaged(gzip(&file(13, &[3, 2], &[1; 24]))),
        ) {
            for bytes in [bytes, packed] {
                if let Ok(idx) = parse(bytes, "hostile.idx") {
                    prop_assert_eq!(idx.array().values.len(), idx.shape.iter().product::<usize>());
                }
            }
        }
    }

    /// The folder with MNIST, or none with a message.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn shared_mnist() -> Option<PathBuf> {
        let root = std::env::var_os("LIMITPOINT_SHARED_DATA")
            .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
        let folder = root.join("mnist");
        if folder.is_dir() {
            return Some(folder);
        }
        eprintln!(
            "skipped: no MNIST in {}; set LIMITPOINT_SHARED_DATA to the folder that contains mnist/",
            folder.display()
        );
        None
    }

    #[test]
    fn mnist_is_the_known_one_when_present() {
        let Some(folder) = shared_mnist() else { return };
        let train = mnist(&folder, false).unwrap();
        assert_eq!((train.labels.len(), train.pixels.len(), train.shape.clone()), (60_000, 60_000 * 784, vec![28, 28]));
        let mut histogram = [0; 10];
        train.labels.iter().for_each(|&label| histogram[usize::from(label)] += 1);
        // the published class counts
        assert_eq!(histogram, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
        assert_eq!(train.labels[..5], [5, 0, 4, 1, 9]);

        let images = ImageFolder {
            dir: Some(folder),
            pair: Some([3, 6]),
            count: Some(100),
            balanced: true,
            halve: true,
            ..Default::default()
        };
        let split = DataSpec::Mnist(images).load(&Streams::new(1)).unwrap();
        assert_eq!(
            (split.train.len(), split.train.dimension(), &split.train.input_shape[..]),
            (100, 196, &[14, 14][..])
        );
        assert_eq!(split.train.signs().unwrap().iter().sum::<f64>(), 0.0);
        let test = split.test.unwrap();
        assert_eq!(test.len(), 1010 + 958); // test images of 3 and of 6
        assert!(matches!(&test.targets, Targets::Binary(signs) if signs.iter().filter(|&&y| y > 0.0).count() == 1010));
        assert!(test.dense().unwrap().data.iter().all(|x| (0.0..=1.0).contains(x)));
    }

    #[test]
    fn a_missing_folder_explains_the_remedy() {
        let error = mnist(Path::new("no/such/folder"), false).unwrap_err().to_string();
        assert!(error.contains("no/such/folder") && error.contains("set dir"), "{error}");
    }
}
