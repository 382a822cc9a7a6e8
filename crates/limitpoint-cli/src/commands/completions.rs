//! `limitpoint completions`: what a shell needs to complete the command line.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Arguments;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    pub shell: Shell,
}

/// Runs the verb.
pub fn run(completions: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Arguments::command(), "limitpoint", &mut script);
    super::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}
