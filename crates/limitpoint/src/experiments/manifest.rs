//! Who made a run, from what, and how it ended.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::{RecordError, read_text, write_atomically};
use super::record::DataRecord;
use super::task::TaskLabel;

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

/// The `manifest.json` of a run.
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
}

impl Machine {
    /// This machine.
    pub fn this() -> Self {
        Self {
            platform: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            simd: format!("{:?}", pulp::Arch::new()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// What differs from one execution to the next.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Timings {
    /// Seconds, over all parts.
    pub seconds: f64,
}

/// The `manifest.json` of an experiment.
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
    pub runs: Vec<TaskLabel>,
}

/// Name of the file.
const FILE: &str = "manifest.json";

impl RunManifest {
    /// Reads the manifest of a run folder.
    pub fn load(folder: &Path) -> Result<Self, RecordError> {
        load(folder)
    }

    /// Writes it, as a whole or not at all.
    pub fn save(&self, folder: &Path) -> Result<(), RecordError> {
        save(folder, self)
    }
}

impl ExperimentManifest {
    /// Reads the manifest of an experiment folder.
    pub fn load(folder: &Path) -> Result<Self, RecordError> {
        load(folder)
    }

    /// Writes it, as a whole or not at all.
    pub fn save(&self, folder: &Path) -> Result<(), RecordError> {
        save(folder, self)
    }
}

fn load<T: serde::de::DeserializeOwned>(folder: &Path) -> Result<T, RecordError> {
    let path = folder.join(FILE);
    serde_json::from_str(&read_text(&path)?)
        .map_err(|error| RecordError::damaged(&path, format!("is no manifest of limitpoint: {error}")))
}

fn save<T: Serialize>(folder: &Path, manifest: &T) -> Result<(), RecordError> {
    let path = folder.join(FILE);
    let text = serde_json::to_string_pretty(manifest)
        .map_err(|error| RecordError::damaged(&path, format!("cannot be written: {error}")))?;
    write_atomically(&path, (text + "\n").as_bytes())
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
