//! Scores as a function of the inputs: forward passes at settled weights, and cotangents pulled back to the inputs.
//!
//! Weights are laid out once, in both directions, when the map is made: an attack calls it thousands of times. Lanes of
//! a panel are examples and never meet, so the numbers of an example do not depend on who shares its panel.

use std::sync::Arc;

use pulp::{Arch, Simd, WithSimd};

use super::InputMap;
use super::dense::Product;
use super::dense::curves::{Curve, with_curve};
use super::dense::raw::{Raw, RawPanels};
use crate::linalg::tile::Rows;
use crate::linalg::{Panels, Real};
use crate::models::{Activation, Layered};

/// One layer's weights in `T`.
struct Weights<T> {
    inputs: usize,
    outputs: usize,
    /// W, row by row.
    forward: Vec<T>,
    /// Wᵀ, row by row.
    turned: Vec<T>,
    bias: Option<Vec<T>>,
}

/// A [`Layered`] model as a map of panels of examples, computing in `T`.
///
/// ```
/// use limitpoint::engine::cpu::{InputMap, LayeredMap};
/// use limitpoint::linalg::Panels;
/// use limitpoint::models::{Layered, ModelSpec};
/// let layered = Layered::new(&ModelSpec::relu(&[2]), &[1.0, 0.0, 0.0, -1.0, 3.0, 5.0], 2, 1)?;
/// let mut map = LayeredMap::<f64>::new(&layered);
/// let (mut x, mut scores, mut gradient) = (Panels::zeros(2, 1), Panels::zeros(1, 1), Panels::zeros(2, 1));
/// x.pack(&[4.0, 7.0]);
/// map.scores(&x, &mut scores);
/// assert_eq!(scores.get(0, 0), 12.0); // 3 max(4, 0) + 5 max(−7, 0)
/// scores.set(0, 0, 10.0); // the cotangent
/// map.pull_back(&scores, &mut gradient);
/// assert_eq!((gradient.get(0, 0), gradient.get(1, 0)), (30.0, 0.0));
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
pub struct LayeredMap<T: Real> {
    weights: Arc<Vec<Weights<T>>>,
    activation: Activation,
    arch: Arch,
    /// z of every hidden layer.
    signals: Vec<Panels<T>>,
    /// σ(z) of every hidden layer on the way up, δ on the way down.
    values: Vec<Panels<T>>,
    /// Examples whose scores were last asked for.
    examples: usize,
}

impl<T: Real> LayeredMap<T> {
    /// Lays out the weights.
    ///
    /// Panics if the layers do not fit together, which those of [`Layered::new`] do.
    pub fn new(layered: &Layered) -> Self {
        layered.check();
        let convert = |data: &[f64]| data.iter().map(|x| T::from_f64(*x)).collect::<Vec<T>>();
        let weights: Vec<Weights<T>> = layered
            .layers
            .iter()
            .map(|layer| Weights {
                inputs: layer.weight.cols,
                outputs: layer.weight.rows,
                forward: convert(&layer.weight.data),
                turned: convert(&layer.weight.transpose().data),
                bias: layer.bias.as_deref().map(convert),
            })
            .collect();
        Self::around(Arc::new(weights), layered.activation)
    }

    fn around(weights: Arc<Vec<Weights<T>>>, activation: Activation) -> Self {
        let hidden = weights.len() - 1;
        let empty = || (0..hidden).map(|_| Panels::zeros(0, 0)).collect();
        Self { weights, activation, arch: Arch::new(), signals: empty(), values: empty(), examples: 0 }
    }
}

impl<T: Real> InputMap<T> for LayeredMap<T> {
    fn features(&self) -> usize {
        self.weights[0].inputs
    }

    fn outputs(&self) -> usize {
        self.weights[self.weights.len() - 1].outputs
    }

    fn scores(&mut self, inputs: &Panels<T>, scores: &mut Panels<T>) {
        let (arch, activation, last) = (self.arch, self.activation, self.weights.len() - 1);
        assert_eq!(inputs.rows(), self.features(), "inputs of another model");
        assert_eq!((scores.rows(), scores.cols()), (self.outputs(), inputs.cols()), "a score per output and example");
        self.examples = inputs.cols();
        for (l, weights) in self.weights.iter().enumerate() {
            let (below, above) = self.values.split_at_mut(l);
            let input = below.last().unwrap_or(inputs);
            let matrix = (weights.forward.as_slice(), weights.outputs, weights.inputs);
            if l == last {
                arch.dispatch(product(matrix, weights.bias.as_deref(), input, scores));
                break;
            }
            self.signals[l].reshape(weights.outputs, inputs.cols());
            above[0].reshape(weights.outputs, inputs.cols());
            arch.dispatch(product(matrix, weights.bias.as_deref(), input, &mut self.signals[l]));
            let (z, a) = (self.signals[l].data(), above[0].data_mut());
            arch.dispatch(Activate { activation, z, a });
        }
    }

    fn pull_back(&mut self, cotangent: &Panels<T>, gradient: &mut Panels<T>) {
        let (arch, activation) = (self.arch, self.activation);
        assert_eq!(cotangent.rows(), self.outputs(), "cotangents of another model");
        assert_eq!(cotangent.cols(), self.examples, "a cotangent per example whose scores were last asked for");
        assert_eq!(gradient.rows(), self.features(), "gradients of another model");
        assert_eq!(gradient.cols(), cotangent.cols(), "a gradient per cotangent");
        for (l, weights) in self.weights.iter().enumerate().rev() {
            let (below, above) = self.values.split_at_mut(l);
            let input = above.first().unwrap_or(cotangent);
            let matrix = (weights.turned.as_slice(), weights.inputs, weights.outputs);
            match below.last_mut() {
                None => arch.dispatch(product(matrix, None, input, gradient)),
                Some(signal) => {
                    arch.dispatch(product(matrix, None, input, signal));
                    let (z, signal) = (self.signals[l - 1].data(), signal.data_mut());
                    arch.dispatch(Mask { activation, z, signal });
                }
            }
        }
    }

    fn fork(&self) -> Box<dyn InputMap<T>> {
        Box::new(Self::around(Arc::clone(&self.weights), self.activation))
    }
}

/// out = A · input + bias over all panels, for a row-major A (rows × depth).
fn product<'a, T: Real>(
    (matrix, rows, depth): (&[T], usize, usize),
    bias: Option<&[T]>,
    input: &'a Panels<T>,
    out: &mut Panels<T>,
) -> Product<'a, T> {
    let weights = Rows { start: matrix.as_ptr(), row: depth, step: 1 };
    let bias = bias.map(|bias| Raw(bias.as_ptr()));
    Product { rows: 0..rows, weights, bias, input, panels: 0..input.count(), out: RawPanels::new(out) }
}

/// a = σ(z).
struct Activate<'a, T: Real> {
    activation: Activation,
    z: &'a [T],
    a: &'a mut [T],
}

impl<T: Real> WithSimd for Activate<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let lanes = T::lanes::<S>();
        with_curve!(self.activation, |curve| {
            for (z, a) in self.z.chunks_exact(lanes).zip(self.a.chunks_exact_mut(lanes)) {
                // SAFETY: both are `lanes` numbers long; panels are whole registers.
                unsafe { T::store::<S>(a.as_mut_ptr(), curve.value::<T, S>(simd, T::load::<S>(z.as_ptr()))) };
            }
        });
    }
}

/// signal ← σ′(z) · signal.
struct Mask<'a, T: Real> {
    activation: Activation,
    z: &'a [T],
    signal: &'a mut [T],
}

impl<T: Real> WithSimd for Mask<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let lanes = T::lanes::<S>();
        with_curve!(self.activation, |curve| {
            for (z, signal) in self.z.chunks_exact(lanes).zip(self.signal.chunks_exact_mut(lanes)) {
                // SAFETY: both are `lanes` numbers long; panels are whole registers.
                unsafe {
                    let masked =
                        curve.slope_times::<T, S>(simd, T::load::<S>(z.as_ptr()), T::load::<S>(signal.as_ptr()));
                    T::store::<S>(signal.as_mut_ptr(), masked);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Matrix;
    use crate::models::{ModelSpec, Shape};
    use crate::numeric::{RandomStream, Streams};

    fn drawn(rows: usize, cols: usize, stream: &mut RandomStream) -> Matrix {
        let mut matrix = Matrix::zeros(rows, cols);
        stream.fill_normal(&mut matrix.data);
        matrix
    }

    fn layered(spec: &ModelSpec, features: usize, outputs: usize, stream: &mut RandomStream) -> Option<Layered> {
        let layout = spec.architecture(&Shape::vector(features), outputs).ok()?.layout().clone();
        let mut params = vec![0.0; layout.len()];
        stream.fill_normal(&mut params);
        for block in layout.weights() {
            params[block.range()].iter_mut().for_each(|w| *w /= (block.cols as f64).sqrt());
        }
        Some(Layered::new(spec, &params, features, outputs).unwrap())
    }

    /// Scores of a row-major batch, and the pull-back of row-major cotangents, through panels.
    fn pass<T: Real>(layered: &Layered, x: &Matrix, cotangent: &Matrix) -> (Vec<f64>, Matrix) {
        let mut map = LayeredMap::<T>::new(layered);
        let (mut inputs, mut gradient) = (Panels::zeros(x.cols, x.rows), Panels::zeros(x.cols, x.rows));
        let mut scores = Panels::zeros(cotangent.cols, x.rows);
        inputs.pack_transposed(&x.data);
        map.scores(&inputs, &mut scores);
        let read = |panels: &Panels<T>, n: usize, k: usize| panels.get(k, n).to_f64();
        let found = (0..x.rows).flat_map(|n| (0..cotangent.cols).map(move |c| (n, c)));
        let found = found.map(|(n, c)| read(&scores, n, c)).collect();
        scores.pack_transposed(&cotangent.data);
        map.pull_back(&scores, &mut gradient);
        let mut out = Matrix::zeros(x.rows, x.cols);
        (0..x.rows).for_each(|n| (0..x.cols).for_each(|k| out[(n, k)] = read(&gradient, n, k)));
        (found, out)
    }

    /// Two inputs, three units, one score, and cotangents of the given shape after scores of four examples.
    fn pulled(rows: usize, cols: usize) {
        let layered = Layered::new(&ModelSpec::relu(&[3]), &[1.0; 9], 2, 1).unwrap();
        let mut map = LayeredMap::<f64>::new(&layered);
        map.scores(&Panels::zeros(2, 4), &mut Panels::zeros(1, 4));
        map.pull_back(&Panels::zeros(rows, cols), &mut Panels::zeros(2, cols));
    }

    #[test]
    fn cotangents_of_the_same_examples_are_pulled_back() {
        pulled(1, 4);
    }

    #[test]
    #[should_panic(expected = "cotangents of another model")]
    fn cotangents_need_a_row_per_score() {
        pulled(2, 4);
    }

    #[test]
    #[should_panic(expected = "a cotangent per example")]
    fn cotangents_need_a_column_per_example() {
        pulled(1, 400);
    }

    #[test]
    #[should_panic(expected = "a cotangent per example")]
    fn another_thread_has_seen_no_examples() {
        let layered = Layered::new(&ModelSpec::relu(&[3]), &[1.0; 9], 2, 1).unwrap();
        let mut map = LayeredMap::<f64>::new(&layered);
        map.scores(&Panels::zeros(2, 4), &mut Panels::zeros(1, 4));
        map.fork().pull_back(&Panels::zeros(1, 4), &mut Panels::zeros(2, 4));
    }

    #[test]
    #[should_panic(expected = "layer 1 takes 2 numbers, but gets 3")]
    fn layers_that_do_not_chain_are_refused() {
        let mut layered = Layered::new(&ModelSpec::relu(&[3]), &[1.0; 9], 2, 1).unwrap();
        layered.layers[1].weight = Matrix::zeros(1, 2);
        LayeredMap::<f64>::new(&layered);
    }

    /// Over all listed models: scores agree with the definition, input gradients with central differences.
    #[test]
    fn gradients_of_the_inputs_are_central_differences_of_the_scores() {
        let mut stream = Streams::new(8).stream("inputs");
        for spec in ModelSpec::examples() {
            for outputs in [1, 3] {
                let Some(layered) = layered(&spec, 4, outputs, &mut stream) else { continue };
                let (x, cotangent) = (drawn(9, 4, &mut stream), drawn(9, outputs, &mut stream));
                let (scores, gradient) = pass::<f64>(&layered, &x, &cotangent);
                let weigh = |n: usize, x: &[f64]| crate::linalg::dot(&layered.scores(x), cotangent.row(n));
                for n in 0..x.rows {
                    for (score, expected) in scores[n * outputs..].iter().zip(layered.scores(x.row(n))) {
                        assert!((score - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{spec:?}");
                    }
                    for k in 0..x.cols {
                        let moved = |h: f64| {
                            let mut moved = x.row(n).to_vec();
                            moved[k] += h;
                            weigh(n, &moved)
                        };
                        let difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                        let found = gradient[(n, k)];
                        assert!(
                            (found - difference).abs() < 1e-6 * (1.0 + found.abs()),
                            "{spec:?} {found} {difference}"
                        );
                    }
                }
                let (single, rounded) = pass::<f32>(&layered, &x, &cotangent);
                let pairs = single.iter().chain(&rounded.data).zip(scores.iter().chain(&gradient.data));
                pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{spec:?} {a} {b}"));
            }
        }
    }

    /// The numbers of an example are the same bits alone, in a full panel and in a batch of several panels.
    #[test]
    fn an_example_does_not_see_its_neighbours() {
        let mut stream = Streams::new(9).stream("neighbours");
        let layered = layered(&ModelSpec::relu(&[33, 17]), 150, 4, &mut stream).unwrap();
        let (x, cotangent) = (drawn(131, 150, &mut stream), drawn(131, 4, &mut stream));
        let (scores, gradient) = pass::<f32>(&layered, &x, &cotangent);
        for (first, count) in [(0, 1), (5, 3), (7, 20), (40, 60), (130, 1)] {
            let part = |from: &Matrix| {
                let rows: Vec<&[f64]> = (first..first + count).map(|n| from.row(n)).collect();
                Matrix::from_rows(&rows)
            };
            let (own, pulled) = pass::<f32>(&layered, &part(&x), &part(&cotangent));
            assert_eq!(own, scores[4 * first..4 * (first + count)]);
            assert_eq!(pulled, part(&gradient));
        }
    }
}
