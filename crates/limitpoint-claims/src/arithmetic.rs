//! Comparisons of numbers that a claim must not lose a NaN in; integrals of huge functions.

use limitpoint::numeric::log_add_exp;

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
    let (na, nb) = (limitpoint::linalg::norm2(a), limitpoint::linalg::norm2(b));
    let chord = a.iter().zip(b).map(|(x, y)| (x / na - y / nb).powi(2)).sum::<f64>().sqrt();
    2.0 * (0.5 * chord).min(1.0).asin()
}

/// Whether there are several values, each above the one before; a NaN is above nothing.
pub(super) fn rising(values: &[f64]) -> bool {
    values.len() > 1 && values.windows(2).all(|pair| pair[1] > pair[0])
}

/// The largest relative fall from one value to the next; 0 for values that never fall.
pub(super) fn largest_fall(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values = values.into_iter();
    let Some(mut old) = values.next() else { return 0.0 };
    values.fold(0.0, |worst, new| {
        let fall = (old - new) / old.abs();
        old = new;
        larger(worst, fall)
    })
}

/// ln of both sides of a bound ∫ e^{h(v)} dv ≥ c (t − t₀), the integral over v = ln 1/L from t₀ to t, at every moment
/// but the first: how the papers bound the loss. Moments are (ln 1/L, ln t), and ln c is given.
pub(super) fn loss_bound_sides(course: &[[f64; 2]], log_c: f64, h: impl Fn(f64) -> f64) -> Vec<[f64; 2]> {
    let Some([_, begin]) = course.first() else { return Vec::new() };
    let mut integral = f64::NEG_INFINITY;
    let side = |pair: &[[f64; 2]]| {
        let ([from, _], [to, now]) = (pair[0], pair[1]);
        integral = log_add_exp(integral, log_integral(from, to, &h));
        [integral, log_c + now + (-(begin - now).exp()).ln_1p()]
    };
    course.windows(2).map(side).collect()
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

    #[test]
    fn falls_are_relative_and_keep_a_nan() {
        assert_eq!(largest_fall([1.0, 2.0, 1.0, 3.0]), 0.5);
        assert_eq!(largest_fall([1.0, 1.0, 2.0]), 0.0);
        assert!(largest_fall([1.0, f64::NAN, 2.0]).is_nan());
    }

    #[test]
    fn both_sides_of_a_bound_on_the_loss() {
        // L = 1/t: u = ln t, and ∫ e^v dv from ln t₀ = t − t₀
        let course = [1.0, 2.0, 5.0].map(|u| [u, u]);
        let sides = loss_bound_sides(&course, 0.0, |v| v);
        assert!(sides.len() == 2 && sides.iter().all(|[left, right]| (left - right).abs() < 1e-7), "{sides:?}");
    }
}
