//! The loop: step, snapshot, observe, stop.
//!
//! A [`Process`] is something that moves, a [`Descent`] (optimiser and schedule) or a [`FlowRun`] (continuous time);
//! [`run`] moves it until a stop rule holds and shows it to observers on the way. Files and the terminal are not known
//! here.

mod descent;
mod flow_run;
mod state;
mod view;

pub use descent::Descent;
pub use flow_run::FlowRun;
pub use state::{Batching, DescentState, EpochStart};

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::flows::{FlowError, FlowState};
use crate::observers::{Continue, Observer, Snapshot, StopReason, StopRule, Stopper};
use crate::optimisers::OptimiserError;
use crate::schedules::ScheduleError;

/// What a run can run into.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// A batch size out of range.
    #[error("the batch size is {size}, but must be 1 to {examples}, the number of examples")]
    BatchSize {
        /// The size asked for.
        size: usize,
        /// Examples there are.
        examples: usize,
    },
    /// A schedule that judges single steps on noisy losses.
    #[error("this schedule judges every step by the full loss and needs full batches; drop the batch size {size}")]
    StepReviewOnBatches {
        /// The batch size.
        size: usize,
    },
    /// An optimiser that asks for kinks, on an engine that does not know them.
    #[error(
        "minimum_norm=true asks where the model has kinks, which this engine does not know: leave it out, or compute on the CPU"
    )]
    NoKinks,
    /// Parameters of the wrong length.
    #[error(transparent)]
    Params(#[from] crate::params::ParamsError),
    /// The engine failed: a device was lost, or has no memory left. What it left is no state to go on from: an earlier one is.
    #[error("step {step}: {what}; the run can go on from its last checkpoint")]
    Engine {
        /// Accepted steps before it was seen.
        step: u64,
        /// Why.
        what: String,
    },
    /// The optimiser failed.
    #[error("step {step}: {source}")]
    Optimiser {
        /// The step that failed.
        step: u64,
        /// Why.
        source: OptimiserError,
    },
    /// A saved optimiser state does not fit.
    #[error(transparent)]
    OptimiserState(OptimiserError),
    /// A saved state of another kind of process.
    #[error("the saved state is of {found}, but this run is {expected}; resume with the recipe it was saved with")]
    StateKind {
        /// What runs here.
        expected: &'static str,
        /// What was saved.
        found: &'static str,
    },
    /// A saved schedule state does not fit.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The flow failed.
    #[error(transparent)]
    Flow(#[from] FlowError),
}

/// What one call of [`Process::advance`] did.
#[derive(Debug, Clone, PartialEq)]
pub enum Advance {
    /// One accepted step was made.
    Moved,
    /// Nothing more can happen.
    Ended(StopReason),
}

/// Everything a process needs to go on bit for bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessState {
    /// Of a [`Descent`].
    Descent(Box<DescentState>),
    /// Of a [`FlowRun`].
    Flow(Box<FlowState>),
}

/// Something that moves through parameter space.
pub trait Process {
    /// θ.
    fn params(&self) -> &[f64];

    /// Everything needed to go on bit for bit.
    fn save(&self) -> ProcessState;

    /// Takes up a state saved by a process with the same settings.
    fn resume(&mut self, state: &ProcessState) -> Result<(), DriverError>;

    /// Makes one accepted step.
    fn advance(&mut self) -> Result<Advance, DriverError>;

    /// Accepted steps so far.
    fn step(&self) -> u64;

    /// The accepted steps that can be shown now and could not before: the current one, as a rule; none while an epoch
    /// may still be undone, and all of its steps once it stands.
    fn settled_steps(&self) -> Range<u64> {
        self.step()..self.step() + 1
    }

    /// ln of the time travelled, Σ η for descent and t for flows.
    fn log_time(&self) -> f64;

    /// ln of the summed training loss at the current point (of the last full evaluation, with mini-batches).
    fn log_loss(&self) -> f64;

    /// Evaluates the current point in full and shows it.
    fn show(&mut self, look: &mut dyn FnMut(&Snapshot));

    /// What kept its engine from computing, if something did: what was seen since, and what would be saved, is no number.
    fn failure(&self) -> Option<DriverError> {
        None
    }
}

/// A value that was seen of a process, unless its engine had failed by then.
fn sound<T>(process: &dyn Process, value: T) -> Result<T, DriverError> {
    process.failure().map_or(Ok(value), Err)
}

/// Runs a process until a rule holds, an observer says stop or nothing moves any more; returns why.
///
/// Observers see step 0, the steps they want, and the last one.
pub fn run(
    process: &mut dyn Process,
    rules: &[StopRule],
    observers: &mut [&mut dyn Observer],
) -> Result<StopReason, DriverError> {
    let mut stopper = Stopper::new(rules);
    loop {
        if let Some(reason) = look(process, &mut stopper, observers)? {
            return Ok(reason);
        }
        if let Some(reason) = advance(process, observers)? {
            return Ok(reason);
        }
    }
}

/// The first half of a turn: checks the rules at the current step and shows it to the observers that want it.
/// A run may be saved after it; a resumed run goes on with [`advance`].
pub fn look(
    process: &mut dyn Process,
    stopper: &mut Stopper,
    observers: &mut [&mut dyn Observer],
) -> Result<Option<StopReason>, DriverError> {
    let steps = process.settled_steps();
    if steps.is_empty() {
        return Ok(None);
    }
    let (step, log_time, log_loss) = (process.step(), process.log_time(), process.log_loss());
    let mut reason = stopper.check_counters(step, log_time, log_loss).map(StopReason::Rule);
    let wanted = |observer: &dyn Observer| steps.clone().any(|step| observer.wants(step));
    let shown = observers.iter().any(|observer| wanted(&**observer)) || steps.clone().any(|step| stopper.wants(step));
    if shown || reason.is_some() {
        let last = reason.is_some();
        process.show(&mut |snapshot| {
            for observer in observers.iter_mut() {
                if (last || wanted(&**observer)) && observer.observe(snapshot) == Continue::No {
                    reason.get_or_insert(StopReason::Observer);
                }
            }
            if reason.is_none() {
                reason = stopper.check(snapshot, steps.clone());
            }
        });
    }
    sound(process, reason)
}

/// The second half of a turn: one step. If nothing can move any more, all observers see where it ended.
pub fn advance(
    process: &mut dyn Process,
    observers: &mut [&mut dyn Observer],
) -> Result<Option<StopReason>, DriverError> {
    let Advance::Ended(reason) = process.advance()? else { return Ok(None) };
    show_last(process, observers)?;
    Ok(Some(reason))
}

/// Shows the current point to all observers, whether they want it or not.
pub fn show_last(process: &mut dyn Process, observers: &mut [&mut dyn Observer]) -> Result<(), DriverError> {
    process.show(&mut |snapshot| {
        observers.iter_mut().for_each(|observer| {
            observer.observe(snapshot);
        });
    });
    sound(process, ())
}
