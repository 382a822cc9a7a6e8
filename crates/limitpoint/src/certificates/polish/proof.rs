//! τ of a point from explicit multipliers: an upper bound whoever found them, computed by the network itself.

use super::super::evaluation;
use super::PolishError;
use crate::data::Targets;
use crate::engine::{Forward, Kink, Tangents};
use crate::models::MarginMap;
use crate::norms::Norm;

/// Multipliers that are said to prove a KKT point.
#[derive(Debug, Clone, PartialEq)]
pub struct KktProof {
    /// p ≥ 0, one for every margin.
    pub weights: Vec<f64>,
    /// The slopes taken at kinks: (kink, e) for the slope (1 − e)·left + e·right, 0 ≤ e ≤ 1.
    pub slopes: Vec<(Kink, f64)>,
}

impl KktProof {
    /// τ = 1 − L q_min Σp / (‖θ‖ ‖Σ p_i h_i‖_*), with h_i ∈ ∂q_i(θ) the gradients at these slopes.
    ///
    /// By weak duality this is never below the τ of the point, so a small value proves a KKT point up to that value.
    /// Slopes of kinks further away than |z| ≤ `tolerance` · ‖a‖₂ · (largest ‖w_unit‖₂), a the unit's input, are not
    /// used: there the gradient is what it is. Infinite if a margin is not positive.
    pub fn tau(
        &self,
        model: &mut dyn Tangents,
        targets: &Targets,
        params: &[f64],
        norm: &mut dyn Norm,
        tolerance: f64,
    ) -> Result<f64, PolishError> {
        let margins = evaluation::margins(model, targets, params)?;
        let degree = model.homogeneity().ok_or(super::super::CertificateError::NotHomogeneous)?.degree;
        let smallest = margins.iter().copied().fold(f64::INFINITY, f64::min);
        if smallest.is_nan() || smallest <= 0.0 {
            return Ok(f64::INFINITY);
        }
        let near = model.kinks_near(params, tolerance * longest_unit(model, params));
        let same = |a: &Kink, b: &Kink| (a.layer, a.unit, a.example) == (b.layer, b.unit, b.example);
        let used = |(kink, e): &(Kink, f64)| near.iter().any(|k| same(k, kink)).then_some((*kink, e.clamp(0.0, 1.0)));
        let slopes: Vec<(Kink, f64)> = self.slopes.iter().filter_map(used).collect();
        let weights: Vec<f64> = self.weights.iter().map(|p| p.max(0.0)).collect();
        let mut cotangent = vec![0.0; model.examples() * model.outputs()];
        MarginMap::new(targets).pull_back(&weights, None, &mut cotangent);
        let mut gradient = vec![0.0; params.len()];
        model.weigh_kinks(&slopes);
        model.scores(params);
        model.resume().pull_back(params, &cotangent, &mut gradient);
        model.weigh_kinks(&[]);
        let total: f64 = weights.iter().sum();
        Ok((1.0 - degree * smallest * total / (norm.value(params) * norm.dual(&gradient))).max(0.0))
    }
}

/// The largest ‖w‖₂ of a hidden unit.
fn longest_unit(model: &dyn Tangents, params: &[f64]) -> f64 {
    let weights: Vec<_> = model.layout().weights().collect();
    let hidden = &weights[..weights.len().saturating_sub(1)];
    let rows = hidden.iter().flat_map(|block| params[block.range()].chunks_exact(block.cols).map(crate::linalg::norm2));
    rows.fold(0.0, f64::max)
}
