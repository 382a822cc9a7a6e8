//! What runs of other days and machines left behind, kept beside the records without their folders and weights.
//!
//! Runs of weeks are made in parts, and folders with checkpoints of tens of megabytes do not travel. Beside the records lie,
//! for every set that is not finished in one place, `runs/SET.json` with the measurements of every run that has begun, and
//! `looks/NAME.json` with what was found out about weights. Whoever copies `records/` goes on from there: runs that are finished
//! are not made again, and an exhibit is read from those here and those elsewhere together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use limitpoint::experiments::{
    DataRecord, ExperimentRecord, Metrics, Plan, Portrait, RunRecord, Task, TaskLabel, run_name, write_atomically,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::material::{Gathered, Material, is_of, refused};
use super::run_sets::RunSet;
use crate::ClaimError;

/// The runs of a set that have begun.
#[derive(Serialize, Deserialize)]
struct KeptSet {
    data: DataRecord,
    version: String,
    runs: Vec<KeptRun>,
}

/// A run without pictures, its table apart: numbers that JSON cannot hold are absent.
#[derive(Serialize, Deserialize)]
struct KeptRun {
    run: RunRecord,
    table: Vec<(String, Vec<Option<f64>>)>,
}

impl KeptRun {
    fn of(run: &RunRecord) -> Self {
        let cell = |value: &f64| value.is_finite().then_some(*value);
        let metrics = &run.metrics;
        let columns = metrics.columns.iter().zip(&metrics.values);
        let table = columns.map(|(name, values)| (name.clone(), values.iter().map(cell).collect())).collect();
        let histograms = run.histograms.last().cloned().into_iter().collect();
        let bare = RunRecord { metrics: Metrics::default(), portrait: Portrait::default(), histograms, ..run.clone() };
        Self { run: bare, table }
    }

    fn restored(self) -> RunRecord {
        let cells = |values: Vec<Option<f64>>| values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        let (columns, values) = self.table.into_iter().map(|(name, values)| (name, cells(values))).unzip();
        RunRecord { metrics: Metrics { columns, values }, ..self.run }
    }
}

fn runs_file(records: &Path, set: &str) -> PathBuf {
    records.join("runs").join(format!("{set}.json"))
}

/// A file, if it is there.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ClaimError> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
            refused(path, format!("is damaged ({error}): take it from where it was copied, or remove it"))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused(path, error)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), ClaimError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| refused(folder, error))?;
    }
    write_atomically(path, text.as_bytes()).map_err(|error| refused(path, error))
}

/// What was kept of a set: its runs, and apart from them those of other recipes than today's, which their names tell.
fn kept_runs(
    records: &Path,
    set: &RunSet,
    planned: &[Task],
) -> Result<Option<(ExperimentRecord, Vec<KeptRun>)>, ClaimError> {
    let Some(KeptSet { data, version, runs }) = read(&runs_file(records, set.name))? else { return Ok(None) };
    let names: BTreeSet<String> = planned.iter().map(run_name).collect::<Result<_, _>>()?;
    let (own, others): (Vec<KeptRun>, _) = runs.into_iter().partition(|kept: &KeptRun| names.contains(&kept.run.name));
    let runs = own.into_iter().map(KeptRun::restored).collect();
    Ok(Some((ExperimentRecord { data, version, runs, ..ExperimentRecord::default() }, others)))
}

/// The runs in a folder and those that were kept; of a run that is in both, the part that has come further.
pub(super) fn with_kept(
    here: Option<ExperimentRecord>,
    records: &Path,
    set: &RunSet,
    planned: &[Task],
) -> Result<Option<ExperimentRecord>, ClaimError> {
    let (mut all, kept) = match (here, kept_runs(records, set, planned)?) {
        (Some(here), Some((kept, _))) => (here, kept),
        (here, kept) => return Ok(here.or(kept.map(|(kept, _)| kept))),
    };
    // not their checksums: an order of examples that is drawn belongs to a seed
    let like = |data: &DataRecord| (data.name.clone(), data.examples, data.test_examples, data.input_shape.clone());
    let [ours, theirs] = [&all.data, &kept.data].map(like);
    if ours != theirs {
        let reason = format!("holds runs on other data, {theirs:?}; here {ours:?}. Choose another folder with --out");
        return Err(refused(&runs_file(records, set.name), reason));
    }
    let has_first =
        |runs: &[RunRecord]| planned.first().is_some_and(|task| runs.iter().any(|run| is_of(&task.label, run)));
    if has_first(&kept.runs) && !has_first(&all.runs) {
        all.data = kept.data;
    }
    let reach = |run: &RunRecord| (run.healthy, run.steps);
    for run in kept.runs {
        let same = |other: &&mut RunRecord| {
            (&other.optimiser, other.seed, &other.point) == (&run.optimiser, run.seed, &run.point)
        };
        match all.runs.iter_mut().find(same) {
            Some(known) if reach(known) >= reach(&run) => {}
            Some(known) => *known = run,
            None => all.runs.push(run),
        }
    }
    // in the order of the plan, wherever they were made
    all.runs.sort_by_key(|run| planned.iter().position(|task| is_of(&task.label, run)));
    Ok(Some(all))
}

/// Keeps the runs of all sets that are not finished in one place.
pub fn keep_runs(material: &Material) -> Result<(), ClaimError> {
    for Gathered { set, planned, record, .. } in material.sets.values() {
        let Some(record) = record.as_ref().filter(|record| !record.runs.is_empty()) else { continue };
        let path = runs_file(&material.records, set.name);
        let ended = record.runs.iter().filter(|run| run.healthy || run.failed).count();
        if ended == planned.len() && !path.exists() {
            continue;
        }
        let mut runs: Vec<KeptRun> = record.runs.iter().map(KeptRun::of).collect();
        // those of other recipes are not read, but not thrown away either
        runs.extend(kept_runs(&material.records, set, planned)?.into_iter().flat_map(|(_, others)| others));
        let kept = KeptSet { data: record.data.clone(), version: record.version.clone(), runs };
        let text = serde_json::to_string(&kept).map_err(|error| refused(&path, error))?;
        // a line for each run, so that versions of the file can be compared
        write(&path, &(text.replace("{\"run\":", "\n{\"run\":") + "\n"))?;
    }
    Ok(())
}

/// Whether a run of a set, whose plan this is, is among those that were finished elsewhere and kept.
pub fn finished_elsewhere(
    records: &Path,
    set: &RunSet,
    plan: &Plan,
) -> Result<impl Fn(&TaskLabel) -> bool + use<>, ClaimError> {
    let kept = kept_runs(records, set, &plan.tasks())?;
    let finished: Vec<RunRecord> = kept.into_iter().flat_map(|(kept, _)| kept.runs).filter(|run| run.healthy).collect();
    Ok(move |label: &TaskLabel| finished.iter().any(|run| is_of(label, run)))
}

impl Material {
    /// What was found out about weights, which takes minutes: found once, and kept where the weights do not follow. Nothing where
    /// neither is here.
    pub(super) fn found_once<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        weights: &Path,
        find: impl FnOnce() -> Result<T, ClaimError>,
    ) -> Result<Option<T>, ClaimError> {
        let path = self.records.join("looks").join(format!("{name}.json"));
        if let Some(known) = read(&path)? {
            return Ok(Some(known));
        }
        if !weights.is_file() {
            return Ok(None);
        }
        let found = find()?;
        write(&path, &(serde_json::to_string_pretty(&found).map_err(|error| refused(&path, error))? + "\n"))?;
        Ok(Some(found))
    }
}
