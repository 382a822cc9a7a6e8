//! Which layers of images a few examples pass together, and which all of them pass one after the other.

use std::ops::Range;

use super::{Link, Node};
use crate::linalg::Real;

/// Examples that a thread takes through layers of images together: enough for the weights of a layer to be used well,
/// few enough for the images to stay in the cache.
const TOGETHER: usize = 16;

/// Bytes of a kernel from which on it is passed once by all examples of a thread, since no cache would keep it.
const LARGE: usize = 2 << 20;

/// Layers that go together, and how many examples do.
pub(super) struct Stage {
    layers: Range<usize>,
    together: usize,
}

/// With few examples at a time up to the first layer that has a large kernel, with all from there on.
pub(super) fn stages<T: Real>(links: &[Link<T>]) -> Vec<Stage> {
    let large = |link: &Link<T>| matches!(&link.node, Node::Conv(conv) if conv.bytes() > LARGE);
    let first = links.iter().position(large).unwrap_or(links.len());
    // without layers of images there are images to load all the same
    let few = (first > 0 || links.is_empty()).then_some(Stage { layers: 0..first, together: TOGETHER });
    let all = (first < links.len()).then_some(Stage { layers: first..links.len(), together: usize::MAX });
    few.into_iter().chain(all).collect()
}

/// Examples and the layers they go through, stage by stage, a few at a time.
pub(super) fn passes<'a>(
    examples: Range<usize>,
    stages: impl IntoIterator<Item = &'a Stage>,
) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    stages.into_iter().flat_map(move |Stage { layers, together }| {
        let (end, together) = (examples.end, (*together).min(examples.len()).max(1));
        examples.clone().step_by(together).map(move |first| (first..(first + together).min(end), layers.clone()))
    })
}
