//! Built-in experiments run in memory, and noted down.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use limitpoint::data::{DataSplit, Dataset};
use limitpoint::driver::Process;
use limitpoint::experiments::{RecipeSource, Task, plan};
use limitpoint::objective::Objective;
use limitpoint::observers::Snapshot;
use limitpoint::training::{TrainedRun, Training};
use rayon::prelude::*;

use crate::setting::{DataUsed, Entry};
use crate::{ClaimError, Scale};

/// Where claims run their experiments.
///
/// ```
/// use limitpoint_claims::{Lab, Scale};
/// let lab = Lab::new(Scale::Quick);
/// let runs = lab.run("b-example-2", &["optimiser=mirror(potential=entropy)"])?;
/// assert!((runs[0].params[0] - 0.5).abs() < 1e-8 && (runs[0].params[1] - 0.25).abs() < 1e-8);
/// # Ok::<(), limitpoint_claims::ClaimError>(())
/// ```
#[derive(Debug)]
pub struct Lab {
    scale: Scale,
    mnist: Option<PathBuf>,
    cifar: Option<PathBuf>,
    /// What claims share, by name.
    shelf: Arc<Mutex<BTreeMap<String, Slot>>>,
    /// What was run.
    ledger: Mutex<Vec<Entry>>,
}

/// Where one result stays with the runs it is made of; locked while it is made, so that it is made once.
type Slot = Arc<Mutex<Option<(Arc<dyn Any + Send + Sync>, Vec<Entry>)>>>;

/// A run of an experiment that ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// What was run.
    pub task: Task,
    /// What it came to.
    pub run: TrainedRun,
}

impl Deref for Finished {
    type Target = TrainedRun;

    fn deref(&self) -> &TrainedRun {
        &self.run
    }
}

impl Finished {
    /// Whether it got down to the loss at which it was to stop; false where none was set.
    pub(crate) fn reached_its_loss(&self) -> bool {
        let target = self.task.recipe.stop.log10_loss.unwrap_or(f64::NEG_INFINITY);
        self.log_loss <= target * std::f64::consts::LN_10
    }
}

fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lab {
    /// A laboratory that runs claims at this scale.
    pub fn new(scale: Scale) -> Self {
        Self { scale, mnist: None, cifar: None, shelf: Arc::default(), ledger: Mutex::default() }
    }

    /// The same, with the folder that holds MNIST; claims about images use the embedded digits without, and say so.
    #[must_use]
    pub fn with_mnist(self, folder: Option<PathBuf>) -> Self {
        Self { mnist: folder, ..self }
    }

    /// The same, with the folder that holds CIFAR-10; claims that need it decide nothing without.
    #[must_use]
    pub fn with_cifar(self, folder: Option<PathBuf>) -> Self {
        Self { cifar: folder, ..self }
    }

    /// A laboratory with the same shelf and an empty ledger, for one claim.
    pub(crate) fn for_one_claim(&self) -> Self {
        let (scale, mnist, cifar) = (self.scale, self.mnist.clone(), self.cifar.clone());
        Self { scale, mnist, cifar, shelf: self.shelf.clone(), ledger: Mutex::default() }
    }

    /// What was run so far, by this claim or by one that it shares results with.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        held(&self.ledger).clone()
    }

    fn enter(&self, entry: Entry) {
        held(&self.ledger).push(entry);
    }

    /// What several claims look at, made when the first of them asks. The name tells it from all other results; it must
    /// not be asked for inside a parallel iterator, whose threads could then wait for each other.
    pub(crate) fn once<T: Send + Sync + 'static>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, ClaimError>,
    ) -> Result<Arc<T>, ClaimError> {
        let slot = held(&self.shelf).entry(name.to_owned()).or_default().clone();
        let mut slot = held(&slot);
        if let Some((kept, entries)) = slot.as_ref()
            && let Ok(found) = kept.clone().downcast::<T>()
        {
            held(&self.ledger).extend(entries.iter().cloned());
            return Ok(found);
        }
        let before = held(&self.ledger).len();
        let made = Arc::new(make()?);
        let entries = held(&self.ledger)[before..].to_vec();
        *slot = Some((made.clone(), entries));
        Ok(made)
    }

    /// The scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Where MNIST is, if it is here; if not, the setting of the claim says so.
    pub(crate) fn mnist(&self) -> Option<PathBuf> {
        if self.mnist.is_none() {
            self.instead("the embedded 8×8 digits: MNIST is not here, `limitpoint data fetch mnist` brings it");
        }
        self.mnist.clone()
    }

    /// Where CIFAR-10 is.
    pub fn cifar(&self) -> Result<PathBuf, ClaimError> {
        self.cifar.clone().ok_or(ClaimError::Absent { what: "CIFAR-10", remedy: "limitpoint data fetch cifar10" })
    }

    /// Notes that something else was used than the scale promises.
    pub(crate) fn instead(&self, words: impl Into<String>) {
        self.enter(Entry::Instead(words.into()));
    }

    /// One value at quick scale, another at full scale; at the paper's scale that of full scale, and the setting says
    /// so.
    pub fn choose<T>(&self, quick: T, full: T) -> T {
        match self.scale {
            Scale::Quick => quick,
            Scale::Full => full,
            Scale::Paper => {
                self.instead("sizes of full scale where the claim has none for the paper's");
                full
            }
        }
    }

    /// One value for each scale.
    pub fn scales<T>(&self, quick: T, full: T, paper: T) -> T {
        match self.scale {
            Scale::Quick => quick,
            Scale::Full => full,
            Scale::Paper => paper,
        }
    }

    /// All runs of a built-in experiment under overrides, as the command line writes them.
    pub fn tasks<S: AsRef<str>>(&self, experiment: &str, overrides: &[S]) -> Result<Vec<Task>, ClaimError> {
        let overrides: Vec<String> = overrides.iter().map(|text| text.as_ref().to_owned()).collect();
        Ok(plan(&RecipeSource::find(experiment)?, &overrides)?.tasks())
    }

    /// Those of them whose optimiser or flow has one of these names.
    pub fn tasks_of<S: AsRef<str>>(
        &self,
        experiment: &str,
        overrides: &[S],
        names: &[&str],
    ) -> Result<Vec<Task>, ClaimError> {
        let mut tasks = self.tasks(experiment, overrides)?;
        tasks.retain(|task| names.contains(&task.label.optimiser.as_str()));
        Ok(tasks)
    }

    /// Runs an experiment to its end, its runs side by side.
    pub fn run<S: AsRef<str>>(&self, experiment: &str, overrides: &[S]) -> Result<Vec<Finished>, ClaimError> {
        self.finish_all(&self.tasks(experiment, overrides)?)
    }

    /// Runs tasks to their ends, side by side.
    pub fn finish_all(&self, tasks: &[Task]) -> Result<Vec<Finished>, ClaimError> {
        tasks.par_iter().map(|task| self.finish(task)).collect()
    }

    /// Runs one task to its end.
    pub fn finish(&self, task: &Task) -> Result<Finished, ClaimError> {
        self.watch(task, |_| false, |_| {})
    }

    /// Runs one task to its end and shows the steps that `wants` names, and the last one, to `look`.
    pub fn watch(
        &self,
        task: &Task,
        wants: impl Fn(u64) -> bool,
        look: impl FnMut(&Snapshot),
    ) -> Result<Finished, ClaimError> {
        let data = task.data()?.train;
        self.watch_on(task, data, wants, look)
    }

    /// The same on data that are already in memory.
    pub(crate) fn watch_on(
        &self,
        task: &Task,
        data: impl Into<Arc<Dataset>>,
        wants: impl Fn(u64) -> bool,
        look: impl FnMut(&Snapshot),
    ) -> Result<Finished, ClaimError> {
        let run = self.unnoted_training(task, data)?.watch(wants, look)?;
        Ok(self.ended(task, run))
    }

    /// Notes a run that has ended.
    pub(crate) fn ended(&self, task: &Task, run: TrainedRun) -> Finished {
        self.enter(Entry::run(task, &run.data, Some((run.steps, run.log10_loss()))));
        Finished { task: task.clone(), run }
    }

    /// The data of a task.
    pub fn data(&self, task: &Task) -> Result<DataSplit, ClaimError> {
        let split = task.data()?;
        self.enter(Entry::Data(DataUsed::of(&split.train)));
        Ok(split)
    }

    /// The objective of a task.
    pub fn objective(&self, task: &Task, data: &Dataset) -> Result<Objective, ClaimError> {
        Ok(task.setup()?.objective(data)?)
    }

    /// A task on data in memory; those who run it note its end.
    pub(crate) fn unnoted_training(&self, task: &Task, data: impl Into<Arc<Dataset>>) -> Result<Training, ClaimError> {
        Ok(Training::of(data, task.setup()?).without_path())
    }

    /// The process of a task at its first point, for claims that step by hand.
    pub fn start(&self, task: &Task) -> Result<Box<dyn Process + Send>, ClaimError> {
        self.start_on(task, &task.data()?.train)
    }

    /// The same on data that are already in memory.
    pub(crate) fn start_on(&self, task: &Task, data: &Dataset) -> Result<Box<dyn Process + Send>, ClaimError> {
        self.enter(Entry::run(task, data, None));
        Ok(task.setup()?.start(self.objective(task, data)?, data)?)
    }
}
