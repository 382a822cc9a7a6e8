//! What a run leaves behind: its manifest at any time, all other files at its end.

use std::f64::consts::LN_10;

use super::{Runner, Setting};
use crate::data::Targets;
use crate::experiments::RunError;
use crate::experiments::files::{RecordError, write_atomically};
use crate::experiments::manifest::{Machine, RunManifest, Status, Timings};
use crate::experiments::parquet_file::to_parquet;
use crate::experiments::portrait::portrait;
use crate::experiments::weights::digest;
use crate::observers::StopReason;

impl Runner<'_> {
    /// Writes all that a complete run leaves behind; the manifest comes last.
    pub(super) fn finish(mut self, reason: StopReason) -> Result<RunManifest, RunError> {
        let folder = self.setting.folder.clone();
        let recipe = &self.setting.task.recipe;
        let parquet = to_parquet(&self.metrics.table()).map_err(|error| {
            RecordError::refused(&folder.join("metrics.parquet"), format!("cannot be written: {error}"))
        })?;
        write_atomically(&folder.join("metrics.parquet"), &parquet)?;
        let params = self.process.params();
        let maps = recipe.observe.activation_maps;
        let picture = portrait(&recipe.model, &self.layout, &self.setting.split.train, params, maps)?;
        let text = serde_json::to_string(&picture).map_err(|error| {
            RecordError::refused(&folder.join("portrait.json"), format!("cannot be written: {error}"))
        })?;
        write_atomically(&folder.join("portrait.json"), text.as_bytes())?;
        let test_accuracy = match &self.setting.split.test {
            Some(test) if !test.is_empty() && !matches!(test.targets, Targets::Values(_)) => {
                let mut setup = self.setting.task.setup()?;
                setup.compute.threads = self.setting.threads;
                let mut objective = setup.objective(test)?;
                objective.forward(params);
                Some(objective.accuracy())
            }
            _ => None,
        };
        let state = self.state(Some(&reason))?;
        self.checkpoints.save_final(&self.layout, &state)?;
        let weights = digest(self.process.params());
        let mut manifest = self.describe(Status::Finished, Some(&reason), reason.to_string());
        self.metrics.finish()?;
        self.histograms.finish()?;
        manifest.test_accuracy = test_accuracy;
        manifest.weights_sha256 = Some(weights);
        manifest.list_files(&folder)?;
        manifest.save(&folder)?;
        Ok(manifest)
    }

    pub(super) fn manifest(
        &self,
        status: Status,
        reason: Option<&StopReason>,
        words: String,
    ) -> Result<RunManifest, RunError> {
        let manifest = self.describe(status, reason, words);
        Ok(manifest.save(&self.setting.folder).map(|()| manifest)?)
    }

    fn describe(&self, status: Status, reason: Option<&StopReason>, words: String) -> RunManifest {
        let Setting { task, data, data_files, .. } = self.setting;
        RunManifest {
            status,
            stop: words,
            healthy: reason.map_or(status != Status::Failed, StopReason::is_healthy),
            steps: self.process.step(),
            log10_loss: self.process.log_loss() / LN_10,
            timings: Timings { seconds: self.seconds() },
            machine: Machine { device: self.setting.device, ..Machine::this() },
            ..RunManifest::begun(task, &self.config_sum, data, data_files)
        }
    }
}
