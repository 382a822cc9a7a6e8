//! The backward pass through all layers, from the scores' cotangents down.

use super::raw::{Raw, RawPanels};
use super::signals::{Backward, OnlyWeights, Source, WeightGradient};
use super::target::{Seen, Step, Target};
use super::{DenseNetwork, TILE, make_shared, share};
use crate::linalg::Real;
use crate::linalg::tile::Rows;
use crate::params::{Parameters, Update};

/// What a backward pass does about the lowest weights.
pub(super) enum LowestWeights<'a, T> {
    /// Their gradient is written down with the others.
    Written,
    /// They make a step while their gradient is made.
    Moved(Step<'a, T>),
    /// Nothing yet: somebody needs them as they are.
    Left,
}

impl<T: Real> DenseNetwork<T> {
    /// Turns z into δ in every layer that needs it and, given a gradient, fills it.
    pub(super) fn backward(&mut self, params: &[f64], cotangent: &[f64], gradient: Option<&mut [f64]>) {
        assert_eq!(params.len(), self.bound.layout.len(), "parameters of another layout");
        self.pull_signals(Raw(self.weights_at(params.as_ptr())), cotangent, gradient, LowestWeights::Written);
    }

    /// Whether a step can move the lowest layer as its gradient is made.
    pub(super) fn moves_in_one_pass(&self) -> bool {
        self.kept && !self.hidden.is_empty() && !self.layers[0].frozen && !self.in_pieces()
    }

    /// A step in one pass; `scratch` takes the gradient of all but the lowest weights, which no back-signal
    /// needs, so that they can move while others are still to come.
    pub(super) fn descend_in_one_pass(
        &mut self,
        params: &mut Parameters,
        cotangent: &[f64],
        update: Update,
        scratch: &mut [f64],
    ) -> bool {
        assert_eq!(params.read().len(), self.bound.layout.len(), "parameters of another layout");
        let (lowest, end, seen) = (self.layers[0].weight, self.layers[0].end(), Seen::default());
        debug_assert_eq!(lowest, 0, "the lowest weights come first");
        let entries = params.write();
        let start = entries.as_mut_ptr();
        // a sparse layer moves copies of its own
        let copy = if self.sparse.is_some() { None } else { self.rounded.lowest() };
        let step = Step { weights: start.wrapping_add(lowest), update, seen: &seen, copy };
        self.pull_signals(Raw(self.weights_at(start)), cotangent, Some(scratch), LowestWeights::Moved(step));
        self.move_others(entries, end, update, scratch, &seen);
        if let Some(sparse) = &mut self.sparse {
            sparse.pack_biases(entries, &self.layers[0]);
        }
        self.rounded.version = Some(params.version());
        seen.any()
    }

    /// Moves the parameters from `end` on, and their copies.
    pub(super) fn move_others(
        &mut self,
        entries: &mut [f64],
        end: usize,
        update: Update,
        scratch: &[f64],
        seen: &Seen,
    ) {
        seen.look(&scratch[end..]);
        make_shared(&self.team, &mut entries[end..], update, &scratch[end..]);
        self.rounded.round(&self.team, entries, end);
    }

    /// Turns z into δ in every layer that needs it and fills the gradient, if one is given. Another thing may become of
    /// the lowest weights: see [`DenseNetwork::moves_in_one_pass`].
    pub(super) fn pull_signals(
        &mut self,
        weights: Raw<T>,
        cotangent: &[f64],
        gradient: Option<&mut [f64]>,
        lowest_weights: LowestWeights<'_, T>,
    ) {
        assert_eq!(cotangent.len(), self.bound.examples * self.bound.outputs, "one cotangent per score");
        assert_eq!(self.shaped, Some(self.bound.examples), "scores come before gradients");
        let (gradient, no_gradient) = match gradient {
            Some(gradient) => {
                assert_eq!(gradient.len(), self.bound.layout.len(), "a gradient is as long as the parameters");
                for block in self.bound.layout.blocks().iter().filter(|block| block.frozen) {
                    gradient[block.range()].fill(0.0);
                }
                (RawPanels { start: gradient.as_mut_ptr(), rows: 0, width: 0 }, false)
            }
            None => (RawPanels { start: std::ptr::null_mut(), rows: 0, width: 0 }, true),
        };
        let in_one_pass = !matches!(lowest_weights, LowestWeights::Written);
        let lowest_weights = match lowest_weights {
            LowestWeights::Moved(step) => Some(Target::Step(step)),
            LowestWeights::Written if !no_gradient => Some(Target::Gradient(gradient.place(self.layers[0].weight))),
            LowestWeights::Written | LowestWeights::Left => None,
        };
        let lowest = if no_gradient || self.wants_all_signals {
            0
        } else {
            self.layers.iter().position(|layer| !layer.frozen).unwrap_or(0)
        };
        let scale = self.scale;
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
            debug_assert!(!in_one_pass, "planar networks write their gradient down");
            return self.planar_backward(weights, gradient);
        }
        let sparse = self.sparse.is_some();
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
            let (cotangent, outer) = (&self.cotangent[..], &self.outer);
            let (activation, arch) = (layer.activation, self.arch);
            let single = fused && h + 1 == head;
            let cost = layer.outputs * self.bound.examples * (layer.inputs + if single { 1 } else { next.outputs });
            share(&self.team, (layer.outputs, TILE), cost, |rows| {
                let wanted = !no_gradient && !layer.frozen;
                let target = if h > 0 { Some(Target::Gradient(gradient.place(layer.weight))) } else { lowest_weights };
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
                    rows,
                    activation,
                    source,
                    signals,
                    shape,
                    kinks,
                    weights: match (input, turned, target) {
                        (Some(input), Some(turned), Some(target)) if wanted && !(sparse && h == 0) => {
                            Some(WeightGradient { few: Some(input), turned, target })
                        }
                        _ => None,
                    },
                    bias: layer.bias.filter(|_| wanted).map(|offset| gradient.place(offset)),
                    waiting: waiting.place(0),
                });
            });
        }
        if let (Some(sparse), Some(target), false) = (&mut self.sparse, lowest_weights, self.layers[0].frozen) {
            let signals = RawPanels::new(&mut self.hidden[0].signals);
            sparse.gradient(&self.team, self.arch, &self.layers[0], signals, target);
        }
    }

    /// Packs the cotangents of an output layer that is not fused, and fills its gradient.
    fn plain_head_gradient(&mut self, cotangent: &[f64], gradient: RawPanels<f64>, no_gradient: bool) {
        let (outputs, scale) = (self.bound.outputs, self.scale);
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
        let waiting = RawPanels { start: self.waiting.as_mut_ptr(), rows: 0, width: 0 };
        let turned = match self.hidden.last() {
            Some(hidden) => hidden.turned.as_ref().unwrap_or(&self.all.turned),
            None => &self.inputs().turned,
        };
        let (arch, outer) = (self.arch, &self.outer);
        share(&self.team, (turned.count(), 1), layer.inputs * outputs * self.bound.examples, |panels| {
            let target = Target::Gradient(gradient.place(layer.weight));
            arch.dispatch(OnlyWeights {
                rows: 0..outputs,
                panels,
                signals: outer,
                weights: WeightGradient { few: None, turned, target },
                waiting: waiting.place(0),
            });
        });
    }
}
