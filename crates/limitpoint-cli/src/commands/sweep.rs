//! `limitpoint sweep`: lays out the runs of a sweep for workers, and asks a cluster for some.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use limitpoint::experiments::{RecipeSource, lay_out, plan};
use serde_json::json;

use super::data::data_folder;
use super::slurm::{self, Slurm};
use super::{print, run, say};
use crate::args::Format;

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub struct Sweep {
    /// A built-in experiment (see `limitpoint list experiments`) or a .toml file.
    pub experiment: String,
    /// Settings to change, such as seed=1..100 or model.width=64..512*2; a comma or a range is a sweep.
    #[arg(value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// The folder of the sweep: a new one, or one to which runs are added.
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Submit an array of workers to Slurm: workers=10,time=2:00:00,partition=short,gres=gpu:1; any other option of
    /// sbatch is passed on.
    #[arg(long, value_name = "OPTION=VALUE,…")]
    pub slurm: Option<Slurm>,
    /// Print the script that would be submitted to Slurm, and do nothing.
    #[arg(long, requires = "slurm")]
    pub print: bool,
    /// Folder with data sets; the environment variable LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Sweep) -> anyhow::Result<ExitCode> {
    let Sweep { out, .. } = arguments;
    let script = arguments.slurm.as_ref().map(|slurm| slurm.script(out, arguments.data_dir.as_deref())).transpose()?;
    if let Some(script) = script.as_ref().filter(|_| arguments.print) {
        return match arguments.format {
            Format::Text => print(script),
            Format::Json => print(&(serde_json::to_string_pretty(&json!({ "script": script }))? + "\n")),
        }
        .map(|()| ExitCode::SUCCESS);
    }
    let plan = plan(&RecipeSource::find(&arguments.experiment)?, &arguments.overrides)?.with_own_norms();
    if !out.join("waiting").is_dir() {
        run::refuse_taken(out)?;
    }
    let laid_out = lay_out(&plan, out, data_folder(arguments.data_dir.as_deref()).as_deref())?;
    let job = match (&arguments.slurm, script) {
        (Some(_), Some(script)) => Some(slurm::submit(&script, out)?),
        _ => None,
    };
    match arguments.format {
        Format::Json => {
            let output = json!({ "folder": out, "laid_out": laid_out, "job": job });
            print(&(serde_json::to_string_pretty(&output)? + "\n"))?;
        }
        Format::Text => {
            let known = if laid_out.known > 0 { format!(", {} were there", laid_out.known) } else { String::new() };
            print(&format!("{}: {} runs, {} added{known}\n", out.display(), laid_out.runs, laid_out.added))?;
            match job {
                Some(job) => {
                    say(&format!("submitted as job {job}; see how it gets on: limitpoint status {}", out.display()))
                }
                None => say(&format!(
                    "nothing is started; any number of times, anywhere: limitpoint worker {}",
                    out.display()
                )),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl std::str::FromStr for Slurm {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut slurm = Self { workers: 1, options: Vec::new() };
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("workers", count)) => {
                    let count = count.parse().ok().filter(|count| *count >= 1);
                    slurm.workers =
                        count.with_context(|| format!("'{part}': workers is a whole number, at least 1"))?;
                }
                Some((key, value)) if is_option(key) && is_value(value) => {
                    slurm.options.push((key.to_owned(), value.to_owned()));
                }
                // gres=gpu:1,shard:2
                None if is_value(part) && !slurm.options.is_empty() => {
                    let last = slurm.options.len() - 1;
                    slurm.options[last].1 += &format!(",{part}");
                }
                _ => {
                    bail!("'{part}' is no OPTION=VALUE of sbatch; an example: workers=10,time=2:00:00,partition=short")
                }
            }
        }
        Ok(slurm)
    }
}

fn is_option(key: &str) -> bool {
    key.starts_with(|letter: char| letter.is_ascii_lowercase())
        && key.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
}

/// One word: a line of a script must not become two.
fn is_value(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|letter| !letter.is_whitespace() && !letter.is_control())
}
