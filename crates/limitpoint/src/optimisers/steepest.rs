//! Steepest descent in any norm.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clarke::minimum_norm;
use super::{Optimiser, OptimiserError, OptimiserState, Wishes, step_factor};
use crate::linalg::norm2;
use crate::norms::{Norm, NormSpec};
use crate::numeric::LogScaled;
use crate::objective::{Evaluation, Kink};
use crate::params::{ParamLayout, Update};
use crate::schedules::StepContext;

/// Whether a step carries the dual norm of the gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scaling {
    /// ‖Δ‖ = ‖g‖_*: steepest descent as in A eq. (1) and B eq. (11); gradient descent for ℓ2.
    #[default]
    DualNorm,
    /// ‖Δ‖ = 1: the normalised variant, what sign descent and Muon do in practice.
    Unit,
}

/// θ⁺ = θ + η ‖g‖_* d(g), where d is the unit minimiser of the norm; without the factor ‖g‖_* if normalised.
///
/// Gradient descent is ℓ2, sign descent ℓ∞, coordinate descent ℓ1, spectral descent the spectral norm. With
/// `minimum_norm`, kinks within reach of the last step's length are resolved as in `clarke.rs`: the gradient is
/// the subgradient of smallest dual norm and the step goes along the direction that descends for every slope.
///
/// ```
/// use limitpoint::norms::NormSpec;
/// use limitpoint::optimisers::{Scaling, Steepest};
/// // any `Norm` will do, also one from outside this crate
/// let optimiser = Steepest::in_norm(NormSpec::Linf.build_vector(3)?, Scaling::DualNorm, 3);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub struct Steepest {
    norm: Box<dyn Norm>,
    scaling: Scaling,
    minimum_norm: bool,
    plain: Option<Plain>,
    direction: Vec<f64>,
    /// The saddle point's direction, when kinks are active; kept until the next gradient, since a step may be redone.
    resolved: Option<Vec<f64>>,
    /// Kinks resolved at the last gradient, and the duality gap of their weights.
    kinks: (usize, f64),
    /// Euclidean length of the last step: how far kinks are looked for.
    reach: f64,
}

/// Steps that treat every entry for itself: gradient descent and normalised sign descent.
#[derive(Clone, Copy)]
enum Plain {
    Gradient,
    Signs,
}

impl Steepest {
    /// Steepest descent of `length` parameters in a norm that is already built.
    pub fn in_norm(norm: Box<dyn Norm>, scaling: Scaling, length: usize) -> Self {
        Self {
            norm,
            scaling,
            minimum_norm: false,
            plain: None,
            direction: vec![0.0; length],
            resolved: None,
            kinks: (0, 0.0),
            reach: 0.0,
        }
    }

    pub(super) fn new(
        spec: &NormSpec,
        scaling: Scaling,
        minimum_norm: bool,
        layout: &ParamLayout,
    ) -> Result<Self, OptimiserError> {
        let plain = match (spec, scaling) {
            _ if minimum_norm => None,
            (NormSpec::L2, Scaling::DualNorm) => Some(Plain::Gradient),
            (NormSpec::Linf, Scaling::Unit) => Some(Plain::Signs),
            _ => None,
        };
        Ok(Self { minimum_norm, plain, ..Self::in_norm(spec.build(layout)?, scaling, layout.len()) })
    }
}

impl Optimiser for Steepest {
    fn wishes(&self) -> Wishes {
        Wishes { kinks: self.minimum_norm, metric: None }
    }

    fn subgradient(&mut self, evaluation: Evaluation<'_>, params: &[f64], gradient: &mut LogScaled) {
        self.resolved = None;
        self.kinks = (0, 0.0);
        if !self.minimum_norm {
            return evaluation.backward(params, gradient);
        }
        let objective = evaluation.into_objective();
        let kinks = objective.kinks(params, self.reach);
        if kinks.is_empty() {
            return objective.resume().backward(params, gradient);
        }
        self.kinks.0 = kinks.len();
        let left: Vec<(Kink, f64)> = kinks.iter().map(|kink| (*kink, 0.0)).collect();
        objective.backward_at_kinks(params, &left, gradient);
        let columns = objective.kink_columns(params, &kinks);
        let solution = minimum_norm(&mut *self.norm, &gradient.direction, &columns);
        let chosen: Vec<(Kink, f64)> = kinks.iter().copied().zip(solution.weights).collect();
        objective.backward_at_kinks(params, &chosen, gradient);
        self.kinks.1 = solution.gap;
        self.resolved = Some(solution.direction);
    }

    fn update(&self, log_scale: f64, log_step: f64) -> Update {
        match self.plain {
            Some(Plain::Gradient) => Update::Along(-step_factor(log_step, log_scale)),
            Some(Plain::Signs) => Update::AgainstSigns(log_step.exp()),
            None => Update::Host,
        }
    }

    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        let factor = match self.scaling {
            Scaling::DualNorm => step_factor(log_step, gradient.log_scale),
            Scaling::Unit => log_step.exp(),
        };
        let unit = self.scaling == Scaling::Unit;
        match &self.resolved {
            Some(direction) => {
                let length = if unit { 1.0 } else { self.norm.dual(&gradient.direction) };
                crate::linalg::add_scaled(params, factor * length, direction);
                self.reach = factor * length * norm2(direction);
            }
            None if self.minimum_norm => {
                let dual = self.norm.unit_minimiser(&gradient.direction, &mut self.direction);
                let length = factor * if unit { 1.0 } else { dual };
                crate::linalg::add_scaled(params, length, &self.direction);
                self.reach = length * norm2(&self.direction);
            }
            None => self.norm.descend(params, &gradient.direction, factor, unit, &mut self.direction),
        }
        Ok(())
    }

    fn report(&mut self) -> Vec<(&'static str, f64)> {
        let (kinks, gap) = self.kinks;
        if self.minimum_norm { vec![("active_kinks", kinks as f64), ("clarke_gap", gap)] } else { Vec::new() }
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new("steepest").with_number("reach", self.reach)
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("steepest")?;
        self.reach = state.number("reach")?;
        Ok(())
    }
}
