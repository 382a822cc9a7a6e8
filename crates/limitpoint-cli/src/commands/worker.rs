//! `limitpoint worker`: claims the runs of a sweep one after the other and runs them.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use limitpoint::engine::Device;
use limitpoint::experiments::{Departure, RunManifest, Status, Watcher, WorkOptions, WorkOutcome, status, work};
use serde_json::json;

use super::data::data_folder;
use super::{print, say};
use crate::args::Format;
use crate::{outcome, values};

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub struct WorkerArguments {
    /// The folder of a sweep that `limitpoint sweep` laid out.
    pub sweep: PathBuf,
    /// Leave after this time, with a checkpoint of the run it is at: 90s, 30m, 2h, 1d.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Threads for each run; results do not depend on it.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = values::at_least_one)]
    pub threads: usize,
    /// Where models are computed: cpu, or cuda for the first NVIDIA card. Between devices the last bits differ.
    #[arg(long, value_name = "DEVICE", default_value_t)]
    pub device: Device,
    /// Runs side by side, as so many workers of their own.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = values::at_least_one)]
    pub jobs: usize,
    /// Others may take over a run of this worker when they have seen no heartbeat for so long.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub lease: Duration,
    /// Folder with data sets; the environment variable LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// No lines on stderr.
    #[arg(long, short)]
    pub quiet: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &WorkerArguments) -> anyhow::Result<ExitCode> {
    let interrupt = leave_on_signals()?;
    leave_after(arguments.time, &interrupt);
    let threads = values::threads(Some(arguments.threads), arguments.quiet);
    let options = WorkOptions {
        threads,
        device: arguments.device,
        lease: arguments.lease,
        watcher: if arguments.quiet { &() } else { &Ends },
        interrupt: &interrupt,
        data_folder: data_folder(arguments.data_dir.as_deref()),
    };
    let outcome = side_by_side(&arguments.sweep, &options, arguments.jobs)?;
    tell(&arguments.sweep, &outcome, arguments.format)
}

/// Sets the flag when this time is over, if there is one.
pub fn leave_after(time: Option<Duration>, interrupt: &Arc<AtomicBool>) {
    if let Some(time) = time {
        let flag = Arc::clone(interrupt);
        std::thread::spawn(move || {
            std::thread::sleep(time);
            flag.store(true, Ordering::Relaxed);
        });
    }
}

/// Several workers in this process.
pub fn side_by_side(sweep: &Path, options: &WorkOptions, jobs: usize) -> anyhow::Result<WorkOutcome> {
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs)
            .map(|_| {
                scope.spawn(|| {
                    let outcome = work(sweep, options);
                    if outcome.is_err() {
                        // what keeps one from working keeps the others from it too
                        options.interrupt.store(true, Ordering::Relaxed);
                    }
                    outcome
                })
            })
            .collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut all: Option<WorkOutcome> = None;
    for outcome in outcomes {
        let outcome =
            outcome.map_err(|_| anyhow::anyhow!("a worker ended in a panic; its run can be taken over"))??;
        all = Some(all.map_or(outcome, |sum| WorkOutcome {
            finished: sum.finished + outcome.finished,
            failed: sum.failed + outcome.failed,
            taken_over: sum.taken_over + outcome.taken_over,
            departure: match (sum.departure, outcome.departure) {
                (Departure::Interrupted, _) | (_, Departure::Interrupted) => Departure::Interrupted,
                // the last to leave has seen that nothing was left
                (Departure::Complete, _) | (_, Departure::Complete) => Departure::Complete,
                _ => Departure::OthersRun,
            },
        }));
    }
    all.context("there is no worker")
}

fn tell(sweep: &Path, outcome: &WorkOutcome, format: Format) -> anyhow::Result<ExitCode> {
    match format {
        Format::Json => print(&(serde_json::to_string_pretty(&json!({ "folder": sweep, "worker": outcome }))? + "\n"))?,
        Format::Text => {
            let WorkOutcome { finished, failed, taken_over, departure } = outcome;
            let why = match departure {
                Departure::Complete => "the sweep is complete",
                Departure::OthersRun => "nothing waits, other workers are at the last runs",
                Departure::Interrupted => {
                    "its time was up or it was asked to leave; what it was at waits with a checkpoint"
                }
            };
            print(&format!("{finished} runs finished, {failed} failed, {taken_over} taken over: {why}\n"))?;
        }
    }
    let trouble = outcome.departure == Departure::Complete && !status(sweep)?.failed.is_empty();
    Ok(if trouble { ExitCode::from(outcome::NO) } else { ExitCode::SUCCESS })
}

/// One line for every run that ends.
pub struct Ends;

impl Watcher for Ends {
    fn note(&self, _: usize, text: &str) {
        say(text);
    }

    fn ended(&self, _: usize, manifest: &RunManifest) {
        let mark = match (manifest.status, manifest.healthy) {
            (Status::Finished, true) => "done",
            (Status::Interrupted, _) => "given back",
            _ => "TROUBLE",
        };
        let RunManifest { label, steps, log10_loss, timings, stop, .. } = manifest;
        say(&format!(
            "{}  {mark}  {steps} steps, log10 L {log10_loss:.2}, {:.1} s: {stop}",
            label.name, timings.seconds
        ));
    }
}

/// A flag that TERM, INT and USR1 set; the second INT ends at once.
#[cfg(unix)]
pub fn leave_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
    use signal_hook::flag;
    let interrupt = Arc::new(AtomicBool::new(false));
    // registered first, it looks at the flag before this signal sets it
    flag::register_conditional_shutdown(SIGINT, i32::from(outcome::INTERRUPTED), Arc::clone(&interrupt))
        .context("cannot listen to Ctrl-C")?;
    for signal in [SIGINT, SIGTERM, SIGUSR1] {
        flag::register(signal, Arc::clone(&interrupt)).with_context(|| format!("cannot listen to signal {signal}"))?;
    }
    Ok(interrupt)
}

#[cfg(not(unix))]
pub fn leave_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    super::run::catch_interrupts()
}

/// A time such as 90s, 30m, 2h, 1d; a number alone is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err("must be a time such as 90s, 30m, 2h or 1d".into()),
    };
    let seconds = values::positive(number).map_err(|_| "must be a time such as 90s, 30m, 2h or 1d".to_owned())? * scale;
    Duration::try_from_secs_f64(seconds).map_err(|_| "is too long".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        for (text, seconds) in [("90s", 90.0), ("30m", 1800.0), ("2h", 7200.0), ("1d", 86_400.0), ("0.5", 0.5)] {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
        }
        for text in ["", "m", "0", "-1s", "1w", "1 h", "1e400", "nan", "2h30m"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
