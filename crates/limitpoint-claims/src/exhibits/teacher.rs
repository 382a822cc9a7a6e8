//! Teacher and student (A section 4.1).

use limitpoint::experiments::RunRecord;
use limitpoint::report::Sketch;

use super::material::Material;
use super::reading::{Reading, curves, mean_and_spread};
use super::{Exhibit, MadeOf};
use crate::ClaimError;

const READING: &str = "Print has d = 2^32 inputs, which no machine holds. Taken: d = 32 with three active inputs a neuron. The printed density, \
                       10^-4 of k'(d+1), asks for d near 2^11 with three active inputs of each of the teacher's 64 neurons; of k(d+1), for d near \
                       2^15: the set of runs a-teacher-wide, which was not run here.";
const STEPS: &str = "Print has the rate 0.006 for all three. With the dual norm of its equation (1) sign descent diverges at the second step \
                     with it; so the steps of gradient and sign descent are resolved, and coordinate descent takes unit steps of 0.006 and \
                     skips weights whose step would raise the loss. Runs that switch make steps of gradient descent at the rate 0.0006, then unit \
                     steps of 0.006 in one weight or of 0.00006 in all: they differ from plain gradient descent in these steps too.";
const PAIRED: &str = "Algorithms are compared on the starts and seeds from which all three fit their data.";

pub(super) const EXHIBITS: [Exhibit; 2] = [
    Exhibit {
        id: "A.fig1",
        shows: "Margins of coordinate, gradient and sign descent over training, and test accuracy beside the final ℓ1-normalised margin, \
                also after a switch from gradient descent",
        made_of: MadeOf::Runs { sets: &["a-teacher"], read: figure_1 },
        departures: &[READING, STEPS, PAIRED],
    },
    Exhibit {
        id: "A.fig5",
        shows: "Test accuracy beside the final margins γ1 and γ2",
        made_of: MadeOf::Runs { sets: &["a-teacher"], read: figure_5 },
        departures: &[READING, STEPS],
    },
];

/// The paper's names of margins, the norm of the weights that they divide by, and who should have the largest.
const MARGINS: [(&str, &str, &str); 3] =
    [("γ1", "margin.linf", "sd"), ("γ2", "margin.l2", "gd"), ("γ∞", "margin.l1", "cd")];
const PLAIN: [&str; 3] = ["gd", "cd", "sd"];
const ALL: [&str; 5] = ["gd", "cd", "sd", "gd-cd", "gd-sd"];
const SET: &str = "a-teacher";

/// The scale of the start.
fn scale(run: &RunRecord) -> f64 {
    run.point.iter().find_map(|(_, value)| value.parse().ok()).unwrap_or(f64::NAN)
}

fn fitted<'a>(material: &'a Material, name: &'a str) -> impl Iterator<Item = &'a RunRecord> {
    material.finished(SET, name).filter(|run| fits(run))
}

/// Whether a run fits all training examples.
fn fits(run: &RunRecord) -> bool {
    run.metrics.last("accuracy") == Some(1.0)
}

/// The run of another algorithm from the same start and seed, if it fits.
fn alike<'a>(material: &'a Material, name: &'a str, run: &RunRecord) -> Option<&'a RunRecord> {
    fitted(material, name).find(|other| other.seed == run.seed && other.point == run.point)
}

/// Gradient, coordinate and sign descent from the same start and seed, where all three fit: means over different runs would compare
/// problems, not algorithms.
fn triples(material: &Material) -> Vec<[&RunRecord; 3]> {
    let other = |name, gd: &RunRecord| alike(material, name, gd);
    fitted(material, "gd").filter_map(|gd| Some([gd, other("cd", gd)?, other("sd", gd)?])).collect()
}

fn figure_1(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    let triples = triples(material);
    let of = |place: usize, value: &dyn Fn(&RunRecord) -> Option<f64>| -> Vec<f64> {
        triples.iter().filter_map(|runs| value(runs[place])).collect()
    };
    for (words, column, best) in MARGINS {
        let name = column.trim_start_matches("margin.");
        let title =
            format!("{words}, the margin over the squared {} norm; start 0.01, mean of the runs that fit", norm(name));
        let sketch = Sketch::new(name, &title, "epoch", words).logarithmic(true, true);
        let shown = |run: &RunRecord| scale(run) == 0.01 && fits(run);
        reading.figure(curves(sketch, material, SET, &PLAIN, ["step", column], shown));
        let last = |place| of(place, &|run: &RunRecord| run.metrics.last(column));
        for (place, name) in PLAIN.iter().enumerate() {
            reading.row(format!("{name}: final {words}"), None, &last(place));
        }
        reading.say_largest(&format!("The final {words}"), &[0, 1, 2].map(|place| (PLAIN[place], last(place))), best);
    }
    scatter(&mut reading, material, MARGINS[2]);
    let accuracy = |place| of(place, &|run: &RunRecord| run.test_accuracy);
    for (place, name) in PLAIN.iter().enumerate() {
        reading.row(format!("{name}: test accuracy"), None, &accuracy(place));
    }
    for [better, worse] in [[1, 0], [0, 2]] {
        let (first, second) = (accuracy(better), accuracy(worse));
        let differences: Vec<f64> = first.iter().zip(&second).map(|(a, b)| 100.0 * (a - b)).collect();
        if let (Some(mean), Some(spread)) = mean_and_spread(&differences) {
            reading.say(format!(
                "Test accuracy of {} minus that of {}: {mean:+.2} ± {spread:.2} points, above 0 in {} of {} (the paper expects it above 0).",
                PLAIN[better],
                PLAIN[worse],
                differences.iter().filter(|difference| **difference > 0.0).count(),
                differences.len()
            ));
        }
    }
    for name in ["gd-cd", "gd-sd"] {
        let pairs = fitted(material, name).filter_map(|run| {
            let plain = alike(material, "gd", run)?;
            Some((
                run.metrics.last("margin.l1")? < plain.metrics.last("margin.l1")?,
                run.test_accuracy? - plain.test_accuracy?,
            ))
        });
        let pairs: Vec<(bool, f64)> = pairs.collect();
        let smaller = pairs.iter().filter(|(smaller, _)| *smaller).count();
        let changes: Vec<f64> = pairs.iter().map(|(_, change)| 100.0 * change).collect();
        reading.row(format!("{name}: test accuracy minus that of gd, points"), None, &changes);
        if let Some(change) = mean_and_spread(&changes).0 {
            reading.say(format!(
                "After a switch ({name}) γ∞ is smaller than that of pure gradient descent in {smaller} of {} pairs (print: in all), test \
                 accuracy changes by {change:+.2} points.",
                pairs.len()
            ));
        }
    }
    smaller_starts(&mut reading, material);
    left_out(&mut reading, material);
    Ok(reading)
}

/// Whether the smallest start gives each algorithm a larger margin of its own than the largest does, seed by seed.
fn smaller_starts(reading: &mut Reading, material: &Material) {
    for (words, column, name) in MARGINS {
        let from = |start: f64| fitted(material, name).filter(move |run| scale(run) == start);
        let ratios: Vec<f64> = from(0.001)
            .filter_map(|small| {
                let large = from(0.1).find(|large| large.seed == small.seed)?;
                Some((small.metrics.last(column)? / large.metrics.last(column)?).ln())
            })
            .collect();
        if let Some(mean) = mean_and_spread(&ratios).0 {
            reading.say(format!(
                "{words} of {name} from the start 0.001 is {:.3} times that from 0.1, larger in {} of {} seeds (print: larger).",
                mean.exp(),
                ratios.iter().filter(|ratio| **ratio > 0.0).count(),
                ratios.len()
            ));
        }
    }
}

/// A norm in words.
fn norm(key: &str) -> &'static str {
    match key {
        "linf" => "ℓ∞",
        "l2" => "ℓ2",
        _ => "ℓ1",
    }
}

fn figure_5(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    scatter(&mut reading, material, MARGINS[0]);
    scatter(&mut reading, material, MARGINS[1]);
    left_out(&mut reading, material);
    Ok(reading)
}

/// Runs that did not fit their data.
fn left_out(reading: &mut Reading, material: &Material) {
    for name in ALL {
        let (all, kept) = (material.finished(SET, name).count(), fitted(material, name).count());
        if kept < all {
            reading.say(format!(
                "{} of {all} runs of {name} do not fit all training examples and are left out.",
                all - kept
            ));
        }
    }
}

/// Test accuracy beside a final margin, marks by the scale of the start.
fn scatter(reading: &mut Reading, material: &Material, (words, column, _): (&str, &str, &str)) {
    let name = format!("accuracy-{}", column.trim_start_matches("margin."));
    let title = format!("Test accuracy and final {words}; larger marks are larger starts");
    let mut sketch = Sketch::new(&name, &title, words, "test accuracy").logarithmic(true, false);
    for optimiser in ALL {
        let points = fitted(material, optimiser).filter_map(|run| {
            let size = (2.0 + scale(run).log10() / 1.5).max(0.4);
            Some([run.metrics.last(column)?, run.test_accuracy?, size])
        });
        let points: Vec<[f64; 3]> = points.filter(|point| point[0] > 0.0).collect();
        if !points.is_empty() {
            sketch = sketch.cloud(optimiser, points, optimiser.contains('-'));
        }
    }
    reading.figure(sketch);
}
