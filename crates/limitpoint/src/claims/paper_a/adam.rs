//! Adam is sign descent first and gradient descent later.

use super::adam_runs::{EPSILONS, GAMMA_1, GAMMA_2, Leg, PAIRS, Phases, Run, Runs, Who};
use crate::claims::arithmetic::{larger, smaller};
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "A.expAdam",
        covers: &["A.fig2", "A.fig6"],
        statement: "Along its flow Adam with ε > 0 first raises γ1 like sign descent, then lowers it and raises γ2 \
                    like gradient descent; the loss at the change is nearly proportional to ε, so that larger ε \
                    change earlier; with ε = 0 it never does. With momentum and the paper's constant step γ1 falls for \
                    any ε",
        experiments: &["a-adam"],
        try_out: two_phases,
    },
    Claim {
        id: "A.expAdam.printed",
        covers: &[],
        statement: "As printed: larger ε starts the second phase later, and momentum changes nothing at the constant \
                    step",
        experiments: &["a-adam"],
        try_out: printed_phases,
    },
    Claim {
        id: "A.adam",
        covers: &[],
        statement: "Adam is eq. 75 with its bias corrections; with β₁ = β₂ = ε = 0 it is sign descent bit for bit, 0/0 \
                    counting as 0",
        experiments: &["a-adam"],
        try_out: super::adam_update::update_rule,
    },
];

/// A phase counts if γ1 falls and γ2 rises by this share.
const VISIBLE: f64 = 0.05;

fn two_phases(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let runs = Runs::get(lab)?;
    outcome.note(format!("Data: {}. γ1 is the margin by ℓ∞ norm, γ2 that by ℓ2 norm.", runs.images));
    let trouble = runs.all.iter().filter(|run| !run.course.reason.is_healthy()).count();
    outcome.at_most(format!("runs that ended in trouble, of {}", runs.all.len()), trouble as f64, 0.0);
    for sign in runs.of(Leg::Flow, Who::Sign) {
        check_flow(&runs, sign, &mut outcome);
    }
    for (words, leg, memory, epsilons, visible) in [
        ("flow", Leg::Flow, (0.0, 0.0), &EPSILONS[..], 0.5),
        ("constant rate", Leg::Constant, (0.0, 0.0), &EPSILONS[..3], VISIBLE),
        ("momentum (0.9, 0.99), short steps", Leg::Short, (0.9, 0.99), &EPSILONS[..3], VISIBLE),
    ] {
        let switches = switches(&runs, leg, memory, epsilons);
        let (fall, rise) = switches.iter().fold((f64::INFINITY, f64::INFINITY), |(fall, rise), switch| {
            (smaller(fall, switch.fall), smaller(rise, switch.rise))
        });
        let runs_seen = switches.len();
        outcome.at_least(format!("{words}: least fall of γ1 after its maximum, {runs_seen} runs"), fall, visible);
        outcome.at_least(format!("{words}: least rise of γ2 from there on"), rise, visible);
        let slope = slope(&switches);
        outcome.push(
            format!("{words}: slope of ln L at the maximum of γ1 on ln ε"),
            "between 0.5 and 1.5",
            format!("{slope:.3}"),
            (0.5..=1.5).contains(&slope),
        );
    }
    check_momentum(&runs, &mut outcome);
    describe(&runs, &mut outcome);
    figures(&runs, &mut outcome);
    Ok(outcome)
}

/// The order of margins and the course of γ1 in the flows of one draw of images.
fn check_flow(runs: &Runs, sign: &Run, outcome: &mut Outcome) {
    let place = sign.place();
    let course = |who: Who| runs.beside(sign, Leg::Flow, who).map(|run| &run.course);
    let adam = course(Who::forgetful(1e-8)).map_or(f64::NAN, |course| course.margin_at(-4.0, GAMMA_1));
    let gradient = course(Who::Gradient);
    let last = gradient.map_or(f64::NAN, |course| course.final_margin(GAMMA_1));
    let phases = Phases::of(&sign.course);
    let first = phases.as_ref().map_or(f64::NAN, |phases| phases.peak.margins[GAMMA_1]);
    outcome.push(
        format!("{place}: γ1 of SD, of Adam with ε = 1e-8 at L = 1e-4, of GD"),
        "falling",
        format!("{first:.4}, {adam:.4}, {last:.4}"),
        first > adam && adam > last,
    );
    let own = gradient.map_or(f64::NAN, |course| course.final_margin(GAMMA_2));
    let others = runs.all.iter().filter(|run| run.leg == Leg::Flow && run.who != Who::Gradient);
    let here = others.filter(|run| run.pair == sign.pair && run.seed == sign.seed);
    let best = here.map(|run| run.course.final_margin(GAMMA_2)).fold(0.0, larger);
    outcome.push(
        format!("{place}: γ2 of GD at L = 1e-300, and the largest of the others"),
        "GD's is larger",
        format!("{own:.4}, {best:.4}"),
        own > best,
    );
    // the theorem has γ1 rise for ever along the exact flow; kinks crossed by finite steps cost some of it
    let kept = phases.map_or(f64::NAN, |phases| 1.0 - phases.fall);
    outcome.at_least(format!("{place}: γ1 of SD (Adam with ε = 0) at L = 1e-300 over its maximum"), kept, 0.85);
}

/// Where one run changed from raising γ1 to raising γ2.
struct Switch {
    epsilon: f64,
    step: u64,
    log_loss: f64,
    fall: f64,
    rise: f64,
}

fn switches(runs: &Runs, leg: Leg, memory: (f64, f64), epsilons: &[f64]) -> Vec<Switch> {
    let mut found = Vec::new();
    for &epsilon in epsilons {
        for run in runs.of(leg, Who::Adam { memory, epsilon }) {
            // a run that never separates the data has no phases, and no check about them may hold
            let phases = Phases::of(&run.course);
            let number = |of: fn(&Phases) -> f64| phases.as_ref().map_or(f64::NAN, of);
            found.push(Switch {
                epsilon,
                step: phases.as_ref().map_or(0, |phases| phases.peak.step),
                log_loss: number(|phases| phases.peak.log_loss),
                fall: number(|phases| phases.fall),
                rise: number(|phases| phases.rise),
            });
        }
    }
    found
}

/// The least-squares slope of ln L on ln ε; NaN without a spread.
fn slope(switches: &[Switch]) -> f64 {
    let count = switches.len() as f64;
    let (x, y) = (|s: &Switch| s.epsilon.ln(), |s: &Switch| s.log_loss);
    let (mean_x, mean_y) = (switches.iter().map(x).sum::<f64>() / count, switches.iter().map(y).sum::<f64>() / count);
    let product: f64 = switches.iter().map(|s| (x(s) - mean_x) * (y(s) - mean_y)).sum();
    product / switches.iter().map(|s| (x(s) - mean_x).powi(2)).sum::<f64>()
}

/// With memory and the paper's constant step the second moment lags behind a loss that falls faster than √β₂ a step;
/// what divides then is a memory of the past, and γ1 falls whatever ε is.
fn check_momentum(runs: &Runs, outcome: &mut Outcome) {
    for beta2 in [0.99, 0.999] {
        let who = Who::Adam { memory: (0.9, beta2), epsilon: 0.0 };
        let name = format!("constant rate, β = (0.9, {beta2}), ε = 0");
        let falls = runs.of(Leg::Constant, who).map(|run| Phases::of(&run.course).map_or(f64::NAN, |p| p.fall));
        outcome.at_least(
            format!("{name}: least fall of γ1 after its maximum"),
            falls.fold(f64::INFINITY, smaller),
            0.2,
        );
    }
    // for β₂ = 0.999 these runs are not long beside its memory of a thousand steps
    let who = Who::Adam { memory: (0.9, 0.99), epsilon: 0.0 };
    let fastest = runs.of(Leg::Constant, who).map(|run| speed(run) / (-0.5 * 0.99f64.ln())).fold(0.0, larger);
    outcome.at_most("constant rate, β = (0.9, 0.99), ε = 0: speed of ln 1/L at last over ½ ln 1/β₂", fastest, 1.25);
}

/// The mean fall of ln L per step in the second half of a run.
fn speed(run: &Run) -> f64 {
    let samples = &run.course.samples;
    let (Some(end), Some(half)) =
        (samples.last(), samples.iter().find(|s| 2 * s.step >= samples[samples.len() - 1].step))
    else {
        return f64::NAN;
    };
    (half.log_loss - end.log_loss) / (end.step - half.step) as f64
}

fn describe(runs: &Runs, outcome: &mut Outcome) {
    for (words, leg) in [("the flow", Leg::Flow), ("the constant rate", Leg::Constant)] {
        let told: Vec<String> = EPSILONS
            .iter()
            .filter(|epsilon| runs.of(leg, Who::forgetful(**epsilon)).next().is_some())
            .map(|&epsilon| {
                let found = switches(runs, leg, (0.0, 0.0), &[epsilon]);
                let mean = |of: fn(&Switch) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
                let decades = mean(|switch| switch.log_loss) / std::f64::consts::LN_10;
                format!("ε = {epsilon:e}: L = 1e{decades:.1}, step {:.0}", mean(|switch| switch.step as f64))
            })
            .collect();
        outcome.note(format!("Where γ1 is largest along {words}, without momentum: {}.", told.join("; ")));
    }
    for run in runs.of(Leg::Flow, Who::Gradient) {
        let share = |epsilon: &f64| {
            let adam = runs.beside(run, Leg::Flow, Who::forgetful(*epsilon))?;
            let share = adam.course.final_margin(GAMMA_2) / run.course.final_margin(GAMMA_2);
            Some(format!("{share:.3} for ε = {epsilon:e}"))
        };
        let shares: Vec<String> = EPSILONS.iter().filter_map(share).collect();
        outcome.note(format!("{}: γ2 of Adam over that of GD at L = 1e-300: {}.", run.place(), shares.join(", ")));
    }
    for run in runs.of(Leg::Constant, Who::Sign) {
        let (Some(phases), Some(end)) = (Phases::of(&run.course), run.course.last()) else { continue };
        outcome.note(format!(
            "{}: at the constant rate SD needs {} steps to L = 1e{:.0}; γ1 is {:.1} at L = 1e-7, at most {:.1} (at L = \
             1e{:.0}), {:.1} at the end: steps of one length move margins by ever more as the weights grow.",
            run.place(),
            end.step,
            end.decades(),
            run.course.margin_at(-7.0, GAMMA_1),
            phases.peak.margins[GAMMA_1],
            phases.peak.decades(),
            end.margins[GAMMA_1],
        ));
    }
    let accuracy = |who: Who| {
        let ends: Vec<f64> =
            runs.of(Leg::Flow, who).filter_map(|run| run.course.last()).map(|s| 100.0 * s.test_accuracy).collect();
        ends.iter().sum::<f64>() / ends.len() as f64
    };
    outcome.note(format!(
        "Mean test accuracy at L = 1e-300: GD {:.1} %, SD {:.1} %, Adam with ε = 1e-8 {:.1} %.",
        accuracy(Who::Gradient),
        accuracy(Who::Sign),
        accuracy(Who::forgetful(1e-8))
    ));
    outcome.note(
        "The paper's losses end at 1e-7. A constant rate cannot go much deeper with ε > 0, where L falls like 1/t; the \
         flows have the same right-hand side and steps proportional to 1/L.",
    );
}

fn figures(runs: &Runs, outcome: &mut Outcome) {
    let momentum = Who::Adam { memory: (0.9, 0.99), epsilon: 1e-8 };
    let shown = [Who::Gradient, Who::Sign, Who::forgetful(1e-4), Who::forgetful(1e-8), momentum];
    for (figure, pair) in [("figure-2", PAIRS[0]), ("figure-6", PAIRS[1])] {
        let digits = format!("{} vs {}", pair[0], pair[1]);
        let first = |leg: Leg, who: Who| runs.of(leg, who).find(|run| run.pair == pair);
        for (norm, symbol) in [(GAMMA_1, "γ1"), (GAMMA_2, "γ2")] {
            let title = format!("{symbol} at the constant rate, {digits}");
            let name = format!("{figure}-gamma-{}", norm + 1);
            let mut sketch = Sketch::new(&name, &title, "steps", symbol).logarithmic(true, true);
            for run in shown.iter().filter_map(|who| first(Leg::Constant, *who)) {
                sketch = sketch.curve(run.who.name(), run.course.by_step(norm));
            }
            outcome.sketch(sketch);
        }
        let title = format!("Test accuracy at the constant rate, {digits}");
        let mut sketch =
            Sketch::new(&format!("{figure}-accuracy"), &title, "steps", "accuracy").logarithmic(true, false);
        for run in shown.iter().filter_map(|who| first(Leg::Constant, *who)) {
            let curve = run.course.curve(|sample| [sample.step as f64, sample.test_accuracy]);
            sketch = sketch.curve(run.who.name(), curve);
        }
        outcome.sketch(sketch);
        for (norm, symbol) in [(GAMMA_1, "γ1"), (GAMMA_2, "γ2")] {
            let title = format!("{symbol} along the flow down to 1e-300, {digits}");
            let name = format!("{figure}-deep-gamma-{}", norm + 1);
            let mut sketch = Sketch::new(&name, &title, "−log₁₀ L", symbol).logarithmic(true, true);
            for who in [Who::Gradient, Who::Sign].into_iter().chain(EPSILONS.map(Who::forgetful)) {
                if let Some(run) = first(Leg::Flow, who) {
                    sketch = sketch.curve(run.who.name(), run.course.by_loss(norm));
                }
            }
            outcome.sketch(sketch);
        }
    }
    let title = "Loss at which Adam turns from γ1 to γ2";
    let mut sketch = Sketch::new("adam-switch", title, "ε", "L at the largest γ1").logarithmic(true, true);
    for (words, leg) in [("flow", Leg::Flow), ("constant rate", Leg::Constant)] {
        let seen: Vec<f64> =
            EPSILONS.into_iter().filter(|&epsilon| runs.of(leg, Who::forgetful(epsilon)).next().is_some()).collect();
        let found = switches(runs, leg, (0.0, 0.0), &seen);
        let slope = slope(&found);
        let count = found.len() as f64;
        let middle = |of: fn(&Switch) -> f64| found.iter().map(of).sum::<f64>() / count;
        let offset = middle(|s| s.log_loss) - slope * middle(|s| s.epsilon.ln());
        let line = seen.iter().map(|&epsilon| [epsilon, (offset + slope * epsilon.ln()).exp()]).collect();
        sketch = sketch.reference(format!("{words}: slope {slope:.2}"), line);
        let mean = |&epsilon: &f64| {
            let here: Vec<f64> = found.iter().filter(|s| s.epsilon == epsilon).map(|s| s.log_loss).collect();
            [epsilon, (here.iter().sum::<f64>() / here.len() as f64).exp()]
        };
        sketch = sketch.curve(words, seen.iter().map(mean).collect());
    }
    outcome.sketch(sketch);
}

fn printed_phases(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let runs = Runs::get(lab)?;
    for leg in [Leg::Constant, Leg::Flow] {
        for larger_one in runs.of(leg, Who::forgetful(1e-4)) {
            let Some(smaller_one) = runs.beside(larger_one, leg, Who::forgetful(1e-8)) else { continue };
            let (Some(a), Some(b)) = (Phases::of(&larger_one.course), Phases::of(&smaller_one.course)) else {
                continue;
            };
            let words = if leg == Leg::Constant { "constant rate" } else { "flow" };
            outcome.push(
                format!("{}, {words}: where γ1 is largest with ε = 1e-4 and with ε = 1e-8", larger_one.place()),
                "with ε = 1e-4 after more steps",
                format!(
                    "step {} at L = 1e{:.1}, step {} at L = 1e{:.1}",
                    a.peak.step,
                    a.peak.decades(),
                    b.peak.step,
                    b.peak.decades()
                ),
                a.peak.step > b.peak.step,
            );
        }
    }
    let who = Who::Adam { memory: (0.9, 0.99), epsilon: 0.0 };
    for run in runs.of(Leg::Constant, who) {
        let fall = Phases::of(&run.course).map_or(f64::NAN, |phases| phases.fall);
        outcome.at_most(format!("{}, momentum, ε = 0: fall of γ1", run.place()), fall, VISIBLE);
    }
    outcome.note("The sentence in print is that larger ε start the second phase slower, but more aggressively.");
    Ok(outcome)
}
