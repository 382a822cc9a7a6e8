//! Which entries of the flat vector a potential acts on.

use std::ops::Range;

use crate::params::{Block, ParamLayout};

/// The trainable part of a layout, taken apart once at build time.
pub(super) struct Trainable {
    /// Length of the flat vector, frozen entries included.
    pub length: usize,
    /// The trainable blocks, in order.
    pub blocks: Vec<Block>,
    /// Their ranges, neighbours merged.
    pub ranges: Vec<Range<usize>>,
    /// The ranges between them.
    pub frozen: Vec<Range<usize>>,
    /// Number of trainable entries.
    pub count: usize,
}

impl Trainable {
    pub fn of(layout: &ParamLayout) -> Self {
        let blocks: Vec<Block> = layout.trainable().cloned().collect();
        Self {
            length: layout.len(),
            count: blocks.iter().map(Block::len).sum(),
            ranges: layout.trainable_ranges(),
            frozen: layout.blocks().iter().filter(|block| block.frozen).map(Block::range).collect(),
            blocks,
        }
    }

    /// out = f(input) entry by entry, 0 on frozen entries.
    pub fn map(&self, input: &[f64], out: &mut [f64], f: impl Fn(f64) -> f64) {
        debug_assert!(input.len() == self.length && out.len() == self.length);
        for range in &self.ranges {
            for (o, &x) in out[range.clone()].iter_mut().zip(&input[range.clone()]) {
                *o = f(x);
            }
        }
        self.clear_frozen(out);
    }

    /// out = f(a, b) entry by entry, 0 on frozen entries.
    pub fn map2(&self, a: &[f64], b: &[f64], out: &mut [f64], f: impl Fn(f64, f64) -> f64) {
        debug_assert!(a.len() == self.length && b.len() == self.length && out.len() == self.length);
        for range in &self.ranges {
            let pairs = a[range.clone()].iter().zip(&b[range.clone()]);
            for (o, (&x, &y)) in out[range.clone()].iter_mut().zip(pairs) {
                *o = f(x, y);
            }
        }
        self.clear_frozen(out);
    }

    /// Zeroes the frozen entries.
    pub fn clear_frozen(&self, out: &mut [f64]) {
        self.frozen.iter().for_each(|range| out[range.clone()].fill(0.0));
    }

    /// The trainable entries in order.
    pub fn entries<'a>(&'a self, theta: &'a [f64]) -> impl Iterator<Item = f64> + Clone + 'a {
        debug_assert_eq!(theta.len(), self.length);
        self.ranges.iter().flat_map(|range| theta[range.clone()].iter().copied())
    }

    /// Copies the trainable entries into a contiguous vector.
    pub fn gather(&self, theta: &[f64], out: &mut [f64]) {
        debug_assert_eq!(out.len(), self.count);
        out.iter_mut().zip(self.entries(theta)).for_each(|(o, x)| *o = x);
    }

    /// Spreads a contiguous vector over the trainable entries, 0 on frozen ones.
    pub fn scatter(&self, values: &[f64], out: &mut [f64]) {
        debug_assert!(values.len() == self.count && out.len() == self.length);
        let mut rest = values;
        for range in &self.ranges {
            let (head, tail) = rest.split_at(range.len());
            out[range.clone()].copy_from_slice(head);
            rest = tail;
        }
        self.clear_frozen(out);
    }

    /// Block and index inside it of the first trainable entry that fails the test.
    pub fn first_failing(&self, theta: &[f64], admits: impl Fn(f64) -> bool) -> Option<(&Block, usize, f64)> {
        self.blocks.iter().find_map(|block| {
            let slice = &theta[block.range()];
            slice.iter().position(|&t| !admits(t)).map(|index| (block, index, slice[index]))
        })
    }
}
