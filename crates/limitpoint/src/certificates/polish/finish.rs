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
//! neuron (P_j onto the complement of the kinks' inputs), and both systems have the matrix M with rows b_ij P_j x_i and −1
//! for T. The smallest corrections that solve them are found from M Mᵀ, repeatedly, so that later passes remove the
//! rounding of the first.
//!
//! Which equalities hold is first decided by comparing each slack with its multiplier, both made relative. Where the
//! solution then breaks an inequality, the equality it belongs to changes its status and the equations are solved again
//! (a primal–dual active set method); the point with the smallest gap is kept.

use super::cell::CellProgram;
use super::majorise::Settled;
use super::shallow::Ball;
use crate::linalg::{Eigen, Matrix, Svd, add_scaled, dot, matmul_nt, max_abs, norm2, sum_abs};

/// Changes of the active set that are tried.
const CHANGES: usize = 15;

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
struct Sets {
    /// Margins at T.
    tight: Vec<bool>,
    /// Kinks at 0, and the side of all others.
    active: Vec<bool>,
    right: Vec<bool>,
    /// Entries of u that the norm does not hold, and where it holds the others: −1, 0 or 1.
    free: Vec<bool>,
    side: Vec<f64>,
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
        point = work.point;
        let gap = gap(program, &sets, &point);
        if gap < least {
            (best, least) = (cleaned(program, &sets, &point), gap);
        }
        let next = sets.corrected(program, &point);
        let diff = |a: &[bool], b: &[bool]| a.iter().zip(b).filter(|(a, b)| a != b).count();
        eprintln!("margin: gap {gap:.2e} tight {} active {} free {} changes t {} a {} r {} f {}", sets.tight.iter().filter(|x| **x).count(), sets.active.iter().filter(|x| **x).count(), sets.free.iter().filter(|x| **x).count(), diff(&sets.tight, &next.tight), diff(&sets.active,&next.active), diff(&sets.right,&next.right), diff(&sets.free,&next.free));
        if next == sets || gap.is_nan() {
            break;
        }
        sets = next;
    }
    best
}

/// ∂_j up to the factor γ.
fn subgradient(ball: Ball, products: &Matrix) -> Vec<f64> {
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
fn slope(program: &CellProgram, sets: &Sets, k: usize) -> f64 {
    program.slopes[k] - if sets.right[k] && !sets.active[k] { program.jumps[k] } else { 0.0 }
}

/// e with the slopes of its side where a kink is not active, inside its bounds where it is.
fn cleaned(program: &CellProgram, sets: &Sets, point: &Finished) -> Finished {
    let m = program.costs.len();
    let weights: Vec<f64> = point.weights.iter().map(|l| l.max(0.0)).collect();
    let kink = |k: usize| match (program.jumps[k] > 0.0, sets.active[k]) {
        (false, _) => 0.0,
        (_, true) => point.kinks[k].clamp(0.0, weights[k / m]),
        _ => if sets.right[k] { weights[k / m] } else { 0.0 },
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

    /// The sets with every equality changed that the point contradicts.
    fn corrected(&self, program: &CellProgram, point: &Finished) -> Self {
        let (n, d, m) = program.sizes();
        let mut sets = self.clone();
        let z = program.preactivations(&point.products.data);
        let term = |k: usize| slope(program, self, k) * if self.active[k] { 0.0 } else { z[k] };
        let margins: Vec<f64> = (0..n).map(|i| (i * m..(i + 1) * m).map(term).sum()).collect();
        let count = self.tight.iter().filter(|tight| **tight).count() as f64;
        let level = (0..n).filter(|&i| self.tight[i]).map(|i| margins[i]).sum::<f64>() / count;
        for i in 0..n {
            sets.tight[i] = if self.tight[i] { point.weights[i] > 0.0 } else { margins[i] < level * (1.0 - 1e-13) };
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
        let combine = |k: usize| slope(program, self, k) * point.weights[k / m]
            - if self.active[k] { program.jumps[k] * point.kinks[k] } else { 0.0 };
        let g = program.gather(&(0..n * m).map(combine).collect::<Vec<f64>>());
        let bound = self.bound(point);
        let unit: Vec<f64> = (0..m).map(|j| sum_abs(point.products.row(j)).sqrt().recip()).collect();
        let sizes: f64 = (0..m).map(|j| sum_abs(point.products.row(j)).sqrt()).sum();
        for k in 0..m * d {
            let u = point.products.data[k];
            match program.ball {
                Ball::Cube if self.free[k] && u.abs() > bound => (sets.free[k], sets.side[k]) = (false, u.signum()),
                Ball::Cube if !self.free[k] && g[k] * self.side[k] < 0.0 => (sets.free[k], sets.side[k]) = (true, 0.0),
                Ball::Diamond if !self.free[k] => sets.free[k] = g[k].abs() > level / sizes * unit[k / d] * (1.0 + 1e-12),
                _ => {}
            }
        }
        sets
    }

    /// max|u| over the held entries of the cube.
    fn bound(&self, point: &Finished) -> f64 {
        let held = point.products.data.iter().zip(&self.free).filter(|(_, free)| !**free);
        held.map(|(u, _)| u.abs()).fold(0.0, f64::max)
    }
}

/// What one neuron is held by.
struct Hold {
    /// Examples of the active kinks.
    examples: Vec<usize>,
    /// Right singular vectors (0 on held entries), left ones, and singular values of the kinks' inputs.
    right: Vec<Vec<f64>>,
    left: Vec<Vec<f64>>,
    values: Vec<f64>,
}

impl Hold {
    fn new(inputs: &Matrix, free: &[bool], examples: Vec<usize>) -> Option<Self> {
        let mut hold = Self { examples, right: Vec::new(), left: Vec::new(), values: Vec::new() };
        if hold.examples.is_empty() {
            return Some(hold);
        }
        let mut rows = Matrix::zeros(hold.examples.len(), inputs.cols);
        for (at, &i) in hold.examples.iter().enumerate() {
            let row = rows.row_mut(at);
            row.copy_from_slice(inputs.row(i));
            row.iter_mut().zip(free).filter(|(_, free)| !**free).for_each(|(x, _)| *x = 0.0);
        }
        let mut svd = Svd::new(rows.rows, rows.cols);
        svd.factor(&rows.data).ok()?;
        let largest = svd.values()[0];
        for k in (0..svd.values().len()).filter(|&k| svd.values()[k] > 1e-10 * largest) {
            hold.right.push(svd.right(k).to_vec());
            hold.left.push(svd.left(k).to_vec());
            hold.values.push(svd.values()[k]);
        }
        Some(hold)
    }

    /// v without its part in the span of the active kinks; held entries must be 0.
    fn project(&self, v: &mut [f64]) {
        for right in &self.right {
            let along = dot(right, v);
            add_scaled(v, -along, right);
        }
    }
}

/// The equations of one active set.
struct Work<'a> {
    program: &'a CellProgram<'a>,
    sets: &'a Sets,
    point: Finished,
    holds: Vec<Hold>,
    tight: Vec<usize>,
    /// M, tight margins × entries of u (and T), with M Mᵀ diagonalised.
    matrix: Matrix,
    gram: Eigen,
}

impl<'a> Work<'a> {
    /// Nothing if a number is not finite or no margin is tight.
    fn new(program: &'a CellProgram<'a>, sets: &'a Sets, mut point: Finished) -> Option<Self> {
        let (n, d, m) = program.sizes();
        let tight: Vec<usize> = (0..n).filter(|&i| sets.tight[i]).collect();
        let largest = max_abs(&point.products.data);
        let bound = if sets.bound(&point) > 0.0 { sets.bound(&point).min(largest) } else { largest };
        for k in (0..m * d).filter(|&k| !sets.free[k]) {
            point.products.data[k] = sets.side[k] * bound;
        }
        let hold = |j: usize| {
            let examples = (0..n).filter(|i| sets.active[i * m + j]).collect();
            Hold::new(program.inputs, &sets.free[j * d..(j + 1) * d], examples)
        };
        let holds: Vec<Hold> = (0..m).map(hold).collect::<Option<_>>()?;
        let mut matrix = Matrix::zeros(tight.len(), m * d + 1);
        for (row, &i) in tight.iter().enumerate() {
            for j in (0..m).filter(|j| !sets.active[i * m + j]) {
                let slope = slope(program, sets, i * m + j);
                let entry = &mut matrix.row_mut(row)[j * d..(j + 1) * d];
                let free = program.inputs.row(i).iter().zip(&sets.free[j * d..]);
                entry.iter_mut().zip(free).for_each(|(to, (x, free))| *to = if *free { slope * x } else { 0.0 });
                holds[j].project(entry);
            }
            matrix.row_mut(row)[m * d] = -1.0;
        }
        let size = tight.len();
        let mut gram = vec![0.0; size * size];
        matmul_nt(&mut gram, &matrix.data, &matrix.data, size, matrix.cols, size);
        let mut factor = Eigen::new(size);
        factor.factor(&gram).ok()?;
        (size > 0).then_some(Self { program, sets, point, holds, tight, matrix, gram: factor })
    }

    /// r ← (M Mᵀ)⁺ r; dependent margins are left out.
    fn least(&self, r: &mut [f64]) {
        let given = r.to_vec();
        r.fill(0.0);
        let largest = self.gram.values().last().copied().unwrap_or(0.0);
        for (k, value) in self.gram.values().iter().enumerate().filter(|(_, value)| **value > 1e-13 * largest) {
            add_scaled(r, dot(self.gram.vector(k), &given) / value, self.gram.vector(k));
        }
    }

    /// q_i of the tight margins, with the slopes of the sets.
    fn margins(&self) -> Vec<f64> {
        let m = self.program.costs.len();
        let z = self.program.preactivations(&self.point.products.data);
        let term = |k: usize| if self.sets.active[k] { 0.0 } else { slope(self.program, self.sets, k) * z[k] };
        self.tight.iter().map(|i| (i * m..(i + 1) * m).map(term).sum()).collect()
    }

    /// Puts active kinks at 0 and levels the tight margins.
    fn primal(&mut self) {
        let (_, d, m) = self.program.sizes();
        for (j, hold) in self.holds.iter().enumerate() {
            let u = self.point.products.row_mut(j);
            let gaps: Vec<f64> = hold.examples.iter().map(|&i| dot(self.program.inputs.row(i), u)).collect();
            for ((right, left), value) in hold.right.iter().zip(&hold.left).zip(&hold.values) {
                add_scaled(u, -dot(left, &gaps) / value, right);
            }
        }
        let margins = self.margins();
        let level = margins.iter().sum::<f64>() / margins.len() as f64;
        let mut gaps: Vec<f64> = margins.iter().map(|q| level - q).collect();
        self.least(&mut gaps);
        for (row, gap) in gaps.iter().enumerate() {
            add_scaled(&mut self.point.products.data, *gap, &self.matrix.row(row)[..m * d]);
        }
    }

    /// Corrects λ and then e, without regard to their signs.
    fn dual(&mut self) {
        let program = self.program;
        let (n, d, m) = program.sizes();
        let mut target = subgradient(program.ball, &self.point.products);
        // ⟨Σ λ h, u⟩ = T fixes γ
        let (size, margins) = (dot(&target, &self.point.products.data), self.margins());
        let level = margins.iter().sum::<f64>() / margins.len() as f64;
        target.iter_mut().for_each(|t| *t *= if size > 0.0 { level / size } else { 0.0 });
        let mut lambda = vec![0.0; n];
        self.tight.iter().for_each(|&i| lambda[i] = self.point.weights[i]);
        let total: f64 = lambda.iter().sum();
        lambda.iter_mut().for_each(|l| *l /= total);
        let sums = |lambda: &[f64]| {
            program.gather(&(0..n * m).map(|k| slope(program, self.sets, k) * lambda[k / m]).collect::<Vec<f64>>())
        };
        let mut gaps: Vec<f64> = target.iter().zip(sums(&lambda)).map(|(t, g)| t - g).collect();
        gaps.iter_mut().zip(&self.sets.free).filter(|(_, free)| !**free).for_each(|(gap, _)| *gap = 0.0);
        gaps.chunks_exact_mut(d).zip(&self.holds).for_each(|(gap, hold)| hold.project(gap));
        gaps.push(0.0);
        let mut step: Vec<f64> = (0..self.tight.len()).map(|row| dot(self.matrix.row(row), &gaps)).collect();
        self.least(&mut step);
        self.tight.iter().zip(&step).for_each(|(&i, step)| lambda[i] += step);
        let base = sums(&lambda);
        for (j, hold) in self.holds.iter().enumerate() {
            let range = j * d..(j + 1) * d;
            let mut gap: Vec<f64> = base[range.clone()].iter().zip(&target[range]).map(|(b, t)| b - t).collect();
            for &i in &hold.examples {
                let k = i * m + j;
                add_scaled(&mut gap, -program.jumps[k] * self.point.kinks[k], program.inputs.row(i));
            }
            for ((right, left), value) in hold.right.iter().zip(&hold.left).zip(&hold.values) {
                let along = dot(right, &gap) / value;
                for (at, &i) in hold.examples.iter().enumerate() {
                    let k = i * m + j;
                    self.point.kinks[k] += along * left[at] / program.jumps[k];
                }
            }
        }
        self.point.weights = lambda;
    }
}
