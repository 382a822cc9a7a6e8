//! Theorems 3.1 and A.18: the soft margin never falls once the data are separated; Lemma A.7: how soft it is.

use super::flows::{exponential, traces};
use crate::claims::arithmetic::{larger, smaller};
use crate::claims::trace::{Moment, Trace};
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};
use crate::losses::LossSpec;

pub(super) const CLAIMS: [Claim; 5] = [
    Claim {
        id: "A.thm3.1",
        covers: &["A.thmA5"],
        statement: "After separation the soft margin per the algorithm's own norm never falls along a steepest flow, and \
                    grows at least as fast as the theorem's lower bound, which is never negative; six norms, two and \
                    three layers",
        experiments: &["a-flows"],
        try_out: monotony,
    },
    Claim {
        id: "A.thmA18",
        covers: &["A.defA17"],
        statement: "The same for losses with an exponential tail: logistic and, beyond the paper, cross-entropy loss",
        experiments: &["a-flows", "a-flows-classes"],
        try_out: other_losses,
    },
    Claim {
        id: "A.rem3.2",
        covers: &[],
        statement: "The negative control: soft margins per other norms do fall on the way",
        experiments: &["a-flows"],
        try_out: other_norms,
    },
    Claim {
        id: "A.lemA7",
        covers: &["A.corA8"],
        statement: "(q_min − ln N)/‖θ‖^L ≤ soft margin ≤ q_min/‖θ‖^L at every step, so that both have the same limit",
        experiments: &["a-flows"],
        try_out: softness,
    },
    Claim {
        id: "A.eq13",
        covers: &[],
        statement: "The margins per ℓ∞, ℓ2 and ℓ1 norm are ordered like the norms, each within a factor p^{L/2} of the next",
        experiments: &["a-flows"],
        try_out: order,
    },
];

/// How far one Euler step of the resolution 0.02 may leave the flow's inequality, relative to the growth itself.
const STEP_ERROR: f64 = 0.05;

/// Falls, bound and both sides of the theorem for some traces.
fn rises(outcome: &mut Outcome, traces: &[&Trace]) {
    for trace in traces {
        let fall = trace.fall(|m| trace.soft_margin(m));
        outcome.at_most(format!("{}: largest relative fall of the soft margin", trace.what), fall, 1e-12);
    }
    let incomplete: Vec<&str> = traces.iter().filter(|t| !t.complete()).map(|t| t.what.as_str()).collect();
    outcome.push("runs that end too early", "none", format!("{incomplete:?}"), incomplete.is_empty());
    let least = traces.iter().flat_map(|t| &t.moments).map(|m| m.growth).fold(f64::INFINITY, smaller);
    outcome.at_least("the theorem's bound on d ln γ̃/d ln g(ln 1/L), least over all steps", least, -1e-12);
    // measured growth minus the bound, both over one step
    let below = |trace: &&Trace| {
        trace.moments.windows(2).fold(f64::INFINITY, |least, pair| {
            let gain = (trace.soft_margin(&pair[1]) / trace.soft_margin(&pair[0])).ln();
            let time = (pair[1].soft / pair[0].soft).ln();
            smaller(least, gain / time - pair[0].growth)
        })
    };
    let worst = traces.iter().map(below).fold(f64::INFINITY, smaller);
    outcome.at_least("measured d ln γ̃/d ln g(ln 1/L) over a step minus the bound, least", worst, -STEP_ERROR);
    let total = |trace: &&Trace| {
        let gained = match (trace.moments.first(), trace.moments.last()) {
            (Some(first), Some(last)) => (trace.soft_margin(last) / trace.soft_margin(first)).ln(),
            _ => f64::NAN,
        };
        let promised: f64 =
            trace.moments.windows(2).map(|pair| pair[0].growth * (pair[1].soft / pair[0].soft).ln()).sum();
        gained / promised
    };
    let ratio = traces.iter().map(total).fold(f64::INFINITY, smaller);
    // the flow's own value is at least 1; sums over steps of the resolution 0.02 miss it by a part of that
    outcome.at_least("growth of ln γ̃ over a whole run as a multiple of what the bound promises, least", ratio, 0.99);
    let rise = |trace: &&Trace| match (trace.moments.first(), trace.moments.last()) {
        (Some(first), Some(last)) => trace.soft_margin(last) / trace.soft_margin(first),
        _ => f64::NAN,
    };
    outcome.at_least(
        "soft margin at the end over that at separation, least",
        traces.iter().map(rise).fold(f64::INFINITY, smaller),
        1.5,
    );
}

fn monotony(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let chosen: Vec<&Trace> = exponential(&traces).collect();
    rises(&mut outcome, &chosen);
    let outward = chosen.iter().flat_map(|trace| trace.moments.iter().map(|m| m.outward / (trace.degree * m.u)));
    outcome.at_least(
        "⟨θ, −∇ ln L⟩ over L ln(1/L), least over all steps",
        outward.fold(f64::INFINITY, smaller),
        1.0 - 1e-12,
    );
    let mut sketch = Sketch::new(
        "a-soft-margins",
        "Soft margins per the algorithm's own norm, as multiples of their values at separation",
        "ln 1/L",
        "γ̃(t) / γ̃(t₀)",
    )
    .logarithmic(true, true);
    for trace in chosen.iter().filter(|trace| trace.what.ends_with("seed 0") && trace.what.starts_with("two")) {
        let Some(first) = trace.moments.first() else { continue };
        let start = trace.soft_margin(first);
        let points = trace.moments.iter().step_by(10).map(|m| [m.u, trace.soft_margin(m) / start]).collect();
        sketch = sketch.curve(trace.optimiser.clone(), points);
    }
    outcome.sketch(sketch.window([1.0, 21.0], [1.0, 1e3]));
    Ok(outcome)
}

fn other_losses(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    for loss in [LossSpec::Exponential, LossSpec::Logistic, LossSpec::CrossEntropy] {
        let built = loss.build()?;
        let Some(tail) = built.tail() else { continue };
        let grid: Vec<f64> = (0..400).map(|k| 0.01 * 1.05f64.powi(k)).take_while(|q| *q < 1e6).collect();
        let slope = grid.iter().map(|q| tail.f_prime(*q)).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{loss}: least Φ′ on (0, 10⁶)"), slope, f64::MIN_POSITIVE);
        let falls = grid.windows(2).map(|q| {
            let (old, new) = (q[0] * tail.f_prime(q[0]), q[1] * tail.f_prime(q[1]));
            (old - new) / old
        });
        outcome.at_most(format!("{loss}: largest relative fall of q Φ′(q)"), falls.fold(0.0, larger), 1e-12);
    }
    let chosen: Vec<&Trace> = traces.iter().filter(|trace| !trace.what.contains("exponential")).collect();
    rises(&mut outcome, &chosen);
    Ok(outcome)
}

fn other_norms(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let names = ["l1", "l2", "linf"];
    let mut worst = (0.0, String::new());
    for trace in exponential(&traces) {
        for (k, name) in names.iter().enumerate().filter(|(_, name)| **name != trace.optimiser) {
            let fall = trace.fall(|m| m.soft / m.others[k].powf(trace.degree));
            if fall > worst.0 || fall.is_nan() {
                worst = (fall, format!("{}, soft margin per {name} norm", trace.what));
            }
        }
    }
    outcome.at_least("the largest relative fall of an unmatched soft margin in one step", worst.0, 1e-4);
    outcome.note(format!("The largest fall is that of {}.", worst.1));
    Ok(outcome)
}

fn softness(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let (mut above, mut below, mut steps) = (f64::NEG_INFINITY, f64::NEG_INFINITY, 0);
    let (mut first, mut last) = (f64::INFINITY, 0.0);
    for trace in exponential(&traces) {
        let log = (trace.margins as f64).ln();
        let relative = |m: &Moment| (m.smallest - m.soft) / m.smallest;
        for m in &trace.moments {
            above = larger(above, (m.soft - m.smallest) / m.smallest);
            below = larger(below, (m.smallest - log - m.soft) / m.smallest);
            steps += 1;
        }
        if let (Some(begin), Some(end)) = (trace.moments.first(), trace.moments.last()) {
            (first, last) = (smaller(first, relative(begin)), larger(last, relative(end)));
        }
    }
    outcome.at_most(format!("soft minus hard margin, relative, over {steps} steps"), above, 1e-13);
    outcome.at_most("hard margin minus ln N minus soft margin, relative", below, 1e-13);
    outcome.at_most("1 − soft/hard margin at the end, largest, against its least value at separation", last, first);
    Ok(outcome)
}

fn order(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let (mut order, mut factor) = (f64::INFINITY, 0.0);
    for trace in exponential(&traces) {
        let bound = (trace.parameters as f64).powf(trace.degree / 2.0);
        for m in &trace.moments {
            let [l1, l2, linf] = m.others.map(|size| m.smallest / size.powf(trace.degree));
            order = smaller(order, smaller(linf / l2, l2 / l1));
            factor = larger(factor, larger(linf / l2, l2 / l1) / bound);
        }
    }
    outcome.at_least("γ₁/γ₂ and γ₂/γ_∞, least", order, 1.0);
    outcome.at_most("γ₁/γ₂ and γ₂/γ_∞ over p^{L/2}, largest", factor, 1.0 + 1e-12);
    Ok(outcome)
}
