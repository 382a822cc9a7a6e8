//! KKT points in ℓ∞: the equations of `system_linf`, written down a second time.

use super::super::network::{Side, TwoLayer};
use super::super::record::{CubeNetwork, CubeNeuron, Proof, sides};
use super::super::{Check, Refusal};
use super::inclusion::image;
use super::pieces::{Piece, check_inactive, check_sides};
use super::rank::depends;
use super::{EnclosedNetwork, EnclosedNeuron, Point, is_positive};
use crate::intervals::{Interval, enclosed_dot, enclosed_sum};

/// 2²⁰: inputs that are whole multiples of its inverse are whole numbers here, exactly.
const SCALE: f64 = 1_048_576.0;
/// Whole numbers below this are exact in doubles.
const LARGEST: f64 = 9.0e15;

struct Shape<'a> {
    cube: &'a CubeNetwork,
    /// Sides of every neuron.
    sides: Vec<Vec<Side>>,
    /// Members of every class.
    classes: Vec<Vec<usize>>,
    /// (class, example) of the kinks.
    kinks: Vec<(usize, usize)>,
    rows: Vec<Vec<f64>>,
}

pub(super) fn check(proof: &Proof, cube: &CubeNetwork, network: &TwoLayer) -> Result<Point, Refusal> {
    if network.slope != 0.0 {
        return Err(Refusal::new(Check::Shape, "in ℓ∞ the activation must be ReLU"));
    }
    let shape = Shape::read(proof, cube, network)?;
    let (residual, jacobian) = shape.system(proof);
    let found = image(&proof.midpoint, &proof.radius, &proof.inverse, &residual, &jacobian);
    let z = found.map_err(|(unknown, refusal)| refusal.example(proof.active.get(unknown).copied()))?;
    shape.forces(&z, proof, network)?;
    shape.point(&z, proof, network)
}

impl<'a> Shape<'a> {
    fn read(proof: &Proof, cube: &'a CubeNetwork, network: &TwoLayer) -> Result<Self, Refusal> {
        let refuse = |why: &str, neuron: &CubeNeuron| Err(Refusal::new(Check::Shape, why).neuron(neuron.unit));
        let (examples, inputs) = (proof.active.len(), network.inputs.cols);
        let mut read = Vec::new();
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for (j, neuron) in cube.neurons.iter().enumerate() {
            let Some(own) = sides(&neuron.sides, examples) else {
                return refuse("sides must be one of + - 0 per example", neuron);
            };
            let within = neuron.inner.iter().chain([&neuron.outer]).all(|w| w.abs() <= 1.0);
            if neuron.inner.len() != inputs || !within {
                return refuse("a weight is missing or beyond the bound", neuron);
            }
            let idle = own.iter().all(|side| *side == Side::Off);
            match neuron.class {
                None if idle => {}
                Some(class) if !idle && neuron.outer.abs() == 1.0 && class <= classes.len() => {
                    if class == classes.len() {
                        classes.push(Vec::new());
                    }
                    classes[class].push(j);
                }
                _ => {
                    return refuse(
                        "a neuron is in a class, with an outer weight at the bound, unless it is off everywhere",
                        neuron,
                    );
                }
            }
            read.push(own);
        }
        let bound = |w: f64| if w.abs() == 1.0 { w } else { 0.0 };
        for members in &classes {
            let first = members[0];
            for &j in members {
                let (a, b) = (&cube.neurons[first], &cube.neurons[j]);
                let alike = a.outer == b.outer && a.inner.iter().zip(&b.inner).all(|(x, y)| bound(*x) == bound(*y));
                if read[j] != read[first] || (read[j].contains(&Side::Kink) && !alike) {
                    return refuse(
                        "the neurons of a class do not have the same sides, or not the same weights at the bound",
                        b,
                    );
                }
            }
        }
        let mut kinks = Vec::new();
        for (s, members) in classes.iter().enumerate() {
            kinks.extend((0..examples).filter(|&i| read[members[0]][i] == Side::Kink).map(|i| (s, i)));
        }
        let mut corrected = cube.corrected.clone();
        corrected.sort_unstable();
        corrected.dedup();
        let exists = |(s, k): &(usize, usize)| *s < classes.len() && *k < inputs;
        let unknowns = examples + kinks.len() + corrected.len() + 1;
        if corrected.len() != cube.corrected.len() || !corrected.iter().all(exists) || unknowns != proof.midpoint.len()
        {
            return Err(Refusal::new(Check::Shape, "the unknowns are not those of the neurons"));
        }
        let rows = proof.active.iter().map(|&i| network.signed_row(i)).collect();
        Ok(Self { cube, sides: read, classes, kinks, rows })
    }

    fn side(&self, class: usize, i: usize) -> Side {
        self.sides[self.classes[class][0]][i]
    }

    /// Whether a weight of the class lies inside the bound.
    fn inside(&self, class: usize, k: usize) -> bool {
        self.classes[class].iter().any(|&j| self.cube.neurons[j].inner[k].abs() < 1.0)
    }

    /// (unknown, y_i x_ik) of all that pushes a weight of this class and input.
    fn pushes(&self, class: usize, k: usize) -> Vec<(usize, f64)> {
        let examples = self.rows.len();
        let mut found: Vec<(usize, f64)> =
            (0..examples).filter(|&i| self.side(class, i) == Side::On).map(|i| (i, self.rows[i][k])).collect();
        let kinks = self.kinks.iter().enumerate().filter(|(_, kink)| kink.0 == class);
        found.extend(kinks.map(|(t, kink)| (examples + t, self.rows[kink.1][k])));
        found
    }

    /// The coefficients of forces as whole numbers, if data of a few binary digits allow it.
    fn coefficients(&self, forces: &[(usize, usize)]) -> Option<Vec<Vec<i128>>> {
        let unknowns = self.rows.len() + self.kinks.len();
        let whole = |x: f64| {
            let scaled = x * SCALE;
            (scaled.fract() == 0.0 && scaled.abs() < LARGEST).then_some(scaled as i128)
        };
        let line = |&(s, k): &(usize, usize)| {
            let mut line = vec![0; unknowns];
            for (u, x) in self.pushes(s, k) {
                line[u] = whole(x)?;
            }
            Some(line)
        };
        forces.iter().map(line).collect()
    }

    /// F(x̃) and F′, which is constant.
    fn system(&self, proof: &Proof) -> (Vec<Interval>, Vec<Interval>) {
        let (examples, first) = (self.rows.len(), self.rows.len() + self.kinks.len());
        let (size, last) = (proof.midpoint.len(), proof.midpoint.len() - 1);
        let mut lines: Vec<(Vec<(usize, f64)>, Interval)> = Vec::new();
        for &(s, k) in &self.cube.corrected {
            lines.push((self.pushes(s, k), Interval::ZERO));
        }
        lines.push(((0..examples).map(|i| (i, 1.0)).collect(), Interval::point(-1.0)));
        let given = |class: usize, i: usize| {
            let one = |&j: &usize| {
                let neuron = &self.cube.neurons[j];
                enclosed_dot(&neuron.inner, &self.rows[i]) * Interval::point(neuron.outer)
            };
            enclosed_sum(self.classes[class].iter().map(one))
        };
        let moved = |class: usize, i: usize| {
            let own = self.cube.corrected.iter().enumerate().filter(move |(_, c)| c.0 == class);
            own.map(move |(t, c)| (first + t, self.rows[i][c.1]))
        };
        for i in 0..examples {
            let on: Vec<usize> = (0..self.classes.len()).filter(|&s| self.side(s, i) == Side::On).collect();
            let line = on.iter().flat_map(|&s| moved(s, i)).chain([(last, -1.0)]).collect();
            lines.push((line, enclosed_sum(on.iter().map(|&s| given(s, i)))));
        }
        lines.extend(self.kinks.iter().map(|&(s, i)| (moved(s, i).collect(), given(s, i))));
        let value = |(line, constant): &(Vec<(usize, f64)>, Interval)| {
            let terms = line.iter().map(|(u, x)| Interval::point(proof.midpoint[*u]) * Interval::point(*x));
            enclosed_sum(terms.chain([*constant]))
        };
        let residual = lines.iter().map(value).collect();
        let mut jacobian = Vec::with_capacity(size * lines.len());
        for (line, _) in &lines {
            let mut dense = vec![Interval::ZERO; size];
            line.iter().for_each(|(u, x)| dense[*u] = dense[*u] + Interval::point(*x));
            jacobian.extend(dense);
        }
        (residual, jacobian)
    }

    /// Multipliers are positive, slopes between 0 and 1, weights inside feel no force and those at the bound are pushed outwards.
    fn forces(&self, z: &[Interval], proof: &Proof, network: &TwoLayer) -> Result<(), Refusal> {
        let range = |x: Interval| format!("it lies in [{:.3e}, {:.3e}]", x.lo, x.hi);
        let examples = self.rows.len();
        if let Some(i) = (0..examples).find(|&i| !is_positive(z[i])) {
            return Err(Refusal::new(Check::Multipliers, range(z[i])).example(proof.active[i]));
        }
        for (t, &(s, i)) in self.kinks.iter().enumerate() {
            let slope = z[examples + t];
            if !(slope.lo > 0.0 && slope.hi < z[i].lo) {
                let unit = self.cube.neurons[self.classes[s][0]].unit;
                return Err(Refusal::new(Check::Slopes, range(slope / z[i])).example(proof.active[i]).neuron(unit));
            }
        }
        let pattern = |s: usize| -> Vec<i128> {
            let on = (0..examples).map(|i| i128::from(self.side(s, i) == Side::On));
            on.chain(self.kinks.iter().map(|kink| i128::from(kink.0 == s))).collect()
        };
        for k in 0..network.inputs.cols {
            let kept: Vec<Vec<i128>> = self.cube.corrected.iter().filter(|c| c.1 == k).map(|c| pattern(c.0)).collect();
            for s in 0..self.classes.len() {
                let pushes = self.pushes(s, k);
                let felt = pushes.iter().any(|(_, x)| *x != 0.0);
                if !felt || self.cube.corrected.contains(&(s, k)) {
                    continue;
                }
                let unit = self.cube.neurons[self.classes[s][0]].unit;
                if self.inside(s, k) {
                    // the force is 0 if its pattern depends on patterns of the same input whose force is 0 by an equation,
                    // or if its coefficients do on those of any equations
                    let whole =
                        || depends(&self.coefficients(&self.cube.corrected)?, &self.coefficients(&[(s, k)])?[0]);
                    if depends(&kept, &pattern(s)) != Some(true) && whole() != Some(true) {
                        let why = format!("the force on the weight of input {k} does not follow from the equations");
                        return Err(Refusal::new(Check::Bound, why).neuron(unit));
                    }
                    continue;
                }
                let force = enclosed_sum(pushes.iter().map(|(u, x)| z[*u] * Interval::point(*x)));
                for neuron in self.classes[s].iter().map(|&j| &self.cube.neurons[j]) {
                    let outwards = force * Interval::point(neuron.outer * neuron.inner[k]);
                    let pushed = outwards.lo >= 0.0;
                    if !pushed {
                        let why = format!("the force on the weight of input {k}: {}", range(outwards));
                        return Err(Refusal::new(Check::Bound, why).neuron(neuron.unit));
                    }
                }
            }
        }
        Ok(())
    }

    /// The exact weights, their sides, and the margins.
    fn point(&self, z: &[Interval], proof: &Proof, network: &TwoLayer) -> Result<Point, Refusal> {
        let first = self.rows.len() + self.kinks.len();
        let margin = z[z.len() - 1];
        if !is_positive(margin) {
            return Err(Refusal::new(Check::Separation, "the margin is not positive"));
        }
        let mut neurons = Vec::new();
        for (j, neuron) in self.cube.neurons.iter().enumerate() {
            let mut inner: Vec<Interval> = neuron.inner.iter().map(|w| Interval::point(*w)).collect();
            for (k, weight) in inner.iter_mut().enumerate().filter(|(_, w)| w.magnitude() < 1.0) {
                let Some(class) = neuron.class else { continue };
                let members = &self.classes[class];
                let place = self.cube.corrected.iter().position(|c| *c == (class, k));
                let change = place.map_or(Interval::ZERO, |t| z[first + t]);
                let outer = Interval::point(neuron.outer);
                *weight = if self.sides[j].contains(&Side::Kink) {
                    // equal neurons share the sum
                    let given = |&l: &usize| Interval::point(self.cube.neurons[l].inner[k]) * outer;
                    (enclosed_sum(members.iter().map(given)) + change) / Interval::point(members.len() as f64) * outer
                } else {
                    let free = members.iter().filter(|&&l| self.cube.neurons[l].inner[k].abs() < 1.0).count();
                    *weight + change / Interval::point(free as f64) * outer
                };
                let within = weight.magnitude() <= 1.0;
                if !within {
                    let why = format!("the weight of input {k} lies in [{:.3e}, {:.3e}]", weight.lo, weight.hi);
                    return Err(Refusal::new(Check::Bound, why).neuron(neuron.unit));
                }
            }
            neurons.push(EnclosedNeuron { unit: neuron.unit, outer: Interval::point(neuron.outer), inner });
        }
        let piece = |(j, neuron): (usize, &EnclosedNeuron)| Piece {
            sign: self.cube.neurons[j].outer.signum(),
            gain: neuron.outer.abs(),
            direction: neuron.inner.clone(),
            sides: self.sides[j].clone(),
            unit: neuron.unit,
        };
        let pieces: Vec<Piece> = neurons.iter().enumerate().map(piece).collect();
        check_sides(&pieces, &proof.active, network)?;
        check_inactive(&pieces, &proof.active, network, margin)?;
        Ok(Point {
            network: EnclosedNetwork { neurons, entries: Vec::new() },
            margin,
            // weights and multipliers are at most 1
            radius: z.iter().map(|x| 0.5 * x.width()).fold(0.0, f64::max),
            kinks: self.kinks.iter().map(|kink| self.classes[kink.0].len()).sum(),
            multipliers: Vec::new(),
            directions: Vec::new(),
        })
    }
}
