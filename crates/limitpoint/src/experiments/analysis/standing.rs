//! Margins as shares of the best of their column: the picture a report begins with.

use super::finals::{Finals, is_own, keys};
use super::summary::shares_first;
use super::words::{norm_name, scientific, share};
use crate::experiments::{ExperimentRecord, Group, Standing, StandingCell, StandingColumn, StandingRow};

/// The most groups that have a row each.
const MOST_ROWS: usize = 24;

/// Optimisers in rows, norms in columns; empty where there is nothing to compare with.
///
/// A cell is the mean margin of a group divided by the largest of its column, or by the exact optimum where the judge
/// found it. Of a sweep with more than [`MOST_ROWS`] groups every optimiser has one row, with the mean over the settings
/// of its share of the best at that setting.
pub(super) fn standing(record: &ExperimentRecord, groups: &[Group]) -> Standing {
    let keys = keys(record, "margin.");
    let exact = |column: &str| {
        record.references.iter().find(|line| line.column == column && line.value > 0.0).map(|line| line.value)
    };
    let known = keys.iter().any(|key| exact(&format!("margin.{key}")).is_some());
    let mut optimisers: Vec<&str> = Vec::new();
    let mut settings: Vec<&str> = Vec::new();
    for group in groups {
        for (list, name) in [(&mut optimisers, &group.optimiser), (&mut settings, &group.setting)] {
            if !list.contains(&name.as_str()) {
                list.push(name);
            }
        }
    }
    let many = groups.len() > MOST_ROWS;
    let compared = if many { optimisers.len() } else { groups.len() };
    if keys.is_empty() || (compared < 2 && !known) {
        return Standing::default();
    }
    let mut standing = Standing { settings: if many { settings.len() } else { 1 }, ..Standing::default() };
    let labels: Vec<&str> =
        if many { optimisers.clone() } else { groups.iter().map(|group| group.label.as_str()).collect() };
    standing.rows = labels.iter().map(|label| StandingRow { label: (*label).to_owned(), cells: Vec::new() }).collect();
    for key in &keys {
        let column = format!("margin.{key}");
        let optimum = exact(&column);
        let means: Vec<f64> = groups.iter().map(|group| Finals::of_column(record, group, &column).mean).collect();
        if means.iter().all(|mean| mean.is_nan()) {
            continue;
        }
        // the largest of the column, or of the column at one setting
        let whole = |setting: &str| {
            let rivals = groups.iter().zip(&means).filter(|(group, _)| !many || group.setting == setting);
            optimum.unwrap_or_else(|| rivals.map(|(_, mean)| *mean).fold(f64::NAN, f64::max))
        };
        for (row, label) in standing.rows.iter_mut().zip(&labels) {
            let here: Vec<(&Group, f64)> = groups
                .iter()
                .zip(&means)
                .filter(|(group, _)| if many { group.optimiser == *label } else { group.label == *label })
                .map(|(group, mean)| (group, *mean))
                .collect();
            let shares = Finals::over(here.iter().map(|(group, mean)| portion(*mean, whole(&group.setting))));
            let margin = match here[..] {
                [(_, mean)] => scientific(mean),
                _ => String::new(),
            };
            row.cells.push(StandingCell {
                share: shares.mean,
                text: share(shares.mean),
                margin,
                own: here.iter().any(|(group, _)| is_own(record, group, key)),
                first: false,
            });
        }
        let place = standing.columns.len();
        let largest = standing.rows.iter().map(|row| row.cells[place].share).fold(f64::NAN, f64::max);
        for row in &mut standing.rows {
            row.cells[place].first = largest > 0.0 && shares_first(row.cells[place].share, largest);
        }
        let single = if many && optimum.is_none() { f64::NAN } else { whole("") };
        standing.columns.push(StandingColumn {
            key: column,
            label: norm_name(key),
            whole: if single.is_finite() { scientific(single) } else { String::new() },
            exact: optimum.is_some(),
        });
    }
    // where nobody separated the data there is nothing to see
    let seen = standing.rows.iter().any(|row| row.cells.iter().any(|cell| cell.share > 0.0));
    if seen { standing } else { Standing::default() }
}

/// A margin as a share; 0 where it is not positive, NaN where there is no margin or nothing to compare it with.
fn portion(margin: f64, whole: f64) -> f64 {
    if margin.is_nan() || whole.is_nan() {
        f64::NAN
    } else if margin <= 0.0 || whole <= 0.0 {
        0.0
    } else {
        margin / whole
    }
}

#[cfg(test)]
mod tests {
    use crate::experiments::analysis::analyse;
    use crate::experiments::analysis::tests::{of, record, run, two_by_two};
    use crate::experiments::{ReferenceLine, RunRecord};

    #[test]
    fn cells_are_shares_of_the_largest_or_of_the_exact_optimum() {
        let mut record = two_by_two();
        let standing = analyse(&record).standing;
        let labels: Vec<&str> = standing.columns.iter().map(|column| column.label.as_str()).collect();
        assert_eq!(labels, ["ℓ2", "ℓ∞"]);
        let text = |row: usize, place: usize| standing.rows[row].cells[place].text.as_str();
        // gd 0.31 and 0.11, sign 0.21 and 0.21, each the mean of two seeds
        assert_eq!([text(0, 0), text(0, 1), text(1, 0), text(1, 1)], ["100 %", "52 %", "68 %", "100 %"]);
        let marks: Vec<(bool, bool)> = standing.rows[1].cells.iter().map(|cell| (cell.own, cell.first)).collect();
        assert_eq!(marks, [(false, false), (true, true)]);
        let line = ReferenceLine { column: "margin.l2".into(), value: 0.62, label: String::new() };
        record.references = vec![line];
        let standing = analyse(&record).standing;
        assert!(standing.columns[0].exact && !standing.columns[1].exact);
        assert_eq!(standing.rows[0].cells[0].text, "50 %");
        assert_eq!(standing.columns[0].whole, "6.20e-1");
    }

    #[test]
    fn a_lonely_group_has_a_picture_only_beside_an_optimum() {
        let one = of("l2", run("gd", 0, &[("step", &[9.0]), ("margin.l2", &[0.3])]));
        let mut record = record(vec![one]);
        assert!(analyse(&record).standing.rows.is_empty());
        record.references = vec![ReferenceLine { column: "margin.l2".into(), value: 0.4, label: String::new() }];
        assert_eq!(analyse(&record).standing.rows[0].cells[0].text, "75 %");
    }

    #[test]
    fn data_that_nobody_separated_have_no_picture() {
        let one = |optimiser: &str, margin| run(optimiser, 0, &[("step", &[9.0]), ("margin.l2", &[margin])]);
        assert!(analyse(&record(vec![one("gd", -0.3), one("sign", 0.0)])).standing.rows.is_empty());
        let standing = analyse(&record(vec![one("gd", -0.3), one("sign", 0.1)])).standing;
        assert_eq!((standing.rows[0].cells[0].text.as_str(), standing.rows[1].cells[0].first), ("0", true));
    }

    #[test]
    fn a_large_sweep_has_a_row_per_optimiser() {
        let at = |optimiser: &str, width: usize, margin: f64| RunRecord {
            point: vec![("width".into(), width.to_string())],
            ..run(optimiser, 0, &[("step", &[9.0]), ("margin.l2", &[margin])])
        };
        // a tenth of the best at half of the settings, half of it at the others, whatever the scale
        let runs = (1..=20).flat_map(|width| {
            let best = 10f64.powi(width);
            let share = if width % 2 == 0 { 0.1 } else { 0.5 };
            [at("gd", width as usize, best), at("sign", width as usize, share * best)]
        });
        let standing = analyse(&record(runs.collect())).standing;
        assert_eq!((standing.rows.len(), standing.settings), (2, 20));
        assert_eq!(standing.rows[1].cells[0].text, "30 %");
    }
}
