//! The measurements of a run, streamed to `metrics.csv` and `histograms.jsonl` as it goes.

use std::path::Path;

use super::files::RecordError;
use super::journal::{Journal, Mark};
use super::recipe::CertificateRule;
use super::record::{HistogramRecord, Metrics};
use crate::diagnostics::{Instrument, InstrumentState, histogram};
use crate::observers::{Continue, Observer, Snapshot, Spacing, StopReason};
use crate::training::Recorder;

/// An observer that measures snapshots and writes them down.
pub(super) struct MetricsWriter {
    recorder: Recorder,
    journal: Journal,
    /// Why the last snapshot could not be written.
    trouble: Option<RecordError>,
    /// The column shown while the run goes on.
    shown: Option<usize>,
}

impl MetricsWriter {
    /// Starts the table, or takes it up at a mark.
    pub fn open(
        path: &Path,
        probe: Instrument,
        spacing: Spacing,
        certificate: Option<&CertificateRule>,
        resumed: Option<(&Mark, &InstrumentState)>,
    ) -> Result<Self, RecordError> {
        let mut recorder = Recorder::new(probe, spacing).until(certificate);
        let header = header_text(recorder.columns());
        let journal = match resumed {
            None => Journal::create(path, &header)?,
            Some((mark, state)) => {
                let (journal, lines) = Journal::resume(path, &header, mark)?;
                let rows = lines.iter().map(|line| parse_numbers(line, recorder.columns().len()));
                let rows = rows
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| RecordError::damaged(path, "has a line that is no row of numbers"))?;
                recorder.restore(rows, state.clone());
                journal
            }
        };
        let shown = recorder.columns().iter().position(|column| column.starts_with("margin."));
        Ok(Self { recorder, journal, trouble: None, shown })
    }

    /// How far it has come, and what the probe remembers.
    pub fn mark(&mut self) -> Result<(Mark, InstrumentState), RecordError> {
        Ok((self.journal.mark()?, self.recorder.probe_state()))
    }

    /// Why the last snapshot could not be written, if it could not.
    pub fn take_trouble(&mut self) -> Option<RecordError> {
        self.trouble.take()
    }

    /// Name and last value of the column shown while the run goes on.
    pub fn shown(&self) -> Option<(&str, f64)> {
        let (index, row) = (self.shown?, self.recorder.last()?);
        Some((&self.recorder.columns()[index], row[index]))
    }

    /// The certificate that was reached.
    pub fn reached(&self) -> Option<&StopReason> {
        self.recorder.reached()
    }

    /// The table so far.
    pub fn table(&self) -> Metrics {
        self.recorder.metrics()
    }

    /// The run is complete.
    pub fn finish(self) -> Result<(), RecordError> {
        self.journal.finish()
    }

    fn write(&mut self, snapshot: &Snapshot) -> Result<(), RecordError> {
        let change = self.recorder.measure(snapshot);
        self.journal.keep(change.kept)?;
        if let Some(row) = change.added {
            self.journal.append(&line_text(row))?;
        }
        Ok(())
    }
}

impl Observer for MetricsWriter {
    fn wants(&self, step: u64) -> bool {
        self.recorder.wants(step)
    }

    fn observe(&mut self, snapshot: &Snapshot) -> Continue {
        if let Err(error) = self.write(snapshot) {
            self.trouble = Some(error);
        }
        if self.trouble.is_some() || self.recorder.reached().is_some() { Continue::No } else { Continue::Yes }
    }
}

/// Names of columns as they are written: those with commas, as in `margin.max(hidden=spectral,*=linf)`, in quotes.
fn header_text(columns: &[String]) -> String {
    let quoted = |name: &String| match name.contains([',', '"']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.clone(),
    };
    columns.iter().map(quoted).collect::<Vec<_>>().join(",")
}

/// What [`header_text`] wrote.
fn header_columns(line: &str) -> Vec<String> {
    let mut columns = vec![String::new()];
    let (mut quoted, mut before) = (false, ' ');
    for character in line.chars() {
        match character {
            '"' if !quoted && before == '"' => {
                // a quote within quotes is written twice
                quoted = true;
                columns.last_mut().into_iter().for_each(|name| name.push('"'));
            }
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(String::new()),
            other => columns.last_mut().into_iter().for_each(|name| name.push(other)),
        }
        before = character;
    }
    columns
}

/// Numbers as they are written: the shortest text that reads back to the same bits.
fn line_text(values: &[f64]) -> String {
    let mut text = String::with_capacity(12 * values.len());
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        if index < 2 {
            text += &format!("{value}"); // counters are whole numbers
        } else {
            text += &format!("{value:?}");
        }
    }
    text
}

fn parse_numbers(line: &str, columns: usize) -> Option<Vec<f64>> {
    let values: Vec<f64> = line.split(',').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    (values.len() == columns).then_some(values)
}

/// Reads a table written by a [`MetricsWriter`]; of a run that still goes on, a last line cut short is left out.
pub(super) fn read_metrics(path: &Path, text: &str) -> Result<Metrics, RecordError> {
    let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(|line| line.trim_end());
    let columns = header_columns(lines.next().unwrap_or_default());
    let mut values = vec![Vec::new(); columns.len()];
    for (number, line) in lines.enumerate() {
        let row = parse_numbers(line, columns.len()).ok_or_else(|| {
            let what = format!("is damaged in line {}: {} numbers expected", number + 2, columns.len());
            RecordError::damaged(path, what)
        })?;
        values.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    Ok(Metrics { columns, values })
}

/// An observer that writes weight histograms down, one JSON object a line.
pub(super) struct HistogramWriter {
    bins: usize,
    spacing: Spacing,
    rows: Vec<HistogramRecord>,
    journal: Journal,
    trouble: Option<RecordError>,
}

impl HistogramWriter {
    /// Starts the file, or takes it up at a mark.
    pub fn open(path: &Path, bins: usize, spacing: Spacing, resumed: Option<&Mark>) -> Result<Self, RecordError> {
        let (journal, lines) = match resumed {
            None => (Journal::create(path, "")?, Vec::new()),
            Some(mark) => Journal::resume(path, "", mark)?,
        };
        let rows = read_histograms(path, &lines)?;
        Ok(Self { bins, spacing, rows, journal, trouble: None })
    }

    /// How far it has come.
    pub fn mark(&mut self) -> Result<Mark, RecordError> {
        self.journal.mark()
    }

    /// Why the last snapshot could not be written, if it could not.
    pub fn take_trouble(&mut self) -> Option<RecordError> {
        self.trouble.take()
    }

    /// The run is complete.
    pub fn finish(self) -> Result<(), RecordError> {
        self.journal.finish()
    }

    fn write(&mut self, snapshot: &Snapshot) -> Result<(), RecordError> {
        let point = &snapshot.point;
        let kept = self.rows.iter().rposition(|row| row.step < snapshot.step).map_or(0, |last| last + 1);
        self.rows.truncate(kept);
        self.journal.keep(kept)?;
        let of_block = |block: &crate::params::Block| {
            (block.name.clone(), histogram(&point.params[block.range()], self.bins).counts)
        };
        let row = HistogramRecord { step: snapshot.step, blocks: point.layout.trainable().map(of_block).collect() };
        // numbers and names always have a JSON form
        self.journal.append(&serde_json::to_string(&row).unwrap_or_default())?;
        self.rows.push(row);
        Ok(())
    }
}

impl Observer for HistogramWriter {
    fn wants(&self, step: u64) -> bool {
        self.bins > 0 && self.spacing.includes(step)
    }

    fn observe(&mut self, snapshot: &Snapshot) -> Continue {
        if self.bins > 0
            && let Err(error) = self.write(snapshot)
        {
            self.trouble = Some(error);
            return Continue::No;
        }
        Continue::Yes
    }
}

/// Reads histograms written by a [`HistogramWriter`].
pub(super) fn read_histograms(path: &Path, lines: &[impl AsRef<str>]) -> Result<Vec<HistogramRecord>, RecordError> {
    lines
        .iter()
        .map(|line| serde_json::from_str(line.as_ref()))
        .collect::<Result<_, _>>()
        .map_err(|error| RecordError::damaged(path, format!("is damaged: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_the_table_bit_for_bit() {
        let values = [3.0, 4.0, f64::NEG_INFINITY, f64::NAN, -0.0, 5e-324, 1.0 / 3.0, -123_456.789e-200, f64::MAX];
        let row = parse_numbers(&line_text(&values), values.len()).unwrap();
        assert!(values.iter().zip(&row).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())));
        assert_eq!(parse_numbers("1,2", 3), None);
    }

    #[test]
    fn names_with_commas_survive_the_header() {
        let names = ["step", "margin.max(spectral,linf)", "a\"b", "\"", "c,\"d\",", ""].map(str::to_owned);
        let text = header_text(&names);
        assert_eq!(header_columns(&text), names, "{text}");
        let table = read_metrics(Path::new("metrics.csv"), "step,\"margin.max(l1,l2)\"\n1,2.5\n").unwrap();
        assert_eq!(table.column("margin.max(l1,l2)"), [2.5]);
    }

    #[test]
    fn a_line_cut_short_is_left_out_and_a_damaged_one_named() {
        let path = Path::new("metrics.csv");
        let table = read_metrics(path, "step,x\n1,2.5\n2,NaN\n3,1.").unwrap();
        assert_eq!(table.column("step"), [1.0, 2.0]);
        let error = read_metrics(path, "step,x\n1,2.5\n2\n").unwrap_err().to_string();
        assert!(error.contains("line 3"), "{error}");
    }
}
