//! The description of a loss, as files and command lines write it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cross_entropy::CrossEntropy;
use super::exponential::Exponential;
use super::logistic::Logistic;
use super::power::{PowerExponential, PowerLogistic};
use super::probit::Probit;
use super::regression::Regression;
use super::{Loss, LossFamily};
use crate::catalogue::CatalogueEntry;

/// Largest odd power accepted, so that a margin of 10⁶ stays far from overflow.
const LARGEST_POWER: u32 = 15;

/// What a loss can refuse.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LossError {
    /// The power of a power loss is even, zero or too large.
    #[error("the power k of a power loss must be odd and between 1 and 15, but is {k}; use 3 for exp(−q³)")]
    Power {
        /// The refused power.
        k: u32,
    },
    /// A width is not a positive number.
    #[error(
        "{name} must be a positive finite number, but is {value}; it is the residual where the loss stops being r²"
    )]
    Width {
        /// Which setting.
        name: &'static str,
        /// Its refused value.
        value: f64,
    },
    /// A descent whose curvature is not known.
    #[error("{what} must be {range}; it is {value}")]
    DescentScale {
        /// Which number.
        what: &'static str,
        /// Its refused value.
        value: f64,
        /// What is allowed, and the remedy.
        range: &'static str,
    },
    /// A text names no loss.
    #[error("\"{text}\" is not a loss; write one of {known}, with a setting as in huber(delta=0.5)")]
    Unknown {
        /// The refused text.
        text: String,
        /// All keys.
        known: String,
    },
}

/// Which loss.
///
/// | setting | default | meaning | range |
/// |---|---|---|---|
/// | `k` | 3 | power of the margin | odd, 1 to 15 |
/// | `delta` | 1 | residual where Huber's loss turns linear | > 0 |
/// | `threshold` | 1 | residual where the truncated squared loss turns flat | > 0 |
///
/// ```
/// use limitpoint::losses::LossSpec;
/// let spec: LossSpec = "power-exponential(k=5)".parse()?;
/// assert_eq!(spec, LossSpec::PowerExponential { k: 5 });
/// assert_eq!("huber".parse::<LossSpec>()?.to_string(), "huber(delta=1)");
/// # Ok::<(), limitpoint::losses::LossError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LossSpec {
    /// e^−q.
    Exponential,
    /// ln(1 + e^−q).
    Logistic,
    /// ln(1 + Σⱼ e^−sⱼ) over the wrong classes.
    CrossEntropy,
    /// Σⱼ e^−sⱼ over the wrong classes.
    MulticlassExponential,
    /// e^(−q^k).
    PowerExponential {
        /// The odd power.
        #[serde(default = "default_power")]
        k: u32,
    },
    /// ln(1 + e^(−q^k)).
    PowerLogistic {
        /// The odd power.
        #[serde(default = "default_power")]
        k: u32,
    },
    /// −ln Φ(q), Φ the normal distribution function.
    Probit,
    /// r².
    Squared,
    /// r² up to |r| = δ, then 2δ|r| − δ².
    Huber {
        /// δ.
        #[serde(default = "default_width")]
        delta: f64,
    },
    /// min(r², τ²).
    TruncatedSquared {
        /// τ.
        #[serde(default = "default_width")]
        threshold: f64,
    },
}

fn default_power() -> u32 {
    3
}

fn default_width() -> f64 {
    1.0
}

impl LossSpec {
    /// Checks the settings and makes the loss.
    pub fn build(&self) -> Result<Box<dyn Loss>, LossError> {
        Ok(match *self {
            Self::Exponential | Self::MulticlassExponential => Box::new(Exponential),
            Self::Logistic => Box::new(Logistic),
            Self::CrossEntropy => Box::new(CrossEntropy),
            Self::PowerExponential { k } => Box::new(PowerExponential { k: odd(k)? }),
            Self::PowerLogistic { k } => Box::new(PowerLogistic { k: odd(k)? }),
            Self::Probit => Box::new(Probit),
            Self::Squared => Box::new(Regression::Squared),
            Self::Huber { delta } => Box::new(Regression::Huber { delta: positive("delta", delta)? }),
            Self::TruncatedSquared { threshold } => {
                Box::new(Regression::TruncatedSquared { threshold: positive("threshold", threshold)? })
            }
        })
    }

    /// The name used in files and on the command line, without settings.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Logistic => "logistic",
            Self::CrossEntropy => "cross-entropy",
            Self::MulticlassExponential => "multiclass-exponential",
            Self::PowerExponential { .. } => "power-exponential",
            Self::PowerLogistic { .. } => "power-logistic",
            Self::Probit => "probit",
            Self::Squared => "squared",
            Self::Huber { .. } => "huber",
            Self::TruncatedSquared { .. } => "truncated-squared",
        }
    }

    /// Which family the loss belongs to, before it is built.
    pub fn family(&self) -> LossFamily {
        match self {
            Self::Squared | Self::Huber { .. } | Self::TruncatedSquared { .. } => LossFamily::Regression,
            _ => LossFamily::Margin,
        }
    }

    /// Whether the margins of one example enter the loss together.
    pub fn is_multiclass(&self) -> bool {
        matches!(self, Self::CrossEntropy | Self::MulticlassExponential)
    }

    /// One instance of every loss, with default settings, in the order of the catalogue.
    pub fn examples() -> Vec<Self> {
        vec![
            Self::Exponential,
            Self::Logistic,
            Self::CrossEntropy,
            Self::MulticlassExponential,
            Self::PowerExponential { k: default_power() },
            Self::PowerLogistic { k: default_power() },
            Self::Probit,
            Self::Squared,
            Self::Huber { delta: default_width() },
            Self::TruncatedSquared { threshold: default_width() },
        ]
    }

    /// Every loss with its formula and reference.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let entry = |key, formula, reference| CatalogueEntry { key, formula, reference };
        vec![
            entry("exponential", "e^−q", "D.remA1, B.thm5"),
            entry("logistic", "ln(1 + e^−q)", "D.remA2, A.thmA18"),
            entry("cross-entropy", "ln(1 + Σⱼ e^−sⱼ), sⱼ = Φ_y − Φ_j", "D.F"),
            entry("multiclass-exponential", "Σⱼ e^−sⱼ, sⱼ = Φ_y − Φ_j", "D.F"),
            entry("power-exponential", "e^(−q^k), k odd", "D.b3"),
            entry("power-logistic", "ln(1 + e^(−q^k)), k odd", "D.b3"),
            entry("probit", "−ln Φ(q), Φ the normal distribution function", "B.prop2"),
            entry("squared", "r²", "B.prop1"),
            entry("huber", "r² if |r| ≤ δ, else 2δ|r| − δ²", "B.prop1"),
            entry("truncated-squared", "min(r², τ²)", "B.prop1"),
        ]
    }
}

fn odd(k: u32) -> Result<u32, LossError> {
    if k % 2 == 1 && k <= LARGEST_POWER { Ok(k) } else { Err(LossError::Power { k }) }
}

fn positive(name: &'static str, value: f64) -> Result<f64, LossError> {
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(LossError::Width { name, value }) }
}

/// The key, with its setting in brackets where it has one: `huber(delta=1)`.
impl fmt::Display for LossSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.key())?;
        match self {
            Self::PowerExponential { k } | Self::PowerLogistic { k } => write!(out, "(k={k})"),
            Self::Huber { delta } => write!(out, "(delta={delta})"),
            Self::TruncatedSquared { threshold } => write!(out, "(threshold={threshold})"),
            _ => Ok(()),
        }
    }
}

/// Reads what [`Display`](fmt::Display) writes; a bare key takes the default setting.
impl FromStr for LossSpec {
    type Err = LossError;

    fn from_str(text: &str) -> Result<Self, LossError> {
        let unknown = || LossError::Unknown {
            text: text.to_owned(),
            known: Self::catalogue().iter().map(|entry| entry.key).collect::<Vec<_>>().join(", "),
        };
        let trimmed = text.trim();
        let (key, setting) = match trimmed.split_once('(') {
            None => (trimmed, None),
            Some((key, rest)) => {
                let pair = rest.strip_suffix(')').and_then(|inner| inner.split_once('=')).ok_or_else(unknown)?;
                (key.trim(), Some((pair.0.trim(), pair.1.trim())))
            }
        };
        let mut spec = Self::examples().into_iter().find(|spec| spec.key() == key).ok_or_else(unknown)?;
        if let Some((name, value)) = setting {
            match (&mut spec, name) {
                (Self::PowerExponential { k } | Self::PowerLogistic { k }, "k") => {
                    *k = value.parse().map_err(|_| unknown())?;
                }
                (Self::Huber { delta: width }, "delta")
                | (Self::TruncatedSquared { threshold: width }, "threshold") => {
                    *width = value.parse().map_err(|_| unknown())?;
                }
                _ => return Err(unknown()),
            }
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails to compile when a variant is added and not counted here.
    fn position(spec: &LossSpec) -> usize {
        match spec {
            LossSpec::Exponential => 0,
            LossSpec::Logistic => 1,
            LossSpec::CrossEntropy => 2,
            LossSpec::MulticlassExponential => 3,
            LossSpec::PowerExponential { .. } => 4,
            LossSpec::PowerLogistic { .. } => 5,
            LossSpec::Probit => 6,
            LossSpec::Squared => 7,
            LossSpec::Huber { .. } => 8,
            LossSpec::TruncatedSquared { .. } => 9,
        }
    }

    #[test]
    fn examples_and_catalogue_name_every_loss_in_order() {
        let examples = LossSpec::examples();
        assert_eq!(examples.iter().map(position).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        let keys: Vec<_> = LossSpec::catalogue().iter().map(|entry| entry.key).collect();
        assert_eq!(keys, examples.iter().map(LossSpec::key).collect::<Vec<_>>());
    }

    #[test]
    fn texts_and_files_round_trip() {
        for spec in LossSpec::examples() {
            assert_eq!(spec.to_string().parse::<LossSpec>().unwrap(), spec);
            assert_eq!(spec.key().parse::<LossSpec>().unwrap(), spec);
            let json = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<LossSpec>(&json).unwrap(), spec);
            assert!(json.contains(spec.key()), "{json}");
        }
        #[derive(Deserialize)]
        struct File {
            loss: LossSpec,
        }
        let read = |text: &str| toml::from_str::<File>(text).map(|file| file.loss);
        assert_eq!(read("loss = \"cross-entropy\"").unwrap(), LossSpec::CrossEntropy);
        assert_eq!(read("loss = { power-logistic = {} }").unwrap(), LossSpec::PowerLogistic { k: 3 });
        assert_eq!(read("loss = { huber = { delta = 0.5 } }").unwrap(), LossSpec::Huber { delta: 0.5 });
        assert!(read("loss = { huber = { width = 0.5 } }").is_err());
    }

    #[test]
    fn refusals_name_the_value() {
        for k in [0, 2, 4, 17] {
            let error = LossSpec::PowerExponential { k }.build().unwrap_err();
            assert_eq!(error, LossError::Power { k });
            assert!(error.to_string().contains(&format!("is {k};")));
            assert!(LossSpec::PowerLogistic { k }.build().is_err());
        }
        for width in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(LossSpec::Huber { delta: width }.build().is_err());
            assert!(LossSpec::TruncatedSquared { threshold: width }.build().is_err());
        }
        for text in
            ["", "hinge", "huber(k=3)", "huber(delta=x)", "huber(delta", "logistic(k=3)", "power-logistic(k=-1)"]
        {
            let error = text.parse::<LossSpec>().unwrap_err().to_string();
            assert!(error.contains("cross-entropy"), "{error}");
        }
    }
}
