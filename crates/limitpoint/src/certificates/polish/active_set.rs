//! The equations of one active set of the cell problem, in the variables and in the multipliers.
//!
//! [`super::finish`] says what they are and which set is tried next; here they are solved.

use super::cell::CellProgram;
use super::finish::{Finished, Sets, slope, subgradient};
use super::shallow::Ball;
use crate::linalg::{Eigen, Matrix, Svd, add_scaled, dot, matmul_nt, max_abs, norm2};

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
pub(super) struct Work<'a> {
    program: &'a CellProgram<'a>,
    sets: &'a Sets,
    pub point: Finished,
    holds: Vec<Hold>,
    tight: Vec<usize>,
    /// M, tight margins × entries of u (and T), with M Mᵀ diagonalised.
    matrix: Matrix,
    gram: Eigen,
}

impl<'a> Work<'a> {
    /// Nothing if a number is not finite or no margin is tight.
    pub fn new(program: &'a CellProgram<'a>, sets: &'a Sets, mut point: Finished) -> Option<Self> {
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
    pub fn margins(&self) -> Vec<f64> {
        let m = self.program.costs.len();
        let z = self.program.preactivations(&self.point.products.data);
        let term = |k: usize| if self.sets.active[k] { 0.0 } else { slope(self.program, self.sets, k) * z[k] };
        self.tight.iter().map(|i| (i * m..(i + 1) * m).map(term).sum()).collect()
    }

    /// Puts active kinks at 0 and levels the tight margins.
    pub fn primal(&mut self) {
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

    /// Where the tight margins are dependent and cannot be levelled, multipliers can move without changing the gradient
    /// on the free entries: away from the larger margins, until the first one reaches a bound. Its equality is given
    /// up.
    pub fn reduced(&mut self) -> Option<Sets> {
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
    pub fn rest(&self) -> Vec<f64> {
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
    pub fn dual(&mut self) {
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
