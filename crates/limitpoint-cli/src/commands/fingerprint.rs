//! `limitpoint fingerprint`: which geometry an optimiser maximises.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use limitpoint::experiments::write_atomically;
use limitpoint::fingerprint::{Fingerprint, Phase, Settings, fingerprint_all};
use limitpoint::norms::NormSpec;
use limitpoint::report::{fingerprints, radar_figure};
use limitpoint::schedules::ScheduleSpec;
use serde_json::json;

use super::{print, say};
use crate::args::Format;
use crate::values;

/// Arguments of `fingerprint`.
#[derive(Debug, Args)]
pub struct FingerprintArguments {
    /// Optimisers as recipes write them: gradient, adam, 'adam(epsilon=0)', 'steepest(norm=lp:3)', …; of a composition
    /// such as 'blocks(hidden=muon, rest=adam)' each part is judged.
    #[arg(value_name = "OPTIMISER", required = true)]
    pub optimisers: Vec<String>,
    /// A constant step size, instead of steps that follow the loss.
    #[arg(long, value_name = "RATE", conflicts_with = "schedule", allow_hyphen_values = true, value_parser = values::finite)]
    pub rate: Option<f64>,
    /// Any other rule for step sizes, such as 'linear-bound(c=1)'; see `limitpoint list schedules`.
    #[arg(long, value_name = "SCHEDULE")]
    pub schedule: Option<String>,
    /// Starts per probe, at most 100: the origin, then random points.
    #[arg(long, value_name = "COUNT", default_value_t = Settings::default().starts)]
    pub seeds: usize,
    /// End runs at this loss, as a power of ten such as -1000.
    #[arg(long, value_name = "EXPONENT", allow_hyphen_values = true, value_parser = values::finite)]
    pub log10_loss: Option<f64>,
    /// The most steps of a run.
    #[arg(long, value_name = "COUNT")]
    pub steps: Option<u64>,
    /// A further norm to compare with, such as lp:4 or group21; may be repeated.
    #[arg(long = "norm", value_name = "NORM")]
    pub norms: Vec<String>,
    /// Where fingerprint.json, fingerprint.html and radar.svg are written.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &FingerprintArguments) -> anyhow::Result<ExitCode> {
    let settings = settings(arguments)?;
    if let Some(folder) = &arguments.out {
        // before the work, not after
        std::fs::create_dir_all(folder)
            .map_err(|error| anyhow::anyhow!("cannot write to {}: {error}; choose --out", folder.display()))?;
    }
    let mut found = Vec::new();
    for optimiser in &arguments.optimisers {
        for one in fingerprint_all(optimiser, &settings).with_context(|| format!("no fingerprint of '{optimiser}'"))? {
            match arguments.format {
                Format::Json => say(&one.answer),
                Format::Text => print(&describe(&one))?,
            }
            found.push(one);
        }
    }
    let text = serde_json::to_string_pretty(&json!({ "fingerprints": found }))? + "\n";
    if let Some(folder) = &arguments.out {
        write(folder, &found, &text)?;
    }
    if arguments.format == Format::Json {
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn settings(arguments: &FingerprintArguments) -> anyhow::Result<Settings> {
    let schedule = match (&arguments.schedule, arguments.rate) {
        (Some(text), _) => Some(text.parse::<ScheduleSpec>()?),
        (None, Some(rate)) => Some(ScheduleSpec::Constant { rate }),
        (None, None) => None,
    };
    if let Some(depth) = arguments.log10_loss.filter(|depth| depth.is_nan() || *depth > -2.0) {
        bail!("--log10-loss is {depth}, but must be -2 or less: below L = 0.1 nothing is decided yet");
    }
    let (starts, log10_loss, steps) = (arguments.seeds, arguments.log10_loss, arguments.steps);
    let mut settings = Settings { starts, schedule, log10_loss, steps, ..Settings::default() };
    for name in &arguments.norms {
        settings = settings.with_norm(name.parse::<NormSpec>()?);
    }
    Ok(settings)
}

/// Writes the numbers, the figure and the page.
fn write(folder: &Path, found: &[Fingerprint], text: &str) -> anyhow::Result<()> {
    write_atomically(&folder.join("fingerprint.json"), text.as_bytes())?;
    if let Some(figure) = radar_figure(found) {
        let path = folder.join(format!("{}.svg", figure.name));
        write_atomically(&path, figure.svg.as_bytes())?;
    }
    let page = folder.join("fingerprint.html");
    write_atomically(&page, fingerprints(found).as_bytes())?;
    say(&page.display().to_string());
    Ok(())
}

/// The answer and its tables.
fn describe(found: &Fingerprint) -> String {
    let mut text = format!("{}\n\n", found.answer);
    let phases = found.spoken();
    for (place, phase) in phases.iter().enumerate() {
        let last = place + 1 == phases.len();
        let when = if last { "at the end".to_owned() } else { format!("at L = 1e{:.0}", phase.clearest) };
        text += &table(found, phase, &when);
        text.push('\n');
    }
    for (what, evidence) in [("network", &found.network), ("convolution", &found.convolution)] {
        if let Some(trouble) = &evidence.trouble {
            text += &format!("no {what}: {trouble}\n\n");
        }
    }
    text
}

/// Shares by probe and candidate; the answer is marked in the heading, the largest share in every row.
fn table(found: &Fingerprint, phase: &Phase, when: &str) -> String {
    let rows = found.table(phase);
    let first = rows.iter().map(|row| row.0.chars().count()).max().unwrap_or(0).max(when.chars().count());
    let widths: Vec<usize> = found.geometries.iter().map(|geometry| geometry.label.chars().count().max(6)).collect();
    let mut text = format!("{when:first$}");
    for (geometry, width) in found.geometries.iter().zip(&widths) {
        let mark = if phase.geometry.as_ref() == Some(&geometry.key) { "<" } else { " " };
        text += &format!("  {:>width$}{mark}", geometry.label);
    }
    text = text.trim_end().to_owned() + "\n";
    for (name, shares) in rows {
        let best = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut line = format!("{name:first$}");
        for (share, width) in shares.iter().zip(&widths) {
            let mark = if *share >= best - 5e-4 { "*" } else { " " };
            line += &format!("  {share:>width$.3}{mark}");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
