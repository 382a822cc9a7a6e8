//! Powers and power sums over the whole range of floats.

/// The function a ↦ a^e for a ≥ 0, with products in place of `powf` for small whole exponents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Power {
    One,
    Identity,
    Square,
    Whole(i32),
    Real(f64),
}

impl Power {
    pub fn new(exponent: f64) -> Self {
        match exponent {
            0.0 => Self::One,
            1.0 => Self::Identity,
            2.0 => Self::Square,
            e if e.fract() == 0.0 && (3.0..=64.0).contains(&e) => Self::Whole(e as i32),
            e => Self::Real(e),
        }
    }

    #[inline(always)]
    pub fn of(self, a: f64) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Identity => a,
            Self::Square => a * a,
            Self::Whole(e) => a.powi(e),
            Self::Real(e) => a.powf(e),
        }
    }
}

/// ‖v‖_p = M (Σ (|vᵢ|/M)^p)^{1/p} with M = max |vᵢ|, so that no power leaves the range; NaN if an entry is NaN.
pub(super) fn power_norm(values: impl Iterator<Item = f64> + Clone, p: f64) -> f64 {
    if p == 1.0 {
        return values.map(f64::abs).sum();
    }
    let largest = largest_magnitude(values.clone());
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let power = Power::new(p);
    largest * super::root(values.map(|x| power.of(x.abs() / largest)).sum(), p)
}

/// max |vᵢ|, 0 for no entries, NaN if an entry is NaN.
pub(super) fn largest_magnitude(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |largest: f64, x| if x.is_nan() || x.abs() > largest { x.abs() } else { largest })
}

/// ln Σ exp(xᵢ) in one pass, without storing the terms; −∞ for no terms.
pub(super) fn streaming_log_sum_exp(values: impl Iterator<Item = f64>) -> f64 {
    let (mut largest, mut sum) = (f64::NEG_INFINITY, 0.0);
    for x in values {
        if x.is_nan() || x == f64::INFINITY {
            return x;
        }
        if x > largest {
            sum = sum * (largest - x).exp() + 1.0;
            largest = x;
        } else if x > f64::NEG_INFINITY {
            sum += (x - largest).exp();
        }
    }
    if largest == f64::NEG_INFINITY { largest } else { largest + sum.ln() }
}

/// The root s ≥ 0 of r′(s) = target by Newton's method, to a few units in the last place.
///
/// `slopes` gives (r′, r″). For a convex increasing r′ start at or above the root, for a concave one at or below it:
/// then the iterates move monotonically. Stops once a step is at most 10⁻¹⁰ s, having taken it: convergence is
/// quadratic, so what is left is below rounding. A start of 0 or ∞ is returned as it is.
#[inline(always)]
pub(super) fn newton_root(start: f64, target: f64, slopes: impl Fn(f64) -> (f64, f64)) -> f64 {
    let mut s = start;
    if s == 0.0 || !s.is_finite() {
        return s;
    }
    for _ in 0..60 {
        let (slope, curvature) = slopes(s);
        let step = (slope - target) / curvature;
        if !step.is_finite() {
            break;
        }
        s -= step;
        if step.abs() <= 1e-10 * s {
            break;
        }
    }
    s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn norms_survive_the_ends_of_the_range() {
        let norm = |v: &[f64], p| power_norm(v.iter().copied(), p);
        assert!((norm(&[3e200, 4e200], 2.0) / 5e200 - 1.0).abs() < 1e-15);
        assert!((norm(&[1e-200, 1e-200], 3.0) / (1e-200 * 2f64.cbrt()) - 1.0).abs() < 1e-15);
        assert_eq!(norm(&[1.0, -2.0], 1.0), 3.0);
        assert_eq!(norm(&[], 3.0), 0.0);
        assert!(norm(&[f64::NAN, 1.0], 3.0).is_nan() && norm(&[1.0, f64::NAN], 3.0).is_nan());
    }

    #[test]
    fn the_streaming_sum_agrees_with_the_stored_one() {
        let terms = [-3.0, 1000.0, 999.0, f64::NEG_INFINITY, -2000.0];
        let stored = crate::numeric::log_sum_exp(&terms);
        assert!((streaming_log_sum_exp(terms.into_iter()) - stored).abs() < 1e-12);
        assert_eq!(streaming_log_sum_exp([].into_iter()), f64::NEG_INFINITY);
        assert!(streaming_log_sum_exp([0.0, f64::NAN].into_iter()).is_nan());
    }

    #[test]
    fn whole_and_real_powers_agree() {
        for e in [0.0, 1.0, 2.0, 3.0, 17.0, 2.5] {
            assert!((Power::new(e).of(1.7) / 1.7f64.powf(e) - 1.0).abs() < 1e-14);
        }
    }
}
