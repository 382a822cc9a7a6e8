//! VGG-16 on CIFAR-10 (C section J.3, D appendix J).

use limitpoint::experiments::RunRecord;
use limitpoint::report::Sketch;

use super::material::{FINAL, Material, checkpoint};
use super::reading::{Reading, mean_and_spread, mean_curve, shares, with_curve};
use super::{Exhibit, MadeOf};
use crate::ClaimError;

const COPY: &str =
    "The images at hand are a copy of CIFAR-10 that was recompressed as JPEG: accuracies are of that copy.";
const EXPONENT: &str =
    "The metric of p = 10 has the width to the power (p − 2)/2; as printed, (2 − p)/2, it is gradient descent.";
const COST: &str = "Runs of 500,000 steps: by the measured 4.5 ms of a step 38 minutes each of one H200 without evaluations, a day and a half for \
                    all 54.";
const LONG: &str = "Runs of 5,000,000 steps: by the measured 4.5 ms of a step six hours each of one H200 without evaluations, about three times \
                    that at the loss-based rate. Print does not say how many epochs are shown; 10,000 are those of its text on Figure 7.";
const SHORT: &str = "The runs marked '10 epochs' are a hundredth of those in print, with one seed and one rate, for the maps of Figure 4: they are \
                     no substitute for the numbers in print.";
const METRICS: &[&str] = &["c-vgg16", "c-vgg16-short"];
/// The runs that C Figure 4 shows.
pub(super) const SHOWN: [&str; 4] = ["gradient", "hyp-1e-5", "p10-1e-5", "p10-1"];

pub(super) const EXHIBITS: [Exhibit; 5] = [
    Exhibit {
        id: "C.tab9",
        shows: "Test accuracy of VGG-16 by the metric of three mirror maps, the best of all rates and λ",
        made_of: MadeOf::Runs { sets: METRICS, read: table_9 },
        departures: &[COPY, EXPONENT, COST, SHORT],
    },
    Exhibit {
        id: "C.fig4",
        shows: "Weights of the first layer of VGG-16 by mirror map, and accuracy after small weights are cut",
        made_of: MadeOf::Runs { sets: METRICS, read: |m| layer(m, true) },
        departures: &[COPY, EXPONENT, COST, SHORT],
    },
    Exhibit {
        id: "C.fig14",
        shows: "Weights of the last layer of VGG-16 by mirror map",
        made_of: MadeOf::Runs { sets: METRICS, read: |m| layer(m, false) },
        departures: &[COPY, EXPONENT, COST, SHORT],
    },
    Exhibit {
        id: "D.fig5",
        shows: "Loss and margins of VGG-16 at the constant rate 0.1, with and without biases",
        made_of: MadeOf::Runs { sets: &["d-vgg16"], read: |m| course(m, &["d-vgg16"]) },
        departures: &[COPY, LONG],
    },
    Exhibit {
        id: "D.fig6",
        shows: "Loss and margins of VGG-16 with the loss-based rate, with and without biases",
        made_of: MadeOf::Runs {
            sets: &["d-vgg16-loss", "d-vgg16-loss-biased"],
            read: |m| course(m, &["d-vgg16-loss", "d-vgg16-loss-biased"]),
        },
        departures: &[COPY, LONG],
    },
];

const LAMBDAS: [&str; 4] = ["1e-5", "0_01", "0_1", "1"];

/// Names of the optimisers of a mirror map.
fn family(map: &str) -> Vec<String> {
    if map == "gradient" { vec![map.to_owned()] } else { LAMBDAS.map(|lambda| format!("{map}-{lambda}")).to_vec() }
}

fn table_9(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let maps = [
        ("gradient", "gradient descent", [81.26, 0.15]),
        ("p10", "p = 10", [81.26, 0.12]),
        ("hyp", "hyperbolic", [81.96, 0.41]),
    ];
    for (map, words, printed) in maps {
        // the best mean over seeds of all λ and rates, as the table has it
        let mut groups: std::collections::BTreeMap<(String, String), Vec<f64>> = Default::default();
        for name in family(map) {
            for run in material.finished("c-vgg16", &name) {
                let rate = run.point.iter().map(|(_, value)| value.clone()).collect::<String>();
                groups.entry((name.clone(), rate)).or_default().extend(run.test_accuracy.map(|share| 100.0 * share));
            }
        }
        let mean = |values: &Vec<f64>| mean_and_spread(values).0.unwrap_or(f64::NEG_INFINITY);
        let best = groups.values().max_by(|a, b| mean(a).total_cmp(&mean(b))).cloned().unwrap_or_default();
        reading.row(format!("{words}: test accuracy in per cent"), Some(printed), &best);
    }
    for name in SHOWN {
        let found: Vec<f64> = material.finished(METRICS[1], name).filter_map(|run| run.test_accuracy).collect();
        let found: Vec<f64> = found.iter().map(|share| 100.0 * share).collect();
        reading.row(format!("{name}, rate 0.1, 10 epochs: test accuracy in per cent"), None, &found);
        reading.row(
            format!("{name}, rate 0.1, 10 epochs: log₁₀ of the summed training loss"),
            None,
            &material.last(METRICS[1], name, "log10_loss"),
        );
    }
    Ok(reading)
}

/// Shares of weights by size in the first or in the last layer of the runs with seed 42 and the rate 0.1, and accuracies after
/// cuts where it is the first: of the whole runs, and of the short ones.
fn layer(material: &Material, first: bool) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    for (set, words) in METRICS.iter().zip(["", ", 10 epochs"]) {
        layer_of(&mut reading, material, set, first, words)?;
    }
    Ok(reading)
}

fn layer_of(reading: &mut Reading, material: &Material, set: &str, first: bool, words: &str) -> Result<(), ClaimError> {
    let title = format!("{} layer, seed 42{words}", if first { "First" } else { "Last" });
    let name = |kind: &str| if words.is_empty() { kind.to_owned() } else { format!("{kind}-short") };
    let mut sketch =
        Sketch::new(&name("histogram"), &title, "|w| over the largest", "share of weights").logarithmic(false, true);
    let title = format!("Small weights cut layer by layer{words}");
    let mut cuts = Sketch::new(&name("cuts"), &title, "share cut", "test accuracy");
    for map in SHOWN {
        let Some(run) = material.finished(set, map).find(|run| run.seed == 42) else { continue };
        let Some(record) = run.histograms.last() else { continue };
        let mut blocks = record.blocks.iter().filter(|(name, _)| name.ends_with("weight"));
        let Some((_, counts)) = (if first { blocks.next() } else { blocks.next_back() }) else { continue };
        sketch = sketch.curve(map, shares(counts));
        if first {
            cuts = with_curve(cuts, map, accuracies_after_cuts(material, set, run)?);
        }
    }
    for figure in [sketch, cuts] {
        if !figure.curves.is_empty() {
            reading.figure(figure);
        }
    }
    Ok(())
}

/// Test accuracy when the smallest weights of every layer are set to zero, by their share; nothing where the weights are elsewhere
/// and this was not found out there.
fn accuracies_after_cuts(material: &Material, set: &str, run: &RunRecord) -> Result<Vec<[f64; 2]>, ClaimError> {
    let weights = checkpoint(&material.folder(set, run), FINAL);
    let found = material.found_once(&format!("{}-cuts", run.name), &weights, || cut(material, set, run))?;
    Ok(found.unwrap_or_default())
}

fn cut(material: &Material, set: &str, run: &RunRecord) -> Result<Vec<[f64; 2]>, ClaimError> {
    let Some((layout, weights)) = material.weights(set, run)? else { return Ok(Vec::new()) };
    let Some(task) = material.task(set, run) else { return Ok(Vec::new()) };
    let folder = material.data_folder.as_deref();
    let split = limitpoint::experiments::experiment_data(&task.recipe, Some(run.seed), folder)?.0;
    let Some(test) = split.test else { return Ok(Vec::new()) };
    let mut setup = task.setup()?;
    setup.compute = material.compute(setup.compute);
    let mut objective = setup.objective(&test)?;
    let mut points = Vec::new();
    for share in [0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95] {
        let mut cut = weights.clone();
        for block in layout.weights() {
            let own = &mut cut[block.range()];
            let mut sizes: Vec<f64> = own.iter().map(|weight| weight.abs()).collect();
            sizes.sort_by(f64::total_cmp);
            let least = sizes.get((share * sizes.len() as f64) as usize).copied().unwrap_or(f64::INFINITY);
            own.iter_mut().filter(|weight| weight.abs() < least).for_each(|weight| *weight = 0.0);
        }
        objective.forward(&cut);
        points.push([share, objective.accuracy()]);
    }
    Ok(points)
}

/// Loss and margins over epochs, each run by itself: they may have come to different epochs.
pub(super) fn course(material: &Material, sets: &[&str]) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let panels = [
        ("loss", "log₁₀ of the summed loss", "log10_loss"),
        ("accuracy", "training accuracy", "accuracy"),
        ("layer-margin", "margin over the product of the layers' norms", "layer_margin"),
        ("margin", "margin over ‖θ‖ to the power of the layers", "margin.l2"),
    ];
    for (name, words, column) in panels {
        let logarithmic = column.contains("margin");
        for set in sets {
            for biases in ["first", "all"] {
                let title = format!("{words}, {set}, biases: {biases}");
                let name = format!("{set}-{biases}-{name}");
                let mut sketch = Sketch::new(&name, &title, "epoch", words).logarithmic(false, logarithmic);
                let has = |run: &RunRecord| {
                    let swept =
                        run.point.iter().find(|(key, _)| key.contains("biases")).map(|(_, value)| value.as_str());
                    let whole = if set.ends_with("biased") { "all" } else { "first" };
                    swept.unwrap_or(whole) == biases
                };
                for run in material.runs(set).filter(|run| !run.failed && has(run)) {
                    let points = mean_curve(std::iter::once(run), "epoch", column);
                    sketch = with_curve(sketch, &format!("seed {}", run.seed), points);
                }
                if !sketch.curves.is_empty() {
                    reading.figure(sketch);
                }
            }
        }
    }
    for run in sets.iter().flat_map(|set| material.runs(set)) {
        let positive = |column: &str| run.metrics.column(column).iter().any(|margin| *margin > 0.0);
        if ["layer_margin", "margin.l2"].iter().all(|column| !positive(column)) {
            reading.say(format!("Of {} there is no positive margin yet to draw over logarithms.", run.name));
        }
        let last = |column: &str| run.metrics.last(column).unwrap_or(f64::NAN);
        let margin = Some(last("layer_margin")).filter(|margin| margin.is_finite());
        let margin =
            margin.map_or(String::new(), |margin| format!(", the margin over the product of norms {margin:.3e}"));
        reading.say(format!(
            "{}: after {} epochs log₁₀ of the summed loss is {:.2}, training accuracy {:.4}{margin}.",
            run.name,
            last("epoch"),
            last("log10_loss"),
            last("accuracy")
        ));
    }
    if reading.words.is_empty() {
        reading.say("Nothing was run.");
    }
    Ok(reading)
}
