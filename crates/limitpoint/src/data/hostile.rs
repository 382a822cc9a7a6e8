//! Damaged files for the parsers' tests: a parser may refuse any of them but must neither panic nor run out of memory.

use proptest::collection::vec;
use proptest::prelude::*;

/// Arbitrary bytes and damaged copies of `valid`: cut short, bits flipped, bytes replaced (often by extremes), a piece
/// inserted or repeated.
pub(super) fn damaged(valid: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let len = valid.len();
    let (cut, flips, replaced, spliced) = (valid.clone(), valid.clone(), valid.clone(), valid.clone());
    let extreme = prop_oneof![Just(0_u8), Just(0xff), Just(0x7f), Just(0x80), Just(b'9'), Just(b'-'), any::<u8>()];
    prop_oneof![
        1 => vec(any::<u8>(), 0..200),
        2 => (0..=len).prop_map(move |at| cut[..at].to_vec()),
        4 => vec((0..len, 0..8_u32), 1..6).prop_map(move |places| {
            let mut bytes = flips.clone();
            places.iter().for_each(|&(at, bit)| bytes[at] ^= 1 << bit);
            bytes
        }),
        4 => vec((0..len, extreme), 1..10).prop_map(move |places| {
            let mut bytes = replaced.clone();
            places.iter().for_each(|&(at, byte)| bytes[at] = byte);
            bytes
        }),
        2 => (0..=len, vec(any::<u8>(), 0..20), 0..=len).prop_map(move |(at, piece, rest)| {
            [&spliced[..at], &piece[..], &spliced[rest..]].concat()
        }),
        1 => Just(valid),
    ]
}
