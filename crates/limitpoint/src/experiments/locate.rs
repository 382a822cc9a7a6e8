//! Finding the data of a run again: where its recipe says, where they were when it began, and in the folder of data.
//!
//! A run knows the SHA-256 of its data; other data are refused, wherever they are found.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::RunError;
use super::certify::run_folders;
use super::config::read_config;
use super::journal::hexadecimal;
use super::manifest::RunManifest;
use super::recipe::Recipe;
use super::record::DataRecord;
use super::task::Task;
use crate::data::{DataError, DataSpec, DataSplit, Dataset, Inputs, Targets};
use crate::numeric::Streams;

/// Data and what is known about them.
pub type Loaded = (DataSplit, DataRecord);

/// What is known about data before they are read.
#[derive(Clone, Copy, Default)]
pub(super) struct Known<'a> {
    /// Their SHA-256; nothing for a run that begins.
    pub sha256: Option<&'a str>,
    /// Where their files were.
    pub files: &'a [PathBuf],
    /// The folder of data sets, where files that lie nowhere else are looked for too.
    pub data_folder: Option<&'a Path>,
}

/// Generates or reads data; `folder` is that of the run, for messages.
pub(super) fn find_data(spec: &DataSpec, seed: u64, known: &Known, folder: &Path) -> Result<Loaded, RunError> {
    let (mut tried, mut found, mut trouble) = (Vec::new(), None, None);
    for candidate in candidates(spec, known) {
        let paths: Vec<PathBuf> = candidate.paths().into_iter().map(Path::to_path_buf).collect();
        if let Some(missing) = paths.iter().find(|path| !path.exists()) {
            tried.push(missing.clone());
            continue;
        }
        match candidate.placed(known.data_folder).and_then(|placed| placed.load(&Streams::new(seed))) {
            Ok(split) => {
                let record = describe(&split);
                if known.sha256.is_none_or(|expected| record.sha256 == expected) {
                    return Ok((split, record));
                }
                found.get_or_insert((record.sha256, paths));
            }
            // a well-known set that was never fetched here
            Err(error @ DataError::Missing { .. }) => return Err(error.into()),
            Err(error) => {
                trouble.get_or_insert(error);
            }
        }
    }
    let expected = known.sha256.map(str::to_owned);
    match (found, trouble, expected) {
        (Some((found, files)), _, Some(expected)) => {
            Err(RunError::OtherData { folder: folder.to_path_buf(), files, expected, found })
        }
        (_, Some(error), None) => Err(error.into()),
        // files that can no longer be read are not those of the run
        (_, Some(error), Some(expected)) => {
            Err(RunError::LostData { folder: folder.to_path_buf(), expected, why: error.to_string() })
        }
        (_, None, expected) => Err(RunError::NoData { tried, expected }),
    }
}

/// The data a recipe trains on with one of its seeds, the first unless `seed` is given; what it does not place itself is
/// looked for in `data_folder`.
pub fn experiment_data(recipe: &Recipe, seed: Option<u64>, data_folder: Option<&Path>) -> Result<Loaded, RunError> {
    let seed = recipe.data_seed.or(seed).or(recipe.seeds.first().copied()).unwrap_or(0);
    find_data(&recipe.data, seed, &Known { data_folder, ..Known::default() }, Path::new(""))
}

/// The data of a run's folder, checked to be those it was trained on; of an experiment's, those of its first run.
pub fn run_data(folder: &Path, data_folder: Option<&Path>) -> Result<Loaded, RunError> {
    let folders = run_folders(folder)?;
    let folder = folders.first().map_or(folder, PathBuf::as_path);
    let manifest = RunManifest::load(folder)?;
    let task = Task { label: manifest.label, recipe: read_config(folder)? };
    let known = Known { sha256: Some(&manifest.data.sha256), files: &manifest.data_files, data_folder };
    find_data(&task.recipe.data, task.data_seed(), &known, folder)
}

/// The places where data may lie, the likeliest first.
fn candidates(spec: &DataSpec, known: &Known) -> Vec<DataSpec> {
    let paths = spec.paths();
    let mut places = vec![spec.clone()];
    if paths.is_empty() {
        return places;
    }
    if known.files.len() == paths.len() {
        let mut files = known.files.iter();
        places.push(spec.with_paths(|path| files.next().cloned().unwrap_or_else(|| path.to_owned())));
    }
    if let Some(folder) = known.data_folder {
        places.push(spec.with_paths(|path| folder.join(path.file_name().unwrap_or_default())));
    }
    places.dedup();
    places
}

/// Name, sizes and SHA-256 of the data.
pub(super) fn describe(split: &DataSplit) -> DataRecord {
    describe_sets(&split.train, split.test.as_ref())
}

/// The same of data that lie apart.
pub(super) fn describe_sets(train: &Dataset, test: Option<&Dataset>) -> DataRecord {
    let mut digest = Sha256::new();
    for data in std::iter::once(train).chain(test) {
        digest.update((data.inputs.rows() as u64).to_le_bytes());
        digest.update((data.inputs.cols() as u64).to_le_bytes());
        match &data.inputs {
            Inputs::Dense(inputs) => inputs.entries().iter().for_each(|x| digest.update(x.to_le_bytes())),
            Inputs::Sparse(inputs) => {
                digest.update(b"sparse");
                inputs.starts().iter().for_each(|start| digest.update((*start as u64).to_le_bytes()));
                inputs.columns().iter().for_each(|column| digest.update(column.to_le_bytes()));
                inputs.values().iter().for_each(|x| digest.update(x.to_le_bytes()));
            }
        }
        match &data.targets {
            Targets::Binary(y) | Targets::Values(y) => y.iter().for_each(|y| digest.update(y.to_le_bytes())),
            Targets::Classes { labels, .. } => labels.iter().for_each(|y| digest.update((*y as u64).to_le_bytes())),
        }
    }
    DataRecord {
        name: train.name.clone(),
        examples: train.len(),
        test_examples: test.map_or(0, Dataset::len),
        input_shape: train.input_shape.clone(),
        sha256: hexadecimal(&digest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::File;

    #[test]
    fn data_are_found_in_the_folder_that_is_passed_and_in_no_other() {
        let root = std::env::temp_dir().join(format!("limitpoint-locate-{}", std::process::id()));
        let spec = DataSpec::File(File::at("no-such-folder/points.csv"));
        let folders = ["a", "b"].map(|name| root.join(name));
        for (folder, label) in folders.iter().zip(["1", "-1"]) {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("points.csv"), format!("0.5,2,{label}\n-0.5,1,-1\n")).unwrap();
        }
        let known = |folder| Known { data_folder: folder, ..Known::default() };
        let [first, second] = folders.each_ref().map(|folder| {
            let (split, record) = find_data(&spec, 0, &known(Some(folder)), Path::new("")).unwrap();
            assert_eq!(split.train.len(), 2);
            record.sha256
        });
        assert_ne!(first, second, "each folder has its own file");
        let error = find_data(&spec, 0, &known(None), Path::new("")).unwrap_err();
        assert!(matches!(&error, RunError::NoData { tried, .. } if tried.len() == 1), "{error}");
        // other data than those of the run are refused where they are found
        let wanted = Known { sha256: Some(&first), ..known(Some(&folders[1])) };
        assert!(matches!(find_data(&spec, 0, &wanted, Path::new("")), Err(RunError::OtherData { .. })));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
