//! The interpolating point of a norm.

use super::equations::{Equations, relative_residual};
use super::{Interpolation, potential};
use crate::linalg::{Matrix, add_scaled, dot, max_abs, norm2};
use crate::norms::{NormSpec, PlainNorm};
use crate::params::ParamLayout;
use crate::potentials::{PotentialSpec, QuadraticWeights};
use crate::reference::ReferenceError;
use crate::reference::conic::minimum_norm_conic;

/// Exponents up to this are powers that Newton's method can follow.
const LARGEST_POWER: f64 = 20.0;

/// argmin of ‖w − w₀‖ over {Xw = y}.
///
/// ℓ2, Frobenius, quadratic and ℓp norms with 1 < p ≤ 20 are powers of a potential, ½‖w‖² or Σ|w|^p/p, and go to
/// Newton's method; every other norm goes to the conic solver, on orthonormal rows and targets of length 1.
pub(super) fn minimise(
    x: &Matrix,
    y: &[f64],
    spec: &NormSpec,
    layout: &ParamLayout,
    start: Option<&[f64]>,
) -> Result<Interpolation, ReferenceError> {
    let mut norm = spec.build(layout)?;
    let held = start.map_or_else(|| vec![0.0; layout.len()], <[f64]>::to_vec);
    let mut matrix = x.clone();
    for block in layout.blocks().iter().filter(|block| block.frozen) {
        (0..matrix.rows).for_each(|i| matrix.row_mut(i)[block.range()].fill(0.0));
    }
    let targets: Vec<f64> = y.iter().enumerate().map(|(i, y)| y - dot(x.row(i), &held)).collect();
    let size = max_abs(&targets);
    let unit: Vec<f64> = if size > 0.0 { targets.iter().map(|t| t / size).collect() } else { targets.clone() };
    let equations = Equations::new(matrix, unit)?;
    let (mut change, mut multipliers, iterations) = match smooth(spec, layout)? {
        _ if size == 0.0 => (vec![0.0; layout.len()], vec![0.0; x.rows], 0),
        Some(smooth) => {
            let found = potential::minimise(&equations.matrix, &equations.targets, &smooth, layout, None)?;
            (found.weights, found.multipliers, found.iterations)
        }
        None => conic(&equations, spec, layout)?,
    };
    change.iter_mut().for_each(|w| *w *= size);
    let mut pulled = vec![0.0; layout.len()];
    multipliers.iter().enumerate().for_each(|(i, m)| add_scaled(&mut pulled, *m, equations.matrix.row(i)));
    let dual = norm.dual(&pulled);
    if dual > 0.0 {
        multipliers.iter_mut().for_each(|m| *m /= dual);
        pulled.iter_mut().for_each(|z| *z /= dual);
    }
    let objective = norm.value(&change);
    let lower_bound = dot(&multipliers, &targets);
    let stationarity = if objective > 0.0 { 1.0 - dot(&pulled, &change) / objective } else { 0.0 };
    let mut weights = held;
    add_scaled(&mut weights, 1.0, &change);
    let residual = relative_residual(x, y, &weights);
    Ok(Interpolation {
        weights,
        multipliers,
        objective,
        lower_bound,
        residual,
        stationarity,
        rank: equations.rank(),
        iterations,
    })
}

/// A potential that grows with the norm, if the norm is smooth.
fn smooth(spec: &NormSpec, layout: &ParamLayout) -> Result<Option<PotentialSpec>, ReferenceError> {
    // a factor changes nothing: the argument of the minimum is the same
    let parts = spec.canonical(layout)?.parts;
    let [part] = &parts[..] else { return Ok(None) };
    Ok(match &part.norm {
        PlainNorm::L2 => Some(PotentialSpec::Euclidean),
        PlainNorm::Lp(p) if *p < 2.0 => Some(PotentialSpec::SquaredLp { p: *p }),
        PlainNorm::Lp(p) => (*p <= LARGEST_POWER).then_some(PotentialSpec::Smoothed { p: *p, lambda: 0.0 }),
        PlainNorm::Quadratic(diagonal) => Some(PotentialSpec::Quadratic(QuadraticWeights::Diagonal(diagonal.clone()))),
        PlainNorm::QuadraticDense(matrix) => Some(PotentialSpec::Quadratic(QuadraticWeights::Matrix(matrix.clone()))),
        PlainNorm::L1
        | PlainNorm::Linf
        | PlainNorm::Spectral
        | PlainNorm::Nuclear
        | PlainNorm::GroupL21
        | PlainNorm::GroupL2Inf => None,
    })
}

/// Weights, multipliers and steps of the conic solver, with what it left of Bw = c made up for by the shortest change.
fn conic(
    equations: &Equations,
    spec: &NormSpec,
    layout: &ParamLayout,
) -> Result<(Vec<f64>, Vec<f64>, usize), ReferenceError> {
    let length = norm2(&equations.values);
    let values: Vec<f64> = equations.values.iter().map(|c| c / length).collect();
    let (mut weights, nu, iterations) = minimum_norm_conic(&equations.rows, &values, spec, layout)?;
    weights.iter_mut().for_each(|w| *w *= length);
    for _ in 0..2 {
        let change = equations.pull_back(&equations.missing(&weights));
        add_scaled(&mut weights, 1.0, &change);
    }
    Ok((weights, equations.multipliers(&nu), iterations))
}
