//! First and second derivatives of the margins of a dense network.
//!
//! With adjoints u_l = ∂L/∂h_l and δ_l = u_l φ′(z_l) of L = Σ λ_k q_k, the second differential is the sum of what bends at each
//! node,
//!
//! ```text
//! d²L = Σ_l 2 ⟨δ_l, dW_l dh_{l−1}⟩ + Σ_l Σ_j u_lj φ″(z_lj) (dz_lj)²,      dh_l = φ′(z_l) dz_l.
//! ```

use super::network::Dense;
use crate::linalg::{add_scaled, dot};

/// Values of a forward pass, layer by layer, examples × units.
pub(in super::super) struct Pass {
    /// h_0, …, h_{L−1}.
    pub h: Vec<Vec<f64>>,
    /// z_1, …, z_{L−1}.
    pub z: Vec<Vec<f64>>,
    /// φ′ and φ″ there.
    pub slopes: Vec<Vec<f64>>,
    bends: Vec<Vec<f64>>,
    pub margins: Vec<f64>,
}

/// Which slopes hidden units have.
#[derive(Clone, Copy)]
pub(in super::super) enum Kinks<'a> {
    /// Kinks are rounded off by ε_l.
    Rounded(&'a [f64]),
    /// h = slope · z with given slopes, layer by layer; φ itself where there is none.
    Given(&'a [Vec<f64>]),
}

/// ∂z/∂θ of one unit on one example: entries of all layers below, and the unit's own inputs.
struct Motion {
    below: Vec<f64>,
    start: usize,
    own: Vec<f64>,
}

impl Dense {
    /// A forward pass.
    pub fn pass(&self, theta: &[f64], kinks: Kinks) -> Pass {
        let count = self.inputs.rows;
        let mut pass = Pass {
            h: vec![self.inputs.data.clone()],
            z: Vec::new(),
            slopes: Vec::new(),
            bends: Vec::new(),
            margins: Vec::new(),
        };
        for l in 0..self.layers() {
            let (from, to) = (self.sizes[l], self.sizes[l + 1]);
            let input = &pass.h[l];
            let z: Vec<f64> = (0..count * to)
                .map(|k| dot(self.row(theta, l, k % to), &input[k / to * from..(k / to + 1) * from]))
                .collect();
            if l + 1 == self.layers() {
                pass.margins = self.margins_of(&z);
                break;
            }
            let (mut h, mut slopes, mut bends) = (z.clone(), vec![0.0; z.len()], vec![0.0; z.len()]);
            for k in 0..z.len() {
                (h[k], slopes[k], bends[k]) = match kinks {
                    Kinks::Rounded(epsilon) => self.rounded(z[k], epsilon[l]),
                    Kinks::Given(given) if self.activation.kink().is_some() => (given[l][k] * z[k], given[l][k], 0.0),
                    Kinks::Given(_) => self.rounded(z[k], 0.0),
                };
            }
            pass.h.push(h);
            pass.slopes.push(slopes);
            pass.bends.push(bends);
            pass.z.push(z);
        }
        pass
    }

    /// Adjoints (u_l of hidden layers, δ_l of all layers) of one example for weights of its scores.
    fn adjoints(&self, theta: &[f64], pass: &Pass, example: usize, scores: Vec<f64>) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
        let layers = self.layers();
        let (mut u, mut delta) = (vec![Vec::new(); layers - 1], vec![Vec::new(); layers]);
        delta[layers - 1] = scores;
        for l in (0..layers - 1).rev() {
            let width = self.sizes[l + 1];
            let mut own = vec![0.0; width];
            for (k, weight) in delta[l + 1].iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                add_scaled(&mut own, *weight, self.row(theta, l + 1, k));
            }
            let slopes = &pass.slopes[l][example * width..(example + 1) * width];
            delta[l] = own.iter().zip(slopes).map(|(u, s)| u * s).collect();
            u[l] = own;
        }
        (u, delta)
    }

    /// The weights that multipliers give to the scores, examples × outputs.
    fn cotangents(&self, lambda: &[f64]) -> Vec<Vec<f64>> {
        let mut out = vec![vec![0.0; self.sizes[self.layers()]]; self.inputs.rows];
        for (row, weight) in self.margins.iter().zip(lambda) {
            row.scores.iter().for_each(|(o, c)| out[row.example][*o] += weight * c);
        }
        out
    }

    /// Adds ∂⟨scores, weights⟩/∂θ of an example.
    fn add_gradient(&self, pass: &Pass, example: usize, delta: &[Vec<f64>], out: &mut [f64]) {
        for (l, delta) in delta.iter().enumerate() {
            let from = self.sizes[l];
            let input = &pass.h[l][example * from..(example + 1) * from];
            for (unit, weight) in delta.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                let start = self.offsets[l] + unit * from;
                add_scaled(&mut out[start..start + from], *weight, input);
            }
        }
    }

    /// ∇q_k as rows, for the margins in `which`.
    pub fn margin_gradients(&self, theta: &[f64], pass: &Pass, which: &[usize]) -> Vec<Vec<f64>> {
        let gradient = |&k: &usize| {
            let mut scores = vec![0.0; self.sizes[self.layers()]];
            self.margins[k].scores.iter().for_each(|(o, c)| scores[*o] += c);
            let (_, delta) = self.adjoints(theta, pass, self.margins[k].example, scores);
            let mut out = vec![0.0; self.len()];
            self.add_gradient(pass, self.margins[k].example, &delta, &mut out);
            out
        };
        which.iter().map(gradient).collect()
    }

    /// u of every hidden unit, examples × units, for multipliers.
    pub fn signals(&self, theta: &[f64], pass: &Pass, lambda: &[f64]) -> Vec<Vec<f64>> {
        let mut out: Vec<Vec<f64>> = pass.z.iter().map(|_| Vec::new()).collect();
        for (example, scores) in self.cotangents(lambda).into_iter().enumerate() {
            let (u, _) = self.adjoints(theta, pass, example, scores);
            out.iter_mut().zip(u).for_each(|(out, u)| out.extend(u));
        }
        out
    }

    /// How preactivations of an example move with θ, up to hidden layer `last`.
    fn motions(&self, theta: &[f64], pass: &Pass, example: usize, last: usize) -> Vec<Vec<Motion>> {
        let mut all: Vec<Vec<Motion>> = Vec::new();
        for l in 0..=last {
            let from = self.sizes[l];
            let own = &pass.h[l][example * from..(example + 1) * from];
            let motion = |unit: usize| {
                let mut below = vec![0.0; self.offsets[l]];
                if let Some(before) = all.last() {
                    let slopes = &pass.slopes[l - 1][example * from..(example + 1) * from];
                    for ((weight, slope), motion) in self.row(theta, l, unit).iter().zip(slopes).zip(before) {
                        motion.add(weight * slope, &mut below);
                    }
                }
                Motion { below, start: self.offsets[l] + unit * from, own: own.to_vec() }
            };
            let layer = (0..self.sizes[l + 1]).map(motion).collect();
            all.push(layer);
        }
        all
    }

    /// ∂z/∂θ of hidden units (layer, example, unit).
    pub fn kink_gradients(&self, theta: &[f64], pass: &Pass, kinks: &[(usize, usize, usize)]) -> Vec<Vec<f64>> {
        let gradient = |&(l, example, unit): &(usize, usize, usize)| {
            let mut out = vec![0.0; self.len()];
            self.motions(theta, pass, example, l)[l][unit].add(1.0, &mut out);
            out
        };
        kinks.iter().map(gradient).collect()
    }

    /// ∇²Σ λ_k q_k, row by row, symmetric.
    pub fn curvature(&self, theta: &[f64], pass: &Pass, lambda: &[f64]) -> Vec<f64> {
        let size = self.len();
        let mut out = vec![0.0; size * size];
        let mut row = vec![0.0; size];
        for (example, scores) in self.cotangents(lambda).into_iter().enumerate() {
            if scores.iter().all(|s| *s == 0.0) {
                continue;
            }
            let (u, delta) = self.adjoints(theta, pass, example, scores);
            let motions = self.motions(theta, pass, example, self.layers().saturating_sub(2));
            for l in 1..self.layers() {
                let from = self.sizes[l];
                for (unit, motion) in motions[l - 1].iter().enumerate() {
                    let slope = pass.slopes[l - 1][example * from + unit];
                    for (k, weight) in delta[l].iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                        let entry = self.offsets[l] + k * from + unit;
                        motion.add(weight * slope, &mut out[entry * size..(entry + 1) * size]);
                    }
                }
            }
            for (l, layer) in motions.iter().enumerate() {
                let width = self.sizes[l + 1];
                for (unit, motion) in layer.iter().enumerate() {
                    let bend = u[l][unit] * pass.bends[l][example * width + unit];
                    if bend != 0.0 {
                        row.fill(0.0);
                        motion.add(1.0, &mut row);
                        motion.entries().for_each(|e| {
                            let half = 0.5 * bend * row[e];
                            motion.add(half, &mut out[e * size..(e + 1) * size]);
                        });
                    }
                }
            }
        }
        // each part was added on one side of the diagonal, or half on both
        for i in 0..size {
            for j in 0..=i {
                let sum = out[i * size + j] + out[j * size + i];
                (out[i * size + j], out[j * size + i]) = (sum, sum);
            }
        }
        out
    }
}

impl Motion {
    /// out += factor · ∂z/∂θ.
    fn add(&self, factor: f64, out: &mut [f64]) {
        if factor != 0.0 {
            add_scaled(&mut out[..self.below.len()], factor, &self.below);
            add_scaled(&mut out[self.start..self.start + self.own.len()], factor, &self.own);
        }
    }

    /// Entries that can be other than 0.
    fn entries(&self) -> impl Iterator<Item = usize> {
        (0..self.below.len()).chain(self.start..self.start + self.own.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Targets};
    use crate::linalg::Matrix;
    use crate::models::{Activation, ModelSpec};
    use crate::numeric::Streams;

    #[test]
    fn derivatives_are_those_of_differences() {
        let mut stream = Streams::new(5).stream("derivatives");
        let (rows, cols) = (4, 3);
        let mut data = vec![0.0; rows * cols];
        stream.fill_normal(&mut data);
        let targets = Targets::Classes { labels: vec![0, 1, 2, 1], count: 3 };
        let data = Dataset::new("small", Matrix { rows, cols, data }, targets, vec![cols]).unwrap();
        for activation in [Activation::Relu, Activation::LeakyRelu { slope: 0.2 }, Activation::ReluPower { power: 3 }] {
            let network = Dense::new(&ModelSpec::network(&[4, 3], activation), &data).unwrap();
            let mut theta = vec![0.0; network.len()];
            stream.fill_normal(&mut theta);
            let epsilon = [0.3, 0.2];
            let lambda: Vec<f64> = (0..network.margins.len()).map(|k| 0.1 + 0.2 * k as f64).collect();
            let which: Vec<usize> = (0..lambda.len()).collect();
            // ∇Σ λ q, from the rows
            let gradient = |theta: &[f64]| {
                let pass = network.pass(theta, Kinks::Rounded(&epsilon));
                let mut out = vec![0.0; theta.len()];
                let rows = network.margin_gradients(theta, &pass, &which);
                rows.iter().zip(&lambda).for_each(|(row, l)| add_scaled(&mut out, *l, row));
                out
            };
            let value = |theta: &[f64]| dot(&network.margins(theta, &epsilon), &lambda);
            let pass = network.pass(&theta, Kinks::Rounded(&epsilon));
            let (own, curvature) = (gradient(&theta), network.curvature(&theta, &pass, &lambda));
            for entry in 0..theta.len() {
                let moved = |by: f64| {
                    let mut theta = theta.clone();
                    theta[entry] += by;
                    theta
                };
                let (up, down) = (moved(1e-5), moved(-1e-5));
                let slope = (value(&up) - value(&down)) / 2e-5;
                assert!((slope - own[entry]).abs() < 1e-6 * (1.0 + slope.abs()), "{slope} {}", own[entry]);
                let (up, down) = (gradient(&up), gradient(&down));
                for other in 0..theta.len() {
                    let (found, bend) = (curvature[entry * theta.len() + other], (up[other] - down[other]) / 2e-5);
                    assert!((found - bend).abs() < 1e-5 * (1.0 + bend.abs()), "{activation:?}: {found} {bend}");
                }
            }
        }
    }
}
