//! The margin problem as a conic program, in its primal or its dual form.

use super::super::{MarginProblem, Multipliers, ReferenceError, SparseRow};
use super::{GOOD, ROUNDING, STEPS, Solver};
use super::ball::Part;
use super::polish::polish;
use super::program::{Affine, Cone, Point, Program, Substitution};
use crate::linalg::{Cholesky, Matrix, Svd, matmul_nt};
use crate::norms::Norm;

/// Times that a margin far below the size of the rows is looked at more closely.
const ZOOMS: usize = 3;
/// Trainable entries up to which that is tried.
const WIDEST_ZOOM: usize = 600;

/// Which of the two forms of the problem was handed to the solver; the other half of the answer is in its multipliers.
enum Form {
    /// max s over v with ‖v‖ ≤ 1.
    Primal,
    /// min t over multipliers with ‖Σph + Σec + Σsr‖_* ≤ t.
    Dual(Substitution),
    /// The primal form in other coordinates, with v as a function of them.
    Zoomed(Vec<Affine>),
}

/// A margin problem in units in which it is well scaled.
///
/// Every row is divided by its dual norm n_i (its kinks too), every cone row by its own, and the margin is measured in
/// units of μ = min n_i, which no margin exceeds.
struct Scaled<'a> {
    problem: &'a MarginProblem,
    /// Trainable entries, in order.
    entries: Vec<usize>,
    /// Rows, then kinks, then cone rows, on the trainable entries.
    forms: Vec<Vec<(usize, f64)>>,
    /// What the forms were divided by.
    sizes: Vec<f64>,
    unit: f64,
}

impl<'a> Scaled<'a> {
    fn new(problem: &'a MarginProblem, norm: &mut dyn Norm) -> Self {
        let entries: Vec<usize> = problem.layout.trainable_ranges().into_iter().flatten().collect();
        let mut place = vec![usize::MAX; problem.layout.len()];
        entries.iter().enumerate().for_each(|(at, &j)| place[j] = at);
        let mut forms: Vec<Vec<(usize, f64)>> = (0..problem.rows.rows)
            .map(|i| entries.iter().enumerate().map(|(at, &j)| (at, problem.rows.row(i)[j])).filter(|(_, x)| *x != 0.0).collect())
            .collect();
        let sparse = |row: &SparseRow| {
            let all = row.iter().flat_map(|(first, run)| run.iter().enumerate().map(move |(k, x)| (first + k, *x)));
            all.filter(|(j, x)| place[*j] != usize::MAX && *x != 0.0).map(|(j, x)| (place[j], x)).collect()
        };
        forms.extend(problem.kinks.iter().map(|kink| sparse(&kink.change)));
        forms.extend(problem.cone.iter().map(sparse));
        let mut dense = vec![0.0; problem.layout.len()];
        let mut size = |form: &[(usize, f64)]| {
            dense.fill(0.0);
            form.iter().for_each(|(at, x)| dense[entries[*at]] = *x);
            norm.dual(&dense)
        };
        let rows = problem.rows.rows;
        let mut sizes: Vec<f64> = forms[..rows].iter().map(|form| size(form)).collect();
        sizes.extend(problem.kinks.iter().map(|kink| kink.row).map(|row| sizes[row]).collect::<Vec<f64>>());
        sizes.extend(forms[rows + problem.kinks.len()..].iter().map(|form| size(form)));
        let unit = sizes[..rows].iter().copied().fold(f64::INFINITY, f64::min);
        for (form, size) in forms.iter_mut().zip(&sizes).filter(|(_, size)| **size > 0.0) {
            form.iter_mut().for_each(|(_, x)| *x /= size);
        }
        Self { problem, entries, forms, sizes, unit }
    }

    fn rows(&self) -> usize {
        self.problem.rows.rows
    }

    fn kinks(&self) -> usize {
        self.problem.kinks.len()
    }

    /// a_i, what the margin is multiplied by in row i.
    fn share(&self, i: usize) -> f64 {
        self.unit / self.sizes[i]
    }

    /// The program of the primal form: columns s, v, u and rows for p, for e, for s. The margin is measured in `unit`s.
    fn primal(&self, ball: &Part, unit: f64) -> Program {
        let mut program = Program::default();
        let margin = program.columns(1).start;
        program.objective[margin] = -1.0;
        let v: Vec<usize> = program.columns(self.entries.len()).collect();
        let u = program.columns(self.kinks());
        let form = |k: usize| {
            Affine { constant: 0.0, terms: self.forms[k].iter().map(|(at, x)| (v[*at], x / unit)).collect() }
        };
        let mut rows: Vec<Affine> = (0..self.rows()).map(|i| form(i).plus(margin, -self.share(i))).collect();
        for (kink, column) in self.problem.kinks.iter().zip(u.clone()) {
            rows[kink.row].terms.push((column, 1.0));
        }
        program.require(Cone::Nonnegative, rows);
        program.require(Cone::Nonnegative, (0..self.kinks()).map(|k| form(self.rows() + k).plus(u.start + k, -1.0)));
        program.require(Cone::Nonnegative, (self.rows() + self.kinks()..self.forms.len()).map(form));
        program.require(Cone::Nonnegative, u.map(|column| Affine::term(column, -1.0)));
        ball.require(&mut program, &v, &Affine::constant(1.0));
        program
    }

    /// The primal form of a problem whose margin is only about `unit`, in coordinates in which everything has size 1.
    ///
    /// A margin far below the size of the rows means that v is nearly orthogonal to what dominates them. With the
    /// singular value decomposition Σ σₖ fₖ eₖᵀ of the rows, v = Σ εₖ wₖ eₖ with εₖ = min(1, unit/σₖ) turns the rows,
    /// divided by `unit`, into numbers of size 1.
    fn zoomed(&self, ball: &Part, unit: f64) -> Result<(Program, Form), ReferenceError> {
        let d = self.entries.len();
        let count = self.rows() + self.kinks();
        let mut rows = Matrix::zeros(count.max(d), d);
        for (i, form) in self.forms[..count].iter().enumerate() {
            form.iter().for_each(|(at, x)| rows[(i, *at)] = *x);
        }
        let mut svd = Svd::new(rows.rows, d);
        svd.factor(&rows.data)?;
        let mut program = self.primal(ball, unit);
        let w = program.columns(d);
        let mut functions = vec![Affine::default(); d];
        for (k, column) in w.enumerate() {
            let size = (unit / svd.values()[k]).min(1.0);
            for (function, x) in functions.iter_mut().zip(svd.right(k)).filter(|(_, x)| **x != 0.0) {
                function.terms.push((column, size * x));
            }
        }
        program.substitute(1..d + 1, &functions);
        let shift = |function: Affine| {
            let terms = function.terms.into_iter().map(|(column, x)| (column - d, x)).collect();
            Affine { constant: 0.0, terms }
        };
        Ok((program, Form::Zoomed(functions.into_iter().map(shift).collect())))
    }

    /// The program of the dual form: columns t, (p, e, s), and what v follows from.
    fn dual(&self, ball: &Part) -> (Program, Substitution) {
        let mut program = Program::default();
        let bound = program.columns(1).start;
        program.objective[bound] = 1.0;
        let weights = program.columns(self.forms.len());
        let mut substitution = Substitution::default();
        if self.problem.semidefinite {
            self.eigenvalue_rows(&mut program, bound, weights.start);
        } else {
            let z = program.columns(self.entries.len());
            ball.dual().require(&mut program, &z.clone().collect::<Vec<_>>(), &Affine::term(bound, 1.0));
            let mut sums = vec![Affine::default(); z.len()];
            for (form, column) in self.forms.iter().zip(weights.clone()) {
                form.iter().for_each(|(at, x)| sums[*at].terms.push((column, *x)));
            }
            substitution = program.substitute(z, &sums);
        }
        let total = (0..self.rows()).fold(Affine::constant(-1.0), |sum, i| sum.plus(weights.start + i, self.share(i)));
        program.require(Cone::Zero, [total]);
        program.require(Cone::Nonnegative, weights.clone().map(|column| Affine::term(column, 1.0)));
        let under = self.problem.kinks.iter().enumerate().map(|(k, kink)| {
            Affine::term(weights.start + kink.row, 1.0).plus(weights.start + self.rows() + k, -1.0)
        });
        program.require(Cone::Nonnegative, under);
        (program, substitution)
    }

    /// tI − sym(Σph + …) ⪰ 0, whose multiplier is v.
    fn eigenvalue_rows(&self, program: &mut Program, bound: usize, first: usize) {
        let size = self.problem.layout.blocks()[0].rows;
        let mut rows = vec![Affine::default(); size * (size + 1) / 2];
        (0..size).for_each(|i| rows[i * (i + 3) / 2].terms.push((bound, 1.0)));
        for (k, form) in self.forms.iter().enumerate() {
            for (at, x) in form {
                let (i, j) = ((at / size).min(at % size), (at / size).max(at % size));
                let x = if i == j { -x } else { -x * std::f64::consts::FRAC_1_SQRT_2 };
                let terms = &mut rows[j * (j + 1) / 2 + i].terms;
                match terms.last_mut() {
                    Some((column, sum)) if *column == first + k => *sum += x,
                    _ => terms.push((first + k, x)),
                }
            }
        }
        program.require(Cone::Semidefinite(size), rows);
    }

    /// v and the multipliers that a point of either program stands for, in the units of the problem.
    fn read(&self, form: &Form, point: &Point) -> (Vec<f64>, Multipliers) {
        let (compact, weights): (Vec<f64>, &[f64]) = match form {
            Form::Primal => (point.x[1..=self.entries.len()].to_vec(), &point.z[..self.forms.len()]),
            Form::Zoomed(v) => (v.iter().map(|v| v.at(&point.x)).collect(), &point.z[..self.forms.len()]),
            Form::Dual(_) if self.problem.semidefinite => (self.matrix(&point.z), &point.x[1..=self.forms.len()]),
            Form::Dual(substitution) => (substitution.multipliers(&point.z), &point.x[1..=self.forms.len()]),
        };
        let mut v = vec![0.0; self.problem.layout.len()];
        self.entries.iter().zip(compact).for_each(|(&j, x)| v[j] = x);
        let scaled: Vec<f64> = weights.iter().zip(&self.sizes).map(|(w, size)| w * self.unit / size).collect();
        let (rows, rest) = scaled.split_at(self.rows());
        let (kinks, cone) = rest.split_at(self.kinks());
        (v, Multipliers { rows: rows.to_vec(), kinks: kinks.to_vec(), cone: cone.to_vec() })
    }

    /// Moves v the shortest way onto the cone rows that it violates.
    fn repair(&self, mut v: Vec<f64>) -> Vec<f64> {
        let cone = &self.forms[self.rows() + self.kinks()..];
        for _ in 0..3 {
            let product = |form: &[(usize, f64)]| form.iter().map(|(at, x)| x * v[self.entries[*at]]).sum::<f64>();
            let violated: Vec<&[(usize, f64)]> = cone.iter().map(Vec::as_slice).filter(|form| product(form) < 0.0).collect();
            if violated.is_empty() || violated.len() > 1000 {
                break;
            }
            let mut rows = Matrix::zeros(violated.len(), self.entries.len());
            for (i, form) in violated.iter().enumerate() {
                form.iter().for_each(|(at, x)| rows[(i, *at)] = *x);
            }
            let mut gram = vec![0.0; violated.len() * violated.len()];
            matmul_nt(&mut gram, &rows.data, &rows.data, rows.rows, rows.cols, rows.rows);
            let mut steps: Vec<f64> = violated.iter().map(|form| -product(form)).collect();
            let mut cholesky = Cholesky::new(rows.rows);
            if cholesky.factor(&gram, 1e-13).is_err() {
                break;
            }
            cholesky.solve(&mut steps);
            for (form, step) in violated.iter().zip(steps) {
                form.iter().for_each(|(at, x)| v[self.entries[*at]] += step * x);
            }
        }
        v
    }

    /// The positive semidefinite matrix nearest to a scaled triangle.
    fn matrix(&self, triangle: &[f64]) -> Vec<f64> {
        let size = self.problem.layout.blocks()[0].rows;
        let mut out = vec![0.0; size * size];
        for ((i, j), x) in (0..size).flat_map(|j| (0..=j).map(move |i| (i, j))).zip(triangle) {
            let x = if i == j { *x } else { x * std::f64::consts::FRAC_1_SQRT_2 };
            out[i * size + j] = x;
            out[j * size + i] = x;
        }
        crate::linalg::symmetric_function(&out, size, |value| value.max(0.0)).unwrap_or(out)
    }
}

/// The best direction and the best multipliers seen so far, each by its own bound.
struct Best<'a> {
    problem: &'a MarginProblem,
    lower: f64,
    v: Vec<f64>,
    upper: f64,
    multipliers: Multipliers,
    /// Σp‖h‖_* of the best multipliers, the size below which rounding hides the upper bound.
    scale: f64,
}

impl<'a> Best<'a> {
    fn new(problem: &'a MarginProblem) -> Self {
        let (v, multipliers) = (vec![0.0; problem.layout.len()], Multipliers::default());
        Self { problem, lower: f64::NEG_INFINITY, v, upper: f64::INFINITY, multipliers, scale: 0.0 }
    }

    /// Takes whichever half is better.
    fn offer(&mut self, scaled: &Scaled, (v, multipliers): (Vec<f64>, Multipliers)) -> Result<(), ReferenceError> {
        let v = scaled.repair(v);
        let bracket = self.problem.bracket(&v, &multipliers)?;
        if bracket.lower > self.lower {
            (self.lower, self.v) = (bracket.lower, v);
        }
        if bracket.upper < self.upper {
            let total: f64 = multipliers.rows.iter().sum();
            self.scale = crate::linalg::dot(&multipliers.rows, &scaled.sizes[..scaled.rows()]) / total;
            (self.upper, self.multipliers) = (bracket.upper, multipliers);
        }
        Ok(())
    }

    fn gap(&self) -> f64 {
        (self.upper - self.lower) / self.upper.abs()
    }

    /// Whether the gap is at most `tolerance`, or the upper bound is 0 up to rounding.
    fn is_good(&self, tolerance: f64) -> bool {
        let rounding = 1e-16 * self.scale / self.upper.abs();
        self.gap() <= tolerance.max(rounding) || self.upper.abs() <= 0.1 * tolerance * self.scale
    }
}

/// Solves a margin problem with any norm: v, multipliers and iterations.
///
/// The form with fewer columns is solved first; if its gap stays above 1e-12 the other one is tried too, and the best
/// direction and multipliers of both are returned.
pub(in super::super) fn solve_margin_conic(
    problem: &MarginProblem,
) -> Result<(Vec<f64>, Multipliers, usize), ReferenceError> {
    let mut norm = problem.norm.build(&problem.layout)?;
    let scaled = Scaled::new(problem, &mut *norm);
    if let Some(row) = scaled.sizes[..scaled.rows()].iter().position(|size| *size == 0.0) {
        // a row of zeros: no margin is positive, and that row alone proves it
        let mut rows = vec![0.0; scaled.rows()];
        rows[row] = 1.0;
        let rest = (vec![0.0; scaled.kinks()], vec![0.0; problem.cone.len()]);
        return Ok((vec![0.0; problem.layout.len()], Multipliers { rows, kinks: rest.0, cone: rest.1 }, 0));
    }
    let ball = Part::of(&problem.norm, &problem.layout)?;
    let (dual, substitution) = scaled.dual(&ball);
    let mut forms = vec![(dual, Form::Dual(substitution))];
    if !problem.semidefinite {
        forms.push((scaled.primal(&ball, 1.0), Form::Primal));
        forms.sort_by_key(|(program, _)| program.objective.len());
    }
    let mut search = Search { scaled: &scaled, best: Best::new(problem), iterations: 0, failure: None };
    for solver in [Solver::Dense, Solver::General] {
        for (program, form) in &forms {
            if !search.best.is_good(GOOD) {
                search.attempt(solver, program, form)?;
            }
        }
        for _ in 0..ZOOMS {
            let unit = search.best.upper / scaled.unit;
            if search.best.is_good(GOOD) || problem.semidefinite || unit > 0.1 || scaled.entries.len() > WIDEST_ZOOM {
                break;
            }
            let before = search.best.gap();
            let (program, form) = scaled.zoomed(&ball, unit)?;
            search.attempt(solver, &program, &form)?;
            if search.best.gap() > 0.5 * before {
                break;
            }
        }
    }
    match search.failure {
        Some(error) if search.best.multipliers.rows.is_empty() => Err(error),
        _ => Ok((search.best.v, search.best.multipliers, search.iterations)),
    }
}

/// Several attempts at one problem.
struct Search<'a> {
    scaled: &'a Scaled<'a>,
    best: Best<'a>,
    iterations: usize,
    failure: Option<ReferenceError>,
}

impl Search<'_> {
    /// Solves and polishes one form.
    fn attempt(&mut self, solver: Solver, program: &Program, form: &Form) -> Result<(), ReferenceError> {
        let st = std::time::Instant::now();
        let (point, steps) = match solver.solve(program) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.failure = Some(error);
                return Ok(());
            }
        };
        self.iterations += steps;
        let t1 = st.elapsed().as_secs_f64(); let st = std::time::Instant::now();
        self.best.offer(self.scaled, self.scaled.read(form, &point))?;
        let raw = self.best.gap();
        let mut last = f64::INFINITY;
        polish(program, &point, STEPS, |point| {
            self.iterations += 1;
            let failed = self.best.offer(self.scaled, self.scaled.read(form, point)).is_err();
            let idle = self.best.gap() > 0.5 * last;
            last = self.best.gap();
            failed || self.best.is_good(ROUNDING) || (idle && self.best.is_good(GOOD))
        });
        if std::env::var("TRACE").is_ok() { println!("    {:.4} {:.4} {} {} {:e} {:e} raw {:e} steps {steps} {}", t1, st.elapsed().as_secs_f64(), match form {Form::Primal=>"P",Form::Dual(_)=>"D",_=>"Z"}, match solver {Solver::Dense => "own", _ => "clarabel" }, self.best.upper, self.best.gap(), raw, self.iterations); }
        Ok(())
    }
}
