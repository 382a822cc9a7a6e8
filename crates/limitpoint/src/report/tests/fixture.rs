//! Made-up experiments that look like real ones: what reports are tested with.
//!
//! The numbers are smooth curves with a little noise of the seed, not the outcome of training. The parent module brings
//! `records`, the record types.

use super::records::{
    Analysis, Band, DataRecord, DecisionMap, ExperimentRecord, FeatureImages, Finding, Group, HistogramRecord, Metrics,
    Portrait, ReferenceLine, RunRecord, Summary, SummaryCell, SummaryColumn, SummaryRow, Table,
    analyse as records_analyse,
};

/// Name, formula, geometry.
const OPTIMISERS: [(&str, &str, &str); 8] = [
    ("gradient", "θ ← θ − η g", "l2"),
    ("sign", "θ ← θ − η ‖g‖₁ sign g", "linf"),
    ("coordinate", "θ ← θ − η g_j e_j", "l1"),
    ("muon", "W ← W − η polar(G)", "spectral"),
    ("adam", "θ ← θ − η m/(√v + ε)", "linf"),
    ("momentum", "m ← βm + g, θ ← θ − η m", "l2"),
    ("shampoo", "W ← W − η L^{−1/4} G R^{−1/4}", "spectral"),
    ("l3-steepest", "steepest descent in ℓ3", "l3"),
];

const NORMS: [&str; 4] = ["l1", "l2", "linf", "spectral"];

/// Numbers in [−1, 1) that depend on their place only.
fn noise(seed: u64, place: u64) -> f64 {
    let mut z = (seed << 32 ^ place).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Eight optimisers, three seeds, losses down to 10⁻¹⁰⁰, four norms, histograms and 8 × 8 features.
pub fn digits() -> (ExperimentRecord, Analysis) {
    let mut runs = Vec::new();
    for (place, optimiser) in OPTIMISERS.iter().enumerate() {
        for seed in 0..3 {
            let mut run = run(place, optimiser, seed, 148, &["layer1", "layer2"]);
            run.histograms = histograms(place, seed);
            run.portrait.features = Some(features(place, seed));
            run.test_accuracy = Some(0.955 + 0.01 * noise(seed, place as u64));
            runs.push(run);
        }
    }
    let troubled = &mut runs[14];
    (troubled.healthy, troubled.failed, troubled.stop) =
        (false, true, "step size fell below 1e-300 at step 81,442".into());
    let record = ExperimentRecord {
        name: "digits".into(),
        title: "Which margin does each optimiser maximise on digits?".into(),
        description: "A two-layer ReLU network without biases is trained on handwritten digits far beyond zero training \
                      error, down to a loss of 10⁻¹⁰⁰. Theory says that steepest descent in a norm tends to a direction \
                      whose margin in that norm is locally largest.\n\nEvery optimiser starts from the same three points."
            .into(),
        config: "title = \"Which margin?\"\nseeds = [0, 1, 2]\n\n[data]\nkind = \"digits\"\nclasses = [0, 1]\n\n[model]\nkind = \
                 \"dense\"\nwidths = [64, 1]\n\n[optimisers.sign]\nkind = \"steepest\"\nnorm = \"linf\"\n"
            .into(),
        version: "0.1.0".into(),
        data: DataRecord {
            name: "digits".into(),
            examples: 1437,
            test_examples: 360,
            input_shape: vec![8, 8],
            sha256: "5f2c".repeat(16),
        },
        references: vec![ReferenceLine {
            column: "margin.l2".into(),
            value: 0.121,
            label: "exact optimum 0.121".into(),
        }],
        runs,
    };
    let analysis = analyse(&record);
    (record, analysis)
}

/// Three optimisers on two features: decision regions, one seed, losses down to 10⁻¹⁰⁰⁰⁰⁰, hostile names.
pub fn plane() -> (ExperimentRecord, Analysis) {
    let runs: Vec<RunRecord> = [0, 1, 2]
        .map(|place| {
            let mut run = run(place, &OPTIMISERS[place], 7, 60, &["w"]);
            for (name, values) in run.metrics.columns.iter().zip(&mut run.metrics.values) {
                if name == "log10_loss" {
                    values.iter_mut().for_each(|value| *value *= 1000.0);
                }
            }
            run.portrait.decision = Some(decision(place));
            run
        })
        .to_vec();
    let record = ExperimentRecord {
        name: "plane".into(),
        title: "Two features & <three> optimisers".into(),
        description: "Decision regions of \"small\" models.".into(),
        config: "# </pre></details><script>alert(1)</script>\n".into(),
        version: "0.1.0".into(),
        data: DataRecord {
            name: "</script><b>circle\u{2028}".into(),
            examples: 40,
            input_shape: vec![2],
            ..DataRecord::default()
        },
        runs,
        ..ExperimentRecord::default()
    };
    let analysis = analyse(&record);
    (record, analysis)
}

fn run(
    place: usize,
    (optimiser, formula, geometry): &(&str, &str, &str),
    seed: u64,
    rows: usize,
    blocks: &[&str],
) -> RunRecord {
    let steps: Vec<f64> = std::iter::once(0.0)
        .chain((0..rows - 1).map(|row| 10f64.powf(5.0 * row as f64 / (rows - 2) as f64).round()))
        .collect();
    let speed = 1.0 - 0.07 * place as f64 + 0.03 * noise(seed, 900 + place as u64);
    // 0 at the start, 1 at step 10⁵
    let age = |step: f64| (step + 1.0).log10() / 5.0;
    let log10_loss = |step: f64| -0.16 - 100.0 * speed * age(step).powi(3);
    let mut metrics = Metrics::default();
    let mut column = |name: String, value: &dyn Fn(f64) -> f64| {
        metrics.columns.push(name);
        metrics.values.push(steps.iter().map(|step| value(*step)).collect());
    };
    let wobble = |name: u64, step: f64| noise(seed, name * 1_000_003 + step as u64);
    column("step".into(), &|step| step);
    column("epoch".into(), &|step| step);
    column("log10_time".into(), &|step| (step + 0.1).log10() - 1.0 + 40.0 * age(step).powi(4));
    column("log10_loss".into(), &log10_loss);
    column("accuracy".into(), &|step| (0.6 + 2.0 * age(step)).min(1.0));
    column("smallest_margin".into(), &|step| 230.0 * speed * age(step).powi(3) - 0.4);
    column("direction_change".into(), &|step| if step == 0.0 { f64::NAN } else { 0.3 * (-6.0 * age(step)).exp() });
    for (index, norm) in NORMS.iter().enumerate() {
        let home = norm == geometry;
        let best = 0.12 / (1.0 + index as f64) * if home { 1.0 } else { 0.82 - 0.05 * ((place + index) % 5) as f64 };
        let tag = (place * 10 + index) as u64;
        let margin = |step: f64| best * (1.0 - 1.6 * (-5.0 * age(step)).exp()) * (1.0 + 0.02 * noise(seed, tag));
        let gap =
            |step: f64| (if home { 1e-5 } else { 0.05 }) + (0.8 + 0.1 * wobble(tag, step)) * (-7.0 * age(step)).exp();
        column(format!("norm.{norm}"), &|step| {
            (4.0 + index as f64) * (1.0 + 60.0 * speed * age(step).powi(2 + place as i32 % 3))
        });
        column(format!("margin.{norm}"), &margin);
        column(format!("soft_margin.{norm}"), &|step| margin(step) - 0.02 * (-4.0 * age(step)).exp());
        column(format!("alignment.{norm}"), &|step| 1.0 - gap(step));
        let separated = |step: f64, value: f64| if margin(step) > 0.0 { value } else { f64::NAN };
        column(format!("kkt_gap.{norm}"), &|step| separated(step, gap(step)));
        column(format!("kkt_slack.{norm}"), &|step| separated(step, 0.4 * gap(step)));
    }
    for potential in ["euclidean", "hyperbolic-entropy"] {
        column(format!("balance_drift.{potential}"), &|step| {
            -1e-9 * (step + 1.0).sqrt() * (1.0 + 0.5 * wobble(77, step)) * (1.0 + place as f64)
        });
        column(format!("gauge.{potential}"), &|_| f64::NAN);
        column(format!("q_margin.{potential}"), &|step| 0.03 * age(step));
    }
    for (layer, block) in blocks.iter().enumerate() {
        let sparse = 0.08 * place as f64;
        column(format!("small_fraction.{block}"), &|step| (0.02 + sparse * age(step)) / (1.0 + layer as f64));
        column(format!("participation.{block}"), &|step| 2600.0 * (1.0 - (0.3 + sparse) * age(step)));
    }
    if blocks.len() > 1 {
        column("active_neurons.layer1".into(), &|step| (64.0 - 7.0 * place as f64 * age(step)).round());
    }
    RunRecord {
        name: format!("{optimiser}-s{seed}"),
        optimiser: (*optimiser).into(),
        formula: (*formula).into(),
        geometry: Some((*geometry).into()),
        seed,
        stop: format!("log₁₀ L below {}", -100 + 10 * place as i64),
        healthy: true,
        steps: 100_000 - 977 * seed,
        seconds: 3.2 + place as f64 + 0.21 * seed as f64,
        metrics,
        ..RunRecord::default()
    }
}

fn histograms(place: usize, seed: u64) -> Vec<HistogramRecord> {
    let counts = |weights: f64, sharpness: f64, salt: u64| -> Vec<usize> {
        let share = |bin: u64| weights * (-(bin as f64) * sharpness).exp() * (1.0 + 0.1 * noise(seed, salt + bin));
        (0..40).map(|bin| share(bin).max(0.0) as usize).collect()
    };
    let one = |index: u64| HistogramRecord {
        step: if index == 0 { 0 } else { 10f64.powf(index as f64 * 5.0 / 11.0) as u64 },
        blocks: vec![
            ("layer1".into(), counts(500.0, 0.05 + 0.006 * (index * (1 + place as u64)) as f64, index * 100)),
            ("layer2".into(), counts(12.0, 0.03, index * 100 + 50)),
        ],
    };
    (0..12).map(one).collect()
}

fn features(place: usize, seed: u64) -> FeatureImages {
    let image = |unit: u64| -> Vec<f64> {
        let (a, b) = (noise(seed, unit + 31 * place as u64), noise(seed + 9, unit));
        let raw: Vec<f64> = (0..64)
            .map(|pixel| {
                let (x, y) = (f64::from(pixel % 8) / 3.5 - 1.0, f64::from(pixel / 8) / 3.5 - 1.0);
                (3.0 * (x * a + y * b)).sin() * (-(x * x + y * y) * (0.4 + a * a)).exp()
            })
            .collect();
        let largest = raw.iter().fold(1e-12, |largest: f64, value| largest.max(value.abs()));
        raw.iter().map(|value| value / largest).collect()
    };
    FeatureImages {
        rows: 8,
        cols: 8,
        images: (0..12).map(image).collect(),
        strengths: (0..12).map(|unit| (-0.18 * f64::from(unit)).exp()).collect(),
    }
}

fn decision(place: usize) -> DecisionMap {
    let grid: Vec<f64> = (0..61).map(|index| -1.5 + 3.0 * f64::from(index) / 60.0).collect();
    let power = [2.0, 8.0, 1.0][place];
    let radius = |x: f64, y: f64| (x.abs().powf(power) + y.abs().powf(power)).powf(1.0 / power);
    let score = |x: f64, y: f64| ((1.0 - radius(x, y)) / 1.2).clamp(-1.0, 1.0);
    let example = |index: u64| {
        let (angle, inside) = (0.157 * index as f64 * 2.0, index.is_multiple_of(2));
        let r = if inside { 0.5 } else { 1.35 } + 0.08 * noise(3, index);
        (r * angle.cos(), r * angle.sin(), if inside { 1.0 } else { -1.0 })
    };
    DecisionMap {
        scores: grid.iter().map(|y| grid.iter().map(|x| score(*x, *y)).collect()).collect(),
        x: grid.clone(),
        y: grid,
        examples: (0..40).map(example).collect(),
    }
}

/// Five optimisers at so many widths, two seeds each: ten runs for every width, of which some of Adam's fail.
pub fn sweep(widths: usize) -> (ExperimentRecord, Analysis) {
    let mut runs = Vec::new();
    for width in 0..widths {
        for (place, optimiser) in OPTIMISERS.iter().enumerate().take(5) {
            for seed in 0..2 {
                let mut run = run(place, optimiser, seed, 148, &["layer1", "layer2"]);
                let value = (16 << (width % 6)) + width / 6;
                run.name = format!("{optimiser}-width={value}-seed{seed}", optimiser = optimiser.0);
                run.point = vec![("model.width".into(), value.to_string())];
                for (name, values) in run.metrics.columns.iter().zip(&mut run.metrics.values) {
                    if name.starts_with("margin.") {
                        values.iter_mut().for_each(|margin| *margin *= (value as f64).powf(0.3 - 0.1 * place as f64));
                    }
                }
                run.test_accuracy = Some(0.9 + 0.02 * noise(seed, (width * 8 + place) as u64));
                run.histograms = histograms(place, seed);
                run.portrait.features = Some(features(place, seed));
                if place == 4 && width % 3 == 2 && (seed == 1 || width % 2 == 0) {
                    (run.healthy, run.failed, run.stop) = (false, true, format!("ln L = NaN at step {}", 100 + width));
                    run.metrics.values.iter_mut().for_each(|values| values.truncate(20));
                }
                runs.push(run);
            }
        }
    }
    let record = ExperimentRecord {
        name: "sweep".into(),
        title: "How wide must a network be?".into(),
        description: "Five optimisers train networks of many widths.".into(),
        version: "0.1.0".into(),
        runs,
        ..ExperimentRecord::default()
    };
    let analysis = records_analyse(&record);
    (record, analysis)
}

/// Groups runs by optimiser; bands are exact, findings are made up.
fn analyse(record: &ExperimentRecord) -> Analysis {
    let mut groups: Vec<Group> = Vec::new();
    for (index, run) in record.runs.iter().enumerate() {
        match groups.iter_mut().find(|group| group.optimiser == run.optimiser) {
            Some(group) => group.runs.push(index),
            None => groups.push(Group {
                label: run.optimiser.clone(),
                optimiser: run.optimiser.clone(),
                setting: String::new(),
                runs: vec![index],
                bands: Vec::new(),
            }),
        }
    }
    for group in &mut groups {
        let metrics: Vec<&Metrics> = group.runs.iter().map(|index| &record.runs[*index].metrics).collect();
        group.bands = bands(&metrics);
    }
    let keys = NORMS.map(|norm| format!("margin.{norm}"));
    let heading = |norm: &str| format!("γ of {}", norm.replace("linf", "ℓ∞").replace("l1", "ℓ1").replace("l2", "ℓ2"));
    let column = |(norm, key): (&str, &String)| SummaryColumn { key: key.clone(), label: heading(norm), contest: true };
    let mut columns: Vec<SummaryColumn> = NORMS.iter().zip(&keys).map(|(norm, key)| column((norm, key))).collect();
    columns.push(SummaryColumn { key: "log10_loss".into(), label: "log₁₀ L".into(), contest: false });
    let last = |group: &Group, key: &str| {
        let band = group.bands.iter().find(|band| band.column == key)?;
        Some((*band.mean.last()?, (band.high.last()? - band.low.last()?) / 2.0))
    };
    let cell = |group: &Group, column: &SummaryColumn| {
        let (mean, spread) = last(group, &column.key).unwrap_or((f64::NAN, 0.0));
        let best =
            groups.iter().filter_map(|other| last(other, &column.key)).map(|(mean, _)| mean).fold(f64::MIN, f64::max);
        let text = if column.contest { format!("{mean:.4} ± {spread:.4}") } else { format!("{mean:.1}") };
        SummaryCell { mean, spread, winner: column.contest && mean == best, text }
    };
    let row = |group: &Group| SummaryRow {
        label: group.label.clone(),
        cells: columns.iter().map(|column| cell(group, column)).collect(),
        seeds: group.runs.len(),
        of: group.runs.len(),
    };
    let finding = |title: &str, text: &str, as_expected| Finding {
        title: title.into(),
        text: text.into(),
        as_expected,
        in_part: false,
        explanation: "What the numbers are.".into(),
        table: Table { columns: vec!["optimiser".into()], rows: vec![vec!["sign".into()]] },
    };
    let Analysis { standing, failures, failure_kinds, .. } = records_analyse(record);
    Analysis {
        standing,
        failures,
        failure_kinds,
        sweeps: Vec::new(),
        maps: Vec::new(),
        table: Default::default(),
        summary: Summary { rows: groups.iter().map(row).collect(), columns },
        groups,
        findings: vec![
            finding(
                "sign wins in ℓ∞",
                "The largest ℓ∞ margin is that of sign, 0.0400 ± 0.0005, 18 % above the next, gradient. Its theory says so.",
                Some(true),
            ),
            finding(
                "muon does not win in spectral",
                "Shampoo's spectral margin is larger by 0.0003, which is less than the spread over seeds.",
                Some(false),
            ),
            finding("All runs separate the data", "Every run reached accuracy 1 before step 312.", None),
        ],
    }
}

fn bands(metrics: &[&Metrics]) -> Vec<Band> {
    let rows = metrics[0].len();
    let fold = |name: &str, start: f64, with: fn(f64, f64) -> f64| -> Vec<f64> {
        (0..rows).map(|row| metrics.iter().map(|m| m.column(name)[row]).fold(start, with)).collect()
    };
    let mean = |name: &str| -> Vec<f64> {
        fold(name, 0.0, |a, b| a + b).iter().map(|sum| sum / metrics.len() as f64).collect()
    };
    let band = |name: &String| Band {
        column: name.clone(),
        step: metrics[0].column("step").to_vec(),
        log10_time: mean("log10_time"),
        log10_loss: mean("log10_loss"),
        mean: mean(name),
        low: fold(name, f64::INFINITY, f64::min),
        high: fold(name, f64::NEG_INFINITY, f64::max),
    };
    let finite = |name: &&String| metrics.iter().any(|m| m.column(name).iter().any(|value| value.is_finite()));
    metrics[0].columns.iter().filter(finite).map(band).collect()
}

/// A page with nothing but a name.
pub fn bare() -> (ExperimentRecord, Analysis) {
    let portrait = Portrait::default();
    let run = RunRecord { name: "only".into(), portrait, ..RunRecord::default() };
    (ExperimentRecord { name: "bare".into(), runs: vec![run], ..ExperimentRecord::default() }, Analysis::default())
}
