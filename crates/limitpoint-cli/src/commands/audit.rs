//! `limitpoint audit`: weights that somebody else trained.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use limitpoint::data::Task;
use limitpoint::engine::{Compute, Forward, cpu};
use limitpoint::experiments::{Audit, audit_weights, load_foreign_weights, save_tangent_file};
use limitpoint::models::{MarginMap, ModelSpec};
use limitpoint::norms::NormSpec;
use serde_json::json;

use super::solve::Source;
use super::{in_one_line, print, say};
use crate::args::Format;

/// Arguments of `audit`.
#[derive(Debug, Args)]
pub struct AuditArguments {
    /// A safetensors file, in double or single precision, with the names of limitpoint or of PyTorch.
    #[arg(value_name = "WEIGHTS")]
    pub weights: PathBuf,
    /// The examples it was trained on, with labels ±1 or classes 0, 1, 2, ….
    #[command(flatten)]
    pub source: Source,
    /// The network, such as 'relu 50', linear or 'network(widths=[64, 64], activation=relu)'.
    #[arg(long)]
    pub model: String,
    /// Norms to look at; may be repeated.
    #[arg(long = "norm", value_name = "NORM", default_values = ["l1", "l2", "linf", "spectral"])]
    pub norms: Vec<String>,
    /// Also write a tangent file, which `limitpoint check` verifies without the weights and the data.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &AuditArguments) -> anyhow::Result<ExitCode> {
    let model: ModelSpec = arguments.model.parse()?;
    let norms = arguments.norms.iter().map(|norm| norm.parse::<NormSpec>()).collect::<Result<Vec<_>, _>>()?;
    let data = arguments.source.load(Task::Auto)?;
    let outputs = MarginMap::new(&data.targets).outputs();
    let layout = cpu::bind(&model, &data.inputs, outputs, Compute::default())?.layout().clone();
    let weights = load_foreign_weights(&arguments.weights, &layout)?;
    let cannot = || format!("cannot audit {}", arguments.weights.display());
    let (audit, file) = audit_weights(&weights, &data, &model, &norms).with_context(cannot)?;
    let written = match (&arguments.out, &file) {
        (Some(path), Some(file)) => {
            save_tangent_file(path, file)?;
            Some(path)
        }
        (Some(_), None) => {
            say("no tangent file is written: a preactivation lies on a kink, or the gradients are too many");
            None
        }
        (None, _) => None,
    };
    print(&match arguments.format {
        Format::Json => serde_json::to_string_pretty(&json!({ "audit": audit, "tangent_file": written }))? + "\n",
        Format::Text => text(&audit) + &written.map_or_else(String::new, |path| format!("\n{}\n", path.display())),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn text(audit: &Audit) -> String {
    let read: Vec<String> = audit.tensors.iter().map(|(from, to)| format!("{} as {to}", in_one_line(from))).collect();
    let single = if audit.rounded { ", in single precision" } else { "" };
    let mut text = format!("read {}{single}\n", read.join(", "));
    text += &format!(
        "{} examples, log10 L {:.2}, smallest margin {:.6e}, degree {}\n\n",
        audit.examples, audit.log10_loss, audit.smallest_margin, audit.degree
    );
    let width = audit.norms.iter().map(|norm| norm.norm.chars().count()).max().unwrap_or(0).max(4);
    text += &format!(
        "{:width$}  {:>12}  {:>10}  {:>10}  {:>7}  {:>5}\n",
        "norm", "margin", "τ at most", "at least", "support", "kinks"
    );
    for norm in &audit.norms {
        text += &format!(
            "{:width$}  {:>12.6e}  {:>10.3e}  {:>10.3e}  {:>7}  {:>5}\n",
            norm.norm, norm.margin, norm.tau, norm.tau_lower, norm.support, norm.kinks
        );
    }
    text + "\nτ is 0 at a KKT point of the margin problem in a norm\n"
}
