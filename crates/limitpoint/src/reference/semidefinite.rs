//! What semidefinite problems need beside a norm.

use crate::linalg::{Eigen, LinalgError};

/// λ_max of the symmetric part of a row-major matrix.
pub(super) fn largest_eigenvalue(matrix: &[f64], size: usize) -> Result<f64, LinalgError> {
    let mut symmetric = vec![0.0; size * size];
    for i in 0..size {
        for j in 0..size {
            symmetric[i * size + j] = 0.5 * (matrix[i * size + j] + matrix[j * size + i]);
        }
    }
    let mut eigen = Eigen::new(size);
    eigen.factor(&symmetric)?;
    Ok(eigen.values().iter().copied().fold(f64::NEG_INFINITY, f64::max))
}
