//! Section 4.1 and appendices A and B: smoothed margins.

use super::flows::{loss_of, traces};
use crate::claims::arithmetic::{larger, smaller};
use crate::claims::trace::Moment;
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "D.eq2",
        covers: &["D.eq3", "D.defA3", "D.remA4"],
        statement: "The smoothed margin g(ln 1/L)/ρ^L is that of the definition wherever the loss itself is a float, for four \
                    losses, and lies below the normalised margin",
        experiments: &["d-flows"],
        try_out: definitions,
    },
    Claim {
        id: "D.thm4.1",
        covers: &["D.thmA7"],
        statement: "Once the loss is below its threshold the smoothed margin never falls along gradient flow, and rises wherever \
                    the direction turns; the loss tends to 0, the norm to infinity and both margins to each other; four losses",
        experiments: &["d-flows"],
        try_out: monotony,
    },
    Claim {
        id: "D.lem5.1",
        covers: &["D.lemB1"],
        statement: "d ln γ̃/dt ≥ L ‖dθ̂/dt‖²/(d ln ρ/dt): over every step ln γ̃ gains at least L times the squared turn over the \
                    gain of ln ρ",
        experiments: &["d-flows"],
        try_out: turning,
    },
    Claim {
        id: "D.lemA5",
        covers: &["D.remA6"],
        statement: "f(q_min) − ln N ≤ ln 1/L ≤ f(q_min), and q_min − g(ln 1/L) = g′(ξ) (f(q_min) − ln 1/L) with ξ between the two",
        experiments: &["d-flows"],
        try_out: brackets,
    },
];

fn definitions(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    for trace in traces.iter() {
        let name = &trace.end.task.recipe.loss;
        // the definition with the loss as a number: ln 1/L, −ln(e^L − 1), and their cube roots
        let direct = |m: &Moment| {
            let loss = (-m.u).exp();
            match name.key() {
                "exponential" => -loss.ln(),
                "logistic" => -loss.exp_m1().ln(),
                "power-exponential" => (-loss.ln()).cbrt(),
                "power-logistic" => (-loss.exp_m1().ln()).cbrt(),
                _ => f64::NAN,
            }
        };
        // e^−u is no longer a float far out, and the logarithm of a number next to 1 has few digits
        let early = trace.moments.iter().filter(|m| m.u < 100.0 && m.soft > 0.1);
        let worst = early.map(|m| (m.soft / direct(m) - 1.0).abs()).fold(0.0, larger);
        outcome.at_most(format!("{}: g(ln 1/L) against its definition, relative", trace.what), worst, 1e-12);
        let above = trace.moments.iter().map(|m| m.soft / m.smallest - 1.0).fold(f64::NEG_INFINITY, larger);
        outcome.at_most(format!("{}: smoothed over normalised margin minus 1, largest", trace.what), above, 1e-12);
    }
    outcome.at_least("runs that separate their data", traces.iter().filter(|t| t.complete()).count() as f64, 8.0);
    Ok(outcome)
}

fn monotony(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let mut sketch = Sketch::new("d-soft-margins", "Smoothed margins since separation", "ln 1/L", "γ̃(t)/γ̃(t₀)")
        .logarithmic(true, true);
    let (mut turning, mut risen) = (0usize, 0usize);
    for trace in traces.iter().filter(|trace| trace.complete()) {
        let fall = trace.fall(|m| trace.soft_margin(m));
        outcome.at_most(format!("{}: largest relative fall of the smoothed margin", trace.what), fall, 1e-12);
        outcome.at_most(format!("{}: largest relative fall of ρ", trace.what), trace.fall(|m| m.size), 0.0);
        for pair in trace.moments.windows(2) {
            let grown = (pair[1].size / pair[0].size).ln();
            // below this the gain, of the order of the turn squared, is lost in rounding
            if pair[1].turn > 1e-6 * grown.max(1e-3) && pair[1].turn > 1e-6 {
                turning += 1;
                risen += usize::from(trace.soft_margin(&pair[1]) > trace.soft_margin(&pair[0]));
            }
        }
        let (Some(first), Some(last)) = (trace.moments.first(), trace.moments.last()) else { continue };
        let apart = |m: &Moment| 1.0 - m.soft / m.smallest;
        outcome.at_least(format!("{}: ln 1/L at the end", trace.what), last.u, 100.0);
        // f(q) has the degree kL in the weights: ρ^{kL} doubles with ln 1/L once the direction settles, and grows by
        // less while the margin itself still grows
        let power = if trace.end.task.recipe.loss.key().starts_with("power") { 3.0 } else { 1.0 };
        let half = trace.moments.iter().find(|m| m.u >= 0.5 * last.u).unwrap_or(first);
        let grown = (last.size / half.size).powf(power * trace.degree);
        outcome.at_least(format!("{}: growth of ρ^(kL) while ln 1/L doubles at the end", trace.what), grown, 1.1);
        outcome.at_most(
            format!("{}: 1 − γ̃/γ̄ at the end over that at separation", trace.what),
            apart(last) / apart(first),
            0.2,
        );
        if trace.what.starts_with("two") && trace.what.ends_with("seed 0") {
            let start = trace.soft_margin(first);
            let points = trace.moments.iter().step_by(5).map(|m| [m.u, trace.soft_margin(m) / start]).collect();
            sketch = sketch.curve(trace.end.task.recipe.loss.key(), points);
        }
    }
    outcome.at_least("steps on which the direction turns", turning as f64, 1000.0);
    outcome.at_least("share of them on which the smoothed margin rises", risen as f64 / turning as f64, 1.0);
    outcome.sketch(sketch);
    Ok(outcome)
}

fn turning(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    for trace in traces.iter().filter(|trace| trace.complete()) {
        // by Cauchy and Schwarz the inequality of rates gives (∫‖dθ̂‖)²/∫d ln ρ over a step, and a chord is no longer
        // than its arc: no error of the step enters
        let (mut least, mut gained, mut promised) = (f64::INFINITY, 0.0, 0.0);
        for pair in trace.moments.windows(2) {
            let gain = (trace.soft_margin(&pair[1]) / trace.soft_margin(&pair[0])).ln();
            let cost = trace.degree * pair[1].turn.powi(2) / (pair[1].size / pair[0].size).ln();
            least = smaller(least, gain - cost);
            gained += gain;
            promised += cost;
        }
        outcome.at_least(format!("{}: gain of ln γ̃ minus L turn²/gain of ln ρ, least", trace.what), least, -1e-9);
        outcome.note(format!(
            "{}: the bound accounts for {:.0} % of the growth of ln γ̃",
            trace.what,
            100.0 * promised / gained
        ));
    }
    Ok(outcome)
}

fn brackets(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    for trace in traces.iter().filter(|trace| trace.complete()) {
        let loss = loss_of(trace)?;
        let Some(tail) = loss.tail() else { continue };
        let log = (trace.margins as f64).ln();
        let (mut above, mut below, mut outside) = (f64::NEG_INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY);
        for m in &trace.moments {
            let f = tail.f(m.smallest);
            above = larger(above, (m.u - f) / f.abs().max(1.0));
            below = larger(below, (f - log - m.u) / f.abs().max(1.0));
            // where the two ends are apart enough for a quotient
            if f - m.u > 1e-6 {
                let slope = (m.smallest - m.soft) / (f - m.u);
                let (one, other) = (tail.g_prime(m.u), tail.g_prime(f));
                let (low, high) = (one.min(other), one.max(other));
                outside = larger(outside, larger(slope / high - 1.0, low / slope - 1.0));
            }
        }
        outcome.at_most(format!("{}: ln 1/L − f(q_min), relative, largest", trace.what), above, 1e-12);
        outcome.at_most(format!("{}: f(q_min) − ln N − ln 1/L, relative, largest", trace.what), below, 1e-12);
        outcome.at_most(
            format!("{}: (q_min − g)/(f − ln 1/L) outside the range of g′ between them", trace.what),
            outside,
            1e-6,
        );
    }
    Ok(outcome)
}
