//! What a reference solver can refuse.

use crate::linalg::LinalgError;
use crate::norms::NormError;
use crate::params::ParamsError;
use crate::potentials::PotentialError;

/// Why a reference problem could not be posed or solved.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// Rows that do not fit the layout.
    #[error("the problem needs at least one row of {expected} entries, but was given {rows} rows of {columns}")]
    Rows {
        /// Rows given.
        rows: usize,
        /// Their length.
        columns: usize,
        /// The length of the layout.
        expected: usize,
    },
    /// A number that is not finite.
    #[error("row {row} of the problem has {value} in column {column}; remove the row or fill in a finite number")]
    NotFinite {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// The number.
        value: f64,
    },
    /// A kink of a row that is not there.
    #[error("a kink belongs to row {row}, but the problem has rows 0 to {rows} − 1")]
    KinkRow {
        /// The row named.
        row: usize,
        /// Rows there are.
        rows: usize,
    },
    /// Data without labels.
    #[error("the data '{data}' has real targets, which have no margin; give labels, or use `solve interpolate`")]
    NoLabels {
        /// Name of the data.
        data: String,
    },
    /// A semidefinite problem that is not on one square matrix.
    #[error("a semidefinite problem needs one square matrix, but the weights are {shapes}; give X of shape N x r x r")]
    NotSquare {
        /// Shapes of the blocks.
        shapes: String,
    },
    /// A solver that gave up, with what it had.
    #[error("{solver} ended with '{status}' after {iterations} iterations, gap {gap:.1e}; {remedy}")]
    NoConvergence {
        /// Name of the solver.
        solver: &'static str,
        /// What it said.
        status: String,
        /// Iterations it used.
        iterations: usize,
        /// Relative gap it reached.
        gap: f64,
        /// What can be done.
        remedy: &'static str,
    },
    /// A linear system without a solution.
    #[error(
        "the equations Xw = y have no solution: the smallest possible residual is {residual:.3e} relative to |y|, in {equations} equations of rank {rank}; remove contradicting rows"
    )]
    Inconsistent {
        /// ‖y − X w‖₂/‖y‖₂ of the least-squares solution.
        residual: f64,
        /// Number of equations.
        equations: usize,
        /// Rank of X.
        rank: usize,
    },
    /// No interpolating point inside the domain of the potential.
    #[error("no solution of Xw = y lies in the domain of {potential}: {why}")]
    OutsideDomain {
        /// The potential.
        potential: String,
        /// What was found.
        why: String,
    },
    /// A setting that makes no sense.
    #[error("{what} is {value}, but must be {range}")]
    OutOfRange {
        /// What the number sets.
        what: &'static str,
        /// The number.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// Sparse data that are too large to be made dense.
    #[error(transparent)]
    NeedsDense(#[from] crate::data::NeedsDense),
    /// A problem that does not fit into memory.
    #[error(transparent)]
    TooLarge(#[from] crate::memory::TooLarge),
    /// The norm was refused.
    #[error(transparent)]
    Norm(#[from] NormError),
    /// The potential was refused.
    #[error(transparent)]
    Potential(#[from] PotentialError),
    /// The layout was refused.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// A decomposition failed.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
}
