//! What optimisers are called in files and on the command line.

use super::spec::{beta2, epsilon, hundredth, lion_memory, nine_tenths, rms_decay};
use super::{OptimiserSpec, OtherBlocks, PolarMethod, Scaling};
use crate::norms::NormSpec;

impl OptimiserSpec {
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
            Self::Adjusted { .. } => "adjusted",
            Self::Blocks(_) => "blocks",
        }
    }
}

impl OptimiserSpec {
    /// An optimiser with default settings by its short name: `gradient`, `sign`, `coordinate`, `spectral`, `adam`, …
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
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
            "shampoo" => Self::Shampoo { accumulate: true, epsilon: 0.0, power: 0.25 },
            "muon" => {
                Self::Muon { momentum: 0.0, nesterov: false, polar: PolarMethod::Exact, others: OtherBlocks::Polar }
            }
            "dual-acceleration" => Self::DualAcceleration { norm: NormSpec::L2, modulus: None },
            "progressive-rescaling" => Self::progressive_rescaling(NormSpec::L2),
            _ => return None,
        })
    }
}
