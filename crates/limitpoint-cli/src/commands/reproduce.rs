//! `limitpoint reproduce`: the claims of the papers, tried out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use limitpoint::claims::{Claim, ClaimRecord, Lab, Scale, claims, find_claims, open_claims};
use limitpoint::experiments::write_atomically;
use limitpoint::report::{gallery, sketch_figure};
use serde_json::json;

use super::data::data_folder;
use super::{print, say};
use crate::args::Format;
use crate::outcome::NO;

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// Papers and claims, such as `B` or `B.thm5`; all that can be run by default.
    #[arg(value_name = "CLAIM")]
    pub ids: Vec<String>,
    /// List the claims of all papers instead, and whether they can be run.
    #[arg(long)]
    pub list: bool,
    /// How much is run.
    #[arg(long, value_enum, default_value_t)]
    pub scale: ScaleWord,
    /// Print every comparison.
    #[arg(long)]
    pub checks: bool,
    /// Where claims.json, gallery.html and figures/ are written.
    #[arg(long, value_name = "FOLDER", default_value = "runs/reproduce")]
    pub out: PathBuf,
    /// Folder with data sets, for claims about MNIST; the environment variable LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// The scales as words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ScaleWord {
    /// Minutes for a paper.
    #[default]
    Quick,
    /// Everything.
    Full,
}

/// Runs the verb.
pub fn run(arguments: &Reproduce) -> anyhow::Result<ExitCode> {
    let chosen = choose(&arguments.ids)?;
    if arguments.list {
        list(arguments, &chosen)?;
        return Ok(ExitCode::SUCCESS);
    }
    // before hours of work, not after
    std::fs::create_dir_all(arguments.out.join("figures"))
        .map_err(|error| anyhow::anyhow!("cannot write to {}: {error}; choose --out", arguments.out.display()))?;
    let lab = Lab::new(match arguments.scale {
        ScaleWord::Quick => Scale::Quick,
        ScaleWord::Full => Scale::Full,
    })
    .with_mnist(mnist(arguments.data_dir.as_deref()));
    let mut records = Vec::new();
    for claim in &chosen {
        let record = claim.run(&lab);
        match arguments.format {
            Format::Json => say(&line(&record)),
            Format::Text => print(&describe(&record, arguments.checks))?,
        }
        records.push(record);
    }
    let page = write(&arguments.out, &arguments.ids, &records)?;
    let expected = records.iter().filter(|record| record.as_expected).count();
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&json!({ "claims": records }))? + "\n"))?,
        Format::Text => {
            print(&format!("\n{expected} of {} verdicts as expected\n{}\n", records.len(), page.display()))?;
        }
    }
    Ok(if expected == records.len() { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

/// Where MNIST is: in the folder of data sets, or in the one that several programs share.
fn mnist(chosen: Option<&Path>) -> Option<PathBuf> {
    let shared = std::env::var_os("LIMITPOINT_SHARED_DATA").map(PathBuf::from);
    data_folder(chosen).into_iter().chain(shared).map(|folder| folder.join("mnist")).find(|folder| folder.is_dir())
}

/// The claims that ids name, each once, in the order of the papers.
fn choose(ids: &[String]) -> anyhow::Result<Vec<Claim>> {
    if ids.is_empty() {
        return Ok(claims());
    }
    let mut named = Vec::new();
    for id in ids {
        named.extend(find_claims(id)?.into_iter().map(|claim| claim.id));
    }
    Ok(claims().into_iter().filter(|claim| named.contains(&claim.id)).collect())
}

fn list(arguments: &Reproduce, chosen: &[Claim]) -> anyhow::Result<()> {
    let all = arguments.ids.is_empty();
    let open = if all { open_claims() } else { Vec::new() };
    if arguments.format == Format::Json {
        let ready = chosen.iter().map(|claim| {
            let ids: Vec<&str> = std::iter::once(claim.id).chain(claim.covers.iter().copied()).collect();
            json!({ "ids": ids, "statement": claim.statement, "state": "ready", "printed": claim.printed(),
                    "experiments": claim.experiments })
        });
        let open = open.iter().map(|entry| json!({ "ids": entry.ids, "statement": entry.statement, "state": "open" }));
        let claims: Vec<_> = ready.chain(open).collect();
        return print(&(serde_json::to_string_pretty(&json!({ "claims": claims }))? + "\n"));
    }
    let mut text = String::new();
    for claim in chosen {
        let covers =
            if claim.covers.is_empty() { String::new() } else { format!(" (with {})", claim.covers.join(", ")) };
        text += &format!("ready  {:<18} {}{covers}\n", claim.id, claim.statement);
    }
    for entry in &open {
        text += &format!("open   {:<18} {}\n", entry.ids[0], entry.statement);
    }
    text += &format!("\n{} can be run, {} of the catalogue are still open\n", chosen.len(), open.len());
    print(&text)
}

/// One claim on one line.
fn line(record: &ClaimRecord) -> String {
    let mark = if record.as_expected { "✓" } else { "✗" };
    let holding = record.checks.iter().filter(|check| check.holds).count();
    format!(
        "{mark} {:<18} {:<10} {:>3} of {:>3} checks  {:>6.1} s",
        record.id,
        record.verdict,
        holding,
        record.checks.len(),
        record.seconds
    )
}

/// A claim with its statement and the comparisons that fail, or all of them.
fn describe(record: &ClaimRecord, all: bool) -> String {
    let mut text = format!("{}\n    {}\n", line(record), record.statement);
    for check in record.checks.iter().filter(|check| all || !check.holds) {
        let mark = if check.holds { "holds" } else { "fails" };
        text += &format!("    {mark}  {}: {}, expected {}\n", check.what, check.measured, check.expected);
    }
    text
}

/// Writes claims.json, the figures and the page.
fn write(folder: &Path, ids: &[String], records: &[ClaimRecord]) -> anyhow::Result<PathBuf> {
    let text = serde_json::to_string_pretty(&json!({ "claims": records }))? + "\n";
    write_atomically(&folder.join("claims.json"), text.as_bytes())?;
    for sketch in records.iter().flat_map(|record| &record.figures) {
        if let Some(figure) = sketch_figure(sketch) {
            write_atomically(&folder.join("figures").join(format!("{}.svg", figure.name)), figure.svg.as_bytes())?;
        }
    }
    let title = match ids {
        [] => "Claims of the papers".to_owned(),
        ids if ids.iter().all(|id| id.len() == 1) => format!("Claims of paper {}", ids.join(", ")),
        ids => format!("Claims {}", ids.join(", ")),
    };
    let page = folder.join("gallery.html");
    write_atomically(&page, gallery(&title, records).as_bytes())?;
    Ok(page)
}
