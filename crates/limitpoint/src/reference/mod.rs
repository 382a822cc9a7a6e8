//! The judge's solvers: exact optima of the problems that optimisers are said to solve.
//!
//! Nothing here knows an optimiser, a flow or an objective. Every answer carries its proof: a primal point, dual
//! weights and the bracket that the two imply, recomputed in plain arithmetic from the problem's data.
//!
//! | file | holds |
//! |---|---|
//! | `problem` | the margin problem, its two forms and its bracket |
//! | `margin` | solving it: which method, on which rows |
//! | `interior` | a dense interior-point method for ℓ1, ℓ2, ℓ∞ and their weighted forms |
//! | `conic` | every other norm, through Clarabel's cones |
//! | `refine` | the last digits, on the active set |
//! | `max_margin`, `uniqueness` | exact max margins, whether they are unique, or the proof that there are none |
//! | `interpolate` | the solution of Xw = y of least norm, potential or divergence |
//! | `constrained_loss` | the regularisation path: the least exponential loss in a norm ball |
//! | `plane_network` | the largest margin of a two-layer ReLU network in the plane, whatever its directions |
//! | `lasso_path` | min ½‖Xw − y‖² + λ‖w‖₁ for all λ at once |

mod conic;
mod constrained_loss;
mod error;
mod interior;
mod interpolate;
mod lasso_path;
mod margin;
mod max_margin;
mod plane_network;
mod problem;
mod refine;
mod semidefinite;
mod uniqueness;

#[cfg(test)]
mod tests;

pub use constrained_loss::{ConstrainedLoss, constrained_loss, log_loss_bound};
pub use error::ReferenceError;
pub use interpolate::{Interpolation, InterpolationTarget, interpolate, stack_equations};
pub use lasso_path::{LassoKnot, LassoPath, lasso_path};
pub use margin::{MarginSolution, solve_margin, solve_margin_gram};
pub use max_margin::{MarginStatus, MaxMargin, max_margin};
pub use plane_network::{PlaneNetwork, plane_network};
pub use problem::{Bracket, KinkRow, MarginProblem, Multipliers, SparseRow, add_sparse, sparse_dot};
pub use uniqueness::Uniqueness;
