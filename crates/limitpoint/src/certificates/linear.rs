//! The margin of a linear model against the largest one, with bounds that hold in exact arithmetic.
//!
//! ```text
//! γ(w) = min_i ⟨h_i, w⟩/‖w‖       what the weights achieve
//! γ(v) ≤ γ* ≤ ‖Σ p_i h_i + Σ s_m r_m‖_*/Σp        any v in the cone, any p, s ≥ 0 (B Lemma 9, Ct.bracket)
//! gap  = 1 − γ(w)/γ*
//! ```
//!
//! Weights, data and multipliers are doubles, so they are exact; everything computed from them is enclosed in
//! [`Interval`]s, and the gap's two ends are theorems about them. v and p come from the judge's solver, but nothing is
//! believed of it: a worse v or p only widens the bracket.
//!
//! Semidefinite problems (B Theorem 7): a matrix W need not be exactly semidefinite. With ε ≥ −λ_min(W) the shifted
//! (W + Wᵀ)/2 + εI is, and its margin is the one that counts; the upper bound is λ_max(Σ p_i H_i)/Σp.

use serde::{Deserialize, Serialize};

use super::document::Bound;
use super::{CertificateError, Doubt, Verdict};
use crate::intervals::Interval;
use crate::linalg::Precise;
use crate::reference::{MarginProblem, proven_margin, proven_upper_bound};

/// Upper bounds below this share of the rows' size are 0 up to rounding: the multipliers combine the rows to nothing.
const NOTHING: f64 = 1e-14;

/// What proves or refutes a largest margin: the bounds, and the direction and multipliers that prove them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MarginEvidence {
    /// γ(w) of the weights.
    pub achieved: Interval,
    /// γ*: the lower end from `direction` or the weights, the upper end from the multipliers.
    pub optimum: Interval,
    /// 1 − γ(w)/γ*; nothing is known of it unless the weights separate the data.
    pub gap: Interval,
    /// v, the judge's own direction.
    pub direction: Vec<f64>,
    /// p ≥ 0, one for every margin.
    pub rows: Vec<f64>,
    /// s ≥ 0, one for every cone row; empty without a cone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cone: Vec<f64>,
}

impl MarginEvidence {
    /// The bounds that a direction and multipliers prove; the problem may have cone rows, but no kinks.
    ///
    /// ```
    /// use limitpoint::certificates::{MarginEvidence, Verdict};
    /// use limitpoint::linalg::Matrix;
    /// use limitpoint::norms::NormSpec;
    /// use limitpoint::params::ParamLayout;
    /// use limitpoint::reference::MarginProblem;
    /// // rows (1, 0) and (0, 1): the best direction in ℓ2 is (1, 1)/√2, proved by p = (½, ½)
    /// let rows = Matrix::from_rows(&[&[1.0, 0.0], &[0.0, 1.0]]);
    /// let problem = MarginProblem::new(rows, NormSpec::L2, ParamLayout::vector(2))?;
    /// let evidence = MarginEvidence::new(&problem, &[3.0, 3.0], vec![1.0, 1.0], vec![0.5, 0.5], vec![])?;
    /// assert!(evidence.optimum.square().contains(0.5) && evidence.optimum.width() < 1e-15);
    /// assert_eq!(evidence.verdict(&problem, 1e-14), Verdict::Certified);
    /// # Ok::<(), limitpoint::certificates::CertificateError>(())
    /// ```
    pub fn new(
        problem: &MarginProblem,
        weights: &[f64],
        direction: Vec<f64>,
        rows: Vec<f64>,
        cone: Vec<f64>,
    ) -> Result<Self, CertificateError> {
        problem.layout.check(weights)?;
        check_count("the number of dual weights", rows.len(), problem.rows.rows)?;
        if !cone.is_empty() || !problem.cone.is_empty() {
            check_count("the number of cone multipliers", cone.len(), problem.cone.len())?;
        }
        if let Some(value) = rows.iter().chain(&cone).find(|p| !(p.is_finite() && **p >= 0.0)) {
            return Err(CertificateError::OutOfRange {
                what: "a multiplier",
                value: *value,
                range: "finite and at least 0",
            });
        }
        let precise = |x: &[f64]| x.iter().map(|x| Precise::from(*x)).collect::<Vec<_>>();
        let achieved = proven_margin(problem, &precise(weights))?;
        let reference = if direction.is_empty() { achieved } else { proven_margin(problem, &precise(&direction))? };
        let upper = proven_upper_bound(problem, &precise(&rows), &cone)?;
        let optimum = Interval::new(reference.lo.max(achieved.lo), upper.hi);
        let separated = achieved.lo > 0.0 && optimum.lo > 0.0;
        let gap = if separated {
            let ratio = achieved / optimum;
            (Interval::point(1.0) - ratio).max(Interval::ZERO)
        } else {
            Interval::WHOLE
        };
        Ok(Self { achieved, optimum, gap, direction, rows, cone })
    }

    /// What the bounds say about a gap of at most `tolerance`.
    pub fn verdict(&self, problem: &MarginProblem, tolerance: f64) -> Verdict {
        if self.achieved.lo > 0.0 {
            return Verdict::of_bounds(self.gap.lo, self.gap.hi, tolerance);
        }
        Verdict::Inconclusive(if self.optimum.lo > 0.0 {
            Doubt::NotYetSeparated
        } else if self.optimum.hi <= NOTHING * row_size(problem) {
            Doubt::NotSeparable
        } else {
            Doubt::SolverStopped
        })
    }

    /// The bounds of the evidence, by name.
    pub(super) fn bounds(&mut self) -> Vec<Bound<'_>> {
        // norms of matrices and powers differ between machines in their last digits
        let (achieved, optimum) = (self.achieved.magnitude(), self.optimum.magnitude());
        vec![
            Bound { name: "achieved", interval: &mut self.achieved, room: 1e-13 * achieved },
            Bound { name: "optimum", interval: &mut self.optimum, room: 1e-13 * optimum },
            Bound { name: "gap", interval: &mut self.gap, room: 1e-13 },
        ]
    }
}

fn check_count(what: &'static str, found: usize, expected: usize) -> Result<(), CertificateError> {
    if found == expected {
        return Ok(());
    }
    let range = "one for every row of the problem";
    Err(CertificateError::OutOfRange { what, value: found as f64, range })
}

/// max ‖h_i‖_* in plain arithmetic, the size to which a vanishing margin is compared.
fn row_size(problem: &MarginProblem) -> f64 {
    let Ok(mut norm) = problem.norm.build(&problem.layout) else { return f64::NAN };
    (0..problem.rows.rows).map(|i| norm.dual(problem.rows.row(i))).fold(0.0, f64::max)
}

#[cfg(test)]
#[path = "linear_tests.rs"]
mod tests;
