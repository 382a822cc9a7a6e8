//! The outcome of a claim, as files and other programs read it.

use limitpoint::report::Sketch;
use serde::{Deserialize, Serialize};

use crate::{Check, Kind, Scale, Setting, Status};

/// Everything about one claim that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimRecord {
    /// Id of the claim; `.printed` at its end for a form that differs in print.
    pub id: String,
    /// What is claimed.
    pub statement: String,
    /// A formula, or a finding of experiments.
    pub kind: Kind,
    /// What came of it.
    pub status: Status,
    /// The status that the registry has on record for it.
    pub on_record: Status,
    /// What was expected: of the first check that fails, or of the first one.
    pub expected: String,
    /// What was measured there, and how many checks hold.
    pub measured: String,
    /// How much was run.
    pub scale: Scale,
    /// Version of the program.
    pub version: String,
    /// Seconds it took; what several claims share is counted for the first of them.
    pub seconds: f64,
    /// Whether this is the printed form of a claim.
    pub printed: bool,
    /// The built-in experiments it runs.
    pub experiments: Vec<String>,
    /// What was run, on which data, what was left out.
    pub setting: Setting,
    /// All comparisons.
    pub checks: Vec<Check>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Figures.
    pub figures: Vec<Sketch>,
}

impl ClaimRecord {
    /// Whether the status is the one on record.
    pub fn as_recorded(&self) -> bool {
        self.status == self.on_record
    }

    /// How many comparisons hold.
    pub fn holding(&self) -> usize {
        self.checks.iter().filter(|check| check.holds).count()
    }
}
