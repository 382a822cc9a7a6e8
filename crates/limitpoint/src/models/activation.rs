//! Activation functions with their degree of homogeneity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::CatalogueEntry;

/// The scalar function between two layers.
///
/// Every one is positively homogeneous, σ(cz) = cᵖ σ(z) for c > 0, which is what makes a network without biases
/// homogeneous in its weights. A NaN stays a NaN. At a kink (z = 0) the slope is that of the left side: 0 for ReLU,
/// `slope` for leaky ReLU; the other Clarke subgradients are reached through the model's kink weights.
///
/// ```
/// use limitpoint::models::Activation;
/// let squared = Activation::ReluPower { power: 2 };
/// assert_eq!((squared.value(3.0), squared.slope(3.0), squared.degree()), (9.0, 6.0, 2));
/// assert_eq!(Activation::Relu.slope(0.0), 0.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Activation {
    /// σ(z) = z.
    Identity,
    /// σ(z) = max(z, 0).
    #[default]
    Relu,
    /// σ(z) = z for z > 0, `slope`·z otherwise.
    LeakyRelu {
        /// Slope on the negative side.
        slope: f64,
    },
    /// σ(z) = max(z, 0)ᵏ; continuously differentiable for k ≥ 2.
    ReluPower {
        /// The power k.
        power: u32,
    },
    /// σ(z) = z².
    Quadratic,
}

impl Activation {
    /// σ(z).
    pub fn value(self, z: f64) -> f64 {
        match self {
            Self::Identity => z,
            Self::Relu => {
                if z <= 0.0 {
                    0.0
                } else {
                    z
                }
            }
            Self::LeakyRelu { slope } => {
                if z <= 0.0 {
                    slope * z
                } else {
                    z
                }
            }
            Self::ReluPower { power } => {
                if z <= 0.0 {
                    0.0
                } else {
                    z.powi(power as i32)
                }
            }
            Self::Quadratic => z * z,
        }
    }

    /// σ′(z), from the left at a kink.
    pub fn slope(self, z: f64) -> f64 {
        match self {
            Self::Identity => 1.0,
            Self::Relu => {
                if z <= 0.0 {
                    0.0
                } else {
                    1.0
                }
            }
            Self::LeakyRelu { slope } => {
                if z <= 0.0 {
                    slope
                } else {
                    1.0
                }
            }
            Self::ReluPower { power: 1 } => {
                if z <= 0.0 {
                    0.0
                } else {
                    1.0
                }
            }
            Self::ReluPower { power } => {
                if z <= 0.0 {
                    0.0
                } else {
                    f64::from(power) * z.powi(power as i32 - 1)
                }
            }
            Self::Quadratic => 2.0 * z,
        }
    }

    /// The p in σ(cz) = cᵖ σ(z).
    pub fn degree(self) -> u32 {
        match self {
            Self::Identity | Self::Relu | Self::LeakyRelu { .. } => 1,
            Self::ReluPower { power } => power,
            Self::Quadratic => 2,
        }
    }

    /// The slopes on the two sides of a kink at 0, (left, right), or nothing for a differentiable function.
    pub fn kink(self) -> Option<(f64, f64)> {
        match self {
            Self::Relu | Self::ReluPower { power: 1 } => Some((0.0, 1.0)),
            Self::LeakyRelu { slope } => Some((slope, 1.0)),
            Self::Identity | Self::ReluPower { .. } | Self::Quadratic => None,
        }
    }

    /// What is wrong with the settings, if anything.
    pub fn problem(self) -> Option<String> {
        match self {
            Self::LeakyRelu { slope } if !(0.0..1.0).contains(&slope) => {
                Some(format!("leaky ReLU needs a slope in [0, 1), but is given {slope}"))
            }
            Self::ReluPower { power } if !(1..=16).contains(&power) => {
                Some(format!("a ReLU power must be 1 to 16, but is {power}"))
            }
            _ => None,
        }
    }

    /// One of each kind, for the law tests.
    pub fn examples() -> Vec<Self> {
        vec![
            Self::Identity,
            Self::Relu,
            Self::LeakyRelu { slope: 0.1 },
            Self::ReluPower { power: 2 },
            Self::ReluPower { power: 3 },
            Self::Quadratic,
        ]
    }

    /// Every activation with its formula.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let entry = |key, formula, reference| CatalogueEntry { key, formula, reference };
        vec![
            entry("identity", "σ(z) = z, degree 1", "B; linear networks"),
            entry("relu", "σ(z) = max(z, 0), degree 1", "A.expTS, C.exp2L, D.exp"),
            entry("leaky-relu", "σ(z) = max(z, slope·z), degree 1", "D.thmB2"),
            entry("relu-power", "σ(z) = max(z, 0)^power, degree power", "D.thm4.2, claims section 0"),
            entry("quadratic", "σ(z) = z², degree 2", "D.thm4.2"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_activation_is_homogeneous_of_its_degree_and_has_its_slope() {
        for activation in Activation::examples() {
            for z in [-2.0, -0.3, 0.4, 1.7] {
                let c: f64 = 1.7;
                let scaled = activation.value(c * z);
                let law = c.powi(activation.degree() as i32) * activation.value(z);
                assert!((scaled - law).abs() < 1e-12 * (1.0 + law.abs()), "{activation:?}");
                let h = 1e-6;
                let slope = (activation.value(z + h) - activation.value(z - h)) / (2.0 * h);
                assert!((activation.slope(z) - slope).abs() < 1e-7, "{activation:?} at {z}");
            }
        }
    }
}
