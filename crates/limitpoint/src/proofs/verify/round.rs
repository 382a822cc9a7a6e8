//! KKT points in ℓ2: the equations of `system_l2`, written down a second time in terms of the vectors v_c.

use super::super::network::{Side, TwoLayer};
use super::super::record::{Proof, RoundBundle, sides};
use super::super::{Check, Refusal};
use super::inclusion::{boxed, image, relative_radius};
use super::pieces::{Piece, check_inactive, check_sides, product};
use super::{EnclosedNetwork, EnclosedNeuron, Point, is_positive};
use crate::intervals::{Interval, enclosed_dot, enclosed_sum};

/// The bundles with their sides read and their unknowns numbered.
struct Shape<'a> {
    bundles: &'a [RoundBundle],
    sides: Vec<Vec<Side>>,
    /// y_i x_i of the active examples.
    rows: Vec<Vec<f64>>,
    slope: f64,
    /// (bundle, example) of the kinks that have an unknown, in the order of the unknowns.
    kinks: Vec<(usize, usize)>,
    /// Where the mass of a bundle stands among the unknowns.
    masses: Vec<Option<usize>>,
    unknowns: usize,
}

pub(super) fn check(proof: &Proof, bundles: &[RoundBundle], network: &TwoLayer) -> Result<Point, Refusal> {
    let shape = Shape::read(proof, bundles, network)?;
    let point = boxed(&proof.midpoint, &vec![0.0; proof.midpoint.len()]);
    let whole = boxed(&proof.midpoint, &proof.radius);
    let found = image(&proof.midpoint, &proof.radius, &proof.inverse, &shape.residual(&point), &shape.jacobian(&whole));
    let z = found.map_err(|(unknown, refusal)| shape.blame(unknown, refusal, proof))?;
    shape.point(&z, proof, network)
}

impl<'a> Shape<'a> {
    fn read(proof: &Proof, bundles: &'a [RoundBundle], network: &TwoLayer) -> Result<Self, Refusal> {
        let refuse = |why: &str| Refusal::new(Check::Shape, why);
        let examples = proof.active.len();
        let mut read = Vec::new();
        for (c, bundle) in bundles.iter().enumerate() {
            let own = sides(&bundle.sides, examples).ok_or_else(|| refuse("sides must be one of + - 0 per example"))?;
            if bundle.sign.abs() != 1 || bundle.units.is_empty() || bundle.shares.len() != bundle.units.len() {
                return Err(refuse("a bundle needs a sign, hidden units and a share for each"));
            }
            if bundle.shares.iter().any(|s| !(*s > 0.0 && s.is_finite())) {
                return Err(refuse("shares of a mass must be positive"));
            }
            if let Some(e) = bundle.opposite {
                let partner: Option<(&RoundBundle, &Vec<Side>)> = bundles.get(e).zip(read.get(e));
                let mirrored = |(other, theirs): (&RoundBundle, &Vec<Side>)| {
                    let pairs = own.iter().zip(theirs);
                    let opposite = pairs.map(|(a, b)| match (a, b) {
                        (Side::Kink, Side::Kink) => true,
                        (Side::Kink, _) | (_, Side::Kink) => false,
                        (a, b) => a != b,
                    });
                    e < c && other.opposite.is_none() && other.sign == bundle.sign && opposite.min() != Some(false)
                };
                if network.slope != 0.0 || !partner.is_some_and(mirrored) {
                    return Err(refuse(
                        "an opposite bundle must be an earlier one with opposite sides, for plain ReLU",
                    ));
                }
            }
            read.push(own);
        }
        let mut kinks = Vec::new();
        for (c, own) in read.iter().enumerate().filter(|(c, _)| bundles[*c].opposite.is_none()) {
            kinks.extend((0..examples).filter(|&i| own[i] == Side::Kink).map(|i| (c, i)));
        }
        let mut unknowns = examples + kinks.len();
        let mut masses = Vec::new();
        for bundle in bundles {
            masses.push(bundle.mass.is_none().then_some(unknowns));
            unknowns += usize::from(bundle.mass.is_none());
        }
        if unknowns != proof.midpoint.len() {
            return Err(refuse("the unknowns are not those of the bundles"));
        }
        let rows = proof.active.iter().map(|&i| network.signed_row(i)).collect();
        Ok(Self { bundles, sides: read, rows, slope: network.slope, kinks, masses, unknowns })
    }

    /// Whether Σ λ_i y_i x_i = 0 is among the equations.
    fn balanced(&self) -> bool {
        self.bundles.iter().any(|bundle| bundle.opposite.is_some())
    }

    /// Where μ of a kink stands.
    fn slope_at(&self, c: usize, i: usize) -> Option<usize> {
        self.kinks.iter().position(|kink| *kink == (c, i)).map(|t| self.rows.len() + t)
    }

    /// Of what ν_ic is made: (unknown, coefficient).
    fn made_of(&self, c: usize, i: usize) -> Vec<(usize, f64)> {
        match (self.sides[c][i], self.bundles[c].opposite) {
            (Side::On, _) => vec![(i, 1.0)],
            (Side::Off, _) if self.slope == 0.0 => Vec::new(),
            (Side::Off, _) => vec![(i, self.slope)],
            (Side::Kink, None) => self.slope_at(c, i).map(|u| (u, 1.0)).into_iter().collect(),
            (Side::Kink, Some(e)) => {
                let own = self.slope_at(e, i).map(|u| (u, -1.0));
                std::iter::once((i, 1.0)).chain(own).collect()
            }
        }
    }

    fn share(&self, z: &[Interval], c: usize, i: usize) -> Interval {
        enclosed_sum(self.made_of(c, i).into_iter().map(|(u, x)| z[u] * Interval::point(x)))
    }

    /// v_c.
    fn direction(&self, z: &[Interval], c: usize) -> Vec<Interval> {
        let shares: Vec<Interval> = (0..self.rows.len()).map(|i| self.share(z, c, i)).collect();
        let entry = |k: usize| enclosed_sum(shares.iter().zip(&self.rows).map(|(s, row)| *s * Interval::point(row[k])));
        (0..self.rows[0].len()).map(entry).collect()
    }

    fn mass(&self, z: &[Interval], c: usize) -> Interval {
        match (self.masses[c], self.bundles[c].mass) {
            (Some(u), _) => z[u],
            (None, mass) => Interval::point(mass.unwrap_or(f64::NAN)),
        }
    }

    /// φ′ on the side of the example, times φ's argument: 0 at a kink, where the argument is 0.
    fn gain(&self, c: usize, i: usize) -> Option<f64> {
        match self.sides[c][i] {
            Side::On => Some(1.0),
            Side::Off => (self.slope != 0.0).then_some(self.slope),
            Side::Kink => None,
        }
    }

    fn residual(&self, z: &[Interval]) -> Vec<Interval> {
        let directions: Vec<Vec<Interval>> = (0..self.bundles.len()).map(|c| self.direction(z, c)).collect();
        let one = Interval::point(1.0);
        let mut out = Vec::new();
        for (v, _) in directions.iter().zip(self.bundles).filter(|(_, bundle)| bundle.opposite.is_none()) {
            out.push((enclosed_sum(v.iter().map(|x| x.square())) - one) * Interval::point(0.5));
        }
        out.extend(self.kinks.iter().map(|&(c, i)| product(&directions[c], &self.rows[i])));
        if self.balanced() {
            let entry = |k: usize| enclosed_sum(self.rows.iter().zip(z).map(|(row, l)| *l * Interval::point(row[k])));
            out.extend((0..self.rows[0].len()).map(entry));
        }
        for (i, row) in self.rows.iter().enumerate() {
            let term = |c: usize| {
                let gain = self.gain(c, i)?;
                Some(self.mass(z, c) * product(&directions[c], row) * Interval::point(gain))
            };
            out.push(enclosed_sum((0..self.bundles.len()).filter_map(term)) - one);
        }
        out
    }

    fn jacobian(&self, z: &[Interval]) -> Vec<Interval> {
        let examples = self.rows.len();
        let gram: Vec<Vec<Interval>> =
            self.rows.iter().map(|a| self.rows.iter().map(|b| enclosed_dot(a, b)).collect()).collect();
        // ∂⟨v_c, y_i x_i⟩/∂z, as a list of the unknowns that v_c is made of
        let parts: Vec<Vec<(usize, usize, f64)>> = (0..self.bundles.len())
            .map(|c| (0..examples).flat_map(|k| self.made_of(c, k).into_iter().map(move |(u, x)| (k, u, x))).collect())
            .collect();
        let products: Vec<Vec<Interval>> = (0..self.bundles.len())
            .map(|c| {
                let v = self.direction(z, c);
                self.rows.iter().map(|row| product(&v, row)).collect()
            })
            .collect();
        let blank = || vec![Interval::ZERO; self.unknowns];
        let mut out = Vec::new();
        for c in (0..self.bundles.len()).filter(|&c| self.bundles[c].opposite.is_none()) {
            let mut line = blank();
            parts[c].iter().for_each(|&(k, u, x)| line[u] = line[u] + products[c][k] * Interval::point(x));
            out.extend(line);
        }
        for &(c, i) in &self.kinks {
            let mut line = blank();
            parts[c].iter().for_each(|&(k, u, x)| line[u] = line[u] + gram[i][k] * Interval::point(x));
            out.extend(line);
        }
        if self.balanced() {
            for k in 0..self.rows[0].len() {
                let mut line = blank();
                (0..examples).for_each(|i| line[i] = Interval::point(self.rows[i][k]));
                out.extend(line);
            }
        }
        for i in 0..examples {
            let mut line = blank();
            for c in 0..self.bundles.len() {
                let Some(gain) = self.gain(c, i) else { continue };
                let weight = self.mass(z, c) * Interval::point(gain);
                parts[c].iter().for_each(|&(k, u, x)| line[u] = line[u] + weight * gram[i][k] * Interval::point(x));
                if let Some(u) = self.masses[c] {
                    line[u] = products[c][i] * Interval::point(gain);
                }
            }
            out.extend(line);
        }
        out
    }

    /// Signs and margins, and the network that follows.
    fn point(&self, z: &[Interval], proof: &Proof, network: &TwoLayer) -> Result<Point, Refusal> {
        let multipliers = &z[..self.rows.len()];
        if let Some(i) = multipliers.iter().position(|l| !is_positive(*l)) {
            let why = format!("it lies in [{:.3e}, {:.3e}]", multipliers[i].lo, multipliers[i].hi);
            return Err(Refusal::new(Check::Multipliers, why).example(proof.active[i]));
        }
        for &(c, i) in &self.kinks {
            let (slope, full) = (self.share(z, c, i), multipliers[i]);
            let least = full * Interval::point(self.slope);
            if !(slope.lo > least.hi && slope.hi < full.lo) {
                let ratio = slope / full;
                let why = format!("it lies in [{:.3e}, {:.3e}]", ratio.lo, ratio.hi);
                return Err(Refusal::new(Check::Slopes, why).neuron(self.bundles[c].units[0]).example(proof.active[i]));
            }
        }
        let mut pieces = Vec::new();
        for (c, bundle) in self.bundles.iter().enumerate() {
            let mass = self.mass(z, c);
            if !is_positive(mass) {
                let why = format!("it lies in [{:.3e}, {:.3e}]", mass.lo, mass.hi);
                return Err(Refusal::new(Check::Masses, why).neuron(bundle.units[0]));
            }
            let v = self.direction(z, c);
            let direction = if bundle.sign > 0 { v } else { v.into_iter().map(|x| -x).collect() };
            let (sign, sides, unit) = (f64::from(bundle.sign), self.sides[c].clone(), bundle.units[0]);
            pieces.push(Piece { sign, gain: mass, direction, sides, unit });
        }
        let one = Interval::point(1.0);
        check_sides(&pieces, &proof.active, network)?;
        check_inactive(&pieces, &proof.active, network, one)?;
        // Σb = Σλ at a KKT point: both enclose ½‖θ‖²
        let (masses, duals) = (enclosed_sum(pieces.iter().map(|p| p.gain)), enclosed_sum(multipliers.iter().copied()));
        let half = Interval::new(masses.lo.max(duals.lo), masses.hi.min(duals.hi));
        let mut neurons = Vec::new();
        for (piece, bundle) in pieces.iter().zip(self.bundles) {
            let all = enclosed_sum(bundle.shares.iter().map(|s| Interval::point(*s)));
            for (unit, share) in bundle.units.iter().zip(&bundle.shares) {
                let size = (Interval::point(*share) / all * piece.gain).sqrt();
                let outer = if bundle.sign > 0 { size } else { -size };
                neurons.push(EnclosedNeuron {
                    unit: *unit,
                    outer,
                    inner: piece.direction.iter().map(|x| size * *x).collect(),
                });
            }
        }
        let kinks = self.sides.iter().flatten().filter(|side| **side == Side::Kink).count();
        Ok(Point {
            network: EnclosedNetwork { neurons, entries: Vec::new() },
            margin: one / (Interval::point(2.0) * half),
            radius: relative_radius(z),
            kinks,
            multipliers: multipliers.to_vec(),
            directions: (0..self.bundles.len()).map(|c| self.direction(z, c)).collect(),
        })
    }

    /// The example and the neuron that an unknown belongs to.
    fn blame(&self, unknown: usize, refusal: Refusal, proof: &Proof) -> Refusal {
        let examples = self.rows.len();
        let unit = |c: usize| self.bundles[c].units[0];
        if unknown < examples {
            refusal.example(proof.active[unknown])
        } else if let Some(&(c, i)) = self.kinks.get(unknown - examples) {
            refusal.example(proof.active[i]).neuron(unit(c))
        } else {
            refusal.neuron(self.masses.iter().position(|m| *m == Some(unknown)).map(unit))
        }
    }
}
