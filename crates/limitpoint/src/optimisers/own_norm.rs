//! The norm an optimiser belongs to: the one its steps are steepest in, or whose margin its theory speaks of.
//!
//! | optimiser | norm | why |
//! |---|---|---|
//! | steepest, dual acceleration, progressive rescaling | the one in its settings | A eq. 1 |
//! | heavy ball, Nesterov | ℓ2 | gradient descent with momentum |
//! | monotone coordinate descent, AdaBoost | ℓ1 | one entry a step |
//! | Adam, AdamW, RMSProp, Signum, Lion | ℓ∞ | without memory they are sign descent; A section 4 |
//! | Muon, Shampoo | spectral | without memory their step is the polar factor; A section 4.3 |
//! | mirror and natural gradient descent | that of the horizon of the potential | C Theorem 4.7 |
//! | switch | that of the second optimiser | the limit is its |
//! | adjusted | that of the optimiser it adjusts | a factor on all steps changes no direction |
//! | blocks | the norm that its parts' norms make together | see `hybrid_norm` |
//! | Muon with `others = "sign"` | max(spectral of matrices, ℓ∞ of the rest) | the hybrid of A section 4.3 |
//! | AdaGrad | none | its metric depends on the data (B Proposition 6) |
//! | constrained mirror descent | none | the weights stay on a set, so no margin grows |

use super::hybrid_norm::{Own, Rule, compose};
use super::{OptimiserSpec, OtherBlocks, Scaling};
use crate::norms::{BlockNorm, NormSpec};
use crate::potentials::{PotentialSpec, QuadraticWeights};

/// Why an optimiser belongs to no norm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoOwnNorm(pub(super) String);

impl OptimiserSpec {
    /// The norm the optimiser belongs to, whether or not a theorem says that its margin becomes the largest; nothing
    /// where there is no such norm, or where it is not known ([`OptimiserSpec::norm_of_steps`] says why).
    ///
    /// ```
    /// use limitpoint::norms::NormSpec;
    /// use limitpoint::optimisers::OptimiserSpec;
    /// let own = |name: &str| name.parse::<OptimiserSpec>().unwrap().own_norm();
    /// assert_eq!(own("muon"), Some(NormSpec::Spectral));
    /// assert_eq!(own("adam"), Some(NormSpec::Linf));
    /// assert_eq!(own("ada-grad"), None);
    /// ```
    pub fn own_norm(&self) -> Option<NormSpec> {
        self.norm_of_steps().ok()
    }

    /// The norm the optimiser belongs to, or why there is none.
    pub fn norm_of_steps(&self) -> Result<NormSpec, NoOwnNorm> {
        self.own().map(|own| own.norm)
    }

    /// The norm, and what a composition must know of it.
    pub(super) fn own(&self) -> Result<Own, NoOwnNorm> {
        let refuse = |why: &str| Err(NoOwnNorm(why.to_owned()));
        let by_scaling = |norm: &NormSpec, scaling: &Scaling| match scaling {
            Scaling::Unit => Own::new(norm.clone(), Rule::Max),
            Scaling::DualNorm => Own::new(norm.clone(), Rule::Root),
        };
        Ok(match self {
            Self::Steepest { norm, scaling, .. } => by_scaling(norm, scaling),
            Self::MonotoneCoordinate { scaling } => by_scaling(&NormSpec::L1, scaling),
            Self::DualAcceleration { norm, .. } | Self::ProgressiveRescaling { norm, .. } => {
                Own::new(norm.clone(), Rule::Alone)
            }
            Self::HeavyBall { .. } | Self::Nesterov { .. } => Own::new(NormSpec::L2, Rule::Root),
            Self::AdaBoost => Own::new(NormSpec::L1, Rule::Alone),
            Self::Adam { .. } | Self::AdamW { .. } | Self::RmsProp { .. } | Self::Signum { .. } | Self::Lion { .. } => {
                Own::new(NormSpec::Linf, Rule::Max)
            }
            Self::Muon { others: OtherBlocks::Sign, .. } => {
                let blocks = vec![BlockNorm::new("matrices", NormSpec::Spectral), BlockNorm::new("*", NormSpec::Linf)];
                Own::new(NormSpec::Max { blocks }, Rule::Alone)
            }
            Self::Muon { .. } | Self::Shampoo { .. } => Own::new(NormSpec::Spectral, Rule::Max),
            Self::Mirror { potential, .. } | Self::NaturalGradient { potential } => horizon(potential)?,
            Self::Switch { second, rate_factor, .. } => second.own()?.times(*rate_factor),
            Self::Adjusted { of, factor, .. } => of.own()?.times(*factor),
            Self::Blocks(parts) => compose(parts)?,
            Self::AdaGrad { .. } => return refuse("the metric of AdaGrad depends on the data"),
            Self::ConstrainedMirror { .. } => return refuse("constrained weights do not grow, so that no margin does"),
        })
    }
}

/// The norm that the horizon of a potential is a multiple of, and the factor in front of it; horizons φ of degree α
/// become (Σ φ_b^α)^{1/α} over blocks (C Definition I.4).
fn horizon(potential: &PotentialSpec) -> Result<Own, NoOwnNorm> {
    let l2 = |weight: f64| Own::new(NormSpec::L2, Rule::Root).scaled(weight.sqrt());
    Ok(match potential {
        PotentialSpec::Euclidean => l2(1.0),
        PotentialSpec::Entropy | PotentialSpec::Hyperbolic { .. } => Own::new(NormSpec::L1, Rule::Sum),
        PotentialSpec::Smoothed { p: 2.0, lambda } => l2(1.0 + lambda),
        PotentialSpec::PowerSmoothed { p: 2.0, .. } | PotentialSpec::SquaredLp { p: 2.0 } => l2(1.0),
        PotentialSpec::Smoothed { p, .. } | PotentialSpec::PowerSmoothed { p, .. } => {
            Own::new(NormSpec::Lp { p: *p }, Rule::Power)
        }
        PotentialSpec::SquaredLp { p } => Own::new(NormSpec::Lp { p: *p }, Rule::Root),
        PotentialSpec::Quadratic(QuadraticWeights::Diagonal(diagonal)) if diagonal.len() == 1 => l2(diagonal[0]),
        PotentialSpec::Quadratic(QuadraticWeights::Diagonal(diagonal)) => {
            Own::new(NormSpec::Quadratic { diagonal: diagonal.clone() }, Rule::Root)
        }
        PotentialSpec::Quadratic(QuadraticWeights::Matrix(matrix)) => {
            Own::new(NormSpec::QuadraticDense { matrix: matrix.clone() }, Rule::Root)
        }
        PotentialSpec::SpectralEntropy => Own::new(NormSpec::Nuclear, Rule::Sum),
        PotentialSpec::Layers { .. } => {
            return Err(NoOwnNorm(
                "the potential differs from block to block; give the blocks mirrors of their own".into(),
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimisers::Event;
    use crate::params::ParamLayout;

    #[test]
    fn every_optimiser_says_its_norm_and_the_norm_can_be_built() {
        let layout = ParamLayout::new([("w", 2, 2), ("a", 1, 2)]).unwrap();
        for spec in OptimiserSpec::examples() {
            // the last kind mixes mirror descent with momentum
            let none = matches!(spec, OptimiserSpec::AdaGrad { .. } | OptimiserSpec::ConstrainedMirror { .. })
                || spec.parts().iter().any(|part| matches!(part, OptimiserSpec::Nesterov { .. }));
            match spec.own_norm() {
                Some(norm) => assert!(!none && norm.build(&layout).is_ok(), "{spec:?}"),
                None => assert!(none, "{spec:?}"),
            }
        }
    }

    #[test]
    fn mirror_descent_has_the_norm_of_the_horizon_that_certificates_use() {
        use crate::certificates::Geometry;
        let layout = ParamLayout::new([("w", 2, 2)]).unwrap();
        let mut compared = 0;
        for potential in PotentialSpec::examples() {
            if let (Ok(geometry), Some(own)) =
                (Geometry::of_potential(&potential, &layout), OptimiserSpec::mirror(potential.clone()).own_norm())
            {
                assert_eq!(own, geometry.norm, "{potential:?}");
                compared += 1;
            }
        }
        assert!(compared >= 8, "only {compared} potentials were compared");
    }

    #[test]
    fn the_names_of_the_papers_have_their_norms() {
        for (name, norm) in [
            ("gradient", "l2"),
            ("sign", "linf"),
            ("coordinate", "l1"),
            ("spectral", "spectral"),
            ("nesterov", "l2"),
            ("monotone-coordinate", "l1"),
            ("ada-boost", "l1"),
            ("adam", "linf"),
            ("adam-w", "linf"),
            ("rms-prop", "linf"),
            ("signum", "linf"),
            ("lion", "linf"),
            ("muon", "spectral"),
            ("shampoo", "spectral"),
        ] {
            let spec: OptimiserSpec = name.parse().unwrap();
            assert_eq!(spec.own_norm().map(|norm| norm.key()), Some(norm.to_owned()), "{name}");
        }
        let potential = PotentialSpec::Smoothed { p: 3.0, lambda: 1.0 };
        assert_eq!(OptimiserSpec::mirror(potential.clone()).own_norm(), Some(NormSpec::Lp { p: 3.0 }));
        let switch = OptimiserSpec::Switch {
            first: Box::new(OptimiserSpec::mirror(potential)),
            second: Box::new(OptimiserSpec::steepest(NormSpec::Linf)),
            when: Event::Steps { count: 3 },
            rate_factor: 1.0,
        };
        assert_eq!(switch.own_norm(), Some(NormSpec::Linf));
    }
}
