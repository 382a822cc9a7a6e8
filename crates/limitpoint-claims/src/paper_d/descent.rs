//! Appendix E.3 and E.4: admissible steps of gradient descent never lower γ̂.

use super::descent_runs::{KINDS, PARTS, ROUNDING, Walk, walks};
use crate::arithmetic::larger;
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "D.thm4.2",
        covers: &["D.thmE2", "D.lemE7", "D.lemE8"],
        statement: "Every admissible step of gradient descent raises γ̂ and keeps (P1) to (P4), at ¼, ½ and all of \
                    the step; with steps far too long (P3) fails and γ̂ falls",
        experiments: &["d-descent"],
        try_out: monotony,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.thm4.2.printed",
        statement: "(P2) with ν = Σ e^{qₙ} qₙ, as its proof prints: 2 L a η ν ≤ ρ(t + a)² − ρ(t)²",
        experiments: &["d-descent"],
        try_out: printed_growth,
        ..Claim::MISPRINT
    },
];

fn monotony(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for walk in &walks.admissible {
        let (what, steps) = (&walk.what, &walk.steps);
        for part in PARTS {
            let words = format!("{what}: {part} missed by, largest at a = ¼, ½, 1");
            outcome.at_most(words, steps.most(part), ROUNDING).by_theory();
        }
        let (falls, pairs) = (walk.falls().0, steps.len() - 1);
        let words = format!("{what}: share of {pairs} steps that raise γ̂");
        outcome.at_least(words, 1.0 - falls as f64 / pairs as f64, 1.0).by_theory();
        let rows = steps.rows(["log_margin", "turn"]);
        let turning: Vec<&[[f64; 2]]> = rows.windows(2).filter(|pair| pair[0][1] > 1e-9).collect();
        let (turns, rises) = (turning.len(), turning.iter().filter(|pair| pair[1][0] > pair[0][0]).count());
        let (words, all) = (format!("{what}: steps that turn the direction and raise γ̂"), format!("all {turns}"));
        outcome.push(words, all, format!("{rises}"), turns > 0 && rises == turns).by_theory();
        let [from, to, small, large] = [steps.first("u"), steps.last("u"), steps.first("size"), steps.last("size")];
        let words = format!("ln 1/L from {from:.4} to {to:.4}, ρ from {small:.4} to {large:.4}");
        outcome
            .push(format!("{what}: the loss falls and ρ grows"), "both", words, to > from && large > small)
            .by_theory();
    }
    for walk in &walks.far {
        let (what, steps, kept) = (&walk.what, &walk.steps, walk.keeps_all());
        let words = if kept { "kept".to_owned() } else { format!("missed {:?} times", walk.violations()) };
        outcome.push(format!("{what}: all four and γ̂ at each of {} steps", steps.len()), "kept", words, kept);
        let names = ["log_soft", "log_margin", "smallest", "u"];
        let gaps = steps.map(names, |[soft, margin, smallest, u]| soft - margin + (smallest / u).ln());
        let [first, last] = [gaps.first(), gaps.last()].map(|gap| gap.copied().unwrap_or(f64::NAN));
        outcome.at_least(format!("{what}: ln 1/L at the end"), steps.last("u"), 100.0);
        outcome.at_most(format!("{what}: ln γ̄ − ln γ̂ at the end"), last, 0.1 * first);
        let growth = (steps.last("log_margin") - steps.first("log_margin")).exp();
        let (from, to, count) = (steps.first("u"), steps.last("u"), steps.len());
        outcome.note(format!(
            "{what}: ln 1/L from {from:.3} to {to:.1} in {count} steps, γ̂ grows by a factor {growth:.2}"
        ));
    }
    for name in KINDS.map(|kind| kind.name) {
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
        let (what, share) = (&wild.what, |count: usize| count as f64 / wild.steps.len() as f64);
        let (falls, most) = wild.falls();
        outcome.at_least(format!("{what}: share of steps that miss (P3)"), share(wild.violations()[2]), 0.5);
        outcome.at_least(format!("{what}: share of steps at which γ̂ falls"), share(falls), 0.1);
        outcome.at_least(format!("{what}: largest fall of ln γ̂ in a step"), most, 1e-3);
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
    for walk in walks.admissible.iter().filter(|walk| walk.factor == 1.0) {
        let names = ["eta", "printed_nu", "size", "grown"];
        let missed =
            walk.steps.map(names, |[eta, nu, size, grown]| 2.0 * walk.degree * eta * nu / size.powi(2) - grown);
        let what = format!("{}: 2Lην − (ρ(t + 1)² − ρ²) with the printed ν, over ρ²", walk.what);
        outcome.largest(what, missed, ROUNDING).by_paper();
    }
    outcome.note(
        "By derivation: Euler's identity gives ⟨θ, −∇L⟩ = L Σ e^{−qₙ} qₙ, the ν of Corollary E.6; with e^{+qₙ} it is another \
         number wherever a margin is not 0.",
    );
    Ok(outcome)
}
