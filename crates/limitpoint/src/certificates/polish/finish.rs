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
//! Which equalities hold is first decided by comparing each slack with its multiplier, both made relative. With too few of
//! them the dual equations have no solution, and what remains of the gradient is a direction in which all tight margins
//! grow together (for ℓ1: the size falls): u follows it to the next inequality, which is then an equality too. Where
//! multipliers have the wrong sign, their equalities are given up. The point with the smallest gap is kept.

use super::cell::CellProgram;
use super::majorise::Settled;
use super::shallow::Ball;
use crate::linalg::{Eigen, Matrix, Svd, add_scaled, dot, matmul_nt, max_abs, norm2, sum_abs};

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

    /// The smallest change of e that removes `gap` on the free entries as far as active kinks can.
    fn kink_step(&self, gap: &[f64]) -> Vec<f64> {
        let (n, d, m) = self.program.sizes();
        let mut step = vec![0.0; n * m];
        for (j, hold) in self.holds.iter().enumerate() {
            for ((right, left), value) in hold.right.iter().zip(&hold.left).zip(&hold.values) {
                let along = dot(right, &gap[j * d..(j + 1) * d]) / value;
                for (at, &i) in hold.examples.iter().enumerate() {
                    let k = i * m + j;
                    step[k] += along * left[at] / self.program.jumps[k];
                }
            }
        }
        step
    }

    /// Where the tight margins are dependent and cannot be levelled, multipliers can move without changing the gradient on
    /// the free entries: away from the larger margins, until the first one reaches a bound. Its equality is given up.
    fn reduced(&mut self) -> Option<Sets> {
        let program = self.program;
        let (n, d, m) = program.sizes();
        let margins = self.margins();
        let largest = self.gram.values().last().copied()?;
        let null = (0..self.tight.len()).find(|&k| {
            let slope = dot(self.gram.vector(k), &margins).abs();
            self.gram.values()[k] <= 1e-13 * largest && slope > 1e-14 * norm2(&margins)
        })?;
        let sign = -dot(self.gram.vector(null), &margins).signum();
        let mut dl = vec![0.0; n];
        self.tight.iter().zip(self.gram.vector(null)).for_each(|(&i, v)| dl[i] = sign * v);
        let spread = |l: &[f64]| (0..n * m).map(|k| slope(program, self.sets, k) * l[k / m]).collect::<Vec<f64>>();
        let de = self.kink_step(&program.gather(&spread(&dl)));
        let with = |l: &[f64], e: &[f64]| {
            let mut weights = spread(l);
            (0..n * m).filter(|&k| self.sets.active[k]).for_each(|k| weights[k] -= program.jumps[k] * e[k]);
            program.gather(&weights)
        };
        let (g, dg) = (with(&self.point.weights, &self.point.kinks), with(&dl, &de));
        let (mut step, mut sets) = (f64::INFINITY, None);
        let mut offer = |value: f64, speed: f64, change: &dyn Fn(&mut Sets)| {
            if speed < 0.0 && value.max(0.0) / -speed < step {
                step = value.max(0.0) / -speed;
                let mut next = self.sets.clone();
                change(&mut next);
                sets = Some(next);
            }
        };
        for &i in &self.tight {
            offer(self.point.weights[i], dl[i], &|sets| {
                sets.tight[i] = false;
                (i * m..(i + 1) * m).for_each(|k| sets.active[k] = false);
            });
        }
        for k in (0..n * m).filter(|&k| self.sets.active[k]) {
            let (e, rest) = (self.point.kinks[k], self.point.weights[k / m] - self.point.kinks[k]);
            offer(e, de[k], &|sets| (sets.active[k], sets.right[k]) = (false, false));
            offer(rest, dl[k / m] - de[k], &|sets| (sets.active[k], sets.right[k]) = (false, true));
        }
        let held = (0..m * d).filter(|&k| !self.sets.free[k] && program.ball == Ball::Cube);
        for k in held {
            let side = self.sets.side[k];
            offer(side * g[k], side * dg[k], &|sets| (sets.free[k], sets.side[k]) = (true, 0.0));
        }
        add_scaled(&mut self.point.weights, step, &dl);
        add_scaled(&mut self.point.kinks, step, &de);
        sets
    }

    /// What the multipliers leave of the gradient on the free entries, as a direction of u; 0 below rounding.
    fn rest(&self) -> Vec<f64> {
        let program = self.program;
        let (n, d, m) = program.sizes();
        let target = self.target();
        let weights: Vec<f64> = (0..n * m).map(|k| slope(program, self.sets, k) * self.point.weights[k / m]).collect();
        let gathered = program.gather(&weights);
        let scale = 1e-13 * max_abs(&gathered);
        let mut rest: Vec<f64> = gathered.iter().zip(&target).map(|(g, t)| g - t).collect();
        rest.iter_mut().zip(&self.sets.free).filter(|(_, free)| !**free).for_each(|(rest, _)| *rest = 0.0);
        rest.chunks_exact_mut(d).zip(&self.holds).for_each(|(rest, hold)| hold.project(rest));
        if max_abs(&rest) <= scale { vec![0.0; rest.len()] } else { rest }
    }

    /// γ ∂_j, with γ from ⟨Σ λ h, u⟩ = T.
    fn target(&self) -> Vec<f64> {
        let mut target = subgradient(self.program.ball, &self.point.products);
        let (size, margins) = (dot(&target, &self.point.products.data), self.margins());
        let level = margins.iter().sum::<f64>() / margins.len() as f64;
        target.iter_mut().for_each(|t| *t *= if size > 0.0 { level / size } else { 0.0 });
        target
    }

    /// Corrects λ and then e, without regard to their signs.
    fn dual(&mut self) {
        let program = self.program;
        let (n, d, m) = program.sizes();
        let target = self.target();
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
        let mut gap: Vec<f64> = base.iter().zip(&target).map(|(b, t)| b - t).collect();
        for (j, hold) in self.holds.iter().enumerate() {
            for &i in &hold.examples {
                let k = i * m + j;
                add_scaled(
                    &mut gap[j * d..(j + 1) * d],
                    -program.jumps[k] * self.point.kinks[k],
                    program.inputs.row(i),
                );
            }
        }
        let step = self.kink_step(&gap);
        add_scaled(&mut self.point.kinks, 1.0, &step);
        self.point.weights = lambda;
    }
}
