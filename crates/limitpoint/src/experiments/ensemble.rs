//! The same experiment over many seeds.

use rayon::prelude::*;

/// Runs `one` for every seed, in parallel over the machine's cores, and returns the results in the order of the seeds.
///
/// Each run computes on its own thread and draws from its own streams, so the results are those of a sequential loop,
/// bit for bit. Give models of an ensemble one thread each.
///
/// ```
/// use limitpoint::experiments::ensemble;
/// use limitpoint::numeric::Streams;
/// let draws = ensemble(&[1, 2, 3], |seed| Streams::new(seed).stream("init").uniform());
/// assert_eq!(draws[1], Streams::new(2).stream("init").uniform());
/// ```
pub fn ensemble<T: Send>(seeds: &[u64], one: impl Fn(u64) -> T + Sync) -> Vec<T> {
    seeds.par_iter().map(|&seed| one(seed)).collect()
}
