//! `limitpoint compare`: experiments or sweeps side by side, and whether equal runs came out equal.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use limitpoint::experiments::{
    Analysis, Comparison, Difference, ExperimentRecord, RunPair, SideBySide, analyse, compare_records,
};
use serde::Serialize;

use super::{in_one_line, print, print_as_is, table};
use crate::args::Format;

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Folders of experiments or sweeps; the others are compared with the first.
    #[arg(required = true, num_args = 1.., value_name = "FOLDER")]
    pub folders: Vec<PathBuf>,
    /// Only runs whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// A run of two folders, as JSON shows it.
#[derive(Debug, Serialize)]
struct Pair<'a> {
    folders: [&'a Path; 2],
    #[serde(flatten)]
    pair: &'a RunPair,
}

/// Most lines about single runs, of a kind.
const MOST: usize = 20;

/// Runs the verb.
pub fn run(arguments: &Compare) -> anyhow::Result<ExitCode> {
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|text| name.contains(text.as_str()));
    let load = |folder: &PathBuf| -> anyhow::Result<ExperimentRecord> {
        let mut record = ExperimentRecord::load(folder)?;
        record.runs.retain(|run| wanted(&run.name));
        Ok(record)
    };
    let records = arguments.folders.iter().map(load).collect::<anyhow::Result<Vec<_>>>()?;
    let mut all = ExperimentRecord { name: "comparison".into(), ..ExperimentRecord::default() };
    for (record, folder) in records.iter().zip(&arguments.folders) {
        for run in &record.runs {
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
    let Analysis { summary, failures, .. } = analyse(&all);
    let compared: Vec<([&Path; 2], Comparison)> = records
        .iter()
        .zip(&arguments.folders)
        .skip(1)
        .map(|(record, folder)| {
            ([arguments.folders[0].as_path(), folder.as_path()], compare_records(&records[0], record))
        })
        .collect();
    match arguments.format {
        Format::Json => {
            let pairs: Vec<Pair> = compared
                .iter()
                .flat_map(|(folders, found)| found.pairs.iter().map(|pair| Pair { folders: *folders, pair }))
                .collect();
            let others: Vec<_> = compared
                .iter()
                .map(|(folders, found)| {
                    let equal = found.pairs.iter().filter(|pair| pair.is_equal()).count();
                    serde_json::json!({
                        "folders": folders, "both": found.pairs.len(), "equal": equal, "only": found.only, "table": found.table,
                    })
                })
                .collect();
            let output = serde_json::json!({
                "summary": summary, "pairs": pairs, "failures": failures, "comparisons": others,
            });
            print(&(serde_json::to_string_pretty(&output)? + "\n"))?;
        }
        Format::Text => {
            if compared.is_empty() {
                print_as_is(&table::summary(&summary, table::colours()))?;
            }
            let mut text = String::new();
            for (folders, found) in &compared {
                text += &in_words(folders.map(short), found);
            }
            print(&(text + &table::failures(&failures, all.runs.len())))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn in_words([a, b]: [String; 2], found: &Comparison) -> String {
    let mut text = side_by_side([&a, &b], &found.table);
    let (equal, other): (Vec<&RunPair>, Vec<&RunPair>) = found.pairs.iter().partition(|pair| pair.is_equal());
    let runs = |count: usize| format!("{count} run{}", if count == 1 { "" } else { "s" });
    text += &format!(
        "\n{a} and {b} share {}: {} agree in every bit, {} do not; {} only in {a}, {} only in {b}\n",
        runs(found.pairs.len()),
        equal.len(),
        other.len(),
        found.only[0].len(),
        found.only[1].len()
    );
    for RunPair { run, difference, same_weights } in other.iter().take(MOST) {
        let run = in_one_line(run);
        text += &match (difference, same_weights) {
            (Some(Difference { column, step, values: [x, y] }), _) => {
                format!("  {run}: they part at step {step}: {} is {x:e} and {y:e}\n", in_one_line(column))
            }
            (None, Some(_)) => format!("  {run}: they agree in all measurements, but end with other weights\n"),
            (None, None) => format!("  {run}: they agree so far; not both are finished\n"),
        };
    }
    text += &more(other.len());
    for (folder, only) in [(&a, &found.only[0]), (&b, &found.only[1])] {
        for run in only.iter().take(MOST) {
            text += &format!("  only in {folder}: {}\n", in_one_line(run));
        }
        text += &more(only.len());
    }
    text
}

fn more(count: usize) -> String {
    if count > MOST { format!("  and {} more; --format json lists all\n", count - MOST) } else { String::new() }
}

/// Every quantity twice, then how far the second is from the first, relative to it.
fn side_by_side([a, b]: [&str; 2], found: &SideBySide) -> String {
    if found.rows.is_empty() {
        return String::new();
    }
    let mut lines = vec![vec![String::new(), "seeds".to_owned()]];
    for (column, label) in &found.columns {
        let label = if column == "log10_loss" { "log₁₀ L" } else { label };
        lines[0].extend([format!("{} in {a}", in_one_line(label)), format!("in {b}"), "apart".to_owned()]);
    }
    for row in &found.rows {
        let [x, y] = row.seeds;
        let seeds = if x == y { x.to_string() } else { format!("{x}, {y}") };
        let mut line = vec![in_one_line(&row.label), seeds];
        for ((column, _), [x, y]) in found.columns.iter().zip(&row.means) {
            line.extend([number(column, *x), number(column, *y), apart(*x, *y)]);
        }
        lines.push(line);
    }
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|place| lines.iter().map(|line| line[place].chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for line in &lines {
        let mut text = format!("{:<1$}", line[0], widths[0]);
        for (cell, width) in line.iter().zip(&widths).skip(1) {
            text += &format!("  {cell:>width$}");
        }
        out += text.trim_end();
        out.push('\n');
    }
    out
}

fn number(column: &str, value: f64) -> String {
    match column {
        _ if !value.is_finite() => "–".to_owned(),
        "log10_loss" => format!("{value:.2}"),
        "test_accuracy" => format!("{:.2} %", 100.0 * value),
        _ => format!("{value:.3e}"),
    }
}

/// `=` for equal bits, else the relative distance.
fn apart(x: f64, y: f64) -> String {
    match (x - y).abs() / x.abs().max(y.abs()) {
        _ if x.to_bits() == y.to_bits() => "=".to_owned(),
        distance if distance.is_finite() => format!("{distance:.0e}"),
        _ => "–".to_owned(),
    }
}

fn short(folder: &Path) -> String {
    in_one_line(&folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy())
}
