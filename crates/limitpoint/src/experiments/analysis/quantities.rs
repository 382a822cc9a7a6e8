//! What is drawn against the settings of a sweep, and listed in its tables: a number of every run.

use super::finals::keys;
use super::words::norm_name;
use crate::diagnostics::{RateLaw, RateSettings};
use crate::experiments::ExperimentRecord;
use crate::experiments::rates::rates_of_runs;

/// A number of every run.
pub(super) struct Quantity {
    /// Name of the measured column, or of what it is computed from: `margin.l2`, `certificate.tau`, `rate.loss`.
    pub column: String,
    /// What it is, for people.
    pub label: String,
    /// In the order of the runs; NaN where a run has none.
    pub values: Vec<f64>,
}

/// Every margin, the loss, τ where it was recorded, τ of the certificates, rates, and test accuracy: those that at least
/// one run has.
///
/// | column | number |
/// |---|---|
/// | `margin.NORM`, `log10_loss`, `tau.NORM` | the last row |
/// | `certificate.tau` | the upper bound of τ that the certificate of the run proves |
/// | `rate.loss` | slope of ln L against ln t in the late part of the run, −1 by theory |
/// | `rate.norm` | slope of ln ‖θ‖ against ln ln t, 1/L by theory |
/// | `rate.gap` | slope of ln(γ* − γ) against ln ln t, where the exact optimum γ* is known |
/// | `test_accuracy` | share of test examples that are right |
pub(super) fn quantities(record: &ExperimentRecord) -> Vec<Quantity> {
    let column = |column: String, label: String| Quantity {
        values: record.runs.iter().map(|run| run.metrics.last(&column).unwrap_or(f64::NAN)).collect(),
        column,
        label,
    };
    let mut all: Vec<Quantity> = keys(record, "margin.")
        .into_iter()
        .map(|key| column(format!("margin.{key}"), format!("{} margin", norm_name(&key))))
        .collect();
    all.push(column("log10_loss".to_owned(), "loss".to_owned()));
    for key in keys(record, "tau.") {
        all.push(column(format!("tau.{key}"), format!("τ in {}", norm_name(&key))));
    }
    let tau = record
        .runs
        .iter()
        .map(|run| run.certificate.as_ref().and_then(|certificate| certificate.tau).map_or(f64::NAN, |[_, high]| high));
    all.push(Quantity { column: "certificate.tau".into(), label: "τ of certificates".into(), values: tau.collect() });
    let rates = rates_of_runs(record, &RateSettings::default());
    for (law, column, label) in [
        (RateLaw::LossInTime, "rate.loss", "rate of the loss in time"),
        (RateLaw::NormInLogTime, "rate.norm", "rate of the norm in log time"),
        (RateLaw::GapInLogTime, "rate.gap", "rate of the margin gap in log time"),
    ] {
        let slope = |fitted: &crate::experiments::OptimiserRates| {
            let report = fitted.outcome.as_ref().ok()?;
            report.fits.iter().find(|fit| fit.law == law).map(|fit| fit.slope)
        };
        let values = rates.iter().map(|fitted| slope(fitted).unwrap_or(f64::NAN)).collect();
        all.push(Quantity { column: column.into(), label: label.into(), values });
    }
    let tested = record.runs.iter().map(|run| run.test_accuracy.unwrap_or(f64::NAN)).collect();
    all.push(Quantity { column: "test_accuracy".into(), label: "test accuracy".into(), values: tested });
    all.retain(|quantity| quantity.values.iter().any(|value| value.is_finite()));
    all
}
