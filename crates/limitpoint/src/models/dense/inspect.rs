//! Looking into a dense network: per-example gradients, their Gram matrix, kinks.

use super::DenseNetwork;
use crate::linalg::{Matrix, Real, matmul_nt};
use crate::models::{Kink, Model};

impl<T: Real> DenseNetwork<T> {
    /// The input of layer l for every example (examples × inputs), after a forward pass.
    fn layer_input(&self, l: usize) -> Matrix {
        let cols = self.layers[l].inputs;
        let panels = match l.checked_sub(1).map(|h| &self.hidden[h]) {
            None => &self.inputs().forward,
            Some(hidden) => hidden.output.as_ref().unwrap_or(&hidden.signals),
        };
        // the last hidden layer under a fused head keeps no output: apply the activation to z
        let activate = l > 0 && self.hidden[l - 1].output.is_none();
        let mut out = Matrix::zeros(self.examples, cols);
        for n in 0..self.examples {
            for k in 0..cols {
                let value = panels.get(k, n).to_f64();
                out[(n, k)] = if activate { self.architecture.activation.value(value) } else { value };
            }
        }
        out
    }

    /// Inputs of all layers and, per layer, the back-signals of one output (examples × units).
    fn signals_of(&mut self, params: &[f64], output: usize) -> (Vec<Matrix>, Vec<Matrix>) {
        self.scores(params);
        let inputs: Vec<Matrix> = (0..self.layers.len()).map(|l| self.layer_input(l)).collect();
        let outputs = self.architecture.outputs;
        let mut cotangent = vec![0.0; self.examples * outputs];
        cotangent.iter_mut().skip(output).step_by(outputs).for_each(|c| *c = 1.0);
        self.backward(params, &cotangent, None);
        let mut signals: Vec<Matrix> = Vec::new();
        for hidden in &self.hidden {
            let units = hidden.signals.rows();
            let mut delta = Matrix::zeros(self.examples, units);
            for n in 0..self.examples {
                (0..units).for_each(|j| delta[(n, j)] = hidden.signals.get(j, n).to_f64());
            }
            signals.push(delta);
        }
        let mut top = Matrix::zeros(self.examples, outputs);
        (0..self.examples).for_each(|n| top[(n, output)] = self.architecture.output_scale);
        signals.push(top);
        (inputs, signals)
    }

    /// ∇Φ_output(xₙ) as rows: in layer l it is the outer product of back-signal and input.
    pub(super) fn rows_of_jacobian(&mut self, params: &[f64], output: usize) -> Matrix {
        let (inputs, signals) = self.signals_of(params, output);
        let mut out = Matrix::zeros(self.examples, self.layout.len());
        for (l, layer) in self.layers.iter().enumerate().filter(|(_, layer)| !layer.frozen) {
            for n in 0..self.examples {
                let row = &mut out.data[n * self.layout.len()..(n + 1) * self.layout.len()];
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
    pub(super) fn layerwise_gram(&mut self, params: &[f64]) -> Matrix {
        let (count, outputs) = (self.examples, self.architecture.outputs);
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

    /// Preactivations within `tolerance` of a kink, relative to ‖w_j‖‖a(n)‖.
    pub(super) fn find_kinks(&mut self, params: &[f64], tolerance: f64) -> Vec<Kink> {
        let Some(slopes) = self.architecture.activation.kink() else { return Vec::new() };
        let mut kinks = Vec::new();
        for h in 0..self.hidden.len() {
            let layer = &self.layers[h];
            let norms: Vec<f64> = {
                let input = self.layer_input(h);
                (0..self.examples).map(|n| crate::linalg::norm2(input.row(n))).collect()
            };
            for unit in 0..layer.outputs {
                let from = layer.weight + unit * layer.inputs;
                let weight = crate::linalg::norm2(&params[from..from + layer.inputs]);
                for (example, norm) in norms.iter().enumerate() {
                    let z = self.hidden[h].signals.get(unit, example).to_f64();
                    if z.abs() <= tolerance * weight * norm {
                        kinks.push(Kink { layer: h, unit, example, slopes });
                    }
                }
            }
        }
        kinks
    }
}
