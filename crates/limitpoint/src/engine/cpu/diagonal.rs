//! Diagonal linear networks.

use super::Chosen;
use crate::engine::{Bound, Evaluator, Tangents};
use crate::linalg::{Matrix, SharedMatrix, dot};
use crate::models::Architecture;
use crate::params::At;

/// f(x) = Σₖ xₖ Πₘ θₘₖ: a linear model whose weight is a product of `factors` vectors, u⊙v for two.
///
/// Homogeneous of degree `factors`. Gradient descent on it acts on the product like a mirror map on a linear model; two
/// factors give hyperbolic entropy (C.reparam, B Section 4).
///
/// ```
/// use limitpoint::engine::{Compute, Forward, cpu};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::models::ModelSpec;
/// let spec = ModelSpec::Diagonal { factors: 2 };
/// let mut model = cpu::bind(&spec, &Matrix::from_rows(&[&[1.0, 2.0]]), 1, Compute::default())?;
/// assert_eq!(model.scores(&[3.0, 5.0, 7.0, 11.0]), [3.0 * 7.0 + 2.0 * 5.0 * 11.0]);
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
pub struct DiagonalNetwork {
    bound: Bound,
    examples: Chosen,
    factors: usize,
    /// The product of the factors, and later Σ cₙxₙ.
    weight: Vec<f64>,
}

impl DiagonalNetwork {
    pub(super) fn new(architecture: &Architecture, inputs: &SharedMatrix, factors: usize) -> Self {
        let (bound, weight) = (Bound::new(architecture, inputs.rows()), vec![0.0; inputs.cols()]);
        Self { bound, examples: Chosen::all(inputs), factors, weight }
    }

    /// ∂/∂θₘₖ of the product of coordinate k: the product of the other factors.
    fn others(&self, params: &[f64], m: usize, k: usize) -> f64 {
        let d = self.weight.len();
        (0..self.factors).filter(|&l| l != m).map(|l| params[l * d + k]).product()
    }
}

impl Evaluator for DiagonalNetwork {
    fn bound(&self) -> &Bound {
        &self.bound
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        self.examples.select(rows, &mut self.bound);
    }

    fn score(&mut self, at: At<'_>) {
        let (d, params) = (self.weight.len(), at.entries());
        for k in 0..d {
            self.weight[k] = (0..self.factors).map(|m| params[m * d + k]).product();
        }
        self.examples.score(&mut self.bound, |x| dot(x, &self.weight));
    }

    fn pull_back(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        let (d, params) = (self.weight.len(), at.entries());
        self.examples.combine(cotangent, &mut self.weight);
        for m in 0..self.factors {
            for k in 0..d {
                gradient[m * d + k] = self.weight[k] * self.others(params, m, k);
            }
        }
    }

    fn tangents(&mut self) -> Option<&mut dyn Tangents> {
        Some(self)
    }
}

impl Tangents for DiagonalNetwork {
    fn gradient_gram(&mut self, params: &[f64]) -> Matrix {
        // ⟨∇f(xₙ), ∇f(xₘ)⟩ = Σₖ xₙₖ xₘₖ Σ_f (product of the other factors)²
        let (count, d) = (self.examples.len(), self.weight.len());
        let size = |k: usize| (0..self.factors).map(|f| self.others(params, f, k).powi(2)).sum::<f64>();
        let sizes: Vec<f64> = (0..d).map(size).collect();
        let mut gram = Matrix::zeros(count, count);
        for n in 0..count {
            for m in 0..=n {
                let (a, b) = (self.examples.row(n), self.examples.row(m));
                gram[(n, m)] = a.iter().zip(b).zip(&sizes).map(|((a, b), s)| a * b * s).sum();
                gram[(m, n)] = gram[(n, m)];
            }
        }
        gram
    }

    fn per_example_gradients(&mut self, params: &[f64], _: usize) -> Matrix {
        let d = self.weight.len();
        let mut out = Matrix::zeros(self.examples.len(), params.len());
        for n in 0..self.examples.len() {
            for m in 0..self.factors {
                for k in 0..d {
                    out[(n, m * d + k)] = self.examples.row(n)[k] * self.others(params, m, k);
                }
            }
        }
        out
    }
}
