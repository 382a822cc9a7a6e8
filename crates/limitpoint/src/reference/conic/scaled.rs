//! A margin problem in units in which it is well scaled, and its conic programs.

use std::f64::consts::FRAC_1_SQRT_2;

use super::super::{MarginProblem, Multipliers, ReferenceError, SparseRow};
use super::ball::Part;
use super::dense::{place, places, square};
use super::program::{Affine, Cone, Point, Program, Substitution};
use crate::linalg::{Cholesky, Matrix, Precise, Scalar, Svd, matmul_nt, symmetric_function};
use crate::norms::Norm;
use crate::numeric::power_of_two;

/// Violated cone rows up to which a direction is moved back into the cone.
const REPAIRABLE: usize = 1000;

/// A linear form Σ coefficient · v[entry] in the trainable entries.
type Form = Vec<(usize, f64)>;

/// A margin problem in units in which it is well scaled.
///
/// Every row is divided by n_i, a power of two near its dual norm (its kinks too), every cone row by its own, and the
/// margin is measured in units of min n_i. Powers of two leave every digit of the rows as it is.
pub(super) struct Scaled<'a> {
    problem: &'a MarginProblem,
    /// Trainable entries, in order.
    pub entries: Vec<usize>,
    /// Rows, then kinks, then cone rows.
    forms: Vec<Form>,
    /// What the forms were divided by.
    pub sizes: Vec<f64>,
    /// min n_i.
    pub unit: f64,
}

/// A margin problem as a conic program. The other half of the answer is in the program's multipliers.
pub(super) struct Posed {
    pub program: Program,
    reading: Reading,
}

/// How v and the multipliers are read off a point of the program.
enum Reading {
    /// max s over v with ‖v‖ ≤ 1: v are columns.
    Primal,
    /// The same in other coordinates, of which the entries of v are functions.
    Zoomed(Vec<Affine>),
    /// min t over multipliers with ‖Σph + Σec + Σsr‖_* ≤ t: v are multipliers.
    Dual(Substitution),
    /// min t over multipliers with tI − (Σph + Σec + Σsr) ⪰ 0: v is the multiplier.
    Eigenvalue,
    /// max s over v = vᵀ ⪰ 0 with ‖v‖ ≤ 1: v are columns, and M the weights of the rows from here on.
    Symmetric(usize),
}

impl<'a> Scaled<'a> {
    /// Scales a problem whose norm is `norm`.
    pub fn new(problem: &'a MarginProblem, norm: &mut dyn Norm) -> Self {
        let entries: Vec<usize> = problem.layout.trainable_ranges().into_iter().flatten().collect();
        let mut compact = vec![None; problem.layout.len()];
        entries.iter().enumerate().for_each(|(at, &j)| compact[j] = Some(at));
        let sparse = |row: &SparseRow| -> Form {
            let all = row.iter().flat_map(|(first, run)| (*first..).zip(run));
            all.filter_map(|(j, x)| Some((compact[j]?, *x))).filter(|(_, x)| *x != 0.0).collect()
        };
        let full = |i: usize| -> Form {
            let row = problem.rows.row(i);
            entries.iter().enumerate().map(|(at, &j)| (at, row[j])).filter(|(_, x)| *x != 0.0).collect()
        };
        let mut forms: Vec<Form> = (0..problem.rows.rows).map(full).collect();
        forms.extend(problem.kinks.iter().map(|kink| sparse(&kink.change)));
        forms.extend(problem.cone.iter().map(sparse));
        let mut dense = vec![0.0; problem.layout.len()];
        let mut size = |form: &Form| {
            dense.fill(0.0);
            form.iter().for_each(|(at, x)| dense[entries[*at]] = *x);
            Some(norm.dual(&dense)).filter(|size| *size > 0.0).map_or(1.0, power_of_two)
        };
        let (rows, kinks) = (problem.rows.rows, problem.kinks.len());
        let mut sizes: Vec<f64> = forms[..rows].iter().map(&mut size).collect();
        let of_rows = sizes.clone();
        sizes.extend(problem.kinks.iter().map(|kink| of_rows[kink.row]));
        sizes.extend(forms[rows + kinks..].iter().map(size));
        for (form, size) in forms.iter_mut().zip(&sizes) {
            form.iter_mut().for_each(|(_, x)| *x /= size);
        }
        let unit = of_rows.into_iter().fold(f64::INFINITY, f64::min);
        Self { problem, entries, forms, sizes, unit }
    }

    /// Number of rows with a margin.
    pub fn rows(&self) -> usize {
        self.problem.rows.rows
    }

    fn kinks(&self) -> usize {
        self.problem.kinks.len()
    }

    /// The first row without an entry.
    pub fn empty_row(&self) -> Option<usize> {
        self.forms[..self.rows()].iter().position(Vec::is_empty)
    }

    /// What the margin, in units, is multiplied by in row i.
    fn share(&self, i: usize) -> f64 {
        self.unit / self.sizes[i]
    }

    /// Columns of the primal and of the dual form.
    pub fn widths(&self, ball: &Part) -> (usize, usize) {
        let primal = 1 + self.entries.len() + self.kinks() + ball.extra_columns();
        (primal, 1 + self.forms.len() + ball.dual().extra_columns())
    }

    /// The primal form.
    pub fn primal(&self, ball: &Part) -> Posed {
        Posed { program: self.primal_program(ball, 1.0), reading: Reading::Primal }
    }

    /// Columns s, v, u and rows for p, for e, for s; then −u ≥ 0 and ‖v‖ ≤ 1. All forms are divided by `unit`.
    fn primal_program(&self, ball: &Part, unit: f64) -> Program {
        let mut program = Program::default();
        let margin = program.columns(1).start;
        program.objective[margin] = -1.0;
        let v: Vec<usize> = program.columns(self.entries.len()).collect();
        let u = program.columns(self.kinks());
        let form = |k: usize| self.forms[k].iter().fold(Affine::default(), |sum, (at, x)| sum.plus(v[*at], x / unit));
        let mut rows: Vec<Affine> = (0..self.rows()).map(|i| form(i).plus(margin, -self.share(i))).collect();
        for (kink, column) in self.problem.kinks.iter().zip(u.clone()) {
            rows[kink.row].terms.push((column, 1.0));
        }
        let first = self.rows() + self.kinks();
        program.require(Cone::Nonnegative, rows);
        program.require(
            Cone::Nonnegative,
            (self.rows()..first).zip(u.clone()).map(|(k, column)| form(k).plus(column, -1.0)),
        );
        program.require(Cone::Nonnegative, (first..self.forms.len()).map(form));
        program.require(Cone::Nonnegative, u.map(|column| Affine::term(column, -1.0)));
        ball.require(&mut program, &v, &Affine::constant(1.0));
        program
    }

    /// The primal form over semidefinite matrices: (v + vᵀ)/2 ⪰ 0 and v = vᵀ as well.
    pub fn semidefinite(&self, ball: &Part) -> Posed {
        let mut program = self.primal_program(ball, 1.0);
        let (size, first) = (self.problem.layout.blocks()[0].rows, program.rows.len());
        let column = |i: usize, j: usize| 1 + i * size + j;
        let entry = |(i, j): (usize, usize)| match i == j {
            true => Affine::term(column(i, i), 1.0),
            false => Affine::term(column(i, j), FRAC_1_SQRT_2).plus(column(j, i), FRAC_1_SQRT_2),
        };
        program.require(Cone::Semidefinite(size), places(size).map(entry));
        let differences = places(size).filter(|(i, j)| i != j);
        let difference = |(i, j): (usize, usize)| Affine::term(column(i, j), 1.0).plus(column(j, i), -1.0);
        program.require(Cone::Zero, differences.map(difference));
        Posed { program, reading: Reading::Symmetric(first) }
    }

    /// The primal form of a problem whose margin is only about `unit`, in coordinates in which everything has size 1.
    ///
    /// A margin far below the size of the rows means that v is nearly orthogonal to what dominates them. With the
    /// singular value decomposition Σ σₖ fₖ eₖᵀ of the rows, v = Σ εₖ wₖ eₖ with εₖ = min(1, unit/σₖ) turns the rows,
    /// divided by `unit`, into numbers of size 1.
    pub fn zoomed(&self, ball: &Part, unit: f64) -> Result<Posed, ReferenceError> {
        let (d, count) = (self.entries.len(), self.rows() + self.kinks());
        let mut rows = Matrix::zeros(count.max(d), d);
        for (i, form) in self.forms[..count].iter().enumerate() {
            form.iter().for_each(|(at, x)| rows[(i, *at)] = *x);
        }
        let mut svd = Svd::new(rows.rows, d);
        svd.factor(&rows.data)?;
        let mut program = self.primal_program(ball, unit);
        let coordinates = program.columns(d);
        let mut functions = vec![Affine::default(); d];
        for (k, column) in coordinates.enumerate() {
            let size = (unit / svd.values()[k]).min(1.0);
            let used = functions.iter_mut().zip(svd.right(k)).filter(|(_, x)| **x != 0.0);
            used.for_each(|(function, x)| function.terms.push((column, size * x)));
        }
        program.substitute(1..d + 1, &functions);
        // taking v out moved the new columns to the front by d
        functions.iter_mut().flat_map(|function| &mut function.terms).for_each(|(column, _)| *column -= d);
        Ok(Posed { program, reading: Reading::Zoomed(functions) })
    }

    /// The dual form: columns t, (p, e, s); of a semidefinite problem with the largest eigenvalue in place of a norm.
    pub fn dual(&self, ball: &Part) -> Posed {
        let mut program = Program::default();
        let bound = program.columns(1).start;
        program.objective[bound] = 1.0;
        let weights = program.columns(self.forms.len());
        let reading = if self.problem.semidefinite {
            self.require_eigenvalues(&mut program, bound, weights.start);
            Reading::Eigenvalue
        } else {
            let z = program.columns(self.entries.len());
            ball.dual().require(&mut program, &z.clone().collect::<Vec<_>>(), &Affine::term(bound, 1.0));
            let mut sums = vec![Affine::default(); z.len()];
            for (form, column) in self.forms.iter().zip(weights.clone()) {
                form.iter().for_each(|(at, x)| sums[*at].terms.push((column, *x)));
            }
            Reading::Dual(program.substitute(z, &sums))
        };
        let rows = weights.start..weights.start + self.rows();
        let total = rows.clone().fold(Affine::constant(-1.0), |sum, p| sum.plus(p, self.share(p - rows.start)));
        program.require(Cone::Zero, [total]);
        let kinks = self.problem.kinks.iter().zip(rows.end..);
        let under = kinks.map(|(kink, e)| Affine::term(rows.start + kink.row, 1.0).plus(e, -1.0));
        program.require(Cone::Nonnegative, under);
        program.require(Cone::Nonnegative, weights.map(|column| Affine::term(column, 1.0)));
        Posed { program, reading }
    }

    /// tI − sym(Σph + Σec + Σsr) ⪰ 0.
    fn require_eigenvalues(&self, program: &mut Program, bound: usize, first: usize) {
        let size = self.problem.layout.blocks()[0].rows;
        let mut rows = vec![Affine::default(); place(0, size)];
        (0..size).for_each(|i| rows[place(i, i)].terms.push((bound, 1.0)));
        for (form, column) in self.forms.iter().zip(first..) {
            for (at, x) in form {
                let (i, j) = ((at / size).min(at % size), (at / size).max(at % size));
                let x = if i == j { -x } else { -x * FRAC_1_SQRT_2 };
                let terms = &mut rows[place(i, j)].terms;
                match terms.last_mut() {
                    // entries (i, j) and (j, i) of the same form
                    Some((last, sum)) if *last == column => *sum += x,
                    _ => terms.push((column, x)),
                }
            }
        }
        program.require(Cone::Semidefinite(size), rows);
    }

    /// v and the multipliers that a point of a program stands for, in the units of the problem.
    pub fn read(&self, posed: &Posed, point: &Point) -> (Vec<f64>, Multipliers) {
        let count = self.forms.len();
        let compact = match &posed.reading {
            Reading::Primal => self.repair(point.x[1..=self.entries.len()].to_vec()),
            Reading::Zoomed(functions) => self.repair(functions.iter().map(|v| v.at(&point.x)).collect()),
            Reading::Dual(substitution) => self.repair(substitution.multipliers(&point.z)),
            Reading::Eigenvalue => self.nearest_semidefinite(&square(&point.z[..self.triangle()], self.side()).data),
            Reading::Symmetric(_) => self.nearest_semidefinite(&point.x[1..=self.entries.len()]),
        };
        let weights = match &posed.reading {
            Reading::Primal | Reading::Zoomed(_) | Reading::Symmetric(_) => &point.z[..count],
            Reading::Dual(_) | Reading::Eigenvalue => &point.x[1..=count],
        };
        let mut v = vec![0.0; self.problem.layout.len()];
        self.entries.iter().zip(compact).for_each(|(&j, x)| v[j] = x);
        let mut rows: Vec<f64> = weights.iter().zip(&self.sizes).map(|(w, size)| w * self.unit / size).collect();
        let mut cone = rows.split_off(self.rows() + self.kinks());
        let kinks = rows.split_off(self.rows());
        if let Reading::Symmetric(first) = posed.reading {
            cone = self.slack(&point.z[first..]);
        }
        (v, Multipliers { rows, kinks, cone })
    }

    /// The same in precise numbers, for problems with rows alone in their primal or dual form.
    pub fn read_precise(&self, posed: &Posed, point: &Point<Precise>) -> (Vec<Precise>, Vec<Precise>) {
        let count = self.forms.len();
        let (compact, weights) = match &posed.reading {
            Reading::Dual(substitution) => (substitution.multipliers(&point.z), &point.x[1..=count]),
            _ => (point.x[1..=self.entries.len()].to_vec(), &point.z[..count]),
        };
        let mut v = vec![Precise::default(); self.problem.layout.len()];
        self.entries.iter().zip(compact).for_each(|(&j, x)| v[j] = x);
        let rows = weights.iter().zip(&self.sizes).map(|(w, size)| w.times(self.unit / size));
        // what an interior point leaves below 0 is rounding
        (v, rows.map(|p| if p.value() > 0.0 { p } else { Precise::default() }).collect())
    }

    /// Moves v the shortest way onto the cone rows that it violates by a little.
    fn repair(&self, mut v: Vec<f64>) -> Vec<f64> {
        let cone = &self.forms[self.rows() + self.kinks()..];
        for _ in 0..3 {
            let product = |form: &Form| form.iter().map(|(at, x)| x * v[*at]).sum::<f64>();
            let violated: Vec<&Form> = cone.iter().filter(|form| product(form) < 0.0).collect();
            if violated.is_empty() || violated.len() > REPAIRABLE {
                break;
            }
            let mut steps: Vec<f64> = violated.iter().map(|form| -product(form)).collect();
            let mut rows = Matrix::zeros(violated.len(), v.len());
            for (i, form) in violated.iter().enumerate() {
                form.iter().for_each(|(at, x)| rows[(i, *at)] = *x);
            }
            let mut gram = vec![0.0; rows.rows * rows.rows];
            matmul_nt(&mut gram, &rows.data, &rows.data, rows.rows, rows.cols, rows.rows);
            let mut cholesky = Cholesky::new(rows.rows);
            if cholesky.factor(&gram, 1e-13).is_err() {
                break;
            }
            cholesky.solve(&mut steps);
            for (form, step) in violated.iter().zip(steps) {
                form.iter().for_each(|(at, x)| v[*at] += step * x);
            }
        }
        v
    }

    /// Rows of the square matrix of a semidefinite problem.
    fn side(&self) -> usize {
        self.problem.layout.blocks()[0].rows
    }

    fn triangle(&self) -> usize {
        place(0, self.side())
    }

    /// M from the weights of v ⪰ 0 and of v = vᵀ, its symmetric part made semidefinite.
    fn slack(&self, weights: &[f64]) -> Vec<f64> {
        let size = self.side();
        let symmetric = square(&weights[..self.triangle()], size).data;
        let mut slack = self.nearest_semidefinite(&symmetric);
        for ((i, j), a) in places(size).filter(|(i, j)| i != j).zip(&weights[self.triangle()..]) {
            slack[i * size + j] += a;
            slack[j * size + i] -= a;
        }
        slack.iter_mut().for_each(|x| *x *= self.unit);
        slack
    }

    /// The positive semidefinite matrix nearest to the symmetric part of a row-major one.
    fn nearest_semidefinite(&self, matrix: &[f64]) -> Vec<f64> {
        let size = self.side();
        let half = |at: usize| 0.5 * (matrix[at] + matrix[at % size * size + at / size]);
        let matrix: Vec<f64> = (0..size * size).map(half).collect();
        symmetric_function(&matrix, size, |value| value.max(0.0)).unwrap_or(matrix)
    }
}
