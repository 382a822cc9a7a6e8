//! What the page's script draws of a sweep: final values against one setting, and against two.

use serde::Serialize;

use super::page_data::{Series, place_of, range};
use crate::experiments::{MapPanel, Sweep, SweepLine, SweepMap};

/// Final values against a setting.
#[derive(Serialize)]
pub(super) struct SweepData<'a> {
    key: &'a str,
    values: &'a [String],
    places: Series,
    logarithmic: bool,
    others: &'a [String],
    panels: Vec<PanelData<'a>>,
}

#[derive(Serialize)]
struct PanelData<'a> {
    column: &'a str,
    label: &'a str,
    lines: Vec<LineData<'a>>,
}

#[derive(Serialize)]
struct LineData<'a> {
    mean: Series,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[Series; 2]>,
    runs: &'a [usize],
}

impl<'a> SweepData<'a> {
    pub(super) fn new(sweep: &'a Sweep) -> Self {
        let line = |line: &'a SweepLine| {
            let (mean, low, high) = (Series::of(&line.mean), Series::of(&line.low), Series::of(&line.high));
            LineData { range: range(&mean, low, high), mean, runs: &line.runs }
        };
        let panels = sweep
            .panels
            .iter()
            .map(|panel| PanelData {
                column: &panel.column,
                label: &panel.label,
                lines: panel.lines.iter().map(line).collect(),
            })
            .collect();
        Self {
            key: &sweep.key,
            values: &sweep.values,
            places: Series::of(&sweep.places),
            logarithmic: sweep.logarithmic,
            others: &sweep.others,
            panels,
        }
    }
}

/// Final values against two settings.
#[derive(Serialize)]
pub(super) struct MapData<'a> {
    keys: &'a [String; 2],
    values: &'a [Vec<String>; 2],
    others: &'a [String],
    panels: Vec<MapPanelData<'a>>,
}

#[derive(Serialize)]
struct MapPanelData<'a> {
    column: &'a str,
    label: &'a str,
    /// By place.
    optimiser: usize,
    mean: Vec<Series>,
    runs: &'a [Vec<usize>],
}

impl<'a> MapData<'a> {
    pub(super) fn new(map: &'a SweepMap, optimisers: &mut Vec<&'a str>) -> Self {
        let mut panel = |panel: &'a MapPanel| MapPanelData {
            column: &panel.column,
            label: &panel.label,
            optimiser: place_of(optimisers, &panel.optimiser),
            mean: panel.mean.iter().map(|row| Series::picture(row)).collect(),
            runs: &panel.runs,
        };
        let panels = map.panels.iter().map(&mut panel).collect();
        Self { keys: &map.keys, values: &map.values, others: &map.others, panels }
    }
}
