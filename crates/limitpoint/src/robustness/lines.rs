//! Lines below and above activations and pools, over intervals of what they read.
//!
//! All activations of the library are convex, and so is the largest of a window. On an interval [l, u] a convex σ lies
//! above its tangents and below its chord. The largest a_k of a window lies above each of its members, and with
//! m = max l_k below
//!
//! ```text
//! max a_k ≤ m + Σ max(a_k − m, 0) ≤ m + Σ s_k (a_k − l_k),     s_k = (u_k − m)/(u_k − l_k) over those with u_k > m,
//! ```
//!
//! because max(· − m, 0) is below its chord; or simply below max u_k, whichever is lower in the middle of the intervals.
//! A member that is above all others in the whole ball is the largest, and exact. Offsets are moved outwards until the
//! lines hold as rounded.

use super::centre::ACTIVATION_UNITS;
use super::rounding::{UNDERFLOW, UNIT};
use crate::models::Activation;

/// s z + t.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub slope: f64,
    pub offset: f64,
}

/// A line below σ on [l, u], and one above.
pub(super) fn lines(activation: Activation, l: f64, u: f64) -> [Line; 2] {
    if activation == Activation::Identity {
        return [Line { slope: 1.0, offset: 0.0 }; 2];
    }
    let (low, high, middle) = (activation.value(l), activation.value(u), 0.5 * (l + u));
    let tangent = activation.slope(middle);
    let chord = if u > l { (high - low) / (u - l) } else { tangent };
    let size = |slope: f64| low.abs() + high.abs() + slope.abs() * (l.abs() + u.abs());
    let room = |slope: f64| ACTIVATION_UNITS * size(slope) + UNDERFLOW;
    let kinked = activation.kink().is_some();
    // the two pieces of a kinked function are lines through 0, and hold without rounding
    let below = if kinked { 0.0 } else { activation.value(middle) - tangent * middle - room(tangent) };
    let exact = kinked && (l >= 0.0 || u <= 0.0);
    let above = if exact {
        Line { slope: tangent, offset: 0.0 }
    } else {
        // any slope will do if the offset covers both ends, because σ(z) − slope · z is convex
        Line { slope: chord, offset: (low - chord * l).max(high - chord * u) + room(chord) }
    };
    [Line { slope: tangent, offset: below }, above]
}

/// An interval that holds σ(z) for z in [l, u].
pub(super) fn activated(activation: Activation, l: f64, u: f64) -> [f64; 2] {
    let (a, b) = (activation.value(l), activation.value(u));
    // a convex function is largest at an end; the smallest value, if inside, is that at 0
    let least = if l < 0.0 && u > 0.0 { activation.value(0.0).min(a).min(b) } else { a.min(b) };
    let most = a.max(b);
    if activation.kink().is_some() && activation.slope(1.0) == 1.0 && activation.slope(-1.0) == 0.0 {
        // a ReLU does not round
        return [least, most];
    }
    let room = ACTIVATION_UNITS * (least.abs() + most.abs()) + UNDERFLOW;
    [least - room, most + room]
}

/// Bounds of the largest of a window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Largest {
    /// The member that stands for the window from below.
    pub below: usize,
    /// From above: slopes of members, and an offset.
    pub above: Vec<(usize, f64)>,
    pub offset: f64,
}

/// Of the members of a window, in these intervals.
pub(super) fn largest(members: &[u32], lower: &[f64], upper: &[f64]) -> Largest {
    let interval = |member: u32| (lower[member as usize], upper[member as usize]);
    if members.iter().any(|k| interval(*k).0.is_nan() || interval(*k).1.is_nan()) {
        return Largest { below: members[0] as usize, above: Vec::new(), offset: f64::NAN };
    }
    let first = members.iter().fold(members[0], |most, member| {
        // the highest in the middle, which is also the largest where one is certain
        let (a, b) = (interval(*member), interval(most));
        if a.0 + a.1 > b.0 + b.1 { *member } else { most }
    });
    let (floor, place) = (members.iter().map(|k| interval(*k).0).fold(f64::NEG_INFINITY, f64::max), first as usize);
    let ceiling = members.iter().map(|k| interval(*k).1).fold(f64::NEG_INFINITY, f64::max);
    if members.iter().all(|k| *k == first || interval(*k).1 <= lower[place]) {
        return Largest { below: place, above: vec![(place, 1.0)], offset: 0.0 };
    }
    let excess: f64 = members.iter().map(|k| (interval(*k).1 - floor).max(0.0)).sum();
    if 0.5 * excess > ceiling - floor || !excess.is_finite() {
        return Largest { below: place, above: Vec::new(), offset: ceiling };
    }
    let (mut above, mut offset, mut sizes) = (Vec::new(), floor, floor.abs());
    for member in members {
        let (l, u) = interval(*member);
        if u > floor {
            let slope = (u - floor) / (u - l);
            // at l the line is 0, at u it must not be below u − floor
            offset += ((u - floor) - slope * (u - l)).max(0.0) - slope * l;
            sizes += 2.0 * (u.abs() + l.abs() + floor.abs());
            above.push((*member as usize, slope));
        }
    }
    Largest { below: place, above, offset: offset + 8.0 * (members.len() + 4) as f64 * UNIT * sizes + UNDERFLOW }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    /// Over drawn intervals and points in them, corners included.
    #[test]
    fn the_largest_of_a_window_lies_between_its_lines() {
        let mut stream = Streams::new(12).stream("windows");
        let (mut exact, mut sloped, mut flat) = (0, 0, 0);
        for round in 0..600 {
            let count = 2 + round % 4;
            let mut numbers = vec![0.0; 3 * count];
            stream.fill_normal(&mut numbers);
            let width = [0.02, 0.3, 1.0][round % 3];
            let lower: Vec<f64> = numbers[..count].to_vec();
            let upper: Vec<f64> = (0..count).map(|k| lower[k] + width * numbers[count + k].abs()).collect();
            let members: Vec<u32> = (0..count as u32).collect();
            let found = largest(&members, &lower, &upper);
            match found.above.len() {
                0 => flat += 1,
                1 if found.offset == 0.0 => exact += 1,
                _ => sloped += 1,
            }
            for point in 0..1usize << (2 * count) {
                // both ends, the middle, and somewhere
                let value = |k: usize| match point >> (2 * k) & 3 {
                    0 => lower[k],
                    1 => upper[k],
                    2 => 0.5 * (lower[k] + upper[k]),
                    _ => lower[k] + (upper[k] - lower[k]) * (numbers[2 * count + k].abs() % 1.0),
                };
                let most = (0..count).map(value).fold(f64::NEG_INFINITY, f64::max);
                let line: f64 = found.above.iter().map(|(k, slope)| slope * value(*k)).sum();
                assert!(value(found.below) <= most && line + found.offset >= most - 1e-15, "{found:?}");
            }
        }
        assert!(exact > 20 && sloped > 20 && flat > 5, "{exact} {sloped} {flat}");
    }

    #[test]
    fn a_member_above_all_others_is_the_largest() {
        let found = largest(&[2, 0, 1], &[0.0, 3.0, -1.0], &[1.0, 4.0, 2.0]);
        assert_eq!(found, Largest { below: 1, above: vec![(1, 1.0)], offset: 0.0 });
        // members that are all the same stand for each other
        let zeros = largest(&[0, 1], &[0.0, 0.0], &[0.0, 0.0]);
        assert_eq!((zeros.above.len(), zeros.offset), (1, 0.0));
    }
}
