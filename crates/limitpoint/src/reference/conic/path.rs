//! A dense path-following method for conic programs with few columns.
//!
//! It follows the central path s ∘ z = μe of a [`Program`] down to the accuracy from which Newton's method on the
//! active face ([`polish`](super::polish)) takes over, about 1e-7. Its linear systems have one row a column, whatever
//! the cones:
//!
//! ```text
//! (L + GᵀHG) dx − Eᵀy = Gᵀ(σμ s⁻¹ + H r − correction) − c,      E dx = −r_E,      r = s − (g + Gx)
//! ds = G dx − r,      dz = σμ s⁻¹ − z − H ds − correction
//! ```
//!
//! E are the rows of the zero cone. H is the scaling that turns ds into −dz:
//!
//! ```text
//! nonnegative     H = z/s
//! second order    H = β⁻²(2 u uᵀ − J), the scaling of Nesterov and Todd
//! semidefinite    H(dS) = sym(Z dS S⁻¹), the direction of Helmberg et al. 1996, Kojima et al. 1997 and Monteiro 1997
//! power           the smooth constraint t − ‖x‖_p = slack: H = y/slack on its gradient, L = y∇²‖x‖_p
//! ```
//!
//! Predictor and corrector are Mehrotra's (1992); the start is that of Vandenberghe 2010, "The CVXOPT linear and
//! quadratic cone program solvers". EᵀE is added to the matrix and to the right-hand side, which changes no solution
//! but keeps the matrix regular along the ray through x, where GᵀHG fades with μ.
//!
//! Stopping test: the distance to the end of the path is |Gᵀz − c|₂ plus ⟨s, z⟩/(1 + |⟨c, x⟩|) plus |s − g − Gx|_∞ of
//! every cone. The method ends when it is below `ENOUGH` or a hundred times the smallest seen, or has stopped falling,
//! and returns the nearest point; it knows nothing of infeasible programs and is allowed to fail.

use std::cell::RefCell;
use std::ops::Range;

use super::super::ReferenceError;
use super::dense::{add_outer, eliminate, places, power_curvature, power_slack};
use super::program::{Cone, Point, Program};
use super::section::{Scaling, Section};
use crate::linalg::{Cholesky, Matrix, add_scaled, dot, matmul, matmul_nt, max_abs, norm2};

/// Most steps.
const ITERATIONS: usize = 60;
/// Distance to the end of the path at which the method ends.
const ENOUGH: f64 = 1e-8;
/// Distance up to which the answer is worth polishing.
const USEFUL: f64 = 1e-3;
/// Steps that do not shorten the distance by a tenth after which it ends, not counting the first `GRACE`.
const PATIENCE: usize = 3;
const GRACE: usize = 10;
/// Columns up to which a dense factorisation is worth its time.
const WIDEST: usize = 2500;
/// Added to the diagonal of the reduced equations, for columns that nothing holds.
const REGULARISATION: f64 = 1e-10;
/// The method's state.
struct Path<'a> {
    program: &'a Program,
    x: Vec<f64>,
    sections: Vec<Section>,
}

/// A change of s and z of every section.
type Steps = Vec<(Vec<f64>, Vec<f64>)>;

/// A point near the end of the central path and the steps it took; an error if the method gave up too early.
pub(super) fn follow(program: &Program) -> Result<(Point, usize), ReferenceError> {
    let failed = |status: &str, iterations, gap| ReferenceError::NoConvergence {
        solver: "the dense path-following method",
        status: status.into(),
        iterations,
        gap,
        remedy: "rescale the data, or remove rows of very different sizes",
    };
    if program.width() > WIDEST {
        return Err(failed("more columns than a dense method can take", 0, f64::INFINITY));
    }
    let mut path = Path::start(program).ok_or_else(|| failed("no interior starting point", 0, f64::INFINITY))?;
    let (mut best, mut point, mut idle) = (f64::INFINITY, None, 0);
    for iteration in 0..ITERATIONS {
        let distance = path.distance();
        if !distance.is_finite() {
            break;
        }
        idle = if distance < 0.9 * best || iteration < GRACE { 0 } else { idle + 1 };
        if distance < best {
            (best, point) = (distance, Some((path.point(), iteration)));
        }
        if best < ENOUGH || idle > PATIENCE || distance > 100.0 * best || path.advance().is_none() {
            break;
        }
    }
    point.filter(|_| best < USEFUL).ok_or_else(|| failed("no more progress", ITERATIONS, best))
}

impl<'a> Path<'a> {
    /// The minimum of ⟨c, x⟩ + ½|g + Gx|² and the least-norm solution of Gᵀz = c, both moved into their cones.
    fn start(program: &'a Program) -> Option<Self> {
        let section = |(cone, rows): &(Cone, Range<usize>)| {
            let zeros = vec![0.0; rows.len()];
            Section { cone: *cone, rows: rows.clone(), z: zeros.clone(), s: zeros, scaling: Scaling::None }
        };
        let sections = program.sections.iter().map(section).collect();
        let mut path = Self { program, x: vec![0.0; program.objective.len()], sections };
        let mut matrix = Matrix::zeros(program.width(), program.width());
        let inside = program.sections.iter().filter(|(cone, _)| *cone != Cone::Zero);
        let weighted: Vec<(usize, f64)> = inside.flat_map(|(_, rows)| rows.clone()).map(|row| (row, 1.0)).collect();
        program.add_gram(&weighted, &mut matrix);
        let solver = Reduced::new(&path, matrix)?;
        let mut right: Vec<f64> = program.objective.iter().map(|c| -c).collect();
        let mut equalities = Vec::new();
        for section in &path.sections {
            let constants: Vec<f64> = program.rows[section.rows.clone()].iter().map(|row| -row.constant).collect();
            match section.cone {
                Cone::Zero => equalities.extend(constants),
                _ => program.pull(section.rows.clone(), &constants, &mut right),
            }
        }
        path.x = solver.solve(&right, &equalities).0;
        let (dual, _) = solver.solve(&program.objective, &vec![0.0; equalities.len()]);
        let both = |section: &Section| (path.values(section), path.image(section, &dual));
        let starts: Vec<_> = path.sections.iter().map(both).collect();
        for (section, (s, z)) in path.sections.iter_mut().zip(starts) {
            match section.cone {
                Cone::Zero => {}
                Cone::Power(p) => (section.s, section.z) = (vec![power_slack(&s, p).0.max(1.0)], vec![z[0].max(1.0)]),
                _ => {
                    section.s = section.inside(s)?;
                    section.z = section.inside(z)?;
                }
            }
        }
        Some(path)
    }

    /// g + Gx on the rows of a section.
    fn values(&self, section: &Section) -> Vec<f64> {
        self.program.rows[section.rows.clone()].iter().map(|row| row.at(&self.x)).collect()
    }

    /// G dx on the rows of a section.
    fn image(&self, section: &Section, dx: &[f64]) -> Vec<f64> {
        self.program.rows[section.rows.clone()].iter().map(|row| row.change(dx)).collect()
    }

    fn mu(&self) -> f64 {
        let sum: f64 = self.sections.iter().map(|section| dot(&section.s, &section.z)).sum();
        sum / self.sections.iter().map(Section::degree).sum::<f64>()
    }

    /// ⟨s + primal·ds, z + dual·dz⟩.
    fn product(&self, steps: &Steps, primal: f64, dual: f64) -> f64 {
        let moved =
            |v: &[f64], dv: &[f64], step: f64| v.iter().zip(dv).map(|(v, dv)| v + step * dv).collect::<Vec<f64>>();
        let one = |(section, (ds, dz)): (&Section, &(Vec<f64>, Vec<f64>))| {
            dot(&moved(&section.s, ds, primal), &moved(&section.z, dz, dual))
        };
        self.sections.iter().zip(steps).map(one).sum()
    }

    fn distance(&self) -> f64 {
        let mut dual: Vec<f64> = self.program.objective.iter().map(|c| -c).collect();
        let (mut primal, mut product) = (0.0, 0.0);
        for section in &self.sections {
            let values = self.values(section);
            primal += max_abs(&section.residual(&values));
            self.program.pull(section.rows.clone(), &section.spread(&values, &section.z), &mut dual);
            product += dot(&section.s, &section.z);
        }
        primal + norm2(&dual) + product / (1.0 + dot(&self.program.objective, &self.x).abs())
    }

    fn point(&self) -> Point {
        let z = self.sections.iter().flat_map(|section| section.spread(&self.values(section), &section.z)).collect();
        Point { x: self.x.clone(), z }
    }

    /// One predictor–corrector step.
    fn advance(&mut self) -> Option<()> {
        let n = self.x.len();
        let (mut matrix, mut weighted) = (Matrix::zeros(n, n), Vec::new());
        let values: Vec<Vec<f64>> = self.sections.iter().map(|section| self.values(section)).collect();
        for (section, values) in self.sections.iter_mut().zip(&values) {
            section.rescale(values)?;
        }
        for (section, values) in self.sections.iter().zip(&values) {
            self.schur(section, values, &mut matrix, &mut weighted);
        }
        self.program.add_gram(&weighted, &mut matrix);
        let solver = Reduced::new(self, matrix)?;
        let (_, affine) = self.direction(&solver, &values, 0.0, None);
        let (primal, dual) = self.room(&affine)?;
        // centring and caution as in SDPT3 (Toh, Todd and Tütüncü 1999): the less the predictor achieves, the more
        let least = primal.min(dual);
        let left = self.product(&affine, primal, dual) / self.product(&affine, 0.0, 0.0);
        let centring = left.clamp(0.0, 1.0).powf((3.0 * least * least).max(1.0)).max(1e-6);
        let (dx, steps) = self.direction(&solver, &values, centring * self.mu(), Some(&affine));
        let (primal, dual) = self.room(&steps)?;
        let caution = 0.9 + 0.09 * least;
        let (mut primal, mut dual) = (caution * primal, caution * dual);
        if self.sections.iter().any(|section| matches!(section.cone, Cone::Power(_))) {
            // the gradient of a norm belongs to x and its multiplier to z: they move together
            (primal, dual) = (primal.min(dual), primal.min(dual));
        }
        if primal.max(dual) < 1e-8 {
            return None;
        }
        add_scaled(&mut self.x, primal, &dx);
        for (section, (ds, dz)) in self.sections.iter_mut().zip(&steps) {
            add_scaled(&mut section.s, primal, ds);
            add_scaled(&mut section.z, dual, dz);
        }
        Some(())
    }

    /// Adds GᵀHG + L of one section; what is a weight of single rows is only noted.
    fn schur(&self, section: &Section, values: &[f64], matrix: &mut Matrix, weighted: &mut Vec<(usize, f64)>) {
        let outer = |slopes: &[f64], weight: f64, matrix: &mut Matrix| {
            let mut gradient = vec![0.0; self.x.len()];
            self.program.pull(section.rows.clone(), slopes, &mut gradient);
            add_outer(matrix, weight, &gradient);
        };
        let rows = section.rows.clone();
        match &section.scaling {
            Scaling::None => {}
            Scaling::Diagonal(h) => weighted.extend(rows.zip(h.iter().copied())),
            Scaling::Arrow(size, u) => {
                weighted.push((rows.start, -size));
                weighted.extend(rows.skip(1).map(|row| (row, *size)));
                outer(u, 2.0 * size, matrix);
            }
            Scaling::Smooth { p, slopes, ratio } => {
                outer(slopes, *ratio, matrix);
                let (factor, bends) = power_curvature(&values[1..], *p);
                let factor = section.z[0] * factor;
                weighted.extend(rows.skip(1).zip(bends.iter().map(|bend| factor * bend)));
                let mut inner = slopes.clone();
                inner[0] = 0.0;
                outer(&inner, -factor, matrix);
            }
            Scaling::Matrices(parts) => self.semidefinite(section, parts, matrix),
        }
    }

    /// Adds ⟨A_c, Z A_d S⁻¹⟩ for all columns c, d, where A_d is the matrix that column d multiplies.
    fn semidefinite(&self, section: &Section, parts: &[Matrix; 4], matrix: &mut Matrix) {
        let [z, inverse, ..] = parts;
        let size = z.rows;
        let mut columns: Vec<Vec<(usize, usize, f64)>> = vec![Vec::new(); self.x.len()];
        for ((i, j), row) in places(size).zip(&self.program.rows[section.rows.clone()]) {
            let scale = if i == j { 1.0 } else { std::f64::consts::FRAC_1_SQRT_2 };
            row.terms.iter().for_each(|(column, x)| columns[*column].push((i, j, scale * x)));
        }
        let used: Vec<usize> = (0..columns.len()).filter(|c| !columns[*c].is_empty()).collect();
        let (mut product, mut full) = (Matrix::zeros(size, size), Matrix::zeros(size, size));
        let mut half = vec![0.0; size * size];
        for (at, &d) in used.iter().enumerate() {
            if columns[d].len() > size {
                full.data.fill(0.0);
                for &(i, j, a) in &columns[d] {
                    full[(i, j)] = a;
                    full[(j, i)] = a;
                }
                matmul(&mut half, &z.data, &full.data, size, size, size);
                matmul(&mut product.data, &half, &inverse.data, size, size, size);
            } else {
                product.data.fill(0.0);
                for (&(i, j, a), k) in columns[d].iter().flat_map(|entry| (0..size).map(move |k| (entry, k))) {
                    add_scaled(product.row_mut(k), a * z[(k, i)], inverse.row(j));
                    if i != j {
                        add_scaled(product.row_mut(k), a * z[(k, j)], inverse.row(i));
                    }
                }
            }
            for &c in &used[..=at] {
                let sum: f64 = columns[c]
                    .iter()
                    .map(
                        |&(i, j, a)| if i == j { a * product[(i, i)] } else { a * (product[(i, j)] + product[(j, i)]) },
                    )
                    .sum();
                matrix[(c, d)] += sum;
                if c != d {
                    matrix[(d, c)] += sum;
                }
            }
        }
    }

    /// The step towards `target` = σμ, with the second-order correction of an earlier one.
    fn direction(
        &self,
        solver: &Reduced,
        values: &[Vec<f64>],
        target: f64,
        earlier: Option<&Steps>,
    ) -> (Vec<f64>, Steps) {
        let mut right: Vec<f64> = self.program.objective.iter().map(|c| -c).collect();
        let (mut equalities, mut prepared) = (Vec::new(), Vec::new());
        for (k, (section, values)) in self.sections.iter().zip(values).enumerate() {
            let residual = section.residual(values);
            if section.cone == Cone::Zero {
                equalities.extend_from_slice(&residual);
                prepared.push((residual, Vec::new()));
                continue;
            }
            let aim = section.aim(target, earlier.map(|steps| &steps[k]));
            let total: Vec<f64> = aim.iter().zip(section.apply(&residual)).map(|(a, b)| a + b).collect();
            self.program.pull(section.rows.clone(), &section.spread(values, &total), &mut right);
            prepared.push((residual, aim));
        }
        let (dx, multipliers) = solver.solve(&right, &equalities);
        let mut multipliers = multipliers.into_iter();
        let step = |(section, (residual, aim)): (&Section, (Vec<f64>, Vec<f64>))| {
            let change = |new: Vec<f64>| new.iter().zip(&section.z).map(|(new, old)| new - old).collect::<Vec<f64>>();
            if section.cone == Cone::Zero {
                return (vec![0.0; residual.len()], change(multipliers.by_ref().take(residual.len()).collect()));
            }
            let moved = section.gather(self.image(section, &dx));
            let ds: Vec<f64> = moved.iter().zip(&residual).map(|(a, r)| a - r).collect();
            let z = aim.iter().zip(section.apply(&ds)).map(|(aim, h)| aim - h).collect();
            (ds, change(z))
        };
        let steps = self.sections.iter().zip(prepared).map(step).collect();
        (dx, steps)
    }

    /// The largest primal and dual steps ≤ 1 that stay in the cones.
    fn room(&self, steps: &Steps) -> Option<(f64, f64)> {
        let mut room = (1.0_f64, 1.0_f64);
        for (section, (ds, dz)) in self.sections.iter().zip(steps) {
            let (primal, dual) = section.room(ds, dz, 1.0)?;
            room = (room.0.min(primal), room.1.min(dual));
        }
        Some(room)
    }
}

/// The reduced equations, factored.
struct Reduced {
    /// S = L + GᵀHG + EᵀE.
    cholesky: RefCell<Cholesky>,
    /// E and S⁻¹Eᵀ, by rows.
    equalities: Matrix,
    solved: Matrix,
    /// E S⁻¹Eᵀ.
    small: Matrix,
}

impl Reduced {
    fn new(path: &Path, mut matrix: Matrix) -> Option<Self> {
        let n = matrix.rows;
        let zero = path.sections.iter().filter(|section| section.cone == Cone::Zero);
        let rows: Vec<usize> = zero.flat_map(|section| section.rows.clone()).collect();
        let mut equalities = Matrix::zeros(rows.len(), n);
        for (k, row) in rows.iter().enumerate() {
            path.program.rows[*row].terms.iter().for_each(|(column, x)| equalities[(k, *column)] += x);
            add_outer(&mut matrix, 1.0, equalities.row(k));
        }
        (0..n).for_each(|i| matrix[(i, i)] += REGULARISATION);
        let mut cholesky = Cholesky::new(n);
        // a pivot that rounding made negative leaves its column where it is
        cholesky.factor(&matrix.data, f64::MIN_POSITIVE).ok()?;
        let mut solved = equalities.clone();
        (0..rows.len()).for_each(|k| cholesky.solve(solved.row_mut(k)));
        let mut small = Matrix::zeros(rows.len(), rows.len());
        matmul_nt(&mut small.data, &equalities.data, &solved.data, rows.len(), n, rows.len());
        Some(Self { cholesky: cholesky.into(), equalities, solved, small })
    }

    /// dx and y with (L + GᵀHG) dx − Eᵀy = right, E dx = equalities.
    fn solve(&self, right: &[f64], equalities: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut dx = right.to_vec();
        equalities.iter().enumerate().for_each(|(k, e)| add_scaled(&mut dx, *e, self.equalities.row(k)));
        self.cholesky.borrow_mut().solve(&mut dx);
        let mut y: Vec<f64> = (0..equalities.len()).map(|k| equalities[k] - dot(self.equalities.row(k), &dx)).collect();
        if eliminate(&mut self.small.clone(), &mut y).is_none() {
            y.fill(f64::NAN);
        }
        y.iter().enumerate().for_each(|(k, y)| add_scaled(&mut dx, *y, self.solved.row(k)));
        (dx, y)
    }
}

#[cfg(test)]
mod tests {
    use super::super::program::Affine;
    use super::*;

    #[test]
    fn one_program_with_every_cone_ends_where_it_should() {
        // min a + b + c + d over (a, 3, 4), ‖(1, 1)‖₃ ≤ b, [c 1; 1 1] ⪰ 0, d = e, e ≥ 2: 5 + 2^(1/3) + 1 + 2
        let mut program = Program::default();
        program.columns(5);
        program.objective = vec![1.0, 1.0, 1.0, 1.0, 0.0];
        program.require(Cone::SecondOrder, [Affine::term(0, 1.0), Affine::constant(3.0), Affine::constant(4.0)]);
        program.require(Cone::Power(3.0), [Affine::term(1, 1.0), Affine::constant(1.0), Affine::constant(1.0)]);
        let off = Affine::constant(std::f64::consts::SQRT_2);
        program.require(Cone::Semidefinite(2), [Affine::term(2, 1.0), off, Affine::constant(1.0)]);
        program.require(Cone::Zero, [Affine::term(3, 1.0).plus(4, -1.0)]);
        program.require(Cone::Nonnegative, [Affine::constant(-2.0).plus(4, 1.0)]);
        let (point, _) = follow(&program).unwrap();
        let expected = [5.0, 2.0_f64.cbrt(), 1.0, 2.0, 2.0];
        assert!(point.x.iter().zip(expected).all(|(x, e)| (x - e).abs() < 1e-6), "{:?}", point.x);
        // weights: those of the objective, slopes of the norms, [1 −1; −1 1], and 1 for the bound
        let slope = 2.0_f64.powf(-2.0 / 3.0);
        let weights = [1.0, -0.6, -0.8, 1.0, -slope, -slope, 1.0, -std::f64::consts::SQRT_2, 1.0, 1.0, 1.0];
        assert!(point.z.iter().zip(weights).all(|(z, e)| (z - e).abs() < 1e-3), "{:?}", point.z);
    }

    #[test]
    fn a_program_without_a_solution_is_given_up() {
        let mut program = Program::default();
        program.columns(1);
        program.require(Cone::Nonnegative, [Affine::constant(-1.0).plus(0, 1.0), Affine::constant(-1.0).plus(0, -1.0)]);
        assert!(follow(&program).is_err());
    }
}
