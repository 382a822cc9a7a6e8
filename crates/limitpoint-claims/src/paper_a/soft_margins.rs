//! Theorems 3.1 and A.18: the soft margin never falls once the data are separated; Lemma A.7: how soft it is.

use limitpoint::losses::LossSpec;

use super::{ON_FLOWS, all, exponential, flows};
use crate::arithmetic::{larger, largest_fall, smaller};
use crate::steepest::separated;
use crate::{Claim, ClaimError, Lab, Outcome, Series, Sketch};

pub(super) const CLAIMS: [Claim; 5] = [
    Claim {
        id: "A.thm3.1",
        covers: &["A.thmA5"],
        statement: "After separation the soft margin per the algorithm's own norm never falls along a steepest flow, and \
                    grows at least as fast as the theorem's lower bound, which is never negative; six norms, two and \
                    three layers",
        try_out: monotony,
        ..ON_FLOWS
    },
    Claim {
        id: "A.thmA18",
        covers: &["A.defA17"],
        statement: "The same for losses with an exponential tail: logistic and, beyond the paper, cross-entropy loss",
        experiments: &["a-flows", "a-flows-classes"],
        try_out: other_losses,
        ..Claim::FORMULA
    },
    Claim {
        id: "A.rem3.2",
        statement: "The negative control: soft margins per other norms do fall on the way",
        try_out: other_norms,
        ..ON_FLOWS
    },
    Claim {
        id: "A.lemA7",
        covers: &["A.corA8"],
        statement: "(q_min − ln N)/‖θ‖^L ≤ soft margin ≤ q_min/‖θ‖^L at every step, so that both have the same limit",
        try_out: softness,
        ..ON_FLOWS
    },
    Claim {
        id: "A.eq13",
        statement: "The margins per ℓ∞, ℓ2 and ℓ1 norm are ordered like the norms, each within a factor p^{L/2} of the next",
        try_out: order,
        ..ON_FLOWS
    },
];

/// How far one Euler step of the resolution 0.02 may leave the flow's inequality, relative to the growth itself.
const STEP_ERROR: f64 = 0.05;

/// Falls, bound and both sides of the theorem for some flows.
fn rises(outcome: &mut Outcome, flows: &[&Series]) {
    for flow in flows {
        let what = format!("{}: largest relative fall of the soft margin", flow.what);
        outcome.never_falls(what, flow.column("soft_margin"), 1e-12).by_theory();
    }
    let incomplete: Vec<&str> = flows.iter().filter(|flow| !flow.complete()).map(|flow| flow.what.as_str()).collect();
    outcome.push("runs that end too early", "none", format!("{incomplete:?}"), incomplete.is_empty());
    let each = || flows.iter().copied();
    let what = "the theorem's bound on d ln γ̃/d ln g(ln 1/L), least over all steps";
    outcome.smallest(what, all(each(), "growth"), -1e-12).by_theory();
    // measured growth minus the bound, both over one step
    let names = ["soft_margin", "soft", "growth"];
    let above = |flow: &Series| flow.pairs(names, |old, new| (new[0] / old[0]).ln() / (new[1] / old[1]).ln() - old[2]);
    let what = "measured d ln γ̃/d ln g(ln 1/L) over a step minus the bound, least";
    outcome.smallest(what, each().flat_map(above), -STEP_ERROR);
    let rise = |flow: &Series| flow.last("soft_margin") / flow.first("soft_margin");
    let promised = |flow: &Series| flow.pairs(names, |old, new| old[2] * (new[1] / old[1]).ln()).iter().sum::<f64>();
    // the flow's own value is at least 1; sums over steps of the resolution 0.02 miss it by a part of that
    let what = "growth of ln γ̃ over a whole run as a multiple of what the bound promises, least";
    outcome.smallest(what, each().map(|flow| rise(flow).ln() / promised(flow)), 0.99);
    outcome.smallest("soft margin at the end over that at separation, least", each().map(rise), 1.5);
}

fn monotony(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    let chosen = separated(exponential(&flows), &mut outcome);
    rises(&mut outcome, &chosen);
    let outward = chosen.iter().flat_map(|flow| flow.map(["outward", "u"], |[outward, u]| outward / (flow.degree * u)));
    outcome.smallest("⟨θ, −∇ ln L⟩ over L ln(1/L), least over all steps", outward, 1.0 - 1e-12).by_theory();
    let title = "Soft margins per the algorithm's own norm, as multiples of their values at separation";
    let mut sketch = Sketch::new("a-soft-margins", title, "ln 1/L", "γ̃(t) / γ̃(t₀)").logarithmic(true, true);
    for flow in chosen.iter().filter(|flow| flow.what.ends_with("seed 0") && flow.what.starts_with("two")) {
        let start = flow.first("soft_margin");
        let points = flow.curve("u", "soft_margin", 10).into_iter().map(|[u, margin]| [u, margin / start]);
        sketch = sketch.curve(flow.optimiser(), points.collect());
    }
    outcome.sketch(sketch.window([1.0, 21.0], [1.0, 1e3]));
    Ok(outcome)
}

fn other_losses(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    for loss in [LossSpec::Exponential, LossSpec::Logistic, LossSpec::CrossEntropy] {
        let built = loss.build()?;
        let Some(tail) = built.tail() else { continue };
        let grid: Vec<f64> = (0..400).map(|k| 0.01 * 1.05f64.powi(k)).take_while(|q| *q < 1e6).collect();
        let slopes = grid.iter().map(|q| tail.f_prime(*q));
        outcome.smallest(format!("{loss}: least Φ′ on (0, 10⁶)"), slopes, f64::MIN_POSITIVE).by_theory();
        let values: Vec<f64> = grid.iter().map(|q| q * tail.f_prime(*q)).collect();
        outcome.never_falls(format!("{loss}: largest relative fall of q Φ′(q)"), &values, 1e-12).by_theory();
    }
    let chosen = separated(flows.iter().filter(|flow| !flow.what.contains("exponential")), &mut outcome);
    rises(&mut outcome, &chosen);
    Ok(outcome)
}

fn other_norms(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    let mut falls = Vec::new();
    for flow in exponential(&flows) {
        for name in ["l1", "l2", "linf"].iter().filter(|name| **name != flow.optimiser()) {
            let margin = flow.map(["soft", &format!("size.{name}")], |[soft, size]| soft / size.powf(flow.degree));
            falls.push((largest_fall(margin), format!("{}, soft margin per {name} norm", flow.what)));
        }
    }
    let what = "the largest relative fall of an unmatched soft margin in one step";
    outcome.exceeds(what, falls.iter().map(|(fall, _)| *fall), 1e-4);
    if let Some((_, who)) = falls.iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
        outcome.note(format!("The largest fall is that of {who}."));
    }
    Ok(outcome)
}

fn softness(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    let each = || exponential(&flows);
    let steps: usize = each().map(Series::len).sum();
    let names = ["soft", "smallest"];
    let above = each().flat_map(|flow| flow.map(names, |[soft, hard]| (soft - hard) / hard));
    outcome.largest(format!("soft minus hard margin, relative, over {steps} steps"), above, 1e-13).by_theory();
    let log = |flow: &Series| (flow.margins as f64).ln();
    let below = each().flat_map(|flow| flow.map(names, |[soft, hard]| (hard - log(flow) - soft) / hard));
    outcome.largest("hard margin minus ln N minus soft margin, relative", below, 1e-13).by_theory();
    let apart = |[soft, hard]: [f64; 2]| (hard - soft) / hard;
    let first = each().map(|flow| apart(names.map(|name| flow.first(name)))).fold(f64::INFINITY, smaller);
    let last = each().map(|flow| apart(names.map(|name| flow.last(name))));
    let what = "1 − soft/hard margin at the end, largest, against its least value at separation";
    outcome.largest(what, last, first);
    Ok(outcome)
}

fn order(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    let (mut ratios, mut shares) = (Vec::new(), Vec::new());
    for flow in exponential(&flows) {
        let bound = (flow.parameters as f64).powf(flow.degree / 2.0);
        for [least, sizes @ ..] in flow.rows(["smallest", "size.l1", "size.l2", "size.linf"]) {
            let [l1, l2, linf] = sizes.map(|size| least / size.powf(flow.degree));
            ratios.extend([linf / l2, l2 / l1]);
            shares.push(larger(linf / l2, l2 / l1) / bound);
        }
    }
    outcome.smallest("γ₁/γ₂ and γ₂/γ_∞, least", ratios, 1.0).by_theory();
    outcome.largest("γ₁/γ₂ and γ₂/γ_∞ over p^{L/2}, largest", shares, 1.0 + 1e-12).by_theory();
    Ok(outcome)
}
