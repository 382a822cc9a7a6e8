//! Appendix E.3 and E.4: admissible steps of gradient descent never lower γ̂.

use super::descent_runs::{KINDS, ROUNDING, Step, Walk, walks};
use crate::claims::arithmetic::larger;
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "D.thm4.2",
        covers: &["D.thmE2", "D.lemE7", "D.lemE8"],
        statement: "Every admissible step of gradient descent raises γ̂ and keeps (P1) to (P4), at ¼, ½ and all of \
                    the step; with steps far too long (P3) fails and γ̂ falls",
        experiments: &["d-descent"],
        try_out: monotony,
    },
    Claim {
        id: "D.thm4.2.printed",
        covers: &[],
        statement: "(P2) with ν = Σ e^{qₙ} qₙ, as its proof prints: 2 L a η ν ≤ ρ(t + a)² − ρ(t)²",
        experiments: &["d-descent"],
        try_out: printed_growth,
    },
];

/// The parts of a violation in words.
const PARTS: [&str; 4] = ["(P1)", "(P2)", "(P3)", "(P4)"];

fn monotony(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for walk in &walks.admissible {
        for (k, part) in PARTS.into_iter().enumerate() {
            let worst = walk.steps.iter().map(|step| step.missed[k]).fold(f64::NEG_INFINITY, larger);
            outcome.at_most(format!("{}: {part} missed by, largest at a = ¼, ½, 1", walk.what), worst, ROUNDING);
        }
        let (falls, _) = walk.falls();
        let share = 1.0 - falls as f64 / (walk.steps.len() - 1) as f64;
        outcome.at_least(format!("{}: share of {} steps that raise γ̂", walk.what, walk.steps.len() - 1), share, 1.0);
        let turning = walk.steps.windows(2).filter(|pair| pair[0].turn > 1e-9);
        let (turns, rises) = turning.fold((0, 0), |(turns, rises), pair| {
            (turns + 1, rises + usize::from(pair[1].log_margin > pair[0].log_margin))
        });
        outcome.push(
            format!("{}: steps that turn the direction and raise γ̂", walk.what),
            format!("all {turns}"),
            format!("{rises}"),
            turns > 0 && rises == turns,
        );
        let (Some(first), Some(last)) = (walk.steps.first(), walk.steps.last()) else { continue };
        outcome.push(
            format!("{}: the loss falls and ρ grows", walk.what),
            "both",
            format!("ln 1/L from {:.4} to {:.4}, ρ from {:.4} to {:.4}", first.u, last.u, first.size, last.size),
            last.u > first.u && last.size > first.size,
        );
    }
    for walk in &walks.far {
        outcome.push(
            format!("{}: all four and γ̂ at each of {} steps", walk.what, walk.steps.len()),
            "kept",
            if walk.keeps_all() { "kept".to_owned() } else { format!("missed {:?} times", walk.violations()) },
            walk.keeps_all(),
        );
        let (Some(first), Some(last)) = (walk.steps.first(), walk.steps.last()) else { continue };
        outcome.at_least(format!("{}: ln 1/L at the end", walk.what), last.u, 100.0);
        outcome.at_most(format!("{}: ln γ̄ − ln γ̂ at the end", walk.what), gap(walk, last), 0.1 * gap(walk, first));
        outcome.note(format!(
            "{}: ln 1/L from {:.3} to {:.1} in {} steps, γ̂ grows by a factor {:.2}",
            walk.what,
            first.u,
            last.u,
            walk.steps.len(),
            (last.log_margin - first.log_margin).exp()
        ));
    }
    for name in KINDS.map(|kind| kind.name) {
        let own: Vec<&Walk> = walks.multiples.iter().filter(|walk| walk.activation == name).collect();
        let safe = own.iter().take_while(|walk| walk.keeps_all()).last().map_or(f64::NAN, |walk| walk.factor);
        outcome.at_least(format!("{name}: largest tried multiple of H that keeps everything"), safe, 1.0);
        let words: Vec<String> = own
            .iter()
            .map(|walk| {
                let used = walk.steps.iter().map(|step| (1.0 - step.decrease) / walk.mu(step)).fold(0.0, larger);
                let [_, second, third, fourth] = walk.violations();
                format!("{}: {used:.1e} ({second}, {third}, {fourth})", walk.factor)
            })
            .collect();
        outcome.note(format!(
            "{name}, multiples of H: the largest share of μ in (P3) that a step uses, and how many of {} steps miss \
             (P2), (P3), (P4): {}",
            own.first().map_or(0, |walk| walk.steps.len()),
            words.join("; ")
        ));
        let Some(wild) = walks.wild.iter().find(|walk| walk.activation == name) else { continue };
        let share = |count: usize| count as f64 / wild.steps.len() as f64;
        outcome.at_least(format!("{}: share of steps that miss (P3)", wild.what), share(wild.violations()[2]), 0.5);
        let (falls, most) = wild.falls();
        outcome.at_least(format!("{}: share of steps at which γ̂ falls", wild.what), share(falls), 0.1);
        outcome.at_least(format!("{}: largest fall of ln γ̂ in a step", wild.what), most, 1e-3);
        let own: Vec<&Walk> = own.into_iter().chain([wild]).collect();
        outcome.sketch(figure(name, &own));
    }
    let title = "γ̂ where steps are far too long";
    let mut sketch = Sketch::new("d-descent-falls", title, "step", "γ̂/γ̂(t₀)");
    for walk in &walks.wild {
        let Some(first) = walk.steps.first() else { continue };
        let ratio = |(k, step): (usize, &Step)| [k as f64, (step.log_margin - first.log_margin).exp()];
        sketch = sketch.curve(walk.activation, walk.steps.iter().take(50).enumerate().map(ratio).collect());
    }
    outcome.sketch(sketch);
    Ok(outcome)
}

/// ln γ̄ − ln γ̂.
fn gap(walk: &Walk, step: &Step) -> f64 {
    walk.log_soft(step) - step.log_margin + (step.smallest / step.u).ln()
}

/// γ̂ along the descent for some multiples of H.
fn figure(name: &str, walks: &[&Walk]) -> Sketch {
    let file = format!("d-descent-{}", name.replace(' ', "-").to_lowercase());
    let title = format!("γ̂ along gradient descent with steps c H(L), {name}");
    let mut sketch = Sketch::new(&file, &title, "step", "γ̂/γ̂(t₀)").logarithmic(true, true);
    for walk in walks.iter().filter(|walk| ![10.0, 3e3, 1e5].contains(&walk.factor)) {
        let Some(first) = walk.steps.first() else { continue };
        let points: Vec<[f64; 2]> = walk
            .steps
            .iter()
            .enumerate()
            .filter(|(k, _)| *k < 100 || k % 10 == 0)
            .map(|(k, step)| [k as f64 + 1.0, (step.log_margin - first.log_margin).exp()])
            .collect();
        let label = if walk.factor.is_nan() { "far too long".to_owned() } else { format!("c = {}", walk.factor) };
        sketch = sketch.curve(label, points);
    }
    sketch
}

fn printed_growth(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for walk in walks.admissible.iter().filter(|walk| walk.factor == 1.0) {
        let missed = |step: &Step| 2.0 * walk.degree * step.step * step.printed_nu / step.size.powi(2) - step.grown;
        let worst = walk.steps.iter().map(missed).fold(f64::NEG_INFINITY, larger);
        outcome.at_most(format!("{}: 2Lην − (ρ(t + 1)² − ρ²) with the printed ν, over ρ²", walk.what), worst, ROUNDING);
    }
    outcome.note("ν is Σ e^{−qₙ} qₙ, as in Corollary E.6.");
    Ok(outcome)
}
