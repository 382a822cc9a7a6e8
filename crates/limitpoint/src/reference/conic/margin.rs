//! Solving margin problems in any norm.

use super::super::{MarginProblem, Multipliers, ReferenceError};
use super::ball::Part;
use super::scaled::{Posed, Scaled};
use super::{GOOD, Solver};
use crate::linalg::{Matrix, dot};

/// Times that a margin far below the size of the rows is looked at more closely.
const ZOOMS: usize = 2;
/// Trainable entries up to which that is tried.
const WIDEST_ZOOM: usize = 600;
/// Columns beyond which a gap of `ACCEPTABLE` is not worth the general solver's time.
const SMALL: usize = 400;
const ACCEPTABLE: f64 = 1e-9;

/// Solves a margin problem with any norm: direction, multipliers and iterations.
///
/// The form with fewer columns is solved first, then the other, each by the dense method; then both by the general
/// solver. A margin far below the size of the rows is looked at again in coordinates fit for it. The first attempt
/// whose gap is at most 1e-12 ends the search. With v in the semidefinite cone, the nuclear norm is the trace, and the
/// dual form has the largest eigenvalue in place of a norm; any other norm is solved in its primal form.
///
/// If the rows cannot be separated the upper bound is 0 up to rounding and v is arbitrary.
pub(in super::super) fn solve_margin_conic(
    problem: &MarginProblem,
) -> Result<(Vec<f64>, Multipliers, usize), ReferenceError> {
    let mut norm = problem.norm.build(&problem.layout)?;
    let scaled = Scaled::new(problem, &mut *norm);
    if let Some(row) = scaled.empty_row().filter(|_| !problem.semidefinite) {
        return without_margin(problem, &scaled, row);
    }
    let ball = Part::of(&problem.norm, &problem.layout)?;
    let mut search = Search { scaled: &scaled, best: Best::new(problem), iterations: 0, failure: None };
    let (primal, dual) = scaled.widths(&ball);
    for solver in Solver::ALL {
        let skip = solver == Solver::General && primal.min(dual) > SMALL && search.best.is_good(ACCEPTABLE);
        if search.best.is_good(GOOD) || skip {
            break;
        }
        if problem.semidefinite {
            search.attempt(
                solver,
                &if problem.measures_trace() { scaled.dual(&ball) } else { scaled.semidefinite(&ball) },
            )?;
            continue;
        }
        for dual in [dual < primal, dual >= primal] {
            if !search.best.is_good(GOOD) {
                search.attempt(solver, &if dual { scaled.dual(&ball) } else { scaled.primal(&ball) })?;
            }
        }
        for _ in 0..ZOOMS {
            let (unit, before) = (search.best.upper / scaled.unit, search.best.gap());
            let near = 0.0 < unit && unit < 0.1;
            if search.best.is_good(GOOD) || !near || scaled.entries.len() > WIDEST_ZOOM {
                break;
            }
            search.attempt(solver, &scaled.zoomed(&ball, unit)?)?;
            if search.best.gap() > 0.5 * before {
                break;
            }
        }
    }
    match search.failure {
        Some(error) if search.best.multipliers.rows.is_empty() => Err(error),
        _ => Ok((search.best.v, search.best.multipliers, search.iterations)),
    }
}

/// The solution of a problem with a row of zeros: no margin is positive, and that row alone proves it. The direction is
/// that of the rows that are not 0, so that the smallest margin is not below 0 if they can be separated.
fn without_margin(
    problem: &MarginProblem,
    scaled: &Scaled,
    empty: usize,
) -> Result<(Vec<f64>, Multipliers, usize), ReferenceError> {
    let kept: Vec<usize> = (0..problem.rows.rows).filter(|i| problem.rows.row(*i).iter().any(|x| *x != 0.0)).collect();
    let mut rows = vec![0.0; problem.rows.rows];
    rows[empty] = 1.0;
    let multipliers = Multipliers { rows, kinks: vec![0.0; problem.kinks.len()], cone: vec![0.0; problem.cone.len()] };
    if kept.is_empty() || kept.contains(&empty) {
        let mut v = vec![0.0; problem.layout.len()];
        v[scaled.entries[0]] = 1.0;
        return Ok((v, multipliers, 0));
    }
    let mut matrix = Matrix::zeros(kept.len(), problem.rows.cols);
    kept.iter().enumerate().for_each(|(at, &i)| matrix.row_mut(at).copy_from_slice(problem.rows.row(i)));
    let rest = MarginProblem { rows: matrix, kinks: Vec::new(), ..problem.clone() };
    let (v, _, iterations) = solve_margin_conic(&rest)?;
    Ok((v, multipliers, iterations))
}

/// The best direction and the best multipliers seen so far, each by its own bound.
struct Best<'a> {
    problem: &'a MarginProblem,
    lower: f64,
    v: Vec<f64>,
    upper: f64,
    multipliers: Multipliers,
    /// Σp‖h‖_* of the best multipliers; their combination is 0 up to rounding if it is far smaller.
    scale: f64,
}

impl<'a> Best<'a> {
    fn new(problem: &'a MarginProblem) -> Self {
        let v = vec![0.0; problem.layout.len()];
        let multipliers = Multipliers::default();
        Self { problem, lower: f64::NEG_INFINITY, v, upper: f64::INFINITY, multipliers, scale: 0.0 }
    }

    /// Takes whichever half is better.
    fn offer(&mut self, scaled: &Scaled, (v, multipliers): (Vec<f64>, Multipliers)) -> Result<(), ReferenceError> {
        let bracket = self.problem.bracket(&v, &multipliers)?;
        if bracket.lower > self.lower {
            (self.lower, self.v) = (bracket.lower, v);
        }
        if bracket.upper < self.upper {
            let total: f64 = multipliers.rows.iter().map(|p| p.max(0.0)).sum();
            self.scale = dot(&multipliers.rows, &scaled.sizes[..scaled.rows()]) / total;
            (self.upper, self.multipliers) = (bracket.upper, multipliers);
        }
        Ok(())
    }

    /// The relative gap; 0 if the upper bound is 0 up to rounding.
    fn gap(&self) -> f64 {
        if self.upper.abs() <= 1e-15 * self.scale { 0.0 } else { (self.upper - self.lower) / self.upper.abs() }
    }

    /// Whether the gap is at most `tolerance` or what rounding of the products leaves of it.
    fn is_good(&self, tolerance: f64) -> bool {
        self.gap() <= tolerance.max(1e-16 * self.scale / self.upper.abs())
    }
}

/// Several attempts at one problem.
struct Search<'a> {
    scaled: &'a Scaled<'a>,
    best: Best<'a>,
    iterations: usize,
    failure: Option<ReferenceError>,
}

impl Search<'_> {
    /// Solves one program; a solver's failure is kept, since another may succeed.
    fn attempt(&mut self, solver: Solver, posed: &Posed) -> Result<(), ReferenceError> {
        let best = &mut self.best;
        let found = solver.attempt(&posed.program, &mut |point| {
            best.offer(self.scaled, self.scaled.read(posed, point))?;
            Ok(best.gap())
        });
        match found {
            Ok(iterations) => self.iterations += iterations,
            Err(error @ ReferenceError::NoConvergence { .. }) => self.failure = Some(error),
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
