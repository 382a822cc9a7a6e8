//! The flat parameter vector and the names and shapes of its blocks.
//!
//! Parameters are one `&[f64]`; a [`ParamLayout`] says which slice is which matrix. Which model owns them is not known
//! here. A block can be frozen: it keeps its initial value, its gradient is reported as zero, and norms and potentials
//! leave it out.

mod metric;
mod parameters;
mod selection;
mod update;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use self::metric::{DiagonalMetric, MetricEntry};
pub use self::parameters::{At, Elsewhere, Parameters, Version};
pub use self::selection::{BlockSelection, assign};
pub use self::update::Update;

/// What a block is to its layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The matrix of an affine layer, outputs × inputs.
    Weight,
    /// What an affine layer adds.
    Bias,
    /// A part of a model that is not made of affine layers: a factor of a product, a point.
    #[default]
    Part,
}

/// One named matrix inside the flat vector, row-major; vectors are matrices with one column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Unique name, such as `layer1.weight`; for people and files, which never decides what a block is.
    pub name: String,
    /// The layer it belongs to, from 1; a part is a layer of its own.
    pub layer: usize,
    /// What it is to this layer.
    pub role: Role,
    /// Numbers that each number the layer puts out is summed over.
    pub fan_in: usize,
    /// Rows (outputs of a dense layer).
    pub rows: usize,
    /// Columns (inputs of a dense layer).
    pub cols: usize,
    /// Index of the first entry in the flat vector.
    pub offset: usize,
    /// Whether the block is held at its initial value.
    pub frozen: bool,
}

impl Block {
    /// The matrix of the affine layer `layer`, called `layer1.weight`, `layer2.weight`, ….
    pub fn weight(layer: usize, outputs: usize, inputs: usize) -> Self {
        let name = format!("layer{layer}.weight");
        Self { layer, role: Role::Weight, ..Self::part(&name, outputs, inputs) }
    }

    /// What the affine layer `layer` of this many inputs adds to its outputs.
    pub fn bias(layer: usize, outputs: usize, inputs: usize) -> Self {
        let name = format!("layer{layer}.bias");
        Self { layer, role: Role::Bias, fan_in: inputs, ..Self::part(&name, outputs, 1) }
    }

    /// A part by its name and shape.
    pub fn part(name: &str, rows: usize, cols: usize) -> Self {
        Self { name: name.into(), layer: 0, role: Role::Part, fan_in: cols, rows, cols, offset: 0, frozen: false }
    }

    /// The same block, kept at its initial value if `frozen`.
    pub fn frozen(self, frozen: bool) -> Self {
        Self { frozen, ..self }
    }

    /// Whether it is the matrix of an affine layer.
    pub fn is_weight(&self) -> bool {
        self.role == Role::Weight
    }

    /// The block's slice of the flat vector.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset.saturating_add(self.len())
    }

    /// Number of entries; beyond all bounds it saturates, and whoever takes memory for it refuses.
    pub fn len(&self) -> usize {
        self.rows.saturating_mul(self.cols)
    }

    /// Whether the block has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The blocks of a parameter vector, in order.
///
/// ```
/// use limitpoint::params::ParamLayout;
/// let layout = ParamLayout::new([("w", 3, 2), ("a", 1, 3)])?.freeze(&["a"])?;
/// assert_eq!(layout.len(), 9);
/// assert_eq!(layout.block("a").unwrap().range(), 6..9);
/// assert_eq!(layout.trainable_ranges(), vec![0..6]);
/// # Ok::<(), limitpoint::params::ParamsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParamLayout {
    blocks: Vec<Block>,
}

/// What a parameter layout can refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamsError {
    /// Two blocks share a name.
    #[error("two parameter blocks are called '{0}'; names must be unique")]
    DuplicateName(String),
    /// A block has no entries.
    #[error("parameter block '{0}' has shape {1}x{2}; both sides must be at least 1")]
    EmptyBlock(String, usize, usize),
    /// A name that no block has.
    #[error("no parameter block is called '{name}'; the blocks are {known}")]
    UnknownBlock {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A pattern or a kind that no block is of.
    #[error("'{word}' selects no parameter block; the blocks are {known}")]
    NothingSelected {
        /// The word.
        word: String,
        /// The names there are.
        known: String,
    },
    /// A selection without a word.
    #[error("an empty list selects no parameter block; name one, or say \"all\"")]
    NoWords,
    /// Two entries of a list for one block.
    #[error("block '{0}' is listed twice; list it once")]
    ListedTwice(String),
    /// A list without an entry for a block.
    #[error("block '{0}' is trainable but not listed; name it, or add '*' for all blocks not named")]
    NotListed(String),
    /// A vector of the wrong length.
    #[error("a parameter vector of {found} entries was given for a layout of {expected}")]
    Length {
        /// Entries given.
        found: usize,
        /// Entries needed.
        expected: usize,
    },
}

impl ParamLayout {
    /// Lays out parts `(name, rows, cols)` one after the other.
    pub fn new<'a>(parts: impl IntoIterator<Item = (&'a str, usize, usize)>) -> Result<Self, ParamsError> {
        Self::of(parts.into_iter().map(|(name, rows, cols)| Block::part(name, rows, cols)))
    }

    /// Lays out blocks one after the other.
    ///
    /// ```
    /// use limitpoint::params::{Block, ParamLayout};
    /// let layout = ParamLayout::of([Block::weight(1, 3, 2), Block::bias(1, 3, 2), Block::weight(2, 1, 3)])?;
    /// let second = layout.block("layer2.weight").unwrap();
    /// assert_eq!((second.layer, second.fan_in, second.range()), (2, 3, 9..12));
    /// # Ok::<(), limitpoint::params::ParamsError>(())
    /// ```
    pub fn of(blocks: impl IntoIterator<Item = Block>) -> Result<Self, ParamsError> {
        let mut layout = Self { blocks: Vec::new() };
        for mut block in blocks {
            if block.rows == 0 || block.cols == 0 {
                return Err(ParamsError::EmptyBlock(block.name, block.rows, block.cols));
            }
            if layout.block(&block.name).is_some() {
                return Err(ParamsError::DuplicateName(block.name));
            }
            block.offset = layout.len();
            if block.role == Role::Part {
                block.layer = layout.blocks.len() + 1;
            }
            layout.blocks.push(block);
        }
        Ok(layout)
    }

    /// One unnamed vector of `length` entries, for problems without structure.
    pub fn vector(length: usize) -> Self {
        Self { blocks: vec![Block { layer: 1, ..Block::part("w", length, 1) }] }
    }

    /// The same layout with the named blocks frozen.
    pub fn freeze(mut self, names: &[&str]) -> Result<Self, ParamsError> {
        for name in names {
            let known = self.names();
            match self.blocks.iter_mut().find(|block| block.name == *name) {
                Some(block) => block.frozen = true,
                None => return Err(ParamsError::UnknownBlock { name: (*name).to_string(), known }),
            }
        }
        Ok(self)
    }

    /// Number of entries of the flat vector, frozen ones included.
    pub fn len(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.range().end)
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// All blocks in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The matrices of the affine layers, in order.
    pub fn weights(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.is_weight())
    }

    /// The blocks that move.
    pub fn trainable(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| !block.frozen)
    }

    /// Entry ranges that move, neighbours merged.
    pub fn trainable_ranges(&self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for block in self.trainable() {
            match ranges.last_mut() {
                Some(last) if last.end == block.offset => last.end = block.range().end,
                _ => ranges.push(block.range()),
            }
        }
        ranges
    }

    /// The block of that name.
    pub fn block(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name == name)
    }

    /// The block of that name, or an error that lists the names there are.
    pub fn require(&self, name: &str) -> Result<&Block, ParamsError> {
        self.block(name).ok_or_else(|| ParamsError::UnknownBlock { name: name.to_string(), known: self.names() })
    }

    /// Checks that a vector fits.
    pub fn check(&self, params: &[f64]) -> Result<(), ParamsError> {
        if params.len() == self.len() {
            Ok(())
        } else {
            Err(ParamsError::Length { found: params.len(), expected: self.len() })
        }
    }

    fn names(&self) -> String {
        self.blocks.iter().map(|block| block.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_layouts_are_refused_by_name() {
        let error = ParamLayout::new([("w", 2, 2), ("w", 1, 1)]).unwrap_err();
        assert_eq!(error.to_string(), "two parameter blocks are called 'w'; names must be unique");
        assert!(matches!(ParamLayout::new([("w", 0, 2)]), Err(ParamsError::EmptyBlock(..))));
        let error = ParamLayout::new([("w", 2, 2), ("a", 1, 1)]).unwrap().freeze(&["b"]).unwrap_err();
        assert_eq!(error.to_string(), "no parameter block is called 'b'; the blocks are w, a");
        assert!(ParamLayout::vector(3).check(&[0.0; 2]).is_err());
    }

    #[test]
    fn neighbouring_trainable_blocks_merge() {
        let layout =
            ParamLayout::new([("a", 1, 2), ("b", 1, 3), ("c", 1, 1), ("d", 2, 2)]).unwrap().freeze(&["c"]).unwrap();
        assert_eq!(layout.trainable_ranges(), vec![0..5, 6..10]);
        assert_eq!(layout.trainable().count(), 3);
    }
}
