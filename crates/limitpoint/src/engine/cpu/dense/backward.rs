//! The backward pass through all layers, from the scores' cotangents down.

use super::raw::{Raw, RawPanels};
use super::signals::{Backward, OnlyWeights, Source, WeightGradient};
use super::target::{Seen, Step, Target};
use super::{DenseNetwork, TILE, make_shared, share};
use crate::engine::cpu::clear_frozen;
use crate::linalg::tile::Rows;
use crate::linalg::{Panels, Real, SharedSlice};
use crate::params::Update;

impl<T: Real> DenseNetwork<T> {
    /// Turns z into δ in every layer that needs it and, given a gradient, fills it.
    pub(super) fn backward(&mut self, params: &[f64], cotangent: &[f64], gradient: Option<&mut [f64]>) {
        assert_eq!(params.len(), self.bound.layout.len(), "parameters of another layout");
        let gradient = gradient.map(|gradient| self.shared(gradient));
        let lowest = gradient.map(|gradient| Target::Gradient(gradient.pointer()));
        self.pull_signals(Raw(self.weights_at(params.as_ptr())), cotangent, gradient, lowest);
    }

    /// A step in one pass; `scratch` takes the gradient of all but the lowest weights, by far the most, which move while
    /// theirs is made: no back-signal needs them but those of the inputs, which are made first where they are asked for.
    pub(super) fn descend_in_one_pass(
        &mut self,
        entries: &mut [f64],
        cotangent: &[f64],
        update: Update,
        scratch: &mut [f64],
        below: Option<&mut Panels<T>>,
    ) -> bool {
        assert_eq!(entries.len(), self.bound.layout.len(), "parameters of another layout");
        let (end, seen, start) = (self.layers[0].end(), Seen::default(), entries.as_mut_ptr());
        let (weights, gradient) = (Raw(self.weights_at(start)), self.shared(scratch));
        // a sparse layer moves copies of its own
        let copy = if self.sparse.is_some() { None } else { self.rounded.lowest() };
        let step = Target::Step(Step { weights: start, update, seen: &seen, copy });
        self.pull_signals(weights, cotangent, Some(gradient), below.is_none().then_some(step));
        if let Some(below) = below {
            self.signals_below(weights, below);
            self.pull_lowest_weights(step);
        }
        let scratch = &scratch[end..];
        seen.look(scratch);
        make_shared(&self.team, &mut entries[end..], update, scratch);
        self.rounded.round(&self.team, entries, end);
        if let Some(sparse) = &mut self.sparse {
            sparse.pack_biases(entries, &self.layers[0]);
        }
        seen.any()
    }

    /// Zeros for what is frozen in a gradient, and what all threads write it by.
    fn shared(&self, gradient: &mut [f64]) -> SharedSlice<f64> {
        clear_frozen(&self.bound.layout, gradient);
        SharedSlice::new(gradient)
    }

    /// Turns z into δ in every layer that needs it and fills the gradient, if one is given; that of the lowest weights is
    /// handed to a target of its own, or not made where somebody still needs them as they are.
    fn pull_signals(
        &mut self,
        weights: Raw<T>,
        cotangent: &[f64],
        gradient: Option<SharedSlice<f64>>,
        lowest_weights: Option<Target<'_, T>>,
    ) {
        assert_eq!(cotangent.len(), self.bound.examples * self.bound.outputs, "one cotangent per score");
        assert_eq!(self.shaped, Some(self.bound.examples), "scores come before gradients");
        let place = |gradient: SharedSlice<f64>, offset| gradient.pointer().wrapping_add(offset);
        let (scale, fused, head) = (self.scale, self.fused(), self.layers.len() - 1);
        let layer = &self.layers[head];
        if let (Some(gradient), Some(bias), false) = (gradient, layer.bias, layer.frozen) {
            for c in 0..layer.outputs {
                let sum: f64 = cotangent.iter().skip(c).step_by(layer.outputs).sum();
                // SAFETY: the bias block lies inside the gradient.
                unsafe { *place(gradient, bias + c) = scale * sum };
            }
        }
        if fused {
            self.cotangent.iter_mut().zip(cotangent).for_each(|(to, from)| *to = T::from_f64(scale * from));
        } else {
            self.plain_head_gradient(cotangent, gradient);
        }
        if let (Some(gradient), false) = (gradient, self.kept) {
            debug_assert!(matches!(lowest_weights, Some(Target::Gradient(_))), "planar networks write it down");
            return self.planar_backward(weights, gradient);
        }
        let trained = self.layers.iter().position(|layer| !layer.frozen).unwrap_or(0);
        let lowest = if gradient.is_none() || self.wants_all_signals { 0 } else { trained };
        // a fused head's gradient is made on the way through the layer below it, even if that layer is frozen
        let lowest = if fused { lowest.min(head - 1) } else { lowest };
        let sparse = self.sparse.is_some();
        let lowest_weights = lowest_weights.filter(|_| !self.layers[0].frozen);
        for h in (lowest..head).rev() {
            let (rest, above) = self.hidden.split_at_mut(h + 1);
            let (below, current) = rest.split_at_mut(h);
            let current = &mut current[0];
            let (layer, next) = (&self.layers[h], &self.layers[h + 1]);
            let signals = RawPanels::new(&mut current.signals);
            let shape = &current.signals;
            let kinks = current.kinks.as_slice();
            let (input, turned) = match below.last() {
                Some(hidden) => (&hidden.output, &hidden.turned),
                None if self.in_batch => (&self.batch.forward, &self.batch.turned),
                None => (&self.all.forward, &self.all.turned),
            };
            let wanted = gradient.filter(|_| !layer.frozen);
            let target = match h {
                0 => lowest_weights.filter(|_| !sparse),
                _ => wanted.map(|gradient| Target::Gradient(place(gradient, layer.weight))),
            };
            let waiting = SharedSlice::new(&mut self.waiting);
            let (cotangent, outer) = (&self.cotangent[..], &self.outer);
            let (activation, arch) = (layer.activation, self.arch);
            let single = fused && h + 1 == head;
            let cost = layer.outputs * self.bound.examples * (layer.inputs + if single { 1 } else { next.outputs });
            share(&self.team, (layer.outputs, TILE), cost, |rows| {
                let source = if single {
                    Source::SingleHead {
                        head: Raw(weights.at(next.weight)),
                        cotangent,
                        gradient: gradient.filter(|_| !next.frozen).map(|gradient| place(gradient, next.weight)),
                    }
                } else {
                    Source::Layer {
                        weights: Rows { start: weights.at(next.weight), row: 1, step: next.inputs },
                        above: above.first().map_or(outer, |hidden| &hidden.signals),
                    }
                };
                arch.dispatch(Backward {
                    rows,
                    activation,
                    source,
                    signals,
                    shape,
                    kinks,
                    weights: target.map(|target| WeightGradient { few: Some(input), turned, target }),
                    bias: wanted.zip(layer.bias).map(|(gradient, offset)| place(gradient, offset)),
                    waiting: waiting.pointer(),
                });
            });
        }
        if let (Some(sparse), Some(target)) = (&mut self.sparse, lowest_weights) {
            let signals = RawPanels::new(&mut self.hidden[0].signals);
            sparse.gradient(&self.team, self.arch, &self.layers[0], signals, target);
        }
    }

    /// Packs the cotangents of an output layer that is not fused, and fills the gradient of its weights.
    fn plain_head_gradient(&mut self, cotangent: &[f64], gradient: Option<SharedSlice<f64>>) {
        let (outputs, scale) = (self.bound.outputs, self.scale);
        // the forward pass left scores in the padding columns
        self.outer.data_mut().fill(T::default());
        for (n, cotangent) in cotangent.chunks_exact(outputs).enumerate() {
            for (c, value) in cotangent.iter().enumerate() {
                self.outer.set(c, n, T::from_f64(scale * value));
            }
        }
        let layer = &self.layers[self.layers.len() - 1];
        let Some(gradient) = gradient.filter(|_| !layer.frozen) else { return };
        let waiting = SharedSlice::new(&mut self.waiting);
        let turned = match self.hidden.last() {
            Some(hidden) => &hidden.turned,
            None => &self.inputs().turned,
        };
        let (arch, outer) = (self.arch, &self.outer);
        share(&self.team, (turned.count(), 1), layer.inputs * outputs * self.bound.examples, |panels| {
            let target = Target::Gradient(gradient.pointer().wrapping_add(layer.weight));
            arch.dispatch(OnlyWeights {
                rows: 0..outputs,
                panels,
                signals: outer,
                weights: WeightGradient { few: None, turned, target },
                waiting: waiting.pointer(),
            });
        });
    }
}
