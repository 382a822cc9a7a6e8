//! Scores as a function of the inputs: forward passes at settled weights, and cotangents pulled back to the inputs.
//!
//! Weights are laid out once, in both directions, when the map is made: an attack calls it thousands of times. Lanes of
//! a panel are examples and never meet, so the numbers of an example do not depend on who shares its panel.

use std::sync::Arc;

use pulp::{Arch, Simd, WithSimd};

use super::InputMap;
use super::dense::curves::{Curve, with_curve};
use super::dense::forward::{After, Forward};
use super::dense::raw::{Raw, RawPanels};
use super::layered_image::{Places, Scratch, Windows, convolve, convolve_back};
use crate::linalg::tile::Rows;
use crate::linalg::{Panels, Real};
use crate::models::{Activation, Layered, Map};

/// The weights of one affine map in `T`.
pub(super) struct Weights<T> {
    pub inputs: usize,
    pub outputs: usize,
    /// W, row by row.
    pub forward: Vec<T>,
    /// Wᵀ, row by row.
    pub turned: Vec<T>,
    pub bias: Option<Vec<T>>,
}

/// One map, ready to run.
enum Step<T> {
    Dense(Weights<T>),
    Kernels(Weights<T>, Places),
    Activation(Activation),
    Pool(Windows),
}

impl<T: Real> Step<T> {
    fn of(map: &Map) -> Self {
        let convert = |data: &[f64]| data.iter().map(|x| T::from_f64(*x)).collect::<Vec<T>>();
        match map {
            Map::Activation(activation) => Self::Activation(*activation),
            Map::Pool(pool) => Self::Pool(Windows::new(pool)),
            Map::Affine(affine) => {
                let weights = Weights {
                    inputs: affine.weight.cols,
                    outputs: affine.weight.rows,
                    forward: convert(&affine.weight.data),
                    turned: convert(&affine.weight.transpose().data),
                    bias: affine.bias.as_deref().map(convert),
                };
                match &affine.window {
                    None => Self::Dense(weights),
                    Some(window) => Self::Kernels(weights, Places::new(window, affine.channels())),
                }
            }
        }
    }

    /// Numbers it gives for so many.
    fn outputs(&self, given: usize) -> usize {
        match self {
            Self::Dense(weights) => weights.outputs,
            Self::Kernels(weights, places) => weights.outputs * places.count(),
            Self::Activation(_) => given,
            Self::Pool(windows) => windows.outputs(),
        }
    }

    fn up(&self, arch: Arch, input: &Panels<T>, out: &mut Panels<T>, scratch: &mut Scratch<T>) {
        match self {
            Self::Dense(weights) => {
                let matrix = (weights.forward.as_slice(), weights.outputs, weights.inputs);
                arch.dispatch(product(matrix, weights.bias.as_deref(), input, out));
            }
            Self::Kernels(weights, places) => convolve(arch, (weights, places), input, out, scratch),
            Self::Activation(activation) => {
                arch.dispatch(Along { activation: *activation, z: input.data(), out: out.data_mut(), back: false });
            }
            Self::Pool(windows) => windows.up(input, out),
        }
    }

    /// The signals of the input from those above.
    fn back(&self, arch: Arch, input: &Panels<T>, above: &Panels<T>, signal: &mut Panels<T>, scratch: &mut Scratch<T>) {
        match self {
            Self::Dense(weights) => {
                let matrix = (weights.turned.as_slice(), weights.inputs, weights.outputs);
                arch.dispatch(product(matrix, None, above, signal));
            }
            Self::Kernels(weights, places) => convolve_back(arch, (weights, places), above, signal, scratch),
            Self::Activation(activation) => {
                signal.data_mut().copy_from_slice(above.data());
                arch.dispatch(Along { activation: *activation, z: input.data(), out: signal.data_mut(), back: true });
            }
            Self::Pool(windows) => windows.back(input, above, signal),
        }
    }
}

/// A [`Layered`] model as a map of panels of examples, computing in `T`.
///
/// ```
/// use limitpoint::engine::{InputMap, cpu::LayeredMap};
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
    steps: Arc<Vec<Step<T>>>,
    /// Numbers of an example before every step, and the scores.
    sizes: Vec<usize>,
    arch: Arch,
    /// What every step reads.
    values: Vec<Panels<T>>,
    /// The signals of what every step but the first reads.
    signals: Vec<Panels<T>>,
    scratch: Scratch<T>,
    /// Examples whose scores were last asked for.
    examples: usize,
}

impl<T: Real> LayeredMap<T> {
    /// Lays out the weights.
    ///
    /// Panics if the layers do not fit together, which those of [`Layered::new`] do.
    pub fn new(layered: &Layered) -> Self {
        layered.check();
        let steps: Vec<Step<T>> = layered.maps.iter().map(Step::of).collect();
        Self::around(Arc::new(steps), layered.features())
    }

    fn around(steps: Arc<Vec<Step<T>>>, features: usize) -> Self {
        let mut sizes = vec![features];
        for step in steps.iter() {
            sizes.push(step.outputs(sizes[sizes.len() - 1]));
        }
        let empty = || steps.iter().map(|_| Panels::zeros(0, 0)).collect();
        let (values, signals) = (empty(), empty());
        Self { steps, sizes, arch: Arch::new(), values, signals, scratch: Scratch::new(), examples: 0 }
    }
}

impl<T: Real> InputMap<T> for LayeredMap<T> {
    fn features(&self) -> usize {
        self.sizes[0]
    }

    fn outputs(&self) -> usize {
        self.sizes[self.steps.len()]
    }

    fn scores(&mut self, inputs: &Panels<T>, scores: &mut Panels<T>) {
        assert_eq!(inputs.rows(), self.features(), "inputs of another model");
        assert_eq!((scores.rows(), scores.cols()), (self.outputs(), inputs.cols()), "a score per output and example");
        self.examples = inputs.cols();
        for (k, step) in self.steps.iter().enumerate() {
            let (below, above) = self.values.split_at_mut(k + 1);
            // the inputs are the caller's, and so are the scores
            let input = if k == 0 { inputs } else { &below[k] };
            let out = match above.first_mut() {
                None => &mut *scores,
                Some(out) => {
                    out.reshape(self.sizes[k + 1], inputs.cols());
                    out
                }
            };
            step.up(self.arch, input, out, &mut self.scratch);
        }
        // a first step that is no product reads its input again on the way down
        if !matches!(self.steps[0], Step::Dense(_) | Step::Kernels(..)) {
            self.values[0].reshape(inputs.rows(), inputs.cols());
            self.values[0].data_mut().copy_from_slice(inputs.data());
        }
    }

    fn pull_back(&mut self, cotangent: &Panels<T>, gradient: &mut Panels<T>) {
        assert_eq!(cotangent.rows(), self.outputs(), "cotangents of another model");
        assert_eq!(cotangent.cols(), self.examples, "a cotangent per example whose scores were last asked for");
        assert_eq!(gradient.rows(), self.features(), "gradients of another model");
        assert_eq!(gradient.cols(), cotangent.cols(), "a gradient per cotangent");
        for (k, step) in self.steps.iter().enumerate().rev() {
            let (below, above) = self.signals.split_at_mut(k + 1);
            let above = above.first().unwrap_or(cotangent);
            let signal = if k == 0 {
                &mut *gradient
            } else {
                below[k].reshape(self.sizes[k], cotangent.cols());
                &mut below[k]
            };
            step.back(self.arch, &self.values[k], above, signal, &mut self.scratch);
        }
    }

    fn fork(&self) -> Box<dyn InputMap<T>> {
        Box::new(Self::around(Arc::clone(&self.steps), self.sizes[0]))
    }
}

/// out = A · input + bias over all panels, for a row-major A (rows × depth).
pub(super) fn product<'a, T: Real>(
    (matrix, rows, depth): (&[T], usize, usize),
    bias: Option<&[T]>,
    input: &'a Panels<T>,
    out: &mut Panels<T>,
) -> Forward<'a, T> {
    let weights = Rows { start: matrix.as_ptr(), row: depth, step: 1 };
    let bias = bias.map(|bias| Raw(bias.as_ptr()));
    let after = After::nothing(RawPanels::new(out));
    Forward { rows: 0..rows, weights, bias, input, panels: 0..input.count(), after, waiting: None }
}

/// out ← σ(z), or out ← σ′(z) · out on the way back.
struct Along<'a, T: Real> {
    activation: Activation,
    z: &'a [T],
    out: &'a mut [T],
    back: bool,
}

impl<T: Real> WithSimd for Along<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let lanes = T::lanes::<S>();
        with_curve!(self.activation, |curve| {
            for (z, out) in self.z.chunks_exact(lanes).zip(self.out.chunks_exact_mut(lanes)) {
                // SAFETY: both are `lanes` numbers long; panels are whole registers.
                unsafe {
                    let z = T::load::<S>(z.as_ptr());
                    let value = match self.back {
                        true => curve.slope_times::<T, S>(simd, z, T::load::<S>(out.as_ptr())),
                        false => curve.value::<T, S>(simd, z),
                    };
                    T::store::<S>(out.as_mut_ptr(), value);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests;
