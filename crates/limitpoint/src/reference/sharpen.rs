//! Margins far below the size of the rows: the bracket of a solution, proven and narrowed in precise numbers.
//!
//! A solver in doubles knows margins to about 1e-16 of the size of the rows. Of a margin of 1e-10 of it, six digits are
//! left, and of one below 1e-16 none. The same problem in precise numbers has sixteen digits more. It is solved on the
//! rows that matter: those with weight or with the smallest margins, and, until there are none, those that the answer
//! violates.

use super::conic::solve_margin_precise;
use super::{Bracket, MarginProblem, ReferenceError, proven_margin, proven_upper_bound};
use crate::linalg::{Matrix, Precise, dot};

/// Relative gap at which a solution counts as found.
const GOOD: f64 = 1e-12;
/// Sets of rows that are tried.
const ROUNDS: usize = 12;

/// The best direction and weights found so far, with the bracket that they prove.
pub(super) struct Proof<'a> {
    problem: &'a MarginProblem,
    pub bracket: Bracket,
    pub direction: Vec<Precise>,
    pub rows: Vec<Precise>,
    /// Multipliers of cone rows, or the matrix M of a semidefinite problem.
    pub cone: Vec<f64>,
}

impl<'a> Proof<'a> {
    /// Nothing is known but that v = 0 has no margin.
    pub fn new(problem: &'a MarginProblem) -> Self {
        let (direction, rows) = (vec![Precise::default(); problem.layout.len()], Vec::new());
        let bracket = Bracket { lower: 0.0, upper: f64::INFINITY };
        Self { problem, bracket, direction, rows, cone: Vec::new() }
    }

    /// Takes over whichever half proves more.
    pub fn offer(&mut self, v: &[Precise], rows: &[Precise], cone: &[f64]) -> Result<(), ReferenceError> {
        if v.iter().all(|x| x.high.is_finite()) {
            let lower = proven_margin(self.problem, v)?.lo;
            if lower > self.bracket.lower {
                (self.bracket.lower, self.direction) = (lower, v.to_vec());
            }
        }
        if rows.iter().all(|p| p.high.is_finite() && p.high >= 0.0) {
            let upper = proven_upper_bound(self.problem, rows, cone)?.hi;
            if upper < self.bracket.upper || self.rows.is_empty() {
                self.bracket.upper = upper.min(self.bracket.upper);
                (self.rows, self.cone) = (rows.to_vec(), cone.to_vec());
            }
        }
        Ok(())
    }

    /// Solves the problem in precise numbers, as far as its size allows.
    pub fn sharpen(&mut self) -> Result<(), ReferenceError> {
        let problem = self.problem;
        if problem.semidefinite || !problem.kinks.is_empty() || !problem.cone.is_empty() {
            return Ok(());
        }
        let count = problem.rows.rows;
        let columns = problem.layout.trainable_ranges().into_iter().flatten().count();
        let mut set = self.first_rows((4 * columns).max(200));
        for _ in 0..ROUNDS {
            if self.bracket.relative_gap() <= GOOD {
                break;
            }
            let reduced = MarginProblem { rows: pick(&problem.rows, &set), ..problem.clone() };
            let Some((v, local)) = solve_margin_precise(&reduced)? else { break };
            let mut rows = vec![Precise::default(); count];
            set.iter().zip(local).for_each(|(&i, p)| rows[i] = p);
            self.offer(&v, &rows, &[])?;
            let rounded: Vec<f64> = v.iter().map(|x| x.high).collect();
            let mut outside: Vec<(f64, usize)> = (0..count)
                .filter(|i| set.binary_search(i).is_err())
                .map(|i| (dot(problem.rows.row(i), &rounded), i))
                .collect();
            outside.sort_by(|a, b| a.0.total_cmp(&b.0));
            outside.truncate(set.len());
            if outside.is_empty() {
                break;
            }
            set.extend(outside.into_iter().map(|(_, i)| i));
            set.sort_unstable();
        }
        Ok(())
    }

    /// Rows with weight, and those with the smallest margins relative to their size.
    fn first_rows(&self, most: usize) -> Vec<usize> {
        let rows = &self.problem.rows;
        if rows.rows <= most {
            return (0..rows.rows).collect();
        }
        let v: Vec<f64> = self.direction.iter().map(|x| x.high).collect();
        let weight = |i: usize| self.rows.get(i).map_or(0.0, |p| p.high);
        let rank = |i: usize| if weight(i) > 0.0 { -weight(i) } else { dot(rows.row(i), &v).max(0.0) };
        let mut order: Vec<(f64, usize)> = (0..rows.rows).map(|i| (rank(i), i)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut set: Vec<usize> = order.into_iter().take(most).map(|(_, i)| i).collect();
        set.sort_unstable();
        set
    }
}

/// Some rows of a matrix.
fn pick(rows: &Matrix, set: &[usize]) -> Matrix {
    let mut out = Matrix::zeros(set.len(), rows.cols);
    set.iter().enumerate().for_each(|(at, &i)| out.row_mut(at).copy_from_slice(rows.row(i)));
    out
}
