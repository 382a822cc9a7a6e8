//! What holds at a KKT point besides its equations: neurons on their sides, and no other margin as small.

use super::super::network::{Side, TwoLayer};
use super::super::{Check, Refusal};
use crate::intervals::{Interval, enclosed_sum};

/// sign · gain · φ(⟨direction, x⟩): a neuron, or several that act as one.
pub(super) struct Piece {
    /// ±1.
    pub sign: f64,
    /// Positive.
    pub gain: Interval,
    /// One interval an input.
    pub direction: Vec<Interval>,
    /// Sides of the active examples.
    pub sides: Vec<Side>,
    /// A hidden unit of it, for messages.
    pub unit: usize,
}

/// ⟨u, x⟩ of intervals and doubles.
pub(super) fn product(u: &[Interval], x: &[f64]) -> Interval {
    enclosed_sum(u.iter().zip(x).filter(|(_, x)| **x != 0.0).map(|(u, x)| *u * Interval::point(*x)))
}

/// φ over an interval; φ is increasing.
fn activation(z: Interval, slope: f64) -> Interval {
    let low = if z.lo >= 0.0 { z.lo } else { (Interval::point(z.lo) * Interval::point(slope)).lo };
    let high = if z.hi >= 0.0 { z.hi } else { (Interval::point(z.hi) * Interval::point(slope)).hi };
    Interval::new(low, high)
}

/// Strictly positive where on, strictly negative where off. Kinks are equations.
pub(super) fn check_sides(pieces: &[Piece], active: &[usize], network: &TwoLayer) -> Result<(), Refusal> {
    for piece in pieces {
        for (side, &example) in piece.sides.iter().zip(active) {
            let z = product(&piece.direction, network.inputs.row(example));
            let fine = match side {
                Side::On => z.lo > 0.0,
                Side::Off => z.hi < 0.0,
                Side::Kink => z.contains(0.0),
            };
            if !fine {
                let why = format!("⟨w, x⟩ lies in [{:.3e}, {:.3e}]", z.lo, z.hi);
                return Err(Refusal::new(Check::Sides, why).neuron(piece.unit).example(example));
            }
        }
    }
    Ok(())
}

/// Every example that is neither active nor the same as an active one has a margin above `margin`.
pub(super) fn check_inactive(
    pieces: &[Piece],
    active: &[usize],
    network: &TwoLayer,
    margin: Interval,
) -> Result<(), Refusal> {
    for example in 0..network.inputs.rows {
        if active.contains(&example) || active.iter().any(|&k| network.same(k, example)) {
            continue;
        }
        let x = network.inputs.row(example);
        let terms = pieces.iter().map(|piece| {
            let value = piece.gain * activation(product(&piece.direction, x), network.slope);
            if piece.sign * network.labels[example] > 0.0 { value } else { -value }
        });
        let found = enclosed_sum(terms);
        let larger = found.lo > margin.hi;
        if !larger {
            let why =
                format!("its margin lies in [{:.9e}, {:.9e}], the smallest is {:.9e}", found.lo, found.hi, margin.hi);
            return Err(Refusal::new(Check::Inactive, why).example(example));
        }
    }
    Ok(())
}
