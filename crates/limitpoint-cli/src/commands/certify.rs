//! `limitpoint certify`: what can be proven about the weights that runs ended with.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use limitpoint::certificates::{Certificate, Tolerances};
use limitpoint::experiments::{
    CertifyOptions, Experiment, ExperimentRecord, RunError, analyse, certify_run, run_folders, save_certificate,
};
use limitpoint::norms::NormSpec;
use serde_json::{Value, json};

use super::data::data_folder;
use super::{print, report, say};
use crate::args::Format;
use crate::outcome::NO;

/// Entries of margin problems that are solved for the lines of the report.
const LARGEST_LINE: usize = 2_000_000;

/// Arguments of `certify`.
#[derive(Debug, Args)]
pub struct Certify {
    /// The folder of an experiment or of one of its runs.
    pub run: PathBuf,
    /// The norm that is claimed, such as `l2`, `lp:3` or `spectral`; the one of the optimiser by default.
    #[arg(long, value_name = "NORM")]
    pub norm: Option<NormSpec>,
    /// The largest relative gap, τ or distance that is certified.
    #[arg(long, default_value_t = Tolerances::default().gap)]
    pub tolerance: f64,
    /// Other weights than those the run ended with: a safetensors file; the folder must be that of one run.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Folder with data sets and data files, where those of the run are not found; LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Certify) -> anyhow::Result<ExitCode> {
    let data_folder = data_folder(arguments.data_dir.as_deref());
    let folders = run_folders(&arguments.run)?;
    if arguments.weights.is_some() && folders.as_slice() != [arguments.run.clone()] {
        bail!(
            "--weights belong to one run, but {} holds {}; name a run's folder",
            arguments.run.display(),
            folders.len()
        );
    }
    let options = CertifyOptions {
        norm: arguments.norm.clone(),
        tolerances: Tolerances { gap: arguments.tolerance, ..Tolerances::default() },
        weights: arguments.weights.clone(),
        data_folder: data_folder.clone(),
    };
    let (mut text, mut output, mut all) = (String::new(), Vec::new(), true);
    for folder in &folders {
        match certify_run(folder, &options) {
            Ok(certificate) => {
                let path = save_certificate(&certificate, folder, &options)?;
                all &= certificate.verdict.is_certified();
                text += &describe(&certificate);
                text += &format!("  {}\n", path.display());
                output.push(answer(&certificate, &path)?);
            }
            // of several runs, one without a claim or not finished yet does not keep the others from being judged
            Err(error @ (RunError::NoClaim { .. } | RunError::Unfinished { .. })) if folders.len() > 1 => {
                say(&format!("{error}"));
                all = false;
            }
            Err(error) => return Err(error.into()),
        }
    }
    if folders.as_slice() != [arguments.run.clone()] {
        refresh(&arguments.run, data_folder)?;
    }
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&output)? + "\n"))?,
        Format::Text => print(&text)?,
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

/// A run, its verdict, the claim and the numbers that decide it.
pub fn describe(certificate: &Certificate) -> String {
    format!("{}: {}\n  {}\n  {}\n", certificate.run, certificate.verdict, certificate.statement, certificate.summary())
}

fn answer(certificate: &Certificate, path: &Path) -> anyhow::Result<Value> {
    let mut answer = serde_json::to_value(certificate.verdict)?;
    let more = json!({
        "run": certificate.run,
        "statement": certificate.statement,
        "summary": certificate.summary(),
        "certificate": path,
    });
    if let (Value::Object(answer), Value::Object(more)) = (&mut answer, more) {
        answer.extend(more);
    }
    Ok(answer)
}

/// Of an experiment: solves for the lines of the report, and writes a report that is there anew.
fn refresh(folder: &Path, data_folder: Option<PathBuf>) -> anyhow::Result<()> {
    Experiment::open(folder)?.with_data_folder(data_folder).find_optima(folder, LARGEST_LINE)?;
    if folder.join("report.html").exists() {
        let record = ExperimentRecord::load(folder)?;
        report::write_page(&record, &analyse(&record), folder)?;
    }
    Ok(())
}
