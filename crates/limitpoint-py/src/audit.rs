//! What Python's audits ask of the library: norms of blocks, tangent problems, tangent files, and foreign optimisers' paths.

use std::path::PathBuf;

use limitpoint::certificates::{Disagreement, ForeignTangent, Level, TangentClaim, TangentFile};
use limitpoint::engine::{Compute, Forward, cpu};
use limitpoint::experiments::{check_tangent_file, save_tangent_file};
use limitpoint::fingerprint::{ForeignPath, foreign_probes, read_paths};
use limitpoint::linalg::Matrix;
use limitpoint::models::{MarginMap, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::params::ParamLayout;
use limitpoint::reference::solve_margin_gram;
use limitpoint::report::{fingerprints, radar_figure};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::convert::{refuse, to_python};
use crate::data::Data;

/// Name, rows and columns of every block.
type Blocks = Vec<(String, usize, usize)>;

fn layout(blocks: &Blocks) -> PyResult<ParamLayout> {
    ParamLayout::new(blocks.iter().map(|(name, rows, cols)| (name.as_str(), *rows, *cols))).map_err(refuse)
}

fn matrix(array: &PyReadonlyArray2<'_, f64>) -> PyResult<Matrix> {
    let view = array.as_array();
    Matrix::from_vec(view.nrows(), view.ncols(), array.as_slice()?.to_vec()).map_err(refuse)
}

/// Norms of a vector that is made of blocks, or their duals.
#[pyfunction]
#[pyo3(signature = (blocks, vector, norms, dual=false))]
pub fn norm_values(
    blocks: Blocks,
    vector: PyReadonlyArray1<'_, f64>,
    norms: Vec<String>,
    dual: bool,
) -> PyResult<Vec<f64>> {
    let (layout, vector) = (layout(&blocks)?, vector.as_slice()?);
    layout.check(vector).map_err(refuse)?;
    let value = |norm: &String| {
        let mut norm = norm.parse::<NormSpec>().map_err(refuse)?.build(&layout).map_err(refuse)?;
        Ok(if dual { norm.dual(vector) } else { norm.value(vector) })
    };
    norms.iter().map(value).collect()
}

/// τ of weights with given margins and gradients, in a norm.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the parts of a tangent problem")]
pub fn tangent<'py>(
    py: Python<'py>,
    blocks: Blocks,
    params: PyReadonlyArray1<'py, f64>,
    margins: PyReadonlyArray1<'py, f64>,
    degree: f64,
    rows: PyReadonlyArray2<'py, f64>,
    margin_of_row: Vec<usize>,
    norm: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let norm: NormSpec = norm.parse().map_err(refuse)?;
    let (params, margins) = (params.as_slice()?.to_vec(), margins.as_slice()?.to_vec());
    let problem =
        ForeignTangent { layout: layout(&blocks)?, params, margins, degree, rows: matrix(&rows)?, margin_of_row };
    let found = py.detach(|| problem.tau(&norm)).map_err(refuse)?;
    let answer = PyDict::new(py);
    answer.set_item("tau", found.tau)?;
    answer.set_item("tau_lower", found.tau_lower)?;
    let weights: Vec<f64> = found.multipliers.rows.iter().map(|p| p.max(0.0)).collect();
    answer.set_item("weights", PyArray1::from_vec(py, weights))?;
    answer.set_item("direction", PyArray1::from_vec(py, found.direction))?;
    answer.set_item("support", found.support)?;
    answer.set_item("euler_defect", found.euler_defect)?;
    Ok(answer)
}

/// Multipliers p ≥ 0 of the ℓ2 margin problem of rows that are known by their Gram matrix, and bounds of its value.
#[pyfunction]
pub fn gram_weights<'py>(
    py: Python<'py>,
    gram: PyReadonlyArray2<'py, f64>,
) -> PyResult<(Bound<'py, PyArray1<f64>>, f64, f64)> {
    let gram = matrix(&gram)?;
    let found = py.detach(|| solve_margin_gram(&gram)).map_err(refuse)?;
    let weights: Vec<f64> = found.multipliers.rows.iter().map(|p| p.max(0.0)).collect();
    Ok((PyArray1::from_vec(py, weights), found.bracket.lower, found.bracket.upper))
}

/// Norm, level (pass, gram or rows), τ, margin, multipliers, and the weighted sum of a pass.
type Claim<'py> = (String, String, f64, f64, PyReadonlyArray1<'py, f64>, Option<PyReadonlyArray1<'py, f64>>);

/// Writes a tangent file.
#[pyfunction]
#[pyo3(signature = (path, blocks, params, margins, degree, rows, gram, margin_of_row, claims, about, data_sha256))]
#[expect(clippy::too_many_arguments, reason = "the parts of a tangent file")]
pub fn save_tangent<'py>(
    path: PathBuf,
    blocks: Blocks,
    params: PyReadonlyArray1<'py, f64>,
    margins: PyReadonlyArray1<'py, f64>,
    degree: f64,
    rows: Option<PyReadonlyArray2<'py, f64>>,
    gram: Option<PyReadonlyArray2<'py, f64>>,
    margin_of_row: Vec<usize>,
    claims: Vec<Claim<'py>>,
    about: String,
    data_sha256: String,
) -> PyResult<()> {
    let claim = |(norm, level, tau, margin, weights, sum): Claim<'py>| {
        Ok(TangentClaim {
            norm,
            level: serde_json::from_value::<Level>(level.into()).map_err(refuse)?,
            tau,
            margin,
            weights: weights.as_slice()?.to_vec(),
            sum: sum.map_or(Ok(Vec::new()), |sum| sum.as_slice().map(<[f64]>::to_vec))?,
        })
    };
    let file = TangentFile {
        blocks,
        params: params.as_slice()?.to_vec(),
        margins: margins.as_slice()?.to_vec(),
        degree,
        rows: rows.as_ref().map(matrix).transpose()?,
        gram: gram.as_ref().map(matrix).transpose()?,
        margin_of_row,
        claims: claims.into_iter().map(claim).collect::<PyResult<_>>()?,
        about,
        data_sha256,
    };
    save_tangent_file(&path, &file).map_err(refuse)
}

/// Checks a tangent file: what does not agree, and what it claims.
#[pyfunction]
pub fn check_tangent<'py>(py: Python<'py>, path: PathBuf) -> PyResult<(Vec<String>, Bound<'py, PyAny>)> {
    let checked = check_tangent_file(&path).map_err(refuse)?;
    let claims: Vec<_> = checked
        .file
        .claims
        .iter()
        .map(|claim| json!({ "norm": claim.norm, "level": claim.level, "tau": claim.tau, "margin": claim.margin }))
        .collect();
    let complaints = checked.disagreements.iter().map(Disagreement::to_string).collect();
    Ok((complaints, to_python(py, &claims)?))
}

/// Scores of a model at given weights.
#[pyfunction]
pub fn scores_of<'py>(
    py: Python<'py>,
    model: &str,
    weights: PyReadonlyArray1<'py, f64>,
    data: &Data,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let model: ModelSpec = model.parse().map_err(refuse)?;
    let outputs = MarginMap::new(&data.inner.targets).outputs();
    let mut evaluator = cpu::bind(&model, &data.inner.inputs, outputs, Compute::default()).map_err(refuse)?;
    let weights = weights.as_slice()?;
    evaluator.layout().check(weights).map_err(refuse)?;
    let scores = evaluator.scores(weights).to_vec();
    PyArray1::from_vec(py, scores).reshape([data.inner.len(), outputs])
}

/// The linear problems of the fingerprint, for optimisers that run in Python, and the levels of −log₁₀ L to stop at.
#[pyfunction]
pub fn probes<'py>(py: Python<'py>, starts: usize) -> PyResult<(Vec<Bound<'py, PyDict>>, Vec<f64>)> {
    let (found, levels) = py.detach(|| foreign_probes(starts)).map_err(refuse)?;
    let mut probes = Vec::new();
    for probe in found {
        let dict = PyDict::new(py);
        dict.set_item("name", probe.name)?;
        dict.set_item("shape", probe.shape)?;
        let (rows, cols) = (probe.rows.rows, probe.rows.cols);
        dict.set_item("rows", PyArray1::from_vec(py, probe.rows.data).reshape([rows, cols])?)?;
        let starts: Vec<_> = probe.starts.into_iter().map(|start| PyArray1::from_vec(py, start)).collect();
        dict.set_item("starts", starts)?;
        probes.push(dict);
    }
    Ok((probes, levels))
}

/// Probe, start, steps, why it ended, and (steps, weights) on the way.
type Path<'py> = (String, u64, u64, String, Vec<(u64, PyReadonlyArray1<'py, f64>)>);

/// The fingerprint that paths show.
#[pyfunction]
pub fn fingerprint_paths<'py>(py: Python<'py>, name: &str, paths: Vec<Path<'py>>) -> PyResult<Bound<'py, PyAny>> {
    let path = |(probe, start, steps, reason, points): Path<'py>| {
        let points = points.into_iter().map(|(step, weights)| Ok((step, weights.as_slice()?.to_vec())));
        Ok(ForeignPath { probe, start, steps, reason, points: points.collect::<PyResult<_>>()? })
    };
    let paths = paths.into_iter().map(path).collect::<PyResult<Vec<_>>>()?;
    let found = vec![py.detach(|| read_paths(name, &paths)).map_err(refuse)?];
    let figure = radar_figure(&found).map(|figure| figure.svg);
    to_python(py, &json!({ "fingerprints": found, "page": fingerprints(&found), "figure": figure }))
}
