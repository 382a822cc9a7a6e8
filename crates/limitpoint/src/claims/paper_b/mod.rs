//! Paper B, "Characterizing Implicit Bias in Terms of Optimization Geometry": where every optimiser of a linear model
//! goes.
//!
//! | file | section of the paper |
//! |---|---|
//! | `nearest` | 2.1–2.4: losses with a finite root, gradient and mirror descent, constraints, quadratic norms |
//! | `momentum` | 2.2, Example 2: momentum in the dual and in the primal |
//! | `natural` | 2.3, Example 3: natural gradient descent |
//! | `steepest` | 2.4, Example 4: steepest descent in ℓ4/3; the steepest step |
//! | `stagewise` | 2.4 and 3: coordinate descent, LASSO path, regularisation path |
//! | `margins` | 3.1, 3.2: steepest descent on separable data, fast methods |
//! | `duality` | 3.2, appendix B: the lemmas behind Theorem 5, checked at every step |
//! | `boosting` | 3.2: coordinate descent as boosting |
//! | `adaptive` | 3.3: AdaGrad, Adam, RMSProp |
//! | `factored` | 4: matrix factorisation, deep linear and diagonal networks |
//! | `support` | 4, appendices C and D: support vectors and growth lemmas |
//! | `scale` | large dense and sparse problems |

mod adaptive;
mod boosting;
mod duality;
mod factored;
mod margins;
mod momentum;
mod natural;
mod nearest;
mod scale;
mod stagewise;
mod steepest;
mod support;

use super::arithmetic::{angle, distance, larger, smaller};
use super::lab::Finished;
use super::{Claim, ClaimError};
use crate::certificates::{Measure, linear_margin_problem};
use crate::data::{Dataset, Targets};
use crate::engine::{Compute, Forward, cpu};
use crate::experiments::Task;
use crate::linalg::Matrix;
use crate::models::{MarginMap, ModelSpec};
use crate::norms::NormSpec;
use crate::optimisers::OptimiserSpec;
use crate::params::ParamLayout;
use crate::potentials::PotentialSpec;
use crate::reference::{Interpolation, InterpolationTarget, MaxMargin, interpolate, max_margin};

/// All claims of the paper, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let parts: [&[Claim]; 12] = [
        &nearest::CLAIMS,
        &momentum::CLAIMS,
        &natural::CLAIMS,
        &steepest::CLAIMS,
        &stagewise::CLAIMS,
        &margins::CLAIMS,
        &duality::CLAIMS,
        &boosting::CLAIMS,
        &adaptive::CLAIMS,
        &factored::CLAIMS,
        &support::CLAIMS,
        &scale::CLAIMS,
    ];
    parts.concat()
}

/// The targets of a regression task.
fn values(data: &Dataset) -> &[f64] {
    match &data.targets {
        Targets::Values(values) | Targets::Binary(values) => values,
        Targets::Classes { .. } => &[],
    }
}

/// yₙ⟨w, xₙ⟩ of all examples.
fn margins(data: &Dataset, w: &[f64]) -> Vec<f64> {
    values(data).iter().enumerate().map(|(n, y)| y * data.inputs.row_dot(n, w)).collect()
}

/// The smallest of them.
pub(super) fn least_margin(data: &Dataset, w: &[f64]) -> f64 {
    margins(data, w).into_iter().fold(f64::INFINITY, smaller)
}

/// The judge's limit point of a run: the solution nearest to its start in the divergence of `potential`.
fn nearest_solution(run: &Finished, potential: &PotentialSpec) -> Result<Interpolation, ClaimError> {
    let layout = ParamLayout::vector(run.start.len());
    let target = InterpolationTarget::Potential(potential.clone());
    Ok(interpolate(&*run.data.dense()?, values(&run.data), &target, &layout, Some(&run.start))?)
}

/// The judge's limit on w₁ + 2w₂ = 1 of mirror descent with the entropy from any start with 2 log w₁ − log w₂ =
/// `offset`, which its steps conserve (B Propositions 2a and 3a).
fn limit_of_offset(offset: f64) -> Result<Vec<f64>, ClaimError> {
    let (x, target) = (Matrix::from_rows(&[&[1.0, 2.0]]), InterpolationTarget::Potential(PotentialSpec::Entropy));
    let start = [(offset / 2.0).exp(), 1.0];
    Ok(interpolate(&x, &[1.0], &target, &ParamLayout::vector(2), Some(&start))?.weights)
}

/// The norm of the steepest descent that a task runs; ℓ2 for other optimisers.
fn norm_of(task: &Task) -> NormSpec {
    match task.recipe.optimisers.get(&task.label.optimiser) {
        Some(OptimiserSpec::Steepest { norm, .. }) => norm.clone(),
        _ => NormSpec::L2,
    }
}

/// The judge's largest margin of a linear model on these data.
pub(super) fn largest_margin(data: &Dataset, model: &ModelSpec, norm: &NormSpec) -> Result<MaxMargin, ClaimError> {
    let outputs = MarginMap::new(&data.targets).outputs();
    let model = cpu::bind(model, &data.inputs, outputs, Compute::default())?;
    let problem = linear_margin_problem(data, &Measure::Norm(norm.clone()), model.layout())
        .map_err(crate::experiments::RunError::from)?;
    Ok(max_margin(&problem)?)
}
