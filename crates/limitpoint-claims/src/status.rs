//! The words for what came of a claim. They are not those of certificates: a certificate proves, a claim is tried.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every comparison holds.
    Reproduced,
    /// A formula as printed is wrong: a derivation or an exact example, which anybody can recompute, contradicts it.
    Contradicted,
    /// A comparison does not hold here, at this size and with these tolerances.
    NotReproduced,
    /// Nothing can be said: no comparison was made, or those that fail have no finite number.
    Undecided,
}

impl Status {
    /// All, in the order of summaries.
    pub const ALL: [Self; 4] = [Self::Reproduced, Self::Contradicted, Self::NotReproduced, Self::Undecided];
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::Contradicted => "contradicted",
            Self::NotReproduced => "not reproduced",
            Self::Undecided => "undecided",
        })
    }
}

/// What kind of statement a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A theorem, lemma, definition or formula: where it is wrong in print, it can be contradicted.
    Formula,
    /// Something that was seen in experiments: at another size it can fail to be reproduced, but it is never "wrong".
    Finding,
}

impl Kind {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Formula => "formula",
            Self::Finding => "finding",
        }
    }
}

/// How many claims have which status, those that occur.
///
/// ```
/// use limitpoint_claims::{Status, summary};
/// let all = [Status::Reproduced, Status::NotReproduced, Status::Reproduced];
/// assert_eq!(summary(all), "reproduced 2, not reproduced 1");
/// assert_eq!(summary([]), "nothing was tried");
/// ```
pub fn summary(statuses: impl IntoIterator<Item = Status>) -> String {
    let mut counts = [0; 4];
    for status in statuses {
        counts[status as usize] += 1;
    }
    let seen = Status::ALL.into_iter().filter(|status| counts[*status as usize] > 0);
    let parts: Vec<String> = seen.map(|status| format!("{status} {}", counts[status as usize])).collect();
    if parts.is_empty() { "nothing was tried".to_owned() } else { parts.join(", ") }
}
