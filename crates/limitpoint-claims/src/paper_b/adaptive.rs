//! AdaGrad and its relatives: the limit direction depends on the start and the step size.

use super::{angle, larger, weights};
use crate::{Claim, ClaimError, Lab, Moments, Outcome, Sketch};
use limitpoint::driver::ProcessState;
use limitpoint::experiments::Task;
use limitpoint::linalg::dot;
use limitpoint::numeric::LogScaled;
use rayon::prelude::*;

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "B.prop6",
        covers: &["B.eq13", "B.lem13", "B.lem14"],
        statement: "AdaGrad's accumulator stays bounded on separable data, so that its limit direction depends on the \
                    start and the step size",
        experiments: &["b-adagrad"],
        try_out: ada_grad,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.lem14.printed",
        statement: "As printed: AdaGrad is steepest descent in the norm ‖D^{1/2}v‖₂",
        experiments: &["b-adagrad"],
        try_out: wrong_norm,
        ..Claim::MISPRINT
    },
    Claim {
        id: "B.adaptive",
        statement: "The same experiment for Adam and RMSProp: with ε = 0 their accumulators forget and the directions of \
                    different starts come together; AdaGrad's do not",
        experiments: &["b-adagrad"],
        try_out: relatives,
        ..Claim::FINDING
    },
];

const STARTS: [[f64; 2]; 5] = [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0], [1.0, -1.0], [-1.0, 2.0]];
/// η; with small ones ηL(w₀)/2 < 1.
const RATES: [f64; 2] = [0.5, 0.1];

fn task(lab: &Lab, optimiser: &str, start: [f64; 2], rate: f64, steps: u64) -> Result<Task, ClaimError> {
    let start = format!("initialiser={{given={{values=[{}, {}]}}}}", start[0], start[1]);
    let settings = format!("optimiser={optimiser}; {start}; schedule=constant(rate={rate}); stop.steps={steps}");
    super::task(lab, "b-adagrad", &settings)
}

/// D, the accumulator of a process.
fn accumulator(state: &ProcessState) -> Vec<f64> {
    let ProcessState::Descent(state) = state else { return Vec::new() };
    let numbers = &state.optimiser.numbers;
    let scale = numbers.iter().find(|(name, _)| name.contains("log_scale")).map_or(0.0, |(_, value)| *value);
    let values = state.optimiser.vectors.values().next().cloned().unwrap_or_default();
    values.into_iter().map(|value| value * scale.exp()).collect()
}

/// D₀, large enough that ‖D₀^{−1/4}xₙ‖₂ ≤ 1 for every example: ‖x‖₂² ≤ √D₀.
const INITIAL: f64 = 4.5;

/// A run of AdaGrad.
struct AdaGrad {
    start: [f64; 2],
    rate: f64,
    /// Whether ηL(w₀)/2 < 1 and max ‖D₀^−¼xₙ‖₂² ≤ 1, as the proposition wants.
    covered: bool,
    /// Growth of D in the second half of the run, relative to D and to the growth in the second quarter.
    growth: f64,
    slowing: f64,
    /// Σ‖D^−¼G‖² − Σ(√D_t − √D₀), up to t = 2000.
    excess: f64,
    /// The weights after 1, 2, 4, … steps and the last one.
    path: Vec<[f64; 2]>,
}

/// The widest angle between two of these directions.
fn widest(directions: &[[f64; 2]]) -> f64 {
    let pairs = directions.iter().enumerate().flat_map(|(i, a)| directions[..i].iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| angle(a, b)).fold(0.0, larger)
}

/// Steps by hand: the accumulator is part of the optimiser's state, which no moment of a series shows.
fn follow(lab: &Lab, start: [f64; 2], rate: f64, task: &Task, steps: u64) -> Result<AdaGrad, ClaimError> {
    let data = lab.data(task)?.train;
    let loss = lab.objective(task, &data)?.forward(&start).log_loss().exp();
    let inputs = data.dense()?;
    let longest = (0..data.len()).map(|n| dot(inputs.row(n), inputs.row(n))).fold(0.0, larger);
    let mut process = lab.start(task)?;
    let (mut sum, mut path, mut moments, mut before) = (0.0, Vec::new(), Vec::new(), vec![INITIAL; 2]);
    for step in 1..=steps {
        process.advance()?;
        if step <= 2_000 {
            // the squares of the last gradient are what D grew by
            let now = accumulator(&process.save());
            sum += now.iter().zip(&before).map(|(d, old)| (d - old) / d.sqrt()).sum::<f64>();
            before = now;
        }
        if [steps / 4, steps / 2, steps].contains(&step) {
            moments.push(accumulator(&process.save()));
        }
        if step.is_power_of_two() || step == steps {
            path.push([process.params()[0], process.params()[1]]);
        }
    }
    let grown = |from: usize, to: usize, i: usize| moments[to][i] - moments[from][i];
    Ok(AdaGrad {
        start,
        rate,
        covered: 0.5 * rate * loss < 1.0 && longest / INITIAL.sqrt() <= 1.0,
        growth: (0..2).map(|i| grown(1, 2, i) / moments[2][i]).fold(0.0, larger),
        slowing: (0..2).map(|i| grown(1, 2, i) / grown(0, 1, i)).fold(0.0, larger),
        excess: sum - before.iter().map(|d| d.sqrt() - INITIAL.sqrt()).sum::<f64>(),
        path,
    })
}

fn ada_grad(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, steps) = (Outcome::default(), lab.choose(400_000u64, 4_000_000));
    let mut cases = Vec::new();
    for start in STARTS {
        for rate in RATES {
            cases.push((start, rate, task(lab, &format!("ada-grad(initial={INITIAL})"), start, rate, steps)?));
        }
    }
    let follow = |(start, rate, task): (_, _, Task)| follow(lab, start, rate, &task, steps);
    let seen: Vec<AdaGrad> = cases.into_par_iter().map(follow).collect::<Result<_, ClaimError>>()?;
    for run in &seen {
        // where the hypotheses hold the proposition applies; elsewhere the measurement stands alone
        let inside = if run.covered { "" } else { ", outside the hypotheses" };
        let name = format!("start ({}, {}), η = {}{inside}", run.start[0], run.start[1], run.rate);
        // like Σ1/t², whose second half is half as large as the one before: the sum converges
        let what = format!("{name}: growth of D in the second half over that in the second quarter");
        outcome.at_most(what, run.slowing, 0.6);
        let what = format!("{name}: relative growth of D in the second half");
        let asked = "1e-6, which D, growing like Σ 1/t², meets after some 10⁸ steps";
        outcome.at_most(what, run.growth, lab.choose(1e-3, 1e-4)).catalogue_asks(asked);
        outcome.at_least(format!("{name}: Σ‖D^−¼G‖² − Σ(√D_t − √D₀), t = 2000"), run.excess, -1e-9).by_theory();
    }
    let ends = |run: &AdaGrad| run.path.last().copied().unwrap_or([f64::NAN; 2]);
    let covered: Vec<[f64; 2]> = seen.iter().filter(|run| run.covered).map(ends).collect();
    let what = format!("largest angle between two of the {} limit directions", covered.len());
    outcome.at_least(what, widest(&covered), 0.03);
    let turns = seen.chunks(RATES.len()).map(|both| angle(&ends(&both[0]), &ends(&both[1])));
    outcome.at_least("largest angle between η = 0.5 and η = 0.1 from one start", turns.fold(0.0, larger), 1e-3);
    let mut sketch = Sketch::new("adagrad-fan", "AdaGrad: a fan of limit directions", "w₁", "w₂");
    for run in seen.iter().filter(|run| run.rate == RATES[0]) {
        sketch = sketch.curve(format!("from ({}, {})", run.start[0], run.start[1]), run.path.clone());
    }
    outcome.sketch(sketch);
    outcome.note(
        "Directions are those after the last step; they still turn slowly, like 1/log t. Both hypotheses, ηL(w₀)/2 < 1 and \
         ‖D₀^−¼xₙ‖₂ ≤ 1, hold for the starts counted, thanks to an added D₀.",
    );
    Ok(outcome)
}

/// A steepest step Δ in a norm ‖D^a v‖₂ has D^{2a}Δ ∥ G; AdaGrad's Δ = −ηD^{−1/2}G has it for a = 1/4 only.
fn wrong_norm(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, task) = (Outcome::default(), task(lab, "ada-grad", [0.5, -0.2], 0.1, 3)?);
    let data = lab.data(&task)?.train;
    let mut objective = lab.objective(&task, &data)?;
    let mut process = lab.start(&task)?;
    process.advance()?;
    let before = process.params().to_vec();
    objective.forward(&before);
    let mut gradient = LogScaled::zeros(2);
    objective.resume().backward(&before, &mut gradient);
    process.advance()?;
    let d = accumulator(&process.save());
    let step: Vec<f64> = process.params().iter().zip(&before).map(|(after, before)| before - after).collect();
    for (what, power) in [
        ("angle between D^{1/2}Δ and the gradient: the norm with D^{1/4}", 0.25),
        ("angle between DΔ and the gradient: the norm with D^{1/2}, as printed", 0.5),
    ] {
        let turned: Vec<f64> = step.iter().zip(&d).map(|(s, d)| s * d.powf(2.0 * power)).collect();
        outcome.at_most(what, angle(&turned, &gradient.direction), 1e-9).by_theory();
    }
    outcome.note(
        "Derived: D^{2a}Δ ∥ G with Δ = −ηD^{−1/2}G has a = 1/4 only. The main text and the displayed sums agree with it and with \
         the dual D^{−1/4}.",
    );
    Ok(outcome)
}

/// The widest angle between the directions of five runs from different starts, against steps: powers of two, and the last.
fn spreads(lab: &Lab, optimiser: &str, rate: f64, steps: u64) -> Result<Vec<[f64; 2]>, ClaimError> {
    let task = |start| Ok((optimiser.to_owned(), task(lab, optimiser, start, rate, steps)?));
    let tasks = STARTS.into_iter().map(task).collect::<Result<_, ClaimError>>()?;
    let runs = lab.all_series(tasks, Moments::every(1024), |_| weights(2))?;
    let trails: Vec<Vec<[f64; 2]>> = runs.iter().map(|run| run.rows(["w0", "w1"])).collect();
    let moments = runs[0].column("step").iter().enumerate();
    let wanted = moments.filter(|(_, step)| **step == steps as f64 || (**step as u64).is_power_of_two());
    let at = |moment: usize| trails.iter().map(|trail| trail[moment]).collect::<Vec<_>>();
    Ok(wanted.map(|(moment, step)| [*step, widest(&at(moment))]).collect())
}

fn relatives(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, steps) = (Outcome::default(), lab.choose(200_000u64, 2_000_000));
    let title = "Widest angle between directions from five starts";
    let mut sketch = Sketch::new("adaptive-spread", title, "steps", "radians").logarithmic(true, true);
    let cases = [
        ("AdaGrad", "ada-grad", 0.1),
        ("RMSProp, ε = 0", "rms-prop(epsilon=0)", 1e-2),
        ("Adam, ε = 0", "adam(epsilon=0)", 1e-2),
        ("Adam, ε = 1e-8", "adam", 1e-2),
        ("gradient descent", "gradient", 0.1),
    ];
    for (name, optimiser, rate) in cases {
        let trail = spreads(lab, optimiser, rate, steps)?;
        let before = trail.iter().find(|at| at[0] >= steps as f64 / 16.0).map_or(f64::NAN, |at| at[1]);
        let after = trail[trail.len() - 1][1];
        let what = format!("{name}: widest angle at a sixteenth of {steps} steps and at the end");
        let words = format!("{before:.4}, then {after:.4}");
        if name == "AdaGrad" {
            outcome.push(what, "stays", words, after > 0.03 && after > 0.5 * before);
        } else if name.ends_with("ε = 0") {
            outcome.push(what, "falls to less than half", words, after < 0.5 * before);
        } else {
            outcome.note(format!("{what}: {words}."));
        }
        sketch = sketch.curve(name, trail);
    }
    outcome.sketch(sketch);
    Ok(outcome)
}
