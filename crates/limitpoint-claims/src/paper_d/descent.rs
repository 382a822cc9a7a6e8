//! Appendix E.3 to E.6: admissible steps of gradient descent never lower γ̂; how fast they lower the loss, and how the
//! direction settles.

use super::descent_runs::{KINDS, ON_DESCENT, PARTS, ROUNDING, Walk, walks};
use super::flows::join;
use crate::arithmetic::{larger, loss_bound_sides};
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};

pub(super) const CLAIMS: [Claim; 5] = [
    Claim {
        id: "D.thm4.2",
        covers: &["D.thmE2", "D.lemE7", "D.lemE8"],
        statement: "Every admissible step of gradient descent raises γ̂ and keeps (P1) to (P4), at ¼, ½ and all of \
                    the step; with steps far too long (P3) fails and γ̂ falls",
        try_out: monotony,
        ..ON_DESCENT
    },
    Claim {
        id: "D.thm4.2.printed",
        statement: "(P2) with ν = Σ e^{qₙ} qₙ, as its proof prints: 2 L a η ν ≤ ρ(t + a)² − ρ(t)²",
        experiments: &["d-descent"],
        try_out: printed_growth,
        ..Claim::MISPRINT
    },
    Claim {
        id: "D.corE6",
        covers: &["D.lemE9", "D.thmE5"],
        statement: "⟨θ, −∇L⟩ = L ν and ν ≥ L ln 1/L; E(L(t)) ≥ ½ L² γ̂(t₀)^{2/L} Σ η; hence L = Θ(1/(T (ln \
                    T)^{2−2/L})) and ρ = Θ((ln T)^{1/L}) in T = Σ η, with the constants of the flow",
        try_out: rates,
        ..ON_DESCENT
    },
    Claim {
        id: "D.corE6.printed",
        statement: "ρ(t)^{−2} ≤ γ̂(t₀)^{2/L} (ln 1/L)^{−2/L}, and the loss is non-decreasing, as the proof of Lemma \
                    E.9 prints",
        experiments: &["d-descent"],
        try_out: printed_directions,
        ..Claim::MISPRINT
    },
    Claim {
        id: "D.eq22",
        covers: &["D.lemE10", "D.thmE3", "D.thmE4"],
        statement: "Σ (β⁻² − 1) ln(ρ(t+1)/ρ(t)) ≤ (1/L) ln(γ̂(t₂)/γ̂(t₁)), and a step turns the direction by at most \
                    (B₁/(L γ̃) ρ(t+1)/ρ(t) + 1) ln(ρ(t+1)/ρ(t)): the direction tends to a KKT point, and an (ε, \
                    δ)-KKT point is met",
        try_out: angles,
        ..ON_DESCENT
    },
];

fn monotony(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for walk in &walks.admissible {
        let (steps, mut about) = (&walk.steps, Outcome::default());
        for part in PARTS {
            about.at_most(format!("{part} missed by, largest at a = ¼, ½, 1"), steps.most(part), ROUNDING).by_theory();
        }
        let (falls, pairs) = (walk.falls().0, steps.len() - 1);
        let rising = 1.0 - falls as f64 / pairs as f64;
        about.at_least(format!("share of {pairs} steps that raise γ̂"), rising, 1.0).by_theory();
        let rows = steps.rows(["log_margin", "turn"]);
        let turning: Vec<&[[f64; 2]]> = rows.windows(2).filter(|pair| pair[0][1] > 1e-9).collect();
        let (turns, rises) = (turning.len(), turning.iter().filter(|pair| pair[1][0] > pair[0][0]).count());
        let (all, words, holds) = (format!("all {turns}"), rises.to_string(), turns > 0 && rises == turns);
        about.push("steps that turn the direction and raise γ̂", all, words, holds).by_theory();
        let [from, to, small, large] = [steps.first("u"), steps.last("u"), steps.first("size"), steps.last("size")];
        let words = format!("ln 1/L from {from:.4} to {to:.4}, ρ from {small:.4} to {large:.4}");
        about.push("the loss falls and ρ grows", "both", words, to > from && large > small).by_theory();
        join(&mut outcome, &steps.what, about);
    }
    for walk in &walks.far {
        let (steps, kept, mut about) = (&walk.steps, walk.keeps_all(), Outcome::default());
        let words = if kept { "kept".to_owned() } else { format!("missed {:?} times", walk.violations()) };
        about.push(format!("all four and γ̂ at each of {} steps", steps.len()), "kept", words, kept);
        about.at_least("ln 1/L at the end", steps.last("u"), 100.0);
        let names = ["log_soft", "log_margin", "smallest", "u"];
        let gaps = steps.map(names, |[soft, margin, smallest, u]| soft - margin + (smallest / u).ln());
        let [first, last] = [gaps.first(), gaps.last()].map(|gap| gap.copied().unwrap_or(f64::NAN));
        about.at_most("ln γ̄ − ln γ̂ at the end", last, 0.1 * first);
        let growth = (steps.last("log_margin") - steps.first("log_margin")).exp();
        let (from, to, count) = (steps.first("u"), steps.last("u"), steps.len());
        about.note(format!("ln 1/L from {from:.3} to {to:.1} in {count} steps, γ̂ grows by a factor {growth:.2}"));
        join(&mut outcome, &steps.what, about);
    }
    for name in KINDS.map(|(name, ..)| name) {
        let own: Vec<&Walk> = walks.multiples.iter().filter(|walk| walk.activation == name).collect();
        let safe = own.iter().take_while(|walk| walk.keeps_all()).last().map_or(f64::NAN, |walk| walk.factor);
        let what = format!("{name}: largest tried multiple of H that keeps everything");
        let asked = "100 H to miss (P3): the constants are worst cases, and only steps far longer miss it, see below";
        outcome.at_least(what, safe, 1.0).by_theory().catalogue_asks(asked);
        let words = own.iter().map(|walk| {
            let used = walk.steps.map(["decrease", "mu"], |[decrease, mu]| (1.0 - decrease) / mu);
            let [_, second, third, fourth] = walk.violations();
            format!("{}: {:.1e} ({second}, {third}, {fourth})", walk.factor, used.into_iter().fold(0.0, larger))
        });
        outcome.note(format!(
            "{name}, multiples of H: the largest share of μ in (P3) that a step uses, and how many of {} steps miss \
             (P2), (P3), (P4): {}",
            own.first().map_or(0, |walk| walk.steps.len()),
            words.collect::<Vec<_>>().join("; ")
        ));
        let Some(wild) = walks.wild.iter().find(|walk| walk.activation == name) else { continue };
        let (share, (falls, most)) = (|count: usize| count as f64 / wild.steps.len() as f64, wild.falls());
        let mut about = Outcome::default();
        about.at_least("share of steps that miss (P3)", share(wild.violations()[2]), 0.5);
        about.at_least("share of steps at which γ̂ falls", share(falls), 0.1);
        about.at_least("largest fall of ln γ̂ in a step", most, 1e-3);
        join(&mut outcome, &wild.steps.what, about);
        let file = format!("d-descent-{}", name.replace(' ', "-").to_lowercase());
        let title = format!("γ̂ along gradient descent with steps c H(L), {name}");
        let mut sketch = Sketch::new(&file, &title, "step", "γ̂/γ̂(t₀)").logarithmic(true, true);
        for walk in own.iter().chain([&wild]).filter(|walk| ![10.0, 3e3, 1e5].contains(&walk.factor)) {
            let far = walk.factor.is_nan();
            let label = if far { "far too long".to_owned() } else { format!("c = {}", walk.factor) };
            let few = curve(walk, 1.0).enumerate().filter(|(k, _)| *k < 100 || k % 10 == 0).map(|(_, point)| point);
            sketch = sketch.curve(label, few.collect());
        }
        outcome.sketch(sketch);
    }
    let title = "γ̂ where steps are far too long";
    let mut sketch = Sketch::new("d-descent-falls", title, "step", "γ̂/γ̂(t₀)");
    for walk in &walks.wild {
        sketch = sketch.curve(walk.activation, curve(walk, 0.0).take(50).collect());
    }
    outcome.sketch(sketch);
    Ok(outcome)
}

/// γ̂/γ̂(t₀) over steps, which count from a number.
fn curve(walk: &Walk, from: f64) -> impl Iterator<Item = [f64; 2]> {
    let (margins, first) = (walk.steps.column("log_margin"), walk.steps.first("log_margin"));
    margins.iter().enumerate().map(move |(k, margin)| [k as f64 + from, (margin - first).exp()])
}

fn printed_growth(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for Walk { steps, .. } in walks.admissible.iter().filter(|walk| walk.factor == 1.0) {
        let names = ["eta", "printed_nu", "size", "grown"];
        let missed = steps.map(names, |[eta, nu, size, grown]| 2.0 * steps.degree * eta * nu / size.powi(2) - grown);
        let what = format!("{}: 2Lην − (ρ(t + 1)² − ρ²) with the printed ν, over ρ²", steps.what);
        outcome.largest(what, missed, ROUNDING).by_paper();
    }
    outcome.note(
        "By derivation: Euler's identity gives ⟨θ, −∇L⟩ = L Σ e^{−qₙ} qₙ, the ν of Corollary E.6; with e^{+qₙ} it is another \
         number wherever a margin is not 0.",
    );
    Ok(outcome)
}

fn rates(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    let title = "Loss and norm of gradient descent in T = Σ η, over their limits";
    let mut sketch = Sketch::new("d-descent-rates", title, "ln T", "ratio").logarithmic(true, false);
    for Walk { steps, constants, .. } in walks.admissible.iter().chain(&walks.far) {
        let (degree, mut about) = (steps.degree, Outcome::default());
        let identity = steps.map(["outward", "nu"], |[outward, nu]| (outward / (degree * nu) - 1.0).abs());
        about.largest("⟨θ, −∇L⟩ against L ν, relative", identity, 1e-11).by_theory();
        about.smallest("ν/(L ln 1/L), least", steps.map(["nu", "u"], |[nu, u]| nu / u), 1.0 - 1e-12).by_theory();
        let scale = constants.margin.scale();
        let (a, c) = (scale.plateau(), -scale.log_start());
        // with s = e^−v: ds/min{s² vᵃ, E₀} = max{eᵛ v^−a, e^−v/E₀} dv, E₀ = e^−2c cᵃ
        let log_e0 = a * c.ln() - 2.0 * c;
        let log_c = 0.5f64.ln() + 2.0 * degree.ln() + 2.0 / degree * constants.log_first_margin;
        let course = steps.rows(["u", "log_time"]);
        let sides = loss_bound_sides(&course, log_c, |v| (v - a * v.ln()).max(-v - log_e0));
        let apart = sides.iter().map(|[left, right]| left - right);
        about.smallest("ln E(L) − ln of ½ L² γ̂(t₀)^(2/L) T, least", apart, -1e-9).by_theory();
        // the twin of (P3), from which the upper bound on E follows; the quotient has the digits of the loss's change
        let over = steps.map(["decrease", "mu"], |[decrease, mu]| (decrease - 1.0) / mu);
        about.largest("(fall of the loss over η‖∇L‖² − 1)/μ, largest", over, 1.0).by_theory();
        join(&mut outcome, &steps.what, about);
    }
    for Walk { steps, activation, .. } in &walks.far {
        let (degree, mut about) = (steps.degree, Outcome::default());
        let log_margin = steps.last("smallest").ln() - degree * steps.last("size").ln();
        let loss = |[t, u]: [f64; 2]| {
            (t - u + (2.0 - 2.0 / degree) * t.ln() + 2.0 * degree.ln() + 2.0 / degree * log_margin).exp()
        };
        let norm = |[t, size]: [f64; 2]| (degree * size.ln() + log_margin).exp() / t;
        let [t, u, size] = ["log_time", "u", "size"].map(|name| steps.last(name));
        about.near("L T (ln T)^(2−2/L) L² γ^(2/L) at the end", loss([t, u]), 1.0, 0.1);
        about.near("γ ρ^L/ln T at the end", norm([t, size]), 1.0, 0.1);
        about.note(format!("ln T = {t:.1} and ln 1/L = {u:.1} at the end"));
        let late = steps.when("log_time", |t| t > 2.0);
        let losses = late.curve("log_time", "u", 20).into_iter().map(|row| [row[0], loss(row)]);
        let norms = late.curve("log_time", "size", 20).into_iter().map(|row| [row[0], norm(row)]);
        sketch = sketch.curve(format!("loss, {activation}"), losses.collect());
        sketch = sketch.curve(format!("norm, {activation}"), norms.collect());
        join(&mut outcome, &steps.what, about);
    }
    outcome.sketch(sketch);
    Ok(outcome)
}

fn printed_directions(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for Walk { steps, constants, .. } in &walks.admissible {
        let (gamma, power, mut about) = (constants.log_first_margin, 2.0 / steps.degree, Outcome::default());
        let over = steps.map(["size", "u"], |[size, u]| -2.0 * size.ln() - power * (gamma - u.ln()));
        about.largest("ln ρ^−2 − ln of the right side, largest", over, 0.0).by_paper();
        let falls = steps.pairs(["u"], |[old], [new]| new - old);
        about.largest("largest fall of ln L in a step", falls, 0.0).by_paper();
        join(&mut outcome, &steps.what, about);
    }
    outcome.note(
        "By derivation: (P1) is (ln 1/L)/ρ^L ≥ γ̂(t₀), hence ρ^{−2} ≥ γ̂(t₀)^{2/L} (ln 1/L)^{−2/L}, which is what the proof \
         needs; and by (P3) the loss is non-increasing.",
    );
    Ok(outcome)
}

fn angles(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for Walk { steps, constants, bounds, .. } in walks.admissible.iter().chain(&walks.far) {
        let (degree, mut about) = (steps.degree, Outcome::default());
        let rows = steps.rows(["excess", "size", "log_margin"]);
        let length = (rows.len() / 10).max(2);
        // windows share their ends, so that no step is left out
        let over = (0..rows.len().saturating_sub(1)).step_by(length).map(|first| {
            let window = &rows[first..(first + length + 1).min(rows.len())];
            let sum: f64 = window.windows(2).map(|pair| pair[0][0] * (pair[1][1] / pair[0][1]).ln()).sum();
            sum - (window[window.len() - 1][2] - window[0][2]) / degree
        });
        let what = "Σ (β⁻² − 1) ln ρ⁺/ρ minus (1/L) ln of the gain of γ̂, largest of ten windows";
        about.largest(what, over, 1e-12).by_theory();
        let analytic = constants.bounds.gradient;
        for (name, b) in [("B₁", analytic), ("the largest ‖∇q‖ seen", 1.01 * bounds[2] * analytic)] {
            let over = steps.pairs(["turn", "size", "log_soft"], |[turn, size, soft], [_, next, _]| {
                turn - (b / (degree * soft.exp()) * (next / size) + 1.0) * (next / size).ln()
            });
            about.largest(format!("turn of a step minus its bound with {name}, largest"), over, 1e-15).by_theory();
        }
        join(&mut outcome, &steps.what, about);
    }
    for Walk { steps, constants, .. } in &walks.far {
        let (degree, mut about) = (steps.degree, Outcome::default());
        about.falls("β⁻² − 1 at the end over that at the start", steps.column("excess"), 0.1);
        // Lemma C.8 with γ̂(t₀) for γ̃(t₀): ε² = 2 (1 − β) ‖θ̃‖², δ ≤ N/(e L γ̂(t₀)^{2/L} u)
        let (reach, examples) = ((2.0 / degree * constants.log_first_margin).exp(), steps.margins as f64);
        let found = steps.clone().with("epsilon", ["excess", "size", "smallest"], |[excess, size, smallest]| {
            let beta = (1.0 + excess).sqrt().recip();
            (2.0 * (1.0 - beta)).sqrt() * size * smallest.powf(-1.0 / degree)
        });
        let found = found.with("delta", ["u"], |[u]| examples / (std::f64::consts::E * degree * reach * u));
        let met = found.rows(["epsilon", "delta", "size"]).into_iter().find(|row| row[0] <= 0.3 && row[1] <= 0.3);
        let words = met.map_or("not met".to_owned(), |row| format!("met at ln ρ = {:.3}", row[2].ln()));
        about.push("a (0.3, 0.3)-KKT point by the bounds of Lemma C.8", "met", words, met.is_some());
        let least = found.least("epsilon");
        let place = found.value_where("u", "epsilon", |epsilon| epsilon == least);
        let [[epsilon, last_epsilon], [delta, last_delta]] =
            ["epsilon", "delta"].map(|name| [found.first(name), found.last(name)]);
        about.note(format!(
            "ε = {epsilon:.3} and δ ≤ {delta:.3} at the start, {last_epsilon:.1e} and {last_delta:.1e} at the end; \
             the least ε is {least:.1e}, at ln 1/L = {place:.0}"
        ));
        join(&mut outcome, &steps.what, about);
    }
    outcome.note(
        "The quadratic network comes close to a KKT point and leaves it again, slowly, for a larger margin: ε is not \
         monotone.",
    );
    Ok(outcome)
}
