//! Bytes and where they came from: bounded reading, bounded inflating, and errors that name the place.
//!
//! Users: every loader. A loader never believes a length it reads: [`Source::claim`] compares it with the bytes that
//! are there before anything is allocated.

use std::io::Read;
use std::path::Path;

use super::DataError;
use crate::memory::{bytes as values_as_bytes, require};

/// The most values a file may expand to (2 GiB as `f64`; CIFAR-10's training images need 57 % of it).
pub(crate) const MAX_FILE_VALUES: usize = 1 << 28;

/// The most bytes read from one file or inflated from one member.
const MAX_FILE_BYTES: usize = 1 << 31;

/// No deflate stream expands by more than this factor, so a larger claim is a lie.
const MAX_INFLATION: usize = 1032;

/// The name of a file and the format it is read as, for the error messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    /// The file's name.
    pub file: &'a str,
    /// The format's name.
    pub format: &'static str,
}

impl<'a> Source<'a> {
    /// The file called `file`, read as `format`.
    pub fn new(file: &'a str, format: &'static str) -> Self {
        Self { file, format }
    }

    /// A refusal at `position`.
    pub fn refuse(
        &self,
        position: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> DataError {
        DataError::Format {
            file: self.file.to_owned(),
            format: self.format,
            position: position.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    /// The number of values in `shape`, once `width` bytes for each are known to be exactly the `available` ones.
    pub fn check_shape(&self, shape: &[usize], width: usize, available: usize) -> Result<usize, DataError> {
        let count = shape.iter().try_fold(1_usize, |product, &side| product.checked_mul(side));
        let bytes = count.and_then(|count| count.checked_mul(width));
        let (Some(count), Some(bytes)) = (count, bytes) else {
            return Err(self.refuse(
                "header",
                format!("the shape {shape:?} overflows"),
                "the file is damaged; write it again",
            ));
        };
        if bytes != available {
            let problem = format!("the shape {shape:?} needs {bytes} bytes of data but {available} are there");
            return Err(self.refuse("header", problem, "the file is damaged or cut short; fetch or write it again"));
        }
        self.bound(count)?;
        require(format!("{}: {count} values", self.file), values_as_bytes(&[count], 8), "store fewer examples")?;
        Ok(count)
    }

    /// Refuses more values than one dataset may hold.
    pub fn bound(&self, count: usize) -> Result<(), DataError> {
        if count > MAX_FILE_VALUES {
            let problem = format!("{count} values, more than the {MAX_FILE_VALUES} that are kept in memory");
            return Err(self.refuse("header", problem, "store fewer examples or smaller ones"));
        }
        Ok(())
    }

    /// All that `reader` inflates to, where `compressed` bytes went in.
    pub fn inflate(&self, reader: impl Read, compressed: usize, member: &str) -> Result<Vec<u8>, DataError> {
        let limit = compressed.saturating_mul(MAX_INFLATION).saturating_add(1024).min(MAX_FILE_BYTES);
        let mut bytes = Vec::new();
        if let Err(error) = reader.take(limit as u64 + 1).read_to_end(&mut bytes) {
            return Err(self.refuse(
                format!("{member}, after {} inflated bytes", bytes.len()),
                format!("inflating failed: {error}"),
                "the file is damaged or cut short; fetch it again",
            ));
        }
        if bytes.len() > limit {
            return Err(self.refuse(member, format!("it inflates to more than {limit} bytes"), "store fewer examples"));
        }
        Ok(bytes)
    }
}

/// The bytes of a file, refused when they are too many to be data for this program.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    let file = std::fs::File::open(path).map_err(|error| DataError::io(path, error))?;
    let length = file.metadata().map_err(|error| DataError::io(path, error))?.len();
    require(path.display().to_string(), u128::from(length), "store fewer examples")?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| DataError::io(path, error))?;
    if bytes.len() > MAX_FILE_BYTES {
        let name = path.display().to_string();
        let problem = format!("it is longer than {MAX_FILE_BYTES} bytes");
        return Err(Source::new(&name, "any format").refuse("end", problem, "store fewer examples"));
    }
    Ok(bytes)
}

/// The bytes, inflated first if they begin like a gzip file.
pub(crate) fn gunzip_if_needed(bytes: Vec<u8>, source: Source) -> Result<Vec<u8>, DataError> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        source.inflate(flate2::read::MultiGzDecoder::new(&bytes[..]), bytes.len(), "gzip stream")
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn shapes_are_checked_before_they_are_believed() {
        let source = Source::new("x", "test");
        assert_eq!(source.check_shape(&[3, 2], 8, 48).unwrap(), 6);
        assert!(source.check_shape(&[3, 2], 8, 47).is_err());
        assert!(source.check_shape(&[usize::MAX, 2], 8, 48).is_err());
        assert!(source.check_shape(&[usize::MAX / 4], 8, 48).is_err());
        assert!(source.bound(MAX_FILE_VALUES + 1).is_err());
    }

    #[test]
    fn gzip_is_recognised_and_damage_is_named() {
        let source = Source::new("x.gz", "test");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&[7; 1000]).unwrap();
        let packed = encoder.finish().unwrap();
        assert_eq!(gunzip_if_needed(packed.clone(), source).unwrap(), [7; 1000]);
        assert_eq!(gunzip_if_needed(vec![1, 2], source).unwrap(), [1, 2]);
        let error = gunzip_if_needed(packed[..packed.len() - 6].to_vec(), source).unwrap_err().to_string();
        assert!(error.contains("x.gz") && error.contains("fetch it again"), "{error}");
    }

    #[test]
    fn a_missing_file_names_its_path() {
        let error = read_bytes(Path::new("no/such/file.csv")).unwrap_err();
        assert!(error.to_string().contains("no/such/file.csv"));
    }
}
