//! `limitpoint check`: certificates recomputed from data and weights alone.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use limitpoint::experiments::check_certificate;
use serde_json::json;

use super::data::data_folder;
use super::{certify, print};
use crate::args::Format;
use crate::outcome;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Certificates; data and weights are looked for where they name them.
    #[arg(required = true, num_args = 1.., value_name = "CERTIFICATE")]
    pub certificates: Vec<PathBuf>,
    /// Folder with data sets and data files, where those of the run are not found; LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Check) -> anyhow::Result<ExitCode> {
    let data_folder = data_folder(arguments.data_dir.as_deref());
    let (mut text, mut output, mut all, mut valid) = (String::new(), Vec::new(), true, true);
    for path in &arguments.certificates {
        let checked = check_certificate(path, data_folder.as_deref())
            .with_context(|| format!("cannot check {}", path.display()))?;
        all &= checked.is_certified();
        valid &= checked.disagreements.is_empty();
        let complaints: Vec<String> = checked.disagreements.iter().map(ToString::to_string).collect();
        text += &if complaints.is_empty() {
            certify::describe(&checked.certificate) + "  every number agrees\n"
        } else {
            let lines: String = complaints.iter().map(|complaint| format!("  {complaint}\n")).collect();
            format!("{}: the certificate does not hold\n{lines}", checked.certificate.run)
        };
        output.push(json!({
            "certificate": path,
            "run": checked.certificate.run,
            "verdict": checked.certificate.verdict.word(),
            "holds": complaints.is_empty(),
            "disagreements": complaints,
        }));
    }
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&output)? + "\n"))?,
        Format::Text => print(&text)?,
    }
    Ok(match (valid, all) {
        (false, _) => ExitCode::from(outcome::INVALID),
        (true, false) => ExitCode::from(outcome::NO),
        (true, true) => ExitCode::SUCCESS,
    })
}
