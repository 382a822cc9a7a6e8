//! Appendix C: what approximate KKT points are, and that gradient flow meets them in finite time.

use std::sync::Arc;

use rayon::prelude::*;

use super::flows::traces;
use crate::certificates::{KktReport, Slopes, kkt_report, tangent_certificate};
use crate::claims::arithmetic::{larger, smaller};
use crate::claims::trace::{Moment, Trace};
use crate::claims::{Claim, ClaimError, Lab, Outcome};
use crate::data::Targets;
use crate::engine::{Compute, cpu};
use crate::linalg::{Matrix, norm2};
use crate::losses::LossSpec;
use crate::models::{Activation, ModelSpec, Shape};
use crate::norms::NormSpec;
use crate::numeric::Streams;

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "D.defC1",
        covers: &["D.defC3", "D.defC5", "D.defC6", "D.thmC4"],
        statement: "(ε, δ)-KKT points by ‖θ̃ − Σ λ h̃‖ ≤ ε and λₙ (qₙ − 1) ≤ δ: both vanish at a known KKT point, the \
                    least squares multipliers are never worse than those of the trajectory, and along a flow both \
                    tend to 0 together with the judge's τ",
        experiments: &["d-flows"],
        try_out: notions,
    },
    Claim {
        id: "D.lemC11",
        covers: &["D.lemC12"],
        statement: "‖dθ̂/dt‖ ≤ B₁/(L γ̃) · d ln ρ/dt, and for every ε there is a time, after which the direction \
                    stays within ε of its limit, followed by one with β⁻² − 1 ≤ ε² before ln ρ has grown by ε",
        experiments: &["d-flows"],
        try_out: speeds,
    },
    Claim {
        id: "D.thmA9",
        covers: &[],
        statement: "An (ε, δ)-KKT point is met while ln ρ is between (1/L) ln(g(C₂/δ)/γ̃(t₀)) and that plus C₀ \
                    C₁²/(2ε²); ε = 0.3, δ = 0.1, linear and two-layer models",
        experiments: &["d-flows"],
        try_out: windows,
    },
    Claim {
        id: "D.thmA9.printed",
        covers: &[],
        statement: "There |β| < ½, as the proof of Theorem A.9 prints",
        experiments: &["d-flows"],
        try_out: printed_angle,
    },
];

/// The report of a network of one neuron with squared ReLU at `theta`, for the example (3, 4) with label 1.
fn one_neuron(theta: &[f64]) -> Result<KktReport, ClaimError> {
    let spec = ModelSpec::network(&[1], Activation::ReluPower { power: 2 });
    let mut model = cpu::bind(&spec, &Matrix::from_rows(&[&[3.0, 4.0]]), 1, Compute::default())?;
    let (targets, loss) = (Targets::Binary(vec![1.0]), LossSpec::Exponential.build()?);
    Ok(kkt_report(&mut *model, &targets, &*loss, theta, &NormSpec::L2.into(), (Slopes::Fixed, 0.0))?)
}

fn notions(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    // q = a ⟨w, x⟩² is largest on a sphere for w along x and ‖w‖² = 2a²
    let [w, a] = [2f64.sqrt(), 1.0];
    let known = one_neuron(&[0.6 * w, 0.8 * w, a])?;
    let scale = known.stationary.objective.sqrt();
    outcome.at_most("a known KKT point: ε relative to ‖θ̃‖", known.stationary.residual / scale, 1e-7);
    outcome.at_most("a known KKT point: δ", known.stationary.largest_slack, 1e-12);
    let other = one_neuron(&[w, 0.0, a])?;
    let scale = other.stationary.objective.sqrt();
    outcome.at_least("another point: least ε relative to ‖θ̃‖", other.stationary.residual / scale, 0.1);
    let traces = traces(lab)?;
    let reports: Vec<(&Trace, KktReport)> = traces
        .par_iter()
        .filter(|trace| trace.complete())
        .map(|trace| report(lab, trace).map(|report| (trace, report)))
        .collect::<Result<_, ClaimError>>()?;
    for (trace, report) in &reports {
        let quotient = report.papers.residual / report.stationary.residual;
        outcome.at_least(
            format!("{}: ε of the trajectory's multipliers over the least", trace.what),
            quotient,
            1.0 - 1e-6,
        );
        let [papers, best] = [&report.papers, &report.best].map(|found| found.fenchel_young_gap + found.slack);
        outcome.at_least(format!("{}: their gap and slack over the least", trace.what), papers / best, 1.0 - 1e-6);
        outcome.at_least(
            format!("{}: the least over the judge's lower bound, relative to ‖θ̃‖²", trace.what),
            (best - report.best_lower) / report.best.objective,
            -1e-9,
        );
    }
    let levels = [-10.0, -1000.0, -100_000.0];
    let mut tasks = Vec::new();
    for level in levels {
        let overrides = [format!("stop.log10_loss={level}"), "stop.steps=1000000".to_owned()];
        tasks.extend(lab.tasks("d-flows", &overrides)?.into_iter().take(1));
    }
    let course: Vec<[f64; 4]> = tasks
        .par_iter()
        .map(|task| {
            let run = lab.finish(task)?;
            let mut objective = lab.objective(task, &run.data)?;
            objective.forward(&run.params);
            let smallest = objective.margins().iter().copied().fold(f64::INFINITY, f64::min);
            let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
            let scaled: Vec<f64> = run.params.iter().map(|x| x * smallest.powf(-1.0 / degree)).collect();
            objective.forward(&scaled);
            let feasible = objective.margins().iter().copied().fold(f64::INFINITY, f64::min);
            let (loss, geometry) = (task.recipe.loss.build()?, NormSpec::L2.into());
            let model = objective.tangents()?;
            let found =
                kkt_report(model, &run.data.targets, &*loss, &run.params, &geometry, (Slopes::Fixed, 0.0))?.papers;
            let judged = tangent_certificate(model, &run.data.targets, &run.params, &geometry, Slopes::Fixed)?;
            Ok([feasible, found.residual, found.largest_slack, judged.tau])
        })
        .collect::<Result<_, ClaimError>>()?;
    let column = |k: usize| course.iter().map(|row| row[k]).collect::<Vec<f64>>();
    let apart = column(0).iter().map(|q| (q - 1.0).abs()).fold(0.0, larger);
    outcome.at_most("along a flow: smallest margin at θ̃ minus 1", apart, 1e-10);
    for (k, name) in [(1, "ε"), (2, "δ"), (3, "τ")] {
        let values = column(k);
        let words: Vec<String> =
            values.iter().zip(levels).map(|(value, level)| format!("{value:.1e} at L = 1e{level}")).collect();
        let falling = values.windows(2).all(|pair| pair[1] < pair[0]);
        outcome.push(format!("along a flow: {name}"), "falls", words.join(", "), falling);
    }
    let quotient = |k: usize| column(k).last().zip(column(k).first()).map_or(f64::NAN, |(last, first)| last / first);
    for (k, name) in [(1, "ε"), (2, "δ"), (3, "τ")] {
        outcome.at_most(format!("along a flow: {name} at the end over the first"), quotient(k), 0.2);
    }
    Ok(outcome)
}

fn report(lab: &Lab, trace: &Trace) -> Result<KktReport, ClaimError> {
    let (task, end) = (&trace.end.task, &trace.end);
    let mut objective = lab.objective(task, &end.data)?;
    let (loss, geometry) = (task.recipe.loss.build()?, NormSpec::L2.into());
    let model = objective.tangents()?;
    Ok(kkt_report(model, &end.data.targets, &*loss, &end.params, &geometry, (Slopes::Fixed, 0.0))?)
}

/// B₁: its analytic upper bound, and the largest ‖∇q‖ at random unit vectors and at the end of the run, which is a
/// lower one.
fn gradient_bounds(lab: &Lab, trace: &Trace) -> Result<[f64; 2], ClaimError> {
    let (task, end) = (&trace.end.task, &trace.end);
    let inputs = end.data.dense()?;
    let longest = (0..inputs.rows).map(|n| norm2(inputs.row(n))).fold(0.0, larger);
    let architecture = task.recipe.model.architecture(&Shape::vector(inputs.cols), 1)?;
    let upper = architecture.sphere_bounds(longest).map_or(f64::NAN, |bounds| bounds.gradient);
    let mut objective = lab.objective(task, &end.data)?;
    let (mut stream, mut lower) = (Streams::new(5).stream("points"), 0.0);
    let mut theta = end.params.clone();
    for _ in 0..200 {
        let size = norm2(&theta);
        theta.iter_mut().for_each(|x| *x /= size);
        let rows = objective.tangents()?.per_example_gradients(&theta, 0);
        lower = larger(lower, (0..rows.rows).map(|n| norm2(rows.row(n))).fold(0.0, larger));
        stream.fill_normal(&mut theta);
    }
    Ok([upper, lower])
}

fn speeds(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    for trace in traces.iter().filter(|trace| trace.complete()) {
        let [upper, lower] = gradient_bounds(lab, trace)?;
        outcome.at_most(format!("{}: sampled B₁ over its analytic bound", trace.what), lower / upper, 1.0);
        // integrated over a step, with γ̃ at its beginning: a chord is no longer than its arc, and γ̃ grows
        let over = |pair: &[Moment], b: f64| {
            pair[1].turn - b * (pair[1].size / pair[0].size).ln() / (trace.degree * trace.soft_margin(&pair[0]))
        };
        for (name, b) in [("the analytic B₁", upper), ("1.01 times the sampled B₁", 1.01 * lower)] {
            let worst = trace.moments.windows(2).map(|pair| over(pair, b)).fold(f64::NEG_INFINITY, larger);
            outcome.at_most(format!("{}: turn of θ̂ minus its bound with {name}, largest", trace.what), worst, 1e-15);
        }
    }
    for trace in long_flows(lab)?.iter() {
        let [upper, _] = gradient_bounds(lab, trace)?;
        sequence(&mut outcome, trace, upper);
    }
    outcome.note(
        "The end of a run stands for the limit; what the direction still turns is the length of its path, no \
                  shorter than the distance.",
    );
    Ok(outcome)
}

/// The construction in the proof of Lemma C.12: a time s after which the direction turns by at most ε and (1/L) ln γ̃
/// gains at most ε³, and the best angle from there until ln ρ has grown by ε.
fn sequence(outcome: &mut Outcome, trace: &Trace, gradient_bound: f64) {
    let Some((first, last)) = trace.moments.first().zip(trace.moments.last()) else { return };
    let mut left = vec![0.0; trace.moments.len()];
    for k in (1..left.len()).rev() {
        left[k - 1] = left[k] + trace.moments[k].turn;
    }
    let gain = |m: &Moment| (trace.soft_margin(last) / trace.soft_margin(m)).ln() / trace.degree;
    for epsilon in [0.5, 0.3, 0.2] {
        let settled =
            (0..left.len()).find(|k| left[*k] <= epsilon && gain(&trace.moments[*k]) <= f64::powi(epsilon, 3));
        let s = settled.unwrap_or(left.len() - 1);
        let until = trace.moments[s].size.ln() + epsilon;
        outcome.at_least(
            format!("{}: ε = {epsilon}: ln ρ left in the run after s, over ε", trace.what),
            (last.size.ln() - trace.moments[s].size.ln()) / epsilon,
            1.0,
        );
        let inside = trace.moments[s..].iter().zip(&left[s..]).take_while(|(m, _)| m.size.ln() <= until);
        let (excess, turn) = inside
            .map(|(m, left)| (m.alignment.powi(-2) - 1.0, *left))
            .reduce(|best, next| if next.0 < best.0 { next } else { best })
            .unwrap_or((f64::NAN, f64::NAN));
        outcome.at_most(format!("{}: ε = {epsilon}: least (β⁻² − 1)/ε²", trace.what), excess / epsilon.powi(2), 1.0);
        let distance = (gradient_bound / (trace.degree * trace.soft_margin(first)) + 1.0) * epsilon;
        outcome.at_most(format!("{}: ε = {epsilon}: distance left over its bound", trace.what), turn / distance, 1.0);
    }
}

/// What Theorem A.9 says of a run, and what happens.
struct Window {
    what: String,
    /// Where ln ρ of the window begins.
    begin: f64,
    /// How long it is.
    length: f64,
    /// ln ρ and β where the first (ε, δ)-KKT point after the begin is met.
    met: Option<[f64; 2]>,
    /// ln ρ of the first (ε, δ)-KKT point of the whole run.
    earliest: f64,
    /// ε over C₁ √6/2, which must be below 1.
    smallness: f64,
    /// ln ρ at the end of the run.
    end: f64,
}

/// The theorem begins once the loss is this small; it may begin at any time after separation.
const FROM: f64 = 10.0;

fn window(trace: &Trace, epsilon: f64, delta: f64) -> Option<Window> {
    let begin = trace.moments.iter().position(|m| m.u >= FROM)?;
    let (late, last) = (&trace.moments[begin..], trace.moments.last()?);
    let (soft, degree) = (trace.soft_margin(&trace.moments[begin]), trace.degree);
    // for the exponential loss δ = C₂/u with C₂ = N/(e L γ̃^{2/L})
    let c2 = trace.margins as f64 / (std::f64::consts::E * degree * soft.powf(2.0 / degree));
    let c1_squared = 2.0 * soft.powf(-2.0 / degree);
    let c0 = (trace.soft_margin(last) / soft).ln() / degree;
    let from = (c2 / delta / soft).ln() / degree;
    let approximate = |m: &&Moment| (2.0 * m.gap).sqrt() <= epsilon && m.slack <= delta;
    let met = late.iter().filter(|m| m.size.ln() >= from).find(approximate).map(|m| [m.size.ln(), m.alignment]);
    let earliest = trace.moments.iter().find(approximate).map_or(f64::NAN, |m| m.size.ln());
    let length = c0 * c1_squared / (2.0 * epsilon * epsilon);
    let smallness = epsilon / (1.5 * c1_squared).sqrt();
    Some(Window { what: trace.what.clone(), begin: from, length, met, earliest, smallness, end: last.size.ln() })
}

/// Flows with exponential loss that go far.
fn long_flows(lab: &Lab) -> Result<Arc<Vec<Trace>>, ClaimError> {
    lab.once("long gradient flows", || {
        let linear = "data=gaussians(count=12, dimension=5, margin=0.5)";
        let sets = [
            ("linear", vec!["model=linear", linear]),
            ("two layers, squared ReLU", vec![]),
            ("two layers, identity", vec!["model.widths=[4]", "model.activation=identity", linear]),
        ];
        let mut tasks = Vec::new();
        for (name, own) in sets {
            let mut overrides = own;
            overrides.push("stop.log10_loss=-10000");
            tasks.extend(lab.tasks("d-flows", &overrides)?.into_iter().map(|task| (name.to_owned(), task)));
        }
        tasks.into_par_iter().map(|(what, task)| Trace::of(lab, what, &task)).collect()
    })
}

fn all_windows(lab: &Lab) -> Result<Vec<Window>, ClaimError> {
    Ok(long_flows(lab)?.iter().filter_map(|trace| window(trace, 0.3, 0.1)).collect())
}

fn windows(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, windows) = (Outcome::default(), all_windows(lab)?);
    outcome.at_least("runs", windows.len() as f64, 3.0);
    for window in windows.iter() {
        outcome.at_most(format!("{}: ε over (√6/2) C₁", window.what), window.smallness, 1.0);
        outcome.push(
            format!("{}: length of the window", window.what),
            "positive",
            format!("{:.3}", window.length),
            window.length > 0.0,
        );
        let after = window.met.map_or(f64::NAN, |[at, _]| (at - window.begin) / window.length);
        outcome.at_most(format!("{}: where it is met, as a share of the window", window.what), after, 1.0);
        outcome.note(format!(
            "{}: window of ln ρ from {:.3} to {:.3}; the first (0.3, 0.1)-KKT point of the run is at {:.3}, the run \
             ends at {:.3}",
            window.what,
            window.begin,
            window.begin + window.length,
            window.earliest,
            window.end
        ));
    }
    Ok(outcome)
}

fn printed_angle(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, windows) = (Outcome::default(), all_windows(lab)?);
    for window in windows.iter() {
        let beta = window.met.map_or(f64::NAN, |[_, beta]| beta.abs());
        outcome.push(format!("{}: |β| at the point", window.what), "below ½", format!("{beta:.6}"), beta < 0.5);
    }
    let least = windows.iter().filter_map(|window| window.met).map(|[_, beta]| beta).fold(f64::INFINITY, smaller);
    outcome.note(format!("β⁻² − 1 < 3 gives |β| > ½; the least here is {least:.4}."));
    Ok(outcome)
}
