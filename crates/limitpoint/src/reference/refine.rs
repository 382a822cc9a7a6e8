//! Refinement on the active set: the last digits of ℓ1, ℓ2 and ℓ∞ margins.
//!
//! Once a solver is close, the rows that are tight and the weights that are free are known, and on them the optimality
//! conditions are linear. With A the tight rows and E built from H_A,
//!
//! ```text
//! ℓ2    E = H_A                       E w = 1                       Eᵀα = w
//! ℓ∞    E = [H_AF, −1]                E (v_F, s) = −H_AB v_B         Eᵀp = (0, −1)          F: |v| < b, B: |v| = b
//! ℓ1    E = [H_AJ, −1; cσᵀ, 0]         E (v_J, s) = (0, 1)            Eᵀ(p, −τ) = (0, −1)    J: v ≠ 0, σ its signs
//! ```
//!
//! The left system is corrected by its least-norm step, the right one by its least-squares step, both through one
//! orthogonal factorisation E = LQ; residuals are summed with compensation, so that the correction is right to a few
//! digits and repeating it gives all of them. Where the solution is a whole face, the least-norm step moves within it
//! as little as possible. A correction is kept only if it narrows the bracket, whatever the active set was worth.

use super::interior::BallSpec;
use super::{MarginProblem, MarginSolution, Multipliers};
use crate::linalg::{add_scaled, dot, norm2};
use crate::numeric::compensated_dot;

/// Gap below which nothing is left to gain.
const GOAL: f64 = 3e-14;
/// Most corrections.
const ROUNDS: usize = 12;

/// Narrows the bracket of a solution where the dense method's norms allow it.
pub(super) fn refine(problem: &MarginProblem, ball: Option<&BallSpec>, mut solution: MarginSolution) -> MarginSolution {
    let Some(ball) = ball.filter(|_| problem.kinks.is_empty() && problem.cone.is_empty()) else { return solution };
    let mut support = Support::tight(problem, &solution);
    for _ in 0..ROUNDS {
        if solution.bracket.relative_gap() <= GOAL {
            break;
        }
        let candidate = match ball {
            BallSpec::Euclid(theta) => euclidean(problem, theta, &mut support),
            BallSpec::Box(bound) => in_box(problem, bound, &solution, &support),
            BallSpec::Cross(weight) => in_cross(problem, weight, &solution, &support),
        };
        let Some((v, rows)) = candidate else { break };
        let Ok((next, _)) = super::margin::assemble(problem, v, Multipliers::of_rows(rows), solution.iterations) else {
            break;
        };
        let gap = solution.bracket.relative_gap();
        if next.bracket.upper < solution.bracket.upper {
            solution.bracket.upper = next.bracket.upper;
            solution.multipliers = next.multipliers;
        }
        if next.bracket.lower > solution.bracket.lower {
            solution.bracket.lower = next.bracket.lower;
            solution.direction = next.direction;
        }
        let settled = !support.changed;
        if settled && solution.bracket.relative_gap() > 0.5 * gap {
            break;
        }
    }
    solution
}

/// The rows taken to be tight.
pub(super) struct Support {
    pub rows: Vec<usize>,
    changed: bool,
}

impl Support {
    /// Rows whose share of the weight is larger than their share of the slack.
    pub(super) fn tight(problem: &MarginProblem, solution: &MarginSolution) -> Self {
        let (margins, p) = (problem.margins(&solution.direction), &solution.multipliers.rows);
        let lowest = margins.iter().copied().fold(f64::INFINITY, f64::min);
        let widest = margins.iter().map(|m| m - lowest).fold(f64::MIN_POSITIVE, f64::max);
        let heaviest = p.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let tight = |i: &usize| p[*i] / heaviest > (margins[*i] - lowest) / widest;
        let mut rows: Vec<usize> = (0..margins.len()).filter(tight).collect();
        // heaviest first: of dependent rows the first are kept
        rows.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
        Self { rows, changed: false }
    }
}

/// E = LQ with orthonormal rows of Q; rows that depend on earlier ones are left out.
pub(super) struct Factors {
    width: usize,
    /// The rows that do not depend on earlier ones.
    pub kept: Vec<usize>,
    q: Vec<Vec<f64>>,
    l: Vec<Vec<f64>>,
}

impl Factors {
    /// Gram–Schmidt, twice.
    pub(super) fn new(width: usize, rows: &[Vec<f64>]) -> Self {
        let mut factors = Self { width, kept: Vec::new(), q: Vec::new(), l: Vec::new() };
        for (k, row) in rows.iter().enumerate() {
            let (size, mut rest, mut coefficients) = (norm2(row), row.clone(), vec![0.0; factors.q.len() + 1]);
            for _ in 0..2 {
                for (q, c) in factors.q.iter().zip(&mut coefficients) {
                    let along = dot(q, &rest);
                    add_scaled(&mut rest, -along, q);
                    *c += along;
                }
            }
            let length = norm2(&rest);
            if length > 1e-13 * size && size > 0.0 {
                rest.iter_mut().for_each(|x| *x /= length);
                if let Some(last) = coefficients.last_mut() {
                    *last = length;
                }
                factors.kept.push(k);
                factors.q.push(rest);
                factors.l.push(coefficients);
            }
        }
        factors
    }

    /// The shortest δ with Eδ = b on the kept rows.
    pub(super) fn least_norm(&self, b: &[f64]) -> Vec<f64> {
        let mut c: Vec<f64> = Vec::with_capacity(self.q.len());
        for (l, &k) in self.l.iter().zip(&self.kept) {
            let known = dot(&l[..c.len()], &c);
            c.push((b[k] - known) / l[l.len() - 1]);
        }
        let mut delta = vec![0.0; self.width];
        self.q.iter().zip(&c).for_each(|(q, c)| add_scaled(&mut delta, *c, q));
        delta
    }

    /// x minus its part in the span of the rows.
    pub(super) fn reject(&self, x: &mut [f64]) {
        for _ in 0..2 {
            self.q.iter().for_each(|q| add_scaled(x, -dot(q, x), q));
        }
    }

    /// π on the kept rows with ‖Eᵀπ − t‖₂ smallest, added to `out`.
    pub(super) fn add_least_squares(&self, t: &[f64], out: &mut [f64]) {
        let mut c: Vec<f64> = self.q.iter().map(|q| dot(q, t)).collect();
        for k in (0..c.len()).rev() {
            c[k] /= self.l[k][k];
            for j in 0..k {
                c[j] -= self.l[k][j] * c[k];
            }
        }
        self.kept.iter().zip(&c).for_each(|(&k, c)| out[k] += c);
    }
}

/// Σ_k π_k e_k with compensated sums.
fn combine(width: usize, rows: &[Vec<f64>], pi: &[f64]) -> Vec<f64> {
    let mut column = vec![0.0; rows.len()];
    (0..width)
        .map(|j| {
            column.iter_mut().zip(rows).for_each(|(out, row)| *out = row[j]);
            compensated_dot(&column, pi)
        })
        .collect()
}

/// Corrects x with E x = b and π with Eᵀπ = t until both are right to rounding.
fn correct(rows: &[Vec<f64>], b: &[f64], t: &[f64], x: &mut [f64], pi: &mut [f64]) {
    let factors = Factors::new(x.len(), rows);
    for _ in 0..3 {
        let rest: Vec<f64> = rows.iter().zip(b).map(|(row, b)| residual(row, x, *b)).collect();
        add_scaled(x, 1.0, &factors.least_norm(&rest));
        let rest: Vec<f64> = combine(t.len(), rows, pi).iter().zip(t).map(|(z, t)| t - z).collect();
        factors.add_least_squares(&rest, pi);
    }
}

/// b − ⟨row, x⟩ with a compensated sum.
pub(super) fn residual(row: &[f64], x: &[f64], b: f64) -> f64 {
    let (mut left, mut right) = (row.to_vec(), x.to_vec());
    left.push(-1.0);
    right.push(b);
    -compensated_dot(&left, &right)
}

/// The ℓ2 solution on the tight rows; drops rows of negative weight, adds the most violated.
fn euclidean(problem: &MarginProblem, theta: &[f64], support: &mut Support) -> Option<(Vec<f64>, Vec<f64>)> {
    support.changed = false;
    let scaled = |i: usize| problem.rows.row(i).iter().zip(theta).map(|(x, t)| x * t.sqrt()).collect::<Vec<f64>>();
    let rows: Vec<Vec<f64>> = support.rows.iter().map(|&i| scaled(i)).collect();
    let (mut w, mut alpha) = (vec![0.0; problem.rows.cols], vec![0.0; rows.len()]);
    let factors = Factors::new(problem.rows.cols, &rows);
    for _ in 0..3 {
        let rest: Vec<f64> = rows.iter().map(|row| residual(row, &w, 1.0)).collect();
        add_scaled(&mut w, 1.0, &factors.least_norm(&rest));
    }
    for _ in 0..3 {
        let rest: Vec<f64> = combine(w.len(), &rows, &alpha).iter().zip(&w).map(|(z, w)| w - z).collect();
        factors.add_least_squares(&rest, &mut alpha);
    }
    if !w.iter().chain(&alpha).all(|x| x.is_finite()) {
        return None;
    }
    let v: Vec<f64> = w.iter().zip(theta).map(|(w, t)| w * t.sqrt()).collect();
    let mut p = vec![0.0; problem.rows.rows];
    support.rows.iter().zip(&alpha).for_each(|(&i, a)| p[i] = a.max(0.0));
    // of dependent rows only the first are kept; the others have no weight
    let keep: Vec<usize> = factors.kept.iter().filter(|&&k| alpha[k] > 0.0).map(|&k| support.rows[k]).collect();
    support.changed = keep.len() < support.rows.len();
    let margins = problem.margins(&v);
    let worst = (0..margins.len()).filter(|i| !keep.contains(i)).min_by(|a, b| margins[*a].total_cmp(&margins[*b]));
    support.rows = keep;
    if let Some(worst) = worst.filter(|&i| margins[i] < 1.0 - 1e-12) {
        support.rows.push(worst);
        support.changed = true;
    }
    (!support.rows.is_empty()).then_some((v, p))
}

/// The ℓ∞ solution on the tight rows and free weights.
fn in_box(
    problem: &MarginProblem,
    bound: &[f64],
    solution: &MarginSolution,
    support: &Support,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let mut v = solution.direction.clone();
    let at_bound = |j: usize| v[j].abs() >= bound[j] * (1.0 - 1e-7);
    let free: Vec<usize> = problem.layout.trainable_ranges().into_iter().flatten().filter(|&j| !at_bound(j)).collect();
    for j in problem.layout.trainable_ranges().into_iter().flatten().filter(|&j| at_bound(j)).collect::<Vec<_>>() {
        v[j] = v[j].signum() * bound[j];
    }
    let pick = |i: usize| free.iter().map(|&j| problem.rows.row(i)[j]).chain([-1.0]).collect::<Vec<f64>>();
    let rows: Vec<Vec<f64>> = support.rows.iter().map(|&i| pick(i)).collect();
    let mut fixed = v.clone();
    free.iter().for_each(|&j| fixed[j] = 0.0);
    let b: Vec<f64> = support.rows.iter().map(|&i| -compensated_dot(problem.rows.row(i), &fixed)).collect();
    let mut x: Vec<f64> = free.iter().map(|&j| v[j]).chain([solution.bracket.lower]).collect();
    let mut t = vec![0.0; free.len()];
    t.push(-1.0);
    let mut p: Vec<f64> = support.rows.iter().map(|&i| solution.multipliers.rows[i]).collect();
    correct(&rows, &b, &t, &mut x, &mut p);
    free.iter().zip(&x).for_each(|(&j, x)| v[j] = *x);
    let mut all = vec![0.0; problem.rows.rows];
    support.rows.iter().zip(&p).for_each(|(&i, p)| all[i] = *p);
    Some((v, all))
}

/// The ℓ1 solution on the tight rows and the weights that are not 0.
fn in_cross(
    problem: &MarginProblem,
    weight: &[f64],
    solution: &MarginSolution,
    support: &Support,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let v = &solution.direction;
    let largest = v.iter().zip(weight).map(|(v, c)| v.abs() * c).fold(0.0, f64::max);
    let used: Vec<usize> = (0..v.len()).filter(|&j| v[j].abs() * weight[j] > 1e-9 * largest).collect();
    let pick = |i: usize| used.iter().map(|&j| problem.rows.row(i)[j]).chain([-1.0]).collect::<Vec<f64>>();
    let mut rows: Vec<Vec<f64>> = support.rows.iter().map(|&i| pick(i)).collect();
    rows.insert(0, used.iter().map(|&j| weight[j] * v[j].signum()).chain([0.0]).collect());
    let mut b = vec![0.0; rows.len()];
    b[0] = 1.0;
    let mut t = vec![0.0; used.len()];
    t.push(-1.0);
    let mut x: Vec<f64> = used.iter().map(|&j| v[j]).chain([solution.bracket.lower]).collect();
    let weights = support.rows.iter().map(|&i| solution.multipliers.rows[i]);
    let mut p: Vec<f64> = std::iter::once(-solution.bracket.upper).chain(weights).collect();
    correct(&rows, &b, &t, &mut x, &mut p);
    let (mut direction, mut all) = (vec![0.0; v.len()], vec![0.0; problem.rows.rows]);
    used.iter().zip(&x).for_each(|(&j, x)| direction[j] = *x);
    support.rows.iter().zip(&p[1..]).for_each(|(&i, p)| all[i] = *p);
    Some((direction, all))
}
