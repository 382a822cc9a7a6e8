//! Coordinate descent that never steps uphill.

use super::{Optimiser, OptimiserError, OptimiserState, Scaling, step_factor};
use crate::linalg::{max_abs, sign};
use crate::numeric::LogScaled;
use crate::objective::Evaluation;
use crate::params::ParamLayout;
use crate::schedules::StepContext;

/// Entries tried at most before a step is taken without trial.
const TRIALS: usize = 1000;

/// Steepest descent in ℓ1 along the largest entry of the gradient whose step lowers the loss.
///
/// ```text
/// i = argmax { |gᵢ| : L(θ − ρ sign(gᵢ) eᵢ) < L(θ) },   θᵢ ← θᵢ − η ‖g‖_∞ sign(gᵢ)   (or η sign(gᵢ)),   ρ the last step
/// ```
///
/// At a kink of a ReLU network both one-sided derivatives of the loss along a weight can point uphill. Plain coordinate
/// descent then jumps to and fro across the kink for ever, since nothing else changes (A.expTS, section 0 of the claims
/// catalogue). Here such an entry counts as zero, which lies between its one-sided derivatives, and the next largest is
/// tried. In a network with one hidden layer a trial moves one neuron and costs far less than a gradient. Away from
/// kinks and with small steps this is coordinate descent. The minimum-norm subgradient of `steepest` follows the flow
/// along kinks too, at a much higher price.
pub(super) struct MonotoneCoordinate {
    scaling: Scaling,
    /// Length of the last step: how far a trial goes.
    reach: f64,
    /// Entries that were passed over at the last gradient.
    skipped: usize,
    /// The largest |gᵢ| of every stretch of [`STRETCH`] entries: one pass finds them, and each trial changes one.
    tops: Vec<f64>,
}

/// Entries that share a maximum.
const STRETCH: usize = 128;

impl MonotoneCoordinate {
    pub fn new(scaling: Scaling, layout: &ParamLayout) -> Self {
        Self { scaling, reach: 0.0, skipped: 0, tops: Vec::with_capacity(layout.len().div_ceil(STRETCH)) }
    }

    /// Finds the maxima of all stretches; frozen entries of a gradient are 0.
    fn survey(&mut self, g: &[f64]) {
        self.tops.clear();
        self.tops.extend(g.chunks(STRETCH).map(max_abs));
    }

    /// The first largest entry by the last survey; a NaN counts as largest.
    fn largest(&self, g: &[f64]) -> (usize, f64) {
        let mut best = (0, 0.0f64);
        for (stretch, top) in self.tops.iter().enumerate() {
            if top.is_nan() || *top > best.1 {
                best = (stretch, *top);
            }
            if top.is_nan() {
                break;
            }
        }
        let first = best.0 * STRETCH;
        let inside = g[first..].iter().position(|x| x.abs() == best.1 || x.is_nan());
        (first + inside.unwrap_or(0), best.1)
    }
}

impl Optimiser for MonotoneCoordinate {
    fn subgradient(&mut self, evaluation: Evaluation<'_>, params: &[f64], gradient: &mut LogScaled) {
        let objective = evaluation.into_objective();
        objective.resume().backward(params, gradient);
        self.skipped = 0;
        if self.reach == 0.0 {
            return;
        }
        let here = objective.log_loss();
        self.survey(&gradient.direction);
        while self.skipped < TRIALS {
            let (entry, size) = self.largest(&gradient.direction);
            let change = -self.reach * sign(gradient.direction[entry]);
            if size.is_nan() || size == 0.0 || objective.log_loss_after(params, entry, change) < here {
                return;
            }
            gradient.direction[entry] = 0.0;
            let stretch = entry / STRETCH;
            self.tops[stretch] = gradient.direction.chunks(STRETCH).nth(stretch).map_or(0.0, max_abs);
            self.skipped += 1;
        }
    }

    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        self.survey(&gradient.direction);
        let (entry, size) = self.largest(&gradient.direction);
        self.reach = match self.scaling {
            Scaling::DualNorm => step_factor(log_step, gradient.log_scale) * size,
            Scaling::Unit => log_step.exp(),
        };
        params[entry] -= self.reach * sign(gradient.direction[entry]) + 0.0 * size;
        Ok(())
    }

    fn report(&mut self) -> Vec<(&'static str, f64)> {
        vec![("skipped_entries", self.skipped as f64)]
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new("monotone-coordinate").with_number("reach", self.reach)
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("monotone-coordinate")?;
        self.reach = state.number("reach")?;
        Ok(())
    }
}
