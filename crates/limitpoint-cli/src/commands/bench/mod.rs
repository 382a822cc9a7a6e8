//! `limitpoint bench`: steps per second, and ratios against other engines measured in the same minutes.

mod arguments;
mod attack;
mod conv;
mod epoch;
mod figure_1;
mod peer;
mod scaling;
mod shapes;
mod solve;
mod workloads;

use std::process::ExitCode;

use serde::Serialize;

pub use self::arguments::Bench;
use self::arguments::Subject;
use crate::args::Format;
use crate::commands::print;
use crate::values;

/// Runs the verb.
pub fn run(bench: &Bench) -> anyhow::Result<ExitCode> {
    let subject = bench.subject()?;
    let bench = &Bench { threads: values::threads(Some(bench.threads), false), ..bench.clone() };
    let folder = std::env::temp_dir().join(format!("limitpoint-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = match subject {
        Subject::Workloads(specs) => workloads::measure(bench, &specs, &folder)
            .and_then(|output| show(bench, &output, &workloads::text(&output))),
        Subject::Shapes => {
            shapes::measure(bench, &folder).and_then(|output| show(bench, &output, &shapes::text(&output)))
        }
        Subject::Solve => solve::measure(bench, &folder).and_then(|lines| show(bench, &lines, &solve::text(&lines))),
        Subject::Attack => attack::measure(bench, &folder).and_then(|lines| show(bench, &lines, &attack::text(&lines))),
        Subject::Conv => conv::measure(bench, &folder).and_then(|lines| show(bench, &lines, &conv::text(&lines))),
        Subject::Figure1 => {
            figure_1::measure(bench, &folder).and_then(|lines| show(bench, &lines, &figure_1::text(&lines)))
        }
        Subject::Epoch => epoch::measure(bench, &folder).and_then(|line| show(bench, &line, &epoch::text(&line))),
    };
    std::fs::remove_dir_all(&folder).ok();
    outcome.map(|()| ExitCode::SUCCESS)
}

fn show(bench: &Bench, value: &impl Serialize, text: &str) -> anyhow::Result<()> {
    match bench.format {
        Format::Json => print(&(serde_json::to_string_pretty(value)? + "\n")),
        Format::Text => print(text),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { 0.5 * (values[middle - 1] + values[middle]) }
}
