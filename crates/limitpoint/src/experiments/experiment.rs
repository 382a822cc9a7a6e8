//! A whole experiment: all its runs side by side.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::RunError;
use super::config::{CONFIG_FILE, identity, read_config, same_recipe, write_config};
use super::extend::reopen;
use super::files::{create_folder, remove_temporaries};
use super::fit::{require_memory, require_tasks};
use super::hold::Hold;
use super::locate::{Known, Loaded, find_data};
use super::manifest::{ExperimentManifest, MANIFEST_FILE, RunEntry, RunManifest, Status};
use super::memory::memory_warnings;
use super::optima::{AT_ONCE, OptimaRecord, find_optima};
use super::plan::Plan;
use super::recipe::Recipe;
use super::record::DataRecord;
use super::run::{Setting, execute, failed};
use super::task::Task;
use super::watcher::Watcher;
use crate::engine::Device;

/// An experiment ready to run.
pub struct Experiment {
    name: String,
    pub(super) recipe: Recipe,
    pub(super) tasks: Vec<Task>,
    /// Whether the stop rules are later than those in the folder.
    pub(super) later: bool,
    /// The folder of data sets.
    data_folder: Option<PathBuf>,
}

/// How an experiment is run.
pub struct RunOptions<'a> {
    /// Threads over all runs together; results do not depend on it.
    pub threads: usize,
    /// Where models are computed; on another device the last bits differ.
    pub device: Device,
    /// Who is told about progress.
    pub watcher: &'a dyn Watcher,
    /// Set it to end all runs with a checkpoint.
    pub interrupt: &'a AtomicBool,
}

/// The data of every run, or why there are none.
struct DataSets {
    sets: HashMap<String, Result<Arc<Loaded>, String>>,
}

impl DataSets {
    fn of(&self, task: &Task) -> Result<&Loaded, &str> {
        match self.sets.get(&data_key(task)) {
            Some(Ok(loaded)) => Ok(loaded),
            Some(Err(why)) => Err(why),
            None => Err("its data were not read"),
        }
    }
}

impl Experiment {
    /// All runs of a plan.
    pub fn new(plan: &Plan) -> Result<Self, RunError> {
        require_tasks(&plan.points)?;
        let mut tasks = plan.tasks();
        make_names_unique(&mut tasks);
        if tasks.is_empty() {
            return Err(RunError::Nothing);
        }
        Ok(Self { name: plan.name.clone(), recipe: plan.base.clone(), tasks, later: false, data_folder: None })
    }

    /// Takes up an experiment from its folder.
    pub fn open(folder: &Path) -> Result<Self, RunError> {
        let manifest = ExperimentManifest::load(folder)?;
        let recipe = read_config(folder)?;
        let tasks = manifest
            .runs
            .into_iter()
            .map(|entry| Ok(Task { recipe: read_config(&folder.join(&entry.label.name))?, label: entry.label }))
            .collect::<Result<Vec<_>, RunError>>()?;
        Ok(Self { name: manifest.name, recipe, tasks, later: false, data_folder: None })
    }

    /// The same, with the folder where well-known data sets are, and other data that are not where they should be.
    #[must_use]
    pub fn with_data_folder(self, data_folder: Option<PathBuf>) -> Self {
        Self { data_folder, ..self }
    }

    /// The runs.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Runs everything that is not complete yet, in parallel, each run deterministic by itself. A run that fails does
    /// not keep the others from going on; a full disk does. Nobody else can write in the folder meanwhile.
    pub fn run(&self, folder: &Path, options: &RunOptions) -> Result<Vec<RunManifest>, RunError> {
        create_folder(folder)?;
        let _hold = Hold::take(folder)?;
        remove_temporaries(folder)?;
        let before = self.check_folder(folder)?;
        let data = self.load_data(folder, before.as_ref())?;
        let loaded: Vec<_> = self.tasks.iter().filter_map(|task| Some((task, &data.of(task).ok()?.0))).collect();
        require_memory(loaded.iter().map(|(task, split)| (*task, &split.train)), options.threads)?;
        // the same file gives the same notes whatever the seed: they are told once, with the first run
        let notes = loaded
            .iter()
            .flat_map(|(_, split)| std::iter::once(&split.train).chain(&split.test))
            .flat_map(|set| &set.notes);
        notes.collect::<std::collections::BTreeSet<_>>().into_iter().for_each(|note| options.watcher.note(0, note));
        let manifest = self.prepare(folder, &data, before)?;
        for (run, warning) in memory_warnings(&self.tasks) {
            options.watcher.note(run, &warning);
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1))
            .build()
            .map_err(|error| RunError::Threads { threads: options.threads, what: error.to_string() })?;
        let each = (options.threads / self.tasks.len()).max(1);
        let one = |(index, task): (usize, &Task)| {
            let run = folder.join(&task.label.name);
            let (split, record) = match data.of(task) {
                Ok(loaded) => loaded,
                Err(why) => {
                    let manifest = failed(options.device, task, &run, &DataRecord::default(), &[], why)?;
                    options.watcher.ended(index, &manifest);
                    return Ok((manifest, None));
                }
            };
            let setting = Setting {
                index,
                task,
                folder: run,
                split,
                data: record,
                data_files: &manifest.runs[index].data_files,
                threads: each,
                device: options.device,
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
        let (mut manifests, mut errors) = (Vec::new(), Vec::new());
        for outcome in outcomes {
            let (manifest, error) = outcome?;
            manifests.push(manifest);
            errors.extend(error);
        }
        if errors.len() == self.tasks.len() {
            // nothing could be run at all
            return Err(errors.swap_remove(0));
        }
        if manifests.iter().all(|manifest| manifest.status == Status::Finished) {
            self.optima_of(folder, &data, AT_ONCE)?;
        }
        Ok(manifests)
    }

    /// Computes the exact optima that the runs of a linear model are compared with, of problems of up to `entries`
    /// entries, and writes them to `judge.json`; the report shows them as lines.
    pub fn find_optima(&self, folder: &Path, entries: usize) -> Result<OptimaRecord, RunError> {
        let data = self.load_data(folder, Some(&ExperimentManifest::load(folder)?))?;
        self.optima_of(folder, &data, entries)
    }

    fn optima_of(&self, folder: &Path, data: &DataSets, entries: usize) -> Result<OptimaRecord, RunError> {
        let sums = self.tasks.iter().filter_map(|task| Some((task, data.of(task).ok()?.1.sha256.as_str())));
        let load = |task: &Task| data.of(task).map_err(|why| RunError::Unreadable(why.to_owned()));
        find_optima(folder, &sums.collect::<Vec<_>>(), load, entries)
    }

    /// What is in the folder already must be this experiment: its manifest, or nothing but a recipe that was being
    /// written when somebody pulled the plug.
    fn check_folder(&self, folder: &Path) -> Result<Option<ExperimentManifest>, RunError> {
        let other = || RunError::OtherRecipe { folder: folder.to_path_buf() };
        if folder.join(CONFIG_FILE).exists() {
            let written = read_config(folder)?;
            if !(same_recipe(&written, &self.recipe)? || self.later && identity(&written)? == identity(&self.recipe)?) {
                return Err(other());
            }
        }
        if !folder.join(MANIFEST_FILE).exists() {
            return Ok(None);
        }
        let manifest = ExperimentManifest::load(folder)?;
        if !manifest.runs.iter().map(|entry| &entry.label).eq(self.tasks.iter().map(|task| &task.label)) {
            return Err(other());
        }
        for (entry, task) in manifest.runs.iter().zip(&self.tasks) {
            if entry.recipe_sha256 != identity(&task.recipe)? {
                return Err(other());
            }
        }
        Ok(Some(manifest))
    }

    /// Writes the folder's own files and every run's recipe, unless they are there. The manifest comes last and is
    /// never written again.
    fn prepare(
        &self,
        folder: &Path,
        data: &DataSets,
        before: Option<ExperimentManifest>,
    ) -> Result<ExperimentManifest, RunError> {
        for task in &self.tasks {
            let run = folder.join(&task.label.name);
            create_folder(&run)?;
            if !run.join(CONFIG_FILE).exists() {
                if before.is_some() {
                    // says that it is missing
                    read_config(&run)?;
                }
                write_config(&run, &task.recipe)?;
            } else if !same_recipe(&read_config(&run)?, &task.recipe)? {
                if !self.later {
                    return Err(RunError::OtherRecipe { folder: run });
                }
                reopen(&run, task)?;
            }
        }
        if before.is_none() || self.later {
            write_config(folder, &self.recipe)?;
        }
        if let Some(manifest) = before {
            return Ok(manifest);
        }
        let entry = |task: &Task| -> Result<RunEntry, RunError> {
            Ok(RunEntry {
                label: task.label.clone(),
                recipe_sha256: identity(&task.recipe)?,
                data_sha256: data.of(task).map_or_else(|_| String::new(), |(_, record)| record.sha256.clone()),
                data_files: task.recipe.data.paths().into_iter().map(PathBuf::from).collect(),
            })
        };
        let first = self.tasks.iter().find_map(|task| data.of(task).ok());
        let manifest = ExperimentManifest {
            name: self.name.clone(),
            title: self.recipe.title.clone(),
            description: self.recipe.description.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            data: first.map(|(_, record)| record.clone()).unwrap_or_default(),
            runs: self.tasks.iter().map(entry).collect::<Result<_, _>>()?,
        };
        manifest.save(folder)?;
        Ok(manifest)
    }

    /// Every data set once; those that the folder knows must be the same as ever. Runs whose data cannot be made fail by
    /// themselves, unless all do.
    fn load_data(&self, folder: &Path, before: Option<&ExperimentManifest>) -> Result<DataSets, RunError> {
        let (mut sets, mut first_error) = (HashMap::new(), None);
        for (index, task) in self.tasks.iter().enumerate() {
            let entry = before.and_then(|manifest| manifest.runs.get(index));
            let known = Known {
                sha256: entry.map(|entry| entry.data_sha256.as_str()).filter(|sum| !sum.is_empty()),
                files: entry.map_or(&[], |entry| &entry.data_files),
                data_folder: self.data_folder.as_deref(),
            };
            let key = data_key(task);
            if sets.contains_key(&key) {
                continue;
            }
            let loaded = match find_data(&task.recipe.data, task.data_seed(), &known, folder) {
                Ok(loaded) => Ok(Arc::new(loaded)),
                // a generator that finds no data for one seed, a count beyond those of one file
                Err(error @ RunError::Part(_)) => {
                    let why = error.to_string();
                    first_error.get_or_insert(error);
                    Err(why)
                }
                Err(error) => return Err(error),
            };
            sets.insert(key, loaded);
        }
        match first_error {
            Some(error) if sets.values().all(Result::is_err) => Err(error),
            _ => Ok(DataSets { sets }),
        }
    }
}

/// What the data depend on; data that are read and not drawn may still choose examples by the seed.
pub(super) fn data_key(task: &Task) -> String {
    format!("{}|{:?}", task.data_seed(), task.recipe.data)
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
