//! Comparisons of numbers that a claim must not lose a NaN in.

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
