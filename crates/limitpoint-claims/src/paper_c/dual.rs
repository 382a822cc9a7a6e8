//! Lemmas E.1 and E.2: how fast the direction of the dual weights ∇R(θ) turns.

use rayon::prelude::*;

use super::mirror::Flows;
use crate::arithmetic::larger;
use crate::measures::own_potential;
use crate::{Claim, ClaimError, Lab, Outcome, Series};
use limitpoint::certificates::Geometry;
use limitpoint::linalg::norm2;
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::objective::Objective;

pub(super) const CLAIMS: [Claim; 1] = [Claim {
    id: "C.lemE1",
    covers: &["C.lemE2"],
    statement: "The direction of ∇R(θ) turns at most at the speed 2B₁⟨θ, d∇R/dt⟩/(L γ̃ C₂ ‖θ‖ ‖∇R‖), and once R > 0 ln \
                Q grows at least at the speed ⟨θ, d∇R/dt⟩/(‖θ‖ ‖∇R‖)",
    experiments: &["c-flows"],
    try_out: turning,
    ..Claim::FORMULA
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

/// B₁ from below, by a random search that starts at the best of many directions and of the end of the flow. A larger
/// B₁ would only make the lemma's bound larger.
fn steepest(lab: &Lab, flow: &Series) -> Result<(f64, Geometry), ClaimError> {
    let mut objective = lab.objective(&flow.end.task, &flow.end.data)?;
    let geometry = Geometry::of_potential(&own_potential(&flow.end.task), objective.layout())?;
    let mut stream = Streams::new(1).stream("steepest");
    let (mut best, mut point) = (0.0, flow.end.params.clone());
    let mut trial = point.clone();
    for round in 0..lab.choose(200, 2000) {
        let scale = norm2(&point) / (point.len() as f64).sqrt();
        for (new, old) in trial.iter_mut().zip(&point) {
            *new = if round < 50 { stream.normal() } else { old + 0.3 * scale * stream.normal() };
        }
        if round == 0 {
            trial.copy_from_slice(&flow.end.params);
        }
        let found = steepness(&mut objective, &geometry, &trial, flow.degree)?;
        if found > best {
            best = found;
            point.copy_from_slice(&trial);
        }
    }
    Ok((best, geometry))
}

fn turning(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let flows = Flows::of(lab, &mut outcome)?;
    let chosen: Vec<&Series> = flows.uniform().collect();
    let constants: Vec<_> = chosen.par_iter().map(|flow| steepest(lab, flow)).collect::<Result<_, _>>()?;
    for (flow, (b1, geometry)) in chosen.into_iter().zip(constants) {
        let c2 = smallest_ratio(&geometry, flow.parameters);
        let gauge = flow.map(["gauge", "size"], |[gauge, size]| gauge / (c2 * size));
        outcome.smallest(format!("{}: (αQ)^(1/α) over C₂‖θ‖₂, least", flow.what), gauge, 1.0 - 1e-12).by_theory();
        // both sides per dQ = ⟨θ, d∇R⟩
        let bound = |margin: f64, size: f64, dual: f64| 2.0 * b1 / (flow.degree * margin * c2 * size * dual);
        let names = ["soft_margin", "size", "dual_size", "dual_speed", "outward"];
        let shares = flow.map(names, |[margin, size, dual, speed, w]| speed / w / bound(margin, size, dual));
        let what = format!("{}: speed of the dual direction over its bound, largest", flow.what);
        outcome.largest(what, shares, 1.0).by_theory();
        // the same over whole steps, where the direction was seen to turn
        let names = ["soft_margin", "size", "dual_size", "dual_turn", "conjugate"];
        let turns = flow.pairs(names, |[a, b, c, _, old], [margin, size, dual, turn, now]| {
            turn / (larger(bound(a, b, c), bound(margin, size, dual)) * (now - old))
        });
        outcome.largest(format!("{}: turn of it over a step over the bound", flow.what), turns, 1.0).by_theory();
        let rows = flow.rows(["value", "size", "dual_size", "conjugate"]).into_iter();
        let positive: Vec<f64> = rows.filter(|row| row[0] > 0.0).map(|[_, size, dual, q]| size * dual / q).collect();
        let what = format!("{}: ‖θ‖‖∇R‖/Q at the {} steps with R > 0, least", flow.what, positive.len());
        outcome.smallest(what, positive, 1.0 - 1e-12).by_theory();
        outcome.at_least(format!("{}: R at the end", flow.what), flow.last("value"), 0.0).by_theory();
    }
    outcome.note("B₁ is searched for, so that it can only be too small, and the bound too strict.");
    Ok(outcome)
}
