//! `limitpoint robustness`: how far inputs must move before trained models change their answers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum};
use limitpoint::engine::Device;
use limitpoint::experiments::{
    Part, RobustnessOptions, RunRobustness, run_robustness, trained_weights, write_atomically,
};
use limitpoint::report::{robustness_figures, robustness_page};
use limitpoint::robustness::{AttackSpec, Quartiles};
use serde_json::{Value, json};

use super::data::data_folder;
use super::{print, say};
use crate::args::Format;
use crate::values;

/// Steps of Adam for each constant of Carlini–Wagner unless told otherwise: a tenth of what foolbox makes.
const STEPS: usize = 1000;

/// Arguments of `robustness`.
#[derive(Debug, Args)]
pub struct RobustnessArguments {
    /// Folders of experiments or runs, or checkpoints of runs.
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// An attack, such as deep-fool or 'carlini-wagner(steps=10000)'; may be repeated; all three by default.
    #[arg(long = "attack", value_name = "ATTACK")]
    pub attacks: Vec<AttackSpec>,
    /// Examples of each part of the data, the first ones.
    #[arg(long, value_name = "COUNT", default_value_t = 200, value_parser = values::at_least_one)]
    pub count: usize,
    /// Which part of the data.
    #[arg(long, value_enum, default_value_t)]
    pub split: Split,
    /// Where inputs live, as two numbers; by default 0,1, widened to hold the data.
    #[arg(long = "box", value_name = "LOWEST,HIGHEST", value_delimiter = ',', allow_hyphen_values = true, value_parser = values::finite)]
    pub bounds: Option<Vec<f64>>,
    /// Threads, at most one a core; all cores by default. Results do not depend on it.
    #[arg(long, value_name = "COUNT", value_parser = values::at_least_one)]
    pub threads: Option<usize>,
    /// Where robustness.json, robustness.html and figures are written.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Where attacks compute the model: cpu, or cuda for the first NVIDIA card; bounds are proven on the processor.
    #[arg(long, value_name = "DEVICE", default_value_t)]
    pub device: Device,
    /// Folder with data sets and data files, where those of the run are not found; LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Parts of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Split {
    /// What the model was trained on.
    Train,
    /// What it has not seen.
    Test,
    /// Both, as far as they are there.
    #[default]
    Both,
}

/// Runs the verb.
pub fn run(arguments: &RobustnessArguments) -> anyhow::Result<ExitCode> {
    let options = options(arguments)?;
    if let Some(folder) = &arguments.out {
        // before the work, not after
        std::fs::create_dir_all(folder)
            .map_err(|error| anyhow::anyhow!("cannot write to {}: {error}; choose --out", folder.display()))?;
    }
    let mut weights = Vec::new();
    for run in &arguments.runs {
        weights.extend(trained_weights(run)?);
    }
    let mut found = Vec::new();
    for (folder, file) in &weights {
        for one in run_robustness(folder, file.as_deref(), &options)? {
            match arguments.format {
                Format::Json => say(&format!("{}: {}", one.run, part(one.part))),
                Format::Text => print(&describe(&one))?,
            }
            found.push(one);
        }
    }
    if found.is_empty() {
        bail!("none of the runs has test data; use --split train");
    }
    let answers: Vec<Value> = found.iter().map(answer).collect::<anyhow::Result<_>>()?;
    let text = serde_json::to_string_pretty(&answers)? + "\n";
    if let Some(folder) = &arguments.out {
        write(folder, &found, &text)?;
    }
    if arguments.format == Format::Json {
        print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn options(arguments: &RobustnessArguments) -> anyhow::Result<RobustnessOptions> {
    let bounds = match arguments.bounds.as_deref() {
        None => None,
        Some([lowest, highest]) => Some([*lowest, *highest]),
        Some(other) => bail!("--box has {} numbers, but needs two, as in --box 0,1", other.len()),
    };
    let attacks = if arguments.attacks.is_empty() {
        vec![AttackSpec::carlini_wagner(STEPS), AttackSpec::deep_fool(), AttackSpec::projected()]
    } else {
        arguments.attacks.clone()
    };
    let parts = match arguments.split {
        Split::Train => vec![Part::Train],
        Split::Test => vec![Part::Test],
        Split::Both => vec![Part::Train, Part::Test],
    };
    let threads = values::threads(arguments.threads, false);
    let data_folder = data_folder(arguments.data_dir.as_deref());
    Ok(RobustnessOptions {
        attacks,
        parts,
        count: Some(arguments.count),
        bounds,
        threads,
        device: arguments.device,
        data_folder,
    })
}

fn part(part: Part) -> &'static str {
    match part {
        Part::Train => "training data",
        Part::Test => "test data",
    }
}

/// Quartiles of every bound, lower ones first.
fn lines(one: &RunRobustness) -> Vec<(String, &'static str, Quartiles)> {
    let profile = &one.profile;
    let mut lines = vec![
        ("margin/Lipschitz".to_owned(), "at least", profile.quartiles(|bracket| bracket.lipschitz)),
        ("certified".to_owned(), "at least", profile.quartiles(|bracket| bracket.certified)),
    ];
    let attacks = profile.attacks.iter().enumerate();
    lines.extend(attacks.map(|(place, attack)| (attack.clone(), "at most", profile.attack_quartiles(place))));
    lines
}

fn describe(one: &RunRobustness) -> String {
    let (profile, lines) = (&one.profile, lines(one));
    let width = lines.iter().map(|line| line.0.chars().count()).max().unwrap_or(0);
    let mut text = format!(
        "{}, {} {}, {:.2} % right: distance to the nearest mistake\n\n{:width$}  {:>8}  {:>14}  {:>10}  {:>14}\n",
        one.run,
        profile.examples.len(),
        part(one.part),
        100.0 * profile.accuracy(),
        "",
        "",
        "lower quartile",
        "median",
        "upper quartile"
    );
    let cell = |value: Option<f64>| value.map_or_else(|| "none found".to_owned(), |v| format!("{v:.4}"));
    for (name, side, quartiles) in lines {
        let [lower, median, upper] = [quartiles.lower, quartiles.median, quartiles.upper].map(cell);
        text += &format!("{name:width$}  {side:>8}  {lower:>14}  {median:>10}  {upper:>14}\n");
    }
    text + "\n"
}

fn answer(one: &RunRobustness) -> anyhow::Result<Value> {
    let quartiles: Value = lines(one)
        .into_iter()
        .map(|(name, _, quartiles)| Ok((name, serde_json::to_value(quartiles)?)))
        .collect::<anyhow::Result<serde_json::Map<_, _>>>()?
        .into();
    Ok(json!({
        "run": one.run,
        "part": one.part,
        "bounds": one.bounds,
        "accuracy": one.profile.accuracy(),
        "quartiles": quartiles,
        "attacks": one.profile.attacks,
        "examples": one.profile.examples,
    }))
}

/// Writes the numbers, the figures and the page.
fn write(folder: &Path, found: &[RunRobustness], text: &str) -> anyhow::Result<()> {
    write_atomically(&folder.join("robustness.json"), text.as_bytes())?;
    for (_, figure) in robustness_figures(found) {
        write_atomically(&folder.join(format!("{}.svg", figure.name)), figure.svg.as_bytes())?;
    }
    let page = folder.join("robustness.html");
    write_atomically(&page, robustness_page(found).as_bytes())?;
    say(&page.display().to_string());
    Ok(())
}
