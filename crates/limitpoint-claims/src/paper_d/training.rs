//! Section J and appendix K: training far beyond the point where every image is right.

use super::courses::{Courses, LEVELS, Network, courses};
use super::epochs::{Course, Sample};
use crate::arithmetic::{larger, rising, smaller};
use crate::outcome::decimals;
use crate::statistics::{bootstrap_mean, mean};
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};
use limitpoint::diagnostics::fit_line;

pub(super) const CLAIMS: [Claim; 6] = [
    Claim {
        id: "D.exp",
        statement: "With biases in the first layer only the network is homogeneous, of the degree of its layers; with biases \
                    everywhere it is not",
        experiments: &["d-digits"],
        try_out: models,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.fig1a",
        covers: &["D.fig3"],
        statement: "With a constant rate the margin, per product of the layers' norms and per norm, grows slowly after every image is \
                    right, with biases everywhere and without",
        experiments: &["d-digits"],
        try_out: |lab| constant_rate(courses(lab, Network::Dense)?.as_ref()),
        ..Claim::FINDING
    },
    Claim {
        id: "D.fig1b",
        covers: &["D.fig4"],
        statement: "With the loss-based rate the loss falls below 10^-800, exponentially in epochs, and the margin gets larger than \
                    with a constant rate in as many epochs",
        experiments: &["d-digits"],
        try_out: |lab| loss_based(courses(lab, Network::Dense)?.as_ref()),
        ..Claim::FINDING
    },
    Claim {
        id: "D.fig7",
        statement: "Test accuracy barely moves while the margin grows by half and more",
        experiments: &["d-digits"],
        try_out: |lab| accuracy(courses(lab, Network::Dense)?.as_ref()),
        ..Claim::FINDING
    },
    Claim {
        id: "D.tabl1",
        statement: "Models at losses of 10^-10, 10^-15, 10^-20, 10^-120 and 10^-800 have larger and larger margins, 20.9 times as large in \
                    the end, at nearly the same test accuracy",
        experiments: &["d-digits"],
        try_out: |lab| table_1(courses(lab, Network::Dense)?.as_ref()),
        ..Claim::NOT_SEEN
    },
    Claim {
        id: "D.bias",
        statement: "With biases everywhere, where no theorem speaks, the margin with biases ignored grows too",
        experiments: &["d-digits"],
        try_out: biased,
        ..Claim::FINDING
    },
];

/// NaN where there is nothing.
fn or_nan(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

/// Margins at the end over those when the network first fitted for good: per product of norms and per norm.
fn growth(course: &Course) -> [f64; 2] {
    match (course.fitted().first(), course.samples.last()) {
        (Some(first), Some(last)) => [last.margin / first.margin, last.plain_margin / first.plain_margin],
        _ => [f64::NAN; 2],
    }
}

fn models(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, courses) = (Outcome::default(), courses(lab, Network::Dense)?);
    for (course, homogeneous) in [(courses.adapted(), true), (courses.adapted_biased(), false)] {
        let mut objective = lab.objective(&course.task, &course.split.train)?;
        let layers = objective.layout().weights().count();
        let Some((_, params)) = course.kept.first() else {
            outcome.push(&*course.what, "weights below 10^-2", "none", false);
            continue;
        };
        objective.forward(params);
        let before = objective.margins().to_vec();
        let doubled: Vec<f64> = params.iter().map(|w| 2.0 * w).collect();
        objective.forward(&doubled);
        let factor = 2f64.powi(layers as i32);
        let largest = before.iter().fold(0.0, |most, s| larger(most, s.abs()));
        let apart = before.iter().zip(objective.margins()).map(|(old, new)| (new - factor * old).abs());
        let error = apart.fold(0.0, larger) / (factor * largest);
        let what = format!("{}: margins at 2θ against 2^{layers} times those at θ, largest difference", course.what);
        // products in 32 bits round to 6e-8; biases are a small share of a trained network's scores
        if homogeneous {
            outcome.at_most(what, error, 1e-6).by_theory();
        } else {
            outcome.at_least(what, error, 1e-5);
        }
        let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
        let expected = if homogeneous { layers as f64 } else { f64::NAN };
        let holds = degree.to_bits() == expected.to_bits() || degree == expected;
        let what = format!("{}: degree", course.what);
        outcome.event(what, expected.to_string(), degree.to_string(), holds).by_theory();
    }
    let inputs = courses.adapted().split.train.dense()?;
    let pixels = inputs.data.iter().copied();
    let range = [pixels.clone().fold(f64::INFINITY, smaller), pixels.fold(f64::NEG_INFINITY, larger)];
    outcome.point("smallest and largest pixel", &range, &[0.0, 1.0], 0.0).by_paper();
    let train = &courses.adapted().split.train;
    outcome.note(format!(
        "{} training images of {}; a fully connected network, for the paper's convolutions see D.fig1a.conv and its neighbours. Stochastic gradient descent on batches of \
         100 without momentum, He normal start, biases at zero.",
        train.len(),
        train.name
    ));
    Ok(outcome)
}

/// Margins of both definitions over epochs.
fn margin_sketches(outcome: &mut Outcome, name: &str, title: &str, courses: &[&Course]) {
    let (mut product, mut plain, mut loss) = (
        Sketch::new(&format!("{name}-margin"), title, "epoch", "margin per product of layers").logarithmic(true, true),
        Sketch::new(&format!("{name}-plain"), title, "epoch", "margin per ‖θ‖^L").logarithmic(true, true),
        Sketch::new(&format!("{name}-loss"), title, "epoch", "log₁₀ L").logarithmic(true, false),
    );
    for course in courses {
        let positive = |value: f64| if value > 0.0 { value } else { f64::NAN };
        product = product.curve(&course.what, course.by_epoch(|sample| positive(sample.margin)));
        plain = plain.curve(&course.what, course.by_epoch(|sample| positive(sample.plain_margin)));
        loss = loss.curve(&course.what, course.by_epoch(|sample| sample.decades));
    }
    [loss, product, plain].into_iter().for_each(|sketch| outcome.sketch(sketch));
}

/// Both margins grow after the fit.
fn grows(outcome: &mut Outcome, course: &Course) {
    let (what, [product, plain]) = (&course.what, growth(course));
    outcome.at_least(format!("{what}: margin per product of norms at the end over that at fit"), product, 1.05);
    outcome.at_least(format!("{what}: margin per norm at the end over that at fit"), plain, 1.05);
}

pub(super) fn constant_rate(courses: &Courses) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for course in [courses.constant(), courses.constant_biased()] {
        grows(&mut outcome, course);
        let what = &course.what;
        if let (Some(first), Some(last)) = (course.fitted().first(), course.samples.last()) {
            outcome.note(format!(
                "{what}: all right from epoch {} on (mean loss 10^{:.1}); after {} epochs 10^{:.1}, margin {:.3e} per product, {:.3e} \
                 per norm",
                first.epoch, first.decades, last.epoch, last.decades, last.margin, last.plain_margin
            ));
        }
    }
    margin_sketches(&mut outcome, "constant", "A constant rate", &[courses.constant(), courses.constant_biased()]);
    Ok(outcome)
}

pub(super) fn loss_based(courses: &Courses) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let (adapted, constant) = (courses.adapted(), courses.constant());
    let end = or_nan(adapted.samples.last().map(|sample| sample.decades));
    let what = format!("log₁₀ of the mean loss after {} epochs", adapted.accepted);
    outcome.at_most(what, end, LEVELS[4]).by_paper().printed(-800.0);
    let half: Vec<&Sample> = adapted.samples.iter().filter(|sample| 2 * sample.epoch >= adapted.accepted).collect();
    let epochs: Vec<f64> = half.iter().map(|sample| sample.epoch as f64).collect();
    let decades: Vec<f64> = half.iter().map(|sample| sample.decades).collect();
    let fit = fit_line(&epochs, &decades, 0.95)
        .map_err(|error| ClaimError::from(limitpoint::diagnostics::DiagnosticsError::from(error)))?;
    outcome.at_least("R² of log₁₀ L over epochs in the second half", fit.r_squared, 0.9);
    let common = constant.accepted.min(adapted.accepted);
    let margins = [adapted, constant].map(|course| or_nan(course.at_epoch(common).map(|sample| sample.margin)));
    let what = format!("margin over that with the constant rate, both after {common} epochs");
    outcome.at_least(what, margins[0] / margins[1], 1.3).printed(1.2e-3 / 1.8e-4);
    let [product, plain] = growth(adapted);
    outcome.at_least("margin per product of norms at the end over that at fit", product, 1.5);
    outcome.at_least("margin per norm at the end over that at fit", plain, 1.5);
    let rates = adapted.samples.iter().map(|sample| sample.log_rate);
    outcome.smallest("log₁₀ α, smallest", rates.clone(), -12.0).printed(-9.0);
    outcome.largest("log₁₀ α, largest", rates, 1.0).printed(0.0);
    outcome.note(format!(
        "{:.4} decades an accepted epoch; {} epochs accepted and {} done again; margin {:.3e} against {:.3e} after {common} epochs, {:.3e} at \
         the end. The paper (32 and 64 channels, 60,000 images): 10^-800 after 9000 epochs, 1.2e-3 against 1.8e-4 after 10,000.",
        -fit.slope,
        adapted.accepted,
        adapted.rejected,
        margins[0],
        margins[1],
        or_nan(adapted.samples.last().map(|sample| sample.margin))
    ));
    margin_sketches(&mut outcome, "loss-based", "The loss-based rate", &[adapted, courses.adapted_biased(), constant]);
    outcome.sketch(
        Sketch::new("rate", "The relative rate α", "epoch", "log₁₀ α")
            .logarithmic(true, false)
            .curve("α", adapted.by_epoch(|sample| sample.log_rate)),
    );
    Ok(outcome)
}

pub(super) fn accuracy(courses: &Courses) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let runs: Vec<&Course> = courses.others().iter().chain([courses.adapted()]).collect();
    let mut sketch = Sketch::new("accuracy", "Test accuracy after fitting", "epoch", "share of test images right")
        .logarithmic(true, false);
    let mut changes = Vec::new();
    for course in &runs {
        let (Some(first), Some(last)) = (course.fitted().first(), course.samples.last()) else { continue };
        changes.push(100.0 * (last.test_accuracy - first.test_accuracy));
        outcome.at_least(format!("{}: margin at the end over that at fit", course.what), growth(course)[0], 1.5);
        sketch = sketch.curve(&course.what, course.by_epoch(|sample| sample.test_accuracy));
    }
    let change = if changes.len() == runs.len() { mean(&changes) } else { f64::NAN };
    outcome.at_most(
        format!("change of test accuracy from fit to end in points, mean of {} runs, size", runs.len()),
        change.abs(),
        1.5,
    );
    let words = changes.iter().map(|change| format!("{change:+.2}")).collect::<Vec<_>>().join(", ");
    let [low, high] = bootstrap_mean(&changes, 0.95);
    outcome.note(format!("changes in points: {words}; 95 % interval of their mean {low:+.2} to {high:+.2}"));
    outcome.sketch(sketch);
    Ok(outcome)
}

/// Table 1 of the paper: epochs, log₁₀ of the mean loss, margin.
const PRINTED: [(u64, f64, f64); 5] = [
    (38, -10.04, 5.65e-5),
    (75, -15.12, 9.50e-5),
    (107, -20.07, 1.30e-4),
    (935, -120.01, 4.61e-4),
    (10_000, -881.51, 1.18e-3),
];

/// Test accuracies of the table differ by this many points.
const PRINTED_SPREAD: f64 = 0.2;

pub(super) fn table_1(courses: &Courses) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let course = courses.adapted();
    let samples: Vec<&Sample> = LEVELS.iter().filter_map(|level| course.at_loss(*level)).collect();
    outcome
        .near("models of the table that training gets to", samples.len() as f64, LEVELS.len() as f64, 0.0)
        .by_paper();
    for (pair, (levels, printed)) in samples.windows(2).zip(LEVELS.windows(2).zip(PRINTED.windows(2))) {
        let (ratio, printed) = (pair[1].margin / pair[0].margin, printed[1].2 / printed[0].2);
        let what = format!("margin at 10^{:.0} over that at 10^{:.0}", levels[1], levels[0]);
        outcome.number(what, "above 1", ratio, ratio > 1.0).by_paper().printed(printed);
    }
    let whole = PRINTED[4].2 / PRINTED[0].2;
    let ratio = or_nan(samples.first().zip(samples.last()).map(|(first, last)| last.margin / first.margin));
    let asked = "rising margins only, on the way to 10^-20; print has a factor, and half of it is asked for";
    let what = "margin of the last model over that of the first";
    outcome.at_least(what, ratio, 0.5 * whole).printed(whole).catalogue_asks(asked);
    let accuracies: Vec<f64> = samples.iter().map(|sample| 100.0 * sample.test_accuracy).collect();
    let most = accuracies.iter().copied().fold(f64::NEG_INFINITY, larger);
    let spread = most - accuracies.iter().copied().fold(f64::INFINITY, smaller);
    outcome.at_most("test accuracy, largest difference in points", spread, 1.5).printed(PRINTED_SPREAD);
    // of the mean L over N images and C classes: −ln(N L) ≤ min s ≤ −ln L + ln(C − 1), up to the tail of ln(1 + x)
    let (images, classes) = (course.split.train.len() as f64, 10.0f64);
    let below = samples.iter().map(|s| -std::f64::consts::LN_10 * s.decades - images.ln() - s.smallest);
    outcome.largest("−ln(N L) minus the smallest margin, largest", below, 1e-6).by_theory();
    let above = samples.iter().map(|s| s.smallest + std::f64::consts::LN_10 * s.decades - (classes - 1.0).ln());
    outcome.largest("smallest margin minus −ln L and ln of the wrong classes, largest", above, 1e-6).by_theory();
    let products: Vec<f64> = samples.iter().map(|s| s.smallest / s.margin).collect();
    let holds = rising(&products) && samples.len() == LEVELS.len();
    outcome.push("product of the layers' norms from model to model", "rising", decimals(&products), holds).by_paper();
    for ((level, sample), (epoch, _, margin)) in LEVELS.iter().zip(&samples).zip(PRINTED) {
        let what = format!("training accuracy at 10^{level:.0}");
        outcome.push(what, "1", format!("{}", sample.accuracy), sample.accuracy == 1.0).by_paper();
        outcome.note(format!(
            "epoch {} (the paper: {epoch}): mean loss 10^{:.2}, margin {:.3e} (the paper: {margin:.2e}), training accuracy {:.2} %, test \
             accuracy {:.2} %",
            sample.epoch,
            sample.decades,
            sample.margin,
            100.0 * sample.accuracy,
            100.0 * sample.test_accuracy
        ));
    }
    if let Some((fit, first)) = course.fitted().first().zip(samples.first()) {
        let earlier = first.margin / fit.margin;
        outcome.note(format!("From the first fit to the first model of the table the margin grows {earlier:.2}-fold."));
    }
    Ok(outcome)
}

fn biased(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, courses) = (Outcome::default(), courses(lab, Network::Dense)?);
    for course in [courses.adapted_biased(), courses.constant_biased()] {
        grows(&mut outcome, course);
    }
    Ok(outcome)
}
