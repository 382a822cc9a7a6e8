//! Built-in experiments run in memory.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::ClaimError;
use crate::data::{DataSplit, Dataset};
use crate::driver::Process;
use crate::experiments::{RecipeSource, Task, plan};
use crate::objective::Objective;
use crate::observers::Snapshot;
use crate::training::{TrainedRun, Training};

/// How much of a claim is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Minutes for a whole paper: fewer data sets, shorter runs, the same tolerances.
    #[default]
    Quick,
    /// Everything.
    Full,
}

impl Scale {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// Where claims run their experiments.
///
/// ```
/// use limitpoint::claims::{Lab, Scale};
/// let lab = Lab::new(Scale::Quick);
/// let runs = lab.run("b-example-2", &["optimiser=mirror(potential=entropy)"])?;
/// assert!((runs[0].params[0] - 0.5).abs() < 1e-8 && (runs[0].params[1] - 0.25).abs() < 1e-8);
/// # Ok::<(), limitpoint::claims::ClaimError>(())
/// ```
#[derive(Debug)]
pub struct Lab {
    scale: Scale,
    mnist: Option<PathBuf>,
    shelf: Mutex<BTreeMap<String, Slot>>,
}

/// Where one result stays; locked while it is made, so that it is made once.
type Slot = Arc<Mutex<Option<Arc<dyn Any + Send + Sync>>>>;

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
    pub(super) fn reached_its_loss(&self) -> bool {
        let target = self.task.recipe.stop.log10_loss.unwrap_or(f64::NEG_INFINITY);
        self.log_loss <= target * std::f64::consts::LN_10
    }
}

impl Lab {
    /// A laboratory that runs claims at this scale.
    pub fn new(scale: Scale) -> Self {
        Self { scale, mnist: None, shelf: Mutex::default() }
    }

    /// The same, with the folder that holds MNIST; claims about images use the embedded digits without.
    #[must_use]
    pub fn with_mnist(self, folder: Option<PathBuf>) -> Self {
        Self { mnist: folder, ..self }
    }

    /// What several claims look at, made when the first of them asks. The name tells it from all other results; it must
    /// not be asked for inside a parallel iterator, whose threads could then wait for each other.
    pub(super) fn once<T: Send + Sync + 'static>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T, ClaimError>,
    ) -> Result<Arc<T>, ClaimError> {
        let slot = {
            let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
            shelf.entry(name.to_owned()).or_default().clone()
        };
        let mut held = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = held.as_ref().and_then(|kept| kept.clone().downcast::<T>().ok()) {
            return Ok(found);
        }
        let made = Arc::new(make()?);
        *held = Some(made.clone());
        Ok(made)
    }

    /// The scale.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Where MNIST is, if it is here.
    pub(super) fn mnist(&self) -> Option<PathBuf> {
        self.mnist.clone()
    }

    /// One number at quick scale, another at full scale.
    pub fn choose<T>(&self, quick: T, full: T) -> T {
        match self.scale {
            Scale::Quick => quick,
            Scale::Full => full,
        }
    }

    /// All runs of a built-in experiment under overrides, as the command line writes them.
    pub fn tasks<S: AsRef<str>>(&self, experiment: &str, overrides: &[S]) -> Result<Vec<Task>, ClaimError> {
        let overrides: Vec<String> = overrides.iter().map(|text| text.as_ref().to_owned()).collect();
        Ok(plan(&RecipeSource::find(experiment)?, &overrides)?.tasks())
    }

    /// Runs an experiment to its end, its runs side by side.
    pub fn run<S: AsRef<str>>(&self, experiment: &str, overrides: &[S]) -> Result<Vec<Finished>, ClaimError> {
        self.tasks(experiment, overrides)?.into_par_iter().map(|task| self.finish(&task)).collect()
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
        let data = self.data(task)?.train;
        self.watch_on(task, data, wants, look)
    }

    /// The same on data that are already in memory.
    pub(super) fn watch_on(
        &self,
        task: &Task,
        data: impl Into<Arc<Dataset>>,
        wants: impl Fn(u64) -> bool,
        look: impl FnMut(&Snapshot),
    ) -> Result<Finished, ClaimError> {
        Ok(Finished { task: task.clone(), run: self.training(task, data)?.watch(wants, look)? })
    }

    /// The data of a task.
    pub fn data(&self, task: &Task) -> Result<DataSplit, ClaimError> {
        Ok(task.data()?)
    }

    /// The objective of a task.
    pub fn objective(&self, task: &Task, data: &Dataset) -> Result<Objective, ClaimError> {
        Ok(task.setup()?.objective(data)?)
    }

    /// A task on data in memory; claims look at what they need themselves.
    pub(super) fn training(&self, task: &Task, data: impl Into<Arc<Dataset>>) -> Result<Training, ClaimError> {
        Ok(Training::of(data, task.setup()?).without_path())
    }

    /// The process of a task at its first point, for claims that step by hand.
    pub fn start(&self, task: &Task) -> Result<Box<dyn Process + Send>, ClaimError> {
        self.start_on(task, &self.data(task)?.train)
    }

    /// The same on data that are already in memory.
    pub(super) fn start_on(&self, task: &Task, data: &Dataset) -> Result<Box<dyn Process + Send>, ClaimError> {
        Ok(task.setup()?.start(self.objective(task, data)?, data)?)
    }
}
