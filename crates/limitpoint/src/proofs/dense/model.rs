//! The network that a proof is about: dense layers, homogeneous, with margins of two or more classes.

use super::super::ProofError;
use crate::data::{Dataset, Targets};
use crate::intervals::Interval;
use crate::linalg::Matrix;
use crate::models::{Activation, Biases, ModelSpec, OutputScale};

/// A margin: q = Σ c · score of the example, c = ±1.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Margin {
    /// The example.
    pub example: usize,
    /// (output, c).
    pub scores: Vec<(usize, f64)>,
}

/// Data and shape of a dense network.
#[derive(Debug, Clone)]
pub(in super::super) struct DenseModel {
    /// x_i as rows, with a last column of ones if there are biases.
    pub inputs: Matrix,
    /// Hidden units of every layer.
    pub widths: Vec<usize>,
    /// Scores.
    pub outputs: usize,
    /// φ(z) = max(z, 0)^power, or with power 1 max(z, 0) + slope · min(z, 0).
    pub power: u32,
    /// See `power`.
    pub slope: f64,
    /// Which matrices are trained.
    pub trained: Vec<bool>,
    /// All margins.
    pub margins: Vec<Margin>,
    /// The factor of the output.
    pub factor: Interval,
    biases: bool,
}

impl DenseModel {
    /// The network of a description, or why nothing is proven about its kind.
    pub fn new(spec: &ModelSpec, data: &Dataset) -> Result<Self, ProofError> {
        let other = |why: &str| ProofError::Unsupported { why: why.to_owned() };
        let ModelSpec::Network { widths, activation, biases, frozen, output_scale } = spec else {
            return Err(other("the model is no network of dense layers"));
        };
        let Some(&last) = widths.last() else { return Err(other("the network has no hidden layer")) };
        let biases = match biases {
            Biases::None => false,
            Biases::First => true,
            Biases::All => return Err(other("biases in every layer make the network inhomogeneous")),
        };
        let (power, slope) = match activation {
            Activation::Relu => (1, 0.0),
            Activation::LeakyRelu { slope } if (0.0..1.0).contains(slope) => (1, *slope),
            Activation::ReluPower { power } if *power >= 1 => (*power, 0.0),
            _ => {
                return Err(other(
                    "the activation is neither ReLU, nor one of its powers, nor leaky with a slope in [0, 1)",
                ));
            }
        };
        let factor = match output_scale {
            OutputScale::One => Interval::point(1.0),
            OutputScale::MeanField => Interval::point(1.0) / Interval::point(last as f64),
            OutputScale::Factor(factor) => Interval::point(*factor),
        };
        if factor.lo <= 0.0 {
            return Err(other("the factor of the output is not positive"));
        }
        let (margins, outputs) = match &data.targets {
            Targets::Binary(labels) => {
                let margin = |(example, y): (usize, &f64)| Margin { example, scores: vec![(0, *y)] };
                (labels.iter().enumerate().map(margin).collect(), 1)
            }
            Targets::Classes { labels, count } => {
                let mut margins = Vec::new();
                for (example, &label) in labels.iter().enumerate() {
                    let others = (0..*count).filter(|j| *j != label);
                    margins.extend(others.map(|j| Margin { example, scores: vec![(label, 1.0), (j, -1.0)] }));
                }
                (margins, *count)
            }
            Targets::Values(_) => return Err(other("the targets are values")),
        };
        let mut inputs = data.dense().map_err(|error| other(&error.to_string()))?.into_owned();
        if biases {
            let rows = inputs.data.chunks_exact(inputs.cols).flat_map(|row| row.iter().copied().chain([1.0]));
            inputs = Matrix { rows: inputs.rows, cols: inputs.cols + 1, data: rows.collect() };
        }
        if inputs.data.iter().any(|x| !x.is_finite()) {
            return Err(other("an input is not finite"));
        }
        let trained: Vec<bool> = (1..=widths.len() + 1).map(|layer| !frozen.contains(&layer)).collect();
        if trained.iter().all(|trained| !trained) {
            return Err(other("every layer is frozen"));
        }
        Ok(Self { inputs, widths: widths.clone(), outputs, power, slope, trained, margins, factor, biases })
    }

    /// Matrices.
    pub fn layers(&self) -> usize {
        self.trained.len()
    }

    /// How scores grow with the trained weights.
    pub fn degree(&self) -> u32 {
        self.trained
            .iter()
            .enumerate()
            .fold(0, |sum, (l, trained)| u32::from(*trained) + if l == 0 { 0 } else { sum * self.power })
    }

    /// Entries of the flat parameter vector.
    pub fn parameters(&self) -> usize {
        (0..self.layers()).map(|l| self.rows(l) * self.columns(l)).sum()
    }

    fn rows(&self, l: usize) -> usize {
        self.widths.get(l).copied().unwrap_or(self.outputs)
    }

    fn columns(&self, l: usize) -> usize {
        if l == 0 { self.inputs.cols } else { self.widths[l - 1] }
    }

    /// Where entry (row, column) of matrix l lies in the flat vector: weights, biases of the first layer, further layers.
    pub fn position(&self, l: usize, row: usize, column: usize) -> usize {
        let features = self.inputs.cols - usize::from(self.biases);
        if l == 0 {
            return if column < features { row * features + column } else { self.rows(0) * features + row };
        }
        let before: usize = (0..l).map(|k| self.rows(k) * self.columns(k)).sum();
        before + row * self.columns(l) + column
    }

    /// Whether the units of a hidden layer may have no weights at all: those on both sides are trained.
    pub fn may_die(&self, layer: usize) -> bool {
        self.trained[layer] && self.trained[layer + 1]
    }

    /// (layer, row, column) of the entries between live units, in the order of the unknowns; frozen ones included.
    pub fn entries(&self, units: &[Vec<usize>]) -> Vec<(usize, usize, usize)> {
        let mut entries = Vec::new();
        for l in 0..self.layers() {
            let rows = units.get(l).map_or(self.outputs, Vec::len);
            let columns = if l == 0 { self.inputs.cols } else { units[l - 1].len() };
            entries.extend((0..rows).flat_map(|row| (0..columns).map(move |column| (l, row, column))));
        }
        entries
    }

    /// The place in the flat vector of an entry between live units.
    pub fn place(&self, units: &[Vec<usize>], (l, row, column): (usize, usize, usize)) -> usize {
        let row = units.get(l).map_or(row, |units| units[row]);
        let column = if l == 0 { column } else { units[l - 1][column] };
        self.position(l, row, column)
    }

    /// Places of all trained entries in the flat vector.
    pub fn trained_places(&self) -> Vec<usize> {
        let all: Vec<Vec<usize>> = self.widths.iter().map(|width| (0..*width).collect()).collect();
        let entries = self.entries(&all).into_iter();
        entries.filter(|(l, ..)| self.trained[*l]).map(|entry| self.place(&all, entry)).collect()
    }

    /// Whether two margins are the same: equal inputs, equal classes.
    pub fn same(&self, k: usize, m: usize) -> bool {
        let (a, b) = (&self.margins[k], &self.margins[m]);
        a.scores == b.scores && self.inputs.row(a.example) == self.inputs.row(b.example)
    }
}
