//! Natural gradient descent in the Hessian metric of a potential.

use super::{Optimiser, OptimiserError, OptimiserState, Wishes, step_factor};
use crate::numeric::LogScaled;
use crate::params::{DiagonalMetric, MetricEntry, ParamLayout, Update};
use crate::potentials::{MirrorPotential, PotentialSpec};
use crate::schedules::StepContext;

/// θ⁺ = θ − η ∇²R(θ)⁻¹ g: the metric form of a mirror step (B eq. 9).
///
/// It agrees with mirror descent only as η → 0 (B eq. 10); at finite η the limits differ (B Example 3). A step that
/// leaves the potential's domain is an error that names the entry.
pub(super) struct NaturalGradient {
    potential: Box<dyn MirrorPotential>,
    direction: Vec<f64>,
    /// ∇²R⁻¹, where it is a diagonal that engines may know and every number is in the domain.
    metric: Option<DiagonalMetric>,
}

impl NaturalGradient {
    pub fn new(spec: &PotentialSpec, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        let entry = match *spec {
            PotentialSpec::Euclidean => Some(MetricEntry::One),
            PotentialSpec::Hyperbolic { lambda } => Some(MetricEntry::Hyperbolic { lambda }),
            PotentialSpec::Smoothed { p, lambda } if lambda > 0.0 => Some(MetricEntry::Power { p, lambda }),
            _ => None,
        };
        let ranges = layout.trainable_ranges();
        let metric = entry.map(|entry| DiagonalMetric::new(ranges.into_iter().map(|r| (r, entry, 1.0)).collect()));
        Ok(Self { potential: spec.build(layout)?, direction: vec![0.0; layout.len()], metric })
    }
}

impl Optimiser for NaturalGradient {
    fn wishes(&self) -> Wishes {
        Wishes { kinks: false, metric: self.metric.clone() }
    }

    fn update(&self, log_scale: f64, log_step: f64) -> Update {
        if self.metric.is_some() { Update::Metric(-step_factor(log_step, log_scale)) } else { Update::Host }
    }

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
