//! The constant step.

use super::{Schedule, StepContext};

/// η = rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constant {
    pub(super) log_rate: f64,
}

impl Schedule for Constant {
    fn log_step(&mut self, _context: &StepContext) -> f64 {
        self.log_rate
    }
}
