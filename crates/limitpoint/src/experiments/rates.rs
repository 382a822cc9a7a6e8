//! How fast the runs of an experiment went, against the theorems: [`fit_rates`] on their records.

use serde::{Deserialize, Serialize};

use super::{ExperimentRecord, Recipe, RunRecord};
use crate::certificates::Geometry;
use crate::diagnostics::{RateError, RateReport, RateSeries, RateSettings, RateTheory, fit_rates};
use crate::flows::FlowSpec;
use crate::norms::NormSpec;
use crate::observers::Spacing;
use crate::optimisers::OptimiserSpec;
use crate::params::ParamLayout;
use crate::potentials::PotentialSpec;

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
    /// α, the degree of the potential; 2 for steepest descent.
    pub alpha: f64,
    /// γ*, where the experiment knows the exact optimum.
    pub limit_margin: Option<f64>,
    /// The fits, or why there are none.
    pub outcome: Result<RateReport, String>,
}

/// Fits the rates of every optimiser, in `norm` or else in the norm it belongs to: that of its steps, or of the horizon
/// of its potential ([`OptimiserSpec::own_norm`]); ℓ2 for those that have none.
///
/// The degree L follows from the records themselves, margin = q_min/‖θ‖^L. Seeds of one optimiser at one point of a
/// sweep are fitted together, so that the interval is one over runs; a single run gets the interval along itself.
pub fn rates(record: &ExperimentRecord, settings: &RateSettings, norm: Option<&NormSpec>) -> Vec<OptimiserRates> {
    let recipe = Recipe::from_resolved(&record.config).ok();
    let mut groups: Vec<(String, Vec<&RunRecord>)> = Vec::new();
    for run in &record.runs {
        let point = run.point.iter().map(|(key, value)| format!(" {key}={value}")).collect::<String>();
        let name = format!("{}{point}", run.optimiser);
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((name, vec![run])),
        }
    }
    groups.into_iter().map(|(name, runs)| fit(record, recipe.as_ref(), (name, runs), settings, norm)).collect()
}

/// The rates of every run by itself, in the norm it belongs to, in the order of the record.
pub(super) fn rates_of_runs(record: &ExperimentRecord, settings: &RateSettings) -> Vec<OptimiserRates> {
    let recipe = Recipe::from_resolved(&record.config).ok();
    record.runs.iter().map(|run| fit(record, recipe.as_ref(), (run.name.clone(), vec![run]), settings, None)).collect()
}

fn fit(
    record: &ExperimentRecord,
    recipe: Option<&Recipe>,
    (name, runs): (String, Vec<&RunRecord>),
    settings: &RateSettings,
    norm: Option<&NormSpec>,
) -> OptimiserRates {
    let own = Own::of(runs[0], recipe);
    let norm = norm.map_or_else(|| own.norm.clone(), NormSpec::key);
    Group { record, recipe, runs, norm, own }.fit(name, settings)
}

/// The geometry a run's rates are about.
struct Own {
    /// Key of the norm.
    norm: String,
    /// Degree of the potential; 2 without one.
    alpha: f64,
    /// The horizon of the potential is this many times the norm; 1 without one.
    scale: f64,
}

impl Own {
    fn of(run: &RunRecord, recipe: Option<&Recipe>) -> Self {
        let flow = |flow: &FlowSpec| match flow {
            FlowSpec::Steepest { norm } => OptimiserSpec::steepest(norm.clone()),
            FlowSpec::Mirror { potential } | FlowSpec::NaturalGradient { potential } => {
                OptimiserSpec::mirror(potential.clone())
            }
        };
        let spec = recipe.and_then(|recipe| {
            let optimiser = recipe.optimisers.get(&run.optimiser).cloned();
            optimiser.or_else(|| recipe.flows.get(&run.optimiser).map(flow))
        });
        let potential = spec.as_ref().and_then(potential);
        let written = spec.as_ref().and_then(OptimiserSpec::own_norm).map(|norm| norm.key());
        // the run's own record knows a swept norm; of a potential it keeps the name, which is no norm
        let recorded = run.geometry.clone().filter(|_| potential.is_none());
        let degree = potential.and_then(|potential| potential.scalar().ok()).map(|scalar| scalar.degree());
        let horizon = potential.and_then(|potential| Geometry::of_potential(potential, &ParamLayout::vector(1)).ok());
        Self {
            norm: recorded.or(written).unwrap_or_else(|| "l2".to_owned()),
            alpha: degree.unwrap_or(2.0),
            scale: horizon.map_or(1.0, |horizon| horizon.scale),
        }
    }
}

/// The potential of mirror descent, or one of those of a composition whose potentials have one degree.
fn potential(spec: &OptimiserSpec) -> Option<&PotentialSpec> {
    let degree = |potential: &PotentialSpec| potential.scalar().ok().map(|scalar| scalar.degree());
    match spec {
        OptimiserSpec::Mirror { potential, .. } | OptimiserSpec::NaturalGradient { potential } => Some(potential),
        OptimiserSpec::Adjusted { of, .. } => potential(of),
        OptimiserSpec::Blocks(parts) => {
            let all = parts.values().map(potential).collect::<Option<Vec<_>>>()?;
            let first = *all.first()?;
            all.iter().all(|other| degree(other) == degree(first)).then_some(first)
        }
        _ => None,
    }
}

/// Runs that are fitted together.
struct Group<'a> {
    record: &'a ExperimentRecord,
    recipe: Option<&'a Recipe>,
    runs: Vec<&'a RunRecord>,
    /// The norm that is fitted.
    norm: String,
    own: Own,
}

impl Group<'_> {
    fn fit(&self, optimiser: String, settings: &RateSettings) -> OptimiserRates {
        let (norm, runs) = (&self.norm, &self.runs);
        let column = format!("margin.{norm}");
        // in another norm than its own the limit of a run is not the largest margin
        let limit = self.record.references.iter().find(|line| line.column == column && *norm == self.own.norm);
        let limit_margin = limit.map(|line| line.value);
        let degree = runs.iter().filter_map(|run| degree(run, norm)).next_back().unwrap_or(f64::NAN);
        let columns: Vec<Columns> = runs.iter().map(|run| Columns::read(run, norm, limit_margin)).collect();
        let series: Vec<RateSeries> = columns.iter().map(Columns::series).collect();
        let horizon_margin = limit_margin.map(|margin| margin / self.own.scale.powf(degree));
        let theory = RateTheory { degree, alpha: self.own.alpha, limit_margin: horizon_margin };
        let outcome = if runs.iter().any(|run| run.metrics.column(&column).is_empty()) {
            Err(self.not_recorded())
        } else if degree.is_nan() {
            Err("no run separated the data".to_owned())
        } else {
            fit_rates(&series, &theory, settings).map_err(|error| self.explain(&error))
        };
        let (norm, alpha) = (norm.clone(), self.own.alpha);
        OptimiserRates { optimiser, norm, runs: runs.len(), degree, alpha, limit_margin, outcome }
    }

    /// What to do where the norm was not observed.
    fn not_recorded(&self) -> String {
        let observed: Vec<&str> =
            self.runs[0].metrics.columns.iter().filter_map(|column| column.strip_prefix("margin.")).collect();
        format!(
            "the margin in its norm {} was not recorded: add \"{}\" to observe.norms and run again, or fit another with \
             --norm; recorded: {}",
            self.norm,
            self.norm,
            observed.join(", ")
        )
    }

    /// An error of the fit; where records are too sparse, with the setting that makes them denser.
    fn explain(&self, error: &RateError) -> String {
        let RateError::TooFewPoints { found, needed, .. } = error else { return error.to_string() };
        let few = format!("the late part of a run has {found} points where at least {needed} are needed");
        let steps = self.runs.iter().map(|run| run.steps).min().unwrap_or(0);
        let points = self.runs.iter().map(|run| run.metrics.len() as u64).min().unwrap_or(0);
        // twice the density that would just do; a run all of whose steps are there can only be made longer
        let factor = 2 * needed.div_ceil((*found).max(1)) as u64;
        let spacing = self.recipe.map_or_else(Spacing::default, |recipe| recipe.observe.spacing);
        let denser = match spacing {
            Spacing::Logarithmic { per_decade } => {
                let more = u64::from(per_decade).saturating_mul(factor);
                format!("observe.spacing.logarithmic.per_decade={more} (it was {per_decade})")
            }
            Spacing::Linear { every } => {
                format!("observe.spacing.linear.every={} (it was {every})", (every / factor).max(1))
            }
        };
        if points > steps || *found == 0 {
            format!("{few}; train longer: lower stop.log10_loss, or raise stop.steps")
        } else {
            format!("{few}; record more often: run again with {denser}")
        }
    }
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
        let rates = rates(&record(), &RateSettings::default(), None);
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
        let rates = rates(&record, &RateSettings::default(), None);
        assert_eq!(rates[0].limit_margin, Some(2.0));
        assert!(rates[0].outcome.as_ref().unwrap_err().contains("separated"));
    }

    /// The same record with the measurements of l2 under another norm, and of every `keep`-th point.
    fn renamed(norm: &str, geometry: Option<&str>, config: &str, keep: usize) -> ExperimentRecord {
        let mut record = record();
        let metrics = &mut record.runs[0].metrics;
        metrics.columns.iter_mut().for_each(|column| *column = column.replace("l2", norm));
        metrics.values.iter_mut().for_each(|values| *values = values.iter().copied().step_by(keep).collect());
        record.runs[0].geometry = geometry.map(str::to_owned);
        record.runs[0].steps = 100_000;
        record.config = config.to_owned();
        record
    }

    const RECIPE: &str = "loss = 'exponential'\ndata.digits = {}\nmodel = 'linear'\nstop.steps = 9\n";

    #[test]
    fn the_norm_is_that_of_the_optimiser() {
        let fitted = |record: &ExperimentRecord, norm: Option<&str>| {
            let norm = norm.map(|text| text.parse::<NormSpec>().unwrap());
            rates(record, &RateSettings::default(), norm.as_ref()).remove(0)
        };
        for (geometry, settings, norm) in [
            (Some("spectral"), "optimisers.flow = 'muon'", "spectral"),
            (Some("linf"), "optimisers.flow.adam = {}", "linf"),
            (None, "optimisers.flow.adam-w = {}", "linf"),
            (Some("hyperbolic"), "optimisers.flow.mirror.potential.hyperbolic.lambda = 0.1", "l1"),
            (None, "flows.flow.mirror.potential.smoothed = { p = 3.0, lambda = 0.0 }", "l3"),
            (None, "optimisers.flow.ada-grad = {}", "l2"),
        ] {
            // the resolved form writes out what has settings
            let config = format!("{RECIPE}{}", settings.replace("'muon'", "{ muon = {} }"));
            let one = fitted(&renamed(norm, geometry, &config, 1), None);
            assert_eq!(one.norm, norm, "{settings}");
            assert!(one.outcome.is_ok(), "{settings}: {:?}", one.outcome);
            // another norm was observed: said, not silently taken
            let other = if norm == "l2" { "l1" } else { "l2" };
            let error = fitted(&renamed(other, geometry, &config, 1), None).outcome.unwrap_err();
            assert!(error.contains(&format!("add \"{norm}\" to observe.norms")), "{settings}: {error}");
            assert!(fitted(&renamed(other, geometry, &config, 1), Some(other)).outcome.is_ok(), "{settings}");
        }
    }

    #[test]
    fn sparse_records_are_answered_with_the_key_and_the_value() {
        let error = |settings: &str, keep| {
            let config = format!("{RECIPE}optimisers.flow.steepest.norm = 'l2'\n{settings}");
            let mut found = rates(&renamed("l2", Some("l2"), &config, keep), &RateSettings::default(), None);
            found.remove(0).outcome.unwrap_err()
        };
        let text = error("", 20);
        assert!(text.contains("at least 20") && text.contains("observe.spacing.logarithmic.per_decade="), "{text}");
        let text = error("observe.spacing.linear.every = 100", 20);
        assert!(text.contains("observe.spacing.linear.every=") && text.contains("(it was 100)"), "{text}");
    }
}
