//! Outward slack for sums in double precision.
//!
//! A product that underflows is off by at most 2⁻¹⁰⁷⁵, whatever its size: [`UNDERFLOW`] makes up for up to 2⁵⁰ of them.

/// Half the distance from 1 to the next double.
pub(super) const UNIT: f64 = 0.5 * f64::EPSILON;

/// More than all the underflows in a sum.
pub(super) const UNDERFLOW: f64 = f64::MIN_POSITIVE;

/// γₙ = nu/(1 − nu): a sum of n products, in any order, is off by at most γₙ Σ|aᵢbᵢ|. Higham 2002, "Accuracy and
/// Stability of Numerical Algorithms", section 3.1. A little larger, to be above it as computed.
pub(super) fn gamma(n: usize) -> f64 {
    let share = (n + 2) as f64 * UNIT;
    share / (1.0 - share) * (1.0 + 8.0 * UNIT)
}

/// A positive number that is off by a factor (1 ± γₙ) and by underflow, made too large.
pub(super) fn up(x: f64, n: usize) -> f64 {
    x * (1.0 + 2.0 * gamma(n)) + UNDERFLOW
}
