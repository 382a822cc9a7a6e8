//! The description of a norm, as files and the command line speak it, and its building.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::composite::{Composite, Layer};
use super::face::Elementary;
use super::group::{GroupL2Inf, GroupL21};
use super::l1::L1;
use super::l2::L2;
use super::linf::Linf;
use super::lp::Lp;
use super::nuclear::Nuclear;
use super::quadratic::Quadratic;
use super::spectral::Spectral;
use super::window::Window;
use super::{Norm, NormError};
use crate::catalogue::CatalogueEntry;
use crate::params::{Block, BlockSelection, ParamLayout};

/// Which norm.
///
/// Entrywise norms (ℓ1, ℓ2, ℓ∞, ℓp, quadratic, Frobenius) measure all trainable entries as one vector. A matrix norm on
/// a layout with several trainable blocks composes over them with weight 1: spectral and ℓ2,∞ by the maximum, so that
/// `spectral` is the modular norm of paper A and the geometry of Shampoo; nuclear and ℓ2,1, their duals, by the sum. On
/// a block with one row or one column spectral and nuclear are ℓ2. For any other composition see [`NormSpec::Max`],
/// [`NormSpec::Sum`] and [`NormSpec::Root`].
///
/// ```
/// use limitpoint::norms::NormSpec;
/// assert_eq!("lp:4/3".parse::<NormSpec>()?, NormSpec::Lp { p: 4.0 / 3.0 });
/// assert_eq!(NormSpec::Lp { p: 4.0 / 3.0 }.key(), "l4/3");
/// assert!(NormSpec::Lp { p: 0.5 }.build_vector(3).is_err());
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum NormSpec {
    /// Σ|vᵢ|; coordinate descent on the first largest entry of the gradient.
    L1,
    /// Σ|vᵢ|, with the step shared equally among tied entries.
    L1Averaged,
    /// √Σvᵢ².
    L2,
    /// max|vᵢ|; on matrices the entrywise maximum.
    Linf,
    /// (Σ|vᵢ|ᵖ)^(1/p).
    Lp {
        /// p ≥ 1; 1 is `l1`, infinity is `linf`.
        p: f64,
    },
    /// √(Σ Dᵢvᵢ²).
    Quadratic {
        /// Dᵢ > 0, one for every trainable entry.
        diagonal: Vec<f64>,
    },
    /// √(vᵀDv).
    QuadraticDense {
        /// The rows of D, symmetric positive definite, one for every trainable entry.
        matrix: Vec<Vec<f64>>,
    },
    /// √ΣWᵢⱼ², over all blocks together.
    Frobenius,
    /// σ₁(W), the largest over blocks.
    Spectral,
    /// Σσₖ(W), the sum over blocks.
    Nuclear,
    /// Σᵢ‖wᵢ‖₂ over the rows of all blocks.
    #[serde(rename = "group21")]
    GroupL21,
    /// maxᵢ‖wᵢ‖₂ over the rows of all blocks.
    #[serde(rename = "group2inf")]
    GroupL2Inf,
    /// maxₗ cₗ‖Wₗ‖, each block with its own norm; the modular norm.
    Max {
        /// Entries that select every trainable block once, with `*` for the rest.
        blocks: Vec<BlockNorm>,
    },
    /// Σₗ cₗ‖Wₗ‖, each block with its own norm.
    Sum {
        /// Entries that select every trainable block once, with `*` for the rest.
        blocks: Vec<BlockNorm>,
    },
    /// √Σₗ(cₗ‖Wₗ‖)², each block with its own norm.
    Root {
        /// One entry for every trainable block, or `*` for the rest.
        blocks: Vec<BlockNorm>,
    },
}

/// The norm of blocks inside [`NormSpec::Max`], [`NormSpec::Sum`] or [`NormSpec::Root`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BlockNorm {
    /// Which blocks: a name, a layer, a pattern, a kind such as `matrices`, or `*` for every block not named. Frozen
    /// blocks are skipped.
    pub block: BlockSelection,
    /// Its norm; not `Max` or `Sum`.
    pub norm: NormSpec,
    /// cₗ > 0, 1 unless given.
    #[serde(default = "one")]
    pub weight: f64,
}

fn one() -> f64 {
    1.0
}

impl BlockNorm {
    /// `norm` with weight 1 on the blocks that `block` selects.
    pub fn new(block: impl Into<BlockSelection>, norm: NormSpec) -> Self {
        Self { block: block.into(), norm, weight: 1.0 }
    }

    /// The same with another weight.
    pub fn weighted(self, weight: f64) -> Self {
        Self { weight, ..self }
    }
}

impl NormSpec {
    /// Checks the settings and builds the norm for parameters of this layout.
    pub fn build(&self, layout: &ParamLayout) -> Result<Box<dyn Norm>, NormError> {
        let ranges = layout.trainable_ranges();
        let size: usize = ranges.iter().map(Range::len).sum();
        if size == 0 {
            return Err(NormError::NothingTrainable);
        }
        let Some(rule) = self.rule() else {
            return Ok(Box::new(Window::new(ranges, self.elementary(size, 1)?)));
        };
        let layers = match self {
            Self::Max { blocks } | Self::Sum { blocks } | Self::Root { blocks } => resolve(blocks, layout)?,
            everywhere => everywhere.on_every_block(layout)?,
        };
        match <[Layer; 1]>::try_from(layers) {
            Ok([Layer { range, norm, weight: 1.0 }]) => Ok(Box::new(Window::new(vec![range], norm))),
            Ok(layers) => Ok(Box::new(Composite::new(rule, layers.into(), layout.len()))),
            Err(layers) => Ok(Box::new(Composite::new(rule, layers, layout.len()))),
        }
    }

    /// Builds the norm for one plain vector of `length` entries.
    pub fn build_vector(&self, length: usize) -> Result<Box<dyn Norm>, NormError> {
        self.build(&ParamLayout::vector(length))
    }

    /// The norm of one block, for composites.
    pub(super) fn elementary(&self, rows: usize, cols: usize) -> Result<Box<dyn Elementary>, NormError> {
        let size = rows * cols;
        Ok(match self {
            Self::L1 => Box::new(L1::new(size, false)),
            Self::L1Averaged => Box::new(L1::new(size, true)),
            Self::L2 | Self::Frobenius => Box::new(L2::new(size)),
            Self::Linf => Box::new(Linf::new(size)),
            Self::Lp { p: 1.0 } => Box::new(L1::new(size, false)),
            Self::Lp { p: 2.0 } => Box::new(L2::new(size)),
            Self::Lp { p: f64::INFINITY } => Box::new(Linf::new(size)),
            Self::Lp { p } if *p > 1.0 => Box::new(Lp::new(size, *p)),
            Self::Lp { p } => return Err(NormError::Exponent { p: *p }),
            Self::Quadratic { diagonal } => Box::new(Quadratic::diagonal(size, diagonal)?),
            Self::QuadraticDense { matrix } => Box::new(Quadratic::dense(size, matrix)?),
            Self::Spectral | Self::Nuclear if rows == 1 || cols == 1 => Box::new(L2::new(size)),
            Self::Spectral => Box::new(Spectral::new(rows, cols)),
            Self::Nuclear => Box::new(Nuclear::new(rows, cols)),
            Self::GroupL21 => Box::new(GroupL21::new(rows, cols)),
            Self::GroupL2Inf => Box::new(GroupL2Inf::new(rows, cols)),
            Self::Max { .. } | Self::Sum { .. } | Self::Root { .. } => return Err(NormError::Nested(self.to_string())),
        })
    }

    fn on_every_block(&self, layout: &ParamLayout) -> Result<Vec<Layer>, NormError> {
        layout.trainable().map(|block| self.layer(block, 1.0)).collect()
    }

    fn layer(&self, block: &Block, weight: f64) -> Result<Layer, NormError> {
        Ok(Layer { range: block.range(), norm: self.elementary(block.rows, block.cols)?, weight })
    }

    /// Every norm with its formula.
    pub fn catalogue() -> Vec<CatalogueEntry> {
        let entry = |key, formula, reference| CatalogueEntry { key, formula, reference };
        vec![
            entry(
                "l1",
                "‖v‖ = Σ|vᵢ|, ‖g‖_* = max|gᵢ|, d = −sgn(gⱼ)eⱼ at the first j = argmax|gᵢ|",
                "A.eq1, B.eq11, B.cd",
            ),
            entry("l1-averaged", "‖v‖ = Σ|vᵢ|, ‖g‖_* = max|gᵢ|, d shared equally by all maximisers", "B.cd"),
            entry("l2", "‖v‖ = √Σvᵢ², ‖g‖_* = ‖g‖₂, d = −g/‖g‖₂", "A.eq1, B.eq11"),
            entry("linf", "‖v‖ = max|vᵢ|, ‖g‖_* = Σ|gᵢ|, d = −sgn(g)", "A.eq1, B.eq11"),
            entry("lp", "‖v‖ = (Σ|vᵢ|ᵖ)^(1/p), ‖g‖_* = ‖g‖_q, d = −sgn(g)|g|^(q−1)/‖g‖_q^(q−1)", "B.eq11, B.ex4"),
            entry("quadratic", "‖v‖ = √(Σ Dᵢvᵢ²), ‖g‖_* = √(Σ gᵢ²/Dᵢ), d = −D⁻¹g/‖g‖_*", "B.quadnorm"),
            entry("quadratic-dense", "‖v‖ = √(vᵀDv), ‖g‖_* = √(gᵀD⁻¹g), d = −D⁻¹g/‖g‖_*", "B.quadnorm"),
            entry("frobenius", "‖W‖ = √ΣWᵢⱼ², the ℓ2 norm of all blocks together", "A.eq1"),
            entry(
                "spectral",
                "‖W‖ = maxₗ σ₁(Wₗ), ‖G‖_* = Σₗ Σₖσₖ(Gₗ), d = −UVᵀ in every block",
                "A.modular, A.expShampoo",
            ),
            entry("nuclear", "‖W‖ = Σₗ Σₖσₖ(Wₗ), ‖G‖_* = maxₗ σ₁(Gₗ), d = −u₁v₁ᵀ in one block", "A.lemA4"),
            entry("group21", "‖W‖ = Σᵢ‖wᵢ‖₂ over rows, ‖G‖_* = maxᵢ‖gᵢ‖₂, d = −gⱼ/‖gⱼ‖₂ in one row", "A.lemA4"),
            entry("group2inf", "‖W‖ = maxᵢ‖wᵢ‖₂ over rows, ‖G‖_* = Σᵢ‖gᵢ‖₂, d = −gᵢ/‖gᵢ‖₂ in every row", "A.modular"),
            entry("max", "‖W‖ = maxₗ cₗ‖Wₗ‖, ‖G‖_* = Σₗ‖Gₗ‖_*/cₗ, d = dₗ/cₗ in every block", "A.modular"),
            entry("sum", "‖W‖ = Σₗ cₗ‖Wₗ‖, ‖G‖_* = maxₗ‖Gₗ‖_*/cₗ, d = dₗ/cₗ in one block", "A.lemA4"),
            entry(
                "root",
                "‖W‖ = √Σₗ(cₗ‖Wₗ‖)², ‖G‖_* = √Σₗ(‖Gₗ‖_*/cₗ)², d = ‖Gₗ‖_* dₗ/(cₗ²‖G‖_*) in every block",
                "A.lemA4",
            ),
        ]
    }

    /// At least one instance of every variant, with the sizes that `layout` needs.
    pub fn examples(layout: &ParamLayout) -> Vec<Self> {
        let size: usize = layout.trainable_ranges().iter().map(Range::len).sum();
        let diagonal = (0..size).map(|i| 0.5 + (i % 4) as f64).collect();
        // D = diag(2, 2.5, 2, …) + ¼ on all off-diagonal neighbours: diagonally dominant
        let entry = |i: usize, j: usize| match i.abs_diff(j) {
            0 => 2.0 + 0.5 * (i % 2) as f64,
            1 => 0.25,
            _ => 0.0,
        };
        let matrix = (0..size).map(|i| (0..size).map(|j| entry(i, j)).collect()).collect();
        let first = layout.trainable().next().map_or("w", |block| block.name.as_str());
        let mixed = |norm, rest| vec![BlockNorm::new(first, norm).weighted(0.75), BlockNorm::new("*", rest)];
        vec![
            Self::L1,
            Self::L1Averaged,
            Self::L2,
            Self::Linf,
            Self::Lp { p: 4.0 / 3.0 },
            Self::Lp { p: 3.0 },
            Self::Quadratic { diagonal },
            Self::QuadraticDense { matrix },
            Self::Frobenius,
            Self::Spectral,
            Self::Nuclear,
            Self::GroupL21,
            Self::GroupL2Inf,
            Self::Max { blocks: mixed(Self::Nuclear, Self::Linf) },
            Self::Max { blocks: mixed(Self::GroupL21, Self::Lp { p: 3.0 }) },
            Self::Max { blocks: mixed(Self::Spectral, Self::L1) },
            Self::Sum { blocks: mixed(Self::Spectral, Self::L2) },
            Self::Sum { blocks: mixed(Self::Linf, Self::Lp { p: 1.5 }) },
            Self::Root { blocks: mixed(Self::Spectral, Self::Linf) },
            Self::Root { blocks: mixed(Self::L1, Self::L2) },
        ]
    }
}

/// The layers a composite consists of, in the order of the layout.
fn resolve(entries: &[BlockNorm], layout: &ParamLayout) -> Result<Vec<Layer>, NormError> {
    let assigned = NormSpec::assigned(entries, layout)?;
    assigned.into_iter().map(|(block, entry)| entry.norm.layer(block, entry.weight)).collect()
}
