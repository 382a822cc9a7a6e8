//! The state of a run in one safetensors file.
//!
//! Parameters lie in it block by block under their names (`layer1.weight`, with its shape), so that other tools can
//! read a trained model. Vectors of the optimiser and of the observers are tensors as well; everything else is TOML in
//! the file's metadata, with a SHA-256 over text and tensors. Nothing in the file depends on when or where it was
//! written: the same run writes the same bytes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use super::files::{RecordError, read_bytes, remove_file, write_atomically};
use super::journal::{Mark, hexadecimal};
use crate::diagnostics::InstrumentState;
use crate::driver::ProcessState;
use crate::observers::{Anchor, StopReason};
use crate::optimisers::OptimiserState;
use crate::params::ParamLayout;

/// Format of the file; raised when old files can no longer be read.
const FORMAT: &str = "limitpoint-checkpoint-1";
/// The one key of the metadata: maps with several keys have no fixed order.
const KEY: &str = "limitpoint";
/// Tables of the state that hold the parameters.
const PARAMS: [&str; 2] = ["process/descent/params", "process/flow/params"];

/// All that a run needs to go on bit for bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// SHA-256 of the recipe the run was started with, whatever its stop rules and wherever its data lie.
    pub recipe: String,
    /// Accepted steps.
    pub step: u64,
    /// Optimiser, schedule, random streams; or the flow.
    pub process: ProcessState,
    /// The probe of the metrics.
    pub probe: InstrumentState,
    /// The stop rule on directions.
    pub anchor: Option<Anchor>,
    /// How far `metrics.csv` had come.
    pub metrics: Mark,
    /// How far `histograms.jsonl` had come.
    pub histograms: Mark,
    /// Why the run ended, if it did.
    pub outcome: Option<StopReason>,
}

/// Writes a checkpoint as a whole or not at all.
pub fn save_checkpoint(path: &Path, layout: &ParamLayout, state: &RunState) -> Result<(), RecordError> {
    write_atomically(path, &encode(path, layout, state)?)
}

/// Reads a checkpoint and checks that nothing in it was changed.
pub fn load_checkpoint(path: &Path) -> Result<RunState, RecordError> {
    decode(path, &read_bytes(path)?)
}

/// Checks the bytes of a safetensors file, if it is a checkpoint.
pub(super) fn check_if_checkpoint(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let Ok((_, header)) = SafeTensors::read_metadata(bytes) else { return Ok(()) };
    let is_checkpoint = header.metadata().as_ref().is_some_and(|map| map.contains_key(KEY));
    if is_checkpoint { decode(path, bytes).map(drop) } else { Ok(()) }
}

fn encode(path: &Path, layout: &ParamLayout, state: &RunState) -> Result<Vec<u8>, RecordError> {
    let refuse = |what: String| RecordError::refused(path, format!("cannot be written: {what}"));
    // as TOML a number takes ten times its eight bytes
    let mut rest = state.clone();
    let taken = long_vectors(&mut rest).into_iter().filter(|(_, values)| !values.is_empty());
    let mut vectors: Vec<(String, Vec<f64>)> = taken.map(|(name, values)| (name, std::mem::take(values))).collect();
    let mut table = match Value::try_from(rest) {
        Ok(Value::Table(table)) => table,
        Ok(_) => return Err(refuse("the state is no table".into())),
        Err(error) => return Err(refuse(error.to_string())),
    };
    for (name, _) in &vectors {
        let (home, key) = (parent(&mut table, name), name.rsplit('/').next().unwrap_or_default());
        if let Some(home) = home {
            home.remove(key);
        }
    }
    lift("", &mut table, &mut vectors);
    let mut tensors: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
    for (name, values) in vectors {
        if PARAMS.contains(&name.as_str()) && values.len() == layout.len() {
            for block in layout.blocks() {
                tensors.push((block.name.clone(), vec![block.rows, block.cols], to_bytes(&values[block.range()])));
            }
            let names = layout.blocks().iter().map(|block| Value::String(block.name.clone())).collect();
            table.insert("blocks".into(), Value::Array(names));
        } else {
            tensors.push((name, vec![values.len()], to_bytes(&values)));
        }
    }
    tensors.sort();
    let text = toml::to_string(&table).map_err(|error| refuse(error.to_string()))?;
    let sum = checksum(&text, tensors.iter().map(|(name, _, bytes)| (name.as_str(), bytes.as_slice())));
    let metadata = HashMap::from([(KEY.to_owned(), format!("{FORMAT}\n{sum}\n{text}"))]);
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name.as_str(), TensorView::new(Dtype::F64, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|error| refuse(error.to_string()))?;
    safetensors::serialize(views, Some(metadata)).map_err(|error| refuse(error.to_string()))
}

fn decode(path: &Path, bytes: &[u8]) -> Result<RunState, RecordError> {
    let damaged = |what: &str| RecordError::damaged(path, format!("is damaged: {what}"));
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(&error.to_string()))?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| damaged(&error.to_string()))?;
    let words = header.metadata().as_ref().and_then(|map| map.get(KEY)).ok_or_else(|| {
        RecordError::damaged(path, "is no checkpoint of limitpoint: its metadata has no key 'limitpoint'")
    })?;
    let mut parts = words.splitn(3, '\n');
    let (format, sum, text) =
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if format != FORMAT {
        let what = format!("has the format '{format}', this version reads '{FORMAT}'");
        return Err(RecordError::refused(path, what));
    }
    let mut views = tensors.tensors();
    views.sort_by(|a, b| a.0.cmp(&b.0));
    if checksum(text, views.iter().map(|(name, view)| (name.as_str(), view.data()))) != sum {
        return Err(damaged("the checksum does not fit"));
    }
    let mut table: Table = toml::from_str(text).map_err(|error| damaged(&error.to_string()))?;
    let mut vectors: HashMap<String, Vec<f64>> = HashMap::new();
    for (name, view) in &views {
        if view.dtype() != Dtype::F64 {
            return Err(damaged("a tensor is not of doubles"));
        }
        vectors.insert(name.clone(), from_bytes(view.data()));
    }
    if let Some(Value::Array(blocks)) = table.remove("blocks") {
        let mut params = Vec::new();
        for name in blocks.iter().filter_map(Value::as_str) {
            params.extend(vectors.remove(name).ok_or_else(|| damaged("a block of parameters is missing"))?);
        }
        let place = PARAMS.iter().find(|place| parent(&mut table, place).is_some());
        vectors.insert((*place.ok_or_else(|| damaged("it holds no process"))?).to_owned(), params);
    }
    for (name, values) in vectors {
        let (key, home) = (name.rsplit('/').next().unwrap_or_default().to_owned(), parent(&mut table, &name));
        let home = home.ok_or_else(|| damaged("a tensor has no place"))?;
        home.insert(key, Value::Array(values.into_iter().map(Value::Float).collect()));
    }
    Value::Table(table).try_into().map_err(|error: toml::de::Error| damaged(&error.to_string()))
}

/// The vectors of a state that may be as long as the parameters, under the paths that they have in its table.
fn long_vectors(state: &mut RunState) -> Vec<(String, &mut Vec<f64>)> {
    fn remembered<'a>(place: &str, state: &'a mut OptimiserState) -> impl Iterator<Item = (String, &'a mut Vec<f64>)> {
        state.vectors.iter_mut().map(move |(name, values)| (format!("{place}/optimiser/vectors/{name}"), values))
    }
    let mut all = Vec::new();
    match &mut state.process {
        ProcessState::Descent(descent) => {
            let place = "process/descent";
            all.push((format!("{place}/params"), &mut descent.params));
            all.extend(remembered(place, &mut descent.optimiser));
            if let Some(start) = &mut descent.epoch_start {
                let place = "process/descent/epoch_start";
                all.push((format!("{place}/params"), &mut start.params));
                all.extend(remembered(place, &mut start.optimiser));
            }
        }
        ProcessState::Flow(flow) => all.push(("process/flow/params".to_owned(), &mut flow.params)),
    }
    all.extend(state.probe.previous.as_mut().map(|values| ("probe/previous".to_owned(), values)));
    all
}

/// Moves every array of floats out of a table, under its path.
fn lift(prefix: &str, table: &mut Table, out: &mut Vec<(String, Vec<f64>)>) {
    let keys: Vec<String> = table.keys().cloned().collect();
    for key in keys {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}/{key}") };
        let floats = match &mut table[&key] {
            Value::Table(inner) => {
                lift(&path, inner, out);
                continue;
            }
            Value::Array(entries) if !entries.is_empty() => entries.iter().map(Value::as_float).collect(),
            _ => None,
        };
        if let Some(floats) = floats {
            table.remove(&key);
            out.push((path, floats));
        }
    }
}

/// The table in which the last part of a path lies.
fn parent<'a>(table: &'a mut Table, path: &str) -> Option<&'a mut Table> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    parts.into_iter().try_fold(table, |table, part| table.get_mut(part).and_then(Value::as_table_mut))
}

fn to_bytes(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn from_bytes(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|chunk| f64::from_le_bytes(*chunk)).collect()
}

pub(super) fn checksum<'a>(text: &str, tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut digest = Sha256::new_with_prefix(text.as_bytes());
    for (name, bytes) in tensors {
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name.as_bytes());
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    }
    hexadecimal(&digest)
}

/// The file in `checkpoints` with the first weights whose summed loss is at or below 10^level.
///
/// ```
/// assert_eq!(limitpoint::experiments::milestone_name(-15.5), "below-15.5.safetensors");
/// ```
pub fn milestone_name(level: f64) -> String {
    format!("below{level}.safetensors")
}

/// The checkpoints of a run.
pub(super) struct Checkpoints {
    folder: PathBuf,
}

impl Checkpoints {
    /// Name of the checkpoint of a complete run.
    pub const FINAL: &'static str = "final.safetensors";
    /// Name of the one written when time went by or the user interrupted; gone when the run is complete.
    const LATEST: &'static str = "latest.safetensors";
    /// How many of the regular ones are kept.
    const KEPT: usize = 2;

    /// The checkpoints in `folder`.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Writes a regular checkpoint and removes those it replaces.
    pub fn save_regular(&self, layout: &ParamLayout, state: &RunState) -> Result<(), RecordError> {
        save_checkpoint(&self.folder.join(format!("step-{:015}.safetensors", state.step)), layout, state)?;
        self.prune()
    }

    /// Removes regular checkpoints that later ones replace.
    fn prune(&self) -> Result<(), RecordError> {
        let regular = self.regular();
        let obsolete = regular.len().saturating_sub(Self::KEPT);
        regular[..obsolete].iter().try_for_each(|path| remove_file(path))
    }

    /// Writes an extra checkpoint, in place of the last extra one.
    pub fn save_extra(&self, layout: &ParamLayout, state: &RunState) -> Result<(), RecordError> {
        save_checkpoint(&self.folder.join(Self::LATEST), layout, state)
    }

    /// Of these losses those that are passed and have no checkpoint yet. A run that is resumed before such a step comes to
    /// the same one again.
    pub fn missing(&self, levels: &[f64], log10_loss: f64) -> Vec<PathBuf> {
        let passed = levels.iter().filter(|level| log10_loss <= **level);
        passed.map(|level| self.folder.join(milestone_name(*level))).filter(|path| !path.exists()).collect()
    }

    /// Keeps a state under these names for ever.
    pub fn save_milestones(
        &self,
        layout: &ParamLayout,
        paths: &[PathBuf],
        state: &RunState,
    ) -> Result<(), RecordError> {
        paths.iter().try_for_each(|path| save_checkpoint(path, layout, state))
    }

    /// Writes the last checkpoint and removes the extra one.
    pub fn save_final(&self, layout: &ParamLayout, state: &RunState) -> Result<(), RecordError> {
        save_checkpoint(&self.folder.join(Self::FINAL), layout, state)?;
        // a run killed between a checkpoint and the removal of an old one
        self.prune()?;
        remove_file(&self.folder.join(Self::LATEST))
    }

    /// All checkpoints that can be read, the furthest first, and what is wrong with the others; damaged ones are removed.
    pub fn readable(&self) -> (Vec<RunState>, Vec<String>) {
        let (mut states, mut complaints) = (Vec::new(), Vec::new());
        let extra = [Self::LATEST, Self::FINAL].map(|name| self.folder.join(name)).into_iter().filter(|p| p.exists());
        for path in self.regular().into_iter().chain(extra) {
            match load_checkpoint(&path) {
                Ok(state) => states.push(state),
                Err(error) => {
                    complaints.push(format!("{error}; using an earlier checkpoint"));
                    if error.is_damage() {
                        // of no use to anybody, and not to be listed among the files of the run
                        complaints.extend(remove_file(&path).err().map(|error| error.to_string()));
                    }
                }
            }
        }
        states.sort_by_key(|state| std::cmp::Reverse(state.step));
        (states, complaints)
    }

    /// Regular checkpoints by step.
    fn regular(&self) -> Vec<PathBuf> {
        let is_regular = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("step-") && name.ends_with(".safetensors")
        };
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut regular: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_regular).collect();
        regular.sort();
        regular
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
