//! The regularisation path: the smallest exponential loss inside a norm ball, with its proof.
//!
//! ```text
//! ŵ(c) = argmin { ln L(w) : ‖w‖ ≤ c },      L(w) = Σ exp(−⟨h_n, w⟩),      h_n = y_n x_n
//! ```
//!
//! As c → ∞ the direction ŵ(c)/c tends to the max-margin direction of the norm, if that is unique (B.regpath; Rosset,
//! Zhu and Hastie 2004, theorem 2.1). Weights r on the simplex, with entropy H(r) = −Σ r_n ln r_n, bound the loss from
//! below (Gibbs' variational principle, then the definition of the dual norm):
//!
//! ```text
//! ln L(w) = max_r H(r) − ⟨Σ r_n h_n, w⟩ ≥ H(r) − c‖Σ r_n h_n‖_*          for all ‖w‖ ≤ c and all r
//! ```
//!
//! Among all r the soft-min weights of ŵ(c) attain it.

use super::ReferenceError;
use super::conic::minimise_loss;
use crate::linalg::{Matrix, add_scaled, dot};
use crate::norms::{Norm, NormSpec};
use crate::numeric::log_sum_exp;
use crate::params::ParamLayout;

/// Gap, relative to 1 + |ln L|, at which the solver stops.
const GOAL: f64 = 1e-10;
/// Relative gap above which there is no answer.
const USELESS: f64 = 1e-6;

/// The smallest exponential loss in a norm ball, and the proof that there is none smaller.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstrainedLoss {
    /// c.
    pub radius: f64,
    /// w with ‖w‖ ≤ c; 0 in frozen blocks.
    pub weights: Vec<f64>,
    /// ln L(w).
    pub log_loss: f64,
    /// H(r) − c‖Σ r_n h_n‖_*, which no w with ‖w‖ ≤ c goes below, up to rounding.
    pub lower_bound: f64,
    /// The soft-min weights r_n = exp(−⟨h_n, w⟩)/L(w), which prove the lower bound.
    pub softmin: Vec<f64>,
    /// Linear systems solved.
    pub iterations: usize,
}

impl ConstrainedLoss {
    /// `log_loss` − `lower_bound`: how far ln L(w) may be from its minimum.
    pub fn gap(&self) -> f64 {
        self.log_loss - self.lower_bound
    }

    /// The gap relative to 1 + |ln L|.
    pub fn relative_gap(&self) -> f64 {
        self.gap() / (1.0 + self.log_loss.abs())
    }
}

/// Minimises ln Σ exp(−⟨h_n, w⟩) over ‖w‖ ≤ c, for the rows h_n and any norm of the library.
///
/// Works for data that are not separable too, where w may lie inside the ball. Losses are kept as logarithms, so c may
/// be large: what limits the accuracy is the rounding of c⟨h_n, v⟩. Where several w are equally good, the one the
/// central path ends at is returned. The method stops at a relative gap of 1e-10; where rounding ends it earlier, the
/// answer says so in [`ConstrainedLoss::relative_gap`], and above 1e-6 it is an error.
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::norms::NormSpec;
/// use limitpoint::params::ParamLayout;
/// use limitpoint::reference::constrained_loss;
/// // one point (3, 4): the best w is 100·(3, 4)/5, with ln L = −100·5
/// let found = constrained_loss(&Matrix::from_rows(&[&[3.0, 4.0]]), &NormSpec::L2, &ParamLayout::vector(2), 100.0)?;
/// assert!((found.log_loss + 500.0).abs() < 1e-7 && found.relative_gap() < 1e-9);
/// assert!((found.weights[0] - 60.0).abs() < 1e-2 && (found.weights[1] - 80.0).abs() < 1e-2);
/// # Ok::<(), limitpoint::reference::ReferenceError>(())
/// ```
pub fn constrained_loss(
    rows: &Matrix,
    norm: &NormSpec,
    layout: &ParamLayout,
    radius: f64,
) -> Result<ConstrainedLoss, ReferenceError> {
    if rows.rows == 0 || rows.cols != layout.len() {
        return Err(ReferenceError::Rows { rows: rows.rows, columns: rows.cols, expected: layout.len() });
    }
    if let Some(at) = rows.data.iter().position(|x| !x.is_finite()) {
        return Err(ReferenceError::NotFinite { row: at / rows.cols, column: at % rows.cols, value: rows.data[at] });
    }
    if !(radius > 0.0 && radius.is_finite()) {
        return Err(ReferenceError::OutOfRange { what: "the radius", value: radius, range: "positive and finite" });
    }
    let mut worker = norm.build(layout)?;
    let unit = (0..rows.rows).map(|n| worker.dual(rows.row(n))).fold(0.0, f64::max);
    if !(unit * radius).is_finite() {
        let range = "finite; rescale the rows or lower the radius";
        return Err(ReferenceError::OutOfRange { what: "radius times the largest row", value: unit * radius, range });
    }
    let mut best = assess(rows, &mut *worker, radius, vec![0.0; rows.cols]);
    if unit * radius == 0.0 {
        return Ok(best);
    }
    let entries: Vec<usize> = layout.trainable_ranges().into_iter().flatten().collect();
    let mut compact = Matrix::zeros(rows.rows, entries.len());
    for n in 0..rows.rows {
        compact.row_mut(n).iter_mut().zip(&entries).for_each(|(out, &j)| *out = rows.row(n)[j] / unit);
    }
    let iterations = minimise_loss(&compact, norm, layout, unit * radius, &mut |v| {
        let mut w = vec![0.0; rows.cols];
        entries.iter().zip(v).for_each(|(&j, v)| w[j] = radius * v);
        let next = assess(rows, &mut *worker, radius, w);
        if next.gap() < best.gap() {
            best = next;
        }
        best.relative_gap() <= GOAL
    })?;
    best.iterations = iterations;
    if best.relative_gap() <= USELESS {
        return Ok(best);
    }
    Err(ReferenceError::NoConvergence {
        solver: "the constrained loss",
        status: format!("ln L between {} and {}", best.lower_bound, best.log_loss),
        iterations,
        gap: best.relative_gap(),
        remedy: "rescale the rows to similar sizes, or lower the radius",
    })
}

/// H(r) − c‖Σ r_n h_n‖_*: what weights r ≥ 0 prove about ln Σ exp(−⟨h_n, w⟩) for all ‖w‖ ≤ c.
///
/// r is scaled to Σr = 1 first; 0 ln 0 = 0. Any r gives a valid bound, whoever found it.
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::norms::NormSpec;
/// use limitpoint::reference::log_loss_bound;
/// // opposite points: equal weights cancel, so that no w has a loss below 2
/// let rows = Matrix::from_rows(&[&[1.0, 2.0], &[-1.0, -2.0]]);
/// let mut norm = NormSpec::L1.build_vector(2)?;
/// assert_eq!(log_loss_bound(&rows, &mut *norm, 1e4, &[1.0, 1.0]), 2f64.ln());
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub fn log_loss_bound(rows: &Matrix, norm: &mut dyn Norm, radius: f64, r: &[f64]) -> f64 {
    let total: f64 = r.iter().sum();
    let mut mean = vec![0.0; rows.cols];
    let mut entropy = 0.0;
    for (n, r) in r.iter().map(|r| r / total).enumerate().filter(|(_, r)| *r != 0.0) {
        add_scaled(&mut mean, r, rows.row(n));
        entropy -= r * r.ln();
    }
    entropy - radius * norm.dual(&mean)
}

/// What w is worth.
fn assess(rows: &Matrix, norm: &mut dyn Norm, radius: f64, weights: Vec<f64>) -> ConstrainedLoss {
    let exponents: Vec<f64> = (0..rows.rows).map(|n| -dot(rows.row(n), &weights)).collect();
    let log_loss = log_sum_exp(&exponents);
    // relative to the largest, since ln L is rounded to 1e-16|ln L|
    let highest = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut softmin: Vec<f64> = exponents.iter().map(|x| (x - highest).exp()).collect();
    let total: f64 = softmin.iter().sum();
    softmin.iter_mut().for_each(|r| *r /= total);
    let lower_bound = log_loss_bound(rows, norm, radius, &softmin);
    ConstrainedLoss { radius, weights, log_loss, lower_bound, softmin, iterations: 0 }
}

#[cfg(test)]
#[path = "constrained_loss_tests.rs"]
mod tests;
