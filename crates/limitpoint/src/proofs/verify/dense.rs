//! KKT points of dense networks in ℓ2: the equations of `dense`, written down a second time for numbers that carry one derivative.

use super::super::dense::{DenseModel, DenseNetwork};
use super::super::record::Proof;
use super::super::{Check, Refusal};
use super::dual::{Dual, Ring, times};
use super::inclusion::{boxed, image, relative_radius};
use super::{EnclosedNetwork, Point, is_positive};
use crate::intervals::{Interval, enclosed_sum};

/// The record with its unknowns numbered: weights, multipliers, slopes, turns.
struct Shape<'a> {
    model: &'a DenseModel,
    record: &'a DenseNetwork,
    active: &'a [usize],
    midpoint: &'a [f64],
    /// (layer, row, column) of every entry, and its unknown or constant.
    entries: Vec<((usize, usize, usize), Entry)>,
    weights: usize,
    /// (layer, unit, active example).
    kinks: Vec<(usize, usize, usize)>,
}

#[derive(Clone, Copy)]
enum Entry {
    Unknown(usize),
    Constant(f64),
}

pub(super) fn check(proof: &Proof, record: &DenseNetwork, model: &DenseModel) -> Result<Point, Refusal> {
    let shape = Shape::read(proof, record, model)?;
    let size = proof.midpoint.len();
    let middle = boxed(&proof.midpoint, &vec![0.0; size]);
    let whole = boxed(&proof.midpoint, &proof.radius);
    let mut jacobian = vec![Interval::ZERO; size * size];
    for column in 0..size {
        let seed = |(k, x): (usize, &Interval)| Dual(*x, Interval::point(if k == column { 1.0 } else { 0.0 }));
        let lines = shape.equations(&whole.iter().enumerate().map(seed).collect::<Vec<Dual>>());
        lines.iter().enumerate().for_each(|(row, line)| jacobian[row * size + column] = line.1);
    }
    let found = image(&proof.midpoint, &proof.radius, &proof.inverse, &shape.equations(&middle), &jacobian);
    let z = found.map_err(|(_, refusal)| refusal)?;
    shape.point(&z)
}

impl<'a> Shape<'a> {
    fn read(proof: &'a Proof, record: &'a DenseNetwork, model: &'a DenseModel) -> Result<Self, Refusal> {
        let refuse = |why: &str| Err(Refusal::new(Check::Shape, why));
        let hidden = model.widths.len();
        if record.units.len() != hidden || record.sides.len() != hidden {
            return refuse("units and sides must be named for every hidden layer");
        }
        let mut kinks = Vec::new();
        for l in 0..hidden {
            let units = &record.units[l];
            if !units.windows(2).all(|pair| pair[0] < pair[1]) || units.iter().any(|unit| *unit >= model.widths[l]) {
                return refuse("live units are not in order or do not exist");
            }
            if !model.may_die(l) && units.len() != model.widths[l] {
                return refuse("a unit beside a frozen layer cannot be left out");
            }
            if record.sides[l].len() != units.len() {
                return refuse("sides must be named for every live unit");
            }
            for (unit, letters) in record.sides[l].iter().enumerate() {
                if letters.len() != proof.active.len() || letters.chars().any(|c| !"+-0".contains(c)) {
                    return refuse("sides must be one of + - 0 per active example");
                }
                kinks.extend(letters.chars().enumerate().filter(|(_, c)| *c == '0').map(|(i, _)| (l, unit, i)));
            }
        }
        if model.power > 1 && !(kinks.is_empty() && record.turns.is_empty()) {
            return refuse("a power of ReLU has neither kinks nor turns");
        }
        for turn in &record.turns {
            let (l, (a, b)) = (turn.layer, turn.units);
            let same = record.sides.get(l).and_then(|sides| Some(sides.get(a)? == sides.get(b)?));
            if a == b || same != Some(true) || !model.may_die(l) {
                return refuse("a turn needs two units of a trained layer on the same sides");
            }
        }
        let ascending = record.margins.windows(2).all(|pair| pair[0] < pair[1]);
        if record.margins.is_empty() || !ascending || record.margins.iter().any(|k| *k >= model.margins.len()) {
            return refuse("the active margins are not in order or do not exist");
        }
        let mut examples: Vec<usize> = record.margins.iter().map(|&k| model.margins[k].example).collect();
        examples.dedup();
        if examples != proof.active {
            return refuse("the active examples are not those of the active margins");
        }
        let (mut entries, mut weights, mut constants) = (Vec::new(), 0, record.frozen.iter());
        for entry in model.entries(&record.units) {
            let value = if model.trained[entry.0] {
                weights += 1;
                Entry::Unknown(weights - 1)
            } else {
                match constants.next() {
                    Some(constant) if constant.is_finite() => Entry::Constant(*constant),
                    _ => return refuse("a weight of a frozen layer is missing"),
                }
            };
            entries.push((entry, value));
        }
        if constants.next().is_some()
            || weights + record.margins.len() + kinks.len() + record.turns.len() != proof.midpoint.len()
        {
            return refuse("the unknowns are not those of the network");
        }
        Ok(Self { model, record, active: &proof.active, midpoint: &proof.midpoint, entries, weights, kinks })
    }

    /// Matrices of numbers, layer by layer and row by row.
    fn matrices<R: Ring>(&self, z: &[R]) -> Vec<Vec<Vec<R>>> {
        let mut out: Vec<Vec<Vec<R>>> = vec![Vec::new(); self.model.layers()];
        for ((l, row, _), entry) in &self.entries {
            if out[*l].len() <= *row {
                out[*l].push(Vec::new());
            }
            out[*l][*row].push(match entry {
                Entry::Unknown(u) => z[*u],
                Entry::Constant(x) => R::from(Interval::point(*x)),
            });
        }
        out
    }

    fn slope_unknown(&self, kink: (usize, usize, usize)) -> usize {
        let at = self.kinks.iter().position(|other| *other == kink).unwrap_or(usize::MAX);
        self.weights + self.record.margins.len() + at
    }

    fn equations<R: Ring>(&self, z: &[R]) -> Vec<R> {
        let number = |x: f64| R::from(Interval::point(x));
        let sum = |terms: &mut dyn Iterator<Item = R>| terms.fold(R::from(Interval::ZERO), |sum, term| sum + term);
        let matrices = self.matrices(z);
        let hidden = self.model.widths.len();
        let multipliers = &z[self.weights..self.weights + self.record.margins.len()];
        // −∂(Σ λ q)/∂W, margins, and preactivations of kinks
        let mut forces: Vec<Vec<Vec<R>>> =
            matrices.iter().map(|m| m.iter().map(|row| vec![number(0.0); row.len()]).collect()).collect();
        let mut margins = vec![number(-1.0); multipliers.len()];
        let mut at_kinks = vec![number(0.0); self.kinks.len()];
        for (i, &example) in self.active.iter().enumerate() {
            let mut layers: Vec<Vec<R>> = vec![self.model.inputs.row(example).iter().map(|x| number(*x)).collect()];
            let mut derivatives: Vec<Vec<R>> = Vec::new();
            for l in 0..=hidden {
                let input = &layers[l];
                let z_of = |row: &Vec<R>| sum(&mut row.iter().zip(input).map(|(w, h)| *w * *h));
                let own: Vec<R> = matrices[l].iter().map(z_of).collect();
                if l == hidden {
                    layers.push(own);
                    break;
                }
                let (mut next, mut slopes) = (Vec::new(), Vec::new());
                for (unit, value) in own.iter().enumerate() {
                    let letter = self.record.sides[l][unit].as_bytes()[i];
                    let (h, slope) = match (letter, self.model.power) {
                        (b'+', 1) => (*value, number(1.0)),
                        (b'+', power) => {
                            let below = (1..power).fold(number(1.0), |product, _| product * *value);
                            (below * *value, number(f64::from(power)) * below)
                        }
                        (b'-', _) => (number(self.model.slope) * *value, number(self.model.slope)),
                        _ => {
                            let place = self.slope_unknown((l, unit, i));
                            at_kinks[place - self.weights - multipliers.len()] = *value;
                            (z[place] * *value, z[place])
                        }
                    };
                    next.push(h);
                    slopes.push(slope);
                }
                layers.push(next);
                derivatives.push(slopes);
            }
            let mut back = vec![number(0.0); self.model.outputs];
            for (k, &margin) in self.record.margins.iter().enumerate() {
                let margin = &self.model.margins[margin];
                for &(output, c) in margin.scores.iter().filter(|_| margin.example == example) {
                    margins[k] = margins[k] + number(c) * layers[hidden + 1][output];
                    back[output] = back[output] + number(c) * multipliers[k];
                }
            }
            for l in (0..=hidden).rev() {
                for (row, signal) in forces[l].iter_mut().zip(&back) {
                    row.iter_mut().zip(&layers[l]).for_each(|(force, h)| *force = *force - *signal * *h);
                }
                if l > 0 {
                    let arriving = |k: usize| sum(&mut matrices[l].iter().zip(&back).map(|(row, d)| row[k] * *d));
                    back = (0..derivatives[l - 1].len()).map(|k| arriving(k) * derivatives[l - 1][k]).collect();
                }
            }
        }
        let mut out = vec![number(0.0); self.weights];
        for ((l, row, column), entry) in &self.entries {
            if let Entry::Unknown(u) = entry {
                out[*u] = z[*u] + forces[*l][*row][*column];
            }
        }
        let first = self.weights + multipliers.len() + self.kinks.len();
        let mut levels = Vec::new();
        for (g, turn) in self.record.turns.iter().enumerate() {
            let mut level = number(0.0);
            for (a, b) in self.turned(turn.layer, turn.units) {
                out[a] = out[a] - z[first + g] * z[b];
                out[b] = out[b] + z[first + g] * z[a];
                level = level + number(self.midpoint[a]) * z[b] - number(self.midpoint[b]) * z[a];
            }
            levels.push(level);
        }
        out.extend(margins);
        out.extend(at_kinks);
        out.extend(levels);
        out
    }

    /// Pairs of unknowns that a turn mixes: (G θ)_a = −θ_b, (G θ)_b = θ_a.
    fn turned(&self, layer: usize, (first, second): (usize, usize)) -> Vec<(usize, usize)> {
        let find = |wanted: (usize, usize, usize)| {
            let found = self.entries.iter().find(|(entry, _)| *entry == wanted).map(|(_, entry)| *entry);
            if let Some(Entry::Unknown(u)) = found { Some(u) } else { None }
        };
        let mut pairs = Vec::new();
        for ((l, row, column), _) in &self.entries {
            let partner = match (*l, *row, *column) {
                (l, row, column) if l == layer && row == first => Some((l, second, column)),
                (l, row, column) if l == layer + 1 && column == first => Some((l, row, second)),
                _ => None,
            };
            pairs.extend(partner.and_then(|partner| Some((find((*l, *row, *column))?, find(partner)?))));
        }
        pairs
    }

    /// Signs, sides and the other margins, and the network that follows.
    fn point(&self, z: &[Interval]) -> Result<Point, Refusal> {
        let multipliers = &z[self.weights..self.weights + self.record.margins.len()];
        if let Some(k) = multipliers.iter().position(|l| !is_positive(*l)) {
            let why = format!("it lies in [{:.3e}, {:.3e}]", multipliers[k].lo, multipliers[k].hi);
            let example = self.model.margins[self.record.margins[k]].example;
            return Err(Refusal::new(Check::Multipliers, why).example(example));
        }
        for &(l, unit, i) in &self.kinks {
            let slope = z[self.slope_unknown((l, unit, i))];
            if !(slope.lo > self.model.slope && slope.hi < 1.0) {
                let why = format!("it lies in [{:.3e}, {:.3e}] in hidden layer {}", slope.lo, slope.hi, l + 1);
                let refusal = Refusal::new(Check::Slopes, why).neuron(self.record.units[l][unit]);
                return Err(refusal.example(self.active[i]));
            }
        }
        let matrices = self.matrices(z);
        for example in 0..self.model.inputs.rows {
            let place = self.active.iter().position(|active| *active == example);
            let scores = self.scores(&matrices, example, place)?;
            for (k, margin) in self.model.margins.iter().enumerate().filter(|(_, m)| m.example == example) {
                if self.record.margins.iter().any(|&active| active == k || self.model.same(active, k)) {
                    continue;
                }
                let q = enclosed_sum(margin.scores.iter().map(|(o, c)| scores[*o] * Interval::point(*c)));
                let larger = q.lo > 1.0;
                if !larger {
                    let why = format!("its margin lies in [{:.9e}, {:.9e}], the smallest is 1", q.lo, q.hi);
                    return Err(Refusal::new(Check::Inactive, why).example(example));
                }
            }
        }
        // ‖θ‖² = L Σ λ at a KKT point: both enclose it
        let squares = enclosed_sum(z[..self.weights].iter().map(|w| w.square()));
        let duals = enclosed_sum(multipliers.iter().copied()) * Interval::point(f64::from(self.model.degree()));
        let size = Interval::new(squares.lo.max(duals.lo), squares.hi.min(duals.hi));
        let root = size.sqrt();
        let power = (0..self.model.degree()).fold(Interval::point(1.0), |product, _| product * root);
        let mut flat = vec![Interval::ZERO; self.model.parameters()];
        for (entry, value) in &self.entries {
            flat[self.model.place(&self.record.units, *entry)] = match value {
                Entry::Unknown(u) => z[*u],
                Entry::Constant(x) => Interval::point(*x),
            };
        }
        Ok(Point {
            network: EnclosedNetwork { neurons: Vec::new(), entries: flat },
            margin: Interval::point(1.0) / power,
            radius: relative_radius(&z[..self.weights + multipliers.len()]),
            kinks: self.kinks.len(),
            multipliers: Vec::new(),
            directions: Vec::new(),
        })
    }

    /// The scores of an example with φ as it is, and on an active example its sides.
    fn scores(
        &self,
        matrices: &[Vec<Vec<Interval>>],
        example: usize,
        place: Option<usize>,
    ) -> Result<Vec<Interval>, Refusal> {
        let mut input: Vec<Interval> = self.model.inputs.row(example).iter().map(|x| Interval::point(*x)).collect();
        for (l, matrix) in matrices.iter().enumerate() {
            let product = |row: &Vec<Interval>| enclosed_sum(row.iter().zip(&input).map(|(w, h)| *w * *h));
            let own: Vec<Interval> = matrix.iter().map(product).collect();
            if l == self.model.widths.len() {
                return Ok(own);
            }
            if let Some(i) = place {
                for (unit, value) in own.iter().enumerate() {
                    let fine = match self.record.sides[l][unit].as_bytes()[i] {
                        b'+' => value.lo > 0.0,
                        b'-' => value.hi < 0.0,
                        _ => value.contains(0.0),
                    };
                    if !fine {
                        let why =
                            format!("⟨w, h⟩ lies in [{:.3e}, {:.3e}] in hidden layer {}", value.lo, value.hi, l + 1);
                        let refusal = Refusal::new(Check::Sides, why).neuron(self.record.units[l][unit]);
                        return Err(refusal.example(example));
                    }
                }
            }
            input = own.iter().map(|value| self.activation(*value)).collect();
        }
        Ok(input)
    }

    /// φ over an interval; φ is increasing.
    fn activation(&self, z: Interval) -> Interval {
        let slope = Interval::point(self.model.slope);
        let at = |x: f64| {
            if x >= 0.0 {
                (1..self.model.power).fold(Interval::point(x), |product, _| product * Interval::point(x))
            } else {
                times(Interval::point(x), slope)
            }
        };
        Interval::new(at(z.lo).lo, at(z.hi).hi)
    }
}
