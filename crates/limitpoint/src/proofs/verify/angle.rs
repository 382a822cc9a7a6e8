//! The angle between weights and the exact weights of a proof.
//!
//! ```text
//! δ = ‖θ/‖θ‖ − θ*/‖θ*‖‖,   angle = 2 asin(δ/2),   δ ≤ angle ≤ δ (1 + (π/2 − 1)δ²/4)
//! ```
//!
//! since x ≤ asin x ≤ x + (π/2 − 1)x³ on [0, 1]: no function is needed that a system rounds in its own way.

use super::super::network::Neuron;
use super::EnclosedNeuron;
use crate::intervals::{Interval, enclosed_sum};

/// More than (π/2 − 1)/4.
const BEND: f64 = 0.143;

pub(super) fn angle(exact: &[EnclosedNeuron], weights: &[Neuron]) -> Interval {
    let mut pairs: Vec<(Interval, Interval)> = Vec::new();
    for neuron in weights {
        let own: Vec<Interval> =
            std::iter::once(neuron.outer).chain(neuron.inner.iter().copied()).map(Interval::point).collect();
        match exact.iter().find(|e| e.unit == neuron.unit) {
            Some(e) => pairs.extend(own.into_iter().zip(std::iter::once(e.outer).chain(e.inner.iter().copied()))),
            None => pairs.extend(own.into_iter().map(|w| (w, Interval::ZERO))),
        }
    }
    between(&pairs)
}

/// The angle between two vectors, entry by entry.
pub(super) fn between(pairs: &[(Interval, Interval)]) -> Interval {
    let length =
        |pick: fn(&(Interval, Interval)) -> Interval| enclosed_sum(pairs.iter().map(|p| pick(p).square())).sqrt();
    let (own, other) = (length(|p| p.0), length(|p| p.1));
    let apart = enclosed_sum(pairs.iter().map(|(u, v)| (*u / own - *v / other).square())).sqrt();
    let bend = Interval::point(1.0) + Interval::point(BEND) * apart.square();
    Interval::new(apart.lo, (apart * bend).hi)
}
