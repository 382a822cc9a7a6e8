//! AdaGrad.

use super::adam::divide_by_root;
use super::moments::ScaledMoment;
use super::{Optimiser, OptimiserError, OptimiserState};
use crate::numeric::LogScaled;
use crate::params::ParamLayout;
use crate::schedules::StepContext;

/// θ⁺ = θ − η g / (√D + ε) with D = D₀ + Σ g², entry by entry (B eq. 13).
///
/// Steepest descent in the changing metric ‖D^{1/4} v‖₂. D includes the current gradient; entries with D = 0 do not
/// move.
pub(super) struct AdaGrad {
    epsilon: f64,
    accumulator: ScaledMoment,
}

impl AdaGrad {
    pub fn new(epsilon: f64, initial: f64, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        super::require("ada-grad", "epsilon", epsilon, "0 or more and finite", epsilon >= 0.0 && epsilon.is_finite())?;
        super::require("ada-grad", "initial", initial, "0 or more and finite", initial >= 0.0 && initial.is_finite())?;
        Ok(Self { epsilon, accumulator: ScaledMoment::constant(layout.len(), initial) })
    }
}

impl Optimiser for AdaGrad {
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        self.accumulator.blend_squares(1.0, 1.0, gradient);
        let accumulator = (self.accumulator.log_scale, self.accumulator.values.as_slice());
        divide_by_root(params, log_step, (gradient.log_scale, &gradient.direction), accumulator, self.epsilon);
        Ok(())
    }

    fn state(&self) -> OptimiserState {
        self.accumulator.save("accumulator", OptimiserState::new("ada-grad"))
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("ada-grad")?;
        self.accumulator.load("accumulator", state)
    }
}
