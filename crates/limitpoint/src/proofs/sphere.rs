//! The largest value of |h(u)| on the unit sphere, h(u) = Σ_i λ_i y_i φ(⟨u, x_i⟩), bounded by branching on sides.
//!
//! For one sign σ let P be the active examples with y_i = σ and M the others. For plain ReLU
//!
//! ```text
//! σh(u) = Σ_P λ_i(⟨u, x_i⟩)₊ − Σ_M λ_i(⟨u, x_i⟩)₊
//! ```
//!
//! A *leaf* fixes for the first few examples of P on which side u is, and holds any slopes s ∈ [0, 1] for M. Since
//! −(z)₊ ≤ −sz and, over the undecided rest U of P, Σ_U λ_i(z_i)₊ = ½Σ_U λ_i z_i + ½Σ_U λ_i|z_i|, no u on that side has more than
//!
//! ```text
//! ‖Σ_on λ_i x_i + ½Σ_U λ_i x_i − Σ_M s_i λ_i x_i‖ + ½√(Σ_U λ_i · ‖Σ_U λ_i x_i x_iᵀ‖)
//! ```
//!
//! With U empty and the best s this is the exact maximum over that set of sides; of the sides of a live bundle it is exactly
//! one. The search opens the leaf with the largest bound until none is above 1 or enough were opened: then the largest
//! bound H still says that the margin is at least 1/H of the global maximum. For leaky ReLU all terms but αΣλ_i y_i x_i have the
//! factor 1 − α.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use super::linear::largest_eigenvalue;
use crate::linalg::{add_scaled, dot, norm2};

/// Passes over the slopes of a leaf.
const PASSES: usize = 200;
/// A direction counts as one that raises the margin from this excess of |h| on.
const EXCESS: f64 = 1e-9;

/// Leaves that together hold all directions, for both signs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SphereCover {
    /// For neurons with a > 0.
    pub positive: Vec<Leaf>,
    /// For neurons with a < 0.
    pub negative: Vec<Leaf>,
    /// Positions among the active examples: those with y = 1, then those with y = −1, in the order of the paths.
    pub order: Vec<usize>,
    /// A direction with |h(u)| > ‖u‖, if one was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Witness>,
}

/// Directions with given sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaf {
    /// `1` (on) or `0` (off) for the first examples of P.
    pub path: String,
    /// s, for the examples of M in their order.
    pub slopes: Vec<f64>,
}

/// A direction that a neuron could take with gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    /// The sign of its a.
    pub sign: i8,
    /// u.
    pub direction: Vec<f64>,
}

/// What is searched.
pub(super) struct Sphere<'a> {
    /// λ_i x_i of the active examples.
    pub weighted: Vec<Vec<f64>>,
    /// x_i.
    pub rows: Vec<&'a [f64]>,
    /// λ.
    pub multipliers: Vec<f64>,
    /// y.
    pub labels: Vec<f64>,
    /// α.
    pub slope: f64,
    /// (σ, on or off for every active example) of the live bundles.
    pub live: Vec<(f64, Vec<bool>)>,
}

struct Node {
    bound: f64,
    path: Vec<bool>,
    slopes: Vec<f64>,
    /// The vector whose length is the first part of the bound.
    rest: Vec<f64>,
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Node {}
impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Node {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound).then_with(|| other.path.cmp(&self.path))
    }
}

impl Sphere<'_> {
    /// Leaves that hold all directions, at most about `most` for each sign.
    pub fn cover(&self, most: usize) -> SphereCover {
        let mut witness: Option<(f64, Witness)> = None;
        let mut sides = Vec::new();
        for sign in [1.0, -1.0] {
            let (leaves, order) = self.search(sign, most, &mut witness);
            sides.push((leaves, order));
        }
        let (negative, second) = sides.pop().unwrap_or_default();
        let (positive, mut order) = sides.pop().unwrap_or_default();
        order.extend(second);
        SphereCover { positive, negative, order, witness: witness.map(|(_, witness)| witness) }
    }

    fn search(&self, sign: f64, most: usize, witness: &mut Option<(f64, Witness)>) -> (Vec<Leaf>, Vec<usize>) {
        let size = |i: &usize| norm2(&self.weighted[*i]);
        let mut own: Vec<usize> = (0..self.labels.len()).filter(|&i| self.labels[i] == sign).collect();
        let others: Vec<usize> = (0..self.labels.len()).filter(|&i| self.labels[i] != sign).collect();
        own.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.cmp(b)));
        let spreads: Vec<f64> = (0..=own.len()).map(|k| self.spread(&own[k..])).collect();
        let live: Vec<Vec<bool>> =
            self.live.iter().filter(|(s, _)| *s == sign).map(|(_, on)| own.iter().map(|&i| on[i]).collect()).collect();
        for start in self.starts(&own) {
            self.climb(sign, &own, &others, start, witness);
        }
        let node = |path: Vec<bool>, slopes: &[f64]| {
            let target = self.target(sign, &own, &path);
            let (slopes, rest) = self.slopes(&target, &others, slopes);
            // the opposite of a live bundle has 1 as well where h is even, which the judge finds out
            let opposite = || path.iter().map(|on| !on).collect::<Vec<bool>>();
            let full = path.len() == own.len();
            let exact = full && (live.contains(&path) || live.contains(&opposite()));
            let whole = norm2(&rest) + spreads[path.len()];
            let bound = if exact && whole <= 1.0 + EXCESS { 0.0 } else { whole };
            Node { bound, path, slopes, rest }
        };
        let mut heap = BinaryHeap::from([node(Vec::new(), &vec![0.5; others.len()])]);
        let mut done: Vec<Node> = Vec::new();
        let mut opened = 0;
        while let Some(top) = heap.pop() {
            if top.bound <= 1.0 - 1e-12 || opened >= most {
                heap.push(top);
                break;
            }
            if top.path.len() == own.len() {
                self.note(sign, &top.rest, witness);
                done.push(top);
                continue;
            }
            opened += 1;
            for on in [true, false] {
                let mut path = top.path.clone();
                path.push(on);
                heap.push(node(path, &top.slopes));
            }
        }
        done.extend(heap);
        done.sort_by(|a, b| a.path.cmp(&b.path));
        let leaf = |node: Node| Leaf {
            path: node.path.iter().map(|on| if *on { '1' } else { '0' }).collect(),
            slopes: node.slopes,
        };
        (done.into_iter().map(leaf).collect(), own)
    }

    /// ½(1 − α)√(Σ_U λ · ‖Σ_U λxxᵀ‖).
    fn spread(&self, undecided: &[usize]) -> f64 {
        let inputs = self.rows.first().map_or(0, |row| row.len());
        let mut matrix = vec![0.0; inputs * inputs];
        for &i in undecided {
            for (k, line) in matrix.chunks_exact_mut(inputs).enumerate() {
                add_scaled(line, self.weighted[i][k], self.rows[i]);
            }
        }
        let total: f64 = undecided.iter().map(|&i| self.multipliers[i]).sum();
        0.5 * (1.0 - self.slope) * (total * largest_eigenvalue(&matrix, inputs)).sqrt()
    }

    /// What the slopes of M are fitted to.
    fn target(&self, sign: f64, own: &[usize], path: &[bool]) -> Vec<f64> {
        let mut target = vec![0.0; self.rows.first().map_or(0, |row| row.len())];
        for (k, &i) in own.iter().enumerate() {
            let share = path.get(k).map_or(0.5, |on| f64::from(u8::from(*on)));
            add_scaled(&mut target, self.slope + (1.0 - self.slope) * share, &self.weighted[i]);
        }
        for i in (0..self.labels.len()).filter(|&i| self.labels[i] != sign) {
            add_scaled(&mut target, -self.slope, &self.weighted[i]);
        }
        target
    }

    /// Slopes in [0, 1] that make ‖target − (1 − α)Σ s_i λ_i x_i‖ small, coordinate by coordinate, and what is left.
    fn slopes(&self, target: &[f64], others: &[usize], start: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let factor = 1.0 - self.slope;
        let (mut slopes, mut rest) = (start.to_vec(), target.to_vec());
        let squares: Vec<f64> =
            others.iter().map(|&i| dot(&self.weighted[i], &self.weighted[i]) * factor * factor).collect();
        others.iter().zip(&slopes).for_each(|(&i, s)| add_scaled(&mut rest, -factor * s, &self.weighted[i]));
        for _ in 0..PASSES {
            let mut moved = 0.0_f64;
            for (k, &i) in others.iter().enumerate().filter(|(k, _)| squares[*k] > 0.0) {
                let best = slopes[k] + factor * dot(&rest, &self.weighted[i]) / squares[k];
                let change = best.clamp(0.0, 1.0) - slopes[k];
                slopes[k] += change;
                add_scaled(&mut rest, -factor * change, &self.weighted[i]);
                moved = moved.max(change.abs());
            }
            if moved < 1e-13 {
                break;
            }
        }
        (slopes.iter().map(|s| s.clamp(0.0, 1.0)).collect(), rest)
    }

    /// σh(u)/‖u‖.
    fn value(&self, sign: f64, u: &[f64]) -> f64 {
        let size = norm2(u);
        let term = |i: usize| {
            let z = dot(u, self.rows[i]);
            self.multipliers[i] * self.labels[i] * sign * if z > 0.0 { z } else { self.slope * z }
        };
        (0..self.labels.len()).map(term).sum::<f64>() / size
    }

    fn note(&self, sign: f64, u: &[f64], witness: &mut Option<(f64, Witness)>) {
        let value = self.value(sign, u);
        if value > 1.0 + EXCESS && witness.as_ref().is_none_or(|(best, _)| value > *best) {
            let size = norm2(u);
            let direction = u.iter().map(|x| x / size).collect();
            *witness = Some((value, Witness { sign: if sign > 0.0 { 1 } else { -1 }, direction }));
        }
    }

    /// Directions from which h is climbed: the examples, their opposites, and what they add up to.
    fn starts(&self, own: &[usize]) -> Vec<Vec<f64>> {
        let mut starts: Vec<Vec<f64>> = own.iter().take(100).map(|&i| self.rows[i].to_vec()).collect();
        for i in 0..self.rows.len().min(100) {
            starts.push(self.rows[i].iter().map(|x| -x).collect());
        }
        starts
    }

    /// Climbs from a direction: the convex part is linearised, and what is left is solved exactly; h never falls.
    fn climb(&self, sign: f64, own: &[usize], others: &[usize], start: Vec<f64>, witness: &mut Option<(f64, Witness)>) {
        let (mut u, mut before) = (start, Vec::new());
        let mut slopes = vec![0.5; others.len()];
        for _ in 0..20 {
            let path: Vec<bool> = own.iter().map(|&i| dot(&u, self.rows[i]) > 0.0).collect();
            if path == before {
                break;
            }
            let (next, rest) = self.slopes(&self.target(sign, own, &path), others, &slopes);
            if norm2(&rest) < 1e-9 {
                return;
            }
            (slopes, u, before) = (next, rest, path);
        }
        self.note(sign, &u, witness);
    }
}
