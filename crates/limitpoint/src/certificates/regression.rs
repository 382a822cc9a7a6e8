//! How close weights are to the solution of Xw = y that is nearest to the start in a Bregman divergence.
//!
//! ```text
//! w* = argmin D_R(w, w(0)) subject to Xw = y     ⟺     Xw* = y  and  ∇R(w*) = ∇R(w(0)) + Xᵀν          (B Theorem 1)
//! ```
//!
//! The judge's w* and ν come with the evidence, and both conditions are measured anew, so nothing is believed of the
//! solver that found them. How far the true argmin w° can be from such a pair: with ρ = ∇R(w*) − ∇R(w(0)) − Xᵀν and r =
//! Xw* − y, the symmetric divergence is D_R(w*, w°) + D_R(w°, w*) = ⟨ρ, w* − w°⟩ + ⟨ν − ν°, r⟩, which vanishes with the
//! two residuals. They must be below [`ACCURACY`]. The arithmetic is plain.

use serde::{Deserialize, Serialize};

use super::{CertificateError, Doubt, Verdict};
use crate::data::{Dataset, Targets};
use crate::linalg::norm2;
use crate::params::ParamLayout;
use crate::potentials::PotentialSpec;

/// Residuals that the judge's own solution must reach.
pub const ACCURACY: f64 = 1e-8;

/// What proves or refutes that weights are the nearest solution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SolutionEvidence {
    /// ‖w − w*‖₂/‖w* − w(0)‖₂, absolute where w* = w(0).
    pub distance: f64,
    /// ‖Xw − y‖₂/‖Xw(0) − y‖₂ of the weights.
    pub residual: f64,
    /// ‖Xw* − y‖₂/‖Xw(0) − y‖₂ of the judge's solution.
    pub reference_residual: f64,
    /// ‖∇R(w*) − ∇R(w(0)) − Xᵀν‖₂/‖∇R(w*) − ∇R(w(0))‖₂.
    pub dual_residual: f64,
    /// w*, the judge's solution.
    pub reference: Vec<f64>,
    /// ν, one for every equation.
    pub multipliers: Vec<f64>,
}

impl SolutionEvidence {
    /// Measures weights and a reference solution with its multipliers.
    ///
    /// ```
    /// use limitpoint::certificates::{SolutionEvidence, Verdict};
    /// use limitpoint::data::{Dataset, Targets};
    /// use limitpoint::linalg::Matrix;
    /// use limitpoint::params::ParamLayout;
    /// use limitpoint::potentials::PotentialSpec;
    /// // w₁ + w₂ = 2 from the start (0, 0): the nearest solution in ℓ2 is (1, 1) = Xᵀ·1
    /// let data = Dataset::new("one", Matrix::from_rows(&[&[1.0, 1.0]]), Targets::Values(vec![2.0]), vec![2]).unwrap();
    /// let layout = ParamLayout::vector(2);
    /// let shown = |weights: &[f64]| {
    ///     let start = [0.0, 0.0];
    ///     SolutionEvidence::new(&PotentialSpec::Euclidean, &layout, &data, weights, &start, vec![1.0, 1.0], vec![1.0])
    /// };
    /// assert_eq!(shown(&[1.0, 1.0])?.verdict(1e-3), Verdict::Certified);
    /// assert_eq!(shown(&[2.0, 0.0])?.verdict(1e-3), Verdict::Refuted);
    /// # Ok::<(), limitpoint::certificates::CertificateError>(())
    /// ```
    pub fn new(
        potential: &PotentialSpec,
        layout: &ParamLayout,
        data: &Dataset,
        weights: &[f64],
        start: &[f64],
        reference: Vec<f64>,
        multipliers: Vec<f64>,
    ) -> Result<Self, CertificateError> {
        [weights, start, &reference].into_iter().try_for_each(|w| layout.check(w))?;
        let Targets::Values(targets) = &data.targets else {
            let (what, range) = ("the number of real targets", "that of the examples");
            return Err(CertificateError::OutOfRange { what, value: 0.0, range });
        };
        if multipliers.len() != data.len() || layout.len() != data.dimension() {
            let (what, range) =
                ("the number of multipliers", "one for every equation of a linear model with one output");
            return Err(CertificateError::OutOfRange { what, value: multipliers.len() as f64, range });
        }
        let misfit = |w: &[f64]| {
            let residuals: Vec<f64> = (0..data.len()).map(|i| data.inputs.row_dot(i, w) - targets[i]).collect();
            norm2(&residuals)
        };
        let mut potential = potential.build(layout)?;
        [start, &reference].into_iter().try_for_each(|w| potential.check_domain(w))?;
        let (mut from, mut to) = (vec![0.0; layout.len()], vec![0.0; layout.len()]);
        potential.mirror_map(start, &mut from);
        potential.mirror_map(&reference, &mut to);
        let moved = difference(&to, &from);
        let mut left_over = moved.clone();
        (0..data.len()).for_each(|i| data.inputs.add_row(i, -multipliers[i], &mut left_over));
        let begin = misfit(start);
        Ok(Self {
            distance: relative(norm2(&difference(weights, &reference)), norm2(&difference(&reference, start))),
            residual: relative(misfit(weights), begin),
            reference_residual: relative(misfit(&reference), begin),
            dual_residual: relative(norm2(&left_over), norm2(&moved)),
            reference,
            multipliers,
        })
    }

    /// What the distance says about being at most `tolerance`.
    pub fn verdict(&self, tolerance: f64) -> Verdict {
        if !(self.reference_residual <= ACCURACY && self.dual_residual <= ACCURACY) {
            return Verdict::Inconclusive(Doubt::SolverStopped);
        }
        match Verdict::of_bounds(self.distance - ACCURACY, self.distance + ACCURACY, tolerance) {
            Verdict::Refuted if self.residual > tolerance => Verdict::Inconclusive(Doubt::NotYetInterpolating),
            other => other,
        }
    }

    /// The numbers of the evidence, by name.
    pub(super) fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("distance", self.distance),
            ("residual", self.residual),
            ("reference_residual", self.reference_residual),
            ("dual_residual", self.dual_residual),
        ]
    }
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// size/scale, or the size itself where the scale is 0.
fn relative(size: f64, scale: f64) -> f64 {
    if scale > 0.0 { size / scale } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;

    fn data() -> Dataset {
        Dataset::new("one", Matrix::from_rows(&[&[1.0, 3.0]]), Targets::Values(vec![5.0]), vec![2]).unwrap()
    }

    fn evidence(
        potential: &PotentialSpec,
        weights: &[f64],
        start: &[f64],
        reference: &[f64],
        multiplier: f64,
    ) -> SolutionEvidence {
        let (reference, multipliers) = (reference.to_vec(), vec![multiplier]);
        let layout = ParamLayout::vector(2);
        SolutionEvidence::new(potential, &layout, &data(), weights, start, reference, multipliers).unwrap()
    }

    #[test]
    fn nearest_solutions_by_hand_are_certified() {
        // ℓ2 from (0, 0): w* = ½(1, 3), ν = ½
        let found = evidence(&PotentialSpec::Euclidean, &[0.5, 1.5], &[0.0, 0.0], &[0.5, 1.5], 0.5);
        assert_eq!((found.distance, found.residual), (0.0, 0.0));
        assert_eq!(found.verdict(1e-6), Verdict::Certified);
        // entropy from (1, 1): w* = (t, t³) with t + 3t³ = 5, ν = ln t
        let t = (0..200).fold(1.0_f64, |t, _| t - (t + 3.0 * t.powi(3) - 5.0) / (1.0 + 9.0 * t * t));
        let reference = [t, t.powi(3)];
        let found = evidence(&PotentialSpec::Entropy, &reference, &[1.0, 1.0], &reference, t.ln());
        assert!(found.dual_residual < 1e-14 && found.reference_residual < 1e-14, "{found:?}");
        assert_eq!(found.verdict(1e-6), Verdict::Certified);
    }

    #[test]
    fn another_solution_is_refuted_and_no_solution_yet_is_left_open() {
        let (zero, best) = ([0.0, 0.0], [0.5, 1.5]);
        let shown = |weights: &[f64]| evidence(&PotentialSpec::Euclidean, weights, &zero, &best, 0.5);
        assert_eq!(shown(&[5.0, 0.0]).verdict(1e-3), Verdict::Refuted);
        assert_eq!(shown(&[0.4, 1.2]).verdict(1e-3), Verdict::Inconclusive(Doubt::NotYetInterpolating));
        assert_eq!(shown(&[0.5 + 1e-6, 1.5]).verdict(1e-3), Verdict::Certified);
    }

    #[test]
    fn a_wrong_reference_proves_nothing() {
        // a solution that is not the nearest one, and one that solves nothing
        for (reference, multiplier) in [([5.0, 0.0], 0.5), ([0.5, 1.5], 0.4), ([0.5, 1.4], 0.5)] {
            let found = evidence(&PotentialSpec::Euclidean, &reference, &[0.0, 0.0], &reference, multiplier);
            assert_eq!(found.verdict(1e-3), Verdict::Inconclusive(Doubt::SolverStopped), "{found:?}");
        }
    }

    #[test]
    fn weights_outside_the_domain_are_refused() {
        let layout = ParamLayout::vector(2);
        let refused = |start: &[f64], multipliers: Vec<f64>| {
            let (weights, reference) = ([0.5, 1.5], vec![0.5, 1.5]);
            SolutionEvidence::new(&PotentialSpec::Entropy, &layout, &data(), &weights, start, reference, multipliers)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(&[1.0, -1.0], vec![0.5]).contains("-1"));
        assert!(refused(&[1.0, 1.0], vec![]).contains("one for every equation"));
    }
}
