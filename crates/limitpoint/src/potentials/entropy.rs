//! The entropy potential, whose mirror descent is exponentiated gradient descent.

use super::{Domain, HorizonBounds, ScalarHorizon, ScalarPotential};

/// r(t) = t ln t − t for t > 0.
///
/// ```text
/// r′ = ln t,   (r′)⁻¹(z) = exp z,   r″ = 1/t,   q = t,   α = 1,   φ = Σ tᵢ (ℓ₁ on t > 0),   slack 0
/// D(a, b) = a ln(a/b) − a + b
/// ```
///
/// The domain is t > 0; the divergence accepts a = 0 with 0 ln 0 = 0. Dual values above 709.78 give ∞, below −745
/// give 0. Theorem 1 of paper B (B.thm1).
///
/// ```
/// use limitpoint::potentials::{Entropy, ScalarPotential};
/// assert_eq!((Entropy.slope(1.0), Entropy.inverse_slope(0.0), Entropy.conjugate(7.0)), (0.0, 1.0, 7.0));
/// assert_eq!(Entropy.bregman(0.0, 2.0), 2.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entropy;

impl ScalarPotential for Entropy {
    fn key(&self) -> &'static str {
        "entropy"
    }
    fn value(&self, t: f64) -> f64 {
        if t == 0.0 { 0.0 } else { t * (t.ln() - 1.0) }
    }
    fn slope(&self, t: f64) -> f64 {
        t.ln()
    }
    fn inverse_slope(&self, z: f64) -> f64 {
        z.exp()
    }
    fn curvature(&self, t: f64) -> f64 {
        1.0 / t
    }
    fn conjugate(&self, t: f64) -> f64 {
        t
    }
    fn slack(&self, _t: f64) -> f64 {
        0.0
    }
    fn analytic_radius(&self, t: f64) -> f64 {
        t
    }
}

impl ScalarHorizon for Entropy {
    fn degree(&self) -> f64 {
        1.0
    }
    fn horizon_coefficient(&self) -> f64 {
        1.0
    }
    fn domain(&self) -> Domain {
        Domain::Positive
    }
    fn horizon_bounds(&self, _count: usize) -> Option<HorizonBounds> {
        Some(HorizonBounds { factor: 1.0, offset: 0.0 })
    }
}
