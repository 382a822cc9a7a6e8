//! A proof as a file: what is proven, of which data and weights, and the proof itself.

use serde::{Deserialize, Serialize};

use super::record::Proof;
use super::verify::{Findings, verify};
use super::{EnclosedNetwork, ProofError, Refusal};
use crate::certificates::{DataReference, Disagreement, WeightsReference};
use crate::data::Dataset;
use crate::intervals::Interval;
use crate::models::ModelSpec;

/// What every proof calls itself.
pub const PROOF_FORMAT: &str = "limitpoint-proof";
/// Raised when old documents can no longer be read.
pub const PROOF_VERSION: u32 = 1;

/// A theorem about the doubles of a data set, and how near weights are to what it speaks of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProofDocument {
    /// [`PROOF_FORMAT`].
    pub format: String,
    /// [`PROOF_VERSION`].
    pub version: u32,
    /// Version of limitpoint that wrote it.
    pub library: String,
    /// Name of the run.
    pub run: String,
    /// What is proven, in words.
    pub statement: String,
    /// The training data.
    pub data: DataReference,
    /// The model.
    pub model: ModelSpec,
    /// What is proven, in numbers.
    pub findings: Findings,
    /// Weights near the KKT point, and the angle between them and it.
    pub weights: Vec<NearbyWeights>,
    /// The proof.
    pub proof: Proof,
    /// SHA-256 of all before it; kept by those who read and write files.
    #[serde(default, skip_serializing)]
    pub sha256: Option<String>,
}

/// Weights with their angle to the exact ones, in radians.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NearbyWeights {
    /// Which.
    #[serde(flatten)]
    pub reference: WeightsReference,
    /// Between which angles.
    pub angle: Interval,
}

impl ProofDocument {
    /// Checks the theorem from the data alone and the angles from the weights, in the order they are named.
    pub fn check(&self, data: &Dataset, weights: &[Vec<f64>]) -> Result<Vec<Disagreement>, ProofError> {
        let mut found = Vec::new();
        let (findings, network) = match verify(&self.proof, &self.model, data)? {
            Ok(verified) => verified,
            Err(refusal) => return Ok(vec![refused(&self.statement, &refusal)]),
        };
        let text = |findings: &Findings| serde_json::to_string(findings).unwrap_or_default();
        if findings != self.findings {
            found.push(Disagreement::new("what is proven", text(&self.findings), text(&findings)));
        }
        let words = statement(&self.proof, &findings, &self.model);
        if words != self.statement {
            found.push(Disagreement::new("the statement", &self.statement, words));
        }
        found.extend(self.check_angles(&network, data, weights)?);
        Ok(found)
    }

    fn check_angles(
        &self,
        network: &EnclosedNetwork,
        data: &Dataset,
        weights: &[Vec<f64>],
    ) -> Result<Vec<Disagreement>, ProofError> {
        let mut found = Vec::new();
        for (stated, weights) in self.weights.iter().zip(weights) {
            let angle = network.angle(&self.model, data, weights)?;
            if angle != stated.angle {
                let text = |x: Interval| format!("[{:e}, {:e}]", x.lo, x.hi);
                let what = format!("the angle of {}", stated.reference.file);
                found.push(Disagreement::new(what, text(stated.angle), text(angle)));
            }
        }
        Ok(found)
    }
}

fn refused(statement: &str, refusal: &Refusal) -> Disagreement {
    Disagreement::new("what is proven", statement, refusal)
}

/// The theorem in words.
pub fn statement(proof: &Proof, findings: &Findings, model: &ModelSpec) -> String {
    let norm = match proof.equations.norm().key().as_str() {
        "l1" => "ℓ1",
        "l2" => "ℓ2",
        _ => "ℓ∞",
    };
    let widths: Vec<String> = match model {
        ModelSpec::Network { widths, .. } => widths.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    let width = widths.join(" and ");
    let kind = match &proof.equations {
        super::Equations::L2(_) => format!("; it is {}", findings.kind),
        super::Equations::Dense(network) if !network.frozen.is_empty() => {
            "; its frozen layers have the weights that the proof names".to_owned()
        }
        _ => String::new(),
    };
    format!(
        "among networks of {width} hidden units the {norm} margin problem of these data has an exact KKT point, with a \
         margin between {:.15e} and {:.15e}{kind}",
        findings.margin.lo, findings.margin.hi
    )
}
