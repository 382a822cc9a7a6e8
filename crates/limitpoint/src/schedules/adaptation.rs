//! What the rules η = α/L share: the division in logarithms, and an α that learns from trials.

use super::{LARGEST_REDO_COUNT, Review, ScheduleError, ScheduleState};

/// ln(α/L); a loss of exactly 0 has no gradient to scale and leaves ln α.
pub(super) fn log_over_loss(log_alpha: f64, log_loss: f64) -> f64 {
    if log_loss == f64::NEG_INFINITY { log_alpha } else { log_alpha - log_loss }
}

/// ln α and the count of failures, shared by the two adaptive rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Adaptation {
    pub(super) log_alpha: f64,
    redos: u32,
}

impl Adaptation {
    pub(super) fn new(alpha: f64) -> Self {
        Self { log_alpha: alpha.ln(), redos: 0 }
    }

    /// Multiplies α by exp(`log_factor`) and lets the trial stand.
    pub(super) fn accept(&mut self, log_factor: f64) -> Review {
        self.log_alpha += log_factor;
        self.redos = 0;
        Review::Accept
    }

    /// Multiplies α by exp(`log_factor`) and asks for another trial, unless too many have failed.
    pub(super) fn redo(&mut self, log_factor: f64) -> Review {
        if self.redos >= LARGEST_REDO_COUNT {
            return Review::GiveUp;
        }
        self.log_alpha += log_factor;
        self.redos += 1;
        Review::Redo
    }

    pub(super) fn state(&self, log_reference: Option<f64>) -> ScheduleState {
        ScheduleState::Adaptive { log_alpha: self.log_alpha, log_reference, redos: self.redos }
    }

    /// Takes over a state and returns its reference loss.
    pub(super) fn restore(&mut self, state: &ScheduleState) -> Result<Option<f64>, ScheduleError> {
        match *state {
            ScheduleState::Adaptive { log_alpha, .. } if !log_alpha.is_finite() => {
                Err(ScheduleError::StateValue { log_alpha })
            }
            ScheduleState::Adaptive { log_alpha, log_reference, redos } => {
                *self = Self { log_alpha, redos };
                Ok(log_reference)
            }
            ScheduleState::Stateless => Err(ScheduleError::State { expected: "adaptive", found: state.kind() }),
        }
    }
}
