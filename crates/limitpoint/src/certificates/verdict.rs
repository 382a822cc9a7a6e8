//! What a certificate answers.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::RunClaim;
use crate::diagnostics::DirectionCourse;

/// The answer to a claim; always beside the evidence it follows from.
///
/// ```
/// use limitpoint::certificates::{Doubt, Verdict};
/// let verdict = Verdict::Inconclusive(Doubt::NotSeparable);
/// assert_eq!(serde_json::to_string(&verdict).unwrap(), r#"{"verdict":"inconclusive","reason":"not-separable"}"#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", content = "reason", rename_all = "kebab-case")]
pub enum Verdict {
    /// The evidence proves the claim.
    Certified,
    /// The evidence proves that the claim is false.
    Refuted,
    /// Neither, and why.
    Inconclusive(Doubt),
}

/// Why nothing could be concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// No direction separates the data, so there is no margin to maximise.
    NotSeparable,
    /// The data can be separated, but the weights do not separate them yet.
    NotYetSeparated,
    /// The weights do not solve the equations yet.
    NotYetInterpolating,
    /// The model has no degree, so that its direction need not converge to a KKT point.
    NotHomogeneous,
    /// The path of the direction shows no end, so that the weights say nothing about a limit.
    NoLimitDirection,
    /// Kinks in several layers: the part of the subdifferential that was covered does not refute the claim.
    Kinks,
    /// The judge's own solution is not accurate enough.
    SolverStopped,
    /// The proven bracket holds the tolerance.
    Undecided,
}

impl Verdict {
    /// Whether the claim is proven.
    pub fn is_certified(self) -> bool {
        self == Self::Certified
    }

    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Certified => "certified",
            Self::Refuted => "refuted",
            Self::Inconclusive(_) => "inconclusive",
        }
    }

    /// The same of weights whose direction came on a path of this course: if it shows no end, what holds at one of its
    /// points says nothing about a limit. Solutions of Xw = y are points, not directions.
    pub fn after(self, claim: &RunClaim, course: Option<&DirectionCourse>) -> Self {
        let decided = !matches!(self, Self::Inconclusive(_)) && !matches!(claim, RunClaim::NearestSolution { .. });
        if decided && course.is_some_and(DirectionCourse::wanders) {
            Self::Inconclusive(Doubt::NoLimitDirection)
        } else {
            self
        }
    }

    /// What a quantity known to lie in [lo, hi] says about the claim that it is at most `tolerance`.
    pub(super) fn of_bounds(lo: f64, hi: f64, tolerance: f64) -> Self {
        if hi <= tolerance {
            Self::Certified
        } else if lo > tolerance {
            Self::Refuted
        } else {
            Self::Inconclusive(Doubt::Undecided)
        }
    }
}

/// One word, and the reason where there is one.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Self::Inconclusive(doubt) => write!(f, ": {doubt}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSeparable => "no direction separates the data",
            Self::NotYetSeparated => "the weights do not separate the data yet; train longer",
            Self::NotYetInterpolating => "the weights do not solve Xw = y yet; train longer",
            Self::NotHomogeneous => "the model is not homogeneous",
            Self::NoLimitDirection => "no limit direction; the path of the direction shows no end",
            Self::Kinks => "kinks in several layers, of which only a part was covered",
            Self::SolverStopped => "the judge's own solution is not accurate enough",
            Self::Undecided => "the proven bracket holds the tolerance; ask with another --tolerance",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_decide_only_what_they_exclude() {
        assert_eq!(Verdict::of_bounds(0.0, 1e-3, 1e-3), Verdict::Certified);
        assert_eq!(Verdict::of_bounds(2e-3, 3e-3, 1e-3), Verdict::Refuted);
        assert_eq!(Verdict::of_bounds(0.0, 2e-3, 1e-3), Verdict::Inconclusive(Doubt::Undecided));
        assert_eq!(Verdict::of_bounds(f64::NAN, f64::NAN, 1e-3), Verdict::Inconclusive(Doubt::Undecided));
    }

    #[test]
    fn a_path_without_end_leaves_nothing_decided_but_points() {
        use crate::certificates::Measure;
        use crate::norms::NormSpec;
        use crate::potentials::PotentialSpec;
        let margin = RunClaim::StationaryMargin { measure: Measure::Norm(NormSpec::L2) };
        let point = RunClaim::NearestSolution { potential: PotentialSpec::Euclidean };
        let endless = DirectionCourse { growth: 100.0, lengths: [0.4; 3] };
        let ending = DirectionCourse { growth: 100.0, lengths: [0.4, 0.2, 0.1] };
        for verdict in [Verdict::Certified, Verdict::Refuted] {
            assert_eq!(verdict.after(&margin, Some(&endless)), Verdict::Inconclusive(Doubt::NoLimitDirection));
            assert_eq!(verdict.after(&point, Some(&endless)), verdict);
            assert_eq!(verdict.after(&margin, Some(&ending)), verdict);
            assert_eq!(verdict.after(&margin, None), verdict);
        }
        let doubt = Verdict::Inconclusive(Doubt::NotHomogeneous);
        assert_eq!(doubt.after(&margin, Some(&endless)), doubt);
    }

    #[test]
    fn every_verdict_survives_a_file() {
        for verdict in [Verdict::Certified, Verdict::Refuted, Verdict::Inconclusive(Doubt::NotYetInterpolating)] {
            let text = serde_json::to_string(&verdict).unwrap();
            assert!(text.contains(verdict.word()), "{text}");
            assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
        }
    }
}
