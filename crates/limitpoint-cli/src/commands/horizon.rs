//! `limitpoint horizon`: what mirror flow with a potential tends to.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use limitpoint::experiments::write_atomically;
use limitpoint::potentials::{ScalarCurve, Survey};
use limitpoint::report::horizon_page;

use super::{print, say};
use crate::args::Format;
use crate::outcome::NO;

/// Arguments of `horizon`.
#[derive(Debug, Args)]
pub struct HorizonArguments {
    /// A formula in t, such as "t*asinh(t/0.3) - sqrt(t^2 + 0.09)", or a potential by name, such as hyperbolic:0.1.
    #[arg(value_name = "POTENTIAL", allow_hyphen_values = true)]
    pub potential: String,
    /// Where horizon.html and horizon.json are written.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &HorizonArguments) -> anyhow::Result<ExitCode> {
    let survey = Survey::of(&arguments.potential.parse::<ScalarCurve>()?);
    let json = serde_json::to_string_pretty(&survey)? + "\n";
    match arguments.format {
        Format::Json => print(&json)?,
        Format::Text => print(&describe(&survey))?,
    }
    if let Some(folder) = &arguments.out {
        std::fs::create_dir_all(folder)
            .map_err(|error| anyhow::anyhow!("cannot write to {}: {error}; choose --out", folder.display()))?;
        write_atomically(&folder.join("horizon.json"), json.as_bytes())?;
        let page = folder.join("horizon.html");
        write_atomically(&page, horizon_page(&survey).as_bytes())?;
        say(&page.display().to_string());
    }
    Ok(if survey.has_limit() { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

/// The answer, what stands behind it, and the gauge at finite scales.
fn describe(survey: &Survey) -> String {
    let mut text = format!("{}\n\n{}\n\n", survey.title, survey.answer);
    if let Some([place, value]) = survey.convex.smallest {
        text += &format!(
            "convex        {}; least R″ {value:.4e} at t = {place:.3e}, looked at from {:.0e} to {:.0e}\n",
            if survey.convex.holds { "yes" } else { "no" },
            survey.convex.range[0],
            survey.convex.range[1]
        );
    }
    if let Some(condition) = &survey.curvature_condition {
        let worst = condition.shape.smallest.map_or_else(String::new, |[place, value]| {
            format!("; least (αQ − θᵀHθ)/max(αQ, θᵀHθ) {value:.4e} at t = {place:.3e}")
        });
        text += &format!("αQ ≥ θᵀHθ     {}{worst}\n", if condition.shape.holds { "yes" } else { "no" });
    }
    if let Some(limit) = &survey.limit {
        let side = |value: Option<f64>| value.map_or_else(|| "outside the domain".to_owned(), |c| format!("{c:.6}"));
        text += &format!("degree        {:.8} ± {:.0e}\n", limit.degree, limit.degree_error);
        text += &format!("coefficients  {} for t > 0, {} for t < 0\n", side(limit.positive), side(limit.negative));
        text += &format!("horizon       {}\n", limit.formula);
    }
    for remark in &survey.remarks {
        text += &format!("\n{remark}");
    }
    if !survey.gauges.is_empty() {
        text += "\n\n     scale s  gauge(s,0)/s  gauge(s,s)/s  gap to the limit  local degree\n";
        for row in &survey.gauges {
            text += &format!(
                "{:>12.0e}  {:>12.6}  {:>12.6}  {:>15.4} %  {:>12.6}\n",
                row.scale,
                row.axis,
                row.diagonal,
                row.gap_percent(),
                row.local_degree
            );
        }
    } else {
        text.push('\n');
    }
    text
}
