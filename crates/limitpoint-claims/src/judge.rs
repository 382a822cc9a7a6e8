//! What the exact solver says of the limit of a linear model.

use limitpoint::certificates::{Measure, linear_margin_problem};
use limitpoint::data::Dataset;
use limitpoint::experiments::RunError;
use limitpoint::models::ModelSpec;
use limitpoint::norms::NormSpec;
use limitpoint::reference::{MaxMargin, max_margin};

use crate::ClaimError;
use crate::arithmetic::smaller;

/// The largest margin of a linear model in a norm, with its proof.
pub(crate) fn largest_margin(data: &Dataset, model: &ModelSpec, norm: &NormSpec) -> Result<MaxMargin, ClaimError> {
    let architecture = model.architecture_on(data)?;
    let problem =
        linear_margin_problem(data, &Measure::Norm(norm.clone()), architecture.layout()).map_err(RunError::from)?;
    Ok(max_margin(&problem)?)
}

/// min yₙ⟨w, xₙ⟩ with labels ±1; NaN with others.
pub(crate) fn least_margin(data: &Dataset, w: &[f64]) -> f64 {
    let Ok(signs) = data.signs() else { return f64::NAN };
    signs.iter().enumerate().map(|(n, y)| y * data.inputs.row_dot(n, w)).fold(f64::INFINITY, smaller)
}
