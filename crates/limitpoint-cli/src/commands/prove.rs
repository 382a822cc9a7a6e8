//! `limitpoint prove`: an exact KKT point next to polished weights, as a theorem.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use limitpoint::certificates::{CertificateError, PolishError};
use limitpoint::experiments::{ProveOptions, ProvedRun, RunError, prove_run, run_folders, write_atomically};
use limitpoint::norms::NormSpec;
use limitpoint::proofs::ProofDocument;
use serde_json::{Value, json};

use super::data::data_folder;
use super::{kinds, print, say};
use crate::args::Format;
use crate::outcome::NO;

/// Arguments of `prove`.
#[derive(Debug, Args)]
pub struct Prove {
    /// The folder of an experiment or of one of its runs.
    pub run: PathBuf,
    /// The norm of the margin: l1, l2 or linf; the one of the optimiser by default.
    #[arg(long, value_name = "NORM")]
    pub norm: Option<NormSpec>,
    /// Go on from a point that is proven to be no local maximum, as often as that raises the margin.
    #[arg(long)]
    pub improve: bool,
    /// How many leaves the search may open that decides whether a point is the global maximum; 0 leaves it out.
    #[arg(long, value_name = "COUNT", default_value_t = ProveOptions::default().leaves, value_parser = leaves())]
    pub leaves: usize,
    /// Print how many runs led to which kind of point, instead of one run after the other.
    #[arg(long)]
    pub table: bool,
    /// Draw that table as an SVG file.
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// Folder with data sets and data files, where those of the run are not found; LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// At most as many leaves as a file of reasonable size can hold.
fn leaves() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(0..=100_000)
}

/// Runs the verb.
pub fn run(arguments: &Prove) -> anyhow::Result<ExitCode> {
    let options = ProveOptions {
        norm: arguments.norm.clone(),
        leaves: arguments.leaves,
        improve: arguments.improve,
        data_folder: data_folder(arguments.data_dir.as_deref()),
        ..ProveOptions::default()
    };
    let folders = run_folders(&arguments.run)?;
    let (mut text, mut output, mut all) = (String::new(), Vec::new(), true);
    let (mut proven, mut missing) = (Vec::new(), Vec::new());
    for folder in &folders {
        match prove_run(folder, &options) {
            Ok(run) => {
                all &= run.outcome.is_ok();
                text += &describe(&run);
                output.push(answer(&run));
                proven.push(run);
            }
            // of several runs, one that cannot be asked does not keep the others from being proven
            Err(error) if folders.len() > 1 && goes_on(&error) => {
                say(&format!("{}: {error}", folder.display()));
                missing.push(folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()));
                all = false;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let rows = kinds::count(&proven, &missing);
    if let Some(path) = &arguments.figure {
        write_atomically(path, kinds::figure(&rows).as_bytes())?;
        say(&path.display().to_string());
    }
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&output)? + "\n"))?,
        Format::Text if arguments.table => print(&kinds::table(&rows))?,
        Format::Text => print(&text)?,
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

/// Whether an error is about one run of several only: unfinished, without a norm, or not separated.
pub fn goes_on(error: &RunError) -> bool {
    matches!(
        error,
        RunError::NoClaim { .. }
            | RunError::Unfinished { .. }
            | RunError::Polish(PolishError::Certificate(CertificateError::NotSeparated { .. }))
    )
}

/// A run and what is proven of it.
pub fn describe(run: &ProvedRun) -> String {
    let mut out = match &run.outcome {
        Ok((document, path)) => format!("{}: proven\n{}  {}\n", run.run, findings(document), path.display()),
        Err(refusal) => format!("{}: refused in {}\n  {refusal}\n", run.run, run.norm),
    };
    for kind in &run.left {
        out += &format!("  left a point that is {kind}\n");
    }
    out
}

/// The theorem and its numbers.
pub fn findings(document: &ProofDocument) -> String {
    let f = &document.findings;
    let mut out = format!("  {}\n", document.statement);
    out += &format!(
        "  {} unknowns, relative radius {:.1e}; {} live neurons, {} kinks, {} active examples\n",
        f.unknowns,
        f.radius,
        f.neurons,
        f.kinks,
        document.proof.active.len()
    );
    for nearby in &document.weights {
        out += &format!("  angle to {:<32} at most {:.2e} rad\n", nearby.reference.file, nearby.angle.hi);
    }
    out
}

/// The same as JSON.
pub fn answer(run: &ProvedRun) -> Value {
    match &run.outcome {
        Ok((document, path)) => json!({
            "run": run.run, "norm": run.norm, "status": "proven", "statement": document.statement,
            "findings": document.findings, "active": document.proof.active.len(),
            "angle": document.weights.first().map(|nearby| nearby.angle),
            "angle_to_run": document.weights.get(1).map(|nearby| nearby.angle),
            "left": run.left, "proof": path,
        }),
        Err(refusal) => json!({
            "run": run.run, "norm": run.norm, "status": "refused", "refusal": refusal, "why": refusal.to_string(), "left": run.left,
        }),
    }
}
