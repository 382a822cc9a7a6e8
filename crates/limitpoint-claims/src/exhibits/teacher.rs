//! Teacher and student (A section 4.1).

use limitpoint::experiments::RunRecord;
use limitpoint::report::Sketch;

use super::material::Material;
use super::reading::{Reading, curves, mean_and_spread};
use super::{Exhibit, MadeOf};
use crate::ClaimError;

const READING: &str = "Print has d = 2^32 inputs, which no machine holds. Taken: d = 32 with three active inputs a neuron. The set of runs \
                       a-teacher-wide is the other reading, d = 2^15, which fits the printed density; it was not run here.";
const STEPS: &str = "Print has the rate 0.006 for all three. With the dual norm of its equation (1) sign descent diverges at the second step \
                     with it; so the steps of gradient and sign descent are resolved, and coordinate descent takes unit steps of 0.006 and \
                     skips weights whose step would raise the loss.";

pub(super) const EXHIBITS: [Exhibit; 2] = [
    Exhibit {
        id: "A.fig1",
        shows: "Margins of coordinate, gradient and sign descent over training, and test accuracy beside the final ℓ1-normalised margin, \
                also after a switch from gradient descent",
        made_of: MadeOf::Runs { sets: &["a-teacher"], read: figure_1 },
        departures: &[READING, STEPS],
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
    material.finished(SET, name).filter(|run| run.metrics.last("accuracy") == Some(1.0))
}

fn figure_1(material: &Material) -> Result<Reading, ClaimError> {
    let mut reading = Reading::default();
    for (words, column, best) in MARGINS {
        let name = column.trim_start_matches("margin.");
        let sketch =
            Sketch::new(name, &format!("{words} over training, start 0.01"), "epoch", words).logarithmic(true, true);
        reading.figure(curves(sketch, material, SET, &PLAIN, ["step", column], |run| scale(run) == 0.01));
        let last = |name| fitted(material, name).filter_map(|run| run.metrics.last(column)).collect::<Vec<f64>>();
        for name in PLAIN {
            reading.row(format!("{name}: final {words}, all starts"), None, &last(name));
        }
        reading.say_largest(&format!("The final {words}"), &PLAIN.map(|name| (name, last(name))), best);
    }
    scatter(&mut reading, material, MARGINS[2]);
    let accuracy = |name| fitted(material, name).filter_map(|run| run.test_accuracy).collect::<Vec<f64>>();
    for name in ALL {
        reading.row(format!("{name}: test accuracy"), None, &accuracy(name));
    }
    reading.say_largest("Test accuracy", &PLAIN.map(|name| (name, accuracy(name))), "cd");
    for name in ["gd-cd", "gd-sd"] {
        let pairs = fitted(material, name).filter_map(|run| {
            let same = |other: &&RunRecord| other.seed == run.seed && other.point == run.point;
            let plain = fitted(material, "gd").find(same)?;
            Some((
                run.metrics.last("margin.l1")? < plain.metrics.last("margin.l1")?,
                run.test_accuracy? - plain.test_accuracy?,
            ))
        });
        let pairs: Vec<(bool, f64)> = pairs.collect();
        let smaller = pairs.iter().filter(|(smaller, _)| *smaller).count();
        let changes: Vec<f64> = pairs.iter().map(|(_, change)| 100.0 * change).collect();
        if let Some(change) = mean_and_spread(&changes).0 {
            reading.say(format!(
                "After a switch ({name}) γ∞ is smaller than that of pure gradient descent in {smaller} of {} pairs (print: in all), test \
                 accuracy changes by {change:+.2} points.",
                pairs.len()
            ));
        }
    }
    left_out(&mut reading, material);
    Ok(reading)
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
    let mut sketch = Sketch::new(&name, &format!("Test accuracy and final {words}"), words, "test accuracy")
        .logarithmic(true, false);
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
