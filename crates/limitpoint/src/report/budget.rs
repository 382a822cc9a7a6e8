//! How much of a record goes on a page: what a screen can show, and no more than a page can carry.
//!
//! A page stays below three megabytes, of which the drawing library takes half. Small experiments are shown whole. Of
//! large ones curves lose rows first, then measurements that no plot shows at once, then settings, evenly; single runs
//! and pictures are left out where there are too many.

use crate::experiments::{Analysis, ExperimentRecord, Group, Portrait, SweepMap};

/// Numbers of curves over all groups, eight to nine bytes each.
const CURVES: usize = 60_000;
/// Numbers of single runs.
const RUNS: usize = 35_000;
/// Numbers of pictures.
const PICTURES: usize = 25_000;
/// Counts of histograms, three bytes each.
const COUNTS: usize = 60_000;
/// Numbers of maps, eleven bytes each with the number of runs.
const CELLS: usize = 20_000;
/// Significant digits of numbers in curves.
const DIGITS: usize = 6;
/// The same where there are so many that only the first columns are shown.
const FEWER_DIGITS: usize = 4;
/// The most rows of a curve: more than a plot has room for.
const MOST_ROWS: usize = 200;
/// Rows below which measurements that no plot shows at once are left out.
const ENOUGH_ROWS: usize = 32;
/// The least rows of a curve.
const LEAST_ROWS: usize = 16;

/// What fits.
#[derive(Debug, PartialEq)]
pub(super) struct Budget {
    /// Indices of the groups whose curves are shown.
    pub groups: Vec<usize>,
    /// Whether only losses, margins and norms are.
    pub main_only: bool,
    /// Rows of a curve.
    pub rows: usize,
    /// Significant digits of its numbers.
    pub digits: usize,
    /// Rows of single runs; 0 where they are left out.
    pub run_rows: usize,
    /// Groups with pictures, from the first on.
    pub portraits: usize,
    /// Whether histograms are shown.
    pub histograms: bool,
    /// Indices of the maps that are shown.
    pub maps: Vec<usize>,
}

impl Budget {
    pub fn new(record: &ExperimentRecord, analysis: &Analysis) -> Self {
        let groups = &analysis.groups;
        let numbers = |main_only: bool| groups.iter().map(|group| numbers_a_row(group, main_only)).sum::<usize>();
        let singles: usize = record.runs.iter().map(|run| run.metrics.columns.len()).sum();
        let run_rows = Some(RUNS / singles.max(1)).filter(|rows| *rows >= ENOUGH_ROWS / 2);
        // one seed is its band, but for the path of its direction
        let spatial = record.runs.iter().any(|run| run.metrics.columns.iter().any(|column| column == "direction.1"));
        let wanted = spatial || groups.iter().any(|group| group.runs.len() > 1);
        let most = if spatial { RUNS } else { MOST_ROWS };
        let run_rows = run_rows.filter(|_| wanted).map_or(0, |rows| rows.min(most));
        // what single runs leave is there for curves
        let curves = if run_rows == 0 { CURVES + RUNS } else { CURVES };
        let main_only = curves / numbers(false).max(1) < ENOUGH_ROWS;
        let cost = numbers(main_only).max(1);
        let rows = (curves / cost).clamp(LEAST_ROWS, MOST_ROWS);
        let counts: usize = record
            .runs
            .iter()
            .flat_map(|run| &run.histograms)
            .flat_map(|at| &at.blocks)
            .map(|(_, bins)| bins.len())
            .sum();
        let largest = record.runs.iter().map(|run| numbers_of(&run.portrait)).max().unwrap_or(0);
        Self {
            groups: whole_settings(groups, curves as f64 / (rows * cost) as f64),
            main_only,
            rows,
            digits: if main_only { FEWER_DIGITS } else { DIGITS },
            run_rows,
            portraits: PICTURES / largest.max(1),
            histograms: counts <= COUNTS,
            maps: maps_that_fit(analysis),
        }
    }

    /// Whether the curves of a column are shown.
    pub fn shows(&self, column: &str) -> bool {
        !self.main_only || is_main(column)
    }
}

/// Indices of maps, from the first on, as long as there is room.
fn maps_that_fit(analysis: &Analysis) -> Vec<usize> {
    let cells = |map: &SweepMap| map.values[0].len() * map.values[1].len() * map.panels.len();
    let mut room = CELLS;
    let mut fits = |map: &SweepMap| match room.checked_sub(cells(map)) {
        Some(rest) => {
            room = rest;
            true
        }
        None => false,
    };
    (0..analysis.maps.len()).filter(|place| fits(&analysis.maps[*place])).collect()
}

/// Indices of the groups of a share of all settings, evenly spread, so that every setting shown has all its optimisers.
fn whole_settings(groups: &[Group], share: f64) -> Vec<usize> {
    if share >= 1.0 {
        return (0..groups.len()).collect();
    }
    let mut settings: Vec<&str> = Vec::new();
    for group in groups {
        if settings.last() != Some(&group.setting.as_str()) && !settings.contains(&group.setting.as_str()) {
            settings.push(&group.setting);
        }
    }
    let wanted = ((share * settings.len() as f64) as usize).max(1);
    let kept: Vec<&str> = evenly(settings.len(), wanted).into_iter().map(|place| settings[place]).collect();
    (0..groups.len()).filter(|index| kept.contains(&groups[*index].setting.as_str())).collect()
}

/// The columns plots show first.
fn is_main(column: &str) -> bool {
    column == "log10_loss" || column.starts_with("margin.")
}

/// Numbers in a row of all curves of a group: three axes, then mean, and range where there are several seeds.
fn numbers_a_row(group: &Group, main_only: bool) -> usize {
    let each = if group.runs.len() > 1 { 3 } else { 1 };
    3 + each * group.bands.iter().filter(|band| !main_only || is_main(&band.column)).count()
}

fn numbers_of(portrait: &Portrait) -> usize {
    let decision = portrait.decision.as_ref().map_or(0, |map| map.x.len() * map.y.len() + 3 * map.examples.len());
    let features = portrait.features.as_ref().map_or(0, |features| features.images.iter().map(Vec::len).sum());
    let maps: usize = portrait.maps.iter().flat_map(|map| &map.images).map(Vec::len).sum();
    decision + features + maps
}

/// `wanted` of the numbers below `count`, evenly spread, first and last among them.
///
/// ```text
/// evenly(10, 4) = 0 3 6 9
/// ```
pub(super) fn evenly(count: usize, wanted: usize) -> Vec<usize> {
    if wanted >= count {
        return (0..count).collect();
    }
    match wanted {
        0 => Vec::new(),
        1 => vec![count - 1],
        _ => (0..wanted).map(|place| place * (count - 1) / (wanted - 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_shown_with_all_its_optimisers_or_not_at_all() {
        let group = |setting: usize, optimiser: &str| Group {
            setting: format!("width={setting}"),
            optimiser: optimiser.into(),
            ..Group::default()
        };
        let groups: Vec<Group> = (0..10).flat_map(|setting| [group(setting, "a"), group(setting, "b")]).collect();
        assert_eq!(whole_settings(&groups, 1.0).len(), 20);
        assert_eq!(whole_settings(&groups, 0.41), [0, 1, 6, 7, 12, 13, 18, 19]);
    }

    #[test]
    fn first_and_last_are_always_kept() {
        assert_eq!(evenly(10, 4), [0, 3, 6, 9]);
        assert_eq!(evenly(3, 7), [0, 1, 2]);
        assert_eq!((evenly(5, 1), evenly(5, 0), evenly(0, 3)), (vec![4], vec![], vec![]));
        for (count, wanted) in [(1000, 16), (37, 36), (2, 2)] {
            let kept = evenly(count, wanted);
            assert!(kept.len() == wanted && kept[0] == 0 && kept[wanted - 1] == count - 1);
            assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
