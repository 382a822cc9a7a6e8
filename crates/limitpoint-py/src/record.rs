//! Tables, reports and figures of an experiment.

use std::path::PathBuf;

use limitpoint::experiments::{Analysis, ExperimentRecord, NamedRun, analyse, save_figures, save_page};
use limitpoint::report::{figures, html};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::convert::{refuse, to_python};
use crate::run::Run;

/// Name, optimiser, settings in which it differs from others, and the run.
type Named<'py> = (String, String, Vec<(String, String)>, PyRef<'py, Run>);

/// What runs left behind and what it says.
#[pyclass(frozen, module = "limitpoint._core")]
pub struct Record {
    record: ExperimentRecord,
    analysis: Analysis,
}

#[pymethods]
impl Record {
    /// Of the folder of an experiment; of runs that still go on, what there is so far.
    #[staticmethod]
    fn load(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        let record = py.detach(|| ExperimentRecord::load(&folder)).map_err(refuse)?;
        let analysis = analyse(&record);
        Ok(Self { record, analysis })
    }

    /// Of runs in memory: name, optimiser, settings in which they differ, and the run.
    #[staticmethod]
    fn of(title: &str, runs: Vec<Named<'_>>) -> PyResult<Self> {
        let named: Vec<NamedRun> = runs
            .iter()
            .map(|(name, optimiser, point, run)| NamedRun {
                name: name.clone(),
                optimiser: optimiser.clone(),
                point: point.clone(),
                seconds: run.seconds,
                run: &run.inner,
            })
            .collect();
        let record = ExperimentRecord::of_runs(title, &named).map_err(refuse)?;
        let analysis = analyse(&record);
        Ok(Self { record, analysis })
    }

    /// The page.
    fn html(&self) -> String {
        html(&self.record, &self.analysis)
    }

    /// Writes report.html into the folder of an experiment, and figures as SVG if they are wanted.
    #[pyo3(signature = (folder, svg=false))]
    fn save(&self, folder: PathBuf, svg: bool) -> PyResult<PathBuf> {
        let page = save_page(&folder, &self.html()).map_err(refuse)?;
        if svg {
            let drawn = figures(&self.record, &self.analysis);
            let named = drawn.iter().map(|figure| (figure.name.as_str(), figure.svg.as_str()));
            save_figures(&folder, named).map_err(refuse)?;
        }
        Ok(page)
    }

    /// Figures as SVG by name.
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let drawn = PyDict::new(py);
        for figure in figures(&self.record, &self.analysis) {
            drawn.set_item(figure.name, figure.svg)?;
        }
        Ok(drawn)
    }

    /// The table of final values, as `limitpoint run` prints it.
    fn table(&self) -> String {
        limitpoint_cli::table_of(&self.analysis, self.record.runs.len())
    }

    /// Summary, findings and failures.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Analysis { summary, findings, failures, .. } = &self.analysis;
        to_python(py, &json!({ "summary": summary, "findings": findings, "failures": failures }))
    }

    /// Name and words of the experiment, and of every run what is known besides its measurements.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let runs = self.record.runs.iter().map(|run| {
            json!({
                "name": run.name, "optimiser": run.optimiser, "formula": run.formula, "own_norm": run.own_norm,
                "seed": run.seed, "point": run.point, "stop": run.stop, "healthy": run.healthy, "failed": run.failed,
                "steps": run.steps, "seconds": run.seconds, "test_accuracy": run.test_accuracy,
                "log10_loss": run.metrics.last("log10_loss"), "certificate": run.certificate,
            })
        });
        let runs: Vec<_> = runs.collect();
        let record = &self.record;
        let described = json!({
            "name": record.name, "title": record.title, "description": record.description, "config": record.config,
            "version": record.version, "data": record.data, "references": record.references, "runs": runs,
        });
        to_python(py, &described)
    }

    /// The measurements of one run: columns by name.
    fn history<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        if let Some(run) = self.record.runs.iter().find(|run| run.name == name) {
            for (column, values) in run.metrics.columns.iter().zip(&run.metrics.values) {
                columns.set_item(column, PyArray1::from_slice(py, values))?;
            }
        }
        Ok(columns)
    }
}
