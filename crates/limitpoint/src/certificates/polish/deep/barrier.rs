//! The way to the limit: barrier problems with rounded kinks, by primal–dual Newton steps.
//!
//! ```text
//! minimise  N(θ) − ln T − μ Σ ln(q_k − T) − μ Σ ln(1 − θ²)       ℓ2: N = ½‖θ‖², no box      ℓ∞: N = 0
//! ```
//!
//! Kinks are rounded off by ε, which falls with μ. Where a kink has the sign that makes the margins concave, the rounded
//! corner is a barrier too: t = ½(z + √(z² + ε²)) solves t(t − z) = ε²/4, the complementarity of t ≥ 0 and t ≥ z. Systems are
//! condensed to the weights and T; where they are not positive definite, a multiple of the identity is added.

use super::super::curved::best_level;
use super::super::shallow::Ball;
use super::derivatives::Kinks;
use super::network::Dense;
use crate::linalg::{Cholesky, add_scaled, dot, matmul_tn, max_abs};

/// Multipliers stay within this factor of those of the barrier.
const NEAR: f64 = 10.0;

/// A point on the way.
pub(super) struct Barrier {
    pub network: Dense,
    pub theta: Vec<f64>,
    pub lambda: Vec<f64>,
    /// Multipliers of θ ≤ 1 and θ ≥ −1; empty in ℓ2.
    upper: Vec<f64>,
    lower: Vec<f64>,
    pub level: f64,
    pub mu: f64,
    /// ε, relative to the typical preactivation of a layer.
    pub rounding: f64,
    /// The typical preactivation of every layer.
    pub scales: Vec<f64>,
    ball: Ball,
    damping: f64,
    pub iterations: usize,
}

impl Barrier {
    /// From weights that separate the data; nothing if rounding the kinks off makes them lose it.
    pub fn new(network: Dense, theta: Vec<f64>, ball: Ball) -> Option<Self> {
        let none = vec![0.0; network.units.len()];
        let pass = network.pass(&theta, Kinks::Rounded(&none));
        let typical = |z: &Vec<f64>| (dot(z, z) / z.len().max(1) as f64).sqrt().max(f64::MIN_POSITIVE);
        let scales = pass.z.iter().map(typical).collect();
        let mu = 0.1 / network.margins.len() as f64;
        let mut barrier = Self {
            network,
            theta,
            lambda: Vec::new(),
            upper: Vec::new(),
            lower: Vec::new(),
            level: 0.0,
            mu,
            rounding: 0.05,
            scales,
            ball,
            damping: 0.0,
            iterations: 0,
        };
        while barrier.margins(&barrier.theta).iter().any(|q| q.is_nan() || *q <= 0.0) {
            barrier.rounding *= 0.5;
            if barrier.rounding < 1e-6 {
                return None;
            }
        }
        barrier.restart();
        Some(barrier)
    }

    /// ε of every layer.
    pub fn epsilon(&self) -> Vec<f64> {
        self.scales.iter().map(|scale| self.rounding * scale).collect()
    }

    fn margins(&self, theta: &[f64]) -> Vec<f64> {
        self.network.margins(theta, &self.epsilon())
    }

    /// Level and multipliers of the barrier itself.
    fn restart(&mut self) {
        let margins = self.margins(&self.theta);
        self.level = best_level(&margins, self.mu);
        self.lambda = margins.iter().map(|q| self.mu / (q - self.level)).collect();
        if self.ball == Ball::Cube {
            self.upper = self.theta.iter().map(|w| self.mu / (1.0 - w)).collect();
            self.lower = self.theta.iter().map(|w| self.mu / (1.0 + w)).collect();
        }
    }

    /// A smaller barrier; false if the present weights do not separate the data without so much rounding.
    pub fn reduce(&mut self, factor: f64) -> bool {
        self.mu *= factor;
        self.rounding *= factor.powf(0.75);
        let margins = self.margins(&self.theta);
        if margins.iter().any(|q| q.is_nan() || *q <= 0.0) {
            return false;
        }
        self.level = best_level(&margins, self.mu);
        true
    }

    /// The same without units that have died.
    pub fn prune(&mut self, share: f64) {
        let Some((network, theta)) = self.network.pruned(&self.theta, share) else { return };
        if network.margins(&theta, &self.epsilon()).iter().all(|q| *q > 0.0) {
            (self.network, self.theta) = (network, theta);
            self.restart();
        }
    }

    /// The barrier function with the best level.
    fn merit(&self, theta: &[f64]) -> Option<(f64, f64)> {
        let cube = self.ball == Ball::Cube;
        let trained = self.network.trained_entries();
        if cube && trained.iter().any(|&e| theta[e].abs() >= 1.0) {
            return None;
        }
        let margins = self.margins(theta);
        if margins.iter().any(|q| q.is_nan() || *q <= 0.0) {
            return None;
        }
        let level = best_level(&margins, self.mu);
        let logs: f64 = margins.iter().map(|q| (q - level).ln()).sum();
        let size = if cube {
            -self.mu * trained.iter().map(|&e| (1.0 - theta[e] * theta[e]).ln()).sum::<f64>()
        } else {
            0.5 * trained.iter().map(|&e| theta[e] * theta[e]).sum::<f64>()
        };
        Some((size - level.ln() - self.mu * logs, level))
    }

    /// Newton steps until the residual is of the order of μ, or `most` of them.
    pub fn centre(&mut self, most: usize) {
        let entries = self.network.trained_entries();
        let size = entries.len();
        let cube = self.ball == Ball::Cube;
        for _ in 0..most {
            let (mu, level) = (self.mu, self.level);
            let epsilon = self.epsilon();
            let pass = self.network.pass(&self.theta, Kinks::Rounded(&epsilon));
            let slack: Vec<f64> = pass.margins.iter().map(|q| q - level).collect();
            clip(&mut self.lambda, &slack, mu);
            let which: Vec<usize> = (0..slack.len()).collect();
            let rows = self.network.margin_gradients(&self.theta, &pass, &which);
            let gradients: Vec<f64> = rows.iter().flat_map(|row| entries.iter().map(|&e| row[e])).collect();
            let pulled = |weights: &[f64]| {
                let mut out = vec![0.0; size];
                gradients.chunks_exact(size).zip(weights).for_each(|(row, weight)| add_scaled(&mut out, *weight, row));
                out
            };
            let (mut residual, mut barrier_gradient) = (pulled(&self.lambda), vec![0.0; size]);
            let mut diagonal = vec![1.0; size];
            let mut complementarity =
                slack.iter().zip(&self.lambda).map(|(s, l)| (s * l - mu).abs()).fold(0.0, f64::max);
            if cube {
                let (above, below): (Vec<f64>, Vec<f64>) = self.theta.iter().map(|w| (1.0 - w, 1.0 + w)).unzip();
                clip(&mut self.upper, &above, mu);
                clip(&mut self.lower, &below, mu);
                for (k, &e) in entries.iter().enumerate() {
                    residual[k] = self.upper[e] - self.lower[e] - residual[k];
                    barrier_gradient[k] = mu / above[e] - mu / below[e];
                    diagonal[k] = self.upper[e] / above[e] + self.lower[e] / below[e];
                    complementarity = complementarity
                        .max((self.upper[e] * above[e] - mu).abs())
                        .max((self.lower[e] * below[e] - mu).abs());
                }
            } else {
                for (k, &e) in entries.iter().enumerate() {
                    residual[k] = self.theta[e] - residual[k];
                    barrier_gradient[k] = self.theta[e];
                }
            }
            let total: f64 = self.lambda.iter().sum();
            let error = max_abs(&residual).max((level * total - 1.0).abs()).max(complementarity);
            if error.is_nan() || error < 10.0 * mu {
                return;
            }
            self.iterations += 1;
            // condensed to the weights and T
            let weights: Vec<f64> = self.lambda.iter().zip(&slack).map(|(l, s)| l / s).collect();
            let shift: Vec<f64> = self.lambda.iter().zip(&slack).map(|(l, s)| mu / s - l).collect();
            let curvature = self.network.curvature(&self.theta, &pass, &self.lambda);
            let scaled: Vec<f64> = gradients
                .chunks_exact(size)
                .zip(&weights)
                .flat_map(|(row, w)| row.iter().map(move |g| g * w))
                .collect();
            let mut gram = vec![0.0; size * size];
            matmul_tn(&mut gram, &scaled, &gradients, size, weights.len(), size);
            let whole = size + 1;
            let mut matrix = vec![0.0; whole * whole];
            for i in 0..size {
                for j in 0..=i {
                    matrix[i * whole + j] =
                        gram[i * size + j] - curvature[entries[i] * self.network.len() + entries[j]];
                }
                matrix[i * whole + i] += diagonal[i];
            }
            pulled(&weights).iter().enumerate().for_each(|(k, g)| matrix[size * whole + k] = -g);
            matrix[size * whole + size] = level.powi(-2) + weights.iter().sum::<f64>();
            let mut step: Vec<f64> = pulled(&self.lambda.iter().zip(&shift).map(|(l, c)| l + c).collect::<Vec<f64>>())
                .iter()
                .zip(&barrier_gradient)
                .map(|(g, b)| g - b)
                .collect();
            step.push(1.0 / level - total - shift.iter().sum::<f64>());
            let Some(mut factor) = self.factor(&matrix, whole) else { return };
            factor.solve(&mut step);
            if !self.advance(&step, &entries, (&gradients, &weights, &shift), &barrier_gradient, &pass.margins) {
                return;
            }
        }
    }

    /// The factor of the system with as much of the identity as it needs.
    fn factor(&mut self, matrix: &[f64], size: usize) -> Option<Cholesky> {
        let mut cholesky = Cholesky::new(size);
        loop {
            let mut damped = matrix.to_vec();
            (0..size - 1).for_each(|k| damped[k * size + k] += self.damping);
            if cholesky.factor(&damped, 0.0).is_ok() {
                return Some(cholesky);
            }
            self.damping = (3.0 * self.damping).max(1e-4);
            if self.damping.is_nan() || self.damping > 1e12 {
                self.damping = 0.0;
                return None;
            }
        }
    }

    /// A step that decreases the barrier function; false if there is none however much the system is damped.
    fn advance(
        &mut self,
        step: &[f64],
        entries: &[usize],
        (gradients, weights, shift): (&[f64], &[f64], &[f64]),
        barrier_gradient: &[f64],
        margins: &[f64],
    ) -> bool {
        let (size, mu) = (entries.len(), self.mu);
        let (change, rise) = (&step[..size], step[size]);
        let rows = gradients.chunks_exact(size);
        let dual: Vec<f64> =
            rows.zip(weights).zip(shift).map(|((row, w), c)| c - w * (dot(row, change) - rise)).collect();
        let mut longest = 1.0_f64;
        let mut duals = longest_step(&self.lambda, &dual);
        let (mut upper, mut lower) = (vec![0.0; self.upper.len()], vec![0.0; self.lower.len()]);
        if self.ball == Ball::Cube {
            for (k, &e) in entries.iter().enumerate() {
                let (above, below, by) = (1.0 - self.theta[e], 1.0 + self.theta[e], change[k]);
                longest = longest.min(0.95 * if by > 0.0 { above } else { below } / by.abs().max(f64::MIN_POSITIVE));
                upper[e] = mu / above - self.upper[e] + self.upper[e] / above * by;
                lower[e] = mu / below - self.lower[e] - self.lower[e] / below * by;
            }
            duals = duals.min(longest_step(&self.upper, &upper)).min(longest_step(&self.lower, &lower));
        }
        let Some((before, _)) = self.merit(&self.theta) else { return false };
        let level = best_level(margins, mu);
        let mut gradient = barrier_gradient.to_vec();
        let rows = gradients.chunks_exact(size).zip(margins);
        rows.for_each(|(row, q)| add_scaled(&mut gradient, -mu / (q - level), row));
        let slope = dot(&gradient, change).min(0.0);
        let mut share = longest;
        while share > 1e-8 {
            let mut next = self.theta.clone();
            entries.iter().zip(change).for_each(|(&e, by)| next[e] += share * by);
            if let Some((after, level)) = self.merit(&next)
                && after <= before + 1e-4 * share * slope + 1e-14 * before.abs()
            {
                (self.theta, self.level) = (next, level);
                add_scaled(&mut self.lambda, duals, &dual);
                add_scaled(&mut self.upper, duals, &upper);
                add_scaled(&mut self.lower, duals, &lower);
                self.damping = match share / longest {
                    taken if taken >= 0.5 && self.damping > 1e-8 => 0.2 * self.damping,
                    taken if taken >= 0.5 => 0.0,
                    taken if taken >= 0.1 => self.damping,
                    _ => (4.0 * self.damping).max(1e-4),
                };
                return true;
            }
            share *= 0.5;
        }
        self.damping = (4.0 * self.damping).max(1e-4);
        if self.damping > 1e8 {
            self.damping = 0.0;
            return false;
        }
        true
    }
}

/// Keeps multipliers near those of the barrier.
fn clip(multipliers: &mut [f64], slack: &[f64], mu: f64) {
    multipliers.iter_mut().zip(slack).for_each(|(m, s)| *m = m.max(mu / (NEAR * s)).min(NEAR * mu / s));
}

/// The longest step, at most 1, that leaves multipliers positive.
fn longest_step(x: &[f64], dx: &[f64]) -> f64 {
    x.iter().zip(dx).filter(|(_, dx)| **dx < 0.0).map(|(x, dx)| -0.99 * x / dx).fold(1.0, f64::min)
}
