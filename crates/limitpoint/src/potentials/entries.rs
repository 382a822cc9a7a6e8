//! A few entries of one block: a row, a column, or all of them.

use crate::params::Block;

/// Entries `start, start + stride, …` of a row-major block, counted from the block's first entry.
///
/// ```
/// use limitpoint::{params::ParamLayout, potentials::Entries};
/// let layout = ParamLayout::new([("w", 2, 3)])?;
/// let block = &layout.blocks()[0];
/// assert_eq!(Entries::row(block, 1).indices().collect::<Vec<_>>(), [3, 4, 5]);
/// assert_eq!(Entries::column(block, 1).indices().collect::<Vec<_>>(), [1, 4]);
/// # Ok::<(), limitpoint::params::ParamsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entries {
    start: usize,
    stride: usize,
    count: usize,
}

impl Entries {
    /// The whole block.
    pub fn all(block: &Block) -> Self {
        Self { start: 0, stride: 1, count: block.len() }
    }

    /// Row `i`: the weights into neuron `i` of a dense layer.
    pub fn row(block: &Block, i: usize) -> Self {
        Self { start: i * block.cols, stride: 1, count: block.cols }
    }

    /// Column `j`: the weights out of neuron `j` into a dense layer.
    pub fn column(block: &Block, j: usize) -> Self {
        Self { start: j, stride: block.cols, count: block.rows }
    }

    /// The indices, relative to the block's first entry.
    pub fn indices(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |k| self.start + k * self.stride)
    }
}
