//! The step that provably descends for a linear model with exponential loss.

use super::adaptation::log_over_loss;
use super::{Schedule, StepContext};

/// η_t = min{cap, c_t/(B² L)}, c_t = c (t + 1)^−decay.
///
/// B = maxₙ ‖xₙ‖⋆ is the largest dual norm of a feature vector. The loss never rises for 0 < c ≤ √2; the printed
/// condition has max where the proof needs min. With c constant and no cap the proof gives only the margin (1 − c/2)γ⋆;
/// 0 < decay ≤ 1 (c_t → 0, Σ c_t = ∞) or a cap restores γ⋆. The rule is the same for a summed and a mean loss, since a
/// mean divides L and its gradient alike. B.thm5, B.lem12.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinearBound {
    /// ln(c/B²).
    pub(super) log_numerator: f64,
    pub(super) decay: f64,
    /// ln cap, +∞ for none.
    pub(super) log_cap: f64,
}

impl Schedule for LinearBound {
    fn log_step(&mut self, context: &StepContext) -> f64 {
        let log_numerator = self.log_numerator - self.decay * (context.step as f64).ln_1p();
        let bound = log_over_loss(log_numerator, context.log_loss);
        // not f64::min, which would hide a NaN
        if bound > self.log_cap { self.log_cap } else { bound }
    }
}
