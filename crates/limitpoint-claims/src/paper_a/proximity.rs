//! Proposition B.6 and equation (74): how close to stationarity a point is, as a Bregman divergence.

use super::{ON_FLOWS, exponential, flows};
use crate::arithmetic::{larger, smaller};
use crate::measures::{self, own_norm};
use crate::{Claim, ClaimError, Lab, Moments, Outcome};
use limitpoint::certificates::{Geometry, Slopes, TangentProblem, proximity_measure};

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "A.propB6",
        covers: &["A.defB1", "A.propB2", "A.lemB3", "A.defB4"],
        statement: "The Bregman divergence between dual and primal vector equals ‖θ̃‖²(1 − β) for every choice of \
                    subgradient, and is at most γ̃(t₀)^{−2/L}(1 − β)",
        try_out: proximity,
        ..ON_FLOWS
    },
    Claim {
        id: "A.eq74",
        covers: &["A.fig4"],
        statement: "The least ε for which some multipliers give divergence ≤ ε and slack ≤ ε is at most what the paper's \
                    multipliers give, and its running minimum falls along the flow",
        try_out: measure,
        ..ON_FLOWS
    },
];

fn proximity(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    for flow in exponential(&flows) {
        let start = flow.first("soft_margin").powf(-2.0 / flow.degree);
        let names = ["divergence", "objective", "alignment"];
        let apart = flow.map(names, |[found, objective, beta]| (found - objective * (1.0 - beta)).abs() / objective);
        outcome.largest(format!("{}: |D − ‖θ̃‖²(1 − β)| over ‖θ̃‖², largest", flow.what), apart, 1e-10).by_theory();
        let shares = flow.map(["divergence", "proximity_alignment"], |[found, beta]| found / (start * (1.0 - beta)));
        outcome.largest(format!("{}: D over its bound, largest", flow.what), shares, 1.0).by_theory();
    }
    Ok(outcome)
}

fn measure(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let overrides = ["seed=0", "data.count=12", "stop.log10_loss=-17"];
    let levels: Vec<f64> = (0..8).map(|k| 2.0 * 1.5f64.powi(k)).collect();
    for task in lab.tasks_of("a-flows", &overrides, &["l1", "l2", "linf"])? {
        let norm = own_norm(&task);
        let columns = vec![measures::basics(), measures::kkt(norm.clone())];
        let flow = lab.series(&task, Moments::every(1).points_at(levels.clone()), columns)?;
        let mut objective = lab.objective(&task, &flow.end.data)?;
        let geometry: Geometry = norm.into();
        let (mut values, mut shares) = (Vec::new(), Vec::new());
        for (level, params) in &flow.points {
            let there = |name| flow.value_where(name, "u", |u| u >= *level);
            let targets = &flow.end.data.targets;
            let tangent = TangentProblem::new(objective.tangents()?, targets, params, &geometry, Slopes::Fixed)?;
            values.push(proximity_measure(&tangent)?.upper);
            shares.extend(values.last().map(|found| found / larger(there("gap"), there("slack"))));
        }
        let name = flow.optimiser();
        let what = format!("{name}: measure over max(gap, slack) of the paper's multipliers, largest");
        outcome.largest(what, shares, 1.0 + 1e-6).by_theory();
        let (early, late) = (values.first().copied().unwrap_or(f64::NAN), values.into_iter().reduce(smaller));
        let what = format!("{name}: running minimum at ln L = −39 over that at −2");
        outcome.at_most(what, late.unwrap_or(f64::NAN) / early, 0.5);
    }
    Ok(outcome)
}
