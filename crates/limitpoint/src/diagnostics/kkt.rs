//! How close a point is to a KKT point of the margin problem min ½‖θ‖² subject to qₖ ≥ 1.
//!
//! With θ̃ = θ/q_min^{1/L} (feasible, tight) and the papers' multipliers
//!
//! ```text
//! λₖ = q_min^{1−2/L} · ‖θ‖/‖g‖_* · wₖ,   wₖ = −∂ ln L/∂qₖ,  g = ∇ ln L          A Prop. A.13, D Lemma C.8
//! z  = Σ λₖ ∇qₖ(θ̃) = −(‖θ‖/q_min^{1/L}) g/‖g‖_*
//! ```
//!
//! (λ written with w and ∇ ln L instead of e^{−f}f′ and ∇L: the factor L cancels) three numbers follow:
//!
//! ```text
//! Fenchel–Young gap   ½‖z‖_*² + ½‖θ̃‖² − ⟨z, θ̃⟩ = ‖θ̃‖² (1 − β)      Ct.FY; β is the alignment Ct.align
//! slack               Σ λₖ (qₖ/q_min − 1)                              Ct.slack
//! residual            min over k ∈ ∂½‖θ̃‖² of ‖z − k‖₂                  Ct.res2
//! ```
//!
//! The gap is the primary measure: it needs no subdifferential and tends to 0 whenever the theorem holds. The residual
//! at τ = 0 need not vanish for ℓ1, ℓ∞ or spectral norms (the counterexample in A.propA13 is a test).

use super::Point;
use crate::linalg::{dot, norm2};
use crate::norms::Norm;

/// The KKT measures of a point in one norm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KktMeasure {
    /// β = ⟨θ, −g⟩ / (‖θ‖ ‖g‖_*) ≤ 1.
    pub alignment: f64,
    /// ‖θ̃‖² (1 − β).
    pub fenchel_young_gap: f64,
    /// Σ λₖ (qₖ/q_min − 1).
    pub slack: f64,
    /// ‖θ̃‖² = 1/margin^{2/L}, the objective value times two; divide by it for relative measures.
    pub objective: f64,
}

/// β = ⟨θ, −g⟩ / (‖θ‖ ‖g‖_*), the cosine between the point and the steepest direction.
pub fn alignment(point: &Point, norm: &mut dyn Norm) -> f64 {
    let g = &point.gradient.direction;
    -dot(point.params, g) / (norm.value(point.params) * norm.dual(g))
}

/// Measures a point; everything is NaN unless all margins are positive and the model is homogeneous.
pub fn kkt_measure(point: &Point, norm: &mut dyn Norm) -> KktMeasure {
    let (q, degree) = (point.smallest_margin(), point.degree());
    let beta = alignment(point, norm);
    if q.is_nan() || q <= 0.0 || degree.is_nan() {
        return KktMeasure { alignment: beta, fenchel_young_gap: f64::NAN, slack: f64::NAN, objective: f64::NAN };
    }
    let (size, dual) = (norm.value(point.params), norm.dual(&point.gradient.direction));
    let objective = (size / q.powf(1.0 / degree)).powi(2);
    let factor = q.powf(1.0 - 2.0 / degree) * size / dual;
    let slack: f64 = point.margins.iter().zip(point.weights).map(|(m, w)| factor * w * (m / q - 1.0)).sum();
    KktMeasure { alignment: beta, fenchel_young_gap: objective * (1.0 - beta), slack, objective }
}

/// min ‖z − k‖₂ over k ∈ ∂½‖θ̃‖² with activity tolerance `tolerance`, relative to ‖θ̃‖ (Ct.res2).
///
/// z and k are both divided by ‖θ̃‖, so this compares −g/‖g‖_* with its projection on ∂‖θ‖.
pub fn stationarity_residual(point: &Point, norm: &mut dyn Norm, tolerance: f64, scratch: &mut [Vec<f64>; 2]) -> f64 {
    let g = &point.gradient.direction;
    let dual = norm.dual(g);
    let [target, projected] = scratch;
    target.iter_mut().zip(g).for_each(|(t, g)| *t = -g / dual);
    norm.project_subdifferential(point.params, target, tolerance, projected);
    crate::linalg::add_scaled(projected, -1.0, target);
    norm2(projected)
}
