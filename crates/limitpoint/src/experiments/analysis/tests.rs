//! Hand-made records whose conclusions can be checked by eye.

use proptest::prelude::*;

use super::analyse;
use super::words::{norm_name, power_of_ten};
use crate::experiments::record::{Analysis, ExperimentRecord, Finding, Metrics, RunRecord};

fn table(columns: &[(&str, &[f64])]) -> Metrics {
    Metrics {
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        values: columns.iter().map(|(_, values)| values.to_vec()).collect(),
    }
}

fn run(optimiser: &str, seed: u64, columns: &[(&str, &[f64])]) -> RunRecord {
    let metrics = table(columns);
    let steps = metrics.last("step").unwrap_or(0.0) as u64;
    let name = format!("{optimiser}-{seed}");
    RunRecord { name, optimiser: optimiser.into(), seed, healthy: true, steps, metrics, ..Default::default() }
}

fn of(geometry: &str, run: RunRecord) -> RunRecord {
    RunRecord { geometry: Some(geometry.into()), ..run }
}

fn record(runs: Vec<RunRecord>) -> ExperimentRecord {
    ExperimentRecord { name: "hand-made".into(), runs, ..Default::default() }
}

fn finding<'a>(analysis: &'a Analysis, title: &str) -> &'a Finding {
    let titles: Vec<&str> = analysis.findings.iter().map(|finding| finding.title.as_str()).collect();
    analysis.findings.iter().find(|f| f.title.contains(title)).unwrap_or_else(|| panic!("{title} not in {titles:?}"))
}

/// Two optimisers, two norms, two seeds; each wins its own norm.
fn two_by_two() -> ExperimentRecord {
    let one = |optimiser: &str, geometry: &str, seed, l2, linf| {
        let columns: &[(&str, &[f64])] = &[
            ("step", &[0.0, 1.0, 10.0]),
            ("log10_loss", &[0.5, -1.0, -20.0]),
            ("accuracy", &[0.5, 1.0, 1.0]),
            ("margin.l2", &[-1.0, 0.0, l2]),
            ("margin.linf", &[-1.0, 0.0, linf]),
        ];
        of(geometry, run(optimiser, seed, columns))
    };
    record(vec![
        one("gd", "l2", 0, 0.30, 0.10),
        one("gd", "l2", 1, 0.32, 0.12),
        one("sign", "linf", 0, 0.20, 0.20),
        one("sign", "linf", 1, 0.22, 0.22),
    ])
}

#[test]
fn an_empty_record_says_nothing() {
    let analysis = analyse(&ExperimentRecord::default());
    assert!(analysis.groups.is_empty() && analysis.summary.rows.is_empty() && analysis.findings.is_empty());
    let keys: Vec<&str> = analysis.summary.columns.iter().map(|column| column.key.as_str()).collect();
    assert_eq!(keys, ["log10_loss", "steps"]);
    // a run that never began
    let analysis = analyse(&record(vec![RunRecord { healthy: true, ..Default::default() }]));
    assert_eq!((analysis.groups.len(), analysis.groups[0].bands.len(), analysis.findings.len()), (1, 0, 0));
    assert_eq!(analysis.summary.rows[0].cells[0].text, "–");
}

#[test]
fn groups_gather_seeds_and_keep_sweep_points_apart() {
    let at = |optimiser: &str, width: &str, seed| RunRecord {
        point: vec![("model.width".into(), width.into())],
        ..run(optimiser, seed, &[("step", &[0.0])])
    };
    let analysis =
        analyse(&record(vec![at("sign", "64", 0), at("gd", "64", 0), at("sign", "128", 0), at("sign", "64", 1)]));
    let groups: Vec<(&str, &[usize])> = analysis.groups.iter().map(|g| (g.label.as_str(), &g.runs[..])).collect();
    let expected: [(&str, &[usize]); 3] =
        [("sign · model.width=64", &[0, 3]), ("gd · model.width=64", &[1]), ("sign · model.width=128", &[2])];
    assert_eq!(groups, expected);
}

#[test]
fn bands_cover_the_steps_all_seeds_share() {
    let long = run("gd", 0, &[("step", &[0.0, 1.0, 2.0, 4.0, 7.0]), ("log10_loss", &[1.0, 0.0, -1.0, -2.0, -3.0])]);
    let short = run("gd", 1, &[("step", &[0.0, 1.0, 2.0, 3.0]), ("log10_loss", &[3.0, f64::NAN, -3.0, -4.0])]);
    let unborn = run("gd", 2, &[]);
    let analysis = analyse(&record(vec![long.clone(), short, unborn]));
    let [band] = &analysis.groups[0].bands[..] else { panic!("one band: {:?}", analysis.groups[0].bands) };
    assert_eq!(band.column, "log10_loss");
    assert_eq!(band.step, [0.0, 1.0, 2.0]);
    assert_eq!(band.mean, [2.0, 0.0, -2.0]);
    assert_eq!(band.low, [1.0, 0.0, -3.0]);
    assert_eq!(band.high, [3.0, 0.0, -1.0]);
    assert_eq!(band.log10_loss, band.mean);
    assert!(band.log10_time.iter().all(|time| time.is_nan()) && band.log10_time.len() == 3);
    // alone, every row stays
    let analysis = analyse(&record(vec![long]));
    assert_eq!(analysis.groups[0].bands[0].step, [0.0, 1.0, 2.0, 4.0, 7.0]);
}

#[test]
fn columns_without_a_number_have_no_band_and_no_winner() {
    let nothing = [f64::NAN, f64::INFINITY];
    let run = run("gd", 0, &[("step", &[0.0, 1.0]), ("margin.l2", &nothing), ("margin.l1", &[f64::NAN, 2.0])]);
    let analysis = analyse(&record(vec![run]));
    let bands: Vec<&str> = analysis.groups[0].bands.iter().map(|band| band.column.as_str()).collect();
    assert_eq!(bands, ["margin.l1"]);
    let cells = &analysis.summary.rows[0].cells;
    assert!(cells[2].mean.is_nan() && !cells[2].winner && cells[2].text == "–");
    assert!(cells[3].winner && cells[3].text == "2.00e0");
    assert!(analysis.findings.is_empty(), "{:?}", analysis.findings);
}

#[test]
fn the_table_prints_means_spreads_and_winners() {
    let mut record = two_by_two();
    record.runs[0].test_accuracy = Some(0.95);
    let summary = analyse(&record).summary;
    let labels: Vec<&str> = summary.columns.iter().map(|column| column.label.as_str()).collect();
    assert_eq!(labels, ["log₁₀ L", "steps", "γ of ℓ2", "γ of ℓ∞", "test accuracy"]);
    let contests: Vec<bool> = summary.columns.iter().map(|column| column.contest).collect();
    assert_eq!(contests, [false, false, true, true, false]);
    let texts: Vec<&str> = summary.rows[0].cells.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(texts, ["-20.00 ± 0.00", "10 ± 0", "3.10e-1 ± 1.0e-2", "1.10e-1 ± 1.0e-2", "95.00 %"]);
    assert_eq!(summary.rows[1].cells[4].text, "–");
    let winners = |row: usize| summary.rows[row].cells.iter().map(|cell| cell.winner).collect::<Vec<_>>();
    assert_eq!(winners(0), [false, false, true, false, false]);
    assert_eq!(winners(1), [false, false, false, true, false]);
    // one seed prints no spread, ties share
    let one = |optimiser: &str, margin| {
        run(optimiser, 0, &[("step", &[3.0]), ("log10_loss", &[-2.345]), ("margin.l2", &[margin])])
    };
    let summary = analyse(&self::record(vec![one("a", 0.5), one("b", 0.5 * (1.0 + 1e-14)), one("c", 0.4999)])).summary;
    let column: Vec<(&str, bool)> =
        summary.rows.iter().map(|r| (r.cells[2].text.as_str(), r.cells[2].winner)).collect();
    assert_eq!(column, [("5.00e-1", true), ("5.00e-1", true), ("5.00e-1", false)]);
    assert_eq!(summary.rows[0].cells[2].spread, 0.0);
}

#[test]
fn winning_the_margin_of_the_own_norm_is_as_expected() {
    let analysis = analyse(&two_by_two());
    for (title, winner) in [("Largest ℓ2 margin: gd", "gd (3.10e-1)"), ("Largest ℓ∞ margin: sign", "sign (2.10e-1)")]
    {
        let found = finding(&analysis, title);
        assert_eq!(found.as_expected, Some(true));
        for words in [winner, "has the largest", "do not overlap", "10^−20.0"] {
            assert!(found.text.contains(words), "{words} in {}", found.text);
        }
    }
}

#[test]
fn losing_the_own_norm_is_said_with_the_distance() {
    let one = |optimiser: &str, margin: f64| run(optimiser, 0, &[("step", &[9.0]), ("margin.l2", &[margin])]);
    let analysis = analyse(&record(vec![of("l2", one("gd", 0.45)), of("linf", one("sign", 0.5))]));
    let found = finding(&analysis, "Largest ℓ2 margin: sign");
    assert_eq!(found.as_expected, Some(false));
    assert!(found.text.contains("10.0 % behind"), "{}", found.text);
    // nobody's norm: nothing is expected
    let analysis = analyse(&record(vec![one("gd", 0.45), one("sign", 0.5)]));
    assert_eq!(finding(&analysis, "Largest ℓ2").as_expected, None);
    assert!(!finding(&analysis, "Largest ℓ2").text.contains("Theory"));
    // nothing separated: nothing is expected either
    let analysis = analyse(&record(vec![of("l2", one("gd", -0.1)), one("sign", -0.2)]));
    assert_eq!(finding(&analysis, "Largest ℓ2").as_expected, None);
    assert!(finding(&analysis, "Largest ℓ2").text.contains("None is positive"));
    // a single optimiser has nobody to beat
    assert!(analyse(&record(vec![of("l2", one("gd", 0.1))])).findings.is_empty());
}

#[test]
fn contests_are_fought_at_equal_settings() {
    let at = |optimiser: &str, geometry: &str, width: &str, margin: f64| RunRecord {
        point: vec![("width".into(), width.into())],
        ..of(geometry, run(optimiser, 0, &[("step", &[9.0]), ("margin.l2", &[margin])]))
    };
    // sign at width 8 beats gd at width 4, but not at its own width
    let wide = [at("gd", "l2", "8", 0.9), at("sign", "linf", "8", 0.8)];
    let narrow = [at("gd", "l2", "4", 0.2), at("sign", "linf", "4", 0.1)];
    let analysis = analyse(&record([narrow.clone(), wide.clone()].concat()));
    assert_eq!(finding(&analysis, "Largest ℓ2 margin: gd").as_expected, Some(true));
    let analysis = analyse(&record([narrow.to_vec(), wide.to_vec(), vec![at("adam", "linf", "4", 0.3)]].concat()));
    assert_eq!(finding(&analysis, "depends on the setting").as_expected, Some(false));
}

#[test]
fn the_soft_margin_is_watched_once_the_data_are_separated() {
    let with = |soft: &[f64]| {
        let columns: &[(&str, &[f64])] =
            &[("step", &[0.0, 1.0, 2.0, 3.0]), ("accuracy", &[0.5, 1.0, 1.0, 1.0]), ("soft_margin.l2", soft)];
        analyse(&record(vec![of("l2", run("gd", 0, columns))]))
    };
    let rising = with(&[9.0, 0.1, 0.2, 0.3]); // the fall before separation does not count
    assert_eq!(finding(&rising, "only grew").as_expected, Some(true));
    assert!(finding(&rising, "only grew").text.contains("never fell between two measurements for gd (ℓ2)"));
    let rounding = with(&[9.0, 0.1, 0.2, 0.2 * (1.0 - 1e-8)]);
    assert_eq!(finding(&rounding, "only grew").as_expected, Some(true));
    assert!(finding(&rounding, "only grew").text.contains("1.0e-8"));
    let falling = with(&[9.0, 0.2, 0.19, 0.25]);
    assert_eq!(finding(&falling, "soft margin fell").as_expected, Some(false));
    assert!(finding(&falling, "soft margin fell").text.contains("gd (ℓ2) by 5.00 %"));
    // a margin that is not yet positive, or of another geometry, says nothing
    assert!(with(&[9.0, -0.2, -0.3, f64::NAN]).findings.iter().all(|finding| !finding.title.contains("soft margin")));
    let foreign = run("sign", 0, &[("accuracy", &[1.0, 1.0]), ("soft_margin.l2", &[2.0, 1.0])]);
    assert!(analyse(&record(vec![of("linf", foreign)])).findings.iter().all(|f| !f.title.contains("soft margin")));
}

#[test]
fn the_course_of_training_is_told() {
    let deep = run(
        "gd",
        0,
        &[
            ("step", &[0.0, 1.0, 2.0, 5000.0]),
            ("log10_loss", &[0.0, -1.0, -2.0, -1234.56]),
            ("accuracy", &[0.5, 1.0, 1.0, 1.0]),
            ("direction_change", &[f64::NAN, 0.5, 4e-4, 1e-5]),
        ],
    );
    let analysis = analyse(&record(vec![deep.clone()]));
    let loss = finding(&analysis, "The loss went to 10^−1234.6");
    for words in ["gd to 10^−1234.6 after 5000 steps", "10^−308", "1 of 1 run classified"] {
        assert!(loss.text.contains(words), "{words} in {}", loss.text);
    }
    // 0.5 is among the last three
    assert!(finding(&analysis, "direction").title.contains("still turning"));
    let mut calm = deep;
    calm.metrics.values[3] = vec![f64::NAN, 9e-4, 4e-4, 1e-5];
    assert!(finding(&analyse(&record(vec![calm])), "direction").title.contains("The direction settled"));
}

#[test]
fn sparsity_balance_and_test_accuracy_are_reported_where_measured() {
    let one = |optimiser: &str, seed, small: f64, drift: f64, accuracy: f64| RunRecord {
        test_accuracy: Some(accuracy),
        ..run(
            optimiser,
            seed,
            &[("step", &[0.0, 1.0]), ("small_fraction.w", &[0.0, small]), ("balance_drift.euclidean", &[0.0, drift])],
        )
    };
    let mut record = record(vec![one("gd", 0, 0.75, 1e-3, 0.90), one("sign", 0, 0.01, 0.4, 0.95)]);
    record.data.test_examples = 200;
    let analysis = analyse(&record);
    assert!(finding(&analysis, "Sparsest weights: gd").text.contains("In w: gd 75.00 % and sign 1.00 %."));
    assert!(finding(&analysis, "Balance").text.contains("Measured by euclidean: gd 1.0e-3 and sign 4.0e-1."));
    let test = finding(&analysis, "Best on test examples: sign");
    assert!(test.text.contains("5.00 percentage points apart, about 10 examples of 200"), "{}", test.text);
    record.runs.truncate(1);
    assert!(finding(&analyse(&record), "Test accuracy of gd").text.contains("gd 90.00 %"));
}

#[test]
fn trouble_is_named_with_its_reason() {
    let stop = "the loss became NaN at step 12.".to_owned();
    let bad = RunRecord { healthy: false, failed: true, stop, steps: 12, ..run("adam", 3, &[]) };
    let analysis = analyse(&record(vec![bad, run("gd", 3, &[])]));
    let found = finding(&analysis, "1 of 2 runs ended in trouble");
    assert!(found.text.contains("adam (seed 3) after 12 steps: the loss became NaN at step 12."), "{}", found.text);
}

#[test]
fn failed_runs_are_listed_and_no_mean_counts_them() {
    let ended = |seed, loss: f64| run("gd", seed, &[("step", &[0.0, 1.0]), ("log10_loss", &[0.0, loss])]);
    let mut wild = RunRecord { healthy: false, failed: true, stop: "no number".into(), ..ended(3, 99.0) };
    wild.test_accuracy = Some(0.0);
    let alone = RunRecord { failed: true, stop: "no data".into(), ..run("sign", 1, &[]) };
    let analysis = analyse(&record(vec![ended(1, -3.0), ended(2, -5.0), wild, alone]));
    let [good, bad] = &analysis.summary.rows[..] else { panic!("two rows") };
    assert_eq!((good.cells[0].mean, good.seeds_in_words().as_str()), (-4.0, "2 of 3 seeds"));
    assert_eq!(good.cells.last().unwrap().text, "–");
    assert_eq!((bad.cells[0].text.as_str(), bad.seeds, bad.of), ("–", 0, 1));
    let band = &analysis.groups[0].bands[0];
    assert_eq!((band.mean.clone(), band.high.clone()), (vec![0.0, -4.0], vec![0.0, -3.0]));
    let listed: Vec<(&str, &str)> = analysis.failures.iter().map(|f| (f.run.as_str(), f.reason.as_str())).collect();
    assert_eq!(listed, [("gd-3", "no number"), ("sign-1", "no data")]);
}

#[test]
fn names_and_numbers_read_well() {
    for (key, name) in
        [("l1", "ℓ1"), ("l4/3", "ℓ4/3"), ("linf", "ℓ∞"), ("spectral", "σ₁"), ("l1-averaged", "l1-averaged"), ("l", "l")]
    {
        assert_eq!(norm_name(key), name);
    }
    assert_eq!((power_of_ten(-0.04), power_of_ten(2.0)), ("10^0.0".to_owned(), "10^2.0".to_owned()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_record_can_be_analysed(
        tables in prop::collection::vec((0_usize..3, prop::collection::vec(prop::num::f64::ANY, 0..12)), 0..6)
    ) {
        let names = ["step", "log10_loss", "accuracy", "margin.l2", "soft_margin.l2", "direction_change", "small_fraction.w"];
        let runs = tables.iter().enumerate().map(|(seed, (optimiser, values))| {
            let mut columns: Vec<(&str, &[f64])> = names.iter().map(|name| (*name, &values[..])).collect();
            columns.rotate_left(*optimiser);
            of("l2", run(["a", "b", "c"][*optimiser], seed as u64, &columns))
        });
        let record = record(runs.collect());
        let analysis = analyse(&record);
        prop_assert_eq!(analysis.groups.iter().map(|group| group.runs.len()).sum::<usize>(), record.runs.len());
        prop_assert_eq!(analysis.summary.rows.len(), analysis.groups.len());
        for band in analysis.groups.iter().flat_map(|group| &group.bands) {
            for (low, (mean, high)) in band.low.iter().zip(band.mean.iter().zip(&band.high)) {
                prop_assert!(mean.is_nan() || (low <= mean && mean <= high));
            }
            prop_assert_eq!(band.step.len(), band.mean.len());
        }
        prop_assert!(analysis.summary.rows.iter().all(|row| row.cells.len() == analysis.summary.columns.len()));
    }
}
