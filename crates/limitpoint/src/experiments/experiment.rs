//! A whole experiment: all its runs side by side, and what they left behind.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::RunError;
use super::certify::certificate_record;
use super::files::{RecordError, create_folder, read_text, remove_temporaries, write_atomically};
use super::fit::{require_memory, require_tasks};
use super::journal::{hexadecimal, partial_name};
use super::judge::{AT_ONCE, JudgeRecord, judge};
use super::manifest::{ExperimentManifest, RunManifest, Status};
use super::memory::memory_warnings;
use super::metrics::{read_histograms, read_metrics};
use super::recipe::Recipe;
use super::record::{DataRecord, ExperimentRecord, RunRecord};
use super::run::{Setting, Watcher, execute, metrics_path};
use super::task::Task;
use crate::data::{DataSplit, Inputs, Targets};
use crate::numeric::Streams;

/// An experiment ready to run.
pub struct Experiment {
    name: String,
    config: String,
    recipe: Recipe,
    tasks: Vec<Task>,
}

/// How an experiment is run.
pub struct RunOptions<'a> {
    /// Threads over all runs together; results do not depend on it.
    pub threads: usize,
    /// Who is told about progress.
    pub watcher: &'a dyn Watcher,
    /// Set it to end all runs with a checkpoint.
    pub interrupt: &'a AtomicBool,
}

impl Experiment {
    /// All runs of a recipe and its sweep points; `points` are the settings and recipes of the sweep.
    pub fn new(name: &str, points: &[(Vec<(String, String)>, Recipe)]) -> Result<Self, RunError> {
        let recipe = points.first().map(|point| point.1.clone()).ok_or(RunError::Nothing)?;
        require_tasks(points)?;
        let mut tasks: Vec<Task> = points.iter().flat_map(|(settings, recipe)| Task::all(recipe, settings)).collect();
        make_names_unique(&mut tasks);
        if tasks.is_empty() {
            return Err(RunError::Nothing);
        }
        Ok(Self { name: name.to_owned(), config: recipe.to_toml()?, recipe, tasks })
    }

    /// Takes up an experiment from its folder.
    pub fn open(folder: &Path) -> Result<Self, RunError> {
        let manifest = ExperimentManifest::load(folder)?;
        let config = read_text(&folder.join("config.toml"))?;
        let recipe = Recipe::from_resolved(&config)?;
        let tasks = manifest
            .runs
            .into_iter()
            .map(|label| {
                let text = read_text(&folder.join(&label.name).join("config.toml"))?;
                Ok(Task { recipe: Recipe::from_resolved(&text)?, label })
            })
            .collect::<Result<Vec<_>, RunError>>()?;
        Ok(Self { name: manifest.name, config, recipe, tasks })
    }

    /// The runs.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Runs everything that is not complete yet, in parallel, each run deterministic by itself. A run that fails does
    /// not keep the others from going on; a full disk does.
    pub fn run(&self, folder: &Path, options: &RunOptions) -> Result<Vec<RunManifest>, RunError> {
        let data = self.load_data()?;
        require_memory(self.tasks.iter().map(|task| (task, &data[&data_key(task)].0.train)), options.threads)?;
        create_folder(folder)?;
        remove_temporaries(folder)?;
        // the same file gives the same notes whatever the seed: they are told once, with the first run
        let splits = self.tasks.iter().map(|task| &data[&data_key(task)].0);
        let notes =
            splits.flat_map(|split| std::iter::once(&split.train).chain(&split.test)).flat_map(|set| &set.notes);
        notes.collect::<std::collections::BTreeSet<_>>().into_iter().for_each(|note| options.watcher.note(0, note));
        self.prepare(folder, &data)?;
        for (run, warning) in memory_warnings(&self.tasks) {
            options.watcher.note(run, &warning);
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1))
            .build()
            .map_err(|error| RunError::Threads { threads: options.threads, what: error.to_string() })?;
        let each = (options.threads / self.tasks.len()).max(1);
        let one = |(index, task): (usize, &Task)| {
            let (split, record) = &*data[&data_key(task)];
            let setting = Setting {
                index,
                task,
                folder: folder.join(&task.label.name),
                split,
                data: record,
                threads: each,
                watcher: options.watcher,
                interrupt: options.interrupt,
            };
            let outcome = execute(&setting);
            if matches!(&outcome, Err(RunError::Record(_))) {
                // files cannot be written: the others would fail the same way
                options.interrupt.store(true, Ordering::Relaxed);
            }
            outcome
        };
        let outcomes: Vec<_> = pool.install(|| self.tasks.par_iter().enumerate().map(one).collect());
        let manifests = outcomes.into_iter().collect::<Result<Vec<RunManifest>, RunError>>()?;
        if manifests.iter().all(|manifest| manifest.status == Status::Finished) {
            let sets: Vec<_> = self.tasks.iter().map(|task| (task, &*data[&data_key(task)])).collect();
            judge(folder, &sets, AT_ONCE)?;
        }
        Ok(manifests)
    }

    /// Computes the exact optima that the runs of a linear model are compared with, of problems of up to `entries`
    /// entries, and writes them to `judge.json`; the report shows them as lines.
    pub fn judge(&self, folder: &Path, entries: usize) -> Result<JudgeRecord, RunError> {
        let data = self.load_data()?;
        let sets: Vec<_> = self.tasks.iter().map(|task| (task, &*data[&data_key(task)])).collect();
        judge(folder, &sets, entries)
    }

    /// Writes the folder's own files and every run's recipe.
    fn prepare(&self, folder: &Path, data: &HashMap<String, Arc<Loaded>>) -> Result<(), RunError> {
        let path = folder.join("config.toml");
        if path.exists() && read_text(&path)? != self.config {
            return Err(RunError::OtherRecipe { folder: folder.to_path_buf() });
        }
        write_atomically(&path, self.config.as_bytes())?;
        for task in &self.tasks {
            let run = folder.join(&task.label.name);
            create_folder(&run)?;
            let path = run.join("config.toml");
            if !path.exists() {
                write_atomically(&path, task.recipe.to_toml()?.as_bytes())?;
            }
        }
        let manifest = ExperimentManifest {
            name: self.name.clone(),
            title: self.recipe.title.clone(),
            description: self.recipe.description.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            data: data[&data_key(&self.tasks[0])].1.clone(),
            runs: self.tasks.iter().map(|task| task.label.clone()).collect(),
        };
        Ok(manifest.save(folder)?)
    }

    /// Every data set once.
    fn load_data(&self) -> Result<HashMap<String, Arc<Loaded>>, RunError> {
        let mut loaded = HashMap::new();
        for task in &self.tasks {
            if let Entry::Vacant(place) = loaded.entry(data_key(task)) {
                let split = task.recipe.data.load(&Streams::new(data_seed(task)))?;
                let record = describe(&split);
                place.insert(Arc::new((split, record)));
            }
        }
        Ok(loaded)
    }
}

pub(super) type Loaded = (DataSplit, DataRecord);

pub(super) fn data_seed(task: &Task) -> u64 {
    task.recipe.data_seed.unwrap_or(task.label.seed)
}

/// What the data depend on; data that are read and not drawn may still choose examples by the seed.
fn data_key(task: &Task) -> String {
    format!("{}|{:?}", data_seed(task), task.recipe.data)
}

/// Name, sizes and SHA-256 of the data.
pub(super) fn describe(split: &DataSplit) -> DataRecord {
    let mut digest = Sha256::new();
    for data in std::iter::once(&split.train).chain(&split.test) {
        digest.update((data.inputs.rows() as u64).to_le_bytes());
        digest.update((data.inputs.cols() as u64).to_le_bytes());
        match &data.inputs {
            Inputs::Dense(inputs) => inputs.data.iter().for_each(|x| digest.update(x.to_le_bytes())),
            Inputs::Sparse(inputs) => {
                digest.update(b"sparse");
                inputs.starts().iter().for_each(|start| digest.update((*start as u64).to_le_bytes()));
                inputs.columns().iter().for_each(|column| digest.update(column.to_le_bytes()));
                inputs.values().iter().for_each(|x| digest.update(x.to_le_bytes()));
            }
        }
        match &data.targets {
            Targets::Binary(y) | Targets::Values(y) => y.iter().for_each(|y| digest.update(y.to_le_bytes())),
            Targets::Classes { labels, .. } => labels.iter().for_each(|y| digest.update((*y as u64).to_le_bytes())),
        }
    }
    DataRecord {
        name: split.train.name.clone(),
        examples: split.train.len(),
        test_examples: split.test.as_ref().map_or(0, crate::data::Dataset::len),
        input_shape: split.train.input_shape.clone(),
        sha256: hexadecimal(&digest),
    }
}

/// Names that came out the same after they were made harmless get a number.
fn make_names_unique(tasks: &mut [Task]) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for task in tasks {
        let count = seen.entry(task.label.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            task.label.name = format!("{}-{count}", task.label.name);
        }
    }
}

impl ExperimentRecord {
    /// Reads what an experiment left behind; of runs that still go on, what there is so far.
    pub fn load(folder: &Path) -> Result<Self, RecordError> {
        let manifest = ExperimentManifest::load(folder)?;
        let runs = manifest
            .runs
            .iter()
            .filter_map(|label| {
                let run = folder.join(&label.name);
                metrics_path(&run).exists().then(|| load_run(&run, label.clone()))
            })
            .collect::<Result<Vec<_>, RecordError>>()?;
        Ok(Self {
            name: manifest.name,
            title: manifest.title,
            description: manifest.description,
            config: read_text(&folder.join("config.toml"))?,
            version: manifest.version,
            data: manifest.data,
            references: JudgeRecord::load(folder)?.map_or_else(Vec::new, |judge| judge.lines),
            runs,
        })
    }
}

fn load_run(folder: &Path, label: super::task::TaskLabel) -> Result<RunRecord, RecordError> {
    let path = metrics_path(folder);
    let metrics = read_metrics(&path, &read_text(&path)?)?;
    let optional = |name: &str| -> Result<Option<(PathBuf, String)>, RecordError> {
        let complete = folder.join(name);
        let path = [complete.clone(), partial_name(&complete)].into_iter().find(|path| path.exists());
        path.map(|path| Ok((path.clone(), read_text(&path)?))).transpose()
    };
    let histograms = match optional("histograms.jsonl")? {
        Some((path, text)) => {
            let lines: Vec<&str> = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
            read_histograms(&path, &lines)?
        }
        None => Vec::new(),
    };
    let portrait = match optional("portrait.json")? {
        Some((path, text)) => {
            serde_json::from_str(&text).map_err(|error| RecordError::damaged(&path, format!("is damaged: {error}")))?
        }
        None => Default::default(),
    };
    let certificate = certificate_record(folder)?;
    let manifest = RunManifest::load(folder).ok();
    let unfinished = || "not finished".to_owned();
    let steps = metrics.last("step").unwrap_or(0.0) as u64;
    Ok(RunRecord {
        name: label.name,
        optimiser: label.optimiser,
        seed: label.seed,
        point: label.point,
        formula: manifest.as_ref().map_or_else(String::new, |m| m.formula.clone()),
        geometry: manifest.as_ref().and_then(|m| m.geometry.clone()),
        geometry_in_limit: manifest.as_ref().is_some_and(|m| m.geometry_in_limit),
        own_norm: manifest.as_ref().and_then(|m| m.own_norm.clone()),
        forgets: manifest.as_ref().and_then(|m| m.forgets),
        stop: manifest.as_ref().map_or_else(unfinished, |m| m.stop.clone()),
        healthy: manifest.as_ref().is_some_and(|m| m.status == Status::Finished && m.healthy),
        failed: manifest.as_ref().is_some_and(|m| match m.status {
            Status::Failed => true,
            Status::Finished => !m.healthy,
            Status::Running | Status::Interrupted => false,
        }),
        steps: manifest.as_ref().map_or(steps, |m| m.steps),
        seconds: manifest.as_ref().map_or(0.0, |m| m.timings.seconds),
        test_accuracy: manifest.as_ref().and_then(|m| m.test_accuracy),
        certificate,
        metrics,
        histograms,
        portrait,
    })
}
