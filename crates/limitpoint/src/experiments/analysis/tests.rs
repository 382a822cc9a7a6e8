//! Hand-made records whose conclusions can be checked by eye.

use proptest::prelude::*;

use super::analyse;
use super::words::{norm_name, power_of_ten, share};
use crate::experiments::{Analysis, ExperimentRecord, Finding, Metrics, RunRecord};

pub(super) fn table(columns: &[(&str, &[f64])]) -> Metrics {
    Metrics {
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        values: columns.iter().map(|(_, values)| values.to_vec()).collect(),
    }
}

pub(super) fn run(optimiser: &str, seed: u64, columns: &[(&str, &[f64])]) -> RunRecord {
    let metrics = table(columns);
    let steps = metrics.last("step").unwrap_or(0.0) as u64;
    let name = format!("{optimiser}-{seed}");
    RunRecord { name, optimiser: optimiser.into(), seed, healthy: true, steps, metrics, ..Default::default() }
}

pub(super) fn of(geometry: &str, run: RunRecord) -> RunRecord {
    RunRecord { geometry: Some(geometry.into()), ..run }
}

pub(super) fn record(runs: Vec<RunRecord>) -> ExperimentRecord {
    ExperimentRecord { name: "hand-made".into(), runs, ..Default::default() }
}

pub(super) fn finding<'a>(analysis: &'a Analysis, title: &str) -> &'a Finding {
    let titles: Vec<&str> = analysis.findings.iter().map(|finding| finding.title.as_str()).collect();
    analysis.findings.iter().find(|f| f.title.contains(title)).unwrap_or_else(|| panic!("{title} not in {titles:?}"))
}

/// Two optimisers, two norms, two seeds; each wins its own norm.
pub(super) fn two_by_two() -> ExperimentRecord {
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
    for (title, winner) in [("Largest ℓ2 margin: gd", "gd: 3.10e-1"), ("Largest ℓ∞ margin: sign", "sign: 2.10e-1")]
    {
        let found = finding(&analysis, title);
        assert_eq!(found.as_expected, Some(true));
        for words in [winner, "are apart", "is the norm of"] {
            assert!(found.text.contains(words), "{words} in {}", found.text);
        }
        assert!(found.explanation.contains("10^−20.0"), "{}", found.explanation);
        assert_eq!(found.table.rows.len(), 2);
    }
}

/// Adam and sign descent are both named for ℓ∞; that sign wins does not make Adam's last place expected.
#[test]
fn nothing_is_as_expected_while_one_of_those_theory_names_is_behind() {
    let one = |optimiser: &str, geometry: &str, margin: f64| {
        of(geometry, run(optimiser, 0, &[("step", &[9.0]), ("margin.linf", &[margin])]))
    };
    let with_adam = |margin| {
        let runs = vec![one("sign", "linf", 286.0), one("gradient", "l2", 3.84), one("adam", "linf", margin)];
        finding(&analyse(&record(runs)), "Largest ℓ∞ margin: sign").clone()
    };
    for margin in [1.61, 100.0, 280.0] {
        let found = with_adam(margin);
        assert_eq!((found.as_expected, found.in_part), (Some(false), true), "{}", found.text);
        assert!(found.text.contains("adam has "), "{}", found.text);
    }
    assert_eq!(with_adam(284.0).as_expected, Some(true));
    // the norm of a mirror method is that of its horizon
    let mut mirror = one("mirror", "smoothed:3", 1.0);
    mirror.own_norm = Some("linf".into());
    let analysis = analyse(&record(vec![mirror, one("gradient", "l2", 2.0)]));
    assert_eq!(finding(&analysis, "Largest ℓ∞ margin: gradient").as_expected, Some(false));
    // a norm that no theory speaks of is only its own
    let mut shampoo = run("shampoo", 0, &[("step", &[9.0]), ("margin.linf", &[1.0])]);
    shampoo.own_norm = Some("linf".into());
    let analysis = analyse(&record(vec![shampoo, one("gradient", "l2", 2.0)]));
    assert_eq!(finding(&analysis, "Largest ℓ∞ margin: gradient").as_expected, None);
}

#[test]
fn findings_take_two_lines_and_keep_their_numbers_in_tables() {
    let names = ["gradient", "sign", "coordinate", "spectral", "adam", "muon", "mirror-hyperbolic", "mirror-p"];
    let columns = |place: usize| {
        let margin = 0.1 + 0.01 * place as f64;
        vec![
            ("step", vec![0.0, 1.0, 9000.0]),
            ("log10_loss", vec![0.5, -1.0, -100.0]),
            ("accuracy", vec![0.5, 1.0, 1.0]),
            ("direction_change", vec![f64::NAN, 0.5, 0.1]),
            ("margin.linf", vec![-1.0, 0.0, margin]),
            ("soft_margin.linf", vec![-1.0, 0.2, 0.1]),
            ("small_fraction.layer1.weight", vec![0.1, 0.2, margin]),
            ("balance_drift.hyperbolic:0.0001", vec![0.0, 0.1, margin]),
        ]
    };
    let one = |place: usize, seed: u64| {
        let columns = columns(place);
        let borrowed: Vec<(&str, &[f64])> = columns.iter().map(|(name, values)| (*name, &values[..])).collect();
        let (failed, forgets) = (place == 3 && seed == 0, Some(5e-4));
        let stop = "ln L = NaN at step 9000".to_owned();
        let run = of("linf", run(names[place], seed, &borrowed));
        RunRecord { test_accuracy: Some(0.9 + 0.01 * place as f64), healthy: !failed, failed, stop, forgets, ..run }
    };
    let mut record =
        record((0..8).flat_map(|place| (0..2).map(move |seed| (place, seed))).map(|(p, s)| one(p, s)).collect());
    record.data.test_examples = 257;
    let analysis = analyse(&record);
    assert_eq!(analysis.findings.len(), 9, "{:?}", analysis.findings.iter().map(|f| &f.title).collect::<Vec<_>>());
    for found in &analysis.findings {
        // a line of the page holds about 125 characters
        assert!(found.text.chars().count() <= 240, "{}: {}", found.title, found.text);
        assert!(!found.table.rows.is_empty(), "{}", found.title);
        assert!(found.table.rows.iter().all(|row| row.len() == found.table.columns.len()), "{}", found.title);
    }
    assert!(finding(&analysis, "Faster than the memory").text.contains("memory=0.5"));
}

#[test]
fn losing_the_own_norm_is_said_with_the_distance() {
    let one = |optimiser: &str, margin: f64| run(optimiser, 0, &[("step", &[9.0]), ("margin.l2", &[margin])]);
    let analysis = analyse(&record(vec![of("l2", one("gd", 0.45)), of("linf", one("sign", 0.5))]));
    let found = finding(&analysis, "Largest ℓ2 margin: sign");
    assert_eq!((found.as_expected, found.in_part), (Some(false), false));
    assert!(found.text.contains("gd has 90 %"), "{}", found.text);
    // nobody's norm: nothing is expected
    let analysis = analyse(&record(vec![one("gd", 0.45), one("sign", 0.5)]));
    assert_eq!(finding(&analysis, "Largest ℓ2").as_expected, None);
    assert!(!finding(&analysis, "Largest ℓ2").explanation.contains("Theory"));
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
    assert!(finding(&rising, "only grew").text.contains("Never fell between two measurements for gd (ℓ2)"));
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
    assert!(loss.text.contains("1 of 1 run classified") && loss.explanation.contains("10^−308"), "{loss:?}");
    assert_eq!(loss.table.rows, [["gd", "10^−1234.6", "5000"]]);
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
    assert_eq!(finding(&analysis, "Sparsest weights: gd").table.rows, [["gd", "75.00 %"], ["sign", "1.00 %"]]);
    let balance = finding(&analysis, "Balance");
    assert!(balance.text.contains("up to 4.0e-1"), "{}", balance.text);
    assert_eq!(balance.table.rows[0], ["euclidean", "gd", "1.0e-3", ""]);
    let test = finding(&analysis, "Best on test examples: sign");
    assert!(test.text.contains("apart by about 10 examples of 200"), "{}", test.text);
    record.runs.truncate(1);
    assert!(finding(&analyse(&record), "Test accuracy of gd").text.contains("90.00 %"));
}

#[test]
fn trouble_is_named_with_its_reason() {
    let stop = "the loss became NaN at step 12.".to_owned();
    let bad = RunRecord { healthy: false, failed: true, stop, steps: 12, ..run("adam", 3, &[]) };
    let analysis = analyse(&record(vec![bad, run("gd", 3, &[])]));
    let found = finding(&analysis, "1 of 2 runs ended in trouble");
    assert!(found.text.contains("adam (seed 3): the loss became NaN at step 12."), "{}", found.text);
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
    let shares = [1.0, 0.9994, 0.84, 0.056, 0.0057, 1e-6, 0.0, -0.2, f64::NAN, 0.995, 0.98999].map(share);
    let texts = ["100 %", "99.94 %", "84 %", "5.6 %", "0.57 %", "< 0.01 %", "0", "0", "–", "99.50 %", "99 %"];
    assert_eq!(shares, texts);
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
