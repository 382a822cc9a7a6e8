//! The judge's solvers: exact optima of the problems that optimisers are said to solve.
//!
//! Nothing here knows an optimiser, a flow or an objective. Every answer carries its proof: a primal point, dual
//! weights and the bracket that the two imply, recomputed in plain arithmetic from the problem's data.
//!
//! | file | holds |
//! |---|---|
//! | `problem` | the margin problem, its two forms and its bracket |
//! | `margin` | solving it: which method, on which rows |
//! | `working_set` | the rows of a large problem that are solved at a time |
//! | `interior` | a dense interior-point method for ℓ1, ℓ2, ℓ∞ and their weighted forms |
//! | `conic` | every other norm, through Clarabel's cones |
//! | `any_norm` | a norm known by its methods alone, such as one written elsewhere |
//! | `refine` | the last digits, on the active set |
//! | `proof` | what a direction and multipliers prove, with outward rounding |
//! | `sharpen` | margins far below the size of the rows, with twice the digits |
//! | `smooth` | the same for ℓp, by Newton's method |
//! | `inseparable` | weights that combine all rows to 0 |
//! | `classes` | several classes, whose rows are made when they are needed |
//! | `max_margin`, `uniqueness` | exact max margins, whether they are unique, or the proof that there are none |
//! | `free_intercept` | the ℓ2 margin of two classes with an intercept that costs nothing, fast |
//! | `interpolate` | the solution of Xw = y of least norm, potential or divergence |
//! | `constrained_loss` | the regularisation path: the least exponential loss in a norm ball |
//! | `plane_network` | the largest margin of a two-layer ReLU network in the plane, whatever its directions |
//! | `lasso_path` | min ½‖Xw − y‖² + λ‖w‖₁ for all λ at once |

mod any_norm;
mod classes;
mod conic;
mod constrained_loss;
mod error;
mod free_intercept;
mod inseparable;
mod interior;
mod interpolate;
mod lasso_path;
mod margin;
mod max_margin;
mod plane_network;
mod problem;
mod proof;
mod refine;
mod semidefinite;
mod sharpen;
mod smooth;
mod uniqueness;
mod working_set;

#[cfg(test)]
mod hard_tests;
#[cfg(test)]
mod tests;

pub use any_norm::solve_margin_in;
pub use classes::max_margin_of;
pub use constrained_loss::{ConstrainedLoss, constrained_loss, log_loss_bound};
pub use error::ReferenceError;
pub use free_intercept::{FreeMargin, free_margin, proven_free_margin, proven_free_upper_bound};
pub use interpolate::{Interpolation, InterpolationTarget, interpolate, stack_equations};
pub use lasso_path::{LassoKnot, LassoPath, lasso_path};
pub use margin::{MarginSolution, solve_margin, solve_margin_gram};
pub use max_margin::{MarginStatus, MaxMargin, OPTIMAL_GAP, max_margin};
pub use plane_network::{PlaneNetwork, plane_network};
pub use problem::{Bracket, KinkRow, MarginProblem, Multipliers, SparseRow, add_sparse, sparse_dot};
pub use proof::{proven_margin, proven_upper_bound};
pub use uniqueness::Uniqueness;
