//! Conic programs by Clarabel, a general interior-point solver (Goulart and Chen 2024).
//!
//! It is built without its semidefinite cones, which need a BLAS and a LAPACK of the system: programs with such a cone
//! are the dense method's alone.

use std::ops::Range;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

use super::super::ReferenceError;
use super::program::{Affine, Cone, Point, Program};

/// Solves a program as accurately as the method can, and says in how many iterations.
///
/// The tolerances are below what rounding allows, so the method runs until it makes no more progress; whatever it has
/// then is returned, and its caller measures how good that is. An error means there is nothing to measure.
pub(super) fn solve(program: &Program) -> Result<(Point, usize), ReferenceError> {
    let failed = |status: String, iterations| ReferenceError::NoConvergence {
        solver: "the general conic solver",
        status,
        iterations,
        gap: f64::INFINITY,
        remedy: "rescale the data, or remove rows of very different sizes",
    };
    if program.sections.iter().any(|(cone, _)| matches!(cone, Cone::Semidefinite(_))) {
        return Err(failed("no semidefinite cones here".to_owned(), 0));
    }
    let lowered = Lowered::new(program);
    let tolerance = 1e-14;
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
        ..DefaultSettings::default()
    };
    let width = lowered.objective.len();
    let quadratic = CscMatrix::zeros((width, width));
    let (matrix, offsets) = lowered.parts();
    let mut solver = DefaultSolver::new(&quadratic, &lowered.objective, &matrix, &offsets, &lowered.cones, settings)
        .map_err(|error| failed(error.to_string(), 0))?;
    solver.solve();
    let found = &solver.solution;
    let iterations = found.iterations as usize;
    let nothing = matches!(
        found.status,
        SolverStatus::Unsolved
            | SolverStatus::PrimalInfeasible
            | SolverStatus::DualInfeasible
            | SolverStatus::AlmostPrimalInfeasible
            | SolverStatus::AlmostDualInfeasible
    );
    if nothing || found.x.iter().chain(&found.z).any(|x| !x.is_finite()) {
        return Err(failed(found.status.to_string(), iterations));
    }
    Ok((lowered.raise(program, &found.x, &found.z), iterations))
}

/// A program in Clarabel's cones: every power section becomes three-dimensional power cones.
///
/// ```text
/// ‖x‖_p ≤ t   ⇔   Σ r_i = t,   |x_i| ≤ r_i^(1/p) t^(1 − 1/p)
/// ```
///
/// (MOSEK Modeling Cookbook, section 4.2.) The weight of x_i is that of its cone; the weight of t is collected from all
/// places where t appears.
struct Lowered {
    objective: Vec<f64>,
    rows: Vec<Affine>,
    cones: Vec<SupportedConeT<f64>>,
    /// For every lowered row the row of the program it came from.
    origins: Vec<Option<usize>>,
}

impl Lowered {
    fn new(program: &Program) -> Self {
        let objective = program.objective.clone();
        let mut out = Self { objective, rows: Vec::new(), cones: Vec::new(), origins: Vec::new() };
        for (cone, range) in &program.sections {
            match *cone {
                Cone::Zero => out.copy(program, range, SupportedConeT::ZeroConeT(range.len())),
                Cone::Nonnegative => out.copy(program, range, SupportedConeT::NonnegativeConeT(range.len())),
                Cone::SecondOrder => out.copy(program, range, SupportedConeT::SecondOrderConeT(range.len())),
                Cone::Semidefinite(_) => unreachable!("refused before"),
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
        let mut total = bound.clone();
        total.terms.extend((first..self.objective.len()).map(|column| (column, -1.0)));
        self.rows.push(total);
        self.origins.push(Some(range.start));
        self.cones.push(SupportedConeT::ZeroConeT(1));
        for (column, row) in (first..).zip(range.start + 1..range.end) {
            self.rows.extend([Affine::term(column, 1.0), bound.clone(), program.rows[row].clone()]);
            self.origins.extend([None, Some(range.start), Some(row)]);
            self.cones.push(SupportedConeT::PowerConeT(p.recip()));
        }
    }

    /// −G by columns, and g.
    fn parts(&self) -> (CscMatrix<f64>, Vec<f64>) {
        let mut columns: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.objective.len()];
        for (i, row) in self.rows.iter().enumerate() {
            for &(column, coefficient) in &row.terms {
                match columns[column].last_mut() {
                    // a column may appear twice in a row
                    Some((last, sum)) if *last == i => *sum -= coefficient,
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
        (matrix, self.rows.iter().map(|row| row.constant).collect())
    }

    /// The point of the program that a point of its lowered form stands for.
    fn raise(&self, program: &Program, x: &[f64], z: &[f64]) -> Point {
        let mut weights = vec![0.0; program.rows.len()];
        let known = self.origins.iter().zip(z).filter_map(|(origin, z)| Some(((*origin)?, z)));
        known.for_each(|(i, z)| weights[i] += z);
        Point { x: x[..program.width()].to_vec(), z: weights }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// max x₁ + x₂ over ‖x‖₃ ≤ 1: both are 2^(−1/3) by symmetry, and the weight of the bound is the dual norm 2^(2/3).
    #[test]
    fn power_cones_come_back_as_one_norm() {
        let mut program = Program::default();
        program.columns(2);
        program.objective = vec![-1.0, -1.0];
        program.require(Cone::Power(3.0), [Affine::constant(1.0), Affine::term(0, 1.0), Affine::term(1, 1.0)]);
        let (point, _) = solve(&program).unwrap();
        assert!(point.x.iter().all(|x| (x - 2.0_f64.powf(-1.0 / 3.0)).abs() < 1e-7), "{point:?}");
        assert!((point.z[0] - 2.0_f64.powf(2.0 / 3.0)).abs() < 1e-7, "{point:?}");
        assert!((point.z[1] + 1.0).abs() < 1e-7);
    }

    #[test]
    fn an_infeasible_program_is_an_error_that_says_so() {
        let mut program = Program::default();
        program.columns(1);
        program.require(Cone::Nonnegative, [Affine::constant(-1.0).plus(0, 1.0), Affine::constant(-1.0).plus(0, -1.0)]);
        let error = solve(&program).unwrap_err().to_string();
        assert!(error.contains("PrimalInfeasible"), "{error}");
    }

    #[test]
    fn a_semidefinite_cone_is_left_to_the_dense_method() {
        let mut program = Program::default();
        program.columns(1);
        program.require(Cone::Semidefinite(2), vec![Affine::term(0, 1.0); 3]);
        assert!(solve(&program).unwrap_err().to_string().contains("no semidefinite cones"));
    }
}
