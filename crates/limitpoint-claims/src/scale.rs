//! How much of a claim is run.

use serde::{Deserialize, Serialize};

/// How much of a claim is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Minutes for a whole paper: fewer data sets, shorter runs, the same tolerances.
    #[default]
    Quick,
    /// Hours: more seeds, larger models, deeper runs.
    Full,
    /// The paper's own sizes, steps and protocol, whatever they cost.
    Paper,
}

impl Scale {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
            Self::Paper => "paper",
        }
    }
}
