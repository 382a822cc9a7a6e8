//! Final weights beside a record, and the record checked against them: no training, only data and weights.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use limitpoint::experiments::{Task, experiment_data, load_weights, write_atomically};
use limitpoint::norms::NormSpec;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::material::{FINAL, Material, checkpoint, refused};
use super::record::ExhibitRecord;
use super::run_sets::RunSet;
use crate::ClaimError;

/// Most bytes of weights that are kept beside a record.
const MOST: usize = 1_000_000;
/// The relative difference that is allowed: the same sums, perhaps in another order.
const TOLERANCE: f64 = 1e-9;

/// What came of checking a record.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedExhibit {
    /// The record.
    pub record: ExhibitRecord,
    /// Runs whose loss and margins were recomputed.
    pub checked: usize,
    /// Finished runs whose weights are neither beside the record nor in the folder of runs.
    pub absent: usize,
    /// Numbers that do not agree.
    pub disagreements: Vec<String>,
}

/// Whether a file is the record of an exhibit.
pub fn is_exhibit(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim_start().starts_with('{') && text.contains("\"extent\"") && text.contains("\"departures\"")
}

/// Where the weights of a set lie, for all records of the folder.
pub(super) fn weights_file(folder: &Path, set: &str) -> PathBuf {
    folder.join(format!("{set}.safetensors"))
}

/// Keeps the final weights of as many runs of every set as fit into a megabyte, in a file of the set beside the records that
/// are read from it.
pub fn keep_weights(folder: &Path, record: &ExhibitRecord, material: &Material) -> Result<(), ClaimError> {
    for set in &record.sets {
        let path = weights_file(folder, &set.name);
        let mut before = stored(&path)?;
        let mut kept: Vec<(String, Vec<u8>)> = Vec::new();
        let mut room = MOST;
        for run in material.runs(&set.name).filter(|run| set.ends.contains_key(&run.name)) {
            let file = checkpoint(&material.folder(&set.name, run), FINAL);
            let weights = match std::fs::metadata(&file) {
                // whether it fits is known before it is read
                Ok(meta) if meta.len() as usize > 4 * room => continue,
                Ok(_) => material.weights(&set.name, run)?.map(|(_, weights)| weights),
                // of a run that was made elsewhere, and came here beside its record
                Err(_) => before.remove(&run.name),
            };
            let Some(weights) = weights else { continue };
            if 8 * weights.len() > room {
                continue;
            }
            room -= 8 * weights.len();
            kept.push((run.name.clone(), weights.iter().flat_map(|w| w.to_le_bytes()).collect()));
        }
        if kept.is_empty() {
            continue;
        }
        let views = kept.iter().map(|(name, bytes)| {
            TensorView::new(Dtype::F64, vec![bytes.len() / 8], bytes).map(|view| (name.clone(), view))
        });
        let views = views.collect::<Result<Vec<_>, _>>().map_err(|error| refused(&path, error))?;
        let bytes = safetensors::serialize(views, None).map_err(|error| refused(&path, error))?;
        write_atomically(&path, &bytes).map_err(|error| refused(&path, error))?;
    }
    Ok(())
}

/// Weights by run; none where there is no such file.
pub(super) fn stored(path: &Path) -> Result<HashMap<String, Vec<f64>>, ClaimError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(refused(path, error)),
    };
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| refused(path, error))?;
    let read = |bytes: &[u8]| bytes.as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect();
    Ok(tensors.tensors().into_iter().map(|(name, view)| (name, read(view.data()))).collect())
}

/// Recomputes losses and margins of a record from the weights beside it, or from checkpoints in the folder of runs `home`.
pub fn check_exhibit(
    path: &Path,
    home: Option<&Path>,
    data_folder: Option<&Path>,
) -> Result<CheckedExhibit, ClaimError> {
    let text = std::fs::read_to_string(path).map_err(|error| refused(path, error))?;
    let record: ExhibitRecord = serde_json::from_str(&text).map_err(|error| refused(path, error))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let (mut checked, mut absent, mut disagreements) = (0, 0, Vec::new());
    for set in &record.sets {
        let stored = stored(&weights_file(folder, &set.name))?;
        let tasks = match RunSet::find(&set.name) {
            Some(known) => known.plan()?.tasks(),
            None => return Err(refused(path, format!("names the set of runs '{}', which is not known", set.name))),
        };
        for (name, end) in &set.ends {
            let Some(task) = tasks.iter().find(|task| belongs(name, task)) else {
                disagreements.push(format!("{name}: the set {} has no such run", set.name));
                continue;
            };
            let data = experiment_data(&task.recipe, Some(task.label.seed), data_folder)?.0.train;
            let mut objective = task.setup()?.objective(&data)?;
            let found = stored.get(name).cloned();
            let in_folder = || {
                let file = home?.join(&set.name).join(name).join("checkpoints/final.safetensors");
                load_weights(&file, objective.layout()).ok()
            };
            let Some(weights) = found.or_else(in_folder) else {
                absent += 1;
                continue;
            };
            if weights.len() != objective.layout().len() {
                disagreements.push(format!(
                    "{name}: {} weights for a model of {}",
                    weights.len(),
                    objective.layout().len()
                ));
                continue;
            }
            checked += 1;
            let log10_loss = objective.forward(&weights).log_loss() / std::f64::consts::LN_10;
            let smallest = objective.margins().iter().copied().fold(f64::INFINITY, f64::min);
            let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
            let mut compare = |what: String, stated: f64, found: f64| {
                // written so that a NaN disagrees
                let agrees = (stated - found).abs() <= TOLERANCE * found.abs();
                if !agrees {
                    disagreements.push(format!("{name}: {what} is {found:e}, stated {stated:e}"));
                }
            };
            compare("log₁₀ L".into(), end.log10_loss, log10_loss);
            for (norm, stated) in &end.margins {
                let spec: NormSpec = norm.parse()?;
                let size = spec.build(objective.layout())?.value(&weights);
                compare(format!("the margin in {norm}"), *stated, smallest / size.powf(degree));
            }
        }
    }
    Ok(CheckedExhibit { record, checked, absent, disagreements })
}

/// Whether a run of a sweep, whose name ends with a hash, is that of a task.
fn belongs(name: &str, task: &Task) -> bool {
    name.strip_prefix(&task.label.name).is_some_and(|rest| rest.starts_with('-') && !rest[1..].contains('-'))
}
