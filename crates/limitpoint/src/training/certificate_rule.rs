//! Runs that end when a certificate is reached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::norms::NormSpec;
use crate::observers::StopReason;

/// A certificate to stop at: margin bracket for linear models, KKT gap and slack for networks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateRule {
    /// One of the observed norms.
    pub norm: NormSpec,
    /// Largest relative gap.
    pub gap: f64,
}

/// A rule and the columns it looks at.
pub(super) struct CertificateCheck {
    norm: String,
    gap: f64,
    /// Margin and its upper bound (linear models), or KKT gap and slack.
    columns: (usize, usize),
    bracket: bool,
}

impl CertificateCheck {
    pub(super) fn new(rule: &CertificateRule, columns: &[String]) -> Option<Self> {
        let norm = rule.norm.key();
        let find = |name: &str| columns.iter().position(|column| *column == format!("{name}.{norm}"));
        let bracket = find("bracket_upper");
        let columns = match bracket {
            Some(upper) => (find("margin")?, upper),
            None => (find("kkt_gap")?, find("kkt_slack")?),
        };
        Some(Self { norm, gap: rule.gap, columns, bracket: bracket.is_some() })
    }

    /// The reason to stop, if the gap is small enough.
    pub(super) fn check(&self, values: &[f64]) -> Option<StopReason> {
        let (a, b) = (values[self.columns.0], values[self.columns.1]);
        let gap = if self.bracket { if a > 0.0 { (b - a) / b } else { f64::NAN } } else { a.max(b) };
        (gap <= self.gap && !a.is_nan() && !b.is_nan())
            .then(|| StopReason::Certificate { norm: self.norm.clone(), gap })
    }
}
