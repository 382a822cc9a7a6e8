//! The equations of a KKT point of a dense network, with their derivatives along all unknowns at once.

use super::super::number::Number;
use super::super::system::{System, Unknown};
use super::model::DenseModel;
use super::record::DenseNetwork;

/// The slope of a unit on an example.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) enum Slope {
    On,
    Off,
    /// The unknown that it is.
    Kink(usize),
}

/// The system, see the top of the module.
pub(in super::super) struct DenseSystem<'a> {
    pub model: &'a DenseModel,
    pub record: &'a DenseNetwork,
    /// Active examples.
    pub active: &'a [usize],
    /// Units between which every matrix leads: inputs, live units, outputs.
    pub sizes: Vec<usize>,
    /// Unknown or constant of every entry, matrix by matrix.
    pub weights: Vec<Vec<Result<usize, f64>>>,
    /// Slopes: layer, example, unit.
    pub slopes: Vec<Vec<Vec<Slope>>>,
    /// (layer, example, unit) of every kink.
    pub kinks: Vec<(usize, usize, usize)>,
    /// Unknown weights.
    pub free: usize,
    /// θ̃, for the turns.
    pub reference: Vec<f64>,
}

/// A value with its derivatives along all unknowns.
#[derive(Clone)]
struct Moving<N> {
    value: N,
    along: Along<N>,
}

/// Derivatives along all unknowns: 0, that of an unknown itself, or any.
#[derive(Clone)]
enum Along<N> {
    Still,
    Unknown(usize, usize),
    All(Vec<N>),
}

impl<N: Number> Along<N> {
    fn all(self, size: usize) -> Vec<N> {
        match self {
            Self::Still => vec![N::zero(); size],
            Self::Unknown(..) => {
                let mut out = vec![N::zero(); size];
                self.add_to(&mut out, N::exact(1.0));
                out
            }
            Self::All(all) => all,
        }
    }

    /// out += factor · self.
    fn add_to(&self, out: &mut [N], factor: N) {
        match self {
            Self::Still => {}
            Self::Unknown(at, _) => out[*at] = out[*at] + factor,
            Self::All(all) => out.iter_mut().zip(all).for_each(|(to, by)| *to = *to + factor * *by),
        }
    }

    fn size(&self) -> Option<usize> {
        match self {
            Self::Still => None,
            Self::Unknown(_, size) => Some(*size),
            Self::All(all) => Some(all.len()),
        }
    }
}

impl<N: Number> Moving<N> {
    fn still(value: N) -> Self {
        Self { value, along: Along::Still }
    }

    fn unknown(z: &[N], at: usize) -> Self {
        Self { value: z[at], along: Along::Unknown(at, z.len()) }
    }

    /// self += a · b.
    fn add_product(&mut self, a: &Self, b: &Self) {
        self.value = self.value + a.value * b.value;
        for (factor, other) in [(a.value, b), (b.value, a)] {
            if let Some(size) = other.along.size() {
                let mut own = std::mem::replace(&mut self.along, Along::Still).all(size);
                other.along.add_to(&mut own, factor);
                self.along = Along::All(own);
            }
        }
    }

    fn product(a: &Self, b: &Self) -> Self {
        let mut out = Self::still(N::zero());
        out.add_product(a, b);
        out
    }

    fn power(&self, exponent: u32) -> Self {
        (0..exponent).fold(Self::still(N::exact(1.0)), |product, _| Self::product(&product, self))
    }
}

impl DenseSystem<'_> {
    fn weight<N: Number>(&self, z: &[N], l: usize, at: usize, moving: bool) -> Moving<N> {
        match self.weights[l][at] {
            Ok(u) if moving => Moving::unknown(z, u),
            Ok(u) => Moving::still(z[u]),
            Err(constant) => Moving::still(N::exact(constant)),
        }
    }

    fn slope<N: Number>(&self, z: &[N], slope: Slope, moving: bool) -> Moving<N> {
        match slope {
            Slope::On => Moving::still(N::exact(1.0)),
            Slope::Off => Moving::still(N::exact(self.model.slope)),
            Slope::Kink(u) if moving => Moving::unknown(z, u),
            Slope::Kink(u) => Moving::still(z[u]),
        }
    }

    /// All equations, with derivatives if `moving`.
    fn evaluate<N: Number>(&self, z: &[N], moving: bool) -> Vec<Moving<N>> {
        let layers = self.model.layers();
        let zero = || Moving::still(N::zero());
        let weights: Vec<Vec<Moving<N>>> =
            (0..layers).map(|l| (0..self.weights[l].len()).map(|at| self.weight(z, l, at, moving)).collect()).collect();
        let mut forces: Vec<Moving<N>> = (0..self.free).map(|_| zero()).collect();
        let mut margins: Vec<Moving<N>> = self.record.margins.iter().map(|_| zero()).collect();
        let mut kinks: Vec<Moving<N>> = self.kinks.iter().map(|_| zero()).collect();
        for (i, &example) in self.active.iter().enumerate() {
            let inputs = self.model.inputs.row(example).iter().map(|x| Moving::still(N::exact(*x))).collect();
            let mut h: Vec<Vec<Moving<N>>> = vec![inputs];
            let mut derivatives: Vec<Vec<Moving<N>>> = Vec::new();
            for l in 0..layers {
                let (from, to) = (self.sizes[l], self.sizes[l + 1]);
                let mut next = Vec::new();
                let mut own = Vec::new();
                for unit in 0..to {
                    let mut sum = zero();
                    (0..from).for_each(|k| sum.add_product(&weights[l][unit * from + k], &h[l][k]));
                    if l + 1 == layers {
                        next.push(sum);
                        continue;
                    }
                    let side = self.slopes[l][i][unit];
                    if let Slope::Kink(_) = side
                        && let Some(at) = self.kinks.iter().position(|kink| *kink == (l, i, unit))
                    {
                        kinks[at] = sum.clone();
                    }
                    let (value, derivative) = match (self.model.power, side) {
                        (1, _) => {
                            let slope = self.slope(z, side, moving);
                            (Moving::product(&slope, &sum), slope)
                        }
                        (power, Slope::On) => {
                            let below = sum.power(power - 1);
                            let factor = Moving::still(N::exact(f64::from(power)));
                            (Moving::product(&below, &sum), Moving::product(&factor, &below))
                        }
                        _ => (zero(), zero()),
                    };
                    next.push(value);
                    own.push(derivative);
                }
                h.push(next);
                derivatives.push(own);
            }
            // adjoints of Σ λ q, from the scores down
            let mut delta: Vec<Moving<N>> = (0..self.model.outputs).map(|_| zero()).collect();
            for (k, &margin) in self.record.margins.iter().enumerate() {
                let own = &self.model.margins[margin];
                if own.example != example {
                    continue;
                }
                let multiplier =
                    if moving { Moving::unknown(z, self.free + k) } else { Moving::still(z[self.free + k]) };
                for &(output, c) in &own.scores {
                    let c = Moving::still(N::exact(c));
                    delta[output].add_product(&c, &multiplier);
                    margins[k].add_product(&c, &h[layers][output]);
                }
            }
            for l in (0..layers).rev() {
                let from = self.sizes[l];
                for (unit, delta) in delta.iter().enumerate() {
                    for (k, h) in h[l].iter().enumerate() {
                        if let Ok(u) = self.weights[l][unit * from + k] {
                            forces[u].add_product(delta, h);
                        }
                    }
                }
                if l > 0 {
                    let signal = |k: usize| {
                        let mut sum = zero();
                        delta.iter().enumerate().for_each(|(j, d)| sum.add_product(d, &weights[l][j * from + k]));
                        Moving::product(&sum, &derivatives[l - 1][k])
                    };
                    delta = (0..from).map(signal).collect();
                }
            }
        }
        let minus = Moving::still(N::exact(-1.0));
        let one = Moving::still(N::exact(1.0));
        let turned = self.free + self.record.margins.len() + self.kinks.len();
        let mut out: Vec<Moving<N>> = Vec::new();
        for (u, force) in forces.iter().enumerate() {
            let mut own = if moving { Moving::unknown(z, u) } else { Moving::still(z[u]) };
            own.add_product(&minus, force);
            out.push(own);
        }
        for g in 0..self.record.turns.len() {
            let eta = if moving { Moving::unknown(z, turned + g) } else { Moving::still(z[turned + g]) };
            for (u, from, sign) in self.generator(g) {
                let other = if moving { Moving::unknown(z, from) } else { Moving::still(z[from]) };
                out[u].add_product(&Moving::product(&eta, &other), &Moving::still(N::exact(sign)));
            }
        }
        for mut margin in margins {
            margin.add_product(&minus, &one);
            out.push(margin);
        }
        out.extend(kinks);
        for g in 0..self.record.turns.len() {
            let mut sum = zero();
            for (u, from, sign) in self.generator(g) {
                let other = if moving { Moving::unknown(z, u) } else { Moving::still(z[u]) };
                sum.add_product(&Moving::still(N::exact(sign * self.reference[from])), &other);
            }
            out.push(sum);
        }
        out
    }

    /// (G θ)_u = sign · θ_from, as a list.
    pub fn generator(&self, g: usize) -> Vec<(usize, usize, f64)> {
        let turn = self.record.turns[g];
        let (l, (a, b)) = (turn.layer, turn.units);
        let mut pairs = Vec::new();
        let mut pair = |first: Result<usize, f64>, second: Result<usize, f64>| {
            if let (Ok(first), Ok(second)) = (first, second) {
                pairs.extend([(first, second, -1.0), (second, first, 1.0)]);
            }
        };
        let (from, to, next) = (self.sizes[l], self.sizes[l + 1], self.sizes[l + 2]);
        (0..from).for_each(|k| pair(self.weights[l][a * from + k], self.weights[l][b * from + k]));
        (0..next).for_each(|k| pair(self.weights[l + 1][k * to + a], self.weights[l + 1][k * to + b]));
        pairs
    }
}

impl System for DenseSystem<'_> {
    fn size(&self) -> usize {
        self.free + self.record.margins.len() + self.kinks.len() + self.record.turns.len()
    }

    fn unknown(&self, k: usize) -> Unknown {
        let margins = self.free..self.free + self.record.margins.len();
        let kinks = margins.end..margins.end + self.kinks.len();
        let place = |margin: usize| {
            self.active.iter().position(|example| *example == self.model.margins[self.record.margins[margin]].example)
        };
        match k {
            k if k < self.free => Unknown { what: "a weight", example: None, bundle: None },
            k if margins.contains(&k) => {
                Unknown { what: "the multiplier of the example", example: place(k - margins.start), bundle: None }
            }
            k if kinks.contains(&k) => {
                let (_, example, _) = self.kinks[k - kinks.start];
                Unknown { what: "the slope at a kink of the example", example: Some(example), bundle: None }
            }
            _ => Unknown { what: "a turn", example: None, bundle: None },
        }
    }

    fn residual<N: Number>(&self, z: &[N]) -> Vec<N> {
        self.evaluate(z, false).into_iter().map(|line| line.value).collect()
    }

    fn jacobian<N: Number>(&self, z: &[N]) -> Vec<N> {
        self.evaluate(z, true).into_iter().flat_map(|line| line.along.all(z.len())).collect()
    }
}
