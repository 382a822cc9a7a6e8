//! Lemmas E.1 and E.2: how fast the direction of the dual weights ∇R(θ) turns.

use rayon::prelude::*;

use super::trace::{Trace, traces, uniform};
use crate::certificates::Geometry;
use crate::claims::arithmetic::{larger, smaller};
use crate::claims::{Claim, ClaimError, Lab, Outcome};
use crate::linalg::norm2;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::objective::Objective;

pub(super) const CLAIMS: [Claim; 1] = [Claim {
    id: "C.lemE1",
    covers: &["C.lemE2"],
    statement: "The direction of ∇R(θ) turns at most at the speed 2B₁⟨θ, d∇R/dt⟩/(L γ̃ C₂ ‖θ‖ ‖∇R‖), and once R > 0 ln \
                Q grows at least at the speed ⟨θ, d∇R/dt⟩/(‖θ‖ ‖∇R‖)",
    experiments: &["c-flows"],
    try_out: turning,
}];

/// The largest C₂ with (αQ)^{1/α} ≥ C₂‖θ‖₂ for all θ: that of the horizon, which lies below the gauge and is its limit.
fn smallest_ratio(geometry: &Geometry, entries: usize) -> f64 {
    match geometry.norm {
        // ‖θ‖_p ≥ n^{1/p − 1/2} ‖θ‖₂ for p ≥ 2
        NormSpec::Lp { p } if p > 2.0 => geometry.scale * (entries as f64).powf(1.0 / p - 0.5),
        _ => geometry.scale,
    }
}

/// max over examples of ‖∇qᵢ(θ)‖₂/φ(θ)^{L−1}.
fn steepness(objective: &mut Objective, geometry: &Geometry, theta: &[f64], degree: f64) -> Result<f64, ClaimError> {
    let size = geometry.scale * geometry.norm.build(objective.layout())?.value(theta);
    let jacobian = objective.tangents()?.per_example_gradients(theta, 0);
    let largest = (0..jacobian.rows).map(|n| norm2(jacobian.row(n))).fold(0.0, larger);
    Ok(largest / size.powf(degree - 1.0))
}

/// B₁ from below, by a random search that starts at the best of many directions and of the end of the trace. A larger
/// B₁ would only make the lemma's bound larger.
fn steepest(lab: &Lab, trace: &Trace) -> Result<(f64, Geometry), ClaimError> {
    let mut objective = lab.objective(&trace.end.task, &trace.end.data)?;
    let geometry = Geometry::of_potential(&trace.potential, objective.layout())?;
    let mut stream = Streams::new(1).stream("steepest");
    let (mut best, mut point) = (0.0, trace.end.params.clone());
    let mut trial = point.clone();
    for round in 0..lab.choose(200, 2000) {
        let scale = norm2(&point) / (point.len() as f64).sqrt();
        for (new, old) in trial.iter_mut().zip(&point) {
            *new = if round < 50 { stream.normal() } else { old + 0.3 * scale * stream.normal() };
        }
        if round == 0 {
            trial.copy_from_slice(&trace.end.params);
        }
        let found = steepness(&mut objective, &geometry, &trial, trace.degree)?;
        if found > best {
            best = found;
            point.copy_from_slice(&trial);
        }
    }
    Ok((best, geometry))
}

fn turning(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let chosen: Vec<&Trace> = uniform(&traces).collect();
    let constants: Vec<_> = chosen.par_iter().map(|trace| steepest(lab, trace)).collect::<Result<_, _>>()?;
    for (trace, (b1, geometry)) in chosen.iter().zip(constants) {
        let c2 = smallest_ratio(&geometry, trace.end.params.len());
        let gauge = trace.moments.iter().map(|m| m.gauge / (c2 * m.size)).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{}: (αQ)^(1/α) over C₂‖θ‖₂, least", trace.what), gauge, 1.0 - 1e-12);
        // both sides per dQ = ⟨θ, d∇R⟩
        let bound =
            |m: &super::trace::Moment| 2.0 * b1 / (trace.degree * trace.soft_margin(m) * c2 * m.size * m.dual_size);
        let ratio = trace.most(|m| m.dual_speed / m.outward / bound(m));
        outcome.at_most(format!("{}: speed of the dual direction over its bound, largest", trace.what), ratio, 1.0);
        // the same over whole steps, where the direction was seen to turn
        let steps = trace.moments.windows(2).map(|pair| {
            let allowed = larger(bound(&pair[0]), bound(&pair[1])) * (pair[1].conjugate - pair[0].conjugate);
            pair[1].dual_turn / allowed
        });
        outcome.at_most(format!("{}: turn of it over a step over the bound", trace.what), steps.fold(0.0, larger), 1.0);
        let positive: Vec<f64> =
            trace.moments.iter().filter(|m| m.value > 0.0).map(|m| m.size * m.dual_size / m.conjugate).collect();
        let least = positive.iter().copied().fold(f64::INFINITY, smaller);
        let name = format!("{}: ‖θ‖‖∇R‖/Q at the {} steps with R > 0, least", trace.what, positive.len());
        outcome.at_least(name, least, 1.0 - 1e-12);
        outcome.at_least(
            format!("{}: R at the end", trace.what),
            trace.moments.last().map_or(f64::NAN, |m| m.value),
            0.0,
        );
    }
    outcome.note("B₁ is searched for, so that it can only be too small, and the bound too strict.");
    Ok(outcome)
}
