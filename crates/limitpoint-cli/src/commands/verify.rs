//! `limitpoint verify`: whether the files of a folder are those that were written.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use limitpoint::experiments::{Damage, verify};
use serde_json::json;

use super::data::data_folder;
use super::{print, say};
use crate::args::Format;

/// The exit code for files that were changed, damaged or lost.
pub const DAMAGED: u8 = 3;

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// Folders of experiments or runs.
    #[arg(required = true, num_args = 1.., value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// Folder with data sets and data files, where those of the run are not found; LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Verify) -> anyhow::Result<ExitCode> {
    let data_folder = data_folder(arguments.data_dir.as_deref());
    let (mut text, mut output, mut whole) = (String::new(), Vec::new(), true);
    for folder in &arguments.folders {
        let found = verify(folder, data_folder.as_deref())?;
        whole &= found.damage.is_empty();
        for note in &found.notes {
            say(note);
        }
        for Damage { path, what } in &found.damage {
            text += &format!("{} {what}\n", path.display());
        }
        let count = found.damage.len();
        text += &match count {
            0 => format!("{}: {} files are as they were written\n", folder.display(), found.files),
            _ => format!("{}: damaged in {count} place{}\n", folder.display(), if count == 1 { "" } else { "s" }),
        };
        output.push(json!({ "folder": folder, "whole": count == 0, "found": found }));
    }
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&output)? + "\n"))?,
        Format::Text => print(&text)?,
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(DAMAGED) })
}
