//! A certificate as a file: everything that is needed to check it again, and nothing that must be believed.
//!
//! The document names data and weights by how to get them and by their SHA-256, states the claim, its tolerances and
//! the verdict, and holds directions and multipliers as evidence. A check rebuilds the data, reads the weights,
//! recomputes every number of the evidence without a solver, and draws the verdict again. Reading and writing files is
//! left to others.

use serde::{Deserialize, Serialize};

use super::decide::{Subject, recompute};
use super::network::StationarityEvidence;
use super::regression::SolutionEvidence;
use super::{CertificateError, Doubt, MarginEvidence, RunClaim, Verdict};
use crate::data::DataSpec;
use crate::diagnostics::DirectionCourse;
use crate::intervals::Interval;
use crate::models::{Initialiser, ModelError, ModelSpec};

/// What every certificate calls itself.
pub const FORMAT: &str = "limitpoint-certificate";
/// Raised when old documents can no longer be read.
pub const VERSION: u32 = 1;
/// Recomputed numbers that are no bounds agree up to this share of themselves, since sums differ between machines.
const AGREEMENT: f64 = 1e-10;
/// How many times its room a stated bound may be wider than the recomputed one.
const WIDEST: f64 = 1e3;
/// …and up to this share of the largest number of the evidence, since what should be 0 is rounding.
const ROUNDING: f64 = 1e-13;

/// A claim about a run with its evidence and verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Version of limitpoint that wrote it.
    pub library: String,
    /// Name of the run.
    pub run: String,
    /// What is claimed.
    pub claim: RunClaim,
    /// The claim in words.
    pub statement: String,
    /// How exactly it is claimed.
    pub tolerances: Tolerances,
    /// The answer, with the reason where there is none.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The training data.
    pub data: DataReference,
    /// The model.
    pub model: ModelSpec,
    /// The weights.
    pub weights: WeightsReference,
    /// The start of training, where the claim depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<StartReference>,
    /// What proves the verdict.
    pub evidence: Evidence,
    /// The path on which the direction came here, where the run is long enough to tell whether it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<DirectionCourse>,
}

/// How exactly something is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerances {
    /// The largest relative gap, τ or relative distance.
    pub gap: f64,
    /// Kinks of a network within this relative distance may take any slope between left and right.
    pub kinks: f64,
}

impl Default for Tolerances {
    /// A gap of 10⁻²: late in training it is at most about ln N/ln(1/L), which a loss of 10⁻¹⁰⁰ brings near 10⁻².
    fn default() -> Self {
        Self { gap: 1e-2, kinks: 1e-9 }
    }
}

impl Tolerances {
    /// Refuses what makes no sense.
    pub fn check(&self) -> Result<(), CertificateError> {
        let (gap, kinks) = (("the tolerance", self.gap), ("the tolerance of kinks", self.kinks));
        match [gap, kinks].into_iter().find(|(_, value)| !(0.0..1.0).contains(value)) {
            Some((what, value)) => Err(CertificateError::OutOfRange { what, value, range: "at least 0 and below 1" }),
            None => Ok(()),
        }
    }
}

/// Training data by how they are made or read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataReference {
    /// How to get them.
    pub spec: DataSpec,
    /// The seed they are drawn with.
    pub seed: u64,
    /// Their name.
    pub name: String,
    /// Training examples.
    pub examples: usize,
    /// SHA-256 of the bits of inputs and targets.
    pub sha256: String,
}

/// Weights by the file that holds them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightsReference {
    /// A safetensors file, relative to the certificate.
    pub file: String,
    /// Number of weights.
    pub entries: usize,
    /// SHA-256 of their bits, in the order of the model's layout.
    pub sha256: String,
}

/// Where training started: drawn again from a seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartReference {
    /// How.
    pub initialiser: Initialiser,
    /// From which seed.
    pub seed: u64,
}

/// What a verdict follows from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Bounds on margins of a linear model.
    Margin(MarginEvidence),
    /// Bounds on τ of a network.
    Stationarity(StationarityEvidence),
    /// Distance to the solution of a regression problem.
    Solution(SolutionEvidence),
    /// A margin that is not positive, so that there is no τ.
    NotSeparated {
        /// The smallest margin.
        smallest_margin: f64,
    },
    /// The model has no degree, so that there is no τ.
    NotHomogeneous,
}

impl Evidence {
    /// Its numbers, by name.
    fn bounds(&mut self) -> Vec<Bound<'_>> {
        match self {
            Self::Margin(evidence) => evidence.bounds(),
            Self::Stationarity(evidence) => evidence.bounds(),
            _ => Vec::new(),
        }
    }

    /// The evidence with a little room on either side of its bounds.
    pub(super) fn with_room(mut self) -> Self {
        for Bound { interval, room, .. } in self.bounds().into_iter().filter(|bound| bound.room.is_finite()) {
            // what is at least 0 by definition stays so
            let low = if interval.lo >= 0.0 { (interval.lo - room).max(0.0) } else { interval.lo - room };
            *interval = Interval::new(low, interval.hi + room);
        }
        self
    }

    fn numbers(&self) -> Vec<(&'static str, f64)> {
        match self {
            Self::Margin(_) => Vec::new(),
            Self::Stationarity(evidence) => evidence.numbers(),
            Self::Solution(evidence) => evidence.numbers(),
            Self::NotSeparated { smallest_margin } => vec![("smallest_margin", *smallest_margin)],
            Self::NotHomogeneous => Vec::new(),
        }
    }

    /// The decisive numbers in words.
    pub fn summary(&self) -> String {
        match self {
            Self::Margin(MarginEvidence { achieved, optimum, gap, .. }) if gap.hi.is_finite() => {
                format!("margin {} of {}, gap {}", span(*achieved, 6), span(*optimum, 6), span(*gap, 3))
            }
            Self::Margin(MarginEvidence { achieved, optimum, .. }) => {
                format!("margin {}, no margin above {}", span(*achieved, 6), number(optimum.hi, 3))
            }
            Self::Stationarity(evidence) => format!(
                "τ {}, stationarity {}, complementarity {}",
                span(evidence.tau, 3),
                number(evidence.stationarity, 3),
                number(evidence.complementarity, 3)
            ),
            Self::Solution(evidence) => format!(
                "distance {}, residual {}, dual residual of the judge {}",
                number(evidence.distance, 3),
                number(evidence.residual, 3),
                number(evidence.dual_residual, 2)
            ),
            Self::NotSeparated { smallest_margin } => format!("smallest margin {}", number(*smallest_margin, 3)),
            Self::NotHomogeneous => "no degree".to_owned(),
        }
    }
}

/// An interval with a few digits: one number where both ends read the same.
fn span(interval: Interval, digits: usize) -> String {
    let [lo, hi] = [interval.lo, interval.hi].map(|x| number(x, digits));
    if lo == hi { hi } else { format!("between {lo} and {hi}") }
}

/// A number with a few significant digits, as a decimal fraction where that is short.
fn number(x: f64, digits: usize) -> String {
    if x == 0.0 || !(1e-2..1e4).contains(&x.abs()) {
        return if x == 0.0 { "0".to_owned() } else { format!("{x:.0$e}", digits - 1) };
    }
    let before = x.abs().log10().floor() as i32 + 1;
    format!("{x:.0$}", (digits as i32 - before).max(0) as usize)
}

/// Something that a certificate states and that is not so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// What.
    pub what: String,
    /// What the document says.
    pub stated: String,
    /// What was found.
    pub found: String,
}

impl Disagreement {
    /// Something stated and found otherwise.
    pub fn new(what: impl Into<String>, stated: impl ToString, found: impl ToString) -> Self {
        Self { what: what.into(), stated: stated.to_string(), found: found.to_string() }
    }
}

impl std::fmt::Display for Disagreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is stated as {}, but is {}", self.what, self.stated, self.found)
    }
}

impl Certificate {
    /// Reads a document; refuses other formats and newer versions.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let head: Head = serde_json::from_str(text).map_err(|error| DocumentError::Unreadable(error.to_string()))?;
        if head.format != FORMAT || head.version != VERSION {
            return Err(DocumentError::Format { format: head.format, version: head.version });
        }
        serde_json::from_str(text).map_err(|error| DocumentError::Unreadable(error.to_string()))
    }

    /// The document as text; every number reads back to its last bit.
    pub fn to_json(&self) -> Result<String, DocumentError> {
        let text = serde_json::to_string_pretty(self).map_err(|error| DocumentError::Unreadable(error.to_string()))?;
        Ok(text + "\n")
    }

    /// The decisive numbers in words, with those of the path where they decide.
    pub fn summary(&self) -> String {
        match self.course.filter(|_| self.verdict == Verdict::Inconclusive(Doubt::NoLimitDirection)) {
            Some(course) => format!("{}; the path of the direction is {course}", self.evidence.summary()),
            None => self.evidence.summary(),
        }
    }

    /// Recomputes evidence and verdict from data and weights; returns what does not agree.
    pub fn check(&self, subject: &Subject) -> Result<Vec<Disagreement>, DocumentError> {
        self.tolerances.check()?;
        let mut found = Vec::new();
        let statement = self.claim.statement(self.tolerances.gap);
        if self.statement != statement {
            found.push(Disagreement::new("the statement", &self.statement, statement));
        }
        let (mut evidence, verdict) = recompute(&self.claim, &self.tolerances, subject, &self.evidence)?;
        let (stated, fresh) = (self.evidence.numbers(), evidence.numbers());
        let mut document = self.evidence.clone();
        let (bounds, proven) = (document.bounds(), evidence.bounds());
        let kinds = (stated.len(), bounds.len()) == (fresh.len(), proven.len());
        for (stated, proven) in bounds.into_iter().zip(proven) {
            if !proven.confirms(*stated.interval) {
                let text = |x: &Interval| format!("[{:e}, {:e}]", x.lo, x.hi);
                found.push(Disagreement::new(stated.name, text(stated.interval), text(proven.interval)));
            }
        }
        if !kinds {
            found.push(Disagreement::new("the kind of evidence", self.evidence.summary(), evidence.summary()));
        }
        let largest = fresh.iter().map(|(_, x)| x.abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
        for ((name, stated), (_, fresh)) in stated.into_iter().zip(fresh) {
            if !agree(stated, fresh, largest) {
                found.push(Disagreement::new(name, format!("{stated:e}"), format!("{fresh:e}")));
            }
        }
        let verdict = verdict.after(&self.claim, self.course.as_ref());
        if verdict != self.verdict {
            found.push(Disagreement::new("the verdict", self.verdict, verdict));
        }
        Ok(found)
    }
}

/// A bound of the evidence.
pub(super) struct Bound<'a> {
    /// What is bounded.
    pub name: &'static str,
    /// Between which numbers it lies.
    pub interval: &'a mut Interval,
    /// What is added on either side when a certificate is written: a bound recomputed on another machine must still lie
    /// inside the stated one.
    pub room: f64,
}

impl Bound<'_> {
    /// Whether a stated interval is true and says about as much: it must contain the recomputed one, since a bound inside
    /// of that need not hold.
    fn confirms(&self, stated: Interval) -> bool {
        let near = |a: f64, b: f64| a == b || (a - b).abs() <= WIDEST * self.room;
        let Interval { lo, hi } = *self.interval;
        stated.lo <= lo && hi <= stated.hi && near(stated.lo, lo) && near(stated.hi, hi)
    }
}

fn agree(stated: f64, found: f64, largest: f64) -> bool {
    let allowed = AGREEMENT * stated.abs().max(found.abs()) + ROUNDING * largest;
    stated == found || (allowed.is_finite() && (stated - found).abs() <= allowed)
}

/// Why a certificate could not be made, read or checked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Text that is no certificate.
    #[error("the certificate cannot be read: {0}")]
    Unreadable(String),
    /// A document of another kind or of a newer version.
    #[error("the document calls itself '{format}' version {version}; this version reads '{FORMAT}' version {VERSION}")]
    Format {
        /// Its format.
        format: String,
        /// Its version.
        version: u32,
    },
    /// Evidence of another kind than the claim needs.
    #[error("the evidence does not belong to the claim; certify the run again")]
    OtherEvidence,
    /// A claim about linear models.
    #[error("the claim is about linear models, but the model is a {model}")]
    NotLinear {
        /// Key of the model.
        model: &'static str,
    },
    /// Labels where real targets are needed.
    #[error("the claim is about solutions of Xw = y, but the data '{data}' has labels")]
    NoTargets {
        /// Name of the data.
        data: String,
    },
    /// A claim that depends on the start of training, without it.
    #[error("the claim depends on the start of training, which the certificate does not name")]
    NoStart,
    /// A problem that does not fit into memory.
    #[error("the margins' gradients have {entries} entries, more than {limit}; use fewer examples")]
    TooLarge {
        /// Entries there would be.
        entries: usize,
        /// The most there may be.
        limit: usize,
    },
    /// The point could not be judged.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The model was refused.
    #[error(transparent)]
    Model(#[from] ModelError),
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
