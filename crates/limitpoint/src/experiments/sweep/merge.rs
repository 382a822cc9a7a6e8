//! Sweeps made in several places, put together in one.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::place::{FAILED, WAITING, place};
use super::settle::settle;
use crate::experiments::RunError;
use crate::experiments::config::{CONFIG_FILE, read_config_of, write_config};
use crate::experiments::files::{RecordError, create_folder, read_bytes, write_atomically};
use crate::experiments::hold::Hold;
use crate::experiments::manifest::{ExperimentManifest, MANIFEST_FILE, RunEntry, RunManifest, Status};
use crate::experiments::verify::REPORT_FILE;

/// Where folders are copied to before they get their names.
const STAGE: &str = "merging";

/// What came together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Runs of the new sweep.
    pub runs: usize,
    /// Those that are finished.
    pub finished: usize,
    /// Those that several sweeps had finished, with the same bits.
    pub agreed: usize,
    /// Those that wait for a worker.
    pub waiting: usize,
}

/// Puts sweeps and experiments together in a new folder; the old ones are left as they are.
///
/// A run is the same where its name and its recipe are. Finished in several places, its weights and measurements must
/// agree in every bit; finished nowhere, it waits in the new sweep.
pub fn merge(sources: &[PathBuf], out: &Path, data_folder: Option<&Path>) -> Result<Merged, RunError> {
    if out.join(MANIFEST_FILE).exists() {
        let what = "already holds an experiment; merge into a new folder";
        return Err(RecordError::refused(out, what).into());
    }
    let manifests: Vec<(&Path, ExperimentManifest)> = sources
        .iter()
        .map(|source| Ok((source.as_path(), ExperimentManifest::load(source)?)))
        .collect::<Result<_, RunError>>()?;
    let Some((first_folder, first)) = manifests.first() else { return Err(RunError::Nothing) };
    create_folder(out)?;
    let hold = Hold::take(out)?;
    create_folder(&out.join(WAITING))?;
    let stage = out.join(STAGE);
    create_folder(&stage)?;
    let mut homes: Vec<(RunEntry, Vec<&Path>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (folder, manifest) in &manifests {
        for entry in &manifest.runs {
            match places.get(&entry.label.name) {
                None => {
                    places.insert(entry.label.name.clone(), homes.len());
                    homes.push((entry.clone(), vec![folder]));
                }
                Some(&at) => {
                    let (known, folders) = &mut homes[at];
                    if known.recipe_sha256 != entry.recipe_sha256 {
                        return Err(disagreement(&folder.join(&entry.label.name), folders[0], "another recipe"));
                    }
                    if known.data_sha256.is_empty() {
                        known.data_sha256.clone_from(&entry.data_sha256);
                    }
                    folders.push(folder);
                }
            }
        }
    }
    let mut merged = Merged { runs: homes.len(), finished: 0, agreed: 0, waiting: 0 };
    for (entry, folders) in &homes {
        let name = &entry.label.name;
        let mut ended: Option<(&Path, RunManifest)> = None;
        for folder in folders {
            let home = folder.join(name);
            let Some(run) = home.exists().then(|| RunManifest::find(&home)).transpose()?.flatten() else { continue };
            if run.status != Status::Finished {
                continue;
            }
            run.check_files(&home)?;
            match &ended {
                None => ended = Some((folder, run)),
                Some((other, known)) => {
                    let files = |run: &RunManifest| run.files.get("metrics.csv").cloned();
                    if known.weights_sha256 != run.weights_sha256 || files(known) != files(&run) {
                        return Err(disagreement(&home, other, "other weights or measurements"));
                    }
                    merged.agreed += 1;
                }
            }
        }
        let staged = stage.join(name);
        match ended {
            Some((folder, run)) => {
                copy(&folder.join(name), &staged)?;
                if !run.healthy {
                    create_folder(&out.join(FAILED))?;
                    write_atomically(&out.join(FAILED).join(name), format!("{}\n", run.stop).as_bytes())?;
                }
                rename(&staged, &out.join(name))?;
                merged.finished += 1;
            }
            None => {
                create_folder(&staged)?;
                let config = place(folders[0], name).join(CONFIG_FILE);
                write_atomically(&staged.join(CONFIG_FILE), &read_bytes(&config)?)?;
                rename(&staged, &out.join(WAITING).join(name))?;
                merged.waiting += 1;
            }
        }
    }
    let _ = fs::remove_dir(&stage);
    write_config(out, &read_config_of(first_folder, first_folder)?)?;
    let runs = homes.into_iter().map(|(entry, _)| entry).collect();
    ExperimentManifest { runs, ..first.clone() }.save(out)?;
    drop(hold);
    settle(out, data_folder)?;
    Ok(merged)
}

fn disagreement(run: &Path, other: &Path, what: &str) -> RunError {
    let what = format!(
        "has {what} than the run of the same name in {}; only runs of one recipe can be merged, and sweeps laid out with \
         `limitpoint sweep` name their runs by it",
        other.display()
    );
    RecordError::refused(run, what).into()
}

fn rename(from: &Path, to: &Path) -> Result<(), RecordError> {
    fs::rename(from, to).map_err(|source| RecordError::io("move to", to, source))
}

/// Copies a folder with all that is in it, but for claims and pages.
fn copy(from: &Path, to: &Path) -> Result<(), RecordError> {
    create_folder(to)?;
    let entries = fs::read_dir(from).map_err(|source| RecordError::io("read", from, source))?;
    for entry in entries {
        let path = entry.map_err(|source| RecordError::io("read", from, source))?.path();
        let Some(name) = path.file_name().filter(|name| *name != "claim.json" && *name != REPORT_FILE) else {
            continue;
        };
        let target = to.join(name);
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).map_err(|source| RecordError::io("copy", &path, source))?;
        }
    }
    Ok(())
}
