//! Fully connected networks of any depth, linear models included.
//!
//! ```text
//! a₀ = x,   z_l = W_l a_{l−1} (+ b_l),   a_l = σ_l(z_l),   Φ(x) = s · (W_L a_{L−1} (+ b_L))
//! ```
//!
//! with an output factor s. A network without hidden layers is the linear model. Everything a step needs is allocated
//! when the network is built; rows of each layer are shared out over the team in fixed blocks. A single-output head is
//! fused into the last hidden layer: its partial sums are formed while tiles are in registers, and the back-signal is
//! written over the preactivations.

mod inputs;
mod inspect;
mod kernels;
mod pieces;
mod planar;
mod shapes;

use std::any::TypeId;
use std::ops::Range;

use pulp::Arch;

pub use self::inputs::LayeredMap;
use self::kernels::{Backward, Forward, Head, HeadGradient, Raw, RawPanels, Source, WeightGradient};
use super::{Activation, DegreeGroup, Homogeneity, Kink, KinkColumn, Model, ModelError, score_anew};
use crate::linalg::tile::Rows;
use crate::linalg::{Matrix, Panels, Real, SharedSlice, TILE_VECTORS, Team, lanes};
use crate::params::ParamLayout;

/// Multiply-adds below which a pass stays on the calling thread.
const PARALLEL_FROM: usize = 150_000;

/// Parameters that one worker rounds or moves at a time.
const BLOCK: usize = 4096;

/// What a dense network is made of; the checked form of the specification.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Architecture {
    pub inputs: usize,
    pub widths: Vec<usize>,
    pub outputs: usize,
    pub activation: Activation,
    /// Whether layer l (from 0) has a bias.
    pub biases: Vec<bool>,
    /// Whether layer l is frozen.
    pub frozen: Vec<bool>,
    pub output_scale: f64,
}

impl Architecture {
    fn sizes(&self) -> Vec<usize> {
        [&[self.inputs], self.widths.as_slice(), &[self.outputs]].concat()
    }

    /// Blocks `layer1.weight`, `layer1.bias`, …, in order.
    pub fn layout(&self) -> Result<ParamLayout, ModelError> {
        let sizes = self.sizes();
        let mut names = Vec::new();
        for l in 0..sizes.len() - 1 {
            names.push((format!("layer{}.weight", l + 1), sizes[l + 1], sizes[l], self.frozen[l]));
            if self.biases[l] {
                names.push((format!("layer{}.bias", l + 1), sizes[l + 1], 1, self.frozen[l]));
            }
        }
        let frozen: Vec<&str> = names.iter().filter(|name| name.3).map(|name| name.0.as_str()).collect();
        Ok(ParamLayout::new(names.iter().map(|(name, rows, cols, _)| (name.as_str(), *rows, *cols)))?
            .freeze(&frozen)?)
    }

    /// Degrees by composition: layer l has the product of the activation degrees after it. A bias is harmless only in the
    /// lowest trained layer, where it scales with the weights; above a trained layer it breaks homogeneity.
    pub fn homogeneity(&self) -> Option<Homogeneity> {
        let layers = self.widths.len() + 1;
        let lowest = (0..layers).find(|&l| !self.frozen[l])?;
        if (lowest + 1..layers).any(|l| self.biases[l]) {
            return None;
        }
        let (mut groups, mut block) = (Vec::new(), 0);
        for l in 0..layers {
            let blocks: Vec<usize> = (block..=block + usize::from(self.biases[l])).collect();
            block += blocks.len();
            if !self.frozen[l] {
                let passed = (layers - 1 - l) as i32;
                groups.push(DegreeGroup { blocks, degree: f64::from(self.activation.degree()).powi(passed) });
            }
        }
        Some(Homogeneity::of_groups(groups))
    }
}

/// One weight matrix and what surrounds it.
struct Layer {
    inputs: usize,
    outputs: usize,
    weight: usize,
    bias: Option<usize>,
    frozen: bool,
}

/// Inputs of a batch in the two layouts the passes read.
struct Inputs<T> {
    /// Features × examples.
    forward: Panels<T>,
    /// Examples × features.
    turned: Panels<T>,
}

impl<T: Real> Inputs<T> {
    fn new(inputs: &Matrix) -> Self {
        let (mut forward, mut turned) =
            (Panels::zeros(inputs.cols, inputs.rows), Panels::zeros(inputs.rows, inputs.cols));
        forward.pack_transposed(&inputs.data);
        turned.pack(&inputs.data);
        Self { forward, turned }
    }
}

/// A hidden layer's buffers.
struct Hidden<T> {
    /// z after the forward pass, δ after the backward pass (units × examples).
    signals: Panels<T>,
    /// σ(z) (units × examples), where another layer reads it.
    output: Option<Panels<T>>,
    /// σ(z) transposed (examples × units).
    turned: Option<Panels<T>>,
    /// Slopes to use at kinks: (unit, example, slope).
    kinks: Vec<(usize, usize, f64)>,
}

/// A dense network bound to its inputs, computing in `T`.
pub struct DenseNetwork<T: Real> {
    architecture: Architecture,
    layout: ParamLayout,
    homogeneity: Option<Homogeneity>,
    layers: Vec<Layer>,
    team: Team,
    arch: Arch,
    source: Matrix,
    all: Inputs<T>,
    batch: Inputs<T>,
    in_batch: bool,
    /// Whether the last forward pass stored preactivations.
    kept: bool,
    examples: usize,
    /// Examples the buffers are shaped for.
    shaped: usize,
    hidden: Vec<Hidden<T>>,
    /// Parameters rounded to `T`; unused when `T` is `f64`.
    rounded: Vec<T>,
    waiting: Vec<T>,
    /// Partial scores of a single-output head, one row per block of units.
    partial: Panels<T>,
    /// Scores, and later their cotangents, of a head that is not fused (outputs × examples).
    outer: Panels<T>,
    /// Cotangent of a fused head, padded to whole panels.
    cotangent: Vec<T>,
    scores: Vec<f64>,
    /// The gradient of one piece of a large batch.
    piece_gradient: Vec<f64>,
}

/// Calls `work` with ranges that cover 0..`blocks`, on the whole team if the pass is worth it.
fn share(team: &Team, blocks: usize, cost: usize, work: impl Fn(Range<usize>) + Sync) {
    if cost < PARALLEL_FROM || team.threads() == 1 {
        work(0..blocks);
    } else {
        team.run(|worker| work(team.share(worker, blocks)));
    }
}

/// Units per block of a layer: fixed by the width alone, so partial sums never depend on the number of threads.
fn block_size(units: usize) -> usize {
    units.div_ceil(16).next_multiple_of(8).max(16)
}

impl<T: Real> DenseNetwork<T> {
    /// Builds the buffers; `architecture` is checked by the specification.
    pub(super) fn new(architecture: Architecture, inputs: &Matrix, threads: usize) -> Result<Self, ModelError> {
        let layout = architecture.layout()?;
        let sizes = architecture.sizes();
        let layers: Vec<Layer> = (0..sizes.len() - 1)
            .map(|l| {
                let offset = |kind: &str| layout.block(&format!("layer{}.{kind}", l + 1)).map(|block| block.offset);
                Layer {
                    inputs: sizes[l],
                    outputs: sizes[l + 1],
                    weight: offset("weight").unwrap_or(0),
                    bias: offset("bias"),
                    frozen: architecture.frozen[l],
                }
            })
            .collect();
        let all = Inputs::new(inputs);
        // a batch may have wider panels than all examples
        let width = TILE_VECTORS * lanes::<T>();
        let rounded = if TypeId::of::<T>() == TypeId::of::<f64>() { 0 } else { layout.len() };
        let most_units = sizes[1..].iter().copied().max().unwrap_or(1);
        let mut network = Self {
            homogeneity: architecture.homogeneity(),
            team: Team::new(threads),
            arch: Arch::new(),
            source: inputs.clone(),
            batch: Inputs::new(&Matrix::zeros(0, inputs.cols)),
            in_batch: false,
            kept: false,
            examples: inputs.rows,
            shaped: 0,
            hidden: architecture.widths.iter().map(|_| Hidden::empty()).collect(),
            rounded: vec![T::default(); rounded],
            waiting: vec![T::default(); most_units * width],
            partial: Panels::zeros(0, 0),
            outer: Panels::zeros(0, 0),
            cotangent: Vec::new(),
            scores: Vec::new(),
            piece_gradient: Vec::new(),
            architecture,
            layout,
            layers,
            all,
        };
        network.scores.resize(inputs.rows * network.architecture.outputs, 0.0);
        Ok(network)
    }

    /// Whether the head is a single output fused into the last hidden layer.
    fn fused(&self) -> bool {
        self.architecture.outputs == 1 && !self.hidden.is_empty()
    }

    /// Shapes all buffers for `examples` at a time.
    fn shape_buffers(&mut self, examples: usize) {
        if self.shaped == examples {
            return;
        }
        self.shaped = examples;
        let fused = self.fused();
        let count = self.hidden.len();
        for (h, hidden) in self.hidden.iter_mut().enumerate() {
            let units = self.architecture.widths[h];
            hidden.signals.reshape(units, examples);
            if h + 1 < count || !fused {
                hidden.output.get_or_insert_with(|| Panels::zeros(0, 0)).reshape(units, examples);
                hidden.turned.get_or_insert_with(|| Panels::zeros(0, 0)).reshape(examples, units);
            }
        }
        if fused {
            let units = self.architecture.widths[count - 1];
            self.partial.reshape(units.div_ceil(block_size(units)), examples);
            self.cotangent.clear();
            self.cotangent.resize(self.partial.count() * self.partial.width(), T::default());
        } else {
            self.outer.reshape(self.architecture.outputs, examples);
        }
    }

    fn inputs(&self) -> &Inputs<T> {
        if self.in_batch { &self.batch } else { &self.all }
    }

    /// The parameters in `T`: themselves for doubles, otherwise a copy that is rounded now.
    fn weights(&mut self, params: &[f64]) -> *const T {
        assert_eq!(params.len(), self.layout.len(), "parameters of another layout");
        if TypeId::of::<T>() == TypeId::of::<f64>() {
            return params.as_ptr().cast();
        }
        let rounded = SharedSlice::new(&mut self.rounded);
        share(&self.team, params.len().div_ceil(BLOCK), params.len(), |blocks| {
            let range = blocks.start * BLOCK..(blocks.end * BLOCK).min(params.len());
            // SAFETY: every worker writes its own blocks.
            let own = unsafe { rounded.part(range.clone()) };
            crate::numeric::wide(
                #[inline(always)]
                || own.iter_mut().zip(&params[range.clone()]).for_each(|(to, from)| *to = T::from_f64(*from)),
            );
        });
        self.rounded.as_ptr()
    }

    /// The parameters in `T` as the last forward pass left them.
    fn weights_again(&self, params: &[f64]) -> *const T {
        if TypeId::of::<T>() == TypeId::of::<f64>() { params.as_ptr().cast() } else { self.rounded.as_ptr() }
    }

    /// Computes all scores and keeps every layer's preactivations.
    fn forward(&mut self, params: &[f64]) {
        self.kept = true;
        self.shape_buffers(self.examples);
        let weights = Raw(self.weights(params));
        self.forward_panels(weights, 0..self.inputs().forward.count(), true);
    }

    /// Scores of these panels of the inputs, in buffers whose first panel is the first of them.
    fn forward_panels(&mut self, weights: Raw<T>, panels: Range<usize>, keep: bool) {
        let fused = self.fused();
        let count = self.hidden.len();
        let examples = panels.len() * self.inputs().forward.width();
        for h in 0..count {
            let (below, rest) = self.hidden.split_at_mut(h);
            let current = &mut rest[0];
            let (input, panels) = match below.last() {
                Some(hidden) => (hidden.output.as_ref().unwrap_or(&hidden.signals), 0..panels.len()),
                None => (&if self.in_batch { &self.batch } else { &self.all }.forward, panels.clone()),
            };
            let first = panels.start;
            let signals = RawPanels::new(&mut current.signals).counted_from(first);
            let output = current.output.as_mut().map(|output| RawPanels::new(output).counted_from(first));
            let turned = current.turned.as_mut().filter(|_| keep).map(RawPanels::new);
            let partial = RawPanels::new(&mut self.partial).counted_from(first);
            let waiting = RawPanels { start: self.waiting.as_mut_ptr(), rows: 0, width: 0 };
            let (layer, block) = (&self.layers[h], block_size(self.layers[h].outputs));
            let head = (fused && h + 1 == count).then(|| self.layers[count].weight);
            let (activation, arch) = (self.architecture.activation, self.arch);
            let cost = layer.inputs * layer.outputs * examples;
            share(&self.team, layer.outputs.div_ceil(block), cost, |blocks| {
                let at = |offset: usize| weights.at(offset);
                arch.dispatch(Forward {
                    rows: blocks.start * block..(blocks.end * block).min(layer.outputs),
                    weights: Rows { start: at(layer.weight), row: layer.inputs, step: 1 },
                    bias: layer.bias.map(|offset| Raw(at(offset))),
                    input,
                    panels: panels.clone(),
                    activation,
                    z: signals,
                    output,
                    turned,
                    head: head.map(|offset| (Raw(at(offset)), partial, block)),
                    waiting: waiting.place(0),
                });
            });
        }
        let first = panels.start * self.inputs().forward.width();
        let examples = first..(first + examples).min(self.examples);
        if fused {
            self.sum_partial_scores(weights, examples);
        } else {
            self.plain_head(weights, panels, examples);
        }
    }

    /// Adds the partial scores of a fused head, for the given examples, in the order of their blocks.
    fn sum_partial_scores(&mut self, weights: Raw<T>, examples: Range<usize>) {
        let head = &self.layers[self.layers.len() - 1];
        // SAFETY: the bias offset lies inside the parameters.
        let bias = head.bias.map_or(0.0, |offset| unsafe { *weights.0.add(offset) }.to_f64());
        let (scale, partial) = (self.architecture.output_scale, &self.partial);
        let all = &mut self.scores[examples];
        crate::numeric::wide(
            #[inline(always)]
            || {
                for (panel, scores) in all.chunks_mut(partial.width()).enumerate() {
                    scores.fill(bias);
                    for block in 0..partial.rows() {
                        let from = partial.offset(panel, block);
                        let row = &partial.data()[from..from + scores.len()];
                        for (score, part) in scores.iter_mut().zip(row) {
                            *score += part.to_f64();
                        }
                    }
                    if scale != 1.0 {
                        scores.iter_mut().for_each(|score| *score *= scale);
                    }
                }
            },
        );
    }

    /// The output layer as a product of its own, for these panels of the inputs, which hold these examples.
    fn plain_head(&mut self, weights: Raw<T>, panels: Range<usize>, examples: Range<usize>) {
        let outer = RawPanels::new(&mut self.outer);
        let (input, outer, panels) = match self.hidden.last() {
            Some(hidden) => (hidden.output.as_ref().unwrap_or(&hidden.signals), outer, 0..panels.len()),
            None => (&self.inputs().forward, outer.counted_from(panels.start), panels),
        };
        let layer = &self.layers[self.layers.len() - 1];
        let arch = self.arch;
        share(&self.team, panels.len(), layer.inputs * layer.outputs * examples.len(), |blocks| {
            arch.dispatch(Head {
                outputs: layer.outputs,
                weights: Rows { start: weights.at(layer.weight), row: layer.inputs, step: 1 },
                bias: layer.bias.map(|offset| Raw(weights.at(offset))),
                input,
                panels: panels.start + blocks.start..panels.start + blocks.end,
                scores: outer,
            });
        });
        let (outputs, scale) = (layer.outputs, self.architecture.output_scale);
        let scores = &mut self.scores[examples.start * outputs..examples.end * outputs];
        for (n, scores) in scores.chunks_exact_mut(outputs).enumerate() {
            for (c, score) in scores.iter_mut().enumerate() {
                *score = scale * self.outer.get(c, n).to_f64();
            }
        }
    }

    /// Turns z into δ in every layer that needs it and, given a gradient, fills it.
    fn backward(&mut self, params: &[f64], cotangent: &[f64], gradient: Option<&mut [f64]>) {
        assert_eq!(params.len(), self.layout.len(), "parameters of another layout");
        assert_eq!(cotangent.len(), self.examples * self.architecture.outputs, "one cotangent per score");
        assert_eq!(self.shaped, self.examples, "scores come before gradients");
        let weights = Raw(self.weights_again(params));
        let (gradient, no_gradient) = match gradient {
            Some(gradient) => {
                assert_eq!(gradient.len(), self.layout.len(), "a gradient is as long as the parameters");
                for block in self.layout.blocks().iter().filter(|block| block.frozen) {
                    gradient[block.range()].fill(0.0);
                }
                (RawPanels { start: gradient.as_mut_ptr(), rows: 0, width: 0 }, false)
            }
            None => (RawPanels { start: std::ptr::null_mut(), rows: 0, width: 0 }, true),
        };
        let lowest = if no_gradient { 0 } else { self.layers.iter().position(|layer| !layer.frozen).unwrap_or(0) };
        let scale = self.architecture.output_scale;
        let fused = self.fused();
        let head = self.layers.len() - 1;
        // a fused head's gradient is made on the way through the layer below it, even if that layer is frozen
        let lowest = if fused { lowest.min(head - 1) } else { lowest };
        if fused {
            self.cotangent.iter_mut().zip(cotangent).for_each(|(to, from)| *to = T::from_f64(scale * from));
            if let (false, Some(bias), false) = (no_gradient, self.layers[head].bias, self.layers[head].frozen) {
                // SAFETY: the bias offset lies inside the gradient.
                unsafe { *gradient.start.add(bias) = scale * cotangent.iter().sum::<f64>() };
            }
        } else {
            self.plain_head_gradient(cotangent, gradient, no_gradient);
        }
        if !self.kept {
            return self.planar_backward(params, gradient);
        }
        for h in (lowest..head).rev() {
            let (rest, above) = self.hidden.split_at_mut(h + 1);
            let (below, current) = rest.split_at_mut(h);
            let current = &mut current[0];
            let (layer, next) = (&self.layers[h], &self.layers[h + 1]);
            let signals = RawPanels::new(&mut current.signals);
            let shape = &current.signals;
            let kinks = current.kinks.as_slice();
            let (input, turned) = match below.last() {
                Some(hidden) => (hidden.output.as_ref(), hidden.turned.as_ref()),
                None => {
                    let inputs = if self.in_batch { &self.batch } else { &self.all };
                    (Some(&inputs.forward), Some(&inputs.turned))
                }
            };
            let waiting = RawPanels { start: self.waiting.as_mut_ptr(), rows: 0, width: 0 };
            let (cotangent, outer) = (self.cotangent.as_slice(), &self.outer);
            let (activation, arch, block) = (self.architecture.activation, self.arch, block_size(layer.outputs));
            let single = fused && h + 1 == head;
            let cost = layer.outputs * self.examples * (layer.inputs + if single { 1 } else { next.outputs });
            share(&self.team, layer.outputs.div_ceil(block), cost, |blocks| {
                let wanted = !no_gradient && !layer.frozen;
                let source = if single {
                    Source::SingleHead {
                        head: Raw(weights.at(next.weight)),
                        cotangent,
                        gradient: (!no_gradient && !next.frozen).then(|| gradient.place(next.weight)),
                    }
                } else {
                    Source::Layer {
                        weights: Rows { start: weights.at(next.weight), row: 1, step: next.inputs },
                        above: above.first().map_or(outer, |hidden| &hidden.signals),
                    }
                };
                arch.dispatch(Backward {
                    rows: blocks.start * block..(blocks.end * block).min(layer.outputs),
                    activation,
                    source,
                    signals,
                    shape,
                    kinks,
                    weights: match (input, turned) {
                        (Some(input), Some(turned)) if wanted => {
                            Some(WeightGradient { input, turned, gradient: gradient.place(layer.weight) })
                        }
                        _ => None,
                    },
                    bias: layer.bias.filter(|_| wanted).map(|offset| gradient.place(offset)),
                    waiting: waiting.place(0),
                });
            });
        }
    }

    /// Packs the cotangents of an output layer that is not fused, and fills its gradient.
    fn plain_head_gradient(&mut self, cotangent: &[f64], gradient: RawPanels<f64>, no_gradient: bool) {
        let (outputs, scale) = (self.architecture.outputs, self.architecture.output_scale);
        // the forward pass left scores in the padding columns
        self.outer.data_mut().fill(T::default());
        for (n, cotangent) in cotangent.chunks_exact(outputs).enumerate() {
            for (c, value) in cotangent.iter().enumerate() {
                self.outer.set(c, n, T::from_f64(scale * value));
            }
        }
        let layer = &self.layers[self.layers.len() - 1];
        if no_gradient || layer.frozen {
            return;
        }
        if let Some(bias) = layer.bias {
            for c in 0..outputs {
                // SAFETY: the bias block lies inside the gradient.
                unsafe {
                    *gradient.start.add(bias + c) = scale * cotangent.iter().skip(c).step_by(outputs).sum::<f64>();
                }
            }
        }
        let turned = match self.hidden.last() {
            Some(hidden) => hidden.turned.as_ref().unwrap_or(&self.all.turned),
            None => &self.inputs().turned,
        };
        let (arch, outer) = (self.arch, &self.outer);
        share(&self.team, turned.count(), layer.inputs * outputs * self.examples, |panels| {
            arch.dispatch(HeadGradient {
                outputs,
                cotangent: outer,
                turned,
                panels,
                gradient: gradient.place(layer.weight),
            });
        });
    }
}

impl<T: Real> Hidden<T> {
    fn empty() -> Self {
        Self { signals: Panels::zeros(0, 0), output: None, turned: None, kinks: Vec::new() }
    }
}

impl<T: Real> Model for DenseNetwork<T> {
    fn layout(&self) -> &ParamLayout {
        &self.layout
    }

    fn outputs(&self) -> usize {
        self.architecture.outputs
    }

    fn examples(&self) -> usize {
        self.examples
    }

    fn homogeneity(&self) -> Option<&Homogeneity> {
        self.homogeneity.as_ref()
    }

    fn select(&mut self, rows: Option<&[usize]>) {
        self.in_batch = rows.is_some();
        self.hidden.iter_mut().for_each(|hidden| hidden.kinks.clear());
        self.examples = rows.map_or(self.source.rows, <[usize]>::len);
        self.scores.resize(self.examples * self.architecture.outputs, 0.0);
        if let Some(rows) = rows {
            self.pack_batch(rows.len(), |n| rows[n]);
        }
    }

    fn scores(&mut self, params: &[f64]) -> &[f64] {
        if self.planar() {
            self.kept = false;
            self.planar_forward(params);
        } else if self.in_pieces() {
            self.forward_in_pieces(params, |_, _| {});
        } else {
            self.forward(params);
        }
        &self.scores
    }

    fn pull_back(&mut self, params: &[f64], cotangent: &[f64], gradient: &mut [f64]) {
        if self.in_pieces() {
            self.backward_in_pieces(params, cotangent, gradient);
        } else {
            self.backward(params, cotangent, Some(gradient));
        }
    }

    fn step_along(&mut self, params: &mut [f64], factor: f64, gradient: &[f64]) {
        assert_eq!(params.len(), gradient.len(), "a gradient is as long as the parameters");
        let (count, all) = (params.len(), SharedSlice::new(params));
        share(&self.team, count.div_ceil(BLOCK), 4 * count, |blocks| {
            let range = blocks.start * BLOCK..(blocks.end * BLOCK).min(count);
            // SAFETY: every worker moves its own blocks.
            crate::linalg::add_scaled(unsafe { all.part(range.clone()) }, factor, &gradient[range]);
        });
    }

    fn per_example_gradients(&mut self, params: &[f64], output: usize) -> Matrix {
        self.rows_of_jacobian(params, output)
    }

    fn gradient_gram(&mut self, params: &[f64]) -> Matrix {
        self.layerwise_gram(params)
    }

    fn scores_after(&mut self, params: &[f64], entry: usize, change: f64, out: &mut [f64]) {
        if self.hidden.len() == 1 && !self.in_batch {
            return self.scores_with_moved_unit(params, entry, change, out);
        }
        score_anew(self, params, entry, change, out);
    }

    fn kinks(&mut self, params: &[f64], radius: f64) -> Vec<Kink> {
        self.forward(params);
        self.find_kinks(radius)
    }

    fn kink_columns(&mut self, params: &[f64], cotangent: &[f64], kinks: &[Kink]) -> Vec<KinkColumn> {
        self.columns_of_kinks(params, cotangent, kinks)
    }

    fn weigh_kinks(&mut self, kinks: &[(Kink, f64)]) {
        self.hidden.iter_mut().for_each(|hidden| hidden.kinks.clear());
        for (kink, e) in kinks {
            let slope = (1.0 - e) * kink.slopes.0 + e * kink.slopes.1;
            let inside = kink.unit < self.layers[kink.layer].outputs && kink.example < self.examples;
            assert!(inside, "a kink of another batch or network");
            self.hidden[kink.layer].kinks.push((kink.unit, kink.example, slope));
        }
    }

    fn smallest_preactivation(&mut self, params: &[f64]) -> Option<f64> {
        self.architecture.activation.kink()?;
        let mut smallest = f64::INFINITY;
        let mut look = |network: &Self, examples: usize| {
            for hidden in &network.hidden {
                let signals = &hidden.signals;
                for panel in 0..examples.div_ceil(signals.width()) {
                    let filled = signals.width().min(examples - panel * signals.width());
                    for row in 0..signals.rows() {
                        let at = signals.offset(panel, row);
                        let sizes = signals.data()[at..at + filled].iter().map(|z| z.to_f64().abs());
                        smallest = sizes.fold(smallest, f64::min);
                    }
                }
            }
        };
        if self.in_pieces() {
            self.forward_in_pieces(params, look);
        } else {
            self.forward(params);
            look(self, self.examples);
        }
        Some(smallest)
    }
}
