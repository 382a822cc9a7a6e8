//! Dense linear algebra in plain doubles: nothing here has to be exact, since what is made of it is proven afterwards.

use crate::linalg::{Eigen, dot, invert, norm2};

/// Eigenvalues below this share of the largest count as 0.
const RANK: f64 = 1e-14;
/// Pivots below this share of the largest entry make a matrix singular.
const SINGULAR: f64 = 1e-15;

/// A⁻¹ by elimination with row pivots, or the column where it broke down.
pub(super) fn inverse(a: &[f64], size: usize) -> Result<Vec<f64>, usize> {
    // rows are scaled to their largest entry, so that a pivot is small only if the matrix is near a singular one
    let scales: Vec<f64> =
        a.chunks_exact(size.max(1)).map(|row| row.iter().fold(0.0, |m: f64, x| m.max(x.abs()))).collect();
    if let Some(row) = scales.iter().position(|s| !(*s > 0.0 && s.is_finite())) {
        return Err(row);
    }
    let scaled: Vec<f64> =
        a.chunks_exact(size.max(1)).zip(&scales).flat_map(|(row, s)| row.iter().map(move |x| x / s)).collect();
    let (mut inverse, pivots) = invert(&scaled, size);
    if let Some(k) = pivots.iter().position(|pivot| pivot.is_nan() || pivot.abs() <= SINGULAR) {
        return Err(k);
    }
    inverse.chunks_exact_mut(size.max(1)).for_each(|row| row.iter_mut().zip(&scales).for_each(|(x, s)| *x /= s));
    Ok(inverse)
}

/// The shortest x that minimises ‖Ax − b‖ for a symmetric A ≥ 0.
pub(super) fn solve_symmetric(a: &[f64], b: &[f64]) -> Vec<f64> {
    let size = b.len();
    let mut eigen = Eigen::new(size);
    let mut x = vec![0.0; size];
    if eigen.factor(a).is_err() {
        return x;
    }
    let largest = eigen.values().last().copied().unwrap_or(0.0);
    for k in (0..size).filter(|&k| eigen.values()[k] > RANK * largest) {
        let vector = eigen.vector(k);
        crate::linalg::add_scaled(&mut x, dot(vector, b) / eigen.values()[k], vector);
    }
    x
}

/// The largest eigenvalue of a symmetric matrix; 0 for one that has none.
pub(super) fn largest_eigenvalue(a: &[f64], size: usize) -> f64 {
    let mut eigen = Eigen::new(size);
    match eigen.factor(a) {
        Ok(()) => eigen.values().last().copied().unwrap_or(0.0).max(0.0),
        Err(_) => f64::INFINITY,
    }
}

/// Indices of at most `most` vectors that are as independent as possible, by pivoted orthogonalisation.
pub(super) fn pivots(vectors: &[&[f64]], most: usize) -> Vec<usize> {
    let mut rest: Vec<Vec<f64>> = vectors.iter().map(|v| v.to_vec()).collect();
    let mut chosen = Vec::new();
    while chosen.len() < most {
        let next = (0..rest.len())
            .filter(|k| !chosen.contains(k))
            .max_by(|&a, &b| norm2(&rest[a]).total_cmp(&norm2(&rest[b])));
        let Some(next) = next else { break };
        chosen.push(next);
        let size = norm2(&rest[next]);
        let unit: Vec<f64> = rest[next].iter().map(|x| x / size).collect();
        for vector in &mut rest {
            let part = dot(vector, &unit);
            vector.iter_mut().zip(&unit).for_each(|(x, u)| *x -= part * u);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inverse_inverts_and_a_singular_matrix_is_told() {
        let a = [0.0, 2.0, 1.0, 3.0, -1.0, 4.0, 1.0, 1.0, 1e6];
        let inverse = inverse(&a, 3).unwrap();
        let mut product = [0.0; 9];
        crate::linalg::matmul(&mut product, &a, &inverse, 3, 3, 3);
        for i in 0..3 {
            for j in 0..3 {
                assert!((product[3 * i + j] - f64::from(u8::from(i == j))).abs() < 1e-10, "{product:?}");
            }
        }
        assert_eq!(super::inverse(&[1.0, 2.0, 2.0, 4.0], 2), Err(1));
        assert_eq!(super::inverse(&[1.0, 2.0, 0.0, 0.0], 2), Err(1));
    }

    #[test]
    fn pivots_are_independent_and_least_squares_is_the_shortest() {
        assert_eq!(pivots(&[&[1.0, 0.0], &[2.0, 0.0], &[0.0, 1.0]], 2), [1, 2]);
        let x = solve_symmetric(&[1.0, 1.0, 1.0, 1.0], &[2.0, 2.0]);
        assert!((x[0] - 1.0).abs() < 1e-12 && (x[1] - 1.0).abs() < 1e-12);
    }
}
