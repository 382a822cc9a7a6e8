//! The description of an optimiser, as files, the command line and Python speak it.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ada_boost::AdaBoost;
use super::adagrad::AdaGrad;
use super::adam::{Adam, AdamSettings};
use super::constrained_mirror::ConstrainedMirror;
use super::dual_acceleration::DualAcceleration;
use super::mirror::Mirror;
use super::momentum::Momentum;
use super::monotone_coordinate::MonotoneCoordinate;
use super::natural_gradient::NaturalGradient;
use super::progressive_rescaling::{ProgressiveRescaling, RescalingSettings};
use super::shampoo::Shampoo;
use super::sign_momentum::SignMomentum;
use super::steepest::Steepest;
use super::switch::Switch;
use super::{Constraint, Event, MomentumSpace, Muon, Optimiser, OptimiserError, OtherBlocks, PolarMethod, Scaling};
use crate::catalogue::CatalogueEntry;
use crate::norms::NormSpec;
use crate::params::ParamLayout;
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
}

fn nine_tenths() -> f64 {
    0.9
}
fn beta2() -> f64 {
    0.999
}
fn epsilon() -> f64 {
    1e-8
}
fn hundredth() -> f64 {
    0.01
}
fn rms_decay() -> f64 {
    0.99
}
fn lion_memory() -> f64 {
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

    /// Checks the settings and makes the worker.
    pub fn build(&self, layout: &ParamLayout) -> Result<Box<dyn Optimiser>, OptimiserError> {
        let adam = |key, beta1, beta2, epsilon, weight_decay, correct_bias| {
            Adam::new(AdamSettings { key, beta1, beta2, epsilon, weight_decay, correct_bias }, layout)
        };
        Ok(match self {
            Self::Steepest { norm, scaling, minimum_norm } => {
                Box::new(Steepest::new(norm, *scaling, *minimum_norm, layout)?)
            }
            Self::MonotoneCoordinate { scaling } => Box::new(MonotoneCoordinate::new(*scaling, layout)),
            Self::HeavyBall { momentum } => Box::new(Momentum::new("heavy-ball", *momentum, 0.0, layout.len())?),
            Self::Nesterov { momentum } => Box::new(Momentum::new("nesterov", *momentum, *momentum, layout.len())?),
            Self::Mirror { potential, space, beta, gamma } => {
                Box::new(Mirror::new(potential, *space, (*beta, *gamma), layout)?)
            }
            Self::ConstrainedMirror { potential, constraint } => {
                Box::new(ConstrainedMirror::new(potential, constraint, layout)?)
            }
            Self::AdaBoost => Box::new(AdaBoost),
            Self::NaturalGradient { potential } => Box::new(NaturalGradient::new(potential, layout)?),
            Self::Adam { beta1, beta2, epsilon } => Box::new(adam("adam", *beta1, *beta2, *epsilon, 0.0, true)?),
            Self::AdamW { beta1, beta2, epsilon, weight_decay } => {
                Box::new(adam("adam-w", *beta1, *beta2, *epsilon, *weight_decay, true)?)
            }
            Self::AdaGrad { epsilon, initial } => Box::new(AdaGrad::new(*epsilon, *initial, layout)?),
            Self::RmsProp { decay, epsilon } => Box::new(adam("rms-prop", 0.0, *decay, *epsilon, 0.0, false)?),
            Self::Signum { momentum } => Box::new(SignMomentum::signum(*momentum, layout)?),
            Self::Lion { beta1, beta2, weight_decay } => {
                Box::new(SignMomentum::lion(*beta1, *beta2, *weight_decay, layout)?)
            }
            Self::Shampoo { accumulate, epsilon } => Box::new(Shampoo::new(*accumulate, *epsilon, layout)?),
            Self::Muon { momentum, nesterov, polar, others } => {
                Box::new(Muon::new(*momentum, *nesterov, *polar, *others, layout)?)
            }
            Self::DualAcceleration { norm, modulus } => Box::new(DualAcceleration::new(norm, *modulus, layout)?),
            Self::ProgressiveRescaling { norm, growth, phase, warm_up, tolerance, largest } => {
                let (growth, phase, warm_up) = (*growth, *phase, *warm_up);
                let settings = RescalingSettings { growth, phase, warm_up, tolerance: *tolerance, largest: *largest };
                Box::new(ProgressiveRescaling::new(norm, settings, layout)?)
            }
            Self::Switch { first, second, when, rate_factor } => {
                let holds = *rate_factor > 0.0 && rate_factor.is_finite();
                super::require("switch", "rate_factor", *rate_factor, "positive and finite", holds)?;
                Box::new(Switch {
                    first: first.build(layout)?,
                    second: second.build(layout)?,
                    event: *when,
                    log_rate_factor: rate_factor.ln(),
                    switched: false,
                })
            }
        })
    }

    /// The name used in files.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Steepest { .. } => "steepest",
            Self::MonotoneCoordinate { .. } => "monotone-coordinate",
            Self::HeavyBall { .. } => "heavy-ball",
            Self::Nesterov { .. } => "nesterov",
            Self::Mirror { .. } => "mirror",
            Self::ConstrainedMirror { .. } => "constrained-mirror",
            Self::NaturalGradient { .. } => "natural-gradient",
            Self::AdaBoost => "ada-boost",
            Self::Adam { .. } => "adam",
            Self::AdamW { .. } => "adam-w",
            Self::AdaGrad { .. } => "ada-grad",
            Self::RmsProp { .. } => "rms-prop",
            Self::Signum { .. } => "signum",
            Self::Lion { .. } => "lion",
            Self::Shampoo { .. } => "shampoo",
            Self::Muon { .. } => "muon",
            Self::DualAcceleration { .. } => "dual-acceleration",
            Self::ProgressiveRescaling { .. } => "progressive-rescaling",
            Self::Switch { .. } => "switch",
        }
    }

    /// Every optimiser with its formula.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let entry = |key, formula, reference| CatalogueEntry { key, formula, reference };
        vec![
            entry(
                "steepest",
                "θ + η‖g‖_* d, d = argmin_{‖d‖≤1} ⟨g,d⟩ (gradient, sign, coordinate, spectral)",
                "A.eq1, B.eq11",
            ),
            entry(
                "monotone-coordinate",
                "θᵢ − η‖g‖_∞ sign(gᵢ), i the largest entry of g whose step lowers the loss",
                "A.expTS, section 0",
            ),
            entry("heavy-ball", "θ + β(θ − θ⁻) − ηg", "B.gd2.1"),
            entry("nesterov", "y = θ + β(θ − θ⁻), θ⁺ = y − η∇L(y)", "B.gd2.1"),
            entry("mirror", "∇R(θ⁺) = ∇R(θ) − ηg, with dual or primal momentum", "B.thm1, B.eq7, B.eq8, C.flow"),
            entry("constrained-mirror", "argmin { η⟨g,w⟩ + D_R(w,θ) : Gw = h }", "B.affine"),
            entry("natural-gradient", "θ − η ∇²R(θ)⁻¹ g", "B.eq9, B.ex3"),
            entry("adam", "θ − η m̂/(√v̂ + ε)", "A.adam"),
            entry("adam-w", "θ − η (m̂/(√v̂ + ε) + decay·θ)", "A.adam"),
            entry("ada-grad", "θ − η g/(√D + ε), D = D₀ + Σ g²", "B.eq13, B.prop6"),
            entry("ada-boost", "θⱼ − η artanh(∂ⱼ ln L), j = argmax |∂ⱼ ln L|", "B.linesearch"),
            entry("rms-prop", "θ − η g/(√v + ε), v ← βv + (1 − β)g²", "B.prop6"),
            entry("signum", "m ← βm + (1 − β)g, θ − η sign(m)", "A.expAdam"),
            entry("lion", "θ − η (sign(β₁m + (1 − β₁)g) + decay·θ), m ← β₂m + (1 − β₂)g", "sign of a momentum"),
            entry("shampoo", "W − η L^(−1/4) G R^(−1/4), L = ΣGGᵀ, R = ΣGᵀG, or not accumulated", "A.shampoo"),
            entry("muon", "M ← μM + G, W − η polar(M)", "A.modular, A.fig3"),
            entry(
                "dual-acceleration",
                "m ← (1 − θ⁻)m + θ⁻∇ln L, y = (1 − θ)m + θ∇ln L, w + (ησL/θ)‖y‖_* d(y), θ = 2/(t + 2)",
                "Ji, Srebro and Telgarsky 2021; Wang, Hu, Muthukumar and Abernethy 2023",
            ),
            entry(
                "progressive-rescaling",
                "every few steps θ ← Rθ/‖θ‖ with R growing geometrically, between them P_{‖θ‖≤R}(θ − ηg)",
                "Wang, Min and Wu 2024",
            ),
            entry("switch", "one optimiser until an event, another after it", "A.fig1switch"),
        ]
    }

    /// At least one of each kind and option, for the law tests; potentials with a domain are not among them.
    pub fn examples() -> Vec<Self> {
        let muon = |momentum, nesterov, polar, others| Self::Muon { momentum, nesterov, polar, others };
        let mut specs: Vec<Self> =
            ["gradient", "sign", "coordinate", "spectral"].iter().filter_map(|name| name.parse().ok()).collect();
        specs.extend([
            Self::Steepest { norm: NormSpec::Linf, scaling: Scaling::Unit, minimum_norm: false },
            Self::Steepest { norm: NormSpec::L1, scaling: Scaling::DualNorm, minimum_norm: true },
            Self::MonotoneCoordinate { scaling: Scaling::DualNorm },
            Self::MonotoneCoordinate { scaling: Scaling::Unit },
            Self::HeavyBall { momentum: 0.8 },
            Self::Nesterov { momentum: 0.8 },
            Self::mirror(PotentialSpec::Hyperbolic { lambda: 0.1 }),
            Self::Mirror {
                potential: PotentialSpec::Smoothed { p: 3.0, lambda: 1.0 },
                space: MomentumSpace::Dual,
                beta: 0.5,
                gamma: 0.5,
            },
            Self::Mirror { potential: PotentialSpec::Euclidean, space: MomentumSpace::Primal, beta: 0.5, gamma: 0.5 },
            Self::ConstrainedMirror {
                potential: PotentialSpec::Hyperbolic { lambda: 0.1 },
                constraint: Constraint::Simplex,
            },
            Self::NaturalGradient { potential: PotentialSpec::Hyperbolic { lambda: 0.1 } },
            Self::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-8 },
            Self::Adam { beta1: 0.0, beta2: 0.0, epsilon: 0.0 },
            Self::AdamW { beta1: 0.9, beta2: 0.99, epsilon: 0.0, weight_decay: 1e-4 },
            Self::AdaGrad { epsilon: 0.0, initial: 0.0 },
            Self::AdaBoost,
            Self::RmsProp { decay: 0.9, epsilon: 1e-8 },
            Self::Signum { momentum: 0.9 },
            Self::Lion { beta1: 0.9, beta2: 0.99, weight_decay: 0.0 },
            Self::Shampoo { accumulate: true, epsilon: 1e-6 },
            Self::Shampoo { accumulate: false, epsilon: 0.0 },
            muon(0.0, false, PolarMethod::Exact, OtherBlocks::Polar),
            muon(0.9, true, PolarMethod::NewtonSchulz { iterations: 5 }, OtherBlocks::Sign),
        ]);
        specs.extend([
            Self::DualAcceleration { norm: NormSpec::L2, modulus: None },
            Self::DualAcceleration { norm: NormSpec::Lp { p: 1.5 }, modulus: None },
            Self::DualAcceleration { norm: NormSpec::Linf, modulus: Some(0.5) },
            Self::progressive_rescaling(NormSpec::L2),
            Self::ProgressiveRescaling {
                norm: NormSpec::L1,
                growth: 1.5,
                phase: 2,
                warm_up: 3,
                tolerance: 1e300,
                largest: 8.0,
            },
        ]);
        specs.push(Self::Switch {
            first: Box::new(Self::steepest(NormSpec::L2)),
            second: Box::new(Self::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-8 }),
            when: Event::Steps { count: 7 },
            rate_factor: 0.5,
        });
        specs
    }
}

/// Short names for the command line: `gradient`, `sign`, `coordinate`, `spectral`, `adam`, … with default settings.
impl FromStr for OptimiserSpec {
    type Err = OptimiserError;

    fn from_str(text: &str) -> Result<Self, OptimiserError> {
        Ok(match text {
            "gradient" | "gd" => Self::steepest(NormSpec::L2),
            "sign" => Self::steepest(NormSpec::Linf),
            "coordinate" => Self::steepest(NormSpec::L1),
            "spectral" => Self::steepest(NormSpec::Spectral),
            "monotone-coordinate" => Self::MonotoneCoordinate { scaling: Scaling::DualNorm },
            "heavy-ball" => Self::HeavyBall { momentum: nine_tenths() },
            "nesterov" => Self::Nesterov { momentum: nine_tenths() },
            "adam" => Self::Adam { beta1: nine_tenths(), beta2: beta2(), epsilon: epsilon() },
            "adam-w" => {
                Self::AdamW { beta1: nine_tenths(), beta2: beta2(), epsilon: epsilon(), weight_decay: hundredth() }
            }
            "ada-grad" => Self::AdaGrad { epsilon: 0.0, initial: 0.0 },
            "ada-boost" => Self::AdaBoost,
            "rms-prop" => Self::RmsProp { decay: rms_decay(), epsilon: epsilon() },
            "signum" => Self::Signum { momentum: nine_tenths() },
            "lion" => Self::Lion { beta1: nine_tenths(), beta2: lion_memory(), weight_decay: 0.0 },
            "shampoo" => Self::Shampoo { accumulate: true, epsilon: 0.0 },
            "muon" => {
                Self::Muon { momentum: 0.0, nesterov: false, polar: PolarMethod::Exact, others: OtherBlocks::Polar }
            }
            "dual-acceleration" => Self::DualAcceleration { norm: NormSpec::L2, modulus: None },
            "progressive-rescaling" => Self::progressive_rescaling(NormSpec::L2),
            other => return Err(OptimiserError::Unknown(other.to_owned())),
        })
    }
}
