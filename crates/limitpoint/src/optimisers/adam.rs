//! Adam and its relatives AdamW and RMSProp.

use std::ops::Range;

use super::adjusted::decay_weights;
use super::moments::ScaledMoment;
use super::{Optimiser, OptimiserError, OptimiserState};
use crate::numeric::LogScaled;
use crate::params::ParamLayout;
use crate::schedules::StepContext;

/// The settings of the family.
#[derive(Debug, Clone, Copy)]
pub(super) struct AdamSettings {
    pub key: &'static str,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub weight_decay: f64,
    /// Whether moments are divided by 1 − βᵗ; RMSProp does not.
    pub correct_bias: bool,
}

/// Adam.
///
/// ```text
/// m ← β₁m + (1 − β₁)g,   v ← β₂v + (1 − β₂)g²,   m̂ = m/(1 − β₁ᵗ),   v̂ = v/(1 − β₂ᵗ)
/// θ ← θ − η ( m̂/(√v̂ + ε) + decay·θ )
/// ```
///
/// A eq. (75); the decay term is AdamW's, RMSProp has β₁ = 0 and no correction. ε = 0 is allowed and 0/0 is 0, so with
/// β₁ = β₂ = ε = 0 this is exactly sign descent (A.adam). Both moments keep their scale apart: at L = 10^−1000 the
/// ratio m̂/√v̂ is as exact as at L = 1, and ε is compared with the true √v̂.
pub(super) struct Adam {
    settings: AdamSettings,
    trainable: Vec<Range<usize>>,
    count: f64,
    first: ScaledMoment,
    second: ScaledMoment,
}

impl Adam {
    pub fn new(settings: AdamSettings, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        let AdamSettings { key, beta1, beta2, epsilon, weight_decay, .. } = settings;
        super::require(key, "beta1", beta1, "in [0, 1)", (0.0..1.0).contains(&beta1))?;
        super::require(key, "beta2", beta2, "in [0, 1)", (0.0..1.0).contains(&beta2))?;
        super::require(key, "epsilon", epsilon, "0 or more and finite", epsilon >= 0.0 && epsilon.is_finite())?;
        let decay_holds = weight_decay >= 0.0 && weight_decay.is_finite();
        super::require(key, "weight_decay", weight_decay, "0 or more and finite", decay_holds)?;
        let length = layout.len();
        Ok(Self {
            settings,
            trainable: layout.trainable_ranges(),
            count: 0.0,
            first: ScaledMoment::new(length),
            second: ScaledMoment::new(length),
        })
    }
}

/// params −= exp(`log_factor`) · m / (√v + ε), with m and v scaled; 0/0 is 0. Shared with AdaGrad.
pub(super) fn divide_by_root(
    params: &mut [f64],
    log_factor: f64,
    (m_scale, m): (f64, &[f64]),
    (v_scale, v): (f64, &[f64]),
    epsilon: f64,
) {
    // measure the denominator in units of exp(unit), the larger of √v's scale and ε, so that it stays of ordinary size
    let unit = (0.5 * v_scale).max(epsilon.ln());
    if m_scale == f64::NEG_INFINITY || unit == f64::NEG_INFINITY {
        return;
    }
    // the difference first: it is 0 where ε and both memories are, and then the step is exactly that of sign descent
    let factor = (log_factor + (m_scale - unit)).exp();
    let (root_factor, epsilon) = ((0.5 * v_scale - unit).exp(), (epsilon.ln() - unit).exp());
    for ((theta, m), v) in params.iter_mut().zip(m).zip(v) {
        let denominator = root_factor * v.sqrt() + epsilon;
        if denominator != 0.0 {
            *theta -= factor * (m / denominator);
        }
    }
}

impl Optimiser for Adam {
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        let AdamSettings { beta1, beta2, epsilon, weight_decay, correct_bias, .. } = self.settings;
        self.count += 1.0;
        self.first.blend(beta1, 1.0 - beta1, gradient);
        self.second.blend_squares(beta2, 1.0 - beta2, gradient);
        let (mut first, mut second) = (self.first.log_scale, self.second.log_scale);
        if correct_bias {
            first -= (-beta1.powf(self.count)).ln_1p();
            second -= (-beta2.powf(self.count)).ln_1p();
        }
        decay_weights(self.settings.key, params, &self.trainable, log_step, weight_decay)?;
        divide_by_root(params, log_step, (first, &self.first.values), (second, &self.second.values), epsilon);
        Ok(())
    }

    fn state(&self) -> OptimiserState {
        let state = OptimiserState::new(self.settings.key).with_number("count", self.count);
        self.second.save("second", self.first.save("first", state))
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check(self.settings.key)?;
        self.count = state.number("count")?;
        self.first.load("first", state)?;
        self.second.load("second", state)
    }
}
