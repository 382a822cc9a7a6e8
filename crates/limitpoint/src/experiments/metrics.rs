//! The measurements of a run, streamed to `metrics.csv` and `histograms.jsonl` as it goes.

use std::f64::consts::LN_10;
use std::path::Path;

use super::files::RecordError;
use super::journal::{Journal, Mark};
use super::recipe::CertificateRule;
use super::record::{HistogramRecord, Metrics};
use crate::diagnostics::{Probe, ProbeState, histogram};
use crate::observers::{Continue, Observer, Snapshot, Spacing, StopReason};

/// One line of the table.
struct Line {
    step: u64,
    log_time: f64,
    values: Vec<f64>,
}

/// An observer that measures snapshots and writes them down.
pub(super) struct MetricsWriter {
    probe: Probe,
    spacing: Spacing,
    columns: Vec<String>,
    lines: Vec<Line>,
    journal: Journal,
    certificate: Option<Certificate>,
    /// Why the last snapshot could not be written.
    trouble: Option<RecordError>,
    /// The certificate that was reached.
    pub reached: Option<StopReason>,
    /// The column shown while the run goes on.
    shown: Option<usize>,
}

/// The columns a certificate looks at.
struct Certificate {
    norm: String,
    gap: f64,
    /// Margin and its upper bound (linear models), or KKT gap and slack.
    columns: (usize, usize),
    bracket: bool,
}

impl Certificate {
    fn new(rule: &CertificateRule, columns: &[String]) -> Option<Self> {
        let norm = rule.norm.key();
        let find = |name: &str| columns.iter().position(|column| *column == format!("{name}.{norm}"));
        let bracket = find("bracket_upper");
        let columns = match bracket {
            Some(upper) => (find("margin")?, upper),
            None => (find("kkt_gap")?, find("kkt_slack")?),
        };
        Some(Self { norm, gap: rule.gap, columns, bracket: bracket.is_some() })
    }

    /// The reason to stop, if the gap is small enough.
    fn check(&self, values: &[f64]) -> Option<StopReason> {
        let (a, b) = (values[self.columns.0], values[self.columns.1]);
        let gap = if self.bracket { if a > 0.0 { (b - a) / b } else { f64::NAN } } else { a.max(b) };
        (gap <= self.gap && !a.is_nan() && !b.is_nan())
            .then(|| StopReason::Certificate { norm: self.norm.clone(), gap })
    }
}

/// Names of the table's columns: the probe's, with the logarithm of the loss in base ten, after the counters.
fn columns_of(probe: &Probe) -> Vec<String> {
    let base_ten = |name: &String| if name == "log_loss" { "log10_loss".to_owned() } else { name.clone() };
    ["step", "epoch", "log10_time"].map(str::to_owned).into_iter().chain(probe.columns().iter().map(base_ten)).collect()
}

impl MetricsWriter {
    /// Starts the table, or takes it up at a mark.
    pub fn open(
        path: &Path,
        mut probe: Probe,
        spacing: Spacing,
        certificate: Option<&CertificateRule>,
        resumed: Option<(&Mark, &ProbeState)>,
    ) -> Result<Self, RecordError> {
        let columns = columns_of(&probe);
        let header = header_text(&columns);
        let (journal, lines) = match resumed {
            None => (Journal::create(path, &header)?, Vec::new()),
            Some((mark, state)) => {
                probe.restore(state.clone());
                Journal::resume(path, &header, mark)?
            }
        };
        let lines = lines
            .iter()
            .map(|line| parse_line(line, columns.len()))
            .collect::<Option<Vec<Line>>>()
            .ok_or_else(|| RecordError::damaged(path, "has a line that is no row of numbers"))?;
        let certificate = certificate.and_then(|rule| Certificate::new(rule, &columns));
        let shown = columns.iter().position(|column| column.starts_with("margin."));
        Ok(Self { probe, spacing, columns, lines, journal, certificate, trouble: None, reached: None, shown })
    }

    /// How far it has come, and what the probe remembers.
    pub fn mark(&mut self) -> Result<(Mark, ProbeState), RecordError> {
        Ok((self.journal.mark()?, self.probe.state()))
    }

    /// Why the last snapshot could not be written, if it could not.
    pub fn take_trouble(&mut self) -> Option<RecordError> {
        self.trouble.take()
    }

    /// Name and last value of the column shown while the run goes on.
    pub fn shown(&self) -> Option<(&str, f64)> {
        let (index, line) = (self.shown?, self.lines.last()?);
        Some((&self.columns[index], line.values[index]))
    }

    /// The table so far.
    pub fn table(&self) -> Metrics {
        let values = (0..self.columns.len()).map(|c| self.lines.iter().map(|line| line.values[c]).collect()).collect();
        Metrics { columns: self.columns.clone(), values }
    }

    /// The run is complete.
    pub fn finish(self) -> Result<(), RecordError> {
        self.journal.finish()
    }

    fn write(&mut self, snapshot: &Snapshot) -> Result<(), RecordError> {
        let Snapshot { step, epoch, log_time, .. } = *snapshot;
        // an epoch that was taken back takes its rows with it; done again, it comes to the same steps at other times
        let stale = |line: &Line| line.step > step || (line.step == step && line.log_time != log_time / LN_10);
        let kept = self.lines.iter().rposition(|line| !stale(line)).map_or(0, |last| last + 1);
        self.lines.truncate(kept);
        self.journal.keep(kept)?;
        let mut measured = Vec::with_capacity(self.columns.len());
        self.probe.measure(&snapshot.point, &mut measured);
        if self.lines.last().is_some_and(|line| line.step >= step) {
            return Ok(());
        }
        let mut values = vec![step as f64, epoch as f64, log_time / LN_10];
        values.extend(measured);
        if let Some(loss) = self.columns.iter().position(|column| column == "log10_loss") {
            values[loss] /= LN_10;
        }
        self.journal.append(&line_text(&values))?;
        self.reached = self.certificate.as_ref().and_then(|certificate| certificate.check(&values));
        self.lines.push(Line { step, log_time: log_time / LN_10, values });
        Ok(())
    }
}

impl Observer for MetricsWriter {
    fn wants(&self, step: u64) -> bool {
        self.spacing.includes(step)
    }

    fn observe(&mut self, snapshot: &Snapshot) -> Continue {
        if let Err(error) = self.write(snapshot) {
            self.trouble = Some(error);
        }
        if self.trouble.is_some() || self.reached.is_some() { Continue::No } else { Continue::Yes }
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

fn parse_line(line: &str, columns: usize) -> Option<Line> {
    let values = parse_numbers(line, columns)?;
    Some(Line { step: values[0] as u64, log_time: values[2], values })
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
        let line = parse_line(&line_text(&values), values.len()).unwrap();
        assert!(values.iter().zip(&line.values).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())));
        assert_eq!(line.step, 3);
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
