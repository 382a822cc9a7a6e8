//! The interpolating point of smallest norm as a conic program.
//!
//! ```text
//! primal   min ‖w‖  subject to  Xw = y
//! dual     max ⟨λ, y⟩  subject to  ‖Xᵀλ‖_* ≤ 1
//! ```

use super::super::ReferenceError;
use super::ball::Part;
use super::program::{Affine, Cone, Program, Substitution};
use super::{GOOD, Solver};
use crate::linalg::{Matrix, Svd, add_scaled, dot, norm2};
use crate::norms::{Norm, NormSpec};
use crate::params::ParamLayout;

/// ‖y − Xw‖₂/‖y‖₂ above which equations count as contradicting.
const CONTRADICTION: f64 = 1e-9;

/// The equations in an orthonormal basis of the rows of X, in units in which their least-squares solution has norm 1.
///
/// ```text
/// X = U S Vᵀ,   Xw = y  ⇔  Vᵀw = S⁻¹Uᵀy,   λ = U S⁻¹ λ̃
/// ```
struct Equations {
    /// Trainable entries, in order.
    entries: Vec<usize>,
    length: usize,
    /// Vᵀ, one row for every independent equation.
    rows: Matrix,
    /// S⁻¹Uᵀy / unit.
    values: Vec<f64>,
    /// U S⁻¹, one row for every equation of the problem.
    back: Matrix,
    unit: f64,
}

impl Equations {
    /// `None` if y = 0.
    fn new(x: &Matrix, y: &[f64], layout: &ParamLayout, norm: &mut dyn Norm) -> Result<Option<Self>, ReferenceError> {
        let entries: Vec<usize> = layout.trainable_ranges().into_iter().flatten().collect();
        let mut dense = Matrix::zeros(x.rows, entries.len());
        for i in 0..x.rows {
            dense.row_mut(i).iter_mut().zip(&entries).for_each(|(out, &j)| *out = x.row(i)[j]);
        }
        let size = norm2(y);
        if size == 0.0 {
            return Ok(None);
        }
        let mut svd = Svd::new(x.rows, entries.len());
        svd.factor(&dense.data)?;
        let rank = svd.rank();
        let mut rows = Matrix::zeros(rank, entries.len());
        let mut back = Matrix::zeros(x.rows, rank);
        let mut values = vec![0.0; rank];
        let mut residual = y.to_vec();
        for k in 0..rank {
            let (left, sigma) = (svd.left(k), svd.values()[k]);
            rows.row_mut(k).copy_from_slice(svd.right(k));
            values[k] = dot(left, y) / sigma;
            let inside = dot(left, &residual);
            add_scaled(&mut residual, -inside, left);
            left.iter().enumerate().for_each(|(i, u)| back[(i, k)] = u / sigma);
        }
        let residual = norm2(&residual) / size;
        if residual > CONTRADICTION {
            return Err(ReferenceError::Inconsistent { residual, equations: x.rows, rank });
        }
        let mut all = Self { entries, length: layout.len(), rows, values, back, unit: 1.0 };
        all.unit = norm.value(&all.spread(&all.nearest(&vec![0.0; all.entries.len()])));
        all.values.iter_mut().for_each(|value| *value /= all.unit);
        Ok(Some(all))
    }

    /// The solution of the equations nearest to w, on the trainable entries.
    fn nearest(&self, w: &[f64]) -> Vec<f64> {
        let mut out = w.to_vec();
        for _ in 0..2 {
            let missing: Vec<f64> = (0..self.rows.rows).map(|k| self.values[k] - dot(self.rows.row(k), &out)).collect();
            missing.iter().enumerate().for_each(|(k, step)| add_scaled(&mut out, *step, self.rows.row(k)));
        }
        out
    }

    /// A vector of the whole layout, 0 in frozen blocks.
    fn spread(&self, compact: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.length];
        self.entries.iter().zip(compact).for_each(|(&j, x)| out[j] = *x);
        out
    }

    /// Vλ̃.
    fn combine(&self, weights: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.entries.len()];
        weights.iter().enumerate().for_each(|(k, weight)| add_scaled(&mut out, *weight, self.rows.row(k)));
        out
    }

    /// Columns t, w and rows for λ̃.
    fn primal(&self, ball: &Part) -> Program {
        let mut program = Program::default();
        let bound = program.columns(1).start;
        program.objective[bound] = 1.0;
        let w: Vec<usize> = program.columns(self.entries.len()).collect();
        let rows = (0..self.rows.rows).map(|k| Affine {
            constant: -self.values[k],
            terms: w.iter().zip(self.rows.row(k)).map(|(column, x)| (*column, *x)).collect(),
        });
        program.require(Cone::Zero, rows);
        ball.require(&mut program, &w, &Affine::term(bound, 1.0));
        program
    }

    /// Columns λ̃, and what w follows from.
    fn dual(&self, ball: &Part) -> (Program, Substitution) {
        let mut program = Program::default();
        let weights = program.columns(self.rows.rows);
        weights.clone().zip(&self.values).for_each(|(column, value)| program.objective[column] = -value);
        let z = program.columns(self.entries.len());
        ball.dual().require(&mut program, &z.clone().collect::<Vec<_>>(), &Affine::constant(1.0));
        let mut sums = vec![Affine::default(); z.len()];
        for (k, column) in weights.enumerate() {
            sums.iter_mut().zip(self.rows.row(k)).for_each(|(sum, x)| sum.terms.push((column, *x)));
        }
        let substitution = program.substitute(z, &sums);
        (program, substitution)
    }
}

/// The best interpolating point and the best multipliers seen so far, each by its own bound.
struct Best {
    upper: f64,
    w: Vec<f64>,
    lower: f64,
    weights: Vec<f64>,
}

impl Best {
    fn offer(&mut self, equations: &Equations, norm: &mut dyn Norm, w: &[f64], weights: &[f64]) {
        let w = equations.spread(&equations.nearest(w));
        let upper = norm.value(&w);
        if upper < self.upper {
            (self.upper, self.w) = (upper, w);
        }
        let size = norm.dual(&equations.spread(&equations.combine(weights)));
        let lower = dot(weights, &equations.values) / size;
        if lower > self.lower {
            (self.lower, self.weights) = (lower, weights.iter().map(|x| x / size).collect());
        }
    }

    fn gap(&self) -> f64 {
        (self.upper - self.lower) / self.upper
    }
}

/// argmin ‖w‖ subject to Xw = y, with the multipliers λ that prove it: ‖Xᵀλ‖_* = 1 and ⟨λ, y⟩ = ‖w‖; and iterations.
///
/// Entries of frozen blocks are 0 in w and do not count in X. If y = 0 both answers are 0.
pub(in super::super) fn minimum_norm_conic(
    x: &Matrix,
    y: &[f64],
    norm: &NormSpec,
    layout: &ParamLayout,
) -> Result<(Vec<f64>, Vec<f64>, usize), ReferenceError> {
    if x.rows == 0 || x.cols != layout.len() || y.len() != x.rows {
        return Err(ReferenceError::Rows { rows: x.rows, columns: x.cols, expected: layout.len() });
    }
    if let Some(at) = x.data.iter().position(|x| !x.is_finite()) {
        return Err(ReferenceError::NotFinite { row: at / x.cols, column: at % x.cols, value: x.data[at] });
    }
    if let Some(row) = y.iter().position(|y| !y.is_finite()) {
        return Err(ReferenceError::NotFinite { row, column: x.cols, value: y[row] });
    }
    let mut worker = norm.build(layout)?;
    let Some(equations) = Equations::new(x, y, layout, &mut *worker)? else {
        return Ok((vec![0.0; layout.len()], vec![0.0; y.len()], 0));
    };
    let ball = Part::of(norm, layout)?;
    let mut best = Best { upper: f64::INFINITY, w: Vec::new(), lower: f64::NEG_INFINITY, weights: Vec::new() };
    let (rank, count) = (equations.rows.rows, equations.entries.len());
    let primal_first = 1 + count + ball.extra_columns() <= rank + ball.dual().extra_columns();
    let (mut iterations, mut failure) = (0, None);
    for (solver, primal) in Solver::ALL.into_iter().flat_map(|solver| [(solver, primal_first), (solver, !primal_first)])
    {
        let found = if primal {
            solver.attempt(&equations.primal(&ball), &mut |point| {
                best.offer(&equations, &mut *worker, &point.x[1..=count], &point.z[..rank]);
                Ok(best.gap())
            })
        } else {
            let (program, substitution) = equations.dual(&ball);
            solver.attempt(&program, &mut |point| {
                best.offer(&equations, &mut *worker, &substitution.multipliers(&point.z), &point.x[..rank]);
                Ok(best.gap())
            })
        };
        match found {
            Ok(steps) => iterations += steps,
            Err(error) => failure = Some(error),
        }
        if best.gap() <= GOOD {
            break;
        }
    }
    match failure {
        Some(error) if best.w.is_empty() || best.weights.is_empty() => Err(error),
        _ => {
            best.w.iter_mut().for_each(|w| *w *= equations.unit);
            let weights = (0..y.len()).map(|i| dot(equations.back.row(i), &best.weights)).collect();
            Ok((best.w, weights, iterations))
        }
    }
}
