//! The description of a potential, as files, the command line and Python speak it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Entropy, Euclidean, Hyperbolic, Layers, MirrorPotential, PotentialError, PowerSmoothed, Quadratic, ScalarPotential,
    Separable, Smoothed, SpectralEntropy, SquaredLp,
};
use crate::catalogue::CatalogueEntry;
use crate::params::{BlockSelection, ParamLayout};

/// Which potential, with its settings.
///
/// | setting | range | meaning |
/// |---|---|---|
/// | `lambda` (hyperbolic) | > 0 | width of the smooth part; the horizon is visible once Q ≫ n√λ |
/// | `lambda` (smoothed, power-smoothed) | ≥ 0 | weight of the quadratic part; 0 is the pure power |
/// | `p` (smoothed) | ≥ 2 | degree |
/// | `p` (power-smoothed, squared-lp) | 1 < p ≤ 2 | degree, or exponent of the norm |
///
/// In a file: `potential = "entropy"`, `potential = { hyperbolic = { lambda = 0.1 } }`,
/// `potential = { quadratic = { diagonal = [1.0, 2.0] } }`. In text: `hyperbolic:0.1`, `smoothed:3,1`.
///
/// ```
/// use limitpoint::{params::ParamLayout, potentials::PotentialSpec};
/// let spec: PotentialSpec = "smoothed:3,1".parse()?;
/// assert_eq!(spec, PotentialSpec::Smoothed { p: 3.0, lambda: 1.0 });
/// let mut potential = spec.build(&ParamLayout::vector(1))?;
/// assert_eq!(potential.value(&[3.0]), 9.0 + 4.5);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PotentialSpec {
    /// ‖θ‖₂²/2: gradient descent.
    Euclidean,
    /// θᵀDθ/2.
    Quadratic(QuadraticWeights),
    /// Σ t ln t − t on positive weights.
    Entropy,
    /// Σ t asinh(t/√λ) − √(t²+λ).
    Hyperbolic {
        /// λ > 0.
        lambda: f64,
    },
    /// Σ |t|^p/p + λt²/2.
    Smoothed {
        /// p ≥ 2.
        p: f64,
        /// λ ≥ 0.
        lambda: f64,
    },
    /// Σ (t²+λ)^{p/2}/p, shifted by a constant.
    PowerSmoothed {
        /// 1 < p ≤ 2.
        p: f64,
        /// λ ≥ 0.
        lambda: f64,
    },
    /// ½‖w‖_p².
    SquaredLp {
        /// 1 < p ≤ 2.
        p: f64,
    },
    /// tr(W ln W − W) on square, symmetric, positive definite blocks.
    SpectralEntropy,
    /// A potential for each block.
    Layers {
        /// Entries by block; `*` covers the blocks not named.
        blocks: Vec<BlockPotential>,
    },
}

/// The matrix D of a quadratic potential, over the trainable entries in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum QuadraticWeights {
    /// A positive diagonal; a single weight serves all entries.
    Diagonal(Vec<f64>),
    /// A symmetric positive definite matrix, row by row.
    Matrix(Vec<Vec<f64>>),
}

/// The potential of one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockPotential {
    /// Which blocks: a name, a layer, a pattern, a kind such as `matrices`, or `*` for all blocks not named.
    pub block: BlockSelection,
    /// Its potential.
    pub potential: PotentialSpec,
}

impl PotentialSpec {
    /// Checks the settings and makes the worker, with its buffers, for one layout.
    pub fn build(&self, layout: &ParamLayout) -> Result<Box<dyn MirrorPotential>, PotentialError> {
        Ok(match self {
            Self::Euclidean => Box::new(Separable::new(Euclidean, layout)),
            Self::Quadratic(weights) => Box::new(Quadratic::new(weights, layout)?),
            Self::Entropy => Box::new(Separable::new(Entropy, layout)),
            Self::Hyperbolic { lambda } => Box::new(Separable::new(Hyperbolic::new(*lambda)?, layout)),
            Self::Smoothed { p, lambda } => Box::new(Separable::new(Smoothed::new(*p, *lambda)?, layout)),
            Self::PowerSmoothed { p, lambda } => Box::new(Separable::new(PowerSmoothed::new(*p, *lambda)?, layout)),
            Self::SquaredLp { p } => Box::new(SquaredLp::new(*p, layout)?),
            Self::SpectralEntropy => Box::new(SpectralEntropy::new(layout)?),
            Self::Layers { blocks } => Box::new(Layers::new(blocks, layout)?),
        })
    }

    /// The function r with R(θ) = Σ r(θᵢ), where R is such a sum.
    ///
    /// ```
    /// use limitpoint::potentials::PotentialSpec;
    /// assert_eq!(PotentialSpec::Euclidean.scalar()?.value(2.0), 2.0);
    /// assert!(PotentialSpec::SquaredLp { p: 1.5 }.scalar().is_err());
    /// # Ok::<(), limitpoint::potentials::PotentialError>(())
    /// ```
    pub fn scalar(&self) -> Result<Box<dyn ScalarPotential>, PotentialError> {
        Ok(match self {
            Self::Euclidean => Box::new(Euclidean),
            Self::Entropy => Box::new(Entropy),
            Self::Hyperbolic { lambda } => Box::new(Hyperbolic::new(*lambda)?),
            Self::Smoothed { p, lambda } => Box::new(Smoothed::new(*p, *lambda)?),
            Self::PowerSmoothed { p, lambda } => Box::new(PowerSmoothed::new(*p, *lambda)?),
            _ => return Err(PotentialError::NotScalar { potential: self.key() }),
        })
    }

    /// The name used in files and on the command line.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Euclidean => "euclidean",
            Self::Quadratic(_) => "quadratic",
            Self::Entropy => "entropy",
            Self::Hyperbolic { .. } => "hyperbolic",
            Self::Smoothed { .. } => "smoothed",
            Self::PowerSmoothed { .. } => "power-smoothed",
            Self::SquaredLp { .. } => "squared-lp",
            Self::SpectralEntropy => "spectral-entropy",
            Self::Layers { .. } => "layers",
        }
    }

    /// Every potential with its formula and reference.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let entry = |key, formula, reference| CatalogueEntry { key, formula, reference };
        vec![
            entry("euclidean", "‖θ‖₂²/2", "C section 2; gradient descent"),
            entry("quadratic", "θᵀDθ/2, D ≻ 0 diagonal or dense", "B.thm1, B.quadmom"),
            entry("entropy", "Σ t ln t − t, t > 0", "B.thm1"),
            entry("hyperbolic", "Σ t asinh(t/√λ) − √(t²+λ), λ > 0", "C.tab1, C.cor4.8"),
            entry("smoothed", "Σ |t|^p/p + λt²/2, p ≥ 2, λ ≥ 0", "C.tab1, C.thm4.7"),
            entry("power-smoothed", "Σ ((t²+λ)^{p/2} − Kλ^{p/2})/p, 1 < p ≤ 2, λ ≥ 0", "X.17 (beyond C section 6)"),
            entry("squared-lp", "‖w‖_p²/2, 1 < p ≤ 2", "B.thm1"),
            entry("spectral-entropy", "tr(W ln W − W), W ≻ 0", "B.thm1"),
            entry("layers", "Σ_b R_b(W_b), one potential per block", "C.defI4, C.lem3.1"),
        ]
    }

    /// Instances of every variant, for tests and listings; all but `spectral-entropy` fit any layout.
    pub fn examples() -> Vec<Self> {
        vec![
            Self::Euclidean,
            Self::Quadratic(QuadraticWeights::Diagonal(vec![2.0])),
            Self::Entropy,
            Self::Hyperbolic { lambda: 0.1 },
            Self::Hyperbolic { lambda: 1e-8 },
            Self::Smoothed { p: 2.0, lambda: 0.5 },
            Self::Smoothed { p: 3.0, lambda: 1.0 },
            Self::Smoothed { p: 3.0, lambda: 0.0 },
            Self::Smoothed { p: 4.0, lambda: 0.1 },
            Self::Smoothed { p: 2.5, lambda: 0.3 },
            Self::PowerSmoothed { p: 1.5, lambda: 0.1 },
            Self::PowerSmoothed { p: 1.2, lambda: 0.0 },
            Self::SquaredLp { p: 1.5 },
            Self::SquaredLp { p: 1.1 },
            Self::SpectralEntropy,
            Self::Layers {
                blocks: vec![
                    BlockPotential { block: "w".into(), potential: Self::Hyperbolic { lambda: 0.1 } },
                    BlockPotential { block: "*".into(), potential: Self::Smoothed { p: 3.0, lambda: 1.0 } },
                ],
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_and_the_examples_cover_every_variant() {
        // Adding a variant breaks this match, and then the count.
        let number = |spec: &PotentialSpec| match spec {
            PotentialSpec::Euclidean => 0,
            PotentialSpec::Quadratic(_) => 1,
            PotentialSpec::Entropy => 2,
            PotentialSpec::Hyperbolic { .. } => 3,
            PotentialSpec::Smoothed { .. } => 4,
            PotentialSpec::PowerSmoothed { .. } => 5,
            PotentialSpec::SquaredLp { .. } => 6,
            PotentialSpec::SpectralEntropy => 7,
            PotentialSpec::Layers { .. } => 8,
        };
        let mut seen = [false; 9];
        let catalogue = PotentialSpec::catalogue();
        assert_eq!(catalogue.len(), seen.len());
        for spec in PotentialSpec::examples() {
            seen[number(&spec)] = true;
            assert_eq!(catalogue[number(&spec)].key, spec.key());
        }
        assert_eq!(seen, [true; 9]);
    }

    #[test]
    fn files_read_back_what_they_say() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct File {
            potential: PotentialSpec,
        }
        for potential in PotentialSpec::examples() {
            let file = File { potential };
            let text = toml::to_string(&file).unwrap();
            assert_eq!(toml::from_str::<File>(&text).unwrap(), file, "{text}");
        }
        let file: File = toml::from_str("potential = \"entropy\"").unwrap();
        assert_eq!(file.potential, PotentialSpec::Entropy);
        let file: File = toml::from_str("potential = { quadratic = { diagonal = [1.0, 2.0] } }").unwrap();
        assert_eq!(file.potential, PotentialSpec::Quadratic(QuadraticWeights::Diagonal(vec![1.0, 2.0])));
        let wrong = "potential = { hyperbolic = { lambda = 0.1, mu = 1.0 } }";
        assert!(toml::from_str::<File>(wrong).is_err());
    }
}
