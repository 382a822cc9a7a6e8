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
//! with ∂_j = u_j/‖u_j‖₂, ‖u_j‖₁^{−1/2} sign(u_j) or 0. Kinks belong to one neuron, so they are projected out neuron by neuron (P_j
//! onto the complement of the kinks' inputs), and both systems have the matrix M with rows b_ij P_j x_i and −1 for T.
//! The smallest corrections that solve them are found from M Mᵀ, twice, so that the second pass removes the rounding
//! of the first. Which equalities hold is decided by comparing each slack with its multiplier, both made relative.

use super::majorise::Settled;
use super::shallow::Ball;
use crate::linalg::{Cholesky, Matrix, Svd, add_scaled, dot, matmul_nt, max_abs, norm2, sum_abs};

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

/// What one neuron is held by.
struct Hold {
    /// Entries of u_j that may move.
    free: Vec<bool>,
    /// Examples of the active kinks.
    examples: Vec<usize>,
    /// Right singular vectors (full length, 0 on held entries), left ones, and singular values of the kinks' inputs.
    right: Vec<Vec<f64>>,
    left: Vec<Vec<f64>>,
    values: Vec<f64>,
}

impl Hold {
    /// v without its part in the span of the active kinks, and without held entries.
    fn project(&self, v: &mut [f64]) {
        v.iter_mut().zip(&self.free).filter(|(_, free)| !**free).for_each(|(v, _)| *v = 0.0);
        for right in &self.right {
            let along = dot(right, v);
            add_scaled(v, -along, right);
        }
    }
}

/// The refined point, and the same point with the multipliers it came with.
pub(super) fn finish(settled: &Settled) -> (Finished, Finished) {
    let mut work = Work::new(settled);
    for _ in 0..3 {
        work.primal();
    }
    let plain = work.point.clone();
    for _ in 0..3 {
        work.dual();
    }
    (work.point, plain)
}

struct Work<'a> {
    settled: &'a Settled<'a>,
    point: Finished,
    holds: Vec<Hold>,
    /// Examples whose margins are tight.
    tight: Vec<usize>,
    /// M, tight margins × entries of u (and T), with M Mᵀ factored.
    matrix: Matrix,
    gram: Cholesky,
}

impl<'a> Work<'a> {
    fn new(settled: &'a Settled<'a>) -> Self {
        let program = &settled.program;
        let (n, d, m) = program.sizes();
        let solution = &settled.solution;
        let mut products = solution.products.clone();
        let z = program.preactivations(&products.data);
        let positive: Vec<f64> = z.iter().map(|z| z.max(0.0)).collect();
        let slope = |k: usize| program.slopes[k] * z[k] - program.jumps[k] * positive[k];
        let margins: Vec<f64> = (0..n).map(|i| (i * m..(i + 1) * m).map(slope).sum()).collect();
        let least = margins.iter().copied().fold(f64::INFINITY, f64::min);
        let heaviest = max_abs(&solution.weights);
        let is_tight = |i: &usize| solution.weights[*i] / heaviest > margins[*i] / least - 1.0;
        let tight: Vec<usize> = (0..n).filter(is_tight).collect();
        let lengths: Vec<f64> = (0..m).map(|j| norm2(products.row(j))).collect();
        let reach: Vec<f64> = (0..n).map(|i| norm2(program.inputs.row(i))).collect();
        let mut active = vec![false; n * m];
        for &i in &tight {
            for j in 0..m {
                let (k, weight) = (i * m + j, solution.weights[i]);
                let inside = solution.kinks[k].min(weight - solution.kinks[k]) / weight;
                active[k] = program.jumps[k] > 0.0 && inside > z[k].abs() / (lengths[j] * reach[i]);
            }
        }
        let free = free_entries(settled, &mut products);
        let holds: Vec<Hold> = free
            .into_iter()
            .enumerate()
            .map(|(j, free)| {
                let examples: Vec<usize> = tight.iter().copied().filter(|i| active[i * m + j]).collect();
                Hold::new(program.inputs, free, examples)
            })
            .collect();
        let point = Finished { products, weights: solution.weights.clone(), kinks: solution.kinks.clone(), active };
        let mut matrix = Matrix::zeros(tight.len(), m * d + 1);
        for (row, &i) in tight.iter().enumerate() {
            for j in 0..m {
                let k = i * m + j;
                if point.active[k] {
                    continue;
                }
                let slope = program.slopes[k] - if z[k] > 0.0 { program.jumps[k] } else { 0.0 };
                let entry = &mut matrix.row_mut(row)[j * d..(j + 1) * d];
                entry.iter_mut().zip(program.inputs.row(i)).for_each(|(to, x)| *to = slope * x);
                holds[j].project(entry);
            }
            matrix.row_mut(row)[m * d] = -1.0;
        }
        let size = tight.len();
        let mut gram = vec![0.0; size * size];
        matmul_nt(&mut gram, &matrix.data, &matrix.data, size, matrix.cols, size);
        let largest = (0..size).map(|i| gram[i * size + i]).fold(0.0, f64::max);
        let mut factor = Cholesky::new(size);
        // a floor leaves dependent margins out; it cannot be refused
        factor.factor(&gram, 1e-13 * largest).unwrap_or(());
        Self { settled, point, holds, tight, matrix, gram: factor }
    }

    /// Puts active kinks at 0 and levels the tight margins.
    fn primal(&mut self) {
        let program = &self.settled.program;
        let (_, d, m) = program.sizes();
        for (j, hold) in self.holds.iter().enumerate() {
            let u = self.point.products.row_mut(j);
            let gaps: Vec<f64> = hold.examples.iter().map(|&i| dot(program.inputs.row(i), u)).collect();
            for ((right, left), value) in hold.right.iter().zip(&hold.left).zip(&hold.values) {
                add_scaled(u, -dot(left, &gaps) / value, right);
            }
        }
        let z = program.preactivations(&self.point.products.data);
        let active = &self.point.active;
        let term = |k: usize| if active[k] { 0.0 } else { program.slopes[k] * z[k] - program.jumps[k] * z[k].max(0.0) };
        let margins: Vec<f64> = self.tight.iter().map(|i| (i * m..(i + 1) * m).map(term).sum()).collect();
        let level = margins.iter().sum::<f64>() / margins.len() as f64;
        let mut gaps: Vec<f64> = margins.iter().map(|q| level - q).collect();
        self.gram.solve(&mut gaps);
        for (row, gap) in gaps.iter().enumerate() {
            add_scaled(&mut self.point.products.data, *gap, &self.matrix.row(row)[..m * d]);
        }
    }

    /// γ ∂_j: what the combined gradients must be on the free entries.
    fn target(&self) -> Vec<f64> {
        let ball = self.settled.program.ball;
        let products = &self.point.products;
        let rows = |f: &dyn Fn(&[f64]) -> Vec<f64>| (0..products.rows).flat_map(|j| f(products.row(j))).collect();
        let mut target: Vec<f64> = match ball {
            Ball::Cube => vec![0.0; products.data.len()],
            Ball::Round => rows(&|u| u.iter().map(|x| x / norm2(u)).collect()),
            Ball::Diamond => rows(&|u| {
                let cost = sum_abs(u).sqrt().recip();
                u.iter().map(|x| if *x == 0.0 { 0.0 } else { cost * x.signum() }).collect()
            }),
        };
        // ⟨Σ λ h, u⟩ = T fixes γ
        let size = dot(&target, &products.data);
        let scale = if size > 0.0 { self.level() / size } else { 0.0 };
        target.iter_mut().for_each(|t| *t *= scale);
        target
    }

    fn level(&self) -> f64 {
        let program = &self.settled.program;
        let m = program.costs.len();
        let z = program.preactivations(&self.point.products.data);
        let term = |k: usize| program.slopes[k] * z[k] - program.jumps[k] * z[k].max(0.0);
        let margin = |i: &usize| (i * m..(i + 1) * m).map(term).sum::<f64>();
        self.tight.iter().map(margin).sum::<f64>() / self.tight.len() as f64
    }

    /// Corrects λ and then e.
    fn dual(&mut self) {
        let program = &self.settled.program;
        let (n, d, m) = program.sizes();
        let z = program.preactivations(&self.point.products.data);
        let target = self.target();
        let mut lambda = vec![0.0; n];
        self.tight.iter().for_each(|&i| lambda[i] = self.point.weights[i]);
        let total: f64 = lambda.iter().sum();
        lambda.iter_mut().for_each(|l| *l /= total);
        let fixed = |k: usize, lambda: &[f64]| {
            let jump = if z[k] > 0.0 { program.jumps[k] } else { 0.0 };
            if self.point.active[k] { program.slopes[k] * lambda[k / m] } else { (program.slopes[k] - jump) * lambda[k / m] }
        };
        let sums = |lambda: &[f64]| program.gather(&(0..n * m).map(|k| fixed(k, lambda)).collect::<Vec<f64>>());
        let mut gaps: Vec<f64> = target.iter().zip(sums(&lambda)).map(|(t, g)| t - g).collect();
        gaps.chunks_exact_mut(d).zip(&self.holds).for_each(|(gap, hold)| hold.project(gap));
        gaps.push(0.0);
        let mut step: Vec<f64> = (0..self.tight.len()).map(|row| dot(self.matrix.row(row), &gaps)).collect();
        self.gram.solve(&mut step);
        for (&i, step) in self.tight.iter().zip(&step) {
            lambda[i] = (lambda[i] + step).max(0.0);
        }
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
        for k in (0..n * m).filter(|&k| program.jumps[k] > 0.0) {
            let weight = lambda[k / m];
            let kink = if z[k] > 0.0 { weight } else { 0.0 };
            self.point.kinks[k] = if self.point.active[k] { self.point.kinks[k].clamp(0.0, weight) } else { kink };
        }
        self.point.weights = lambda;
    }
}

/// Which entries of u the norm leaves free; the others are put exactly where it holds them.
fn free_entries(settled: &Settled, products: &mut Matrix) -> Vec<Vec<bool>> {
    let program = &settled.program;
    let (n, d, m) = program.sizes();
    let combine = |k: usize| program.slopes[k] * settled.solution.weights[k / m] - program.jumps[k] * settled.solution.kinks[k];
    let g = program.gather(&(0..n * m).map(combine).collect::<Vec<f64>>());
    let (largest, steepest) = (max_abs(&products.data), max_abs(&g));
    let costly = (0..m * d).map(|k| g[k].abs() / program.costs[k / d]).fold(0.0, f64::max);
    let mut free = vec![vec![true; d]; m];
    for k in 0..m * d {
        let (j, size) = (k / d, products.data[k].abs());
        match program.ball {
            Ball::Round => {}
            Ball::Cube if 1.0 - size / largest <= g[k].abs() / steepest => {
                products.data[k] = largest.copysign(products.data[k]);
                free[j][k % d] = false;
            }
            Ball::Diamond if size / max_abs(products.row(j)) <= 1.0 - g[k].abs() / (program.costs[j] * costly) => {
                products.data[k] = 0.0;
                free[j][k % d] = false;
            }
            Ball::Cube | Ball::Diamond => {}
        }
    }
    free
}

impl Hold {
    fn new(inputs: &Matrix, free: Vec<bool>, examples: Vec<usize>) -> Self {
        let d = inputs.cols;
        let mut hold = Self { free, examples, right: Vec::new(), left: Vec::new(), values: Vec::new() };
        if hold.examples.is_empty() {
            return hold;
        }
        let mut rows = Matrix::zeros(hold.examples.len(), d);
        for (at, &i) in hold.examples.iter().enumerate() {
            let row = rows.row_mut(at);
            row.copy_from_slice(inputs.row(i));
            row.iter_mut().zip(&hold.free).filter(|(_, free)| !**free).for_each(|(x, _)| *x = 0.0);
        }
        let mut svd = Svd::new(rows.rows, d);
        if svd.factor(&rows.data).is_err() {
            return hold;
        }
        let largest = svd.values()[0];
        for k in (0..svd.values().len()).filter(|&k| svd.values()[k] > 1e-10 * largest) {
            hold.right.push(svd.right(k).to_vec());
            hold.left.push(svd.left(k).to_vec());
            hold.values.push(svd.values()[k]);
        }
        hold
    }
}
