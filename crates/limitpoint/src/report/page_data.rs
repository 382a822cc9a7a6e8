//! What the page's script draws, in a compact form.
//!
//! Plots need no more than a few digits and no more rows than they have room for, and the columns of a group share
//! their steps; all this makes the page a fraction of the size of the record. A number that is missing is `null`, a column
//! without any number is empty.

use serde::{Serialize, Serializer, ser::SerializeSeq};

use super::budget::{Budget, evenly};
use super::sweep_data::{MapData, SweepData};
use crate::experiments::{
    ActivationMaps, Analysis, Band, DecisionMap, ExperimentRecord, Group, HistogramRecord, Portrait, RunRecord,
};

/// Significant digits of final values and of positions.
const DIGITS: usize = 6;

/// Significant digits of numbers in pictures.
const PICTURE_DIGITS: usize = 4;

/// Everything the script needs.
#[derive(Serialize)]
pub(super) struct PageData<'a> {
    name: &'a str,
    references: &'a [crate::experiments::ReferenceLine],
    /// Names of the optimisers, in the order of the recipe.
    optimisers: Vec<&'a str>,
    /// Settings of the sweep whose curves are shown; one empty one where nothing is swept.
    settings: Vec<&'a str>,
    /// How many settings there are.
    all_settings: usize,
    /// Whether settings are shown one by one, and colours are those of optimisers.
    one_by_one: bool,
    sweeps: Vec<SweepData<'a>>,
    maps: Vec<MapData<'a>>,
    groups: Vec<GroupData<'a>>,
    /// Whether single runs come with their curves.
    singles: bool,
    /// Single runs; empty where there are too many for curves and histograms.
    runs: Vec<RunData<'a>>,
}

#[derive(Serialize)]
struct GroupData<'a> {
    label: &'a str,
    /// Its optimiser, by place.
    optimiser: usize,
    /// Its setting, by place.
    setting: usize,
    formula: &'a str,
    /// How many runs its means are of.
    seeds: usize,
    /// Places among the single runs.
    runs: Vec<usize>,
    /// Positions of the rows; a band names its own by index.
    axes: Vec<Axis>,
    bands: Vec<BandData<'a>>,
    /// Pictures of the first run that has any.
    portrait: Option<PortraitData>,
}

#[derive(Serialize, PartialEq)]
struct Axis {
    step: Series,
    log10_time: Series,
    log10_loss: Series,
}

#[derive(Serialize)]
struct BandData<'a> {
    column: &'a str,
    axis: usize,
    mean: Series,
    /// Smallest and largest; absent where every seed gave the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[Series; 2]>,
}

#[derive(Serialize)]
struct RunData<'a> {
    name: &'a str,
    seed: u64,
    columns: &'a [String],
    values: Vec<Series>,
    histograms: &'a [HistogramRecord],
}

#[derive(Serialize)]
struct PortraitData {
    seed: u64,
    decision: Option<DecisionData>,
    features: Option<FeatureData>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    maps: Vec<ActivationData>,
}

#[derive(Serialize)]
struct ActivationData {
    example: usize,
    layer: String,
    rows: usize,
    cols: usize,
    images: Vec<Series>,
}

#[derive(Serialize)]
struct DecisionData {
    x: Series,
    y: Series,
    scores: Vec<Series>,
    /// First input, second input and label of every example.
    examples: Vec<[Number; 3]>,
}

#[derive(Serialize)]
struct FeatureData {
    rows: usize,
    cols: usize,
    images: Vec<Series>,
    strengths: Series,
}

/// The most groups of a sweep that are shown at once.
const AT_ONCE: usize = 12;

/// Whether a sweep is too large to show at once: it is then shown one setting at a time.
fn one_by_one(analysis: &Analysis) -> bool {
    analysis.groups.len() > AT_ONCE && analysis.groups.iter().any(|group| group.setting != analysis.groups[0].setting)
}

/// What a group takes its colour from: its place, or that of its optimiser where settings are shown one by one.
pub(super) fn colour_key(analysis: &Analysis, index: usize) -> usize {
    if !one_by_one(analysis) {
        return index;
    }
    let mut optimisers = Vec::new();
    let mut places = analysis.groups.iter().map(|group| place_of(&mut optimisers, &group.optimiser));
    places.nth(index).unwrap_or(0)
}

/// The place of `name` in a list, where it is put if it is not there.
pub(super) fn place_of<'a>(list: &mut Vec<&'a str>, name: &'a str) -> usize {
    list.iter().position(|known| *known == name).unwrap_or_else(|| {
        list.push(name);
        list.len() - 1
    })
}

impl<'a> PageData<'a> {
    pub(super) fn new(record: &'a ExperimentRecord, analysis: &'a Analysis) -> Self {
        let budget = Budget::new(record, analysis);
        let (mut optimisers, mut settings, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for group in &analysis.groups {
            place_of(&mut optimisers, &group.optimiser);
            place_of(&mut all, &group.setting);
        }
        let singles = budget.run_rows > 0;
        // histograms need runs to belong to, if without curves
        let with_runs = singles || budget.histograms;
        let groups = budget
            .groups
            .iter()
            .enumerate()
            .map(|(place, index)| {
                let group = &analysis.groups[*index];
                let names = (place_of(&mut optimisers, &group.optimiser), place_of(&mut settings, &group.setting));
                let mut shown = GroupData::new(record, group, names, &budget, place < budget.portraits);
                if !with_runs {
                    shown.runs.clear();
                }
                shown
            })
            .collect();
        let runs = match with_runs {
            true => record.runs.iter().map(|run| RunData::new(run, &budget)).collect(),
            false => Vec::new(),
        };
        Self {
            name: &record.name,
            references: &record.references,
            settings,
            all_settings: all.len(),
            one_by_one: one_by_one(analysis),
            maps: budget.maps.iter().map(|map| MapData::new(&analysis.maps[*map], &mut optimisers)).collect(),
            sweeps: analysis.sweeps.iter().map(SweepData::new).collect(),
            optimisers,
            groups,
            singles,
            runs,
        }
    }
}

impl<'a> GroupData<'a> {
    fn new(
        record: &'a ExperimentRecord,
        group: &'a Group,
        (optimiser, setting): (usize, usize),
        budget: &Budget,
        pictured: bool,
    ) -> Self {
        let mut axes = Vec::new();
        let shown = group.bands.iter().filter(|band| budget.shows(&band.column));
        let bands = shown.map(|band| BandData::new(band, budget, &mut axes)).collect();
        let mut runs = group.runs.iter().filter_map(|index| record.runs.get(*index));
        let formula = runs.clone().next().map_or("", |run| &run.formula);
        let seeds = runs.clone().filter(|run| !run.failed).count();
        let portrait = if pictured { runs.find_map(PortraitData::new) } else { None };
        Self {
            label: &group.label,
            optimiser,
            setting,
            formula,
            seeds,
            runs: group.runs.clone(),
            axes,
            bands,
            portrait,
        }
    }
}

impl<'a> BandData<'a> {
    fn new(band: &'a Band, budget: &Budget, axes: &mut Vec<Axis>) -> Self {
        let rows = evenly(band.step.len(), budget.rows);
        let curve = |values: &[f64]| Series::rows(values, &rows, budget.digits);
        let axis =
            Axis { step: curve(&band.step), log10_time: curve(&band.log10_time), log10_loss: curve(&band.log10_loss) };
        let place = axes.iter().position(|known| *known == axis).unwrap_or_else(|| {
            axes.push(axis);
            axes.len() - 1
        });
        let (mean, low, high) = (curve(&band.mean), curve(&band.low), curve(&band.high));
        Self { column: &band.column, axis: place, range: range(&mean, low, high), mean }
    }
}

/// The range around a mean, where it is one.
pub(super) fn range(mean: &Series, low: Series, high: Series) -> Option<[Series; 2]> {
    (low != *mean || high != *mean).then_some([low, high])
}

impl<'a> RunData<'a> {
    fn new(run: &'a RunRecord, budget: &Budget) -> Self {
        let rows = evenly(run.metrics.len(), budget.run_rows);
        let histograms: &[HistogramRecord] = if budget.histograms { &run.histograms } else { &[] };
        let (columns, values): (&[String], Vec<Series>) = match budget.run_rows {
            0 => (&[], Vec::new()),
            _ => {
                let values = run.metrics.values.iter().map(|values| Series::rows(values, &rows, budget.digits));
                (&run.metrics.columns, values.collect())
            }
        };
        Self { name: &run.name, seed: run.seed, columns, values, histograms }
    }
}

impl PortraitData {
    fn new(run: &RunRecord) -> Option<Self> {
        let Portrait { decision, features, maps, .. } = &run.portrait;
        let features = features.as_ref().map(|features| FeatureData {
            rows: features.rows,
            cols: features.cols,
            images: features.images.iter().map(|image| Series::picture(image)).collect(),
            strengths: Series::picture(&features.strengths),
        });
        let decision = decision.as_ref().map(DecisionData::new);
        let map = |map: &ActivationMaps| ActivationData {
            example: map.example,
            layer: map.layer.clone(),
            rows: map.rows,
            cols: map.cols,
            images: map.images.iter().map(|image| Series::picture(image)).collect(),
        };
        let maps: Vec<ActivationData> = maps.iter().map(map).collect();
        let some = decision.is_some() || features.is_some() || !maps.is_empty();
        some.then_some(Self { seed: run.seed, decision, features, maps })
    }
}

impl DecisionData {
    fn new(map: &DecisionMap) -> Self {
        let number = |value| Number { value, digits: PICTURE_DIGITS };
        Self {
            x: Series::of(&map.x),
            y: Series::of(&map.y),
            scores: map.scores.iter().map(|row| Series::picture(row)).collect(),
            examples: map.examples.iter().map(|(x, y, label)| [*x, *y, *label].map(number)).collect(),
        }
    }
}

/// Numbers written with few digits.
pub(super) struct Series {
    values: Vec<f64>,
    digits: usize,
}

impl Series {
    pub(super) fn of(values: &[f64]) -> Self {
        Self { values: values.to_vec(), digits: DIGITS }
    }

    /// Some of the values, by place.
    fn rows(values: &[f64], rows: &[usize], digits: usize) -> Self {
        Self { values: rows.iter().filter_map(|row| values.get(*row).copied()).collect(), digits }
    }

    pub(super) fn picture(values: &[f64]) -> Self {
        Self { values: values.to_vec(), digits: PICTURE_DIGITS }
    }
}

/// The same numbers, where NaN is the same as NaN.
impl PartialEq for Series {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        self.values.len() == other.values.len() && self.values.iter().zip(&other.values).all(same)
    }
}

impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values: &[f64] = if self.values.iter().any(|value| value.is_finite()) { &self.values } else { &[] };
        let mut sequence = serializer.serialize_seq(Some(values.len()))?;
        for value in values {
            sequence.serialize_element(&Number { value: *value, digits: self.digits })?;
        }
        sequence.end()
    }
}

/// One number written with few digits.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub(super) value: f64,
    pub(super) digits: usize,
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { value, digits } = *self;
        if !value.is_finite() {
            return serializer.serialize_none();
        }
        if value.fract() == 0.0 && value.abs() < 1e15 {
            return serializer.serialize_i64(value as i64);
        }
        let text = format!("{value:.*e}", digits.saturating_sub(1));
        serializer.serialize_f64(text.parse().unwrap_or(value))
    }
}
