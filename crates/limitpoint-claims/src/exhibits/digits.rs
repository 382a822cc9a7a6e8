//! Paper D's convolutional network on all of MNIST, down to 10^-880 (D appendix J).

use std::path::{Path, PathBuf};

use limitpoint::certificates::tangent_certificate_from_gram;
use limitpoint::data::Dataset;
use limitpoint::diagnostics::layer_product;
use limitpoint::engine::{Compute, Precision, cpu};
use limitpoint::experiments::{
    Part, RobustnessOptions, RunRecord, RunRobustness, experiment_data, load_checkpoint, load_weights, milestone_name,
    run_robustness,
};
use limitpoint::objective::Reduction;
use limitpoint::report::Sketch;
use limitpoint::robustness::AttackSpec;
use limitpoint::training::Setup;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::material::{FINAL, Material, checkpoint};
use super::photographs::course;
use super::reading::{Reading, mean_and_spread};
use super::{Exhibit, MadeOf};
use crate::ClaimError;

const EPOCHS: &str = "10,000 epochs are 6,000,000 steps, by the measured 0.31 ms of a step half an hour of one H200; at the loss-based rate about \
                      three epochs are tried for each that is kept. What has been reached is said run by run.";
/// Examples whose margins bound τ.
const SMALLEST: usize = 100;
const LOSS: &[&str] = &["d-cnn"];

pub(super) const EXHIBITS: [Exhibit; 6] = [
    Exhibit {
        id: "D.tab1",
        shows: "Epochs, losses, margins and accuracies of five models on the way to a loss of 10^-880",
        made_of: MadeOf::Runs { sets: LOSS, read: table_1 },
        departures: &[
            EPOCHS,
            "τ is ours: how far weights are from a KKT point of the ℓ2 margin problem, at most, by multipliers of the hundred examples \
             with the smallest margins; print has no such number.",
        ],
    },
    Exhibit {
        id: "D.fig1",
        shows: "Loss and margin of the convolutional network at a constant and at the loss-based rate, with and without biases",
        made_of: MadeOf::Runs {
            sets: &["d-cnn", "d-cnn-biased", "d-cnn-constant"],
            read: |m| course(m, &["d-cnn", "d-cnn-biased", "d-cnn-constant"]),
        },
        departures: &[EPOCHS],
    },
    Exhibit {
        id: "D.fig3",
        shows: "Training accuracy and the margin over ‖θ‖⁴ at the constant rate",
        made_of: MadeOf::Runs { sets: &["d-cnn-constant"], read: |m| course(m, &["d-cnn-constant"]) },
        departures: &[EPOCHS],
    },
    Exhibit {
        id: "D.fig4",
        shows: "Training accuracy and the margin over ‖θ‖⁴ at the loss-based rate",
        made_of: MadeOf::Runs { sets: &["d-cnn", "d-cnn-biased"], read: |m| course(m, &["d-cnn", "d-cnn-biased"]) },
        departures: &[EPOCHS, "The third panel in print, the relative rate α(t), is not recorded."],
    },
    Exhibit {
        id: "D.fig7",
        shows: "Training and test accuracy while the margin grows, on MNIST and on CIFAR-10",
        made_of: MadeOf::Runs { sets: &["d-cnn", "d-vgg16-loss"], read: figure_7 },
        departures: &[
            EPOCHS,
            "Figure 7 is a picture, averaged over ten runs on MNIST and three on CIFAR-10: the numbers in print are those of Table 1.",
            "Test accuracy is measured at the models of Table 1 and at the end of runs; training accuracy by epoch is in D.fig4.",
        ],
    },
    Exhibit {
        id: "D.fig8",
        shows: "Robust accuracy of the five models against Carlini–Wagner attacks in ℓ2",
        made_of: MadeOf::Runs { sets: LOSS, read: figure_8 },
        departures: &[EPOCHS, "The first fifty images of the training and of the test set, where print takes all."],
    },
];

/// The models of Table 1: words, log₁₀ of the summed loss that each is the first below, and print: epochs, log₁₀ of the mean
/// loss, margin, test accuracy in per cent.
const MODELS: [(&str, Option<f64>, [f64; 4]); 5] = [
    ("model 1", Some(-5.221848749616356), [38.0, -10.04, 5.65e-5, 99.3]),
    ("model 2", Some(-10.221848749616356), [75.0, -15.12, 9.50e-5, 99.3]),
    ("model 3", Some(-15.221848749616356), [107.0, -20.07, 1.30e-4, 99.3]),
    ("model 4", Some(-115.22184874961636), [935.0, -120.01, 4.61e-4, 99.2]),
    ("model 5", None, [10_000.0, -881.51, 1.18e-3, 99.1]),
];

/// What weights on the way are like, in 64 bits on all images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Look {
    epoch: f64,
    log10_mean_loss: f64,
    margin: f64,
    accuracy: f64,
    test_accuracy: f64,
    /// What τ in ℓ2 is at most, by multipliers of the examples with the smallest margins.
    tau: Option<f64>,
}

/// The weights of a model in the folder of a run, whether or not the run has come so far or is here.
fn model(material: &Material, run: &RunRecord, level: Option<f64>) -> PathBuf {
    let file = level.map_or_else(|| FINAL.to_owned(), milestone_name);
    checkpoint(&material.folder("d-cnn", run), &file)
}

/// The name under which is kept what was found out about a model.
fn look_name(run: &RunRecord, weights: &Path) -> String {
    format!("{}-{}", run.name, weights.file_stem().unwrap_or_default().to_string_lossy())
}

/// What a model is like; nothing if the run has not come so far.
fn look(material: &Material, run: &RunRecord, level: Option<f64>) -> Result<Option<Look>, ClaimError> {
    let path = model(material, run, level);
    material.found_once(&look_name(run, &path), &path, || {
        let missing = || ClaimError::Ended { what: run.name.clone(), reason: "is no run of this set".into() };
        let task = material.task("d-cnn", run).ok_or_else(missing)?;
        let data_folder = material.data_folder.as_deref();
        let split = experiment_data(&task.recipe, Some(run.seed), data_folder)?.0;
        let mut setup = task.setup()?;
        setup.compute = Compute { precision: Precision::F64, ..material.compute(setup.compute) };
        let mut objective = setup.objective(&split.train)?;
        let weights = load_weights(&path, objective.layout()).map_err(limitpoint::experiments::RunError::from)?;
        let step = load_checkpoint(&path).map_err(limitpoint::experiments::RunError::from)?.step;
        let log_loss = objective.forward(&weights).log_loss();
        let summed = if setup.reduction == Reduction::Sum { (split.train.len() as f64).ln() } else { 0.0 };
        let margins = objective.margins().to_vec();
        let smallest = margins.iter().copied().fold(f64::INFINITY, f64::min);
        let product = layer_product(&weights, objective.layout(), objective.layer_degrees());
        let accuracy = objective.accuracy();
        drop(objective);
        let test_accuracy = match &split.test {
            Some(test) => {
                let mut objective = setup.objective(test)?;
                objective.forward(&weights);
                objective.accuracy()
            }
            None => f64::NAN,
        };
        let tau = if smallest > 0.0 { Some(largest_tau(&setup, &split.train, &weights, &margins)?) } else { None };
        Ok(Look {
            epoch: step as f64 / 600.0,
            log10_mean_loss: (log_loss - summed) / std::f64::consts::LN_10,
            margin: smallest / product,
            accuracy,
            test_accuracy,
            tau,
        })
    })
}

/// What τ in ℓ2 is at most: multipliers of some margins bound γ_tan of all from above, and those of the smallest margins carry the
/// weight where a network is nearly stationary.
fn largest_tau(setup: &Setup, data: &Dataset, weights: &[f64], margins: &[f64]) -> Result<f64, ClaimError> {
    let of_example = |n: usize| margins[n * margins.len() / data.len()..][..margins.len() / data.len()].iter();
    let least: Vec<f64> = (0..data.len()).map(|n| of_example(n).copied().fold(f64::INFINITY, f64::min)).collect();
    let mut order: Vec<usize> = (0..data.len()).collect();
    order.sort_by(|a, b| least[*a].total_cmp(&least[*b]));
    order.truncate(SMALLEST);
    let few = data.select(&order).map_err(limitpoint::experiments::RunError::from)?;
    let mut model = cpu::bind_to(&setup.model, &few, setup.compute).map_err(limitpoint::experiments::RunError::from)?;
    let found = tangent_certificate_from_gram(&mut *model, &few.targets, weights);
    Ok(found.map_err(limitpoint::experiments::RunError::from)?.tau)
}

/// Looks at a model over all runs that have come so far.
fn looks(material: &Material, level: Option<f64>) -> Result<Vec<Look>, ClaimError> {
    material.runs("d-cnn").filter_map(|run| look(material, run, level).transpose()).collect()
}

/// A model that runs have come to: ours and print.
struct Reached {
    words: &'static str,
    margin: [f64; 2],
    accuracy: [f64; 2],
    tau: f64,
}

fn table_1(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let (mut missing, mut reached) = (Vec::new(), Vec::new());
    for (words, level, [epochs, loss, margin, accuracy]) in MODELS {
        let found = looks(material, level)?;
        let mean = |value: fn(&Look) -> f64| mean_and_spread(&found.iter().map(value).collect::<Vec<_>>()).0;
        match [mean(|look| look.margin), mean(|look| look.test_accuracy), mean(|look| look.tau.unwrap_or(f64::NAN))] {
            [Some(ours), Some(tested), Some(tau)] => {
                reached.push(Reached { words, margin: [ours, margin], accuracy: [100.0 * tested, accuracy], tau })
            }
            _ => missing.push(words),
        }
        let mut row = |what: &str, printed: Option<f64>, value: fn(&Look) -> f64| {
            let values: Vec<f64> = found.iter().map(value).collect();
            reading.row(format!("{words}: {what}"), printed.map(|printed| [printed, 0.0]), &values);
        };
        row("epochs", Some(epochs), |look| look.epoch);
        row("log₁₀ of the mean loss", Some(loss), |look| look.log10_mean_loss);
        row("margin over the product of norms", Some(margin), |look| look.margin);
        row("training accuracy in per cent", Some(100.0), |look| 100.0 * look.accuracy);
        row("test accuracy in per cent", Some(accuracy), |look| 100.0 * look.test_accuracy);
        if found.iter().all(|look| look.tau.is_some()) {
            row("τ in ℓ2, at most", None, |look| look.tau.unwrap_or(f64::NAN));
        }
    }
    if let [first, .., last] = &reached[..] {
        let [grown, printed] = [0, 1].map(|k| last.margin[k] / first.margin[k]);
        let [changed, printed_change] = [0, 1].map(|k| last.accuracy[k] - first.accuracy[k]);
        reading.say(format!(
            "From {} to {} the margin grows {grown:.1}-fold (print {printed:.1}-fold), τ goes from {:.3} to {:.3}, and test accuracy changes \
             by {changed:.2} points (print {printed_change:.1}).",
            first.words, last.words, first.tau, last.tau
        ));
    }
    if !missing.is_empty() {
        reading.say(format!("No run has come to {} yet.", missing.join(", ")));
    }
    let begun: Vec<String> = material
        .runs("d-cnn")
        .map(|run| {
            let last = |column: &str| run.metrics.last(column).unwrap_or(f64::NAN);
            format!(
                "seed {} was last measured after {} epochs at a mean loss of 10^{:.2} and a margin of {:.3e}",
                run.seed,
                last("epoch"),
                last("log10_loss") - 60_000f64.log10(),
                last("layer_margin")
            )
        })
        .collect();
    reading.say(format!("{}.", if begun.is_empty() { "Nothing was run".into() } else { begun.join("; ") }));
    Ok(reading)
}

fn figure_7(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let mut points = Vec::new();
    for (words, level, printed) in MODELS {
        let found = looks(material, level)?;
        points.extend(found.iter().map(|look| [look.epoch, look.test_accuracy]));
        let values: Vec<f64> = found.iter().map(|look| 100.0 * look.test_accuracy).collect();
        reading.row(format!("MNIST, {words}: test accuracy in per cent"), Some([printed[3], 0.0]), &values);
    }
    if !points.is_empty() {
        let sketch =
            Sketch::new("accuracy", "MNIST, models of Table 1", "epoch", "test accuracy").logarithmic(true, false);
        reading.figure(sketch.curve("test accuracy", points));
    }
    let photographs: Vec<f64> =
        material.finished("d-vgg16-loss", "gradient").filter_map(|run| run.test_accuracy).collect();
    reading.row(
        "CIFAR-10 (recompressed): final test accuracy in per cent",
        None,
        &photographs.iter().map(|share| 100.0 * share).collect::<Vec<_>>(),
    );
    Ok(reading)
}

fn figure_8(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let (mut medians, mut compared) = (Vec::new(), Vec::new());
    // the models of one run, the furthest whose weights or attacks are here; side by side, because an attack leaves a card and
    // most cores idle
    let mut runs: Vec<&RunRecord> = material.runs("d-cnn").collect();
    runs.sort_by_key(|run| std::cmp::Reverse(run.steps));
    let mut attacked: Vec<Option<Vec<RunRobustness>>> = Vec::new();
    for run in runs {
        attacked = MODELS.par_iter().map(|(_, level, _)| attacks(material, run, *level)).collect::<Result<_, _>>()?;
        if attacked.iter().any(Option::is_some) {
            break;
        }
    }
    for part in [Part::Train, Part::Test] {
        let title = if part == Part::Train { "Training images" } else { "Test images" };
        let mut sketch =
            Sketch::new(&format!("{part:?}").to_lowercase(), title, "ε", "robust accuracy against Carlini–Wagner");
        // of the first model, and for how many images those of others are farther
        let (mut nearest, mut farther): (Option<Vec<f64>>, Vec<(&str, usize)>) = (None, Vec::new());
        for ((words, ..), found) in MODELS.iter().zip(&attacked) {
            let Some(found) = found.iter().flatten().find(|found| found.part == part) else { continue };
            let mut distances: Vec<f64> = found.profile.examples.iter().map(|bracket| bracket.nearest()).collect();
            if let Some(nearest) = &nearest {
                farther.push((*words, distances.iter().zip(nearest).filter(|(now, then)| now > then).count()));
            }
            nearest.get_or_insert_with(|| distances.clone());
            distances.sort_by(f64::total_cmp);
            let count = distances.len() as f64;
            let curve = distances.iter().enumerate().map(|(k, distance)| [*distance, 1.0 - (k as f64 + 1.0) / count]);
            sketch = sketch.curve(*words, curve.filter(|point| point[0].is_finite()).collect());
            let median = distances.get(distances.len() / 2).copied().unwrap_or(f64::NAN);
            let least = distances.first().copied().unwrap_or(f64::NAN);
            medians.push(format!("{words} {} {median:.3} ({least:.3})", title.to_lowercase()));
            let above = found.profile.examples.iter().filter(|bracket| bracket.certified > bracket.nearest()).count();
            reading.row(format!("{words}, {}: median ℓ2 distance of attacks", title.to_lowercase()), None, &[median]);
            reading.row(
                format!("{words}, {}: certified radii above an attack", title.to_lowercase()),
                None,
                &[above as f64],
            );
        }
        if !sketch.curves.is_empty() {
            reading.figure(sketch);
        }
        if let Some(nearest) = nearest.filter(|_| !farther.is_empty()) {
            let counts: Vec<String> = farther.iter().map(|(words, count)| format!("{count} ({words})")).collect();
            compared.push(format!("of {} {}, {}", nearest.len(), title.to_lowercase(), counts.join(", ")));
        }
    }
    reading.say(if medians.is_empty() {
        "No model has been attacked yet.".to_owned()
    } else {
        format!("Medians, and the nearest of all: {}.", medians.join("; "))
    });
    if !compared.is_empty() {
        reading.say(format!(
            "Images whose attack is farther than on the first model: {}; in print robust accuracy rises from model 1 to model 4.",
            compared.join("; ")
        ));
    }
    Ok(reading)
}

/// Attacks and certified radii of the first fifty images of either part; nothing if the run has not come so far, or was attacked
/// nowhere and its weights are elsewhere.
fn attacks(material: &Material, run: &RunRecord, level: Option<f64>) -> Result<Option<Vec<RunRobustness>>, ClaimError> {
    let path = model(material, run, level);
    material.found_once(&format!("{}-attacks", look_name(run, &path)), &path, || {
        let attack: AttackSpec = "carlini-wagner".parse()?;
        let options = RobustnessOptions {
            attacks: vec![attack],
            parts: vec![Part::Train, Part::Test],
            count: Some(50),
            bounds: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            device: material.device,
            data_folder: material.data_folder.clone(),
        };
        Ok(run_robustness(&material.folder("d-cnn", run), Some(&path), &options)?)
    })
}
