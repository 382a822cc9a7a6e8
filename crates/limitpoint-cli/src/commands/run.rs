//! `limitpoint run` and `limitpoint resume`: from a recipe to a folder of records and a report.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use clap::Args;
use limitpoint::engine::Device;
use limitpoint::experiments::{
    Departure, Experiment, ExperimentRecord, Plan, RecipeSource, RunManifest, RunOptions, Status, Watcher, WorkOptions,
    analyse, is_sweep, plan, retry_failed,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::data::data_folder;
use super::progress::{Lines, Silence};
use super::{in_one_line, print, print_as_is, report, say, table, worker};
use crate::args::Format;
use crate::{outcome, values};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// A built-in experiment (see `limitpoint list experiments`) or a .toml file.
    #[arg(default_value = "showcase")]
    pub experiment: String,
    /// Settings to change, such as optimiser.norm=spectral, seed=1,2,3 or model.width=64..512*2; a comma or a range is
    /// a sweep.
    #[arg(value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// Where the records go; runs/NAME by default, with a number added if that exists.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Go on with what is in the folder instead of starting a new one.
    #[arg(long)]
    pub resume: bool,
    /// Print the resolved recipe and stop.
    #[arg(long)]
    pub print_config: bool,
    /// How it is run and shown.
    #[command(flatten)]
    pub shared: Shared,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct Resume {
    /// The folder of an experiment that was interrupted or killed, or is to go on.
    pub folder: PathBuf,
    /// A later stop, such as stop.log10_loss=-250: finished runs go on to it, bit for bit as if they had had it from the
    /// beginning.
    #[arg(value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// How it is run and shown.
    #[command(flatten)]
    pub shared: Shared,
}

/// What `run` and `resume` have in common.
#[derive(Debug, Args)]
pub struct Shared {
    /// Threads over all runs together, at most one a core; all cores by default. Results do not depend on it.
    #[arg(long, value_name = "COUNT", value_parser = values::at_least_one)]
    pub threads: Option<usize>,
    /// Where models are computed: cpu, or cuda for the first NVIDIA card. Between devices the last bits differ.
    #[arg(long, value_name = "DEVICE", default_value_t)]
    pub device: Device,
    /// Folder with data sets; the environment variable LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// No progress on stderr.
    #[arg(long, short)]
    pub quiet: bool,
    /// No report.html.
    #[arg(long)]
    pub no_report: bool,
    /// Also write figures as SVG.
    #[arg(long)]
    pub svg: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb `run`.
pub fn run(arguments: &Run) -> anyhow::Result<ExitCode> {
    // `limitpoint run seed=3` changes the showcase
    let (name, overrides) = if arguments.experiment.contains('=') {
        ("showcase".to_owned(), [std::slice::from_ref(&arguments.experiment), &arguments.overrides].concat())
    } else {
        (arguments.experiment.clone(), arguments.overrides.clone())
    };
    let source = RecipeSource::find(&name)?;
    let plan = plan(&source, &overrides)?.with_own_norms();
    if arguments.print_config {
        return print_config(&plan, arguments.shared.format);
    }
    let experiment = Experiment::new(&plan)?;
    let (folder, made) = match &arguments.out {
        Some(folder) => {
            if !arguments.resume {
                refuse_taken(folder)?;
            }
            (folder.clone(), !folder.exists())
        }
        None if arguments.resume => (Path::new("runs").join(&plan.name), false),
        None => (free_folder(&plan.name)?, true),
    };
    let interrupt = catch_interrupts()?;
    let outcome = execute(experiment, &folder, &arguments.shared, &interrupt);
    if made && outcome.is_err() {
        // a folder in which nothing was written is of no use
        let _ = std::fs::remove_dir(&folder);
    }
    outcome
}

/// The resolved recipe of every point: TOML, or JSON with the same TOML beside it.
fn print_config(plan: &Plan, format: Format) -> anyhow::Result<ExitCode> {
    let mut texts = Vec::new();
    for point in &plan.points {
        let heading: String = point
            .settings
            .iter()
            .map(|(key, value)| format!("# {} = {}\n", in_one_line(key), in_one_line(value)))
            .collect();
        texts.push(heading + &point.recipe.to_toml()?);
    }
    match format {
        Format::Text => print(&texts.join("\n"))?,
        Format::Json => {
            let points: Vec<Value> = plan
                .points
                .iter()
                .zip(&texts)
                .map(|(point, toml)| json!({ "settings": point.settings, "recipe": point.recipe, "toml": toml }))
                .collect();
            let output = json!({ "name": plan.name, "swept": plan.swept, "points": points });
            print(&(serde_json::to_string_pretty(&output)? + "\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the verb `resume`.
pub fn resume(arguments: &Resume) -> anyhow::Result<ExitCode> {
    let interrupt = catch_interrupts()?;
    if is_sweep(&arguments.folder)
        && let Some(code) = resume_sweep(&arguments.folder, &arguments.shared, &interrupt)?
    {
        return Ok(code);
    }
    let mut experiment = Experiment::open(&arguments.folder)
        .with_context(|| format!("{} holds no experiment to resume", arguments.folder.display()))?;
    if !arguments.overrides.is_empty() {
        experiment = experiment.with_later_stop(&arguments.overrides)?;
    }
    execute(experiment, &arguments.folder, &arguments.shared, &interrupt)
}

/// A sweep in one process: as many workers as threads. An exit code, unless all runs are done and can be shown.
fn resume_sweep(folder: &Path, shared: &Shared, interrupt: &AtomicBool) -> anyhow::Result<Option<ExitCode>> {
    retry_failed(folder)?;
    let threads = values::threads(shared.threads, shared.quiet);
    let watcher: &dyn Watcher = if shared.quiet { &() } else { &worker::Ends };
    let data_folder = data_folder(shared.data_dir.as_deref());
    let options = WorkOptions { data_folder, device: shared.device, ..WorkOptions::new(watcher, interrupt) };
    let outcome = worker::side_by_side(folder, &options, threads)?;
    Ok(match outcome.departure {
        Departure::Complete => None,
        Departure::OthersRun => {
            say(&format!("other workers are at the last runs: limitpoint status {}", folder.display()));
            Some(ExitCode::SUCCESS)
        }
        Departure::Interrupted => {
            say(&format!("interrupted; go on with: limitpoint resume {}", folder.display()));
            Some(ExitCode::from(outcome::INTERRUPTED))
        }
    })
}

/// A new experiment goes where there is nothing, or nothing but what was left when one was killed as it began.
pub fn refuse_taken(folder: &Path) -> anyhow::Result<()> {
    if folder.join("manifest.json").exists() {
        bail!(
            "{} already holds an experiment; add --resume to go on with it, or choose another folder",
            folder.display()
        );
    }
    let mut entries = std::fs::read_dir(folder).into_iter().flatten();
    if !folder.join("config.toml").exists() && entries.any(|entry| entry.is_ok_and(|e| e.file_name() != "claim.json")) {
        bail!("{} already holds other files; choose an empty folder or a new one with --out", folder.display());
    }
    Ok(())
}

/// Makes runs/NAME, or the first of runs/NAME-2, runs/NAME-3, … that nobody else has made.
fn free_folder(name: &str) -> anyhow::Result<PathBuf> {
    let all = Path::new("runs");
    std::fs::create_dir_all(all).with_context(|| format!("cannot create {}", all.display()))?;
    let mut number = 1_u64;
    loop {
        let folder = all.join(if number == 1 { name.to_owned() } else { format!("{name}-{number}") });
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error).with_context(|| format!("cannot create {}", folder.display())),
        }
    }
}

/// What `--format json` prints.
#[derive(Serialize)]
struct Output<'a> {
    folder: &'a Path,
    report: Option<PathBuf>,
    figures: Vec<PathBuf>,
    runs: &'a [RunManifest],
    summary: limitpoint::experiments::Summary,
    findings: Vec<limitpoint::experiments::Finding>,
    failures: Vec<limitpoint::experiments::FailedRun>,
}

fn execute(experiment: Experiment, folder: &Path, shared: &Shared, interrupt: &AtomicBool) -> anyhow::Result<ExitCode> {
    let experiment = experiment.with_data_folder(data_folder(shared.data_dir.as_deref()));
    let threads = values::threads(shared.threads, shared.quiet);
    let labels: Vec<String> = experiment.tasks().iter().map(|task| task.label.name.clone()).collect();
    let lines = (!shared.quiet).then(|| Lines::new(&labels));
    let watcher: &dyn Watcher = match &lines {
        Some(lines) => lines,
        None => &Silence,
    };
    let options = RunOptions { threads, device: shared.device, watcher, interrupt };
    let outcome = experiment.run(folder, &options);
    drop(lines);
    let manifests = outcome?;
    if manifests.iter().any(|manifest| manifest.status == Status::Interrupted) {
        say(&format!("interrupted; go on with: limitpoint resume {}", folder.display()));
        if shared.format == Format::Json {
            let output = json!({ "folder": folder, "interrupted": true, "runs": manifests });
            print(&(serde_json::to_string_pretty(&output)? + "\n"))?;
        }
        return Ok(ExitCode::from(outcome::INTERRUPTED));
    }
    let record = ExperimentRecord::load(folder)?;
    let analysis = analyse(&record);
    let written = if shared.no_report { None } else { Some(report::write_page(&record, &analysis, folder)?) };
    let figures = if shared.svg { report::write_figures(&record, &analysis, folder)? } else { Vec::new() };
    match shared.format {
        Format::Json => {
            let output = Output {
                folder,
                report: written,
                figures,
                runs: &manifests,
                summary: analysis.summary,
                findings: analysis.findings,
                failures: analysis.failures,
            };
            print(&(serde_json::to_string_pretty(&output)? + "\n"))?;
        }
        Format::Text => {
            print_as_is(&table::summary(&analysis.summary, table::colours()))?;
            let mut text = table::failures(&analysis.failures, manifests.len());
            let place = written.as_deref().unwrap_or(folder);
            text += &format!("\n{}\n", place.display());
            print(&text)?;
        }
    }
    let healthy = manifests.iter().all(|manifest| manifest.healthy);
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::from(outcome::NO) })
}

/// The first Ctrl-C asks all runs to stop with a checkpoint, the second ends at once.
#[expect(clippy::exit, reason = "who asks twice wants no checkpoint and no destructors; files are whole at any moment")]
pub fn catch_interrupts() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(outcome::INTERRUPTED));
        }
    })
    .context("cannot listen to Ctrl-C")?;
    Ok(interrupt)
}
