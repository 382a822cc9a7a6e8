//! Runs that differ in their seed only, and their bands over time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::finals::{Finals, counted, runs};
use super::settings::{setting_of, swept};
use crate::experiments::{Band, ExperimentRecord, Group, Metrics};

/// Gathers runs with the same optimiser at the same point of the sweep, in the order of the record.
pub(super) fn groups(record: &ExperimentRecord) -> Vec<Group> {
    let swept = swept(record);
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<_, usize> = HashMap::new();
    for (index, run) in record.runs.iter().enumerate() {
        // runs that differ in their seed only
        match places.entry((run.optimiser.as_str(), run.point.as_slice())) {
            Entry::Occupied(place) => groups[*place.get()].runs.push(index),
            Entry::Vacant(place) => {
                place.insert(groups.len());
                let setting = setting_of(&swept, run);
                let dot = if setting.is_empty() { "" } else { " · " };
                groups.push(Group {
                    label: format!("{}{dot}{setting}", run.optimiser),
                    optimiser: run.optimiser.clone(),
                    setting,
                    runs: vec![index],
                    bands: Vec::new(),
                });
            }
        }
    }
    for group in &mut groups {
        let mut tables: Vec<&Metrics> = counted(record, group).map(|run| &run.metrics).collect();
        if tables.is_empty() {
            // where all failed, their curves show how
            tables = runs(record, group).map(|run| &run.metrics).collect();
        }
        group.bands = bands(&tables);
    }
    groups
}

/// One band per column with at least one finite number, at the steps all tables share; tables without rows do not
/// count.
fn bands(tables: &[&Metrics]) -> Vec<Band> {
    let tables: Vec<&Metrics> = tables.iter().copied().filter(|table| !table.is_empty()).collect();
    let rows = shared_rows(&tables);
    let mut columns: Vec<&str> = Vec::new();
    for column in tables.iter().flat_map(|table| &table.columns) {
        if column != "step" && !columns.contains(&column.as_str()) {
            columns.push(column);
        }
    }
    let over_seeds = |column: &str| -> Vec<Finals> {
        let values: Vec<&[f64]> = tables.iter().map(|table| table.column(column)).collect();
        let at = |places: &Vec<usize>| {
            Finals::over(values.iter().zip(places).filter_map(|(values, &place)| values.get(place).copied()))
        };
        rows.iter().map(at).collect()
    };
    let means = |finals: &[Finals]| finals.iter().map(|at| at.mean).collect::<Vec<f64>>();
    let step: Vec<f64> =
        rows.iter().filter_map(|places| tables.first()?.column("step").get(*places.first()?).copied()).collect();
    let (log10_time, log10_loss) = (means(&over_seeds("log10_time")), means(&over_seeds("log10_loss")));
    let band = |column: &str| {
        let finals = over_seeds(column);
        finals.iter().any(|at| at.count > 0).then(|| Band {
            column: column.to_owned(),
            step: step.clone(),
            log10_time: log10_time.clone(),
            log10_loss: log10_loss.clone(),
            mean: means(&finals),
            low: finals.iter().map(|at| at.low).collect(),
            high: finals.iter().map(|at| at.high).collect(),
        })
    };
    columns.into_iter().filter_map(band).collect()
}

/// For every step that all tables measured, its row in each table, in the order of the first table.
///
/// A table of its own keeps all its rows. Runs end at different steps, and their last rows lie off the common grid;
/// those rows drop out here.
fn shared_rows(tables: &[&Metrics]) -> Vec<Vec<usize>> {
    let Some((first, others)) = tables.split_first() else { return Vec::new() };
    if others.is_empty() {
        return (0..first.column("step").len()).map(|row| vec![row]).collect();
    }
    let places: Vec<HashMap<u64, usize>> = others
        .iter()
        .map(|table| {
            // a step measured twice keeps its first row, as in the first table below
            table.column("step").iter().enumerate().rev().map(|(row, step)| (step.to_bits(), row)).collect()
        })
        .collect();
    let mut seen = std::collections::HashSet::new();
    let rows = first.column("step").iter().enumerate().filter(|(_, step)| seen.insert(step.to_bits()));
    rows.filter_map(|(row, step)| {
        let elsewhere = places.iter().map(|places| places.get(&step.to_bits()).copied());
        std::iter::once(Some(row)).chain(elsewhere).collect()
    })
    .collect()
}
