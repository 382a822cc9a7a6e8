//! `limitpoint export`: the measurements of runs for other people's viewers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use limitpoint::experiments::{LiveRecord, write_atomically};
use limitpoint::report::{Exported, event_file};
use serde_json::json;

use super::{print, say};
use crate::args::Format;

/// Arguments of `export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The folder of a run, an experiment or a sweep; of runs that still go on, what there is so far.
    pub folder: PathBuf,
    /// Write TensorBoard's event files into this folder: log10_*, margin.* and tau.* of every run, in a folder of its name.
    #[arg(long, value_name = "FOLDER")]
    pub tensorboard: PathBuf,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Name of an event file; TensorBoard asks for the middle of it.
const FILE: &str = "events.out.tfevents.0.limitpoint";

/// Runs the verb.
pub fn run(arguments: &Export) -> anyhow::Result<ExitCode> {
    let Export { folder, tensorboard, .. } = arguments;
    let live = LiveRecord::open(folder)
        .with_context(|| format!("{} holds no run, experiment or sweep to export", folder.display()))?;
    // what cannot be read is no export
    if let Some(trouble) = live.trouble().first() {
        anyhow::bail!("{trouble}");
    }
    let (mut runs, mut scalars, mut left_out) = (0, 0, 0);
    for run in &live.record().runs {
        let exported = event_file(run);
        write(&tensorboard.join(&run.name), &exported)?;
        runs += 1;
        scalars += exported.scalars;
        left_out += exported.left_out;
    }
    match arguments.format {
        Format::Json => {
            let output = json!({ "folder": tensorboard, "runs": runs, "scalars": scalars, "left_out": left_out });
            print(&(serde_json::to_string_pretty(&output)? + "\n"))?;
        }
        Format::Text => {
            print(&format!("{}: {runs} runs, {scalars} numbers\n", tensorboard.display()))?;
            if left_out > 0 {
                say(&format!(
                    "{left_out} numbers are left out: TensorBoard keeps 32-bit floats, which would make them 0 or infinite"
                ));
            }
            say(&format!("look at them: tensorboard --logdir {}", tensorboard.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, exported: &Exported) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(write_atomically(&folder.join(FILE), &exported.bytes)?)
}
