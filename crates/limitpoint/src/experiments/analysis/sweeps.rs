//! Final values against what a sweep varies.

use super::finals::{Finals, keys};
use super::settings::swept;
use super::words::norm_name;
use crate::experiments::{ExperimentRecord, Group, Metrics, RunRecord, Sweep, SweepLine, SweepPanel};

/// What a panel shows of a run.
enum Quantity {
    Column(String),
    TestAccuracy,
}

impl Quantity {
    fn of(&self, run: &RunRecord) -> f64 {
        match self {
            Self::Column(column) => Metrics::last(&run.metrics, column).unwrap_or(f64::NAN),
            Self::TestAccuracy => run.test_accuracy.unwrap_or(f64::NAN),
        }
    }
}

/// One sweep for every setting with two or more values: every margin, the loss, τ where it was recorded and test accuracy.
///
/// Means and ranges are over the runs that did not fail: their seeds, and what else the sweep varies.
pub(super) fn sweeps(record: &ExperimentRecord, groups: &[Group]) -> Vec<Sweep> {
    let swept = swept(record);
    let mut optimisers: Vec<&str> = Vec::new();
    for group in groups {
        if !optimisers.contains(&group.optimiser.as_str()) {
            optimisers.push(&group.optimiser);
        }
    }
    let one = |key: &&str| {
        let (values, places) = values(record, key);
        let lines = |quantity: &Quantity| -> Vec<SweepLine> {
            optimisers.iter().map(|optimiser| line(record, key, &values, optimiser, quantity)).collect()
        };
        let panels = quantities(record)
            .into_iter()
            .map(|(column, label, quantity)| SweepPanel { column, label, lines: lines(&quantity) })
            .filter(|panel| panel.lines.iter().any(|line| line.mean.iter().any(|mean| mean.is_finite())))
            .collect();
        Sweep {
            key: (*key).to_owned(),
            logarithmic: is_geometric(&places),
            others: swept.iter().filter(|other| *other != key).map(|other| (*other).to_owned()).collect(),
            values,
            places,
            panels,
        }
    };
    swept.iter().map(one).filter(|sweep| !sweep.panels.is_empty()).collect()
}

/// Column, name for people, and where the numbers come from.
fn quantities(record: &ExperimentRecord) -> Vec<(String, String, Quantity)> {
    let column = |name: String, label: String| (name.clone(), label, Quantity::Column(name));
    let mut all: Vec<_> = keys(record, "margin.")
        .into_iter()
        .map(|key| column(format!("margin.{key}"), format!("{} margin", norm_name(&key))))
        .collect();
    all.push(column("log10_loss".to_owned(), "loss".to_owned()));
    for key in keys(record, "tau.") {
        all.push(column(format!("tau.{key}"), format!("τ in {}", norm_name(&key))));
    }
    all.push(("test_accuracy".to_owned(), "test accuracy".to_owned(), Quantity::TestAccuracy));
    all
}

/// The values of a key, in increasing order where all are numbers.
fn values(record: &ExperimentRecord, key: &str) -> (Vec<String>, Vec<f64>) {
    let mut values: Vec<&str> = Vec::new();
    for value in record.runs.iter().filter_map(|run| value_of(run, key)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    let number = |value: &&str| value.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
    let Some(places) = values.iter().map(number).collect::<Option<Vec<f64>>>() else {
        return (values.into_iter().map(str::to_owned).collect(), Vec::new());
    };
    let mut both: Vec<(f64, &str)> = places.into_iter().zip(values).collect();
    both.sort_by(|a, b| a.0.total_cmp(&b.0));
    (both.iter().map(|(_, value)| (*value).to_owned()).collect(), both.iter().map(|(place, _)| *place).collect())
}

fn value_of<'a>(run: &'a RunRecord, key: &str) -> Option<&'a str> {
    run.point.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// One optimiser against the values of `key`.
fn line(record: &ExperimentRecord, key: &str, values: &[String], optimiser: &str, quantity: &Quantity) -> SweepLine {
    let at = |value: &String| {
        let here = record
            .runs
            .iter()
            .filter(|run| !run.failed && run.optimiser == optimiser && value_of(run, key) == Some(value));
        Finals::over(here.map(|run| quantity.of(run)))
    };
    let finals: Vec<Finals> = values.iter().map(at).collect();
    SweepLine {
        optimiser: optimiser.to_owned(),
        mean: finals.iter().map(|finals| finals.mean).collect(),
        low: finals.iter().map(|finals| finals.low).collect(),
        high: finals.iter().map(|finals| finals.high).collect(),
        runs: finals.iter().map(|finals| finals.count).collect(),
    }
}

/// Whether increasing numbers are spread like powers: all positive, and their ratios more alike than their differences;
/// two numbers are where one is ten times the other.
fn is_geometric(places: &[f64]) -> bool {
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return false };
    if *first <= 0.0 {
        return false;
    }
    if places.len() < 3 {
        return *last >= 10.0 * first;
    }
    let unevenness = |step: fn(f64, f64) -> f64| {
        let steps: Vec<f64> = places.windows(2).map(|pair| step(pair[0], pair[1])).collect();
        steps.iter().copied().fold(0.0, f64::max) / steps.iter().copied().fold(f64::INFINITY, f64::min)
    };
    unevenness(|a, b| (b / a).ln()) < unevenness(|a, b| b - a)
}

#[cfg(test)]
mod tests {
    use super::is_geometric;
    use crate::experiments::RunRecord;
    use crate::experiments::analysis::analyse;
    use crate::experiments::analysis::tests::{record, run};

    #[test]
    fn lines_are_means_over_all_else_in_the_order_of_the_values() {
        let at = |optimiser: &str, width: &str, rate: &str, margin: f64| RunRecord {
            point: vec![
                ("width".into(), width.into()),
                ("optimiser".into(), optimiser.into()),
                ("rate".into(), rate.into()),
            ],
            ..run(optimiser, 0, &[("step", &[9.0]), ("margin.l2", &[margin])])
        };
        let mut runs = vec![at("gd", "100", "a", 4.0), at("gd", "10", "a", 1.0), at("gd", "10", "b", 3.0)];
        runs.push(RunRecord { failed: true, ..at("gd", "100", "b", 1e9) });
        runs.push(at("sign", "10", "a", 5.0));
        let sweeps = analyse(&record(runs)).sweeps;
        let keys: Vec<&str> = sweeps.iter().map(|sweep| sweep.key.as_str()).collect();
        assert_eq!(keys, ["width", "rate"], "an optimiser is no setting");
        assert_eq!((&sweeps[0].values[..], sweeps[0].logarithmic), (&["10".to_owned(), "100".to_owned()][..], true));
        assert!(sweeps[1].places.is_empty() && sweeps[0].others == ["rate"]);
        let gd = &sweeps[0].panels[0].lines[0];
        assert_eq!((&gd.mean[..], &gd.low[..], &gd.high[..]), (&[2.0, 4.0][..], &[1.0, 4.0][..], &[3.0, 4.0][..]));
        assert_eq!(gd.runs, [2, 1]);
        let sign = &sweeps[0].panels[0].lines[1];
        assert!(sign.mean[0] == 5.0 && sign.mean[1].is_nan() && sign.runs == [1, 0]);
    }

    #[test]
    fn powers_are_told_from_even_steps() {
        for places in [&[64.0, 128.0, 256.0, 512.0][..], &[0.1, 1.0], &[1e-3, 3e-3, 1e-2, 3e-2]] {
            assert!(is_geometric(places), "{places:?}");
        }
        for places in [&[1.0, 2.0, 3.0][..], &[0.0, 1.0, 10.0], &[1.0, 2.0], &[], &[5.0], &[-4.0, -2.0, -1.0]] {
            assert!(!is_geometric(places), "{places:?}");
        }
        assert!(!is_geometric(&(1..=100).map(f64::from).collect::<Vec<_>>()));
    }
}
