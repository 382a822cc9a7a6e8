//! A training in memory, and a run of a folder: the same methods for both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use limitpoint::certificates::Measure;
use limitpoint::certificates::{PolishMethod, PolishSettings, PolishStatus, Tolerances, polish};
use limitpoint::norms::NormSpec;
use limitpoint::training::{RunningTraining, TrainedRun, Training, TrainingState};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;

use crate::convert::{Error, refuse, to_python};
use crate::data::{Data, unchanged};
use crate::settings::Settings;

/// How often Python is asked whether to go on.
const PAUSE: Duration = Duration::from_millis(100);

/// What a training came to, or where it was interrupted.
#[pyclass(frozen, module = "limitpoint._core")]
pub struct Run {
    /// The run.
    pub inner: Arc<TrainedRun>,
    /// Of its data, where an array lends them.
    pub seal: Option<u64>,
    /// How it goes on, if it was interrupted.
    pub paused: Option<(Training, TrainingState)>,
    /// Seconds it took.
    #[pyo3(get)]
    pub seconds: f64,
}

/// Trains on data in memory, with Python free to do other things. About ten times a second `tell(step, log10_loss)` is
/// called and Ctrl-C looked for; a run that is interrupted comes back as it stands.
#[pyfunction]
#[pyo3(signature = (data, settings, tell=None))]
pub fn train(py: Python<'_>, data: &Data, settings: &str, tell: Option<Py<PyAny>>) -> PyResult<Run> {
    let settings: Settings = serde_json::from_str(settings).map_err(refuse)?;
    unchanged(&data.inner, data.seal)?;
    let training = settings.training(data).map_err(refuse)?;
    let running = py.detach(|| training.start()).map_err(refuse)?;
    drive(py, &training, running, tell.as_ref(), (0.0, data.seal))
}

fn drive(
    py: Python<'_>,
    training: &Training,
    running: RunningTraining,
    tell: Option<&Py<PyAny>>,
    (earlier, seal): (f64, Option<u64>),
) -> PyResult<Run> {
    let begin = Instant::now();
    let (running, stopped) = py.detach(move || until_told(running, tell))?;
    let paused = match stopped {
        None => None,
        Some(error) if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) => {
            Some((training.clone(), running.state()))
        }
        Some(error) => return Err(error),
    };
    let seconds = earlier + begin.elapsed().as_secs_f64();
    Ok(Run { inner: Arc::new(running.end()), seal, paused, seconds })
}

/// Steps until a rule holds or Python says stop.
fn until_told(mut running: RunningTraining, tell: Option<&Py<PyAny>>) -> PyResult<(RunningTraining, Option<PyErr>)> {
    let mut last = Instant::now();
    while running.step().map_err(refuse)?.is_none() {
        if last.elapsed() < PAUSE {
            continue;
        }
        last = Instant::now();
        let (step, log10_loss) = (running.steps(), running.log_loss() / std::f64::consts::LN_10);
        let answer = Python::attach(|py| {
            py.check_signals()?;
            tell.map_or(Ok(()), |tell| tell.call1(py, (step, log10_loss)).map(drop))
        });
        if let Err(error) = answer {
            return Ok((running, Some(error)));
        }
    }
    Ok((running, None))
}

#[pymethods]
impl Run {
    /// Goes on where it was interrupted, bit for bit as if nothing had happened.
    #[pyo3(signature = (tell=None))]
    fn resume(&self, py: Python<'_>, tell: Option<Py<PyAny>>) -> PyResult<Self> {
        let Some((training, state)) = &self.paused else {
            return Err(Error::new_err("the run is finished; there is nothing to resume"));
        };
        unchanged(&self.inner.data, self.seal)?;
        let running = py.detach(|| training.resume(state)).map_err(refuse)?;
        drive(py, training, running, tell.as_ref(), (self.seconds, self.seal))
    }

    /// Whether it was interrupted and can be resumed.
    #[getter]
    fn interrupted(&self) -> bool {
        self.paused.is_some()
    }

    /// log₁₀ of the summed loss.
    #[getter]
    fn log10_loss(&self) -> f64 {
        self.inner.log10_loss()
    }

    /// log₁₀ of the time travelled.
    #[getter]
    fn log10_time(&self) -> f64 {
        self.inner.log_time / std::f64::consts::LN_10
    }

    /// Accepted steps.
    #[getter]
    fn steps(&self) -> u64 {
        self.inner.steps
    }

    /// Why it ended, in words.
    #[getter]
    fn reason(&self) -> String {
        if self.paused.is_some() { "interrupted".to_owned() } else { self.inner.reason.to_string() }
    }

    /// Whether it ended by a rule and not in trouble.
    #[getter]
    fn healthy(&self) -> bool {
        self.inner.reason.is_healthy()
    }

    /// The norm whose margin theory expects it to maximise.
    #[getter]
    fn own_norm(&self) -> Option<String> {
        self.inner.setup.trainer.own_norm().map(|norm| norm.key())
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.setup.seed
    }

    /// binary, class or real: the kind of its targets.
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.data.targets.kind()
    }

    /// The degree of homogeneity of the model, if it is homogeneous.
    #[getter]
    fn degree(&self) -> PyResult<Option<f64>> {
        let objective = self.inner.setup.objective(&self.inner.data).map_err(refuse)?;
        Ok(objective.homogeneity().map(|homogeneity| homogeneity.degree))
    }

    /// Model, loss and step sizes in words of recipes.
    #[getter]
    fn description<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let setup = &self.inner.setup;
        let described = json!({
            "data": self.inner.data.name, "examples": self.inner.data.len(), "model": setup.model,
            "loss": setup.loss.to_string(), "schedule": setup.schedule.to_string(),
            "formula": setup.trainer.formula(), "seed": setup.seed,
        });
        to_python(py, &described)
    }

    /// All weights in one array, block after block; `initial` where it started.
    #[pyo3(signature = (initial=false))]
    fn weights<'py>(&self, py: Python<'py>, initial: bool) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, if initial { &self.inner.start } else { &self.inner.params })
    }

    /// The weights as matrices by name.
    fn blocks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let blocks = PyDict::new(py);
        for block in self.inner.layout.blocks() {
            let flat = PyArray1::from_slice(py, &self.inner.params[block.range()]);
            blocks.set_item(&block.name, flat.reshape([block.rows, block.cols])?)?;
        }
        Ok(blocks)
    }

    /// The measurements: columns by name.
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, values) in self.inner.metrics.columns.iter().zip(&self.inner.metrics.values) {
            columns.set_item(name, PyArray1::from_slice(py, values))?;
        }
        Ok(columns)
    }

    /// The normalised margin min q/‖θ‖^L.
    fn margin(&self, py: Python<'_>, norm: &str) -> PyResult<f64> {
        unchanged(&self.inner.data, self.seal)?;
        py.detach(|| self.inner.margin(norm)).map_err(refuse)
    }

    /// ‖θ‖.
    fn norm(&self, norm: &str) -> PyResult<f64> {
        let norm: NormSpec = norm.parse().map_err(refuse)?;
        Ok(norm.build(&self.inner.layout).map_err(refuse)?.value(&self.inner.params))
    }

    /// Scores on data, one row an example.
    fn scores<'py>(&self, py: Python<'py>, data: &Data) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let scores = py.detach(|| self.inner.scores(&data.inner)).map_err(refuse)?;
        let count = data.inner.len();
        PyArray1::from_vec(py, scores).reshape([count, self.outputs()])
    }

    /// The share of examples that are classified correctly.
    fn accuracy(&self, py: Python<'_>, data: &Data) -> PyResult<f64> {
        py.detach(|| self.inner.accuracy(&data.inner)).map_err(refuse)
    }

    /// What theory says of the limit, judged; without a norm in the geometry of who trained.
    #[pyo3(signature = (norm=None, tolerance=None))]
    fn certify<'py>(&self, py: Python<'py>, norm: Option<&str>, tolerance: Option<f64>) -> PyResult<Bound<'py, PyAny>> {
        let norm = norm.map(|norm| norm.parse::<NormSpec>()).transpose().map_err(refuse)?;
        unchanged(&self.inner.data, self.seal)?;
        let default = Tolerances::default();
        let tolerances = Tolerances { gap: tolerance.unwrap_or(default.gap), ..default };
        let judged = py.detach(|| self.inner.decide(norm.as_ref(), tolerances)).map_err(refuse)?;
        let answer = json!({
            "verdict": judged.verdict.word(), "in_words": judged.verdict.to_string(),
            "statement": judged.statement(), "summary": judged.evidence.summary(), "evidence": judged.evidence,
            "claim": judged.claim, "tolerances": judged.tolerances,
        });
        to_python(py, &answer)
    }

    /// From here to a certified KKT point nearby: the run with those weights, and what was done.
    #[pyo3(signature = (norm=None, target=None, rounds=None))]
    fn polish<'py>(
        &self,
        py: Python<'py>,
        norm: Option<&str>,
        target: Option<f64>,
        rounds: Option<usize>,
    ) -> PyResult<(Self, Bound<'py, PyAny>)> {
        let run = &self.inner;
        unchanged(&run.data, self.seal)?;
        let norm = match (norm, run.setup.trainer.measure()) {
            (Some(norm), _) => norm.parse::<NormSpec>().map_err(refuse)?,
            (None, Some(Measure::Norm(norm))) => norm,
            (None, _) => return Err(Error::new_err("no norm is known for who trained; name one, such as norm=\"l2\"")),
        };
        let default = PolishSettings::default();
        let (target, rounds) = (target.unwrap_or(default.target), rounds.unwrap_or(default.rounds));
        let settings = PolishSettings { target, rounds, ..default };
        let polished =
            py.detach(|| polish(&run.setup.model, &run.data, &run.params, &norm, &settings)).map_err(refuse)?;
        let (status, why) = match &polished.status {
            PolishStatus::Polished => ("polished", None),
            PolishStatus::Stalled { why } => ("stalled", Some(why)),
        };
        let method = match polished.method {
            PolishMethod::Cells => "convex problems",
            PolishMethod::Curved => "Newton systems",
            PolishMethod::Barrier => "barrier problems",
            PolishMethod::Tangent => "tangent problems",
        };
        let answer = json!({
            "status": status, "why": why, "norm": polished.norm, "method": method,
            "tau_before": polished.tau_before, "tau_after": polished.tau_after,
            "margin_before": polished.margin_before, "margin_after": polished.margin_after,
            "angle_degrees": polished.angle.to_degrees(), "solves": polished.solves,
            "iterations": polished.iterations, "kinks": polished.kinks, "pruned": polished.pruned,
        });
        let moved = TrainedRun { params: polished.params, course: None, ..(**run).clone() };
        let moved = Self { inner: Arc::new(moved), seal: self.seal, paused: None, seconds: self.seconds };
        Ok((moved, to_python(py, &answer)?))
    }
}

impl Run {
    fn outputs(&self) -> usize {
        limitpoint::models::MarginMap::new(&self.inner.data.targets).outputs()
    }
}
