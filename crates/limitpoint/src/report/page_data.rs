//! What the page's script draws, in a compact form.
//!
//! Plots need no more than [`DIGITS`] digits, and the columns of a group share their steps; both make the page a
//! fraction of the size of the record. A number that is missing is `null`, a column without any number is empty.

use serde::{Serialize, Serializer, ser::SerializeSeq};

use crate::experiments::{Analysis, Band, DecisionMap, ExperimentRecord, Group, HistogramRecord, Portrait, RunRecord};

/// Significant digits of numbers in curves.
const DIGITS: usize = 7;

/// Significant digits of numbers in pictures.
const PICTURE_DIGITS: usize = 4;

/// Everything the script needs.
#[derive(Serialize)]
pub(super) struct PageData<'a> {
    name: &'a str,
    references: &'a [crate::experiments::ReferenceLine],
    groups: Vec<GroupData<'a>>,
    runs: Vec<RunData<'a>>,
}

#[derive(Serialize)]
struct GroupData<'a> {
    label: &'a str,
    formula: &'a str,
    runs: &'a [usize],
    /// Positions of the rows; a band names its own by index.
    axes: Vec<Axis<'a>>,
    bands: Vec<BandData<'a>>,
    /// Pictures of the first run that has any.
    portrait: Option<PortraitData<'a>>,
}

#[derive(Serialize, PartialEq)]
struct Axis<'a> {
    step: Series<'a>,
    log10_time: Series<'a>,
    log10_loss: Series<'a>,
}

#[derive(Serialize)]
struct BandData<'a> {
    column: &'a str,
    axis: usize,
    mean: Series<'a>,
    /// Smallest and largest; absent where every seed gave the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[Series<'a>; 2]>,
}

#[derive(Serialize)]
struct RunData<'a> {
    name: &'a str,
    seed: u64,
    columns: &'a [String],
    values: Vec<Series<'a>>,
    histograms: &'a [HistogramRecord],
}

#[derive(Serialize)]
struct PortraitData<'a> {
    seed: u64,
    decision: Option<DecisionData<'a>>,
    features: Option<FeatureData<'a>>,
}

#[derive(Serialize)]
struct DecisionData<'a> {
    x: Series<'a>,
    y: Series<'a>,
    scores: Vec<Series<'a>>,
    /// First input, second input and label of every example.
    examples: Vec<[Number; 3]>,
}

#[derive(Serialize)]
struct FeatureData<'a> {
    rows: usize,
    cols: usize,
    images: Vec<Series<'a>>,
    strengths: Series<'a>,
}

impl<'a> PageData<'a> {
    pub(super) fn new(record: &'a ExperimentRecord, analysis: &'a Analysis) -> Self {
        Self {
            name: &record.name,
            references: &record.references,
            groups: analysis.groups.iter().map(|group| GroupData::new(record, group)).collect(),
            runs: record.runs.iter().map(RunData::new).collect(),
        }
    }
}

impl<'a> GroupData<'a> {
    fn new(record: &'a ExperimentRecord, group: &'a Group) -> Self {
        let mut axes = Vec::new();
        let bands = group.bands.iter().map(|band| BandData::new(band, &mut axes)).collect();
        let mut runs = group.runs.iter().filter_map(|index| record.runs.get(*index));
        let formula = runs.clone().next().map_or("", |run| &run.formula);
        let portrait = runs.find_map(PortraitData::new);
        Self { label: &group.label, formula, runs: &group.runs, axes, bands, portrait }
    }
}

impl<'a> BandData<'a> {
    fn new(band: &'a Band, axes: &mut Vec<Axis<'a>>) -> Self {
        let axis =
            Axis { step: curve(&band.step), log10_time: curve(&band.log10_time), log10_loss: curve(&band.log10_loss) };
        let place = axes.iter().position(|known| *known == axis).unwrap_or_else(|| {
            axes.push(axis);
            axes.len() - 1
        });
        let (mean, low, high) = (curve(&band.mean), curve(&band.low), curve(&band.high));
        let range = (low != mean || high != mean).then_some([low, high]);
        Self { column: &band.column, axis: place, mean, range }
    }
}

impl<'a> RunData<'a> {
    fn new(run: &'a RunRecord) -> Self {
        Self {
            name: &run.name,
            seed: run.seed,
            columns: &run.metrics.columns,
            values: run.metrics.values.iter().map(|values| curve(values)).collect(),
            histograms: &run.histograms,
        }
    }
}

impl<'a> PortraitData<'a> {
    fn new(run: &'a RunRecord) -> Option<Self> {
        let Portrait { decision, features } = &run.portrait;
        let features = features.as_ref().map(|features| FeatureData {
            rows: features.rows,
            cols: features.cols,
            images: features.images.iter().map(|image| picture(image)).collect(),
            strengths: picture(&features.strengths),
        });
        let decision = decision.as_ref().map(DecisionData::new);
        (decision.is_some() || features.is_some()).then_some(Self { seed: run.seed, decision, features })
    }
}

impl<'a> DecisionData<'a> {
    fn new(map: &'a DecisionMap) -> Self {
        let number = |value| Number { value, digits: PICTURE_DIGITS };
        Self {
            x: curve(&map.x),
            y: curve(&map.y),
            scores: map.scores.iter().map(|row| picture(row)).collect(),
            examples: map.examples.iter().map(|(x, y, label)| [*x, *y, *label].map(number)).collect(),
        }
    }
}

fn curve(values: &[f64]) -> Series<'_> {
    Series { values, digits: DIGITS }
}

fn picture(values: &[f64]) -> Series<'_> {
    Series { values, digits: PICTURE_DIGITS }
}

/// Numbers written with few digits.
struct Series<'a> {
    values: &'a [f64],
    digits: usize,
}

/// The same numbers, where NaN is the same as NaN.
impl PartialEq for Series<'_> {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan());
        self.values.len() == other.values.len() && self.values.iter().zip(other.values).all(same)
    }
}

impl Serialize for Series<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = if self.values.iter().any(|value| value.is_finite()) { self.values } else { &[] };
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
