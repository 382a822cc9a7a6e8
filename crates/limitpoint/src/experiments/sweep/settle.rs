//! What belongs to a sweep as a whole, once its last run is done: the exact optima its report compares with.

use std::path::Path;

use rayon::prelude::*;

use crate::experiments::RunError;
use crate::experiments::config::read_config;
use crate::experiments::files::{RecordError, remove_temporaries};
use crate::experiments::hold::Hold;
use crate::experiments::locate::{Known, find_data};
use crate::experiments::manifest::{ExperimentManifest, RunManifest, Status};
use crate::experiments::optima::{AT_ONCE, OptimaRecord, find_optima};
use crate::experiments::task::Task;

/// Writes `judge.json`, unless it is there, somebody else writes it, or a run is not finished.
pub(super) fn settle(sweep: &Path, data_folder: Option<&Path>) -> Result<(), RunError> {
    if sweep.join(OptimaRecord::FILE).exists() {
        return Ok(());
    }
    let _hold = match Hold::take(sweep) {
        Err(RecordError::Held { .. }) => return Ok(()),
        other => other?,
    };
    // what a killed worker left half written
    remove_temporaries(sweep)?;
    let manifest = ExperimentManifest::load(sweep)?;
    let runs: Vec<Option<(Task, RunManifest)>> = manifest
        .runs
        .par_iter()
        .map(|entry| {
            let folder = sweep.join(&entry.label.name);
            let Some(run) = RunManifest::find(&folder)?.filter(|run| run.status == Status::Finished) else {
                return Ok(None);
            };
            Ok(Some((Task { label: entry.label.clone(), recipe: read_config(&folder)? }, run)))
        })
        .collect::<Result<_, RunError>>()?;
    let Some(runs) = runs.into_iter().collect::<Option<Vec<_>>>() else { return Ok(()) };
    let sums: Vec<(&Task, &str)> = runs.iter().map(|(task, run)| (task, run.data.sha256.as_str())).collect();
    let load = |task: &Task| {
        let run = runs.iter().find(|(known, _)| known.label.name == task.label.name).map(|(_, run)| run);
        let known = Known {
            sha256: run.map(|run| run.data.sha256.as_str()),
            files: run.map_or(&[], |run| &run.data_files),
            data_folder,
        };
        find_data(&task.recipe.data, task.data_seed(), &known, sweep)
    };
    find_optima(sweep, &sums, load, AT_ONCE)?;
    Ok(())
}
