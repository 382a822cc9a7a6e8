//! A worker: claims a run, goes on with it, publishes it, and takes the next.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use super::claim::{Claim, Claims, Moved, Next};
use super::lease::DEFAULT_LEASE;
use super::place::is_sweep;
use super::settle::settle;
use crate::engine::Device;
use crate::experiments::RunError;
use crate::experiments::config::read_config_of;
use crate::experiments::experiment::data_key;
use crate::experiments::files::RecordError;
use crate::experiments::fit::require_memory;
use crate::experiments::locate::{Known, Loaded, find_data};
use crate::experiments::manifest::{ExperimentManifest, RunEntry, RunManifest, Status};
use crate::experiments::record::DataRecord;
use crate::experiments::run::{Setting, execute, failed};
use crate::experiments::task::Task;
use crate::experiments::watcher::Watcher;

/// How a worker works.
pub struct WorkOptions<'a> {
    /// Threads of the run it is at; results do not depend on it.
    pub threads: usize,
    /// Where its models are computed; on another device the last bits differ.
    pub device: Device,
    /// How long its heartbeat may fail to change before others take its run over.
    pub lease: Duration,
    /// Who is told about progress; runs are numbered as in the manifest of the sweep.
    pub watcher: &'a dyn Watcher,
    /// Set it to make the worker leave: its run is given back with a checkpoint.
    pub interrupt: &'a AtomicBool,
    /// The folder of data sets.
    pub data_folder: Option<PathBuf>,
}

impl<'a> WorkOptions<'a> {
    /// One thread, a lease of a minute.
    pub fn new(watcher: &'a dyn Watcher, interrupt: &'a AtomicBool) -> Self {
        Self { threads: 1, device: Device::Cpu, lease: DEFAULT_LEASE, watcher, interrupt, data_folder: None }
    }
}

/// Why a worker left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Departure {
    /// Every run is finished or failed.
    Complete,
    /// Nothing waits; other workers are at the last runs.
    OthersRun,
    /// It was asked to.
    Interrupted,
}

/// What a worker did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WorkOutcome {
    /// Runs it finished.
    pub finished: u64,
    /// Runs that failed or ended in trouble.
    pub failed: u64,
    /// Runs it took over from workers that were gone.
    pub taken_over: u64,
    /// Why it left.
    pub departure: Departure,
}

/// How a claimed run ended.
enum Ended {
    Finished,
    Failed(String),
    Interrupted,
    /// Somebody took it over meanwhile.
    Lost,
}

/// Works on a sweep until nothing is left to claim.
pub fn work(sweep: &Path, options: &WorkOptions) -> Result<WorkOutcome, RunError> {
    let mut worker = Worker::new(sweep, options)?;
    let mut outcome = WorkOutcome { finished: 0, failed: 0, taken_over: 0, departure: Departure::Interrupted };
    loop {
        if options.interrupt.load(Ordering::Relaxed) {
            return Ok(outcome);
        }
        match worker.claims.claim()? {
            Next::Run(claim) => {
                outcome.taken_over += u64::from(claim.taken_over);
                match worker.attend(&claim)? {
                    Ended::Finished => outcome.finished += 1,
                    Ended::Failed(_) => outcome.failed += 1,
                    Ended::Interrupted | Ended::Lost => {}
                }
            }
            Next::Look => std::thread::sleep(PAUSE),
            Next::OthersRun => {
                outcome.departure = Departure::OthersRun;
                return Ok(outcome);
            }
            Next::Nothing => {
                settle(sweep, options.data_folder.as_deref())?;
                outcome.departure = Departure::Complete;
                return Ok(outcome);
            }
        }
    }
}

/// Distance between looks at workers of which nothing is known yet.
const PAUSE: Duration = Duration::from_millis(500);

struct Worker<'a> {
    sweep: PathBuf,
    options: &'a WorkOptions<'a>,
    runs: Vec<RunEntry>,
    numbers: HashMap<String, usize>,
    claims: Claims,
    /// The data of the last run: those of the next are often the same.
    data: Option<(String, Loaded)>,
}

impl<'a> Worker<'a> {
    fn new(sweep: &Path, options: &'a WorkOptions<'a>) -> Result<Self, RunError> {
        let manifest = ExperimentManifest::load(sweep)?;
        if !is_sweep(sweep) {
            let what =
                "is no sweep that workers share; lay one out with `limitpoint sweep`, or use `limitpoint resume`";
            return Err(RecordError::refused(sweep, what).into());
        }
        let root = sweep.canonicalize().map_err(|source| RecordError::io("find", sweep, source))?;
        let claims = Claims::open(&root, options.lease)?;
        let mut worker = Self { sweep: root, options, runs: Vec::new(), numbers: HashMap::new(), claims, data: None };
        worker.list(manifest);
        Ok(worker)
    }

    fn list(&mut self, manifest: ExperimentManifest) {
        self.numbers = manifest.runs.iter().enumerate().map(|(at, run)| (run.label.name.clone(), at)).collect();
        self.runs = manifest.runs;
    }

    /// Works on a run and brings its folder to where it belongs.
    fn attend(&mut self, claim: &Claim) -> Result<Ended, RunError> {
        if !self.numbers.contains_key(&claim.name) {
            // laid out since this worker began
            self.list(ExperimentManifest::load(&self.sweep)?);
        }
        self.claims.lease.begin(&claim.name);
        let outcome = self.try_run(claim);
        let ended = match outcome {
            Ok(manifest) => match manifest.status {
                Status::Finished if manifest.healthy => Ended::Finished,
                Status::Finished | Status::Failed => Ended::Failed(manifest.stop),
                Status::Interrupted | Status::Running => Ended::Interrupted,
            },
            Err(_) if !self.claims.is_mine(claim) => Ended::Lost,
            // a damaged folder keeps one run from going on, not the others
            Err(error @ (RunError::Record(RecordError::Damaged { .. }) | RunError::Recipe(_))) => {
                Ended::Failed(error.to_string())
            }
            Err(error) => {
                // a full disk, data that are not on this machine: others may do better
                self.claims.lease.end(false);
                self.claims.give_back(claim)?;
                return Err(error);
            }
        };
        self.claims.lease.end(matches!(ended, Ended::Finished | Ended::Failed(_)));
        let moved = match &ended {
            Ended::Finished => self.claims.publish(claim)?,
            Ended::Failed(reason) => {
                self.claims.write_failure(claim, reason)?;
                self.claims.publish(claim)?
            }
            Ended::Interrupted => self.claims.give_back(claim)?,
            Ended::Lost => Moved::Lost,
        };
        Ok(if moved == Moved::Lost { Ended::Lost } else { ended })
    }

    fn try_run(&mut self, claim: &Claim) -> Result<RunManifest, RunError> {
        let unknown = || RecordError::damaged(&claim.folder, "is not in the manifest of the sweep; lay it out again");
        let index = *self.numbers.get(&claim.name).ok_or_else(unknown)?;
        let entry = &self.runs[index];
        let recipe = read_config_of(&claim.folder, &self.sweep.join(&claim.name))?;
        let task = Task { label: entry.label.clone(), recipe };
        let begun = RunManifest::load(&claim.folder).ok().map(|manifest| manifest.data.sha256);
        let sums = [Some(entry.data_sha256.as_str()), begun.as_deref()];
        let known = Known {
            sha256: sums.into_iter().flatten().find(|sum| !sum.is_empty()),
            files: &entry.data_files,
            data_folder: self.options.data_folder.as_deref(),
        };
        let key = format!("{}|{}", known.sha256.unwrap_or_default(), data_key(&task));
        if self.data.as_ref().is_none_or(|(loaded, _)| *loaded != key) {
            self.data = None;
            match find_data(&task.recipe.data, task.data_seed(), &known, &claim.folder) {
                Ok(loaded) => {
                    loaded.0.train.notes.iter().for_each(|note| self.options.watcher.note(index, note));
                    self.data = Some((key, loaded));
                }
                // a generator that finds no data for this seed
                Err(error @ RunError::Part(_)) => {
                    let (device, why) = (self.options.device, error.to_string());
                    let manifest = failed(device, &task, &claim.folder, &DataRecord::default(), &[], &why)?;
                    self.options.watcher.ended(index, &manifest);
                    return Ok(manifest);
                }
                Err(error) => return Err(error),
            }
        }
        let Some((_, (split, record))) = &self.data else { return Err(RunError::Nothing) };
        require_memory([(&task, &split.train)].into_iter(), 1)?;
        let setting = Setting {
            index,
            task: &task,
            folder: claim.folder.clone(),
            split,
            data: record,
            data_files: &entry.data_files,
            threads: self.options.threads,
            device: self.options.device,
            watcher: self.options.watcher,
            interrupt: self.options.interrupt,
        };
        Ok(execute(&setting)?.0)
    }
}
