//! Conic programs in standard form, and their solution by Clarabel.
//!
//! ```text
//! primal   min ⟨c, x⟩  subject to  s = g + Gx ∈ K
//! dual     max −⟨g, z⟩  subject to  Gᵀz = c, z ∈ K*          optimal if also ⟨s, z⟩ = 0
//! ```
//!
//! K is a product of the cones of [`Cone`]. Every row of s is written as an [`Affine`] function of the columns x.

use std::ops::Range;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

use super::super::ReferenceError;

/// constant + Σ coefficient · x[column].
#[derive(Debug, Clone, Default)]
pub(super) struct Affine {
    pub constant: f64,
    pub terms: Vec<(usize, f64)>,
}

impl Affine {
    /// The same number for every x.
    pub fn constant(constant: f64) -> Self {
        Self { constant, terms: Vec::new() }
    }

    /// coefficient · x[column].
    pub fn term(column: usize, coefficient: f64) -> Self {
        Self { constant: 0.0, terms: vec![(column, coefficient)] }
    }

    /// The function plus coefficient · x[column].
    pub fn plus(mut self, column: usize, coefficient: f64) -> Self {
        self.terms.push((column, coefficient));
        self
    }

    /// The function times a number.
    pub fn scaled(&self, factor: f64) -> Self {
        let terms = self.terms.iter().map(|(column, x)| (*column, factor * x)).collect();
        Self { constant: factor * self.constant, terms }
    }

    /// Its value at x.
    pub fn at(&self, x: &[f64]) -> f64 {
        self.constant + self.terms.iter().map(|(column, coefficient)| coefficient * x[*column]).sum::<f64>()
    }
}

/// A cone that rows of a program lie in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cone {
    /// {0}; its dual is everything.
    Zero,
    /// s ≥ 0.
    Nonnegative,
    /// (t, x) with ‖x‖₂ ≤ t.
    SecondOrder,
    /// (t, x) with ‖x‖_p ≤ t, for 1 < p < ∞.
    Power(f64),
    /// The upper triangle of a positive semidefinite matrix of that size, column by column, off-diagonal entries times √2
    /// (so that the inner product of triangles is that of matrices).
    Semidefinite(usize),
}

/// A conic program.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    /// c, one entry for every column.
    pub objective: Vec<f64>,
    /// s = g + Gx.
    pub rows: Vec<Affine>,
    /// Which rows lie in which cone; they cover all rows in order.
    pub sections: Vec<(Cone, Range<usize>)>,
}

/// A primal and a dual point of a program.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// x.
    pub x: Vec<f64>,
    /// z, one entry for every row.
    pub z: Vec<f64>,
}

/// What is needed to find the multipliers of columns that were substituted.
#[derive(Debug, Clone, Default)]
pub(super) struct Substitution {
    count: usize,
    /// Row, column and coefficient of every use.
    uses: Vec<(usize, usize, f64)>,
}

impl Substitution {
    /// The multipliers of column = function.
    pub fn multipliers(&self, z: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.count];
        self.uses.iter().for_each(|(row, column, x)| out[*column] -= z[*row] * x);
        out
    }
}

impl Program {
    /// Adds columns that the objective does not see.
    pub fn columns(&mut self, count: usize) -> Range<usize> {
        let first = self.objective.len();
        self.objective.resize(first + count, 0.0);
        first..first + count
    }

    /// Adds rows that lie in a cone.
    pub fn require(&mut self, cone: Cone, rows: impl IntoIterator<Item = Affine>) -> Range<usize> {
        let first = self.rows.len();
        self.rows.extend(rows);
        let range = first..self.rows.len();
        match self.sections.last_mut() {
            Some((last, old)) if *last == cone && matches!(cone, Cone::Zero | Cone::Nonnegative) => old.end = range.end,
            _ => self.sections.push((cone, range.clone())),
        }
        range
    }

    /// Replaces columns by affine functions of the other columns and takes them out.
    ///
    /// If the multiplier of column = function were a row's weight, it would be that of the result: −Σ weight · coefficient
    /// over the rows that use the column.
    pub fn substitute(&mut self, columns: Range<usize>, functions: &[Affine]) -> Substitution {
        let (first, count) = (columns.start, columns.len());
        let place = |column: usize| if column < first { column } else { column - count };
        let mut uses = Vec::new();
        let mut sums = vec![0.0; self.objective.len()];
        for (i, row) in self.rows.iter_mut().enumerate() {
            let mut touched = Vec::new();
            let mut add = |column: usize, x: f64| {
                if sums[column] == 0.0 {
                    touched.push(column);
                }
                sums[column] += x;
            };
            for (column, x) in std::mem::take(&mut row.terms) {
                if columns.contains(&column) {
                    let function = &functions[column - first];
                    uses.push((i, column - first, x));
                    row.constant += x * function.constant;
                    function.terms.iter().for_each(|(at, y)| add(place(*at), x * y));
                } else {
                    add(place(column), x);
                }
            }
            touched.sort_unstable();
            touched.dedup();
            row.terms = touched.into_iter().map(|column| (column, std::mem::take(&mut sums[column]))).collect();
        }
        self.objective.drain(columns);
        Substitution { count, uses }
    }

    /// Solves the program as accurately as the interior-point method can, and says in how many iterations.
    ///
    /// The tolerances are below what rounding allows, so the method runs until it makes no more progress; whatever it
    /// has then is returned, and its caller measures how good that is. An error means there is nothing to measure.
    pub fn solve(&self, tolerance: f64) -> Result<(Point, usize), ReferenceError> {
        crate::linalg::lapack::link();
        let lowered = Lowered::new(self);
        let settings = DefaultSettings {
            verbose: false,
            max_iter: 150,
            tol_gap_abs: tolerance,
            tol_gap_rel: tolerance,
            tol_feas: tolerance,
            tol_infeas_abs: 1e-12,
            tol_infeas_rel: 1e-12,
            max_threads: 1,
            iterative_refinement_reltol: 1e-15,
            iterative_refinement_abstol: 1e-15,
            presolve_enable: false,
            chordal_decomposition_enable: false,
            ..DefaultSettings::default()
        };
        let width = lowered.objective.len();
        let quadratic = CscMatrix::zeros((width, width));
        let (matrix, offsets, cones) = lowered.parts();
        let failed = |status: String, iterations| ReferenceError::NoConvergence {
            solver: "the conic interior-point method",
            status,
            iterations,
            gap: f64::INFINITY,
            remedy: "rescale the data or remove rows of very different sizes",
        };
        let mut solver = DefaultSolver::new(&quadratic, &lowered.objective, &matrix, &offsets, &cones, settings)
            .map_err(|error| failed(error.to_string(), 0))?;
        solver.solve();
        let (status, iterations) = (solver.solution.status, solver.solution.iterations as usize);
        let finite = solver.solution.x.iter().chain(&solver.solution.z).all(|x| x.is_finite());
        let nothing = matches!(
            status,
            SolverStatus::Unsolved
                | SolverStatus::PrimalInfeasible
                | SolverStatus::DualInfeasible
                | SolverStatus::AlmostPrimalInfeasible
                | SolverStatus::AlmostDualInfeasible
        );
        if nothing || !finite {
            return Err(failed(status.to_string(), iterations));
        }
        Ok((lowered.raise(self, &solver.solution.x, &solver.solution.z), iterations))
    }
}

/// A program in Clarabel's cones: every power section becomes three-dimensional power cones.
///
/// ```text
/// ‖x‖_p ≤ t   ⇔   Σ r_i = t,   |x_i| ≤ r_i^(1/p) t^(1 − 1/p)
/// ```
///
/// (Mosek modeling cookbook, section 4.2.2.) The dual weight of x_i is that of its cone; the weight of t is collected
/// from all places where t appears.
struct Lowered {
    objective: Vec<f64>,
    rows: Vec<Affine>,
    cones: Vec<SupportedConeT<f64>>,
    /// For every lowered row the row of the program it came from.
    origins: Vec<Option<usize>>,
}

impl Lowered {
    fn new(program: &Program) -> Self {
        let mut out = Self { objective: program.objective.clone(), rows: Vec::new(), cones: Vec::new(), origins: Vec::new() };
        for (cone, range) in &program.sections {
            match *cone {
                Cone::Zero => out.copy(program, range, SupportedConeT::ZeroConeT(range.len())),
                Cone::Nonnegative => out.copy(program, range, SupportedConeT::NonnegativeConeT(range.len())),
                Cone::SecondOrder => out.copy(program, range, SupportedConeT::SecondOrderConeT(range.len())),
                Cone::Semidefinite(size) => out.copy(program, range, SupportedConeT::PSDTriangleConeT(size)),
                Cone::Power(p) => out.power(program, range, p),
            }
        }
        out
    }

    fn copy(&mut self, program: &Program, range: &Range<usize>, cone: SupportedConeT<f64>) {
        self.rows.extend_from_slice(&program.rows[range.clone()]);
        self.origins.extend(range.clone().map(Some));
        self.cones.push(cone);
    }

    fn power(&mut self, program: &Program, range: &Range<usize>, p: f64) {
        let bound = &program.rows[range.start];
        let first = self.objective.len();
        self.objective.resize(first + range.len() - 1, 0.0);
        let shares = (first..self.objective.len()).map(|column| (column, -1.0));
        let mut total = bound.clone();
        total.terms.extend(shares);
        self.rows.push(total);
        self.origins.push(Some(range.start));
        self.cones.push(SupportedConeT::ZeroConeT(1));
        for (k, row) in (range.start + 1..range.end).enumerate() {
            self.rows.extend([Affine::term(first + k, 1.0), bound.clone(), program.rows[row].clone()]);
            self.origins.extend([None, Some(range.start), Some(row)]);
            self.cones.push(SupportedConeT::PowerConeT(p.recip()));
        }
    }

    /// −G by columns, g and K.
    fn parts(&self) -> (CscMatrix<f64>, Vec<f64>, Vec<SupportedConeT<f64>>) {
        let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.objective.len()];
        for (i, row) in self.rows.iter().enumerate() {
            for &(column, coefficient) in &row.terms {
                match columns[column].last_mut() {
                    Some((last, sum)) if *last == i => *sum -= coefficient, // a column may appear twice in a row
                    _ => columns[column].push((i, -coefficient)),
                }
            }
        }
        let mut starts = vec![0];
        starts.extend(columns.iter().scan(0, |end, column| {
            *end += column.len();
            Some(*end)
        }));
        let (indices, values) = columns.into_iter().flatten().unzip();
        let matrix = CscMatrix::new(self.rows.len(), self.objective.len(), starts, indices, values);
        (matrix, self.rows.iter().map(|row| row.constant).collect(), self.cones.clone())
    }

    /// The point of the program that a point of its lowered form stands for.
    fn raise(&self, program: &Program, x: &[f64], z: &[f64]) -> Point {
        let mut weights = vec![0.0; program.rows.len()];
        self.origins.iter().zip(z).filter_map(|(origin, z)| Some(((*origin)?, z))).for_each(|(i, z)| weights[i] += z);
        Point { x: x[..program.objective.len()].to_vec(), z: weights }
    }
}
