//! `limitpoint solve interpolate`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use limitpoint::data::{Dataset, Targets, Task, read_npy};
use limitpoint::linalg::Matrix;
use limitpoint::params::ParamLayout;
use limitpoint::potentials::PotentialSpec;
use limitpoint::reference::{Interpolation, InterpolationTarget, ReferenceError, interpolate, stack_equations};
use serde_json::{Value, json};

use super::{Source, lines, norm, shown};
use crate::args::Format;
use crate::commands::{print, say};

/// Arguments of `solve interpolate`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("geometry").required(true).args(["norm", "potential"])))]
pub struct Interpolate {
    /// The examples, with real targets.
    #[command(flatten)]
    pub source: Source,
    /// Make ‖w − w₀‖ small: l1, l2, linf, lp (with --p), spectral, …; see `limitpoint list norms`.
    #[arg(long)]
    pub norm: Option<String>,
    /// The exponent of lp, such as 3 or 4/3.
    #[arg(long, requires = "norm")]
    pub p: Option<String>,
    /// Make the Bregman divergence to w₀ small: entropy, hyperbolic:0.1, smoothed:3,1, …; see `limitpoint list
    /// potentials`.
    #[arg(long)]
    pub potential: Option<PotentialSpec>,
    /// w₀: an npy file, or numbers with commas between them; without it 0 for a norm, and the minimum of a potential.
    #[arg(long, value_name = "W0", allow_hyphen_values = true)]
    pub start: Option<String>,
    /// Also require the weights to sum to this, such as 1 for the simplex.
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub sum: Option<f64>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Interpolate) -> anyhow::Result<ExitCode> {
    let (target, name) = match (&arguments.norm, &arguments.potential) {
        (Some(name), _) => {
            let norm = norm(name, arguments.p.as_deref())?;
            let text = norm.to_string();
            (InterpolationTarget::Norm(norm), ("norm", text))
        }
        (None, Some(potential)) => {
            (InterpolationTarget::Potential(potential.clone()), ("potential", potential.to_string()))
        }
        (None, None) => bail!("name a norm with --norm or a potential with --potential"),
    };
    let data = arguments.source.load(Task::Regression)?;
    let (x, y, layout) = equations(&data, arguments.sum)?;
    let start = arguments.start.as_deref().map(|text| read_start(text, &layout)).transpose()?;
    let described = json!({ "data": data.name, name.0: name.1, "started": start.is_some() });
    match interpolate(&x, &y, &target, &layout, start.as_deref()) {
        Ok(found) => {
            print(&match arguments.format {
                Format::Json => serde_json::to_string_pretty(&merged(described, answer(&found, &layout)))? + "\n",
                Format::Text => text(&found, &data, &layout, &name, start.is_some()),
            })?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error @ (ReferenceError::Inconsistent { .. } | ReferenceError::OutsideDomain { .. })) => {
            say(&format!("error: {error}"));
            if arguments.format == Format::Json {
                let refused = merged(described, refusal(&error));
                print(&(serde_json::to_string_pretty(&refused)? + "\n"))?;
            }
            Ok(ExitCode::from(1))
        }
        Err(error) => Err(error.into()),
    }
}

/// X, y and the layout of w: a matrix if the examples are matrices.
fn equations(data: &Dataset, sum: Option<f64>) -> anyhow::Result<(Matrix, Vec<f64>, ParamLayout)> {
    let (Targets::Values(y) | Targets::Binary(y)) = &data.targets else {
        bail!("{} has classes, but equations need one real target per example; use `solve margin`", data.name);
    };
    let layout = match data.input_shape[..] {
        [rows, columns] => ParamLayout::new([("w", rows, columns)])?,
        _ => ParamLayout::new([("w", 1, data.dimension())])?,
    };
    let Some(sum) = sum else { return Ok((data.dense()?.into_owned(), y.clone(), layout)) };
    let ones = Matrix::from_vec(1, data.dimension(), vec![1.0; data.dimension()])?;
    let (x, y) = stack_equations((&*data.dense()?, y), (&ones, &[sum]))?;
    Ok((x, y, layout))
}

/// Numbers with commas between them, or the array of a file.
fn read_start(text: &str, layout: &ParamLayout) -> anyhow::Result<Vec<f64>> {
    let numbers: Option<Vec<f64>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    let values = match numbers {
        Some(values) => values,
        None => read_npy(Path::new(text)).context("--start takes an npy file, or numbers such as 1,0.5")?.1,
    };
    layout.check(&values).with_context(|| format!("--start {text} does not fit the data"))?;
    Ok(values)
}

fn answer(found: &Interpolation, layout: &ParamLayout) -> Value {
    let block = &layout.blocks()[0];
    json!({
        "status": "optimal",
        "objective": found.objective,
        "lower_bound": found.lower_bound,
        "gap": found.gap(),
        "residual": found.residual,
        "stationarity": found.stationarity,
        "rank": found.rank,
        "iterations": found.iterations,
        "shape": [block.rows, block.cols],
        "weights": found.weights,
        "multipliers": found.multipliers,
    })
}

fn refusal(error: &ReferenceError) -> Value {
    match error {
        ReferenceError::Inconsistent { residual, equations, rank } => json!({
            "status": "inconsistent", "error": error.to_string(), "weights": Value::Null,
            "residual": residual, "equations": equations, "rank": rank,
        }),
        _ => json!({ "status": "outside-domain", "error": error.to_string(), "weights": Value::Null }),
    }
}

fn merged(mut first: Value, second: Value) -> Value {
    if let (Value::Object(first), Value::Object(second)) = (&mut first, second) {
        first.extend(second);
    }
    first
}

fn text(
    found: &Interpolation,
    data: &Dataset,
    layout: &ParamLayout,
    (kind, name): &(&str, String),
    started: bool,
) -> String {
    let block = &layout.blocks()[0];
    let weights = if block.rows == 1 { block.cols.to_string() } else { format!("{}x{}", block.rows, block.cols) };
    let objective = match (*kind, started) {
        ("norm", false) => "‖w‖",
        ("norm", true) => "‖w − w₀‖",
        (_, false) => "R(w)",
        (_, true) => "D(w, w₀)",
    };
    let rows = format!("{} equations of rank {}", found.multipliers.len(), found.rank);
    lines(&[
        ("data", format!("{}: {rows}, {weights} weights", data.name)),
        (kind, name.clone()),
        ("status", "optimal".to_owned()),
        ("weights", shown(&found.weights)),
        ("objective", format!("{objective} = {}", found.objective)),
        ("gap", format!("{:.1e}, to the bound that the multipliers prove", found.gap())),
        ("residual", format!("{:.1e}, ‖Xw − y‖/‖y‖", found.residual)),
        ("stationarity", format!("{:.1e}, after {} steps", found.stationarity, found.iterations)),
    ])
}
