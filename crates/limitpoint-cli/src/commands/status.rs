//! `limitpoint status`: how a sweep gets on.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use limitpoint::experiments::{SweepStatus, retry_failed, status};

use super::{in_one_line, print, say};
use crate::args::Format;
use crate::outcome;

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArguments {
    /// The folder of a sweep or an experiment.
    pub folder: PathBuf,
    /// Make failed runs wait again.
    #[arg(long)]
    pub retry_failed: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Most lines about running or failed runs.
const MOST: usize = 20;

/// Runs the verb.
pub fn run(arguments: &StatusArguments) -> anyhow::Result<ExitCode> {
    if arguments.retry_failed {
        let (again, left) = retry_failed(&arguments.folder)?;
        let rest = match left {
            0 => String::new(),
            left => format!("; {left} ended in trouble by themselves and would again, they are left as they are"),
        };
        say(&format!("{again} failed runs wait again{rest}"));
    }
    let found = status(&arguments.folder)?;
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&found)? + "\n"))?,
        Format::Text => print(&text(&found))?,
    }
    Ok(if found.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(outcome::NO) })
}

fn text(found: &SweepStatus) -> String {
    let SweepStatus { runs, done, running, waiting, failed, workers, .. } = found;
    let mut out =
        format!("{runs} runs: {done} done, {} running, {waiting} waiting, {} failed\n", running.len(), failed.len());
    if let Some(seconds) = found.seconds_per_run {
        out += &format!("{} a run", time(seconds));
        out += &match found.seconds_left {
            Some(left) => format!(", about {} left with {workers} workers\n", time(left)),
            None if *waiting > 0 => "; no worker is at it: limitpoint worker\n".to_owned(),
            None => "\n".to_owned(),
        };
    }
    for entry in running.iter().take(MOST) {
        let how_long =
            entry.seconds.map_or_else(|| "just begun".to_owned(), |seconds| format!("for {}", time(seconds)));
        let (run, host) = (in_one_line(&entry.run), in_one_line(&entry.host));
        out += &format!("  running  {run}  on {host} (process {}), {how_long}\n", entry.process);
    }
    out += &more(running.len(), "running");
    for entry in failed.iter().take(MOST) {
        out += &format!("  failed   {}: {}\n", in_one_line(&entry.run), in_one_line(&entry.reason));
    }
    out + &more(failed.len(), "failed")
}

fn more(count: usize, what: &str) -> String {
    if count > MOST { format!("  and {} more {what}; --format json lists all\n", count - MOST) } else { String::new() }
}

/// Seconds for people: 12.3 s, 4 min, 2.5 h, 3.1 days.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 90.0 => format!("{s:.1} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 129_600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}
