//! Which steps are recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which steps a recorder sees; the first step (0) always is one of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Spacing {
    /// About `per_decade` steps in every factor of ten.
    Logarithmic {
        /// Snapshots per decade, at least 1.
        per_decade: u32,
    },
    /// Every `every`-th step.
    Linear {
        /// Distance, at least 1.
        every: u64,
    },
}

impl Default for Spacing {
    fn default() -> Self {
        Self::Logarithmic { per_decade: 20 }
    }
}

impl Spacing {
    /// Whether step `step` is recorded.
    ///
    /// Logarithmic spacing takes the steps ⌈10^{k/per_decade}⌉, k = 0, 1, 2, …
    ///
    /// ```
    /// use limitpoint::observers::Spacing;
    /// let spacing = Spacing::Logarithmic { per_decade: 2 };
    /// let steps: Vec<u64> = (0..101).filter(|step| spacing.includes(*step)).collect();
    /// assert_eq!(steps, [0, 1, 4, 10, 32, 100]);
    /// ```
    pub fn includes(&self, step: u64) -> bool {
        match *self {
            Self::Linear { every } => step.is_multiple_of(every.max(1)),
            Self::Logarithmic { per_decade } => {
                if step == 0 {
                    return true;
                }
                let per_decade = f64::from(per_decade.max(1));
                // the k whose step is nearest below, and its successor: both sides of rounding
                let near = ((step as f64).log10() * per_decade).floor();
                [near - 1.0, near, near + 1.0]
                    .iter()
                    .any(|k| *k >= 0.0 && (10f64.powf(k / per_decade) - 1e-9).ceil() as u64 == step)
            }
        }
    }
}
