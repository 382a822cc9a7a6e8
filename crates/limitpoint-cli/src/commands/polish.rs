//! `limitpoint polish`: from the weights a run ended with to a certified limit point.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use limitpoint::certificates::{PolishMethod, PolishSettings, PolishStatus};
use limitpoint::experiments::{PolishedRun, ProveOptions, ProvedRun, polish_run, prove_run, run_folders};
use limitpoint::norms::NormSpec;
use serde_json::{Value, json};

use super::data::data_folder;
use super::{print, prove, say};
use crate::args::Format;
use crate::outcome::NO;
use crate::values;

/// Arguments of `polish`.
#[derive(Debug, Args)]
pub struct Polish {
    /// The folder of an experiment or of one of its runs.
    pub run: PathBuf,
    /// The norm of the margin, such as `l2`, `linf` or `spectral`; the one of the optimiser by default.
    #[arg(long, value_name = "NORM")]
    pub norm: Option<NormSpec>,
    /// The τ to reach.
    #[arg(long, default_value_t = PolishSettings::default().target, value_parser = values::not_negative)]
    pub target: f64,
    /// Most convex or tangent problems.
    #[arg(long, default_value_t = PolishSettings::default().rounds, value_parser = values::at_least_one)]
    pub rounds: usize,
    /// Also prove that an exact KKT point lies there, as `limitpoint prove` does.
    #[arg(long)]
    pub prove: bool,
    /// Folder with data sets and data files, where those of the run are not found; LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Polish) -> anyhow::Result<ExitCode> {
    let data_folder = data_folder(arguments.data_dir.as_deref());
    let settings = PolishSettings { target: arguments.target, rounds: arguments.rounds, ..PolishSettings::default() };
    let (mut text, mut output, mut all) = (String::new(), Vec::new(), true);
    let folders = run_folders(&arguments.run)?;
    for folder in &folders {
        let run = match polish_run(folder, arguments.norm.as_ref(), &settings, data_folder.as_deref()) {
            // of several runs, one that cannot be polished does not keep the others from it
            Err(error) if folders.len() > 1 && prove::goes_on(&error) => {
                say(&format!("{}: {error}", folder.display()));
                all = false;
                continue;
            }
            other => other?,
        };
        all &= run.is_polished();
        text += &describe(&run);
        let mut polished = answer(&run);
        if arguments.prove {
            let options = ProveOptions {
                norm: arguments.norm.clone(),
                polish: settings,
                data_folder: data_folder.clone(),
                ..ProveOptions::default()
            };
            let proven: ProvedRun = prove_run(folder, &options)?;
            all &= proven.outcome.is_ok();
            text += &prove::describe(&proven);
            polished["proof"] = prove::answer(&proven);
        }
        output.push(polished);
    }
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&output)? + "\n"))?,
        Format::Text => print(&text)?,
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

fn method(method: PolishMethod) -> &'static str {
    match method {
        PolishMethod::Cells => "convex problems",
        PolishMethod::Curved => "Newton systems",
        PolishMethod::Barrier => "barrier problems",
        PolishMethod::Tangent => "tangent problems",
    }
}

fn describe(run: &PolishedRun) -> String {
    let p = &run.polished;
    let status = match &p.status {
        PolishStatus::Polished => "polished".to_owned(),
        PolishStatus::Stalled { why } => format!("stalled: {why}"),
    };
    let gain = 100.0 * (p.margin_after / p.margin_before - 1.0);
    let mut out = format!("{}: {status}\n", run.run);
    out += &format!("  Clarke τ in {:<10} {:.1e} -> {:.1e}\n", p.norm, p.tau_before, p.tau_after);
    out += &format!("  margin               {:.9e} -> {:.9e} ({gain:+.3} %)\n", p.margin_before, p.margin_after);
    out += &format!("  angle moved          {:.3}°\n", p.angle.to_degrees());
    out += &format!("  {:<20} {} ({} iterations)\n", method(p.method), p.solves, p.iterations);
    out += &format!("  kinks, dead units    {}, {}\n", p.kinks, p.pruned.len());
    for start in &run.earlier {
        let same = if start.distance <= 1e-6 { "the same point" } else { "another point" };
        out += &format!(
            "  from {:<15} {same}: margin {:.9e}, τ {:.1e}, scores differ by {:.1e}\n",
            start.checkpoint.trim_end_matches(".safetensors"),
            start.margin,
            start.tau,
            start.distance
        );
    }
    let kept = if run.kept { ", which was there already and is as good" } else { "" };
    out + &format!("  {}{kept}\n", run.file.display())
}

fn answer(run: &PolishedRun) -> Value {
    let p = &run.polished;
    let (status, why) = match &p.status {
        PolishStatus::Polished => ("polished", None),
        PolishStatus::Stalled { why } => ("stalled", Some(why)),
    };
    let earlier = run
        .earlier
        .iter()
        .map(|s| json!({ "checkpoint": s.checkpoint, "margin": s.margin, "tau": s.tau, "distance": s.distance }));
    json!({
        "run": run.run, "status": status, "why": why, "norm": p.norm, "method": method(p.method),
        "tau_before": p.tau_before, "tau_after": p.tau_after,
        "margin_before": p.margin_before, "margin_after": p.margin_after, "angle_degrees": p.angle.to_degrees(),
        "solves": p.solves, "iterations": p.iterations, "kinks": p.kinks, "pruned": p.pruned,
        "file": run.file, "kept": run.kept, "earlier": earlier.collect::<Vec<_>>(),
    })
}
