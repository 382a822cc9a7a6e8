//! What a figure shows: series, reference lines and axes, in the positions of the axes.

use std::collections::HashSet;

use super::axis::Axis;
use super::request::Along;
use crate::experiments::{Analysis, Band, ExperimentRecord, Group};

/// How values become positions on the vertical axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// As they are.
    Linear,
    /// Their log₁₀; what is not positive is not shown.
    Logarithmic,
    /// They are log₁₀ already; the axis shows the powers.
    Decades,
}

/// One point of a series: position, and smallest, mean and largest value over the seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mark {
    pub x: f64,
    pub low: f64,
    pub mean: f64,
    pub high: f64,
}

/// One group: unbroken stretches of marks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    /// For the legend.
    pub label: String,
    /// Which colour and dashes; the same for a group in all figures. None is a line of reference.
    pub style: Option<usize>,
    /// Stretches without a gap.
    pub stretches: Vec<Vec<Mark>>,
}

/// One figure before it is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plot {
    pub name: String,
    pub x_label: String,
    pub y_label: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// Horizontal lines: position and label.
    pub references: Vec<(f64, String)>,
    /// Whether zero is marked by a line: where a linear axis shows both signs.
    pub zero_line: bool,
    /// Marked points: position and label.
    pub dots: Vec<(f64, f64, String)>,
    /// Many points of one kind.
    pub clouds: Vec<Cloud>,
}

/// Many points of one kind: label, whether they are stars, positions and relative sizes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cloud {
    pub label: String,
    pub stars: bool,
    pub points: Vec<[f64; 3]>,
}

/// How far below zero a margin is shown, relative to the largest; before separation it can be very negative.
const BELOW_ZERO: f64 = 0.2;

impl Plot {
    /// The plot of `column` over time; none if no group has a finite number after step 0.
    pub fn over_time(
        record: &ExperimentRecord,
        analysis: &Analysis,
        (column, along): (&str, Along),
        name: String,
        y_label: String,
        scale: Scale,
    ) -> Option<Self> {
        let position = |value: f64| if scale == Scale::Logarithmic { value.log10() } else { value };
        let mut series = Vec::new();
        for (style, group) in analysis.groups.iter().enumerate() {
            let Some(band) = group.bands.iter().find(|band| band.column == column) else { continue };
            let stretches = stretches(band, along, position);
            if !stretches.is_empty() {
                series.push(Series { label: short(group), style: Some(style), stretches });
            }
        }
        let references: Vec<(f64, String)> = record
            .references
            .iter()
            .filter(|line| line.column == column && position(line.value).is_finite())
            .map(|line| (position(line.value), line.label.clone()))
            .collect();
        let xs = || series.iter().flat_map(|series| series.stretches.iter().flatten()).map(|mark| mark.x);
        let (first, last) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
        if !(first.is_finite() && last.is_finite()) {
            return None;
        }
        let x = (along.label().to_owned(), Axis::logarithmic(first, last));
        Self::of_series(name, x, (y_label, scale), series, references)
    }

    /// The plot of some series; none if they have no finite number.
    pub fn of_series(
        name: String,
        (x_label, x): (String, Axis),
        (y_label, scale): (String, Scale),
        mut series: Vec<Series>,
        references: Vec<(f64, String)>,
    ) -> Option<Self> {
        let marks = || series.iter().flat_map(|series| series.stretches.iter().flatten());
        let lines = || references.iter().map(|(at, _)| *at);
        let mut low = marks().map(|mark| mark.low).chain(lines()).fold(f64::INFINITY, f64::min);
        let high = marks().map(|mark| mark.high).chain(lines()).fold(f64::NEG_INFINITY, f64::max);
        if marks().next().is_none() || !(x.low.is_finite() && low.is_finite() && high.is_finite()) {
            return None;
        }
        if scale == Scale::Linear && high > 0.0 {
            low = low.max(-BELOW_ZERO * high);
        }
        let room = 0.04 * (high - low);
        let y = match scale {
            Scale::Linear => Axis::linear(low - room, high + room),
            Scale::Logarithmic | Scale::Decades => Axis::logarithmic(low - room, high + room),
        };
        for series in &mut series {
            series.stretches = series.stretches.iter().flat_map(|stretch| above(stretch, y.low)).collect();
        }
        let zero_line = scale == Scale::Linear && y.low < 0.0 && y.high > 0.0;
        let (dots, clouds) = (Vec::new(), Vec::new());
        Some(Self { name, x_label, y_label, x, y, series, references, zero_line, dots, clouds })
    }
}

/// The label of a group with the last words of its settings, `sign · width=64`, where these tell them apart.
fn short(group: &Group) -> String {
    if group.setting.is_empty() {
        return group.label.clone();
    }
    let last = |setting: &str| -> String {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        format!("{}={value}", key.rsplit('.').next().unwrap_or(key))
    };
    let pieces: Vec<String> = group.setting.split(", ").map(last).collect();
    let keys: HashSet<&str> = pieces.iter().filter_map(|piece| piece.split('=').next()).collect();
    if keys.len() < pieces.len() {
        return group.label.clone();
    }
    format!("{} · {}", group.optimiser, pieces.join(", "))
}

/// The finite marks of a band after step 0, cut where a number is missing.
fn stretches(band: &Band, along: Along, position: impl Fn(f64) -> f64) -> Vec<Vec<Mark>> {
    let mut stretches = vec![Vec::new()];
    let at = (0..band.step.len()).map(|row| along.place(band, row));
    for (((x, low), mean), high) in at.zip(&band.low).zip(&band.mean).zip(&band.high) {
        let mean = position(*mean);
        if !x.is_finite() {
            continue;
        }
        if mean.is_finite() {
            // the smallest seed may have no position where the mean has one
            let low = Some(position(*low)).filter(|low| low.is_finite()).unwrap_or(mean);
            if let Some(stretch) = stretches.last_mut() {
                stretch.push(Mark { x, low, mean, high: position(*high).max(mean) });
            }
        } else {
            stretches.push(Vec::new());
        }
    }
    stretches.retain(|stretch| !stretch.is_empty());
    stretches
}

/// The parts of a stretch whose mean is above `floor`, cut where the line crosses it; shades end at the floor.
fn above(stretch: &[Mark], floor: f64) -> Vec<Vec<Mark>> {
    let clamp = |mark: Mark| Mark { low: mark.low.max(floor), high: mark.high.max(floor), ..mark };
    let crossing = |a: Mark, b: Mark| {
        let share = (floor - a.mean) / (b.mean - a.mean);
        let blend = |from: f64, to: f64| from + share * (to - from);
        clamp(Mark { x: blend(a.x, b.x), low: floor, mean: floor, high: blend(a.high, b.high) })
    };
    let mut parts: Vec<Vec<Mark>> = Vec::new();
    let mut before: Option<Mark> = None;
    for &mark in stretch {
        let inside = mark.mean >= floor;
        match before {
            Some(last) if last.mean >= floor => {
                let next = if inside { clamp(mark) } else { crossing(last, mark) };
                if let Some(part) = parts.last_mut() {
                    part.push(next);
                }
            }
            Some(last) if inside => parts.push(vec![crossing(last, mark), clamp(mark)]),
            None if inside => parts.push(vec![clamp(mark)]),
            _ => {}
        }
        before = Some(mark);
    }
    parts
}
