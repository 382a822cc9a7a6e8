//! How fast the runs of an experiment went, against the theorems: [`fit_rates`] on their records.

use serde::{Deserialize, Serialize};

use super::{ExperimentRecord, RunRecord};
use crate::diagnostics::{RateReport, RateSeries, RateSettings, RateTheory, fit_rates};

/// The rates of one optimiser, over all its seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptimiserRates {
    /// The optimiser, and the point of a sweep where there is one.
    pub optimiser: String,
    /// The norm whose size and margin were fitted.
    pub norm: String,
    /// Runs that were fitted together.
    pub runs: usize,
    /// L, read off the records.
    pub degree: f64,
    /// γ*, where the experiment knows the exact optimum.
    pub limit_margin: Option<f64>,
    /// The fits, or why there are none.
    pub outcome: Result<RateReport, String>,
}

/// Fits the rates of every optimiser, in the norm it belongs to (ℓ2 where none is known).
///
/// The degree L follows from the records themselves, margin = q_min/‖θ‖^L. Seeds of one optimiser at one point of a
/// sweep are fitted together, so that the interval is one over runs; a single run gets the interval along itself.
pub fn rates(record: &ExperimentRecord, settings: &RateSettings) -> Vec<OptimiserRates> {
    let mut groups: Vec<(String, Vec<&RunRecord>)> = Vec::new();
    for run in &record.runs {
        let point = run.point.iter().map(|(key, value)| format!(" {key}={value}")).collect::<String>();
        let name = format!("{}{point}", run.optimiser);
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((name, vec![run])),
        }
    }
    groups.into_iter().map(|(name, runs)| fit_group(record, name, &runs, settings)).collect()
}

fn fit_group(
    record: &ExperimentRecord,
    optimiser: String,
    runs: &[&RunRecord],
    settings: &RateSettings,
) -> OptimiserRates {
    let recorded = |key: &&String| !runs[0].metrics.column(&format!("norm.{key}")).is_empty();
    let norm = runs[0].geometry.as_ref().filter(recorded).cloned().unwrap_or_else(|| "l2".to_owned());
    let column = format!("margin.{norm}");
    let limit_margin = record.references.iter().find(|line| line.column == column).map(|line| line.value);
    let degree = runs.iter().filter_map(|run| degree(run, &norm)).next_back().unwrap_or(f64::NAN);
    let columns: Vec<Columns> = runs.iter().map(|run| Columns::read(run, &norm, limit_margin)).collect();
    let series: Vec<RateSeries> = columns.iter().map(Columns::series).collect();
    let theory = RateTheory { degree, alpha: 2.0, limit_margin };
    let outcome = if degree.is_nan() {
        Err(format!("no run separated the data, or '{column}' was not recorded"))
    } else {
        fit_rates(&series, &theory, settings).map_err(|error| error.to_string())
    };
    OptimiserRates { optimiser, norm, runs: runs.len(), degree, limit_margin, outcome }
}

/// L with margin = q_min/‖θ‖^L at the last row, rounded to a thousandth.
fn degree(run: &RunRecord, norm: &str) -> Option<f64> {
    let last = |name: &str| run.metrics.last(name);
    let (smallest, margin, size) =
        (last("smallest_margin")?, last(&format!("margin.{norm}"))?, last(&format!("norm.{norm}"))?);
    let degree = (smallest / margin).ln() / size.ln();
    (smallest > 0.0 && degree.is_finite()).then(|| (1e3 * degree).round() / 1e3)
}

/// A run's columns as natural logarithms.
struct Columns {
    log_time: Vec<f64>,
    log_loss: Vec<f64>,
    log_norm: Vec<f64>,
    margin_gap: Option<Vec<f64>>,
}

impl Columns {
    fn read(run: &RunRecord, norm: &str, limit: Option<f64>) -> Self {
        let natural = |name: &str| run.metrics.column(name).iter().map(|x| x * std::f64::consts::LN_10).collect();
        let margins = run.metrics.column(&format!("margin.{norm}"));
        Self {
            log_time: natural("log10_time"),
            log_loss: natural("log10_loss"),
            log_norm: run.metrics.column(&format!("norm.{norm}")).iter().map(|x| x.ln()).collect(),
            margin_gap: limit.map(|limit| margins.iter().map(|margin| limit - margin).collect()),
        }
    }

    fn series(&self) -> RateSeries<'_> {
        RateSeries {
            log_time: &self.log_time,
            log_loss: &self.log_loss,
            log_norm: &self.log_norm,
            margin_gap: self.margin_gap.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::{Approach, RateLaw};
    use crate::experiments::{Metrics, ReferenceLine};

    /// The exact flow of one weight on one point: L = e^−u, t = e^u − 1, θ = u, margin 1.
    fn record() -> ExperimentRecord {
        let u: Vec<f64> = (1..300).map(|i| 0.5 * f64::from(i)).collect();
        let ten = std::f64::consts::LN_10;
        let columns: [(&str, Vec<f64>); 5] = [
            ("log10_time", u.iter().map(|u| u.exp_m1().ln() / ten).collect()),
            ("log10_loss", u.iter().map(|u| -u / ten).collect()),
            ("smallest_margin", u.clone()),
            ("norm.l2", u.clone()),
            ("margin.l2", vec![1.0; u.len()]),
        ];
        let (names, values) = columns.into_iter().map(|(name, values)| (name.to_owned(), values)).unzip();
        let run =
            RunRecord { metrics: Metrics { columns: names, values }, optimiser: "flow".into(), ..Default::default() };
        ExperimentRecord { runs: vec![run], ..Default::default() }
    }

    #[test]
    fn the_flow_of_a_linear_model_has_the_rates_of_the_theorem() {
        let rates = rates(&record(), &RateSettings::default());
        assert_eq!((rates[0].degree, rates[0].runs, rates[0].norm.as_str()), (1.0, 1, "l2"));
        let report = rates[0].outcome.as_ref().unwrap();
        for law in [RateLaw::LossInTime, RateLaw::NormInLogTime] {
            let fit = report.fits.iter().find(|fit| fit.law == law).unwrap();
            assert_eq!(fit.approach, Approach::Agrees, "{fit:?}");
        }
    }

    #[test]
    fn a_run_without_margins_says_why_nothing_was_fitted() {
        let mut record = record();
        record.references.push(ReferenceLine { column: "margin.l2".into(), value: 2.0, ..Default::default() });
        record.runs[0].metrics.values[2].iter_mut().for_each(|q| *q = -1.0);
        let rates = rates(&record, &RateSettings::default());
        assert_eq!(rates[0].limit_margin, Some(2.0));
        assert!(rates[0].outcome.as_ref().unwrap_err().contains("separated"));
    }
}
