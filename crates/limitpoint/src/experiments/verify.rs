//! Whether the files of a folder are those that were written, by the checksums they have.
//!
//! ```text
//! manifest.json, judge.json    SHA-256 of all before it as the last entry
//! config.toml, report.html     the same as a comment in the last line
//! a finished run               SHA-256 of every other file in its manifest
//! checkpoints/*.safetensors    SHA-256 in their metadata, whether the run is finished or not
//! polished-NORM.safetensors    SHA-256 in its metadata
//! figures/*, tables/*          SHA-256 in SHA256SUMS beside them, as `sha256sum -c` reads it
//! proof-NORM.json              SHA-256 of all before it, and every number made again from data and weights
//! certificate.json             every number made again from data and weights
//! the data                     SHA-256 in the manifests
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::RunError;
use super::certify::{CERTIFICATE_FILE, CheckedCertificate, check_certificate};
use super::checkpoint::load_checkpoint;
use super::config::{CONFIG_FILE, read_config, read_config_of};
use super::files::{RecordError, read_bytes, read_text, write_atomically};
use super::hold::Hold;
use super::listed::{FIGURES, TABLES, verify_listed};
use super::locate::{Known, find_data};
use super::manifest::{ExperimentManifest, MANIFEST_FILE, RunManifest, Status};
use super::optima::OptimaRecord;
use super::prove::check_proof;
use super::seal::{Seal, sum};
use super::sweep::place;
use super::task::Task;
use super::weights::check_weights;

/// Name of the page of an experiment.
pub const REPORT_FILE: &str = "report.html";
/// Files of a finished run besides its manifest and its checkpoints.
const FILES: [&str; 5] = [CONFIG_FILE, "metrics.csv", "metrics.parquet", "histograms.jsonl", "portrait.json"];

/// What [`verify`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verification {
    /// How many files were compared with their checksums.
    pub files: usize,
    /// What is damaged, changed or missing.
    pub damage: Vec<Damage>,
    /// What could not be checked, or is worth knowing.
    pub notes: Vec<String>,
}

/// A file that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it, and the remedy.
    pub what: String,
}

impl Verification {
    /// Notes damage; other troubles, such as files that may not be read, are returned.
    pub(super) fn take<T, E: Into<RunError>>(&mut self, outcome: Result<T, E>) -> Result<Option<T>, RunError> {
        match outcome.map_err(Into::into) {
            Ok(value) => Ok(Some(value)),
            Err(RunError::Record(RecordError::Damaged { path, what })) => {
                self.damage.push(Damage { path, what });
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Checks every file of an experiment's or a run's folder, and the data, which are looked for in `data_folder` too.
pub fn verify(folder: &Path, data_folder: Option<&Path>) -> Result<Verification, RunError> {
    let found = look(folder, data_folder);
    let whole = found.as_ref().is_ok_and(|found| found.damage.is_empty());
    if whole || (Hold::owner(folder).is_none() && folder.parent().and_then(Hold::owner).is_none()) {
        return found;
    }
    // somebody writes there, and may have replaced a file together with its checksum
    std::thread::sleep(Duration::from_millis(200));
    look(folder, data_folder)
}

fn look(folder: &Path, data_folder: Option<&Path>) -> Result<Verification, RunError> {
    let mut found = Verification::default();
    if is_run(folder) {
        verify_run(folder, folder, data_folder, &mut found)?;
    } else if folder.join(MANIFEST_FILE).exists() || folder.join(CONFIG_FILE).exists() {
        verify_experiment(folder, data_folder, &mut found)?;
    } else {
        let what = "holds no experiment and no run; name the folder that `limitpoint run` wrote";
        return Err(RecordError::refused(folder, what).into());
    }
    Ok(found)
}

/// Whether a folder is that of a single run.
pub(super) fn is_run(folder: &Path) -> bool {
    folder.join("checkpoints").is_dir() || RunManifest::load(folder).is_ok()
}

fn verify_experiment(folder: &Path, data_folder: Option<&Path>, found: &mut Verification) -> Result<(), RunError> {
    if let Some(owner) = Hold::owner(folder) {
        found.notes.push(format!("{} is being written by {owner}", folder.display()));
    }
    let manifest = found.take(ExperimentManifest::load(folder))?;
    found.take(read_config(folder))?;
    found.files += 2;
    let mut finished = true;
    let runs = match manifest {
        Some(manifest) => manifest.runs.into_iter().map(|entry| folder.join(entry.label.name)).collect(),
        // without the list, what is there
        None => folders_in(folder).into_iter().filter(|path| is_run(path)).collect::<Vec<_>>(),
    };
    for home in runs {
        let name = home.file_name().unwrap_or_default().to_string_lossy().into_owned();
        finished &= verify_run(&place(folder, &name), &home, data_folder, found)?;
    }
    if found.take(OptimaRecord::load(folder))?.is_some_and(|record| record.is_none()) && finished {
        let what = "is missing; `limitpoint resume` writes it again";
        found.damage.push(Damage { path: folder.join(OptimaRecord::FILE), what: what.into() });
    }
    let page = folder.join(REPORT_FILE);
    match read_text(&page) {
        Err(error) if error.is_missing() => {
            found.notes.push(format!("{} is not there; `limitpoint report` writes it", page.display()));
        }
        Ok(text) if Seal::HTML.open(&text).is_none() => {
            let what = "was changed after it was written; `limitpoint report` writes it anew";
            found.damage.push(Damage { path: page, what: what.into() });
        }
        other => found.files += usize::from(found.take(other)?.is_some()),
    }
    verify_listed(&folder.join(FIGURES), "`limitpoint report --figures svg`", found)?;
    verify_listed(&folder.join(TABLES), "`limitpoint report --tables csv`", found)
}

/// Whether the run is finished; `home` is where its folder belongs, from where its data are named.
fn verify_run(
    folder: &Path,
    home: &Path,
    data_folder: Option<&Path>,
    found: &mut Verification,
) -> Result<bool, RunError> {
    let recipe = found.take(read_config_of(folder, home))?;
    found.files += 1;
    let manifest = match found.take(RunManifest::find(folder))? {
        Some(Some(manifest)) => manifest,
        Some(None) => {
            found.notes.push(format!("{} has not begun", folder.display()));
            return Ok(false);
        }
        None => return Ok(true),
    };
    found.files += 1;
    if manifest.status == Status::Finished {
        found.files += manifest.files.len().saturating_sub(1);
        for damage in manifest.damage(folder)? {
            // a changed recipe has its own checksum
            if recipe.is_some() || !damage.path.ends_with(CONFIG_FILE) {
                found.damage.push(damage);
            }
        }
    } else {
        found.notes.push(format!("{} is not finished: {}", folder.display(), manifest.stop));
        for path in files_in(&folder.join("checkpoints"), "safetensors") {
            match load_checkpoint(&path) {
                // whoever writes there has removed an old one
                Err(error) if error.is_missing() => {}
                other => found.files += usize::from(found.take(other)?.is_some()),
            }
        }
    }
    if let Some(recipe) = recipe.filter(|_| !manifest.data.sha256.is_empty()) {
        let task = Task { label: manifest.label.clone(), recipe };
        let known = Known { sha256: Some(&manifest.data.sha256), files: &manifest.data_files, data_folder };
        match find_data(&task.recipe.data, task.data_seed(), &known, folder) {
            Ok(_) => {}
            Err(error) if error.is_damage() => {
                found.damage.push(Damage { path: folder.to_path_buf(), what: format!("has other data: {error}") });
            }
            Err(error) => found.notes.push(format!("{}: the data were not checked: {error}", folder.display())),
        }
    }
    verify_products(folder, &manifest, data_folder, found)?;
    Ok(manifest.status == Status::Finished)
}

/// What the judge made of a run.
fn verify_products(
    folder: &Path,
    manifest: &RunManifest,
    data_folder: Option<&Path>,
    found: &mut Verification,
) -> Result<(), RunError> {
    for path in files_in(folder, "safetensors") {
        found.files += 1;
        found.take(check_weights(&path))?;
    }
    let proofs = files_in(folder, "json")
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("proof-")));
    for path in proofs {
        found.files += 1;
        match check_proof(&path, data_folder) {
            Ok(checked) => found.damage.extend(checked.disagreements.iter().map(|disagreement| Damage {
                path: path.clone(),
                what: format!("does not hold: {disagreement}; prove the run again"),
            })),
            // data and weights were spoken of already
            Err(RunError::OtherData { .. } | RunError::NoData { .. } | RunError::LostData { .. }) => {}
            Err(RunError::Record(RecordError::Damaged { path: weights, .. })) if weights != path => {}
            Err(error) => {
                found.damage.push(Damage { path, what: format!("does not hold: {error}; prove the run again") });
            }
        }
    }
    for path in files_in(folder, "json").into_iter().filter(|path| path.to_string_lossy().ends_with(CERTIFICATE_FILE)) {
        found.files += 1;
        let other_end = |checked: &CheckedCertificate| {
            let certificate = &checked.certificate;
            path.ends_with(CERTIFICATE_FILE)
                && certificate.run == manifest.label.name
                && Some(&certificate.weights.sha256) != manifest.weights_sha256.as_ref()
        };
        match check_certificate(&path, data_folder) {
            Ok(checked) if other_end(&checked) => found.notes.push(format!(
                "{} is of other weights than those the run ended with; certify it again",
                path.display()
            )),
            Ok(checked) => found.damage.extend(checked.disagreements.iter().map(|disagreement| Damage {
                path: path.clone(),
                what: format!("does not hold: {disagreement}; certify the run again"),
            })),
            // the data were spoken of already
            Err(RunError::OtherData { .. } | RunError::NoData { .. } | RunError::LostData { .. }) => {}
            // and so were the weights
            Err(RunError::Record(RecordError::Damaged { path: weights, .. })) if weights != path => {}
            Err(error) => {
                found.damage.push(Damage { path, what: format!("does not hold: {error}; certify the run again") });
            }
        }
    }
    Ok(())
}

/// Writes `report.html` with its checksum.
pub fn save_page(folder: &Path, page: &str) -> Result<PathBuf, RecordError> {
    let path = folder.join(REPORT_FILE);
    write_atomically(&path, Seal::HTML.close(page).as_bytes())?;
    Ok(path)
}

impl RunManifest {
    /// Enters the checksums of all files of a run that has just ended.
    pub(super) fn list_files(&mut self, folder: &Path) -> Result<(), RecordError> {
        let checkpoints = files_in(&folder.join("checkpoints"), "safetensors")
            .into_iter()
            .map(|path| format!("checkpoints/{}", path.file_name().unwrap_or_default().to_string_lossy()));
        let names = FILES.iter().map(|&name| name.to_owned()).chain(checkpoints);
        self.files = names
            .map(|name| Ok((name.clone(), sum(&read_bytes(&folder.join(&name))?))))
            .collect::<Result<_, RecordError>>()?;
        Ok(())
    }

    /// The files of a finished run that are not as it left them.
    fn damage(&self, folder: &Path) -> Result<Vec<Damage>, RecordError> {
        let mut damage = Vec::new();
        for (name, stated) in &self.files {
            damage.extend(compare(&folder.join(name), stated)?);
        }
        Ok(damage)
    }

    /// An error for the first file of a finished run that is not as it left it.
    pub(super) fn check_files(&self, folder: &Path) -> Result<(), RecordError> {
        let remedy = format!(
            "; restore it, or remove {} and resume: what is damaged is made again from the last good checkpoint",
            folder.join(MANIFEST_FILE).display()
        );
        match self.damage(folder)?.into_iter().next() {
            Some(Damage { path, what }) => Err(RecordError::Damaged { path, what: what + &remedy }),
            None => Ok(()),
        }
    }
}

/// Compares a file with its checksum.
pub(super) fn compare(path: &Path, stated: &str) -> Result<Option<Damage>, RecordError> {
    let what = match read_bytes(path).map(|bytes| sum(&bytes)) {
        Ok(found) if found == stated => return Ok(None),
        Ok(found) => format!("is not as it was written: its SHA-256 is {found}, and was {stated}"),
        Err(error) if error.is_missing() => format!("is missing; its SHA-256 was {stated}"),
        Err(error) => return Err(error),
    };
    Ok(Some(Damage { path: path.to_path_buf(), what }))
}

/// The files of a folder with this ending, by name; none if there is no such folder.
pub(super) fn files_in(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == ending)).collect();
    files.sort();
    files
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}
