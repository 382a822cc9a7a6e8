//! Section J and appendix K: training far beyond the point where every image is right.

use super::courses::{
    ADAPTED, ADAPTED_BIASED, CONSTANT, CONSTANT_BIASED, Course, LEVELS, Network, OTHERS, Sample, courses,
};
use super::flows::join;
use crate::arithmetic::{larger, rising, smaller};
use crate::outcome::decimals;
use crate::statistics::{bootstrap_mean, mean};
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};
use limitpoint::diagnostics::{DiagnosticsError, fit_line};

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

/// Margins at the end over those when the network first fitted for good: per product of norms and per norm.
fn growth(course: &Course) -> [f64; 2] {
    let ends = course.fitted().first().zip(course.samples.last());
    ends.map_or([f64::NAN; 2], |(first, last)| [last.margin / first.margin, last.plain_margin / first.plain_margin])
}

/// Both margins grow after the fit.
fn grows(outcome: &mut Outcome, course: &Course, factor: f64) {
    let [product, plain] = growth(course);
    outcome.at_least("margin per product of norms at the end over that at fit", product, factor);
    outcome.at_least("margin per norm at the end over that at fit", plain, factor);
}

fn models(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, courses) = (Outcome::default(), courses(lab, Network::Dense)?);
    for (place, homogeneous) in [(ADAPTED, true), (ADAPTED_BIASED, false)] {
        let course = &courses[place];
        let mut objective = lab.objective(&course.task, &course.split.train)?;
        let layers = objective.layout().weights().count();
        let Some((_, params)) = course.kept.first() else {
            outcome.push(&*course.what, "weights below 10^-2", "none", false);
            continue;
        };
        let mut margins = |scale: f64| {
            let scaled: Vec<f64> = params.iter().map(|w| scale * w).collect();
            objective.forward(&scaled).margins().to_vec()
        };
        let (before, doubled, factor) = (margins(1.0), margins(2.0), 2f64.powi(layers as i32));
        let largest = before.iter().fold(0.0, |most, s| larger(most, s.abs()));
        let apart = before.iter().zip(doubled).map(|(old, new)| (new - factor * old).abs());
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
    let train = &courses[ADAPTED].split.train;
    let range = train.dense()?.data.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], pixel| {
        [smaller(least, *pixel), larger(most, *pixel)]
    });
    outcome.point("smallest and largest pixel", &range, &[0.0, 1.0], 0.0).by_paper();
    outcome.note(format!(
        "{} training images of {}; a fully connected network, for the paper's convolutions see D.fig1a.conv and its neighbours. Stochastic gradient descent on batches of \
         100 without momentum, He normal start, biases at zero.",
        train.len(),
        train.name
    ));
    Ok(outcome)
}

/// Losses, and margins of both definitions, over epochs.
fn sketches(outcome: &mut Outcome, name: &str, title: &str, courses: &[&Course]) {
    fn positive(value: f64) -> f64 {
        if value > 0.0 { value } else { f64::NAN }
    }
    type Height = fn(&Sample) -> f64;
    let figures: [(&str, &str, Height); 3] = [
        ("loss", "log₁₀ L", |sample| sample.decades),
        ("margin", "margin per product of layers", |sample| positive(sample.margin)),
        ("plain", "margin per ‖θ‖^L", |sample| positive(sample.plain_margin)),
    ];
    for (kind, label, value) in figures {
        let sketch = Sketch::new(&format!("{name}-{kind}"), title, "epoch", label).logarithmic(true, kind != "loss");
        outcome.sketch(courses.iter().fold(sketch, |sketch, one| sketch.curve(&one.what, one.by_epoch(value))));
    }
}

pub(super) fn constant_rate(courses: &[Course]) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let shown = [CONSTANT, CONSTANT_BIASED].map(|place| &courses[place]);
    for course in shown {
        let mut about = Outcome::default();
        grows(&mut about, course, 1.05);
        if let Some((first, last)) = course.fitted().first().zip(course.samples.last()) {
            about.note(format!(
                "all right from epoch {} on (mean loss 10^{:.1}); after {} epochs 10^{:.1}, margin {:.3e} per product, {:.3e} \
                 per norm",
                first.epoch, first.decades, last.epoch, last.decades, last.margin, last.plain_margin
            ));
        }
        join(&mut outcome, &course.what, about);
    }
    sketches(&mut outcome, "constant", "A constant rate", &shown);
    Ok(outcome)
}

pub(super) fn loss_based(courses: &[Course]) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let [adapted, biased, constant] = [ADAPTED, ADAPTED_BIASED, CONSTANT].map(|place| &courses[place]);
    let [end, last] = adapted.samples.last().map_or([f64::NAN; 2], |sample| [sample.decades, sample.margin]);
    let what = format!("log₁₀ of the mean loss after {} epochs", adapted.accepted);
    outcome.at_most(what, end, LEVELS[4]).by_paper().printed(-800.0);
    let half = adapted.samples.iter().filter(|sample| 2 * sample.epoch >= adapted.accepted);
    let (epochs, decades): (Vec<f64>, Vec<f64>) = half.map(|sample| (sample.epoch as f64, sample.decades)).unzip();
    let fit = fit_line(&epochs, &decades, 0.95).map_err(DiagnosticsError::from)?;
    outcome.at_least("R² of log₁₀ L over epochs in the second half", fit.r_squared, 0.9);
    let common = constant.accepted.min(adapted.accepted);
    let margin = |course: &Course| {
        let seen = course.samples.iter().rev().find(|sample| sample.epoch <= common);
        seen.map_or(f64::NAN, |sample| sample.margin)
    };
    let (ours, other) = (margin(adapted), margin(constant));
    let what = format!("margin over that with the constant rate, both after {common} epochs");
    outcome.at_least(what, ours / other, 1.3).printed(1.2e-3 / 1.8e-4);
    grows(&mut outcome, adapted, 1.5);
    let rates = adapted.samples.iter().map(|sample| sample.log_rate);
    outcome.smallest("log₁₀ α, smallest", rates.clone(), -12.0).printed(-9.0);
    outcome.largest("log₁₀ α, largest", rates, 1.0).printed(0.0);
    outcome.note(format!(
        "{:.4} decades an accepted epoch; {} epochs accepted and {} done again; margin {ours:.3e} against {other:.3e} after {common} epochs, {last:.3e} at \
         the end. The paper (32 and 64 channels, 60,000 images): 10^-800 after 9000 epochs, 1.2e-3 against 1.8e-4 after 10,000.",
        -fit.slope, adapted.accepted, adapted.rejected
    ));
    sketches(&mut outcome, "loss-based", "The loss-based rate", &[adapted, biased, constant]);
    let sketch = Sketch::new("rate", "The relative rate α", "epoch", "log₁₀ α").logarithmic(true, false);
    outcome.sketch(sketch.curve("α", adapted.by_epoch(|sample| sample.log_rate)));
    Ok(outcome)
}

pub(super) fn accuracy(courses: &[Course]) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut sketch = Sketch::new("accuracy", "Test accuracy after fitting", "epoch", "share of test images right")
        .logarithmic(true, false);
    let (mut changes, runs) = (Vec::new(), courses[OTHERS].len() + 1);
    for course in courses[OTHERS].iter().chain([&courses[ADAPTED]]) {
        let Some((first, last)) = course.fitted().first().zip(course.samples.last()) else { continue };
        changes.push(100.0 * (last.test_accuracy - first.test_accuracy));
        outcome.at_least(format!("{}: margin at the end over that at fit", course.what), growth(course)[0], 1.5);
        sketch = sketch.curve(&course.what, course.by_epoch(|sample| sample.test_accuracy));
    }
    let change = if changes.len() == runs { mean(&changes) } else { f64::NAN };
    let what = format!("change of test accuracy from fit to end in points, mean of {runs} runs, size");
    outcome.at_most(what, change.abs(), 1.5);
    let words = changes.iter().map(|change| format!("{change:+.2}")).collect::<Vec<_>>().join(", ");
    let [low, high] = bootstrap_mean(&changes, 0.95);
    outcome.note(format!("changes in points: {words}; 95 % interval of their mean {low:+.2} to {high:+.2}"));
    outcome.sketch(sketch);
    Ok(outcome)
}

/// Table 1 of the paper: epochs, margin.
const PRINTED: [(u64, f64); 5] = [(38, 5.65e-5), (75, 9.50e-5), (107, 1.30e-4), (935, 4.61e-4), (10_000, 1.18e-3)];

pub(super) fn table_1(courses: &[Course]) -> Result<Outcome, ClaimError> {
    let (mut outcome, course) = (Outcome::default(), &courses[ADAPTED]);
    let samples: Vec<&Sample> =
        LEVELS.iter().filter_map(|level| course.samples.iter().find(|sample| sample.decades <= *level)).collect();
    let (count, whole) = (samples.len() as f64, LEVELS.len() as f64);
    outcome.near("models of the table that training gets to", count, whole, 0.0).by_paper();
    for (pair, (levels, printed)) in samples.windows(2).zip(LEVELS.windows(2).zip(PRINTED.windows(2))) {
        let (ratio, printed) = (pair[1].margin / pair[0].margin, printed[1].1 / printed[0].1);
        let what = format!("margin at 10^{:.0} over that at 10^{:.0}", levels[1], levels[0]);
        outcome.number(what, "above 1", ratio, ratio > 1.0).by_paper().printed(printed);
    }
    let printed = PRINTED[4].1 / PRINTED[0].1;
    let ratio = samples.first().zip(samples.last()).map_or(f64::NAN, |(first, last)| last.margin / first.margin);
    let asked = "rising margins only, on the way to 10^-20; print has a factor, and half of it is asked for";
    let what = "margin of the last model over that of the first";
    outcome.at_least(what, ratio, 0.5 * printed).printed(printed).catalogue_asks(asked);
    let accuracies = samples.iter().map(|sample| 100.0 * sample.test_accuracy);
    let spread = accuracies.clone().fold(f64::NEG_INFINITY, larger) - accuracies.fold(f64::INFINITY, smaller);
    outcome.at_most("test accuracy, largest difference in points", spread, 1.5).printed(0.2);
    // of the mean L over N images and C classes: −ln(N L) ≤ min s ≤ −ln L + ln(C − 1), up to the tail of ln(1 + x)
    let (images, classes) = (course.split.train.len() as f64, 10.0f64);
    let below = samples.iter().map(|s| -std::f64::consts::LN_10 * s.decades - images.ln() - s.smallest);
    outcome.largest("−ln(N L) minus the smallest margin, largest", below, 1e-6).by_theory();
    let above = samples.iter().map(|s| s.smallest + std::f64::consts::LN_10 * s.decades - (classes - 1.0).ln());
    outcome.largest("smallest margin minus −ln L and ln of the wrong classes, largest", above, 1e-6).by_theory();
    let products: Vec<f64> = samples.iter().map(|s| s.smallest / s.margin).collect();
    let holds = rising(&products) && samples.len() == LEVELS.len();
    outcome.push("product of the layers' norms from model to model", "rising", decimals(&products), holds).by_paper();
    for ((level, sample), (printed_epoch, printed_margin)) in LEVELS.iter().zip(&samples).zip(PRINTED) {
        let Sample { epoch, decades, accuracy, test_accuracy, margin, .. } = sample;
        let what = format!("training accuracy at 10^{level:.0}");
        outcome.push(what, "1", accuracy.to_string(), *accuracy == 1.0).by_paper();
        outcome.note(format!(
            "epoch {epoch} (the paper: {printed_epoch}): mean loss 10^{decades:.2}, margin {margin:.3e} (the paper: {printed_margin:.2e}), \
             training accuracy {:.2} %, test accuracy {:.2} %",
            100.0 * accuracy,
            100.0 * test_accuracy
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
    for course in [ADAPTED_BIASED, CONSTANT_BIASED].map(|place| &courses[place]) {
        let mut about = Outcome::default();
        grows(&mut about, course, 1.05);
        join(&mut outcome, &course.what, about);
    }
    Ok(outcome)
}
