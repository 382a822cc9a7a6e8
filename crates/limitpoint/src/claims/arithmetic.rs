//! Comparisons of numbers that a claim must not lose a NaN in; integrals of huge functions.

use crate::numeric::log_add_exp;

/// The larger of two numbers; NaN if one of them is, so that a check on it fails.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// The smaller of two numbers; NaN if one of them is.
pub(super) fn smaller(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

/// max |aᵢ − bᵢ|.
pub(super) fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |worst, (a, b)| larger(worst, (a - b).abs()))
}

/// The angle between two vectors, in radians; exact also where it is tiny.
pub(super) fn angle(a: &[f64], b: &[f64]) -> f64 {
    let (na, nb) = (crate::linalg::norm2(a), crate::linalg::norm2(b));
    let chord = a.iter().zip(b).map(|(x, y)| (x / na - y / nb).powi(2)).sum::<f64>().sqrt();
    2.0 * (0.5 * chord).min(1.0).asin()
}

/// ln ∫ e^{h(v)} dv between two ends, by Gauss and Legendre's three points on pieces of at most a quarter; −∞ where the
/// upper end is not above the lower.
pub(super) fn log_integral(from: f64, to: f64, h: impl Fn(f64) -> f64) -> f64 {
    const NODES: [(f64, f64); 3] =
        [(-0.774_596_669_241_483_4, 5.0 / 9.0), (0.0, 8.0 / 9.0), (0.774_596_669_241_483_4, 5.0 / 9.0)];
    if to <= from {
        return f64::NEG_INFINITY;
    }
    let pieces = ((to - from) / 0.25).ceil();
    let half = 0.5 * (to - from) / pieces;
    let mut total = f64::NEG_INFINITY;
    for piece in 0..pieces as usize {
        for (node, weight) in NODES {
            let v = from + half * (2.0 * piece as f64 + 1.0 + node);
            total = log_add_exp(total, (weight * half).ln() + h(v));
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_integral_of_an_exponential_is_exact_to_many_digits() {
        // ∫ e^v from 0 to 1000, and ∫ v e^v = (v − 1) e^v
        assert!((log_integral(0.0, 1000.0, |v| v) - 1000.0).abs() < 1e-8);
        assert!((log_integral(1.0, 2.0, |v| v + v.ln()) - 2.0).abs() < 1e-7);
        assert_eq!(log_integral(1.0, 1.0, |v| v), f64::NEG_INFINITY);
    }
}
