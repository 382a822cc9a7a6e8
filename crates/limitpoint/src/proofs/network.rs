//! The network that a proof is about: two layers, one score, as a list of neurons.
//!
//! ```text
//! q_i(θ) = κ y_i Σ_j a_j φ(⟨w_j, x_i⟩),     φ(z) = max(z, 0) + α min(z, 0),   0 ≤ α < 1
//! ```
//!
//! κ is the factor in front of the output; it multiplies every margin and moves no KKT point, so that everything is
//! proven for κ = 1 and multiplied at the end. A bias of the first layer is one more weight with the constant input 1.

use super::{Check, ProofError, Refusal};
use crate::data::{Dataset, Targets};
use crate::intervals::Interval;
use crate::linalg::{Matrix, dot, norm2};
use crate::models::{Activation, Biases, ModelSpec, OutputScale};

/// Data and shape of a two-layer network with one score.
#[derive(Debug, Clone)]
pub(super) struct TwoLayer {
    /// x_i as rows, with a last column of ones if there are biases.
    pub inputs: Matrix,
    /// y_i = ±1.
    pub labels: Vec<f64>,
    /// α.
    pub slope: f64,
    /// κ.
    pub factor: Interval,
    /// Hidden units.
    pub width: usize,
    biases: bool,
}

/// A neuron with both weights: a and w.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Neuron {
    /// Which hidden unit, from 0.
    pub unit: usize,
    /// a.
    pub outer: f64,
    /// w, the bias last.
    pub inner: Vec<f64>,
}

impl TwoLayer {
    /// The network of a description, or why nothing is proven about its kind.
    pub fn new(spec: &ModelSpec, data: &Dataset) -> Result<Self, ProofError> {
        let other = |why: &str| ProofError::Unsupported { why: why.to_owned() };
        let ModelSpec::Network { widths, activation, biases, frozen, output_scale } = spec else {
            return Err(other("the model is no network of dense layers"));
        };
        let &[width] = &widths[..] else {
            return Err(other("the network has not exactly one hidden layer"));
        };
        let Targets::Binary(labels) = &data.targets else {
            return Err(other("the targets are not two classes"));
        };
        if !frozen.is_empty() {
            return Err(other("the network has frozen layers"));
        }
        let biases = match biases {
            Biases::None => false,
            Biases::First => true,
            Biases::All => return Err(other("biases in every layer make the network inhomogeneous")),
        };
        let slope = match activation {
            Activation::Relu | Activation::ReluPower { power: 1 } => 0.0,
            Activation::LeakyRelu { slope } if (0.0..1.0).contains(slope) => *slope,
            _ => return Err(other("the activation is neither ReLU nor leaky ReLU with a slope in [0, 1)")),
        };
        let factor = match output_scale {
            OutputScale::One => Interval::point(1.0),
            OutputScale::MeanField => Interval::point(1.0) / Interval::point(width as f64),
            OutputScale::Factor(factor) => Interval::point(*factor),
        };
        if factor.lo <= 0.0 {
            return Err(other("the factor of the output is not positive"));
        }
        let mut inputs = data.dense().map_err(|error| other(&error.to_string()))?.into_owned();
        if biases {
            let rows = inputs.data.chunks_exact(inputs.cols).flat_map(|row| row.iter().copied().chain([1.0]));
            inputs = Matrix { rows: inputs.rows, cols: inputs.cols + 1, data: rows.collect() };
        }
        if inputs.data.iter().any(|x| !x.is_finite()) {
            return Err(other("an input is not finite"));
        }
        Ok(Self { inputs, labels: labels.clone(), slope, factor, width, biases })
    }

    /// Entries of the flat parameter vector.
    pub fn parameters(&self) -> usize {
        self.width * (self.inputs.cols + 1)
    }

    /// All neurons of a flat vector: weights, biases, head.
    pub fn read(&self, params: &[f64]) -> Vec<Neuron> {
        let features = self.inputs.cols - usize::from(self.biases);
        let head = self.width * self.inputs.cols;
        let neuron = |unit: usize| {
            let mut inner = params[unit * features..(unit + 1) * features].to_vec();
            inner.extend(self.biases.then(|| params[self.width * features + unit]));
            Neuron { unit, outer: params[head + unit], inner }
        };
        (0..self.width).map(neuron).collect()
    }

    /// The flat vector of these neurons; all others are 0.
    pub fn write(&self, neurons: &[Neuron]) -> Vec<f64> {
        let features = self.inputs.cols - usize::from(self.biases);
        let mut params = vec![0.0; self.parameters()];
        for Neuron { unit, outer, inner } in neurons {
            params[unit * features..(unit + 1) * features].copy_from_slice(&inner[..features]);
            if self.biases {
                params[self.width * features + unit] = inner[features];
            }
            params[self.width * self.inputs.cols + unit] = *outer;
        }
        params
    }

    /// φ(z).
    pub fn activation(&self, z: f64) -> f64 {
        if z > 0.0 { z } else { self.slope * z }
    }

    /// y_i Σ_j a_j φ(⟨w_j, x_i⟩), in floating point and without κ.
    pub fn margins(&self, neurons: &[Neuron]) -> Vec<f64> {
        let score = |x: &[f64]| -> f64 {
            neurons.iter().map(|neuron| neuron.outer * self.activation(dot(&neuron.inner, x))).sum()
        };
        (0..self.inputs.rows).map(|i| self.labels[i] * score(self.inputs.row(i))).collect()
    }

    /// y_i x_i.
    pub fn signed_row(&self, example: usize) -> Vec<f64> {
        self.inputs.row(example).iter().map(|x| self.labels[example] * x).collect()
    }
}

/// Where on the kink of φ a neuron is, for one example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// ⟨w, x⟩ < 0.
    Off,
    /// ⟨w, x⟩ = 0.
    Kink,
    /// ⟨w, x⟩ > 0.
    On,
}

/// How a floating-point network is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    /// Margins within this share of the smallest are active.
    pub active: f64,
    /// |⟨w, x⟩| below this share of ‖w‖‖x‖ is a kink.
    pub kink: f64,
    /// Neurons with |a|‖w‖ below this share of the largest are dead.
    pub dead: f64,
}

/// The readings that are tried, the likeliest first: polished weights are good to about 10⁻⁸.
pub(super) const READINGS: [Reading; 6] = [
    Reading { active: 1e-8, kink: 1e-9, dead: 1e-12 },
    Reading { active: 1e-10, kink: 1e-11, dead: 1e-14 },
    Reading { active: 1e-7, kink: 1e-8, dead: 1e-11 },
    Reading { active: 1e-6, kink: 1e-7, dead: 1e-10 },
    Reading { active: 1e-8, kink: 1e-6, dead: 1e-10 },
    Reading { active: 1e-5, kink: 1e-6, dead: 1e-9 },
];

/// The active examples of a network and the sides its neurons are on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Active {
    /// One of every set of identical active examples.
    pub examples: Vec<usize>,
    /// The smallest margin, for κ = 1.
    pub smallest: f64,
    /// Neurons that are not dead.
    pub live: Vec<Neuron>,
    /// Their sides on the active examples.
    pub sides: Vec<Vec<Side>>,
}

impl Active {
    /// Reads a network that separates the data.
    pub fn read(network: &TwoLayer, neurons: &[Neuron], reading: &Reading) -> Result<Self, Refusal> {
        let margins = network.margins(neurons);
        let smallest = margins.iter().copied().fold(f64::INFINITY, f64::min);
        if !(smallest > 0.0 && smallest.is_finite()) {
            let example = margins.iter().position(|q| *q == smallest || q.is_nan());
            return Err(Refusal::new(Check::Separation, "a margin is not positive").example(example));
        }
        let mut examples: Vec<usize> = Vec::new();
        for i in (0..margins.len()).filter(|&i| margins[i] <= smallest * (1.0 + reading.active)) {
            if !examples.iter().any(|&k| network.same(i, k)) {
                examples.push(i);
            }
        }
        let mass = |neuron: &Neuron| neuron.outer.abs() * norm2(&neuron.inner);
        let largest = neurons.iter().map(mass).fold(0.0, f64::max);
        let live: Vec<Neuron> = neurons.iter().filter(|n| mass(n) > reading.dead * largest).cloned().collect();
        let side = |neuron: &Neuron, example: usize| {
            let x = network.inputs.row(example);
            let (z, size) = (dot(&neuron.inner, x), norm2(&neuron.inner) * norm2(x));
            match z {
                _ if z.abs() <= reading.kink * size => Side::Kink,
                _ if z > 0.0 => Side::On,
                _ => Side::Off,
            }
        };
        let sides = live.iter().map(|neuron| examples.iter().map(|&i| side(neuron, i)).collect()).collect();
        Ok(Self { examples, smallest, live, sides })
    }
}

impl TwoLayer {
    /// Whether two examples are the same, label included.
    pub fn same(&self, i: usize, k: usize) -> bool {
        self.labels[i] == self.labels[k] && self.inputs.row(i) == self.inputs.row(k)
    }
}
