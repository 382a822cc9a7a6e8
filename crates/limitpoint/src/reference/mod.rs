//! The judge's solvers: exact optima of the problems that optimisers are said to solve.
//!
//! Nothing here knows an optimiser, a flow or an objective. Every answer carries its proof: a primal point, dual weights
//! and the bracket that the two imply, recomputed in plain arithmetic from the problem's data.
//!
//! | file | holds |
//! |---|---|
//! | `problem` | the margin problem, its two forms and its bracket |
//! | `margin` | solving it: which method, working sets, refinement |

mod conic;
mod error;
mod interior;
mod margin;
mod max_margin;
mod problem;
mod refine;
mod semidefinite;
mod uniqueness;

#[cfg(test)]
mod tests;

pub use error::ReferenceError;
pub use max_margin::{MarginStatus, MaxMargin, max_margin};
pub use margin::{MarginSolution, solve_margin, solve_margin_gram};
pub use uniqueness::Uniqueness;
pub use problem::{Bracket, KinkRow, MarginProblem, Multipliers, SparseRow, add_sparse, sparse_dot};
