//! What a norm can refuse when it is built.

use crate::linalg::LinalgError;
use crate::params::ParamsError;

/// Why a norm cannot be built or read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NormError {
    /// An exponent below 1 does not give a norm.
    #[error("the exponent of an lp norm is {p}; it must be at least 1 (infinity is 'linf')")]
    Exponent {
        /// The exponent given.
        p: f64,
    },
    /// A quadratic norm of another size than the parameters.
    #[error("the quadratic norm has {found} {what} where the parameters need {expected}; frozen entries do not count")]
    QuadraticSize {
        /// What was counted.
        what: &'static str,
        /// How many were given.
        found: usize,
        /// How many are needed.
        expected: usize,
    },
    /// The matrix of a quadratic norm differs from its transpose.
    #[error(
        "the matrix of the quadratic norm has {above} at ({row}, {col}) but {below} at ({col}, {row}); make it symmetric"
    )]
    NotSymmetric {
        /// Row of the entry above the diagonal.
        row: usize,
        /// Its column.
        col: usize,
        /// The entry.
        above: f64,
        /// Its mirror image.
        below: f64,
    },
    /// The matrix of a quadratic norm is not positive definite.
    #[error("the quadratic norm has the eigenvalue {eigenvalue}; all must be positive, finite and above {floor:e}")]
    NotPositiveDefinite {
        /// The offending eigenvalue (diagonal entry).
        eigenvalue: f64,
        /// The smallest that would do.
        floor: f64,
    },
    /// The matrix of a quadratic norm could not be decomposed.
    #[error("the matrix of the quadratic norm cannot be decomposed")]
    Decomposition(#[from] LinalgError),
    /// A list of blocks that does not fit the layout.
    #[error("the blocks of a max or sum norm do not fit the parameters")]
    Blocks(#[from] ParamsError),
    /// A layer weight that is not positive.
    #[error("block '{block}' has weight {weight} in a max, sum or root norm; weights must be positive and finite")]
    Weight {
        /// The block.
        block: String,
        /// Its weight.
        weight: f64,
    },
    /// A max or sum inside a max or sum.
    #[error("block '{0}' of a max or sum norm has itself a max or sum norm; give it a plain norm")]
    Nested(String),
    /// No entry moves, so there is nothing to measure.
    #[error("the layout has no trainable entries, so there is nothing to measure; unfreeze a block")]
    NothingTrainable,
    /// A text that names no norm.
    #[error(
        "'{0}' names no norm; try l1, l1-averaged, l2, linf, lp:3, quadratic:1:2, frobenius, spectral, nuclear, group21, group2inf, max(*=spectral), sum(*=nuclear) or root(*=l1)"
    )]
    Unreadable(String),
}
