//! Steps that decay with a power of time.

use super::{Schedule, StepContext};

/// η_t = rate · (t + 1)^−power, t the number of accepted steps.
///
/// The steps sum to infinity for power ≤ 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Polynomial {
    pub(super) log_rate: f64,
    pub(super) power: f64,
}

impl Schedule for Polynomial {
    fn log_step(&mut self, context: &StepContext) -> f64 {
        self.log_rate - self.power * (context.step as f64).ln_1p()
    }
}
