//! Keeps rows of measurements in memory.

use serde::{Deserialize, Serialize};

use super::{Continue, Observer, Snapshot, Spacing};
use crate::diagnostics::Instrument;

/// The measurements of one snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Accepted steps.
    pub step: u64,
    /// Epochs.
    pub epoch: u64,
    /// ln of the time travelled.
    pub log_time: f64,
    /// Values in the order of [`Recorder::columns`].
    pub values: Vec<f64>,
}

/// Measures snapshots at the steps its spacing chooses.
pub struct Recorder {
    probe: Instrument,
    spacing: Spacing,
    rows: Vec<Row>,
}

impl Recorder {
    /// A recorder around a probe.
    pub fn new(probe: Instrument, spacing: Spacing) -> Self {
        Self { probe, spacing, rows: Vec::new() }
    }

    /// Names of the measured values.
    pub fn columns(&self) -> &[String] {
        self.probe.columns()
    }

    /// All rows so far.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// One column over time; empty if there is no such column.
    pub fn series(&self, column: &str) -> Vec<f64> {
        let index = self.columns().iter().position(|name| name == column);
        index.map_or_else(Vec::new, |index| self.rows.iter().map(|row| row.values[index]).collect())
    }

    /// The last value of a column.
    pub fn last(&self, column: &str) -> Option<f64> {
        self.series(column).last().copied()
    }
}

impl Observer for Recorder {
    fn wants(&self, step: u64) -> bool {
        self.spacing.includes(step)
    }

    fn observe(&mut self, snapshot: &Snapshot) -> Continue {
        let mut values = Vec::with_capacity(self.probe.columns().len());
        self.probe.measure(&snapshot.point, &mut values);
        let Snapshot { step, epoch, log_time, .. } = *snapshot;
        // an epoch that was taken back takes its rows with it; done again, it comes to the same steps at other times
        while self.rows.last().is_some_and(|row| row.step > step || (row.step == step && row.log_time != log_time)) {
            self.rows.pop();
        }
        if self.rows.last().is_none_or(|row| row.step < step) {
            self.rows.push(Row { step, epoch, log_time, values });
        }
        Continue::Yes
    }
}
