//! Singular values, the polar factor and symmetric eigendecompositions, with their buffers kept between calls.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::{MatMut, MatRef, Par};

use super::LinalgError;

/// The thin singular value decomposition A = Σₖ σₖ uₖ vₖᵀ of matrices of one shape.
///
/// After [`Svd::factor`]: `values` are σ₁ ≥ σ₂ ≥ … ≥ 0, `left[k]` is uₖ (length rows) and `right[k]` is vₖ (length
/// cols), both stored vector after vector. Nothing is allocated after construction.
///
/// ```
/// use limitpoint::linalg::Svd;
/// let mut svd = Svd::new(2, 3);
/// svd.factor(&[3.0, 0.0, 0.0, 0.0, 4.0, 0.0])?;
/// assert_eq!(svd.values(), [4.0, 3.0]);
/// let mut polar = [0.0; 6];
/// svd.polar_factor(&mut polar);
/// assert!((polar[0] - 1.0).abs() < 1e-15 && (polar[4] - 1.0).abs() < 1e-15);
/// # Ok::<(), limitpoint::linalg::LinalgError>(())
/// ```
pub struct Svd {
    rows: usize,
    cols: usize,
    values: Vec<f64>,
    left: Vec<f64>,
    right: Vec<f64>,
    scratch: MemBuffer,
}

impl Svd {
    /// Buffers for matrices of shape `rows` × `cols`.
    pub fn new(rows: usize, cols: usize) -> Self {
        let size = rows.min(cols);
        let thin = ComputeSvdVectors::Thin;
        let need = svd_scratch::<f64>(rows, cols, thin, thin, Par::Seq, Default::default());
        Self {
            rows,
            cols,
            values: vec![0.0; size],
            left: vec![0.0; size * rows],
            right: vec![0.0; size * cols],
            scratch: MemBuffer::new(need),
        }
    }

    /// Number of rows of the matrices this factors.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns of the matrices this factors.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Decomposes a row-major matrix. Refuses non-finite entries.
    pub fn factor(&mut self, a: &[f64]) -> Result<(), LinalgError> {
        let (rows, cols) = (self.rows, self.cols);
        if a.len() != rows * cols {
            return Err(LinalgError::Shape { what: "the matrix to decompose", found: a.len(), expected: rows * cols });
        }
        let failed = LinalgError::NoConvergence { what: "singular value decomposition", rows, cols };
        if a.iter().any(|x| !x.is_finite()) {
            return Err(failed);
        }
        let size = self.values.len();
        svd(
            MatRef::from_row_major_slice(a, rows, cols),
            DiagMut::from_slice_mut(&mut self.values),
            Some(MatMut::from_column_major_slice_mut(&mut self.left, rows, size)),
            Some(MatMut::from_column_major_slice_mut(&mut self.right, cols, size)),
            Par::Seq,
            MemStack::new(&mut self.scratch),
            Default::default(),
        )
        .map_err(|_| failed)
    }

    /// σ₁ ≥ σ₂ ≥ … of the last matrix.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// uₖ of the last matrix.
    pub fn left(&self, k: usize) -> &[f64] {
        &self.left[k * self.rows..(k + 1) * self.rows]
    }

    /// vₖ of the last matrix.
    pub fn right(&self, k: usize) -> &[f64] {
        &self.right[k * self.cols..(k + 1) * self.cols]
    }

    /// The number of singular values above rounding: σₖ > max(rows, cols) · ε · σ₁.
    pub fn rank(&self) -> usize {
        let floor = self.values.first().unwrap_or(&0.0) * self.rows.max(self.cols) as f64 * f64::EPSILON;
        self.values.iter().filter(|s| **s > floor).count()
    }

    /// The exact polar factor Σ uₖ vₖᵀ over the nonzero singular values, row-major.
    pub fn polar_factor(&self, out: &mut [f64]) {
        let rank = self.rank();
        self.recompose(|k, _| if k < rank { 1.0 } else { 0.0 }, out);
    }

    /// Σ weight(k, σₖ) uₖ vₖᵀ, row-major; terms of weight 0 are skipped.
    pub fn recompose(&self, weight: impl Fn(usize, f64) -> f64, out: &mut [f64]) {
        out.fill(0.0);
        for (k, &value) in self.values.iter().enumerate() {
            let w = weight(k, value);
            if w == 0.0 {
                continue;
            }
            let right = self.right(k);
            for (row, &u) in out.chunks_exact_mut(self.cols).zip(self.left(k)) {
                super::add_scaled(row, w * u, right);
            }
        }
    }
}

/// The eigendecomposition A = Σₖ λₖ uₖ uₖᵀ of symmetric matrices of one size (the lower triangle is read).
///
/// ```
/// use limitpoint::linalg::Eigen;
/// let mut eigen = Eigen::new(2);
/// eigen.factor(&[2.0, 1.0, 1.0, 2.0])?;
/// assert!((eigen.values()[0] - 1.0).abs() < 1e-14 && (eigen.values()[1] - 3.0).abs() < 1e-14);
/// # Ok::<(), limitpoint::linalg::LinalgError>(())
/// ```
pub struct Eigen {
    size: usize,
    values: Vec<f64>,
    vectors: Vec<f64>,
    scratch: MemBuffer,
}

impl Eigen {
    /// Buffers for `size` × `size` matrices.
    pub fn new(size: usize) -> Self {
        let need = self_adjoint_evd_scratch::<f64>(size.max(1), ComputeEigenvectors::Yes, Par::Seq, Default::default());
        Self { size, values: vec![0.0; size], vectors: vec![0.0; size * size], scratch: MemBuffer::new(need) }
    }

    /// Decomposes a symmetric matrix. Refuses non-finite entries.
    pub fn factor(&mut self, a: &[f64]) -> Result<(), LinalgError> {
        let size = self.size;
        if a.len() != size * size {
            return Err(LinalgError::Shape { what: "the symmetric matrix", found: a.len(), expected: size * size });
        }
        let failed = LinalgError::NoConvergence { what: "eigendecomposition", rows: size, cols: size };
        if a.iter().any(|x| !x.is_finite()) {
            return Err(failed);
        }
        self_adjoint_evd(
            MatRef::from_row_major_slice(a, size, size),
            DiagMut::from_slice_mut(&mut self.values),
            Some(MatMut::from_column_major_slice_mut(&mut self.vectors, size, size)),
            Par::Seq,
            MemStack::new(&mut self.scratch),
            Default::default(),
        )
        .map_err(|_| failed)
    }

    /// λ₁ ≤ λ₂ ≤ … of the last matrix.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// uₖ of the last matrix.
    pub fn vector(&self, k: usize) -> &[f64] {
        &self.vectors[k * self.size..(k + 1) * self.size]
    }

    /// Σ weight(λₖ) uₖ uₖᵀ, the function `weight` applied to the last matrix, row-major.
    pub fn recompose(&self, weight: impl Fn(f64) -> f64, out: &mut [f64]) {
        out.fill(0.0);
        for (k, &value) in self.values.iter().enumerate() {
            let (w, u) = (weight(value), self.vector(k));
            for (row, &x) in out.chunks_exact_mut(self.size).zip(u) {
                super::add_scaled(row, w * x, u);
            }
        }
    }
}

/// f(A) for one symmetric matrix A, by eigendecomposition.
pub fn symmetric_function(a: &[f64], size: usize, f: impl Fn(f64) -> f64) -> Result<Vec<f64>, LinalgError> {
    let mut eigen = Eigen::new(size);
    eigen.factor(a)?;
    let mut out = vec![0.0; size * size];
    eigen.recompose(f, &mut out);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    #[test]
    fn singular_vectors_rebuild_the_matrix_and_are_orthonormal() {
        let mut stream = Streams::new(0).stream("svd");
        for (rows, cols) in [(1, 1), (1, 5), (6, 1), (4, 4), (7, 3), (3, 9), (40, 25)] {
            let mut a = vec![0.0; rows * cols];
            stream.fill_normal(&mut a);
            let mut svd = Svd::new(rows, cols);
            svd.factor(&a).unwrap();
            let mut back = vec![0.0; a.len()];
            svd.recompose(|_, s| s, &mut back);
            assert!(a.iter().zip(&back).all(|(x, y)| (x - y).abs() < 1e-12));
            for k in 0..rows.min(cols) {
                for l in 0..=k {
                    let expected = f64::from(u8::from(k == l));
                    assert!((crate::linalg::dot(svd.left(k), svd.left(l)) - expected).abs() < 1e-12);
                    assert!((crate::linalg::dot(svd.right(k), svd.right(l)) - expected).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn the_polar_factor_of_a_rank_one_matrix_has_rank_one() {
        let mut svd = Svd::new(3, 2);
        svd.factor(&[2.0, 0.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
        assert_eq!(svd.rank(), 1);
        let mut polar = [0.0; 6];
        svd.polar_factor(&mut polar);
        assert!((polar[0].abs() - 1.0).abs() < 1e-14 && polar[1..].iter().all(|x| x.abs() < 1e-14));
        svd.factor(&[0.0; 6]).unwrap();
        assert_eq!(svd.rank(), 0);
    }

    #[test]
    fn non_finite_matrices_are_refused() {
        assert!(Svd::new(1, 2).factor(&[f64::NAN, 0.0]).is_err());
        assert!(Eigen::new(1).factor(&[f64::INFINITY]).is_err());
        assert!(Eigen::new(2).factor(&[1.0]).is_err());
    }

    #[test]
    fn the_square_root_of_a_matrix_squares_back() {
        let a = [5.0, 2.0, 2.0, 3.0];
        let root = symmetric_function(&a, 2, f64::sqrt).unwrap();
        let mut back = [0.0; 4];
        crate::linalg::matmul(&mut back, &root, &root, 2, 2, 2);
        assert!(a.iter().zip(&back).all(|(x, y)| (x - y).abs() < 1e-13));
    }
}
