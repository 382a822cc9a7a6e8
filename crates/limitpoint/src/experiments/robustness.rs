//! The robustness of trained runs, from the weights in their folders.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::RunError;
use super::certify::{OpenedRun, run_folders};
use super::files::RecordError;
use super::verify::is_run;
use crate::data::Dataset;
use crate::engine::{Compute, Device, Precision};
use crate::models::Layered;
use crate::robustness::{AttackSpec, Profile, Victim};

/// Which examples are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Those the run was trained on.
    Train,
    /// Those it has not seen.
    Test,
}

/// What is asked of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RobustnessOptions {
    /// The attacks.
    pub attacks: Vec<AttackSpec>,
    /// The examples.
    pub parts: Vec<Part>,
    /// The first so many of each part; all of them when absent.
    pub count: Option<usize>,
    /// Where inputs live; [0, 1], widened to hold all data, when absent.
    pub bounds: Option<[f64; 2]>,
    /// Threads.
    pub threads: usize,
    /// Where attacks compute the model; bounds are proven on the processor.
    pub device: Device,
    /// The folder of data sets, where data that the run does not find are looked for.
    pub data_folder: Option<PathBuf>,
}

/// How robust a run's weights are on one part of its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRobustness {
    /// Name of the run, and of the weights if they are not the last.
    pub run: String,
    /// The examples.
    pub part: Part,
    /// Where inputs live.
    pub bounds: [f64; 2],
    /// The brackets of all examples.
    pub profile: Profile,
}

/// Runs and weights that a path names: an experiment's folder, a run's folder, or a checkpoint in a run's folder.
pub fn trained_weights(path: &Path) -> Result<Vec<(PathBuf, Option<PathBuf>)>, RecordError> {
    if path.is_file() {
        let found = path.ancestors().skip(1).find(|folder| is_run(folder));
        return match found {
            Some(folder) => Ok(vec![(folder.to_path_buf(), Some(path.to_path_buf()))]),
            None => Err(RecordError::refused(
                path,
                "lies in no run's folder, so its model and data are not known; name a checkpoint of a run".to_owned(),
            )),
        };
    }
    Ok(run_folders(path)?.into_iter().map(|folder| (folder, None)).collect())
}

/// Brackets the robustness of a run's last weights, or of those in `weights`, on every part of its data that it has.
pub fn run_robustness(
    folder: &Path,
    weights: Option<&Path>,
    options: &RobustnessOptions,
) -> Result<Vec<RunRobustness>, RunError> {
    let opened = OpenedRun::load(folder, weights, options.data_folder.as_deref())?;
    let stem = weights.and_then(Path::file_stem).map(|stem| format!("/{}", stem.to_string_lossy()));
    let run = opened.task.label.name.clone() + &stem.unwrap_or_default();
    let sets: Vec<&Dataset> = std::iter::once(&opened.split.train).chain(&opened.split.test).collect();
    let bounds = match options.bounds {
        Some(bounds) => bounds,
        None => Victim::usual_box(&sets)?,
    };
    let model = Layered::on(&opened.task.recipe.model, &opened.weights, &opened.split.train)?;
    let mut found = Vec::new();
    for part in &options.parts {
        let data = match part {
            Part::Train => Some(&opened.split.train),
            Part::Test => opened.split.test.as_ref(),
        };
        let Some(data) = data else { continue };
        let data = data.first(options.count.unwrap_or(data.len()).clamp(1, data.len()))?;
        let mut victim = Victim::new(model.clone(), &data, bounds)?;
        if options.device != Device::Cpu {
            let architecture = opened.task.recipe.model.architecture_on(&data)?;
            let compute = Compute { device: options.device, precision: Precision::F32, ..Compute::default() };
            victim = victim.computed_by(compute.engine()?.map(&architecture, &opened.weights)?);
        }
        let profile = victim.profile(&options.attacks, options.threads)?;
        found.push(RunRobustness { run: run.clone(), part: *part, bounds, profile });
    }
    Ok(found)
}
