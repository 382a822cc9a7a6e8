//! A dense network of any depth as matrices, with the units that are alive.
//!
//! ```text
//! z_l = W_l h_{l−1},   h_l = φ(z_l),   h_0 = x,   q_k = ⟨c_k, W_L h_{L−1}⟩
//! ```
//!
//! A margin k belongs to one example and weighs its scores by c_k: ±κ for two classes, κ(e_y − e_j) for several. A bias of
//! the first layer is one more column of W_1. Kinks are rounded off for the way to the limit,
//!
//! ```text
//! max(z, 0)  →  ½(z + √(z² + ε²)),
//! ```
//!
//! whose slope at a kink becomes, as ε → 0, the slope that a KKT point has there.

use crate::data::{Dataset, Targets};
use crate::linalg::{Matrix, dot, norm2};
use crate::models::{Activation, Biases, ModelSpec, OutputScale};

/// Most weights: the Hessian is a dense matrix.
const WEIGHTS: usize = 2500;

/// A margin: its example and (output, factor) of the scores that it is made of.
#[derive(Debug, Clone)]
pub(in super::super) struct MarginRow {
    pub example: usize,
    pub scores: Vec<(usize, f64)>,
}

/// Data and shape of a dense network.
#[derive(Debug, Clone)]
pub(in super::super) struct Dense {
    /// x_i as rows, with a last column of ones if there are biases.
    pub inputs: Matrix,
    pub margins: Vec<MarginRow>,
    pub activation: Activation,
    /// Inputs, live units of every hidden layer, outputs.
    pub sizes: Vec<usize>,
    /// First entry of every layer's matrix, and the number of all entries.
    pub offsets: Vec<usize>,
    /// Whether a layer is trained.
    pub trained: Vec<bool>,
    /// Live units of every hidden layer.
    pub units: Vec<Vec<usize>>,
    widths: Vec<usize>,
    biases: bool,
}

impl Dense {
    /// The network of a specification; nothing if it is of another kind or too large.
    pub fn new(spec: &ModelSpec, data: &Dataset) -> Option<Self> {
        let ModelSpec::Network { widths, activation, biases, frozen, output_scale } = spec else { return None };
        if *biases == Biases::All || widths.is_empty() {
            return None;
        }
        let factor = match output_scale {
            OutputScale::One => 1.0,
            OutputScale::MeanField => 1.0 / *widths.last()? as f64,
            OutputScale::Factor(factor) => *factor,
        };
        let (margins, outputs) = match &data.targets {
            Targets::Binary(labels) => {
                let row = |(example, y): (usize, &f64)| MarginRow { example, scores: vec![(0, y * factor)] };
                (labels.iter().enumerate().map(row).collect(), 1)
            }
            Targets::Classes { labels, count } => {
                let row = |example: usize, j: usize| MarginRow {
                    example,
                    scores: vec![(labels[example], factor), (j, -factor)],
                };
                let rows =
                    (0..labels.len()).flat_map(|i| (0..*count).filter(move |j| *j != labels[i]).map(move |j| (i, j)));
                (rows.map(|(i, j)| row(i, j)).collect(), *count)
            }
            Targets::Values(_) => return None,
        };
        let biases = *biases == Biases::First;
        let mut inputs = data.dense().ok()?.into_owned();
        if biases {
            let rows = inputs.data.chunks_exact(inputs.cols).flat_map(|row| row.iter().copied().chain([1.0]));
            inputs = Matrix { rows: inputs.rows, cols: inputs.cols + 1, data: rows.collect() };
        }
        let mut network = Self {
            inputs,
            margins,
            activation: *activation,
            sizes: Vec::new(),
            offsets: Vec::new(),
            trained: (1..=widths.len() + 1).map(|layer| !frozen.contains(&layer)).collect(),
            units: widths.iter().map(|width| (0..*width).collect()).collect(),
            widths: widths.clone(),
            biases,
        };
        network.reshape(outputs);
        (network.len() <= WEIGHTS).then_some(network)
    }

    fn reshape(&mut self, outputs: usize) {
        self.sizes =
            std::iter::once(self.inputs.cols).chain(self.units.iter().map(Vec::len)).chain([outputs]).collect();
        self.offsets = vec![0];
        for l in 0..self.layers() {
            self.offsets.push(self.offsets[l] + self.sizes[l] * self.sizes[l + 1]);
        }
    }

    /// Matrices.
    pub fn layers(&self) -> usize {
        self.sizes.len() - 1
    }

    /// Entries of all matrices.
    pub fn len(&self) -> usize {
        *self.offsets.last().unwrap_or(&0)
    }

    /// How the scores grow with the trained weights.
    pub fn degree(&self) -> f64 {
        let step = |sum: f64, trained: &bool| f64::from(u8::from(*trained)) + sum;
        let power = f64::from(self.activation.degree());
        self.trained.iter().enumerate().fold(0.0, |sum, (l, trained)| {
            let passed = if l == 0 { sum } else { sum * power };
            step(passed, trained)
        })
    }

    /// Row `unit` of W_l, from 0.
    pub fn row<'a>(&self, theta: &'a [f64], l: usize, unit: usize) -> &'a [f64] {
        let start = self.offsets[l] + unit * self.sizes[l];
        &theta[start..start + self.sizes[l]]
    }

    /// The layer of an entry.
    fn layer_of(&self, entry: usize) -> usize {
        self.offsets.iter().rposition(|offset| *offset <= entry).unwrap_or(0).min(self.layers() - 1)
    }

    /// Entries of trained layers.
    pub fn trained_entries(&self) -> Vec<usize> {
        (0..self.len()).filter(|&entry| self.trained[self.layer_of(entry)]).collect()
    }

    /// Where entry (layer, row, column) of the matrices lies in the flat vector.
    fn position(&self, l: usize, row: usize, column: usize) -> usize {
        let features = self.inputs.cols - usize::from(self.biases);
        let width = |l: usize| if l < self.widths.len() { self.widths[l] } else { self.sizes[l + 1] };
        if l == 0 {
            let weights = width(0) * features;
            return if column < features { row * features + column } else { weights + row };
        }
        let before: usize = width(0) * self.inputs.cols + (1..l).map(|k| width(k) * width(k - 1)).sum::<usize>();
        before + row * width(l - 1) + column
    }

    fn positions(&self) -> Vec<usize> {
        let mut found = Vec::with_capacity(self.len());
        for l in 0..self.layers() {
            for row in 0..self.sizes[l + 1] {
                let unit = self.units.get(l).map_or(row, |units| units[row]);
                for column in 0..self.sizes[l] {
                    let from = if l == 0 { column } else { self.units[l - 1][column] };
                    found.push(self.position(l, unit, from));
                }
            }
        }
        found
    }

    /// The entries of live units of a flat vector.
    pub fn read(&self, params: &[f64]) -> Vec<f64> {
        self.positions().into_iter().map(|at| params[at]).collect()
    }

    /// The flat vector of these entries, as long as `length`; all others are 0.
    pub fn write(&self, theta: &[f64], length: usize) -> Vec<f64> {
        let mut params = vec![0.0; length];
        self.positions().into_iter().zip(theta).for_each(|(at, w)| params[at] = *w);
        params
    }

    /// Whether a layer's units may be left out: all that belongs to them is trained.
    fn prunable(&self, l: usize) -> bool {
        self.trained[l] && self.trained[l + 1]
    }

    /// ‖incoming‖ · ‖outgoing‖ of every unit of a hidden layer.
    fn masses(&self, theta: &[f64], l: usize) -> Vec<f64> {
        let column = |unit: usize| -> f64 {
            (0..self.sizes[l + 2]).map(|k| self.row(theta, l + 1, k)[unit].powi(2)).sum::<f64>().sqrt()
        };
        (0..self.sizes[l + 1]).map(|unit| norm2(self.row(theta, l, unit)) * column(unit)).collect()
    }

    /// The network without units whose mass is at most `share` of the largest in their layer; nothing if all stay.
    pub fn pruned(&self, theta: &[f64], share: f64) -> Option<(Self, Vec<f64>)> {
        let keep: Vec<Vec<bool>> = (0..self.units.len())
            .map(|l| {
                let masses = self.masses(theta, l);
                let largest = masses.iter().copied().fold(0.0, f64::max);
                masses.iter().map(|mass| !self.prunable(l) || *mass > share * largest).collect()
            })
            .collect();
        if keep.iter().flatten().all(|keep| *keep) {
            return None;
        }
        let params = self.write(theta, self.full_length());
        let mut network = self.clone();
        for (units, keep) in network.units.iter_mut().zip(&keep) {
            let mut keep = keep.iter();
            units.retain(|_| keep.next().copied().unwrap_or(true));
        }
        network.reshape(*self.sizes.last()?);
        let theta = network.read(&params);
        Some((network, theta))
    }

    /// Entries of the flat vector.
    fn full_length(&self) -> usize {
        let sizes: Vec<usize> = std::iter::once(self.inputs.cols)
            .chain(self.widths.iter().copied())
            .chain(self.sizes.last().copied())
            .collect();
        sizes.windows(2).map(|pair| pair[0] * pair[1]).sum()
    }

    /// Every unit of trained layers with incoming and outgoing weights of the same length, which is the cheapest in ℓ2.
    pub fn balance(&self, theta: &mut [f64]) {
        // units of one layer share weights with those of the next, so that it takes some rounds
        for _ in 0..30 {
            for l in (0..self.units.len()).filter(|&l| self.prunable(l) && self.activation.degree() == 1) {
                for unit in 0..self.sizes[l + 1] {
                    let incoming = norm2(self.row(theta, l, unit));
                    let at = |k: usize| self.offsets[l + 1] + k * self.sizes[l + 1] + unit;
                    let outgoing = (0..self.sizes[l + 2]).map(|k| theta[at(k)].powi(2)).sum::<f64>().sqrt();
                    if incoming > 0.0 && outgoing > 0.0 {
                        let factor = (outgoing / incoming).sqrt();
                        let start = self.offsets[l] + unit * self.sizes[l];
                        theta[start..start + self.sizes[l]].iter_mut().for_each(|w| *w *= factor);
                        (0..self.sizes[l + 2]).for_each(|k| theta[at(k)] /= factor);
                    }
                }
            }
        }
    }

    /// φ, φ′ and φ″ with the kink rounded off.
    pub fn rounded(&self, z: f64, epsilon: f64) -> (f64, f64, f64) {
        if let Some((left, right)) = self.activation.kink() {
            let root = z.hypot(epsilon);
            let (jump, tilt) = (right - left, if root > 0.0 { z / root } else { -1.0 });
            let bend = if epsilon > 0.0 { 0.5 * (epsilon / root).powi(2) / root } else { 0.0 };
            return (left * z + 0.5 * jump * (z + root), left + 0.5 * jump * (1.0 + tilt), jump * bend);
        }
        let bend = match self.activation {
            Activation::ReluPower { power } if z > 0.0 => f64::from(power * (power - 1)) * z.powi(power as i32 - 2),
            Activation::Quadratic => 2.0,
            _ => 0.0,
        };
        (self.activation.value(z), self.activation.slope(z), bend)
    }

    /// The margins with kinks rounded off by ε_l.
    pub fn margins(&self, theta: &[f64], epsilon: &[f64]) -> Vec<f64> {
        let mut h = self.inputs.data.clone();
        for l in 0..self.layers() {
            let last = l + 1 == self.layers();
            h = (0..self.inputs.rows * self.sizes[l + 1])
                .map(|k| {
                    let (i, unit) = (k / self.sizes[l + 1], k % self.sizes[l + 1]);
                    let z = dot(self.row(theta, l, unit), &h[i * self.sizes[l]..(i + 1) * self.sizes[l]]);
                    if last { z } else { self.rounded(z, epsilon[l]).0 }
                })
                .collect();
        }
        self.margins_of(&h)
    }

    /// The margins of scores, examples × outputs.
    pub fn margins_of(&self, scores: &[f64]) -> Vec<f64> {
        let outputs = self.sizes[self.layers()];
        let value = |row: &MarginRow| row.scores.iter().map(|(o, c)| c * scores[row.example * outputs + o]).sum();
        self.margins.iter().map(value).collect()
    }
}
