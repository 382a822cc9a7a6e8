//! The equations of a KKT point in ℓ∞: two linear systems.
//!
//! For max m subject to ‖θ‖_∞ ≤ 1 and y_i f(x_i) ≥ m a neuron that is on for some active example has |a_j| = 1. Neurons with the same
//! sides form a *class* s with one vector v_s = Σ_i ν_is y_i x_i, and a weight inside (−1, 1) needs v_sk = 0; one at the bound is
//! pushed outwards by a_j v_sk. Σλ = 1. Only the sums Σ_j σ_j w_jk over a class matter to the margins:
//!
//! ```text
//! v_sk = 0 where a weight is inside,  Σ_i λ_i = 1           y_i Σ_{s on} ⟨U_s + C_s, x_i⟩ = m,  ⟨U_s + C_s, x_i⟩ = 0 at kinks
//! ```
//!
//! with U_s the sum of the given weights and C_s its correction. Unknowns λ, μ, C, m. Equations v_sk = 0 that depend on others
//! are left out together with their corrections; that they do is found modulo a prime, and proven by who checks.
//! Neurons that are off on all active examples stay where they are. Neurons of a class with kinks are equal.

use super::network::{Active, Side, TwoLayer};
use super::number::Number;
use super::record::{CubeNetwork, CubeNeuron, letters};
use super::system::{System, Unknown};
use super::{Check, Refusal};
use crate::linalg::max_abs;

/// Weights this near to the bound are at it.
const BOUND: f64 = 1e-9;
/// A prime for ranks.
const PRIME: u64 = 2_147_483_647;

struct Class {
    sides: Vec<Side>,
    members: Vec<usize>,
    /// Sign and signs of weights at the bound, where there are kinks.
    mark: Option<Vec<i8>>,
}

/// The system, see the top of the file.
pub(super) struct CubeSystem {
    rows: Vec<Vec<f64>>,
    neurons: Vec<CubeNeuron>,
    classes: Vec<Class>,
    kinks: Vec<(usize, usize)>,
    corrected: Vec<(usize, usize)>,
}

impl CubeSystem {
    /// The system of a reading, a point to start from, and the network as it is written down.
    pub fn new(network: &TwoLayer, active: &Active) -> Result<(Self, Vec<f64>, CubeNetwork), Refusal> {
        let size = active.live.iter().map(|n| max_abs(&n.inner).max(n.outer.abs())).fold(0.0, f64::max);
        let snap = |w: f64| {
            let w = w / size;
            if (w.abs() - 1.0).abs() <= BOUND { w.signum() } else { w }
        };
        let (mut neurons, mut classes): (Vec<CubeNeuron>, Vec<Class>) = (Vec::new(), Vec::new());
        for (neuron, sides) in active.live.iter().zip(&active.sides) {
            let (outer, inner) = (snap(neuron.outer), neuron.inner.iter().map(|w| snap(*w)).collect::<Vec<f64>>());
            let idle = sides.iter().all(|side| *side == Side::Off);
            if !idle && outer.abs() != 1.0 {
                let why = format!("its outer weight is {:.9} of the bound", outer.abs());
                return Err(Refusal::new(Check::Bound, why).neuron(neuron.unit));
            }
            let bound = |w: &f64| if w.abs() == 1.0 { *w as i8 } else { 0 };
            let mark: Option<Vec<i8>> =
                sides.contains(&Side::Kink).then(|| std::iter::once(&outer).chain(&inner).map(bound).collect());
            let class = (!idle).then(|| {
                let found = classes.iter().position(|class| class.sides == *sides && class.mark == mark);
                let class = found.unwrap_or_else(|| {
                    classes.push(Class { sides: sides.clone(), members: Vec::new(), mark });
                    classes.len() - 1
                });
                classes[class].members.push(neurons.len());
                class
            });
            neurons.push(CubeNeuron { unit: neuron.unit, class, sides: letters(sides), outer, inner });
        }
        let examples = active.examples.len();
        let rows: Vec<Vec<f64>> = active.examples.iter().map(|&i| network.signed_row(i)).collect();
        let kinks: Vec<(usize, usize)> = classes
            .iter()
            .enumerate()
            .flat_map(|(s, class)| (0..examples).filter(|&i| class.sides[i] == Side::Kink).map(move |i| (i, s)))
            .collect();
        let residue = residues(&rows);
        let (mut corrected, mut span) = (Vec::new(), Span::default());
        for k in 0..network.inputs.cols {
            for (s, class) in classes.iter().enumerate() {
                let inside = class.members.iter().any(|&j| neurons[j].inner[k].abs() < 1.0);
                let on = (0..examples).map(|i| if class.sides[i] == Side::On { residue(i, k) } else { 0 });
                let at_kinks = kinks.iter().map(|&(i, c)| if c == s { residue(i, k) } else { 0 });
                if inside && span.add(on.chain(at_kinks).collect()) {
                    corrected.push((s, k));
                }
            }
        }
        if corrected.len() + 1 != examples + kinks.len() {
            let why = format!("{} equations for {} multipliers", corrected.len() + 1, examples + kinks.len());
            return Err(Refusal::new(Check::Shape, why));
        }
        drop(residue);
        let share = 1.0 / examples as f64;
        let mut start = vec![share; examples];
        start.extend(vec![0.5 * share; kinks.len()]);
        start.extend(vec![0.0; corrected.len()]);
        start.push(active.smallest / (size * size));
        let record = CubeNetwork { neurons: neurons.clone(), corrected: corrected.clone() };
        Ok((Self { rows, neurons, classes, kinks, corrected }, start, record))
    }

    /// A hidden unit of every class.
    pub fn units(&self) -> Vec<usize> {
        self.classes.iter().map(|class| self.neurons[class.members[0]].unit).collect()
    }

    fn multipliers(&self) -> usize {
        self.rows.len() + self.kinks.len()
    }

    /// Σ_j σ_j y_i⟨w_j, x_i⟩ of a class before its correction.
    fn given<N: Number>(&self, s: usize, i: usize) -> N {
        let members = self.classes[s].members.iter().map(|&j| &self.neurons[j]);
        members.fold(N::zero(), |sum, neuron| sum + N::dot(&self.rows[i], &neuron.inner).scaled(neuron.outer))
    }

    /// (unknown, coefficient) of the corrections that move y_i⟨U_s, x_i⟩.
    fn corrections(&self, s: usize, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let own = self.corrected.iter().enumerate().filter(move |(_, c)| c.0 == s);
        own.map(move |(t, c)| (self.multipliers() + t, self.rows[i][c.1]))
    }

    /// (unknown, coefficient) of v_sk.
    fn force(&self, s: usize, k: usize) -> impl Iterator<Item = (usize, f64)> {
        let on = (0..self.rows.len())
            .filter(move |&i| self.classes[s].sides[i] == Side::On)
            .map(move |i| (i, self.rows[i][k]));
        let kinks = self.kinks.iter().enumerate().filter(move |(_, kink)| kink.1 == s);
        on.chain(kinks.map(move |(t, kink)| (self.rows.len() + t, self.rows[kink.0][k])))
    }

    fn on(&self, i: usize) -> impl Iterator<Item = usize> {
        (0..self.classes.len()).filter(move |&s| self.classes[s].sides[i] == Side::On)
    }

    /// The linear part, row by row: (unknown, coefficient).
    fn lines(&self) -> Vec<Vec<(usize, f64)>> {
        let last = self.size() - 1;
        let mut lines: Vec<Vec<(usize, f64)>> =
            self.corrected.iter().map(|&(s, k)| self.force(s, k).collect()).collect();
        lines.push((0..self.rows.len()).map(|i| (i, 1.0)).collect());
        for i in 0..self.rows.len() {
            lines.push(self.on(i).flat_map(|s| self.corrections(s, i)).chain([(last, -1.0)]).collect());
        }
        lines.extend(self.kinks.iter().map(|&(i, s)| self.corrections(s, i).collect::<Vec<_>>()));
        lines
    }
}

impl System for CubeSystem {
    fn size(&self) -> usize {
        2 * self.multipliers()
    }

    fn unknown(&self, k: usize) -> Unknown {
        let (examples, multipliers) = (self.rows.len(), self.multipliers());
        if k < examples {
            Unknown { what: "the multiplier", example: Some(k), bundle: None }
        } else if k < multipliers {
            Unknown {
                what: "the slope",
                example: Some(self.kinks[k - examples].0),
                bundle: Some(self.kinks[k - examples].1),
            }
        } else if let Some((s, _)) = self.corrected.get(k - multipliers) {
            Unknown { what: "an inner weight", example: None, bundle: Some(*s) }
        } else {
            Unknown { what: "the margin", example: None, bundle: None }
        }
    }

    fn residual<N: Number>(&self, z: &[N]) -> Vec<N> {
        let linear =
            self.lines().into_iter().map(|line| line.iter().fold(N::zero(), |sum, (u, x)| sum + z[*u].scaled(*x)));
        let mut out: Vec<N> = linear.collect();
        let first = self.corrected.len();
        out[first] = out[first] - N::exact(1.0);
        for i in 0..self.rows.len() {
            out[first + 1 + i] = self.on(i).fold(out[first + 1 + i], |sum, s| sum + self.given(s, i));
        }
        for (t, &(i, s)) in self.kinks.iter().enumerate() {
            let at = first + 1 + self.rows.len() + t;
            out[at] = out[at] + self.given(s, i);
        }
        out
    }

    fn jacobian<N: Number>(&self, _: &[N]) -> Vec<N> {
        let size = self.size();
        let mut matrix = vec![N::zero(); size * size];
        for (at, line) in self.lines().into_iter().enumerate() {
            line.into_iter().for_each(|(u, x)| matrix[at * size + u] = matrix[at * size + u] + N::exact(x));
        }
        matrix
    }
}

/// The entries of doubles, all multiplied by one power of two that makes them whole, modulo a prime.
fn residues(rows: &[Vec<f64>]) -> impl Fn(usize, usize) -> u64 {
    // x = ±m 2^(e − 1075) with whole m and e ≥ 1
    let parts = |x: f64| {
        let (bits, exponent) = (x.abs().to_bits(), (x.abs().to_bits() >> 52).max(1));
        let leading = if bits >> 52 == 0 { 0 } else { 1 << 52 };
        ((bits & ((1 << 52) - 1)) | leading, exponent)
    };
    let entries = rows.iter().flatten().filter(|x| **x != 0.0);
    let least = entries.map(|x| parts(*x).1).min().unwrap_or(1);
    move |i, k| {
        let x = rows[i][k];
        let (mantissa, exponent) = parts(x);
        let shift = if x == 0.0 { 0 } else { exponent - least };
        let size = mantissa % PRIME * power(2, shift) % PRIME;
        if x < 0.0 { (PRIME - size) % PRIME } else { size }
    }
}

/// Rows that are independent modulo a prime, kept in echelon form.
#[derive(Default)]
struct Span(Vec<(usize, Vec<u64>)>);

impl Span {
    /// Adds a row if it is independent of those there.
    fn add(&mut self, mut row: Vec<u64>) -> bool {
        for (pivot, other) in &self.0 {
            let factor = row[*pivot];
            if factor != 0 {
                row.iter_mut().zip(other).for_each(|(x, y)| *x = (*x + (PRIME - factor) * y) % PRIME);
            }
        }
        let Some(pivot) = row.iter().position(|x| *x != 0) else { return false };
        let inverse = power(row[pivot], PRIME - 2);
        row.iter_mut().for_each(|x| *x = *x * inverse % PRIME);
        self.0.push((pivot, row));
        true
    }
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut out = 1;
    while exponent > 0 {
        if exponent % 2 == 1 {
            out = out * base % PRIME;
        }
        base = base * base % PRIME;
        exponent /= 2;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_depends_on_others_is_left_out() {
        let mut span = Span::default();
        assert!(span.add(vec![1, 1, 0, 0]) && span.add(vec![0, 0, 1, 1]) && span.add(vec![1, 0, 1, 0]));
        // (0, 1, 0, 1) = (1, 1, 0, 0) + (0, 0, 1, 1) − (1, 0, 1, 0)
        assert!(!span.add(vec![0, 1, 0, 1]) && !span.add(vec![0; 4]) && span.add(vec![0, 1, 1, 0]));
    }

    #[test]
    fn residues_keep_what_is_exact_in_doubles() {
        let rows = vec![vec![0.75, -3.0, 0.0], vec![1e-3, 5e-4, 1024.0]];
        let residue = residues(&rows);
        // −3 = −4 · 0.75 and 1e-3 = 2 · 5e-4, modulo the prime as in doubles
        assert_eq!(residue(0, 1), (PRIME - 4 * residue(0, 0) % PRIME) % PRIME);
        assert_eq!((residue(1, 0), residue(0, 2)), (2 * residue(1, 1) % PRIME, 0));
    }
}
