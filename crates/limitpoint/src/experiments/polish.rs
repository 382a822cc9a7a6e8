//! Polishing runs: from the weights a run ended with to a certified limit point, and whether earlier weights lead there
//! too.

use std::path::{Path, PathBuf};

use super::RunError;
use super::certify::OpenedRun;
use super::weights::{load_weights, save_weights};
use crate::certificates::{Measure, PolishSettings, PolishStatus, Polished, polish};
use crate::engine::{Compute, Forward, cpu};
use crate::models::MarginMap;
use crate::norms::NormSpec;

/// Name of the file with polished weights in a run's folder.
pub const POLISHED_FILE: &str = "polished.safetensors";

/// A polished run.
#[derive(Debug, Clone, PartialEq)]
pub struct PolishedRun {
    /// Name of the run.
    pub run: String,
    /// The polished weights with their proof.
    pub polished: Polished,
    /// Where they were written.
    pub file: PathBuf,
    /// The same from earlier checkpoints of the run.
    pub earlier: Vec<WarmStart>,
}

/// Polish from an earlier checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct WarmStart {
    /// The checkpoint.
    pub checkpoint: String,
    /// q_min/‖θ‖^L of its polished point.
    pub margin: f64,
    /// Clarke's τ of that point.
    pub tau: f64,
    /// Largest difference of a training score from those of the run's polished point, relative to the largest score.
    pub distance: f64,
}

/// Polishes the weights a finished run ended with and writes `polished.safetensors` beside them.
///
/// The norm is the one of the run's optimiser unless `norm` is given. Data that the run does not find are looked for in
/// `data_folder`.
pub fn polish_run(
    folder: &Path,
    norm: Option<&NormSpec>,
    settings: &PolishSettings,
    data_folder: Option<&Path>,
) -> Result<PolishedRun, RunError> {
    let opened = OpenedRun::load(folder, None, data_folder)?;
    let run = opened.task.label.name.clone();
    let refuse = |why: &str| RunError::NoClaim { run: run.clone(), why: why.to_owned() };
    let norm = match (norm, opened.task.measure()) {
        (Some(norm), _) => norm.clone(),
        (None, Some(Measure::Norm(norm))) => norm,
        (None, Some(Measure::Potential(_))) => {
            return Err(refuse("its optimiser has a potential; name the norm of its horizon with --norm, such as l1"));
        }
        (None, None) => {
            return Err(refuse(&opened.task.no_measure()));
        }
    };
    let (spec, data) = (&opened.task.recipe.model, &opened.split.train);
    let polished = polish(spec, data, &opened.weights, &norm, settings)?;
    let file = folder.join(POLISHED_FILE);
    save_weights(&file, &opened.layout, &polished.params)?;
    let mut model = cpu::bind(spec, &data.inputs, MarginMap::new(&data.targets).outputs(), Compute::default())?;
    let reference = model.scores(&polished.params).to_vec();
    let largest = reference.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    let mut earlier = Vec::new();
    for (checkpoint, path) in other_checkpoints(folder) {
        let start = load_weights(&path, &opened.layout)?;
        // a checkpoint from before the data were separated cannot be polished
        let Ok(other) = polish(spec, data, &start, &norm, settings) else { continue };
        // compare at equal size: the polished point keeps the norm of its start
        let mut measure = norm.build(&opened.layout)?;
        let factor = measure.value(&polished.params) / measure.value(&other.params);
        let scaled: Vec<f64> = other.params.iter().map(|w| w * factor).collect();
        let scores = model.scores(&scaled);
        let distance = scores.iter().zip(&reference).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest;
        earlier.push(WarmStart { checkpoint, margin: other.margin_after, tau: other.tau_after, distance });
    }
    Ok(PolishedRun { run, polished, file, earlier })
}

impl PolishedRun {
    /// Whether τ reached its target.
    pub fn is_polished(&self) -> bool {
        self.polished.status == PolishStatus::Polished
    }
}

/// The checkpoints of a run but its last, by name.
fn other_checkpoints(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder.join("checkpoints")).into_iter().flatten().flatten();
    let mut found: Vec<(String, PathBuf)> =
        entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect();
    found.retain(|(name, _)| name.ends_with(".safetensors") && name != super::checkpoint::Checkpoints::FINAL);
    found.sort();
    found
}
