//! A dense path-following method for conic programs with few columns.
//!
//! It follows the central path s ∘ z = μe of a [`Program`] down to the accuracy from which Newton's method on the active
//! face ([`polish`](super::polish)) takes over, about 1e-7. Its linear systems have one row a column, whatever the cones:
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
//! semidefinite    H(dS) = sym(Z dS S⁻¹), the direction of Helmberg, Rendl, Vanderbei and Wolkowicz, Kojima et al., Monteiro
//! power           the smooth constraint t − ‖x‖_p = slack: H = y/slack on its gradient, L = y∇²‖x‖_p
//! ```
//!
//! Predictor and corrector are Mehrotra's. Every step either shortens the distance to the path's end or the method gives
//! up: it knows nothing of infeasible programs and is allowed to fail, since the general solver stands behind it.

use std::ops::Range;

use super::polish::{eliminate, power_norm, square};
use super::program::{Cone, Point, Program};
use crate::linalg::{Cholesky, Eigen, Matrix, add_scaled, dot, matmul, matmul_tn, norm2};

/// Most steps.
const ITERATIONS: usize = 60;
/// Distance to the end of the path at which the method ends.
const ENOUGH: f64 = 1e-8;
/// Distance up to which the answer is worth polishing.
const USEFUL: f64 = 1e-4;
/// Steps without half the distance after which it ends.
const PATIENCE: usize = 3;
/// Columns up to which a dense factorisation is worth its time.
const WIDEST: usize = 2500;
/// A row counts as dense if it has more than one in so many columns.
const MANY: usize = 4;
/// Fraction of the way to the boundary of the cone.
const CAUTION: f64 = 0.98;

/// One section with its present s, z and scaling.
struct Section {
    cone: Cone,
    rows: Range<usize>,
    /// s; for a power section only the slack.
    s: Vec<f64>,
    /// z; for a power section only the multiplier.
    z: Vec<f64>,
    scaling: Scaling,
}

/// H of the present point.
enum Scaling {
    /// Not there: the zero cone.
    None,
    /// z/s.
    Diagonal(Vec<f64>),
    /// β⁻² and u.
    Arrow(f64, Vec<f64>),
    /// Z, S⁻¹ and the Cholesky factors' inverses of S and Z.
    Matrices(Box<[Matrix; 4]>),
    /// The slopes of t − ‖x‖_p on the rows, and y/slack.
    Smooth(Vec<f64>, f64),
}

/// The method's state.
struct Path<'a> {
    program: &'a Program,
    x: Vec<f64>,
    sections: Vec<Section>,
}

/// A change of s and z of every section.
type Steps = Vec<(Vec<f64>, Vec<f64>)>;

/// A point near the end of the central path and the steps it took, or nothing.
pub(super) fn follow(program: &Program) -> Option<(Point, usize)> {
    let n = program.objective.len();
    if n > WIDEST {
        return None;
    }
    let mut path = Path::start(program)?;
    let (mut best, mut point, mut idle) = (f64::INFINITY, None, 0);
    for iteration in 0..ITERATIONS {
        let distance = path.distance();
        if std::env::var("TRACE2").is_ok() { println!("        {iteration} {distance:e} {:e}", path.mu()); }
        idle = if distance < 0.5 * best || iteration < 10 { 0 } else { idle + 1 };
        if distance < best {
            (best, point) = (distance, Some((path.point(), iteration)));
        }
        if best < ENOUGH || idle > PATIENCE || distance > 100.0 * best || path.advance().is_none() {
            break;
        }
    }
    point.filter(|_| best < USEFUL)
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
        let n = path.x.len();
        let mut matrix = Matrix::zeros(n, n);
        let inside = program.sections.iter().filter(|(cone, _)| *cone != Cone::Zero);
        let weighted: Vec<(usize, f64)> = inside.flat_map(|(_, rows)| rows.clone()).map(|row| (row, 1.0)).collect();
        path.add_rows(&weighted, &mut matrix);
        let solver = Reduced::new(&path, matrix)?;
        let mut right: Vec<f64> = program.objective.iter().map(|c| -c).collect();
        let mut equalities = Vec::new();
        for section in &path.sections {
            let constants: Vec<f64> = program.rows[section.rows.clone()].iter().map(|row| -row.constant).collect();
            match section.cone {
                Cone::Zero => equalities.extend(constants),
                _ => path.pull(section, &constants, &mut right),
            }
        }
        path.x = solver.solve(&right, &equalities).0;
        let (dual, _) = solver.solve(&program.objective, &vec![0.0; equalities.len()]);
        let starts: Vec<_> = path.sections.iter().map(|section| (path.values(section, &path.x), path.image(section, &dual))).collect();
        for (section, (s, z)) in path.sections.iter_mut().zip(starts) {
            match section.cone {
                Cone::Zero => {}
                Cone::Power(p) => (section.s, section.z) = (vec![smooth(&s, p).0.max(1.0)], vec![z[0].max(1.0)]),
                _ => {
                    section.s = section.inside(s)?;
                    section.z = section.inside(z)?;
                }
            }
        }
        Some(path)
    }

    /// g + Gx on the rows of a section.
    fn values(&self, section: &Section, x: &[f64]) -> Vec<f64> {
        self.program.rows[section.rows.clone()].iter().map(|row| row.at(x)).collect()
    }

    /// G dx on the rows of a section.
    fn image(&self, section: &Section, dx: &[f64]) -> Vec<f64> {
        let rows = &self.program.rows[section.rows.clone()];
        rows.iter().map(|row| row.terms.iter().map(|(column, x)| x * dx[*column]).sum()).collect()
    }

    /// out += Gᵀw of a section.
    fn pull(&self, section: &Section, w: &[f64], out: &mut [f64]) {
        for (row, w) in self.program.rows[section.rows.clone()].iter().zip(w).filter(|(_, w)| **w != 0.0) {
            row.terms.iter().for_each(|(column, x)| out[*column] += w * x);
        }
    }

    fn mu(&self) -> f64 {
        let (sum, degree) = self.sections.iter().fold((0.0, 0.0), |(sum, degree), section| {
            (sum + dot(&section.s, &section.z), degree + section.degree())
        });
        sum / degree
    }

    /// The larger of the relative residuals and the complementarity.
    fn distance(&self) -> f64 {
        let mut dual = self.program.objective.clone();
        let (mut primal, mut product) = (0.0_f64, 0.0);
        for section in &self.sections {
            let values = self.values(section, &self.x);
            match section.cone {
                Cone::Power(p) => {
                    let (slack, slopes) = smooth(&values, p);
                    primal = primal.max((slack - section.s[0]).abs());
                    let weights: Vec<f64> = slopes.iter().map(|slope| -section.z[0] * slope).collect();
                    self.pull(section, &weights, &mut dual);
                }
                _ => {
                    let worst = values.iter().zip(&section.s).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    primal = primal.max(worst);
                    let weights: Vec<f64> = section.z.iter().map(|z| -z).collect();
                    self.pull(section, &weights, &mut dual);
                }
            }
            if section.cone != Cone::Zero {
                product += dot(&section.s, &section.z);
            }
        }
        let scale = 1.0 + dot(&self.program.objective, &self.x).abs();
        primal.max(norm2(&dual)).max(product / scale)
    }

    fn point(&self) -> Point {
        let mut z = vec![0.0; self.program.rows.len()];
        for section in &self.sections {
            match section.cone {
                Cone::Power(p) => {
                    let slopes = smooth(&self.values(section, &self.x), p).1;
                    add_scaled(&mut z[section.rows.clone()], section.z[0], &slopes);
                }
                _ => z[section.rows.clone()].copy_from_slice(&section.z),
            }
        }
        Point { x: self.x.clone(), z }
    }

    /// One predictor–corrector step.
    fn advance(&mut self) -> Option<()> {
        let n = self.x.len();
        let mut matrix = Matrix::zeros(n, n);
        let mut weighted = Vec::new();
        let x = self.x.clone();
        let mut sections = std::mem::take(&mut self.sections);
        for section in &mut sections {
            section.rescale(&self.values(section, &x))?;
            self.schur(section, &mut matrix, &mut weighted);
        }
        self.add_rows(&weighted, &mut matrix);
        self.sections = sections;
        let solver = Reduced::new(self, matrix)?;
        let mu = self.mu();
        let (_, affine) = self.direction(&solver, 0.0, None);
        let (primal, dual) = self.room(&affine)?;
        let centring = (1.0 - primal.min(dual)).powi(3).clamp(1e-6, 1.0);
        let (dx, steps) = self.direction(&solver, centring * mu, Some(&affine));
        let (primal, dual) = self.room(&steps)?;
        let (mut primal, mut dual) = ((CAUTION * primal).min(1.0), (CAUTION * dual).min(1.0));
        if self.sections.iter().any(|section| matches!(section.cone, Cone::Power(_))) {
            primal = primal.min(dual);
            dual = primal;
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
    fn schur(&self, section: &Section, matrix: &mut Matrix, weighted: &mut Vec<(usize, f64)>) {
        let n = self.x.len();
        let outer = |slopes: &[f64], weight: f64, matrix: &mut Matrix| {
            let mut gradient = vec![0.0; n];
            self.pull(section, slopes, &mut gradient);
            super::polish::add_outer(matrix, weight, &gradient);
        };
        match &section.scaling {
            Scaling::None => {}
            Scaling::Diagonal(h) => section.rows.clone().zip(h).for_each(|(row, h)| weighted.push((row, *h))),
            Scaling::Arrow(size, u) => {
                section.rows.clone().skip(1).for_each(|row| weighted.push((row, *size)));
                weighted.push((section.rows.start, -size));
                outer(u, 2.0 * size, matrix);
            }
            Scaling::Smooth(slopes, ratio) => {
                outer(slopes, *ratio, matrix);
                let Cone::Power(p) = section.cone else { return };
                let values = self.values(section, &self.x);
                let size = power_norm(&values[1..], p);
                let factor = section.z[0] * (p - 1.0) / size;
                for (row, value) in section.rows.clone().zip(&values).skip(1) {
                    weighted.push((row, factor * (value.abs() / size).max(1e-8).powf(p - 2.0)));
                }
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
        let places = (0..size).flat_map(|j| (0..=j).map(move |i| (i, j)));
        for ((i, j), row) in places.zip(&self.program.rows[section.rows.clone()]) {
            let scale = if i == j { 1.0 } else { std::f64::consts::FRAC_1_SQRT_2 };
            row.terms.iter().for_each(|(column, x)| columns[*column].push((i, j, scale * x)));
        }
        let used: Vec<usize> = (0..columns.len()).filter(|c| !columns[*c].is_empty()).collect();
        let (mut product, mut half, mut full) = (Matrix::zeros(size, size), vec![0.0; size * size], Matrix::zeros(size, size));
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
                for &(i, j, a) in &columns[d] {
                    for k in 0..size {
                        add_scaled(product.row_mut(k), a * z[(k, i)], inverse.row(j));
                        if i != j {
                            add_scaled(product.row_mut(k), a * z[(k, j)], inverse.row(i));
                        }
                    }
                }
            }
            for &c in &used[..=at] {
                let sum: f64 = columns[c]
                    .iter()
                    .map(|&(i, j, a)| if i == j { a * product[(i, i)] } else { a * (product[(i, j)] + product[(j, i)]) })
                    .sum();
                matrix[(c, d)] += sum;
                if c != d {
                    matrix[(d, c)] += sum;
                }
            }
        }
    }

    /// Adds Σ weight · row rowᵀ, the rows with many terms as one product.
    fn add_rows(&self, weighted: &[(usize, f64)], matrix: &mut Matrix) {
        let n = self.x.len();
        let (dense, sparse): (Vec<_>, Vec<_>) =
            weighted.iter().partition(|(row, weight)| self.program.rows[*row].terms.len() * MANY > n && *weight >= 0.0);
        for (row, weight) in sparse {
            let terms = &self.program.rows[row].terms;
            for (i, a) in terms {
                terms.iter().for_each(|(j, b)| matrix[(*i, *j)] += weight * a * b);
            }
        }
        let mut rows = Matrix::zeros(dense.len(), n);
        for (i, (row, weight)) in dense.into_iter().enumerate() {
            let root = weight.sqrt();
            self.program.rows[row].terms.iter().for_each(|(column, x)| rows.data[i * n + column] += root * x);
        }
        let mut product = vec![0.0; n * n];
        matmul_tn(&mut product, &rows.data, &rows.data, n, rows.rows, n);
        add_scaled(&mut matrix.data, 1.0, &product);
    }

    /// The step towards σμ, with the second-order correction of an earlier one.
    fn direction(&self, solver: &Reduced, target: f64, earlier: Option<&Steps>) -> (Vec<f64>, Steps) {
        let mut right: Vec<f64> = self.program.objective.iter().map(|c| -c).collect();
        let mut equalities = Vec::new();
        let mut prepared = Vec::new();
        for (k, section) in self.sections.iter().enumerate() {
            let values = self.values(section, &self.x);
            if section.cone == Cone::Zero {
                equalities.extend(values.iter().map(|value| -value));
                prepared.push((Vec::new(), Vec::new()));
                continue;
            }
            let residual = section.residual(&values);
            let mut aim = section.aim(target, earlier.map(|steps| &steps[k]));
            let lifted = section.apply(&residual);
            let total: Vec<f64> = aim.iter().zip(&lifted).map(|(a, b)| a + b).collect();
            match &section.scaling {
                Scaling::Smooth(slopes, _) => {
                    let weights: Vec<f64> = slopes.iter().map(|slope| slope * total[0]).collect();
                    self.pull(section, &weights, &mut right);
                }
                _ => self.pull(section, &total, &mut right),
            }
            aim.iter_mut().zip(&section.z).for_each(|(aim, z)| *aim -= z);
            prepared.push((residual, aim));
        }
        let (dx, multipliers) = solver.solve(&right, &equalities);
        let mut used = 0;
        let steps = self.sections.iter().zip(prepared).map(|(section, (residual, mut dz))| {
            if section.cone == Cone::Zero {
                let count = section.rows.len();
                let change = multipliers[used..used + count].iter().zip(&section.z).map(|(new, old)| new - old).collect();
                used += count;
                return (vec![0.0; count], change);
            }
            let image = self.image(section, &dx);
            let moved = match &section.scaling {
                Scaling::Smooth(slopes, _) => vec![dot(slopes, &image)],
                _ => image,
            };
            let ds: Vec<f64> = moved.iter().zip(&residual).map(|(a, r)| a - r).collect();
            section.apply(&ds).iter().zip(&mut dz).for_each(|(h, dz)| *dz -= h);
            (ds, dz)
        });
        let steps = steps.collect();
        (dx, steps)
    }

    /// The largest primal and dual steps ≤ 1 that stay in the cones.
    fn room(&self, steps: &Steps) -> Option<(f64, f64)> {
        let mut room = (1.0_f64, 1.0_f64);
        for (section, (ds, dz)) in self.sections.iter().zip(steps) {
            let (primal, dual) = section.room(ds, dz)?;
            room = (room.0.min(primal), room.1.min(dual));
        }
        Some(room)
    }
}

impl Section {
    fn degree(&self) -> f64 {
        match self.cone {
            Cone::Zero => 0.0,
            Cone::Nonnegative => self.rows.len() as f64,
            Cone::SecondOrder => 2.0,
            Cone::Power(_) => 1.0,
            Cone::Semidefinite(size) => size as f64,
        }
    }

    /// v, moved along the unit of the cone until it is well inside.
    fn inside(&self, mut v: Vec<f64>) -> Option<Vec<f64>> {
        let (unit, smallest): (Vec<usize>, f64) = match self.cone {
            Cone::SecondOrder => (vec![0], v[0] - norm2(&v[1..])),
            Cone::Semidefinite(size) => {
                let mut eigen = Eigen::new(size);
                eigen.factor(&square(&v, size).data).ok()?;
                ((0..size).map(|i| i * (i + 3) / 2).collect(), eigen.values()[0])
            }
            _ => ((0..v.len()).collect(), v.iter().copied().fold(f64::INFINITY, f64::min)),
        };
        if smallest < 1e-2 {
            unit.iter().for_each(|i| v[*i] += 1.0 - smallest);
        }
        Some(v)
    }

    /// s − (g + Gx).
    fn residual(&self, values: &[f64]) -> Vec<f64> {
        match self.cone {
            Cone::Power(p) => vec![self.s[0] - smooth(values, p).0],
            _ => self.s.iter().zip(values).map(|(s, value)| s - value).collect(),
        }
    }

    /// Finds H.
    fn rescale(&mut self, values: &[f64]) -> Option<()> {
        self.scaling = match self.cone {
            Cone::Zero => Scaling::None,
            Cone::Nonnegative => Scaling::Diagonal(self.s.iter().zip(&self.z).map(|(s, z)| z / s).collect()),
            Cone::Power(p) => Scaling::Smooth(smooth(values, p).1, self.z[0] / self.s[0]),
            Cone::SecondOrder => {
                let length = |v: &[f64]| {
                    let rest = norm2(&v[1..]);
                    ((v[0] - rest) * (v[0] + rest)).sqrt()
                };
                let (a, b) = (length(&self.s), length(&self.z));
                if !(a > 0.0 && b > 0.0) {
                    return None;
                }
                let product = dot(&self.s, &self.z) / (a * b);
                let gamma = (0.5 * (1.0 + product)).sqrt();
                // w̄ = (s̃ + J z̃)/2γ and u = J w̄
                let u = self.s.iter().zip(&self.z).enumerate().map(|(i, (s, z))| {
                    let sign = if i == 0 { 1.0 } else { -1.0 };
                    sign * (s / a + sign * z / b) / (2.0 * gamma)
                });
                Scaling::Arrow(b / a, u.collect())
            }
            Cone::Semidefinite(size) => {
                let (s, z) = (square(&self.s, size), square(&self.z, size));
                let (left, right) = (inverse_factor(&s)?, inverse_factor(&z)?);
                let mut inverse = Matrix::zeros(size, size);
                matmul_tn(&mut inverse.data, &left.data, &left.data, size, size, size);
                Scaling::Matrices(Box::new([z, inverse, left, right]))
            }
        };
        Some(())
    }

    /// H v.
    fn apply(&self, v: &[f64]) -> Vec<f64> {
        match &self.scaling {
            Scaling::None => vec![0.0; v.len()],
            Scaling::Diagonal(h) => h.iter().zip(v).map(|(h, v)| h * v).collect(),
            Scaling::Smooth(_, ratio) => vec![ratio * v[0]],
            Scaling::Arrow(size, u) => {
                let along = 2.0 * dot(u, v);
                let mut out: Vec<f64> = u.iter().zip(v).map(|(u, v)| size * (along * u + v)).collect();
                out[0] -= 2.0 * size * v[0];
                out
            }
            Scaling::Matrices(parts) => sandwich(&parts[0], v, &parts[1]),
        }
    }

    /// σμ s⁻¹ minus the correction of an earlier step.
    fn aim(&self, target: f64, earlier: Option<&(Vec<f64>, Vec<f64>)>) -> Vec<f64> {
        match (&self.scaling, self.cone) {
            (Scaling::Matrices(parts), Cone::Semidefinite(size)) => {
                let mut out: Vec<f64> = triangle_of(&parts[1]).iter().map(|x| target * x).collect();
                if let Some((ds, dz)) = earlier {
                    let correction = sandwich(&square(dz, size), ds, &parts[1]);
                    out.iter_mut().zip(correction).for_each(|(out, x)| *out -= x);
                }
                out
            }
            (Scaling::Arrow(size, u), Cone::SecondOrder) => {
                let rest = norm2(&self.s[1..]);
                let length = (self.s[0] - rest) * (self.s[0] + rest);
                let mut out: Vec<f64> = self.s.iter().map(|s| -target * s / length).collect();
                out[0] = -out[0];
                if let Some((ds, dz)) = earlier {
                    let correction = arrow_correction(*size, u, (&self.z, ds, dz));
                    out.iter_mut().zip(correction).for_each(|(out, x)| *out -= x);
                }
                out
            }
            _ => {
                let mut out: Vec<f64> = self.s.iter().map(|s| target / s).collect();
                if let Some((ds, dz)) = earlier {
                    out.iter_mut().zip(ds.iter().zip(dz).zip(&self.s)).for_each(|(out, ((ds, dz), s))| *out -= ds * dz / s);
                }
                out
            }
        }
    }

    /// The largest steps ≤ 1/CAUTION along ds and dz that stay in the cone.
    fn room(&self, ds: &[f64], dz: &[f64]) -> Option<(f64, f64)> {
        let most = CAUTION.recip();
        Some(match (&self.scaling, self.cone) {
            (_, Cone::Zero) => (most, most),
            (Scaling::Matrices(parts), Cone::Semidefinite(size)) => {
                let room = |factor: &Matrix, step: &[f64]| {
                    let mut half = vec![0.0; size * size];
                    let mut full = vec![0.0; size * size];
                    matmul(&mut half, &factor.data, &square(step, size).data, size, size, size);
                    crate::linalg::matmul_nt(&mut full, &half, &factor.data, size, size, size);
                    let mut eigen = Eigen::new(size);
                    eigen.factor(&full).ok()?;
                    let smallest = eigen.values()[0];
                    Some(if smallest < 0.0 { (-smallest.recip()).min(most) } else { most })
                };
                (room(&parts[2], ds)?, room(&parts[3], dz)?)
            }
            (_, Cone::SecondOrder) => (arrow_room(&self.s, ds, most), arrow_room(&self.z, dz, most)),
            _ => {
                let room = |v: &[f64], dv: &[f64]| {
                    v.iter().zip(dv).filter(|(_, dv)| **dv < 0.0).map(|(v, dv)| -v / dv).fold(most, f64::min)
                };
                (room(&self.s, ds), room(&self.z, dz))
            }
        })
    }
}

/// W⁻¹(λ \\ ((W⁻¹ds) ∘ (W dz))) of a second-order cone, with H = W⁻² and λ = Wz.
///
/// ```text
/// W = β(2 v vᵀ − J),   v = (w̄ + e)/√(2(w̄₀ + 1)),   u = J w̄,   H = β⁻²(2 u uᵀ − J)
/// ```
///
/// (Vandenberghe 2010, "The CVXOPT linear and quadratic cone program solvers", section 4.)
fn arrow_correction(size: f64, u: &[f64], (z, ds, dz): (&[f64], &[f64], &[f64])) -> Vec<f64> {
    let beta = size.sqrt().recip();
    let root = (2.0 * (u[0] + 1.0)).sqrt();
    // `sign` −1 turns w̄ into u, W/β into βW⁻¹
    let reflect = |x: &[f64], sign: f64, factor: f64| {
        let v = |i: usize| if i == 0 { (u[0] + 1.0) / root } else { -sign * u[i] / root };
        let along: f64 = 2.0 * x.iter().enumerate().map(|(i, x)| v(i) * x).sum::<f64>();
        let entry = |(i, x): (usize, &f64)| factor * (along * v(i) + if i == 0 { -x } else { *x });
        x.iter().enumerate().map(entry).collect::<Vec<f64>>()
    };
    let (a, b, lambda) = (reflect(ds, -1.0, beta.recip()), reflect(dz, 1.0, beta), reflect(z, 1.0, beta));
    let first = dot(&a, &b);
    let rest: Vec<f64> = a[1..].iter().zip(&b[1..]).map(|(x, y)| b[0] * x + a[0] * y).collect();
    let length = norm2(&lambda[1..]);
    let head = (lambda[0] * first - dot(&lambda[1..], &rest)) / ((lambda[0] - length) * (lambda[0] + length));
    let mut quotient = vec![head];
    quotient.extend(rest.iter().zip(&lambda[1..]).map(|(r, l)| (r - head * l) / lambda[0]));
    reflect(&quotient, -1.0, beta.recip())
}

/// The largest α ≤ most with v + α dv in the second-order cone.
fn arrow_room(v: &[f64], dv: &[f64], most: f64) -> f64 {
    // a α² + 2 b α + c ≥ 0 with c > 0, and v₀ + α dv₀ ≥ 0
    let a = dv[0] * dv[0] - dot(&dv[1..], &dv[1..]);
    let b = v[0] * dv[0] - dot(&v[1..], &dv[1..]);
    let rest = norm2(&v[1..]);
    let c = (v[0] - rest) * (v[0] + rest);
    let mut room = if dv[0] < 0.0 { (-v[0] / dv[0]).min(most) } else { most };
    let discriminant = b * b - a * c;
    if discriminant >= 0.0 && (a < 0.0 || b < 0.0) {
        // the smaller positive root, without cancellation
        let root = c / (-b + discriminant.sqrt());
        if root > 0.0 {
            room = room.min(root);
        }
    }
    room
}

/// t − ‖x‖_p and its slopes.
fn smooth(values: &[f64], p: f64) -> (f64, Vec<f64>) {
    let size = power_norm(&values[1..], p);
    let mut slopes = vec![1.0];
    let slope = |x: &f64| if size > 0.0 { -x.signum() * (x.abs() / size).powf(p - 1.0) } else { 0.0 };
    slopes.extend(values[1..].iter().map(slope));
    (values[0] - size, slopes)
}

/// sym(A V B) as a scaled triangle.
fn sandwich(a: &Matrix, v: &[f64], b: &Matrix) -> Vec<f64> {
    let size = a.rows;
    let (mut half, mut full) = (vec![0.0; size * size], Matrix::zeros(size, size));
    matmul(&mut half, &a.data, &square(v, size).data, size, size, size);
    matmul(&mut full.data, &half, &b.data, size, size, size);
    triangle_of(&full)
}

/// The scaled triangle of the symmetric part of a matrix.
fn triangle_of(matrix: &Matrix) -> Vec<f64> {
    let size = matrix.rows;
    let entry = |i: usize, j: usize| match i == j {
        true => matrix[(i, i)],
        false => (matrix[(i, j)] + matrix[(j, i)]) * std::f64::consts::FRAC_1_SQRT_2,
    };
    (0..size).flat_map(|j| (0..=j).map(move |i| (i, j))).map(|(i, j)| entry(i, j)).collect()
}

/// L⁻¹ for A = L Lᵀ.
fn inverse_factor(a: &Matrix) -> Option<Matrix> {
    let n = a.rows;
    let mut l = a.clone();
    for j in 0..n {
        let pivot = l[(j, j)] - dot(&l.row(j)[..j], &l.row(j)[..j]);
        if pivot.is_nan() || pivot <= 0.0 {
            return None;
        }
        let root = pivot.sqrt();
        l[(j, j)] = root;
        for i in j + 1..n {
            let known = dot(&l.row(i)[..j], &l.row(j)[..j]);
            l[(i, j)] = (l[(i, j)] - known) / root;
        }
    }
    let mut out = Matrix::zeros(n, n);
    for i in 0..n {
        for k in 0..i {
            let factor = -l[(i, k)];
            let (above, below) = out.data.split_at_mut(i * n);
            add_scaled(&mut below[..=k], factor, &above[k * n..k * n + k + 1]);
        }
        out[(i, i)] = 1.0;
        let pivot = l[(i, i)];
        out.row_mut(i)[..=i].iter_mut().for_each(|x| *x /= pivot);
    }
    Some(out)
}

/// The reduced equations, factored.
struct Reduced {
    cholesky: std::cell::RefCell<Cholesky>,
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
            super::polish::add_outer(&mut matrix, 1.0, equalities.row(k));
        }
        let largest = (0..n).map(|i| matrix[(i, i)]).fold(0.0, f64::max);
        (0..n).for_each(|i| matrix[(i, i)] += 1e-14 * matrix[(i, i)] + 1e-10);
        let mut cholesky = Cholesky::new(n);
        cholesky.factor(&matrix.data, 1e-200 * largest).ok()?;
        let mut solved = equalities.clone();
        (0..rows.len()).for_each(|k| cholesky.solve(solved.row_mut(k)));
        let mut small = Matrix::zeros(rows.len(), rows.len());
        crate::linalg::matmul_nt(&mut small.data, &equalities.data, &solved.data, rows.len(), n, rows.len());
        Some(Self { cholesky: cholesky.into(), equalities, solved, small })
    }

    /// dx and y with S dx − Eᵀy = right, E dx = equalities.
    fn solve(&self, right: &[f64], equalities: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let mut dx = right.to_vec();
        equalities.iter().enumerate().for_each(|(k, e)| add_scaled(&mut dx, *e, self.equalities.row(k)));
        self.cholesky.borrow_mut().solve(&mut dx);
        let mut y: Vec<f64> = equalities.iter().enumerate().map(|(k, e)| e - dot(self.equalities.row(k), &dx)).collect();
        if !y.is_empty() {
            let _ = eliminate(&mut self.small.clone(), &mut y);
        }
        y.iter().enumerate().for_each(|(k, y)| add_scaled(&mut dx, *y, self.solved.row(k)));
        (dx, y)
    }
}
