//! The forward pass: what happens to tiles of preactivations while they are still in registers, layer by layer.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::curves::{Curve, with_curve};
use super::raw::{Raw, RawPanels, store_tile, transpose_rows};
use super::{DenseNetwork, TILE, block_size, share};
use crate::linalg::tile::{Corner, Finish, Rows, Tile, Waiting, in_passes, into_panels, row_blocks};
use crate::linalg::{Panels, Real, SharedSlice};
use crate::models::Activation;
use crate::params::At;

/// What follows the preactivations z of a layer.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct After<T> {
    pub activation: Activation,
    /// Where z goes; the back-signals will overwrite it.
    pub z: RawPanels<T>,
    /// Where σ(z) goes, if another layer reads it.
    pub output: Option<RawPanels<T>>,
    /// The transposed σ(z) for the next layer's weight gradient.
    pub turned: Option<RawPanels<T>>,
    /// Output weights of a single-output head, partial scores per block of units, and the block size.
    pub head: Option<(Raw<T>, RawPanels<T>, usize)>,
}

impl<T: Real> After<T> {
    /// Nothing but z.
    pub fn nothing(z: RawPanels<T>) -> Self {
        Self { activation: Activation::Identity, z, output: None, turned: None, head: None }
    }

    /// The same with the first panel of everything counted as `first`; `turned` is for whole batches only.
    fn counted_from(self, first: usize) -> Self {
        Self {
            z: self.z.counted_from(first),
            output: self.output.map(|output| output.counted_from(first)),
            head: self.head.map(|(head, partial, block)| (head, partial.counted_from(first), block)),
            ..self
        }
    }
}

/// The forward pass of one layer over the units `rows`: z = W·a + b, then σ(z), then what follows.
pub(in crate::engine::cpu) struct Forward<'a, T: Real> {
    pub rows: Range<usize>,
    pub weights: Rows<T>,
    pub bias: Option<Raw<T>>,
    pub input: &'a Panels<T>,
    /// The panels of the input to work on; what is written is counted likewise.
    pub panels: Range<usize>,
    pub after: After<T>,
    /// Where unfinished sums of this thread's rows wait, see [`Waiting::in_rows`]; without it, where z will be.
    pub waiting: Option<*mut T>,
}

impl<T: Real> Finish<T> for Forward<'_, T> {
    #[inline(always)]
    fn finish<S: Simd, const R: usize, const NV: usize>(&mut self, simd: S, at: Corner, tile: Tile<T, S, R, NV>) {
        // SAFETY: rows of this call belong to this thread, panels have `rows` rows and at least NV registers a row.
        unsafe { store_tile::<T, S, R, NV>(tile, self.after.z.at(at.panel, at.row), self.after.z.width) };
        if self.after.output.is_some() || self.after.head.is_some() {
            simd.vectorize(Activate { after: &self.after, row: at.row, panel: at.panel, rows: R, vectors: NV });
        }
    }
}

/// What follows z for one tile that was just stored: σ(z), and the partial sums of a fused head.
///
/// A function of its own, so that the choice of activation is compiled once and not in every tile size.
pub(in crate::engine::cpu) struct Activate<'a, T> {
    pub after: &'a After<T>,
    pub row: usize,
    pub panel: usize,
    pub rows: usize,
    pub vectors: usize,
}

impl<T: Real> WithSimd for Activate<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { after, row, panel, rows, vectors } = self;
        let (lanes, width) = (T::lanes::<S>(), after.z.width);
        with_curve!(after.activation, |curve| {
            // SAFETY: as in `Forward::finish`.
            unsafe {
                let z = after.z.at(panel, row);
                if let Some(output) = after.output {
                    let a = output.at(panel, row);
                    for r in 0..rows {
                        for v in 0..vectors {
                            let at = r * width + v * lanes;
                            T::store::<S>(a.add(at), curve.value::<T, S>(simd, T::load::<S>(z.add(at))));
                        }
                    }
                }
                if let Some((head, partial, block)) = after.head {
                    let sums = partial.at(panel, row / block);
                    for v in 0..vectors {
                        let mut sum = T::load::<S>(sums.add(v * lanes));
                        for r in 0..rows {
                            let value = curve.value::<T, S>(simd, T::load::<S>(z.add(r * width + v * lanes)));
                            sum = T::mul_add(simd, T::splat(simd, *head.0.add(row + r)), value, sum);
                        }
                        T::store::<S>(sums.add(v * lanes), sum);
                    }
                }
            }
        });
    }
}

impl<T: Real> WithSimd for Forward<'_, T> {
    type Output = ();
    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (rows, depth, weights, bias) = (self.rows.clone(), self.input.rows(), self.weights, self.bias);
        let (input, panels) = (self.input, self.panels.clone());
        let z = self.after.z;
        let waiting = match self.waiting {
            Some(start) => Waiting::in_rows::<S>(start),
            None => Waiting::in_panels(z.start, z.rows, z.width),
        };
        // SAFETY: the network sized all buffers for its layers, and gave this thread these rows.
        unsafe {
            if let Some((_, partial, block)) = self.after.head {
                for panel in panels.clone() {
                    for index in rows.start / block..rows.end.div_ceil(block) {
                        std::slice::from_raw_parts_mut(partial.at(panel, index), partial.width).fill(T::default());
                    }
                }
            }
            for rows in row_blocks::<T>(rows, depth) {
                for pass in in_passes(input, panels.clone()) {
                    let (bias, rows) = (bias.map(|b| b.0), rows.clone());
                    into_panels(simd, rows.clone(), depth, weights, bias, input, pass.clone(), waiting, &mut self);
                    // while the panel is still in the cache
                    if let (Some(output), Some(turned)) = (self.after.output, self.after.turned) {
                        let width = input.width();
                        transpose_rows(rows, pass.start * width..(pass.end * width).min(input.cols()), output, turned);
                    }
                }
            }
        }
    }
}

impl<T: Real> DenseNetwork<T> {
    /// Computes all scores and keeps every layer's preactivations.
    pub(in crate::engine::cpu) fn score_whole(&mut self, at: At<'_>) {
        self.kept = true;
        self.shape_buffers(self.bound.examples);
        if let (Some(sparse), false) = (&mut self.sparse, self.in_batch) {
            sparse.take_all(&self.team, &self.source);
        }
        let weights = Raw(self.weights(at));
        self.forward_panels(weights, 0..self.bound.examples.div_ceil(self.panel_width()), true);
    }

    /// Examples in a panel.
    pub(in crate::engine::cpu) fn panel_width(&self) -> usize {
        self.hidden.first().map_or_else(|| self.inputs().forward.width(), |hidden| hidden.signals.width())
    }

    /// Scores of these panels of the examples, in buffers whose first panel is the first of them.
    pub(in crate::engine::cpu) fn forward_panels(&mut self, weights: Raw<T>, panels: Range<usize>, keep: bool) {
        let fused = self.fused();
        let count = self.hidden.len();
        let width = self.panel_width();
        let examples = panels.start * width..(panels.end * width).min(self.bound.examples);
        for h in 0..count {
            let (below, rest) = self.hidden.split_at_mut(h);
            let current = &mut rest[0];
            let (input, panels) = match below.last() {
                Some(hidden) => (&hidden.output, 0..panels.len()),
                None => (&if self.in_batch { &self.batch } else { &self.all }.forward, panels.clone()),
            };
            let layer = &self.layers[h];
            let head = (fused && h + 1 == count).then(|| self.layers[count].weight);
            let output = head.is_none().then(|| RawPanels::new(&mut current.output));
            let block = if head.is_some() { block_size(layer.outputs) } else { TILE };
            let partial = RawPanels::new(&mut self.partial);
            let after = After {
                activation: layer.activation,
                z: RawPanels::new(&mut current.signals),
                output,
                turned: output.filter(|_| keep).map(|_| RawPanels::new(&mut current.turned)),
                head: head.map(|offset| (Raw(weights.at(offset)), partial, block)),
            };
            if let (Some(sparse), 0) = (&mut self.sparse, h) {
                sparse.forward(&self.team, self.arch, layer, after, &current.signals);
                continue;
            }
            let after = after.counted_from(panels.start);
            let waiting = SharedSlice::new(&mut self.waiting);
            let arch = self.arch;
            share(&self.team, (layer.outputs, block), layer.inputs * layer.outputs * examples.len(), |rows| {
                let at = |offset: usize| weights.at(offset);
                arch.dispatch(Forward {
                    rows,
                    weights: Rows { start: at(layer.weight), row: layer.inputs, step: 1 },
                    bias: layer.bias.map(|offset| Raw(at(offset))),
                    input,
                    panels: panels.clone(),
                    after,
                    waiting: Some(waiting.pointer()),
                });
            });
        }
        if fused {
            self.sum_partial_scores(weights, examples);
        } else {
            self.plain_head(weights, panels, examples);
        }
    }

    /// Adds the partial scores of a fused head, for the given examples, in the order of their blocks.
    pub(in crate::engine::cpu) fn sum_partial_scores(&mut self, weights: Raw<T>, examples: Range<usize>) {
        let head = &self.layers[self.layers.len() - 1];
        // SAFETY: the bias offset lies inside the parameters.
        let bias = head.bias.map_or(0.0, |offset| unsafe { *weights.0.add(offset) }.to_f64());
        let (scale, partial) = (self.scale, &self.partial);
        let all = &mut self.bound.scores[examples];
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
    pub(in crate::engine::cpu) fn plain_head(&mut self, weights: Raw<T>, panels: Range<usize>, examples: Range<usize>) {
        let outer = RawPanels::new(&mut self.outer);
        let (input, outer, panels) = match self.hidden.last() {
            Some(hidden) => (&hidden.output, outer, 0..panels.len()),
            None => (&self.inputs().forward, outer.counted_from(panels.start), panels),
        };
        let layer = &self.layers[self.layers.len() - 1];
        let arch = self.arch;
        share(&self.team, (panels.len(), 1), layer.inputs * layer.outputs * examples.len(), |blocks| {
            arch.dispatch(Forward {
                rows: 0..layer.outputs,
                weights: Rows { start: weights.at(layer.weight), row: layer.inputs, step: 1 },
                bias: layer.bias.map(|offset| Raw(weights.at(offset))),
                input,
                panels: panels.start + blocks.start..panels.start + blocks.end,
                after: After::nothing(outer),
                waiting: None,
            });
        });
        let (outputs, scale) = (layer.outputs, self.scale);
        let scores = &mut self.bound.scores[examples.start * outputs..examples.end * outputs];
        for (n, scores) in scores.chunks_exact_mut(outputs).enumerate() {
            for (c, score) in scores.iter_mut().enumerate() {
                *score = scale * self.outer.get(c, n).to_f64();
            }
        }
    }
}
