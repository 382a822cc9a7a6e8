//! Time rescaling once the data are fitted.

use super::adaptation::log_over_loss;
use super::{Schedule, StepContext};

/// A constant step until the data are fitted, then one inversely proportional to the loss.
///
/// ```text
/// η = rate                  while L ≥ threshold or some example is wrong
/// η = factor · rate/L       after
/// ```
///
/// The condition is looked at before every step and nothing is remembered; with factor = threshold the step does not
/// jump at the switch. C.exp2L (J.1).
#[derive(Debug, Clone, Copy)]
pub(super) struct Rescaled {
    pub(super) log_rate: f64,
    pub(super) log_factor: f64,
    pub(super) log_threshold: f64,
}

impl Schedule for Rescaled {
    fn log_step(&mut self, context: &StepContext) -> f64 {
        if context.log_loss.is_nan() {
            f64::NAN
        } else if context.log_loss < self.log_threshold && context.all_correct {
            log_over_loss(self.log_factor + self.log_rate, context.log_loss)
        } else {
            self.log_rate
        }
    }
}
