//! Looking into a dense network: per-example gradients, their Gram matrix, kinks.

use std::ops::Range;

use super::plan::LARGE;
use super::{DenseNetwork, Stage};
use crate::engine::{Evaluator, Kink, KinkColumn, Kinks, Tangents};
use crate::linalg::{Matrix, Real, matmul_nt};
use crate::memory::bytes;

impl<T: Real> DenseNetwork<T> {
    /// All preactivations of all examples in use, whatever way scores would go.
    fn forward_whole(&mut self, params: &[f64]) {
        self.scored_in_shards = false;
        self.score_whole(params.into());
    }

    /// The input of layer `l` for every example (examples × inputs), after a forward pass and before any gradient.
    pub(in crate::engine::cpu) fn layer_input(&self, l: usize) -> Matrix {
        let mut inputs = Matrix::zeros(self.bound.examples, self.layers[l].inputs);
        (0..inputs.rows).for_each(|n| self.copy_layer_input(l, n, inputs.row_mut(n)));
        inputs
    }

    /// The same for one example.
    pub(in crate::engine::cpu) fn copy_layer_input(&self, l: usize, n: usize, to: &mut [f64]) {
        let under_fused_head = self.fused() && l == self.hidden.len();
        for (k, to) in to.iter_mut().enumerate() {
            *to = match l.checked_sub(1) {
                None => self.input(n, k),
                // only z is there
                Some(below) if under_fused_head => {
                    self.layers[below].activation.value(self.hidden[below].signals.get(k, n).to_f64())
                }
                Some(below) => self.hidden[below].output.get(k, n).to_f64(),
            };
        }
    }

    /// Feature k of example n of those in use, as the network rounds it.
    fn input(&self, n: usize, k: usize) -> f64 {
        if self.wants_all_signals {
            return self.batch.forward.get(k, n).to_f64(); // somebody else's
        }
        T::from_f64(self.source[(if self.in_batch { self.taken[n] } else { n }, k)]).to_f64()
    }

    /// The signals of some units of layer `l` for one example, after the gradient of the given output.
    pub(in crate::engine::cpu) fn copy_signals(
        &self,
        l: usize,
        n: usize,
        output: usize,
        units: Range<usize>,
        to: &mut [f64],
    ) {
        for (unit, to) in units.zip(to) {
            *to = match self.hidden.get(l) {
                Some(hidden) => hidden.signals.get(unit, n).to_f64(),
                None if unit == output => self.scale,
                None => 0.0,
            };
        }
    }

    /// min |z| over the preactivations with a kink of the first `examples` in the buffers, after a forward pass.
    pub(in crate::engine::cpu) fn smallest_signal(&self, examples: usize) -> f64 {
        let mut smallest = f64::INFINITY;
        let kinked = self.hidden.iter().zip(&self.layers).filter(|(_, layer)| layer.activation.kink().is_some());
        for signals in kinked.map(|(hidden, _)| &hidden.signals) {
            for panel in 0..examples.div_ceil(signals.width()) {
                let filled = signals.width().min(examples - panel * signals.width());
                for row in 0..signals.rows() {
                    let at = signals.offset(panel, row);
                    let sizes = signals.data()[at..at + filled].iter().map(|z| z.to_f64().abs());
                    smallest = sizes.fold(smallest, f64::min);
                }
            }
        }
        smallest
    }

    /// Inputs of all layers and, per layer, the back-signals of one output (examples × units).
    fn signals_of(&mut self, params: &[f64], output: usize) -> (Vec<Matrix>, Vec<Matrix>) {
        self.forward_whole(params);
        let inputs: Vec<Matrix> = (0..self.layers.len()).map(|l| self.layer_input(l)).collect();
        let outputs = self.bound.outputs;
        let mut cotangent = vec![0.0; self.bound.examples * outputs];
        cotangent.iter_mut().skip(output).step_by(outputs).for_each(|c| *c = 1.0);
        self.backward(params, &cotangent, None);
        let signals = |l: usize| {
            let mut signals = Matrix::zeros(self.bound.examples, self.layers[l].outputs);
            (0..signals.rows).for_each(|n| self.copy_signals(l, n, output, 0..signals.cols, signals.row_mut(n)));
            signals
        };
        (inputs, (0..self.layers.len()).map(signals).collect())
    }

    /// Scores after one parameter of a network with one hidden layer is changed: only one unit changes with it.
    fn scores_with_moved_unit(&self, params: &[f64], entry: usize, change: f64, out: &mut [f64]) {
        let (layer, head, outputs, scale) = (&self.layers[0], &self.layers[1], self.bound.outputs, self.scale);
        out.copy_from_slice(&self.bound.scores);
        if let Some(bias) = head.bias.filter(|bias| (*bias..bias + outputs).contains(&entry)) {
            return out.iter_mut().skip(entry - bias).step_by(outputs).for_each(|score| *score += scale * change);
        }
        let place = |stage: &Stage| (stage.weight..stage.end()).contains(&entry).then(|| entry - stage.weight);
        let in_head = place(head);
        // the unit and, in the hidden layer, which of its inputs; none for its bias
        let (unit, input) = match (in_head, place(layer)) {
            (Some(place), _) => (place % head.inputs, None),
            (_, Some(place)) => (place / layer.inputs, Some(place % layer.inputs)),
            _ => (entry - layer.bias.unwrap_or(0), None),
        };
        let weights = &params[layer.weight + unit * layer.inputs..layer.weight + (unit + 1) * layer.inputs];
        let bias = layer.bias.map_or(0.0, |bias| params[bias + unit]);
        for (n, scores) in out.chunks_exact_mut(outputs).enumerate() {
            let x = self.source.row(n);
            let z = crate::linalg::dot(x, weights) + bias;
            let value = layer.activation.value(z);
            if let Some(place) = in_head {
                scores[place / head.inputs] += scale * change * value;
                continue;
            }
            let moved = layer.activation.value(z + change * input.map_or(1.0, |k| x[k])) - value;
            for (c, score) in scores.iter_mut().enumerate() {
                *score += scale * params[head.weight + c * head.inputs + unit] * moved;
            }
        }
    }

    fn columns_by_difference(&mut self, params: &[f64], cotangent: &[f64], kinks: &[Kink]) -> Vec<KinkColumn> {
        let gradient_with = |network: &mut Self, weighed: &[(Kink, f64)]| {
            let mut gradient = vec![0.0; network.bound.layout.len()];
            network.weigh(weighed);
            network.score(params.into());
            network.pull_back(params.into(), cotangent, &mut gradient);
            gradient
        };
        let left: Vec<(Kink, f64)> = kinks.iter().map(|kink| (*kink, 0.0)).collect();
        let base = gradient_with(self, &left);
        let mut columns = Vec::new();
        for moved in 0..kinks.len() {
            let mut weighed = left.clone();
            weighed[moved].1 = 1.0;
            let mut change = gradient_with(self, &weighed);
            crate::linalg::add_scaled(&mut change, -1.0, &base);
            columns.push(vec![(0, change)]);
        }
        self.weigh(&[]);
        columns
    }
}

impl<T: Real> Tangents for DenseNetwork<T> {
    /// In layer l ∇Φ_output(xₙ) is the outer product of back-signal and input.
    fn per_example_gradients(&mut self, params: &[f64], output: usize) -> Matrix {
        let (inputs, signals) = self.signals_of(params, output);
        let mut out = Matrix::zeros(self.bound.examples, self.bound.layout.len());
        for (l, layer) in self.layers.iter().enumerate().filter(|(_, layer)| !layer.frozen) {
            for n in 0..self.bound.examples {
                let row = out.row_mut(n);
                for (j, &delta) in signals[l].row(n).iter().enumerate() {
                    let from = layer.weight + j * layer.inputs;
                    crate::linalg::add_scaled(&mut row[from..from + layer.inputs], delta, inputs[l].row(n));
                    if let Some(bias) = layer.bias {
                        row[bias + j] = delta;
                    }
                }
            }
        }
        out
    }

    /// The Gram matrix of per-example gradients without the gradients themselves.
    ///
    /// ```text
    /// ⟨∇Φ_c(xₙ), ∇Φ_d(xₘ)⟩ = Σ_l ⟨δ_l^c(n), δ_l^d(m)⟩ · (⟨a_{l−1}(n), a_{l−1}(m)⟩ + [layer l has a bias])
    /// ```
    fn gradient_gram(&mut self, params: &[f64]) -> Matrix {
        let (count, outputs) = (self.bound.examples, self.bound.outputs);
        let per_output: Vec<_> = (0..outputs).map(|c| self.signals_of(params, c)).collect();
        let mut gram = Matrix::zeros(count * outputs, count * outputs);
        let (mut inner, mut outer) = (vec![0.0; count * count], vec![0.0; count * count]);
        for (l, layer) in self.layers.iter().enumerate().filter(|(_, layer)| !layer.frozen) {
            let input = &per_output[0].0[l].data;
            matmul_nt(&mut inner, input, input, count, layer.inputs, count);
            if layer.bias.is_some() {
                inner.iter_mut().for_each(|x| *x += 1.0);
            }
            for c in 0..outputs {
                for d in 0..=c {
                    let (a, b) = (&per_output[c].1[l].data, &per_output[d].1[l].data);
                    matmul_nt(&mut outer, a, b, count, layer.outputs, count);
                    for n in 0..count {
                        for m in 0..count {
                            let value = inner[n * count + m] * outer[n * count + m];
                            gram[(n * outputs + c, m * outputs + d)] += value;
                            if c != d {
                                gram[(m * outputs + d, n * outputs + c)] += value;
                            }
                        }
                    }
                }
            }
        }
        gram
    }

    fn gram_bytes(&self) -> u128 {
        let (count, outputs) = (self.bound.examples, self.bound.outputs);
        let sizes = self.layers.iter().map(|layer| bytes(&[count, outputs, layer.inputs + layer.outputs], 8));
        let gram = bytes(&[count * outputs, count * outputs], 8).saturating_add(bytes(&[2, count, count], 8));
        sizes.fold(gram, u128::saturating_add)
    }

    fn scores_after(&mut self, params: &[f64], entry: usize, change: f64, out: &mut [f64]) {
        if self.hidden.len() == 1 && !self.in_batch {
            return self.scores_with_moved_unit(params, entry, change, out);
        }
        let mut moved = params.to_vec();
        moved[entry] += change;
        self.score((&moved).into());
        out.copy_from_slice(&self.bound.scores);
        self.score(params.into());
    }

    fn kinks(&mut self) -> Option<&mut dyn Kinks> {
        Some(self)
    }
}

impl<T: Real> Kinks for DenseNetwork<T> {
    fn near(&mut self, params: &[f64], radius: f64) -> Vec<Kink> {
        self.forward_whole(params);
        let mut kinks = Vec::new();
        for (h, hidden) in self.hidden.iter().enumerate() {
            let Some(slopes) = self.layers[h].activation.kink() else { continue };
            let input = self.layer_input(h);
            let bias = f64::from(u8::from(self.layers[h].bias.is_some()));
            for example in 0..self.bound.examples {
                let reach = radius * crate::linalg::norm2(input.row(example)).hypot(bias);
                if reach == 0.0 && radius > 0.0 {
                    continue; // no input, nothing that a step could move
                }
                for unit in 0..hidden.signals.rows() {
                    if hidden.signals.get(unit, example).to_f64().abs() <= reach {
                        kinks.push(Kink { layer: h, unit, example, slopes });
                    }
                }
            }
        }
        kinks
    }

    fn columns(&mut self, params: &[f64], cotangent: &[f64], kinks: &[Kink]) -> Vec<KinkColumn> {
        self.scored_in_shards = false;
        if self.hidden.len() > 1 {
            return self.columns_by_difference(params, cotangent, kinks);
        }
        let (layer, head, outputs) = (&self.layers[0], &self.layers[1], self.bound.outputs);
        let column = |kink: &Kink| {
            if layer.frozen {
                return KinkColumn::new();
            }
            let back: f64 = (0..outputs)
                .map(|c| params[head.weight + c * head.inputs + kink.unit] * cotangent[kink.example * outputs + c])
                .sum();
            let signal = (kink.slopes.1 - kink.slopes.0) * self.scale * back;
            let weights = (0..layer.inputs).map(|k| signal * self.input(kink.example, k)).collect();
            let mut runs = vec![(layer.weight + kink.unit * layer.inputs, weights)];
            runs.extend(layer.bias.map(|bias| (bias + kink.unit, vec![signal])));
            runs
        };
        kinks.iter().map(column).collect()
    }

    fn weigh(&mut self, kinks: &[(Kink, f64)]) {
        self.weighed = !kinks.is_empty();
        self.hidden.iter_mut().for_each(|hidden| hidden.kinks.clear());
        for (kink, e) in kinks {
            let slope = (1.0 - e) * kink.slopes.0 + e * kink.slopes.1;
            let inside = kink.unit < self.layers[kink.layer].outputs && kink.example < self.bound.examples;
            assert!(inside, "a kink of another batch or network");
            self.hidden[kink.layer].kinks.push((kink.unit, kink.example, slope));
        }
    }

    fn nearest(&mut self, params: &[f64]) -> Option<f64> {
        self.layers.iter().find(|layer| layer.activation.kink().is_some())?;
        self.scored_in_shards = false;
        if self.in_pieces() || (self.in_shards() && self.bound.examples > LARGE) {
            let mut smallest = f64::INFINITY;
            let look = |network: &Self, examples: usize| smallest = smallest.min(network.smallest_signal(examples));
            self.forward_in_pieces(params.into(), look);
            return Some(smallest);
        }
        self.score_whole(params.into());
        Some(self.smallest_signal(self.bound.examples))
    }
}
