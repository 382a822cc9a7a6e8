//! The interpolating point of a potential.

use super::Interpolation;
use super::equations::{Equations, relative_residual};
use super::newton::{ACCEPTED, Newton, Point};
use super::pieces::Pieces;
use crate::linalg::{Matrix, add_scaled, dot, norm2};
use crate::params::ParamLayout;
use crate::potentials::{MirrorPotential, PotentialSpec};
use crate::reference::ReferenceError;

/// The residual, beyond what cancellation explains, and the distance from stationarity up to which an answer is given.
const TRUSTED: f64 = 1e-9;

/// argmin of D_R(w, w₀), or of R(w) without a start, over {Xw = y}.
pub(super) fn minimise(
    x: &Matrix,
    y: &[f64],
    spec: &PotentialSpec,
    layout: &ParamLayout,
    start: Option<&[f64]>,
) -> Result<Interpolation, ReferenceError> {
    let mut potential = spec.build(layout)?;
    let mut dual_start = vec![0.0; layout.len()];
    let mut held = vec![0.0; layout.len()];
    if let Some(start) = start {
        potential.check_domain(start)?;
        potential.mirror_map(start, &mut dual_start);
        held.copy_from_slice(start);
        layout.trainable().for_each(|block| held[block.range()].fill(0.0));
    }
    let pieces = Pieces::of(spec, layout)?;
    let mut matrix = x.clone();
    let symmetric = pieces.restrict(&mut matrix);
    let targets: Vec<f64> = y.iter().enumerate().map(|(i, y)| y - dot(x.row(i), &held)).collect();
    let mut equations = Equations::new(matrix, targets).map_err(|error| match error {
        ReferenceError::Inconsistent { residual, .. } if symmetric => ReferenceError::OutsideDomain {
            potential: spec.to_string(),
            why: format!("on symmetric matrices the equations contradict each other by {residual:.1e} relative to |y|"),
        },
        other => other,
    })?;
    let (mut point, mut iterations) = run(&mut *potential, &equations, &dual_start, &pieces, spec)?;
    // singular vectors carry rounding of their own: ask for what is still missing from the equations as they were given
    for _ in 0..2 {
        let before = equations.residual(&point.weights);
        equations.correct(&point.weights);
        let mut newton =
            Newton { potential: &mut *potential, equations: &equations, dual_start: &dual_start, pieces: &pieces };
        let Some(next) = newton.last_step(&point) else { break };
        iterations += 1;
        if equations.residual(&next.weights) >= before || potential.check_domain(&next.weights).is_err() {
            break;
        }
        point = next;
    }
    let cancelled = norm2(&equations.matrix.data) * norm2(&point.weights) / norm2(&equations.targets);
    let left = equations.residual(&point.weights) - 1e-14 * if cancelled.is_finite() { cancelled } else { 0.0 };
    let mut dual = equations.pull_back(&point.nu);
    add_scaled(&mut dual, 1.0, &dual_start);
    let apart = stationarity(&mut *potential, layout, &point.weights, &dual, &dual_start);
    if !(left <= TRUSTED && apart <= TRUSTED) {
        return Err(stopped(iterations, left.max(apart)));
    }
    let multipliers = equations.multipliers(&point.nu);
    let mut dual = dual_start.clone();
    multipliers.iter().enumerate().for_each(|(i, m)| add_scaled(&mut dual, *m, equations.matrix.row(i)));
    let mut image = vec![0.0; dual.len()];
    potential.inverse_mirror_map(&dual, &mut image);
    // R*(z₀) − R*(z₀ + Xᵀμ) + ⟨μ, y⟩
    let first = start.map_or(0.0, |start| potential.conjugate_at(start));
    let lower_bound = first - potential.conjugate_at(&image) + dot(&multipliers, &equations.targets);
    let mut objective = match start {
        Some(start) => potential.bregman_divergence(&point.weights, start),
        None => potential.value(&point.weights),
    };
    if objective.is_nan() {
        // an eigenvalue was lost to rounding; by R(w) + R*(z) = ⟨w, z⟩ the objective exceeds the bound by ⟨μ, Xw − y⟩
        objective = lower_bound - dot(&multipliers, &equations.defect(&point.weights));
    }
    let stationarity = stationarity(&mut *potential, layout, &point.weights, &dual, &dual_start);
    let mut weights = point.weights;
    add_scaled(&mut weights, 1.0, &held);
    Ok(Interpolation {
        residual: relative_residual(x, y, &weights),
        weights,
        multipliers,
        objective,
        lower_bound,
        stationarity,
        rank: equations.rank(),
        iterations,
    })
}

/// Newton's method from the better of two starts.
fn run(
    potential: &mut dyn MirrorPotential,
    equations: &Equations,
    dual_start: &[f64],
    pieces: &Pieces,
    spec: &PotentialSpec,
) -> Result<(Point, usize), ReferenceError> {
    let mut newton = Newton { potential, equations, dual_start, pieces };
    let origin = newton.at(vec![0.0; equations.rank()]);
    let mut nearest = equations.pull_back(&origin.missing);
    add_scaled(&mut nearest, 1.0, &origin.weights);
    let guess = pieces.guess(&nearest, &origin.weights);
    let mut slope = vec![0.0; guess.len()];
    newton.potential.mirror_map(&guess, &mut slope);
    add_scaled(&mut slope, -1.0, dual_start);
    let mut nu: Vec<f64> = (0..equations.rank()).map(|k| dot(equations.rows.row(k), &slope)).collect();
    let (at_origin, near) = (newton.value(&origin), newton.at(nu.clone()));
    let at_near = newton.value(&near);
    let better = at_near < at_origin;
    if !better && pieces.at_rest(&origin.weights) {
        // H need not exist where weights are 0: go as far as pays
        let length = newton.search(&origin, &nu);
        nu.iter_mut().for_each(|x| *x *= length);
    } else if !better {
        nu = origin.nu;
    }
    let outcome = newton.solve(nu, &guess, |point| pieces.refusal(equations, &point.nu).is_some());
    if outcome.point.error <= ACCEPTED || outcome.point.error <= newton.noise(&outcome.point) {
        return Ok((outcome.point, outcome.iterations));
    }
    match pieces.refusal(equations, &outcome.point.nu) {
        Some(why) => Err(ReferenceError::OutsideDomain { potential: spec.to_string(), why }),
        None => Err(stopped(outcome.iterations, outcome.point.error)),
    }
}

/// What is said of a solution that is not good enough to be called exact.
fn stopped(iterations: usize, gap: f64) -> ReferenceError {
    ReferenceError::NoConvergence {
        solver: "Newton's method for the interpolating point",
        status: "the residual stopped falling".into(),
        iterations,
        gap,
        remedy: "scale the targets to about 1, or choose a smoother potential",
    }
}

/// How far ∇R(w) = z is from true in the worst block, measured in z or in w, whichever rounding spoils less.
fn stationarity(
    potential: &mut dyn MirrorPotential,
    layout: &ParamLayout,
    weights: &[f64],
    dual: &[f64],
    dual_start: &[f64],
) -> f64 {
    let (mut mirrored, mut image) = (vec![0.0; weights.len()], vec![0.0; weights.len()]);
    potential.mirror_map(weights, &mut mirrored);
    potential.inverse_mirror_map(dual, &mut image);
    let distance = |a: &[f64], b: &[f64], scale: f64| {
        let size = norm2(&a.iter().zip(b).map(|(x, y)| x - y).collect::<Vec<_>>());
        if size == 0.0 { 0.0 } else { size / scale }
    };
    let (dual_scale, scale) = (norm2(&mirrored) + norm2(dual_start), norm2(weights));
    let block = |range: std::ops::Range<usize>| {
        let in_dual = distance(&mirrored[range.clone()], &dual[range.clone()], dual_scale);
        in_dual.min(distance(&weights[range.clone()], &image[range], scale))
    };
    layout.trainable().map(|part| block(part.range())).fold(0.0, f64::max)
}
