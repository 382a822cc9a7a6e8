//! The few rows of a large margin problem that are solved at a time.
//!
//! Rows that the present solution violates come in, worst first; rows without weight leave.

use std::borrow::Cow;

use super::{KinkRow, MarginProblem, Multipliers, SparseRow, sparse_dot};
use crate::linalg::{Matrix, norm2};

/// A working set lets go of rows only where the upper bound fell at least to this share of the last.
pub(super) const FALLS: f64 = 0.999;

/// The rows and cone rows that are being solved.
pub(super) struct WorkingSet {
    pub rows: Vec<usize>,
    pub cone: Vec<usize>,
}

impl WorkingSet {
    /// All rows if they are at most `whole`, else `first` of them.
    pub fn first(problem: &MarginProblem, whole: usize, first: usize) -> Self {
        let (rows, cone) = (problem.rows.rows, problem.cone.len());
        Self {
            rows: if rows <= whole { (0..rows).collect() } else { spread(rows, first) },
            cone: if cone <= whole { (0..cone).collect() } else { Vec::new() },
        }
    }

    /// Whether nothing is left out.
    pub fn is_whole(&self, problem: &MarginProblem) -> bool {
        self.rows.len() == problem.rows.rows && self.cone.len() == problem.cone.len()
    }

    /// The problem of the set alone.
    pub fn reduce<'a>(&self, problem: &'a MarginProblem) -> Cow<'a, MarginProblem> {
        if self.is_whole(problem) {
            return Cow::Borrowed(problem);
        }
        let mut rows = Matrix::zeros(self.rows.len(), problem.rows.cols);
        self.rows.iter().enumerate().for_each(|(at, &i)| rows.row_mut(at).copy_from_slice(problem.rows.row(i)));
        let kinks = problem.kinks.iter().filter_map(|kink| {
            let row = self.rows.binary_search(&kink.row).ok()?;
            Some(KinkRow { row, change: kink.change.clone() })
        });
        Cow::Owned(MarginProblem {
            rows,
            kinks: kinks.collect(),
            cone: self.cone.iter().map(|&m| problem.cone[m].clone()).collect(),
            norm: problem.norm.clone(),
            layout: problem.layout.clone(),
            semidefinite: problem.semidefinite,
        })
    }

    /// Takes more rows and cone rows in.
    pub fn add(&mut self, (rows, cone): (Vec<usize>, Vec<usize>)) {
        self.rows.extend(rows);
        self.cone.extend(cone);
        self.rows.sort_unstable();
        self.cone.sort_unstable();
    }

    /// The multipliers of the whole problem.
    pub fn expand(&self, problem: &MarginProblem, local: &Multipliers) -> Multipliers {
        let mut all = Multipliers {
            rows: vec![0.0; problem.rows.rows],
            kinks: vec![0.0; problem.kinks.len()],
            // of a semidefinite problem a matrix, whatever the rows
            cone: if problem.semidefinite { local.cone.clone() } else { vec![0.0; problem.cone.len()] },
        };
        self.rows.iter().zip(&local.rows).for_each(|(&i, p)| all.rows[i] = *p);
        self.cone.iter().zip(&local.cone).for_each(|(&m, s)| all.cone[m] = *s);
        let kept = problem.kinks.iter().enumerate().filter(|(_, kink)| self.rows.binary_search(&kink.row).is_ok());
        kept.zip(&local.kinks).for_each(|((k, _), e)| all.kinks[k] = *e);
        all
    }

    /// Rows below the upper bound and cone rows below 0 that are not in the set, worst first.
    pub fn violations(
        &self,
        problem: &MarginProblem,
        v: &[f64],
        margins: &[f64],
        upper: f64,
    ) -> (Vec<usize>, Vec<usize>) {
        let rows = worst(margins, &self.rows, upper);
        let outside = (0..problem.cone.len()).filter(|m| self.cone.binary_search(m).is_err());
        let mut cone: Vec<(f64, usize)> = outside
            .map(|m| (sparse_dot(&problem.cone[m], v) / sparse_size(&problem.cone[m]), m))
            .filter(|(product, _)| *product < -1e-13)
            .collect();
        cone.sort_by(|a, b| a.0.total_cmp(&b.0));
        cone.truncate(self.cone.len().max(100));
        (rows, cone.into_iter().map(|(_, m)| m).collect())
    }
}

/// ‖row‖₂, at least the smallest positive number.
fn sparse_size(row: &SparseRow) -> f64 {
    row.iter().map(|(_, run)| norm2(run)).fold(0.0, f64::hypot).max(f64::MIN_POSITIVE)
}

/// Lets go of rows without weight.
pub(super) fn prune(set: &mut Vec<usize>, weights: &[f64]) {
    let heaviest = weights.iter().copied().fold(0.0, f64::max);
    let mut weights = weights.iter();
    set.retain(|_| weights.next().is_some_and(|p| *p > 1e-9 * heaviest));
}

/// Rows below the upper bound that are not in the set, worst first; at most as many as the set has, or a hundred.
pub(super) fn worst(margins: &[f64], set: &[usize], upper: f64) -> Vec<usize> {
    let floor = upper - 1e-12 * upper.abs();
    let mut rows: Vec<usize> =
        (0..margins.len()).filter(|i| margins[*i] < floor && set.binary_search(i).is_err()).collect();
    rows.sort_by(|a, b| margins[*a].total_cmp(&margins[*b]));
    rows.truncate(set.len().max(100));
    rows
}

/// `count` of the numbers below `total`, evenly spread.
pub(super) fn spread(total: usize, count: usize) -> Vec<usize> {
    (0..count.min(total)).map(|k| k * total / count.min(total)).collect()
}
