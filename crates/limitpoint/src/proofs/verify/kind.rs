//! Which kind of point it is: kinks, the bound on |h|, and a direction that beats it; see `super::super::kind`.

use super::super::kind::{Ascent, PointKind};
use super::super::network::{Side, TwoLayer};
use super::super::record::{Equations, Proof, RoundBundle, sides};
use super::super::sphere::{Leaf, SphereCover, Witness};
use super::super::{Check, Refusal};
use super::Point;
use super::evenness::is_even;
use super::pieces::product;
use crate::intervals::{Interval, enclosed_sum};

pub(super) fn check(proof: &Proof, network: &TwoLayer, point: &Point) -> Result<PointKind, Refusal> {
    let Equations::L2(bundles) = &proof.equations else {
        return Ok(PointKind::Undecided { share: 0.0 });
    };
    // with free masses there are others as good nearby
    let strict = bundles.iter().all(|bundle| bundle.opposite.is_none());
    let even = network.slope == 0.0 && is_even(proof, network, bundles, point);
    let judge = Judge { proof, network, bundles, multipliers: &point.multipliers, even };
    let kink = judge.rising_kink();
    let bound = match &proof.sphere {
        Some(cover) if kink.is_none() => Some(judge.bound(cover)?),
        _ => None,
    };
    if bound.is_some_and(|bound| bound <= 1.0) {
        return Ok(PointKind::GlobalMaximum { strict });
    }
    let share = bound.map_or(0.0, |bound| (Interval::point(1.0) / Interval::point(bound)).lo);
    if let Some((neuron, example)) = kink {
        return Ok(PointKind::NotLocalMaximum { ascent: Ascent::LeavingKink { neuron, example }, share });
    }
    let witness = proof.sphere.as_ref().and_then(|cover| cover.witness.as_ref());
    let gain = witness.map(|witness| judge.gain(witness)).transpose()?;
    let live: Vec<usize> = bundles.iter().flat_map(|bundle| bundle.units.iter().copied()).collect();
    let dead = (0..network.width).find(|unit| !live.contains(unit));
    Ok(match (witness.zip(gain), dead) {
        (Some((witness, gain)), Some(neuron)) => {
            let (sign, direction) = (witness.sign, witness.direction.clone());
            PointKind::NotLocalMaximum { ascent: Ascent::Reviving { neuron, sign, direction, gain }, share }
        }
        (None, Some(_)) => PointKind::Undecided { share },
        (beaten, None) => PointKind::LocalMaximum { strict, share, beaten: beaten.is_some() },
    })
}

struct Judge<'a> {
    proof: &'a Proof,
    network: &'a TwoLayer,
    bundles: &'a [RoundBundle],
    multipliers: &'a [Interval],
    /// Whether h(−u) = h(u).
    even: bool,
}

impl Judge<'_> {
    fn label(&self, position: usize) -> f64 {
        self.network.labels[self.proof.active[position]]
    }

    fn row(&self, position: usize) -> &[f64] {
        self.network.inputs.row(self.proof.active[position])
    }

    /// (hidden unit, example) of a kink with y σ = 1.
    fn rising_kink(&self) -> Option<(usize, usize)> {
        self.bundles.iter().find_map(|bundle| {
            let letters = bundle.sides.chars().enumerate();
            let rising = |(i, letter): &(usize, char)| *letter == '0' && self.label(*i) * f64::from(bundle.sign) > 0.0;
            let found = letters.into_iter().find(rising)?;
            Some((bundle.units[0], self.proof.active[found.0]))
        })
    }

    /// A lower bound of |h(u)|/‖u‖ − 1, which must be positive.
    fn gain(&self, witness: &Witness) -> Result<f64, Refusal> {
        let refuse = |why: &str| Refusal::new(Check::Shape, why);
        let u = &witness.direction;
        if u.len() != self.network.inputs.cols || witness.sign.abs() != 1 || u.iter().any(|x| !x.is_finite()) {
            return Err(refuse("a direction does not have as many entries as there are inputs"));
        }
        let points: Vec<Interval> = u.iter().map(|x| Interval::point(*x)).collect();
        let term = |(i, multiplier): (usize, &Interval)| {
            let z = product(&points, self.row(i));
            let below = Interval::point(self.network.slope);
            let value = (z.max(Interval::ZERO) + z.min(Interval::ZERO) * below) * *multiplier;
            if self.label(i) * f64::from(witness.sign) > 0.0 { value } else { -value }
        };
        let length = enclosed_sum(points.iter().map(|x| x.square())).sqrt();
        let value = enclosed_sum(self.multipliers.iter().enumerate().map(term)) / length - Interval::point(1.0);
        if value.lo > 0.0 {
            Ok(value.lo)
        } else {
            Err(refuse("a direction that was said to raise the margin does not"))
        }
    }

    /// An upper bound of |h| on the unit sphere; 1 exactly if no leaf but those of live bundles reaches it.
    fn bound(&self, cover: &SphereCover) -> Result<f64, Refusal> {
        let refuse = |why: &str| Refusal::new(Check::Shape, why);
        let mut seen = cover.order.clone();
        seen.sort_unstable();
        if seen != (0..self.proof.active.len()).collect::<Vec<_>>() {
            return Err(refuse("the order of the sphere does not name every active example once"));
        }
        let mut most = 1.0_f64;
        for (sign, leaves) in [(1.0, &cover.positive), (-1.0, &cover.negative)] {
            let own: Vec<usize> = cover.order.iter().copied().filter(|&i| self.label(i) == sign).collect();
            let others: Vec<usize> = (0..self.proof.active.len()).filter(|&i| self.label(i) != sign).collect();
            let paths: Vec<&[u8]> = leaves.iter().map(|leaf| leaf.path.as_bytes()).collect();
            if !complete(&paths, 0, own.len()) {
                return Err(refuse("the leaves of the sphere do not hold every direction exactly once"));
            }
            let mut spreads: Vec<Option<f64>> = vec![None; own.len() + 1];
            for leaf in leaves {
                if self.is_live(sign, leaf, &own) {
                    continue;
                }
                let decided = leaf.path.len();
                let spread = *spreads[decided].get_or_insert_with(|| self.spread(&own[decided..]));
                most = most.max(self.leaf(leaf, &own, &others, spread)?);
            }
        }
        Ok(most)
    }

    /// Whether a leaf has the sides of a live bundle, whose ‖v‖ is exactly 1, or, of an even h, the opposite ones.
    fn is_live(&self, sign: f64, leaf: &Leaf, own: &[usize]) -> bool {
        let same = |bundle: &RoundBundle| {
            let Some(sides) = sides(&bundle.sides, self.proof.active.len()) else { return false };
            let letter = |side: Side| if side == Side::On { b'1' } else { b'0' };
            let letters = || own.iter().map(|&i| letter(sides[i]));
            let opposite = || letters().map(|letter| b'0' + b'1' - letter);
            f64::from(bundle.sign) == sign
                && own.iter().all(|&i| sides[i] != Side::Kink)
                && (letters().eq(leaf.path.bytes()) || (self.even && opposite().eq(leaf.path.bytes())))
        };
        self.bundles.iter().any(same)
    }

    /// The bound of one leaf.
    fn leaf(&self, leaf: &Leaf, own: &[usize], others: &[usize], spread: f64) -> Result<f64, Refusal> {
        if leaf.slopes.len() != others.len() || leaf.slopes.iter().any(|s| !(0.0..=1.0).contains(s)) {
            return Err(Refusal::new(Check::Shape, "the slopes of a leaf of the sphere do not lie in [0, 1]"));
        }
        let slope = Interval::point(self.network.slope);
        let rest = Interval::point(1.0) - slope;
        let mut shares: Vec<(usize, Interval)> = Vec::new();
        for (k, &i) in own.iter().enumerate() {
            let share = leaf.path.as_bytes().get(k).map_or(0.5, |letter| f64::from(u8::from(*letter == b'1')));
            shares.push((i, (slope + rest * Interval::point(share)) * self.multipliers[i]));
        }
        for (&i, s) in others.iter().zip(&leaf.slopes) {
            shares.push((i, -((slope + rest * Interval::point(*s)) * self.multipliers[i])));
        }
        let entry = |k: usize| enclosed_sum(shares.iter().map(|(i, share)| *share * Interval::point(self.row(*i)[k])));
        let squares = (0..self.network.inputs.cols).map(|k| entry(k).square());
        Ok((enclosed_sum(squares).sqrt() + rest * Interval::point(spread)).hi)
    }

    /// An upper bound of ½√(Σ_U λ · ‖Σ_U λxxᵀ‖); ‖A‖⁴ ≤ ‖A⁴‖_F for a symmetric A.
    fn spread(&self, undecided: &[usize]) -> f64 {
        if undecided.is_empty() {
            return 0.0;
        }
        let size = self.network.inputs.cols;
        let mut matrix = vec![Interval::ZERO; size * size];
        for &i in undecided {
            let row = self.row(i);
            for k in 0..size {
                let left = self.multipliers[i] * Interval::point(row[k]);
                for l in 0..size {
                    matrix[k * size + l] = matrix[k * size + l] + left * Interval::point(row[l]);
                }
            }
        }
        let fourth = square(&square(&matrix, size), size);
        let frobenius = enclosed_sum(fourth.iter().map(|x| x.square())).sqrt();
        let total = enclosed_sum(undecided.iter().map(|&i| self.multipliers[i]));
        (Interval::point(0.5) * (total * frobenius.sqrt().sqrt()).sqrt()).hi
    }
}

fn square(matrix: &[Interval], size: usize) -> Vec<Interval> {
    let entry = |at: usize| {
        let (i, j) = (at / size, at % size);
        (0..size).fold(Interval::ZERO, |sum, k| sum + matrix[i * size + k] * matrix[k * size + j])
    };
    (0..size * size).map(entry).collect()
}

/// Whether these paths of `0` and `1` lead to every one of the 2^`depth` ends exactly once.
fn complete(paths: &[&[u8]], at: usize, depth: usize) -> bool {
    match paths {
        [] => false,
        [only] if only.len() == at => true,
        _ if at >= depth || paths.iter().any(|path| path.len() <= at) => false,
        _ => {
            [b'0', b'1'].iter().all(|letter| {
                let below: Vec<&[u8]> = paths.iter().copied().filter(|path| path[at] == *letter).collect();
                complete(&below, at + 1, depth)
            }) && paths.iter().all(|path| matches!(path[at], b'0' | b'1'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::complete;

    #[test]
    fn only_paths_that_lead_everywhere_once_are_complete() {
        let check = |paths: &[&str], depth| complete(&paths.iter().map(|p| p.as_bytes()).collect::<Vec<_>>(), 0, depth);
        assert!(check(&[""], 3) && check(&["0", "10", "110", "111"], 3) && check(&["0", "1"], 1));
        for (wrong, depth) in [(&["0"][..], 1), (&[], 2), (&["0", "0", "1"], 2), (&["0", "10"], 2), (&["", "0"], 2)] {
            assert!(!check(wrong, depth), "{wrong:?}");
        }
        assert!(!check(&["0", "10", "11", "1x"], 2) && !check(&["00", "01", "1"], 1));
    }
}
