//! `limitpoint completions`: what a shell needs to complete the command line.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::{Arguments, Format};

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    pub shell: Shell,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(completions: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Arguments::command(), "limitpoint", &mut script);
    let script = String::from_utf8(script)?;
    match completions.format {
        Format::Text => super::print(&script)?,
        Format::Json => {
            let shell = completions.shell.to_string();
            super::print(&(serde_json::json!({ "shell": shell, "script": script }).to_string() + "\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
