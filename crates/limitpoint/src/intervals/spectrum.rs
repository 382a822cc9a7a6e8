//! Singular values and eigenvalues with proven error bounds.
//!
//! A computed decomposition proves itself. With Û, V̂ the computed vectors as columns (rows × k and cols × k, k the
//! smaller side), Σ̂ the computed values and any matrix A,
//!
//! ```text
//! δ_U = ‖ÛᵀÛ − I‖_F,  δ_V likewise,   r = ‖A − ÛΣ̂V̂ᵀ‖_F
//! σ̂ᵢ √((1 − δ_U)(1 − δ_V)) − r  ≤  σᵢ(A)  ≤  σ̂ᵢ √((1 + δ_U)(1 + δ_V)) + r
//! ```
//!
//! because the singular values of Û lie in [√(1 − δ_U), √(1 + δ_U)], multiplying by a matrix with singular values in
//! [a, b] moves σᵢ by a factor in [a, b] (Horn and Johnson 1991, Theorem 3.3.16; the lower end since Û is injective),
//! and adding a matrix moves it by at most its norm (Weyl). For a symmetric matrix and its eigenvalues λᵢ(Q̂Λ̂Q̂ᵀ) ∈
//! λ̂ᵢ·[1 − δ, 1 + δ] (Ostrowski; Horn and Johnson 2013, Theorem 4.5.9). δ and r are bounded in interval arithmetic, so
//! nothing is believed of the program that found the decomposition.

use super::interval::{ExactSum, Interval, enclosed_dot, enclosed_sum};
use crate::linalg::{Eigen, LinalgError, Svd};

/// The values of a decomposition and how far the true ones can be from them.
pub(crate) struct Spectrum {
    /// Computed values, decreasing.
    values: Vec<f64>,
    /// The relative part of the error.
    factor: Interval,
    /// The absolute part of the error.
    radius: f64,
}

impl Spectrum {
    /// Of the singular values of a row-major matrix of intervals.
    pub(crate) fn singular(matrix: &[Interval], rows: usize, cols: usize) -> Result<Self, LinalgError> {
        let (centre, spread) = split(matrix);
        let mut svd = Svd::new(rows, cols);
        svd.factor(&centre)?;
        let count = rows.min(cols);
        let left: Vec<&[f64]> = (0..count).map(|k| svd.left(k)).collect();
        let right: Vec<&[f64]> = (0..count).map(|k| svd.right(k)).collect();
        let (left_factor, right_factor) = (near_isometry(&left), near_isometry(&right));
        let residual = residual(&centre, &left, svd.values(), &right, right_factor.hi);
        let factor = (left_factor * right_factor).sqrt();
        let mut values = svd.values().to_vec();
        values.sort_by(|a, b| b.total_cmp(a));
        Ok(Self { values, factor, radius: up(residual, spread) })
    }

    /// Of the eigenvalues of the symmetric part of a row-major square matrix of intervals.
    pub(crate) fn symmetric(matrix: &[Interval], size: usize) -> Result<Self, LinalgError> {
        let half = Interval::point(0.5);
        let entry = |i: usize, j: usize| (matrix[i * size + j] + matrix[j * size + i]) * half;
        let symmetric: Vec<Interval> = (0..size * size).map(|at| entry(at / size, at % size)).collect();
        let (centre, spread) = split(&symmetric);
        let mut eigen = Eigen::new(size);
        eigen.factor(&centre)?;
        let vectors: Vec<&[f64]> = (0..size).map(|k| eigen.vector(k)).collect();
        let factor = near_isometry(&vectors);
        let residual = residual(&centre, &vectors, eigen.values(), &vectors, factor.hi);
        let mut values = eigen.values().to_vec();
        values.sort_by(|a, b| b.total_cmp(a));
        Ok(Self { values, factor, radius: up(residual, spread) })
    }

    /// The k-th largest value, from 0; exactly 0 beyond the last.
    pub(crate) fn value(&self, k: usize) -> Interval {
        let error = Interval::new(-self.radius, self.radius);
        self.values.get(k).map_or(Interval::ZERO, |value| Interval::point(*value) * self.factor + error)
    }

    /// The smallest value.
    pub(crate) fn smallest(&self) -> Interval {
        self.value(self.values.len().saturating_sub(1))
    }

    /// The sum of singular values; the nuclear norm of an error of Frobenius norm r is at most √k·r.
    pub(crate) fn sum(&self) -> Interval {
        let sum = enclosed_sum(self.values.iter().map(|value| Interval::point(*value)));
        let radius = (Interval::point(self.values.len() as f64).sqrt() * Interval::point(self.radius)).hi;
        (sum * self.factor + Interval::new(-radius, radius)).max(Interval::ZERO)
    }
}

/// Midpoints, and a bound on the Frobenius norm of the distance from them.
fn split(matrix: &[Interval]) -> (Vec<f64>, f64) {
    let centre: Vec<f64> = matrix.iter().map(|x| if x.lo == x.hi { x.lo } else { 0.5 * x.lo + 0.5 * x.hi }).collect();
    let distance = matrix.iter().zip(&centre).map(|(x, c)| *x - Interval::point(*c));
    (centre.clone(), length(distance))
}

/// An upper bound of √Σxᵢ².
fn length(entries: impl Iterator<Item = Interval>) -> f64 {
    let mut sum = ExactSum::default();
    entries.map(Interval::magnitude).for_each(|x| sum.add_product(x, x));
    sum.enclosure().sqrt().hi
}

/// An interval that holds the squared singular values of the matrix with these columns: [1 − δ, 1 + δ].
fn near_isometry(columns: &[&[f64]]) -> Interval {
    let pairs = (0..columns.len()).flat_map(|a| (0..=a).map(move |b| (a, b)));
    let defect = length(pairs.flat_map(|(a, b)| {
        let product = enclosed_dot(columns[a], columns[b]);
        // entries off the diagonal occur twice
        if a == b { [product - Interval::point(1.0), Interval::ZERO] } else { [product, product] }
    }));
    Interval::point(1.0) + Interval::new(-defect.min(1.0), defect)
}

/// An upper bound of ‖A − Σₖ valueₖ leftₖ rightₖᵀ‖_F for a row-major A; `square` bounds the largest squared singular
/// value of the right vectors.
///
/// The products bₖ = fl(valueₖ leftₖ) are formed first; what their rounding leaves out is at most 2⁻⁵³|bₖ| in every
/// entry.
fn residual(matrix: &[f64], left: &[&[f64]], values: &[f64], right: &[&[f64]], square: f64) -> f64 {
    let (rows, cols) = (left.first().map_or(0, |v| v.len()), right.first().map_or(0, |v| v.len()));
    let scaled: Vec<Vec<f64>> =
        left.iter().zip(values).map(|(column, value)| column.iter().map(|x| value * x).collect()).collect();
    let rounding =
        Interval::point(f64::EPSILON) * Interval::point(length(scaled.iter().flatten().map(|x| Interval::point(*x))));
    let rounding = rounding + Interval::point(f64::MIN_POSITIVE); // products that vanish
    let mut sums = vec![ExactSum::default(); cols];
    let mut total = ExactSum::default();
    for i in 0..rows {
        sums.iter_mut().zip(&matrix[i * cols..(i + 1) * cols]).for_each(|(sum, x)| *sum = ExactSum::starting_at(*x));
        for (column, right) in scaled.iter().zip(right).filter(|(column, _)| column[i] != 0.0) {
            sums.iter_mut().zip(*right).for_each(|(sum, v)| sum.add_product(-column[i], *v));
        }
        for sum in &sums {
            let entry = sum.enclosure().magnitude();
            total.add_product(entry, entry);
        }
    }
    (total.enclosure().sqrt() + rounding * Interval::point(square).sqrt()).hi
}

/// An upper bound of a + b.
fn up(a: f64, b: f64) -> f64 {
    (Interval::point(a) + Interval::point(b)).hi
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    fn points(matrix: &[f64]) -> Vec<Interval> {
        matrix.iter().map(|x| Interval::point(*x)).collect()
    }

    #[test]
    fn singular_values_known_in_closed_form_are_enclosed() {
        // AᵀA = (25, 20; 20, 25) has the eigenvalues 45 and 5
        let spectrum = Spectrum::singular(&points(&[3.0, 0.0, 4.0, 5.0]), 2, 2).unwrap();
        for (k, square) in [(0, 45.0), (1, 5.0)] {
            let value = spectrum.value(k);
            assert!(value.square().contains(square) && value.width() < 1e-13, "{value:?}");
        }
        assert_eq!(spectrum.value(2), Interval::ZERO);
        // (σ₁ + σ₂)² = 45 + 5 + 2·15
        assert!(spectrum.sum().square().contains(80.0) && spectrum.sum().width() < 1e-13);
        let zero = Spectrum::singular(&points(&[0.0; 6]), 2, 3).unwrap();
        assert!(zero.value(0).contains(0.0) && zero.sum().hi < 1e-300);
    }

    #[test]
    fn eigenvalues_known_in_closed_form_are_enclosed() {
        // the second-difference matrix has the eigenvalues 2 − 2cos(kπ/(n+1)); n = 5: 2 ± √3, 2 ± 1, 2
        let size = 5;
        let entry = |i: usize, j: usize| [2.0, -1.0].get(i.abs_diff(j)).copied().unwrap_or(0.0);
        let matrix: Vec<f64> = (0..size * size).map(|at| entry(at / size, at % size)).collect();
        let spectrum = Spectrum::symmetric(&points(&matrix), size).unwrap();
        let two = Interval::point(2.0);
        assert!((spectrum.value(0) - two).square().contains(3.0) && (spectrum.smallest() - two).square().contains(3.0));
        assert!(spectrum.value(1).contains(3.0) && spectrum.value(2).contains(2.0) && spectrum.value(3).contains(1.0));
        assert!(spectrum.value(0).width() < 1e-13);
        // only the symmetric part counts: (0, 2; 0, 0) has the symmetric part (0, 1; 1, 0)
        let spectrum = Spectrum::symmetric(&points(&[0.0, 2.0, 0.0, 0.0]), 2).unwrap();
        assert!(spectrum.value(0).contains(1.0) && spectrum.smallest().contains(-1.0));
    }

    #[test]
    fn a_wrong_decomposition_does_not_prove_a_wrong_value() {
        // the identity with vectors that are 1% too long and values that are 1% too small
        let columns = [[1.01, 0.0], [0.0, 1.01]];
        let vectors: Vec<&[f64]> = columns.iter().map(|c| c.as_slice()).collect();
        let factor = near_isometry(&vectors);
        assert!(factor.contains(1.01 * 1.01), "{factor:?}");
        let radius = residual(&[1.0, 0.0, 0.0, 1.0], &vectors, &[0.99, 0.99], &vectors, factor.hi);
        let spectrum = Spectrum { values: vec![0.99, 0.99], factor: (factor * factor).sqrt(), radius };
        assert!(spectrum.value(0).contains(1.0) && spectrum.value(1).contains(1.0));
    }

    #[test]
    fn widths_stay_near_rounding() {
        let mut stream = Streams::new(3).stream("spectrum");
        for (rows, cols) in [(5, 5), (28, 28), (10, 64), (60, 20)] {
            let mut matrix = vec![0.0; rows * cols];
            stream.fill_normal(&mut matrix);
            let spectrum = Spectrum::singular(&points(&matrix), rows, cols).unwrap();
            let (largest, sum) = (spectrum.value(0), spectrum.sum());
            assert!(largest.width() < 1e-13 * largest.lo, "{rows}x{cols}: {}", largest.width() / largest.lo);
            assert!(sum.width() < 1e-13 * sum.lo, "{rows}x{cols}: {}", sum.width() / sum.lo);
            // entries known to 1e-6 only
            let fuzzy: Vec<Interval> = matrix.iter().map(|x| Interval::new(x - 1e-6, x + 1e-6)).collect();
            let wide = Spectrum::singular(&fuzzy, rows, cols).unwrap().value(0);
            assert!(wide.lo <= largest.lo && largest.hi <= wide.hi && wide.width() > 1e-6);
        }
    }
}
