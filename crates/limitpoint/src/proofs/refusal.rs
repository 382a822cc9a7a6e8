//! Why something is not proven.

use serde::{Deserialize, Serialize};

/// The checks of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// Every margin is positive.
    Separation,
    /// The equations are as many as the unknowns.
    Shape,
    /// The equations have a regular Jacobian.
    Regularity,
    /// Newton's method settles.
    Convergence,
    /// The box is mapped into itself.
    Inclusion,
    /// Multipliers are positive.
    Multipliers,
    /// Slopes at kinks lie between those of the two sides.
    Slopes,
    /// Masses are positive.
    Masses,
    /// Neurons are on the sides they were read to be on.
    Sides,
    /// All other margins are larger.
    Inactive,
    /// Weights that are 0 may be 0, and the others have their signs.
    Support,
    /// Weights stay within the bound, and those at it are pushed outwards.
    Bound,
}

impl Check {
    /// What is checked.
    pub fn words(self) -> &'static str {
        match self {
            Self::Separation => "every margin is positive",
            Self::Shape => "the equations are as many as the unknowns",
            Self::Regularity => "the equations are regular",
            Self::Convergence => "the equations have a zero nearby",
            Self::Inclusion => "a box is mapped into itself",
            Self::Multipliers => "the multipliers are positive",
            Self::Slopes => "slopes at kinks lie between those of the two sides",
            Self::Masses => "every neuron has a positive mass",
            Self::Sides => "neurons are on the sides they were read to be on",
            Self::Inactive => "all other margins are larger",
            Self::Support => "weights that are 0 may be 0, and the others have their signs",
            Self::Bound => "weights stay within the bound, and those at it are pushed outwards",
        }
    }
}

/// The check that failed, and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    /// Which.
    pub check: Check,
    /// At which hidden unit, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neuron: Option<usize>,
    /// At which example, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<usize>,
    /// With which numbers.
    pub why: String,
}

impl Refusal {
    pub(super) fn new(check: Check, why: impl Into<String>) -> Self {
        Self { check, neuron: None, example: None, why: why.into() }
    }

    pub(super) fn example(self, example: impl Into<Option<usize>>) -> Self {
        Self { example: example.into(), ..self }
    }

    pub(super) fn neuron(self, neuron: impl Into<Option<usize>>) -> Self {
        Self { neuron: neuron.into(), ..self }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it could not be proven that {}: {}", self.check.words(), self.why)?;
        if let Some(neuron) = self.neuron {
            write!(f, ", neuron {neuron}")?;
        }
        if let Some(example) = self.example {
            write!(f, ", example {example}")?;
        }
        Ok(())
    }
}

/// What nothing can be proven about.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// A model or data of another kind.
    #[error(
        "{why}; proofs are about dense networks with ReLU, its powers or leaky ReLU, and biases in the first layer at most, and \
         those of one hidden layer in ℓ1 and ℓ∞ only with two classes, no power and nothing frozen"
    )]
    Unsupported {
        /// Why.
        why: String,
    },
    /// A norm without equations.
    #[error("nothing is proven in the norm {norm}; it must be l1, l2 or linf")]
    Norm {
        /// Its key.
        norm: String,
    },
    /// A number of weights that does not fit.
    #[error("the network has {expected} weights, but {found} were given")]
    Weights {
        /// Weights given.
        found: usize,
        /// Weights needed.
        expected: usize,
    },
}
