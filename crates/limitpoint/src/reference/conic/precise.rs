//! Margin problems solved in precise numbers, for margins far below the size of the rows.
//!
//! The rows enter the program without rounding: they are scaled by powers of two, and the forms in which an entry
//! would be multiplied by anything else are left out. Only the norm is written with rounded coefficients, which changes
//! the answer by as little as it changes the norm. What comes out is judged by the bounds it proves.

use super::super::{MarginProblem, ReferenceError};
use super::ball::Part;
use super::path::follow;
use super::program::{Cone, Program};
use super::scaled::Scaled;
use crate::linalg::Precise;

/// Multiplications in a step of the path above which a problem is left alone.
const LARGEST_STEP: f64 = 1.5e8;

/// A direction and weights of the rows.
pub(in super::super) type PrecisePair = (Vec<Precise>, Vec<Precise>);

/// Solves a problem in precise numbers; nothing if the problem is too large or the path ended early.
///
/// For problems with rows alone.
pub(in super::super) fn solve_margin_precise(problem: &MarginProblem) -> Result<Option<PrecisePair>, ReferenceError> {
    let mut norm = problem.norm.build(&problem.layout)?;
    let scaled = Scaled::new(problem, &mut *norm);
    if scaled.empty_row().is_some() || scaled.entries.is_empty() {
        return Ok(None);
    }
    let ball = Part::of(&problem.norm, &problem.layout)?;
    let (primal, dual) = scaled.widths(&ball);
    let posed = if dual < primal && ball.is_exact() { scaled.dual(&ball) } else { scaled.primal(&ball) };
    if work(&posed.program) > LARGEST_STEP {
        return Ok(None);
    }
    match follow::<Precise>(&posed.program) {
        Ok((point, _)) => Ok(Some(scaled.read_precise(&posed, &point))),
        Err(ReferenceError::NoConvergence { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Multiplications in one step of the path, roughly.
fn work(program: &Program) -> f64 {
    let n = program.width() as f64;
    let terms = |rows: &std::ops::Range<usize>| {
        program.rows[rows.clone()].iter().map(|row| (row.terms.len() as f64).powi(2)).sum::<f64>()
    };
    let section = |(cone, rows): &(Cone, std::ops::Range<usize>)| match cone {
        Cone::Semidefinite(size) => n * (*size as f64).powi(3) + n * terms(rows).sqrt() * *size as f64,
        _ => 0.5 * terms(rows),
    };
    program.sections.iter().map(section).sum::<f64>() + n.powi(3) / 6.0
}
