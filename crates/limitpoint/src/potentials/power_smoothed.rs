//! Smooth powers between the absolute value and the square, 1 < p ≤ 2.

use super::power::newton_root;
use super::{HorizonBounds, PotentialError, ScalarHorizon, ScalarPotential};

/// r(t) = ((t² + λ)^{p/2} − K λ^{p/2})/p, 1 < p ≤ 2, λ ≥ 0; λ = 0 is the pure power |t|^p/p.
///
/// With m = √(t² + λ):
///
/// ```text
/// r′ = t m^{p−2},   r″ = m^{p−4} ((p−1)t² + λ),   q = m^{p−2} ((1−1/p)t² − λ/p) + Kλ^{p/2}/p
/// α = p,   φ = (p−1)^{1/p} ‖θ‖_p,   φ ≤ gauge ≤ φ + (nK)^{1/p} √λ
/// K = 2 ((3−p)/(4−p))^{2−p/2}       slack λ^{p/2} (K − (1 + (3−p)w)(1 + w)^{p/2−2}),  w = t²/λ
/// ```
///
/// The additive constant of R does not change the flow but shifts Q. K is the smallest one for which the curvature
/// condition α q ≥ t² r″ (C.ass4.4) holds for all t: the slack vanishes at w = 1/(3−p) and nowhere else (for p < 2).
/// With R(0) = 0, that is K = 1, the condition fails near 0. Extends paper C to degrees 1 < α < 2 (X.17).
///
/// The inverse is the root of s (s² + λ)^{p/2−1} = |z|, by Newton's method from max(|z|^{1/(p−1)}, |z| λ^{1−p/2}),
/// below the root of a concave function. For λ = 0 and p < 2 the curvature is infinite at 0, the inverse Hessian 0.
///
/// ```
/// use limitpoint::potentials::{PowerSmoothed, ScalarPotential};
/// let pure = PowerSmoothed::new(1.5, 0.0)?;
/// assert_eq!((pure.slope(-4.0), pure.inverse_slope(-2.0)), (-2.0, -4.0));
/// assert!((pure.conjugate(4.0) - 8.0 / 3.0).abs() < 1e-15);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerSmoothed {
    p: f64,
    lambda: f64,
    root_lambda: f64,
    /// λ^{p/2}.
    lambda_power: f64,
    /// K.
    shift: f64,
}

impl PowerSmoothed {
    /// Checks 1 < p ≤ 2 and λ ≥ 0.
    pub fn new(p: f64, lambda: f64) -> Result<Self, PotentialError> {
        let refuse = |parameter, value, range, remedy| {
            Err(PotentialError::Setting { potential: "power-smoothed", parameter, value, range, remedy })
        };
        if !(p > 1.0 && p <= 2.0) {
            return refuse("p", p, "above 1 and at most 2", "use 'smoothed' for p ≥ 2 and 'hyperbolic' for degree 1");
        }
        if !(lambda >= 0.0 && lambda.is_finite()) {
            return refuse("lambda", lambda, "at least 0 and finite", "use 0 for the pure power");
        }
        let shift = 2.0 * ((3.0 - p) / (4.0 - p)).powf(2.0 - 0.5 * p);
        Ok(Self { p, lambda, root_lambda: lambda.sqrt(), lambda_power: lambda.powf(0.5 * p), shift })
    }

    /// m = √(t² + λ), also where t² leaves the range.
    #[inline(always)]
    fn smooth_abs(&self, t: f64) -> f64 {
        let square = t * t + self.lambda;
        if (1e-280..1e300).contains(&square) { square.sqrt() } else { t.hypot(self.root_lambda) }
    }
}

impl ScalarPotential for PowerSmoothed {
    fn key(&self) -> &'static str {
        "power-smoothed"
    }
    fn value(&self, t: f64) -> f64 {
        let ratio = t / self.root_lambda;
        if ratio.abs() <= 1.0 {
            let growth = (0.5 * self.p * (ratio * ratio).ln_1p()).exp_m1();
            self.lambda_power * (growth - (self.shift - 1.0)) / self.p
        } else {
            (self.smooth_abs(t).powf(self.p) - self.shift * self.lambda_power) / self.p
        }
    }
    #[inline(always)]
    fn slope(&self, t: f64) -> f64 {
        if t == 0.0 { t } else { t * self.smooth_abs(t).powf(self.p - 2.0) }
    }
    #[inline(always)]
    fn inverse_slope(&self, z: f64) -> f64 {
        let target = z.abs();
        if target == 0.0 || self.p == 2.0 {
            return z;
        }
        let start = target.powf(1.0 / (self.p - 1.0)).max(target * self.root_lambda.powf(2.0 - self.p));
        newton_root(start, target, |s| {
            let m = self.smooth_abs(s);
            let (power, u, v) = (m.powf(self.p - 2.0), s / m, self.root_lambda / m);
            (s * power, power * ((self.p - 1.0) * u * u + v * v))
        })
        .copysign(z)
    }
    #[inline(always)]
    fn curvature(&self, t: f64) -> f64 {
        let m = self.smooth_abs(t);
        if m == 0.0 {
            return if self.p == 2.0 { 1.0 } else { f64::INFINITY };
        }
        let (u, v) = (t / m, self.root_lambda / m);
        m.powf(self.p - 2.0) * ((self.p - 1.0) * u * u + v * v)
    }
    fn conjugate(&self, t: f64) -> f64 {
        let p = self.p;
        let ratio = t / self.root_lambda;
        if ratio.abs() <= 1.0 {
            let w = ratio * ratio;
            let log = w.ln_1p();
            let curved = w * ((0.5 * p - 1.0) * log).exp() - (0.5 * p * log).exp_m1() / p;
            return self.lambda_power * (curved + (self.shift - 1.0) / p);
        }
        let m = self.smooth_abs(t);
        if m == 0.0 {
            return 0.0;
        }
        let (u, v) = (t / m, self.root_lambda / m);
        m.powf(p) * ((1.0 - 1.0 / p) * u * u - v * v / p) + self.shift * self.lambda_power / p
    }
    fn log_conjugate(&self, t: f64) -> f64 {
        if t.abs() > 1e20 * self.root_lambda {
            self.p * t.abs().ln() + (1.0 - 1.0 / self.p).ln()
        } else {
            self.conjugate(t).ln()
        }
    }
    fn slack(&self, t: f64) -> f64 {
        if self.p == 2.0 || self.lambda == 0.0 {
            return 0.0;
        }
        let m = self.smooth_abs(t);
        let (u, v) = (t / m, self.root_lambda / m);
        self.lambda_power * (self.shift - (v * v + (3.0 - self.p) * u * u) * v.powf(2.0 - self.p))
    }
    fn analytic_radius(&self, t: f64) -> f64 {
        self.smooth_abs(t)
    }
}

impl ScalarHorizon for PowerSmoothed {
    fn degree(&self) -> f64 {
        self.p
    }
    fn horizon_coefficient(&self) -> f64 {
        self.p - 1.0
    }
    fn horizon_bounds(&self, count: usize) -> Option<HorizonBounds> {
        let offset = (self.shift * count as f64).powf(1.0 / self.p) * self.root_lambda;
        Some(HorizonBounds { factor: 1.0, offset: if self.p == 2.0 { 0.0 } else { offset } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shift_is_the_smallest_that_keeps_the_curvature_condition() {
        for p in [1.05, 1.3, 1.5, 1.8, 1.99] {
            let potential = PowerSmoothed::new(p, 0.7).unwrap();
            let touch = (0.7 / (3.0 - p)).sqrt();
            assert!(potential.slack(touch).abs() < 1e-15, "p {p}");
            for factor in [0.0, 0.1, 0.5, 0.9, 1.1, 2.0, 10.0, 1e6] {
                assert!(potential.slack(touch * factor) > 0.0, "p {p} factor {factor}");
            }
        }
    }

    #[test]
    fn p_two_is_the_euclidean_potential() {
        let potential = PowerSmoothed::new(2.0, 0.3).unwrap();
        for t in [-3.0, -1e-9, 0.0, 0.4, 7.0] {
            assert!((potential.value(t) - 0.5 * t * t).abs() <= 1e-15 * t * t);
            assert!((potential.conjugate(t) - 0.5 * t * t).abs() <= 1e-15 * t * t);
            assert_eq!((potential.slope(t), potential.curvature(t)), (t, potential.curvature(t)));
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for (p, lambda) in [(1.0, 0.1), (2.5, 0.1), (f64::NAN, 0.1), (1.5, -1.0), (1.5, f64::NAN)] {
            assert!(PowerSmoothed::new(p, lambda).is_err(), "{p} {lambda}");
        }
    }
}
