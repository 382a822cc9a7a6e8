//! A dense interior-point method for the margin problem in ℓ2, ℓ∞, ℓ1 and their weighted forms.
//!
//! ```text
//! min ‖Mᵀx‖_*   over x = (p, e, s) with Σp = 1, x ≥ 0, e_k ≤ p_{row of k}
//! ```
//!
//! where the rows of M are the problem's rows, kinks and cone rows; the multipliers of the constraints are the weights
//! v and the margins above the smallest. Mehrotra's predictor–corrector method (1992), started from an interior point
//! that need not be feasible. Its linear systems are dense and as small as the shorter side of M ([`kkt`]), which is
//! why it is here beside a general conic solver: those factor sparse matrices entry by entry.
//!
//! Stopping test: after every step the bracket of the present v and x is computed from the data; the method ends when
//! its relative gap is at most `GAP`, when it has not improved for `PATIENCE` steps, or after `ITERATIONS`. The best v
//! and the best x seen are returned, each on its own.

mod arrows;
mod ball;
mod kkt;

use arrows::Arrows;
pub(super) use ball::BallSpec;
use ball::{Ball, BallStep};
use kkt::{Change, Kkt, RightHandSide};

use crate::linalg::{Matrix, add_scaled, dot};

/// Relative gap at which the method ends.
const GAP: f64 = 2e-14;
/// Steps without a better bracket after which it ends.
const PATIENCE: usize = 8;
/// Most steps.
const ITERATIONS: usize = 120;

/// The data of a problem: rows, kinks and cone rows of one matrix, in this order.
pub(super) struct Structure<'a> {
    /// Number of rows.
    pub rows: usize,
    /// The row of every kink.
    pub parents: &'a [usize],
    /// Number of cone rows.
    pub cone: usize,
    /// All rows; nothing if only their Gram matrix is known.
    pub matrix: Option<&'a Matrix>,
    /// MΘMᵀ, if it is given instead.
    pub gram: Option<&'a Matrix>,
}

impl Structure<'_> {
    /// Number of multipliers.
    fn len(&self) -> usize {
        self.rows + self.parents.len() + self.cone
    }

    fn columns(&self) -> usize {
        self.matrix.map_or(0, |m| m.cols)
    }

    fn matrix(&self) -> &Matrix {
        self.matrix.expect("a problem given by its Gram matrix never asks for rows")
    }

    /// min over rows of ⟨h, v⟩ + Σ min(0, ⟨c, v⟩), from the products Mv; −∞ outside the cone.
    fn smallest_margin(&self, products: &[f64]) -> f64 {
        let mut margins = products[..self.rows].to_vec();
        let first = self.rows + self.parents.len();
        self.parents.iter().zip(&products[self.rows..first]).for_each(|(&row, c)| margins[row] += c.min(0.0));
        // a cone row missed by a rounding error is judged again when the problem is put together
        if products[first..].iter().any(|r| *r < -1e-13) {
            return f64::NEG_INFINITY;
        }
        margins.into_iter().fold(f64::INFINITY, f64::min)
    }
}

/// What the method found; the two halves need not belong to the same step.
pub(super) struct Interior {
    /// The best multipliers, not normalised.
    pub multipliers: Vec<f64>,
    /// The best weights; under a Gram matrix empty.
    pub weights: Vec<f64>,
    /// Steps taken.
    pub iterations: usize,
}

/// M v.
fn times(m: &Matrix, v: &[f64]) -> Vec<f64> {
    (0..m.rows).map(|i| dot(m.row(i), v)).collect()
}

/// Mᵀx.
fn times_transposed(m: &Matrix, x: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; m.cols];
    x.iter().enumerate().for_each(|(i, x)| add_scaled(&mut out, *x, m.row(i)));
    out
}

/// The largest step ≤ 1 that keeps x ≥ 0.
fn room(x: &[f64], dx: &[f64]) -> f64 {
    x.iter().zip(dx).filter(|(_, dx)| **dx < 0.0).map(|(x, dx)| -x / dx).fold(1.0, f64::min)
}

/// Multipliers x, their slacks and both their partners; the pairs (x, y), (cap, cap_dual) become complementary.
struct Iterate<'a> {
    x: Vec<f64>,
    cap: Vec<f64>,
    y: Vec<f64>,
    cap_dual: Vec<f64>,
    level: f64,
    ball: Ball<'a>,
}

/// A change of an iterate.
struct Step {
    x: Vec<f64>,
    cap: Vec<f64>,
    y: Vec<f64>,
    cap_dual: Vec<f64>,
    level: f64,
    ball: BallStep,
}

/// What an iterate implies: combination u, products Mv, and residuals.
struct View {
    u: Vec<f64>,
    products: Vec<f64>,
}

/// Solves the problem of `structure` in the ball of `spec`. The rows should have a size of about 1.
pub(super) fn solve(structure: &Structure, spec: &BallSpec) -> Interior {
    let theta = match spec {
        BallSpec::Euclid(theta) => theta.clone(),
        _ => vec![1.0; structure.columns()],
    };
    let mut arrows = Arrows::new(structure);
    let mut kkt = Kkt::new(structure, theta, matches!(spec, BallSpec::Euclid(_)));
    let mut iterate = Iterate::start(structure, spec, &kkt);
    let mut best = Best::new();
    let mut iterations = 0;
    while iterations < ITERATIONS {
        let view = iterate.view(structure, spec, &kkt);
        best.see(structure, spec, &iterate, &view);
        if best.finished() {
            break;
        }
        let Some(step) = iterate.direction(structure, &view, &mut arrows, &mut kkt) else { break };
        if !iterate.advance(&step) {
            break;
        }
        iterations += 1;
    }
    best.into_solution(structure, spec, iterations)
}

impl<'a> Iterate<'a> {
    fn start(structure: &Structure, spec: &'a BallSpec, kkt: &Kkt) -> Self {
        let share = 1.0 / structure.rows as f64;
        let mut x = vec![share; structure.len()];
        x[structure.rows..].iter_mut().for_each(|x| *x = 0.5 * share);
        let u = structure.matrix.map(|m| times_transposed(m, &x)).unwrap_or_default();
        let size = match spec {
            BallSpec::Euclid(_) => dot(&x, &kkt.apply_gram(&x)),
            _ => spec.dual(&u),
        };
        let y = size.max(1e-3);
        Self {
            y: vec![y; x.len()],
            cap: vec![0.5 * share; structure.parents.len()],
            cap_dual: vec![y; structure.parents.len()],
            level: 0.0,
            ball: Ball::start(spec, &u),
            x,
        }
    }

    fn view(&self, structure: &Structure, spec: &BallSpec, kkt: &Kkt) -> View {
        let Some(m) = structure.matrix else {
            return View { u: Vec::new(), products: kkt.apply_gram(&self.x) };
        };
        let u = times_transposed(m, &self.x);
        let products = match spec {
            BallSpec::Euclid(_) => kkt.apply_gram(&self.x),
            _ => times(m, &self.ball.v),
        };
        View { u, products }
    }

    /// The average of all complementary products, after the given step.
    fn complementarity(&self, step: Option<(&Step, f64, f64)>) -> f64 {
        let pair = |x: &[f64], y: &[f64], change: Option<(&[f64], &[f64], f64, f64)>| -> f64 {
            match change {
                None => dot(x, y),
                Some((dx, dy, by_x, by_y)) => x
                    .iter()
                    .zip(dx)
                    .zip(y.iter().zip(dy))
                    .map(|((x, dx), (y, dy))| (x + by_x * dx) * (y + by_y * dy))
                    .sum(),
            }
        };
        let sum = pair(&self.x, &self.y, step.map(|(s, by_y, by_x)| (&s.x[..], &s.y[..], by_x, by_y)))
            + pair(&self.cap, &self.cap_dual, step.map(|(s, by_y, by_x)| (&s.cap[..], &s.cap_dual[..], by_x, by_y)))
            + self.ball.complementarity(step.map(|(s, by_y, by_x)| (&s.ball, by_y, by_x)));
        sum / (self.x.len() + self.cap.len() + self.ball.pairs()) as f64
    }

    /// The predictor–corrector direction; nothing if the system cannot be factored.
    fn direction(&self, structure: &Structure, view: &View, arrows: &mut Arrows, kkt: &mut Kkt) -> Option<Step> {
        arrows.bound.iter_mut().zip(self.y.iter().zip(&self.x)).for_each(|(d, (y, x))| *d = y / x);
        arrows.cap.iter_mut().zip(self.cap_dual.iter().zip(&self.cap)).for_each(|(d, (y, w))| *d = y / w);
        arrows.update();
        self.ball.part(&mut kkt.ball);
        if !kkt.factor(arrows) {
            return None;
        }
        let predictor = self.solve(structure, view, (arrows, kkt), 0.0, None);
        let mean = self.complementarity(None);
        let (by_y, by_x) = self.room(&predictor);
        let after = self.complementarity(Some((&predictor, by_y, by_x)));
        let target = mean * (after / mean).clamp(0.0, 1.0).powi(3);
        Some(self.solve(structure, view, (arrows, kkt), target, Some(&predictor)))
    }

    fn solve(
        &self,
        structure: &Structure,
        view: &View,
        (arrows, kkt): (&Arrows, &mut Kkt),
        target: f64,
        predictor: Option<&Step>,
    ) -> Step {
        let (rows, kinks) = (structure.rows, structure.parents.len());
        let t = |j: usize| target - predictor.map_or(0.0, |p| p.x[j] * p.y[j]);
        let t_cap = |k: usize| target - predictor.map_or(0.0, |p| p.cap[k] * p.cap_dual[k]);
        let residual_cap = |k: usize| self.x[structure.parents[k]] - self.x[rows + k] - self.cap[k];
        // dual residual plus what complementarity adds
        let mut r: Vec<f64> = (0..structure.len()).map(|j| t(j) / self.x[j] - view.products[j]).collect();
        r[..rows].iter_mut().for_each(|r| *r += self.level);
        for k in 0..kinks {
            let push = t_cap(k) / self.cap[k] - arrows.cap[k] * residual_cap(k);
            r[structure.parents[k]] += push;
            r[rows + k] -= push;
        }
        let (rho, q) = self.ball.right_hand_side(&view.u, target, predictor.map(|p| &p.ball));
        let missing = 1.0 - self.x[..rows].iter().sum::<f64>();
        let Change { v: dv, x: dx, level, tau } = kkt.solve(arrows, &RightHandSide { rho, r, m: missing, q });
        let y = (0..dx.len()).map(|j| (t(j) - self.y[j] * dx[j]) / self.x[j] - self.y[j]).collect();
        let cap: Vec<f64> = (0..kinks).map(|k| dx[structure.parents[k]] - dx[rows + k] + residual_cap(k)).collect();
        let cap_dual =
            (0..kinks).map(|k| (t_cap(k) - self.cap_dual[k] * cap[k]) / self.cap[k] - self.cap_dual[k]).collect();
        let du = if self.ball.pairs() > 0 { times_transposed(structure.matrix(), &dx) } else { Vec::new() };
        let ball = self.ball.step(&view.u, (dv, &du, tau), target, predictor.map(|p| &p.ball));
        Step { x: dx, cap, y, cap_dual, level, ball }
    }

    /// The largest steps (weights' side, multipliers' side) that keep everything positive.
    fn room(&self, step: &Step) -> (f64, f64) {
        let (ball_a, ball_z) = self.ball.room(&step.ball);
        let by_y = room(&self.y, &step.y).min(room(&self.cap_dual, &step.cap_dual)).min(ball_a);
        let by_x = room(&self.x, &step.x).min(room(&self.cap, &step.cap)).min(ball_z);
        // in a quadratic problem the weights are a function of the multipliers: both move together
        if self.ball.is_euclid() { (by_x.min(by_y), by_x.min(by_y)) } else { (by_y, by_x) }
    }

    /// Moves; false if the step is not finite or there is no room for it.
    fn advance(&mut self, step: &Step) -> bool {
        let (room_y, room_x) = self.room(step);
        let finite = step.x.iter().chain(&step.y).all(|x| x.is_finite()) && step.level.is_finite();
        if !finite || room_x.max(room_y) < 1e-10 {
            return false;
        }
        // a little short of the boundary, and closer to it the freer the step was
        let damp = |room: f64| (room * (1.0 - 0.05 * (1.0 - room))).min(0.9999);
        let (by_y, by_x) = (damp(room_y), damp(room_x));
        let add = |x: &mut [f64], dx: &[f64], by: f64| x.iter_mut().zip(dx).for_each(|(x, dx)| *x += by * dx);
        add(&mut self.x, &step.x, by_x);
        add(&mut self.cap, &step.cap, by_x);
        add(&mut self.y, &step.y, by_y);
        add(&mut self.cap_dual, &step.cap_dual, by_y);
        self.level += by_y * step.level;
        self.ball.advance(&step.ball, by_y, by_x);
        true
    }
}

/// The best of both sides seen so far.
struct Best {
    lower: f64,
    upper: f64,
    weights: Vec<f64>,
    combination: Vec<f64>,
    multipliers: Vec<f64>,
    waited: usize,
}

impl Best {
    fn new() -> Self {
        Self {
            lower: f64::NEG_INFINITY,
            upper: f64::INFINITY,
            weights: Vec::new(),
            combination: Vec::new(),
            multipliers: Vec::new(),
            waited: 0,
        }
    }

    fn see(&mut self, structure: &Structure, spec: &BallSpec, iterate: &Iterate, view: &View) {
        let total: f64 = iterate.x[..structure.rows].iter().sum();
        let euclid = iterate.ball.is_euclid();
        let dual = if view.u.is_empty() { dot(&iterate.x, &view.products).max(0.0).sqrt() } else { spec.dual(&view.u) };
        let size = if euclid { dual } else { spec.norm(&iterate.ball.v) };
        let smallest = structure.smallest_margin(&view.products);
        let (upper, lower) = (dual / total, if size > 0.0 { smallest / size } else { 0.0 });
        let gap = self.upper - self.lower;
        if upper < self.upper || self.multipliers.is_empty() {
            self.upper = upper;
            self.multipliers.clone_from(&iterate.x);
        }
        if lower > self.lower || self.combination.is_empty() {
            self.lower = lower;
            self.weights.clone_from(&iterate.ball.v);
            self.combination.clone_from(&iterate.x);
        }
        let better = self.upper - self.lower < 0.9 * gap || !gap.is_finite();
        self.waited = if better { 0 } else { self.waited + 1 };
    }

    fn finished(&self) -> bool {
        self.upper - self.lower <= GAP * self.upper || self.upper < 1e-16 || self.waited >= PATIENCE
    }

    fn into_solution(mut self, structure: &Structure, spec: &BallSpec, iterations: usize) -> Interior {
        if let (BallSpec::Euclid(theta), Some(m)) = (spec, structure.matrix) {
            self.weights = times_transposed(m, &self.combination).iter().zip(theta).map(|(u, t)| u * t).collect();
        }
        Interior { multipliers: self.multipliers, weights: self.weights, iterations }
    }
}
