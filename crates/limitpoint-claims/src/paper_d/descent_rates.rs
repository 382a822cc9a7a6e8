//! Appendix E.4 to E.6: how fast gradient descent lowers the loss, and how its direction settles.

use super::descent_runs::{Walk, walks};
use crate::arithmetic::loss_bound_sides;
use crate::{Claim, ClaimError, Lab, Outcome, Sketch};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "D.corE6",
        covers: &["D.lemE9", "D.thmE5"],
        statement: "⟨θ, −∇L⟩ = L ν and ν ≥ L ln 1/L; E(L(t)) ≥ ½ L² γ̂(t₀)^{2/L} Σ η; hence L = Θ(1/(T (ln \
                    T)^{2−2/L})) and ρ = Θ((ln T)^{1/L}) in T = Σ η, with the constants of the flow",
        experiments: &["d-descent"],
        try_out: rates,
        ..Claim::FORMULA
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
        experiments: &["d-descent"],
        try_out: angles,
        ..Claim::FORMULA
    },
];

/// ln of the two sides of Lemma E.9 at every step but the first.
fn sides(walk: &Walk) -> Vec<[f64; 2]> {
    let scale = walk.constants.margin.scale();
    let (a, c) = (scale.plateau(), -scale.log_start());
    // with s = e^−v: ds/min{s² vᵃ, E₀} = max{eᵛ v^−a, e^−v/E₀} dv, E₀ = e^−2c cᵃ
    let log_e0 = a * c.ln() - 2.0 * c;
    let constant = 0.5f64.ln() + 2.0 * walk.degree.ln() + 2.0 / walk.degree * walk.constants.log_first_margin;
    loss_bound_sides(&walk.steps.rows(["u", "log_time"]), constant, |v| (v - a * v.ln()).max(-v - log_e0))
}

fn rates(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    let title = "Loss and norm of gradient descent in T = Σ η, over their limits";
    let mut sketch = Sketch::new("d-descent-rates", title, "ln T", "ratio").logarithmic(true, false);
    for walk in walks.admissible.iter().chain(&walks.far) {
        let (what, steps, degree) = (&walk.what, &walk.steps, walk.degree);
        let identity = steps.map(["outward", "nu"], |[outward, nu]| (outward / (degree * nu) - 1.0).abs());
        outcome.largest(format!("{what}: ⟨θ, −∇L⟩ against L ν, relative"), identity, 1e-11).by_theory();
        let shares = steps.map(["nu", "u"], |[nu, u]| nu / u);
        outcome.smallest(format!("{what}: ν/(L ln 1/L), least"), shares, 1.0 - 1e-12).by_theory();
        let apart = sides(walk).into_iter().map(|[left, right]| left - right);
        outcome.smallest(format!("{what}: ln E(L) − ln of ½ L² γ̂(t₀)^(2/L) T, least"), apart, -1e-9).by_theory();
        // the twin of (P3), from which the upper bound on E follows; the quotient has the digits of the loss's change
        let over = steps.map(["decrease", "mu"], |[decrease, mu]| (decrease - 1.0) / mu);
        outcome.largest(format!("{what}: (fall of the loss over η‖∇L‖² − 1)/μ, largest"), over, 1.0).by_theory();
    }
    for walk in &walks.far {
        let (what, steps, degree) = (&walk.what, &walk.steps, walk.degree);
        let log_margin = steps.last("smallest").ln() - degree * steps.last("size").ln();
        let loss = |t: f64, u: f64| {
            (t - u + (2.0 - 2.0 / degree) * t.ln() + 2.0 * degree.ln() + 2.0 / degree * log_margin).exp()
        };
        let norm = |t: f64, size: f64| (degree * size.ln() + log_margin).exp() / t;
        let [t, u, size] = ["log_time", "u", "size"].map(|name| steps.last(name));
        outcome.near(format!("{what}: L T (ln T)^(2−2/L) L² γ^(2/L) at the end"), loss(t, u), 1.0, 0.1);
        outcome.near(format!("{what}: γ ρ^L/ln T at the end"), norm(t, size), 1.0, 0.1);
        let late = steps.when("log_time", |t| t > 2.0);
        let losses = late.curve("log_time", "u", 20).into_iter().map(|[t, u]| [t, loss(t, u)]);
        let norms = late.curve("log_time", "size", 20).into_iter().map(|[t, size]| [t, norm(t, size)]);
        sketch = sketch.curve(format!("loss, {}", walk.activation), losses.collect());
        sketch = sketch.curve(format!("norm, {}", walk.activation), norms.collect());
        outcome.note(format!("{what}: ln T = {t:.1} and ln 1/L = {u:.1} at the end"));
    }
    outcome.sketch(sketch);
    Ok(outcome)
}

fn printed_directions(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for walk in &walks.admissible {
        let (gamma, power) = (walk.constants.log_first_margin, 2.0 / walk.degree);
        let over = walk.steps.map(["size", "u"], |[size, u]| -2.0 * size.ln() - power * (gamma - u.ln()));
        outcome.largest(format!("{}: ln ρ^−2 − ln of the right side, largest", walk.what), over, 0.0).by_paper();
        let falls = walk.steps.pairs(["u"], |[old], [new]| new - old);
        outcome.largest(format!("{}: largest fall of ln L in a step", walk.what), falls, 0.0).by_paper();
    }
    outcome.note(
        "By derivation: (P1) is (ln 1/L)/ρ^L ≥ γ̂(t₀), hence ρ^{−2} ≥ γ̂(t₀)^{2/L} (ln 1/L)^{−2/L}, which is what the proof \
         needs; and by (P3) the loss is non-increasing.",
    );
    Ok(outcome)
}

fn angles(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for walk in walks.admissible.iter().chain(&walks.far) {
        let (what, degree) = (&walk.what, walk.degree);
        let rows = walk.steps.rows(["excess", "size", "log_margin"]);
        let length = (rows.len() / 10).max(2);
        // windows share their ends, so that no step is left out
        let over = (0..rows.len().saturating_sub(1)).step_by(length).map(|first| {
            let window = &rows[first..(first + length + 1).min(rows.len())];
            let sum: f64 = window.windows(2).map(|pair| pair[0][0] * (pair[1][1] / pair[0][1]).ln()).sum();
            sum - (window[window.len() - 1][2] - window[0][2]) / degree
        });
        let words = format!("{what}: Σ (β⁻² − 1) ln ρ⁺/ρ minus (1/L) ln of the gain of γ̂, largest of ten windows");
        outcome.largest(words, over, 1e-12).by_theory();
        let analytic = walk.constants.bounds.gradient;
        for (name, b) in [("B₁", analytic), ("the largest ‖∇q‖ seen", 1.01 * walk.bounds[2] * analytic)] {
            let over = walk.steps.pairs(["turn", "size", "log_soft"], |[turn, size, soft], [_, next, _]| {
                turn - (b / (degree * soft.exp()) * (next / size) + 1.0) * (next / size).ln()
            });
            let words = format!("{what}: turn of a step minus its bound with {name}, largest");
            outcome.largest(words, over, 1e-15).by_theory();
        }
    }
    for walk in &walks.far {
        let (what, degree) = (&walk.what, walk.degree);
        let words = format!("{what}: β⁻² − 1 at the end over that at the start");
        outcome.falls(words, walk.steps.column("excess"), 0.1);
        // Lemma C.8 with γ̂(t₀) for γ̃(t₀): ε² = 2 (1 − β) ‖θ̃‖², δ ≤ N/(e L γ̂(t₀)^{2/L} u)
        let reach = (2.0 / degree * walk.constants.log_first_margin).exp();
        let steps = walk.steps.clone().with("epsilon", ["excess", "size", "smallest"], |[excess, size, smallest]| {
            let beta = (1.0 + excess).sqrt().recip();
            (2.0 * (1.0 - beta)).sqrt() * size * smallest.powf(-1.0 / degree)
        });
        let steps = steps.with("delta", ["u"], |[u]| walk.examples / (std::f64::consts::E * degree * reach * u));
        let met = steps.rows(["epsilon", "delta", "size"]).into_iter().find(|row| row[0] <= 0.3 && row[1] <= 0.3);
        let words = met.map_or("not met".to_owned(), |row| format!("met at ln ρ = {:.3}", row[2].ln()));
        outcome.push(format!("{what}: a (0.3, 0.3)-KKT point by the bounds of Lemma C.8"), "met", words, met.is_some());
        let least = steps.least("epsilon");
        outcome.note(format!(
            "{what}: ε = {:.3} and δ ≤ {:.3} at the start, {:.1e} and {:.1e} at the end; the least ε is {least:.1e}, at ln 1/L \
             = {:.0}",
            steps.first("epsilon"),
            steps.first("delta"),
            steps.last("epsilon"),
            steps.last("delta"),
            steps.value_where("u", "epsilon", |epsilon| epsilon == least)
        ));
    }
    outcome.note(
        "The quadratic network comes close to a KKT point and leaves it again, slowly, for a larger margin: ε is not \
         monotone.",
    );
    Ok(outcome)
}
