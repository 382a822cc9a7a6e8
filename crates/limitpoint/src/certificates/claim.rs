//! What is claimed of a run's weights.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{CertificateError, Geometry};
use crate::norms::NormSpec;
use crate::params::ParamLayout;
use crate::potentials::PotentialSpec;

/// What measures weights: a norm, or the potential of mirror descent, whose horizon is a norm on a cone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// A norm.
    Norm(NormSpec),
    /// A potential.
    Potential(PotentialSpec),
}

impl Measure {
    /// The geometry of its margin problem on parameters of this layout.
    pub fn geometry(&self, layout: &ParamLayout) -> Result<Geometry, CertificateError> {
        match self {
            Self::Norm(norm) => Ok(norm.clone().into()),
            Self::Potential(potential) => Geometry::of_potential(potential, layout),
        }
    }

    /// The potential whose Bregman projection gradient methods in this geometry tend to in regression: that of mirror
    /// descent itself, the quadratic one for ℓ2 and quadratic norms. Steepest descent in any other norm leaves the span
    /// of the data without a known limit (B section 2.2), so there is nothing to claim.
    pub fn potential(&self) -> Option<PotentialSpec> {
        use crate::potentials::QuadraticWeights::{Diagonal, Matrix};
        match self {
            Self::Potential(potential) => Some(potential.clone()),
            Self::Norm(norm) if norm.exponent() == Some(2.0) => Some(PotentialSpec::Euclidean),
            Self::Norm(NormSpec::Quadratic { diagonal }) => Some(PotentialSpec::Quadratic(Diagonal(diagonal.clone()))),
            Self::Norm(NormSpec::QuadraticDense { matrix }) => Some(PotentialSpec::Quadratic(Matrix(matrix.clone()))),
            Self::Norm(
                NormSpec::L1
                | NormSpec::L1Averaged
                | NormSpec::L2
                | NormSpec::Linf
                | NormSpec::Lp { .. }
                | NormSpec::Frobenius
                | NormSpec::Spectral
                | NormSpec::Nuclear
                | NormSpec::GroupL21
                | NormSpec::GroupL2Inf
                | NormSpec::Max { .. }
                | NormSpec::Sum { .. }
                | NormSpec::Root { .. },
            ) => None,
        }
    }

    /// The name that columns of measurements use, such as `linf` or `hyperbolic`.
    pub fn key(&self) -> String {
        match self {
            Self::Norm(norm) => norm.key(),
            Self::Potential(potential) => potential.key().to_owned(),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Norm(norm) => write!(f, "the norm {}", norm.key()),
            Self::Potential(potential) => write!(f, "the horizon of {potential}"),
        }
    }
}

/// A statement about weights w or θ that evidence can prove or refute.
///
/// ```
/// use limitpoint::certificates::{RunClaim, Measure};
/// use limitpoint::norms::NormSpec;
/// let claim = RunClaim::LargestMargin { measure: Measure::Norm(NormSpec::Linf) };
/// assert_eq!(
///     claim.statement(1e-3),
///     "the direction of the weights attains the largest margin in the norm linf up to a relative gap of 1e-3"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum RunClaim {
    /// Linear model: min_i ⟨h_i, w⟩/‖w‖ is within the tolerance, relatively, of the largest value it can have.
    LargestMargin {
        /// What measures w.
        measure: Measure,
    },
    /// Homogeneous network: θ/‖θ‖ is a KKT point of min ½‖θ‖² subject to q ≥ 1, in Clarke's sense, up to τ.
    StationaryMargin {
        /// What measures θ.
        measure: Measure,
    },
    /// Linear regression: w is, up to the tolerance, the argmin of D_R(w, w(0)) subject to Xw = y.
    NearestSolution {
        /// R.
        potential: PotentialSpec,
    },
}

impl RunClaim {
    /// The claim in words.
    pub fn statement(&self, tolerance: f64) -> String {
        match self {
            Self::LargestMargin { measure } => format!(
                "the direction of the weights attains the largest margin in {measure} \
                 up to a relative gap of {tolerance:e}"
            ),
            Self::StationaryMargin { measure } => format!(
                "the direction of the weights is a KKT point of the margin problem in {measure} up to τ = {tolerance:e}"
            ),
            Self::NearestSolution { potential } => format!(
                "the weights are the solution of Xw = y that is nearest to the start in the Bregman divergence of \
                 {potential}, up to a relative distance of {tolerance:e}"
            ),
        }
    }

    /// The norm or potential as columns of measurements name it.
    pub fn key(&self) -> String {
        match self {
            Self::LargestMargin { measure } | Self::StationaryMargin { measure } => measure.key(),
            Self::NearestSolution { potential } => potential.key().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_survive_files_and_say_what_they_mean() {
        let measure = Measure::Potential(PotentialSpec::Hyperbolic { lambda: 0.1 });
        let claims = [
            (RunClaim::LargestMargin { measure: Measure::Norm(NormSpec::L2) }, "the norm l2", "l2"),
            (RunClaim::StationaryMargin { measure }, "the horizon of hyperbolic:0.1", "hyperbolic"),
            (
                RunClaim::NearestSolution { potential: PotentialSpec::Entropy },
                "Bregman divergence of entropy",
                "entropy",
            ),
        ];
        for (claim, words, key) in claims {
            let text = serde_json::to_string(&claim).unwrap();
            assert_eq!(serde_json::from_str::<RunClaim>(&text).unwrap(), claim, "{text}");
            assert!(claim.statement(1e-3).contains(words) && claim.statement(1e-3).contains("1e-3"));
            assert_eq!(claim.key(), key);
        }
    }

    #[test]
    fn only_some_geometries_have_a_limit_in_regression() {
        let potential = |norm| Measure::Norm(norm).potential();
        assert_eq!(potential(NormSpec::Frobenius), Some(PotentialSpec::Euclidean));
        assert!(matches!(potential(NormSpec::Quadratic { diagonal: vec![1.0] }), Some(PotentialSpec::Quadratic(_))));
        assert_eq!(potential(NormSpec::Linf), None);
        assert_eq!(Measure::Potential(PotentialSpec::Entropy).potential(), Some(PotentialSpec::Entropy));
    }
}
