//! Steps small enough to follow the flow.

use super::adaptation::{Adaptation, log_over_loss};
use super::{Review, ReviewPeriod, Schedule, ScheduleError, ScheduleState, StepContext, TrialOutcome};

/// η = α/L, with α adapted so that no margin moves by more than the resolution c in a step.
///
/// With Δ = maxᵢ |Δqᵢ| of a trial step:
///
/// ```text
/// Δ ≤ c/2          accept, α ← grow · α   (unchanged if Δ = 0)
/// c/2 < Δ ≤ c      accept
/// Δ > c            redo,   α ← α · max(1/10, 0.9 c/Δ)
/// not a number     redo,   α ← shrink · α
/// ```
///
/// A bound on the fall of ln L in a step, where one is set, is kept in the same way; of the two the one nearer to its
/// bound decides. It is for optimisers that remember earlier gradients and must not be outrun.
///
/// Explicit Euler follows the flow while the softmin weights, which change by at most a factor e^{±2Δ}, hardly change
/// during a step; c between 0.02 and 0.1 does. Flow-resolution rule of the claims catalogue, section 0; D.s5.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowResolved {
    adaptation: Adaptation,
    resolution: f64,
    /// Largest fall of ln L; infinite for none.
    fall: f64,
    log_grow: f64,
    log_shrink: f64,
}

/// Where a redone step aims, relative to the resolution.
const AIM: f64 = 0.9;
/// The strongest cut in one redo.
const STRONGEST_CUT: f64 = 0.1;

impl FlowResolved {
    pub(super) fn new(resolution: f64, fall: f64, initial: f64, grow: f64, shrink: f64) -> Self {
        Self { adaptation: Adaptation::new(initial), resolution, fall, log_grow: grow.ln(), log_shrink: shrink.ln() }
    }
}

impl Schedule for FlowResolved {
    fn log_step(&mut self, context: &StepContext) -> f64 {
        log_over_loss(self.adaptation.log_alpha, context.log_loss)
    }

    fn review_period(&self) -> ReviewPeriod {
        ReviewPeriod::Step
    }

    fn review(&mut self, outcome: &TrialOutcome) -> Review {
        let (mut change, mut bound) = (outcome.largest_margin_change, self.resolution);
        if change.is_nan() || outcome.log_loss_after.is_nan() || outcome.log_loss_after == f64::INFINITY {
            return self.adaptation.redo(self.log_shrink);
        }
        let fall = outcome.log_loss_before - outcome.log_loss_after;
        if fall / self.fall > change / bound {
            (change, bound) = (fall, self.fall);
        }
        if change > bound {
            self.adaptation.redo((AIM * bound / change).max(STRONGEST_CUT).ln())
        } else if change > 0.0 && change <= 0.5 * bound {
            self.adaptation.accept(self.log_grow)
        } else {
            self.adaptation.accept(0.0)
        }
    }

    fn state(&self) -> ScheduleState {
        self.adaptation.state(None)
    }

    fn restore(&mut self, state: &ScheduleState) -> Result<(), ScheduleError> {
        self.adaptation.restore(state).map(|_| ())
    }
}
