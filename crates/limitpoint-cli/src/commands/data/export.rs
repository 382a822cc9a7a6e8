//! `limitpoint data export`: the examples of an experiment as a NumPy archive.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use limitpoint::data::to_npz;
use limitpoint::experiments::{RecipeSource, experiment_data, plan, run_data, write_atomically};
use serde_json::json;

use super::data_folder;
use crate::args::Format;
use crate::commands::print;

/// Arguments of `data export`.
#[derive(Debug, Args)]
pub struct Export {
    /// A built-in experiment, a .toml file, or the folder of a run.
    pub experiment: String,
    /// Settings to change, such as data.count=40.
    #[arg(value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// The archive to write.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The seed that draws the data; that of the first run by default.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Folder with data sets and data files; the environment variable LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the action.
pub fn run(arguments: &Export) -> anyhow::Result<()> {
    let data_folder = data_folder(arguments.data_dir.as_deref());
    let folder = Path::new(&arguments.experiment);
    let (split, record) = if folder.is_dir() {
        if arguments.seed.is_some() || !arguments.overrides.is_empty() {
            bail!("a run has its data already; give --seed and settings with a recipe only");
        }
        run_data(folder, data_folder.as_deref())?
    } else {
        let plan = plan(&RecipeSource::find(&arguments.experiment)?, &arguments.overrides)?;
        if plan.points.len() > 1 {
            bail!("these settings are a sweep of {} recipes; export the data of one at a time", plan.points.len());
        }
        experiment_data(&plan.base, arguments.seed, data_folder.as_deref())?
    };
    write_atomically(&arguments.out, &to_npz(&split)?)?;
    match arguments.format {
        Format::Json => {
            let output = json!({ "file": arguments.out, "data": record });
            print(&(serde_json::to_string_pretty(&output)? + "\n"))
        }
        Format::Text => print(&format!(
            "{}: {}, {} training and {} test examples of shape {:?}, SHA-256 {}\n",
            arguments.out.display(),
            record.name,
            record.examples,
            record.test_examples,
            record.input_shape,
            record.sha256
        )),
    }
}
