//! One image at a time through all layers, in doubles and number by number, with slopes of one's choice.
//!
//! The kernels fuse activations into products and know one slope at a kink. Whoever looks closer at a few examples goes
//! this way: what every layer got and its preactivations are written down, and on the way back slopes at kinks and
//! shares of tied pixels are what they are said to be. Images lie channel by channel here, as in the data.
//!
//! **Stages.** A stage is a set of kinks in which the gradient is affine: every layer's activation is one, and a max-pool
//! over windows of m pixels has m − 1 of them, one for every pixel of a window but its first. With e_j the share that
//! pixel j takes of what the pixels after it left, and the first of the largest taking the rest,
//!
//! ```text
//! share of j = e_j ∏_{k > j} (1 − e_k),   e_j ∈ [0, 1]
//! ```
//!
//! the shares of tied pixels run through all convex combinations, and its vertices belong to those of the cube.

use super::convolution::Place;
use super::drafts::Drafts;
use crate::engine::cpu::dense::Chain;
use crate::linalg::{matmul, matmul_nt, matmul_tn};
use crate::models::{Activation, Architecture, Layer, ModelError, Pooling, Window};

/// What a layer does before its activation.
#[derive(Debug, Clone)]
pub(super) enum Body {
    /// Kernels over an image.
    Kernels { place: Place, window: Window, channels: [usize; 2] },
    /// Windows of an image.
    Windows { pooling: Pooling, window: Window, channels: usize },
    /// A matrix.
    Matrix { place: Place, inputs: usize, outputs: usize },
}

/// One layer.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub body: Body,
    pub activation: Activation,
    /// Its first stage; that of its activation is the last it has.
    pub stage: usize,
}

/// All layers.
#[derive(Debug, Clone)]
pub(super) struct Plain {
    pub steps: Vec<Step>,
    scale: f64,
}

/// What an example left behind on its way up.
#[derive(Debug, Clone, Default)]
pub(super) struct Trace {
    /// What every layer got, and the scores.
    pub values: Vec<Vec<f64>>,
    /// The preactivations of every layer.
    pub signals: Vec<Vec<f64>>,
}

/// A stage, a number of its layer's output, and the slope there or the share of a tied pixel.
pub(super) type Weighed = (usize, usize, f64);

impl Step {
    /// The stage of the activation.
    pub fn last_stage(&self) -> usize {
        self.stage + self.ties()
    }

    /// Stages of ties.
    fn ties(&self) -> usize {
        match &self.body {
            Body::Windows { pooling: Pooling::Max, window, .. } => window.size[0] * window.size[1] - 1,
            _ => 0,
        }
    }
}

/// Numbers of a channel before, after and of the window.
pub(super) fn areas(window: &Window) -> [usize; 3] {
    [window.before, window.after, window.size].map(|sides| sides[0] * sides[1])
}

impl Plain {
    pub fn of(architecture: &Architecture) -> Result<Self, ModelError> {
        let Drafts { channels, layers, tail, dense, .. } = Drafts::of(architecture)?;
        let (mut steps, mut stage, mut before): (Vec<Step>, usize, usize) = (Vec::new(), 0, channels);
        let mut push = |body, activation| {
            let step = Step { body, activation, stage };
            stage = step.last_stage() + 1;
            steps.push(step);
        };
        for draft in layers {
            let body = match draft.place {
                Some(place) => Body::Kernels { place, window: draft.window, channels: [before, draft.channels] },
                None => Body::Windows { pooling: draft.pooling, window: draft.window, channels: before },
            };
            before = draft.channels;
            push(body, draft.activation);
        }
        let chain = Chain::of(&tail)?;
        for layer in &chain.stages {
            let (weight, bias) = (dense + layer.weight, layer.bias.map(|bias| dense + bias));
            let place = Place { weight, bias, frozen: layer.frozen };
            push(Body::Matrix { place, inputs: layer.inputs, outputs: layer.outputs }, layer.activation);
        }
        Ok(Self { steps, scale: chain.scale })
    }

    /// Takes an image up.
    pub fn forward(&self, params: &[f64], image: Vec<f64>) -> Trace {
        let mut trace = Trace { values: vec![image], signals: Vec::new() };
        for step in &self.steps {
            let input = &trace.values[trace.values.len() - 1];
            let z = step.body.forward(params, input);
            trace.values.push(z.iter().map(|z| step.activation.value(*z)).collect());
            trace.signals.push(z);
        }
        let last = trace.values.len() - 1;
        trace.values[last].iter_mut().for_each(|score| *score *= self.scale);
        trace
    }

    /// Adds the gradient of ⟨cotangent, scores⟩ of one example, at these slopes and shares, to `gradient`.
    pub fn backward(
        &self,
        params: &[f64],
        trace: &Trace,
        cotangent: &[f64],
        weighed: &[Weighed],
        gradient: &mut [f64],
    ) {
        let mut signals: Vec<f64> = cotangent.iter().map(|c| self.scale * c).collect();
        for (l, step) in self.steps.iter().enumerate().rev() {
            let mut slopes: Vec<f64> = trace.signals[l].iter().map(|z| step.activation.slope(*z)).collect();
            weighed.iter().filter(|(stage, ..)| *stage == step.last_stage()).for_each(|(_, at, e)| slopes[*at] = *e);
            signals.iter_mut().zip(&slopes).for_each(|(signal, slope)| *signal *= slope);
            step.body.gradient(&trace.values[l], &signals, gradient);
            if l > 0 {
                let ties = weighed.iter().filter(|(stage, ..)| (step.stage..step.last_stage()).contains(stage));
                let ties: Vec<Weighed> = ties.map(|(stage, at, e)| (stage - step.stage + 1, *at, *e)).collect();
                signals = step.body.back(params, &trace.values[l], &signals, &ties);
            }
        }
    }
}

/// What a layer of images makes of an image, after its activation.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageMap {
    /// The layer in words.
    pub layer: String,
    /// Channels, height and width.
    pub sides: [usize; 3],
    /// Channel by channel.
    pub values: Vec<f64>,
}

/// What every layer of images makes of one image, which lies channel by channel.
///
/// ```
/// use limitpoint::engine::cpu::image_maps;
/// use limitpoint::models::{Architecture, Layer, Pool, Pooling, Shape};
/// let pool = Layer::Pool(Pool { pooling: Pooling::Max, size: 2, stride: 2 });
/// let network = Architecture::new(Shape::image(1, 2, 4), vec![pool, Layer::Flatten, Layer::dense(1)])?;
/// let maps = image_maps(&network, &[1.0, 1.0], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])?;
/// assert_eq!((maps[0].layer.as_str(), &maps[0].values[..]), ("pool 2", &[5.0, 7.0][..]));
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
pub fn image_maps(architecture: &Architecture, params: &[f64], image: &[f64]) -> Result<Vec<ImageMap>, ModelError> {
    let (plain, layers) = (Plain::of(architecture)?, architecture.layers().iter());
    let mut words = layers.filter_map(|layer| match layer {
        Layer::Convolution(layer) => Some(layer.to_string()),
        Layer::Pool(layer) => Some(layer.to_string()),
        _ => None,
    });
    let mut maps = Vec::new();
    let trace = plain.forward(params, image.to_vec());
    for (step, values) in plain.steps.iter().zip(trace.values.into_iter().skip(1)) {
        let (channels, window) = match &step.body {
            Body::Kernels { channels: [_, after], window, .. } => (*after, window),
            Body::Windows { channels, window, .. } => (*channels, window),
            Body::Matrix { .. } => break,
        };
        let layer = words.next().unwrap_or_default();
        maps.push(ImageMap { layer, sides: [channels, window.after[0], window.after[1]], values });
    }
    Ok(maps)
}

impl Body {
    fn forward(&self, params: &[f64], input: &[f64]) -> Vec<f64> {
        match self {
            Self::Matrix { place, inputs, outputs } => (0..*outputs)
                .map(|o| {
                    let row = &params[place.weight + o * inputs..][..*inputs];
                    crate::linalg::dot(row, input) + place.bias.map_or(0.0, |bias| params[bias + o])
                })
                .collect(),
            Self::Kernels { place, window, channels: [before, after] } => {
                let [_, pixels, entries] = areas(window);
                let (patches, fan_in, mut z) = (patches(window, input), before * entries, vec![0.0; after * pixels]);
                let kernels = &params[place.weight..][..after * fan_in];
                matmul_nt(&mut z, kernels, &patches, *after, fan_in, pixels);
                if let Some(bias) = place.bias {
                    let biases = z.chunks_exact_mut(pixels).zip(&params[bias..]);
                    biases.for_each(|(z, bias)| z.iter_mut().for_each(|z| *z += bias));
                }
                z
            }
            Self::Windows { pooling, window, channels } => {
                let [area, pixels, entries] = areas(window);
                let start = if *pooling == Pooling::Max { f64::NEG_INFINITY } else { 0.0 };
                let mut z = vec![start; channels * pixels];
                for (z, image) in z.chunks_exact_mut(pixels).zip(input.chunks_exact(area)) {
                    window.meetings(|to, _, from| match pooling {
                        Pooling::Max if image[from] <= z[to] => {}
                        Pooling::Max => z[to] = image[from],
                        Pooling::Average => z[to] += image[from] / entries as f64,
                    });
                }
                z
            }
        }
    }

    /// Adds the gradient of its own parameters.
    fn gradient(&self, input: &[f64], signals: &[f64], gradient: &mut [f64]) {
        match self {
            Self::Matrix { place, inputs, .. } if !place.frozen => {
                for (o, signal) in signals.iter().enumerate() {
                    crate::linalg::add_scaled(&mut gradient[place.weight + o * inputs..][..*inputs], *signal, input);
                    place.bias.into_iter().for_each(|bias| gradient[bias + o] += signal);
                }
            }
            Self::Kernels { place, window, channels: [before, after] } if !place.frozen => {
                let [_, pixels, entries] = areas(window);
                let (patches, fan_in) = (patches(window, input), before * entries);
                let mut own = vec![0.0; after * fan_in];
                matmul(&mut own, signals, &patches, *after, pixels, fan_in);
                crate::linalg::add_scaled(&mut gradient[place.weight..][..after * fan_in], 1.0, &own);
                for (o, signals) in signals.chunks_exact(pixels).enumerate() {
                    place.bias.into_iter().for_each(|bias| gradient[bias + o] += signals.iter().sum::<f64>());
                }
            }
            _ => {}
        }
    }

    /// The signals of its input; `ties` are (entry of the window, output number, e).
    fn back(&self, params: &[f64], input: &[f64], signals: &[f64], ties: &[Weighed]) -> Vec<f64> {
        let mut below = vec![0.0; input.len()];
        match self {
            Self::Matrix { place, inputs, .. } => {
                for (o, signal) in signals.iter().enumerate() {
                    crate::linalg::add_scaled(&mut below, *signal, &params[place.weight + o * inputs..][..*inputs]);
                }
            }
            Self::Kernels { place, window, channels: [before, after] } => {
                let [area, pixels, entries] = areas(window);
                let (fan_in, kernels) = (before * entries, &params[place.weight..][..after * before * entries]);
                let mut met = vec![0.0; pixels * fan_in];
                matmul_tn(&mut met, signals, kernels, pixels, *after, fan_in);
                for c in 0..*before {
                    let below = &mut below[c * area..][..area];
                    window.meetings(|to, entry, from| below[from] += met[to * fan_in + c * entries + entry]);
                }
            }
            Self::Windows { pooling: Pooling::Average, window, .. } => {
                let [area, pixels, entries] = areas(window);
                for (below, signals) in below.chunks_exact_mut(area).zip(signals.chunks_exact(pixels)) {
                    window.meetings(|to, _, from| below[from] += signals[to] / entries as f64);
                }
            }
            Self::Windows { pooling: Pooling::Max, window, .. } => {
                let [area, pixels, entries] = areas(window);
                for (at, signal) in signals.iter().enumerate() {
                    let (channel, pixel) = (at / pixels, at % pixels);
                    let places = window_of(window, pixel);
                    let image = &input[channel * area..][..area];
                    let first = first_largest(image, &places);
                    let mut left = *signal;
                    for key in (1..entries).rev() {
                        // the first entry has no stage and takes that of the first of the largest, which needs none
                        let entry = if key == first { 0 } else { key };
                        let share = ties.iter().find(|tie| (tie.0, tie.1) == (key, at)).map_or(0.0, |tie| tie.2);
                        below[channel * area + places[entry]] += share * left;
                        left *= 1.0 - share;
                    }
                    below[channel * area + places[first]] += left;
                }
            }
        }
        below
    }
}

/// What the kernels see, (pixels after) × (channel, entry), zeros outside the image.
pub(super) fn patches(window: &Window, input: &[f64]) -> Vec<f64> {
    let [area, pixels, entries] = areas(window);
    let fan_in = input.len() / area.max(1) * entries;
    let mut patches = vec![0.0; pixels * fan_in];
    for (c, image) in input.chunks_exact(area).enumerate() {
        window.meetings(|to, entry, from| patches[to * fan_in + c * entries + entry] = image[from]);
    }
    patches
}

/// The input pixels of an output pixel's window, entry by entry; windows of pools lie inside.
pub(super) fn window_of(window: &Window, pixel: usize) -> Vec<usize> {
    let (y, x) = (pixel / window.after[1] * window.stride, pixel % window.after[1] * window.stride);
    let entries = (0..window.size[0]).flat_map(|i| (0..window.size[1]).map(move |j| (i, j)));
    entries.map(|(i, j)| (y + i) * window.before[1] + x + j).collect()
}

/// The entry of a window that the kernels take: the first that none exceeds.
pub(super) fn first_largest(image: &[f64], places: &[usize]) -> usize {
    let most = places.iter().map(|place| image[*place]).fold(f64::NEG_INFINITY, f64::max);
    places.iter().position(|place| image[*place] == most).unwrap_or(0)
}
