//! The convex problem of a two-layer network inside its activation cells, by a primal–dual interior point method.
//!
//! In the products u_j of [`super::shallow`] the margins of a ReLU network are differences of convex functions. With
//! the convex kinks replaced by a line below them (see [`super::majorise`]) they are concave and piecewise linear,
//!
//! ```text
//! q_i(u) = Σ_j b_ij z_ij − κ_ij max(0, z_ij),    z_ij = ⟨u_j, x_i⟩,   κ ≥ 0
//! ```
//!
//! and the smallest weights with margins at least 1 solve
//!
//! ```text
//! ℓ2   min Σ_j ‖u_j‖₂     subject to q_i(u) ≥ 1          dual   max Σ λ_i   with  ‖g_j‖₂ ≤ 1
//! ℓ1   min Σ_j c_j‖u_j‖₁  subject to q_i(u) ≥ 1          dual   max Σ λ_i   with  ‖g_j‖_∞ ≤ c_j
//! ℓ∞   max T              subject to q_i(u) ≥ T, |u| ≤ 1  dual   min Σ_j ‖g_j‖₁  with  Σ λ_i = 1
//!      g_j = Σ_i (b_ij λ_i − κ_ij e_ij) x_i,   λ ≥ 0,  0 ≤ e_ij ≤ λ_i
//! ```
//!
//! Every variable except u belongs to one neuron or one margin. The kinks are written as t_ij ≥ 0, t_ij ≥ z_ij and
//! eliminated one by one (a kink then is a smoothed slope b − κ y₁/(y₀+y₁) and some curvature), the neurons in blocks
//! of the size of an input, and what remains is one system in the multipliers of the margins. All kinks are there all
//! the time, at a cost far below that of the last system.
//!
//! Mehrotra's predictor and corrector with separate step lengths; Nesterov–Todd scaling for the cones of ℓ2. Stops when
//! the relative gap between the true value of u and the dual bound of (λ, e) is below `tolerance`, or no longer falls.

use super::factor::Factor;
use super::scaling::{Scaling, round_step};
use super::shallow::Ball;
use crate::linalg::{Matrix, matmul_nt, matmul_tn, max_abs, norm2, sum_abs};

/// Most iterations of one solve.
const ITERATIONS: usize = 120;

/// The problem; arrays over kinks are examples × neurons.
pub(super) struct CellProgram<'a> {
    /// x_i as rows.
    pub inputs: &'a Matrix,
    /// b.
    pub slopes: Vec<f64>,
    /// κ; 0 where there is no kink.
    pub jumps: Vec<f64>,
    /// The norm.
    pub ball: Ball,
    /// c_j for ℓ1, 1 otherwise.
    pub costs: Vec<f64>,
}

/// u with smallest margin 1, and multipliers with Σ λ = 1.
pub(super) struct CellSolution {
    pub products: Matrix,
    pub weights: Vec<f64>,
    /// e.
    pub kinks: Vec<f64>,
    /// 1 − dual bound / value.
    pub gap: f64,
    pub iterations: usize,
}

/// Variables and multipliers, or their change.
#[derive(Clone, Default)]
pub(super) struct Iterate {
    /// u, neuron by neuron.
    pub u: Vec<f64>,
    /// t and t − z, with multipliers y₀ and y₁.
    pub t: Vec<f64>,
    pub over: Vec<f64>,
    pub y0: Vec<f64>,
    pub y1: Vec<f64>,
    /// q − 1 or q − T, with multipliers λ.
    pub slack: Vec<f64>,
    pub lambda: Vec<f64>,
    /// T, for ℓ∞.
    pub level: f64,
    /// α_j ≥ ‖u_j‖₂ for ℓ2, β ≥ |u| for ℓ1.
    pub reach: Vec<f64>,
    /// ℓ2: the dual cone (ζ₀, ζ); otherwise slacks and multipliers of ±u ≤ β or 1.
    pub apex: Vec<f64>,
    pub dual: Vec<f64>,
    pub upper: Vec<f64>,
    pub lower: Vec<f64>,
    pub upper_dual: Vec<f64>,
    pub lower_dual: Vec<f64>,
}

/// What is missing from the linear equations.
pub(super) struct Residual {
    pub over: Vec<f64>,
    pub slack: Vec<f64>,
    pub kink: Vec<f64>,
    pub u: Vec<f64>,
    pub reach: Vec<f64>,
    pub upper: Vec<f64>,
    pub lower: Vec<f64>,
    pub level: f64,
}

impl CellProgram<'_> {
    /// Examples, features and neurons.
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.inputs.rows, self.inputs.cols, self.costs.len())
    }

    /// Solves the problem from any u whose margins are positive.
    pub fn solve(&self, start: &Matrix, tolerance: f64) -> CellSolution {
        let (n, d, m) = self.sizes();
        let mut x = self.start(start);
        let mut best = self.conclude(&x, 0);
        let (mut stale, mut reference, mut centred) = (0, f64::INFINITY, f64::INFINITY);
        for iteration in 1..=ITERATIONS {
            let residual = self.residual(&x);
            let scaling = Scaling::new(self, &x);
            let Some(factor) = Factor::new(self, &x, &scaling) else { break };
            let (count, total) = self.complementarity(&x, &x, (0.0, 0.0));
            let mu = total / count;
            let predictor = self.direction(&x, &residual, &scaling, &factor, (0.0, None));
            let steps = self.steps(&x, &predictor);
            let (_, reached) = self.complementarity(&x, &predictor, steps);
            let centre = mu * (reached / total).clamp(1e-12, 1.0).powi(3);
            let corrector = self.direction(&x, &residual, &scaling, &factor, (centre, Some(&predictor)));
            let (primal, dual) = self.steps(&x, &corrector);
            if !(primal.is_finite() && dual.is_finite()) {
                break;
            }
            if corrector.u.iter().chain(&corrector.lambda).any(|x| !x.is_finite()) {
                break;
            }
            x.advance(&corrector, (0.99 * primal).min(1.0), (0.99 * dual).min(1.0));
            debug_assert_eq!((x.u.len(), x.lambda.len()), (m * d, n));
            let point = self.conclude(&x, iteration);
            if point.gap.is_nan() {
                break;
            }
            stale += 1;
            if point.gap < 0.5 * reference {
                (stale, reference) = (0, point.gap);
            }
            // far from the solution the gap is near 1 whatever happens, and μ shows the progress
            if point.gap > 0.1 && mu < 0.5 * centred {
                (stale, centred) = (0, mu);
            }
            let lost = iteration > 10 && point.gap > 100.0 * best.gap;
            if point.gap < best.gap {
                best = point;
            }
            if best.gap <= tolerance || lost || (iteration > 15 && stale >= 8) {
                break;
            }
        }
        best
    }

    /// z = X uᵀ.
    pub fn preactivations(&self, u: &[f64]) -> Vec<f64> {
        let (n, d, m) = self.sizes();
        let mut z = vec![0.0; n * m];
        matmul_nt(&mut z, &self.inputs.data, u, n, d, m);
        z
    }

    /// Σ_i weight_ij x_i for every neuron.
    pub fn gather(&self, weights: &[f64]) -> Vec<f64> {
        let (n, d, m) = self.sizes();
        let mut g = vec![0.0; m * d];
        matmul_tn(&mut g, weights, &self.inputs.data, m, n, d);
        g
    }

    /// q with t in place of max(0, z).
    fn margins(&self, z: &[f64], t: &[f64]) -> Vec<f64> {
        let m = self.costs.len();
        let rows = self.slopes.chunks_exact(m).zip(self.jumps.chunks_exact(m));
        let rows = rows.zip(z.chunks_exact(m).zip(t.chunks_exact(m)));
        rows.map(|((b, k), (z, t))| (0..m).map(|j| b[j] * z[j] - k[j] * t[j]).sum()).collect()
    }

    /// A point inside every cone, of the size of `start`.
    fn start(&self, start: &Matrix) -> Iterate {
        let (n, _, m) = self.sizes();
        let z = self.preactivations(&start.data);
        let smallest = self.true_margin(&z);
        let cube = self.ball == Ball::Cube;
        let factor = if cube { 0.5 / max_abs(&start.data) } else { 2.0 / smallest };
        let u: Vec<f64> = start.data.iter().map(|u| u * factor).collect();
        let z: Vec<f64> = z.iter().map(|z| z * factor).collect();
        let typical = z.iter().map(|z| z.abs()).sum::<f64>() / z.len() as f64;
        let t: Vec<f64> =
            z.iter().zip(&self.jumps).map(|(z, k)| if *k > 0.0 { z.max(0.0) + 0.3 * typical } else { 1.0 }).collect();
        let over = z.iter().zip(&t).zip(&self.jumps).map(|((z, t), k)| if *k > 0.0 { t - z } else { 1.0 }).collect();
        let q = self.margins(&z, &t);
        let spread = q.iter().map(|q| q.abs()).sum::<f64>() / n as f64;
        let level = if cube { q.iter().copied().fold(f64::INFINITY, f64::min) - 0.3 * spread } else { 1.0 };
        let slack = q.iter().map(|q| if cube { q - level } else { (q - 1.0).max(0.3) }).collect();
        let lambda = vec![if cube { 1.0 / n as f64 } else { 1.0 }; n];
        let half = |k: &f64| if *k > 0.0 { 0.5 * k * lambda[0] } else { 1.0 };
        let y0: Vec<f64> = self.jumps.iter().map(half).collect();
        let mut x = Iterate { y1: y0.clone(), y0, u, t, over, slack, lambda, level, ..Iterate::default() };
        let d = self.inputs.cols;
        match self.ball {
            Ball::Round => {
                let lengths: Vec<f64> = x.u.chunks_exact(d).map(norm2).collect();
                let longest = max_abs(&lengths);
                x.reach = lengths.iter().map(|length| 1.3 * length + 0.1 * longest).collect();
                x.apex = vec![1.0; m];
                x.dual = vec![0.0; m * d];
            }
            Ball::Diamond | Ball::Cube => {
                // β − |u| the larger the cheaper, so that all products with the multipliers are alike
                let value: f64 = x.u.iter().enumerate().map(|(k, u)| self.costs[k / d] * u.abs()).sum();
                let room = |k: usize| 0.3 * x.u[k].abs() + value / ((m * d) as f64 * self.costs[k / d]);
                let bound = |k: usize| if cube { 1.0 } else { x.u[k].abs() + room(k) };
                x.reach = (0..m * d).map(bound).collect();
                x.upper = x.reach.iter().zip(&x.u).map(|(b, u)| b - u).collect();
                x.lower = x.reach.iter().zip(&x.u).map(|(b, u)| b + u).collect();
                let dual = |k: usize| if cube { 1.0 / (m * d) as f64 } else { 0.5 * self.costs[k / d] };
                x.upper_dual = (0..m * d).map(dual).collect();
                x.lower_dual = x.upper_dual.clone();
            }
        }
        x
    }

    /// min q_i with the true kinks.
    fn true_margin(&self, z: &[f64]) -> f64 {
        let positive: Vec<f64> = z.iter().map(|z| z.max(0.0)).collect();
        self.margins(z, &positive).into_iter().fold(f64::INFINITY, f64::min)
    }

    fn residual(&self, x: &Iterate) -> Residual {
        let m = self.costs.len();
        let d = self.inputs.cols;
        let z = self.preactivations(&x.u);
        let q = self.margins(&z, &x.t);
        let kinked = |k: usize, value: f64| if self.jumps[k] > 0.0 { value } else { 0.0 };
        let over = (0..z.len()).map(|k| kinked(k, x.t[k] - z[k] - x.over[k])).collect();
        let kink = (0..z.len()).map(|k| kinked(k, self.jumps[k] * x.lambda[k / m] - x.y1[k] - x.y0[k])).collect();
        let slack = (0..q.len()).map(|i| q[i] - x.level - x.slack[i]).collect();
        let weights: Vec<f64> = (0..z.len()).map(|k| self.slopes[k] * x.lambda[k / m] - kinked(k, x.y1[k])).collect();
        let g = self.gather(&weights);
        let mut residual = Residual {
            over,
            slack,
            kink,
            u: Vec::new(),
            reach: Vec::new(),
            upper: Vec::new(),
            lower: Vec::new(),
            level: if self.ball == Ball::Cube { 1.0 - x.lambda.iter().sum::<f64>() } else { 0.0 },
        };
        if self.ball == Ball::Round {
            residual.u = g.iter().zip(&x.dual).map(|(g, zeta)| -(g + zeta)).collect();
            residual.reach = x.apex.iter().map(|apex| 1.0 - apex).collect();
        } else {
            let sides = |k: usize| -(g[k] - x.upper_dual[k] + x.lower_dual[k]);
            residual.u = (0..g.len()).map(sides).collect();
            residual.reach = (0..g.len()).map(|k| self.costs[k / d] - x.upper_dual[k] - x.lower_dual[k]).collect();
            residual.upper = (0..g.len()).map(|k| x.reach[k] - x.u[k] - x.upper[k]).collect();
            residual.lower = (0..g.len()).map(|k| x.reach[k] + x.u[k] - x.lower[k]).collect();
        }
        residual
    }

    /// The number of complementarity products and their sum at x + steps · change.
    fn complementarity(&self, x: &Iterate, change: &Iterate, (primal, dual): (f64, f64)) -> (f64, f64) {
        let product = |a: &[f64], da: &[f64], b: &[f64], db: &[f64]| -> f64 {
            (0..a.len()).map(|k| (a[k] + primal * da[k]) * (b[k] + dual * db[k])).sum()
        };
        let mut total = product(&x.slack, &change.slack, &x.lambda, &change.lambda);
        let mut count = x.slack.len();
        for k in (0..x.t.len()).filter(|&k| self.jumps[k] > 0.0) {
            total += (x.t[k] + primal * change.t[k]) * (x.y0[k] + dual * change.y0[k])
                + (x.over[k] + primal * change.over[k]) * (x.y1[k] + dual * change.y1[k]);
            count += 2;
        }
        if self.ball == Ball::Round {
            total += product(&x.reach, &change.reach, &x.apex, &change.apex)
                + product(&x.u, &change.u, &x.dual, &change.dual);
            count += x.reach.len();
        } else {
            total += product(&x.upper, &change.upper, &x.upper_dual, &change.upper_dual)
                + product(&x.lower, &change.lower, &x.lower_dual, &change.lower_dual);
            count += 2 * x.upper.len();
        }
        (count as f64, total)
    }

    /// The longest steps, at most 1, that stay inside the cones, for variables and multipliers.
    fn steps(&self, x: &Iterate, change: &Iterate) -> (f64, f64) {
        let longest = |v: &[f64], dv: &[f64]| {
            v.iter().zip(dv).filter(|(_, dv)| **dv < 0.0).map(|(v, dv)| -v / dv).fold(1.0, f64::min)
        };
        let (mut primal, mut dual) = (longest(&x.slack, &change.slack), longest(&x.lambda, &change.lambda));
        primal = primal.min(longest(&x.t, &change.t)).min(longest(&x.over, &change.over));
        dual = dual.min(longest(&x.y0, &change.y0)).min(longest(&x.y1, &change.y1));
        if self.ball == Ball::Round {
            primal = primal.min(round_step(&x.reach, &x.u, &change.reach, &change.u));
            dual = dual.min(round_step(&x.apex, &x.dual, &change.apex, &change.dual));
        } else {
            primal = primal.min(longest(&x.upper, &change.upper)).min(longest(&x.lower, &change.lower));
            dual = dual.min(longest(&x.upper_dual, &change.upper_dual)).min(longest(&x.lower_dual, &change.lower_dual));
        }
        (primal, dual)
    }

    /// u and multipliers cleaned up to prove a gap.
    fn conclude(&self, x: &Iterate, iterations: usize) -> CellSolution {
        let (m, d) = (self.costs.len(), self.inputs.cols);
        let smallest = self.true_margin(&self.preactivations(&x.u));
        let total: f64 = x.lambda.iter().sum();
        let kink = |k: usize| {
            if self.jumps[k] > 0.0 { (x.y1[k] / self.jumps[k]).min(x.lambda[k / m]).max(0.0) / total } else { 0.0 }
        };
        let kinks: Vec<f64> = (0..x.t.len()).map(kink).collect();
        let weights: Vec<f64> = x.lambda.iter().map(|l| l / total).collect();
        let combined: Vec<f64> =
            (0..kinks.len()).map(|k| self.slopes[k] * weights[k / m] - self.jumps[k] * kinks[k]).collect();
        let g = self.gather(&combined);
        // the value at smallest margin 1, and the bound on it that multipliers of sum 1 prove
        let (value, dual) = match self.ball {
            Ball::Round => {
                (x.u.chunks_exact(d).map(norm2).sum::<f64>(), g.chunks_exact(d).map(norm2).fold(0.0, f64::max))
            }
            Ball::Diamond => {
                let rows = x.u.chunks_exact(d).zip(&self.costs).map(|(u, c)| c * sum_abs(u));
                (rows.sum(), g.chunks_exact(d).zip(&self.costs).map(|(g, c)| max_abs(g) / c).fold(0.0, f64::max))
            }
            Ball::Cube => (max_abs(&x.u), sum_abs(&g)),
        };
        let gap = if smallest > 0.0 { 1.0 - smallest / (value * dual) } else { f64::INFINITY };
        let data = x.u.iter().map(|u| u / smallest).collect();
        CellSolution { products: Matrix { rows: m, cols: d, data }, weights, kinks, gap, iterations }
    }
}

impl Iterate {
    /// x + primal · change in the variables and x + dual · change in the multipliers.
    fn advance(&mut self, change: &Self, primal: f64, dual: f64) {
        let add = |to: &mut [f64], by: &[f64], step: f64| to.iter_mut().zip(by).for_each(|(to, by)| *to += step * by);
        add(&mut self.u, &change.u, primal);
        add(&mut self.t, &change.t, primal);
        add(&mut self.over, &change.over, primal);
        add(&mut self.slack, &change.slack, primal);
        add(&mut self.reach, &change.reach, primal);
        add(&mut self.upper, &change.upper, primal);
        add(&mut self.lower, &change.lower, primal);
        self.level += primal * change.level;
        add(&mut self.y0, &change.y0, dual);
        add(&mut self.y1, &change.y1, dual);
        add(&mut self.lambda, &change.lambda, dual);
        add(&mut self.apex, &change.apex, dual);
        add(&mut self.dual, &change.dual, dual);
        add(&mut self.upper_dual, &change.upper_dual, dual);
        add(&mut self.lower_dual, &change.lower_dual, dual);
    }
}
