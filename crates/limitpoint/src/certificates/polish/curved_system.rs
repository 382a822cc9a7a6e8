//! Newton's system of the curved problem, neuron by neuron, with its inertia.
//!
//! ```text
//! (H + δ) Δx − Jᵀ η = −g          H = ∇²(N − Σ λ_i q_i) + box,  one block a neuron
//! J Δx − ΔT + (slack/λ) η = 0     g, g_T the gradients of the barrier function,  λ + Δλ = μ/slack + η
//! ΔT/T² + Σ η = −g_T
//! ```
//!
//! Blocks are diagonalised, so that negative curvature is counted and does no harm, and η comes from the symmetric
//! matrix S = slack/λ + J H⁻¹ Jᵀ. By Haynsworth's additivity the whole system has the inertia of a minimum exactly if
//!
//! ```text
//! #(H < 0) + #(S > 0) + [1/T² + 1ᵀS⁻¹1 < 0] = number of margins
//! ```
//!
//! Entries of x near the box and margins far from T would spoil small eigenvalues, so both are scaled first.

use super::curved::{CurvedProgram, State, Terms};
use super::shallow::Ball;
use super::symmetric::Symmetric;
use crate::linalg::{Eigen, add_scaled, dot, matmul, matmul_nt};

/// The system at one point; factored for some δ.
pub(super) struct System {
    /// Gradient of the barrier function in x and in T.
    pub gradient: Vec<f64>,
    level_gradient: f64,
    /// The largest entry of H without the box: the unit of δ.
    pub typical: f64,
    /// H with the box, scaled by `scale` on both sides.
    blocks: Vec<f64>,
    scale: Vec<f64>,
    /// J with scaled columns, examples × entries.
    jacobian: Vec<f64>,
    ratio: Vec<f64>,
    level: f64,
    block: usize,
    /// Eigenvectors and eigenvalues of the blocks.
    vectors: Vec<f64>,
    values: Vec<f64>,
    /// J in the basis of the eigenvectors.
    turned: Vec<f64>,
    margin_scale: Vec<f64>,
    margins: Symmetric,
    ones: Vec<f64>,
    pivot: f64,
}

impl System {
    pub fn new(program: &CurvedProgram, state: &State, terms: &Terms, mu: f64) -> Self {
        let (n, d, m, block) = program.sizes();
        let (_, outer) = program.split(&state.x);
        let mut blocks = program.hessians(terms, &state.lambda, &outer);
        let typical = crate::linalg::max_abs(&blocks).max(f64::MIN_POSITIVE);
        let reciprocal: Vec<f64> = state.slack.iter().map(|s| mu / s).collect();
        let mut gradient = program.size_gradient(&state.x);
        add_scaled(&mut gradient, -1.0, &program.gradient(terms, &reciprocal));
        let mut boxed = vec![0.0; state.x.len()];
        for k in 0..state.lower.len() {
            gradient[k] -= mu / state.lower[k];
            boxed[k] += state.lower_dual[k] / state.lower[k];
        }
        for k in 0..state.upper.len() {
            gradient[k] += mu / state.upper[k];
            boxed[k] += state.upper_dual[k] / state.upper[k];
        }
        let scale: Vec<f64> = boxed.iter().map(|b| (1.0 + b / typical).sqrt().recip()).collect();
        for (j, matrix) in blocks.chunks_exact_mut(block * block).enumerate() {
            for a in 0..block {
                matrix[a * block + a] += boxed[j * block + a];
                for b in 0..block {
                    matrix[a * block + b] *= scale[j * block + a] * scale[j * block + b];
                }
            }
        }
        let mut jacobian = vec![0.0; n * m * block];
        for (i, row) in jacobian.chunks_exact_mut(m * block).enumerate() {
            let input = program.shallow.inputs.row(i);
            for (j, row) in row.chunks_exact_mut(block).enumerate() {
                let (slope, value) = (terms.slopes[i * m + j], terms.values[i * m + j]);
                row[..d].iter_mut().zip(input).for_each(|(to, x)| *to = slope * x);
                match program.ball {
                    Ball::Round => row[d] = value,
                    Ball::Diamond => {
                        row[d..2 * d].iter_mut().zip(input).for_each(|(to, x)| *to = -slope * x);
                        row[2 * d] = value;
                    }
                    Ball::Cube => {}
                }
                row.iter_mut().zip(&scale[j * block..]).for_each(|(x, s)| *x *= s);
            }
        }
        Self {
            gradient,
            level_gradient: reciprocal.iter().sum::<f64>() - state.level.recip(),
            typical,
            blocks,
            scale,
            jacobian,
            ratio: state.slack.iter().zip(&state.lambda).map(|(s, l)| s / l).collect(),
            level: state.level,
            block,
            vectors: vec![0.0; m * block * block],
            values: vec![0.0; m * block],
            turned: vec![0.0; n * m * block],
            margin_scale: vec![1.0; n],
            margins: Symmetric::default(),
            ones: vec![0.0; n],
            pivot: 1.0,
        }
    }

    /// Factors with H + δ; whether the inertia is that of a minimum.
    pub fn factor(&mut self, damping: f64) -> bool {
        let (block, n) = (self.block, self.ratio.len());
        let entries = self.scale.len();
        let mut eigen = Eigen::new(block);
        let mut part = vec![0.0; n * block];
        let mut rows = vec![0.0; n * block];
        for j in 0..entries / block {
            let mut matrix = self.blocks[j * block * block..(j + 1) * block * block].to_vec();
            (0..block).for_each(|a| matrix[a * block + a] += damping);
            if eigen.factor(&matrix).is_err() {
                return false;
            }
            // columns of V, so that rows · V turns a row of J into the basis
            let mut basis = vec![0.0; block * block];
            for k in 0..block {
                eigen.vector(k).iter().enumerate().for_each(|(a, v)| basis[a * block + k] = *v);
            }
            self.values[j * block..(j + 1) * block].copy_from_slice(eigen.values());
            for i in 0..n {
                part[i * block..(i + 1) * block].copy_from_slice(&self.jacobian[i * entries + j * block..][..block]);
            }
            matmul(&mut rows, &part, &basis, n, block, block);
            for i in 0..n {
                self.turned[i * entries + j * block..][..block].copy_from_slice(&rows[i * block..(i + 1) * block]);
            }
            self.vectors[j * block * block..(j + 1) * block * block].copy_from_slice(&basis);
        }
        let largest = self.values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
        let mut good = true;
        for value in &mut self.values {
            if value.abs() < 1e-14 * largest {
                good = false;
                *value = (1e-14 * largest).copysign(*value);
            }
        }
        let weighted: Vec<f64> = self
            .turned
            .chunks_exact(entries)
            .flat_map(|row| row.iter().zip(&self.values).map(|(x, v)| x / v))
            .collect();
        let mut gram = vec![0.0; n * n];
        matmul_nt(&mut gram, &weighted, &self.turned, n, entries, n);
        for i in 0..n {
            let row = i * entries..(i + 1) * entries;
            let size: f64 = weighted[row.clone()].iter().zip(&self.turned[row]).map(|(a, b)| (a * b).abs()).sum();
            gram[i * n + i] += self.ratio[i];
            self.margin_scale[i] = (self.ratio[i] + size).sqrt().recip();
        }
        for i in 0..n {
            for k in 0..n {
                gram[i * n + k] *= self.margin_scale[i] * self.margin_scale[k];
            }
        }
        let Some(margins) = Symmetric::factor(gram, n) else { return false };
        self.margins = margins;
        let mut ones = vec![1.0; n];
        self.solve_margins(&mut ones);
        self.pivot = self.level.powi(-2) + ones.iter().sum::<f64>();
        self.ones = ones;
        let negative = self.values.iter().filter(|v| **v < 0.0).count();
        good && negative + self.margins.positive() + usize::from(self.pivot < 0.0) == n
    }

    /// r ← S⁻¹ r.
    fn solve_margins(&self, r: &mut [f64]) {
        r.iter_mut().zip(&self.margin_scale).for_each(|(r, s)| *r *= s);
        self.margins.solve(r);
        r.iter_mut().zip(&self.margin_scale).for_each(|(r, s)| *r *= s);
    }

    /// x ← H⁻¹ x in the eigenbasis, for x already turned and scaled.
    fn turn(&self, x: &[f64]) -> Vec<f64> {
        let block = self.block;
        let mut out = vec![0.0; x.len()];
        for (j, out) in out.chunks_exact_mut(block).enumerate() {
            let basis = &self.vectors[j * block * block..(j + 1) * block * block];
            for a in 0..block {
                let k = j * block + a;
                add_scaled(out, x[k] * self.scale[k], &basis[a * block..(a + 1) * block]);
            }
        }
        out
    }

    fn turn_back(&self, x: &[f64]) -> Vec<f64> {
        let block = self.block;
        let mut out = vec![0.0; x.len()];
        for (j, part) in x.chunks_exact(block).enumerate() {
            let basis = &self.vectors[j * block * block..(j + 1) * block * block];
            for a in 0..block {
                let k = j * block + a;
                out[k] = self.scale[k] * dot(&basis[a * block..(a + 1) * block], part);
            }
        }
        out
    }

    /// The Newton direction of the last factorisation.
    pub fn direction(&self, state: &State, mu: f64) -> State {
        let (n, entries) = (self.ratio.len(), self.scale.len());
        let down: Vec<f64> = self.gradient.iter().map(|g| -g).collect();
        let mut step: Vec<f64> = self.turn(&down).iter().zip(&self.values).map(|(x, v)| x / v).collect();
        let row = |i: usize| &self.turned[i * entries..(i + 1) * entries];
        let mut eta: Vec<f64> = (0..n).map(|i| -dot(row(i), &step)).collect();
        self.solve_margins(&mut eta);
        let level = (-self.level_gradient - eta.iter().sum::<f64>()) / self.pivot;
        add_scaled(&mut eta, level, &self.ones);
        for (i, eta) in eta.iter().enumerate() {
            row(i).iter().zip(&self.values).zip(&mut step).for_each(|((x, v), step)| *step += eta * x / v);
        }
        let slack: Vec<f64> = (0..n).map(|i| dot(row(i), &step) - level).collect();
        let x = self.turn_back(&step);
        let lambda = (0..n).map(|i| mu / state.slack[i] + eta[i] - state.lambda[i]).collect();
        let dual = |distance: &[f64], dual: &[f64], sign: f64| -> Vec<f64> {
            (0..distance.len()).map(|k| mu / distance[k] - dual[k] - sign * dual[k] / distance[k] * x[k]).collect()
        };
        State {
            level,
            slack,
            lambda,
            lower: if state.lower.is_empty() { Vec::new() } else { x.clone() },
            upper: if state.upper.is_empty() { Vec::new() } else { x.iter().map(|x| -x).collect() },
            lower_dual: dual(&state.lower, &state.lower_dual, 1.0),
            upper_dual: dual(&state.upper, &state.upper_dual, -1.0),
            x,
        }
    }
}
