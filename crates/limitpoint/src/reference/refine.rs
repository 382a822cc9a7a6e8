//! Refinement on the active set.

use super::interior::BallSpec;
use super::{MarginProblem, MarginSolution};

/// placeholder
pub(super) fn refine(_problem: &MarginProblem, _ball: Option<&BallSpec>, solution: MarginSolution) -> MarginSolution {
    solution
}
