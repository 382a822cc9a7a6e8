//! KKT points in ℓ1: the equations of `system_l1`, written down a second time.

use super::super::network::{Side, TwoLayer};
use super::super::record::{DiamondBundle, Proof, sides};
use super::super::{Check, Refusal};
use super::inclusion::{boxed, image, relative_radius};
use super::pieces::{Piece, check_inactive, check_sides, product};
use super::{EnclosedNetwork, EnclosedNeuron, Point, is_positive};
use crate::intervals::{Interval, enclosed_sum};

/// A bundle with its unknowns numbered.
struct Part {
    sign: f64,
    sides: Vec<Side>,
    units: Vec<usize>,
    /// Sign of the weight of every input.
    support: Vec<i8>,
    /// Unknowns of the slopes at kinks, by example.
    slopes: Vec<Option<usize>>,
    /// The unknown |a|.
    outer: usize,
    /// Unknowns of the weights, by input.
    weights: Vec<Option<usize>>,
}

struct Shape {
    parts: Vec<Part>,
    rows: Vec<Vec<f64>>,
    slope: Interval,
    unknowns: usize,
}

pub(super) fn check(proof: &Proof, bundles: &[DiamondBundle], network: &TwoLayer) -> Result<Point, Refusal> {
    let shape = Shape::read(proof, bundles, network)?;
    let point = boxed(&proof.midpoint, &vec![0.0; proof.midpoint.len()]);
    let whole = boxed(&proof.midpoint, &proof.radius);
    let found = image(&proof.midpoint, &proof.radius, &proof.inverse, &shape.residual(&point), &shape.jacobian(&whole));
    let z = found.map_err(|(unknown, refusal)| shape.blame(unknown, refusal, proof))?;
    shape.point(&z, proof, network)
}

impl Shape {
    fn read(proof: &Proof, bundles: &[DiamondBundle], network: &TwoLayer) -> Result<Self, Refusal> {
        let refuse = |why: &str| Refusal::new(Check::Shape, why);
        let (examples, inputs) = (proof.active.len(), network.inputs.cols);
        let mut parts = Vec::new();
        let mut next = examples;
        for bundle in bundles {
            let own = sides(&bundle.sides, examples).ok_or_else(|| refuse("sides must be one of + - 0 per example"))?;
            let letter = |letter: char| ['-', '0', '+'].iter().position(|l| *l == letter).map(|at| at as i8 - 1);
            let support: Vec<i8> = bundle.support.chars().map(letter).collect::<Option<_>>().unwrap_or_default();
            if support.len() != inputs || bundle.sign.abs() != 1 || bundle.units.is_empty() {
                return Err(refuse("a bundle needs a sign, hidden units, and one of + - 0 per input"));
            }
            let slopes = own.iter().map(|side| {
                (*side == Side::Kink).then(|| {
                    next += 1;
                    next - 1
                })
            });
            let slopes = slopes.collect();
            let (sign, units) = (f64::from(bundle.sign), bundle.units.clone());
            parts.push(Part { sign, sides: own, units, support, slopes, outer: 0, weights: Vec::new() });
        }
        for part in &mut parts {
            part.outer = next;
            next += 1;
        }
        for part in &mut parts {
            for sign in &part.support {
                part.weights.push((*sign != 0).then_some(next));
                next += usize::from(*sign != 0);
            }
        }
        if next != proof.midpoint.len() {
            return Err(refuse("the unknowns are not those of the bundles"));
        }
        let rows = proof.active.iter().map(|&i| network.signed_row(i)).collect();
        Ok(Self { parts, rows, slope: Interval::point(network.slope), unknowns: next })
    }

    /// ν as (unknown, coefficient), if it is not 0.
    fn share(&self, part: &Part, i: usize) -> Option<(usize, Interval)> {
        match (part.sides[i], part.slopes[i]) {
            (Side::On, _) => Some((i, Interval::point(1.0))),
            (Side::Off, _) => (self.slope.hi != 0.0).then_some((i, self.slope)),
            (Side::Kink, slope) => slope.map(|u| (u, Interval::point(1.0))),
        }
    }

    fn gain(&self, part: &Part, i: usize) -> Interval {
        match part.sides[i] {
            Side::On => Interval::point(1.0),
            Side::Off => self.slope,
            Side::Kink => Interval::ZERO,
        }
    }

    /// v_k.
    fn force(&self, z: &[Interval], part: &Part, k: usize) -> Interval {
        let term = |i: usize| self.share(part, i).map(|(u, x)| z[u] * x * Interval::point(self.rows[i][k]));
        enclosed_sum((0..self.rows.len()).filter_map(term))
    }

    /// W.
    fn weights(&self, z: &[Interval], part: &Part) -> Vec<Interval> {
        part.weights.iter().map(|u| u.map_or(Interval::ZERO, |u| z[u])).collect()
    }

    fn residual(&self, z: &[Interval]) -> Vec<Interval> {
        let signed = |part: &Part, x: Interval| if part.sign > 0.0 { x } else { -x };
        let mut out = Vec::new();
        for part in &self.parts {
            for (k, sign) in part.support.iter().enumerate().filter(|(_, sign)| **sign != 0) {
                let force = signed(part, z[part.outer] * self.force(z, part, k));
                out.push(force - Interval::point(f64::from(*sign)));
            }
        }
        for part in &self.parts {
            let entry = |(w, sign): (&Interval, &i8)| if *sign > 0 { *w } else { -*w };
            let length = enclosed_sum(self.weights(z, part).iter().zip(&part.support).map(entry));
            out.push(length - Interval::point(part.units.len() as f64) * z[part.outer]);
        }
        for part in &self.parts {
            let kinks = (0..self.rows.len()).filter(|&i| part.slopes[i].is_some());
            out.extend(kinks.map(|i| product(&self.weights(z, part), &self.rows[i])));
        }
        for (i, row) in self.rows.iter().enumerate() {
            let term =
                |part: &Part| signed(part, z[part.outer] * product(&self.weights(z, part), row) * self.gain(part, i));
            out.push(enclosed_sum(self.parts.iter().map(term)) - Interval::point(1.0));
        }
        out
    }

    fn jacobian(&self, z: &[Interval]) -> Vec<Interval> {
        let blank = || vec![Interval::ZERO; self.unknowns];
        let mut out = Vec::new();
        for part in &self.parts {
            let sign = Interval::point(part.sign);
            for k in (0..part.support.len()).filter(|&k| part.support[k] != 0) {
                let mut line = blank();
                for (i, (u, x)) in (0..self.rows.len()).filter_map(|i| Some((i, self.share(part, i)?))) {
                    line[u] = z[part.outer] * x * Interval::point(self.rows[i][k]) * sign;
                }
                line[part.outer] = self.force(z, part, k) * sign;
                out.extend(line);
            }
        }
        for part in &self.parts {
            let mut line = blank();
            line[part.outer] = Interval::point(-(part.units.len() as f64));
            for (u, sign) in part.weights.iter().zip(&part.support) {
                u.iter().for_each(|u| line[*u] = Interval::point(f64::from(*sign)));
            }
            out.extend(line);
        }
        for part in &self.parts {
            for i in (0..self.rows.len()).filter(|&i| part.slopes[i].is_some()) {
                let mut line = blank();
                for (u, x) in part.weights.iter().zip(&self.rows[i]) {
                    u.iter().for_each(|u| line[*u] = Interval::point(*x));
                }
                out.extend(line);
            }
        }
        for (i, row) in self.rows.iter().enumerate() {
            let mut line = blank();
            for part in &self.parts {
                let gain = self.gain(part, i) * Interval::point(part.sign);
                line[part.outer] = product(&self.weights(z, part), row) * gain;
                for (u, x) in part.weights.iter().zip(row) {
                    u.iter().for_each(|u| line[*u] = z[part.outer] * Interval::point(*x) * gain);
                }
            }
            out.extend(line);
        }
        out
    }

    fn point(&self, z: &[Interval], proof: &Proof, network: &TwoLayer) -> Result<Point, Refusal> {
        let range = |x: Interval| format!("it lies in [{:.3e}, {:.3e}]", x.lo, x.hi);
        if let Some(i) = (0..self.rows.len()).find(|&i| !is_positive(z[i])) {
            return Err(Refusal::new(Check::Multipliers, range(z[i])).example(proof.active[i]));
        }
        let mut pieces = Vec::new();
        for part in &self.parts {
            let unit = part.units[0];
            for (i, u) in part.slopes.iter().enumerate().filter_map(|(i, u)| Some((i, (*u)?))) {
                if !(z[u].lo > (self.slope * z[i]).hi && z[u].hi < z[i].lo) {
                    let refusal = Refusal::new(Check::Slopes, range(z[u] / z[i]));
                    return Err(refusal.neuron(unit).example(proof.active[i]));
                }
            }
            if !is_positive(z[part.outer]) {
                return Err(Refusal::new(Check::Masses, range(z[part.outer])).neuron(unit));
            }
            let weights = self.weights(z, part);
            for (k, sign) in part.support.iter().enumerate() {
                let fine = match sign {
                    0 => (z[part.outer] * self.force(z, part, k)).magnitude() < 1.0,
                    1 => weights[k].lo > 0.0,
                    _ => weights[k].hi < 0.0,
                };
                if !fine {
                    let shown = if *sign == 0 { z[part.outer] * self.force(z, part, k) } else { weights[k] };
                    return Err(Refusal::new(Check::Support, format!("input {k}: {}", range(shown))).neuron(unit));
                }
            }
            let (gain, sides) = (z[part.outer], part.sides.clone());
            pieces.push(Piece { sign: part.sign, gain, direction: weights, sides, unit });
        }
        let one = Interval::point(1.0);
        check_sides(&pieces, &proof.active, network)?;
        check_inactive(&pieces, &proof.active, network, one)?;
        let mut neurons = Vec::new();
        for (piece, part) in pieces.iter().zip(&self.parts) {
            let count = Interval::point(part.units.len() as f64);
            let outer = if part.sign > 0.0 { piece.gain } else { -piece.gain };
            let inner: Vec<Interval> = piece.direction.iter().map(|w| *w / count).collect();
            neurons.extend(part.units.iter().map(|&unit| EnclosedNeuron { unit, outer, inner: inner.clone() }));
        }
        // ‖θ‖₁ = 2 Σ n_c A_c
        let twice = |part: &Part| Interval::point(2.0 * part.units.len() as f64) * z[part.outer];
        let kinks = self.parts.iter().flat_map(|part| &part.slopes).filter(|u| u.is_some()).count();
        Ok(Point {
            network: EnclosedNetwork { neurons, entries: Vec::new() },
            margin: one / enclosed_sum(self.parts.iter().map(twice)).square(),
            radius: relative_radius(z),
            kinks,
            multipliers: Vec::new(),
            directions: Vec::new(),
        })
    }

    fn blame(&self, unknown: usize, refusal: Refusal, proof: &Proof) -> Refusal {
        let holds = |part: &&Part| {
            let own = part.slopes.iter().chain(&part.weights).any(|u| *u == Some(unknown));
            own || part.outer == unknown
        };
        let unit = self.parts.iter().find(holds).map(|part| part.units[0]);
        refusal.neuron(unit).example(proof.active.get(unknown).copied())
    }
}
