//! The numbers a solver can be written for: doubles, and [`Precise`](super::Precise) ones with twice their digits.

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use super::{Cholesky, LinalgError, Matrix};

/// Vectors and matrices of such numbers.
pub trait Vectors: Sized {
    /// Σ aᵢbᵢ.
    fn dot(a: &[Self], b: &[Self]) -> Self;
    /// out += factor·x.
    fn add_scaled(out: &mut [Self], factor: Self, x: &[Self]);
    /// C = A B for row-major A (m×k), B (k×n), C (m×n).
    fn matmul(c: &mut [Self], a: &[Self], b: &[Self], m: usize, k: usize, n: usize);
    /// out += MᵀDM for the rows of M and weights D ≥ 0; the lower triangle is enough.
    fn add_gram(out: &mut [Self], rows: &Matrix, weights: &[Self]);
    /// ‖v‖₂.
    fn norm2(v: &[Self]) -> Self;
}

/// A real number with the operations that the conic solver asks for. For doubles they are the library's own kernels.
pub trait Scalar:
    Vectors
    + Copy
    + Default
    + Debug
    + PartialOrd
    + From<f64>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + Send
    + Sync
    + 'static
{
    /// The Cholesky factors of a matrix of such numbers.
    type Factor: Factor<Self>;

    /// The nearest double.
    fn value(self) -> f64;
    /// √x.
    fn root(self) -> Self;
    /// |x|.
    fn size(self) -> Self;
    /// x^y for x ≥ 0.
    fn power(self, exponent: f64) -> Self;
    /// x·y for a double y.
    fn times(self, factor: f64) -> Self;

    /// Whether it is a number.
    fn is_finite(self) -> bool {
        self.value().is_finite()
    }

    /// The smaller of two.
    fn least(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}

/// Solves with a factored matrix.
pub trait Factor<T>: Sized {
    /// A = L Lᵀ of a symmetric matrix, of which the lower triangle is read; a pivot at or below `floor` leaves its
    /// direction out of later solutions.
    fn of(a: &[T], size: usize, floor: f64) -> Result<Self, LinalgError>;
    /// x ← A⁻¹x.
    fn solve(&mut self, x: &mut [T]);
}

impl Scalar for f64 {
    type Factor = Cholesky;

    fn value(self) -> f64 {
        self
    }

    fn root(self) -> Self {
        self.sqrt()
    }

    fn size(self) -> Self {
        self.abs()
    }

    fn power(self, exponent: f64) -> Self {
        self.powf(exponent)
    }

    fn times(self, factor: f64) -> Self {
        self * factor
    }
}

impl Vectors for f64 {
    fn dot(a: &[Self], b: &[Self]) -> Self {
        super::dot(a, b)
    }

    fn add_scaled(out: &mut [Self], factor: Self, x: &[Self]) {
        super::add_scaled(out, factor, x);
    }

    fn matmul(c: &mut [Self], a: &[Self], b: &[Self], m: usize, k: usize, n: usize) {
        super::matmul(c, a, b, m, k, n);
    }

    fn norm2(v: &[Self]) -> Self {
        super::norm2(v)
    }

    fn add_gram(out: &mut [Self], rows: &Matrix, weights: &[Self]) {
        let n = rows.cols;
        let mut scaled = rows.clone();
        for (i, weight) in weights.iter().enumerate() {
            let root = weight.sqrt();
            scaled.row_mut(i).iter_mut().for_each(|x| *x *= root);
        }
        let mut product = vec![0.0; n * n];
        super::matmul_tn(&mut product, &scaled.data, &scaled.data, n, scaled.rows, n);
        super::add_scaled(out, 1.0, &product);
    }
}

impl Factor<f64> for Cholesky {
    fn of(a: &[f64], size: usize, floor: f64) -> Result<Self, LinalgError> {
        let mut cholesky = Self::new(size);
        cholesky.factor(a, floor)?;
        Ok(cholesky)
    }

    fn solve(&mut self, x: &mut [f64]) {
        Cholesky::solve(self, x);
    }
}
