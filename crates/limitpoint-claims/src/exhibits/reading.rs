//! What an exhibit shows: print beside ours, number by number, figures, and words.

use limitpoint::experiments::RunRecord;
use limitpoint::report::Sketch;
use serde::{Deserialize, Serialize};

use super::material::Material;

/// One number of a paper beside ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it is.
    pub what: String,
    /// In print, and the spread printed with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<f64>,
    /// The spread in print.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed_spread: Option<f64>,
    /// The mean of ours; absent where nothing was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<f64>,
    /// The standard deviation over the runs, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<f64>,
    /// Runs behind it.
    pub runs: usize,
}

impl Row {
    /// Ours over print.
    pub fn ratio(&self) -> Option<f64> {
        self.printed.filter(|printed| *printed != 0.0).zip(self.ours).map(|(printed, ours)| ours / printed)
    }
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reading {
    /// Numbers.
    pub rows: Vec<Row>,
    /// Figures.
    pub figures: Vec<Sketch>,
    /// What agrees and what does not, in words.
    pub words: Vec<String>,
}

impl Reading {
    /// Adds values of ours beside print: a mean and its spread.
    pub fn row(&mut self, what: impl Into<String>, printed: Option<[f64; 2]>, values: &[f64]) {
        let (ours, spread) = mean_and_spread(values);
        let printed_spread = printed.map(|[_, spread]| spread).filter(|spread| *spread > 0.0);
        let printed = printed.map(|[value, _]| value);
        self.rows.push(Row { what: what.into(), printed, printed_spread, ours, spread, runs: values.len() });
    }

    /// Adds a figure.
    pub fn figure(&mut self, sketch: Sketch) {
        self.figures.push(sketch);
    }

    /// Adds a sentence.
    pub fn say(&mut self, words: impl Into<String>) {
        self.words.push(words.into());
    }

    /// Says which of several has the largest mean of a number, and of how many runs.
    pub fn say_largest(&mut self, what: &str, named: &[(&str, Vec<f64>)], expected: &str) {
        let means: Vec<(&str, f64)> =
            named.iter().filter_map(|(name, values)| Some((*name, mean_and_spread(values).0?))).collect();
        if means.len() < named.len() {
            let missing = named.iter().filter(|(_, values)| values.is_empty()).map(|(name, _)| *name);
            return self
                .say(format!("{what}: there is nothing of {} to compare.", missing.collect::<Vec<_>>().join(", ")));
        }
        let Some((best, most)) = means.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
        let others =
            means.iter().filter(|(name, _)| *name != best).map(|(name, mean)| format!("{name} {}", short(*mean)));
        let verdict = if best == expected { "as in print" } else { "print has another" };
        self.say(format!(
            "{what} is largest for {best} ({}; {}), {verdict}.",
            short(most),
            others.collect::<Vec<_>>().join(", ")
        ));
    }
}

/// A number with four digits.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if (1e-2..1e5).contains(&size) {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{value:.3e}")
    }
}

/// Mean and standard deviation (n − 1) of values.
pub(super) fn mean_and_spread(values: &[f64]) -> (Option<f64>, Option<f64>) {
    if values.is_empty() {
        return (None, None);
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let spread = (values.len() > 1).then(|| (square / (values.len() - 1) as f64).sqrt());
    (Some(mean).filter(|mean| mean.is_finite()), spread.filter(|spread| spread.is_finite()))
}

/// Shares of the counts of a histogram over [0, 1], at the middles of its bins; empty bins are left out.
pub(super) fn shares(counts: &[usize]) -> Vec<[f64; 2]> {
    let (all, bins) = (counts.iter().sum::<usize>() as f64, counts.len() as f64);
    let bar = |(k, count): (usize, &usize)| [(k as f64 + 0.5) / bins, *count as f64 / all];
    counts.iter().enumerate().map(bar).filter(|point| point[1] > 0.0).collect()
}

/// The mean over runs of a column, at the steps that all of them have.
pub(super) fn mean_curve<'a>(runs: impl Iterator<Item = &'a RunRecord>, x: &str, y: &str) -> Vec<[f64; 2]> {
    let runs: Vec<&RunRecord> = runs.collect();
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let columns = |run: &'a RunRecord| (run.metrics.column("step"), run.metrics.column(y));
    let mut points = Vec::new();
    for ((step, x), y) in first.metrics.column("step").iter().zip(first.metrics.column(x)).zip(columns(first).1) {
        let there = others.iter().map(|run| {
            let (steps, values) = columns(run);
            steps.iter().position(|other| other == step).map(|place| values[place])
        });
        let all: Option<Vec<f64>> = there.collect();
        if let Some(all) = all {
            points.push([*x, (y + all.iter().sum::<f64>()) / (all.len() + 1) as f64]);
        }
    }
    points.retain(|point| point.iter().all(|value| value.is_finite()));
    points
}

/// Curves of a column for several optimisers, each the mean over its runs; from the first step on.
pub(super) fn curves(
    sketch: Sketch,
    material: &Material,
    set: &str,
    optimisers: &[&str],
    [x, y]: [&str; 2],
    chosen: impl Fn(&RunRecord) -> bool,
) -> Sketch {
    optimisers.iter().fold(sketch, |sketch, name| {
        let runs = material.runs(set).filter(|run| run.optimiser == *name && !run.failed && chosen(run));
        let points = mean_curve(runs, x, y);
        with_curve(sketch, name, points)
    })
}

/// Adds what can be drawn of a curve on these axes, if that is anything.
pub(super) fn with_curve(sketch: Sketch, label: &str, mut points: Vec<[f64; 2]>) -> Sketch {
    let [log_x, log_y] = sketch.logarithmic;
    points.retain(|point| (!log_x || point[0] > 0.0) && (!log_y || point[1] > 0.0));
    if points.is_empty() { sketch } else { sketch.curve(label, points) }
}
