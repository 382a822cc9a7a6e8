//! The description of an optimiser, as files, the command line and Python speak it.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Constraint, Event, MomentumSpace, OtherBlocks, PolarMethod, Scaling};
use crate::norms::NormSpec;
use crate::potentials::PotentialSpec;

/// An optimiser without its state.
///
/// ```
/// use limitpoint::norms::NormSpec;
/// use limitpoint::optimisers::{OptimiserSpec, Scaling};
/// let sign: OptimiserSpec = "sign".parse().unwrap();
/// assert_eq!(sign, OptimiserSpec::steepest(NormSpec::Linf));
/// let adam: OptimiserSpec = serde_json::from_str(r#"{"adam": {"epsilon": 0.0}}"#).unwrap();
/// assert_eq!(adam, OptimiserSpec::Adam { beta1: 0.9, beta2: 0.999, epsilon: 0.0 });
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimiserSpec {
    /// Steepest descent in a norm.
    Steepest {
        /// The geometry.
        norm: NormSpec,
        /// Whether steps carry the dual norm of the gradient.
        #[serde(default)]
        scaling: Scaling,
        /// Use the minimum-dual-norm Clarke subgradient at kinks.
        #[serde(default)]
        minimum_norm: bool,
    },
    /// Coordinate descent that never steps uphill.
    MonotoneCoordinate {
        /// Whether steps carry the largest entry of the gradient.
        #[serde(default)]
        scaling: Scaling,
    },
    /// Polyak's heavy ball.
    HeavyBall {
        /// β in [0, 1).
        #[serde(default = "nine_tenths")]
        momentum: f64,
    },
    /// Nesterov's method.
    Nesterov {
        /// β in [0, 1).
        #[serde(default = "nine_tenths")]
        momentum: f64,
    },
    /// Mirror descent.
    Mirror {
        /// The potential R.
        potential: PotentialSpec,
        /// Where momentum is added.
        #[serde(default)]
        space: MomentumSpace,
        /// Momentum β in [0, 1).
        #[serde(default)]
        beta: f64,
        /// Look-ahead γ ≥ 0.
        #[serde(default)]
        gamma: f64,
    },
    /// Mirror descent on an affine set.
    ConstrainedMirror {
        /// The potential R.
        potential: PotentialSpec,
        /// The set.
        constraint: Constraint,
    },
    /// Natural gradient descent in the Hessian metric of a potential.
    NaturalGradient {
        /// The potential R.
        potential: PotentialSpec,
    },
    /// Adam.
    Adam {
        /// Decay of the first moment.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Decay of the second moment.
        #[serde(default = "beta2")]
        beta2: f64,
        /// Added to √v̂; 0 is allowed.
        #[serde(default = "epsilon")]
        epsilon: f64,
    },
    /// Adam with decoupled weight decay.
    AdamW {
        /// Decay of the first moment.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Decay of the second moment.
        #[serde(default = "beta2")]
        beta2: f64,
        /// Added to √v̂; 0 is allowed.
        #[serde(default = "epsilon")]
        epsilon: f64,
        /// The decay.
        #[serde(default = "hundredth")]
        weight_decay: f64,
    },
    /// AdaGrad.
    AdaGrad {
        /// Added to √D; 0 is allowed.
        #[serde(default)]
        epsilon: f64,
        /// D₀, the accumulator before the first step.
        #[serde(default)]
        initial: f64,
    },
    /// The weak learner with the largest edge, by AdaBoost's step.
    AdaBoost,
    /// RMSProp.
    RmsProp {
        /// Decay of the squares.
        #[serde(default = "rms_decay")]
        decay: f64,
        /// Added to √v; 0 is allowed.
        #[serde(default = "epsilon")]
        epsilon: f64,
    },
    /// The sign of a momentum.
    Signum {
        /// β in [0, 1).
        #[serde(default = "nine_tenths")]
        momentum: f64,
    },
    /// Lion.
    Lion {
        /// Weight of the memory in the update.
        #[serde(default = "nine_tenths")]
        beta1: f64,
        /// Decay of the memory.
        #[serde(default = "lion_memory")]
        beta2: f64,
        /// The decay.
        #[serde(default)]
        weight_decay: f64,
    },
    /// Shampoo.
    Shampoo {
        /// Whether L and R accumulate; off gives the polar factor.
        #[serde(default = "yes")]
        accumulate: bool,
        /// L and R start at ε I.
        #[serde(default)]
        epsilon: f64,
        /// The power a of L^−a G R^−a; 1/4 in paper A, 1/2 in the implementation it cites.
        #[serde(default = "quarter", skip_serializing_if = "is_quarter")]
        power: f64,
    },
    /// Muon.
    Muon {
        /// μ in [0, 1).
        #[serde(default)]
        momentum: f64,
        /// Whether the update looks ahead.
        #[serde(default)]
        nesterov: bool,
        /// How the polar factor is found.
        #[serde(default)]
        polar: PolarMethod,
        /// What vectors do.
        #[serde(default)]
        others: OtherBlocks,
    },
    /// Accelerated margin maximisation through the dual.
    DualAcceleration {
        /// The geometry.
        #[serde(default = "euclidean")]
        norm: NormSpec,
        /// σ > 0 for which ½‖·‖² counts as σ-strongly convex; known for ℓ2, quadratic norms and ℓp with p ≤ 2.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        modulus: Option<f64>,
    },
    /// Normalised descent on balls that grow geometrically.
    ProgressiveRescaling {
        /// The norm of the balls; rates are known for ℓ2.
        #[serde(default = "euclidean")]
        norm: NormSpec,
        /// Factor of the radius from one phase to the next, above 1.
        #[serde(default = "two")]
        growth: f64,
        /// Steps a phase lasts at least.
        #[serde(default = "five")]
        phase: u32,
        /// Steps before the first phase.
        #[serde(default = "twenty")]
        warm_up: u32,
        /// A phase goes on until R‖∇ln L‖_* − ⟨θ, −∇ln L⟩ is at most this; 1e300 keeps all phases equally long.
        #[serde(default = "tenth")]
        tolerance: f64,
        /// Radius beyond which the balls do not grow.
        #[serde(default = "trillion")]
        largest: f64,
    },
    /// One optimiser until an event, another after it.
    Switch {
        /// Before the event.
        first: Box<OptimiserSpec>,
        /// After it.
        second: Box<OptimiserSpec>,
        /// The event.
        when: Event,
        /// Factor on step sizes after it.
        #[serde(default = "one")]
        rate_factor: f64,
    },
    /// Another optimiser with a factor on its steps and decoupled weight decay.
    Adjusted {
        /// The optimiser.
        of: Box<OptimiserSpec>,
        /// Factor c on step sizes, positive.
        #[serde(default = "one")]
        factor: f64,
        /// λ ≥ 0: weights are multiplied by 1 − cηλ before each step.
        #[serde(default)]
        decay: f64,
    },
    /// A different optimiser for every group of blocks: `{ hidden = "muon", rest = "adam" }`. A key names a block
    /// (`layer1.weight`), a layer (`layer1`), a pattern (`layer*.weight`), a kind (`all`, `weights`, `biases`,
    /// `matrices`, `vectors`, `first`, `last`, `hidden`), several of these with `+` between them, or the `rest`.
    Blocks(IndexMap<String, OptimiserSpec>),
}

fn quarter() -> f64 {
    0.25
}

fn is_quarter(power: &f64) -> bool {
    *power == 0.25
}

pub(super) fn nine_tenths() -> f64 {
    0.9
}
pub(super) fn beta2() -> f64 {
    0.999
}
pub(super) fn epsilon() -> f64 {
    1e-8
}
pub(super) fn hundredth() -> f64 {
    0.01
}
pub(super) fn rms_decay() -> f64 {
    0.99
}
pub(super) fn lion_memory() -> f64 {
    0.99
}
fn one() -> f64 {
    1.0
}
fn yes() -> bool {
    true
}
fn euclidean() -> NormSpec {
    NormSpec::L2
}
fn two() -> f64 {
    2.0
}
fn tenth() -> f64 {
    0.1
}
fn five() -> u32 {
    5
}
fn twenty() -> u32 {
    20
}
fn trillion() -> f64 {
    1e12
}

impl OptimiserSpec {
    /// Steepest descent in `norm` with the dual-norm factor.
    pub fn steepest(norm: NormSpec) -> Self {
        Self::Steepest { norm, scaling: Scaling::DualNorm, minimum_norm: false }
    }

    /// Plain mirror descent.
    pub fn mirror(potential: PotentialSpec) -> Self {
        Self::Mirror { potential, space: MomentumSpace::Dual, beta: 0.0, gamma: 0.0 }
    }

    /// Progressive rescaling in `norm` with default settings.
    pub fn progressive_rescaling(norm: NormSpec) -> Self {
        Self::ProgressiveRescaling {
            norm,
            growth: two(),
            phase: five(),
            warm_up: twenty(),
            tolerance: tenth(),
            largest: trillion(),
        }
    }

    /// An optimiser of its own for every group of blocks.
    ///
    /// ```
    /// use limitpoint::optimisers::OptimiserSpec;
    /// let parts = ["muon", "adam"].map(|name| name.parse().unwrap());
    /// let hybrid = OptimiserSpec::blocks(["matrices", "rest"].into_iter().zip(parts));
    /// assert_eq!(hybrid.own_norm().unwrap().to_string(), "max(matrices=spectral,*=linf)");
    /// ```
    pub fn blocks<K: Into<String>>(parts: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Blocks(parts.into_iter().map(|(blocks, spec)| (blocks.into(), spec)).collect())
    }

    /// The optimisers it is made of, where it is made of others.
    pub fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Switch { first, second, .. } => vec![first, second],
            Self::Adjusted { of, .. } => vec![of],
            Self::Blocks(parts) => parts.values().collect(),
            _ => Vec::new(),
        }
    }
}
