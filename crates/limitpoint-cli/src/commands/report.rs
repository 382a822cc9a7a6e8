//! `limitpoint report`: the page, the figures and the tables of an experiment or a sweep, made anew from its records.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use limitpoint::experiments::{
    Analysis, ExperimentRecord, FIGURES, TABLES, analyse, save_figures, save_listed, save_page,
};
use limitpoint::report::{FigureAxis, FigureRequest, TableFormat, chosen_figures, figures, html, sheets};

use super::{print, print_as_is, table};
use crate::args::Format;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The folder of an experiment or a sweep; runs that still go on are shown as far as they are.
    pub folder: PathBuf,
    /// Also write figures as SVG; the same as --figures svg.
    #[arg(long)]
    pub svg: bool,
    /// Also write figures in these formats: svg, pdf, and pgf for \\input in LaTeX.
    #[arg(long, value_name = "FORMAT,…", value_enum, value_delimiter = ',')]
    pub figures: Vec<FigureFormat>,
    /// Only figures of this measured column, such as margin.l2 or log10_loss; may be repeated. They are added to those that
    /// are there.
    #[arg(long, value_name = "NAME")]
    pub column: Vec<String>,
    /// What is across: steps, time, loss, a swept setting such as model.width, or two of them with a comma for a map.
    #[arg(long, value_name = "AXIS")]
    pub axis: Option<String>,
    /// Size of the figures in points, with the legend; a column of text is about 240 to 340 wide.
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    pub size: Option<FigureSize>,
    /// Also write tables of final values in these formats.
    #[arg(long, value_name = "FORMAT,…", value_enum, value_delimiter = ',')]
    pub tables: Vec<SheetFormat>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// How figures are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FigureFormat {
    /// For pages.
    Svg,
    /// For papers; the typeface is inside.
    Pdf,
    /// For LaTeX, which sets the text.
    Pgf,
}

/// How tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SheetFormat {
    /// With full precision, by group and by run.
    Csv,
    /// With booktabs.
    Latex,
    /// For pages.
    Markdown,
}

/// Width and height in points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FigureSize(pub u32, pub u32);

impl FromStr for FigureSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let side = |text: &str| text.trim().parse::<u32>().ok().filter(|side| (100..=5000).contains(side));
        let both = text.split_once(['x', '×']).and_then(|(width, height)| Some(Self(side(width)?, side(height)?)));
        both.ok_or_else(|| format!("'{text}' is no size such as 340x240, in points from 100 to 5000"))
    }
}

/// Runs the verb.
pub fn run(arguments: &Report) -> anyhow::Result<ExitCode> {
    let record = ExperimentRecord::load(&arguments.folder)?;
    let analysis = analyse(&record);
    // what is asked for wrongly is said before anything is written
    let figures = figures_asked_for(arguments, &record, &analysis)?;
    let page = write_page(&record, &analysis, &arguments.folder)?;
    let figures = match figures {
        Some((files, keep)) => save_listed(&arguments.folder.join(FIGURES), files, keep)?,
        None => Vec::new(),
    };
    let tables = write_tables(&arguments.tables, &analysis, &arguments.folder)?;
    match arguments.format {
        Format::Json => {
            let output = serde_json::json!({
                "report": page, "figures": figures, "tables": tables, "summary": analysis.summary,
                "findings": analysis.findings, "failures": analysis.failures,
            });
            print(&(serde_json::to_string_pretty(&output)? + "\n"))?;
        }
        Format::Text => {
            print_as_is(&table::summary(&analysis.summary, table::colours()))?;
            let mut text = table::failures(&analysis.failures, record.runs.len()) + "\n";
            for path in std::iter::once(&page).chain(&figures).chain(&tables) {
                text += &format!("{}\n", path.display());
            }
            print(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes report.html.
pub fn write_page(record: &ExperimentRecord, analysis: &Analysis, folder: &Path) -> anyhow::Result<PathBuf> {
    Ok(save_page(folder, &html(record, analysis))?)
}

/// Writes figures/NAME.svg.
pub fn write_figures(record: &ExperimentRecord, analysis: &Analysis, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let figures = figures(record, analysis);
    Ok(save_figures(folder, figures.iter().map(|figure| (figure.name.as_str(), figure.svg.as_str())))?)
}

/// Names and contents of files, and whether they are added to those that are there.
type Files = (Vec<(String, Vec<u8>)>, bool);

fn figures_asked_for(
    arguments: &Report,
    record: &ExperimentRecord,
    analysis: &Analysis,
) -> anyhow::Result<Option<Files>> {
    let mut formats = arguments.figures.clone();
    if arguments.svg && !formats.contains(&FigureFormat::Svg) {
        formats.insert(0, FigureFormat::Svg);
    }
    let chosen = !arguments.column.is_empty() || arguments.axis.is_some() || arguments.size.is_some();
    if formats.is_empty() {
        if chosen {
            bail!("--column, --axis and --size are about figures; say in which format, such as --figures pdf");
        }
        return Ok(None);
    }
    let request = FigureRequest {
        columns: arguments.column.clone(),
        axis: arguments.axis.as_deref().map(FigureAxis::from_str).transpose()?,
        size: arguments.size.map(|FigureSize(width, height)| (width, height)),
    };
    let figures = if chosen { chosen_figures(record, analysis, &request)? } else { figures(record, analysis) };
    let mut files = Vec::new();
    for format in formats {
        for figure in &figures {
            let (ending, bytes) = match format {
                FigureFormat::Svg => ("svg", figure.svg.clone().into_bytes()),
                FigureFormat::Pdf => ("pdf", figure.drawing.pdf()),
                FigureFormat::Pgf => ("pgf", figure.drawing.pgf().into_bytes()),
            };
            files.push((format!("{}.{ending}", figure.name), bytes));
        }
    }
    Ok(Some((files, chosen)))
}

fn write_tables(formats: &[SheetFormat], analysis: &Analysis, folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if formats.is_empty() {
        return Ok(Vec::new());
    }
    let files = formats.iter().flat_map(|format| {
        let format = match format {
            SheetFormat::Csv => TableFormat::Csv,
            SheetFormat::Latex => TableFormat::Latex,
            SheetFormat::Markdown => TableFormat::Markdown,
        };
        sheets(&analysis.table, format).into_iter().map(|(name, text)| (name, text.into_bytes()))
    });
    save_listed(&folder.join(TABLES), files, false).context("cannot write the tables")
}
