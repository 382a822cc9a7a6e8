//! The flat parameter vector and the names and shapes of its blocks.
//!
//! Parameters are one `&[f64]`; a [`ParamLayout`] says which slice is which matrix. Which model owns them is not known
//! here. A block can be frozen: it keeps its initial value, its gradient is reported as zero, and norms and potentials
//! leave it out.

mod moves;
mod selection;
mod stamped;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use self::moves::Move;
pub use self::selection::{BlockSelection, assign};
pub use self::stamped::{Stamp, Stamped};

/// One named matrix inside the flat vector, row-major; vectors are matrices with one column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Unique name, such as `layer1.weight`.
    pub name: String,
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
    /// The block's slice of the flat vector.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.rows * self.cols
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.rows * self.cols
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
    /// Lays out blocks `(name, rows, cols)` one after the other.
    pub fn new<'a>(blocks: impl IntoIterator<Item = (&'a str, usize, usize)>) -> Result<Self, ParamsError> {
        let mut layout = Self { blocks: Vec::new() };
        for (name, rows, cols) in blocks {
            if rows == 0 || cols == 0 {
                return Err(ParamsError::EmptyBlock(name.to_string(), rows, cols));
            }
            if layout.block(name).is_some() {
                return Err(ParamsError::DuplicateName(name.to_string()));
            }
            let offset = layout.len();
            layout.blocks.push(Block { name: name.to_string(), rows, cols, offset, frozen: false });
        }
        Ok(layout)
    }

    /// One unnamed vector of `length` entries, for problems without structure.
    pub fn vector(length: usize) -> Self {
        Self { blocks: vec![Block { name: "w".into(), rows: length, cols: 1, offset: 0, frozen: false }] }
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
