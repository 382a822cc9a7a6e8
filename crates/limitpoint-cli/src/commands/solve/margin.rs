//! `limitpoint solve margin`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use limitpoint::data::{Dataset, Targets, Task};
use limitpoint::norms::NormSpec;
use limitpoint::reference::{MarginProblem, MarginStatus, MaxMargin, max_margin, max_margin_of};
use serde_json::{Value, json};

use super::{Source, lines, norm, shown};
use crate::args::Format;
use crate::commands::print;

/// Arguments of `solve margin`.
#[derive(Debug, Args)]
pub struct Margin {
    /// The examples, with labels ±1 or classes 0, 1, 2, ….
    #[command(flatten)]
    pub source: Source,
    /// l1, l2, linf, lp (with --p), quadratic:1:2, group21, group2inf, spectral, nuclear, max(…) or sum(…); see
    /// `limitpoint list norms`.
    #[arg(long, default_value = "l2")]
    pub norm: String,
    /// The exponent of lp, such as 3 or 4/3.
    #[arg(long)]
    pub p: Option<String>,
    /// How the labels of a file are read.
    #[arg(long, value_enum, default_value_t)]
    pub task: Labels,
    /// Only symmetric positive semidefinite weights, for square examples.
    #[arg(long)]
    pub semidefinite: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// How labels are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Labels {
    /// By their values: −1 and +1, or classes from 0.
    #[default]
    Auto,
    /// −1 and +1, or 0 and 1.
    Binary,
    /// Classes 0, 1, 2, ….
    Classes,
}

/// Runs the verb.
pub fn run(arguments: &Margin) -> anyhow::Result<ExitCode> {
    let task = match arguments.task {
        Labels::Auto => Task::Auto,
        Labels::Binary => Task::Binary,
        Labels::Classes => Task::Classes,
    };
    let norm = norm(&arguments.norm, arguments.p.as_deref())?;
    let data = arguments.source.load(task)?;
    let found = match arguments.semidefinite {
        true => max_margin(&MarginProblem::linear(&data, norm.clone())?.semidefinite()?)?,
        false => max_margin_of(&data, norm.clone())?,
    };
    let answer = Answer { data: &data, norm: &norm, semidefinite: arguments.semidefinite, found: &found };
    print(&match arguments.format {
        Format::Json => serde_json::to_string_pretty(&answer.json())? + "\n",
        Format::Text => answer.text(),
    })?;
    Ok(if found.status == MarginStatus::Optimal { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// A solution with what it belongs to.
struct Answer<'a> {
    data: &'a Dataset,
    norm: &'a NormSpec,
    semidefinite: bool,
    found: &'a MaxMargin,
}

impl Answer<'_> {
    /// Whether there is a direction to speak of.
    fn separable(&self) -> bool {
        self.found.status != MarginStatus::NotSeparable
    }

    /// Rows and columns of the weights.
    fn shape(&self) -> (usize, usize) {
        match (&self.data.targets, &self.data.input_shape[..]) {
            (Targets::Classes { count, .. }, _) => (*count, self.data.dimension()),
            (_, [rows, columns]) => (*rows, *columns),
            _ => (1, self.data.dimension()),
        }
    }

    /// The example of a row and, of several classes, the class it is told from.
    fn example(&self, row: usize) -> (usize, Option<usize>) {
        match &self.data.targets {
            Targets::Classes { labels, count } => {
                let (example, place) = (row / (count - 1), row % (count - 1));
                (example, Some(if place < labels[example] { place } else { place + 1 }))
            }
            _ => (row, None),
        }
    }

    fn json(&self) -> Value {
        let found = self.found;
        let support: Vec<Value> = found
            .support
            .iter()
            .map(|&row| {
                let (example, other) = self.example(row);
                json!({ "example": example, "against": other, "weight": found.dual[row] })
            })
            .collect();
        let (rows, columns) = self.shape();
        let separable = self.separable();
        let known = |value: Value| if found.uniqueness.known { value } else { Value::Null };
        let only = |value: Value| if separable { value } else { Value::Null };
        json!({
            "data": self.data.name,
            "norm": self.norm.to_string(),
            "semidefinite": self.semidefinite,
            "status": found.status.to_string(),
            "margin": only(found.margin.into()),
            "gap": only((found.bracket.upper - found.bracket.lower).into()),
            "lower": only(found.bracket.lower.into()),
            "upper": found.bracket.upper,
            "relative_gap": only(found.bracket.relative_gap().into()),
            "shape": [rows, columns],
            "direction": only(json!(found.direction)),
            "direction_low": only(json!(found.direction_low)),
            "dual": found.dual,
            "dual_low": found.dual_low,
            "slack": found.slack,
            "support": found.support,
            "support_examples": support,
            "residual": if separable { Value::Null } else { found.bracket.upper.into() },
            "unique": known(found.uniqueness.unique.into()),
            "face_dimension": known(found.uniqueness.face_dimension.into()),
            "face": known(json!(found.uniqueness.face)),
            "evidence": found.uniqueness.evidence,
            "iterations": found.iterations,
        })
    }

    fn text(&self) -> String {
        let found = self.found;
        let (rows, columns) = self.shape();
        let cone = if self.semidefinite { ", positive semidefinite" } else { "" };
        let weights = if rows == 1 { columns.to_string() } else { format!("{rows}x{columns}") };
        let size = format!("{} examples, {weights} weights", self.data.len());
        let mut pairs = vec![
            ("data", format!("{}: {size}", self.data.name)),
            ("norm", format!("{}{cone}", self.norm)),
            ("status", found.status.to_string()),
        ];
        if self.separable() {
            let (lower, upper) = (found.bracket.lower, found.bracket.upper);
            pairs.push(("margin", found.margin.to_string()));
            let gap = format!("{:.1e} ({:.1e} of it)", upper - lower, found.bracket.relative_gap());
            pairs.push(("gap", format!("{gap}, proven between {lower} and {upper}")));
            pairs.push(("direction", shown(&found.direction)));
        } else {
            pairs.push((
                "residual",
                format!("{:.1e}, the dual norm of the weighted sum of all rows", found.bracket.upper),
            ));
        }
        let name = |row: &usize| match self.example(*row) {
            (example, None) => format!("{example} ({:.6})", found.dual[*row]),
            (example, Some(other)) => format!("{example}/{other} ({:.6})", found.dual[*row]),
        };
        let mut support: Vec<String> = found.support.iter().take(8).map(name).collect();
        if found.support.len() > 8 {
            support.push(format!("… and {} more", found.support.len() - 8));
        }
        let what = if matches!(self.data.targets, Targets::Classes { .. }) { "example/class" } else { "example" };
        pairs.push(("support", format!("{} rows, {what} (weight): {}", found.support.len(), support.join(" "))));
        if found.status == MarginStatus::Optimal {
            let unique = &found.uniqueness;
            let answer = match (unique.known, unique.unique) {
                (false, _) => String::new(),
                (true, true) => "yes; ".to_owned(),
                (true, false) => format!("no, the maximisers form a face of dimension {}; ", unique.face_dimension),
            };
            pairs.push(("unique", answer + &unique.evidence));
        }
        lines(&pairs)
    }
}
