//! `limitpoint report`: the page and the figures of an experiment, made anew from its records.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use limitpoint::experiments::{Analysis, ExperimentRecord, analyse, save_figures, save_page};
use limitpoint::report::{figures, html};

use super::{print, table};
use crate::args::Format;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// The folder of an experiment; runs that still go on are shown as far as they are.
    pub folder: PathBuf,
    /// Also write figures as SVG, for LaTeX.
    #[arg(long)]
    pub svg: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Report) -> anyhow::Result<ExitCode> {
    let record = ExperimentRecord::load(&arguments.folder)?;
    let analysis = analyse(&record);
    let page = write_page(&record, &analysis, &arguments.folder)?;
    let figures = if arguments.svg { write_figures(&record, &analysis, &arguments.folder)? } else { Vec::new() };
    match arguments.format {
        Format::Json => {
            let output = serde_json::json!({
                "report": page, "figures": figures, "summary": analysis.summary, "findings": analysis.findings,
                "failures": analysis.failures,
            });
            print(&(serde_json::to_string_pretty(&output)? + "\n"))?;
        }
        Format::Text => {
            let mut text = table::summary(&analysis.summary, table::colours());
            text += &(table::failures(&analysis.failures, record.runs.len()) + "\n");
            for path in std::iter::once(&page).chain(&figures) {
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
