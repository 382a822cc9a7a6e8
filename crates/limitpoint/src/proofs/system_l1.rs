//! The equations of a KKT point in ℓ1.
//!
//! For min ‖θ‖₁ subject to y_i f(x_i) ≥ 1 neurons of one bundle (sign of a, sides, signs of w) have one |a_j| = A_c, and stationarity says
//!
//! ```text
//! A_c σ_c v_ck = sgn w_jk where w_jk ≠ 0,   |A_c v_ck| ≤ 1 where w_jk = 0,   ‖w_j‖₁ = A_c
//! ```
//!
//! with v_c as in `system_l2`. Of n_c neurons only the sum W_c matters. Unknowns λ, μ, A, W on its support:
//!
//! ```text
//! A_c σ_c v_ck = sgn W_ck     Σ_k |W_ck| = n_c A_c     ⟨W_c, x_i⟩ = 0 at kinks     Σ_c σ_c A_c s_ic y_i⟨W_c, x_i⟩ = 1
//! ```

use super::bundles::bundles;
use super::linear::solve_symmetric;
use super::network::{Active, Side, TwoLayer};
use super::number::Number;
use super::record::{DiamondBundle, letters};
use super::system::{System, Unknown};
use crate::linalg::max_abs;

/// Weights below this share of the largest are 0.
const ZERO: f64 = 1e-11;

/// The system, see the top of the file.
pub(super) struct DiamondSystem {
    rows: Vec<Vec<f64>>,
    slope: f64,
    signs: Vec<f64>,
    sides: Vec<Vec<Side>>,
    counts: Vec<f64>,
    kinks: Vec<(usize, usize)>,
    /// (bundle, input, sign) of the weights that are unknowns.
    support: Vec<(usize, usize, f64)>,
}

impl DiamondSystem {
    /// The system of a reading, a point near its zero, and the bundles as they are written down.
    pub fn new(network: &TwoLayer, active: &Active) -> (Self, Vec<f64>, Vec<DiamondBundle>) {
        let largest = active.live.iter().map(|neuron| max_abs(&neuron.inner)).fold(0.0, f64::max);
        let sign = |w: f64| if w.abs() <= ZERO * largest { 0 } else { w.signum() as i8 };
        let support_of = |j: usize| -> Vec<i8> { active.live[j].inner.iter().map(|w| sign(*w)).collect() };
        let mut bundles = bundles(active, support_of);
        if network.slope == 0.0 {
            bundles.retain(|bundle| bundle.sides.iter().any(|side| *side != Side::Off));
        }
        let unit = active.smallest.sqrt();
        let (mut support, mut weights, mut outer, mut records) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (c, bundle) in bundles.iter().enumerate() {
            let members: Vec<_> = bundle.members.iter().map(|&j| &active.live[j]).collect();
            let signs = support_of(bundle.members[0]);
            for (k, sign) in signs.iter().enumerate().filter(|(_, sign)| **sign != 0) {
                support.push((c, k, f64::from(*sign)));
                weights.push(members.iter().map(|neuron| neuron.inner[k]).sum::<f64>() / unit);
            }
            outer.push(members.iter().map(|neuron| neuron.outer.abs()).sum::<f64>() / members.len() as f64 / unit);
            records.push(DiamondBundle {
                sign: if bundle.sign > 0.0 { 1 } else { -1 },
                sides: letters(&bundle.sides),
                units: members.iter().map(|neuron| neuron.unit).collect(),
                support: signs.iter().map(|s| ['-', '0', '+'][(s + 1) as usize]).collect(),
            });
        }
        let examples = active.examples.len();
        let kinks = bundles
            .iter()
            .enumerate()
            .flat_map(|(c, b)| (0..examples).filter(|&i| b.sides[i] == Side::Kink).map(move |i| (i, c)))
            .collect();
        let system = Self {
            rows: active.examples.iter().map(|&i| network.signed_row(i)).collect(),
            slope: network.slope,
            signs: bundles.iter().map(|bundle| bundle.sign).collect(),
            counts: bundles.iter().map(|bundle| bundle.members.len() as f64).collect(),
            sides: bundles.into_iter().map(|bundle| bundle.sides).collect(),
            kinks,
            support,
        };
        let mut start = system.multipliers(&outer);
        start.extend(outer);
        start.extend(weights);
        (system, start, records)
    }

    /// (λ, μ) by least squares from the equations of the support.
    fn multipliers(&self, outer: &[f64]) -> Vec<f64> {
        let size = self.rows.len() + self.kinks.len();
        let (mut matrix, mut right) = (vec![0.0; size * size], vec![0.0; size]);
        for &(c, k, sign) in &self.support {
            let line: Vec<(usize, f64)> = self
                .shares(c)
                .into_iter()
                .map(|(i, u, x)| (u, outer[c] * self.signs[c] * x * self.rows[i][k]))
                .collect();
            for &(u, x) in &line {
                right[u] += x * sign;
                line.iter().for_each(|&(v, y)| matrix[u * size + v] += x * y);
            }
        }
        solve_symmetric(&matrix, &right)
    }

    /// (example, unknown, coefficient) of what ν_c is made of.
    fn shares(&self, c: usize) -> Vec<(usize, usize, f64)> {
        let kink = |i: usize| self.kinks.iter().position(|kink| *kink == (i, c)).map(|t| (i, self.rows.len() + t, 1.0));
        let share = |i: usize| match self.sides[c][i] {
            Side::On => Some((i, i, 1.0)),
            Side::Off => (self.slope != 0.0).then_some((i, i, self.slope)),
            Side::Kink => kink(i),
        };
        (0..self.rows.len()).filter_map(share).collect()
    }

    fn factor(&self, c: usize, i: usize) -> f64 {
        match self.sides[c][i] {
            Side::On => 1.0,
            Side::Off => self.slope,
            Side::Kink => 0.0,
        }
    }

    /// Where the |a| begin among the unknowns, and where the weights do.
    fn places(&self) -> (usize, usize) {
        let outer = self.rows.len() + self.kinks.len();
        (outer, outer + self.signs.len())
    }

    /// v_ck.
    fn entry<N: Number>(&self, z: &[N], c: usize, k: usize) -> N {
        self.shares(c).into_iter().fold(N::zero(), |sum, (i, u, x)| sum + z[u].scaled(x).scaled(self.rows[i][k]))
    }

    /// y_i⟨W_c, x_i⟩.
    fn product<N: Number>(&self, z: &[N], c: usize, i: usize) -> N {
        let (_, first) = self.places();
        let own = self.support.iter().enumerate().filter(|(_, s)| s.0 == c);
        own.fold(N::zero(), |sum, (t, s)| sum + z[first + t].scaled(self.rows[i][s.1]))
    }
}

impl System for DiamondSystem {
    fn size(&self) -> usize {
        self.places().1 + self.support.len()
    }

    fn unknown(&self, k: usize) -> Unknown {
        let (outer, weights) = self.places();
        let examples = self.rows.len();
        if k < examples {
            Unknown { what: "the multiplier", example: Some(k), bundle: None }
        } else if k < outer {
            let (i, c) = self.kinks[k - examples];
            Unknown { what: "the slope", example: Some(i), bundle: Some(c) }
        } else if k < weights {
            Unknown { what: "the outer weight", example: None, bundle: Some(k - outer) }
        } else {
            Unknown { what: "an inner weight", example: None, bundle: Some(self.support[k - weights].0) }
        }
    }

    fn residual<N: Number>(&self, z: &[N]) -> Vec<N> {
        let (outer, first) = self.places();
        let mut out = Vec::with_capacity(self.size());
        for &(c, k, sign) in &self.support {
            out.push((z[outer + c] * self.entry(z, c, k)).scaled(self.signs[c]) - N::exact(sign));
        }
        for c in 0..self.signs.len() {
            let own = self.support.iter().enumerate().filter(|(_, s)| s.0 == c);
            let length = own.fold(N::zero(), |sum, (t, s)| sum + z[first + t].scaled(s.2));
            out.push(length - z[outer + c].scaled(self.counts[c]));
        }
        out.extend(self.kinks.iter().map(|&(i, c)| self.product(z, c, i)));
        for i in 0..self.rows.len() {
            let term =
                |c: usize| (z[outer + c] * self.product(z, c, i)).scaled(self.signs[c]).scaled(self.factor(c, i));
            let sum =
                (0..self.signs.len()).filter(|&c| self.factor(c, i) != 0.0).fold(N::zero(), |sum, c| sum + term(c));
            out.push(sum - N::exact(1.0));
        }
        out
    }

    fn jacobian<N: Number>(&self, z: &[N]) -> Vec<N> {
        let ((outer, first), size) = (self.places(), self.size());
        let mut matrix = vec![N::zero(); size * size];
        let mut lines = matrix.chunks_exact_mut(size);
        let mut next = |fill: &mut dyn FnMut(&mut [N])| lines.next().into_iter().for_each(fill);
        for &(c, k, _) in &self.support {
            next(&mut |line| {
                for (i, u, x) in self.shares(c) {
                    line[u] = z[outer + c].scaled(x).scaled(self.rows[i][k]).scaled(self.signs[c]);
                }
                line[outer + c] = self.entry(z, c, k).scaled(self.signs[c]);
            });
        }
        let own = |c: usize| self.support.iter().enumerate().filter(move |(_, s)| s.0 == c);
        for c in 0..self.signs.len() {
            next(&mut |line| {
                own(c).for_each(|(t, s)| line[first + t] = N::exact(s.2));
                line[outer + c] = N::exact(-self.counts[c]);
            });
        }
        for &(i, c) in &self.kinks {
            next(&mut |line| own(c).for_each(|(t, s)| line[first + t] = N::exact(self.rows[i][s.1])));
        }
        for i in 0..self.rows.len() {
            next(&mut |line| {
                for c in (0..self.signs.len()).filter(|&c| self.factor(c, i) != 0.0) {
                    let both = |x: N| x.scaled(self.signs[c]).scaled(self.factor(c, i));
                    line[outer + c] = both(self.product(z, c, i));
                    own(c).for_each(|(t, s)| line[first + t] = both(z[outer + c].scaled(self.rows[i][s.1])));
                }
            });
        }
        matrix
    }
}
