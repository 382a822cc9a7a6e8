//! Section 4.1 and appendices A, B, C.3 and D.2: smoothed margins, norm, loss and angle along gradient flow.

use super::flows::{LOSSES, ON_FLOWS, complete, each_flow, flows, join, outward_share, since_separation, spare_gain};
use crate::arithmetic::{larger, loss_bound_sides, smaller};
use crate::{Claim, ClaimError, Lab, Outcome, Series, Sketch};
use limitpoint::linalg::dot;
use limitpoint::numeric::{LogScaled, Streams};

pub(super) const CLAIMS: [Claim; 7] = [
    Claim {
        id: "D.eq2",
        covers: &["D.eq3", "D.defA3", "D.remA4"],
        statement: "The smoothed margin g(ln 1/L)/ρ^L is that of the definition wherever the loss itself is a float, for four \
                    losses, and lies below the normalised margin",
        try_out: definitions,
        ..ON_FLOWS
    },
    Claim {
        id: "D.thm4.1",
        covers: &["D.thmA7"],
        statement: "Once the loss is below its threshold the smoothed margin never falls along gradient flow, and rises wherever \
                    the direction turns; the loss tends to 0, the norm to infinity and both margins to each other; four losses",
        try_out: monotony,
        ..ON_FLOWS
    },
    Claim {
        id: "D.lem5.1",
        covers: &["D.lemB1"],
        statement: "d ln γ̃/dt ≥ L ‖dθ̂/dt‖²/(d ln ρ/dt): over every step ln γ̃ gains at least L times the squared turn over the \
                    gain of ln ρ",
        try_out: |lab| each_flow(lab, turning),
        ..ON_FLOWS
    },
    Claim {
        id: "D.lemA5",
        covers: &["D.remA6"],
        statement: "f(q_min) − ln N ≤ ln 1/L ≤ f(q_min), and q_min − g(ln 1/L) = g′(ξ) (f(q_min) − ln 1/L) with ξ between the two",
        try_out: |lab| each_flow(lab, brackets),
        ..ON_FLOWS
    },
    Claim {
        id: "D.eq6",
        covers: &["D.eq7", "D.thmB4", "D.lemB5"],
        statement: "½ dρ²/dt = L ν with ν = Σ e^{−f(qₙ)} f′(qₙ) qₙ, and ν ≥ (g/g′)(ln 1/L) · L once the loss is below its \
                    threshold",
        try_out: norm_growth,
        ..ON_FLOWS
    },
    Claim {
        id: "D.lemB6",
        statement: "∫ g′(ln s)²/g(ln s)^{2−2/L} ds from 1/L(t₀) to 1/L(t) is at least L² γ̃(t₀)^{2/L} (t − t₀); four losses",
        try_out: |lab| each_flow(lab, loss_bound),
        ..ON_FLOWS
    },
    Claim {
        id: "D.lemC9",
        covers: &["D.corC10"],
        statement: "∫ (β⁻² − 1) d ln ρ ≤ (1/L) ln(γ̃(t₂)/γ̃(t₁)), so that between any two times some β is as close to 1 as the \
                    gain of the margin says",
        try_out: |lab| each_flow(lab, angles),
        ..ON_FLOWS
    },
];

fn definitions(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    let flows = complete(&flows, &mut outcome);
    for flow in &flows {
        let mut about = Outcome::default();
        // the definition with the loss as a number: ln 1/L, −ln(e^L − 1), and their cube roots
        let key = flow.end.task.recipe.loss.key();
        let direct = |u: f64| {
            let loss = (-u).exp();
            let log = if key.ends_with("logistic") { -loss.exp_m1().ln() } else { -loss.ln() };
            if key.starts_with("power") { log.cbrt() } else { log }
        };
        // e^−u is no longer a float far out, and the logarithm of a number next to 1 has few digits
        let early = flow.rows(["u", "soft"]).into_iter().filter(|[u, soft]| *u < 100.0 && *soft > 0.1);
        let apart = early.map(|[u, soft]| (soft / direct(u) - 1.0).abs());
        about.largest("g(ln 1/L) against its definition, relative", apart, 1e-12).by_theory();
        let above = flow.map(["soft", "smallest"], |[soft, smallest]| soft / smallest - 1.0);
        about.largest("smoothed over normalised margin minus 1, largest", above, 1e-12).by_theory();
        join(&mut outcome, &flow.what, about);
    }
    outcome.at_least("runs that separate their data", flows.len() as f64, 8.0);
    Ok(outcome)
}

fn monotony(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    let mut sketch = Sketch::new("d-soft-margins", "Smoothed margins since separation", "ln 1/L", "γ̃(t)/γ̃(t₀)");
    sketch = sketch.logarithmic(true, true);
    let mut risen = Vec::new();
    for flow in complete(&flows, &mut outcome) {
        let (what, margins, mut about) = (&flow.what, flow.column("soft_margin"), Outcome::default());
        about.never_falls("largest relative fall of the smoothed margin", margins, 1e-12).by_theory();
        about.never_falls("largest relative fall of ρ", flow.column("size"), 0.0).by_theory();
        for pair in flow.rows(["soft_margin", "turn", "size"]).windows(2) {
            let ([old, _, before], [new, turn, size]) = (pair[0], pair[1]);
            // below this the gain, of the order of the turn squared, is lost in rounding
            if turn > 1e-6 * (size / before).ln().max(1e-3) && turn > 1e-6 {
                risen.push(new > old);
            }
        }
        about.at_least("ln 1/L at the end", flow.last("u"), 100.0);
        // f(q) has the degree kL in the weights: ρ^{kL} doubles with ln 1/L once the direction settles, and grows by
        // less while the margin itself still grows
        let key = flow.end.task.recipe.loss.key();
        let power = if key.starts_with("power") { 3.0 } else { 1.0 };
        let half = flow.value_where("size", "u", |u| u >= 0.5 * flow.last("u"));
        let grown = (flow.last("size") / half).powf(power * flow.degree);
        about.at_least("growth of ρ^(kL) while ln 1/L doubles at the end", grown, 1.1);
        let apart = flow.map(["soft", "smallest"], |[soft, smallest]| 1.0 - soft / smallest);
        about.falls("1 − γ̃/γ̄ at the end over that at separation", &apart, 0.2);
        if what.starts_with("two") && what.ends_with("seed 0") {
            sketch = sketch.curve(key, since_separation(flow));
        }
        join(&mut outcome, what, about);
    }
    outcome.at_least("steps on which the direction turns", risen.len() as f64, 1000.0);
    let what = "share of them on which the smoothed margin rises";
    let asked = "turns of 1e-8 per unit of ln ρ: the gain, of the order of the square, is lost in rounding below 1e-6";
    outcome.share(what, risen, 1.0).by_theory().catalogue_asks(asked);
    outcome.sketch(sketch);
    Ok(outcome)
}

fn turning(flow: &Series) -> Result<Outcome, ClaimError> {
    let (mut outcome, spare) = (Outcome::default(), spare_gain(flow));
    let gained = (flow.last("soft_margin") / flow.first("soft_margin")).ln();
    let promised = 100.0 * (1.0 - spare.iter().sum::<f64>() / gained);
    outcome.smallest("gain of ln γ̃ minus L turn²/gain of ln ρ, least", spare, -1e-9).by_theory();
    outcome.note(format!("the bound accounts for {promised:.0} % of the growth of ln γ̃"));
    Ok(outcome)
}

fn brackets(flow: &Series) -> Result<Outcome, ClaimError> {
    let (mut outcome, loss) = (Outcome::default(), flow.end.task.recipe.loss.build()?);
    let Some(tail) = loss.tail() else { return Ok(outcome) };
    let log = (flow.margins as f64).ln();
    let relative = |gap: f64, f: f64| gap / f.abs().max(1.0);
    let rows = flow
        .rows(["u", "smallest", "soft"])
        .into_iter()
        .map(|[u, smallest, soft]| (u, tail.f(smallest), smallest - soft));
    let rows: Vec<(f64, f64, f64)> = rows.collect();
    let above = rows.iter().map(|(u, f, _)| relative(u - f, *f));
    outcome.largest("ln 1/L − f(q_min), relative, largest", above, 1e-12).by_theory();
    let below = rows.iter().map(|(u, f, _)| relative(f - log - u, *f));
    outcome.largest("f(q_min) − ln N − ln 1/L, relative, largest", below, 1e-12).by_theory();
    // where the two ends are apart enough for a quotient
    let outside = rows.iter().filter(|(u, f, _)| f - u > 1e-6).map(|(u, f, gap)| {
        let (slope, one, other) = (gap / (f - u), tail.g_prime(*u), tail.g_prime(*f));
        larger(slope / one.max(other) - 1.0, one.min(other) / slope - 1.0)
    });
    outcome.largest("(q_min − g)/(f − ln 1/L) outside the range of g′ between them", outside, 1e-6).by_theory();
    Ok(outcome)
}

fn norm_growth(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), each_flow(lab, mean_margin)?);
    // Euler's identity at random points of ReLU and squared ReLU networks
    for loss in LOSSES {
        for activation in ["relu", "relu-power(power=2)"] {
            let overrides = [format!("loss={loss}"), format!("model.activation={activation}"), "seeds=0".to_owned()];
            let task = lab.tasks("d-flows", &overrides)?.remove(0);
            let data = lab.data(&task)?.train;
            let mut objective = lab.objective(&task, &data)?;
            let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
            let built = task.recipe.loss.build()?;
            let Some(tail) = built.tail() else { continue };
            let mut stream = Streams::new(7).stream("points");
            let mut theta = vec![0.0; objective.layout().len()];
            let mut gradient = LogScaled::zeros(theta.len());
            let apart = (0..lab.choose(20, 200)).map(|_| {
                stream.fill_normal(&mut theta);
                objective.forward(&theta).backward(&theta, &mut gradient);
                let u = -objective.log_loss();
                let terms = objective.margins().iter().map(|q| (u - tail.f(*q)).exp() * tail.f_prime(*q) * q);
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                // ∇L = e^scale · direction, here over L = e^−u
                let outward = -dot(&theta, &gradient.direction) * (gradient.log_scale + u).exp();
                (outward - degree * sum).abs() / (degree * size)
            });
            outcome.largest(format!("{loss}, {activation}: ⟨θ, −∇L⟩ against L ν, relative"), apart, 1e-10).by_theory();
        }
    }
    Ok(Outcome { checks: [outcome.checks, flows.checks].concat(), ..flows })
}

fn mean_margin(flow: &Series) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    outcome.smallest("ν g′/(g L), least over all steps", outward_share(flow)?, 1.0 - 1e-12).by_theory();
    // with dτ = L dt: ½ dρ² = ⟨θ, −∇ ln L⟩ dτ and du = ‖∇ ln L‖² dτ, so that ½ dρ² = (βρ)²/⟨θ, −∇ ln L⟩ du
    let late = flow.when("u", |u| u >= 1.0);
    let speed = |[beta, size, outward, _]: [f64; 4]| (beta * size).powi(2) / outward;
    let part = |old: [f64; 4], new: [f64; 4]| 0.5 * (speed(old) + speed(new)) * (new[3] - old[3]);
    let area: f64 = late.pairs(["alignment", "size", "outward", "u"], part).iter().sum();
    let grown = 0.5 * (late.last("size").powi(2) - late.first("size").powi(2));
    outcome.near("½ρ² gained from ln 1/L = 1 on over ∫ L ν dt", grown / area, 1.0, 1e-3);
    Ok(outcome)
}

fn loss_bound(flow: &Series) -> Result<Outcome, ClaimError> {
    let (mut outcome, loss) = (Outcome::default(), flow.end.task.recipe.loss.build()?);
    let Some(tail) = loss.tail() else { return Ok(outcome) };
    let power = 2.0 / flow.degree;
    let constant = 2.0 * flow.degree.ln() + power * flow.first("soft_margin").ln();
    let integrand = |v: f64| v + 2.0 * tail.g_prime(v).ln() - (2.0 - power) * tail.g(v).ln();
    let sides = loss_bound_sides(&flow.rows(["u", "log_time"]), constant, integrand);
    // t − t₀ is a difference of two times, exact only after some steps
    let apart = sides.iter().skip(5).map(|[left, right]| left - right);
    outcome.smallest("ln of the integral minus ln of the right side, least", apart, -1e-6).by_theory();
    // the quotient tends to (γ̃(t)/γ̃(t₀))^{2/L}/β², because t is made of its last moments
    let grown = (flow.last("soft_margin") / flow.first("soft_margin")).ln();
    let limit = power * grown - 2.0 * flow.last("alignment").ln();
    let quotient = sides.last().map_or(f64::NAN, |[left, right]| (left - right - limit).exp());
    outcome.near("quotient of the sides at the end over what γ̃ and β say", quotient, 1.0, 0.1);
    Ok(outcome)
}

/// ∫ (β⁻² − 1) d ln ρ over (1/L) gain of ln γ̃, and the least β⁻² − 1 over the mean that the gain allows: the largest of
/// both in windows of a tenth of the run, by the trapezium rule.
fn angles(flow: &Series) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let rows = flow.rows(["alignment", "size", "soft_margin"]);
    let excess = |row: &[f64; 3]| row[0].powi(-2) - 1.0;
    let windows = rows.chunks((rows.len() / 10).max(2)).filter(|window| window.len() > 1);
    let shares = windows.map(|window| {
        let part = |pair: &[[f64; 3]]| 0.5 * (excess(&pair[0]) + excess(&pair[1])) * (pair[1][1] / pair[0][1]).ln();
        let area: f64 = window.windows(2).map(part).sum();
        let ([_, size, margin], [_, old_size, old_margin]) = (window[window.len() - 1], window[0]);
        let gain = (margin / old_margin).ln() / flow.degree;
        let least = window.iter().map(excess).fold(f64::INFINITY, smaller);
        larger(area / gain, least / (gain / (size / old_size).ln()))
    });
    // the integrand falls by orders of magnitude in the first windows, and the rule sums it from above
    outcome.largest("∫(β⁻² − 1) d ln ρ over (1/L) gain of ln γ̃, largest over ten windows", shares, 1.01);
    let inside = flow.column("alignment").iter().all(|beta| *beta > 0.0 && *beta <= 1.0 + 1e-12);
    outcome.push("β", "in (0, 1]", if inside { "is" } else { "is not" }, inside).by_theory();
    Ok(outcome)
}
