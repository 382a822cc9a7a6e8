//! Aliases resolved: one name for every norm, whatever it was called.
//!
//! Many descriptions mean one norm. [`NormSpec::canonical`] takes a norm apart into [`PlainNorm`]s, which have no aliases:
//!
//! | written | on | is |
//! |---|---|---|
//! | `lp:1`, `lp:2`, `lp:inf`, `l1-averaged`, `frobenius` | anything | ℓ1, ℓ2, ℓ∞, ℓ1, ℓ2 |
//! | `quadratic`, `quadratic-dense` with D = I | anything | ℓ2 |
//! | `quadratic-dense` with a diagonal D | anything | `quadratic` |
//! | `spectral`, `nuclear` | one row or one column | ℓ2 |
//! | `group21`, `group2inf` | one row; one column | ℓ2; ℓ1, ℓ∞ |
//! | `max(…)`, `sum(…)`, `root(…)` | one block | c times the norm of the block |
//! | `max` of ℓ∞, `sum` of ℓ1, `root` of ℓ2, equal weights c | several blocks | c times ℓ∞, ℓ1, ℓ2 of all entries |
//! | `spectral`, `group2inf`; `nuclear`, `group21` | several blocks | `max`; `sum` of that norm |
//! | any norm but a quadratic one | a single entry | ℓ2 |
//!
//! Whoever needs to know which norm it is, such as a solver or an enclosure, matches on `PlainNorm`, without a wildcard: a
//! norm that is added must say there how it is solved.

use std::ops::Range;

use super::composite::Rule;
use super::{NormError, NormSpec};
use crate::params::{Block, ParamLayout, ParamsError, assign};

/// A norm of one matrix or vector, under its only name.
#[derive(Debug, Clone, PartialEq)]
pub enum PlainNorm {
    /// Σ|vᵢ|.
    L1,
    /// √Σvᵢ².
    L2,
    /// max|vᵢ|.
    Linf,
    /// (Σ|vᵢ|ᵖ)^(1/p) with 1 < p < ∞ and p ≠ 2.
    Lp(f64),
    /// √(Σ Dᵢvᵢ²), not all Dᵢ = 1.
    Quadratic(Vec<f64>),
    /// √(vᵀDv) with a D that is not diagonal.
    QuadraticDense(Vec<Vec<f64>>),
    /// σ₁ of a matrix with both sides above 1.
    Spectral,
    /// Σσₖ of a matrix with both sides above 1.
    Nuclear,
    /// Σ‖wᵢ‖₂ over the rows of a matrix with both sides above 1.
    GroupL21,
    /// max‖wᵢ‖₂ over the rows of a matrix with both sides above 1.
    GroupL2Inf,
}

/// A plain norm of some of the entries, with its weight in the whole.
#[derive(Debug, Clone, PartialEq)]
pub struct NormPart {
    /// Which entries of the flat vector, in order.
    pub ranges: Vec<Range<usize>>,
    /// Rows of the matrix that they are.
    pub rows: usize,
    /// Its columns; 1 for vectors, also those that go over several blocks.
    pub cols: usize,
    /// The norm.
    pub norm: PlainNorm,
    /// c > 0.
    pub weight: f64,
}

impl NormPart {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.rows * self.cols
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The places of its entries in the flat vector.
    pub fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges.iter().cloned().flatten()
    }

    /// Its entries.
    pub fn gather<T: Copy>(&self, v: &[T]) -> Vec<T> {
        self.places().map(|j| v[j]).collect()
    }
}

/// A norm on a layout as the largest, the sum or the root of the squares of weighted plain norms: ‖v‖ = maxₗ cₗ‖vₗ‖,
/// Σₗ cₗ‖vₗ‖ or √Σₗ(cₗ‖vₗ‖)².
///
/// The parts are in the order of the layout and cover every trainable entry once. Where there is one, the rule says nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Canonical {
    /// How the parts become one.
    pub rule: Rule,
    /// At least one.
    pub parts: Vec<NormPart>,
}

impl NormSpec {
    /// This norm on parameters of this layout, without aliases.
    ///
    /// Value, dual, balls and subdifferentials are the same. Which of several steepest directions is taken can differ:
    /// `l1-averaged` shares the step among tied entries, `l1` does not.
    ///
    /// ```
    /// use limitpoint::{norms::{NormSpec, PlainNorm}, params::ParamLayout};
    /// let layout = ParamLayout::new([("w", 2, 2), ("a", 1, 2)]).unwrap();
    /// let plain = "sum(*=3*lp:1)".parse::<NormSpec>()?.canonical(&layout)?;
    /// assert_eq!((&plain.parts[0].norm, plain.parts[0].weight, plain.parts.len()), (&PlainNorm::L1, 3.0, 1));
    /// let plain = "spectral".parse::<NormSpec>()?.canonical(&layout)?;
    /// assert_eq!((&plain.parts[0].norm, &plain.parts[1].norm), (&PlainNorm::Spectral, &PlainNorm::L2));
    /// # Ok::<(), limitpoint::norms::NormError>(())
    /// ```
    pub fn canonical(&self, layout: &ParamLayout) -> Result<Canonical, NormError> {
        let whole = |norm: PlainNorm, weight: f64| {
            let ranges = layout.trainable_ranges();
            let rows = ranges.iter().map(Range::len).sum();
            Canonical { rule: Rule::Max, parts: vec![NormPart { ranges, rows, cols: 1, norm, weight }] }
        };
        let size: usize = layout.trainable().map(Block::len).sum();
        if size == 0 {
            return Err(NormError::NothingTrainable);
        }
        let every = |norm: &Self| -> Result<Vec<NormPart>, NormError> {
            layout.trainable().map(|block| norm.on_block(block, 1.0)).collect()
        };
        let Some(rule) = self.rule() else { return Ok(whole(self.on_matrix(size, 1)?, 1.0)) };
        let parts = match self {
            Self::Max { blocks } | Self::Sum { blocks } | Self::Root { blocks } => Self::parts(blocks, layout)?,
            everywhere => every(everywhere)?,
        };
        let (plain, spec) = match rule {
            Rule::Max => (PlainNorm::Linf, Self::Linf),
            Rule::Sum => (PlainNorm::L1, Self::L1),
            Rule::Root => (PlainNorm::L2, Self::L2),
        };
        let (weight, same) = (parts[0].weight, every(&spec)?);
        let fits = |(part, same): (&NormPart, &NormPart)| part.weight == weight && part.norm == same.norm;
        Ok(match parts.len() > 1 && parts.iter().zip(&same).all(fits) {
            true => whole(plain, weight),
            false => Canonical { rule, parts },
        })
    }

    /// How it is put together from the norms of blocks; nothing for norms of all entries as one vector.
    pub(super) fn rule(&self) -> Option<Rule> {
        match self {
            Self::Max { .. } | Self::Spectral | Self::GroupL2Inf => Some(Rule::Max),
            Self::Sum { .. } | Self::Nuclear | Self::GroupL21 => Some(Rule::Sum),
            Self::Root { .. } => Some(Rule::Root),
            Self::L1
            | Self::L1Averaged
            | Self::L2
            | Self::Linf
            | Self::Lp { .. }
            | Self::Quadratic { .. }
            | Self::QuadraticDense { .. }
            | Self::Frobenius => None,
        }
    }

    /// p, where this is the ℓp norm of all trainable entries on any layout.
    ///
    /// ```
    /// use limitpoint::norms::NormSpec;
    /// assert_eq!(NormSpec::Frobenius.exponent(), Some(2.0));
    /// assert_eq!(NormSpec::Linf.exponent(), Some(f64::INFINITY));
    /// assert_eq!(NormSpec::Spectral.exponent(), None);
    /// ```
    pub fn exponent(&self) -> Option<f64> {
        match self {
            Self::L1 | Self::L1Averaged => Some(1.0),
            Self::L2 | Self::Frobenius => Some(2.0),
            Self::Linf => Some(f64::INFINITY),
            Self::Lp { p } => Some(*p),
            Self::Quadratic { .. }
            | Self::QuadraticDense { .. }
            | Self::Spectral
            | Self::Nuclear
            | Self::GroupL21
            | Self::GroupL2Inf
            | Self::Max { .. }
            | Self::Sum { .. }
            | Self::Root { .. } => None,
        }
    }

    fn parts(entries: &[super::BlockNorm], layout: &ParamLayout) -> Result<Vec<NormPart>, NormError> {
        Self::assigned(entries, layout)?
            .into_iter()
            .map(|(block, entry)| entry.norm.on_block(block, entry.weight))
            .collect()
    }

    /// Which entry of a composite belongs to which trainable block, in the order of the layout.
    pub(super) fn assigned<'a>(
        entries: &'a [super::BlockNorm],
        layout: &'a ParamLayout,
    ) -> Result<Vec<(&'a Block, &'a super::BlockNorm)>, NormError> {
        for entry in entries {
            if !(entry.weight > 0.0 && entry.weight.is_finite()) {
                return Err(NormError::Weight { block: entry.block.to_string(), weight: entry.weight });
            }
            if matches!(entry.norm, Self::Max { .. } | Self::Sum { .. } | Self::Root { .. }) {
                return Err(NormError::Nested(entry.block.to_string()));
            }
        }
        let kept: Vec<&super::BlockNorm> = entries.iter().filter(|entry| !is_missing_kind(entry, layout)).collect();
        let assigned = assign(layout, &kept, |entry| &entry.block)?;
        let place = |block: &Block| layout.blocks().iter().find(|known| known.name == block.name);
        Ok(assigned.into_iter().filter_map(|(block, entry)| Some((place(block)?, *entry))).collect())
    }

    /// This norm of one block.
    fn on_block(&self, block: &Block, weight: f64) -> Result<NormPart, NormError> {
        let norm = self.on_matrix(block.rows, block.cols)?;
        Ok(NormPart { ranges: vec![block.range()], rows: block.rows, cols: block.cols, norm, weight })
    }

    /// The only name on one matrix.
    fn on_matrix(&self, rows: usize, cols: usize) -> Result<PlainNorm, NormError> {
        if matches!(self, Self::Quadratic { .. } | Self::QuadraticDense { .. }) {
            self.elementary(rows, cols)?; // refuses wrong sizes and forms that are not positive
        }
        let quadratic = |diagonal: Vec<f64>| match diagonal.iter().all(|entry| *entry == 1.0) {
            true => PlainNorm::L2,
            false => PlainNorm::Quadratic(diagonal),
        };
        let (single, thin) = (rows * cols == 1, rows == 1 || cols == 1);
        Ok(match self {
            Self::Quadratic { diagonal } => quadratic(diagonal.clone()),
            Self::QuadraticDense { matrix } if is_diagonal(matrix) => {
                quadratic(matrix.iter().enumerate().map(|(i, row)| row[i]).collect())
            }
            Self::QuadraticDense { matrix } => PlainNorm::QuadraticDense(matrix.clone()),
            Self::Lp { p } if p.is_nan() || *p < 1.0 => return Err(NormError::Exponent { p: *p }),
            Self::Max { .. } | Self::Sum { .. } | Self::Root { .. } => return Err(NormError::Nested(self.to_string())),
            Self::L1 | Self::L1Averaged | Self::Linf | Self::Lp { .. } if single => PlainNorm::L2,
            Self::Lp { p: 1.0 } | Self::L1 | Self::L1Averaged => PlainNorm::L1,
            Self::Lp { p: 2.0 } | Self::L2 | Self::Frobenius => PlainNorm::L2,
            Self::Lp { p: f64::INFINITY } | Self::Linf => PlainNorm::Linf,
            Self::Lp { p } => PlainNorm::Lp(*p),
            Self::Spectral | Self::Nuclear if thin => PlainNorm::L2,
            Self::Spectral => PlainNorm::Spectral,
            Self::Nuclear => PlainNorm::Nuclear,
            Self::GroupL21 | Self::GroupL2Inf if rows == 1 => PlainNorm::L2,
            Self::GroupL21 if cols == 1 => PlainNorm::L1,
            Self::GroupL2Inf if cols == 1 => PlainNorm::Linf,
            Self::GroupL21 => PlainNorm::GroupL21,
            Self::GroupL2Inf => PlainNorm::GroupL2Inf,
        })
    }
}

/// Whether an entry is for a kind of blocks, such as `matrices`, that the layout has none of.
fn is_missing_kind(entry: &super::BlockNorm, layout: &ParamLayout) -> bool {
    let nothing = matches!(entry.block.resolve(layout), Err(ParamsError::NothingSelected { .. }));
    nothing && !entry.block.to_string().contains('*')
}

/// Whether only the diagonal of a square matrix differs from 0.
fn is_diagonal(matrix: &[Vec<f64>]) -> bool {
    let zero = |i: usize, row: &Vec<f64>| row.iter().enumerate().all(|(j, x)| i == j || *x == 0.0);
    matrix.iter().enumerate().all(|(i, row)| row.len() == matrix.len() && zero(i, row)) && !matrix.is_empty()
}

impl PlainNorm {
    /// Its description.
    pub fn spec(&self) -> NormSpec {
        match self {
            Self::L1 => NormSpec::L1,
            Self::L2 => NormSpec::L2,
            Self::Linf => NormSpec::Linf,
            Self::Lp(p) => NormSpec::Lp { p: *p },
            Self::Quadratic(diagonal) => NormSpec::Quadratic { diagonal: diagonal.clone() },
            Self::QuadraticDense(matrix) => NormSpec::QuadraticDense { matrix: matrix.clone() },
            Self::Spectral => NormSpec::Spectral,
            Self::Nuclear => NormSpec::Nuclear,
            Self::GroupL21 => NormSpec::GroupL21,
            Self::GroupL2Inf => NormSpec::GroupL2Inf,
        }
    }
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
