//! Measurements kept in memory while a run goes on.

use std::f64::consts::LN_10;

use super::certificate_rule::CertificateCheck;
use super::{CertificateRule, Metrics};
use crate::diagnostics::{Instrument, InstrumentState};
use crate::observers::{Continue, Observer, Snapshot, Spacing, StopReason};

/// An observer that measures snapshots at the steps of its spacing, one row of named numbers each; the last step is
/// always there. The columns are those of `metrics.csv`.
pub struct Recorder {
    probe: Instrument,
    spacing: Spacing,
    columns: Vec<String>,
    rows: Vec<Vec<f64>>,
    certificate: Option<CertificateCheck>,
    /// The certificate that the last row reached.
    reached: Option<StopReason>,
}

/// Places of the counters in a row.
const STEP: usize = 0;
const LOG10_TIME: usize = 2;

/// What a snapshot changed in the table.
pub(crate) struct Change<'a> {
    /// Rows of before that still hold.
    pub kept: usize,
    /// The row that was added, if its step was not there yet.
    pub added: Option<&'a [f64]>,
}

impl Recorder {
    /// An empty table: after the counters the columns of the probe, with the logarithm of the loss in base ten.
    pub fn new(probe: Instrument, spacing: Spacing) -> Self {
        let base_ten = |name: &String| if name == "log_loss" { "log10_loss".to_owned() } else { name.clone() };
        let counters = ["step", "epoch", "log10_time"].map(str::to_owned);
        let columns = counters.into_iter().chain(probe.columns().iter().map(base_ten)).collect();
        Self { probe, spacing, columns, rows: Vec::new(), certificate: None, reached: None }
    }

    /// The same, and asks to stop when a row reaches this certificate; its norm must be one of the probe's.
    pub fn until(mut self, rule: Option<&CertificateRule>) -> Self {
        self.certificate = rule.and_then(|rule| CertificateCheck::new(rule, &self.columns));
        self
    }

    /// The certificate that was reached.
    pub fn reached(&self) -> Option<&StopReason> {
        self.reached.as_ref()
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The last row.
    pub fn last(&self) -> Option<&[f64]> {
        self.rows.last().map(Vec::as_slice)
    }

    /// The table so far.
    pub fn metrics(&self) -> Metrics {
        let values = (0..self.columns.len()).map(|c| self.rows.iter().map(|row| row[c]).collect()).collect();
        Metrics { columns: self.columns.clone(), values }
    }

    /// The rows so far, and what the probe remembers: enough to go on bit for bit.
    pub fn state(&self) -> (Vec<Vec<f64>>, InstrumentState) {
        (self.rows.clone(), self.probe.state())
    }

    /// What the probe remembers.
    pub fn probe_state(&self) -> InstrumentState {
        self.probe.state()
    }

    /// Takes up a saved state; every row has a number for every column.
    pub fn restore(&mut self, rows: Vec<Vec<f64>>, probe: InstrumentState) {
        self.rows = rows;
        self.probe.restore(probe);
    }

    /// Measures a snapshot.
    pub(crate) fn measure(&mut self, snapshot: &Snapshot) -> Change<'_> {
        let (step, log10_time) = (snapshot.step as f64, snapshot.log_time / LN_10);
        // an epoch that was taken back takes its rows with it; done again, it comes to the same steps at other times
        let stale = |row: &Vec<f64>| row[STEP] > step || (row[STEP] == step && row[LOG10_TIME] != log10_time);
        let kept = self.rows.iter().rposition(|row| !stale(row)).map_or(0, |last| last + 1);
        self.rows.truncate(kept);
        let (mut row, mut measured) = (vec![step, snapshot.epoch as f64, log10_time], Vec::new());
        self.probe.measure(&snapshot.point, &mut measured);
        row.extend(measured);
        if self.rows.last().is_some_and(|row| row[STEP] >= step) {
            return Change { kept, added: None };
        }
        if let Some(loss) = self.columns.iter().position(|column| column == "log10_loss") {
            row[loss] /= LN_10;
        }
        self.reached = self.certificate.as_ref().and_then(|certificate| certificate.check(&row));
        self.rows.push(row);
        Change { kept, added: self.rows.last().map(Vec::as_slice) }
    }
}

impl Observer for Recorder {
    fn wants(&self, step: u64) -> bool {
        self.spacing.includes(step)
    }

    fn observe(&mut self, snapshot: &Snapshot) -> Continue {
        self.measure(snapshot);
        if self.reached.is_some() { Continue::No } else { Continue::Yes }
    }
}
