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
use super::arithmetic::Arithmetic;
use super::dense::{add_outer, eliminate, largest, places, power_curvature, power_slack};
use super::program::{Cone, Point, Program};
use super::section::{Scaling, Section};
use crate::linalg::{Factor, Scalar, Table};

/// Distance up to which the answer is worth polishing.
const USEFUL: f64 = 1e-3;
/// Steps that do not shorten the distance by a tenth after which it ends, not counting the first `GRACE`.
const PATIENCE: usize = 3;
const GRACE: usize = 10;
/// Columns up to which a dense factorisation is worth its time.
const WIDEST: usize = 2500;
/// The method's state.
struct Path<'a, T> {
    program: &'a Program,
    x: Vec<T>,
    sections: Vec<Section<T>>,
}

/// A change of s and z of every section.
type Steps<T> = Vec<(Vec<T>, Vec<T>)>;

/// A point near the end of the central path and the steps it took; an error if the method gave up too early.
pub(super) fn follow<T: Arithmetic>(program: &Program) -> Result<(Point<T>, usize), ReferenceError> {
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
    let mut path = Path::<T>::start(program).ok_or_else(|| failed("no interior starting point", 0, f64::INFINITY))?;
    let (mut best, mut point, mut idle) = (f64::INFINITY, None, 0);
    for iteration in 0..T::ITERATIONS {
        let distance = path.distance();
        if !distance.is_finite() {
            break;
        }
        idle = if distance < 0.9 * best || iteration < GRACE { 0 } else { idle + 1 };
        if distance < best {
            (best, point) = (distance, Some((path.point(), iteration)));
        }
        if best < T::ENOUGH || idle > PATIENCE || distance > 100.0 * best || path.advance().is_none() {
            break;
        }
    }
    point.filter(|_| best < USEFUL).ok_or_else(|| failed("no more progress", T::ITERATIONS, best))
}

impl<'a, T: Arithmetic> Path<'a, T> {
    /// The minimum of ⟨c, x⟩ + ½|g + Gx|² and the least-norm solution of Gᵀz = c, both moved into their cones.
    fn start(program: &'a Program) -> Option<Self> {
        let section = |(cone, rows): &(Cone, Range<usize>)| {
            let zeros = vec![T::default(); rows.len()];
            Section { cone: *cone, rows: rows.clone(), z: zeros.clone(), s: zeros, scaling: Scaling::None }
        };
        let sections = program.sections.iter().map(section).collect();
        let mut path = Self { program, x: vec![T::default(); program.objective.len()], sections };
        let mut matrix = Table::zeros(program.width(), program.width());
        let inside = program.sections.iter().filter(|(cone, _)| *cone != Cone::Zero);
        let weighted: Vec<(usize, T)> =
            inside.flat_map(|(_, rows)| rows.clone()).map(|row| (row, T::from(1.0))).collect();
        program.add_gram(&weighted, &mut matrix);
        let solver = Reduced::new(&path, matrix)?;
        let mut right: Vec<T> = program.objective.iter().map(|c| T::from(-c)).collect();
        let mut equalities = Vec::new();
        for section in &path.sections {
            let constants: Vec<T> =
                program.rows[section.rows.clone()].iter().map(|row| T::from(-row.constant)).collect();
            match section.cone {
                Cone::Zero => equalities.extend(constants),
                _ => program.pull(section.rows.clone(), &constants, &mut right),
            }
        }
        path.x = solver.solve(&right, &equalities).0;
        let objective: Vec<T> = program.objective.iter().map(|c| T::from(*c)).collect();
        let (dual, _) = solver.solve(&objective, &vec![T::default(); equalities.len()]);
        let both = |section: &Section<T>| (path.values(section), path.image(section, &dual));
        let starts: Vec<_> = path.sections.iter().map(both).collect();
        for (section, (s, z)) in path.sections.iter_mut().zip(starts) {
            match section.cone {
                Cone::Zero => {}
                Cone::Power(p) => {
                    let above = |x: T| vec![if x.value() > 1.0 { x } else { T::from(1.0) }];
                    (section.s, section.z) = (above(power_slack(&s, p).0), above(z[0]));
                }
                _ => {
                    section.s = section.inside(s)?;
                    section.z = section.inside(z)?;
                }
            }
        }
        Some(path)
    }

    /// g + Gx on the rows of a section.
    fn values(&self, section: &Section<T>) -> Vec<T> {
        self.program.rows[section.rows.clone()].iter().map(|row| row.at(&self.x)).collect()
    }

    /// G dx on the rows of a section.
    fn image(&self, section: &Section<T>, dx: &[T]) -> Vec<T> {
        self.program.rows[section.rows.clone()].iter().map(|row| row.change(dx)).collect()
    }

    /// ⟨s, z⟩.
    fn complementarity(&self) -> T {
        self.sections.iter().fold(T::default(), |sum, section| sum + T::dot(&section.s, &section.z))
    }

    fn mu(&self) -> T {
        self.complementarity() / T::from(self.sections.iter().map(Section::degree).sum::<f64>())
    }

    /// ⟨s + primal·ds, z + dual·dz⟩.
    fn product(&self, steps: &Steps<T>, primal: f64, dual: f64) -> f64 {
        let moved =
            |v: &[T], dv: &[T], step: f64| v.iter().zip(dv).map(|(v, dv)| *v + dv.times(step)).collect::<Vec<T>>();
        let one = |(section, (ds, dz)): (&Section<T>, &(Vec<T>, Vec<T>))| {
            T::dot(&moved(&section.s, ds, primal), &moved(&section.z, dz, dual))
        };
        self.sections.iter().zip(steps).map(one).fold(T::default(), |sum, x| sum + x).value()
    }

    fn distance(&self) -> f64 {
        let mut dual: Vec<T> = self.program.objective.iter().map(|c| T::from(-c)).collect();
        let (mut primal, mut value) = (0.0, T::default());
        for section in &self.sections {
            let values = self.values(section);
            primal += largest(&section.residual(&values)).value();
            self.program.pull(section.rows.clone(), &section.spread(&values, &section.z), &mut dual);
        }
        self.program.objective.iter().zip(&self.x).for_each(|(c, x)| value += x.times(*c));
        primal + T::norm2(&dual).value() + self.complementarity().value() / (1.0 + value.value().abs())
    }

    fn point(&self) -> Point<T> {
        let z = self.sections.iter().flat_map(|section| section.spread(&self.values(section), &section.z)).collect();
        Point { x: self.x.clone(), z }
    }

    /// One predictor–corrector step.
    fn advance(&mut self) -> Option<()> {
        let n = self.x.len();
        let (mut matrix, mut weighted) = (Table::zeros(n, n), Vec::new());
        let values: Vec<Vec<T>> = self.sections.iter().map(|section| self.values(section)).collect();
        for (section, values) in self.sections.iter_mut().zip(&values) {
            section.rescale(values)?;
        }
        for (section, values) in self.sections.iter().zip(&values) {
            self.schur(section, values, &mut matrix, &mut weighted);
        }
        self.program.add_gram(&weighted, &mut matrix);
        let solver = Reduced::new(self, matrix)?;
        let (_, affine) = self.direction(&solver, &values, T::default(), None);
        let (primal, dual) = self.room(&affine)?;
        // centring and caution as in SDPT3 (Toh, Todd and Tütüncü 1999): the less the predictor achieves, the more
        let least = primal.min(dual);
        let left = self.product(&affine, primal, dual) / self.product(&affine, 0.0, 0.0);
        let centring = left.clamp(0.0, 1.0).powf((3.0 * least * least).max(1.0)).max(1e-6);
        let (dx, steps) = self.direction(&solver, &values, self.mu().times(centring), Some(&affine));
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
        T::add_scaled(&mut self.x, T::from(primal), &dx);
        for (section, (ds, dz)) in self.sections.iter_mut().zip(&steps) {
            T::add_scaled(&mut section.s, T::from(primal), ds);
            T::add_scaled(&mut section.z, T::from(dual), dz);
        }
        Some(())
    }

    /// Adds GᵀHG + L of one section; what is a weight of single rows is only noted.
    fn schur(&self, section: &Section<T>, values: &[T], matrix: &mut Table<T>, weighted: &mut Vec<(usize, T)>) {
        let outer = |slopes: &[T], weight: T, matrix: &mut Table<T>| {
            let mut gradient = vec![T::default(); self.x.len()];
            self.program.pull(section.rows.clone(), slopes, &mut gradient);
            add_outer(matrix, weight, &gradient);
        };
        let rows = section.rows.clone();
        match &section.scaling {
            Scaling::None => {}
            Scaling::Diagonal(h) => weighted.extend(rows.zip(h.iter().copied())),
            Scaling::Arrow(size, u) => {
                weighted.push((rows.start, -*size));
                weighted.extend(rows.skip(1).map(|row| (row, *size)));
                outer(u, size.times(2.0), matrix);
            }
            Scaling::Smooth { p, slopes, ratio } => {
                outer(slopes, *ratio, matrix);
                let (factor, bends) = power_curvature(&values[1..], *p);
                let factor = section.z[0] * factor;
                weighted.extend(rows.skip(1).zip(bends.iter().map(|bend| factor * *bend)));
                let mut inner = slopes.clone();
                inner[0] = T::default();
                outer(&inner, -factor, matrix);
            }
            Scaling::Matrices(parts) => self.semidefinite(section, parts, matrix),
        }
    }

    /// Adds ⟨A_c, Z A_d S⁻¹⟩ for all columns c, d, where A_d is the matrix that column d multiplies.
    fn semidefinite(&self, section: &Section<T>, parts: &[Table<T>; 4], matrix: &mut Table<T>) {
        let [z, inverse, ..] = parts;
        let size = z.rows;
        let half = T::from(0.5).root();
        let mut columns: Vec<Vec<(usize, usize, T)>> = vec![Vec::new(); self.x.len()];
        for ((i, j), row) in places(size).zip(&self.program.rows[section.rows.clone()]) {
            let scale = if i == j { T::from(1.0) } else { half };
            row.terms.iter().for_each(|(column, x)| columns[*column].push((i, j, scale.times(*x))));
        }
        let used: Vec<usize> = (0..columns.len()).filter(|c| !columns[*c].is_empty()).collect();
        let (mut product, mut full) = (Table::zeros(size, size), Table::zeros(size, size));
        let mut between = vec![T::default(); size * size];
        for (at, &d) in used.iter().enumerate() {
            if columns[d].len() > size {
                full.data.fill(T::default());
                for &(i, j, a) in &columns[d] {
                    full[(i, j)] = a;
                    full[(j, i)] = a;
                }
                T::matmul(&mut between, &z.data, &full.data, size, size, size);
                T::matmul(&mut product.data, &between, &inverse.data, size, size, size);
            } else {
                product.data.fill(T::default());
                for (&(i, j, a), k) in columns[d].iter().flat_map(|entry| (0..size).map(move |k| (entry, k))) {
                    T::add_scaled(product.row_mut(k), a * z[(k, i)], inverse.row(j));
                    if i != j {
                        T::add_scaled(product.row_mut(k), a * z[(k, j)], inverse.row(i));
                    }
                }
            }
            for &c in &used[..=at] {
                let sum = columns[c].iter().fold(T::default(), |sum, &(i, j, a)| {
                    sum + a * if i == j { product[(i, i)] } else { product[(i, j)] + product[(j, i)] }
                });
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
        solver: &Reduced<T>,
        values: &[Vec<T>],
        target: T,
        earlier: Option<&Steps<T>>,
    ) -> (Vec<T>, Steps<T>) {
        let mut right: Vec<T> = self.program.objective.iter().map(|c| T::from(-c)).collect();
        let (mut equalities, mut prepared) = (Vec::new(), Vec::new());
        for (k, (section, values)) in self.sections.iter().zip(values).enumerate() {
            let residual = section.residual(values);
            if section.cone == Cone::Zero {
                equalities.extend_from_slice(&residual);
                prepared.push((residual, Vec::new()));
                continue;
            }
            let aim = section.aim(target, earlier.map(|steps| &steps[k]));
            let total: Vec<T> = aim.iter().zip(section.apply(&residual)).map(|(a, b)| *a + b).collect();
            self.program.pull(section.rows.clone(), &section.spread(values, &total), &mut right);
            prepared.push((residual, aim));
        }
        let (dx, multipliers) = solver.solve(&right, &equalities);
        let mut multipliers = multipliers.into_iter();
        let step = |(section, (residual, aim)): (&Section<T>, (Vec<T>, Vec<T>))| {
            let change = |new: Vec<T>| new.iter().zip(&section.z).map(|(new, old)| *new - *old).collect::<Vec<T>>();
            if section.cone == Cone::Zero {
                return (
                    vec![T::default(); residual.len()],
                    change(multipliers.by_ref().take(residual.len()).collect()),
                );
            }
            let moved = section.gather(self.image(section, &dx));
            let ds: Vec<T> = moved.iter().zip(&residual).map(|(a, r)| *a - *r).collect();
            let z = aim.iter().zip(section.apply(&ds)).map(|(aim, h)| *aim - h).collect();
            (ds, change(z))
        };
        let steps = self.sections.iter().zip(prepared).map(step).collect();
        (dx, steps)
    }

    /// The largest primal and dual steps ≤ 1 that stay in the cones.
    fn room(&self, steps: &Steps<T>) -> Option<(f64, f64)> {
        let mut room = (1.0_f64, 1.0_f64);
        for (section, (ds, dz)) in self.sections.iter().zip(steps) {
            let (primal, dual) = section.room(ds, dz, 1.0)?;
            room = (room.0.min(primal), room.1.min(dual));
        }
        Some(room)
    }
}

/// The reduced equations, factored.
struct Reduced<T: Scalar> {
    /// S = L + GᵀHG + EᵀE.
    cholesky: RefCell<T::Factor>,
    /// E and S⁻¹Eᵀ, by rows.
    equalities: Table<T>,
    solved: Table<T>,
    /// E S⁻¹Eᵀ.
    small: Table<T>,
}

impl<T: Arithmetic> Reduced<T> {
    fn new(path: &Path<T>, mut matrix: Table<T>) -> Option<Self> {
        let n = matrix.rows;
        let zero = path.sections.iter().filter(|section| section.cone == Cone::Zero);
        let rows: Vec<usize> = zero.flat_map(|section| section.rows.clone()).collect();
        let mut equalities = Table::zeros(rows.len(), n);
        for (k, row) in rows.iter().enumerate() {
            path.program.rows[*row].terms.iter().for_each(|(column, x)| equalities[(k, *column)] += T::from(*x));
            add_outer(&mut matrix, T::from(1.0), equalities.row(k));
        }
        (0..n).for_each(|i| matrix[(i, i)] += T::from(T::REGULARISATION));
        // a pivot that rounding made negative leaves its column where it is
        let mut cholesky = T::Factor::of(&matrix.data, n, f64::MIN_POSITIVE).ok()?;
        let mut solved = equalities.clone();
        (0..rows.len()).for_each(|k| cholesky.solve(solved.row_mut(k)));
        let mut small = Table::zeros(rows.len(), rows.len());
        T::matmul(&mut small.data, &equalities.data, &solved.transpose().data, rows.len(), n, rows.len());
        Some(Self { cholesky: cholesky.into(), equalities, solved, small })
    }

    /// dx and y with (L + GᵀHG) dx − Eᵀy = right, E dx = equalities.
    fn solve(&self, right: &[T], equalities: &[T]) -> (Vec<T>, Vec<T>) {
        let mut dx = right.to_vec();
        equalities.iter().enumerate().for_each(|(k, e)| T::add_scaled(&mut dx, *e, self.equalities.row(k)));
        self.cholesky.borrow_mut().solve(&mut dx);
        let mut y: Vec<T> =
            (0..equalities.len()).map(|k| equalities[k] - T::dot(self.equalities.row(k), &dx)).collect();
        if eliminate(&mut self.small.clone(), &mut y).is_none() {
            y.fill(T::from(f64::NAN));
        }
        y.iter().enumerate().for_each(|(k, y)| T::add_scaled(&mut dx, *y, self.solved.row(k)));
        (dx, y)
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
