//! The equations of a KKT point in ℓ2, in as few unknowns as there are active examples, kinks and bundles.
//!
//! For min ½‖θ‖² subject to y_i f(x_i) ≥ 1 stationarity says w_j = a_j v_c and ‖v_c‖ = 1 for every neuron j of bundle c:
//!
//! ```text
//! v_c = Σ_i ν_ic y_i x_i,   ν_ic = λ_i (on), αλ_i (off), μ_ic (kink),      b_c = Σ_{j∈c} a_j²
//!
//! ½(‖v_c‖² − 1) = 0 for every bundle       y_i⟨v_c, x_i⟩ = 0 at every kink       Σ_c b_c s_ic y_i⟨v_c, x_i⟩ = 1 for every active i
//! ```
//!
//! with s_ic = 1 (on), α (off), 0 (kink). Unknowns λ, μ, b: as many as equations, whatever width and dimension are.
//!
//! With more than d antipodal pairs (c, c′) the vectors v_c + v_c′ = (1 + α) Σ λ_i y_i x_i make t = Σ λ_i y_i x_i vanish, and
//! masses may be moved. Then t = 0 (d equations) stands for the norm and the kinks of the antipodes, whose ν is
//! (1 + α)λ − ν of their partners, and the surplus masses are constants.

use super::bundles::{Bundle, antipodal_pairs};
use super::linear::{pivots, solve_symmetric};
use super::network::{Active, Side, TwoLayer};
use super::number::Number;
use super::system::{System, Unknown};
use crate::linalg::{dot, norm2};

/// ν_ic = on·λ_i + sign·μ_t.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Share {
    on: f64,
    kink: Option<(usize, f64)>,
}

/// The system, see the top of the file.
#[derive(Debug, Clone)]
pub(super) struct RoundSystem {
    rows: Vec<Vec<f64>>,
    /// Bundles × examples.
    shares: Vec<Vec<Share>>,
    /// s_ic, bundles × examples.
    slopes: Vec<Vec<f64>>,
    /// (example, bundle) of every μ.
    pub kinks: Vec<(usize, usize)>,
    /// Bundles whose norm is an equation.
    norms: Vec<usize>,
    /// Masses that are constants.
    pub fixed: Vec<Option<f64>>,
    /// The partner of an antipode whose equations t = 0 stands for.
    pub partners: Vec<Option<usize>>,
    /// Σ_k x_ik x_lk y_i y_l.
    gram: Vec<f64>,
    /// Whether t = 0 is among the equations.
    balanced: bool,
}

impl RoundSystem {
    /// The system of a reading, and a point near its zero.
    pub fn new(network: &TwoLayer, active: &Active, bundles: &[Bundle]) -> (Self, Vec<f64>) {
        let rows: Vec<Vec<f64>> = active.examples.iter().map(|&i| network.signed_row(i)).collect();
        let (examples, inputs) = (rows.len(), network.inputs.cols);
        let directions: Vec<Vec<f64>> = bundles.iter().map(|bundle| direction(active, bundle)).collect();
        let mass = |bundle: &Bundle| -> f64 {
            let sizes = bundle.members.iter().map(|&j| active.live[j].outer.abs() * norm2(&active.live[j].inner));
            sizes.sum::<f64>() / active.smallest
        };
        let masses: Vec<f64> = bundles.iter().map(mass).collect();
        let pairs = antipodal_pairs(bundles);
        // 1 + α must be exact
        let balanced = pairs.len() > inputs && network.slope == 0.0;
        let (mut partners, mut fixed) = (vec![None; bundles.len()], vec![None; bundles.len()]);
        if balanced {
            pairs.iter().for_each(|(e, c)| partners[*c] = Some(*e));
            // masses that stay unknown: those of d pairs with independent directions
            let later: Vec<&[f64]> = pairs.iter().map(|(_, c)| &directions[*c][..]).collect();
            let free = pivots(&later, inputs);
            let surplus = pairs.iter().enumerate().filter(|(k, _)| !free.contains(k));
            surplus.for_each(|(_, (_, c))| fixed[*c] = Some(masses[*c]));
        }
        let mut kinks = Vec::new();
        for (c, bundle) in bundles.iter().enumerate().filter(|(c, _)| partners[*c].is_none()) {
            kinks.extend((0..examples).filter(|&i| bundle.sides[i] == Side::Kink).map(|i| (i, c)));
        }
        let slope = network.slope;
        let unknown = |i: usize, c: usize| kinks.iter().position(|kink| *kink == (i, c));
        let share = |c: usize, i: usize| match (bundles[c].sides[i], partners[c]) {
            (Side::On, _) => Share { on: 1.0, kink: None },
            (Side::Off, _) => Share { on: slope, kink: None },
            (Side::Kink, None) => Share { on: 0.0, kink: unknown(i, c).map(|t| (t, 1.0)) },
            (Side::Kink, Some(e)) => Share { on: 1.0 + slope, kink: unknown(i, e).map(|t| (t, -1.0)) },
        };
        let factor = |c: usize, i: usize| match bundles[c].sides[i] {
            Side::On => 1.0,
            Side::Off => slope,
            Side::Kink => 0.0,
        };
        let table = |c: usize| (0..examples).map(|i| share(c, i)).collect();
        let shares: Vec<Vec<Share>> = (0..bundles.len()).map(table).collect();
        let slopes = (0..bundles.len()).map(|c| (0..examples).map(|i| factor(c, i)).collect()).collect();
        let gram = rows.iter().flat_map(|a| rows.iter().map(|b| dot(a, b))).collect();
        let norms = (0..bundles.len()).filter(|&c| partners[c].is_none()).collect();
        let system = Self { rows, shares, slopes, kinks, norms, fixed, partners, gram, balanced };
        let mut start = system.multipliers(&directions, &masses);
        start.extend((0..bundles.len()).filter(|&c| system.fixed[c].is_none()).map(|c| masses[c]));
        (system, start)
    }

    /// (λ, μ) by least squares: Σ_c b_c‖v_c(λ, μ) − v̂_c‖² → min.
    fn multipliers(&self, directions: &[Vec<f64>], masses: &[f64]) -> Vec<f64> {
        let (examples, size) = (self.rows.len(), self.rows.len() + self.kinks.len());
        let total: f64 = masses.iter().sum();
        let (mut matrix, mut right) = (vec![0.0; size * size], vec![0.0; size]);
        for (c, direction) in directions.iter().enumerate() {
            let weight = masses[c] / total;
            let entries: Vec<(usize, usize, f64)> = self.entries(c);
            for &(i, u, x) in &entries {
                right[u] += weight * x * dot(&self.rows[i], direction);
                for &(k, v, y) in &entries {
                    matrix[u * size + v] += weight * x * y * self.gram[i * examples + k];
                }
            }
        }
        solve_symmetric(&matrix, &right)
    }

    /// (example, unknown, coefficient) of all that ν_c is made of.
    fn entries(&self, c: usize) -> Vec<(usize, usize, f64)> {
        let examples = self.rows.len();
        let mut entries = Vec::new();
        for (i, share) in self.shares[c].iter().enumerate() {
            if share.on != 0.0 {
                entries.push((i, i, share.on));
            }
            entries.extend(share.kink.map(|(t, sign)| (i, examples + t, sign)));
        }
        entries
    }

    /// Masses of all bundles.
    fn masses<N: Number>(&self, z: &[N]) -> Vec<N> {
        let mut own = z[self.rows.len() + self.kinks.len()..].iter();
        self.fixed
            .iter()
            .map(|fixed| match fixed {
                Some(mass) => N::exact(*mass),
                None => own.next().copied().unwrap_or_else(N::zero),
            })
            .collect()
    }

    /// y_i⟨v_c, x_i⟩ for all bundles, and ‖v_c‖² of all.
    fn products<N: Number>(&self, z: &[N]) -> (Vec<Vec<N>>, Vec<N>) {
        let inputs = self.rows.first().map_or(0, Vec::len);
        let (mut products, mut squares) = (Vec::new(), Vec::new());
        for c in 0..self.shares.len() {
            let mut v = vec![N::zero(); inputs];
            for (i, u, x) in self.entries(c) {
                let weight = z[u].scaled(x);
                v.iter_mut().zip(&self.rows[i]).for_each(|(v, x)| *v = *v + weight.scaled(*x));
            }
            products.push(self.rows.iter().map(|row| N::dot_with(&v, row)).collect());
            squares.push(v.iter().fold(N::zero(), |sum, v| sum + *v * *v));
        }
        (products, squares)
    }
}

/// ±Σ|a_j|w_j, of length 1: the direction of v_c.
fn direction(active: &Active, bundle: &Bundle) -> Vec<f64> {
    let mut sum = vec![0.0; active.live[bundle.members[0]].inner.len()];
    for neuron in bundle.members.iter().map(|&j| &active.live[j]) {
        sum.iter_mut().zip(&neuron.inner).for_each(|(s, w)| *s += neuron.outer.abs() * w);
    }
    let size = norm2(&sum);
    sum.iter().map(|s| bundle.sign * s / size).collect()
}

impl System for RoundSystem {
    fn unknown(&self, k: usize) -> Unknown {
        let examples = self.rows.len();
        let free = |u: usize| (0..self.fixed.len()).filter(|&c| self.fixed[c].is_none()).nth(u);
        match k.checked_sub(examples) {
            None => Unknown { what: "the multiplier", example: Some(k), bundle: None },
            Some(t) if t < self.kinks.len() => {
                Unknown { what: "the slope", example: Some(self.kinks[t].0), bundle: Some(self.kinks[t].1) }
            }
            Some(t) => Unknown { what: "the mass", example: None, bundle: free(t - self.kinks.len()) },
        }
    }

    fn size(&self) -> usize {
        self.rows.len() + self.kinks.len() + self.fixed.iter().filter(|fixed| fixed.is_none()).count()
    }

    fn residual<N: Number>(&self, z: &[N]) -> Vec<N> {
        let ((products, squares), masses) = (self.products(z), self.masses(z));
        let one = N::exact(1.0);
        let mut out: Vec<N> = self.norms.iter().map(|&c| (squares[c] - one).scaled(0.5)).collect();
        out.extend(self.kinks.iter().map(|&(i, c)| products[c][i]));
        if self.balanced {
            let inputs = self.rows[0].len();
            let entry = |k: usize| self.rows.iter().zip(z).fold(N::zero(), |sum, (row, z)| sum + z.scaled(row[k]));
            out.extend((0..inputs).map(entry));
        }
        let margin = |i: usize| {
            let term = |c: usize| (masses[c] * products[c][i]).scaled(self.slopes[c][i]);
            (0..masses.len()).fold(N::zero(), |sum, c| sum + term(c)) - one
        };
        out.extend((0..self.rows.len()).map(margin));
        out
    }

    fn jacobian<N: Number>(&self, z: &[N]) -> Vec<N> {
        let ((products, _), masses) = (self.products(z), self.masses(z));
        let (examples, size) = (self.rows.len(), self.size());
        let gram: Vec<N> = self.rows.iter().flat_map(|a| self.rows.iter().map(|b| N::dot(a, b))).collect();
        let entries: Vec<_> = (0..masses.len()).map(|c| self.entries(c)).collect();
        let mut matrix = vec![N::zero(); size * size];
        let mut at = 0;
        for &c in &self.norms {
            for &(i, u, x) in &entries[c] {
                matrix[at * size + u] = matrix[at * size + u] + products[c][i].scaled(x);
            }
            at += 1;
        }
        for &(i, c) in &self.kinks {
            for &(k, u, x) in &entries[c] {
                matrix[at * size + u] = matrix[at * size + u] + gram[i * examples + k].scaled(x);
            }
            at += 1;
        }
        if self.balanced {
            for k in 0..self.rows[0].len() {
                (0..examples).for_each(|i| matrix[at * size + i] = N::exact(self.rows[i][k]));
                at += 1;
            }
        }
        // Σ_c b_c s_ic ∂ν_kc, then times x_i·x_k: the same unknown belongs to one example
        let mut owner: Vec<usize> = (0..examples).collect();
        owner.extend(self.kinks.iter().map(|(i, _)| *i));
        for i in 0..examples {
            let mut weights = vec![N::zero(); owner.len()];
            let mut free = owner.len();
            for c in 0..masses.len() {
                let slope = self.slopes[c][i];
                if slope != 0.0 {
                    for &(_, u, x) in &entries[c] {
                        weights[u] = weights[u] + masses[c].scaled(slope).scaled(x);
                    }
                }
                if self.fixed[c].is_none() {
                    matrix[at * size + free] = products[c][i].scaled(slope);
                    free += 1;
                }
            }
            for (u, k) in owner.iter().enumerate() {
                matrix[at * size + u] = weights[u] * gram[i * examples + k];
            }
            at += 1;
        }
        matrix
    }
}
