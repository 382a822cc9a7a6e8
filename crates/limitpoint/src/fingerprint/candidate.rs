//! The norms that a fingerprint compares.

use serde::{Deserialize, Serialize};

use crate::norms::NormSpec;

/// A candidate: a norm and what it is called.
///
/// ```
/// use limitpoint::fingerprint::Candidate;
/// let labels: Vec<String> = Candidate::usual().into_iter().map(|geometry| geometry.label).collect();
/// assert_eq!(labels, ["ℓ1", "ℓ4/3", "ℓ2", "ℓ3", "ℓ∞", "spectral", "nuclear"]);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// A short name for files.
    pub key: String,
    /// What people read.
    pub label: String,
    /// The norm the parameters are measured in.
    pub norm: NormSpec,
}

impl Candidate {
    /// A norm under its own name.
    pub fn new(norm: NormSpec) -> Self {
        let key = norm.key();
        let label = match key.strip_prefix('l') {
            Some("inf") => "ℓ∞".to_owned(),
            Some(p) if p.starts_with(|c: char| c.is_ascii_digit()) => format!("ℓ{p}"),
            _ => key.clone(),
        };
        Self { key, label, norm }
    }

    /// ℓ1, ℓ4/3, ℓ2, ℓ3, ℓ∞ of all entries, and the spectral and nuclear norms of matrices, which are ℓ2 on vectors.
    pub fn usual() -> Vec<Self> {
        let lp = |p| NormSpec::Lp { p };
        [NormSpec::L1, lp(4.0 / 3.0), NormSpec::L2, lp(3.0), NormSpec::Linf, NormSpec::Spectral, NormSpec::Nuclear]
            .into_iter()
            .map(Self::new)
            .collect()
    }
}
