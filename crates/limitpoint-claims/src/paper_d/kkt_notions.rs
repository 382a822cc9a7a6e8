//! Appendix C: what approximate KKT points are, and that gradient flow meets them in finite time.

use rayon::prelude::*;

use super::flows::{complete, flows, long_flows};
use crate::arithmetic::{larger, smaller};
use crate::{Claim, ClaimError, Finished, Lab, Outcome, Series};
use limitpoint::certificates::{KktReport, Slopes, kkt_report, tangent_certificate};
use limitpoint::data::Targets;
use limitpoint::engine::{Compute, cpu};
use limitpoint::linalg::{Matrix, norm2};
use limitpoint::losses::LossSpec;
use limitpoint::models::{Activation, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "D.defC1",
        covers: &["D.defC3", "D.defC5", "D.defC6", "D.thmC4"],
        statement: "(ε, δ)-KKT points by ‖θ̃ − Σ λ h̃‖ ≤ ε and λₙ (qₙ − 1) ≤ δ: both vanish at a known KKT point, the \
                    least squares multipliers are never worse than those of the trajectory, and along a flow both \
                    tend to 0 together with the judge's τ",
        experiments: &["d-flows"],
        try_out: notions,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.lemC11",
        covers: &["D.lemC12"],
        statement: "‖dθ̂/dt‖ ≤ B₁/(L γ̃) · d ln ρ/dt, and for every ε there is a time, after which the direction \
                    stays within ε of its limit, followed by one with β⁻² − 1 ≤ ε² before ln ρ has grown by ε",
        experiments: &["d-flows"],
        try_out: speeds,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.thmA9",
        statement: "An (ε, δ)-KKT point is met while ln ρ is between (1/L) ln(g(C₂/δ)/γ̃(t₀)) and that plus C₀ \
                    C₁²/(2ε²); ε = 0.3, δ = 0.1, linear and two-layer models",
        experiments: &["d-flows"],
        try_out: windows,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.thmA9.printed",
        statement: "There |β| < ½, as the proof of Theorem A.9 prints",
        experiments: &["d-flows"],
        try_out: printed_angle,
        ..Claim::MISPRINT
    },
];

/// The report of a network of one neuron with squared ReLU at `theta`, for the example (3, 4) with label 1.
fn one_neuron(theta: &[f64]) -> Result<KktReport, ClaimError> {
    let spec = ModelSpec::network(&[1], Activation::ReluPower { power: 2 });
    let mut model = cpu::bind(&spec, Matrix::from_rows(&[&[3.0, 4.0]]), 1, Compute::default())?;
    let (targets, loss) = (Targets::Binary(vec![1.0]), LossSpec::Exponential.build()?);
    Ok(kkt_report(&mut *model, &targets, &*loss, theta, &NormSpec::L2.into(), (Slopes::Fixed, 0.0))?)
}

fn notions(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    // q = a ⟨w, x⟩² is largest on a sphere for w along x and ‖w‖² = 2a²
    let [w, a] = [2f64.sqrt(), 1.0];
    let known = one_neuron(&[0.6 * w, 0.8 * w, a])?;
    let relative = |report: &KktReport| report.stationary.residual / report.stationary.objective.sqrt();
    outcome.at_most("a known KKT point: ε relative to ‖θ̃‖", relative(&known), 1e-7).by_theory();
    outcome.at_most("a known KKT point: δ", known.stationary.largest_slack, 1e-12).by_theory();
    let other = one_neuron(&[w, 0.0, a])?;
    outcome.at_least("another point: least ε relative to ‖θ̃‖", relative(&other), 0.1);
    let flows = complete(&flows, &mut outcome);
    let reports = flows.par_iter().map(|flow| report(lab, &flow.end)).collect::<Result<Vec<_>, _>>()?;
    for (Series { what, .. }, report) in flows.iter().zip(&reports) {
        let quotient = report.papers.residual / report.stationary.residual;
        let words = format!("{what}: ε of the trajectory's multipliers over the least");
        outcome.at_least(words, quotient, 1.0 - 1e-6).by_theory();
        let [papers, best] = [&report.papers, &report.best].map(|found| found.fenchel_young_gap + found.slack);
        outcome.at_least(format!("{what}: their gap and slack over the least"), papers / best, 1.0 - 1e-6).by_theory();
        let words = format!("{what}: the least over the judge's lower bound, relative to ‖θ̃‖²");
        outcome.at_least(words, (best - report.best_lower) / report.best.objective, -1e-9).by_theory();
    }
    let levels = [-10.0, -1000.0, -100_000.0];
    let mut tasks = Vec::new();
    for level in levels {
        let overrides = [format!("stop.log10_loss={level}"), "stop.steps=1000000".to_owned()];
        tasks.extend(lab.tasks("d-flows", &overrides)?.into_iter().take(1));
    }
    let course = lab.finish_all(&tasks)?.par_iter().map(|run| measures(lab, run)).collect::<Result<Vec<_>, _>>()?;
    let apart = course.iter().map(|row| (row[0] - 1.0).abs());
    outcome.largest("along a flow: smallest margin at θ̃ minus 1", apart, 1e-10).by_theory();
    let column = |k: usize| course.iter().map(|row| row[k]).collect::<Vec<f64>>();
    for (k, name) in [(1, "ε"), (2, "δ"), (3, "τ")] {
        let seen = column(k);
        let words: Vec<String> =
            seen.iter().zip(levels).map(|(x, level)| format!("{x:.1e} at L = 1e{level}")).collect();
        let falling = seen.windows(2).all(|pair| pair[1] < pair[0]);
        outcome.push(format!("along a flow: {name}"), "falls", words.join(", "), falling);
    }
    for (k, name) in [(1, "ε"), (2, "δ"), (3, "τ")] {
        outcome.falls(format!("along a flow: {name} at the end over the first"), &column(k), 0.2);
    }
    Ok(outcome)
}

fn report(lab: &Lab, end: &Finished) -> Result<KktReport, ClaimError> {
    let mut objective = lab.objective(&end.task, &end.data)?;
    let (loss, geometry) = (end.task.recipe.loss.build()?, NormSpec::L2.into());
    let model = objective.tangents()?;
    Ok(kkt_report(model, &end.data.targets, &*loss, &end.params, &geometry, (Slopes::Fixed, 0.0))?)
}

/// The smallest margin at θ̃, ε and δ with the paper's multipliers, and the judge's τ.
fn measures(lab: &Lab, end: &Finished) -> Result<[f64; 4], ClaimError> {
    let mut objective = lab.objective(&end.task, &end.data)?;
    let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
    let mut smallest = |params: &[f64]| {
        objective.forward(params);
        objective.margins().iter().copied().fold(f64::INFINITY, smaller)
    };
    let factor = smallest(&end.params).powf(-1.0 / degree);
    let feasible = smallest(&end.params.iter().map(|x| x * factor).collect::<Vec<f64>>());
    let found = report(lab, end)?.papers;
    let model = objective.tangents()?;
    let judged = tangent_certificate(model, &end.data.targets, &end.params, &NormSpec::L2.into(), Slopes::Fixed)?;
    Ok([feasible, found.residual, found.largest_slack, judged.tau])
}

/// B₁: its analytic upper bound, and the largest ‖∇q‖ at random unit vectors and at the end of the run, which is a
/// lower one.
fn gradient_bounds(lab: &Lab, flow: &Series) -> Result<[f64; 2], ClaimError> {
    let (task, end) = (&flow.end.task, &flow.end);
    let inputs = end.data.dense()?;
    let longest = (0..inputs.rows).map(|n| norm2(inputs.row(n))).fold(0.0, larger);
    let architecture = task.recipe.model.architecture_on(&end.data)?;
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
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    for flow in complete(&flows, &mut outcome) {
        let [upper, lower] = gradient_bounds(lab, flow)?;
        let what = format!("{}: sampled B₁ over its analytic bound", flow.what);
        outcome.at_most(what, lower / upper, 1.0).by_theory();
        // integrated over a step, with γ̃ at its beginning: a chord is no longer than its arc, and γ̃ grows
        for (name, b) in [("the analytic B₁", upper), ("1.01 times the sampled B₁", 1.01 * lower)] {
            let over = flow.pairs(["turn", "size", "soft_margin"], |[_, before, margin], [turn, size, _]| {
                turn - b * (size / before).ln() / (flow.degree * margin)
            });
            let what = format!("{}: turn of θ̂ minus its bound with {name}, largest", flow.what);
            outcome.largest(what, over, 1e-15).by_theory();
        }
    }
    for flow in long_flows(lab)?.iter() {
        sequence(&mut outcome, flow, gradient_bounds(lab, flow)?[0]);
    }
    outcome.note(
        "The end of a run stands for the limit; what the direction still turns is the length of its path, no \
                  shorter than the distance.",
    );
    Ok(outcome)
}

/// The construction in the proof of Lemma C.12: a time s after which the direction turns by at most ε and (1/L) ln γ̃
/// gains at most ε³, and the best angle from there until ln ρ has grown by ε.
fn sequence(outcome: &mut Outcome, flow: &Series, gradient_bound: f64) {
    let (what, end) = (&flow.what, flow.last("size").ln());
    // what the direction still turns, then (1/L) ln γ̃ still gains, ln ρ, β⁻² − 1
    let mut left = 0.0;
    let mut rows: Vec<[f64; 4]> = Vec::new();
    for [turn, margin, size, beta] in flow.rows(["turn", "soft_margin", "size", "alignment"]).into_iter().rev() {
        let gain = (flow.last("soft_margin") / margin).ln() / flow.degree;
        rows.push([left, gain, size.ln(), beta.powi(-2) - 1.0]);
        left += turn;
    }
    rows.reverse();
    for epsilon in [0.5, 0.3, 0.2] {
        let settled = rows.iter().position(|row| row[0] <= epsilon && row[1] <= f64::powi(epsilon, 3));
        let late = &rows[settled.unwrap_or(rows.len().saturating_sub(1))..];
        let begin = late.first().map_or(f64::NAN, |row| row[2]);
        let over = (end - begin) / epsilon;
        outcome.at_least(format!("{what}: ε = {epsilon}: ln ρ left in the run after s, over ε"), over, 1.0);
        let inside = late.iter().take_while(|row| row[2] <= begin + epsilon);
        let best = inside.reduce(|best, next| if next[3] < best[3] { next } else { best });
        let [turn, _, _, excess] = best.copied().unwrap_or([f64::NAN; 4]);
        let words = format!("{what}: ε = {epsilon}: least (β⁻² − 1)/ε²");
        outcome.at_most(words, excess / epsilon.powi(2), 1.0).by_theory();
        let distance = (gradient_bound / (flow.degree * flow.first("soft_margin")) + 1.0) * epsilon;
        let words = format!("{what}: ε = {epsilon}: distance left over its bound");
        outcome.at_most(words, turn / distance, 1.0).by_theory();
    }
}

/// What Theorem A.9 says of a run, and what happens.
struct Window {
    /// Where ln ρ of the window begins, and how long it is.
    begin: f64,
    length: f64,
    /// ln ρ and β where the first (ε, δ)-KKT point after the begin is met.
    met: [f64; 2],
    /// ln ρ of the first (ε, δ)-KKT point of the whole run.
    earliest: f64,
    /// ε over C₁ √6/2, which must be below 1.
    smallness: f64,
}

/// The theorem begins once ln 1/L is 10; it may begin at any time after separation.
fn window(flow: &Series, epsilon: f64, delta: f64) -> Window {
    let (late, degree) = (flow.when("u", |u| u >= 10.0), flow.degree);
    let soft = late.first("soft_margin");
    // for the exponential loss δ = C₂/u with C₂ = N/(e L γ̃^{2/L})
    let c2 = flow.margins as f64 / (std::f64::consts::E * degree * soft.powf(2.0 / degree));
    let c1_squared = 2.0 * soft.powf(-2.0 / degree);
    let c0 = (flow.last("soft_margin") / soft).ln() / degree;
    let begin = (c2 / delta / soft).ln() / degree;
    let first = |part: &Series, from: f64| {
        let rows = part.rows(["size", "alignment", "gap", "slack"]);
        let met = |row: &[f64; 4]| row[0].ln() >= from && (2.0 * row[2]).sqrt() <= epsilon && row[3] <= delta;
        rows.into_iter().find(met).map_or([f64::NAN; 2], |[size, beta, ..]| [size.ln(), beta])
    };
    Window {
        begin,
        length: c0 * c1_squared / (2.0 * epsilon * epsilon),
        met: first(&late, begin),
        earliest: first(flow, f64::NEG_INFINITY)[0],
        smallness: epsilon / (1.5 * c1_squared).sqrt(),
    }
}

fn windows(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), long_flows(lab)?);
    outcome.at_least("runs", flows.len() as f64, 3.0);
    for flow in flows.iter() {
        let (what, Window { begin, length, met, earliest, smallness }) = (&flow.what, window(flow, 0.3, 0.1));
        outcome.at_most(format!("{what}: ε over (√6/2) C₁"), smallness, 1.0).by_paper();
        let words = format!("{length:.3}");
        outcome.push(format!("{what}: length of the window"), "positive", words, length > 0.0).by_theory();
        let share = (met[0] - begin) / length;
        outcome.at_most(format!("{what}: where it is met, as a share of the window"), share, 1.0).by_theory();
        outcome.note(format!(
            "{what}: window of ln ρ from {begin:.3} to {:.3}; the first (0.3, 0.1)-KKT point of the run is at \
             {earliest:.3}, the run ends at {:.3}",
            begin + length,
            flow.last("size").ln()
        ));
    }
    Ok(outcome)
}

fn printed_angle(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), long_flows(lab)?);
    for flow in flows.iter() {
        let beta = window(flow, 0.3, 0.1).met[1].abs();
        let what = format!("{}: |β| at the point", flow.what);
        outcome.push(what, "below ½", format!("{beta:.6}"), beta < 0.5).by_paper();
    }
    outcome.note("By derivation: the line before gives β⁻² − 1 < 3, which is |β| > ½ and not |β| < ½.");
    Ok(outcome)
}
