//! `limitpoint rates`: exponents of loss, norm and margin gap over time, against the theorems.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use limitpoint::diagnostics::{Approach, RateBound, RateReport, RateSettings};
use limitpoint::experiments::{ExperimentRecord, rates};
use limitpoint::norms::NormSpec;

use super::print;
use crate::args::Format;
use crate::values;

/// Arguments of `rates`.
#[derive(Debug, Args)]
pub struct Rates {
    /// The folder of an experiment.
    pub folder: PathBuf,
    /// Confidence of the intervals.
    #[arg(long, default_value_t = RateSettings::default().confidence, value_parser = values::positive)]
    pub confidence: f64,
    /// Share of the span of ln ln t that counts as late.
    #[arg(long, default_value_t = RateSettings::default().late, value_parser = values::positive)]
    pub late: f64,
    /// The norm whose size and margin are fitted, such as `l2` or `spectral`; the one of each optimiser by default.
    #[arg(long, value_name = "NORM")]
    pub norm: Option<NormSpec>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Runs the verb.
pub fn run(arguments: &Rates) -> anyhow::Result<ExitCode> {
    let record = ExperimentRecord::load(&arguments.folder)?;
    let settings = RateSettings { confidence: arguments.confidence, late: arguments.late };
    let fitted = rates(&record, &settings, arguments.norm.as_ref());
    if let Some(Err(error)) = fitted.first().map(|group| &group.outcome)
        && fitted.iter().all(|group| group.outcome.is_err())
    {
        bail!("nothing could be fitted: {error}");
    }
    match arguments.format {
        Format::Json => print(&(serde_json::to_string_pretty(&fitted)? + "\n"))?,
        Format::Text => {
            let mut text = String::new();
            for group in &fitted {
                let runs = if group.runs == 1 { "1 run".to_owned() } else { format!("{} runs", group.runs) };
                text += &format!("{}, {}, degree {}, {runs}\n", group.optimiser, group.norm, group.degree);
                match &group.outcome {
                    Ok(report) => text += &table(report, group.alpha),
                    Err(error) => text += &format!("  not fitted: {error}\n"),
                }
            }
            print(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn table(report: &RateReport, alpha: f64) -> String {
    let mut out = String::new();
    for fit in &report.fits {
        let sign = match fit.bound {
            RateBound::Exact => " ",
            RateBound::AtMost => "≤",
            RateBound::AtLeast => "≥",
        };
        let word = match fit.approach {
            Approach::Agrees => "agrees",
            Approach::Approaching => "approaching",
            Approach::Disagrees => "disagrees",
        };
        out += &format!(
            "  {:<30} theorem {sign}{:>7.4}   slope {:>8.4} [{:.4}, {:.4}]   continued to ∞ {:>8.4}   {word}\n",
            fit.law.formula(),
            fit.expected,
            fit.slope,
            fit.interval.0,
            fit.interval.1,
            fit.limit
        );
    }
    if let Some(constant) = &report.constant {
        out += &format!(
            "  L t (ln t)^(2−{alpha}/L) · L²γ^({alpha}/L)  tends to 1: {:.4} at first, {:.4} at last\n",
            constant.first, constant.last
        );
    }
    out
}
