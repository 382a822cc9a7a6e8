//! Diagonal linear networks.

use super::{DegreeGroup, Homogeneity, Model, ModelError, choose};
use crate::linalg::Matrix;
use crate::params::ParamLayout;

/// f(x) = Σₖ xₖ Πₘ θₘₖ: a linear model whose weight is a product of `factors` vectors, u⊙v for two.
///
/// Homogeneous of degree `factors`. Gradient descent on it acts on the product like a mirror map on a linear model; two
/// factors give hyperbolic entropy (C.reparam, B Section 4).
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::models::{DiagonalNetwork, Model};
/// let mut model = DiagonalNetwork::new(&Matrix::from_rows(&[&[1.0, 2.0]]), 2)?;
/// assert_eq!(model.scores(&[3.0, 5.0, 7.0, 11.0]), [3.0 * 7.0 + 2.0 * 5.0 * 11.0]);
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
pub struct DiagonalNetwork {
    layout: ParamLayout,
    homogeneity: Homogeneity,
    inputs: Matrix,
    rows: Vec<usize>,
    factors: usize,
    weight: Vec<f64>,
    scores: Vec<f64>,
}

impl DiagonalNetwork {
    /// Binds a network of `factors` ≥ 1 vectors to its inputs.
    pub fn new(inputs: &Matrix, factors: usize) -> Result<Self, ModelError> {
        if inputs.rows == 0 || inputs.cols == 0 {
            return Err(ModelError::EmptyInputs { rows: inputs.rows, cols: inputs.cols });
        }
        if !(1..=16).contains(&factors) {
            return Err(ModelError::OutOfRange {
                what: "the number of factors",
                value: factors as f64,
                range: "1 to 16",
            });
        }
        let names: Vec<String> = (1..=factors).map(|m| format!("factor{m}")).collect();
        let layout = ParamLayout::new(names.iter().map(|name| (name.as_str(), inputs.cols, 1)))?;
        let groups = (0..factors).map(|m| DegreeGroup { blocks: vec![m], degree: 1.0 }).collect();
        Ok(Self {
            layout,
            homogeneity: Homogeneity::of_groups(groups),
            inputs: inputs.clone(),
            rows: (0..inputs.rows).collect(),
            factors,
            weight: vec![0.0; inputs.cols],
            scores: vec![0.0; inputs.rows],
        })
    }

    /// ∂/∂θₘₖ of the product of coordinate k: the product of the other factors.
    fn others(&self, params: &[f64], m: usize, k: usize) -> f64 {
        let d = self.inputs.cols;
        (0..self.factors).filter(|&l| l != m).map(|l| params[l * d + k]).product()
    }
}

impl Model for DiagonalNetwork {
    fn layout(&self) -> &ParamLayout {
        &self.layout
    }

    fn outputs(&self) -> usize {
        1
    }

    fn examples(&self) -> usize {
        self.rows.len()
    }

    fn homogeneity(&self) -> Option<&Homogeneity> {
        Some(&self.homogeneity)
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        choose(&mut self.rows, rows, self.inputs.rows);
    }

    fn scores(&mut self, params: &[f64]) -> &[f64] {
        let d = self.inputs.cols;
        for k in 0..d {
            self.weight[k] = (0..self.factors).map(|m| params[m * d + k]).product();
        }
        self.scores.clear();
        self.scores.extend(self.rows.iter().map(|&row| crate::linalg::dot(self.inputs.row(row), &self.weight)));
        &self.scores
    }

    fn pull_back(&mut self, params: &[f64], cotangent: &[f64], gradient: &mut [f64]) {
        let d = self.inputs.cols;
        self.weight.fill(0.0);
        for (&row, &r) in self.rows.iter().zip(cotangent) {
            crate::linalg::add_scaled(&mut self.weight, r, self.inputs.row(row));
        }
        for m in 0..self.factors {
            for k in 0..d {
                gradient[m * d + k] = self.weight[k] * self.others(params, m, k);
            }
        }
    }

    fn gradient_gram(&mut self, params: &[f64]) -> Matrix {
        // ⟨∇f(xₙ), ∇f(xₘ)⟩ = Σₖ xₙₖ xₘₖ Σ_f (product of the other factors)²
        let (count, d) = (self.rows.len(), self.inputs.cols);
        let size = |k: usize| (0..self.factors).map(|f| self.others(params, f, k).powi(2)).sum::<f64>();
        let sizes: Vec<f64> = (0..d).map(size).collect();
        let mut gram = Matrix::zeros(count, count);
        for n in 0..count {
            for m in 0..=n {
                let (a, b) = (self.inputs.row(self.rows[n]), self.inputs.row(self.rows[m]));
                gram[(n, m)] = a.iter().zip(b).zip(&sizes).map(|((a, b), s)| a * b * s).sum();
                gram[(m, n)] = gram[(n, m)];
            }
        }
        gram
    }

    fn per_example_gradients(&mut self, params: &[f64], _: usize) -> Matrix {
        let d = self.inputs.cols;
        let mut out = Matrix::zeros(self.rows.len(), self.layout.len());
        for n in 0..self.rows.len() {
            for m in 0..self.factors {
                for k in 0..d {
                    out[(n, m * d + k)] = self.inputs[(self.rows[n], k)] * self.others(params, m, k);
                }
            }
        }
        out
    }
}
