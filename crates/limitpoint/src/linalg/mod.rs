//! Vectors and matrices, dense and sparse; what a matrix means is decided elsewhere.
//!
//! Vectors are plain slices. Matrices are row-major slices with a shape, owned by [`Matrix`] where ownership is needed,
//! and shared by [`SharedMatrix`] where many look at the same numbers.
//! Decompositions are thin over faer, large products over `gemm`; the small fused products that the networks live on
//! are in `tile`, and [`Team`] shares them out over threads without changing a bit of the result.

mod aligned;
mod cholesky;
mod decompositions;
mod fetch;
mod lu;
mod matrix;
mod panels;
mod precise;
mod real;
mod scalar;
mod shared;
mod sparse;
mod team;
pub(crate) mod tile;
mod vector;

pub use aligned::Aligned;
pub use cholesky::Cholesky;
pub use decompositions::{Eigen, Svd, symmetric_function};
pub(crate) use fetch::fetch;
pub use lu::invert;
pub use matrix::{Matrix, Table, matmul, matmul_nt, matmul_tn};
pub(crate) use panels::by_panels;
pub use panels::{PANEL_VECTORS, Panels, lanes};
pub use precise::Precise;
pub use real::{Lanewise, Real, Registers};
pub use scalar::{Factor, Scalar, Vectors};
pub use shared::{Lender, SharedMatrix};
pub use sparse::SparseMatrix;
pub use team::{SharedSlice, Team};
pub use vector::{add_scaled, dot, max_abs, norm2, sign, sum_abs};

/// What linear algebra can refuse.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinalgError {
    /// An iterative decomposition did not converge, which happens only for non-finite input.
    #[error("the {what} of a {rows}x{cols} matrix did not converge; check it for NaN or infinite entries")]
    NoConvergence {
        /// Name of the decomposition.
        what: &'static str,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
    /// A matrix to factor is not positive definite.
    #[error(
        "a {size}x{size} matrix is not positive definite, so it has no Cholesky factor; check it for dependent rows"
    )]
    NotPositive {
        /// Rows of the matrix.
        size: usize,
    },
    /// Two shapes that must agree do not.
    #[error("{what} has {found} entries where {expected} are needed")]
    Shape {
        /// What was passed.
        what: &'static str,
        /// Its size.
        found: usize,
        /// The size required.
        expected: usize,
    },
    /// A sparse matrix with an entry outside, out of order or given twice.
    #[error(
        "entry ({row}, {column}) of a {rows}x{cols} sparse matrix is outside of it, out of order or given twice; \
         name every place once, by increasing column along a row"
    )]
    SparseEntry {
        /// Row of the entry, from 0.
        row: usize,
        /// Its column, from 0.
        column: usize,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
}
