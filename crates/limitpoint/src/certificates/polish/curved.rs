//! KKT points of two-layer networks whose activation is smooth (powers of ReLU), by a feasible interior point method.
//!
//! With one variable x_j a neuron that describes its weights in the chosen norm,
//!
//! ```text
//! minimise  N(x) − ln T   subject to  q_i(x) ≥ T,  x in a box
//! ℓ2   x_j = (w_j, |a_j|),         N = ½‖x‖²          no box
//! ℓ1   x_j = (w_j⁺, w_j⁻, |a_j|),  N = Σ x            x ≥ 0
//! ℓ∞   x_j = w_j, |a_j| = 1,       N = 0              −1 ≤ x ≤ 1
//! ```
//!
//! is the margin problem, up to a scale of θ: with q homogeneous of degree L, any x with positive margins is feasible
//! for a suitable T. The barrier problem keeps that: for given x the best T solves T Σ μ/(q_i − T) = 1, so that a line
//! search on φ(x) = min_T N − ln T − μ Σ ln(q_i − T) − μ Σ ln(distances from the box) never has to look for feasible
//! points.
//!
//! Directions are those of the primal–dual Newton method. The margins are neither concave nor convex; where the system
//! does not have the inertia of a minimum, a multiple of the identity is added until it has. Near a KKT point plain
//! Newton steps are tried first and accepted if they reduce the residual: that converges quadratically, and to saddle
//! points too, which are KKT points as well. μ falls to a fifth when the residual is below 10 μ. (Wächter and Biegler
//! 2006, "On the implementation of an interior-point filter line-search algorithm", for the usual parts.)

use super::curved_system::System;
use super::shallow::{Ball, Neurons, Shallow};
use crate::linalg::{dot, max_abs, norm2, sum_abs};

/// τ below which plain Newton steps are tried, and multipliers stay near.
const NEAR: f64 = 1e-3;

/// The least multiple of the identity that is added where the system needs one, relative to its largest entry: with
/// less of it a singular system stays singular to rounding.
const LEAST: f64 = 1e-6;

/// A τ below the first that has not halved in as many steps as the second says is as small as rounding allows.
const SETTLED: f64 = 1e-8;
const PATIENCE: usize = 100;

/// The problem for neurons with fixed signs of a_j.
pub(super) struct CurvedProgram<'a> {
    pub shallow: &'a Shallow,
    pub neurons: &'a Neurons,
    pub ball: Ball,
}

/// Margins and what their derivatives are made of, examples × neurons.
pub(super) struct Terms {
    pub margins: Vec<f64>,
    /// y_i s_j |a_j| σ′(z_ij): ∂q_i/∂w_j = slope · x_i.
    pub slopes: Vec<f64>,
    /// y_i s_j σ(z_ij) = ∂q_i/∂|a_j|.
    pub values: Vec<f64>,
    pub z: Vec<f64>,
}

/// Variables and multipliers.
#[derive(Clone)]
pub(super) struct State {
    pub x: Vec<f64>,
    /// T, and q − T.
    pub level: f64,
    pub slack: Vec<f64>,
    pub lambda: Vec<f64>,
    /// Distances from the box and their multipliers; empty where there is none.
    pub lower: Vec<f64>,
    pub upper: Vec<f64>,
    pub lower_dual: Vec<f64>,
    pub upper_dual: Vec<f64>,
}

/// The point that was found.
pub(super) struct CurvedSolution {
    pub neurons: Neurons,
    /// λ, of sum 1.
    pub weights: Vec<f64>,
    pub iterations: usize,
    pub solves: usize,
}

impl CurvedProgram<'_> {
    /// τ of the point with these multipliers, all weights counted.
    pub fn tau(&self, state: &State, terms: &Terms) -> f64 {
        let (inner, outer) = self.split(&state.x);
        let (mut z, mut head) = self.weight_gradient(terms, &state.lambda);
        let total: f64 = state.lambda.iter().sum();
        let smallest = terms.margins.iter().copied().fold(f64::INFINITY, f64::min);
        let degree = f64::from(self.shallow.activation.degree()) + 1.0;
        z.append(&mut head);
        let theta = [&inner.data[..], &outer].concat();
        let (size, dual) = match self.ball {
            Ball::Round => (norm2(&theta), norm2(&z)),
            Ball::Diamond => (sum_abs(&theta), max_abs(&z)),
            Ball::Cube => (max_abs(&theta), sum_abs(&z)),
        };
        1.0 - degree * smallest * total / (size * dual)
    }

    /// A strictly feasible x of the neurons.
    fn start(&self) -> Vec<f64> {
        let (_, d, m, _) = self.sizes();
        let neurons = self.neurons;
        let degree = f64::from(self.shallow.activation.degree()) + 1.0;
        let mut x = Vec::new();
        match self.ball {
            Ball::Cube => {
                let products = neurons.products(self.shallow.activation.degree());
                let factor = 0.95 / max_abs(&products.data);
                x.extend(products.data.iter().map(|u| u * factor));
            }
            Ball::Round => (0..m).for_each(|j| {
                x.extend_from_slice(neurons.inner.row(j));
                x.push(neurons.outer[j]);
            }),
            Ball::Diamond => {
                let (inner, outer) = (0.02 * max_abs(&neurons.inner.data), 0.02 * max_abs(&neurons.outer));
                for j in 0..m {
                    x.extend(neurons.inner.row(j).iter().map(|w| w.max(0.0) + inner));
                    x.extend(neurons.inner.row(j).iter().map(|w| (-w).max(0.0) + inner));
                    x.push(neurons.outer[j].max(outer));
                }
            }
        }
        debug_assert!(d > 0);
        // the scale at which N − ln T is smallest along the ray
        let factor = match self.ball {
            Ball::Round => (degree / dot(&x, &x)).sqrt(),
            Ball::Diamond => degree / x.iter().sum::<f64>(),
            Ball::Cube => 1.0,
        };
        x.iter_mut().for_each(|x| *x *= factor);
        x
    }

    /// A KKT point near the neurons, τ ≤ `target` if all goes well; nothing if they do not separate the data.
    pub fn solve(&self, target: f64, iterations: usize) -> Option<CurvedSolution> {
        let x = self.start();
        let (n, ..) = self.sizes();
        let mut terms = self.terms(&x);
        if terms.margins.iter().any(|q| q.is_nan() || *q <= 0.0) {
            return None;
        }
        let mut mu = 0.1 / n as f64;
        let mut state = State::new(self.ball, x, &terms, mu);
        let (mut best, mut best_tau) = (state.clone(), f64::INFINITY);
        let (mut damping, mut solves, mut iteration) = (0.0_f64, 0, 0);
        let (mut reference, mut since, mut changed) = (f64::INFINITY, 0, 0);
        while iteration < iterations {
            let tau = self.tau(&state, &terms);
            if tau < best_tau {
                (best, best_tau) = (state.clone(), tau);
            }
            if best_tau < 0.5 * reference {
                (reference, since) = (best_tau, iteration);
            }
            if tau <= target || (reference < SETTLED && iteration > since + PATIENCE) {
                break;
            }
            let error = self.residual(&state, &terms, mu);
            // rounding may keep the residual above 10 μ
            let stuck = best_tau < SETTLED && tau < SETTLED && iteration > changed + 15;
            if error < 10.0 * mu || stuck {
                if mu < 1e-17 {
                    break;
                }
                mu *= 0.2;
                changed = iteration;
                state.level = best_level(&terms.margins, mu);
                state.slack = terms.margins.iter().map(|q| q - state.level).collect();
                continue;
            }
            iteration += 1;
            let mut system = System::new(self, &state, &terms, mu);
            // far away multipliers may jump, near a KKT point they may not
            let limit = if tau < NEAR { (4.0 * best_tau).max(tau) } else { f64::INFINITY };
            if tau < NEAR {
                solves += 1;
                system.factor(0.0);
                if let Some((next, next_terms)) = self.newton_step(&system, &state, mu, (0.7 * error, limit)) {
                    (state, terms, damping) = (next, next_terms, 0.0);
                    continue;
                }
            }
            solves += 1;
            let mut good = system.factor(damping);
            while !good {
                damping = (3.0 * damping).max(1e-4 * system.typical);
                if !damping.is_finite() || damping > 1e12 * system.typical {
                    return Some(self.conclude(best, iteration, solves));
                }
                solves += 1;
                good = system.factor(damping);
            }
            match self.search(&system, &state, &terms, mu, limit) {
                Some((next, next_terms, share)) => {
                    damping = match share {
                        _ if share >= 0.5 && damping > 0.0 => (damping / 8.0).max(LEAST * system.typical),
                        _ if share >= 0.1 => damping,
                        _ => (4.0 * damping).max(1e-5 * system.typical),
                    };
                    (state, terms) = (next, next_terms);
                }
                None => {
                    damping = (4.0 * damping).max(1e-5 * system.typical);
                    if damping > 1e6 * system.typical {
                        break;
                    }
                }
            }
        }
        Some(self.conclude(best, iteration, solves))
    }

    fn conclude(&self, state: State, iterations: usize, solves: usize) -> CurvedSolution {
        let (inner, outer) = self.split(&state.x);
        let total: f64 = state.lambda.iter().sum();
        let weights = state.lambda.iter().map(|l| l / total).collect();
        CurvedSolution { neurons: Neurons { inner, outer, ..self.neurons.clone() }, weights, iterations, solves }
    }

    /// The largest violation of the conditions of the barrier problem.
    fn residual(&self, state: &State, terms: &Terms, mu: f64) -> f64 {
        let gradient = self.gradient(terms, &state.lambda);
        let mut stationarity = self.size_gradient(&state.x);
        crate::linalg::add_scaled(&mut stationarity, -1.0, &gradient);
        if !state.lower.is_empty() {
            crate::linalg::add_scaled(&mut stationarity, -1.0, &state.lower_dual);
        }
        if !state.upper.is_empty() {
            crate::linalg::add_scaled(&mut stationarity, 1.0, &state.upper_dual);
        }
        let products = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a * b - mu).abs()).fold(0.0, f64::max);
        [
            max_abs(&stationarity),
            (1.0 - state.level * state.lambda.iter().sum::<f64>()).abs(),
            products(&state.slack, &state.lambda),
            products(&state.lower, &state.lower_dual),
            products(&state.upper, &state.upper_dual),
        ]
        .into_iter()
        .fold(0.0, f64::max)
    }

    /// The full Newton step, if it is feasible and leaves a residual and a τ of at most these.
    fn newton_step(
        &self,
        system: &System,
        state: &State,
        mu: f64,
        (residual, tau): (f64, f64),
    ) -> Option<(State, Terms)> {
        let change = system.direction(state, mu);
        let mut next = state.clone();
        let (primal, dual) = state.steps(&change, true);
        next.advance(&change, primal, dual);
        let terms = self.terms(&next.x);
        next.level = state.level + primal * change.level;
        next.slack = terms.margins.iter().map(|q| q - next.level).collect();
        let feasible = next.slack.iter().all(|s| *s > 0.0) && next.level > 0.0;
        let good = feasible && self.residual(&next, &terms, mu) <= residual && self.tau(&next, &terms) <= tau;
        good.then_some((next, terms))
    }

    /// A step that decreases the barrier function and leaves τ at most `limit`, and its share of the longest
    /// one.
    fn search(
        &self,
        system: &System,
        state: &State,
        terms: &Terms,
        mu: f64,
        limit: f64,
    ) -> Option<(State, Terms, f64)> {
        let change = system.direction(state, mu);
        let (longest, dual) = state.steps(&change, false);
        let slope = dot(&system.gradient, &change.x);
        let before = self.merit(state, best_level(&terms.margins, mu), terms, mu);
        let mut step = longest;
        while step > 1e-12 {
            let mut next = state.clone();
            next.advance(&change, step, dual);
            let terms = self.terms(&next.x);
            if terms.margins.iter().all(|q| *q > 0.0) {
                let level = best_level(&terms.margins, mu);
                let after = self.merit(&next, level, &terms, mu);
                if after <= before + 1e-4 * step * slope + 1e-15 * before.abs() {
                    next.level = level;
                    next.slack = terms.margins.iter().map(|q| q - level).collect();
                    next.recentre(mu);
                    if limit == f64::INFINITY || self.tau(&next, &terms) <= limit {
                        return Some((next, terms, step / longest));
                    }
                }
            }
            step *= 0.5;
        }
        None
    }

    fn merit(&self, state: &State, level: f64, terms: &Terms, mu: f64) -> f64 {
        let logs = |v: &[f64]| v.iter().map(|x| x.ln()).sum::<f64>();
        let slack: f64 = terms.margins.iter().map(|q| (q - level).ln()).sum();
        self.size(&state.x) - level.ln() - mu * (slack + logs(&state.lower) + logs(&state.upper))
    }
}

impl State {
    fn new(ball: Ball, x: Vec<f64>, terms: &Terms, mu: f64) -> Self {
        let level = best_level(&terms.margins, mu);
        let slack: Vec<f64> = terms.margins.iter().map(|q| q - level).collect();
        let lambda = slack.iter().map(|s| mu / s).collect();
        let lower: Vec<f64> = match ball {
            Ball::Round => Vec::new(),
            Ball::Diamond => x.clone(),
            Ball::Cube => x.iter().map(|x| 1.0 + x).collect(),
        };
        let upper: Vec<f64> = if ball == Ball::Cube { x.iter().map(|x| 1.0 - x).collect() } else { Vec::new() };
        let dual = |v: &[f64]| v.iter().map(|v| mu / v).collect();
        Self { lower_dual: dual(&lower), upper_dual: dual(&upper), x, level, slack, lambda, lower, upper }
    }

    /// The longest steps, at most 1, short of the boundary; slacks count only if `slacks` (a search finds its own T).
    fn steps(&self, change: &State, slacks: bool) -> (f64, f64) {
        let longest = |v: &[f64], dv: &[f64]| {
            v.iter().zip(dv).filter(|(_, dv)| **dv < 0.0).map(|(v, dv)| -0.995 * v / dv).fold(1.0, f64::min)
        };
        let mut primal = longest(&self.lower, &change.lower).min(longest(&self.upper, &change.upper));
        if slacks {
            primal = primal.min(longest(&self.slack, &change.slack));
        }
        let dual = longest(&self.lambda, &change.lambda)
            .min(longest(&self.lower_dual, &change.lower_dual))
            .min(longest(&self.upper_dual, &change.upper_dual));
        (primal, dual)
    }

    /// Moves x, the box and all multipliers; the level and the slacks follow from the new margins.
    fn advance(&mut self, change: &State, primal: f64, dual: f64) {
        crate::linalg::add_scaled(&mut self.x, primal, &change.x);
        crate::linalg::add_scaled(&mut self.lower, primal, &change.lower);
        crate::linalg::add_scaled(&mut self.upper, primal, &change.upper);
        crate::linalg::add_scaled(&mut self.lambda, dual, &change.lambda);
        crate::linalg::add_scaled(&mut self.lower_dual, dual, &change.lower_dual);
        crate::linalg::add_scaled(&mut self.upper_dual, dual, &change.upper_dual);
    }

    /// Keeps every product of a slack and its multiplier within a factor 1000 of μ.
    fn recentre(&mut self, mu: f64) {
        let clamp = |dual: &mut [f64], slack: &[f64]| {
            dual.iter_mut().zip(slack).for_each(|(dual, s)| *dual = dual.min(1e3 * mu / s).max(1e-3 * mu / s));
        };
        clamp(&mut self.lambda, &self.slack);
        clamp(&mut self.lower_dual, &self.lower);
        clamp(&mut self.upper_dual, &self.upper);
    }
}

/// The T in (0, min q) with T Σ μ/(q_i − T) = 1, by Newton's method on the reciprocal inside a bracket.
pub(super) fn best_level(margins: &[f64], mu: f64) -> f64 {
    let smallest = margins.iter().copied().fold(f64::INFINITY, f64::min);
    let (mut low, mut high) = (0.0, smallest);
    let mut level = smallest / (1.0 + mu);
    for _ in 0..200 {
        let (sum, slope) = margins.iter().fold((0.0, 0.0), |(sum, slope), q| {
            let r = mu / (q - level);
            (sum + r, slope + r / (q - level))
        });
        let product = level * sum;
        if product > 1.0 {
            high = level
        } else {
            low = level
        }
        let mut next = level - (1.0 - 1.0 / product) * product * product / (sum + level * slope);
        if !(next > low && next < high) {
            next = 0.5 * (low + high);
        }
        if (next - level).abs() <= 2e-16 * level {
            break;
        }
        level = next;
    }
    level
}
