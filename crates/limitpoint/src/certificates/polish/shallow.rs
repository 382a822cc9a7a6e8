//! A two-layer network with one output, taken apart into its neurons.
//!
//! ```text
//! q_i(θ) = y_i s Σ_j a_j σ(⟨w_j, x_i⟩),    σ(cz) = cᵏ σ(z) for c > 0
//! ```
//!
//! A bias of the first layer is one more weight, with the constant input 1. Because of the homogeneity only the sign of
//! a_j and the product u_j = |a_j|^{1/k} w_j matter to the scores, and for a given product each norm has a cheapest way
//! to share its size between a_j and w_j. For k = 1:
//!
//! ```text
//! ℓ2   |a_j| = ‖w_j‖₂,   ½‖θ‖² = Σ ‖u_j‖₂            ℓ∞   |a_j| = ‖θ‖,   ‖θ‖² = max ‖u_j‖_∞
//! ℓ1   |a_j| = ‖w_j‖₁,    ‖θ‖  = Σ 2 √‖u_j‖₁
//! ```

use crate::data::{Dataset, Targets};
use crate::linalg::{Matrix, dot, matmul_nt, max_abs, norm2, sum_abs};
use crate::models::{Activation, Biases, ModelSpec, OutputScale};
use crate::norms::NormSpec;

/// The norms for which neurons decouple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ball {
    /// Σ|θ|.
    Diamond,
    /// √Σθ².
    Round,
    /// max|θ|.
    Cube,
}

impl Ball {
    /// The ball of a norm, if it is one of the three.
    pub fn of(norm: &NormSpec) -> Option<Self> {
        match norm.exponent()? {
            1.0 => Some(Self::Diamond),
            2.0 => Some(Self::Round),
            f64::INFINITY => Some(Self::Cube),
            _ => None,
        }
    }

    /// ‖v‖.
    pub fn value(self, v: &[f64]) -> f64 {
        match self {
            Self::Diamond => sum_abs(v),
            Self::Round => norm2(v),
            Self::Cube => max_abs(v),
        }
    }
}

/// The data and the shape of a two-layer network.
#[derive(Debug, Clone)]
pub(super) struct Shallow {
    /// x_i as rows, with a last column of ones if there are biases.
    pub inputs: Matrix,
    /// y_i · s.
    pub signs: Vec<f64>,
    /// σ.
    pub activation: Activation,
    /// Whether the last column of the inputs belongs to biases.
    biases: bool,
    /// Units of the hidden layer, pruned ones included.
    width: usize,
}

/// The neurons that are alive, in the order of the hidden layer.
#[derive(Debug, Clone)]
pub(super) struct Neurons {
    /// Which unit each one is.
    pub units: Vec<usize>,
    /// Signs of a_j.
    pub signs: Vec<f64>,
    /// |a_j|.
    pub outer: Vec<f64>,
    /// w_j as rows, the bias last.
    pub inner: Matrix,
}

impl Shallow {
    /// The network of a specification, unless it has another shape, frozen layers, several outputs or outer biases.
    pub fn new(spec: &ModelSpec, data: &Dataset) -> Option<Self> {
        let ModelSpec::Network { widths, activation, biases, frozen, output_scale } = spec else { return None };
        let (&[width], Targets::Binary(labels)) = (&widths[..], &data.targets) else { return None };
        if *biases == Biases::All || !frozen.is_empty() {
            return None;
        }
        let factor = match output_scale {
            OutputScale::One => 1.0,
            OutputScale::MeanField => 1.0 / width as f64,
            OutputScale::Factor(factor) => *factor,
        };
        let biases = *biases == Biases::First;
        let mut inputs = data.dense().ok()?.into_owned();
        if biases {
            let rows = inputs.data.chunks_exact(inputs.cols).flat_map(|row| row.iter().copied().chain([1.0]));
            inputs = Matrix { rows: inputs.rows, cols: inputs.cols + 1, data: rows.collect() };
        }
        let signs = labels.iter().map(|y| y * factor).collect();
        Some(Self { inputs, signs, activation: *activation, biases, width })
    }

    /// The neurons of `params`, blocks in the order weight, bias, head; those with a_j = 0 or w_j = 0 are left out.
    pub fn read(&self, params: &[f64]) -> Neurons {
        let features = self.inputs.cols - usize::from(self.biases);
        let (hidden, rest) = params.split_at(self.width * features);
        let (bias, head) = rest.split_at(if self.biases { self.width } else { 0 });
        let mut neurons = Neurons {
            units: Vec::new(),
            signs: Vec::new(),
            outer: Vec::new(),
            inner: Matrix { rows: 0, cols: self.inputs.cols, data: Vec::new() },
        };
        for (unit, &outer) in head.iter().enumerate() {
            let weights = &hidden[unit * features..(unit + 1) * features];
            let own = bias.get(unit);
            if outer == 0.0 || weights.iter().chain(own).all(|w| *w == 0.0) {
                continue;
            }
            neurons.units.push(unit);
            neurons.signs.push(outer.signum());
            neurons.outer.push(outer.abs());
            neurons.inner.data.extend(weights.iter().chain(own));
            neurons.inner.rows += 1;
        }
        neurons
    }

    /// The flat vector of these neurons; all others are 0.
    pub fn write(&self, neurons: &Neurons) -> Vec<f64> {
        let features = self.inputs.cols - usize::from(self.biases);
        let head = self.width * self.inputs.cols;
        let mut params = vec![0.0; head + self.width];
        for (j, &unit) in neurons.units.iter().enumerate() {
            let row = neurons.inner.row(j);
            params[unit * features..(unit + 1) * features].copy_from_slice(&row[..features]);
            if self.biases {
                params[self.width * features + unit] = row[features];
            }
            params[head + unit] = neurons.signs[j] * neurons.outer[j];
        }
        params
    }

    /// ⟨w_j, x_i⟩, examples × neurons.
    pub fn preactivations(&self, inner: &Matrix) -> Vec<f64> {
        let mut z = vec![0.0; self.inputs.rows * inner.rows];
        matmul_nt(&mut z, &self.inputs.data, &inner.data, self.inputs.rows, self.inputs.cols, inner.rows);
        z
    }

    /// q_i of neurons with these signs and sizes |a_j|.
    pub fn margins(&self, signs: &[f64], outer: &[f64], inner: &Matrix) -> Vec<f64> {
        let z = self.preactivations(inner);
        let weights: Vec<f64> = signs.iter().zip(outer).map(|(s, a)| s * a).collect();
        let margin = |(z, y): (&[f64], &f64)| {
            let values: Vec<f64> = z.iter().map(|z| self.activation.value(*z)).collect();
            y * dot(&values, &weights)
        };
        z.chunks_exact(inner.rows).zip(&self.signs).map(margin).collect()
    }
}

impl Neurons {
    /// How many.
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// u_j = |a_j|^{1/k} w_j.
    pub fn products(&self, degree: u32) -> Matrix {
        let mut products = self.inner.clone();
        for (j, outer) in self.outer.iter().enumerate() {
            let factor = outer.powf(1.0 / f64::from(degree));
            products.row_mut(j).iter_mut().for_each(|w| *w *= factor);
        }
        products
    }

    /// Keeps the neurons for which `keep` holds.
    pub fn retain(&self, keep: &[bool]) -> Self {
        let pick = |values: &[f64]| -> Vec<f64> {
            values.iter().zip(keep).filter(|(_, keep)| **keep).map(|(value, _)| *value).collect()
        };
        let rows = (0..self.len()).filter(|&j| keep[j]).flat_map(|j| self.inner.row(j).to_vec());
        let data: Vec<f64> = rows.collect();
        Self {
            units: self.units.iter().zip(keep).filter(|(_, keep)| **keep).map(|(unit, _)| *unit).collect(),
            signs: pick(&self.signs),
            outer: pick(&self.outer),
            inner: Matrix { rows: data.len() / self.inner.cols, cols: self.inner.cols, data },
        }
    }

    /// Neurons with the products `products` (k = 1), shared between a_j and w_j in the cheapest way of the norm.
    pub fn balanced(&self, products: &Matrix, ball: Ball) -> Self {
        let mut neurons = Self { inner: products.clone(), ..self.clone() };
        let largest = max_abs(&products.data);
        for j in 0..self.len() {
            let size = match ball {
                Ball::Cube => largest,
                _ => ball.value(products.row(j)),
            };
            neurons.outer[j] = size.sqrt();
            // in the cube a weight at the bound equals |a_j| to the last bit
            let bound = |u: f64| {
                if ball == Ball::Cube && u.abs() == largest { u.signum() * size.sqrt() } else { u / size.sqrt() }
            };
            neurons.inner.row_mut(j).iter_mut().for_each(|u| *u = bound(*u));
        }
        neurons
    }
}
