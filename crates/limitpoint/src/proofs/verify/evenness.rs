//! Whether h(u) = Σ_i λ_i y_i(⟨u, x_i⟩)₊ is even, because t = Σ_i λ_i y_i x_i is exactly 0.
//!
//! Two bundles of one sign with opposite sides and no kinks have v + v′ = t and ‖v‖ = ‖v′‖ = 1, so that ⟨t, t − 2v⟩ = 0. If d such pairs have
//! independent vectors t − 2v, then t = 0, and h(u) − h(−u) = ⟨u, t⟩ = 0. Independence is a determinant that is not 0, in
//! at most four dimensions.

use super::super::network::TwoLayer;
use super::super::record::{Proof, RoundBundle};
use super::Point;
use crate::intervals::{Interval, enclosed_sum};

/// The largest dimension in which determinants are formed.
const LARGEST: usize = 4;

pub(super) fn is_even(proof: &Proof, network: &TwoLayer, bundles: &[RoundBundle], point: &Point) -> bool {
    // equations that say t = 0 outright
    if bundles.iter().any(|bundle| bundle.opposite.is_some()) {
        return true;
    }
    let inputs = network.inputs.cols;
    let entry = |k: usize| {
        let term = |(l, &i): (&Interval, &usize)| *l * Interval::point(network.labels[i] * network.inputs.row(i)[k]);
        enclosed_sum(point.multipliers.iter().zip(&proof.active).map(term))
    };
    let t: Vec<Interval> = (0..inputs).map(entry).collect();
    let mut lines: Vec<Vec<Interval>> = Vec::new();
    for (c, later) in bundles.iter().enumerate() {
        let opposite = |earlier: &RoundBundle| {
            let pairs = earlier.sides.bytes().zip(later.sides.bytes());
            earlier.sign == later.sign && pairs.into_iter().all(|pair| matches!(pair, (b'+', b'-') | (b'-', b'+')))
        };
        for e in (0..c).filter(|&e| opposite(&bundles[e])) {
            let two = Interval::point(2.0);
            lines.push(t.iter().zip(&point.directions[e]).map(|(t, v)| *t - two * *v).collect());
        }
    }
    inputs <= LARGEST && lines.len() >= inputs && independent(&lines, inputs, &mut Vec::new())
}

/// Whether some `size` of the lines have a determinant that is not 0.
fn independent(lines: &[Vec<Interval>], size: usize, chosen: &mut Vec<usize>) -> bool {
    if chosen.len() == size {
        let square: Vec<&[Interval]> = chosen.iter().map(|&k| &lines[k][..]).collect();
        return !determinant(&square, &(0..size).collect::<Vec<_>>()).contains(0.0);
    }
    let from = chosen.last().map_or(0, |last| last + 1);
    (from..lines.len()).any(|k| {
        chosen.push(k);
        let found = independent(lines, size, chosen);
        chosen.pop();
        found
    })
}

/// By expansion along the first line.
fn determinant(lines: &[&[Interval]], columns: &[usize]) -> Interval {
    let Some((first, rest)) = lines.split_first() else { return Interval::point(1.0) };
    let mut sum = Interval::ZERO;
    for (k, &column) in columns.iter().enumerate() {
        let others: Vec<usize> = columns.iter().copied().filter(|c| *c != column).collect();
        let term = first[column] * determinant(rest, &others);
        sum = if k % 2 == 0 { sum + term } else { sum - term };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn determinants_by_hand() {
        let points = |rows: &[[f64; 3]]| -> Vec<Vec<Interval>> {
            rows.iter().map(|row| row.iter().map(|x| Interval::point(*x)).collect()).collect()
        };
        // 2·(3·1 − 0·5) − 1·(4·1 − 0·6) + 0 = 2
        let lines = points(&[[2.0, 1.0, 0.0], [4.0, 3.0, 0.0], [6.0, 5.0, 1.0]]);
        let all: Vec<&[Interval]> = lines.iter().map(|line| &line[..]).collect();
        assert_eq!(determinant(&all, &[0, 1, 2]), Interval::point(2.0));
        assert!(independent(&lines, 3, &mut Vec::new()));
        let dependent = points(&[[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 0.0, 1.0]]);
        assert!(!independent(&dependent, 3, &mut Vec::new()));
    }
}
