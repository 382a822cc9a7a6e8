//! Figures for papers: one per measured quantity, over steps, against the settings of a sweep, and maps of two settings.
//!
//! Sized for a column of text; colours are those of Okabe and Ito, which colour-blind readers can tell apart, and dashes
//! tell them apart in print without colour. A figure is drawn once, as shapes, and written as SVG, PDF or PGF.
//!
//! ```text
//! records ─► plot, heat, radar, sketch (what is shown) ─► canvas (plotters) ─► drawing (shapes) ─► svg | pdf | pgf
//! ```

mod against;
mod axis;
mod canvas;
mod drawing;
mod heat;
mod pdf;
mod pgf;
mod plot;
mod radar;
mod request;
mod sketch;
mod svg;
mod typeface;

#[cfg(test)]
mod tests;

pub(super) use self::axis::power_of_ten;
pub use self::drawing::Drawing;
pub use self::radar::radar_figure;
pub use self::request::{Along, FigureAxis, FigureError, FigureRequest};
pub use self::sketch::sketch_figure;

use self::canvas::{Failure, Size};
use self::plot::{Plot, Scale};
use crate::experiments::{Analysis, ExperimentRecord};

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// A name for its file, such as `loss` or `margin-l2`.
    pub name: String,
    /// The SVG document.
    pub svg: String,
    /// The shapes, for other formats.
    pub drawing: Drawing,
}

impl Figure {
    fn new(name: String, drawing: Drawing) -> Self {
        Self { name, svg: drawing.svg(), drawing }
    }
}

/// Draws what was measured: the loss, every margin, every norm, and the drift of the balance between layers over steps;
/// of a sweep also what the runs ended with, against every setting and every two of them.
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
    // drawing into memory cannot fail in the usual size; were it to, no figure is better than half of one
    planned(record, analysis, &FigureRequest::default())
        .into_iter()
        .filter_map(|planned| Some(Figure::new(planned.name.clone(), planned.draw(Size::default()).ok()?)))
        .collect()
}

/// Draws the figures that are asked for; an error where one of the columns or settings is nowhere, or the size too small.
///
/// ```
/// use limitpoint::experiments::{ExperimentRecord, Metrics, RunRecord, analyse};
/// use limitpoint::report::{FigureRequest, chosen_figures};
/// let columns = ["step", "log10_loss", "angle"].map(String::from).to_vec();
/// let values = vec![vec![1.0, 10.0, 100.0], vec![-1.0, -5.0, -40.0], vec![0.01, 0.02, 0.025]];
/// let run = RunRecord { optimiser: "gd".into(), metrics: Metrics { columns, values }, ..Default::default() };
/// let record = ExperimentRecord { runs: vec![run], ..Default::default() };
/// let request = FigureRequest { columns: vec!["angle".into()], axis: "loss".parse().ok(), size: Some((240, 160)) };
/// let figure = &chosen_figures(&record, &analyse(&record), &request).unwrap()[0];
/// assert!(figure.name == "angle-along-loss" && figure.svg.contains("width=\"240pt\" height=\"160pt\""));
/// ```
pub fn chosen_figures(
    record: &ExperimentRecord,
    analysis: &Analysis,
    request: &FigureRequest,
) -> Result<Vec<Figure>, FigureError> {
    let known: Vec<String> = analysis.sweeps.iter().map(|sweep| sweep.key.clone()).collect();
    let asked: &[&String] = match &request.axis {
        Some(FigureAxis::Setting(key)) => &[key],
        Some(FigureAxis::Settings(across, up)) => &[across, up],
        _ => &[],
    };
    if let Some(unknown) = asked.iter().find(|key| !known.contains(key)) {
        return Err(FigureError::Setting { setting: (*unknown).clone(), known });
    }
    let planned = planned(record, analysis, request);
    if let Some(column) = request.columns.iter().find(|column| planned.iter().all(|one| one.column != **column)) {
        let everything = FigureRequest { columns: Vec::new(), ..request.clone() };
        let mut known: Vec<String> =
            self::planned(record, analysis, &everything).into_iter().map(|one| one.column).collect();
        if matches!(request.axis, None | Some(FigureAxis::Along(_))) {
            known.extend(measured(analysis).into_iter().map(str::to_owned));
        }
        known.sort();
        known.dedup();
        return Err(FigureError::Column { column: column.clone(), axis: request.axis.clone(), known });
    }
    let size = request.size.map_or_else(Size::default, |(width, height)| Size { width, height: Some(height) });
    let draw = |planned: Planned| {
        let drawing = planned.draw(size);
        let name = planned.name;
        match drawing {
            Ok(drawing) => Ok(Figure::new(name, drawing)),
            Err(why) => Err(FigureError::Size { name, why: why.to_string() }),
        }
    };
    planned.into_iter().map(draw).collect()
}

/// A figure that can be drawn.
struct Planned<'a> {
    name: String,
    /// The measured column.
    column: String,
    what: What<'a>,
}

enum What<'a> {
    Plot(Box<Plot>),
    Map(&'a crate::experiments::SweepMap, &'a crate::experiments::MapPanel),
}

impl Planned<'_> {
    fn draw(&self, size: Size) -> Result<Drawing, Failure> {
        match &self.what {
            What::Plot(plot) => canvas::draw(plot, size),
            What::Map(map, panel) => heat::draw(map, panel, size),
        }
    }
}

/// What a request asks for, as far as there is any.
fn planned<'a>(record: &ExperimentRecord, analysis: &'a Analysis, request: &FigureRequest) -> Vec<Planned<'a>> {
    let wanted = |column: &str| request.columns.is_empty() || request.columns.iter().any(|asked| asked == column);
    let plot = |column: &str, plot: Plot| Planned {
        name: plot.name.clone(),
        column: column.to_owned(),
        what: What::Plot(Box::new(plot)),
    };
    let mut all = Vec::new();
    if let None | Some(FigureAxis::Along(_)) = request.axis {
        let along = match request.axis {
            Some(FigureAxis::Along(along)) => along,
            _ => Along::Steps,
        };
        let plots = over_time(record, analysis, &request.columns, along);
        all.extend(plots.into_iter().map(|(column, one)| plot(&column, one)));
    }
    for sweep in &analysis.sweeps {
        if request.axis.is_none() || matches!(&request.axis, Some(FigureAxis::Setting(key)) if *key == sweep.key) {
            let panels = sweep.panels.iter().filter(|panel| wanted(&panel.column));
            all.extend(panels.filter_map(|panel| Some(plot(&panel.column, against::plot(sweep, panel)?))));
        }
    }
    for map in &analysis.maps {
        let asked = match &request.axis {
            None => true,
            Some(FigureAxis::Settings(across, up)) => {
                [across, up].iter().all(|key| map.keys.contains(key)) && across != up
            }
            _ => false,
        };
        for panel in map.panels.iter().filter(|panel| asked && wanted(&panel.column)) {
            all.push(Planned {
                name: heat::name_of(map, panel),
                column: panel.column.clone(),
                what: What::Map(map, panel),
            });
        }
    }
    all
}

/// All measured columns, in order of appearance.
fn measured(analysis: &Analysis) -> Vec<&str> {
    let mut columns: Vec<&str> = Vec::new();
    for band in analysis.groups.iter().flat_map(|group| &group.bands) {
        if !columns.contains(&band.column.as_str()) {
            columns.push(&band.column);
        }
    }
    columns
}

/// Plots over time: of the columns asked for, or of those with a figure of their own, in the order of the columns.
fn over_time(record: &ExperimentRecord, analysis: &Analysis, asked: &[String], along: Along) -> Vec<(String, Plot)> {
    let columns = measured(analysis);
    let heading = |key: &str| {
        let column = format!("margin.{key}");
        analysis.summary.columns.iter().find(|summary| summary.key == column).map(|summary| summary.label.as_str())
    };
    let describe = |column: &str| -> (String, String, Scale) {
        let is = |prefix: &str| column.strip_prefix(prefix);
        if column == "log10_loss" {
            ("loss".into(), "training loss".into(), Scale::Decades)
        } else if let Some(key) = is("margin.") {
            let label = heading(key).map_or_else(|| format!("margin, {key}"), |label| format!("margin {label}"));
            (name("margin", key), label, Scale::Linear)
        } else if let Some(key) = is("norm.") {
            let norm = heading(key).and_then(|label| label.strip_prefix("γ of ")).unwrap_or(key);
            (name("norm", key), format!("{norm} norm of the weights"), Scale::Logarithmic)
        } else if let Some(key) = is("balance_drift.") {
            (name("balance", key), format!("drift of balance, {key}"), Scale::Logarithmic)
        } else if let Some(key) = is("log10_") {
            (name("", key).trim_start_matches('-').to_owned(), key.replace('_', " "), Scale::Decades)
        } else if let Some(key) = is("tau.") {
            (name("tau", key), format!("τ, {key}"), Scale::Logarithmic)
        } else {
            (name("", column).trim_start_matches('-').to_owned(), column.replace('_', " "), Scale::Linear)
        }
    };
    let mut chosen: Vec<&str> = Vec::new();
    if asked.is_empty() {
        chosen.push("log10_loss");
        for prefix in ["margin.", "norm.", "balance_drift."] {
            chosen.extend(columns.iter().filter(|column| column.starts_with(prefix)));
        }
    } else {
        chosen.extend(asked.iter().map(String::as_str).filter(|column| columns.contains(column)));
    }
    let one = |column: &str| {
        let (name, label, scale) = describe(column);
        let name = match along {
            Along::Steps => name,
            Along::Time => format!("{name}-along-time"),
            Along::Loss => format!("{name}-along-loss"),
        };
        Some((column.to_owned(), Plot::over_time(record, analysis, (column, along), name, label, scale)?))
    };
    chosen.into_iter().filter_map(one).collect()
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
