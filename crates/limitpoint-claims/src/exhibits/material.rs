//! What runs left behind, as exhibits read it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

use limitpoint::engine::{Compute, Device};
use limitpoint::experiments::{ExperimentRecord, RunRecord, Task, load_weights, place};
use limitpoint::params::ParamLayout;

use super::run_sets::RunSet;
use crate::ClaimError;

/// One set of runs: what was planned, and what there is.
#[derive(Debug)]
pub struct Gathered {
    /// The set.
    pub set: &'static RunSet,
    /// Where its runs lie.
    pub folder: PathBuf,
    /// All runs of the paper's setting.
    pub planned: Vec<Task>,
    /// What there is of them, also of those that go on; nothing where the folder is absent.
    pub record: Option<ExperimentRecord>,
}

/// The sets of an exhibit.
#[derive(Debug)]
pub struct Material {
    /// By name.
    pub sets: BTreeMap<&'static str, Gathered>,
    /// The folder of data sets.
    pub data_folder: Option<PathBuf>,
    /// Where models are looked at and attacked.
    pub device: Device,
}

impl Material {
    /// Reads the sets of these names from the folder in which theirs lie.
    pub fn gather(names: &[&str], home: &Path, data_folder: Option<&Path>, device: Device) -> Result<Self, ClaimError> {
        let mut sets = BTreeMap::new();
        for set in names.iter().filter_map(|name| RunSet::find(name)) {
            let folder = set.folder(home);
            let planned = set.plan()?.tasks();
            let record = if folder.is_dir() {
                Some(ExperimentRecord::load(&folder).map_err(limitpoint::experiments::RunError::from)?)
            } else {
                None
            };
            sets.insert(set.name, Gathered { set, folder, planned, record });
        }
        Ok(Self { sets, data_folder: data_folder.map(Path::to_path_buf), device })
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

    /// Weights of a run: the last ones, or those of another checkpoint.
    pub fn weights(&self, set: &str, run: &RunRecord, file: &str) -> Result<(ParamLayout, Vec<f64>), ClaimError> {
        let gathered = self.sets.get(set).ok_or_else(|| absent(&run.name))?;
        let folder = place(&gathered.folder, &run.name);
        let data = limitpoint::experiments::run_data(&folder, self.data_folder.as_deref())?.0;
        let task = gathered.planned.iter().find(|task| is_of(task, run)).ok_or_else(|| absent(&run.name))?;
        let layout = task.recipe.model.architecture_on(&data.train)?.layout().clone();
        let path = folder.join("checkpoints").join(file);
        let weights = load_weights(&path, &layout).map_err(limitpoint::experiments::RunError::from)?;
        Ok((layout, weights))
    }

    /// How models are looked at: where this was asked for, and on all threads.
    pub fn compute(&self, own: Compute) -> Compute {
        Compute { threads: available_parallelism().map_or(1, usize::from), device: self.device, ..own }
    }

    /// The planned task of a run.
    pub fn task(&self, set: &str, run: &RunRecord) -> Option<&Task> {
        self.sets.get(set)?.planned.iter().find(|task| is_of(task, run))
    }
}

fn absent(run: &str) -> ClaimError {
    ClaimError::Ended { what: run.to_owned(), reason: "no run of this set has such a name".to_owned() }
}

/// Whether a run is that of a task: the same optimiser, seed and settings.
fn is_of(task: &Task, run: &RunRecord) -> bool {
    task.label.optimiser == run.optimiser && task.label.seed == run.seed && task.label.point == run.point
}
