//! The Euclidean potential, whose mirror flow is gradient flow.

use super::{HorizonBounds, ScalarHorizon, ScalarPotential};

/// r(t) = t²/2.
///
/// ```text
/// r′ = t,   r″ = 1,   q = t²/2,   α = 2,   φ = ‖θ‖₂,   slack 0
/// ```
///
/// Mirror descent with it is gradient descent. Section 2 of paper C.
///
/// ```
/// use limitpoint::potentials::{Euclidean, ScalarPotential};
/// assert_eq!((Euclidean.slope(3.0), Euclidean.conjugate(3.0)), (3.0, 4.5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Euclidean;

impl ScalarPotential for Euclidean {
    fn key(&self) -> &'static str {
        "euclidean"
    }
    fn value(&self, t: f64) -> f64 {
        0.5 * t * t
    }
    fn slope(&self, t: f64) -> f64 {
        t
    }
    fn inverse_slope(&self, z: f64) -> f64 {
        z
    }
    fn curvature(&self, _t: f64) -> f64 {
        1.0
    }
    fn conjugate(&self, t: f64) -> f64 {
        0.5 * t * t
    }
    fn log_conjugate(&self, t: f64) -> f64 {
        2.0 * t.abs().ln() - std::f64::consts::LN_2
    }
    fn slack(&self, _t: f64) -> f64 {
        0.0
    }
    fn bregman(&self, a: f64, b: f64) -> f64 {
        0.5 * (a - b) * (a - b)
    }
}

impl ScalarHorizon for Euclidean {
    fn degree(&self) -> f64 {
        2.0
    }
    fn horizon_coefficient(&self) -> f64 {
        1.0
    }
    fn horizon_bounds(&self, _count: usize) -> Option<HorizonBounds> {
        Some(HorizonBounds { factor: 1.0, offset: 0.0 })
    }
}
