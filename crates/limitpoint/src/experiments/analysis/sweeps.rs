//! Final values against what a sweep varies: one setting at a time, and two at a time.

use super::finals::Finals;
use super::quantities::Quantity;
use super::settings::swept;
use crate::experiments::{ExperimentRecord, Group, MapPanel, RunRecord, Sweep, SweepLine, SweepMap, SweepPanel};

/// Most cells of a map that anybody could read.
const MOST_CELLS: usize = 2500;

/// What a sweep varies, and which runs are where.
struct Setting<'a> {
    key: &'a str,
    /// The values as they were written, in increasing order where all are numbers.
    values: Vec<String>,
    /// The values as numbers; empty where one of them is none.
    places: Vec<f64>,
    /// The place of every run's value.
    of_run: Vec<Option<usize>>,
}

impl<'a> Setting<'a> {
    fn new(record: &ExperimentRecord, key: &'a str) -> Self {
        let (values, places) = values(record, key);
        let place = |run: &RunRecord| {
            let value = value_of(run, key)?;
            values.iter().position(|known| known == value)
        };
        let of_run = record.runs.iter().map(place).collect();
        Self { key, values, places, of_run }
    }
}

/// One sweep for every setting with two or more values, and a map for every two of them.
///
/// Means and ranges are over the runs that did not fail: their seeds, and what else the sweep varies.
pub(super) fn sweeps(
    record: &ExperimentRecord,
    groups: &[Group],
    quantities: &[Quantity],
) -> (Vec<Sweep>, Vec<SweepMap>) {
    let settings: Vec<Setting> = swept(record).into_iter().map(|key| Setting::new(record, key)).collect();
    if settings.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut optimisers: Vec<&str> = Vec::new();
    for group in groups {
        if !optimisers.contains(&group.optimiser.as_str()) {
            optimisers.push(&group.optimiser);
        }
    }
    let others = |kept: &[&str]| -> Vec<String> {
        settings.iter().filter(|other| !kept.contains(&other.key)).map(|other| other.key.to_owned()).collect()
    };
    let one = |setting: &Setting| {
        let runs: Vec<Vec<Vec<usize>>> = optimisers
            .iter()
            .map(|optimiser| runs_at(record, optimiser, setting.values.len(), |run| setting.of_run[run]))
            .collect();
        let panel = |quantity: &Quantity| SweepPanel {
            column: quantity.column.clone(),
            label: quantity.label.clone(),
            lines: optimisers.iter().zip(&runs).map(|(optimiser, runs)| line(optimiser, runs, quantity)).collect(),
        };
        Sweep {
            key: setting.key.to_owned(),
            logarithmic: is_geometric(&setting.places),
            others: others(&[setting.key]),
            values: setting.values.clone(),
            places: setting.places.clone(),
            panels: quantities.iter().map(panel).collect(),
        }
    };
    let two = |(across, up): (&Setting, &Setting)| {
        let (wide, high) = (across.values.len(), up.values.len());
        let mut panels = Vec::new();
        for optimiser in &optimisers {
            let cell = |run: usize| Some(across.of_run[run]? + wide * up.of_run[run]?);
            let runs = runs_at(record, optimiser, wide * high, cell);
            for quantity in quantities {
                let line = line(optimiser, &runs, quantity);
                if line.mean.iter().any(|mean| mean.is_finite()) {
                    panels.push(MapPanel {
                        column: quantity.column.clone(),
                        label: quantity.label.clone(),
                        optimiser: (*optimiser).to_owned(),
                        mean: line.mean.chunks(wide).map(<[f64]>::to_vec).collect(),
                        runs: line.runs.chunks(wide).map(<[usize]>::to_vec).collect(),
                    });
                }
            }
        }
        SweepMap {
            keys: [across.key.to_owned(), up.key.to_owned()],
            values: [across.values.clone(), up.values.clone()],
            others: others(&[across.key, up.key]),
            panels,
        }
    };
    let pairs = settings
        .iter()
        .enumerate()
        .flat_map(|(place, across)| settings[place + 1..].iter().map(move |up| (across, up)));
    let fits = |pair: &(&Setting, &Setting)| pair.0.values.len() * pair.1.values.len() <= MOST_CELLS;
    (settings.iter().map(one).collect(), pairs.filter(fits).map(two).filter(|map| !map.panels.is_empty()).collect())
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

/// The runs of an optimiser that did not fail, by place.
fn runs_at(
    record: &ExperimentRecord,
    optimiser: &str,
    places: usize,
    place: impl Fn(usize) -> Option<usize>,
) -> Vec<Vec<usize>> {
    let mut runs = vec![Vec::new(); places];
    let counted = record.runs.iter().enumerate().filter(|(_, run)| !run.failed && run.optimiser == optimiser);
    for (index, _) in counted {
        if let Some(place) = place(index) {
            runs[place].push(index);
        }
    }
    runs
}

/// One optimiser at every place.
fn line(optimiser: &str, runs: &[Vec<usize>], quantity: &Quantity) -> SweepLine {
    let finals: Vec<Finals> =
        runs.iter().map(|runs| Finals::over(runs.iter().map(|run| quantity.values[*run]))).collect();
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
    use crate::experiments::analysis::analyse;
    use crate::experiments::analysis::tests::{record, run};
    use crate::experiments::{Analysis, CertificateRecord, RunRecord};

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
        let Analysis { sweeps, maps, .. } = analyse(&record(runs));
        let keys: Vec<&str> = sweeps.iter().map(|sweep| sweep.key.as_str()).collect();
        assert_eq!(keys, ["width", "rate"], "an optimiser is no setting");
        assert_eq!((&sweeps[0].values[..], sweeps[0].logarithmic), (&["10".to_owned(), "100".to_owned()][..], true));
        assert!(sweeps[1].places.is_empty() && sweeps[0].others == ["rate"]);
        let gd = &sweeps[0].panels[0].lines[0];
        assert_eq!((&gd.mean[..], &gd.low[..], &gd.high[..]), (&[2.0, 4.0][..], &[1.0, 4.0][..], &[3.0, 4.0][..]));
        assert_eq!(gd.runs, [2, 1]);
        let sign = &sweeps[0].panels[0].lines[1];
        assert!(sign.mean[0] == 5.0 && sign.mean[1].is_nan() && sign.runs == [1, 0]);
        let map = &maps[0];
        assert_eq!((&map.keys, maps.len()), (&["width".to_owned(), "rate".to_owned()], 1));
        assert_eq!(map.values[1], ["a", "b"]);
        // rows are rates, columns widths; what failed is nowhere
        assert_eq!(map.panels[0].mean[0], [1.0, 4.0]);
        assert!(map.panels[0].mean[1][0] == 3.0 && map.panels[0].mean[1][1].is_nan());
        assert_eq!(map.panels[0].runs, [[1, 1], [1, 0]]);
    }

    #[test]
    fn certificates_and_rates_are_drawn_against_settings() {
        // the exact flow of one weight on one point: L = e^−u, t = e^u − 1, θ = u, margin 1
        let u: Vec<f64> = (1..300).map(|i| 0.5 * f64::from(i)).collect();
        let logs = |value: fn(f64) -> f64| u.iter().map(|u| value(*u) / std::f64::consts::LN_10).collect::<Vec<f64>>();
        let (time, loss, one) = (logs(|u| u.exp_m1().ln()), logs(|u| -u), vec![1.0; u.len()]);
        let at = |width: &str, tau: f64| RunRecord {
            point: vec![("width".into(), width.into())],
            certificate: Some(CertificateRecord { tau: Some([0.0, tau]), ..Default::default() }),
            ..run(
                "flow",
                0,
                &[
                    ("step", &u),
                    ("log10_time", &time),
                    ("log10_loss", &loss),
                    ("smallest_margin", &u),
                    ("norm.l2", &u),
                    ("margin.l2", &one),
                ],
            )
        };
        let analysis = analyse(&record(vec![at("1", 1e-3), at("2", 1e-5)]));
        let panel = |column: &str| {
            let panel = analysis.sweeps[0].panels.iter().find(|panel| panel.column == column);
            panel.unwrap_or_else(|| panic!("{column}")).lines[0].mean.clone()
        };
        assert_eq!(panel("certificate.tau"), [1e-3, 1e-5]);
        assert!(panel("rate.loss").iter().all(|slope| (slope + 1.0).abs() < 0.01), "{:?}", panel("rate.loss"));
        assert!(panel("rate.norm").iter().all(|slope| (slope - 1.0).abs() < 0.05), "{:?}", panel("rate.norm"));
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
