//! How a sweep gets on: done, running, waiting, failed, and how long it will take.

use std::collections::HashSet;
use std::path::Path;

use serde::Serialize;

use super::lease::WorkerRecord;
use super::place::{FAILED, RUNNING, WAITING, WORKERS, is_sweep, names};
use crate::experiments::RunError;
use crate::experiments::files::{RecordError, create_folder, read_text, remove_file};
use crate::experiments::hold::Hold;
use crate::experiments::manifest::{ExperimentManifest, RunManifest, Status};

/// Where the runs of a sweep or an experiment stand.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepStatus {
    /// All runs.
    pub runs: usize,
    /// Runs that finished by a rule of their recipe.
    pub done: usize,
    /// Runs that somebody is at.
    pub running: Vec<RunningEntry>,
    /// Runs nobody has begun, or that were interrupted.
    pub waiting: usize,
    /// Runs that could not go on, or ended in trouble.
    pub failed: Vec<FailedEntry>,
    /// Workers that have runs.
    pub workers: usize,
    /// Mean seconds of a run, where one is done.
    pub seconds_per_run: Option<f64>,
    /// Seconds until all is done, if as many workers go on as fast as so far.
    pub seconds_left: Option<f64>,
}

/// A run that somebody is at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunningEntry {
    /// Name of the run.
    pub run: String,
    /// Name of the worker; empty outside of sweeps.
    pub worker: String,
    /// Its machine.
    pub host: String,
    /// Its process.
    pub process: u32,
    /// For how many seconds, as of its last heartbeat; absent where it began after that.
    pub seconds: Option<f64>,
}

/// A run that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedEntry {
    /// Name of the run.
    pub run: String,
    /// Why.
    pub reason: String,
}

/// Looks at a sweep, or at an experiment that `limitpoint run` began; writes nothing.
pub fn status(folder: &Path) -> Result<SweepStatus, RunError> {
    let manifest = ExperimentManifest::load(folder)?;
    if is_sweep(folder) { Ok(of_sweep(folder, &manifest)) } else { of_experiment(folder, &manifest) }
}

fn of_sweep(folder: &Path, manifest: &ExperimentManifest) -> SweepStatus {
    // folders move meanwhile: done is what is at its own place, and what is found nowhere else waits
    let home: HashSet<String> = names(folder).into_iter().collect();
    let (mut running, mut workers) = (Vec::new(), 0);
    for worker in names(&folder.join(RUNNING)) {
        let mut claimed = names(&folder.join(RUNNING).join(&worker));
        claimed.retain(|run| !home.contains(run));
        let record = WorkerRecord::read(folder, &worker);
        workers += usize::from(!claimed.is_empty());
        running.extend(claimed.into_iter().map(|run| {
            let at = record.as_ref().and_then(|record| record.at.as_ref()).filter(|(at, _)| *at == run);
            RunningEntry {
                worker: worker.clone(),
                host: record.as_ref().map_or_else(String::new, |record| record.host.clone()),
                process: record.as_ref().map_or(0, |record| record.process),
                seconds: at.map(|(_, seconds)| *seconds),
                run,
            }
        }));
    }
    let failed: Vec<FailedEntry> = names(&folder.join(FAILED))
        .into_iter()
        .filter(|name| home.contains(name))
        .map(|run| {
            let reason = read_text(&folder.join(FAILED).join(&run)).unwrap_or_default().trim_end().to_owned();
            FailedEntry { run, reason }
        })
        .collect();
    let records = names(&folder.join(WORKERS)).into_iter().filter_map(|name| {
        let worker = name.strip_suffix(".json")?;
        WorkerRecord::read(folder, worker)
    });
    let (count, seconds) = records.fold((0, 0.0), |(runs, sum), record| (runs + record.runs, sum + record.seconds));
    let seconds_per_run = (count > 0).then(|| seconds / count as f64);
    let runs = manifest.runs.len();
    let ended = manifest.runs.iter().filter(|run| home.contains(&run.label.name)).count();
    let waiting = runs.saturating_sub(ended + running.len());
    let remaining = waiting as f64 + 0.5 * running.len() as f64;
    SweepStatus {
        runs,
        done: ended.saturating_sub(failed.len()),
        seconds_left: seconds_per_run.filter(|_| workers > 0).map(|mean| mean * remaining / workers as f64),
        running,
        waiting,
        failed,
        workers,
        seconds_per_run,
    }
}

fn of_experiment(folder: &Path, manifest: &ExperimentManifest) -> Result<SweepStatus, RunError> {
    let (mut done, mut running, mut waiting, mut failed, mut seconds) = (0, Vec::new(), 0, Vec::new(), 0.0);
    for entry in &manifest.runs {
        let place = folder.join(&entry.label.name);
        match RunManifest::find(&place)? {
            Some(run) if run.status == Status::Finished && run.healthy => {
                done += 1;
                seconds += run.timings.seconds;
            }
            Some(run) if matches!(run.status, Status::Finished | Status::Failed) => {
                failed.push(FailedEntry { run: run.label.name, reason: run.stop });
            }
            found => match Hold::owner(&place) {
                Some(owner) => running.push(RunningEntry {
                    run: entry.label.name.clone(),
                    worker: String::new(),
                    host: owner.host,
                    process: owner.process,
                    seconds: found.map(|run| run.timings.seconds),
                }),
                None => waiting += 1,
            },
        }
    }
    let workers = usize::from(!running.is_empty());
    let seconds_per_run = (done > 0).then(|| seconds / f64::from(done));
    let remaining = waiting as f64 + 0.5 * running.len() as f64;
    let together = running.len().max(1) as f64;
    Ok(SweepStatus {
        runs: manifest.runs.len(),
        done: usize::try_from(done).unwrap_or(0),
        seconds_left: seconds_per_run.filter(|_| workers > 0).map(|mean| mean * remaining / together),
        running,
        waiting,
        failed,
        workers,
        seconds_per_run,
    })
}

/// Makes failed runs of a sweep wait again; gives the number of those, and of those that ended in trouble by themselves,
/// which would end the same way again and are left as they are.
pub fn retry_failed(folder: &Path) -> Result<(usize, usize), RunError> {
    ExperimentManifest::load(folder)?;
    if !is_sweep(folder) {
        let what = "is no sweep that workers share; `limitpoint resume` tries its failed runs again";
        return Err(RecordError::refused(folder, what).into());
    }
    create_folder(&folder.join(WAITING))?;
    let (mut again, mut left) = (0, 0);
    for name in names(&folder.join(FAILED)) {
        let home = folder.join(&name);
        match RunManifest::load(&home) {
            Ok(run) if run.status == Status::Finished => left += 1,
            _ if !home.exists() => {}
            _ => {
                let waits = folder.join(WAITING).join(&name);
                remove_file(&folder.join(FAILED).join(&name))?;
                std::fs::rename(&home, &waits).map_err(|source| RecordError::io("move to", &waits, source))?;
                again += 1;
            }
        }
    }
    Ok((again, left))
}
