//! Laying out a sweep: one folder per run, nothing started.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rayon::prelude::*;

use super::place::{RUNNING, WAITING, is_sweep, names};
use crate::experiments::RunError;
use crate::experiments::config::{CONFIG_FILE, config_text, from_folder, identity, write_config};
use crate::experiments::experiment::data_key;
use crate::experiments::files::{RecordError, create_folder, remove_file, remove_temporaries};
use crate::experiments::fit::require_tasks;
use crate::experiments::hold::Hold;
use crate::experiments::locate::{Known, find_data};
use crate::experiments::manifest::{ExperimentManifest, MANIFEST_FILE, RunEntry};
use crate::experiments::optima::OptimaRecord;
use crate::experiments::plan::Plan;
use crate::experiments::recipe::Recipe;
use crate::experiments::seal::{Seal, sum};
use crate::experiments::task::Task;

/// Where folders are made before the manifest knows of them.
const STAGE: &str = "laying-out";
/// Digits of the hash in a run's name.
const DIGITS: usize = 10;
/// How long it is waited for others that lay out, or for a worker that finds the optima of the sweep.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often runs that the manifest knows are looked for.
const LOOKS: usize = 10;

/// What was laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct LaidOut {
    /// Runs of the sweep.
    pub runs: usize,
    /// Those that were not in it before.
    pub added: usize,
    /// Points asked for that were in it already, or twice in the plan.
    pub known: usize,
}

/// Lays out the runs of a plan in a folder that is new, empty, or a sweep already; those it has are left as they are.
///
/// Killed at any moment and repeated, it lays out what is missing. Nothing is run, and of the data only those of the
/// first run are looked at; a worker checks those of the others when it begins.
pub fn lay_out(plan: &Plan, folder: &Path, data_folder: Option<&Path>) -> Result<LaidOut, RunError> {
    require_tasks(&plan.points)?;
    create_folder(folder)?;
    // in a sweep a hold is short: others lay out, or a worker writes what belongs to all runs
    let patience = if is_sweep(folder) { PATIENCE } else { Duration::ZERO };
    let _hold = Hold::take_within(folder, patience)?;
    remove_temporaries(folder)?;
    let before = match ExperimentManifest::load(folder) {
        Ok(_) if !is_sweep(folder) => {
            let what =
                "holds an experiment that `limitpoint run` began; resume it, or choose another folder with --out";
            return Err(RecordError::refused(folder, what).into());
        }
        Ok(manifest) => Some(manifest),
        // a sweep that was killed before its manifest was written
        Err(_) if !folder.join(MANIFEST_FILE).exists() => None,
        Err(error) => return Err(error.into()),
    };
    let root = folder.canonicalize().map_err(|source| RecordError::io("find", folder, source))?;
    let first = plan.points.first().and_then(|point| Task::all(&point.recipe, &point.settings).into_iter().next());
    let first = first.ok_or(RunError::Nothing)?;
    let known_data = Known { data_folder, ..Known::default() };
    let (_, data) = find_data(&first.recipe.data, first.data_seed(), &known_data, folder)?;
    let first_key = data_key(&first);
    let stage = folder.join(STAGE);
    if stage.exists() {
        std::fs::remove_dir_all(&stage).map_err(|source| RecordError::io("remove", &stage, source))?;
    }
    create_folder(&stage)?;
    let listed: HashSet<&str> =
        before.iter().flat_map(|known| &known.runs).map(|run| run.label.name.as_str()).collect();
    let there = present(folder, &listed);
    let one = |task: Task| -> Result<RunEntry, RunError> {
        let name = run_name(&task)?;
        let Task { mut label, recipe } = task;
        let recipe_sha256 = identity(&recipe)?;
        label.name = name;
        let waits = folder.join(WAITING).join(&label.name);
        if !there.contains(&label.name) {
            make(&stage.join(&label.name), &root.join(&label.name), &recipe)?;
        } else if waits.exists() && config_text(&waits).is_err() {
            // a file that never reached the disk; or a worker has claimed the folder since
            match write_recipe(&waits, &root.join(&label.name), &recipe) {
                Err(RunError::Record(RecordError::Io { .. })) if !waits.exists() => {}
                other => other?,
            }
        }
        let key = data_key(&Task { label: label.clone(), recipe: recipe.clone() });
        Ok(RunEntry {
            label,
            recipe_sha256,
            data_sha256: if key == first_key { data.sha256.clone() } else { String::new() },
            data_files: recipe.data.paths().into_iter().map(PathBuf::from).collect(),
        })
    };
    let entries: Vec<RunEntry> = plan
        .points
        .par_iter()
        .flat_map_iter(|point| Task::all(&point.recipe, &point.settings))
        .map(one)
        .collect::<Result<_, _>>()?;
    let asked = entries.len();
    let mut seen: HashSet<String> = listed.into_iter().map(str::to_owned).collect();
    let fresh: Vec<RunEntry> = entries.into_iter().filter(|entry| seen.insert(entry.label.name.clone())).collect();
    let added = fresh.len();
    let manifest = match before {
        Some(manifest) => ExperimentManifest { runs: [manifest.runs, fresh].concat(), ..manifest },
        None => {
            write_config(folder, &plan.base)?;
            ExperimentManifest {
                name: plan.name.clone(),
                title: plan.base.title.clone(),
                description: plan.base.description.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                data,
                runs: fresh,
            }
        }
    };
    if added > 0 {
        manifest.save(folder)?;
        // the lines of a report are those of all runs
        remove_file(&folder.join(OptimaRecord::FILE))?;
    }
    let waiting = folder.join(WAITING);
    create_folder(&waiting)?;
    for name in names(&stage) {
        let to = waiting.join(&name);
        std::fs::rename(stage.join(&name), &to).map_err(|source| RecordError::io("move to", &to, source))?;
    }
    let _ = std::fs::remove_dir(&stage);
    Ok(LaidOut { runs: manifest.runs.len(), added, known: asked - added })
}

/// All runs whose folders are somewhere in the sweep.
///
/// Workers move folders meanwhile. In this order those that move on are seen; one that is given back between two looks
/// is missed, so that runs that should be there are looked for again.
fn present(folder: &Path, listed: &HashSet<&str>) -> HashSet<String> {
    let mut present = HashSet::new();
    for _ in 0..LOOKS {
        present.extend(names(&folder.join(WAITING)));
        for worker in names(&folder.join(RUNNING)) {
            present.extend(names(&folder.join(RUNNING).join(worker)));
        }
        present.extend(names(folder));
        if listed.iter().all(|name| present.contains(*name)) {
            break;
        }
    }
    present
}

/// The name of a run in a sweep: it ends with a hash of all that decides its files, stop rules too.
pub fn run_name(task: &Task) -> Result<String, RunError> {
    let stop = toml::to_string(&task.recipe.stop).map_err(|error| RunError::Unreadable(error.to_string()))?;
    let hash = sum(format!("{}\n{stop}", identity(&task.recipe)?).as_bytes());
    Ok(format!("{}-{}", task.label.name, &hash[..DIGITS]))
}

/// A folder with a recipe; `home` is where the run will be in the end, from where its data are named.
fn make(folder: &Path, home: &Path, recipe: &Recipe) -> Result<(), RunError> {
    create_folder(folder)?;
    write_recipe(folder, home, recipe)
}

/// Writes the recipe in a folder that is there.
fn write_recipe(folder: &Path, home: &Path, recipe: &Recipe) -> Result<(), RunError> {
    let has_paths = !recipe.data.paths().is_empty();
    let written = if has_paths {
        Recipe { data: from_folder(&recipe.data, home), ..recipe.clone() }.to_toml()?
    } else {
        recipe.to_toml()?
    };
    let path = folder.join(CONFIG_FILE);
    std::fs::write(&path, Seal::TOML.close(&written)).map_err(|source| RecordError::io("write", &path, source))?;
    Ok(())
}
