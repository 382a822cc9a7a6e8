//! Row-major matrices and their products.

use serde::{Deserialize, Serialize};

/// A dense row-major matrix of doubles; see [`Table`] for other numbers.
///
/// ```
/// use limitpoint::linalg::Matrix;
/// let a = Matrix::from_rows(&[&[1.0, 2.0], &[3.0, 4.0]]);
/// assert_eq!(a.row(1), [3.0, 4.0]);
/// assert_eq!(a.transpose().row(1), [2.0, 4.0]);
/// ```
pub type Matrix = Table<f64>;

/// A dense row-major matrix of numbers of one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Table<T> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Entries, row by row.
    pub data: Vec<T>,
}

impl<T: Copy + Default> Table<T> {
    /// All zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![T::default(); rows * cols] }
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[T] {
        &self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, to be changed.
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        &mut self.data[i * self.cols..(i + 1) * self.cols]
    }

    /// The transposed copy.
    pub fn transpose(&self) -> Self {
        let mut out = Self::zeros(self.cols, self.rows);
        for i in 0..self.rows {
            for j in 0..self.cols {
                out.data[j * self.rows + i] = self.data[i * self.cols + j];
            }
        }
        out
    }
}

impl Matrix {
    /// From a flat row-major vector; the length must be rows · cols.
    pub fn from_vec(rows: usize, cols: usize, data: Vec<f64>) -> Result<Self, super::LinalgError> {
        if data.len() != rows * cols {
            return Err(super::LinalgError::Shape {
                what: "the matrix data",
                found: data.len(),
                expected: rows * cols,
            });
        }
        Ok(Self { rows, cols, data })
    }

    /// From rows of equal length.
    pub fn from_rows(rows: &[&[f64]]) -> Self {
        let cols = rows.first().map_or(0, |row| row.len());
        assert!(rows.iter().all(|row| row.len() == cols), "rows of a matrix have one length");
        Self { rows: rows.len(), cols, data: rows.concat() }
    }

    /// The identity.
    pub fn identity(size: usize) -> Self {
        let mut matrix = Self::zeros(size, size);
        (0..size).for_each(|i| matrix[(i, i)] = 1.0);
        matrix
    }
}

impl<T> std::ops::Index<(usize, usize)> for Table<T> {
    type Output = T;
    fn index(&self, (i, j): (usize, usize)) -> &T {
        &self.data[i * self.cols + j]
    }
}

impl<T> std::ops::IndexMut<(usize, usize)> for Table<T> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut T {
        &mut self.data[i * self.cols + j]
    }
}

/// C = A B for row-major A (m×k), B (k×n), C (m×n).
///
/// ```
/// let mut c = [0.0; 2];
/// limitpoint::linalg::matmul(&mut c, &[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0], 2, 2, 1);
/// assert_eq!(c, [17.0, 39.0]);
/// ```
pub fn matmul(c: &mut [f64], a: &[f64], b: &[f64], m: usize, k: usize, n: usize) {
    product(c, a, (k, 1), b, (n, 1), m, k, n);
}

/// C = A Bᵀ for row-major A (m×k), B (n×k), C (m×n).
pub fn matmul_nt(c: &mut [f64], a: &[f64], b: &[f64], m: usize, k: usize, n: usize) {
    product(c, a, (k, 1), b, (1, k), m, k, n);
}

/// C = Aᵀ B for row-major A (k×m), B (k×n), C (m×n).
pub fn matmul_tn(c: &mut [f64], a: &[f64], b: &[f64], m: usize, k: usize, n: usize) {
    product(c, a, (1, m), b, (n, 1), m, k, n);
}

/// One sequential `gemm` call; strides are (row, column).
#[expect(clippy::too_many_arguments, reason = "the arguments of a matrix product")]
fn product(
    c: &mut [f64],
    a: &[f64],
    a_strides: (usize, usize),
    b: &[f64],
    b_strides: (usize, usize),
    m: usize,
    k: usize,
    n: usize,
) {
    assert!(a.len() >= m * k && b.len() >= k * n && c.len() >= m * n, "operands of a product are too short");
    // SAFETY: the lengths are checked above and the strides stay inside m*k, k*n and m*n entries.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.as_ptr(),
            a_strides.1 as isize,
            a_strides.0 as isize,
            b.as_ptr(),
            b_strides.1 as isize,
            b_strides.0 as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_products_agree_with_a_triple_loop() {
        for (m, k, n) in [(1, 1, 1), (3, 4, 5), (17, 2, 9), (8, 33, 1), (0, 3, 2), (2, 0, 3)] {
            let a = Matrix { rows: m, cols: k, data: (0..m * k).map(|i| ((i * 7) % 11) as f64 - 5.0).collect() };
            let b = Matrix { rows: k, cols: n, data: (0..k * n).map(|i| ((i * 5) % 13) as f64 - 6.0).collect() };
            let mut expected = vec![0.0; m * n];
            for i in 0..m {
                for j in 0..n {
                    expected[i * n + j] = (0..k).map(|l| a[(i, l)] * b[(l, j)]).sum();
                }
            }
            let mut c = vec![f64::NAN; m * n];
            matmul(&mut c, &a.data, &b.data, m, k, n);
            assert_eq!(c, expected);
            matmul_nt(&mut c, &a.data, &b.transpose().data, m, k, n);
            assert_eq!(c, expected);
            matmul_tn(&mut c, &a.transpose().data, &b.data, m, k, n);
            assert_eq!(c, expected);
        }
    }
}
