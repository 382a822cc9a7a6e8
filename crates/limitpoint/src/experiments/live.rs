//! The record of an experiment that is still being made, followed by its files alone.
//!
//! Whoever writes is not asked and not disturbed: it may be another machine, and the folder a copy that grows by and by.
//! A run is read again when the sizes or times of its files have changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;

use super::RunError;
use super::config::config_text;
use super::load::load_steadily;
use super::manifest::{ExperimentManifest, MANIFEST_FILE, RunEntry, RunManifest, Status};
use super::optima::OptimaRecord;
use super::record::{ExperimentRecord, RunRecord};
use super::sweep::{FailedEntry, RunningEntry, SweepStatus, place, status};
use super::verify::is_run;

/// Files whose growth tells that a run went on.
const FOLLOWED: [&str; 5] =
    [MANIFEST_FILE, "metrics.csv", "metrics.csv.partial", "histograms.jsonl.partial", "certificate.json"];

/// Sizes and times of files.
type Stamp = Vec<Option<(u64, SystemTime)>>;

/// An experiment, a sweep or a single run that is followed.
pub struct LiveRecord {
    folder: PathBuf,
    stamp: Stamp,
    manifest: Option<ExperimentManifest>,
    runs: HashMap<String, (PathBuf, Stamp, Option<RunRecord>)>,
    record: ExperimentRecord,
    status: SweepStatus,
    trouble: Vec<String>,
}

impl LiveRecord {
    /// Reads what is there.
    pub fn open(folder: &Path) -> Result<Self, RunError> {
        let status = if is_run(folder) { status_of_run(&RunManifest::load(folder)?) } else { status(folder)? };
        let mut live = Self {
            folder: folder.to_path_buf(),
            stamp: Vec::new(),
            manifest: None,
            runs: HashMap::new(),
            record: ExperimentRecord::default(),
            status,
            trouble: Vec::new(),
        };
        live.refresh()?;
        Ok(live)
    }

    /// Looks again; says whether anything has changed.
    pub fn refresh(&mut self) -> Result<bool, RunError> {
        let single = is_run(&self.folder);
        let stamp = stamp(&self.folder, &[MANIFEST_FILE, OptimaRecord::FILE]);
        let mut changed = stamp != self.stamp;
        if changed && !single {
            self.manifest = Some(ExperimentManifest::load(&self.folder)?);
        }
        self.stamp = stamp;
        let alone: Vec<RunEntry>;
        let entries = match &self.manifest {
            Some(manifest) => &manifest.runs,
            None => {
                let label = RunManifest::load(&self.folder)?.label;
                let (recipe_sha256, data_sha256, data_files) = Default::default();
                alone = vec![RunEntry { label, recipe_sha256, data_sha256, data_files }];
                &alone
            }
        };
        let fresh: Vec<_> = entries
            .par_iter()
            .filter_map(|entry| {
                let name = &entry.label.name;
                let at = if single { self.folder.clone() } else { place(&self.folder, name) };
                let now = stamp_of(&at);
                let known = self.runs.get(name).is_some_and(|(place, stamp, _)| *place == at && *stamp == now);
                (!known).then(|| (name, load_steadily(&at, &entry.label), at, now))
            })
            .map(|(name, loaded, at, now)| (name.clone(), loaded, at, now))
            .collect();
        self.trouble.clear();
        for (name, loaded, at, now) in fresh {
            changed = true;
            match loaded {
                Ok(run) => {
                    self.runs.insert(name, (at, now, run));
                }
                // being copied or moved at this moment: what was read before stays, and it is read again
                Err(error) => self.trouble.push(error.to_string()),
            }
        }
        let status = match single {
            true => status_of_run(&RunManifest::load(&self.folder)?),
            false => status(&self.folder)?,
        };
        changed |= status != self.status;
        self.status = status;
        if changed {
            let read = |entry: &RunEntry| self.runs.get(&entry.label.name).and_then(|(_, _, run)| run.clone());
            let runs = entries.iter().filter_map(read).collect();
            self.record = self.describe(runs)?;
        }
        Ok(changed)
    }

    fn describe(&self, runs: Vec<RunRecord>) -> Result<ExperimentRecord, RunError> {
        let config = config_text(&self.folder)?;
        Ok(match &self.manifest {
            Some(manifest) => ExperimentRecord {
                name: manifest.name.clone(),
                title: manifest.title.clone(),
                description: manifest.description.clone(),
                version: manifest.version.clone(),
                data: manifest.data.clone(),
                references: OptimaRecord::load(&self.folder)?.map_or_else(Vec::new, |record| record.lines),
                config,
                runs,
            },
            None => {
                let manifest = RunManifest::load(&self.folder)?;
                let RunManifest { label, version, data, .. } = manifest;
                ExperimentRecord {
                    title: label.name.clone(),
                    name: label.name,
                    version,
                    data,
                    config,
                    runs,
                    ..Default::default()
                }
            }
        })
    }

    /// What was read last.
    pub fn record(&self) -> &ExperimentRecord {
        &self.record
    }

    /// Where the runs stand.
    pub fn status(&self) -> &SweepStatus {
        &self.status
    }

    /// What could not be read at the last look.
    pub fn trouble(&self) -> &[String] {
        &self.trouble
    }
}

fn stamp(folder: &Path, files: &[&str]) -> Stamp {
    let of = |file: &&str| {
        let facts = std::fs::metadata(folder.join(file)).ok()?;
        Some((facts.len(), facts.modified().ok()?))
    };
    files.iter().map(of).collect()
}

fn stamp_of(run: &Path) -> Stamp {
    stamp(run, &FOLLOWED)
}

/// A single run as a sweep of one.
fn status_of_run(manifest: &RunManifest) -> SweepStatus {
    let name = manifest.label.name.clone();
    let (mut done, mut waiting, mut running, mut failed) = (0, 0, Vec::new(), Vec::new());
    match manifest.status {
        Status::Finished if manifest.healthy => done = 1,
        Status::Finished | Status::Failed => failed.push(FailedEntry { run: name, reason: manifest.stop.clone() }),
        Status::Interrupted => waiting = 1,
        Status::Running => running.push(RunningEntry {
            run: name,
            worker: String::new(),
            host: String::new(),
            process: 0,
            seconds: Some(manifest.timings.seconds),
        }),
    }
    SweepStatus { runs: 1, done, running, waiting, failed, workers: 0, seconds_per_run: None, seconds_left: None }
}
