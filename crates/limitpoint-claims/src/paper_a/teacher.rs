//! Section 4.1, Figures 1 and 5: teacher and student.

use super::named;
use super::students::{ALGORITHMS, NORMS, SCALES, Student};
use super::students::{good, leave_out, of, pairs, settings, sparse_students, students};
use crate::statistics::{bootstrap_mean, mean, sign_test, spearman};
use crate::{Claim, ClaimError, Lab, Moments, Outcome, Sketch, measures};

pub(super) const CLAIMS: [Claim; 7] = [
    Claim {
        id: "A.expTS",
        covers: &["A.eq14"],
        statement: "The teacher–student set-up trains: sign and coordinate descent always reach perfect training accuracy, \
                    gradient descent mostly; with one-sided gradients coordinate descent never does",
        experiments: &["a-teacher"],
        try_out: training,
        ..Claim::FINDING
    },
    Claim {
        id: "A.fig1L",
        statement: "Past separation each algorithm raises the margin of its own norm, and at the end sign descent has the \
                    largest γ₁, gradient descent the largest γ₂ and coordinate descent the largest γ_∞",
        experiments: &["a-teacher"],
        try_out: margins,
        ..Claim::FINDING
    },
    Claim {
        id: "A.fig1R",
        covers: &["A.fig5"],
        statement: "With the paper's teacher solutions of coordinate descent generalise best and those of sign descent \
                    worst, and coordinate descent ends with a larger γ_∞ from a smaller start",
        experiments: &["a-teacher"],
        try_out: accuracy,
        ..Claim::NOT_SEEN
    },
    Claim {
        id: "A.fig1R.sparse",
        statement: "With another teacher, a single neuron that sees three of a hundred inputs, solutions of coordinate \
                    descent generalise best and those of sign descent worst",
        experiments: &["a-sparse-teacher"],
        try_out: sparse_accuracy,
        ..Claim::FINDING
    },
    Claim {
        id: "A.fig1R.printed",
        statement: "As printed: a smaller initialisation gives each algorithm a larger final margin of its own norm",
        experiments: &["a-teacher"],
        try_out: printed_initialisation,
        ..Claim::NOT_SEEN
    },
    Claim {
        id: "A.fig1switch",
        statement: "Switching from gradient descent at perfect training accuracy changes the test accuracy by less than \
                    three points on average; switching to sign descent lowers γ_∞, switching to coordinate descent raises it",
        experiments: &["a-teacher"],
        try_out: switching,
        ..Claim::FINDING
    },
    Claim {
        id: "A.fig1switch.printed",
        statement: "As printed: all switched runs end with a smaller γ_∞ than gradient descent, those to coordinate descent \
                    too",
        experiments: &["a-teacher"],
        try_out: printed_switching,
        ..Claim::NOT_SEEN
    },
];

fn training(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), students(lab)?);
    for algorithm in ALGORITHMS {
        for scale in SCALES {
            let own = of(&students, algorithm, scale);
            let fitted = own.iter().filter(|s| s.separated() && s.finished()).count();
            let what = format!("{algorithm}, α = {scale}: runs that reach perfect training accuracy, of {}", own.len());
            // some examples can end up with no active neuron, and then gradient descent never fits them
            let enough = if algorithm.starts_with("gd") { 0.5 } else { 1.0 };
            outcome.at_least(what, fitted as f64, enough * own.len() as f64);
        }
    }
    // coordinate descent as printed, and with unit steps, at the printed rate and at a tenth of it, and resolved
    let mut tasks = Vec::new();
    let rates = ["constant(rate=0.006)", "constant(rate=0.0006)", "flow-resolved(resolution=0.1)"];
    for (cd, rates) in [("coordinate", &rates[..]), ("steepest(norm=l1, scaling=unit)", &rates[..2])] {
        for schedule in rates {
            let more = [format!("optimiser={cd}"), format!("schedule={schedule}")];
            let overrides =
                [settings(lab), more.to_vec(), vec!["stop.steps=20000".into(), "seeds=0..2".into()]].concat();
            tasks.extend(lab.tasks("a-teacher", &overrides)?.into_iter().map(named));
        }
    }
    let stuck = lab.all_series(tasks, Moments::last(), |_| vec![measures::accuracy()])?;
    let best = stuck.iter().map(|run| run.last("accuracy"));
    outcome.largest("training accuracy of coordinate descent with one-sided gradients, largest", best, 0.999);
    outcome.note(
        "Readings: d = 32 instead of the printed 2^32; steps that move no margin by more than 0.1 instead of one constant \
         rate for all algorithms, but unit steps for coordinate descent, which skips weights whose step would raise the \
         loss; initial first-layer weights of coordinate descent on α/width, as printed. Runs that never separate the data \
         are left out of all comparisons.",
    );
    Ok(outcome)
}

fn margins(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), students(lab)?);
    leave_out(&students, &mut outcome);
    for (name, _, _, winner) in NORMS {
        for scale in SCALES {
            let own = good(&students, winner, scale).into_iter();
            let what = format!("{winner}, α = {scale}: {name} at the end over {name} at separation, least");
            outcome.smallest(what, own.map(|s| s.growth(name)), 1.0).by_theory();
            for rival in ["sd", "gd", "cd"].iter().filter(|rival| **rival != winner) {
                let gains = gains(&pairs(&students, winner, rival, scale), name);
                let wins = gains.iter().filter(|gain| **gain > 0.0).count();
                let what = format!("α = {scale}: seeds in which {winner} has a larger {name} than {rival}");
                let (all, ratio, p) = (gains.len(), mean(&gains).exp(), sign_test(&gains));
                let measured = format!("{wins} of {all} (mean ratio {ratio:.3}, sign test p = {p:.1e})");
                let check = outcome.push(what, "all, of three at least", measured, wins == all);
                if wins == all && all < 3 {
                    check.too_few();
                }
            }
        }
    }
    for (name, file, ..) in NORMS {
        let title = format!("{name} over training, geometric mean over the seeds, α = 0.01");
        let mut sketch = Sketch::new(&format!("a-figure-1-{file}"), &title, "steps", name).logarithmic(true, true);
        for algorithm in ["gd", "cd", "sd"] {
            let own = good(&students, algorithm, 0.01).into_iter();
            let curves: Vec<Vec<[f64; 2]>> = own.map(|s| s.run.curve("step", name, 1)).collect();
            let length = curves.iter().map(Vec::len).min().unwrap_or(0);
            let points = (0..length).filter_map(|k| {
                let logs: Vec<f64> = curves.iter().map(|curve| curve[k][1].ln()).collect();
                let value = mean(&logs).exp();
                value.is_finite().then_some([curves[0][k][0], value])
            });
            sketch = sketch.curve(algorithm.to_uppercase(), points.collect());
        }
        outcome.sketch(sketch);
    }
    Ok(outcome)
}

/// ln of a final margin of one over that of another, pair by pair.
fn gains(pairs: &[(&Student, &Student)], name: &str) -> Vec<f64> {
    pairs.iter().map(|(a, b)| (a.run.last(name) / b.run.last(name)).ln()).collect()
}

/// Differences of test accuracy between two algorithms, seed by seed over all scales, in points.
fn differences(students: &[Student], a: &str, b: &str) -> Vec<f64> {
    let both = SCALES.iter().flat_map(|scale| pairs(students, a, b, *scale));
    both.map(|(a, b)| 100.0 * (a.test_accuracy - b.test_accuracy)).collect()
}

/// The order of test accuracies, seed by seed over all scales.
fn order(outcome: &mut Outcome, students: &[Student], teacher: &str) {
    leave_out(students, outcome);
    for (a, b) in [("cd", "gd"), ("gd", "sd"), ("cd", "sd")] {
        let gains = differences(students, a, b);
        let ([low, high], mean, p) = (bootstrap_mean(&gains, 0.9), mean(&gains), sign_test(&gains));
        let measured = format!("mean {mean:+.2}, 90 % interval [{low:+.2}, {high:+.2}], sign test p = {p:.1e}");
        let what = format!("{teacher}: test accuracy of {a} minus {b}, in points");
        outcome.push(what, "interval above 0", measured, low > 0.0);
    }
}

fn accuracy(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), students(lab)?);
    order(&mut outcome, &students, "the paper's teacher");
    for (name, _, _, winner) in NORMS {
        let margins = |own: &[&Student]| own.iter().map(|s| s.run.last(name)).collect::<Vec<_>>();
        let own = SCALES.map(|scale| good(&students, winner, scale));
        let all = own.concat();
        let found = spearman(&all.iter().map(|s| s.scale).collect::<Vec<_>>(), &margins(&all));
        let what = format!("{winner}: Spearman correlation of α and final {name}");
        if winner == "cd" {
            outcome.at_most(what, found, -f64::MIN_POSITIVE);
        } else {
            outcome.note(format!("{what} {found:.2}."));
        }
        for (scale, here) in SCALES.iter().zip(own) {
            let found = spearman(&margins(&here), &here.iter().map(|s| s.test_accuracy).collect::<Vec<_>>());
            let words = format!("Spearman correlation of final {name} and test accuracy over seeds {found:.2}");
            outcome.note(format!("{winner}, α = {scale}: {words}."));
        }
    }
    clouds(&mut outcome, &students, "a-accuracy");
    Ok(outcome)
}

fn sparse_accuracy(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), sparse_students(lab)?);
    order(&mut outcome, &students, "sparse teacher");
    clouds(&mut outcome, &students, "a-sparse-accuracy");
    Ok(outcome)
}

/// Test accuracy against the three margins.
fn clouds(outcome: &mut Outcome, students: &[Student], figure: &str) {
    for (name, file, ..) in NORMS {
        let title = format!("Test accuracy against final {name}; larger marks for larger α, stars for switches");
        let sketch = Sketch::new(&format!("{figure}-{file}"), &title, &format!("final {name}"), "test accuracy (%)");
        let names = [("gd", "GD"), ("cd", "CD"), ("sd", "SD"), ("gd-cd", "GD then CD"), ("gd-sd", "GD then SD")];
        outcome.sketch(names.iter().fold(sketch.logarithmic(true, false), |sketch, (algorithm, label)| {
            let marks = students.iter().filter(|s| s.algorithm() == *algorithm && s.run.last(name) > 0.0).map(|s| {
                let size = 0.6 + 0.3 * SCALES.iter().filter(|scale| **scale < s.scale).count() as f64;
                [s.run.last(name), 100.0 * s.test_accuracy, size]
            });
            sketch.cloud(*label, marks.collect(), algorithm.contains('-'))
        }));
    }
}

fn printed_initialisation(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), students(lab)?);
    for (name, _, _, winner) in NORMS {
        // seed by seed: how much larger the margin is from a start a hundred times smaller
        let both = of(&students, winner, SCALES[2]).into_iter().zip(of(&students, winner, SCALES[0]));
        let good: Vec<_> = both.filter(|(small, large)| small.separated() && large.separated()).collect();
        let gains = gains(&good, name);
        let ([low, high], ratio) = (bootstrap_mean(&gains, 0.9).map(f64::exp), mean(&gains).exp());
        let (more, all) = (gains.iter().filter(|gain| **gain > 0.0).count(), gains.len());
        let measured =
            format!("mean ratio {ratio:.3}, 90 % interval [{low:.3}, {high:.3}], larger in {more} of {all} seeds");
        let what = format!("{winner}: final {name} at α = {} over that at α = {}", SCALES[2], SCALES[0]);
        outcome.push(what, "interval above 1", measured, low > 1.0);
    }
    Ok(outcome)
}

/// ln of γ_∞ of switched runs over γ_∞ of gradient descent, seed by seed over all scales.
fn switched_margins(students: &[Student], switched: &str) -> Vec<f64> {
    SCALES.iter().flat_map(|scale| gains(&pairs(students, switched, "gd", *scale), "γ_∞")).collect()
}

fn switching(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), students(lab)?);
    leave_out(&students, &mut outcome);
    for (switched, name, sign) in [("gd-cd", "γ_∞", 1.0), ("gd-sd", "γ₁", -1.0)] {
        let gains = differences(&students, switched, "gd");
        let [low, high] = bootstrap_mean(&gains, 0.9);
        outcome.near(format!("test accuracy of {switched} minus gd, mean in points"), mean(&gains), 0.0, 3.0);
        outcome.note(format!("{switched} minus gd: 90 % interval of the mean [{low:+.2}, {high:+.2}] points."));
        let ratios: Vec<f64> = switched_margins(&students, switched).iter().map(|x| sign * x).collect();
        let order = if sign > 0.0 { ">" } else { "<" };
        let what = format!("{switched}: γ_∞ over that of gd {order} 1, sign test over all runs");
        let count = ratios.iter().filter(|x| **x > 0.0).count();
        let (p, factor) = (sign_test(&ratios), (sign * mean(&ratios)).exp());
        let measured = format!("p = {p:.1e} ({count} of {}, mean ratio {factor:.3})", ratios.len());
        outcome.push(what, "p < 0.01", measured, p < 0.01);
        let own = students.iter().filter(|s| s.algorithm() == switched && s.separated());
        let what = format!("{switched}: share of runs in which {name} rises after the switch");
        outcome.share(what, own.map(|s| s.growth(name) > 1.0), 0.9);
    }
    Ok(outcome)
}

fn printed_switching(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, students) = (Outcome::default(), students(lab)?);
    for switched in ["gd-cd", "gd-sd"] {
        let ratios = switched_margins(&students, switched);
        let fell = ratios.iter().filter(|x| **x < 0.0).count();
        let measured = format!("{fell} of {} (mean ratio {:.3})", ratios.len(), mean(&ratios).exp());
        outcome.push(format!("{switched}: runs with a smaller γ_∞ than gd"), "all", measured, fell == ratios.len());
    }
    outcome.note(
        "At this size coordinate descent raises γ_∞ after the switch, as Theorem 3.1 has it along flows. Whether the printed \
         observation comes of longer steps or of shorter runs is not known.",
    );
    Ok(outcome)
}
