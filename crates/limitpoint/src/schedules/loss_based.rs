//! The loss-based learning rate, adapted from epoch to epoch.

use super::adaptation::{Adaptation, log_over_loss};
use super::{Review, ReviewPeriod, Schedule, ScheduleError, ScheduleState, StepContext, TrialOutcome};

/// η = α/L, with L the loss at the start of the epoch and α adapted after it.
///
/// ```text
/// L did not rise:   α ← grow · α, next epoch
/// L rose, or is ∞ or NaN:   α ← α/shrink, the epoch is done again from its first point
/// ```
///
/// L is taken from the context of the first step after an accepted epoch and held for the whole epoch, failed attempts
/// included, so that context must carry the loss of the full data. With full batches an epoch is a step. The printed
/// algorithm does not say that a failed epoch starts over; it must. D.algK1.
#[derive(Debug, Clone, Copy)]
pub(super) struct LossBased {
    adaptation: Adaptation,
    log_reference: Option<f64>,
    log_grow: f64,
    log_shrink: f64,
}

impl LossBased {
    pub(super) fn new(initial: f64, grow: f64, shrink: f64) -> Self {
        Self { adaptation: Adaptation::new(initial), log_reference: None, log_grow: grow.ln(), log_shrink: shrink.ln() }
    }
}

impl Schedule for LossBased {
    fn log_step(&mut self, context: &StepContext) -> f64 {
        let log_reference = *self.log_reference.get_or_insert(context.log_loss);
        log_over_loss(self.adaptation.log_alpha, log_reference)
    }

    fn review_period(&self) -> ReviewPeriod {
        ReviewPeriod::Epoch
    }

    fn review(&mut self, outcome: &TrialOutcome) -> Review {
        // false for NaN on either side
        if outcome.log_loss_after <= outcome.log_loss_before && outcome.log_loss_after < f64::INFINITY {
            self.log_reference = None;
            self.adaptation.accept(self.log_grow)
        } else {
            self.adaptation.redo(-self.log_shrink)
        }
    }

    fn state(&self) -> ScheduleState {
        self.adaptation.state(self.log_reference)
    }

    fn restore(&mut self, state: &ScheduleState) -> Result<(), ScheduleError> {
        self.log_reference = self.adaptation.restore(state)?;
        Ok(())
    }
}
