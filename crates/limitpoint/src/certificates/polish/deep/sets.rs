//! The end of the way: equations of the active margins, kinks and bounds, and which of them are active.
//!
//! ```text
//! ℓ2   θ = Σ λ_k ∇q_k(θ; s),   q_k = 1 (active),   z = 0 (kinks)
//! ℓ∞   Σ λ_k ∇q_k(θ; s) = 0 (weights inside the box),   q_k = T (active),   z = 0 (kinks),   Σ λ = 1
//! ```
//!
//! Unknown are θ, λ, T and the slopes s at the kinks. Newton's method solves them; a solution that breaks a sign tells which
//! margin, kink or bound was wrongly taken for active or inactive, and the next set differs there.

use super::super::shallow::Ball;
use super::super::symmetric::Symmetric;
use super::barrier::Barrier;
use super::derivatives::Kinks;
use super::network::Dense;
use crate::linalg::{dot, max_abs, sum_abs};

/// Sets that are tried in a row.
const REPAIRS: usize = 15;
const STEPS: usize = 25;
/// Added to the diagonal, with the signs of a saddle point: units that share their sides can be turned into each other,
/// so that the equations are singular along such turns, and their right-hand side is 0 there.
const TINY: f64 = 1e-8;

/// Which margins, kinks and bounds hold with equality, and the point they are tried from.
#[derive(Clone)]
pub(super) struct Sets {
    theta: Vec<f64>,
    lambda: Vec<f64>,
    level: f64,
    /// Slopes of hidden units, layer by layer, examples × units.
    slopes: Vec<Vec<f64>>,
    tight: Vec<bool>,
    kinks: Vec<Vec<bool>>,
    bound: Vec<bool>,
}

/// A point whose signs are all right.
pub(super) struct Ended {
    pub theta: Vec<f64>,
    pub weights: Vec<f64>,
    /// (layer, example, unit, slope).
    pub kinks: Vec<(usize, usize, usize, f64)>,
}

impl Barrier {
    /// What is larger, the multiplier or the distance from equality, says what is active.
    pub fn sets(&self, ball: Ball) -> Sets {
        let network = &self.network;
        let epsilon = self.epsilon();
        let pass = network.pass(&self.theta, Kinks::Rounded(&epsilon));
        let level = self.level;
        let tight: Vec<bool> =
            pass.margins.iter().zip(&self.lambda).map(|(q, l)| l * level > (q - level) / level).collect();
        let mut busy = vec![false; network.inputs.rows];
        network.margins.iter().zip(&tight).for_each(|(row, tight)| busy[row.example] |= tight);
        let (left, right) = network.activation.kink().unwrap_or((0.0, 1.0));
        let (mut kinks, mut slopes) = (Vec::new(), Vec::new());
        for (l, z) in pass.z.iter().enumerate() {
            let width = network.sizes[l + 1];
            let share = |k: usize| (pass.slopes[l][k] - left) / (right - left);
            let is_kink = |k: usize| {
                let inside = share(k).min(1.0 - share(k));
                network.activation.kink().is_some() && busy[k / width] && inside > z[k].abs() / self.scales[l]
            };
            let on: Vec<bool> = (0..z.len()).map(is_kink).collect();
            let side = |k: usize| if z[k] > 0.0 { right } else { left };
            slopes.push((0..z.len()).map(|k| if on[k] { pass.slopes[l][k] } else { side(k) }).collect());
            kinks.push(on);
        }
        let mut sets = Sets {
            theta: self.theta.clone(),
            lambda: self.lambda.clone(),
            level: 1.0,
            slopes,
            bound: vec![false; self.theta.len()],
            tight,
            kinks,
        };
        let none = vec![0.0; network.units.len()];
        let margins = network.margins(&self.theta, &none);
        let active = margins.iter().zip(&sets.tight).filter(|(_, tight)| **tight).map(|(q, _)| *q);
        let mean = active.clone().sum::<f64>() / active.count().max(1) as f64;
        let total: f64 = sets.lambda.iter().sum();
        if ball == Ball::Cube {
            let all: Vec<usize> = (0..margins.len()).collect();
            let mut force = vec![0.0; self.theta.len()];
            let rows = network.margin_gradients(&self.theta, &pass, &all);
            rows.iter().zip(&self.lambda).for_each(|(row, l)| crate::linalg::add_scaled(&mut force, *l, row));
            let typical = sum_abs(&force) / force.len() as f64;
            for (k, force) in force.iter().enumerate() {
                if force.abs() / typical > 1.0 - self.theta[k].abs() {
                    sets.bound[k] = true;
                    sets.theta[k] = self.theta[k].signum();
                }
            }
            sets.level = mean;
            sets.lambda.iter_mut().for_each(|l| *l /= total);
        } else {
            let degree = network.degree();
            let factor = mean.max(f64::MIN_POSITIVE).powf(-1.0 / degree);
            let entries = network.trained_entries();
            entries.iter().for_each(|&e| sets.theta[e] *= factor);
            let size: f64 = entries.iter().map(|&e| sets.theta[e].powi(2)).sum();
            sets.lambda.iter_mut().for_each(|l| *l *= size / (degree * total));
        }
        sets
    }
}

/// Newton's method and repairs; the point whose signs are all right, or what is wrong.
pub(super) fn end(network: &Dense, mut sets: Sets, ball: Ball) -> Result<Ended, String> {
    for _ in 0..REPAIRS {
        let error = sets.solve(network, ball);
        if error.is_nan() || error > 1e-10 {
            return Err(format!("the equations of the active set are solved to {error:.1e} only"));
        }
        match sets.repaired(network, ball) {
            None => return Ok(sets.ended(network)),
            Some(next) => sets = next,
        }
    }
    Err(format!("the active set still changes after {REPAIRS} of them"))
}

impl Sets {
    fn listed(&self, network: &Dense) -> Vec<(usize, usize, usize)> {
        let place = |l: usize, k: usize| (l, k / network.sizes[l + 1], k % network.sizes[l + 1]);
        let layers = self.kinks.iter().enumerate();
        layers.flat_map(|(l, on)| (0..on.len()).filter(|&k| on[k]).map(move |k| place(l, k))).collect()
    }

    /// Newton's method; the largest residual that is left.
    fn solve(&mut self, network: &Dense, ball: Ball) -> f64 {
        let cube = ball == Ball::Cube;
        let free: Vec<usize> = network.trained_entries().into_iter().filter(|&e| !self.bound[e]).collect();
        let tight: Vec<usize> = (0..self.tight.len()).filter(|&k| self.tight[k]).collect();
        (0..self.tight.len()).filter(|&k| !self.tight[k]).for_each(|k| self.lambda[k] = 0.0);
        let kinks = self.listed(network);
        let (f, a, k) = (free.len(), tight.len(), kinks.len());
        let size = f + usize::from(cube) + a + k;
        let first = f + usize::from(cube);
        let (mut best, mut least) = (self.clone(), f64::INFINITY);
        for step in 0..STEPS {
            let pass = network.pass(&self.theta, Kinks::Given(&self.slopes));
            let rows = network.margin_gradients(&self.theta, &pass, &tight);
            let moves = network.kink_gradients(&self.theta, &pass, &kinks);
            let signals = network.signals(&self.theta, &pass, &self.lambda);
            let mut rhs = vec![0.0; size];
            for (at, &e) in free.iter().enumerate() {
                let force: f64 = rows.iter().zip(&tight).map(|(row, &k)| self.lambda[k] * row[e]).sum();
                rhs[at] = force - if cube { 0.0 } else { self.theta[e] };
            }
            if cube {
                rhs[f] = 1.0 - tight.iter().map(|&k| self.lambda[k]).sum::<f64>();
            }
            tight.iter().enumerate().for_each(|(at, &k)| rhs[first + at] = self.level - pass.margins[k]);
            for (at, &(l, example, unit)) in kinks.iter().enumerate() {
                rhs[first + a + at] = -pass.z[l][example * network.sizes[l + 1] + unit];
            }
            let error = max_abs(&rhs);
            let ends = error <= 2e-15 || !error.is_finite() || error > 1e8 || (step > 6 && error > 0.5 * least);
            if ends && least <= error {
                // rounding moves the last steps
                *self = best;
                return least;
            }
            if ends {
                return error;
            }
            if error < least {
                (best, least) = (self.clone(), error);
            }
            let curvature = network.curvature(&self.theta, &pass, &self.lambda);
            let mut matrix = vec![0.0; size * size];
            for (i, &e) in free.iter().enumerate() {
                for (j, &g) in free.iter().enumerate().take(i + 1) {
                    matrix[i * size + j] = -curvature[e * network.len() + g];
                }
                matrix[i * size + i] += TINY + if cube { 0.0 } else { 1.0 };
            }
            if cube {
                matrix[f * size + f] = TINY;
            }
            for (at, row) in rows.iter().chain(&moves).enumerate() {
                let line = &mut matrix[(first + at) * size..(first + at + 1) * size];
                free.iter().enumerate().for_each(|(j, &e)| line[j] = row[e]);
                if cube && at < a {
                    line[f] = -1.0;
                }
                line[first + at] = -TINY;
            }
            let Some(factor) = Symmetric::factor(matrix, size) else { return f64::INFINITY };
            factor.solve(&mut rhs);
            free.iter().zip(&rhs).for_each(|(&e, by)| self.theta[e] += by);
            if cube {
                self.level += rhs[f];
            }
            // the unknowns are −Δλ and −u Δs
            tight.iter().zip(&rhs[first..]).for_each(|(&k, by)| self.lambda[k] -= by);
            for (&(l, example, unit), by) in kinks.iter().zip(&rhs[first + a..]) {
                let at = example * network.sizes[l + 1] + unit;
                let signal = signals[l][at];
                if signal != 0.0 {
                    self.slopes[l][at] -= by / signal;
                }
            }
        }
        f64::INFINITY
    }

    /// The sets without what breaks a sign; nothing if nothing does.
    fn repaired(&self, network: &Dense, ball: Ball) -> Option<Self> {
        let pass = network.pass(&self.theta, Kinks::Given(&self.slopes));
        let none = vec![0.0; network.units.len()];
        let margins = network.margins(&self.theta, &none);
        let (left, right) = network.activation.kink().unwrap_or((0.0, 1.0));
        let (mut next, mut wrong) = (self.clone(), 0);
        for (k, margin) in margins.iter().enumerate() {
            let (negative, small) = (self.lambda[k] < 0.0, *margin < self.level * (1.0 - 1e-12));
            if self.tight[k] && negative || !self.tight[k] && small {
                next.tight[k] = !self.tight[k];
                next.lambda[k] = 0.0;
                wrong += 1;
            }
        }
        let (mut before, mut busy) = (vec![false; network.inputs.rows], vec![false; network.inputs.rows]);
        network.margins.iter().zip(&self.tight).for_each(|(row, tight)| before[row.example] |= tight);
        network.margins.iter().zip(&next.tight).for_each(|(row, tight)| busy[row.example] |= tight);
        for (l, z) in pass.z.iter().enumerate().filter(|_| network.activation.kink().is_some()) {
            let width = network.sizes[l + 1];
            for (k, z) in z.iter().enumerate() {
                let (slope, example) = (self.slopes[l][k], k / width);
                let side = if *z > 0.0 { right } else { left };
                let outside = self.kinks[l][k] && (slope < left || slope > right);
                let crossed =
                    !self.kinks[l][k] && before[example] && slope != side && z.abs() > 1e-13 * self.scale(l, &pass.z);
                if outside {
                    next.kinks[l][k] = false;
                    next.slopes[l][k] = nearer(slope, left, right);
                } else if crossed {
                    next.kinks[l][k] = true;
                } else if !before[example] {
                    next.slopes[l][k] = side;
                }
                wrong += usize::from(outside) + usize::from(crossed);
                next.kinks[l][k] &= busy[example];
            }
        }
        if ball == Ball::Cube {
            let all: Vec<usize> = (0..margins.len()).filter(|&k| self.tight[k]).collect();
            let rows = network.margin_gradients(&self.theta, &pass, &all);
            for e in network.trained_entries() {
                let force: f64 = rows.iter().zip(&all).map(|(row, &k)| self.lambda[k] * row[e]).sum();
                let inwards = self.bound[e] && force * self.theta[e] < -1e-14;
                let outside = !self.bound[e] && self.theta[e].abs() > 1.0;
                if inwards || outside {
                    next.bound[e] = outside;
                    next.theta[e] = self.theta[e].clamp(-1.0, 1.0);
                    wrong += 1;
                }
            }
        }
        (wrong > 0).then_some(next)
    }

    fn scale(&self, l: usize, z: &[Vec<f64>]) -> f64 {
        (dot(&z[l], &z[l]) / z[l].len().max(1) as f64).sqrt()
    }

    fn ended(self, network: &Dense) -> Ended {
        let slope = |(l, example, unit): (usize, usize, usize)| {
            (l, example, unit, self.slopes[l][example * network.sizes[l + 1] + unit])
        };
        let kinks = self.listed(network).into_iter().map(slope).collect();
        Ended { theta: self.theta, weights: self.lambda, kinks }
    }
}

/// The nearer of two numbers.
fn nearer(x: f64, left: f64, right: f64) -> f64 {
    if x - left < right - x { left } else { right }
}
