//! Polishing runs: from the weights a run ended with to a certified limit point, and whether earlier weights lead there
//! too.

use std::path::{Path, PathBuf};

use super::RunError;
use super::certify::OpenedRun;
use super::files::remove_file;
use super::prove::proof_file;
use super::weights::{load_weights, save_weights};
use crate::certificates::{Measure, PolishSettings, PolishStatus, Polished, polish};
use crate::data::Dataset;
use crate::engine::{Compute, Forward, cpu};
use crate::models::ModelSpec;
use crate::norms::NormSpec;

/// Margins that differ by less than this share are the same.
const SAME: f64 = 1e-12;

/// A norm's key as a part of a file's name.
pub(super) fn name_of(norm: &NormSpec) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    norm.key().chars().map(letter).collect()
}

/// The name of the file with weights polished in a norm.
///
/// ```
/// use limitpoint::{experiments::polished_file, norms::NormSpec};
/// assert_eq!(polished_file(&NormSpec::L2), "polished-l2.safetensors");
/// ```
pub fn polished_file(norm: &NormSpec) -> String {
    format!("polished-{}.safetensors", name_of(norm))
}

/// The norm that is asked for, or the one of the run's optimiser.
pub(super) fn norm_of(opened: &OpenedRun, norm: Option<&NormSpec>) -> Result<NormSpec, RunError> {
    let refuse = |why: &str| RunError::NoClaim { run: opened.task.label.name.clone(), why: why.to_owned() };
    match (norm, opened.task.measure()) {
        (Some(norm), _) => Ok(norm.clone()),
        (None, Some(Measure::Norm(norm))) => Ok(norm),
        (None, Some(Measure::Potential(_))) => {
            Err(refuse("its optimiser has a potential; name the norm of its horizon with --norm, such as l1"))
        }
        (None, None) => Err(refuse(&opened.task.no_measure())),
    }
}

/// A polished run.
#[derive(Debug, Clone, PartialEq)]
pub struct PolishedRun {
    /// Name of the run.
    pub run: String,
    /// The polished weights with their proof.
    pub polished: Polished,
    /// Where they were written.
    pub file: PathBuf,
    /// Whether the weights that were there already are as good, and stayed.
    pub kept: bool,
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

/// Polishes the weights a finished run ended with and writes `polished-NORM.safetensors` beside them, unless
/// weights lie there already that are a KKT point of as large a margin.
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
    let norm = norm_of(&opened, norm)?;
    let (spec, data) = (&opened.task.recipe.model, &opened.split.train);
    let mut polished = polish(spec, data, &opened.weights, &norm, settings)?;
    let file = folder.join(polished_file(&norm));
    let better = better(spec, data, &opened, &file, &norm, settings, &polished);
    let kept = better.is_some();
    if let Some(earlier) = better {
        polished = earlier;
    } else {
        // a proof speaks of the weights that were there
        remove_file(&folder.join(proof_file(&norm)))?;
        save_weights(&file, &opened.layout, &polished.params)?;
    }
    let mut model = cpu::bind_to(spec, data, Compute::default())?;
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
    Ok(PolishedRun { run, polished, file, kept, earlier })
}

/// The weights of an earlier polish, if they are polished and have a margin as large.
fn better(
    spec: &ModelSpec,
    data: &Dataset,
    opened: &OpenedRun,
    file: &Path,
    norm: &NormSpec,
    settings: &PolishSettings,
    fresh: &Polished,
) -> Option<Polished> {
    let weights = load_weights(file, &opened.layout).ok()?;
    let again = polish(spec, data, &weights, norm, settings).ok()?;
    let done = again.status == PolishStatus::Polished;
    let larger = again.margin_before >= fresh.margin_after * (1.0 - SAME);
    // the weights that lie there, not those polished once more
    (done && (larger || fresh.status != PolishStatus::Polished)).then_some(Polished { params: weights, ..again })
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
