//! The Cholesky factor of a symmetric positive definite matrix, with its buffers kept between calls.

use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor::{LltRegularization, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::cholesky::llt::solve::{solve_in_place, solve_in_place_scratch};
use faer::{MatMut, MatRef, Par};

use super::LinalgError;

/// A = L Lᵀ for symmetric positive definite matrices of one size.
///
/// ```
/// use limitpoint::linalg::Cholesky;
/// let mut cholesky = Cholesky::new(2);
/// cholesky.factor(&[4.0, 2.0, 2.0, 3.0], 0.0)?;
/// let mut x = [8.0, 7.0];
/// cholesky.solve(&mut x);
/// assert!((x[0] - 1.25).abs() < 1e-15 && (x[1] - 1.5).abs() < 1e-15);
/// # Ok::<(), limitpoint::linalg::LinalgError>(())
/// ```
pub struct Cholesky {
    size: usize,
    factor: Vec<f64>,
    scratch: MemBuffer,
}

impl Cholesky {
    /// Buffers for matrices of `size` rows.
    pub fn new(size: usize) -> Self {
        let need = StackReq::any_of(&[
            cholesky_in_place_scratch::<f64>(size, Par::Seq, Default::default()),
            solve_in_place_scratch::<f64>(size, 1, Par::Seq),
        ]);
        Self { size, factor: vec![0.0; size * size], scratch: MemBuffer::new(need) }
    }

    /// Number of rows of the matrices this factors.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Factors a symmetric matrix, of which the lower triangle of each row is read. A pivot at or below `floor` is
    /// replaced by an infinite one if `floor` is positive, which leaves that direction out of later solutions;
    /// otherwise a pivot that is not positive is refused.
    pub fn factor(&mut self, a: &[f64], floor: f64) -> Result<(), LinalgError> {
        let size = self.size;
        if a.len() != size * size {
            return Err(LinalgError::Shape { what: "the matrix to factor", found: a.len(), expected: size * size });
        }
        self.factor.copy_from_slice(a);
        // the rows of a symmetric matrix are the columns that faer expects; its lower triangle is our upper one
        for i in 0..size {
            for j in 0..i {
                self.factor[j * size + i] = a[i * size + j];
            }
        }
        let regularization = LltRegularization {
            dynamic_regularization_delta: 1e128 * floor.signum().max(0.0),
            dynamic_regularization_epsilon: floor,
        };
        cholesky_in_place(
            MatMut::from_column_major_slice_mut(&mut self.factor, size, size),
            regularization,
            Par::Seq,
            MemStack::new(&mut self.scratch),
            Default::default(),
        )
        .map_err(|_| LinalgError::NotPositive { size })?;
        // where a pivot was replaced, faer 0.24 scales the column but leaves the old diagonal in it
        for j in 0..size {
            let diagonal = &mut self.factor[j * size + j];
            if *diagonal < 0.5 * floor.sqrt() {
                *diagonal = 1e64;
            }
        }
        Ok(())
    }

    /// x ← A⁻¹x.
    pub fn solve(&mut self, x: &mut [f64]) {
        solve_in_place(
            MatRef::from_column_major_slice(&self.factor, self.size, self.size),
            MatMut::from_column_major_slice_mut(x, self.size, 1),
            Par::Seq,
            MemStack::new(&mut self.scratch),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependent_row_is_left_out_under_a_floor_and_refused_without() {
        let a = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 2.0];
        let mut cholesky = Cholesky::new(3);
        assert_eq!(cholesky.factor(&a, 0.0), Err(LinalgError::NotPositive { size: 3 }));
        cholesky.factor(&a, 1e-12).unwrap();
        let mut x = [3.0, 3.0, 4.0];
        cholesky.solve(&mut x);
        assert!((x[0] + x[1] - 3.0).abs() < 1e-12 && (x[2] - 2.0).abs() < 1e-12, "{x:?}");
    }

    #[test]
    fn a_larger_matrix_is_solved_to_rounding() {
        let size = 150;
        let entry = |i: usize, j: usize| ((i * 31 + j * 17) % 23) as f64 / 23.0;
        let mut a = vec![0.0; size * size];
        for i in 0..size {
            for j in 0..size {
                a[i * size + j] =
                    (0..size).map(|k| entry(i, k) * entry(j, k)).sum::<f64>() + if i == j { 1.0 } else { 0.0 };
            }
        }
        let expected: Vec<f64> = (0..size).map(|i| (i % 7) as f64 - 3.0).collect();
        let mut x: Vec<f64> = (0..size).map(|i| crate::linalg::dot(&a[i * size..(i + 1) * size], &expected)).collect();
        let mut cholesky = Cholesky::new(size);
        cholesky.factor(&a, 0.0).unwrap();
        cholesky.solve(&mut x);
        assert!(x.iter().zip(&expected).all(|(x, e)| (x - e).abs() < 1e-9));
    }
}
