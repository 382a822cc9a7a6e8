//! The table of final values.

use super::finals::{Finals, counted, keys};
use super::words::{norm_name, percent, scientific};
use crate::experiments::{ExperimentRecord, Group, Summary, SummaryCell, SummaryColumn, SummaryRow};

/// Two means this close, relative to the larger, share the first place.
pub(super) const TIE: f64 = 1e-12;

/// What a column holds, which decides where its values come from and how they are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    LogLoss,
    Steps,
    Margin,
    TestAccuracy,
}

/// Loss, steps, every margin, and test accuracy where a run has one.
pub(super) fn summary(record: &ExperimentRecord, groups: &[Group]) -> Summary {
    let column = |key: &str, label: &str, contest| SummaryColumn { key: key.into(), label: label.into(), contest };
    let mut columns =
        vec![(Kind::LogLoss, column("log10_loss", "log₁₀ L", false)), (Kind::Steps, column("steps", "steps", false))];
    for key in keys(record, "margin.") {
        let label = format!("γ of {}", norm_name(&key));
        columns.push((Kind::Margin, column(&format!("margin.{key}"), &label, true)));
    }
    if record.runs.iter().any(|run| run.test_accuracy.is_some()) {
        columns.push((Kind::TestAccuracy, column("test_accuracy", "test accuracy", false)));
    }
    let mut rows: Vec<SummaryRow> = groups
        .iter()
        .map(|group| SummaryRow {
            label: group.label.clone(),
            cells: columns.iter().map(|(kind, column)| cell(record, group, *kind, &column.key)).collect(),
            seeds: counted(record, group).count(),
            of: group.runs.len(),
        })
        .collect();
    let columns: Vec<SummaryColumn> = columns.into_iter().map(|(_, column)| column).collect();
    for place in columns.iter().enumerate().filter(|(_, column)| column.contest).map(|(place, _)| place) {
        let largest = rows.iter().map(|row| row.cells[place].mean).fold(f64::NAN, f64::max);
        for row in &mut rows {
            row.cells[place].winner = shares_first(row.cells[place].mean, largest);
        }
    }
    Summary { columns, rows }
}

/// Whether `value` is the largest, up to [`TIE`].
pub(super) fn shares_first(value: f64, largest: f64) -> bool {
    value >= largest - TIE * largest.abs()
}

/// One value and its text.
fn cell(record: &ExperimentRecord, group: &Group, kind: Kind, column: &str) -> SummaryCell {
    let finals = match kind {
        Kind::LogLoss | Kind::Margin => Finals::of_column(record, group, column),
        Kind::Steps => Finals::over(counted(record, group).map(|run| run.steps as f64)),
        Kind::TestAccuracy => Finals::over(counted(record, group).filter_map(|run| run.test_accuracy)),
    };
    let spread = finals.spread();
    let several = finals.count > 1;
    let text = match kind {
        _ if finals.count == 0 => "–".to_owned(),
        Kind::LogLoss if several => format!("{:.2} ± {spread:.2}", finals.mean),
        Kind::LogLoss => format!("{:.2}", finals.mean),
        Kind::Steps if several => format!("{:.0} ± {spread:.0}", finals.mean),
        Kind::Steps => format!("{:.0}", finals.mean),
        Kind::Margin if several => format!("{} ± {spread:.1e}", scientific(finals.mean)),
        Kind::Margin => scientific(finals.mean),
        Kind::TestAccuracy if several => format!("{:.2} ± {}", 100.0 * finals.mean, percent(spread)),
        Kind::TestAccuracy => percent(finals.mean),
    };
    SummaryCell { mean: finals.mean, spread, winner: false, text }
}
