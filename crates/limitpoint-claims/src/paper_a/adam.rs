//! Adam is sign descent first and gradient descent later.

use std::f64::consts::LN_10;

use super::adam_runs::{EPSILONS, Leg, PAIRS, Phases, Run, Runs, Who};
use super::images::{by_loss, by_step, separated};
use crate::arithmetic::larger;
use crate::comparisons::slope;
use crate::statistics::mean;
use crate::{Claim, ClaimError, Lab, Outcome, Series, Sketch, Status};

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "A.expAdam",
        covers: &["A.fig6"],
        statement: "Along its flow Adam with ε > 0 first raises γ1 like sign descent, then lowers it and raises γ2 \
                    like gradient descent; the loss at the change is nearly proportional to ε, so that larger ε \
                    change earlier. With momentum and the paper's constant step γ1 falls for any ε",
        experiments: &["a-adam"],
        try_out: two_phases,
        ..Claim::FINDING
    },
    Claim {
        id: "A.fig2",
        statement: "Sign descent, which is Adam with ε = 0, keeps its γ1: however far it goes, γ1 ends within 1 % of its \
                    largest value",
        experiments: &["a-adam"],
        try_out: sign_descent_keeps_its_margin,
        on_digits: Some(Status::NotReproduced),
        ..Claim::FINDING
    },
    Claim {
        id: "A.expAdam.printed",
        statement: "As printed: larger ε starts the second phase later, and momentum changes nothing at the constant \
                    step",
        experiments: &["a-adam"],
        try_out: printed_phases,
        ..Claim::NOT_SEEN
    },
    Claim {
        id: "A.adam",
        statement: "Adam is eq. 75 with its bias corrections; with β₁ = β₂ = ε = 0 it is sign descent bit for bit, 0/0 \
                    counting as 0",
        experiments: &["a-adam"],
        try_out: super::updates::adam,
        ..Claim::FORMULA
    },
];

/// A phase counts if γ1 falls and γ2 rises by this share.
const VISIBLE: f64 = 0.05;

fn two_phases(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, runs) = (Outcome::default(), Runs::get(lab)?);
    outcome.note(format!("Data: {}. γ1 is the margin by ℓ∞ norm, γ2 that by ℓ2 norm.", runs.images));
    runs.check_ends(&mut outcome);
    for sign in runs.of(Leg::Flow, Who::Sign) {
        check_flow(&runs, sign, &mut outcome);
    }
    for (words, leg, memory, epsilons, visible) in [
        ("flow", Leg::Flow, (0.0, 0.0), &EPSILONS[..], 0.5),
        ("constant rate", Leg::Constant, (0.0, 0.0), &EPSILONS[..3], VISIBLE),
        ("momentum (0.9, 0.99), short steps", Leg::Short, (0.9, 0.99), &EPSILONS[..3], VISIBLE),
    ] {
        let seen = switches(&runs, leg, memory, epsilons);
        let what = format!("{words}: least fall of γ1 after its maximum, {} runs", seen.len());
        outcome.smallest(what, seen.iter().map(|(_, phases)| phases.fall), visible);
        let what = format!("{words}: least rise of γ2 from there on");
        outcome.smallest(what, seen.iter().map(|(_, phases)| phases.rise), visible);
        let found = slope(&loss_by_epsilon(&seen));
        let what = format!("{words}: slope of ln L at the maximum of γ1 on ln ε");
        outcome.push(what, "between 0.5 and 1.5", format!("{found:.3}"), (0.5..=1.5).contains(&found));
    }
    check_momentum(&runs, &mut outcome);
    describe(&runs, &mut outcome);
    figures(&runs, &mut outcome);
    Ok(outcome)
}

/// The order of margins and the course of γ1 in the flows of one draw of images.
fn check_flow(runs: &Runs, sign: &Run, outcome: &mut Outcome) {
    let place = sign.place();
    let first = Phases::of(&sign.course).peak;
    let adam = runs.beside(sign, Leg::Flow, Who::forgetful(1e-8));
    let adam = adam.map_or(f64::NAN, |run| at_loss(&run.course, -4.0));
    let gradient = runs.beside(sign, Leg::Flow, Who::Gradient);
    let [last, own] = ["γ1", "γ2"].map(|name| gradient.map_or(f64::NAN, |run| run.course.last(name)));
    let what = format!("{place}: γ1 of SD, of Adam with ε = 1e-8 at L = 1e-4, of GD");
    let measured = format!("{first:.4}, {adam:.4}, {last:.4}");
    outcome.push(what, "falling", measured, first > adam && adam > last);
    let here = runs.all.iter().filter(|run| (run.who.0, run.pair, run.seed) == (Leg::Flow, sign.pair, sign.seed));
    let others = here.filter(|run| run.who.1 != Who::Gradient);
    let best = others.map(|run| run.course.last("γ2")).fold(0.0, larger);
    let what = format!("{place}: γ2 of GD at L = 1e-300, and the largest of the others");
    outcome.push(what, "GD's is larger", format!("{own:.4}, {best:.4}"), own > best);
}

fn sign_descent_keeps_its_margin(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, runs) = (Outcome::default(), Runs::get(lab)?);
    for (words, leg) in [("", Leg::Flow), (", steps a tenth as long", Leg::Fine)] {
        for run in runs.of(leg, Who::Sign) {
            let what = format!("{}{words}: γ1 of SD (Adam with ε = 0) at L = 1e-300 over its maximum", run.place());
            outcome.at_least(what, 1.0 - Phases::of(&run.course).fall, 0.99);
            let soft = separated(&run.course);
            let share = soft.last("soft γ1") / soft.most("soft γ1");
            outcome.note(format!("{}{words}: the soft γ1 ends at {share:.4} of its maximum.", run.place()));
        }
    }
    outcome.note(
        "Theorem 3.1 speaks of the soft margin along the flow of least subgradients. The hard margin may fall by ln N/q_min \
         of itself, 19 % at L = 1e-7 with 20 images, and one-sided gradients lose some of the soft one at kinks.",
    );
    Ok(outcome)
}

/// γ1 where log₁₀ L first fell to `decades`; NaN if it never did.
fn at_loss(run: &Series, decades: f64) -> f64 {
    run.value_where("γ1", "u", |u| -u / LN_10 <= decades)
}

/// ε and where each run changed from raising γ1 to raising γ2.
fn switches(runs: &Runs, leg: Leg, memory: (f64, f64), epsilons: &[f64]) -> Vec<(f64, Phases)> {
    let of = |epsilon| runs.of(leg, Who::Adam { memory, epsilon });
    epsilons.iter().flat_map(|&epsilon| of(epsilon).map(move |run| (epsilon, Phases::of(&run.course)))).collect()
}

fn loss_by_epsilon(switches: &[(f64, Phases)]) -> Vec<[f64; 2]> {
    switches.iter().map(|(epsilon, phases)| [epsilon.ln(), phases.log_loss]).collect()
}

/// With memory and the paper's constant step the second moment lags behind a loss that falls faster than √β₂ a step;
/// what divides then is a memory of the past, and γ1 falls whatever ε is.
fn check_momentum(runs: &Runs, outcome: &mut Outcome) {
    let adam = |beta2: f64| runs.of(Leg::Constant, Who::Adam { memory: (0.9, beta2), epsilon: 0.0 });
    for beta2 in [0.99, 0.999] {
        let name = format!("constant rate, β = (0.9, {beta2}), ε = 0");
        let falls = adam(beta2).map(|run| Phases::of(&run.course).fall);
        outcome.smallest(format!("{name}: least fall of γ1 after its maximum"), falls, 0.2);
    }
    // for β₂ = 0.999 these runs are not long beside its memory of a thousand steps
    let speeds = adam(0.99).map(|run| speed(&run.course) / (-0.5 * 0.99f64.ln()));
    let what = "constant rate, β = (0.9, 0.99), ε = 0: speed of ln 1/L at last over ½ ln 1/β₂";
    outcome.largest(what, speeds, 1.25);
}

/// The mean fall of ln L per step in the second half of a run.
fn speed(run: &Series) -> f64 {
    let end = run.last("step");
    let [step, u] = ["step", "u"].map(|name| run.value_where(name, "step", |step| 2.0 * step >= end));
    (run.last("u") - u) / (end - step)
}

fn describe(runs: &Runs, outcome: &mut Outcome) {
    for (words, leg) in [("the flow", Leg::Flow), ("the constant rate", Leg::Constant)] {
        let told = |&epsilon: &f64| {
            let found = switches(runs, leg, (0.0, 0.0), &[epsilon]);
            let average =
                |of: fn(&Phases) -> f64| mean(&found.iter().map(|(_, phases)| of(phases)).collect::<Vec<_>>());
            let (decades, step) = (average(Phases::decades), average(|phases| phases.step));
            (!found.is_empty()).then(|| format!("ε = {epsilon:e}: L = 1e{decades:.1}, step {step:.0}"))
        };
        let told: Vec<String> = EPSILONS.iter().filter_map(told).collect();
        outcome.note(format!("Where γ1 is largest along {words}, without momentum: {}.", told.join("; ")));
    }
    for run in runs.of(Leg::Flow, Who::Gradient) {
        let share = |epsilon: &f64| {
            let adam = runs.beside(run, Leg::Flow, Who::forgetful(*epsilon))?;
            Some(format!("{:.3} for ε = {epsilon:e}", adam.course.last("γ2") / run.course.last("γ2")))
        };
        let shares: Vec<String> = EPSILONS.iter().filter_map(share).collect();
        outcome.note(format!("{}: γ2 of Adam over that of GD at L = 1e-300: {}.", run.place(), shares.join(", ")));
    }
    for run in runs.of(Leg::Constant, Who::Sign) {
        let (course, phases) = (&run.course, Phases::of(&run.course));
        let (steps, end, early) = (course.last("step"), -course.last("u") / LN_10, at_loss(course, -7.0));
        let (most, depth, last) = (phases.peak, phases.decades(), course.last("γ1"));
        outcome.note(format!(
            "{}: at the constant rate SD needs {steps} steps to L = 1e{end:.0}; γ1 is {early:.1} at L = 1e-7, at most \
             {most:.1} (at L = 1e{depth:.0}), {last:.1} at the end: steps of one length move margins by ever more as \
             the weights grow.",
            run.place(),
        ));
    }
    let [gradient, sign, adam] = [Who::Gradient, Who::Sign, Who::forgetful(1e-8)].map(|who| {
        mean(&runs.of(Leg::Flow, who).map(|run| 100.0 * run.course.last("test_accuracy")).collect::<Vec<_>>())
    });
    outcome.note(format!(
        "Mean test accuracy at L = 1e-300: GD {gradient:.1} %, SD {sign:.1} %, Adam with ε = 1e-8 {adam:.1} %.",
    ));
    outcome.note(
        "The paper's losses end at 1e-7. A constant rate cannot go much deeper with ε > 0, where L falls like 1/t; the \
         flows have the same right-hand side and steps proportional to 1/L.",
    );
}

fn figures(runs: &Runs, outcome: &mut Outcome) {
    let momentum = Who::Adam { memory: (0.9, 0.99), epsilon: 1e-8 };
    let shown = [Who::Gradient, Who::Sign, Who::forgetful(1e-4), Who::forgetful(1e-8), momentum];
    let deep: Vec<Who> = [Who::Gradient, Who::Sign].into_iter().chain(EPSILONS.map(Who::forgetful)).collect();
    for (figure, pair) in [("figure-2", PAIRS[0]), ("figure-6", PAIRS[1])] {
        let digits = format!("{} vs {}", pair[0], pair[1]);
        let draw = |mut sketch: Sketch, leg: Leg, whos: &[Who], curve: &dyn Fn(&Series) -> Vec<[f64; 2]>| {
            for run in whos.iter().filter_map(|who| runs.of(leg, *who).find(|run| run.pair == pair)) {
                sketch = sketch.curve(run.who.1.name(), curve(&run.course));
            }
            sketch
        };
        for (name, symbol) in [("gamma-1", "γ1"), ("gamma-2", "γ2")] {
            let title = format!("{symbol} at the constant rate, {digits}");
            let sketch = Sketch::new(&format!("{figure}-{name}"), &title, "steps", symbol).logarithmic(true, true);
            outcome.sketch(draw(sketch, Leg::Constant, &shown, &|run| by_step(run, symbol)));
            let title = format!("{symbol} along the flow down to 1e-300, {digits}");
            let sketch = Sketch::new(&format!("{figure}-deep-{name}"), &title, "−log₁₀ L", symbol);
            outcome.sketch(draw(sketch.logarithmic(true, true), Leg::Flow, &deep, &|run| by_loss(run, symbol)));
        }
        let title = format!("Test accuracy at the constant rate, {digits}");
        let sketch = Sketch::new(&format!("{figure}-accuracy"), &title, "steps", "accuracy").logarithmic(true, false);
        outcome.sketch(draw(sketch, Leg::Constant, &shown, &|run| by_step(run, "test_accuracy")));
    }
    let title = "Loss at which Adam turns from γ1 to γ2";
    let mut sketch = Sketch::new("adam-switch", title, "ε", "L at the largest γ1").logarithmic(true, true);
    for (words, leg) in [("flow", Leg::Flow), ("constant rate", Leg::Constant)] {
        let found = loss_by_epsilon(&switches(runs, leg, (0.0, 0.0), &EPSILONS));
        let slope = slope(&found);
        let [x, y] = [0, 1].map(|axis| mean(&found.iter().map(|point| point[axis]).collect::<Vec<_>>()));
        let mut seen: Vec<f64> = found.iter().map(|point| point[0]).collect();
        seen.dedup();
        let line = seen.iter().map(|at| [at.exp(), (y + slope * (at - x)).exp()]).collect();
        sketch = sketch.reference(format!("{words}: slope {slope:.2}"), line);
        let average = |at: &f64| {
            let here: Vec<f64> = found.iter().filter(|point| point[0] == *at).map(|point| point[1]).collect();
            [at.exp(), mean(&here).exp()]
        };
        sketch = sketch.curve(words, seen.iter().map(average).collect());
    }
    outcome.sketch(sketch);
}

fn printed_phases(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, runs) = (Outcome::default(), Runs::get(lab)?);
    for (words, leg) in [("constant rate", Leg::Constant), ("flow", Leg::Flow)] {
        for run in runs.of(leg, Who::forgetful(1e-4)) {
            let Some(other) = runs.beside(run, leg, Who::forgetful(1e-8)) else { continue };
            let what = format!("{}, {words}: where γ1 is largest with ε = 1e-4 and with ε = 1e-8", run.place());
            let [a, b] = [run, other].map(|run| Phases::of(&run.course));
            let [first, second] = [&a, &b].map(|seen| format!("step {} at L = 1e{:.1}", seen.step, seen.decades()));
            outcome.push(what, "with ε = 1e-4 after more steps", format!("{first}, {second}"), a.step > b.step);
        }
    }
    for run in runs.of(Leg::Constant, Who::Adam { memory: (0.9, 0.99), epsilon: 0.0 }) {
        let what = format!("{}, momentum, ε = 0: fall of γ1", run.place());
        outcome.at_most(what, Phases::of(&run.course).fall, VISIBLE);
    }
    outcome.note("The sentence in print is that larger ε start the second phase slower, but more aggressively.");
    Ok(outcome)
}
