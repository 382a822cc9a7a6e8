//! Appendix C: what approximate KKT points are, and that gradient flow meets them in finite time.

use rayon::prelude::*;

use super::flows::{ON_FLOWS, complete, down_to, each_flow, falls, flows, join, long_flows};
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
        try_out: notions,
        ..ON_FLOWS
    },
    Claim {
        id: "D.lemC11",
        covers: &["D.lemC12"],
        statement: "‖dθ̂/dt‖ ≤ B₁/(L γ̃) · d ln ρ/dt, and for every ε there is a time, after which the direction \
                    stays within ε of its limit, followed by one with β⁻² − 1 ≤ ε² before ln ρ has grown by ε",
        try_out: speeds,
        ..ON_FLOWS
    },
    Claim {
        id: "D.thmA9",
        statement: "An (ε, δ)-KKT point is met while ln ρ is between (1/L) ln(g(C₂/δ)/γ̃(t₀)) and that plus C₀ \
                    C₁²/(2ε²); ε = 0.3, δ = 0.1, linear and two-layer models",
        try_out: windows,
        ..ON_FLOWS
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

fn report(lab: &Lab, end: &Finished) -> Result<KktReport, ClaimError> {
    let (mut objective, loss) = (lab.objective(&end.task, &end.data)?, end.task.recipe.loss.build()?);
    let (model, norm) = (objective.tangents()?, NormSpec::L2.into());
    Ok(kkt_report(model, &end.data.targets, &*loss, &end.params, &norm, (Slopes::Fixed, 0.0))?)
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
    for (flow, report) in flows.iter().zip(&reports) {
        let mut about = Outcome::default();
        let quotient = report.papers.residual / report.stationary.residual;
        about.at_least("ε of the trajectory's multipliers over the least", quotient, 1.0 - 1e-6).by_theory();
        let [papers, best] = [&report.papers, &report.best].map(|found| found.fenchel_young_gap + found.slack);
        about.at_least("their gap and slack over the least", papers / best, 1.0 - 1e-6).by_theory();
        let spare = (best - report.best_lower) / report.best.objective;
        about.at_least("the least over the judge's lower bound, relative to ‖θ̃‖²", spare, -1e-9).by_theory();
        join(&mut outcome, &flow.what, about);
    }
    let levels = [-10.0, -1000.0, -100_000.0];
    let course = down_to(lab, levels)?.par_iter().map(|run| measures(lab, run)).collect::<Result<Vec<_>, _>>()?;
    let mut about = Outcome::default();
    about.largest("smallest margin at θ̃ minus 1", course.iter().map(|row| (row[0] - 1.0).abs()), 1e-10).by_theory();
    let column = |k: usize| course.iter().map(|row| row[k]).collect::<Vec<f64>>();
    let columns = [("ε", column(1)), ("δ", column(2)), ("τ", column(3))];
    columns.iter().for_each(|(name, seen)| falls(&mut about, *name, seen, levels));
    for (name, seen) in &columns {
        about.falls(format!("{name} at the end over the first"), seen, 0.2);
    }
    join(&mut outcome, "along a flow", about);
    Ok(outcome)
}

/// The smallest margin at θ̃, ε and δ with the paper's multipliers, and the judge's τ.
fn measures(lab: &Lab, end: &Finished) -> Result<[f64; 4], ClaimError> {
    let mut objective = lab.objective(&end.task, &end.data)?;
    let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
    let mut smallest =
        |params: &[f64]| objective.forward(params).margins().iter().copied().fold(f64::INFINITY, smaller);
    let factor = smallest(&end.params).powf(-1.0 / degree);
    let feasible = smallest(&end.params.iter().map(|x| x * factor).collect::<Vec<f64>>());
    let (found, norm) = (report(lab, end)?.papers, NormSpec::L2.into());
    let judged = tangent_certificate(objective.tangents()?, &end.data.targets, &end.params, &norm, Slopes::Fixed)?;
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
    let mut outcome = each_flow(lab, |flow| {
        let (mut outcome, [upper, lower]) = (Outcome::default(), gradient_bounds(lab, flow)?);
        outcome.at_most("sampled B₁ over its analytic bound", lower / upper, 1.0).by_theory();
        // integrated over a step, with γ̃ at its beginning: a chord is no longer than its arc, and γ̃ grows
        for (name, b) in [("the analytic B₁", upper), ("1.01 times the sampled B₁", 1.01 * lower)] {
            let over = flow.pairs(["turn", "size", "soft_margin"], |[_, before, margin], [turn, size, _]| {
                turn - b * (size / before).ln() / (flow.degree * margin)
            });
            outcome.largest(format!("turn of θ̂ minus its bound with {name}, largest"), over, 1e-15).by_theory();
        }
        Ok(outcome)
    })?;
    for flow in long_flows(lab)?.iter() {
        join(&mut outcome, &flow.what, sequence(flow, gradient_bounds(lab, flow)?[0]));
    }
    outcome.note(
        "The end of a run stands for the limit; what the direction still turns is the length of its path, no \
                  shorter than the distance.",
    );
    Ok(outcome)
}

/// The construction in the proof of Lemma C.12: a time s after which the direction turns by at most ε and (1/L) ln γ̃
/// gains at most ε³, and the best angle from there until ln ρ has grown by ε.
fn sequence(flow: &Series, gradient_bound: f64) -> Outcome {
    let (mut outcome, end) = (Outcome::default(), flow.last("size").ln());
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
        outcome.at_least(format!("ε = {epsilon}: ln ρ left in the run after s, over ε"), over, 1.0);
        let inside = late.iter().take_while(|row| row[2] <= begin + epsilon);
        let best = inside.reduce(|best, next| if next[3] < best[3] { next } else { best });
        let [turn, _, _, excess] = best.copied().unwrap_or([f64::NAN; 4]);
        outcome.at_most(format!("ε = {epsilon}: least (β⁻² − 1)/ε²"), excess / epsilon.powi(2), 1.0).by_theory();
        let distance = (gradient_bound / (flow.degree * flow.first("soft_margin")) + 1.0) * epsilon;
        outcome.at_most(format!("ε = {epsilon}: distance left over its bound"), turn / distance, 1.0).by_theory();
    }
    outcome
}

/// What Theorem A.9 says of a run for ε = 0.3 and δ = 0.1, and |β| of the point that is met. The theorem begins once
/// ln 1/L is 10; it may begin at any time after separation.
fn window(flow: &Series) -> (Outcome, f64) {
    let (late, degree, epsilon, delta) = (flow.when("u", |u| u >= 10.0), flow.degree, 0.3, 0.1);
    let soft = late.first("soft_margin");
    // for the exponential loss δ = C₂/u with C₂ = N/(e L γ̃^{2/L})
    let c2 = flow.margins as f64 / (std::f64::consts::E * degree * soft.powf(2.0 / degree));
    let c1_squared = 2.0 * soft.powf(-2.0 / degree);
    let c0 = (flow.last("soft_margin") / soft).ln() / degree;
    // in ln ρ
    let begin = (c2 / delta / soft).ln() / degree;
    let length = c0 * c1_squared / (2.0 * epsilon * epsilon);
    let first = |part: &Series, from: f64| {
        let rows = part.rows(["size", "alignment", "gap", "slack"]);
        let met = |row: &[f64; 4]| row[0].ln() >= from && (2.0 * row[2]).sqrt() <= epsilon && row[3] <= delta;
        rows.into_iter().find(met).map_or([f64::NAN; 2], |[size, beta, ..]| [size.ln(), beta])
    };
    let ([met, beta], [earliest, _]) = (first(&late, begin), first(flow, f64::NEG_INFINITY));
    let mut outcome = Outcome::default();
    outcome.at_most("ε over (√6/2) C₁", epsilon / (1.5 * c1_squared).sqrt(), 1.0).by_paper();
    outcome.push("length of the window", "positive", format!("{length:.3}"), length > 0.0).by_theory();
    outcome.at_most("where it is met, as a share of the window", (met - begin) / length, 1.0).by_theory();
    let (close, end) = (begin + length, flow.last("size").ln());
    outcome.note(format!(
        "window of ln ρ from {begin:.3} to {close:.3}; the first (0.3, 0.1)-KKT point of the run is at {earliest:.3}, \
         the run ends at {end:.3}"
    ));
    (outcome, beta.abs())
}

fn windows(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), long_flows(lab)?);
    outcome.at_least("runs", flows.len() as f64, 3.0);
    flows.iter().for_each(|flow| join(&mut outcome, &flow.what, window(flow).0));
    Ok(outcome)
}

fn printed_angle(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), long_flows(lab)?);
    for flow in flows.iter() {
        let beta = window(flow).1;
        let what = format!("{}: |β| at the point", flow.what);
        outcome.push(what, "below ½", format!("{beta:.6}"), beta < 0.5).by_paper();
    }
    outcome.note("By derivation: the line before gives β⁻² − 1 < 3, which is |β| > ½ and not |β| < ½.");
    Ok(outcome)
}
