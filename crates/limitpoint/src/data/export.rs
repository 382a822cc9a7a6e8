//! Examples as a NumPy archive, so that others can look at exactly what a run was trained on.
//!
//! ```text
//! X, y             training inputs, N x the shape of an example, and targets
//! X_test, y_test   the same of test examples, where there are any
//! ```
//!
//! Inputs are doubles; so are targets, ±1 or real numbers, but for classes, which are 64-bit integers from 0. Sparse
//! inputs are four arrays as SciPy's `csr_matrix((data, indices, indptr), shape)` takes them: `X_data`, `X_indices`,
//! `X_indptr` and `X_shape`. Nothing depends on when or where the archive is written.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::npy_writer::{npy, npy_of};
use super::{DataError, DataSplit, Dataset, Inputs, Targets};

/// The bytes of an npz archive with the examples of a split.
///
/// ```
/// use limitpoint::data::{DataSpec, to_npz};
/// use limitpoint::numeric::Streams;
/// let spec: DataSpec = toml::from_str("[gaussians]\ncount = 12")?;
/// let bytes = to_npz(&spec.load(&Streams::new(0))?)?;
/// assert_eq!(&bytes[..2], b"PK");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn to_npz(split: &DataSplit) -> Result<Vec<u8>, DataError> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let mut members = members(&split.train, "");
    members.extend(split.test.iter().flat_map(|test| self::members(test, "_test")));
    let refuse = |problem: String| DataError::Transform {
        name: split.train.name.clone(),
        problem: format!("the archive cannot be made: {problem}"),
        remedy: "export fewer examples",
    };
    for (name, bytes) in members {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default())
            .large_file(bytes.len() >= u32::MAX as usize);
        archive.start_file(format!("{name}.npy"), options).map_err(|error| refuse(error.to_string()))?;
        archive.write_all(&bytes).map_err(|error| refuse(error.to_string()))?;
    }
    Ok(archive.finish().map_err(|error| refuse(error.to_string()))?.into_inner())
}

/// The arrays of a data set: their names and npy files.
fn members(data: &Dataset, ending: &str) -> Vec<(String, Vec<u8>)> {
    let mut members = Vec::new();
    let whole = |values: &mut dyn Iterator<Item = usize>| -> Vec<[u8; 8]> {
        values.map(|value| (value as i64).to_le_bytes()).collect()
    };
    match &data.inputs {
        Inputs::Dense(inputs) => {
            let shape: Vec<usize> = std::iter::once(inputs.rows()).chain(data.input_shape.iter().copied()).collect();
            members.push((format!("X{ending}"), npy_of(&shape, inputs.entries())));
        }
        Inputs::Sparse(inputs) => {
            let mut columns = inputs.columns().iter().map(|&column| column as usize);
            for (part, values) in [
                ("indices", whole(&mut columns)),
                ("indptr", whole(&mut inputs.starts().iter().copied())),
                ("shape", whole(&mut [data.len(), data.dimension()].into_iter())),
            ] {
                members.push((format!("X{ending}_{part}"), npy("<i8", &[values.len()], false, &values)));
            }
            members.push((format!("X{ending}_data"), npy_of(&[inputs.values().len()], inputs.values())));
        }
    }
    members.push((
        format!("y{ending}"),
        match &data.targets {
            Targets::Binary(y) | Targets::Values(y) => npy_of(&[y.len()], y),
            Targets::Classes { labels, .. } => npy("<i8", &[labels.len()], false, &whole(&mut labels.iter().copied())),
        },
    ));
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::npy::parse_npz;
    use crate::data::{DataSpec, File, Task};
    use crate::numeric::Streams;

    #[test]
    fn every_source_without_files_comes_back_bit_for_bit() {
        let path = std::env::temp_dir().join(format!("limitpoint-export-{}.npz", std::process::id()));
        for spec in &DataSpec::examples()[..8] {
            let split = spec.load(&Streams::new(3)).unwrap();
            let bytes = to_npz(&split).unwrap();
            assert_eq!(bytes, to_npz(&split).unwrap());
            for (data, ending) in [(Some(&split.train), ""), (split.test.as_ref(), "_test")] {
                let Some(data) = data else {
                    assert!(parse_npz(&bytes, "x", "X_test").is_err());
                    continue;
                };
                let array = |name: &str| parse_npz(&bytes, "x", &format!("{name}{ending}"));
                match &data.inputs {
                    Inputs::Dense(inputs) => assert_eq!(array("X").unwrap().values, inputs.entries(), "{}", spec.key()),
                    Inputs::Sparse(inputs) => {
                        let part = |name: &str| parse_npz(&bytes, "x", &format!("X{ending}_{name}")).unwrap().values;
                        assert_eq!(part("data"), inputs.values());
                        assert_eq!(part("shape"), [data.len() as f64, data.dimension() as f64]);
                        assert_eq!(part("indptr").last(), Some(&(inputs.values().len() as f64)));
                        assert_eq!(part("indices").len(), inputs.values().len());
                    }
                }
                assert_eq!(array("y").unwrap().values.len(), data.len());
            }
            if let Inputs::Dense(_) = &split.train.inputs {
                std::fs::write(&path, &bytes).unwrap();
                let task = Task::of(&split.train.targets);
                let again = File { task, ..File::at(&path) }.load(&Streams::new(0)).unwrap().train;
                assert_eq!((&again.inputs, &again.targets), (&split.train.inputs, &split.train.targets));
                assert_eq!(again.input_shape, split.train.input_shape, "{}", spec.key());
            }
        }
        std::fs::remove_file(&path).unwrap();
    }
}
