//! AdaBoost as coordinate descent on the exponential loss.

use super::{Optimiser, OptimiserError, OptimiserState};
use crate::linalg::max_abs;
use crate::numeric::LogScaled;
use crate::schedules::StepContext;

/// The weak learner with the largest edge, by AdaBoost's step.
///
/// ```text
/// eⱼ = Σₙ pₙ yₙ xₙⱼ = −∂ⱼ ln L,   p the softmin weights;   j = argmax |eⱼ|, the first of equals
/// θⱼ⁺ = θⱼ + η sign(eⱼ) ½ ln((1 + |eⱼ|)/(1 − |eⱼ|))
/// ```
///
/// Feature j is what weak learner j says about an example, between −1 and 1; then |eⱼ| ≤ 1. With η = 1 and answers ±1
/// the step minimises the exponential loss along the coordinate exactly. Which margin it reaches is another matter: it
/// need not be the largest (Rudin, Daubechies and Schapire 2004; B section 3). Steps of constant length along the same
/// coordinates, ε-boosting, are steepest descent in ℓ1 with unit scaling.
pub(super) struct AdaBoost;

impl Optimiser for AdaBoost {
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        let edge = max_abs(&gradient.direction);
        let range = "below 1; scale the features into [−1, 1], and drop a feature that alone is always right";
        super::require("ada-boost", "the largest edge |∂ ln L|", edge, range, edge < 1.0)?;
        if let Some(j) = gradient.direction.iter().position(|g| g.abs() == edge) {
            // ½ ln((1 + e)/(1 − e)) = artanh e
            params[j] -= log_step.exp() * gradient.direction[j].atanh();
        }
        Ok(())
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new("ada-boost")
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("ada-boost")
    }
}
