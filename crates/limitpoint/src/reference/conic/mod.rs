//! Margin problems and interpolation in any norm of the library, as conic programs.
//!
//! ```text
//! norm on a layout ──► ball ──┐
//!                             ├──► program ──► path (dense) or general (Clarabel) ──► polish ──► measured by its bracket
//! margin | minimum_norm ──────┘
//! ```
//!
//! An interior-point method finds which faces of the cones the solution lies on; Newton's method on these faces then
//! takes it to the last digits. The first is tried twice: a dense method whose linear systems have one row a column is
//! an order of magnitude faster than a general solver on the problems met here, and the general solver stands behind
//! it, except for semidefinite cones. Neither is trusted: the best direction and the best multipliers are chosen by the
//! bounds they prove.
//!
//! | file | holds |
//! |---|---|
//! | `program` | conic programs in standard form |
//! | `ball` | ‖v‖ ≤ t in cones, for every norm |
//! | `scaled` | a margin problem in well-scaled units, and its programs |
//! | `margin` | solving margin problems |
//! | `minimum_norm` | solving min ‖w‖ over Xw = y |
//! | `path` | the dense path-following method, in doubles or precise numbers; `section` is one cone of it |
//! | `precise` | margin problems solved in precise numbers |
//! | `general` | the same by Clarabel, without semidefinite cones |
//! | `polish` | Newton's method on the active faces |
//! | `barrier`, `loss_path` | the smallest exponential loss in a ball, by a method of its own |
//! | `dense` | small dense matrices |

mod arithmetic;
mod ball;
mod barrier;
mod dense;
mod general;
mod loss_path;
mod margin;
mod minimum_norm;
mod path;
mod polish;
mod precise;
mod program;
mod scaled;
mod section;
#[cfg(test)]
mod tests;

pub(super) use dense::{eliminate, power_curvature, power_slack};
pub(super) use loss_path::minimise_loss;
pub(super) use margin::solve_margin_conic;
pub(super) use minimum_norm::minimum_norm_conic;
pub(super) use precise::solve_margin_precise;

use super::ReferenceError;
use program::{Point, Program};

/// Newton steps after an interior-point method.
const STEPS: usize = 12;
/// Relative gap at which a problem is not tried again in another way.
const GOOD: f64 = 1e-12;
/// Relative gap below which there is only rounding.
const ROUNDING: f64 = 2e-15;

/// Who solves a program before it is polished.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Solver {
    /// The dense path-following method.
    Dense,
    /// Clarabel.
    General,
}

impl Solver {
    /// Both, in the order in which they are tried.
    const ALL: [Self; 2] = [Self::Dense, Self::General];

    /// Solves a program, polishes the answer and shows every point to `gap_of`, which says the relative gap of the best
    /// point so far. Returns the iterations.
    ///
    /// Polishing stops at a gap of `ROUNDING`, or at `GOOD` once a step no longer halves it.
    fn attempt(
        self,
        program: &Program,
        gap_of: &mut dyn FnMut(&Point) -> Result<f64, ReferenceError>,
    ) -> Result<usize, ReferenceError> {
        let (point, mut iterations) = match self {
            Self::Dense => path::follow::<f64>(program)?,
            Self::General => general::solve(program)?,
        };
        let mut last = gap_of(&point)?;
        let mut failure = None;
        polish::polish(program, &point, STEPS, |point| {
            iterations += 1;
            let gap = gap_of(point).unwrap_or_else(|error| {
                failure = Some(error);
                0.0
            });
            let idle = gap > 0.5 * last;
            last = gap;
            gap <= ROUNDING || (idle && gap <= GOOD)
        });
        failure.map_or(Ok(iterations), Err)
    }
}
