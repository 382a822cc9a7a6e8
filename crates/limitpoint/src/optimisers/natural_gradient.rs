//! Natural gradient descent in the Hessian metric of a potential.

use super::{Optimiser, OptimiserError, OptimiserState, step_factor};
use crate::numeric::LogScaled;
use crate::params::ParamLayout;
use crate::potentials::{MirrorPotential, PotentialSpec};
use crate::schedules::StepContext;

/// θ⁺ = θ − η ∇²R(θ)⁻¹ g: the metric form of a mirror step (B eq. 9).
///
/// It agrees with mirror descent only as η → 0 (B eq. 10); at finite η the limits differ (B Example 3). A step that
/// leaves the potential's domain is an error that names the entry.
pub(super) struct NaturalGradient {
    potential: Box<dyn MirrorPotential>,
    direction: Vec<f64>,
}

impl NaturalGradient {
    pub fn new(spec: &PotentialSpec, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        Ok(Self { potential: spec.build(layout)?, direction: vec![0.0; layout.len()] })
    }
}

impl Optimiser for NaturalGradient {
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        self.potential.inverse_hessian_action(params, &gradient.direction, &mut self.direction);
        let factor = step_factor(log_step, gradient.log_scale);
        self.direction.iter_mut().zip(&*params).for_each(|(d, theta)| *d = theta - factor * *d);
        self.potential.check_domain(&self.direction)?;
        params.copy_from_slice(&self.direction);
        Ok(())
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new("natural-gradient")
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("natural-gradient")
    }
}
