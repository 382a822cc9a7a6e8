//! Signum and Lion: the sign of a blend of gradients.

use std::ops::Range;

use super::adjusted::require_shrinking;
use super::moments::ScaledMoment;
use super::{Optimiser, OptimiserError, OptimiserState};
use crate::linalg::sign;
use crate::numeric::LogScaled;
use crate::params::ParamLayout;
use crate::schedules::StepContext;

/// The sign of an average of gradients.
///
/// ```text
/// Signum  m ← βm + (1 − β)g,                         θ ← θ − η sign(m)                     (β₁ = β₂ = β, update first)
/// Lion    c = β₁m + (1 − β₁)g,  m ← β₂m + (1 − β₂)g,  θ ← θ − η (sign(c) + decay·θ)
/// ```
///
/// sign(0) = 0. Signum with β = 0 is normalised sign descent. Bernstein et al. 2018; Chen et al. 2023.
pub(super) struct SignMomentum {
    key: &'static str,
    blend: f64,
    memory: f64,
    weight_decay: f64,
    trainable: Vec<Range<usize>>,
    moment: ScaledMoment,
    mixed: ScaledMoment,
}

impl SignMomentum {
    pub fn signum(beta: f64, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        Self::new("signum", beta, beta, 0.0, layout)
    }

    pub fn lion(beta1: f64, beta2: f64, weight_decay: f64, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        Self::new("lion", beta1, beta2, weight_decay, layout)
    }

    fn new(
        key: &'static str,
        blend: f64,
        memory: f64,
        weight_decay: f64,
        layout: &ParamLayout,
    ) -> Result<Self, OptimiserError> {
        super::require(key, "beta1", blend, "in [0, 1)", (0.0..1.0).contains(&blend))?;
        super::require(key, "beta2", memory, "in [0, 1)", (0.0..1.0).contains(&memory))?;
        let decay_holds = weight_decay >= 0.0 && weight_decay.is_finite();
        super::require(key, "weight_decay", weight_decay, "0 or more and finite", decay_holds)?;
        let moment = ScaledMoment::new(layout.len());
        let trainable = layout.trainable_ranges();
        Ok(Self { key, blend, memory, weight_decay, trainable, mixed: moment.clone(), moment })
    }
}

impl Optimiser for SignMomentum {
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        let step = log_step.exp();
        require_shrinking(self.key, step, self.weight_decay)?;
        self.mixed.copy_from(&self.moment);
        self.mixed.blend(self.blend, 1.0 - self.blend, gradient);
        self.moment.blend(self.memory, 1.0 - self.memory, gradient);
        for range in &self.trainable {
            for i in range.clone() {
                let mixed = self.mixed.values[i];
                // 0 · mixed keeps a NaN from passing for a zero
                params[i] -= step * (sign(mixed) + 0.0 * mixed + self.weight_decay * params[i]);
            }
        }
        Ok(())
    }

    fn state(&self) -> OptimiserState {
        self.moment.save("moment", OptimiserState::new(self.key))
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check(self.key)?;
        self.moment.load("moment", state)
    }
}
