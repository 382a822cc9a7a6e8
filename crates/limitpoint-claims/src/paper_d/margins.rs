//! Section 4.1 and appendices A and B: smoothed margins.

use super::flows::{complete, flows, loss_of, spare_gain};
use crate::arithmetic::larger;
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "D.eq2",
        covers: &["D.eq3", "D.defA3", "D.remA4"],
        statement: "The smoothed margin g(ln 1/L)/ρ^L is that of the definition wherever the loss itself is a float, for four \
                    losses, and lies below the normalised margin",
        experiments: &["d-flows"],
        try_out: definitions,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.thm4.1",
        covers: &["D.thmA7"],
        statement: "Once the loss is below its threshold the smoothed margin never falls along gradient flow, and rises wherever \
                    the direction turns; the loss tends to 0, the norm to infinity and both margins to each other; four losses",
        experiments: &["d-flows"],
        try_out: monotony,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.lem5.1",
        covers: &["D.lemB1"],
        statement: "d ln γ̃/dt ≥ L ‖dθ̂/dt‖²/(d ln ρ/dt): over every step ln γ̃ gains at least L times the squared turn over the \
                    gain of ln ρ",
        experiments: &["d-flows"],
        try_out: turning,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.lemA5",
        covers: &["D.remA6"],
        statement: "f(q_min) − ln N ≤ ln 1/L ≤ f(q_min), and q_min − g(ln 1/L) = g′(ξ) (f(q_min) − ln 1/L) with ξ between the two",
        experiments: &["d-flows"],
        try_out: brackets,
        ..Claim::FORMULA
    },
];

fn definitions(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    for flow in complete(&flows, &mut outcome) {
        // the definition with the loss as a number: ln 1/L, −ln(e^L − 1), and their cube roots
        let direct = |u: f64| {
            let loss = (-u).exp();
            match flow.end.task.recipe.loss.key() {
                "exponential" => -loss.ln(),
                "logistic" => -loss.exp_m1().ln(),
                "power-exponential" => (-loss.ln()).cbrt(),
                "power-logistic" => (-loss.exp_m1().ln()).cbrt(),
                _ => f64::NAN,
            }
        };
        // e^−u is no longer a float far out, and the logarithm of a number next to 1 has few digits
        let early = flow.rows(["u", "soft"]).into_iter().filter(|[u, soft]| *u < 100.0 && *soft > 0.1);
        let apart = early.map(|[u, soft]| (soft / direct(u) - 1.0).abs());
        outcome.largest(format!("{}: g(ln 1/L) against its definition, relative", flow.what), apart, 1e-12).by_theory();
        let above = flow.map(["soft", "smallest"], |[soft, smallest]| soft / smallest - 1.0);
        let what = format!("{}: smoothed over normalised margin minus 1, largest", flow.what);
        outcome.largest(what, above, 1e-12).by_theory();
    }
    outcome.at_least("runs that separate their data", flows.iter().filter(|flow| flow.complete()).count() as f64, 8.0);
    Ok(outcome)
}

fn monotony(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    let mut sketch = Sketch::new("d-soft-margins", "Smoothed margins since separation", "ln 1/L", "γ̃(t)/γ̃(t₀)");
    sketch = sketch.logarithmic(true, true);
    let mut risen = Vec::new();
    for flow in complete(&flows, &mut outcome) {
        let (what, margins) = (&flow.what, flow.column("soft_margin"));
        outcome
            .never_falls(format!("{what}: largest relative fall of the smoothed margin"), margins, 1e-12)
            .by_theory();
        outcome.never_falls(format!("{what}: largest relative fall of ρ"), flow.column("size"), 0.0).by_theory();
        for pair in flow.rows(["soft_margin", "turn", "size"]).windows(2) {
            let ([old, _, before], [new, turn, size]) = (pair[0], pair[1]);
            // below this the gain, of the order of the turn squared, is lost in rounding
            if turn > 1e-6 * (size / before).ln().max(1e-3) && turn > 1e-6 {
                risen.push(new > old);
            }
        }
        outcome.at_least(format!("{what}: ln 1/L at the end"), flow.last("u"), 100.0);
        // f(q) has the degree kL in the weights: ρ^{kL} doubles with ln 1/L once the direction settles, and grows by
        // less while the margin itself still grows
        let power = if flow.end.task.recipe.loss.key().starts_with("power") { 3.0 } else { 1.0 };
        let half = flow.value_where("size", "u", |u| u >= 0.5 * flow.last("u"));
        let grown = (flow.last("size") / half).powf(power * flow.degree);
        outcome.at_least(format!("{what}: growth of ρ^(kL) while ln 1/L doubles at the end"), grown, 1.1);
        let apart = flow.map(["soft", "smallest"], |[soft, smallest]| 1.0 - soft / smallest);
        outcome.falls(format!("{what}: 1 − γ̃/γ̄ at the end over that at separation"), &apart, 0.2);
        if what.starts_with("two") && what.ends_with("seed 0") {
            let points = flow.curve("u", "soft_margin", 5).into_iter().map(|[u, margin]| [u, margin / margins[0]]);
            sketch = sketch.curve(flow.end.task.recipe.loss.key(), points.collect());
        }
    }
    outcome.at_least("steps on which the direction turns", risen.len() as f64, 1000.0);
    let what = "share of them on which the smoothed margin rises";
    let asked = "turns of 1e-8 per unit of ln ρ: the gain, of the order of the square, is lost in rounding below 1e-6";
    outcome.share(what, risen, 1.0).by_theory().catalogue_asks(asked);
    outcome.sketch(sketch);
    Ok(outcome)
}

fn turning(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    for flow in complete(&flows, &mut outcome) {
        let spare = spare_gain(flow);
        let gained = (flow.last("soft_margin") / flow.first("soft_margin")).ln();
        let promised = 100.0 * (1.0 - spare.iter().sum::<f64>() / gained);
        let what = format!("{}: gain of ln γ̃ minus L turn²/gain of ln ρ, least", flow.what);
        outcome.smallest(what, spare, -1e-9).by_theory();
        outcome.note(format!("{}: the bound accounts for {promised:.0} % of the growth of ln γ̃", flow.what));
    }
    Ok(outcome)
}

fn brackets(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    for flow in complete(&flows, &mut outcome) {
        let (what, loss) = (&flow.what, loss_of(flow)?);
        let Some(tail) = loss.tail() else { continue };
        let log = (flow.margins as f64).ln();
        let relative = |gap: f64, f: f64| gap / f.abs().max(1.0);
        let (f, names) = (|smallest: f64| tail.f(smallest), ["u", "smallest"]);
        let above = flow.map(names, |[u, smallest]| relative(u - f(smallest), f(smallest)));
        outcome.largest(format!("{what}: ln 1/L − f(q_min), relative, largest"), above, 1e-12).by_theory();
        let below = flow.map(names, |[u, smallest]| relative(f(smallest) - log - u, f(smallest)));
        outcome.largest(format!("{what}: f(q_min) − ln N − ln 1/L, relative, largest"), below, 1e-12).by_theory();
        // where the two ends are apart enough for a quotient
        let rows = flow.rows(["u", "smallest", "soft"]).into_iter();
        let outside = rows.filter(|[u, smallest, _]| f(*smallest) - u > 1e-6).map(|[u, smallest, soft]| {
            let slope = (smallest - soft) / (f(smallest) - u);
            let (one, other) = (tail.g_prime(u), tail.g_prime(f(smallest)));
            larger(slope / one.max(other) - 1.0, one.min(other) / slope - 1.0)
        });
        let what = format!("{what}: (q_min − g)/(f − ln 1/L) outside the range of g′ between them");
        outcome.largest(what, outside, 1e-6).by_theory();
    }
    Ok(outcome)
}
