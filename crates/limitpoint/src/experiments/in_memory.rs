//! Runs that never had a folder, as the record that tables, reports and figures are made of.

use super::locate::describe_sets;
use super::portrait::portrait;
use super::record::{ExperimentRecord, RunRecord};
use super::weights::digest;
use crate::models::ModelError;
use crate::training::{TrainedRun, Trainer};

/// A run in memory with what tells it from others.
pub struct NamedRun<'a> {
    /// Name of the run, unique among those shown together.
    pub name: String,
    /// Name of who trained, as tables show it.
    pub optimiser: String,
    /// Settings in which it differs from the others.
    pub point: Vec<(String, String)>,
    /// Seconds it took.
    pub seconds: f64,
    /// The run.
    pub run: &'a TrainedRun,
}

impl ExperimentRecord {
    /// The record of runs in memory; the data are those of the first.
    ///
    /// ```
    /// use limitpoint::experiments::{ExperimentRecord, NamedRun, analyse};
    /// use limitpoint::prelude::*;
    /// let data = Gaussians { count: 20, dimension: 5, margin: 1.0, ..Default::default() }.generate(&Streams::new(1))?.train;
    /// let run = Training::new(&data, "linear")?.until_log10_loss(-20.0).record(Spacing::default(), &[])?.run()?;
    /// let (name, optimiser) = ("gradient-seed0".to_owned(), "gradient".to_owned());
    /// let named = NamedRun { name, optimiser, point: Vec::new(), seconds: 0.0, run: &run };
    /// let record = ExperimentRecord::of_runs("mine", &[named])?;
    /// assert_eq!(record.runs[0].own_norm.as_deref(), Some("l2"));
    /// assert_eq!(analyse(&record).summary.rows.len(), 1);
    /// # Ok::<(), limitpoint::Error>(())
    /// ```
    pub fn of_runs(name: &str, runs: &[NamedRun]) -> Result<Self, ModelError> {
        let data = runs.first().map(|first| describe_sets(&first.run.data, None));
        Ok(Self {
            name: name.to_owned(),
            title: name.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            data: data.unwrap_or_default(),
            runs: runs.iter().map(record).collect::<Result<_, _>>()?,
            ..Self::default()
        })
    }
}

fn record(named: &NamedRun) -> Result<RunRecord, ModelError> {
    let run = named.run;
    let trainer: &Trainer = &run.setup.trainer;
    Ok(RunRecord {
        name: named.name.clone(),
        optimiser: named.optimiser.clone(),
        formula: trainer.formula(),
        geometry: trainer.measure().map(|measure| measure.key()),
        geometry_in_limit: trainer.geometry_in_limit(),
        own_norm: trainer.own_norm().map(|norm| norm.key()),
        forgets: trainer.forgets(),
        seed: run.setup.seed,
        point: named.point.clone(),
        stop: run.reason.to_string(),
        healthy: run.reason.is_healthy(),
        failed: !run.reason.is_healthy(),
        steps: run.steps,
        seconds: named.seconds,
        weights: Some(digest(&run.params)),
        metrics: run.metrics.clone(),
        portrait: portrait(&run.setup.model, &run.layout, &run.data, &run.params, 0)?,
        ..RunRecord::default()
    })
}
