//! The proof that no direction separates the rows: weights that combine them to 0.
//!
//! ```text
//! r ≥ 0, Σr = 1, Σ r_i h_i = 0     ⇒     no v has ⟨h_i, v⟩ > 0 for all i          (Gordan 1873)
//! ```
//!
//! The proof knows no norm. Weights that a solver brings are moved onto Σ r h = 0 by the shortest step relative to their
//! sizes, so that positive ones stay so, with residuals in precise numbers and corrections by an orthogonal
//! factorisation in doubles, until the sum is 0 up to [`RESIDUAL`] of the terms it adds, in every column; weights that
//! vanish or become negative all the same are left out. What does not get there is no proof and is not given.

use super::proof::enclosed_combination;
use super::refine::Factors;
use super::{MarginProblem, ReferenceError};
use crate::linalg::{Precise, Scalar};
use crate::numeric::power_of_two;

/// What may be left of a column's sum, relative to Σ r_i |h_ij|.
const RESIDUAL: f64 = 1e-24;
/// Shares of the largest weight below which rows are left out, one attempt each.
const CUTS: [f64; 3] = [1e-12, 1e-8, 1e-4];
/// Corrections of one set of weights.
const CORRECTIONS: usize = 12;

/// Weights near `start` that prove the rows inseparable, if they do.
pub(super) fn combine_to_zero(
    problem: &MarginProblem,
    start: &[Precise],
) -> Result<Option<Vec<Precise>>, ReferenceError> {
    // rows of about the same size: the weights of a row that is large are small, not unimportant
    let columns: Vec<usize> = problem.layout.trainable_ranges().into_iter().flatten().collect();
    let most = |i: usize| columns.iter().fold(0.0, |most: f64, &j| most.max(problem.rows.row(i)[j].abs()));
    let sizes: Vec<f64> = (0..problem.rows.rows).map(|i| power_of_two(most(i))).collect();
    if let Some(empty) = (0..sizes.len()).find(|&i| most(i) == 0.0) {
        let mut weights = vec![Precise::default(); sizes.len()];
        weights[empty] = Precise::from(1.0);
        return Ok(Some(weights));
    }
    let scaled: Vec<f64> = start.iter().zip(&sizes).map(|(r, size)| r.value().max(0.0) * size).collect();
    let heaviest = scaled.iter().copied().fold(0.0, f64::max);
    let mut last = 0;
    for cut in CUTS {
        let used: Vec<usize> = (0..scaled.len()).filter(|&i| scaled[i] > cut * heaviest).collect();
        if used.is_empty() || used.len() == last {
            continue;
        }
        last = used.len();
        let Some(weights) = settle(problem, (&columns, &sizes), used, &scaled) else { continue };
        if vanishes(problem, &columns, &weights) {
            return Ok(Some(weights));
        }
    }
    Ok(None)
}

/// Moves the weights of the used rows onto the equations; drops those that become negative and starts again.
fn settle(
    problem: &MarginProblem,
    (columns, sizes): (&[usize], &[f64]),
    mut used: Vec<usize>,
    start: &[f64],
) -> Option<Vec<Precise>> {
    for _ in 0..CORRECTIONS {
        let entry = |i: usize, j: usize| problem.rows.row(i)[j] / sizes[i];
        let sums = columns.iter().map(|&j| used.iter().map(|&i| entry(i, j)).collect::<Vec<f64>>());
        let mut equations: Vec<Vec<f64>> = vec![vec![1.0; used.len()]];
        equations.extend(sums.filter(|column| column.iter().any(|x| *x != 0.0)));
        let total: f64 = used.iter().map(|&i| start[i]).sum();
        let share: Vec<f64> = used.iter().map(|&i| start[i] / total).collect();
        let relative = |row: &Vec<f64>| row.iter().zip(&share).map(|(h, share)| h * share).collect::<Vec<f64>>();
        let factors = Factors::new(used.len(), &equations.iter().map(relative).collect::<Vec<_>>());
        let mut r: Vec<Precise> = share.iter().map(|share| Precise::from(*share)).collect();
        let mut before = f64::INFINITY;
        for _ in 0..CORRECTIONS {
            let rest: Vec<f64> = equations
                .iter()
                .enumerate()
                .map(|(k, row)| {
                    let sum = row.iter().zip(&r).fold(Precise::default(), |sum, (h, r)| sum + r.times(*h));
                    (Precise::from(if k == 0 { 1.0 } else { 0.0 }) - sum).value()
                })
                .collect();
            let size = rest.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            if size == 0.0 || size > 0.5 * before {
                break;
            }
            before = size;
            let step = factors.least_norm(&rest);
            r.iter_mut().zip(step.iter().zip(&share)).for_each(|(r, (step, share))| *r += Precise::from(step * share));
        }
        if r.iter().any(|r| !r.is_finite()) {
            return None;
        }
        // a weight that all but vanished has to: what is left of it is rounding
        let stays = |(r, share): (&Precise, &f64)| r.value() > 1e-8 * share;
        if r.iter().zip(&share).all(stays) {
            let mut weights = vec![Precise::default(); problem.rows.rows];
            used.iter().zip(&r).for_each(|(&i, r)| weights[i] = r.times(sizes[i].recip()));
            let total = weights.iter().fold(Precise::default(), |sum, r| sum + *r);
            weights.iter_mut().for_each(|r| *r = *r / total);
            return Some(weights);
        }
        let mut keep = r.iter().zip(&share).map(stays);
        used.retain(|_| keep.next().unwrap_or(false));
        if used.is_empty() {
            return None;
        }
    }
    None
}

/// Whether every column's sum is 0 up to [`RESIDUAL`] of its terms.
fn vanishes(problem: &MarginProblem, columns: &[usize], weights: &[Precise]) -> bool {
    let mut terms = vec![0.0; problem.rows.cols];
    for (i, r) in weights.iter().enumerate().filter(|(_, r)| r.high != 0.0) {
        terms.iter_mut().zip(problem.rows.row(i)).for_each(|(sum, h)| *sum += r.high * h.abs());
    }
    let sums = enclosed_combination(problem, weights, &[]);
    columns.iter().all(|&j| sums[j].magnitude() <= RESIDUAL * terms[j])
}
