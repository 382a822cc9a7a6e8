//! Appendix E.4 to E.6: how fast gradient descent lowers the loss, and how its direction settles.

use super::descent_runs::{Step, Walk, walks};
use crate::claims::arithmetic::{larger, loss_bound_sides, smaller};
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "D.corE6",
        covers: &["D.lemE9", "D.thmE5"],
        statement: "⟨θ, −∇L⟩ = L ν and ν ≥ L ln 1/L; E(L(t)) ≥ ½ L² γ̂(t₀)^{2/L} Σ η; hence L = Θ(1/(T (ln \
                    T)^{2−2/L})) and ρ = Θ((ln T)^{1/L}) in T = Σ η, with the constants of the flow",
        experiments: &["d-descent"],
        try_out: rates,
    },
    Claim {
        id: "D.corE6.printed",
        covers: &[],
        statement: "ρ(t)^{−2} ≤ γ̂(t₀)^{2/L} (ln 1/L)^{−2/L}, and the loss is non-decreasing, as the proof of Lemma \
                    E.9 prints",
        experiments: &["d-descent"],
        try_out: printed_directions,
    },
    Claim {
        id: "D.eq22",
        covers: &["D.lemE10", "D.thmE3", "D.thmE4"],
        statement: "Σ (β⁻² − 1) ln(ρ(t+1)/ρ(t)) ≤ (1/L) ln(γ̂(t₂)/γ̂(t₁)), and a step turns the direction by at most \
                    (B₁/(L γ̃) ρ(t+1)/ρ(t) + 1) ln(ρ(t+1)/ρ(t)): the direction tends to a KKT point, and an (ε, \
                    δ)-KKT point is met",
        experiments: &["d-descent"],
        try_out: angles,
    },
];

/// ln of the two sides of Lemma E.9 at every step but the first.
fn sides(walk: &Walk) -> Vec<[f64; 2]> {
    let scale = walk.constants.margin.scale();
    let (a, c) = (scale.plateau(), -scale.log_start());
    // with s = e^−v: ds/min{s² vᵃ, E₀} = max{eᵛ v^−a, e^−v/E₀} dv, E₀ = e^−2c cᵃ
    let log_e0 = a * c.ln() - 2.0 * c;
    let constant = 0.5f64.ln() + 2.0 * walk.degree.ln() + 2.0 / walk.degree * walk.constants.log_first_margin;
    let course: Vec<[f64; 2]> = walk.steps.iter().map(|step| [step.u, step.log_time]).collect();
    loss_bound_sides(&course, constant, |v| (v - a * v.ln()).max(-v - log_e0))
}

fn rates(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    let title = "Loss and norm of gradient descent in T = Σ η, over their limits";
    let mut sketch = Sketch::new("d-descent-rates", title, "ln T", "ratio").logarithmic(true, false);
    for walk in walks.admissible.iter().chain(&walks.far) {
        let identity = |step: &Step| (step.outward / (walk.degree * step.nu) - 1.0).abs();
        let worst = walk.steps.iter().map(identity).fold(0.0, larger);
        outcome.at_most(format!("{}: ⟨θ, −∇L⟩ against L ν, relative", walk.what), worst, 1e-11);
        let least = walk.steps.iter().map(|step| step.nu / step.u).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{}: ν/(L ln 1/L), least", walk.what), least, 1.0 - 1e-12);
        let least = sides(walk).iter().map(|[left, right]| left - right).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{}: ln E(L) − ln of ½ L² γ̂(t₀)^(2/L) T, least", walk.what), least, -1e-9);
        // the twin of (P3), from which the upper bound on E follows; the quotient has the digits of the loss's change
        let over = |step: &Step| (step.decrease - 1.0) / walk.mu(step);
        let most = walk.steps.iter().map(over).fold(f64::NEG_INFINITY, larger);
        outcome.at_most(format!("{}: (fall of the loss over η‖∇L‖² − 1)/μ, largest", walk.what), most, 1.0);
    }
    for walk in &walks.far {
        let Some(last) = walk.steps.last() else { continue };
        let degree = walk.degree;
        let log_margin = last.smallest.ln() - degree * last.size.ln();
        let ratios = |step: &Step| {
            let t = step.log_time;
            let loss = -step.u + t + (2.0 - 2.0 / degree) * t.ln() + 2.0 * degree.ln() + 2.0 / degree * log_margin;
            [loss.exp(), (degree * step.size.ln() + log_margin).exp() / t]
        };
        let [loss, norm] = ratios(last);
        outcome.near(format!("{}: L T (ln T)^(2−2/L) L² γ^(2/L) at the end", walk.what), loss, 1.0, 0.1);
        outcome.near(format!("{}: γ ρ^L/ln T at the end", walk.what), norm, 1.0, 0.1);
        let late = walk.steps.iter().filter(|step| step.log_time > 2.0).step_by(20);
        let (losses, norms): (Vec<_>, Vec<_>) = late
            .map(|step| {
                let [loss, norm] = ratios(step);
                ([step.log_time, loss], [step.log_time, norm])
            })
            .unzip();
        sketch = sketch.curve(format!("loss, {}", walk.activation), losses);
        sketch = sketch.curve(format!("norm, {}", walk.activation), norms);
        outcome.note(format!("{}: ln T = {:.1} and ln 1/L = {:.1} at the end", walk.what, last.log_time, last.u));
    }
    outcome.sketch(sketch);
    Ok(outcome)
}

fn printed_directions(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for walk in &walks.admissible {
        let (gamma, power) = (walk.constants.log_first_margin, 2.0 / walk.degree);
        let over = |step: &Step| -2.0 * step.size.ln() - power * (gamma - step.u.ln());
        let most = walk.steps.iter().map(over).fold(f64::NEG_INFINITY, larger);
        outcome.at_most(format!("{}: ln ρ^−2 − ln of the right side, largest", walk.what), most, 0.0);
        let fall = walk.steps.windows(2).map(|pair| pair[1].u - pair[0].u).fold(f64::NEG_INFINITY, larger);
        outcome.at_most(format!("{}: largest fall of ln L in a step", walk.what), fall, 0.0);
    }
    outcome.note(
        "(P1) gives ρ^{−2} ≥ γ̂(t₀)^{2/L} (ln 1/L)^{−2/L}, which is what the proof needs, and the loss is \
                  non-increasing.",
    );
    Ok(outcome)
}

fn angles(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for walk in walks.admissible.iter().chain(&walks.far) {
        let mut worst = f64::NEG_INFINITY;
        let length = (walk.steps.len() / 10).max(2);
        // windows share their ends, so that no step is left out
        for first in (0..walk.steps.len().saturating_sub(1)).step_by(length) {
            let window = &walk.steps[first..(first + length + 1).min(walk.steps.len())];
            let sum: f64 = window.windows(2).map(|pair| pair[0].excess * (pair[1].size / pair[0].size).ln()).sum();
            let gain = (window[window.len() - 1].log_margin - window[0].log_margin) / walk.degree;
            worst = larger(worst, sum - gain);
        }
        outcome.at_most(
            format!("{}: Σ (β⁻² − 1) ln ρ⁺/ρ minus (1/L) ln of the gain of γ̂, largest of ten windows", walk.what),
            worst,
            1e-12,
        );
        let bound = |pair: &[Step], b: f64| {
            let ratio = pair[1].size / pair[0].size;
            (b / (walk.degree * walk.log_soft(&pair[0]).exp()) * ratio + 1.0) * ratio.ln()
        };
        let analytic = walk.constants.bounds.gradient;
        for (name, b) in [("B₁", analytic), ("the largest ‖∇q‖ seen", 1.01 * walk.shares[1] * analytic)] {
            let over = walk.steps.windows(2).map(|pair| pair[0].turn - bound(pair, b)).fold(f64::NEG_INFINITY, larger);
            outcome.at_most(format!("{}: turn of a step minus its bound with {name}, largest", walk.what), over, 1e-15);
        }
    }
    for walk in &walks.far {
        let (Some(first), Some(last)) = (walk.steps.first(), walk.steps.last()) else { continue };
        outcome.at_most(
            format!("{}: β⁻² − 1 at the end over that at the start", walk.what),
            last.excess / first.excess,
            0.1,
        );
        // Lemma C.8 with γ̂(t₀) for γ̃(t₀): ε² = 2 (1 − β) ‖θ̃‖², δ ≤ N/(e L γ̂(t₀)^{2/L} u)
        let epsilon = |step: &Step| {
            let beta = (1.0 + step.excess).sqrt().recip();
            (2.0 * (1.0 - beta)).sqrt() * step.size * step.smallest.powf(-1.0 / walk.degree)
        };
        let reach = 2.0 / walk.degree * walk.constants.log_first_margin;
        let delta = |step: &Step| walk.examples / (std::f64::consts::E * walk.degree * reach.exp() * step.u);
        let (wanted_epsilon, wanted_delta) = (0.3, 0.3);
        let met = walk.steps.iter().find(|step| epsilon(step) <= wanted_epsilon && delta(step) <= wanted_delta);
        let words = met.map_or("not met".to_owned(), |step| format!("met at ln ρ = {:.3}", step.size.ln()));
        outcome.push(
            format!("{}: a (0.3, 0.3)-KKT point by the bounds of Lemma C.8", walk.what),
            "met",
            words,
            met.is_some(),
        );
        let closest = walk.steps.iter().min_by(|a, b| a.excess.total_cmp(&b.excess)).unwrap_or(last);
        outcome.note(format!(
            "{}: ε = {:.3} and δ ≤ {:.3} at the start, {:.1e} and {:.1e} at the end; the least ε is {:.1e}, at ln 1/L \
             = {:.0}",
            walk.what,
            epsilon(first),
            delta(first),
            epsilon(last),
            delta(last),
            epsilon(closest),
            closest.u
        ));
    }
    outcome.note(
        "The quadratic network comes close to a KKT point and leaves it again, slowly, for a larger margin: ε is not \
         monotone.",
    );
    Ok(outcome)
}
