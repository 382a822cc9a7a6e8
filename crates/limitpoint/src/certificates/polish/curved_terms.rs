//! The smooth problem's functions of x: margins, the size N, and their derivatives.

use super::curved::{CurvedProgram, Terms};
use super::shallow::Ball;
use crate::linalg::{Matrix, dot, matmul_tn};
use crate::models::Activation;

/// σ″(z), from the left at 0.
fn second_slope(activation: Activation, z: f64) -> f64 {
    match activation {
        Activation::ReluPower { power } if power >= 2 && z > 0.0 => {
            f64::from(power * (power - 1)) * z.powi(power as i32 - 2)
        }
        Activation::Quadratic => 2.0,
        _ => 0.0,
    }
}

impl CurvedProgram<'_> {
    /// Examples, features, neurons and variables of a neuron.
    pub fn sizes(&self) -> (usize, usize, usize, usize) {
        let (n, d) = (self.shallow.inputs.rows, self.shallow.inputs.cols);
        let block = match self.ball {
            Ball::Round => d + 1,
            Ball::Diamond => 2 * d + 1,
            Ball::Cube => d,
        };
        (n, d, self.neurons.len(), block)
    }

    /// w_j as rows and |a_j|.
    pub fn split(&self, x: &[f64]) -> (Matrix, Vec<f64>) {
        let (_, d, m, block) = self.sizes();
        let mut inner = Matrix::zeros(m, d);
        let mut outer = vec![1.0; m];
        for (j, x) in x.chunks_exact(block).enumerate() {
            let row = inner.row_mut(j);
            row.copy_from_slice(&x[..d]);
            match self.ball {
                Ball::Round => outer[j] = x[d],
                Ball::Diamond => {
                    row.iter_mut().zip(&x[d..2 * d]).for_each(|(w, minus)| *w -= minus);
                    outer[j] = x[2 * d];
                }
                Ball::Cube => {}
            }
        }
        (inner, outer)
    }

    /// The gradient in x of a function with these gradients in w (neurons × features) and |a|.
    pub fn lift(&self, inner: &[f64], outer: &[f64]) -> Vec<f64> {
        let (_, d, m, block) = self.sizes();
        let mut out = Vec::with_capacity(m * block);
        for (row, outer) in inner.chunks_exact(d).zip(outer) {
            out.extend_from_slice(row);
            match self.ball {
                Ball::Round => out.push(*outer),
                Ball::Diamond => {
                    out.extend(row.iter().map(|g| -g));
                    out.push(*outer);
                }
                Ball::Cube => {}
            }
        }
        out
    }

    pub fn terms(&self, x: &[f64]) -> Terms {
        let (_, _, m, _) = self.sizes();
        let (inner, outer) = self.split(x);
        let z = self.shallow.preactivations(&inner);
        let activation = self.shallow.activation;
        let sign = |k: usize| self.shallow.signs[k / m] * self.neurons.signs[k % m];
        let slopes = (0..z.len()).map(|k| sign(k) * outer[k % m] * activation.slope(z[k])).collect();
        let values: Vec<f64> = (0..z.len()).map(|k| sign(k) * activation.value(z[k])).collect();
        let margins = values.chunks_exact(m).map(|row| dot(row, &outer)).collect();
        Terms { margins, slopes, values, z }
    }

    /// Jᵀλ: the gradient of Σ λ_i q_i in x.
    pub fn gradient(&self, terms: &Terms, lambda: &[f64]) -> Vec<f64> {
        let (inner, outer) = self.weight_gradient(terms, lambda);
        self.lift(&inner, &outer)
    }

    pub fn weight_gradient(&self, terms: &Terms, lambda: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (n, d, m, _) = self.sizes();
        let weighted: Vec<f64> = terms.slopes.iter().enumerate().map(|(k, slope)| slope * lambda[k / m]).collect();
        let mut inner = vec![0.0; m * d];
        matmul_tn(&mut inner, &weighted, &self.shallow.inputs.data, m, n, d);
        let mut outer = vec![0.0; m];
        for (row, lambda) in terms.values.chunks_exact(m).zip(lambda) {
            crate::linalg::add_scaled(&mut outer, *lambda, row);
        }
        (inner, outer)
    }

    /// The Hessian of −Σ λ_i q_i in x, neuron by neuron; ℓ2 with the identity of N.
    pub fn hessians(&self, terms: &Terms, lambda: &[f64], outer: &[f64]) -> Vec<f64> {
        let (_, d, m, block) = self.sizes();
        let activation = self.shallow.activation;
        let mut out = vec![0.0; m * block * block];
        let mut own = Matrix::zeros(d + 1, d + 1);
        for (j, out) in out.chunks_exact_mut(block * block).enumerate() {
            own.data.fill(0.0);
            for (i, lambda) in lambda.iter().enumerate() {
                let k = i * m + j;
                let factor = -lambda * self.shallow.signs[i] * self.neurons.signs[j];
                let (curvature, mixed) =
                    (factor * outer[j] * second_slope(activation, terms.z[k]), factor * activation.slope(terms.z[k]));
                let input = self.shallow.inputs.row(i);
                if curvature != 0.0 {
                    (0..d)
                        .for_each(|a| crate::linalg::add_scaled(&mut own.row_mut(a)[..d], curvature * input[a], input));
                }
                if mixed != 0.0 {
                    crate::linalg::add_scaled(&mut own.row_mut(d)[..d], mixed, input);
                }
            }
            (0..d).for_each(|a| own[(a, d)] = own[(d, a)]);
            // entry of x → (weight, sign)
            let place = |a: usize| match self.ball {
                Ball::Diamond if a == 2 * d => (d, 1.0),
                Ball::Diamond if a >= d => (a - d, -1.0),
                _ => (a, 1.0),
            };
            for a in 0..block {
                for b in 0..block {
                    let ((p, s), (q, t)) = (place(a), place(b));
                    out[a * block + b] = s * t * own[(p, q)];
                }
                out[a * block + a] += if self.ball == Ball::Round { 1.0 } else { 0.0 };
            }
        }
        out
    }

    /// N(x).
    pub fn size(&self, x: &[f64]) -> f64 {
        match self.ball {
            Ball::Round => 0.5 * dot(x, x),
            Ball::Diamond => x.iter().sum(),
            Ball::Cube => 0.0,
        }
    }

    /// ∇N(x).
    pub fn size_gradient(&self, x: &[f64]) -> Vec<f64> {
        match self.ball {
            Ball::Round => x.to_vec(),
            Ball::Diamond => vec![1.0; x.len()],
            Ball::Cube => vec![0.0; x.len()],
        }
    }
}
