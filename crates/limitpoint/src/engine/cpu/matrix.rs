//! Matrix models: one matrix of weights, or a product of several.

use super::Chosen;
use crate::engine::{Bound, Evaluator, Tangents};
use crate::linalg::{Matrix, SharedMatrix, add_scaled, dot, matmul, matmul_nt, matmul_tn};
use crate::models::Architecture;
use crate::params::At;

/// Φ(X) = ⟨W, X⟩ for examples X of shape rows×columns.
///
/// ```text
/// one factor     W                     degree 1, the linear model with a matrix of weights
/// m factors      W = W₁W₂⋯W_m          degree m: matrix factorisation UVᵀ for m = 2, deep factorisation beyond
/// symmetric      W = UUᵀ               degree 2; ∇_U = (G + Gᵀ)U with G = Σ cₙXₙ
/// ```
///
/// `width` is the inner dimension. B section 4; the gradient of a chain is ∇W_i = (W₁⋯W_{i−1})ᵀ G (W_{i+1}⋯W_m)ᵀ. B
/// (18) drops the factor 2 of the symmetric case, where G + Gᵀ = 2G for symmetric examples.
///
/// ```
/// use limitpoint::engine::{Compute, Forward, cpu};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::models::ModelSpec;
/// let spec: ModelSpec = serde_json::from_str(r#"{"matrix": {"rows": 2, "symmetric": true, "width": 1}}"#).unwrap();
/// let mut model = cpu::bind(&spec, &Matrix::from_rows(&[&[1.0, 0.0, 0.0, 1.0]]), 1, Compute::default())?;
/// assert_eq!(model.scores(&[3.0, 4.0]), [25.0]); // ⟨uuᵀ, I⟩ = ‖u‖²
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
pub struct MatrixModel {
    bound: Bound,
    examples: Chosen,
    symmetric: bool,
    /// rows, width, …, width, columns: factor i is `sides[i]`×`sides[i + 1]`.
    sides: Vec<usize>,
    /// W₁⋯W_i for i = 1, …, m.
    heads: Vec<Vec<f64>>,
    /// W_i⋯W_m for i = 2, …, m.
    tails: Vec<Vec<f64>>,
    /// Σ cₙ Xₙ.
    pulled: Vec<f64>,
    scratch: Vec<f64>,
}

impl MatrixModel {
    pub(super) fn new(architecture: &Architecture, inputs: &SharedMatrix, symmetric: bool) -> Self {
        let blocks = architecture.layout().blocks();
        let rows = blocks[0].rows;
        let columns = inputs.cols() / rows;
        let sides: Vec<usize> = std::iter::once(rows).chain(blocks.iter().map(|block| block.cols)).collect();
        let largest = sides.iter().max().copied().unwrap_or(1);
        // one buffer per factor
        let products = |size: &dyn Fn(usize) -> usize| (0..sides.len() - 1).map(|i| vec![0.0; size(i)]).collect();
        let heads = if symmetric { vec![vec![0.0; rows * rows]] } else { products(&|i| rows * sides[i + 1]) };
        Self {
            bound: Bound::new(architecture, inputs.rows()),
            examples: Chosen::all(inputs),
            symmetric,
            tails: products(&|i| sides[i] * columns),
            heads,
            pulled: vec![0.0; rows * columns],
            scratch: vec![0.0; largest * largest.max(rows).max(columns)],
            sides,
        }
    }

    fn shape(&self) -> (usize, usize) {
        let rows = self.sides[0];
        (rows, self.examples.inputs.cols() / rows)
    }

    fn multiply_heads(&mut self, params: &[f64]) {
        let rows = self.sides[0];
        if self.symmetric {
            return matmul_nt(&mut self.heads[0], params, params, rows, self.sides[1], rows);
        }
        for (i, block) in self.bound.layout.blocks().iter().enumerate() {
            let factor = &params[block.range()];
            if i == 0 {
                self.heads[0].copy_from_slice(factor);
            } else {
                let (before, after) = self.heads.split_at_mut(i);
                matmul(&mut after[0], &before[i - 1], factor, rows, self.sides[i], self.sides[i + 1]);
            }
        }
    }

    fn multiply_tails(&mut self, params: &[f64]) {
        let columns = self.shape().1;
        for (i, block) in self.bound.layout.blocks().iter().enumerate().rev() {
            let factor = &params[block.range()];
            let (before, after) = self.tails.split_at_mut(i + 1);
            match after.first() {
                None => before[i].copy_from_slice(factor),
                Some(next) => matmul(&mut before[i], factor, next, self.sides[i], self.sides[i + 1], columns),
            }
        }
    }

    /// The gradient of ⟨W, G⟩ with G in `pulled`.
    fn chain_rule(&mut self, params: &[f64], gradient: &mut [f64]) {
        let (rows, columns) = self.shape();
        if self.symmetric {
            let width = self.sides[1];
            matmul(gradient, &self.pulled, params, rows, rows, width);
            let other = &mut self.scratch[..rows * width];
            matmul_tn(other, &self.pulled, params, rows, rows, width);
            return add_scaled(gradient, 1.0, other);
        }
        self.multiply_tails(params);
        for (i, block) in self.bound.layout.blocks().iter().enumerate() {
            let (before, after) = (self.sides[i], self.sides[i + 1]);
            // (W₁⋯W_{i−1})ᵀ G is `before`×columns
            let left = &mut self.scratch[..before * columns];
            match i {
                0 => left.copy_from_slice(&self.pulled),
                _ => matmul_tn(left, &self.heads[i - 1], &self.pulled, before, rows, columns),
            }
            let out = &mut gradient[block.range()];
            match self.tails.get(i + 1) {
                None => out.copy_from_slice(left),
                Some(tail) => matmul_nt(out, left, tail, before, columns, after),
            }
        }
    }
}

impl Evaluator for MatrixModel {
    fn bound(&self) -> &Bound {
        &self.bound
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        self.examples.select(rows, &mut self.bound);
    }

    fn score(&mut self, at: At<'_>) {
        self.multiply_heads(at.entries());
        let weight = &self.heads[self.heads.len() - 1];
        self.examples.score(&mut self.bound, |x| dot(x, weight));
    }

    fn pull_back(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]) {
        self.examples.combine(cotangent, &mut self.pulled);
        self.chain_rule(at.entries(), gradient);
    }

    fn tangents(&mut self) -> Option<&mut dyn Tangents> {
        Some(self)
    }
}

impl Tangents for MatrixModel {
    fn per_example_gradients(&mut self, params: &[f64], _: usize) -> Matrix {
        self.multiply_heads(params);
        let mut out = Matrix::zeros(self.examples.len(), params.len());
        for n in 0..self.examples.len() {
            self.pulled.copy_from_slice(self.examples.row(n));
            self.chain_rule(params, out.row_mut(n));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{Compute, Forward, Tangents, cpu};
    use crate::linalg::Matrix;
    use crate::models::{ModelError, ModelSpec};

    fn model(
        x: &Matrix,
        rows: usize,
        factors: usize,
        width: Option<usize>,
        symmetric: bool,
    ) -> Result<Box<dyn Tangents>, ModelError> {
        cpu::bind(&ModelSpec::Matrix { rows, factors, width, symmetric }, x, 1, Compute::default())
    }

    /// Every model is ⟨W, X⟩ with the W of its definition.
    #[test]
    fn scores_are_inner_products_with_the_product() {
        let x = Matrix::from_rows(&[&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]);
        let mut plain = model(&x, 2, 1, None, false).unwrap();
        assert_eq!(plain.scores(&[1.0, 0.0, -1.0, 0.0, 2.0, 0.0]), [1.0 - 3.0 + 10.0]);
        // W₁ = (1, 2)ᵀ, W₂ = (3), W₃ = (1, 0, −1): W = 3·(1, 2)ᵀ(1, 0, −1)
        let mut chain = model(&x, 2, 3, Some(1), false).unwrap();
        assert_eq!(chain.layout().len(), 2 + 1 + 3);
        assert_eq!(chain.scores(&[1.0, 2.0, 3.0, 1.0, 0.0, -1.0]), [3.0 * (1.0 - 3.0) + 6.0 * (4.0 - 6.0)]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let x = Matrix::zeros(2, 6);
        let refuse = |rows, factors, width, symmetric| {
            model(&x, rows, factors, width, symmetric).map(|_| ()).unwrap_err().to_string()
        };
        assert!(refuse(4, 1, None, false).contains("must divide 6"));
        assert!(refuse(2, 1, None, true).contains("2x3"));
        assert!(refuse(2, 0, None, false).contains("1 to 16"));
        assert!(refuse(2, 2, Some(0), false).contains("width"));
    }
}
