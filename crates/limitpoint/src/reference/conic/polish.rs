//! From the accuracy of an interior-point method to that of the arithmetic: Newton's method on the active face.
//!
//! Near a solution of a [`Program`] every cone tells which of its faces s lies on, and there the face is a smooth surface
//! c(s) = 0 with a multiplier y:
//!
//! ```text
//! cone           face                         c(s)                    curvature of −⟨y, c⟩
//! zero           the cone                     s                       0
//! nonnegative    s_i = 0 for active i         s_i                     0
//! second order,  interior: no equations       –                       –
//! power          boundary                     t − ‖x‖_p               y ∇²‖x‖_p
//!                apex                         (t, x)                  0
//! semidefinite   corank r                     U₀ᵀ S U₀                2 Σ_{i,j} (y_j/λ_i) (uᵢᵀ dS u_j)²
//! ```
//!
//! where for a semidefinite S the columns of U₀ are the r eigenvectors u_j of the smallest eigenvalues, turned so that the
//! multiplier Y is diagonal, and uᵢ, λᵢ are the other eigenpairs (Overton 1992, "Large-scale optimization of
//! eigenvalues", section 4). With C the gradients of all c and H the sum of the curvatures a step solves
//!
//! ```text
//! [ H + δI   −Cᵀ ] [dx]     [ Cᵀy − objective ]
//! [ C         δI ] [dy]  =  [ −c              ]
//! ```
//!
//! The regularisation δ makes it a proximal step, which stays well defined where the solution or its multipliers are not
//! unique and costs no accuracy where they are: the right-hand side is exact. Sizes of y and s with the wrong sign change
//! the face for the next step. Nothing here decides whether a step was good; every point goes to the caller's judgement.

use std::ops::Range;

use super::program::{Cone, Point, Program};
use crate::linalg::{Eigen, Matrix, add_scaled, dot, matmul, max_abs};

/// Regularisation of the Newton matrix, relative to the size of its entries.
const PROXIMAL: f64 = 1e-8;
/// Columns and equations up to which a dense factorisation is worth its time.
const LARGEST: usize = 2000;

/// Where the rows of one section are.
enum Face {
    /// No equations.
    Interior,
    /// All rows are 0.
    Apex,
    /// Those rows are 0.
    Bounds(Vec<bool>),
    /// t = ‖x‖_p.
    Surface(f64),
    /// The r smallest eigenvalues are 0.
    Corank(usize),
}

/// An equation c = 0 with its gradient, and the rows that its multiplier is the weight of.
struct Equation {
    gradient: Vec<f64>,
    value: f64,
    /// ∂c/∂s of the rows of a section.
    rows: Range<usize>,
    slopes: Vec<f64>,
}

/// Takes up to `steps` Newton steps from `point` and shows every point on the way to `judge`, which says whether it is
/// good enough to stop.
pub(super) fn polish(program: &Program, point: &Point, steps: usize, mut judge: impl FnMut(&Point) -> bool) {
    if point.x.len() > 2 * LARGEST {
        return;
    }
    let mut x = point.x.clone();
    let mut z = point.z.clone();
    let mut s: Vec<f64> = program.rows.iter().map(|row| row.at(&x)).collect();
    let mut faces: Vec<Face> =
        program.sections.iter().map(|(cone, range)| identify(*cone, &s[range.clone()], &z[range.clone()])).collect();
    for _ in 0..steps {
        let n = x.len();
        let mut hessian = Matrix::zeros(n, n);
        let mut equations = Vec::new();
        for ((cone, range), face) in program.sections.iter().zip(&faces) {
            linearise(program, (*cone, range, face), &s, &z, &mut equations, &mut hessian);
        }
        let y: Vec<f64> = equations.iter().map(|e| dot(&e.slopes, &z[e.rows.clone()]) / dot(&e.slopes, &e.slopes)).collect();
        let Some((dx, weights)) = step(program, &hessian, &equations, &y) else { return };
        add_scaled(&mut x, 1.0, &dx);
        z.fill(0.0);
        for (equation, weight) in equations.iter().zip(&weights) {
            add_scaled(&mut z[equation.rows.clone()], *weight, &equation.slopes);
        }
        if x.iter().chain(&z).any(|v| !v.is_finite()) {
            return;
        }
        s = program.rows.iter().map(|row| row.at(&x)).collect();
        if judge(&Point { x: x.clone(), z: z.clone() }) {
            return;
        }
        for ((_, range), face) in program.sections.iter().zip(&mut faces) {
            if let Face::Bounds(active) = face {
                let (s, z) = (&s[range.clone()], &z[range.clone()]);
                let floor = 1e-14 * (1.0 + max_abs(z));
                active.iter_mut().zip(s.iter().zip(z)).for_each(|(active, (s, z))| {
                    *active = if *active { *z >= -floor } else { *s < -1e-14 };
                });
            }
        }
    }
}

/// The face that a primal and a dual point agree on: whichever of the two is larger decides that the other is 0.
fn identify(cone: Cone, s: &[f64], z: &[f64]) -> Face {
    match cone {
        Cone::Zero => Face::Apex,
        Cone::Nonnegative => Face::Bounds(s.iter().zip(z).map(|(s, z)| s < z).collect()),
        Cone::SecondOrder | Cone::Power(_) => {
            let p = if let Cone::Power(p) = cone { p } else { 2.0 };
            let (inner, outer) = (power_norm(&s[1..], p), power_norm(&z[1..], p / (p - 1.0)));
            if s[0] - inner > z[0] + outer {
                Face::Interior
            } else if s[0] + inner < z[0] - outer {
                Face::Apex
            } else {
                Face::Surface(p)
            }
        }
        Cone::Semidefinite(size) => {
            // s and z commute at a solution: the eigenvectors of s − z tell which of them each direction belongs to
            let difference: Vec<f64> = s.iter().zip(z).map(|(s, z)| s - z).collect();
            let mut eigen = Eigen::new(size);
            match eigen.factor(&square(&difference, size).data) {
                Ok(()) => Face::Corank(eigen.values().iter().filter(|value| **value < 0.0).count()),
                Err(_) => Face::Interior,
            }
        }
    }
}

/// Adds the equations and the curvature of one section.
fn linearise(
    program: &Program,
    (cone, range, face): (Cone, &Range<usize>, &Face),
    s: &[f64],
    z: &[f64],
    equations: &mut Vec<Equation>,
    hessian: &mut Matrix,
) {
    let width = hessian.rows;
    let mut single = |row: usize| {
        let mut gradient = vec![0.0; width];
        program.rows[row].terms.iter().for_each(|(column, x)| gradient[*column] += x);
        equations.push(Equation { gradient, value: s[row], rows: row..row + 1, slopes: vec![1.0] });
    };
    let pull = |slopes: &[f64]| {
        let mut gradient = vec![0.0; width];
        for (row, slope) in program.rows[range.clone()].iter().zip(slopes).filter(|(_, slope)| **slope != 0.0) {
            row.terms.iter().for_each(|(column, x)| gradient[*column] += slope * x);
        }
        gradient
    };
    match face {
        Face::Interior => {}
        Face::Apex => range.clone().for_each(single),
        Face::Bounds(active) => range.clone().zip(active).filter(|(_, active)| **active).for_each(|(row, _)| single(row)),
        Face::Surface(p) => {
            let (local, weight) = (&s[range.clone()], z[range.start].max(0.0));
            let size = power_norm(&local[1..], *p);
            if size == 0.0 {
                return;
            }
            let mut slopes = vec![1.0];
            slopes.extend(local[1..].iter().map(|x| -x.signum() * (x.abs() / size).powf(p - 1.0)));
            let gradient = pull(&slopes);
            // ∇²‖x‖_p = (p − 1)/‖x‖ (diag(|x_i/‖x‖|^(p−2)) − g gᵀ) with g = ∇‖x‖_p
            let factor = weight * (p - 1.0) / size;
            for (row, x) in program.rows[range.clone()].iter().zip(local).skip(1) {
                let bend = if *p == 2.0 { factor } else { factor * (x.abs() / size).powf(p - 2.0).min(1e12) };
                for (i, a) in &row.terms {
                    row.terms.iter().for_each(|(j, b)| hessian[(*i, *j)] += bend * a * b);
                }
            }
            let mut inner = gradient.clone();
            program.rows[range.start].terms.iter().for_each(|(column, x)| inner[*column] -= x);
            add_outer(hessian, -factor, &inner);
            equations.push(Equation { gradient, value: local[0] - size, rows: range.clone(), slopes });
        }
        Face::Corank(corank) => {
            let Cone::Semidefinite(size) = cone else { return };
            let (matrix, weight) = (square(&s[range.clone()], size), square(&z[range.clone()], size));
            let Some((values, vectors, weights)) = eigenbasis(&matrix, &weight, *corank) else { return };
            for b in 0..*corank {
                for a in 0..=b {
                    let slopes = triangle(size, &vectors[a], &vectors[b]);
                    let value = dot(&slopes, &s[range.clone()]);
                    equations.push(Equation { gradient: pull(&slopes), value, rows: range.clone(), slopes });
                }
            }
            for (j, y) in weights.iter().enumerate().filter(|(_, y)| **y > 0.0) {
                for i in *corank..size {
                    // the slopes of an off-diagonal pair carry √2, so this is (uᵢᵀ dS u_j)² twice
                    let gradient = pull(&triangle(size, &vectors[i], &vectors[j]));
                    add_outer(hessian, y / (values[i] - values[j]).max(1e-12), &gradient);
                }
            }
        }
    }
}

/// Solves the regularised Newton equations for dx and y + dy.
///
/// An equation of one column (a weight that is 0) fixes that column: both are left out, and the multiplier follows from
/// the column's own equation. In the dual form of a margin problem this removes all rows that are not support vectors.
fn step(program: &Program, hessian: &Matrix, equations: &[Equation], y: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
    let n = hessian.rows;
    let mut owner = vec![None; n];
    for (e, equation) in equations.iter().enumerate() {
        let mut used = equation.gradient.iter().enumerate().filter(|(_, x)| **x != 0.0);
        if let (Some((column, _)), None) = (used.next(), used.next()) {
            owner[column] = owner[column].or(Some(e));
        }
    }
    let mut dx = vec![0.0; n];
    let mut fixed = vec![false; equations.len()];
    for (column, e) in owner.iter().enumerate().filter_map(|(column, e)| Some((column, (*e)?))) {
        dx[column] = -equations[e].value / equations[e].gradient[column];
        fixed[e] = true;
    }
    let free: Vec<usize> = (0..n).filter(|i| owner[*i].is_none()).collect();
    let kept: Vec<usize> = (0..equations.len()).filter(|e| !fixed[*e]).collect();
    let size = free.len() + kept.len();
    if size > LARGEST {
        return None;
    }
    let mut matrix = Matrix::zeros(size, size);
    let mut right = vec![0.0; size];
    for (at, &i) in free.iter().enumerate() {
        free.iter().enumerate().for_each(|(to, &j)| matrix[(at, to)] = hessian[(i, j)]);
        right[at] = -program.objective[i] - dot(hessian.row(i), &dx);
    }
    for (at, &e) in (free.len()..).zip(&kept) {
        let equation = &equations[e];
        for (to, &i) in free.iter().enumerate() {
            let x = equation.gradient[i];
            matrix[(to, at)] = -x;
            matrix[(at, to)] = x;
            right[to] += y[e] * x;
        }
        right[at] = -equation.value - dot(&equation.gradient, &dx);
    }
    (0..size).for_each(|i| matrix[(i, i)] += PROXIMAL);
    eliminate(&mut matrix, &mut right)?;
    free.iter().zip(&right).for_each(|(&i, x)| dx[i] = *x);
    let mut weights = y.to_vec();
    kept.iter().zip(&right[free.len()..]).for_each(|(&e, dy)| weights[e] += dy);
    for (column, e) in owner.iter().enumerate().filter_map(|(column, e)| Some((column, (*e)?))) {
        let others = kept.iter().map(|&e| weights[e] * equations[e].gradient[column]).sum::<f64>();
        let slope = program.objective[column] + dot(hessian.row(column), &dx) - others;
        weights[e] = slope / equations[e].gradient[column];
    }
    Some((dx, weights))
}

/// Gaussian elimination with row exchanges; the right-hand side becomes the solution.
///
/// Columns are eliminated in panels, so that nearly all arithmetic is one matrix product a panel (Golub and Van Loan,
/// Matrix Computations, section 3.4.7).
pub(super) fn eliminate(matrix: &mut Matrix, right: &mut [f64]) -> Option<()> {
    const PANEL: usize = 48;
    let n = matrix.rows;
    for first in (0..n).step_by(PANEL) {
        let end = (first + PANEL).min(n);
        for k in first..end {
            let best = (k..n).fold(k, |best, i| if matrix[(i, k)].abs() > matrix[(best, k)].abs() { i } else { best });
            let pivot = matrix[(best, k)];
            if pivot == 0.0 || !pivot.is_finite() {
                return None;
            }
            if best != k {
                let (above, below) = matrix.data.split_at_mut(best * n);
                above[k * n..(k + 1) * n].swap_with_slice(&mut below[..n]);
                right.swap(k, best);
            }
            let (above, below) = matrix.data.split_at_mut((k + 1) * n);
            let top = &above[k * n + k + 1..k * n + end];
            for row in below.chunks_exact_mut(n) {
                row[k] /= pivot;
                let factor = -row[k];
                add_scaled(&mut row[k + 1..end], factor, top);
            }
        }
        for i in first..end {
            let (above, below) = matrix.data.split_at_mut(i * n);
            for k in first..i {
                let factor = -below[k];
                add_scaled(&mut below[end..n], factor, &above[k * n + end..(k + 1) * n]);
            }
        }
        let (height, width, depth) = (n - end, n - end, end - first);
        let left: Vec<f64> = (end..n).flat_map(|i| matrix.row(i)[first..end].iter().copied()).collect();
        let top: Vec<f64> = (first..end).flat_map(|i| matrix.row(i)[end..].iter().copied()).collect();
        let mut product = vec![0.0; height * width];
        matmul(&mut product, &left, &top, height, depth, width);
        for (i, row) in (end..n).zip(product.chunks_exact(width.max(1))) {
            add_scaled(&mut matrix.row_mut(i)[end..], -1.0, row);
        }
    }
    for i in 0..n {
        right[i] -= dot(&matrix.row(i)[..i], &right[..i]);
    }
    for i in (0..n).rev() {
        let known = dot(&matrix.row(i)[i + 1..], &right[i + 1..]);
        right[i] = (right[i] - known) / matrix[(i, i)];
    }
    right.iter().all(|x| x.is_finite()).then_some(())
}

/// matrix += factor · v vᵀ.
pub(super) fn add_outer(matrix: &mut Matrix, factor: f64, v: &[f64]) {
    for (i, x) in v.iter().enumerate().filter(|(_, x)| **x != 0.0) {
        add_scaled(matrix.row_mut(i), factor * x, v);
    }
}

/// ‖x‖_p without overflow.
pub(super) fn power_norm(x: &[f64], p: f64) -> f64 {
    let largest = max_abs(x);
    if largest == 0.0 || p == 2.0 {
        return crate::linalg::norm2(x);
    }
    largest * x.iter().map(|x| (x.abs() / largest).powf(p)).sum::<f64>().powf(p.recip())
}

/// The symmetric matrix of a scaled triangle.
pub(super) fn square(triangle: &[f64], size: usize) -> Matrix {
    let mut out = Matrix::zeros(size, size);
    for ((i, j), x) in (0..size).flat_map(|j| (0..=j).map(move |i| (i, j))).zip(triangle) {
        let x = if i == j { *x } else { x * std::f64::consts::FRAC_1_SQRT_2 };
        out[(i, j)] = x;
        out[(j, i)] = x;
    }
    out
}

/// The unit scaled triangle of (u vᵀ + v uᵀ), orthonormal if the vectors are: ½(u vᵀ + v uᵀ)·√2, or u uᵀ if u = v.
fn triangle(size: usize, u: &[f64], v: &[f64]) -> Vec<f64> {
    let same = std::ptr::eq(u, v);
    let (diagonal, off) = if same { (0.5, std::f64::consts::FRAC_1_SQRT_2) } else { (std::f64::consts::FRAC_1_SQRT_2, 1.0) };
    let entry = |i: usize, j: usize| (u[i] * v[j] + u[j] * v[i]) * if i == j { diagonal } else { off };
    (0..size).flat_map(|j| (0..=j).map(move |i| (i, j))).map(|(i, j)| entry(i, j)).collect()
}

/// Eigenvalues and vectors of `matrix`, increasing, the first `corank` turned so that `weight` is diagonal on them, and
/// its diagonal there.
fn eigenbasis(matrix: &Matrix, weight: &Matrix, corank: usize) -> Option<(Vec<f64>, Vec<Vec<f64>>, Vec<f64>)> {
    let size = matrix.rows;
    let mut eigen = Eigen::new(size);
    eigen.factor(&matrix.data).ok()?;
    let mut vectors: Vec<Vec<f64>> = (0..size).map(|k| eigen.vector(k).to_vec()).collect();
    let mut values = eigen.values().to_vec();
    let image = |v: &[f64], m: &Matrix| (0..size).map(|i| dot(m.row(i), v)).collect::<Vec<f64>>();
    let mut local = vec![0.0; corank * corank];
    for b in 0..corank {
        let product = image(&vectors[b], weight);
        (0..corank).for_each(|a| local[a * corank + b] = dot(&vectors[a], &product));
    }
    let mut turn = Eigen::new(corank);
    turn.factor(&local).ok()?;
    let turned: Vec<Vec<f64>> = (0..corank)
        .map(|k| {
            let mut out = vec![0.0; size];
            turn.vector(k).iter().zip(&vectors).for_each(|(x, v)| add_scaled(&mut out, *x, v));
            out
        })
        .collect();
    for (k, vector) in turned.into_iter().enumerate() {
        values[k] = dot(&vector, &image(&vector, matrix));
        vectors[k] = vector;
    }
    Some((values, vectors, turn.values().to_vec()))
}
