//! Figures are well-formed, repeat bit for bit, and show every group.

use super::{Figure, figures, name};
use crate::experiments::{ExperimentRecord, Metrics, ReferenceLine, RunRecord, analyse};

fn run(optimiser: &str, seed: u64, columns: &[(&str, Vec<f64>)]) -> RunRecord {
    let metrics = Metrics {
        columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
        values: columns.iter().map(|(_, values)| values.clone()).collect(),
    };
    RunRecord { optimiser: optimiser.into(), seed, healthy: true, metrics, ..Default::default() }
}

/// Three optimisers, two seeds each, one of them with a name that XML must escape.
fn record() -> ExperimentRecord {
    let steps: Vec<f64> = std::iter::once(0.0).chain((0..60).map(|i| 1.2_f64.powi(i).round())).collect();
    let mut runs = Vec::new();
    for (place, optimiser) in ["gd", "sign & <momentum>", "mirror"].into_iter().enumerate() {
        for seed in 0..2 {
            let of = |value: &dyn Fn(f64) -> f64| steps.iter().map(|step| value(*step)).collect::<Vec<f64>>();
            let (slope, shift) = (1.0 + place as f64, 0.01 * seed as f64);
            runs.push(run(
                optimiser,
                seed,
                &[
                    ("step", steps.clone()),
                    ("log10_loss", of(&|t| 1.0 - slope * t.sqrt())),
                    ("margin.l2", of(&|t| 0.05 * slope * (0.3 + shift - 1.0 / (1.0 + t)))),
                    ("margin.max(l2,linf)", of(&|t| if t < 100.0 { f64::NAN } else { 1e-6 * t.ln() })),
                    ("norm.l2", of(&|t| (2.0 + t).ln())),
                    ("balance_drift.euclidean", of(&|t| 1e-7 * t)),
                    ("balance_drift.hyperbolic", of(&|_| f64::NAN)),
                ],
            ));
        }
    }
    let references =
        vec![ReferenceLine { column: "margin.l2".into(), value: 0.05, label: "exact \"optimum\" < 1".into() }];
    ExperimentRecord { runs, references, ..Default::default() }
}

fn drawn(record: &ExperimentRecord) -> Vec<Figure> {
    figures(record, &analyse(record))
}

/// Checks nesting, quoting and escaping; returns the names of all elements.
fn elements(xml: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut all = Vec::new();
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        let end = start + rest[start..].find('>').expect("tags end");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closes what is open");
            continue;
        }
        let body = tag.strip_suffix('/').unwrap_or(tag);
        let (name, mut attributes) = body.split_once(' ').unwrap_or((body, ""));
        while let Some((key, after)) = attributes.trim_start().split_once("=\"") {
            assert!(!key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "attribute {key}");
            let (value, after) = after.split_once('"').expect("values are quoted");
            check_text(value);
            attributes = after;
        }
        assert!(attributes.trim().is_empty(), "attributes of {tag}");
        all.push(name.to_owned());
        if !tag.ends_with('/') {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "everything is closed: {open:?}");
    all
}

fn check_text(text: &str) {
    for (place, _) in text.match_indices('&') {
        let entity = text[place..].split_inclusive(';').next().unwrap_or_default();
        assert!(["&amp;", "&lt;", "&gt;", "&quot;", "&apos;"].contains(&entity), "{entity}");
    }
}

#[test]
fn every_measured_quantity_has_a_figure() {
    let names: Vec<String> = drawn(&record()).into_iter().map(|figure| figure.name).collect();
    assert_eq!(names, ["loss", "margin-l2", "margin-max-l2-linf", "norm-l2", "balance-euclidean"]);
    assert_eq!(name("norm", "l4/3"), "norm-l4-3");
}

#[test]
fn figures_are_well_formed_and_show_every_group() {
    for Figure { name, svg } in drawn(&record()) {
        let elements = elements(&svg);
        assert_eq!(elements[0], "svg", "{name}");
        assert!(svg.contains("width=\"340pt\"") && svg.contains("Latin Modern Roman"), "{name}");
        for colour in ["#0072B2", "#D55E00", "#009E73"] {
            let lines = svg.split("<polyline").skip(1).filter(|line| line.split('>').next().unwrap().contains(colour));
            assert!(lines.count() >= 2, "{name}: a sample in the legend and a line for {colour}");
        }
        for label in ["\ngd\n", "sign &amp; &lt;momentum&gt;", "\nmirror\n"] {
            assert!(svg.contains(label), "{name}: {label}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}");
    }
}

#[test]
fn ranges_over_seeds_are_shaded_and_references_are_named() {
    let figures = drawn(&record());
    assert!(figures[1].svg.contains("<polygon") && figures[1].svg.contains("exact "), "{}", figures[1].name);
    assert!(!figures[0].svg.contains("<polygon"), "equal seeds have no range");
    for exponent in ["0", "3", "−400"] {
        let raised = format!("\n10<tspan dy=\"-36\" font-size=\"70\">{exponent}</tspan>\n");
        assert!(figures[0].svg.contains(&raised), "{raised}");
    }
    assert!(figures[2].svg.contains("(10<tspan dy=\"-36\" font-size=\"70\">−5</tspan><tspan dy=\"36\">)</tspan>"));
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    assert_eq!(drawn(&record()), drawn(&record()));
}

#[test]
fn little_or_no_data_is_no_trouble() {
    assert!(drawn(&ExperimentRecord::default()).is_empty());
    let lone =
        run("gd", 0, &[("step", vec![0.0, 5.0]), ("log10_loss", vec![0.0, -3.0]), ("margin.l2", vec![1.0, 0.0])]);
    let start = run("gd", 0, &[("step", vec![0.0]), ("log10_loss", vec![0.0])]);
    assert!(drawn(&ExperimentRecord { runs: vec![start], ..Default::default() }).is_empty());
    let figures = drawn(&ExperimentRecord { runs: vec![lone], ..Default::default() });
    assert_eq!(figures.len(), 2);
    figures.iter().for_each(|figure| assert!(elements(&figure.svg).len() > 5));
}

#[test]
fn many_groups_make_a_longer_legend() {
    let runs = (0..40).map(|i| {
        run(&format!("optimiser-{i}"), 0, &[("step", vec![1.0, 10.0]), ("log10_loss", vec![0.0, -f64::from(i)])])
    });
    let figures = drawn(&ExperimentRecord { runs: runs.collect(), ..Default::default() });
    elements(&figures[0].svg);
    assert!((0..40).all(|i| figures[0].svg.contains(&format!("\noptimiser-{i}\n"))));
}
