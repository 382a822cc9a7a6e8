//! Figures for papers: one SVG per measured quantity, against steps on a logarithmic axis.
//!
//! Sized for a column of text, in the type LaTeX sets; colours are those of Okabe and Ito, which colour-blind readers
//! can tell apart, and dashes tell them apart in print without colour.

mod axis;
mod canvas;
mod plot;
mod radar;
mod sketch;

#[cfg(test)]
mod tests;

pub use self::radar::radar_figure;
pub use self::sketch::sketch_figure;

use self::plot::{Plot, Scale};
use crate::experiments::{Analysis, ExperimentRecord};

/// One figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// A name for its file, such as `loss` or `margin-l2`.
    pub name: String,
    /// The SVG document.
    pub svg: String,
}

/// Draws what was measured: the loss, every margin, every norm, and the drift of the balance between layers.
///
/// Lines are means over seeds and shades their ranges, from [`crate::experiments::analyse`]. Steps are on a logarithmic
/// axis, so the start (step 0) is not shown. A quantity without a finite number gets no figure. The same record gives
/// the same bytes.
///
/// ```
/// use limitpoint::experiments::{ExperimentRecord, Metrics, RunRecord, analyse};
/// use limitpoint::report::figures;
/// let columns = ["step", "log10_loss", "margin.l2"].map(String::from).to_vec();
/// let values = vec![vec![1.0, 10.0, 100.0], vec![-1.0, -5.0, -40.0], vec![0.01, 0.02, 0.025]];
/// let run = RunRecord { optimiser: "gd".into(), metrics: Metrics { columns, values }, ..Default::default() };
/// let record = ExperimentRecord { runs: vec![run], ..Default::default() };
/// let figures = figures(&record, &analyse(&record));
/// assert_eq!(figures.iter().map(|figure| figure.name.as_str()).collect::<Vec<_>>(), ["loss", "margin-l2"]);
/// ```
pub fn figures(record: &ExperimentRecord, analysis: &Analysis) -> Vec<Figure> {
    // drawing into a string cannot fail; were it to, no figure is better than half of one
    plots(record, analysis)
        .into_iter()
        .filter_map(|plot| Some(Figure { svg: canvas::draw(&plot).ok()?, name: plot.name }))
        .collect()
}

/// The quantities with a figure of their own, in the order of the columns.
fn plots(record: &ExperimentRecord, analysis: &Analysis) -> Vec<Plot> {
    let mut columns: Vec<&str> = Vec::new();
    for band in analysis.groups.iter().flat_map(|group| &group.bands) {
        if !columns.contains(&band.column.as_str()) {
            columns.push(&band.column);
        }
    }
    let heading = |key: &str| {
        let column = format!("margin.{key}");
        analysis.summary.columns.iter().find(|summary| summary.key == column).map(|summary| summary.label.as_str())
    };
    let kind =
        |prefix: &'static str| columns.iter().filter_map(move |column| Some((*column, column.strip_prefix(prefix)?)));
    let mut plots =
        vec![Plot::new(record, analysis, "log10_loss", "loss".into(), "training loss".into(), Scale::Decades)];
    for (column, key) in kind("margin.") {
        let label = heading(key).map_or_else(|| format!("margin, {key}"), |label| format!("margin {label}"));
        plots.push(Plot::new(record, analysis, column, name("margin", key), label, Scale::Linear));
    }
    for (column, key) in kind("norm.") {
        let norm = heading(key).and_then(|label| label.strip_prefix("γ of ")).unwrap_or(key);
        let label = format!("{norm} norm of the weights");
        plots.push(Plot::new(record, analysis, column, name("norm", key), label, Scale::Logarithmic));
    }
    for (column, key) in kind("balance_drift.") {
        let label = format!("drift of balance, {key}");
        plots.push(Plot::new(record, analysis, column, name("balance", key), label, Scale::Logarithmic));
    }
    plots.into_iter().flatten().collect()
}

/// `margin-l2`; what is neither letter nor digit becomes a hyphen, so that it can name a file anywhere.
fn name(kind: &str, key: &str) -> String {
    let mut name = kind.to_owned();
    for part in key.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        name.push('-');
        name.push_str(part);
    }
    name
}
