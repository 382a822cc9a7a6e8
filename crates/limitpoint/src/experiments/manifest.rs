//! Who made a run, from what, and how it ended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{RecordError, read_text, write_atomically};
use super::record::DataRecord;
use super::seal::Seal;
use super::task::{Task, TaskLabel};
use crate::engine::Device;
use crate::training::Trainer;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It goes on, or was killed.
    Running,
    /// The user interrupted it; it can be resumed.
    Interrupted,
    /// It could not go on.
    Failed,
    /// All files are written.
    Finished,
}

/// The `manifest.json` of a run; its last entry is the SHA-256 of all before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunManifest {
    /// Name, optimiser, seed and sweep settings.
    #[serde(flatten)]
    pub label: TaskLabel,
    /// The update rule, for people.
    pub formula: String,
    /// The norm or potential the theory assigns to it.
    pub geometry: Option<String>,
    /// Whether that holds in the limit or by conjecture only.
    #[serde(default)]
    pub geometry_in_limit: bool,
    /// The norm it belongs to, as columns name it.
    #[serde(default)]
    pub own_norm: Option<String>,
    /// The largest fall of ln L in a step that its memory of gradients can follow, where it has one.
    #[serde(default)]
    pub forgets: Option<f64>,
    /// How far it has come.
    pub status: Status,
    /// Why it ended, in words.
    pub stop: String,
    /// Whether it ended by a rule and not in trouble.
    pub healthy: bool,
    /// Accepted steps.
    pub steps: u64,
    /// log₁₀ of the summed loss; absent where it is no number.
    #[serde(with = "finite")]
    pub log10_loss: f64,
    /// Share of test examples classified correctly.
    pub test_accuracy: Option<f64>,
    /// Version of limitpoint.
    pub version: String,
    /// SHA-256 of the run's `config.toml`.
    pub recipe_sha256: String,
    /// The data.
    pub data: DataRecord,
    /// Where the files of the data were when the experiment began.
    #[serde(default)]
    pub data_files: Vec<PathBuf>,
    /// SHA-256 of the bits of the weights a finished run ended with.
    #[serde(default)]
    pub weights_sha256: Option<String>,
    /// Every other file of a finished run, from its folder on, and its SHA-256.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// The machine.
    pub machine: Machine,
    /// What differs from one execution to the next.
    pub timings: Timings,
}

/// The machine a run was made on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processor architecture and operating system.
    pub platform: String,
    /// The vector instructions used.
    pub simd: String,
    /// Cores.
    pub cores: usize,
    /// Where models were computed.
    #[serde(default, skip_serializing_if = "Device::is_cpu")]
    pub device: Device,
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        Self {
            platform: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            simd: format!("{:?}", pulp::Arch::new()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            device: Device::Cpu,
        }
    }
}

/// What differs from one execution to the next; in the file, the checksum of the manifest stands here as well.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timings {
    /// Seconds, over all parts.
    pub seconds: f64,
}

/// The `manifest.json` of an experiment: written once, before the first step; its last entry is the SHA-256 of all
/// before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExperimentManifest {
    /// Name of the recipe.
    pub name: String,
    /// A title for people.
    pub title: String,
    /// What the experiment asks.
    pub description: String,
    /// Version of limitpoint.
    pub version: String,
    /// The data of the first run.
    pub data: DataRecord,
    /// All runs, in order.
    pub runs: Vec<RunEntry>,
}

/// A run in the list of an experiment, and what it is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEntry {
    /// Name, optimiser, seed and sweep settings.
    #[serde(flatten)]
    pub label: TaskLabel,
    /// SHA-256 of the recipe, whatever its stop rules and wherever its data lie.
    #[serde(default)]
    pub recipe_sha256: String,
    /// SHA-256 of the data; empty where they could not be made.
    #[serde(default)]
    pub data_sha256: String,
    /// Where the files of the data were when the experiment began.
    #[serde(default)]
    pub data_files: Vec<PathBuf>,
}

/// Name of the file.
pub(super) const MANIFEST_FILE: &str = "manifest.json";

impl RunManifest {
    const SEAL: Seal = Seal::NESTED_JSON;

    /// What is known of a run before its first step.
    pub(super) fn begun(task: &Task, recipe_sha256: &str, data: &DataRecord, data_files: &[PathBuf]) -> Self {
        let trainer = task.trainer();
        let trainer = trainer.as_ref();
        Self {
            label: task.label.clone(),
            formula: trainer.map_or_else(String::new, Trainer::formula),
            geometry: trainer.and_then(Trainer::measure).map(|measure| measure.key()),
            geometry_in_limit: trainer.is_some_and(Trainer::geometry_in_limit),
            own_norm: trainer.and_then(Trainer::own_norm).map(|norm| norm.key()),
            forgets: trainer.and_then(Trainer::forgets),
            status: Status::Running,
            stop: "running".into(),
            healthy: false,
            steps: 0,
            log10_loss: f64::NAN,
            test_accuracy: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            recipe_sha256: recipe_sha256.to_owned(),
            data: data.clone(),
            data_files: data_files.to_vec(),
            weights_sha256: None,
            files: BTreeMap::new(),
            machine: Machine::this(),
            timings: Timings::default(),
        }
    }

    /// Reads the manifest of a run folder and checks that nothing in it was changed.
    pub fn load(folder: &Path) -> Result<Self, RecordError> {
        load(folder, &Self::SEAL)
    }

    /// Writes it, as a whole or not at all.
    pub fn save(&self, folder: &Path) -> Result<(), RecordError> {
        save(folder, self, &Self::SEAL)
    }

    /// Reads the manifest of a run that may not have begun; an error if it began and its manifest is lost.
    pub(super) fn find(folder: &Path) -> Result<Option<Self>, RecordError> {
        match Self::load(folder) {
            Err(error) if error.is_missing() => {
                let mut checkpoints = std::fs::read_dir(folder.join("checkpoints")).into_iter().flatten();
                let begun = folder.join("metrics.csv").exists() || checkpoints.next().is_some();
                let what = "is missing, though the run has begun; restore it, or resume: it is made again from the checkpoints";
                if begun { Err(RecordError::damaged(&folder.join(MANIFEST_FILE), what)) } else { Ok(None) }
            }
            other => other.map(Some),
        }
    }
}

impl ExperimentManifest {
    /// Reads the manifest of an experiment folder and checks that nothing in it was changed.
    pub fn load(folder: &Path) -> Result<Self, RecordError> {
        match load(folder, &Seal::JSON) {
            Err(error) if error.is_missing() && folder.join("config.toml").exists() => {
                let what = "is missing, though config.toml is there; restore it, or, where the experiment was killed as it \
                            began, repeat `limitpoint run` with --resume";
                Err(RecordError::damaged(&folder.join(MANIFEST_FILE), what))
            }
            other => other,
        }
    }

    /// Writes it, as a whole or not at all.
    pub fn save(&self, folder: &Path) -> Result<(), RecordError> {
        save(folder, self, &Seal::JSON)
    }
}

fn load<T: serde::de::DeserializeOwned>(folder: &Path, seal: &Seal) -> Result<T, RecordError> {
    let path = folder.join(MANIFEST_FILE);
    let text = read_text(&path)?;
    let manifest = serde_json::from_str(&text)
        .map_err(|error| RecordError::damaged(&path, format!("is no manifest of limitpoint: {error}")))?;
    if seal.open(&text).is_none() {
        return Err(RecordError::damaged(&path, "was changed after it was written: its SHA-256 does not fit"));
    }
    Ok(manifest)
}

fn save<T: Serialize>(folder: &Path, manifest: &T, seal: &Seal) -> Result<(), RecordError> {
    let path = folder.join(MANIFEST_FILE);
    let text = serde_json::to_string_pretty(manifest)
        .map_err(|error| RecordError::refused(&path, format!("cannot be written: {error}")))?;
    write_atomically(&path, seal.close(&text).as_bytes())
}

/// Numbers that JSON cannot hold, as null.
mod finite {
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
    pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { serializer.serialize_some(value) } else { serializer.serialize_none() }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
    }
}
