//! `limitpoint check`: certificates recomputed from data and weights alone, proofs checked from data alone, tangent files from
//! themselves, records of figures and tables from the weights beside them.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use limitpoint::experiments::{check_certificate, check_proof, check_tangent_file, is_proof, is_tangent_file};
use serde_json::json;

use super::data::data_folder;
use super::{certify, exhibits, print, prove};
use crate::args::Format;
use crate::outcome;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct Check {
    /// Certificates, proofs, tangent files, or records of `reproduce --scale paper`; data and weights are looked for where
    /// they name them.
    #[arg(required = true, num_args = 1.., value_name = "CERTIFICATE")]
    pub certificates: Vec<PathBuf>,
    /// For records: the folder of runs, where the weights beside a record are not all.
    #[arg(long, value_name = "FOLDER")]
    pub runs: Option<PathBuf>,
    /// Folder with data sets and data files, where those of the run are not found; LIMITPOINT_DATA otherwise.
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Check) -> anyhow::Result<ExitCode> {
    let data_folder = data_folder(arguments.data_dir.as_deref());
    let (mut text, mut output, mut all, mut valid) = (String::new(), Vec::new(), true, true);
    for path in &arguments.certificates {
        let cannot = || format!("cannot check {}", path.display());
        let checked = exhibits::check(path, arguments.runs.as_ref(), data_folder.as_deref()).with_context(cannot)?;
        if let Some((words, found, code)) = checked {
            text += &words;
            output.push(found);
            valid &= code != outcome::INVALID;
            all &= code == 0;
            continue;
        }
        if is_tangent_file(path).with_context(cannot)? {
            let checked = check_tangent_file(path).with_context(cannot)?;
            valid &= checked.disagreements.is_empty();
            let complaints: Vec<String> = checked.disagreements.iter().map(ToString::to_string).collect();
            let claims = &checked.file.claims;
            let name = path.display();
            text += &if complaints.is_empty() {
                let lines = claims.iter().map(|claim| {
                    format!("  {}: margin {:.6e}, τ at most {:.3e}\n", claim.norm, claim.margin, claim.tau)
                });
                format!("{name}: the tangent file holds\n{}  every number agrees\n", lines.collect::<String>())
            } else {
                let lines: String = complaints.iter().map(|complaint| format!("  {complaint}\n")).collect();
                format!("{name}: the tangent file does not hold\n{lines}")
            };
            let claims: Vec<_> = claims
                .iter()
                .map(|claim| json!({ "norm": claim.norm, "level": claim.level, "margin": claim.margin, "tau": claim.tau }))
                .collect();
            output.push(json!({
                "certificate": path,
                "verdict": "tangent",
                "claims": claims,
                "holds": complaints.is_empty(),
                "disagreements": complaints,
            }));
            continue;
        }
        if is_proof(path).with_context(cannot)? {
            let checked = check_proof(path, data_folder.as_deref()).with_context(cannot)?;
            valid &= checked.disagreements.is_empty();
            let complaints: Vec<String> = checked.disagreements.iter().map(ToString::to_string).collect();
            let run = &checked.document.run;
            text += &if complaints.is_empty() {
                format!("{run}: proven\n{}  every number agrees\n", prove::findings(&checked.document))
            } else {
                let lines: String = complaints.iter().map(|complaint| format!("  {complaint}\n")).collect();
                format!("{run}: the proof does not hold\n{lines}")
            };
            output.push(json!({
                "certificate": path,
                "run": run,
                "verdict": "proven",
                "holds": complaints.is_empty(),
                "disagreements": complaints,
            }));
            continue;
        }
        let checked = check_certificate(path, data_folder.as_deref()).with_context(cannot)?;
        all &= checked.is_certified();
        valid &= checked.disagreements.is_empty();
        let complaints: Vec<String> = checked.disagreements.iter().map(ToString::to_string).collect();
        text += &if complaints.is_empty() {
            certify::describe(&checked.certificate) + "  every number agrees\n"
        } else {
            let lines: String = complaints.iter().map(|complaint| format!("  {complaint}\n")).collect();
            format!("{}: the certificate does not hold\n{lines}", checked.certificate.run)
        };
        output.push(json!({
            "certificate": path,
            "run": checked.certificate.run,
            "verdict": checked.certificate.verdict.word(),
            "holds": complaints.is_empty(),
            "disagreements": complaints,
        }));
    }
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&output)? + "\n"))?,
        Format::Text => print(&text)?,
    }
    Ok(match (valid, all) {
        (false, _) => ExitCode::from(outcome::INVALID),
        (true, false) => ExitCode::from(outcome::NO),
        (true, true) => ExitCode::SUCCESS,
    })
}
