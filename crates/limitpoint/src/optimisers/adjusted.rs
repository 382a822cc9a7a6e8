//! Another optimiser, with a factor on its steps and decoupled weight decay.

use std::ops::Range;

use super::{Optimiser, OptimiserError, OptimiserState, Wishes};
use crate::numeric::LogScaled;
use crate::objective::Evaluation;
use crate::params::{ParamLayout, Update};
use crate::schedules::StepContext;

/// Weight decay that is no part of the gradient, and a factor on all step sizes.
///
/// ```text
/// θ ← (1 − cηλ) θ,   then a step of the other optimiser with step size cη
/// ```
///
/// η is the step size of the schedule and c the `factor`; AdamW is Adam with this decay, bit for bit. λ is decoupled
/// from the gradient but not from η: over a time Σ cη = 1 the weights lose the share 1 − e^−λ, whatever the optimiser.
/// Where steps follow the loss (η = α/L), the decay grows with them and soon outweighs everything, since a normalised
/// gradient step stays as long as it was: a step with 1 − cηλ ≤ 0 is an error. Weights that decay stay bounded, so that
/// no margin theorem speaks about them.
///
/// What optimisers remember of gradients is not touched. A dual iterate ∇R(θ) follows the weights
/// ([`Optimiser::displaced`]).
pub(super) struct Adjusted {
    inner: Box<dyn Optimiser>,
    /// What its states say they are of.
    key: String,
    log_factor: f64,
    decay: f64,
    trainable: Vec<Range<usize>>,
}

const KEY: &str = "adjusted";

impl Adjusted {
    pub fn new(
        inner: Box<dyn Optimiser>,
        factor: f64,
        decay: f64,
        layout: &ParamLayout,
    ) -> Result<Self, OptimiserError> {
        super::require(KEY, "factor", factor, "positive and finite", factor > 0.0 && factor.is_finite())?;
        super::require(KEY, "decay", decay, "0 or more and finite", decay >= 0.0 && decay.is_finite())?;
        let key = inner.state().optimiser;
        Ok(Self { inner, key, log_factor: factor.ln(), decay, trainable: layout.trainable_ranges() })
    }
}

/// Multiplies weights by 1 − ηλ with η = exp(`log_step`); does nothing for λ = 0.
pub(super) fn decay_weights(
    optimiser: &'static str,
    params: &mut [f64],
    trainable: &[Range<usize>],
    log_step: f64,
    decay: f64,
) -> Result<(), OptimiserError> {
    if decay > 0.0 {
        let step = log_step.exp();
        require_shrinking(optimiser, step, decay)?;
        let shrink = 1.0 - step * decay;
        for range in trainable {
            params[range.clone()].iter_mut().for_each(|theta| *theta *= shrink);
        }
    }
    Ok(())
}

/// Refuses a step of size η whose decay λ leaves nothing of the weights, or turns them around.
pub(super) fn require_shrinking(optimiser: &'static str, step: f64, decay: f64) -> Result<(), OptimiserError> {
    if decay == 0.0 || 1.0 - step * decay > 0.0 {
        return Ok(());
    }
    Err(OptimiserError::Decay { optimiser, step, decay })
}

impl Optimiser for Adjusted {
    fn prepare(&mut self, context: &StepContext) {
        self.inner.prepare(context);
    }

    fn look_ahead(&mut self, params: &[f64], out: &mut [f64]) -> bool {
        self.inner.look_ahead(params, out)
    }

    fn wishes(&self) -> Wishes {
        self.inner.wishes()
    }

    fn subgradient(&mut self, evaluation: Evaluation<'_>, params: &[f64], gradient: &mut LogScaled) {
        self.inner.subgradient(evaluation, params, gradient);
    }

    fn update(&self, log_scale: f64, log_step: f64) -> Update {
        if self.decay > 0.0 { Update::Host } else { self.inner.update(log_scale, log_step + self.log_factor) }
    }

    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        context: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        let log_step = log_step + self.log_factor;
        if self.decay > 0.0 {
            decay_weights(KEY, params, &self.trainable, log_step, self.decay)?;
            self.inner.displaced(params);
        }
        self.inner.step(params, gradient, context, log_step)
    }

    fn displaced(&mut self, params: &[f64]) {
        self.inner.displaced(params);
    }

    fn report(&mut self) -> Vec<(&'static str, f64)> {
        self.inner.report()
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new(KEY).with_nested("of", &self.inner.state())
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check(KEY)?;
        self.inner.restore(&state.nested("of", &self.key))
    }
}
