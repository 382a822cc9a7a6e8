//! A model at fixed parameters, map by map, as a function of its inputs.

use super::{Activation, Affine, Architecture, Layer, ModelError, ModelSpec, Pooling, Shape, Window, hat};
use crate::data::Dataset;
use crate::linalg::{Matrix, matmul, matmul_nt};

/// One number for every window of every channel of an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolMap {
    /// How a window is summed up.
    pub pooling: Pooling,
    /// Where the windows lie.
    pub window: Window,
    /// Channels of the image.
    pub channels: usize,
    /// How many times longer its output can be than its input, in ℓ2.
    pub stretch: f64,
}

/// One of the maps that a model is composed of.
#[derive(Debug, Clone, PartialEq)]
pub enum Map {
    /// z = W a + b, or kernels.
    Affine(Affine),
    /// σ, number by number.
    Activation(Activation),
    /// Windows of an image.
    Pool(PoolMap),
}

/// A model whose parameters are settled: affine maps, activations and pools, one after the other.
///
/// ```text
/// Φ(x) = W_L σ(… σ(W₁ x + b₁) …) + b_L
/// ```
///
/// A network's output factor is part of W_L and b_L. Models that are linear in their inputs have a single map: the
/// product of the factors of a diagonal network, the matrix ⟨W, ·⟩ of a matrix model. The last map is always a dense
/// layer. What attacks a model, or bounds how fast it can change, reads it in this form.
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
    /// From the inputs on; at least one, and the last is affine and dense.
    pub maps: Vec<Map>,
    features: usize,
}

impl Layered {
    /// The model `spec` with these parameters, for examples of `features` numbers.
    pub fn new(spec: &ModelSpec, params: &[f64], features: usize, outputs: usize) -> Result<Self, ModelError> {
        Self::of(&spec.architecture(&Shape::vector(features), outputs)?, params)
    }

    /// The model `spec` with these parameters, for examples and targets such as these.
    pub fn on(spec: &ModelSpec, params: &[f64], data: &Dataset) -> Result<Self, ModelError> {
        Self::of(&spec.architecture_on(data)?, params)
    }

    /// An architecture with these parameters.
    pub fn of(architecture: &Architecture, params: &[f64]) -> Result<Self, ModelError> {
        let layout = architecture.layout();
        layout.check(params)?;
        let mut blocks = layout.blocks().iter().map(|block| Matrix {
            rows: block.rows,
            cols: block.cols,
            data: params[block.range()].to_vec(),
        });
        let features = architecture.input_shape().len();
        let dense = |weight, bias| Map::Affine(Affine { weight, bias, window: None });
        let single = |data| dense(Matrix { rows: 1, cols: features, data }, None);
        let mut maps = Vec::new();
        for (layer, before) in architecture.with_inputs() {
            let own: Vec<Matrix> = blocks.by_ref().take(layer.blocks(1, before).len()).collect();
            let window = match layer {
                Layer::Convolution(layer) => Some(layer.window(before)?),
                _ => None,
            };
            match (layer, own) {
                (Layer::Flatten, _) => {}
                (Layer::Scale(factor), _) => {
                    if let Some(Map::Affine(last)) = maps.last_mut() {
                        let entries = last.weight.data.iter_mut().chain(last.bias.iter_mut().flatten());
                        entries.for_each(|entry| *entry *= factor);
                    }
                }
                (Layer::Activation(activation), _) => maps.push(Map::Activation(*activation)),
                (Layer::Pool(pool), _) => maps.push(Map::Pool(PoolMap {
                    pooling: pool.pooling,
                    window: pool.window(before)?,
                    channels: before.0[0],
                    stretch: pool.stretch(),
                })),
                (Layer::Dense { .. } | Layer::Convolution(_), own) => {
                    let mut own = own.into_iter();
                    let (weight, bias) = (own.next().unwrap_or(Matrix::zeros(0, 0)), own.next().map(|bias| bias.data));
                    maps.push(Map::Affine(Affine { weight, bias, window }));
                }
                (Layer::Diagonal { .. }, own) => {
                    let entry = |k: usize| own.iter().map(|block| block.data[k]).product();
                    maps.push(single((0..features).map(entry).collect()));
                }
                (Layer::MatrixProduct { symmetric, .. }, own) => maps.push(single(product(own, *symmetric))),
                (Layer::MexicanHat { degree, exponent }, _) => {
                    // a multiple of the first input
                    let mut weight = vec![0.0; features];
                    weight[0] = hat::height(params, *degree, *exponent).0;
                    maps.push(single(weight));
                }
            }
        }
        match maps.last() {
            Some(Map::Affine(Affine { window: None, .. })) => Ok(Self { maps, features }),
            _ => Err(ModelError::Unsupported {
                engine: "the view of a model as maps of its inputs",
                layer: architecture.layers().len(),
                what: "no dense layer as the last one".to_owned(),
                remedy: "end with a dense layer",
            }),
        }
    }

    /// The affine maps, from the inputs on.
    pub fn affine(&self) -> impl Iterator<Item = &Affine> {
        self.maps.iter().filter_map(|map| if let Map::Affine(affine) = map { Some(affine) } else { None })
    }

    /// The affine maps, to be changed.
    pub fn affine_mut(&mut self) -> impl Iterator<Item = &mut Affine> {
        self.maps.iter_mut().filter_map(|map| if let Map::Affine(affine) = map { Some(affine) } else { None })
    }

    /// Asserts that there is a map, and that each has the numbers its shape says and takes those of the one before.
    pub(crate) fn check(&self) {
        assert!(!self.maps.is_empty(), "a model needs at least one layer");
        let mut given = self.features;
        for (l, map) in self.maps.iter().enumerate() {
            if let Map::Affine(Affine { weight: Matrix { rows, cols, data }, bias, .. }) = map {
                assert!(data.len() == rows * cols, "map {l} is {rows} × {cols}, but has {} weights", data.len());
                let biases = bias.as_ref().map_or(*rows, Vec::len);
                assert!(biases == *rows, "map {l} has {biases} biases for {rows} numbers");
            }
            let taken = map.features().unwrap_or(given);
            assert!(taken == given, "map {l} takes {taken} numbers, but gets {given}");
            given = map.outputs().unwrap_or(given);
        }
    }

    /// Numbers an example has.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Scores an example gets.
    pub fn outputs(&self) -> usize {
        self.affine().last().map_or(0, Affine::outputs)
    }

    /// Φ(x), one example after the definition; for many, see `engine::cpu::LayeredMap`.
    pub fn scores(&self, x: &[f64]) -> Vec<f64> {
        self.maps.iter().fold(x.to_vec(), |values, map| map.apply(&values))
    }
}

impl Map {
    /// Numbers it reads; nothing if any number will do.
    pub fn features(&self) -> Option<usize> {
        match self {
            Self::Affine(affine) => Some(affine.features()),
            Self::Activation(_) => None,
            Self::Pool(pool) => Some(pool.features()),
        }
    }

    /// Numbers it gives; nothing if as many as it reads.
    pub fn outputs(&self) -> Option<usize> {
        match self {
            Self::Affine(affine) => Some(affine.outputs()),
            Self::Activation(_) => None,
            Self::Pool(pool) => Some(pool.outputs()),
        }
    }

    /// Its value at one input.
    pub fn apply(&self, a: &[f64]) -> Vec<f64> {
        match self {
            Self::Affine(affine) => affine.apply(a),
            Self::Activation(activation) => a.iter().map(|z| activation.value(*z)).collect(),
            Self::Pool(pool) => pool.apply(a),
        }
    }
}

impl PoolMap {
    /// Numbers it reads.
    pub fn features(&self) -> usize {
        self.channels * self.window.before[0] * self.window.before[1]
    }

    /// Numbers it gives.
    pub fn outputs(&self) -> usize {
        self.channels * self.window.after[0] * self.window.after[1]
    }

    /// Inputs of every output, those of one side by side.
    pub fn members(&self) -> Vec<u32> {
        let (seen, plane) = (self.window.patches(), (self.window.before[0] * self.window.before[1]) as u32);
        let one = |channel: u32| seen.iter().flatten().map(move |pixel| channel * plane + pixel);
        (0..self.channels as u32).flat_map(one).collect()
    }

    /// Numbers in a window.
    pub fn size(&self) -> usize {
        self.window.size[0] * self.window.size[1]
    }

    /// The largest, or the mean, of every window. A NaN is kept.
    pub fn apply(&self, a: &[f64]) -> Vec<f64> {
        let largest = |most: f64, value: f64| if value > most || value.is_nan() { value } else { most };
        let one = |members: &[u32]| {
            let values = members.iter().map(|member| a[*member as usize]);
            match self.pooling {
                Pooling::Max => values.fold(f64::NEG_INFINITY, largest),
                Pooling::Average => values.sum::<f64>() / members.len() as f64,
            }
        };
        self.members().chunks_exact(self.size()).map(one).collect()
    }
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
    #[should_panic(expected = "map 0 is 3 × 2, but has 5 weights")]
    fn weights_that_are_missing_are_refused() {
        let mut layered = Layered::new(&ModelSpec::relu(&[3]), &[1.0; 9], 2, 1).unwrap();
        layered.affine_mut().for_each(|affine| {
            affine.weight.data.pop();
        });
        layered.check();
    }

    #[test]
    #[should_panic(expected = "map 0 has 2 biases for 3 numbers")]
    fn biases_that_are_missing_are_refused() {
        let mut layered = Layered::new(&ModelSpec::relu(&[3]), &[1.0; 9], 2, 1).unwrap();
        layered.affine_mut().for_each(|affine| affine.bias = Some(vec![0.0; 2]));
        layered.check();
    }

    #[test]
    #[should_panic(expected = "at least one layer")]
    fn a_model_without_layers_is_refused() {
        Layered { maps: Vec::new(), features: 1 }.check();
    }

    /// Convolutions and pools give the scores of the engine.
    #[test]
    fn the_maps_of_image_networks_give_their_scores() {
        let mut stream = Streams::new(6).stream("images");
        for layers in [
            "conv 3 3x3, pool 2, conv 4 3x2 stride 2 padding 1, dense 5, dense",
            "average 2, conv 2 2x2 valid, pool 2 stride 1, dense",
            "pool 3 stride 2, dense 4, dense",
        ] {
            for biases in ["none", "all"] {
                let text = format!(r#"{{"image": {{"layers": "{layers}", "biases": "{biases}"}}}}"#);
                let spec: ModelSpec = serde_json::from_str(&text).unwrap();
                let mut x = Matrix::zeros(5, 2 * 9 * 8);
                stream.fill_normal(&mut x.data);
                let targets = crate::data::Targets::Classes { labels: vec![0; 5], count: 3 };
                let data = Dataset::new("drawn", x, targets, vec![2, 9, 8]).unwrap();
                let mut model = cpu::bind_to(&spec, &data, Compute::default()).unwrap();
                let mut params = vec![0.0; model.layout().len()];
                stream.fill_normal(&mut params);
                let layered = Layered::on(&spec, &params, &data).unwrap();
                layered.check();
                let expected = model.scores(&params);
                for (n, expected) in expected.chunks_exact(3).enumerate() {
                    let x = data.dense().unwrap();
                    for (score, expected) in layered.scores(x.row(n)).iter().zip(expected) {
                        assert!(
                            (score - expected).abs() < 1e-11 * (1.0 + expected.abs()),
                            "{text}: {score} {expected}"
                        );
                    }
                }
            }
        }
    }
}
