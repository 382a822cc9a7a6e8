//! How close the direction of a network's weights is to a KKT point, from multipliers that anyone can check.
//!
//! The tangent problem at θ (see `tangent`) is rebuilt from data and weights alone; no solver takes part. With
//! multipliers p, e, s and any direction v,
//!
//! ```text
//! γ(v) ≤ γ_tan ≤ ‖Σ p h + Σ e c + Σ s r‖_*/Σp,      τ = 1 − L q_min/(‖θ‖ γ_tan)
//! 1 − τ(p) = β/(1 + S),   β = ⟨z, θ⟩/(‖θ‖‖z‖_*),   S = Σ p_k (q_k/q_min − 1)/Σp
//! ```
//!
//! so that τ(p) bounds both KKT measures at once: stationarity 1 − β ≤ τ (Ct.align) and complementarity S ≤ τ/(1 − τ)
//! (Ct.slack).
//!
//! The arithmetic is plain. A margin of a network is a sum of products layer after layer; with n terms an entry and a
//! depth of D its relative error is at most nD·2⁻⁵³ times the ratio of the sums of absolute values to the sums
//! themselves, and the same holds for gradients, norms and products with v. [`ALLOWANCE`] covers n = 10⁴, D = 3 and a
//! ratio of 30. Kinks taken within a tolerance add the defect of Euler's identity. Both are added to either end of τ.

use serde::{Deserialize, Serialize};

use super::document::Bound;
use super::tangent::{Coverage, Slopes, TangentProblem};
use super::{CertificateError, Doubt, Verdict};
use crate::intervals::Interval;
use crate::linalg::dot;
use crate::reference::Multipliers;

/// Relative error allowed for in τ.
pub const ALLOWANCE: f64 = 1e-10;

/// What proves or refutes that a direction is a KKT point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StationarityEvidence {
    /// τ, allowances included: the upper end from the multipliers, the lower end from the direction.
    pub tau: Interval,
    /// γ_tan.
    pub tangent_margin: Interval,
    /// q_min > 0.
    pub smallest_margin: f64,
    /// ‖θ‖.
    pub size: f64,
    /// 1 − β of the multipliers.
    pub stationarity: f64,
    /// S of the multipliers.
    pub complementarity: f64,
    /// Kinks within the tolerance.
    pub kinks: usize,
    /// Whether the rows cover all of Clarke's subdifferential, or the lower end of τ means nothing.
    pub complete: bool,
    /// How well Euler's identity holds for all slopes used.
    pub euler_defect: f64,
    /// v; empty where only the upper end is of interest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub direction: Vec<f64>,
    /// p ≥ 0, one for every margin, or for every one of `margins`.
    pub rows: Vec<f64>,
    /// The margins that carry weight, where there are too many to hold the rows of all; empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub margins: Vec<usize>,
    /// 0 ≤ e ≤ p, one for every kink of every margin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slopes: Vec<f64>,
    /// s ≥ 0, one for every cone row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cone: Vec<f64>,
}

/// The slopes that certificates use at kinks within a tolerance.
pub(super) fn slopes(tolerance: f64) -> Slopes {
    Slopes::Clarke { tolerance }
}

impl StationarityEvidence {
    /// What a direction and multipliers prove about a tangent problem.
    pub fn new(
        tangent: &TangentProblem,
        direction: Vec<f64>,
        multipliers: Multipliers,
    ) -> Result<Self, CertificateError> {
        Self::of_some(tangent, direction, multipliers, None)
    }

    /// The same where the problem holds some of the margins only, and the direction has `lowest` = min ⟨h, v⟩/‖v‖ over all
    /// of them.
    pub(super) fn of_some(
        tangent: &TangentProblem,
        direction: Vec<f64>,
        multipliers: Multipliers,
        lowest: Option<f64>,
    ) -> Result<Self, CertificateError> {
        let (problem, clean) = (&tangent.problem, tangent.problem.clean(&multipliers));
        let sizes = [
            ("the number of dual weights", multipliers.rows.len(), problem.rows.rows),
            ("the number of slopes", multipliers.kinks.len(), problem.kinks.len()),
            ("the number of cone multipliers", multipliers.cone.len(), problem.cone.len()),
        ];
        if let Some((what, found, _)) = sizes.into_iter().find(|(_, found, expected)| found != expected) {
            let range = "that of the tangent problem";
            return Err(CertificateError::OutOfRange { what, value: found as f64, range });
        }
        if clean != multipliers {
            let outside = multipliers.rows.iter().chain(&multipliers.cone).find(|x| !(x.is_finite() && **x >= 0.0));
            let (what, range) = ("a multiplier", "at least 0, and a slope at most its margin's weight");
            return Err(CertificateError::OutOfRange { what, value: outside.copied().unwrap_or(f64::NAN), range });
        }
        let total: f64 = clean.rows.iter().sum();
        let z = problem.combine(&clean);
        let own = tangent.own_value();
        let bracket = problem.bracket(if direction.is_empty() { &tangent.params } else { &direction }, &clean)?;
        let lower = match lowest {
            _ if direction.is_empty() => own,
            Some(lowest) => bracket.lower.min(lowest).max(own),
            None => bracket.lower.max(own),
        };
        let every = tangent.margin_of_row.iter().copied().eq(0..tangent.margins.len());
        let upper = bracket.upper.max(lower);
        let (q, defect) = (tangent.smallest_margin(), tangent.euler_defect());
        let allowed = ALLOWANCE + defect;
        let tau = Interval::new((1.0 - own / lower - allowed).max(0.0), (1.0 - own / upper).max(0.0) + allowed);
        let excess = tangent.margin_of_row.iter().zip(&clean.rows).map(|(&k, p)| p * (tangent.margins[k] / q - 1.0));
        Ok(Self {
            tau,
            tangent_margin: Interval::new(lower, upper),
            smallest_margin: q,
            size: tangent.size,
            stationarity: 1.0 - dot(&z, &tangent.params) / (tangent.size * bracket.upper * total),
            complementarity: excess.sum::<f64>() / total,
            kinks: tangent.kinks,
            complete: tangent.coverage != Coverage::Partial,
            euler_defect: defect,
            direction,
            rows: clean.rows,
            margins: if every { Vec::new() } else { tangent.margin_of_row.clone() },
            slopes: clean.kinks,
            cone: clean.cone,
        })
    }

    /// The multipliers it holds.
    pub(super) fn multipliers(&self) -> Multipliers {
        Multipliers { rows: self.rows.clone(), kinks: self.slopes.clone(), cone: self.cone.clone() }
    }

    /// What the bounds say about τ of at most `tolerance`.
    pub fn verdict(&self, tolerance: f64) -> Verdict {
        match Verdict::of_bounds(self.tau.lo, self.tau.hi, tolerance) {
            Verdict::Certified => Verdict::Certified,
            _ if !self.complete => Verdict::Inconclusive(Doubt::Kinks),
            other => other,
        }
    }

    /// The bounds of the evidence, by name.
    pub(super) fn bounds(&mut self) -> Vec<Bound<'_>> {
        // scores of networks are sums whose order depends on the machine
        let size = self.tangent_margin.magnitude();
        vec![
            Bound { name: "tau", interval: &mut self.tau, room: 1e-11 },
            Bound { name: "tangent_margin", interval: &mut self.tangent_margin, room: 1e-11 * size },
        ]
    }

    /// Its other numbers, by name.
    pub(super) fn numbers(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("smallest_margin", self.smallest_margin),
            ("size", self.size),
            ("stationarity", self.stationarity),
            ("complementarity", self.complementarity),
            ("kinks", self.kinks as f64),
            ("complete", f64::from(u8::from(self.complete))),
            ("euler_defect", self.euler_defect),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Targets;
    use crate::engine::{Compute, cpu};
    use crate::linalg::Matrix;
    use crate::models::ModelSpec;
    use crate::norms::NormSpec;

    /// One point x = (3, 4) and one ReLU unit, f = a·relu(⟨w, x⟩). In ℓ2 the KKT point has w along x and |a| = |w|;
    /// with one margin the multiplier is p = 1 and needs no solver.
    fn tangent(theta: &[f64]) -> TangentProblem {
        let inputs = Matrix::from_rows(&[&[3.0, 4.0]]);
        let mut model = cpu::bind(&ModelSpec::relu(&[1]), &inputs, 1, Compute::default()).unwrap();
        let targets = Targets::Binary(vec![1.0]);
        TangentProblem::new(&mut *model, &targets, theta, &NormSpec::L2.into(), slopes(1e-9)).unwrap()
    }

    fn alone() -> Multipliers {
        Multipliers::of_rows(vec![1.0])
    }

    #[test]
    fn the_kkt_point_of_one_neuron_is_certified_and_another_point_refuted() {
        let at = tangent(&[0.6, 0.8, 1.0]);
        let evidence = StationarityEvidence::new(&at, vec![], alone()).unwrap();
        assert!(evidence.tau.hi <= 2.0 * ALLOWANCE && evidence.stationarity.abs() < 1e-14, "{evidence:?}");
        assert_eq!(evidence.verdict(1e-9), Verdict::Certified);
        // |a| = 2|w|: h = (a x, 5), |h| = √(100 + 25), L q = 2·10, ‖θ‖ = √5: τ = 1 − 20/(√5·√125) = 1/5
        let at = tangent(&[0.6, 0.8, 2.0]);
        let h = at.problem.rows.row(0).to_vec();
        let evidence = StationarityEvidence::new(&at, h, alone()).unwrap();
        assert!((evidence.tau.lo - 0.2).abs() < 1e-9 && (evidence.tau.hi - 0.2).abs() < 1e-9, "{:?}", evidence.tau);
        assert!((evidence.stationarity - 0.2).abs() < 1e-12 && evidence.complementarity == 0.0);
        assert_eq!(evidence.verdict(0.1), Verdict::Refuted);
        assert_eq!(evidence.verdict(0.3), Verdict::Certified);
        // without a direction nothing is refuted
        let evidence = StationarityEvidence::new(&at, vec![], alone()).unwrap();
        assert_eq!(evidence.verdict(0.1), Verdict::Inconclusive(Doubt::Undecided));
    }

    #[test]
    fn evidence_that_does_not_fit_is_refused() {
        let at = tangent(&[0.6, 0.8, 1.0]);
        for multipliers in [Multipliers::of_rows(vec![0.5, 0.5]), Multipliers::of_rows(vec![-1.0])] {
            assert!(StationarityEvidence::new(&at, vec![], multipliers).is_err());
        }
        let partial =
            StationarityEvidence { complete: false, ..StationarityEvidence::new(&at, vec![], alone()).unwrap() };
        let far = StationarityEvidence { tau: Interval::new(0.2, 0.3), ..partial };
        assert_eq!(far.verdict(1e-3), Verdict::Inconclusive(Doubt::Kinks));
    }
}
