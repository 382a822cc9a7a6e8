//! Exact margins and nearest solutions, with their proofs.

use limitpoint::data::Targets;
use limitpoint::linalg::Matrix;
use limitpoint::norms::NormSpec;
use limitpoint::params::ParamLayout;
use limitpoint::potentials::PotentialSpec;
use limitpoint::reference::{
    InterpolationTarget, MarginProblem, MarginStatus, free_margin as nearest_hulls, interpolate as nearest, max_margin,
    max_margin_of, stack_equations,
};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{Error, refuse};
use crate::data::Data;

/// The largest margin of a linear model in a norm, or the proof that there is none.
#[pyfunction]
#[pyo3(signature = (data, norm, semidefinite=false))]
pub fn solve_margin<'py>(py: Python<'py>, data: &Data, norm: &str, semidefinite: bool) -> PyResult<Bound<'py, PyDict>> {
    let norm: NormSpec = norm.parse().map_err(refuse)?;
    let found = py
        .detach(|| match semidefinite {
            true => max_margin(&MarginProblem::linear(&data.inner, norm.clone())?.semidefinite()?),
            false => max_margin_of(&data.inner, norm.clone()),
        })
        .map_err(refuse)?;
    let shape = match (&data.inner.targets, &data.inner.input_shape[..]) {
        (Targets::Classes { count, .. }, _) => [*count, data.inner.dimension()],
        (_, [rows, columns]) => [*rows, *columns],
        _ => [1, data.inner.dimension()],
    };
    let array = |values: &[f64]| PyArray1::from_slice(py, values);
    let answer = PyDict::new(py);
    answer.set_item("status", found.status.to_string())?;
    answer.set_item("separable", found.status != MarginStatus::NotSeparable)?;
    answer.set_item("norm", norm.to_string())?;
    answer.set_item("margin", found.margin)?;
    answer.set_item("lower", found.bracket.lower)?;
    answer.set_item("upper", found.bracket.upper)?;
    answer.set_item("relative_gap", found.bracket.relative_gap())?;
    answer.set_item("shape", shape)?;
    answer.set_item("direction", array(&found.direction))?;
    answer.set_item("direction_low", array(&found.direction_low))?;
    answer.set_item("dual", array(&found.dual))?;
    answer.set_item("dual_low", array(&found.dual_low))?;
    answer.set_item("slack", array(&found.slack))?;
    answer.set_item("support", found.support.clone())?;
    let known = found.uniqueness.known;
    answer.set_item("unique", known.then_some(found.uniqueness.unique))?;
    answer.set_item("face_dimension", known.then_some(found.uniqueness.face_dimension))?;
    answer.set_item("evidence", found.uniqueness.evidence)?;
    answer.set_item("iterations", found.iterations)?;
    Ok(answer)
}

/// The largest ℓ2 margin of two classes with an intercept that costs nothing; None where it was not found.
#[pyfunction]
pub fn free_margin<'py>(py: Python<'py>, data: &Data) -> PyResult<Option<Bound<'py, PyDict>>> {
    let Some(found) = py.detach(|| nearest_hulls(&data.inner)).map_err(refuse)? else { return Ok(None) };
    let answer = PyDict::new(py);
    answer.set_item("margin", found.bracket.lower)?;
    answer.set_item("relative_gap", found.bracket.relative_gap())?;
    answer.set_item("direction", PyArray1::from_vec(py, found.direction))?;
    answer.set_item("intercept", found.intercept)?;
    answer.set_item("dual", PyArray1::from_vec(py, found.dual))?;
    answer.set_item("iterations", found.iterations)?;
    Ok(Some(answer))
}

/// The solution of Xw = y of least norm or potential, or nearest to a start.
#[pyfunction]
#[pyo3(signature = (data, norm=None, potential=None, start=None, total=None))]
pub fn interpolate<'py>(
    py: Python<'py>,
    data: &Data,
    norm: Option<&str>,
    potential: Option<&str>,
    start: Option<PyReadonlyArray1<'py, f64>>,
    total: Option<f64>,
) -> PyResult<Bound<'py, PyDict>> {
    let target = match (norm, potential) {
        (Some(norm), None) => InterpolationTarget::Norm(norm.parse::<NormSpec>().map_err(refuse)?),
        (None, Some(text)) => InterpolationTarget::Potential(text.parse::<PotentialSpec>().map_err(refuse)?),
        _ => return Err(Error::new_err("name either a norm or a potential")),
    };
    let (Targets::Values(y) | Targets::Binary(y)) = &data.inner.targets else {
        return Err(Error::new_err("equations need one real target per example"));
    };
    let layout = match data.inner.input_shape[..] {
        [rows, columns] => ParamLayout::new([("w", rows, columns)]),
        _ => ParamLayout::new([("w", 1, data.inner.dimension())]),
    }
    .map_err(refuse)?;
    let start = start.map(|start| start.as_slice().map(<[f64]>::to_vec)).transpose()?;
    if let Some(start) = &start {
        layout.check(start).map_err(refuse)?;
    }
    let solve = || -> anyhow::Result<_> {
        let dense = data.inner.dense()?;
        Ok(match total {
            None => nearest(&dense, y, &target, &layout, start.as_deref())?,
            Some(total) => {
                let ones = Matrix::from_vec(1, dense.cols, vec![1.0; dense.cols])?;
                let (x, y) = stack_equations((&dense, y), (&ones, &[total]))?;
                nearest(&x, &y, &target, &layout, start.as_deref())?
            }
        })
    };
    let found = py.detach(solve).map_err(refuse)?;
    let answer = PyDict::new(py);
    answer.set_item("weights", PyArray1::from_slice(py, &found.weights))?;
    answer.set_item("multipliers", PyArray1::from_slice(py, &found.multipliers))?;
    answer.set_item("objective", found.objective)?;
    answer.set_item("lower_bound", found.lower_bound)?;
    answer.set_item("gap", found.gap())?;
    answer.set_item("residual", found.residual)?;
    answer.set_item("stationarity", found.stationarity)?;
    answer.set_item("rank", found.rank)?;
    answer.set_item("iterations", found.iterations)?;
    Ok(answer)
}
