//! What runs left behind, as exhibits read it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use limitpoint::data::Dataset;
use limitpoint::engine::{Compute, Device};
use limitpoint::experiments::{
    ExperimentRecord, RunRecord, Task, TaskLabel, experiment_data, load_weights, place, run_data,
};
use limitpoint::params::ParamLayout;

use super::elsewhere::with_kept;
use super::run_sets::RunSet;
use super::stored::{stored, weights_file};
use crate::ClaimError;

/// The last weights of a run.
pub(super) const FINAL: &str = "final.safetensors";

/// One set of runs: what was planned, and what there is.
#[derive(Debug)]
pub struct Gathered {
    /// The set.
    pub set: &'static RunSet,
    /// Where its runs lie.
    pub folder: PathBuf,
    /// All runs of the paper's setting.
    pub planned: Vec<Task>,
    /// What there is of them, here or kept beside the records, also of those that go on; nothing where none has begun.
    pub record: Option<ExperimentRecord>,
}

/// The sets of an exhibit.
#[derive(Debug)]
pub struct Material {
    /// By name.
    pub sets: BTreeMap<&'static str, Gathered>,
    /// Where records lie, and what is kept beside them.
    pub records: PathBuf,
    /// The folder of data sets.
    pub data_folder: Option<PathBuf>,
    /// Where models are looked at and attacked.
    pub device: Device,
}

impl Material {
    /// Reads the sets of these names from the folder in which theirs and the `records` lie.
    pub fn gather(names: &[&str], home: &Path, data_folder: Option<&Path>, device: Device) -> Result<Self, ClaimError> {
        let (mut sets, records) = (BTreeMap::new(), home.join("records"));
        for set in names.iter().filter_map(|name| RunSet::find(name)) {
            let folder = set.folder(home);
            let planned = set.plan()?.tasks();
            let here = if folder.is_dir() {
                Some(ExperimentRecord::load(&folder).map_err(limitpoint::experiments::RunError::from)?)
            } else {
                None
            };
            let record = with_kept(here, &records, set, &planned)?;
            sets.insert(set.name, Gathered { set, folder, planned, record });
        }
        Ok(Self { sets, records, data_folder: data_folder.map(Path::to_path_buf), device })
    }

    /// All runs of a set that have begun.
    pub fn runs(&self, set: &str) -> impl Iterator<Item = &RunRecord> {
        self.sets.get(set).and_then(|set| set.record.as_ref()).into_iter().flat_map(|record| &record.runs)
    }

    /// The finished runs of an optimiser.
    pub fn finished<'a>(&'a self, set: &str, optimiser: &'a str) -> impl Iterator<Item = &'a RunRecord> {
        self.runs(set).filter(move |run| run.optimiser == optimiser && run.healthy)
    }

    /// The last value of a column over the finished runs of an optimiser.
    pub fn last(&self, set: &str, optimiser: &str, column: &str) -> Vec<f64> {
        self.finished(set, optimiser).filter_map(|run| run.metrics.last(column)).collect()
    }

    /// Where the folder of a run is, if it is here.
    pub fn folder(&self, set: &str, run: &RunRecord) -> PathBuf {
        self.sets.get(set).map_or_else(PathBuf::new, |gathered| place(&gathered.folder, &run.name))
    }

    /// The last weights of a run: from its folder, or of a run that was made elsewhere from beside the records; nothing if they are
    /// in neither place.
    pub fn weights(&self, set: &str, run: &RunRecord) -> Result<Option<(ParamLayout, Vec<f64>)>, ClaimError> {
        let task = self.task(set, run).ok_or_else(|| absent(&run.name))?;
        let (folder, data_folder) = (self.folder(set, run), self.data_folder.as_deref());
        let layout = |data: &Dataset| task.recipe.model.architecture_on(data).map(|found| found.layout().clone());
        let path = checkpoint(&folder, FINAL);
        if path.is_file() {
            let layout = layout(&run_data(&folder, data_folder)?.0.train)?;
            let weights = load_weights(&path, &layout).map_err(limitpoint::experiments::RunError::from)?;
            return Ok(Some((layout, weights)));
        }
        let Some(weights) = stored(&weights_file(&self.records, set))?.remove(&run.name) else { return Ok(None) };
        let layout = layout(&experiment_data(&task.recipe, Some(run.seed), data_folder)?.0.train)?;
        Ok((layout.len() == weights.len()).then_some((layout, weights)))
    }

    /// How models are looked at: where this was asked for, and on all threads.
    pub fn compute(&self, own: Compute) -> Compute {
        Compute { threads: available_parallelism().map_or(1, usize::from), device: self.device, ..own }
    }

    /// The planned task of a run.
    pub fn task(&self, set: &str, run: &RunRecord) -> Option<&Task> {
        self.sets.get(set)?.planned.iter().find(|task| is_of(&task.label, run))
    }
}

/// A file of weights in the folder of a run.
pub(super) fn checkpoint(folder: &Path, file: &str) -> PathBuf {
    folder.join("checkpoints").join(file)
}

/// What is wrong with a file.
pub(super) fn refused(path: &Path, reason: impl ToString) -> ClaimError {
    ClaimError::Ended { what: path.display().to_string(), reason: reason.to_string() }
}

fn absent(run: &str) -> ClaimError {
    ClaimError::Ended { what: run.to_owned(), reason: "no run of this set has such a name".to_owned() }
}

/// Whether a run is that of a task: the same optimiser, seed and settings.
pub(super) fn is_of(label: &TaskLabel, run: &RunRecord) -> bool {
    label.optimiser == run.optimiser && label.seed == run.seed && label.point == run.point
}
