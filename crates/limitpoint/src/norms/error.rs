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
    /// A block name that the layout does not have.
    #[error("a max, sum or root norm names a block that does not exist; use '*' for all blocks not named")]
    Block(#[from] ParamsError),
    /// A layer weight that is not positive.
    #[error("block '{block}' has weight {weight} in a max, sum or root norm; weights must be positive and finite")]
    Weight {
        /// The block.
        block: String,
        /// Its weight.
        weight: f64,
    },
    /// One block listed twice.
    #[error("block '{0}' is listed twice in a max, sum or root norm; list it once")]
    DuplicateBlock(String),
    /// A trainable block without a norm.
    #[error(
        "block '{0}' is trainable but has no norm in the max, sum or root norm; name it, or add '*' for all blocks not named"
    )]
    MissingBlock(String),
    /// A composition inside a composition.
    #[error("block '{0}' of a max, sum or root norm has itself such a norm; give it a plain norm")]
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
