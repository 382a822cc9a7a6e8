//! `limitpoint merge`: sweeps made in several places, put together in one.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use limitpoint::experiments::{Merged, merge};
use serde_json::json;

use super::data::data_folder;
use super::print;
use crate::args::Format;

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub struct Merge {
    /// Folders of sweeps or experiments; they are left as they are.
    #[arg(required = true, num_args = 1.., value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// The new folder.
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    /// Folder with data sets; the environment variable LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Merge) -> anyhow::Result<ExitCode> {
    super::run::refuse_taken(&arguments.out)?;
    let merged = merge(&arguments.folders, &arguments.out, data_folder(arguments.data_dir.as_deref()).as_deref())?;
    match arguments.format {
        Format::Json => {
            let output = json!({ "folder": arguments.out, "merged": merged });
            print(&(serde_json::to_string_pretty(&output)? + "\n"))?;
        }
        Format::Text => {
            let Merged { runs, finished, agreed, waiting } = merged;
            let same =
                if agreed > 0 { format!(" ({agreed} in several places, with the same bits)") } else { String::new() };
            print(&format!(
                "{}: {runs} runs, {finished} finished{same}, {waiting} waiting\n",
                arguments.out.display()
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
