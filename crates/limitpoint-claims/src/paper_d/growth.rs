//! Appendices B, C.3 and D.2: norm, loss and angle along gradient flow.

use super::flows::{LOSSES, complete, flows, loss_of, outward_share};
use crate::arithmetic::{larger, loss_bound_sides, smaller};
use crate::{Claim, ClaimError, Lab, Outcome, Series};
use limitpoint::linalg::dot;
use limitpoint::numeric::{LogScaled, Streams};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "D.eq6",
        covers: &["D.eq7", "D.thmB4", "D.lemB5"],
        statement: "½ dρ²/dt = L ν with ν = Σ e^{−f(qₙ)} f′(qₙ) qₙ, and ν ≥ (g/g′)(ln 1/L) · L once the loss is below its \
                    threshold",
        experiments: &["d-flows"],
        try_out: norm_growth,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.lemB6",
        statement: "∫ g′(ln s)²/g(ln s)^{2−2/L} ds from 1/L(t₀) to 1/L(t) is at least L² γ̃(t₀)^{2/L} (t − t₀); four losses",
        experiments: &["d-flows"],
        try_out: loss_bound,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.lemC9",
        covers: &["D.corC10"],
        statement: "∫ (β⁻² − 1) d ln ρ ≤ (1/L) ln(γ̃(t₂)/γ̃(t₁)), so that between any two times some β is as close to 1 as the \
                    gain of the margin says",
        experiments: &["d-flows"],
        try_out: angles,
        ..Claim::FORMULA
    },
];

fn norm_growth(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    // Euler's identity at random points of ReLU and squared ReLU networks
    for loss in LOSSES {
        for activation in ["relu", "relu-power(power=2)"] {
            let overrides = [format!("loss={loss}"), format!("model.activation={activation}"), "seeds=0".to_owned()];
            let Some(task) = lab.tasks("d-flows", &overrides)?.into_iter().next() else { continue };
            let data = lab.data(&task)?.train;
            let mut objective = lab.objective(&task, &data)?;
            let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
            let built = task.recipe.loss.build()?;
            let Some(tail) = built.tail() else { continue };
            let mut stream = Streams::new(7).stream("points");
            let mut theta = vec![0.0; objective.layout().len()];
            let mut gradient = LogScaled::zeros(theta.len());
            let mut worst = 0.0;
            for _ in 0..lab.choose(20, 200) {
                stream.fill_normal(&mut theta);
                objective.forward(&theta).backward(&theta, &mut gradient);
                let u = -objective.log_loss();
                let terms = objective.margins().iter().map(|q| (u - tail.f(*q)).exp() * tail.f_prime(*q) * q);
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                // ∇L = e^scale · direction, here over L = e^−u
                let outward = -dot(&theta, &gradient.direction) * (gradient.log_scale + u).exp();
                worst = larger(worst, (outward - degree * sum).abs() / (degree * size));
            }
            outcome.at_most(format!("{loss}, {activation}: ⟨θ, −∇L⟩ against L ν, relative"), worst, 1e-10).by_theory();
        }
    }
    for flow in complete(&flows, &mut outcome) {
        let what = format!("{}: ν g′/(g L), least over all steps", flow.what);
        outcome.smallest(what, outward_share(flow)?, 1.0 - 1e-12).by_theory();
        // with dτ = L dt: ½ dρ² = ⟨θ, −∇ ln L⟩ dτ and du = ‖∇ ln L‖² dτ, so that ½ dρ² = (βρ)²/⟨θ, −∇ ln L⟩ du
        let late = flow.when("u", |u| u >= 1.0);
        let speed = |[beta, size, outward, _]: [f64; 4]| (beta * size).powi(2) / outward;
        let part = |old: [f64; 4], new: [f64; 4]| 0.5 * (speed(old) + speed(new)) * (new[3] - old[3]);
        let area: f64 = late.pairs(["alignment", "size", "outward", "u"], part).iter().sum();
        let grown = 0.5 * (late.last("size").powi(2) - late.first("size").powi(2));
        let what = format!("{}: ½ρ² gained from ln 1/L = 1 on over ∫ L ν dt", flow.what);
        outcome.near(what, grown / area, 1.0, 1e-3);
    }
    Ok(outcome)
}

fn loss_bound(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    for flow in complete(&flows, &mut outcome) {
        let loss = loss_of(flow)?;
        let Some(tail) = loss.tail() else { continue };
        let power = 2.0 / flow.degree;
        let constant = 2.0 * flow.degree.ln() + power * flow.first("soft_margin").ln();
        let integrand = |v: f64| v + 2.0 * tail.g_prime(v).ln() - (2.0 - power) * tail.g(v).ln();
        let sides = loss_bound_sides(&flow.rows(["u", "log_time"]), constant, integrand);
        // t − t₀ is a difference of two times, exact only after some steps
        let apart = sides.iter().skip(5).map(|[left, right]| left - right);
        let what = format!("{}: ln of the integral minus ln of the right side, least", flow.what);
        outcome.smallest(what, apart, -1e-6).by_theory();
        // the quotient tends to (γ̃(t)/γ̃(t₀))^{2/L}/β², because t is made of its last moments
        let grown = (flow.last("soft_margin") / flow.first("soft_margin")).ln();
        let limit = power * grown - 2.0 * flow.last("alignment").ln();
        let quotient = sides.last().map_or(f64::NAN, |[left, right]| (left - right - limit).exp());
        let what = format!("{}: quotient of the sides at the end over what γ̃ and β say", flow.what);
        outcome.near(what, quotient, 1.0, 0.1);
    }
    Ok(outcome)
}

/// The largest of ∫ (β⁻² − 1) d ln ρ over (1/L) gain of ln γ̃, and of the least β⁻² − 1 over the mean that the gain
/// allows, in windows of a tenth of the run, by the trapezium rule.
fn largest_share(flow: &Series) -> f64 {
    let rows = flow.rows(["alignment", "size", "soft_margin"]);
    let excess = |row: &[f64; 3]| row[0].powi(-2) - 1.0;
    let share = |window: &[[f64; 3]]| {
        let part = |pair: &[[f64; 3]]| 0.5 * (excess(&pair[0]) + excess(&pair[1])) * (pair[1][1] / pair[0][1]).ln();
        let area: f64 = window.windows(2).map(part).sum();
        let ([_, size, margin], [_, old_size, old_margin]) = (window[window.len() - 1], window[0]);
        let gain = (margin / old_margin).ln() / flow.degree;
        let least = window.iter().map(excess).fold(f64::INFINITY, smaller);
        larger(area / gain, least / (gain / (size / old_size).ln()))
    };
    let windows = rows.chunks((rows.len() / 10).max(2)).filter(|window| window.len() > 1);
    windows.map(share).reduce(larger).unwrap_or(f64::NAN)
}

fn angles(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    for flow in complete(&flows, &mut outcome) {
        // the integrand falls by orders of magnitude in the first windows, and the rule sums it from above
        let what = format!("{}: ∫(β⁻² − 1) d ln ρ over (1/L) gain of ln γ̃, largest over ten windows", flow.what);
        outcome.at_most(what, largest_share(flow), 1.01);
        let inside = flow.column("alignment").iter().all(|beta| *beta > 0.0 && *beta <= 1.0 + 1e-12);
        let words = if inside { "is" } else { "is not" };
        outcome.push(format!("{}: β", flow.what), "in (0, 1]", words, inside).by_theory();
    }
    Ok(outcome)
}
