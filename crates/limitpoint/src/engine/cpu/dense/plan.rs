//! Which of its ways a network takes, chosen once, when it is bound.
//!
//! | choice | way | what it buys | when it applies |
//! |---|---|---|---|
//! | head | fused | partial scores are summed while tiles are in registers, the back-signal overwrites z: no pass over the last hidden layer | one output, at least one hidden layer |
//! | head | plain | – | otherwise |
//! | lowest layer | planar | preactivations are computed again instead of stored, in the setting of paper C | two inputs, one hidden layer, fused head |
//! | lowest layer | sparse | zeros are skipped four rows at a time, weights move as their gradient is made | at most a quarter of 64 or more features is not zero, and another layer reads its output |
//! | lowest layer | panels | – | otherwise |
//! | examples | shards | each thread takes its examples through all layers, instead of waiting for units another core has just made | dense inputs; 192 to 4096 examples, two or more hidden layers and at most 131,072 parameters, or more than 4096 examples whose hidden units and gradients fit in 512 MiB |
//! | examples | pieces | hidden units stay in the cache and need no memory; the backward pass repeats the forward pass | more than 4096 examples otherwise, not planar |
//! | examples | whole | – | otherwise |
//!
//! Batches that are selected, and passes with slopes set at kinks, go whole through the general kernels. None of the
//! choices depends on the number of threads, so that bits do not either.

use super::chain::Chain;
use super::sparse::Sparse;
use crate::linalg::{Real, SharedMatrix};

/// Inputs of a planar network.
pub(super) const PLANE: usize = 2;

/// Examples from which on a batch passes through in pieces.
pub(super) const LARGE: usize = 4096;

/// Examples of a shard, about: enough for products to outweigh the sum of the gradients.
pub(super) const SHARD: usize = 96;
/// Most shards, and most parameters.
const SHARDS: usize = 16;
const PARAMETERS: usize = 1 << 17;
/// Examples of a shard of a large batch, most of its shards, and most bytes of their hidden units and gradients.
const LARGE_SHARD: usize = 320;
const LARGE_SHARDS: usize = 64;
const BYTES: usize = 512 << 20;
/// Copies of a hidden unit's numbers: z, σ(z) and σ(z) turned.
const COPIES: usize = 3;

/// The way of the output layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    Fused,
    Plain,
}

impl Head {
    pub fn of(chain: &Chain) -> Self {
        if chain.head().outputs == 1 && !chain.hidden().is_empty() { Self::Fused } else { Self::Plain }
    }
}

/// The way of the layer that reads the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lowest {
    Planar,
    Sparse,
    Panels,
}

/// How examples pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Partition {
    Whole,
    Pieces,
    /// This many.
    Shards(usize),
}

/// The ways of one network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub head: Head,
    pub lowest: Lowest,
    pub partition: Partition,
}

impl Plan {
    /// For a chain of layers on these inputs, computing in `T`.
    pub fn choose<T: Real>(chain: &Chain, inputs: &SharedMatrix) -> Self {
        let hidden = chain.hidden();
        let head = Head::of(chain);
        // under a fused head the lowest layer adds up partial scores, which the sparse one does not
        let output_is_read = hidden.len() > 1 || (hidden.len() == 1 && head == Head::Plain);
        let lowest = match (head, hidden.len()) {
            (Head::Fused, 1) if chain.inputs() == PLANE => Lowest::Planar,
            _ if output_is_read && Sparse::<T>::pays(inputs) => Lowest::Sparse,
            _ => Lowest::Panels,
        };
        let parameters: usize =
            chain.stages.iter().map(|s| s.outputs * (s.inputs + usize::from(s.bias.is_some()))).sum();
        let partition = if inputs.rows() > LARGE {
            let shards = (inputs.rows() / LARGE_SHARD).min(LARGE_SHARDS);
            let units: usize = hidden.iter().map(|stage| stage.outputs).sum();
            let bytes = COPIES * units * inputs.rows() * size_of::<T>() + shards * parameters * size_of::<f64>();
            match lowest {
                Lowest::Planar => Partition::Whole,
                Lowest::Panels if bytes <= BYTES => Partition::Shards(shards),
                _ => Partition::Pieces,
            }
        } else {
            let shards = (inputs.rows() / SHARD).min(SHARDS);
            let pays = hidden.len() > 1 && parameters <= PARAMETERS && lowest == Lowest::Panels && shards > 1;
            if pays { Partition::Shards(shards) } else { Partition::Whole }
        };
        Self { head, lowest, partition }
    }
}
