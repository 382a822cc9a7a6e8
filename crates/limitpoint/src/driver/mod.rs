//! The loop: step, snapshot, observe, stop.
//!
//! A [`Process`] is something that moves, a [`Descent`] (optimiser and schedule) or a [`FlowRun`] (continuous time);
//! [`run`] moves it until a stop rule holds and shows it to observers on the way. Files and the terminal are not known
//! here.

mod descent;
mod flow_run;

pub use descent::{Batching, Descent, DescentState, EpochStart};
pub use flow_run::FlowRun;

use crate::flows::FlowError;
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
    /// Parameters of the wrong length.
    #[error(transparent)]
    Params(#[from] crate::params::ParamsError),
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

/// Something that moves through parameter space.
pub trait Process {
    /// Makes one accepted step.
    fn advance(&mut self) -> Result<Advance, DriverError>;

    /// Accepted steps so far.
    fn step(&self) -> u64;

    /// ln of the time travelled, Σ η for descent and t for flows.
    fn log_time(&self) -> f64;

    /// ln of the summed training loss at the current point (of the last full evaluation, with mini-batches).
    fn log_loss(&self) -> f64;

    /// Evaluates the current point in full and shows it.
    fn show(&mut self, look: &mut dyn FnMut(&Snapshot));
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
        let step = process.step();
        let mut reason = stopper.check_counters(step, process.log_time(), process.log_loss()).map(StopReason::Rule);
        let wanted = observers.iter().any(|observer| observer.wants(step));
        if wanted || stopper.wants(step) || reason.is_some() {
            let last = reason.is_some();
            process.show(&mut |snapshot| {
                for observer in observers.iter_mut() {
                    if (last || observer.wants(step)) && observer.observe(snapshot) == Continue::No {
                        reason.get_or_insert(StopReason::Observer);
                    }
                }
                if reason.is_none() {
                    reason = stopper.check(snapshot).map(StopReason::Rule);
                }
            });
        }
        if let Some(reason) = reason {
            return Ok(reason);
        }
        if let Advance::Ended(reason) = process.advance()? {
            process.show(&mut |snapshot| {
                observers.iter_mut().for_each(|observer| {
                    observer.observe(snapshot);
                });
            });
            return Ok(reason);
        }
    }
}
