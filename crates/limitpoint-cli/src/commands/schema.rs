//! `limitpoint schema`: what an experiment file may say, for editors.

use std::process::ExitCode;

use clap::Args;

use super::print;
use crate::args::Format;

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// Print the reference page instead: every key, every column of measurements, the layout of checkpoints.
    #[arg(long)]
    pub markdown: bool,
    /// A schema is JSON either way.
    #[arg(long, value_enum, default_value_t, hide = true)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Schema) -> anyhow::Result<ExitCode> {
    if arguments.markdown {
        let page = limitpoint::report::reference_page();
        print(&match arguments.format {
            Format::Text => page,
            Format::Json => serde_json::to_string_pretty(&serde_json::json!({ "markdown": page }))? + "\n",
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&(serde_json::to_string_pretty(&limitpoint::experiments::schema())? + "\n"))?;
    Ok(ExitCode::SUCCESS)
}
