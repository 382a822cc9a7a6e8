//! Experiments in folders, watched and interrupted from Python.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use limitpoint::data::data_folder;
use limitpoint::engine::Device;
use limitpoint::experiments::{
    Experiment, ExperimentRecord, Progress, RecipeSource, RunManifest, RunOptions, Status, Watcher, load_weights, plan,
    run_data,
};
use limitpoint::observers::StopReason;
use limitpoint::training::TrainedRun;
use pyo3::prelude::*;

use crate::convert::{Error, refuse};
use crate::run::Run;

/// How often Python is asked whether to go on.
const PAUSE: Duration = Duration::from_millis(100);

/// The last news of every run, until somebody asks for them.
struct News {
    labels: Vec<String>,
    latest: Mutex<Vec<Option<(u64, f64, f64)>>>,
    lines: Mutex<Vec<String>>,
}

/// Name, step, log₁₀ of the loss and how much of the way is done.
type Line = (String, u64, f64, f64);

impl News {
    fn take(&self) -> (Vec<Line>, Vec<String>) {
        let lines = self.lines.lock().map(|mut lines| std::mem::take(&mut *lines)).unwrap_or_default();
        let latest = self.latest.lock().map(|latest| latest.clone()).unwrap_or_default();
        let line = |(label, news): (&String, Option<(u64, f64, f64)>)| {
            news.map(|(step, log10_loss, part)| (label.clone(), step, log10_loss, part))
        };
        (self.labels.iter().zip(latest).filter_map(line).collect(), lines)
    }

    fn put(&self, run: usize, news: Option<(u64, f64, f64)>) {
        if let Ok(mut latest) = self.latest.lock() {
            latest[run] = news;
        }
    }
}

impl Watcher for News {
    fn progress(&self, run: usize, progress: &Progress) {
        self.put(run, Some((progress.step, progress.log10_loss, progress.fraction.unwrap_or(0.0))));
    }

    fn note(&self, run: usize, text: &str) {
        if let Ok(mut lines) = self.lines.lock() {
            lines.push(format!("{}: {text}", self.labels[run]));
        }
    }

    fn ended(&self, run: usize, manifest: &RunManifest) {
        self.put(run, Some((manifest.steps, manifest.log10_loss, 1.0)));
    }
}

/// Runs an experiment in a folder, or goes on with the one that is there. About ten times a second `tell(lines, notes)` is
/// called and Ctrl-C looked for, which ends all runs with a checkpoint; says whether that happened.
#[pyfunction]
#[pyo3(signature = (source, overrides, folder, threads=None, data_dir=None, tell=None))]
pub fn run_experiment(
    py: Python<'_>,
    source: Option<&str>,
    overrides: Vec<String>,
    folder: PathBuf,
    threads: Option<usize>,
    data_dir: Option<PathBuf>,
    tell: Option<Py<PyAny>>,
) -> PyResult<bool> {
    let experiment = match source {
        Some(source) => {
            let plan = plan(&RecipeSource::find(source).map_err(refuse)?, &overrides).map_err(refuse)?.with_own_norms();
            Experiment::new(&plan).map_err(refuse)?
        }
        None => {
            let experiment = Experiment::open(&folder).map_err(refuse)?;
            if overrides.is_empty() { experiment } else { experiment.with_later_stop(&overrides).map_err(refuse)? }
        }
    };
    let experiment = experiment.with_data_folder(data_dir.or_else(data_folder));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.unwrap_or(cores).clamp(1, cores);
    let labels: Vec<String> = experiment.tasks().iter().map(|task| task.label.name.clone()).collect();
    let news = News { latest: Mutex::new(vec![None; labels.len()]), lines: Mutex::default(), labels };
    let interrupt = AtomicBool::new(false);
    let (outcome, stopped) = py.detach(|| {
        std::thread::scope(|scope| {
            let options = RunOptions { threads, device: Device::Cpu, watcher: &news, interrupt: &interrupt };
            let work = scope.spawn(move || experiment.run(&folder, &options));
            let mut stopped = None;
            while !work.is_finished() {
                std::thread::sleep(PAUSE.min(Duration::from_millis(20)));
                if stopped.is_none()
                    && let Err(error) = ask(&news, tell.as_ref())
                {
                    interrupt.store(true, Ordering::Relaxed);
                    stopped = Some(error);
                }
            }
            (work.join(), stopped)
        })
    });
    if let Some(error) = stopped
        && !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
    {
        return Err(error);
    }
    let manifests = outcome.map_err(|_| Error::new_err("a run broke down; please report it"))?.map_err(refuse)?;
    Ok(manifests.iter().any(|manifest| manifest.status == Status::Interrupted))
}

/// Tells Python how runs get on; an error is what it answers, Ctrl-C among them.
fn ask(news: &News, tell: Option<&Py<PyAny>>) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        tell.map_or(Ok(()), |tell| tell.call1(py, news.take()).map(drop))
    })
}

/// Names of the runs of an experiment's folder, which are those of their folders.
#[pyfunction]
pub fn run_names(folder: PathBuf) -> PyResult<Vec<String>> {
    let experiment = Experiment::open(&folder).map_err(refuse)?;
    Ok(experiment.tasks().iter().map(|task| task.label.name.clone()).collect())
}

/// A finished run of an experiment's folder: its data, weights and measurements.
#[pyfunction]
#[pyo3(signature = (folder, name, data_dir=None))]
pub fn open_run(py: Python<'_>, folder: PathBuf, name: &str, data_dir: Option<PathBuf>) -> PyResult<Run> {
    py.detach(|| open(folder, name, data_dir)).map_err(refuse)
}

fn open(folder: PathBuf, name: &str, data_dir: Option<PathBuf>) -> anyhow::Result<Run> {
    let experiment = Experiment::open(&folder)?;
    let Some(task) = experiment.tasks().iter().find(|task| task.label.name == name) else {
        let names: Vec<&str> = experiment.tasks().iter().map(|task| task.label.name.as_str()).collect();
        anyhow::bail!("{} has no run '{name}', but {}", folder.display(), names.join(", "));
    };
    let (setup, run) = (task.setup()?, folder.join(name));
    let manifest = RunManifest::load(&run)?;
    if manifest.status != Status::Finished {
        anyhow::bail!(
            "{name} is not finished: {}; go on with limitpoint.resume(\"{}\")",
            manifest.stop,
            folder.display()
        );
    }
    let data = Arc::new(run_data(&run, data_dir.or_else(data_folder).as_deref())?.0.train);
    let layout = setup.objective(&data)?.layout().clone();
    let record = ExperimentRecord::load(&folder)?;
    let metrics = record.runs.into_iter().find(|run| run.name == name).map(|run| run.metrics).unwrap_or_default();
    let log10_time = metrics.last("log10_time").unwrap_or(f64::NAN);
    let trained = TrainedRun {
        start: setup.initial(&layout),
        params: load_weights(&run.join("checkpoints/final.safetensors"), &layout)?,
        log_loss: manifest.log10_loss * std::f64::consts::LN_10,
        log_time: log10_time * std::f64::consts::LN_10,
        steps: manifest.steps,
        reason: StopReason::Observer,
        course: metrics.direction_course(),
        metrics,
        layout,
        data,
        setup,
    };
    Ok(Run { inner: Arc::new(trained), seal: None, paused: None, seconds: manifest.timings.seconds })
}
