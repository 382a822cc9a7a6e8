//! Fingerprints, horizons, claims of papers, and the command line itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use limitpoint::fingerprint::{Settings, fingerprint_all};
use limitpoint::models::ModelSpec;
use limitpoint::norms::NormSpec;
use limitpoint::potentials::{ScalarCurve, Survey};
use limitpoint::report::{fingerprints, horizon_page, radar_figure};
use limitpoint::schedules::ScheduleSpec;
use limitpoint_claims::{Lab, Scale, find_claims, gallery};
use pyo3::prelude::*;
use serde_json::json;

use crate::convert::{Error, refuse, to_python};

/// Which geometry an optimiser maximises: `fingerprints`, a page and a figure.
#[pyfunction]
#[pyo3(signature = (optimiser, starts=2, schedule=None, log10_loss=None, steps=None, norms=Vec::new()))]
pub fn fingerprint<'py>(
    py: Python<'py>,
    optimiser: &str,
    starts: usize,
    schedule: Option<&str>,
    log10_loss: Option<f64>,
    steps: Option<u64>,
    norms: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(depth) = log10_loss.filter(|depth| depth.is_nan() || *depth > -2.0) {
        return Err(Error::new_err(format!("log10_loss is {depth}, but must be -2 or less: above nothing is decided")));
    }
    let schedule = schedule.map(|text| text.parse::<ScheduleSpec>()).transpose().map_err(refuse)?;
    let mut settings = Settings { starts, schedule, log10_loss, steps, ..Settings::default() };
    for norm in norms {
        settings = settings.with_norm(norm.parse::<NormSpec>().map_err(refuse)?);
    }
    let found = py.detach(|| fingerprint_all(optimiser, &settings)).map_err(refuse)?;
    let figure = radar_figure(&found).map(|figure| figure.svg);
    to_python(py, &json!({ "fingerprints": found, "page": fingerprints(&found), "figure": figure }))
}

/// What mirror flow with a potential tends to: the survey and its page.
#[pyfunction]
pub fn horizon<'py>(py: Python<'py>, potential: &str) -> PyResult<Bound<'py, PyAny>> {
    let survey = py.detach(|| potential.parse::<ScalarCurve>().map(|curve| Survey::of(&curve))).map_err(refuse)?;
    to_python(py, &json!({ "survey": survey, "has_limit": survey.has_limit(), "page": horizon_page(&survey) }))
}

/// Tries claims of the papers out: their records and a page. `tell(record)` is called after each.
#[pyfunction]
#[pyo3(signature = (ids, scale="quick", mnist=None, tell=None))]
pub fn claims<'py>(
    py: Python<'py>,
    ids: Vec<String>,
    scale: &str,
    mnist: Option<PathBuf>,
    tell: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let scale = match scale {
        "quick" => Scale::Quick,
        "full" => Scale::Full,
        "paper" => Scale::Paper,
        other => return Err(Error::new_err(format!("the scale is quick, full or paper, not '{other}'"))),
    };
    let mut chosen = Vec::new();
    for id in &ids {
        chosen.extend(find_claims(id).map_err(refuse)?);
    }
    let lab = Lab::new(scale).with_mnist(mnist);
    let mut records = Vec::new();
    for claim in &chosen {
        // between claims Ctrl-C is heard
        py.check_signals()?;
        let record = py.detach(|| claim.run(&lab));
        if let Some(tell) = &tell {
            tell.call1(py, (to_python(py, &record)?,))?;
        }
        records.push(record);
    }
    let page = gallery(&format!("Claims {}", ids.join(", ")), &records);
    let as_recorded: Vec<bool> = records.iter().map(|record| record.as_recorded()).collect();
    to_python(py, &json!({ "claims": records, "as_recorded": as_recorded, "page": page }))
}

/// Id and statement of every claim that can be tried.
#[pyfunction]
pub fn list_claims() -> Vec<(String, String)> {
    limitpoint_claims::claims().iter().map(|claim| (claim.id.to_owned(), claim.statement.to_owned())).collect()
}

/// A model such as "relu 32" as recipes write it; refused if it cannot be read.
#[pyfunction]
pub fn model_text(text: &str) -> PyResult<String> {
    let model: ModelSpec = text.parse().map_err(refuse)?;
    serde_json::to_string(&model).map_err(refuse)
}

/// The command line: does what the words say, of which the first is the program, and gives the exit code.
#[pyfunction]
pub fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    let code = py.detach(|| limitpoint_cli::main_with(words));
    // a code does not tell its number, but it can be compared
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(2)
}
