//! A run on its way.

use serde::{Deserialize, Serialize};

use super::builder::Watching;
use super::{DirectionPath, Recorder, TrainedRun, Training, TrainingError};
use crate::diagnostics::InstrumentState;
use crate::driver::{Process, ProcessState, advance, look};
use crate::observers::{Anchor, Observer, Snapshot, StopReason, Stopper};
use crate::params::ParamLayout;

/// A training at some step, moved by [`RunningTraining::step`].
///
/// ```
/// use limitpoint::prelude::*;
/// let data = Digits { classes: Some([0, 1]), count: Some(50), ..Default::default() }.load(&Streams::new(0))?.train;
/// let training = Training::new(&data, ModelSpec::relu(&[4]))?.optimiser("adam")?.schedule("constant(rate=0.01)")?;
/// let training = training.batches_of(20).at_most_steps(40);
/// let mut running = training.start()?;
/// (0..25).try_for_each(|_| running.step().map(drop))?;
/// let saved = running.state();
/// while running.step()?.is_none() {}
/// let mut resumed = training.resume(&saved)?; // bit for bit
/// while resumed.step()?.is_none() {}
/// assert_eq!(resumed.params(), running.params());
/// assert_eq!(running.end().params, training.run()?.params);
/// # Ok::<(), limitpoint::Error>(())
/// ```
pub struct RunningTraining {
    training: Training,
    layout: ParamLayout,
    start: Vec<f64>,
    process: Box<dyn Process + Send>,
    stopper: Stopper,
    recorder: Option<(Recorder, Vec<String>)>,
    path: Option<DirectionPath>,
    reason: Option<StopReason>,
}

/// Everything a run needs to go on bit for bit, besides its [`Training`]. Write it in a format that knows infinity and
/// NaN, such as TOML; JSON does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainingState {
    /// Parameters, optimiser, schedule, streams.
    pub process: ProcessState,
    /// Where the direction was last compared by a stop rule.
    pub anchor: Option<Anchor>,
    /// The rows recorded so far, and what the probe remembers.
    pub recorded: Option<(Vec<Vec<f64>>, InstrumentState)>,
    /// The path of the direction so far.
    pub path: Option<DirectionPath>,
    /// Why the run is over, if it is.
    pub reason: Option<StopReason>,
}

/// Watches nothing.
fn nobody() -> impl Observer {
    Watching { wants: |_| false, look: |_: &Snapshot| {} }
}

impl RunningTraining {
    pub(super) fn new(training: &Training) -> Result<Self, TrainingError> {
        let (setup, objective) = (training.setup(), training.objective()?);
        let layout = objective.layout().clone();
        Ok(Self {
            start: setup.initial(&layout),
            recorder: training.recorder(&objective)?,
            process: setup.start(objective, training.data())?,
            stopper: Stopper::new(&setup.stop),
            path: training.follows_path().then(DirectionPath::default),
            reason: None,
            training: training.clone(),
            layout,
        })
    }

    /// Looks at the current step and makes the next one; why the run is over, if it is, and then nothing moves.
    pub fn step(&mut self) -> Result<Option<&StopReason>, TrainingError> {
        self.turn(&mut nobody())
    }

    /// The same with somebody who watches.
    pub fn turn(&mut self, observer: &mut dyn Observer) -> Result<Option<&StopReason>, TrainingError> {
        if self.reason.is_none() {
            let (mut one, mut other) = (nobody(), nobody());
            let recorder: &mut dyn Observer = match &mut self.recorder {
                Some((recorder, _)) => recorder,
                None => &mut one,
            };
            let path: &mut dyn Observer = match &mut self.path {
                Some(path) => path,
                None => &mut other,
            };
            let observers: &mut [&mut dyn Observer] = &mut [observer, recorder, path];
            self.reason = match look(&mut *self.process, &mut self.stopper, observers)? {
                Some(reason) => {
                    let reached = self.recorder.as_ref().and_then(|(recorder, _)| recorder.reached());
                    Some(reached.cloned().unwrap_or(reason))
                }
                None => advance(&mut *self.process, observers)?,
            };
        }
        Ok(self.reason.as_ref())
    }

    /// θ.
    pub fn params(&self) -> &[f64] {
        self.process.params()
    }

    /// Names and shapes of θ.
    pub fn layout(&self) -> &ParamLayout {
        &self.layout
    }

    /// ln of the summed training loss (of the last full evaluation, with mini-batches).
    pub fn log_loss(&self) -> f64 {
        self.process.log_loss()
    }

    /// Accepted steps.
    pub fn steps(&self) -> u64 {
        self.process.step()
    }

    /// The process itself, for those who step and look by hand: no rule is checked and nothing recorded.
    pub fn process(&mut self) -> &mut dyn Process {
        &mut *self.process
    }

    /// Everything needed to go on bit for bit.
    pub fn state(&self) -> TrainingState {
        TrainingState {
            process: self.process.save(),
            anchor: self.stopper.state(),
            recorded: self.recorder.as_ref().map(|(recorder, _)| recorder.state()),
            path: self.path.clone(),
            reason: self.reason.clone(),
        }
    }

    pub(super) fn restore(&mut self, state: &TrainingState) -> Result<(), TrainingError> {
        self.process.resume(&state.process)?;
        self.stopper.restore(state.anchor.clone());
        match (&mut self.recorder, &state.recorded) {
            (Some((recorder, _)), Some((rows, probe)))
                if rows.iter().all(|row| row.len() == recorder.columns().len()) =>
            {
                recorder.restore(rows.clone(), probe.clone());
            }
            (None, None) => {}
            _ => return Err(TrainingError::OtherState),
        }
        self.path = self.path.take().and_then(|_| state.path.clone());
        self.reason.clone_from(&state.reason);
        Ok(())
    }

    /// The run as it stands; if no rule ended it, it ends because somebody asked for it.
    pub fn end(self) -> TrainedRun {
        let metrics = self.recorder.map(|(recorder, columns)| {
            let metrics = recorder.metrics();
            if columns.is_empty() { metrics } else { metrics.only(&columns) }
        });
        TrainedRun {
            start: self.start,
            params: self.process.params().to_vec(),
            log_loss: self.process.log_loss(),
            log_time: self.process.log_time(),
            steps: self.process.step(),
            reason: self.reason.unwrap_or(StopReason::Observer),
            metrics: metrics.unwrap_or_default(),
            course: self.path.and_then(|path| path.course()),
            layout: self.layout,
            data: self.training.data().clone(),
            setup: self.training.setup().clone(),
        }
    }

    /// The same for another reason, which whoever stepped by hand knows.
    pub fn end_because(mut self, reason: StopReason) -> TrainedRun {
        self.reason = Some(reason);
        self.end()
    }
}
