//! One run from its first step to its last file, interrupted and resumed as often as one likes.
//!
//! ```text
//! NAME/config.toml                  the recipe of this run alone
//! NAME/manifest.json                version, data, machine, timings, outcome, SHA-256 of all files; written last
//! NAME/metrics.csv  .parquet        the measurements, tiny numbers as log10
//! NAME/histograms.jsonl             weight histograms
//! NAME/portrait.json                the trained model as pictures
//! NAME/checkpoints/*.safetensors    parameters, optimiser, streams, step
//! NAME/claim.json                   who is writing, while somebody is
//! ```

mod ending;

use std::f64::consts::LN_10;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::checkpoint::{Checkpoints, RunState};
use super::config::{CONFIG_FILE, identity};
use super::files::{RecordError, create_folder, read_bytes, remove_temporaries};
use super::hold::Hold;
use super::manifest::{RunManifest, Status};
use super::metrics::{HistogramWriter, MetricsWriter};
use super::seal::sum;
use super::task::Task;
use super::watcher::{Progress, Watcher};
use super::{DataRecord, RunError};
use crate::data::DataSplit;
use crate::diagnostics::Instrument;
use crate::driver::{Batching, DriverError, Process, advance, look, show_last};
use crate::engine::Device;
use crate::objective::Objective;
use crate::observers::{Observer, StopReason, Stopper};
use crate::params::ParamLayout;

/// What a run is given.
pub(super) struct Setting<'a> {
    pub index: usize,
    pub task: &'a Task,
    pub folder: PathBuf,
    pub split: &'a DataSplit,
    pub data: &'a DataRecord,
    pub data_files: &'a [PathBuf],
    pub threads: usize,
    pub device: Device,
    pub watcher: &'a dyn Watcher,
    pub interrupt: &'a AtomicBool,
}

/// Distance between checkpoints that are written because time goes by, and how many times the time it takes to write one at
/// least.
const EXTRA_CHECKPOINT: Duration = Duration::from_secs(20);
const EXTRA_TIMES: u32 = 20;
/// Times that distance after which an epoch that may still be undone gets one, which holds its first weights too.
const UNSETTLED_TIMES: u32 = 10;
/// Distance between reports of progress.
const PROGRESS: Duration = Duration::from_millis(100);

/// Runs or resumes one run; a run that is already complete is checked and left as it is. A run that cannot be run or
/// cannot go on comes back as a failed one, with the error.
pub(super) fn execute(setting: &Setting) -> Result<(RunManifest, Option<RunError>), RunError> {
    let folder = &setting.folder;
    let lost = folder.join("checkpoints").is_dir();
    create_folder(&folder.join("checkpoints"))?;
    let _hold = Hold::take(folder)?;
    for folder in [folder, &folder.join("checkpoints")] {
        remove_temporaries(folder)?;
    }
    let before = match RunManifest::load(folder) {
        Ok(manifest) => Some(manifest),
        Err(error) if error.is_missing() => {
            if lost && folder.join("metrics.csv").exists() {
                setting.watcher.note(setting.index, "manifest.json is missing; it is made again from the checkpoints");
            }
            None
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(manifest) = before.as_ref().filter(|manifest| manifest.status == Status::Finished) {
        manifest.check_files(folder)?;
        setting.watcher.ended(setting.index, manifest);
        return Ok((manifest.clone(), None));
    }
    setting.watcher.started(setting.index);
    let began = before.as_ref().filter(|manifest| manifest.steps > 0).map(|manifest| manifest.machine.device);
    if let Some(was) = began.filter(|was| *was != setting.device) {
        let text =
            format!("it was begun on {was} and goes on on {}: from here on its last bits differ", setting.device);
        setting.watcher.note(setting.index, &text);
    }
    let earlier = before.map_or(0.0, |manifest| manifest.timings.seconds);
    let (manifest, error) = match Runner::new(setting, earlier).and_then(Runner::run) {
        Ok(manifest) => (manifest, None),
        Err(error @ (RunError::Part(_) | RunError::NoTrainer { .. })) => (
            failed(setting.device, setting.task, folder, setting.data, setting.data_files, &error.to_string())?,
            Some(error),
        ),
        Err(error) => return Err(error),
    };
    setting.watcher.ended(setting.index, &manifest);
    Ok((manifest, error))
}

/// Writes the manifest of a run that could not begin.
pub(super) fn failed(
    device: Device,
    task: &Task,
    folder: &Path,
    data: &DataRecord,
    data_files: &[PathBuf],
    why: &str,
) -> Result<RunManifest, RecordError> {
    let config = read_bytes(&folder.join(CONFIG_FILE))?;
    let mut manifest = RunManifest::begun(task, &sum(&config), data, data_files);
    manifest.status = Status::Failed;
    manifest.machine.device = device;
    manifest.stop = why.to_owned();
    manifest.save(folder)?;
    Ok(manifest)
}

/// A run in progress.
struct Runner<'a> {
    setting: &'a Setting<'a>,
    /// SHA-256 of `config.toml`.
    config_sum: String,
    /// What a checkpoint must have been made with.
    identity: String,
    process: Box<dyn Process>,
    layout: ParamLayout,
    stopper: Stopper,
    metrics: MetricsWriter,
    histograms: HistogramWriter,
    checkpoints: Checkpoints,
    /// Steps between regular checkpoints.
    every: u64,
    resumed: bool,
    /// Why the run ended, where only the last files were missing.
    outcome: Option<StopReason>,
    begin: Instant,
    /// Seconds of earlier parts.
    earlier: f64,
}

impl<'a> Runner<'a> {
    fn new(setting: &'a Setting, earlier: f64) -> Result<Self, RunError> {
        let begin = Instant::now();
        let recipe = &setting.task.recipe;
        let config_sum = sum(&read_bytes(&setting.folder.join(CONFIG_FILE))?);
        let identity = identity(recipe)?;
        let mut setup = setting.task.setup()?;
        (setup.compute.threads, setup.compute.device) = (setting.threads, setting.device);
        let data = &setting.split.train;
        let mut objective = setup.objective(data)?;
        let layout = objective.layout().clone();
        let observe = &recipe.observe;
        let probe = observe.probe();
        let linear = recipe.model.is_linear();
        let make_probe = |objective: &Objective| Instrument::new(&probe, &layout, objective.homogeneity(), linear);
        let density = data.inputs.stored() as f64 / (data.len() as f64 * data.dimension() as f64);
        let in_a_step = match recipe.batching {
            Batching::Full => data.len(),
            Batching::Mini { size } => size,
        };
        let cost = 6.0 * layout.len() as f64 * in_a_step as f64 * density;
        let every = observe.checkpoint_every.unwrap_or_else(|| regular_distance(cost));
        let checkpoints = Checkpoints::new(setting.folder.join("checkpoints"));
        let (states, complaints) = checkpoints.readable();
        complaints.iter().for_each(|complaint| setting.watcher.note(setting.index, complaint));
        let (table, drawn) = (setting.folder.join("metrics.csv"), setting.folder.join("histograms.jsonl"));
        let certificate = recipe.stop.certificate.as_ref();
        let mut taken = None;
        for state in states {
            if state.recipe != identity {
                setting.watcher.note(setting.index, "a checkpoint of another recipe is left alone");
                continue;
            }
            let probe = make_probe(&objective)?;
            let metrics =
                MetricsWriter::open(&table, probe, observe.spacing, certificate, Some((&state.metrics, &state.probe)));
            let histograms =
                HistogramWriter::open(&drawn, observe.histogram_bins, observe.spacing, Some(&state.histograms));
            match (metrics, histograms) {
                (Ok(metrics), Ok(histograms)) => {
                    taken = Some((state, metrics, histograms));
                    break;
                }
                (Err(error), _) | (_, Err(error)) => {
                    let text = format!("{error}; the checkpoint of step {} is of no use", state.step);
                    setting.watcher.note(setting.index, &text);
                }
            }
        }
        let probe = make_probe(&objective)?;
        if let Some(warning) = setup.step_warning(&mut objective, data)? {
            setting.watcher.note(setting.index, &warning);
        }
        let mut process = setup.start(objective, data)?;
        let mut stopper = Stopper::new(&setup.stop);
        let resumed = taken.is_some();
        let mut outcome = None;
        let (metrics, histograms) = match taken {
            Some((state, metrics, histograms)) => {
                process.resume(&state.process)?;
                stopper.restore(state.anchor);
                outcome = state.outcome;
                (metrics, histograms)
            }
            None => (
                MetricsWriter::open(&table, probe, observe.spacing, certificate, None)?,
                HistogramWriter::open(&drawn, observe.histogram_bins, observe.spacing, None)?,
            ),
        };
        Ok(Self {
            setting,
            config_sum,
            identity,
            process,
            layout,
            stopper,
            metrics,
            histograms,
            checkpoints,
            every,
            resumed,
            outcome,
            begin,
            earlier,
        })
    }

    fn run(mut self) -> Result<RunManifest, RunError> {
        match self.train() {
            Ok(Some(reason)) => self.finish(reason),
            Ok(None) => self.manifest(Status::Interrupted, None, "interrupted".into()),
            // a run that cannot go on, not an experiment that cannot: its last checkpoint is the good one
            Err(RunError::Part(error)) => self.manifest(Status::Failed, None, error.to_string()),
            Err(error) => Err(error),
        }
    }

    /// Trains until the run is over, and why it is; `None` where somebody interrupts it.
    fn train(&mut self) -> Result<Option<StopReason>, RunError> {
        if let Some(reason) = self.outcome.take() {
            return Ok(Some(reason));
        }
        self.manifest(Status::Running, None, "running".into())?;
        let (mut reported, mut saved, mut distance) = (Instant::now(), Instant::now(), EXTRA_CHECKPOINT);
        let limit = self.setting.task.recipe.stop.seconds;
        // a checkpoint is taken after looking and before stepping
        let mut looked = std::mem::take(&mut self.resumed);
        let reason = loop {
            let observers: &mut [&mut dyn Observer] = &mut [&mut self.metrics, &mut self.histograms];
            if !std::mem::take(&mut looked) {
                let reason = look(&mut *self.process, &mut self.stopper, observers)?;
                self.check_files()?;
                if let Some(reason) = reason {
                    break self.metrics.reached().cloned().unwrap_or(reason);
                }
                // an epoch that may still be undone is not worth a checkpoint
                let milestones = &self.setting.task.recipe.observe.milestones;
                if !milestones.is_empty() && !self.process.settled_steps().is_empty() {
                    let log10_loss = self.process.log_loss() / LN_10;
                    let passed = self.checkpoints.missing(milestones, log10_loss);
                    if !passed.is_empty() {
                        let state = self.state(None)?;
                        self.checkpoints.save_milestones(&self.layout, &passed, &state)?;
                    }
                }
                if self.process.settled_steps().any(|step| step > 0 && step.is_multiple_of(self.every)) {
                    let state = self.state(None)?;
                    self.checkpoints.save_regular(&self.layout, &state)?;
                    saved = Instant::now();
                }
            }
            if self.setting.interrupt.load(Ordering::Relaxed) {
                let state = self.state(None)?;
                self.checkpoints.save_extra(&self.layout, &state)?;
                return Ok(None);
            }
            let now = Instant::now();
            if now - reported > PROGRESS {
                reported = now;
                self.setting.watcher.progress(self.setting.index, &self.progress());
            }
            let (stands, waited) = (!self.process.settled_steps().is_empty(), now - saved);
            if waited > distance && (stands || waited > UNSETTLED_TIMES * distance) {
                let state = self.state(None)?;
                self.checkpoints.save_extra(&self.layout, &state)?;
                self.manifest(Status::Running, None, "running".into())?;
                saved = Instant::now();
                distance = EXTRA_CHECKPOINT.max(EXTRA_TIMES * (saved - now));
            }
            // an epoch that may still be undone is brought to its end first
            let over = limit.filter(|limit| stands && self.seconds() >= *limit);
            let observers: &mut [&mut dyn Observer] = &mut [&mut self.metrics, &mut self.histograms];
            if let Some(limit) = over {
                show_last(&mut *self.process, observers)?;
                self.check_files()?;
                break StopReason::Seconds { limit };
            }
            match advance(&mut *self.process, observers) {
                Ok(None) => {}
                Ok(Some(reason)) => {
                    self.check_files()?;
                    break reason;
                }
                Err(error) => {
                    // what a broken engine left is no state to save
                    if !matches!(error, DriverError::Engine { .. }) {
                        let state = self.state(None)?;
                        self.checkpoints.save_extra(&self.layout, &state)?;
                    }
                    return Err(error.into());
                }
            }
        };
        self.setting.watcher.progress(self.setting.index, &self.progress());
        // weights that a device has lost are no end either
        self.process.params();
        self.process.failure().map_or(Ok(Some(reason)), |failure| Err(failure.into()))
    }

    /// Errors of the files, which observers cannot return.
    fn check_files(&mut self) -> Result<(), RecordError> {
        self.metrics.take_trouble().or_else(|| self.histograms.take_trouble()).map_or(Ok(()), Err)
    }

    fn seconds(&self) -> f64 {
        self.earlier + self.begin.elapsed().as_secs_f64()
    }

    /// What a checkpoint holds, unless the engine fails while it is fetched.
    fn state(&mut self, outcome: Option<&StopReason>) -> Result<RunState, RunError> {
        let (metrics, probe) = self.metrics.mark()?;
        let process = self.process.save();
        if let Some(failure) = self.process.failure() {
            return Err(failure.into());
        }
        Ok(RunState {
            recipe: self.identity.clone(),
            step: self.process.step(),
            process,
            probe,
            anchor: self.stopper.state(),
            metrics,
            histograms: self.histograms.mark()?,
            outcome: outcome.cloned(),
        })
    }

    fn progress(&self) -> Progress {
        let stop = &self.setting.task.recipe.stop;
        let (step, log10_loss) = (self.process.step(), self.process.log_loss() / LN_10);
        let parts = [
            stop.steps.map(|count| step as f64 / count as f64),
            stop.log10_loss.filter(|target| *target < 0.0).map(|target| log10_loss / target),
            stop.seconds.map(|limit| self.seconds() / limit),
        ];
        let fraction = parts.into_iter().flatten().filter(|part| !part.is_nan()).reduce(f64::max);
        let margin = self.metrics.shown().map(|(name, value)| (name.to_owned(), value));
        Progress { step, log10_loss, margin, fraction: fraction.map(|part| part.clamp(0.0, 1.0)) }
    }
}

/// Steps between regular checkpoints: a few seconds of work, the same on every machine.
fn regular_distance(cost: f64) -> u64 {
    let steps = (1e11 / cost.max(1.0)).clamp(100.0, 1e6);
    10f64.powf(steps.log10().floor()) as u64
}
