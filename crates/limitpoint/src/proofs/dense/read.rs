//! From polished weights to the equations of the point next to them.

use super::super::network::Reading;
use super::super::{Check, Refusal};
use super::forces::forces;
use super::model::DenseModel;
use super::record::{DenseNetwork, Turn};
use super::system::{DenseSystem, Slope};
use crate::linalg::{add_scaled, dot, norm2};

/// A turn counts as another one if it has at least this share of its own.
const INDEPENDENT: f64 = 1e-5;

/// The matrices between live units.
struct Live<'a> {
    model: &'a DenseModel,
    units: Vec<Vec<usize>>,
    sizes: Vec<usize>,
    weights: Vec<Vec<f64>>,
}

/// A network that was read: the active examples, what a proof says about it, and a point near the zero.
pub(in super::super) struct Attempted {
    pub active: Vec<usize>,
    pub record: DenseNetwork,
}

/// Reads weights and hands the equations with a point near their zero to `then`.
pub(in super::super) fn attempt<T>(
    model: &DenseModel,
    params: &[f64],
    reading: &Reading,
    then: impl FnOnce(&DenseSystem, &[f64], &Attempted) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let everything: Vec<Vec<usize>> = model.widths.iter().map(|width| (0..*width).collect()).collect();
    let mut live = Live::new(model, everything, params);
    live.bury(params, reading.dead);
    let (smallest, margins) = live.active_margins(reading.active)?;
    let mut active: Vec<usize> = margins.iter().map(|&k| model.margins[k].example).collect();
    active.dedup();
    // a unit that is off on all active examples has no force on it: at the KKT point it is 0
    let mut sides = live.sides(&active, reading.kink);
    let idle = |l: usize, unit: usize| model.slope == 0.0 && sides[l].iter().all(|sides| sides[unit] == '-');
    let kept: Vec<Vec<usize>> = (0..live.units.len())
        .map(|l| {
            let stays = |unit: &usize| !(model.may_die(l) && idle(l, *unit));
            (0..live.units[l].len()).filter(stays).map(|unit| live.units[l][unit]).collect()
        })
        .collect();
    if kept != live.units {
        live = Live::new(model, kept, params);
        sides = live.sides(&active, reading.kink);
    }
    let letters = |l: usize, unit: usize| sides[l].iter().map(|sides| sides[unit]).collect::<String>();
    let record = DenseNetwork {
        margins,
        units: live.units.clone(),
        sides: (0..live.units.len()).map(|l| (0..live.units[l].len()).map(|unit| letters(l, unit)).collect()).collect(),
        turns: Vec::new(),
        frozen: live.frozen(),
    };
    if model.power > 1 && record.sides.iter().flatten().any(|letters| letters.contains('0')) {
        return Err(Refusal::new(Check::Sides, "a unit of a power of ReLU is too near 0 to tell its side"));
    }
    let mut attempted = Attempted { active, record };
    // the size at which the smallest margin is 1
    let factor = smallest.powf(-1.0 / f64::from(model.degree()));
    let reference: Vec<f64> = live.trained().into_iter().map(|w| w * factor).collect();
    attempted.record.turns = turns(model, &attempted, &reference);
    let system = DenseSystem::new(model, &attempted.record, &attempted.active, reference.clone());
    let mut start = reference.clone();
    start.extend(forces(&system, &reference));
    start.extend(attempted.record.turns.iter().map(|_| 0.0));
    then(&system, &start, &attempted)
}

impl<'a> Live<'a> {
    fn new(model: &'a DenseModel, units: Vec<Vec<usize>>, params: &[f64]) -> Self {
        let mut weights = vec![Vec::new(); model.layers()];
        for entry in model.entries(&units) {
            weights[entry.0].push(params[model.place(&units, entry)]);
        }
        let sizes =
            std::iter::once(model.inputs.cols).chain(units.iter().map(Vec::len)).chain([model.outputs]).collect();
        Self { model, units, sizes, weights }
    }

    fn frozen(&self) -> Vec<f64> {
        let frozen = |l: &usize| !self.model.trained[*l];
        (0..self.weights.len()).filter(frozen).flat_map(|l| self.weights[l].clone()).collect()
    }

    fn trained(&self) -> Vec<f64> {
        (0..self.weights.len()).filter(|l| self.model.trained[*l]).flat_map(|l| self.weights[l].clone()).collect()
    }

    /// Leaves out units with next to no weights.
    fn bury(&mut self, params: &[f64], share: f64) {
        let kept: Vec<Vec<usize>> = (0..self.units.len())
            .map(|l| {
                let (from, to) = (self.sizes[l], self.sizes[l + 1]);
                let mass = |unit: usize| {
                    let out = self.weights[l + 1].iter().skip(unit).step_by(to).map(|w| w * w).sum::<f64>().sqrt();
                    out * norm2(&self.weights[l][unit * from..(unit + 1) * from])
                };
                let largest = (0..to).map(mass).fold(0.0, f64::max);
                let stays = |unit: &usize| !self.model.may_die(l) || mass(*unit) > share * largest;
                (0..to).filter(stays).map(|unit| self.units[l][unit]).collect()
            })
            .collect();
        *self = Self::new(self.model, kept, params);
    }

    /// Inputs of every hidden layer's activation, and the scores, for an example.
    fn pass(&self, example: usize) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let (mut h, mut z) = (vec![self.model.inputs.row(example).to_vec()], Vec::new());
        for l in 0..self.weights.len() {
            let rows = self.weights[l].chunks_exact(self.sizes[l].max(1));
            let own: Vec<f64> = rows.map(|row| dot(row, &h[l])).collect();
            let activation = |z: &f64| match self.model.power {
                1 if *z <= 0.0 => self.model.slope * z,
                power => z.max(0.0).powi(power as i32),
            };
            h.push(own.iter().map(activation).collect());
            z.push(own);
        }
        (z, h)
    }

    fn active_margins(&self, share: f64) -> Result<(f64, Vec<usize>), Refusal> {
        let scores: Vec<Vec<f64>> =
            (0..self.model.inputs.rows).map(|i| self.pass(i).0.pop().unwrap_or_default()).collect();
        let value = |k: &usize| -> f64 {
            let margin = &self.model.margins[*k];
            margin.scores.iter().map(|(o, c)| c * scores[margin.example].get(*o).unwrap_or(&f64::NAN)).sum()
        };
        let margins: Vec<f64> = (0..self.model.margins.len()).map(|k| value(&k)).collect();
        let smallest = margins.iter().copied().fold(f64::INFINITY, f64::min);
        if !(smallest > 0.0 && smallest.is_finite()) || margins.iter().any(|q| q.is_nan()) {
            let k = margins.iter().position(|q| q.is_nan() || *q == smallest);
            let example = k.map(|k| self.model.margins[k].example);
            return Err(Refusal::new(Check::Separation, "a margin is not positive").example(example));
        }
        let mut found: Vec<usize> = Vec::new();
        for k in (0..margins.len()).filter(|&k| margins[k] <= smallest * (1.0 + share)) {
            if !found.iter().any(|&m| self.model.same(k, m)) {
                found.push(k);
            }
        }
        Ok((smallest, found))
    }

    /// Letters: layer, active example, unit.
    fn sides(&self, active: &[usize], kink: f64) -> Vec<Vec<Vec<char>>> {
        let mut out = vec![Vec::new(); self.units.len()];
        for &example in active {
            let (z, h) = self.pass(example);
            for (l, out) in out.iter_mut().enumerate() {
                let rows = self.weights[l].chunks_exact(self.sizes[l].max(1));
                let letter = |(row, z): (&[f64], &f64)| match z {
                    _ if z.abs() <= kink * norm2(row) * norm2(&h[l]) => '0',
                    _ if *z > 0.0 => '+',
                    _ => '-',
                };
                out.push(rows.zip(&z[l]).map(letter).collect());
            }
        }
        out
    }
}

impl<'a> DenseSystem<'a> {
    fn new(model: &'a DenseModel, record: &'a DenseNetwork, active: &'a [usize], reference: Vec<f64>) -> Self {
        let sizes: Vec<usize> = std::iter::once(model.inputs.cols)
            .chain(record.units.iter().map(Vec::len))
            .chain([model.outputs])
            .collect();
        let (mut free, mut constants) = (0, record.frozen.iter());
        let mut weights = vec![Vec::new(); model.layers()];
        for (l, ..) in model.entries(&record.units) {
            weights[l].push(if model.trained[l] {
                free += 1;
                Ok(free - 1)
            } else {
                Err(constants.next().copied().unwrap_or(f64::NAN))
            });
        }
        let (mut kinks, first) = (Vec::new(), free + record.margins.len());
        let mut slopes = vec![vec![Vec::new(); active.len()]; record.units.len()];
        for (l, units) in record.sides.iter().enumerate() {
            for (unit, letters) in units.iter().enumerate() {
                for (i, letter) in letters.chars().enumerate() {
                    slopes[l][i].push(match letter {
                        '+' => Slope::On,
                        '-' => Slope::Off,
                        _ => {
                            kinks.push((l, i, unit));
                            Slope::Kink(first + kinks.len() - 1)
                        }
                    });
                }
            }
        }
        Self { model, record, active, sizes, weights, slopes, kinks, free, reference }
    }
}

/// Turns between units on the same sides, as many as are independent.
fn turns(model: &DenseModel, attempted: &Attempted, reference: &[f64]) -> Vec<Turn> {
    let mut record = attempted.record.clone();
    if model.power > 1 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (layer, sides) in record.sides.iter().enumerate().filter(|(layer, _)| model.may_die(*layer)) {
        for a in 0..sides.len() {
            let same = (a + 1..sides.len()).filter(|&b| sides[a] == sides[b]);
            found.extend(same.map(|b| Turn { layer, units: (a, b) }));
        }
    }
    record.turns = found.clone();
    let system = DenseSystem::new(model, &record, &attempted.active, reference.to_vec());
    let vectors: Vec<Vec<f64>> = (0..found.len())
        .map(|g| {
            let mut out = vec![0.0; reference.len()];
            system.generator(g).iter().for_each(|(u, from, sign)| out[*u] = sign * reference[*from]);
            out
        })
        .collect();
    let (mut basis, mut chosen): (Vec<Vec<f64>>, Vec<Turn>) = (Vec::new(), Vec::new());
    for (vector, turn) in vectors.iter().zip(&found) {
        let mut rest = vector.clone();
        // twice, for what rounding leaves
        for unit in basis.iter().chain(&basis) {
            let along = dot(unit, &rest);
            add_scaled(&mut rest, -along, unit);
        }
        let size = norm2(&rest);
        if size > INDEPENDENT * norm2(vector) {
            rest.iter_mut().for_each(|x| *x /= size);
            basis.push(rest);
            chosen.push(*turn);
        }
    }
    chosen
}
