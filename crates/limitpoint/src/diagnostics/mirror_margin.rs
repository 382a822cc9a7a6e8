//! Margins and angle in the geometry of a mirror potential.

use super::Point;
use crate::linalg::dot;
use crate::potentials::MirrorPotential;

/// What paper C measures at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MirrorMeasure {
    /// The finite-scale gauge (α Q(∇R(θ)))^{1/α}.
    pub gauge: f64,
    /// The horizon φ_α(θ), the gauge in the limit.
    pub horizon: f64,
    /// q_min / gauge^L (Mg.Q, C Definition 4.1).
    pub margin: f64,
    /// ln(1/L) / gauge^L with the loss's own inverse g (Mg.Qsoft, C Definition 4.2).
    pub soft_margin: f64,
    /// q_min / φ^L.
    pub horizon_margin: f64,
    /// β = ⟨θ, H θ̇⟩ / (‖θ‖_H ‖θ̇‖_H) with θ̇ = −H⁻¹g: the cosine between position and velocity in the metric H = ∇²R.
    pub beta: f64,
}

/// Measures a point with a potential; `scratch` holds one parameter vector.
///
/// Since H θ̇ = −g, β = ⟨θ, −g⟩ / (√(θᵀHθ) √(gᵀH⁻¹g)); only the direction of g matters.
pub fn mirror_measure(point: &Point, potential: &mut dyn MirrorPotential, scratch: &mut [f64]) -> MirrorMeasure {
    let (theta, g, degree) = (point.params, point.gradient.direction.as_slice(), point.degree());
    let (gauge, horizon) = (potential.gauge(theta), potential.horizon(theta));
    potential.hessian_action(theta, theta, scratch);
    let position = dot(theta, scratch);
    potential.inverse_hessian_action(theta, g, scratch);
    let velocity = dot(g, scratch);
    let scale = gauge.powf(degree);
    MirrorMeasure {
        gauge,
        horizon,
        margin: point.smallest_margin() / scale,
        soft_margin: point.soft_minimum() / scale,
        horizon_margin: point.smallest_margin() / horizon.powf(degree),
        beta: -dot(theta, g) / (position * velocity).sqrt(),
    }
}
