//! `limitpoint schema`: what an experiment file may say, for editors.

use std::process::ExitCode;

use clap::Args;

use super::print;
use crate::args::Format;

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct Schema {
    /// A schema is JSON either way.
    #[arg(long, value_enum, default_value_t, hide = true)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(_: &Schema) -> anyhow::Result<ExitCode> {
    print(&(serde_json::to_string_pretty(&limitpoint::experiments::schema())? + "\n"))?;
    Ok(ExitCode::SUCCESS)
}
