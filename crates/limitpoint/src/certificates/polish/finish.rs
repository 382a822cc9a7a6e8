//! From a nearly optimal point of the cell problem to one that is optimal to rounding.
//!
//! An interior point method leaves every inequality a little open. Once it is clear which ones hold with equality, the
//! optimality conditions are linear equations, in the variables and in the multipliers apart:
//!
//! ```text
//! primal   q_i(u) = T for i in A,   ⟨u_j, x_i⟩ = 0 on the active kinks,   u = ±max or 0 where the norm holds it
//! dual     Σ_i b_ij λ_i x_i − Σ_active κ_ij e_ij x_i = γ ∂_j   on the free entries of u_j,   Σ λ_i = 1
//! ```
//!
//! with ∂_j = u_j/‖u_j‖₂, ‖u_j‖₁^{−1/2} sign(u_j) or 0. Kinks belong to one neuron, so they are projected out neuron by
//! neuron (P_j onto the complement of the kinks' inputs), and both systems have the matrix M with rows b_ij P_j x_i and
//! −1 for T. The smallest corrections that solve them are found from M Mᵀ, repeatedly, so that later passes remove the
//! rounding of the first.
//!
//! Which equalities hold is first decided by comparing each slack with its multiplier, both made relative. With too few
//! of them the dual equations have no solution, and what remains of the gradient is a direction in which all tight
//! margins grow together (for ℓ1: the size falls): u follows it to the next inequality, which is then an equality too.
//! Where multipliers have the wrong sign, their equalities are given up. The point with the smallest gap is kept.

use super::active_set::Work;
use super::cell::CellProgram;
use super::majorise::Settled;
use super::shallow::Ball;
use crate::linalg::{Matrix, add_scaled, dot, max_abs, norm2, sum_abs};

/// Changes of the active set that are tried.
const CHANGES: usize = 60;

/// A point and multipliers of the cell problem.
#[derive(Clone)]
pub(super) struct Finished {
    /// u.
    pub products: Matrix,
    /// λ, of sum 1.
    pub weights: Vec<f64>,
    /// e, examples × neurons, for all kinks of the problem.
    pub kinks: Vec<f64>,
    /// The kinks that are held at 0.
    pub active: Vec<bool>,
}

/// Which inequalities hold with equality.
#[derive(Clone, PartialEq)]
pub(super) struct Sets {
    /// Margins at T.
    pub tight: Vec<bool>,
    /// Kinks at 0, and the side of all others.
    pub active: Vec<bool>,
    pub right: Vec<bool>,
    /// Entries of u that the norm does not hold, and where it holds the others: −1, 0 or 1.
    pub free: Vec<bool>,
    pub side: Vec<f64>,
}

/// The refined point.
pub(super) fn finish(settled: &Settled) -> Finished {
    let program = &settled.program;
    let mut point = Finished {
        products: settled.solution.products.clone(),
        weights: settled.solution.weights.clone(),
        kinks: settled.solution.kinks.clone(),
        active: vec![false; settled.solution.kinks.len()],
    };
    let mut sets = Sets::guess(program, &point);
    let (mut best, mut least) = (point.clone(), f64::INFINITY);
    for _ in 0..CHANGES {
        let Some(mut work) = Work::new(program, &sets, point.clone()) else { break };
        (0..3).for_each(|_| work.primal());
        (0..3).for_each(|_| work.dual());
        let rest = work.rest();
        let gap = gap(program, &sets, &work.point);
        if gap < least {
            (best, least) = (cleaned(program, &sets, &work.point), gap);
        }
        let reduced = work.reduced();
        point = work.point;
        if gap.is_nan() || least < 1e-14 {
            break;
        }
        let next = match reduced {
            Some(next) => next,
            None => sets.extended(program, &mut point, &rest).unwrap_or_else(|| sets.corrected(program, &point)),
        };
        if next == sets {
            break;
        }
        sets = next;
    }
    best
}

/// ∂_j up to the factor γ.
pub(super) fn subgradient(ball: Ball, products: &Matrix) -> Vec<f64> {
    let row = |u: &[f64]| -> Vec<f64> {
        match ball {
            Ball::Cube => vec![0.0; u.len()],
            Ball::Round => u.iter().map(|x| x / norm2(u)).collect(),
            Ball::Diamond => u.iter().map(|x| if *x == 0.0 { 0.0 } else { x.signum() / sum_abs(u).sqrt() }).collect(),
        }
    };
    (0..products.rows).flat_map(|j| row(products.row(j))).collect()
}

/// The slope of margin i in z_ij, without the active kinks.
pub(super) fn slope(program: &CellProgram, sets: &Sets, k: usize) -> f64 {
    program.slopes[k] - if sets.right[k] && !sets.active[k] { program.jumps[k] } else { 0.0 }
}

/// e with the slopes of its side where a kink is not active, inside its bounds where it is.
fn cleaned(program: &CellProgram, sets: &Sets, point: &Finished) -> Finished {
    let m = program.costs.len();
    let weights: Vec<f64> = point.weights.iter().map(|l| l.max(0.0)).collect();
    let kink = |k: usize| match (program.jumps[k] > 0.0, sets.active[k]) {
        (false, _) => 0.0,
        (_, true) => point.kinks[k].min(weights[k / m]).max(0.0),
        _ => {
            if sets.right[k] {
                weights[k / m]
            } else {
                0.0
            }
        }
    };
    let kinks = (0..point.kinks.len()).map(kink).collect();
    Finished { products: point.products.clone(), weights, kinks, active: sets.active.clone() }
}

/// 1 − dual bound / value of the cleaned point: the τ of the network that it makes.
fn gap(program: &CellProgram, sets: &Sets, point: &Finished) -> f64 {
    let point = cleaned(program, sets, point);
    let m = program.costs.len();
    let z = program.preactivations(&point.products.data);
    let term = |k: usize| {
        let value = if sets.active[k] { 0.0 } else { program.jumps[k] * z[k].max(0.0) };
        program.slopes[k] * z[k] - value
    };
    let margins = (0..point.weights.len()).map(|i| (i * m..(i + 1) * m).map(term).sum::<f64>());
    let smallest = margins.fold(f64::INFINITY, f64::min);
    let combined: Vec<f64> =
        (0..z.len()).map(|k| program.slopes[k] * point.weights[k / m] - program.jumps[k] * point.kinks[k]).collect();
    let g = program.gather(&combined);
    let total: f64 = point.weights.iter().sum();
    let d = program.inputs.cols;
    let rows = || point.products.data.chunks_exact(d).zip(g.chunks_exact(d));
    match program.ball {
        Ball::Cube => 1.0 - smallest * total / (max_abs(&point.products.data) * sum_abs(&g)),
        // |a_j|² + ‖w_j‖² = 2‖u_j‖ and the two parts of the gradient, as in the network
        Ball::Round => {
            let size: f64 = rows().map(|(u, _)| norm2(u)).sum();
            let dual: f64 = rows().map(|(u, g)| norm2(u) * dot(g, g) + dot(u, g).powi(2) / norm2(u)).sum();
            1.0 - smallest * total / (0.5 * size * dual).sqrt()
        }
        Ball::Diamond => {
            let size: f64 = rows().map(|(u, _)| sum_abs(u).sqrt()).sum();
            let dual = rows().map(|(u, g)| (sum_abs(u).sqrt() * max_abs(g)).max(dot(u, g).abs() / sum_abs(u).sqrt()));
            1.0 - smallest * total / (size * dual.fold(0.0, f64::max))
        }
    }
}

impl Sets {
    /// A slack that is smaller than its multiplier, both relative to the largest of their kind, is closed.
    fn guess(program: &CellProgram, point: &Finished) -> Self {
        let (n, d, m) = program.sizes();
        let z = program.preactivations(&point.products.data);
        let term = |k: usize| program.slopes[k] * z[k] - program.jumps[k] * z[k].max(0.0);
        let margins: Vec<f64> = (0..n).map(|i| (i * m..(i + 1) * m).map(term).sum()).collect();
        let least = margins.iter().copied().fold(f64::INFINITY, f64::min);
        let heaviest = max_abs(&point.weights);
        let tight: Vec<bool> = (0..n).map(|i| point.weights[i] / heaviest > margins[i] / least - 1.0).collect();
        let lengths: Vec<f64> = (0..m).map(|j| norm2(point.products.row(j))).collect();
        let is_active = |k: usize| {
            let (i, j) = (k / m, k % m);
            let weight = point.weights[i];
            let inside = point.kinks[k].min(weight - point.kinks[k]) / weight;
            let reach = lengths[j] * norm2(program.inputs.row(i));
            tight[i] && program.jumps[k] > 0.0 && inside > z[k].abs() / reach
        };
        let active = (0..n * m).map(is_active).collect();
        let combine = |k: usize| program.slopes[k] * point.weights[k / m] - program.jumps[k] * point.kinks[k];
        let g = program.gather(&(0..n * m).map(combine).collect::<Vec<f64>>());
        let (largest, steepest) = (max_abs(&point.products.data), max_abs(&g));
        let dearest = (0..m * d).map(|k| g[k].abs() / program.costs[k / d]).fold(0.0, f64::max);
        let is_free = |k: usize| {
            let (j, size) = (k / d, point.products.data[k].abs());
            match program.ball {
                Ball::Round => true,
                Ball::Cube => 1.0 - size / largest > g[k].abs() / steepest,
                Ball::Diamond => {
                    size / max_abs(point.products.row(j)) > 1.0 - g[k].abs() / (program.costs[j] * dearest)
                }
            }
        };
        let free: Vec<bool> = (0..m * d).map(is_free).collect();
        let held = |k: usize| if program.ball == Ball::Cube { point.products.data[k].signum() } else { 0.0 };
        let side = (0..m * d).map(|k| if free[k] { 0.0 } else { held(k) }).collect();
        Self { tight, active, right: z.iter().map(|z| *z > 0.0).collect(), free, side }
    }

    /// Follows `rest` to the first inequality and adds it; nothing if there is no way to go.
    fn extended(&self, program: &CellProgram, point: &mut Finished, rest: &[f64]) -> Option<Self> {
        let (n, d, m) = program.sizes();
        if program.ball == Ball::Round || max_abs(rest) <= 1e-15 {
            return None;
        }
        let (z, dz) = (program.preactivations(&point.products.data), program.preactivations(rest));
        let sums = |z: &[f64], i: usize| {
            (i * m..(i + 1) * m).map(|k| if self.active[k] { 0.0 } else { slope(program, self, k) * z[k] }).sum::<f64>()
        };
        let first = (0..n).find(|&i| self.tight[i])?;
        let (level, rise) = (sums(&z, first), sums(&dz, first));
        enum Met {
            Margin(usize),
            Kink(usize),
            Entry(usize, f64),
        }
        let (mut step, mut met) = (f64::INFINITY, None);
        let mut offer = |distance: f64, speed: f64, what: Met| {
            if speed > 0.0 && distance.max(0.0) / speed < step {
                (step, met) = (distance.max(0.0) / speed, Some(what));
            }
        };
        for i in (0..n).filter(|&i| !self.tight[i]) {
            offer(sums(&z, i) - level, rise - sums(&dz, i), Met::Margin(i));
        }
        for k in (0..n * m).filter(|&k| program.jumps[k] > 0.0 && self.tight[k / m] && !self.active[k]) {
            let sign = if self.right[k] { 1.0 } else { -1.0 };
            offer(sign * z[k], -sign * dz[k], Met::Kink(k));
        }
        let bound = self.bound(point);
        for k in (0..m * d).filter(|&k| self.free[k]) {
            let u = point.products.data[k];
            match program.ball {
                Ball::Cube => offer(bound - u * rest[k].signum(), rest[k].abs(), Met::Entry(k, rest[k].signum())),
                _ => offer(u.abs(), -rest[k] * u.signum(), Met::Entry(k, 0.0)),
            }
        }
        let mut sets = self.clone();
        match met? {
            Met::Margin(i) => sets.tight[i] = true,
            Met::Kink(k) => sets.active[k] = true,
            Met::Entry(k, side) => (sets.free[k], sets.side[k]) = (false, side),
        }
        add_scaled(&mut point.products.data, step, rest);
        Some(sets)
    }

    /// The sets with every equality changed that the point contradicts.
    fn corrected(&self, program: &CellProgram, point: &Finished) -> Self {
        let (n, d, m) = program.sizes();
        let mut sets = self.clone();
        let z = program.preactivations(&point.products.data);
        let term = |k: usize| slope(program, self, k) * if self.active[k] { 0.0 } else { z[k] };
        let margins: Vec<f64> = (0..n).map(|i| (i * m..(i + 1) * m).map(term).sum()).collect();
        let count = self.tight.iter().filter(|tight| **tight).count() as f64;
        let level = (0..n).filter(|&i| self.tight[i]).map(|i| margins[i]).sum::<f64>() / count;
        for (i, margin) in margins.iter().enumerate() {
            sets.tight[i] = if self.tight[i] { point.weights[i] > 0.0 } else { *margin < level * (1.0 - 1e-13) };
        }
        for k in (0..n * m).filter(|&k| program.jumps[k] > 0.0) {
            let weight = point.weights[k / m];
            if self.active[k] {
                let (low, high) = (point.kinks[k] < 0.0, point.kinks[k] > weight);
                sets.active[k] = sets.tight[k / m] && !low && !high;
                sets.right[k] = high;
            } else {
                // a kink that was crossed becomes active, unless its margin does not matter
                let crossed = (z[k] > 0.0) != self.right[k];
                sets.active[k] = crossed && sets.tight[k / m];
                sets.right[k] = z[k] > 0.0;
            }
        }
        if program.ball == Ball::Round {
            return sets;
        }
        let combine = |k: usize| {
            slope(program, self, k) * point.weights[k / m]
                - if self.active[k] { program.jumps[k] * point.kinks[k] } else { 0.0 }
        };
        let g = program.gather(&(0..n * m).map(combine).collect::<Vec<f64>>());
        let bound = self.bound(point);
        let unit: Vec<f64> = (0..m).map(|j| sum_abs(point.products.row(j)).sqrt().recip()).collect();
        let sizes: f64 = (0..m).map(|j| sum_abs(point.products.row(j)).sqrt()).sum();
        for k in 0..m * d {
            let u = point.products.data[k];
            match program.ball {
                Ball::Cube if self.free[k] && u.abs() > bound => (sets.free[k], sets.side[k]) = (false, u.signum()),
                Ball::Cube if !self.free[k] && g[k] * self.side[k] < 0.0 => (sets.free[k], sets.side[k]) = (true, 0.0),
                Ball::Diamond if !self.free[k] => {
                    sets.free[k] = g[k].abs() > level / sizes * unit[k / d] * (1.0 + 1e-12)
                }
                _ => {}
            }
        }
        sets
    }

    /// max|u| over the held entries of the cube.
    pub fn bound(&self, point: &Finished) -> f64 {
        let held = point.products.data.iter().zip(&self.free).filter(|(_, free)| !**free);
        held.map(|(u, _)| u.abs()).fold(0.0, f64::max)
    }
}
