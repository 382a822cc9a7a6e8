//! A model at fixed parameters, layer by layer, as a function of its inputs.

use super::{Activation, Layer, ModelError, ModelSpec, Shape, hat};
use crate::linalg::{Matrix, dot, matmul, matmul_nt};
use crate::params::{ParamLayout, Role};

/// z = W a + b.
#[derive(Debug, Clone, PartialEq)]
pub struct Affine {
    /// W, outputs × inputs.
    pub weight: Matrix,
    /// b, where there is one.
    pub bias: Option<Vec<f64>>,
}

/// A model whose parameters are settled: affine maps with one activation between them.
///
/// ```text
/// Φ(x) = W_L σ(… σ(W₁ x + b₁) …) + b_L
/// ```
///
/// A network's output factor is part of W_L and b_L. Models that are linear in their inputs have a single layer: the
/// product of the factors of a diagonal network, the matrix ⟨W, ·⟩ of a matrix model. What attacks a model, or bounds
/// how fast it can change, reads it in this form.
///
/// ```
/// use limitpoint::models::{Layered, ModelSpec};
/// let text = r#"{"network": {"widths": [2], "output_scale": "mean-field"}}"#;
/// let spec: ModelSpec = serde_json::from_str(text).unwrap();
/// let layered = Layered::new(&spec, &[1.0, 0.0, 0.0, -1.0, 3.0, 5.0], 2, 1)?;
/// assert_eq!(layered.scores(&[4.0, 7.0]), [6.0]); // ½ · (3 max(4, 0) + 5 max(−7, 0))
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Layered {
    /// From the inputs on; at least one.
    pub layers: Vec<Affine>,
    /// Between two layers.
    pub activation: Activation,
}

impl Layered {
    /// The model `spec` with these parameters, for examples of `features` numbers.
    pub fn new(spec: &ModelSpec, params: &[f64], features: usize, outputs: usize) -> Result<Self, ModelError> {
        if let ModelSpec::Image { layers, .. } = spec {
            let (engine, what) = ("the view of a model as dense layers", format!("one of '{layers}'"));
            return Err(ModelError::Unsupported { engine, layer: 1, what, remedy: "use a dense network" });
        }
        let architecture = spec.architecture(&Shape::vector(features), outputs)?;
        let layout = architecture.layout();
        layout.check(params)?;
        let blocks: Vec<Matrix> = layout
            .blocks()
            .iter()
            .map(|block| Matrix { rows: block.rows, cols: block.cols, data: params[block.range()].to_vec() })
            .collect();
        let single = |data| vec![Affine { weight: Matrix { rows: 1, cols: features, data }, bias: None }];
        let layers = match architecture.layers()[0] {
            Layer::Diagonal { .. } => {
                let entry = |k: usize| blocks.iter().map(|block| block.data[k]).product();
                single((0..features).map(entry).collect())
            }
            Layer::MatrixProduct { symmetric, .. } => single(product(blocks, symmetric)),
            Layer::MexicanHat { degree, exponent } => {
                // a multiple of the first input
                let mut weight = vec![0.0; features];
                weight[0] = hat::height(params, degree, exponent).0;
                single(weight)
            }
            _ => {
                let mut layers = paired(layout, blocks);
                let factor = architecture.output_factor();
                if let (Some(last), true) = (layers.last_mut(), factor != 1.0) {
                    let entries = last.weight.data.iter_mut().chain(last.bias.iter_mut().flatten());
                    entries.for_each(|entry| *entry *= factor);
                }
                layers
            }
        };
        let activation = architecture.activations().next().unwrap_or(Activation::Identity);
        Ok(Self { layers, activation })
    }

    /// Asserts that there is a layer, and that each has the numbers its shape says and takes those of the one before.
    pub(crate) fn check(&self) {
        assert!(!self.layers.is_empty(), "a model needs at least one layer");
        let mut given = self.features();
        for (l, Affine { weight, bias }) in self.layers.iter().enumerate() {
            let Matrix { rows, cols, data } = weight;
            assert!(*cols == given, "layer {l} takes {cols} numbers, but gets {given}");
            assert!(data.len() == rows * cols, "layer {l} is {rows} × {cols}, but has {} weights", data.len());
            let biases = bias.as_ref().map_or(*rows, Vec::len);
            assert!(biases == *rows, "layer {l} has {biases} biases for {rows} numbers");
            given = *rows;
        }
    }

    /// Numbers an example has.
    pub fn features(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.weight.cols)
    }

    /// Scores an example gets.
    pub fn outputs(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.weight.rows)
    }

    /// Φ(x), one example after the definition; for many, see `engine::cpu::LayeredMap`.
    pub fn scores(&self, x: &[f64]) -> Vec<f64> {
        let mut values = x.to_vec();
        for (l, layer) in self.layers.iter().enumerate() {
            values = layer.apply(&values);
            if l + 1 < self.layers.len() {
                values.iter_mut().for_each(|z| *z = self.activation.value(*z));
            }
        }
        values
    }
}

impl Affine {
    /// W a + b.
    pub fn apply(&self, a: &[f64]) -> Vec<f64> {
        let bias = |j: usize| self.bias.as_ref().map_or(0.0, |bias| bias[j]);
        (0..self.weight.rows).map(|j| dot(self.weight.row(j), a) + bias(j)).collect()
    }
}

/// Weights with the biases that follow them.
fn paired(layout: &ParamLayout, blocks: Vec<Matrix>) -> Vec<Affine> {
    let mut layers: Vec<Affine> = Vec::new();
    for (block, matrix) in layout.blocks().iter().zip(blocks) {
        match layers.last_mut() {
            Some(layer) if block.role == Role::Bias => layer.bias = Some(matrix.data),
            _ => layers.push(Affine { weight: matrix, bias: None }),
        }
    }
    layers
}

/// W₁⋯W_m, or UUᵀ of a single symmetric factor, row by row.
fn product(factors: Vec<Matrix>, symmetric: bool) -> Vec<f64> {
    let whole = factors.into_iter().reduce(|left, right| {
        let mut out = Matrix::zeros(left.rows, right.cols);
        matmul(&mut out.data, &left.data, &right.data, left.rows, left.cols, right.cols);
        out
    });
    match whole {
        Some(factor) if symmetric => {
            let mut out = vec![0.0; factor.rows * factor.rows];
            matmul_nt(&mut out, &factor.data, &factor.data, factor.rows, factor.cols, factor.rows);
            out
        }
        Some(matrix) => matrix.data,
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Compute, Forward, cpu};
    use crate::numeric::Streams;

    /// Every listed model gives the scores of its layers.
    #[test]
    fn the_layers_of_every_model_give_its_scores() {
        let mut stream = Streams::new(5).stream("layered");
        for spec in ModelSpec::examples() {
            for outputs in [1, 3] {
                let mut x = Matrix::zeros(7, 4);
                stream.fill_normal(&mut x.data);
                let Ok(mut model) = cpu::bind(&spec, &x, outputs, Compute::default()) else { continue };
                let mut params = vec![0.0; model.layout().len()];
                stream.fill_normal(&mut params);
                let layered = Layered::new(&spec, &params, 4, outputs).unwrap();
                assert_eq!((layered.features(), layered.outputs()), (4, outputs));
                let expected = model.scores(&params);
                let size = expected.iter().fold(1.0f64, |m, s| m.max(s.abs()));
                for (n, expected) in expected.chunks_exact(outputs).enumerate() {
                    for (score, expected) in layered.scores(x.row(n)).iter().zip(expected) {
                        assert!((score - expected).abs() < 1e-12 * size, "{spec:?}: {score} {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn parameters_of_another_model_are_refused() {
        let error = Layered::new(&ModelSpec::relu(&[3]), &[0.0; 5], 2, 1).unwrap_err().to_string();
        assert!(error.contains('5') && error.contains('9'), "{error}");
    }

    #[test]
    #[should_panic(expected = "layer 0 is 3 × 2, but has 5 weights")]
    fn weights_that_are_missing_are_refused() {
        let mut layered = Layered::new(&ModelSpec::relu(&[3]), &[1.0; 9], 2, 1).unwrap();
        layered.layers[0].weight.data.pop();
        layered.check();
    }

    #[test]
    #[should_panic(expected = "layer 0 has 2 biases for 3 numbers")]
    fn biases_that_are_missing_are_refused() {
        let mut layered = Layered::new(&ModelSpec::relu(&[3]), &[1.0; 9], 2, 1).unwrap();
        layered.layers[0].bias = Some(vec![0.0; 2]);
        layered.check();
    }

    #[test]
    #[should_panic(expected = "at least one layer")]
    fn a_model_without_layers_is_refused() {
        Layered { layers: Vec::new(), activation: Activation::Identity }.check();
    }
}
