//! Heavy ball and Nesterov.

use super::{Optimiser, OptimiserError, OptimiserState, step_factor};
use crate::numeric::LogScaled;
use crate::schedules::StepContext;

/// Gradient descent with momentum.
///
/// ```text
/// θ⁺ = θ + β(θ − θ⁻) − η ∇L(θ + γ(θ − θ⁻))
/// ```
///
/// γ = 0 is Polyak's heavy ball, γ = β is Nesterov's method. This is B eq. (8) with the Euclidean potential. The
/// displacement θ − θ⁻ is remembered in parameter units, so nothing underflows.
pub(super) struct Momentum {
    key: &'static str,
    beta: f64,
    gamma: f64,
    displacement: Vec<f64>,
}

impl Momentum {
    pub fn new(key: &'static str, beta: f64, gamma: f64, length: usize) -> Result<Self, OptimiserError> {
        super::require(key, "momentum", beta, "in [0, 1)", (0.0..1.0).contains(&beta))?;
        Ok(Self { key, beta, gamma, displacement: vec![0.0; length] })
    }
}

impl Optimiser for Momentum {
    fn look_ahead(&mut self, params: &[f64], out: &mut [f64]) -> bool {
        if self.gamma == 0.0 {
            return false;
        }
        out.copy_from_slice(params);
        crate::linalg::add_scaled(out, self.gamma, &self.displacement);
        true
    }

    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        let factor = step_factor(log_step, gradient.log_scale);
        for ((theta, d), g) in params.iter_mut().zip(&mut self.displacement).zip(&gradient.direction) {
            *d = self.beta * *d - factor * g;
            *theta += *d;
        }
        Ok(())
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new(self.key).with_vector("displacement", &self.displacement)
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check(self.key)?;
        state.read_vector("displacement", &mut self.displacement)
    }
}
