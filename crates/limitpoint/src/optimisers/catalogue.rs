//! Every optimiser: what `limitpoint list optimisers` shows, and examples of all of them for tests.

use super::{Constraint, Event, MomentumSpace, OptimiserSpec, OtherBlocks, PolarMethod, Scaling};
use crate::catalogue::CatalogueEntry;
use crate::norms::NormSpec;
use crate::potentials::PotentialSpec;

impl OptimiserSpec {
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
            entry("shampoo", "W − η L^(−a) G R^(−a), a = 1/4, L = ΣGGᵀ, R = ΣGᵀG, or not accumulated", "A.shampoo"),
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
            entry(
                "adjusted",
                "θ ← (1 − cηλ)θ, then a step of size cη of another: adjusted(of=gradient, factor=0.5, decay=1e-4)",
                "Loshchilov and Hutter 2019, for every optimiser",
            ),
            entry(
                "blocks",
                "an optimiser of its own for every group of blocks: blocks(hidden=muon, rest=adam)",
                "A.modular, C.defI4",
            ),
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
            Self::Shampoo { accumulate: true, epsilon: 1e-6, power: 0.25 },
            Self::Shampoo { accumulate: true, epsilon: 1e-4, power: 0.5 },
            Self::Shampoo { accumulate: false, epsilon: 0.0, power: 0.25 },
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
        specs.extend(Self::composed_examples());
        specs
    }

    /// Optimisers made of others; their parts fit every layout.
    fn composed_examples() -> [Self; 4] {
        let adjusted = |of: Self, factor, decay| Self::Adjusted { of: Box::new(of), factor, decay };
        let adam = Self::Adam { beta1: 0.9, beta2: 0.99, epsilon: 0.0 };
        let mirror = Self::mirror(PotentialSpec::Hyperbolic { lambda: 0.1 });
        let signs = Self::Steepest { norm: NormSpec::Linf, scaling: Scaling::Unit, minimum_norm: false };
        [
            adjusted(Self::steepest(NormSpec::L2), 0.5, 0.0),
            adjusted(mirror.clone(), 1.0, 1e-4),
            Self::blocks([("first", signs), ("rest", adjusted(adam, 0.5, 0.0))]),
            Self::blocks([("first", mirror), ("rest", Self::Nesterov { momentum: 0.8 })]),
        ]
    }
}
