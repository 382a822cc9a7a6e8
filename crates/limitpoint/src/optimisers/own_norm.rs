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
//! | AdaGrad | none | its metric depends on the data (B Proposition 6) |
//! | constrained mirror descent | none | the weights stay on a set, so no margin grows |

use super::OptimiserSpec;
use crate::norms::NormSpec;
use crate::potentials::{PotentialSpec, QuadraticWeights};

impl OptimiserSpec {
    /// The norm the optimiser belongs to, whether or not a theorem says that its margin becomes the largest; nothing
    /// where there is no such norm, or where it differs from block to block.
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
        match self {
            Self::Steepest { norm, .. }
            | Self::DualAcceleration { norm, .. }
            | Self::ProgressiveRescaling { norm, .. } => Some(norm.clone()),
            Self::HeavyBall { .. } | Self::Nesterov { .. } => Some(NormSpec::L2),
            Self::MonotoneCoordinate { .. } | Self::AdaBoost => Some(NormSpec::L1),
            Self::Adam { .. } | Self::AdamW { .. } | Self::RmsProp { .. } | Self::Signum { .. } | Self::Lion { .. } => {
                Some(NormSpec::Linf)
            }
            Self::Muon { .. } | Self::Shampoo { .. } => Some(NormSpec::Spectral),
            Self::Mirror { potential, .. } | Self::NaturalGradient { potential } => horizon_norm(potential),
            Self::Switch { second, .. } => second.own_norm(),
            Self::AdaGrad { .. } | Self::ConstrainedMirror { .. } => None,
        }
    }
}

/// The norm that the horizon of a potential is a multiple of; nothing for potentials that differ from block to block.
fn horizon_norm(potential: &PotentialSpec) -> Option<NormSpec> {
    Some(match potential {
        PotentialSpec::Euclidean => NormSpec::L2,
        PotentialSpec::Entropy | PotentialSpec::Hyperbolic { .. } => NormSpec::L1,
        PotentialSpec::Smoothed { p: 2.0, .. }
        | PotentialSpec::PowerSmoothed { p: 2.0, .. }
        | PotentialSpec::SquaredLp { p: 2.0 } => NormSpec::L2,
        PotentialSpec::Smoothed { p, .. } | PotentialSpec::PowerSmoothed { p, .. } | PotentialSpec::SquaredLp { p } => {
            NormSpec::Lp { p: *p }
        }
        PotentialSpec::Quadratic(QuadraticWeights::Diagonal(diagonal)) if diagonal.len() == 1 => NormSpec::L2,
        PotentialSpec::Quadratic(QuadraticWeights::Diagonal(diagonal)) => {
            NormSpec::Quadratic { diagonal: diagonal.clone() }
        }
        PotentialSpec::Quadratic(QuadraticWeights::Matrix(matrix)) => {
            NormSpec::QuadraticDense { matrix: matrix.clone() }
        }
        PotentialSpec::SpectralEntropy => NormSpec::Nuclear,
        PotentialSpec::Layers { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimisers::Event;
    use crate::params::ParamLayout;

    #[test]
    fn every_optimiser_says_its_norm_and_the_norm_can_be_built() {
        let layout = ParamLayout::new([("w", 2, 2)]).unwrap();
        for spec in OptimiserSpec::examples() {
            let none = matches!(spec, OptimiserSpec::AdaGrad { .. } | OptimiserSpec::ConstrainedMirror { .. });
            match spec.own_norm() {
                Some(norm) => assert!(!none && norm.build(&layout).is_ok(), "{spec:?}"),
                None => assert!(none, "{spec:?}"),
            }
        }
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
