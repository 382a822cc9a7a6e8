//! The hyperbolic entropy, whose horizon is the ℓ₁ norm.

use super::{HorizonBounds, PotentialError, ScalarHorizon, ScalarPotential};
use crate::numeric::log_one_minus_exp;

/// r(t) = t asinh(t/√λ) − √(t² + λ), λ > 0.
///
/// ```text
/// r′ = asinh(t/√λ),   (r′)⁻¹(z) = √λ sinh z,   r″ = 1/√(t²+λ)
/// q = √(t²+λ),        α = 1,   φ = ‖θ‖₁,        slack λ/√(t²+λ)
/// φ ≤ gauge ≤ φ + n√λ                            on n entries
/// ```
///
/// R itself grows like |t| ln(2|t|/√λ) and has no limit as λ → 0; only Q(∇R) is asymptotically 1-homogeneous, which is
/// why the degree is defined through it (C.ass4.4). λ must be positive; for weights of one sign the λ → 0 limit is
/// [`super::Entropy`]. The ratio t/√λ may exceed the range of a float: then r′ = ln|t| − ln √λ + ln 2. The inverse
/// becomes ±∞ only where √λ sinh z itself does, beyond |z| ≈ 710 − ln √λ; [`hyperbolic_log_abs`] goes on.
/// Paper C, table 1 (C.tab1) and corollary H.3 (C.corH3).
///
/// ```
/// use limitpoint::potentials::{Hyperbolic, ScalarPotential};
/// let potential = Hyperbolic::new(16.0)?;
/// assert_eq!(potential.conjugate(3.0), 5.0);
/// assert_eq!(potential.curvature(3.0), 0.2);
/// assert!((potential.inverse_slope(potential.slope(-3.0)) + 3.0).abs() < 1e-15);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hyperbolic {
    lambda: f64,
    root_lambda: f64,
}

impl Hyperbolic {
    /// Checks λ > 0.
    pub fn new(lambda: f64) -> Result<Self, PotentialError> {
        if lambda > 0.0 && lambda.is_finite() {
            return Ok(Self { lambda, root_lambda: lambda.sqrt() });
        }
        Err(PotentialError::Setting {
            potential: "hyperbolic",
            parameter: "lambda",
            value: lambda,
            range: "positive and finite",
            remedy: "take a small positive number such as 1e-6, or use 'entropy' for positive weights",
        })
    }

    /// √(t² + λ), also where t² leaves the range.
    #[inline(always)]
    fn smooth_abs(&self, t: f64) -> f64 {
        let square = t * t + self.lambda;
        if (1e-280..1e300).contains(&square) { square.sqrt() } else { t.hypot(self.root_lambda) }
    }
}

impl ScalarPotential for Hyperbolic {
    fn key(&self) -> &'static str {
        "hyperbolic"
    }
    fn value(&self, t: f64) -> f64 {
        t * self.slope(t) - self.smooth_abs(t)
    }
    #[inline(always)]
    fn slope(&self, t: f64) -> f64 {
        let ratio = t / self.root_lambda;
        let a = ratio.abs();
        if a < 1e150 {
            // asinh a = ln(1 + a + a²/(1 + √(1+a²))), accurate for tiny a and quicker than the library's, which guards
            // against an overflow that cannot happen here.
            (a + a * a / (1.0 + (1.0 + a * a).sqrt())).ln_1p().copysign(t)
        } else if ratio.is_finite() {
            (a.ln() + std::f64::consts::LN_2).copysign(t)
        } else {
            (t.abs().ln() - self.root_lambda.ln() + std::f64::consts::LN_2).copysign(t)
        }
    }
    #[inline(always)]
    fn inverse_slope(&self, z: f64) -> f64 {
        if z.abs() < 700.0 {
            self.root_lambda * z.sinh()
        } else {
            let half = (0.5 * z.abs()).exp();
            (0.5 * self.root_lambda * half * half).copysign(z)
        }
    }
    #[inline(always)]
    fn curvature(&self, t: f64) -> f64 {
        1.0 / self.smooth_abs(t)
    }
    #[inline(always)]
    fn conjugate(&self, t: f64) -> f64 {
        self.smooth_abs(t)
    }
    fn slack(&self, t: f64) -> f64 {
        self.lambda / self.smooth_abs(t)
    }
    fn analytic_radius(&self, t: f64) -> f64 {
        self.smooth_abs(t)
    }
}

impl ScalarHorizon for Hyperbolic {
    fn degree(&self) -> f64 {
        1.0
    }
    fn horizon_coefficient(&self) -> f64 {
        1.0
    }
    fn horizon_bounds(&self, count: usize) -> Option<HorizonBounds> {
        Some(HorizonBounds { factor: 1.0, offset: count as f64 * self.root_lambda })
    }
}

/// ln |√λ sinh z|, the logarithm of the hyperbolic inverse mirror map, for any z.
///
/// ```text
/// ln|θ| = (ln λ)/2 + |z| − ln 2 + ln(1 − e^{−2|z|})
/// ```
///
/// −∞ at z = 0. Finite where θ itself overflows.
///
/// ```
/// use limitpoint::potentials::hyperbolic_log_abs;
/// assert!((hyperbolic_log_abs(5000.0, 1.0) - (5000.0 - 2f64.ln())).abs() < 1e-12);
/// assert!((hyperbolic_log_abs(-2f64.ln(), 1.0) - 0.75f64.ln()).abs() < 1e-15);
/// ```
pub fn hyperbolic_log_abs(dual: f64, lambda: f64) -> f64 {
    let z = dual.abs();
    0.5 * lambda.ln() + (z - std::f64::consts::LN_2 + log_one_minus_exp(-2.0 * z))
}

/// The λ for which hyperbolic mirror flow is gradient flow on θ = u·v with u² − v² = c: λ = c²/4, at half the speed.
///
/// Gradient flow on the factors moves the product by θ̇ = −(u² + v²) ∇Loss, and
///
/// ```text
/// u² + v² = √((u² − v²)² + 4u²v²) = 2 √(θ² + c²/4) = 2/r″(θ)
/// ```
///
/// C.reparam (the paper's c = √λ is off by this factor of two).
///
/// ```
/// use limitpoint::potentials::{Hyperbolic, ScalarPotential, lambda_of_product_balance};
/// let (u, v): (f64, f64) = (2.0, 1.0);
/// let potential = Hyperbolic::new(lambda_of_product_balance(u * u - v * v))?;
/// assert!((u * u + v * v - 2.0 / potential.curvature(u * v)).abs() < 1e-14);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
pub fn lambda_of_product_balance(balance: f64) -> f64 {
    0.25 * balance * balance
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values: mpmath with 40 digits, asinh(t/sqrt(lambda)).
    #[test]
    fn the_slope_is_accurate_over_the_whole_range() {
        for (t, lambda, expected) in SLOPES {
            let found = Hyperbolic::new(lambda).unwrap().slope(t);
            assert!((found / expected - 1.0).abs() < 4.0 * f64::EPSILON, "t {t} lambda {lambda}: {found}");
        }
    }

    const SLOPES: [(f64, f64, f64); 8] = [
        (1e-300, 1.0, 1e-300),
        (1e-12, 0.1, 3.162_277_660_168_379e-12),
        (3e-5, 1e-8, 0.295_673_047_563_422_44),
        (0.7, 0.1, 1.535_271_521_863_675_2),
        (-25.0, 0.3, -4.514_129_385_996_872),
        (1e20, 1e-6, 53.652_604_319_423),
        (1e300, 1e-40, 737.520_376_938_654_5),
        (1.7e308, 2.0, 710.073_410_483_508_3),
    ];

    #[test]
    fn the_inverse_passes_the_overflow_of_sinh() {
        let potential = Hyperbolic::new(1e-40).unwrap();
        let theta = potential.inverse_slope(740.0); // sinh(740) alone is infinite
        assert!((theta.ln() - hyperbolic_log_abs(740.0, 1e-40)).abs() < 1e-12);
        assert_eq!(potential.inverse_slope(800.0), f64::INFINITY);
        assert_eq!(potential.inverse_slope(-800.0), f64::NEG_INFINITY);
        assert_eq!(potential.inverse_slope(0.0), 0.0);
    }

    #[test]
    fn lambda_must_be_positive() {
        for lambda in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Hyperbolic::new(lambda).unwrap_err().to_string();
            assert!(error.contains("should be positive and finite") && error.contains(&lambda.to_string()), "{error}");
        }
    }
}
