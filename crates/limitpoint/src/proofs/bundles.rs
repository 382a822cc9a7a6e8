//! Bundles: neurons that a KKT point forces to share their direction.
//!
//! Two live neurons with the same sign of a and the same side of every active example have, at a KKT point in ℓ2, the
//! same ratio w/a, so that only their sum matters: splitting a neuron moves nothing. Counted one by one they would make
//! the equations singular, once for every surplus neuron; a bundle counts once.
//!
//! Two bundles are *antipodal* if they have the same sign and opposite sides: together they add a linear function. More
//! than d such pairs leave masses free to move, which the equations of ℓ2 must know about.

use super::network::{Active, Side};

/// Neurons with one sign and one side per active example.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bundle {
    /// The sign of a.
    pub sign: f64,
    /// The side of every active example.
    pub sides: Vec<Side>,
    /// Indices into the live neurons.
    pub members: Vec<usize>,
}

/// All bundles, in the order of their first neuron; neurons with different `marks` are kept apart.
pub(super) fn bundles<M: PartialEq>(active: &Active, mark: impl Fn(usize) -> M) -> Vec<Bundle> {
    let mut found: Vec<(M, Bundle)> = Vec::new();
    for (j, neuron) in active.live.iter().enumerate() {
        let (sign, sides, own) = (neuron.outer.signum(), &active.sides[j], mark(j));
        match found.iter_mut().find(|(m, b)| *m == own && b.sign == sign && b.sides == *sides) {
            Some((_, bundle)) => bundle.members.push(j),
            None => found.push((own, Bundle { sign, sides: sides.clone(), members: vec![j] })),
        }
    }
    found.into_iter().map(|(_, bundle)| bundle).collect()
}

/// Pairs (earlier, later) of antipodal bundles, every bundle at most once.
pub(super) fn antipodal_pairs(bundles: &[Bundle]) -> Vec<(usize, usize)> {
    let opposite =
        |a: Side, b: Side| (a == Side::Kink && b == Side::Kink) || (a != b && a != Side::Kink && b != Side::Kink);
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for (c, later) in bundles.iter().enumerate() {
        let free = |e: &usize| !pairs.iter().any(|(a, b)| *a == *e || *b == *e);
        let partner = (0..c).filter(free).find(|&e| {
            let earlier = &bundles[e];
            earlier.sign == later.sign && earlier.sides.iter().zip(&later.sides).all(|(a, b)| opposite(*a, *b))
        });
        if let Some(e) = partner {
            pairs.push((e, c));
        }
    }
    pairs
}
