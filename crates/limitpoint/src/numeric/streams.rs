//! One seed, many independent streams of random numbers.
//!
//! A run has a single `u64` seed. Every consumer asks for a stream *by name* ("data", "init", "order", "noise"), so
//! adding a consumer never shifts the numbers another one sees. The generator is counter based (ChaCha with 8
//! rounds): a stream's place is one integer, which is all a checkpoint has to keep.

use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};
use serde::{Deserialize, Serialize};

/// The source of named streams of one run.
///
/// ```
/// use limitpoint::numeric::Streams;
/// let streams = Streams::new(7);
/// let first = streams.stream("init").uniform();
/// assert_eq!(first, streams.stream("init").uniform()); // a name always starts at the same place
/// assert_ne!(first, streams.stream("data").uniform());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// All streams of this seed.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed itself.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The stream called `name`, at its beginning.
    pub fn stream(&self, name: &str) -> RandomStream {
        RandomStream::at(StreamState { seed: self.seed, stream: fnv1a(name), position: 0 })
    }
}

/// Where a stream stands; enough to go on from there bit for bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamState {
    /// Seed of the run; written as hexadecimal text, since many formats have no integers above 2⁶³.
    #[serde(with = "hexadecimal")]
    pub seed: u64,
    /// Hash of the stream's name; written likewise.
    #[serde(with = "hexadecimal")]
    pub stream: u64,
    /// Number of 32-bit words drawn so far.
    pub position: u64,
}

/// Integers of 64 bits as text.
mod hexadecimal {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:#018x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.strip_prefix("0x").ok_or_else(|| D::Error::custom(format!("'{text}' is not hexadecimal")))?;
        u64::from_str_radix(digits, 16).map_err(|_| D::Error::custom(format!("'{text}' is not hexadecimal")))
    }
}

/// A random stream: uniform and normal numbers, integers, signs and permutations.
#[derive(Debug, Clone)]
pub struct RandomStream {
    state: StreamState,
    generator: ChaCha8Rng,
}

impl RandomStream {
    /// Continues a stream where `state` says.
    pub fn at(state: StreamState) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(state.seed);
        generator.set_stream(state.stream);
        generator.set_word_pos(u128::from(state.position));
        Self { state, generator }
    }

    /// The place reached.
    pub fn state(&self) -> StreamState {
        StreamState { position: self.generator.get_word_pos() as u64, ..self.state }
    }

    /// Uniform on [0, 1).
    pub fn uniform(&mut self) -> f64 {
        StandardUniform.sample(&mut self.generator)
    }

    /// Uniform on [low, high).
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.generator)
    }

    /// Uniform on 0..`bound`; `bound` must be positive.
    pub fn below(&mut self, bound: usize) -> usize {
        debug_assert!(bound > 0);
        // 64-bit multiply-shift; the bias is below bound / 2^64
        ((u128::from(self.generator.next_u64()) * bound as u128) >> 64) as usize
    }

    /// +1 or −1 with equal chance.
    pub fn sign(&mut self) -> f64 {
        if self.generator.next_u32() & 1 == 0 { 1.0 } else { -1.0 }
    }

    /// Fills `out` with standard normals.
    pub fn fill_normal(&mut self, out: &mut [f64]) {
        out.iter_mut().for_each(|x| *x = self.normal());
    }

    /// Shuffles in place, every order equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        items.shuffle(&mut self.generator);
    }
}

/// FNV-1a: a fixed hash, so that stream numbers never change with the compiler.
fn fnv1a(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_resumes_bit_for_bit() {
        let mut whole = Streams::new(42).stream("order");
        let mut first = whole.clone();
        for _ in 0..1001 {
            first.normal();
            first.sign();
        }
        let mut second = RandomStream::at(first.state());
        for _ in 0..1001 {
            whole.normal();
            whole.sign();
        }
        for _ in 0..100 {
            assert_eq!(whole.normal().to_bits(), second.normal().to_bits());
        }
    }

    #[test]
    fn streams_do_not_overlap_and_look_uniform() {
        let streams = Streams::new(1);
        let (mut a, mut b) = (streams.stream("data"), streams.stream("noise"));
        let n = 20_000;
        let (mut mean, mut square, mut cross) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let (x, y) = (a.normal(), b.normal());
            mean += x;
            square += x * x;
            cross += x * y;
        }
        let n = f64::from(n);
        assert!((mean / n).abs() < 0.03 && (square / n - 1.0).abs() < 0.05 && (cross / n).abs() < 0.03);
    }

    #[test]
    fn integers_cover_their_range() {
        let mut stream = Streams::new(3).stream("order");
        let mut seen = [0; 7];
        (0..7000).for_each(|_| seen[stream.below(7)] += 1);
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
    }
}
