//! From the accuracy of an interior-point method to that of the arithmetic: Newton's method on the active face.
//!
//! Near a solution of a [`Program`] every cone tells which of its faces s lies on, and there the face is a smooth
//! surface c(s) = 0 with a multiplier y:
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
//! where for a semidefinite S the columns of U₀ are the r eigenvectors u_j of the smallest eigenvalues, turned so that
//! the multiplier Y is diagonal, and uᵢ, λᵢ are the other eigenpairs (Overton 1992, "Large-scale optimization of
//! eigenvalues"). With C the gradients of all c and H the sum of the curvatures a step solves
//!
//! ```text
//! [ H + δI   −Cᵀ ] [dx]     [ Cᵀy − objective ]
//! [ C         δI ] [dy]  =  [ −c              ]
//! ```
//!
//! The regularisation δ makes it a proximal step, which stays well defined where the solution or its multipliers are
//! not unique and costs no accuracy where they are: the right-hand side is exact. A bound that would be crossed stops
//! the step and is taken up, one with a negative multiplier is let go. Nothing here decides whether a step was good:
//! every point is shown to the caller.

use std::ops::Range;

use super::dense::{add_outer, dyad, eliminate, power_curvature, power_norm, power_slack, square, unit_factor};
use super::program::{Cone, Point, Program};
use crate::linalg::{Eigen, Matrix, add_scaled, dot, max_abs};

/// δ; the entries of the matrix have sizes around 1.
const PROXIMAL: f64 = 1e-8;
/// What a bound may be crossed by before it stops a step.
const CROSSED: f64 = 1e-12;
/// Columns and equations up to which a dense factorisation is worth its time.
const LARGEST: usize = 4000;

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

/// A semidefinite matrix and its multiplier in one basis.
struct Eigenbasis {
    /// Eigenvalues of the matrix, increasing.
    values: Vec<f64>,
    vectors: Vec<Vec<f64>>,
    /// Eigenvalues of the multiplier on the first vectors.
    weights: Vec<f64>,
}

/// Takes up to `steps` Newton steps from `point` and shows every point on the way to `enough`, which says whether it is
/// good enough to stop.
pub(super) fn polish(program: &Program, point: &Point, steps: usize, mut enough: impl FnMut(&Point) -> bool) {
    if program.width() > 2 * LARGEST {
        return;
    }
    let Point { mut x, mut z } = point.clone();
    let mut s: Vec<f64> = program.rows.iter().map(|row| row.at(&x)).collect();
    let mut faces: Vec<Face> =
        program.sections.iter().map(|(cone, range)| identify(*cone, &s[range.clone()], &z[range.clone()])).collect();
    for _ in 0..steps {
        let mut hessian = Matrix::zeros(x.len(), x.len());
        let mut equations = Vec::new();
        for ((cone, range), face) in program.sections.iter().zip(&faces) {
            linearise(program, (*cone, range, face), &s, &z, &mut equations, &mut hessian);
        }
        let y: Vec<f64> =
            equations.iter().map(|e| dot(&e.slopes, &z[e.rows.clone()]) / dot(&e.slopes, &e.slopes)).collect();
        let Some((dx, weights)) = step(program, &hessian, &equations, &y) else { return };
        let ds: Vec<f64> = program.rows.iter().map(|row| row.change(&dx)).collect();
        let fraction = take_up(program, &mut faces, &s, &ds);
        add_scaled(&mut x, fraction, &dx);
        z.fill(0.0);
        for (equation, weight) in equations.iter().zip(&weights) {
            add_scaled(&mut z[equation.rows.clone()], *weight, &equation.slopes);
        }
        if x.iter().chain(&z).any(|v| !v.is_finite()) {
            return;
        }
        s = program.rows.iter().map(|row| row.at(&x)).collect();
        if enough(&Point { x: x.clone(), z: z.clone() }) {
            return;
        }
        if fraction == 1.0 {
            let_go(program, &mut faces, &z);
        }
    }
}

/// The fraction of a step up to the first bound that it would cross; those bounds become active.
fn take_up(program: &Program, faces: &mut [Face], s: &[f64], ds: &[f64]) -> f64 {
    let crossed = |row: usize| s[row] + ds[row] < -CROSSED;
    let room = |row: usize| s[row].max(0.0) / -ds[row];
    let mut fraction = 1.0_f64;
    for ((_, range), face) in program.sections.iter().zip(&*faces) {
        if let Face::Bounds(active) = face {
            let free = range.clone().zip(active).filter(|(row, active)| !**active && crossed(*row));
            fraction = free.map(|(row, _)| room(row)).fold(fraction, f64::min);
        }
    }
    for ((_, range), face) in program.sections.iter().zip(faces) {
        if let Face::Bounds(active) = face {
            let free = range.clone().zip(active).filter(|(row, active)| !**active && crossed(*row));
            free.filter(|(row, _)| room(*row) <= fraction).for_each(|(_, active)| *active = true);
        }
    }
    fraction
}

/// Makes bounds inactive whose multipliers are about as negative as the most negative one.
fn let_go(program: &Program, faces: &mut [Face], z: &[f64]) {
    let mut least = -1e-14 * (1.0 + max_abs(z));
    for pass in 0..2 {
        for ((_, range), face) in program.sections.iter().zip(&mut *faces) {
            let Face::Bounds(active) = face else { continue };
            for (active, z) in active.iter_mut().zip(&z[range.clone()]).filter(|(active, _)| **active) {
                match pass {
                    0 => least = least.min(0.1 * z),
                    _ => *active = *z > least,
                }
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
    let pull = |rows: Range<usize>, slopes: &[f64]| {
        let mut gradient = vec![0.0; program.width()];
        program.pull(rows, slopes, &mut gradient);
        gradient
    };
    let mut single = |row: usize| {
        let gradient = pull(row..row + 1, &[1.0]);
        equations.push(Equation { gradient, value: s[row], rows: row..row + 1, slopes: vec![1.0] });
    };
    match face {
        Face::Interior => {}
        Face::Apex => range.clone().for_each(single),
        Face::Bounds(active) => {
            range.clone().zip(active).filter(|(_, active)| **active).for_each(|(row, _)| single(row))
        }
        Face::Surface(p) => {
            let (local, weight) = (&s[range.clone()], z[range.start].max(0.0));
            if max_abs(&local[1..]) == 0.0 {
                return;
            }
            let (value, slopes) = power_slack(local, *p);
            let (factor, bends) = power_curvature(&local[1..], *p);
            let weighted: Vec<(usize, f64)> =
                (range.start + 1..).zip(bends).map(|(row, b)| (row, weight * factor * b)).collect();
            program.add_gram(&weighted, hessian);
            add_outer(hessian, -weight * factor, &pull(range.start + 1..range.end, &slopes[1..]));
            equations.push(Equation { gradient: pull(range.clone(), &slopes), value, rows: range.clone(), slopes });
        }
        Face::Corank(corank) => {
            let Cone::Semidefinite(size) = cone else { return };
            let (matrix, weight) = (square(&s[range.clone()], size), square(&z[range.clone()], size));
            let Some(Eigenbasis { values, vectors, weights }) = eigenbasis(&matrix, &weight, *corank) else { return };
            for b in 0..*corank {
                for a in 0..=b {
                    let slopes = dyad(&vectors[a], &vectors[b], unit_factor(a == b));
                    let value = dot(&slopes, &s[range.clone()]);
                    let gradient = pull(range.clone(), &slopes);
                    equations.push(Equation { gradient, value, rows: range.clone(), slopes });
                }
            }
            for (j, y) in weights.iter().enumerate().filter(|(_, y)| **y > 0.0) {
                for i in *corank..size {
                    // the unit triangle carries √2, so this is (uᵢᵀ dS u_j)² twice
                    let gradient = pull(range.clone(), &dyad(&vectors[i], &vectors[j], unit_factor(false)));
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

/// Eigenvalues and vectors of `matrix`, increasing, the first `corank` turned so that `weight` is diagonal on them, and
/// its diagonal there.
fn eigenbasis(matrix: &Matrix, weight: &Matrix, corank: usize) -> Option<Eigenbasis> {
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
    Some(Eigenbasis { values, vectors, weights: turn.values().to_vec() })
}
