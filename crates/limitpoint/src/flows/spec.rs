//! The description of a flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::norms::{NormError, NormSpec};
use crate::potentials::{PotentialError, PotentialSpec};

/// A continuous-time dynamics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FlowSpec {
    /// Steepest flow in a smooth norm (ℓ2, ℓp, quadratic, Frobenius); gradient flow for ℓ2.
    Steepest {
        /// The geometry.
        norm: NormSpec,
    },
    /// Mirror flow, integrated in the dual ∇R(θ).
    Mirror {
        /// The potential R.
        potential: PotentialSpec,
    },
    /// Natural gradient flow dθ/dt = −∇²R(θ)⁻¹∇L, the same curve as mirror flow (B eq. 10), integrated in θ.
    NaturalGradient {
        /// The potential R.
        potential: PotentialSpec,
    },
}

impl FlowSpec {
    /// Gradient flow.
    pub fn gradient() -> Self {
        Self::Steepest { norm: NormSpec::L2 }
    }
}

/// Local error allowed per step: |error| ≤ absolute + relative · |value|, in the root mean square over the entries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tolerance {
    /// Relative part.
    pub relative: f64,
    /// Absolute part.
    pub absolute: f64,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self { relative: 1e-9, absolute: 1e-12 }
    }
}

/// What a flow can refuse or run into.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// A norm whose steepest direction jumps.
    #[error(
        "the steepest direction of the norm '{norm}' is not continuous, which no error control survives; use the \
         steepest optimiser with the flow-resolved schedule instead"
    )]
    NotSmooth {
        /// Key of the norm.
        norm: String,
    },
    /// A tolerance out of range.
    #[error("the {part} tolerance is {value}, but must be in (0, 0.1]")]
    Tolerance {
        /// Which part.
        part: &'static str,
        /// Its value.
        value: f64,
    },
    /// The step size fell below what rounding allows.
    #[error("the flow cannot go on at step {step}: the step size fell to {size:e} at ln L = {log_loss}")]
    Stalled {
        /// Accepted steps so far.
        step: u64,
        /// The last step size in rescaled time.
        size: f64,
        /// ln L there.
        log_loss: f64,
    },
    /// A saved state of another flow.
    #[error("the saved flow has {found} parameters, this one {expected}; resume with the recipe it was saved with")]
    State {
        /// Parameters here.
        expected: usize,
        /// Parameters saved.
        found: usize,
    },
    /// The norm was refused.
    #[error(transparent)]
    Norm(#[from] NormError),
    /// The potential was refused, or the start lies outside its domain.
    #[error(transparent)]
    Potential(#[from] PotentialError),
}
