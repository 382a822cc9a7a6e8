//! The smoothed p-homogeneous potentials, p ≥ 2, and the pure power as λ = 0.

use super::power::{Power, newton_root};
use super::{HorizonBounds, PotentialError, ScalarHorizon, ScalarPotential};
use crate::numeric::log_add_exp;

/// r(t) = |t|^p/p + λ t²/2, p ≥ 2, λ ≥ 0.
///
/// ```text
/// r′ = (|t|^{p−2} + λ) t,   r″ = (p−1)|t|^{p−2} + λ
/// q = (1 − 1/p)|t|^p + λt²/2,   α = p,   slack (p/2 − 1) λ t²
/// φ = (p−1)^{1/p} ‖θ‖_p  (p > 2),   √(1+λ) ‖θ‖₂  (p = 2)
/// φ ≤ gauge ≤ c φ + a,   c = ((p−1+pλ/2)/(p−1))^{1/p},   a = (pλn/2)^{1/p}   on n entries, p > 2
/// ```
///
/// The inverse is the root s ≥ 0 of s^{p−1} + λs = |z|, with the sign of z: in closed form for p = 2 and p = 3, else by
/// Newton's method from min(|z|^{1/(p−1)}, |z|/λ), which lies above the root of a convex function, within a factor two
/// in |z|. For λ = 0 and p > 2 the curvature vanishes at 0, and the inverse Hessian is infinite there.
/// Paper C, table 1 (C.tab1; its p = 2 horizon lacks the factor √(1+λ)) and corollary H.4 (C.corH4).
///
/// ```
/// use limitpoint::potentials::{ScalarPotential, Smoothed};
/// let potential = Smoothed::new(3.0, 1.0)?;
/// assert_eq!(potential.slope(-2.0), -6.0);
/// assert_eq!(potential.inverse_slope(-6.0), -2.0);
/// assert_eq!(potential.curvature(2.0), 5.0);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Smoothed {
    p: f64,
    lambda: f64,
    /// a ↦ a^{p−2}.
    power: Power,
}

impl Smoothed {
    /// Checks p ≥ 2 and λ ≥ 0.
    pub fn new(p: f64, lambda: f64) -> Result<Self, PotentialError> {
        let refuse = |parameter, value, range, remedy| {
            Err(PotentialError::Setting { potential: "smoothed", parameter, value, range, remedy })
        };
        if !(p >= 2.0 && p.is_finite()) {
            return refuse(
                "p",
                p,
                "at least 2 and finite",
                "use 'power-smoothed' or 'squared-lp' for p between 1 and 2",
            );
        }
        if !(lambda >= 0.0 && lambda.is_finite()) {
            return refuse("lambda", lambda, "at least 0 and finite", "use 0 for the pure power");
        }
        Ok(Self { p, lambda, power: Power::new(p - 2.0) })
    }
}

impl ScalarPotential for Smoothed {
    fn key(&self) -> &'static str {
        "smoothed"
    }
    fn value(&self, t: f64) -> f64 {
        t * t * (self.power.of(t.abs()) / self.p + 0.5 * self.lambda)
    }
    #[inline(always)]
    fn slope(&self, t: f64) -> f64 {
        (self.power.of(t.abs()) + self.lambda) * t
    }
    #[inline(always)]
    fn inverse_slope(&self, z: f64) -> f64 {
        let (target, lambda) = (z.abs(), self.lambda);
        if target == 0.0 {
            return z;
        }
        if self.p == 2.0 {
            return z / (1.0 + lambda);
        }
        if self.p == 3.0 {
            let root = lambda.hypot(2.0 * target.sqrt());
            return 2.0 * (z / (lambda + root));
        }
        let start = target.powf(1.0 / (self.p - 1.0)).min(target / lambda);
        newton_root(start, target, |s| {
            let power = self.power.of(s);
            ((power + lambda) * s, (self.p - 1.0) * power + lambda)
        })
        .copysign(z)
    }
    #[inline(always)]
    fn curvature(&self, t: f64) -> f64 {
        (self.p - 1.0) * self.power.of(t.abs()) + self.lambda
    }
    #[inline(always)]
    fn conjugate(&self, t: f64) -> f64 {
        t * t * ((1.0 - 1.0 / self.p) * self.power.of(t.abs()) + 0.5 * self.lambda)
    }
    fn log_conjugate(&self, t: f64) -> f64 {
        let log = t.abs().ln();
        log_add_exp(self.p * log + (1.0 - 1.0 / self.p).ln(), 2.0 * log + (0.5 * self.lambda).ln())
    }
    fn slack(&self, t: f64) -> f64 {
        (0.5 * self.p - 1.0) * self.lambda * t * t
    }
    fn analytic_radius(&self, t: f64) -> f64 {
        if self.p == 2.0 { f64::INFINITY } else { t.abs() }
    }
}

impl ScalarHorizon for Smoothed {
    fn degree(&self) -> f64 {
        self.p
    }
    fn horizon_coefficient(&self) -> f64 {
        if self.p == 2.0 { 1.0 + self.lambda } else { self.p - 1.0 }
    }
    fn horizon_bounds(&self, count: usize) -> Option<HorizonBounds> {
        let (p, extra) = (self.p, 0.5 * self.p * self.lambda);
        if p == 2.0 {
            return Some(HorizonBounds { factor: 1.0, offset: 0.0 });
        }
        let factor = ((p - 1.0 + extra) / (p - 1.0)).powf(1.0 / p);
        Some(HorizonBounds { factor, offset: (extra * count as f64).powf(1.0 / p) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values: mpmath with 40 digits, the positive root of s^(p-1) + lambda s = z.
    #[test]
    fn the_inverse_matches_high_precision_roots() {
        for (p, lambda, z, expected) in ROOTS {
            let found = Smoothed::new(p, lambda).unwrap().inverse_slope(z);
            assert!((found / expected - 1.0).abs() < 4.0 * f64::EPSILON, "p {p} lambda {lambda} z {z}: {found}");
        }
    }

    const ROOTS: [(f64, f64, f64, f64); 10] = [
        (3.0, 1.0, 1e-300, 1e-300),
        (3.0, 1.0, 1e300, 1e150),
        (3.0, 0.0, 2.0, std::f64::consts::SQRT_2),
        (4.0, 0.1, 3.0, 1.419_139_537_916_215_5),
        (4.0, 0.1, 1e-20, 9.999_999_999_999_999e-20),
        (2.5, 0.3, 1e300, 1e200),
        (2.5, 0.3, 1e-300, 3.333_333_333_333_334e-300),
        (6.0, 1e-6, 1e-5, 0.099_799_599_200_013_54),
        (2.1, 1.0, 10_000_000_000.0, 1_108_011_911.718_130_4),
        (30.0, 2.0, 1.5, 0.749_881_489_624_578_7),
    ];

    #[test]
    fn settings_out_of_range_are_refused() {
        let error = Smoothed::new(1.5, 0.0).unwrap_err().to_string();
        assert!(
            error.starts_with("p of the smoothed potential should be at least 2 and finite, but is 1.5"),
            "{error}"
        );
        assert!(Smoothed::new(3.0, -0.1).is_err() && Smoothed::new(f64::NAN, 0.1).is_err());
        assert!(Smoothed::new(3.0, f64::NAN).is_err() && Smoothed::new(f64::INFINITY, 0.1).is_err());
    }
}
