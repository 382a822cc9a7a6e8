//! What an experiment left behind, read back from its folder.

use std::path::{Path, PathBuf};

use super::certify::certificate_record;
use super::config::config_text;
use super::files::{RecordError, read_text};
use super::journal::partial_name;
use super::manifest::{ExperimentManifest, MANIFEST_FILE, RunManifest, Status};
use super::metrics::{read_histograms, read_metrics};
use super::optima::OptimaRecord;
use super::record::{ExperimentRecord, Metrics, RunRecord};
use super::sweep::steadily;
use super::task::TaskLabel;

impl ExperimentRecord {
    /// Reads what an experiment left behind; of runs that still go on, what there is so far. Every file of a finished run
    /// is checked against its SHA-256.
    pub fn load(folder: &Path) -> Result<Self, RecordError> {
        let manifest = ExperimentManifest::load(folder)?;
        let mut runs = Vec::new();
        for entry in &manifest.runs {
            let load = |place: &Path| load_steadily(place, &entry.label);
            runs.extend(steadily(folder, &entry.label.name, load)?);
        }
        Ok(Self {
            name: manifest.name,
            title: manifest.title,
            description: manifest.description,
            config: config_text(folder)?,
            version: manifest.version,
            data: manifest.data,
            references: OptimaRecord::load(folder)?.map_or_else(Vec::new, |record| record.lines),
            runs,
        })
    }
}

/// Reads a run that somebody may be writing: where its manifest changed meanwhile, the run is read again.
pub(super) fn load_steadily(folder: &Path, label: &TaskLabel) -> Result<Option<RunRecord>, RecordError> {
    let state = || read_text(&folder.join(MANIFEST_FILE)).ok();
    loop {
        let before = state();
        let loaded = RunManifest::find(folder).and_then(|manifest| load_run(folder, label, manifest.as_ref()));
        if loaded.is_ok() || state() == before {
            return loaded;
        }
    }
}

/// Reads a run; nothing if it has not begun.
fn load_run(
    folder: &Path,
    label: &TaskLabel,
    manifest: Option<&RunManifest>,
) -> Result<Option<RunRecord>, RecordError> {
    config_text(folder)?;
    let Some(manifest) = manifest else { return Ok(None) };
    if manifest.status == Status::Finished {
        manifest.check_files(folder)?;
    }
    let metrics = match read_either(&folder.join("metrics.csv"))? {
        Some((path, text)) => read_metrics(&path, &text)?,
        None => Metrics::default(),
    };
    let histograms = match read_either(&folder.join("histograms.jsonl"))? {
        Some((path, text)) => {
            let lines: Vec<&str> = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
            read_histograms(&path, &lines)?
        }
        None => Vec::new(),
    };
    let portrait = match read_either(&folder.join("portrait.json"))? {
        Some((path, text)) => {
            serde_json::from_str(&text).map_err(|error| RecordError::damaged(&path, format!("is damaged: {error}")))?
        }
        None => Default::default(),
    };
    let failed = match manifest.status {
        Status::Failed => true,
        Status::Finished => !manifest.healthy,
        Status::Running | Status::Interrupted => false,
    };
    Ok(Some(RunRecord {
        name: label.name.clone(),
        optimiser: label.optimiser.clone(),
        seed: label.seed,
        point: label.point.clone(),
        formula: manifest.formula.clone(),
        geometry: manifest.geometry.clone(),
        geometry_in_limit: manifest.geometry_in_limit,
        own_norm: manifest.own_norm.clone(),
        forgets: manifest.forgets,
        stop: if manifest.status == Status::Running { "not finished".into() } else { manifest.stop.clone() },
        healthy: manifest.status == Status::Finished && manifest.healthy,
        failed,
        steps: metrics.last("step").map_or(manifest.steps, |step| manifest.steps.max(step as u64)),
        seconds: manifest.timings.seconds,
        device: manifest.machine.device,
        test_accuracy: manifest.test_accuracy,
        weights: manifest.weights_sha256.clone(),
        certificate: certificate_record(folder, manifest.weights_sha256.as_deref())?,
        metrics,
        histograms,
        portrait,
    }))
}

/// A file and its path, complete or not; whoever writes it may name it at any moment.
fn read_either(complete: &Path) -> Result<Option<(PathBuf, String)>, RecordError> {
    for path in [complete.to_path_buf(), partial_name(complete), complete.to_path_buf()] {
        match read_text(&path) {
            Ok(text) => return Ok(Some((path, text))),
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
