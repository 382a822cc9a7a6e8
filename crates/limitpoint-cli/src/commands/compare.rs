//! `limitpoint compare`: experiments side by side, and whether equal runs came out equal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use limitpoint::experiments::{ExperimentRecord, Metrics, analyse};
use serde::Serialize;

use super::{print, table};
use crate::args::Format;

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Folders of experiments.
    #[arg(required = true, num_args = 1.., value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// Only runs whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Two runs of the same name in two folders.
#[derive(Debug, Serialize)]
struct Pair {
    run: String,
    folders: [PathBuf; 2],
    /// Nothing if all numbers are the same, bit for bit.
    difference: Option<Difference>,
    /// Whether the weights they ended with are the same, bit for bit; nothing while a run goes on.
    same_weights: Option<bool>,
}

/// Where two tables part.
#[derive(Debug, PartialEq, Serialize)]
struct Difference {
    column: String,
    step: f64,
    values: [f64; 2],
}

/// Runs the verb.
pub fn run(arguments: &Compare) -> anyhow::Result<ExitCode> {
    let records = arguments
        .folders
        .iter()
        .map(|folder| Ok(ExperimentRecord::load(folder)?))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|text| name.contains(text.as_str()));
    let mut all = ExperimentRecord { name: "comparison".into(), ..ExperimentRecord::default() };
    for (record, folder) in records.iter().zip(&arguments.folders) {
        for run in record.runs.iter().filter(|run| wanted(&run.name)) {
            let mut run = run.clone();
            if records.len() > 1 {
                run.optimiser = format!("{} {}", short(folder), run.optimiser);
            }
            all.runs.push(run);
        }
    }
    if all.runs.is_empty() {
        bail!("no run to compare{}", arguments.only.as_ref().map_or_else(String::new, |t| format!(" contains '{t}'")));
    }
    let limitpoint::experiments::Analysis { summary, failures, .. } = analyse(&all);
    let pairs: Vec<Pair> = records
        .iter()
        .zip(&arguments.folders)
        .skip(1)
        .flat_map(|(record, folder)| {
            let first = (&records[0], &arguments.folders[0]);
            record.runs.iter().filter(|run| wanted(&run.name)).filter_map(move |run| {
                let twin = first.0.runs.iter().find(|twin| twin.name == run.name)?;
                let difference = first_difference(&twin.metrics, &run.metrics);
                let same_weights = twin.weights.as_ref().zip(run.weights.as_ref()).map(|(a, b)| a == b);
                let folders = [first.1.clone(), folder.clone()];
                Some(Pair { run: run.name.clone(), folders, difference, same_weights })
            })
        })
        .collect();
    match arguments.format {
        Format::Json => {
            let output = serde_json::json!({ "summary": summary, "pairs": pairs, "failures": failures });
            print(&(serde_json::to_string_pretty(&output)? + "\n"))?;
        }
        Format::Text => {
            let mut text = table::summary(&summary, table::colours());
            text += &table::failures(&failures, all.runs.len());
            for Pair { run, folders: [a, b], difference, same_weights } in &pairs {
                let (a, b) = (short(a), short(b));
                text += &match difference {
                    None => match same_weights {
                        Some(true) => format!("{run}: {a} and {b} agree in every bit\n"),
                        Some(false) => {
                            format!("{run}: {a} and {b} agree in all measurements, but end with other weights\n")
                        }
                        None => format!("{run}: {a} and {b} agree so far; not both are finished\n"),
                    },
                    Some(Difference { column, step, values: [x, y] }) => {
                        format!("{run}: {a} and {b} part at step {step}: {column} is {x:e} and {y:e}\n")
                    }
                };
            }
            print(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn short(folder: &Path) -> String {
    folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}

/// The first row, and in it the first column, in which two tables are not the same.
fn first_difference(a: &Metrics, b: &Metrics) -> Option<Difference> {
    let steps = if a.len() >= b.len() { a.column("step") } else { b.column("step") };
    let names = || a.columns.iter().chain(b.columns.iter().filter(|name| !a.columns.contains(name)));
    for (row, &step) in steps.iter().enumerate() {
        for name in names() {
            let value = |table: &Metrics| table.column(name).get(row).copied().unwrap_or(f64::NAN);
            let (x, y) = (value(a), value(b));
            if x.to_bits() != y.to_bits() && !(x.is_nan() && y.is_nan()) {
                return Some(Difference { column: name.clone(), step, values: [x, y] });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_part_at_the_first_other_bit() {
        let table = |x: &[f64]| Metrics {
            columns: vec!["step".into(), "x".into()],
            values: vec![(0..x.len()).map(|i| i as f64).collect(), x.to_vec()],
        };
        let a = table(&[1.0, f64::NAN, 3.0]);
        assert_eq!(first_difference(&a, &a.clone()), None);
        let found = first_difference(&a, &table(&[1.0, f64::NAN, 3.0000000000000004])).unwrap();
        assert_eq!((found.column.as_str(), found.step), ("x", 2.0));
        assert_eq!(first_difference(&a, &table(&[1.0])).unwrap().step, 1.0);
    }
}
