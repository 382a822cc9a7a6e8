//! The inverse of a square matrix, by elimination with row pivots.

use faer::MatRef;
use faer::linalg::solvers::{DenseSolveCore, PartialPivLu};

/// A⁻¹, row by row, and the pivots of the elimination; where a pivot is 0 the inverse is not finite.
///
/// ```
/// use limitpoint::linalg::invert;
/// let (inverse, pivots) = invert(&[0.0, 2.0, 4.0, 1.0], 2);
/// assert_eq!(inverse, [-0.125, 0.25, 0.5, 0.0]);
/// assert_eq!(pivots, [4.0, 2.0]);
/// ```
pub fn invert(a: &[f64], size: usize) -> (Vec<f64>, Vec<f64>) {
    let factors = PartialPivLu::new(MatRef::from_row_major_slice(a, size, size));
    let pivots = (0..size).map(|k| factors.U()[(k, k)]).collect();
    let inverse = factors.inverse();
    let rows = (0..size).flat_map(|i| (0..size).map(move |j| (i, j)));
    (rows.map(|(i, j)| inverse[(i, j)]).collect(), pivots)
}
