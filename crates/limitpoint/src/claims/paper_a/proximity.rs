//! Proposition B.6 and equation (74): how close to stationarity a point is, as a Bregman divergence.

use super::flows::{exponential, traces};
use crate::certificates::{Geometry, Slopes, TangentProblem, proximity_measure};
use crate::claims::arithmetic::{larger, smaller};
use crate::claims::trace::norm_of;
use crate::claims::{Claim, ClaimError, Lab, Outcome};
use crate::diagnostics::kkt_measure;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "A.propB6",
        covers: &["A.defB1", "A.propB2", "A.lemB3", "A.defB4"],
        statement: "The Bregman divergence between dual and primal vector equals ‖θ̃‖²(1 − β) for every choice of \
                    subgradient, and is at most γ̃(t₀)^{−2/L}(1 − β)",
        experiments: &["a-flows"],
        try_out: proximity,
    },
    Claim {
        id: "A.eq74",
        covers: &["A.fig4"],
        statement: "The least ε for which some multipliers give divergence ≤ ε and slack ≤ ε is at most what the paper's \
                    multipliers give, and its running minimum falls along the flow",
        experiments: &["a-flows"],
        try_out: measure,
    },
];

fn proximity(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    for trace in exponential(&traces) {
        let Some(first) = trace.moments.first() else { continue };
        let start = trace.soft_margin(first).powf(-2.0 / trace.degree);
        let (mut identity, mut above) = (0.0, f64::NEG_INFINITY);
        for (m, rare) in trace.moments.iter().filter_map(|m| Some((m, m.rare.as_ref()?))) {
            let p = &rare.proximity;
            identity = larger(identity, (p.divergence - m.objective * (1.0 - m.alignment)).abs() / m.objective);
            above = larger(above, p.divergence / (start * (1.0 - p.alignment)));
        }
        outcome.at_most(format!("{}: |D − ‖θ̃‖²(1 − β)| over ‖θ̃‖², largest", trace.what), identity, 1e-10);
        outcome.at_most(format!("{}: D over its bound, largest", trace.what), above, 1.0);
    }
    Ok(outcome)
}

fn measure(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut tasks = lab.tasks("a-flows", &["seed=0", "data.count=12", "stop.log10_loss=-17"])?;
    tasks.retain(|task| ["l1", "l2", "linf"].contains(&task.label.optimiser.as_str()));
    for task in tasks {
        let data = lab.data(&task)?.train;
        let (spec, layout) = (norm_of(&task), lab.objective(&task, &data)?.layout().clone());
        let mut norm = spec.build(&layout)?;
        let mut points = Vec::new();
        let mut next = 2.0;
        lab.watch(
            &task,
            |_| true,
            |snapshot| {
                if -snapshot.point.log_loss >= next {
                    let kkt = kkt_measure(&snapshot.point, &mut *norm);
                    points.push((next, snapshot.point.params.to_vec(), larger(kkt.fenchel_young_gap, kkt.slack)));
                    next *= 1.5;
                }
            },
        )?;
        let mut objective = lab.objective(&task, &data)?;
        let geometry: Geometry = spec.into();
        let (mut values, mut ratio) = (Vec::new(), 0.0);
        for (_, params, printed) in &points {
            let tangent = TangentProblem::new(objective.tangents()?, &data.targets, params, &geometry, Slopes::Fixed)?;
            let found = proximity_measure(&tangent)?;
            ratio = larger(ratio, found.upper / printed);
            values.push(found.upper);
        }
        let name = &task.label.optimiser;
        outcome.at_most(
            format!("{name}: measure over max(gap, slack) of the paper's multipliers, largest"),
            ratio,
            1.0 + 1e-6,
        );
        let running = |count: usize| values[..count].iter().copied().fold(f64::INFINITY, smaller);
        let (early, late) = (running(1), running(values.len()));
        outcome.at_most(format!("{name}: running minimum at ln L = −39 over that at −2"), late / early, 0.5);
    }
    Ok(outcome)
}
