//! What a direction and multipliers prove of a margin problem, in arithmetic that rounds outwards.
//!
//! ```text
//! min_i ⟨h_i, v⟩/‖v‖  ≤  γ*  ≤  ‖Σ p_i h_i + Σ s_m r_m‖_*/Σp          any v in the cone, any p, s ≥ 0 (B Lemma 9)
//! ```
//!
//! The rows are doubles, so they are exact; v and p are exact too, as sums of two doubles: a margin ten orders of
//! magnitude below the size of the rows has no digit left after the rounding of a v of doubles. Both bounds are
//! enclosed in [`Interval`]s, so that they are theorems about these numbers, whoever found them.
//!
//! Semidefinite problems (B Theorem 7): a matrix W need not be exactly semidefinite. With ε ≥ −λ_min(W) the shifted
//! (W + Wᵀ)/2 + εI is, and its margin is the one that counts. The upper bound is λ_max(Σ p_i H_i)/Σp for the trace; for
//! any other norm a matrix M with a semidefinite symmetric part joins the sum, since ⟨M, W⟩ ≥ 0:
//!
//! ```text
//! γ* ≤ ‖Σ p_i H_i + M + εI‖_*/Σp        ε ≥ −λ_min((M + Mᵀ)/2)
//! ```

use std::cmp::Ordering;

use super::{MarginProblem, ReferenceError};
use crate::intervals::{ExactSum, Interval, Spectrum, enclosed_dual_norm, enclosed_norm, enclosed_sum};
use crate::linalg::{Precise, dot, norm2};

/// An enclosure of min_i ⟨h_i, v⟩/‖v‖ of a problem without kinks; its lower end is −∞ if v may lie outside the cone.
///
/// ```
/// use limitpoint::linalg::{Matrix, Precise};
/// use limitpoint::norms::NormSpec;
/// use limitpoint::params::ParamLayout;
/// use limitpoint::reference::{MarginProblem, proven_margin};
/// let rows = Matrix::from_rows(&[&[1.0, 1.0], &[1.0, -1.0]]);
/// let problem = MarginProblem::new(rows, NormSpec::L1, ParamLayout::vector(2))?;
/// // v = (3, 1): margins 4/4 and 2/4
/// let margin = proven_margin(&problem, &[3.0, 1.0].map(Precise::from))?;
/// assert!(margin.contains(0.5) && margin.width() < 1e-15);
/// # Ok::<(), limitpoint::reference::ReferenceError>(())
/// ```
pub fn proven_margin(problem: &MarginProblem, v: &[Precise]) -> Result<Interval, ReferenceError> {
    let rounded: Vec<f64> = v.iter().map(|x| x.high).collect();
    problem.layout.check(&rounded)?;
    let points: Vec<Interval> = v.iter().map(|x| Interval::point(x.high) + Interval::point(x.low)).collect();
    if problem.semidefinite {
        return semidefinite_margin(problem, &points);
    }
    let size = enclosed_norm(&problem.norm, &problem.layout, &points)?;
    let inside = problem.cone.iter().all(|row| {
        let mut sum = ExactSum::default();
        for (first, run) in row {
            run.iter().zip(&v[*first..]).for_each(|(r, v)| add_product(&mut sum, *r, *v));
        }
        sum.enclosure().lo >= 0.0
    });
    let margin = smallest_product(problem, v, &rounded) / size;
    Ok(if inside { margin } else { Interval::new(f64::NEG_INFINITY, margin.hi) })
}

fn add_product(sum: &mut ExactSum, x: f64, y: Precise) {
    sum.add_product(x, y.high);
    if y.low != 0.0 {
        sum.add_product(x, y.low);
    }
}

/// min_i ⟨h_i, v⟩.
fn smallest_product(problem: &MarginProblem, v: &[Precise], rounded: &[f64]) -> Interval {
    let rows = &problem.rows;
    // |fl(⟨h, v⟩) − ⟨h, v⟩| ≤ 1.1 n·2⁻⁵³‖h‖‖v‖ for any order of summation (Higham 2002, section 3.1); doubled for v's low
    // half and for the rounding of the norms
    let share = 2.2 * (rows.cols + 4) as f64 * f64::EPSILON * norm2(rounded);
    let plain: Vec<(f64, f64)> = (0..rows.rows)
        .map(|i| (dot(rows.row(i), rounded), share * norm2(rows.row(i)) + 1e-290 * rows.cols as f64))
        .collect();
    let exact = |i: usize| {
        let mut sum = ExactSum::default();
        rows.row(i).iter().zip(v).for_each(|(h, v)| add_product(&mut sum, *h, *v));
        sum.enclosure()
    };
    could_be_smallest(&plain).into_iter().map(exact).reduce(Interval::min).unwrap_or(Interval::WHOLE)
}

/// Which of some products, each with a bound on its error, could be the smallest: those that do not lie above another
/// by more than both can be off.
pub(super) fn could_be_smallest(products: &[(f64, f64)]) -> Vec<usize> {
    let ceiling = products.iter().map(|(product, error)| product + error).fold(f64::INFINITY, f64::min);
    let above = |(product, error): (f64, f64)| (product - error).partial_cmp(&ceiling) == Some(Ordering::Greater);
    (0..products.len()).filter(|&i| !above(products[i])).collect()
}

/// W + εI with its symmetric part semidefinite, and that symmetric part: ε = max(0, −λ_min).
fn shifted(matrix: &[Interval], size: usize) -> Result<(Vec<Interval>, Vec<Interval>), ReferenceError> {
    let shift = Interval::point((-Spectrum::symmetric(matrix, size)?.smallest().lo).max(0.0));
    let half = Interval::point(0.5);
    let place = |at: usize| (at / size, at % size);
    let add = |at: usize, entry: Interval| if place(at).0 == place(at).1 { entry + shift } else { entry };
    let symmetric = |at: usize| {
        let (i, j) = place(at);
        (matrix[i * size + j] + matrix[j * size + i]) * half
    };
    let whole = (0..size * size).map(|at| add(at, matrix[at])).collect();
    Ok((whole, (0..size * size).map(|at| add(at, symmetric(at))).collect()))
}

/// The margin of (W + Wᵀ)/2 + εI.
fn semidefinite_margin(problem: &MarginProblem, points: &[Interval]) -> Result<Interval, ReferenceError> {
    let size = problem.layout.blocks()[0].rows;
    let (_, inside) = shifted(points, size)?;
    let margin =
        |i: usize| enclosed_sum(problem.rows.row(i).iter().zip(&inside).map(|(h, w)| Interval::point(*h) * *w));
    let least = (0..problem.rows.rows).map(margin).reduce(Interval::min);
    let norm = if problem.measures_trace() {
        enclosed_sum((0..size).map(|i| inside[i * size + i])) // the trace, since the matrix is semidefinite
    } else {
        enclosed_norm(&problem.norm, &problem.layout, &inside)?
    };
    Ok(least.map_or(Interval::WHOLE, |least| least / norm))
}

/// Σ p_i h_i + Σ s_m r_m, entry by entry.
pub(super) fn enclosed_combination(problem: &MarginProblem, rows: &[Precise], cone: &[f64]) -> Vec<Interval> {
    let mut sums = vec![ExactSum::default(); problem.layout.len()];
    for (i, p) in rows.iter().enumerate().filter(|(_, p)| p.high != 0.0) {
        sums.iter_mut().zip(problem.rows.row(i)).for_each(|(sum, h)| add_product(sum, *h, *p));
    }
    for (row, s) in problem.cone.iter().zip(cone).filter(|(_, s)| **s != 0.0) {
        for (first, run) in row {
            sums[*first..].iter_mut().zip(run).for_each(|(sum, r)| sum.add_product(*s, *r));
        }
    }
    sums.into_iter().map(ExactSum::enclosure).collect()
}

/// An enclosure of ‖Σ p_i h_i + Σ s_m r_m‖_*/Σp; of λ_max/Σp for the trace over semidefinite matrices. For another norm
/// over these `cone` is the matrix M, or empty.
///
/// The multipliers must not be negative: a caller's are checked where they come from.
pub fn proven_upper_bound(problem: &MarginProblem, rows: &[Precise], cone: &[f64]) -> Result<Interval, ReferenceError> {
    let linear = if problem.semidefinite { &[][..] } else { cone };
    let mut combined = enclosed_combination(problem, rows, linear);
    let size = problem.layout.blocks()[0].rows;
    let bound = if problem.measures_trace() {
        Spectrum::symmetric(&combined, size)?.value(0)
    } else {
        if problem.semidefinite && !cone.is_empty() {
            let points: Vec<Interval> = cone.iter().map(|x| Interval::point(*x)).collect();
            let (slack, _) = shifted(&points, size)?;
            combined.iter_mut().zip(slack).for_each(|(z, m)| *z = *z + m);
        }
        enclosed_dual_norm(&problem.norm, &problem.layout, &combined)?
    };
    Ok(bound / enclosed_sum(rows.iter().flat_map(|p| [Interval::point(p.high), Interval::point(p.low)])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;
    use crate::norms::NormSpec;
    use crate::numeric::Streams;
    use crate::params::ParamLayout;

    #[test]
    fn rows_that_are_skipped_are_not_the_smallest() {
        let mut rows = Matrix::zeros(60, 9);
        let mut stream = Streams::new(4).stream("proof");
        stream.fill_normal(&mut rows.data);
        // two rows that agree to 1e-15
        let copy: Vec<f64> = rows.row(3).iter().map(|x| x * (1.0 + 1e-15)).collect();
        rows.row_mut(4).copy_from_slice(&copy);
        let mut v = vec![0.0; 9];
        stream.fill_normal(&mut v);
        let problem = MarginProblem::new(rows.clone(), NormSpec::Linf, ParamLayout::vector(9)).unwrap();
        let precise: Vec<Precise> = v.iter().map(|x| Precise::from(*x)).collect();
        let all = (0..60).map(|i| crate::intervals::enclosed_dot(rows.row(i), &v)).reduce(Interval::min).unwrap();
        let found = smallest_product(&problem, &precise, &v);
        assert!(found == all, "{found:?} {all:?}");
    }

    #[test]
    fn the_low_half_of_a_direction_counts() {
        // rows (1, δ) and (−1, δ): v = (1e-20, 1) loses 1e-20 of the margin δ = 1e-12
        let rows = Matrix::from_rows(&[&[1.0, 1e-12], &[-1.0, 1e-12]]);
        let problem = MarginProblem::new(rows, NormSpec::L2, ParamLayout::vector(2)).unwrap();
        let off = Precise { high: 1e-20, low: 0.0 };
        let found = proven_margin(&problem, &[off, Precise::from(1.0)]).unwrap();
        assert!(found.lo > 0.999_999e-12 && found.hi < 1e-12);
        let dual = [Precise { high: 0.5, low: 1e-25 }, Precise { high: 0.5, low: -1e-25 }];
        let upper = proven_upper_bound(&problem, &dual, &[]).unwrap();
        assert!(upper.contains(1e-12) || (upper.lo - 1e-12).abs() < 1e-27);
    }
}
