//! Appendices B, C.3 and D.2: norm, loss and angle along gradient flow.

use super::flows::{LOSSES, loss_of, traces};
use crate::claims::arithmetic::{larger, loss_bound_sides, smaller};
use crate::claims::trace::{Moment, Trace};
use crate::claims::{Claim, ClaimError, Lab, Outcome};
use crate::linalg::dot;
use crate::numeric::{LogScaled, Streams};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "D.eq6",
        covers: &["D.eq7", "D.thmB4", "D.lemB5"],
        statement: "½ dρ²/dt = L ν with ν = Σ e^{−f(qₙ)} f′(qₙ) qₙ, and ν ≥ (g/g′)(ln 1/L) · L once the loss is below its \
                    threshold",
        experiments: &["d-flows"],
        try_out: norm_growth,
    },
    Claim {
        id: "D.lemB6",
        covers: &[],
        statement: "∫ g′(ln s)²/g(ln s)^{2−2/L} ds from 1/L(t₀) to 1/L(t) is at least L² γ̃(t₀)^{2/L} (t − t₀); four losses",
        experiments: &["d-flows"],
        try_out: loss_bound,
    },
    Claim {
        id: "D.lemC9",
        covers: &["D.corC10"],
        statement: "∫ (β⁻² − 1) d ln ρ ≤ (1/L) ln(γ̃(t₂)/γ̃(t₁)), so that between any two times some β is as close to 1 as the \
                    gain of the margin says",
        experiments: &["d-flows"],
        try_out: angles,
    },
];

fn norm_growth(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
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
            outcome.at_most(format!("{loss}, {activation}: ⟨θ, −∇L⟩ against L ν, relative"), worst, 1e-10);
        }
    }
    for trace in traces.iter().filter(|trace| trace.complete()) {
        let loss = loss_of(trace)?;
        let Some(tail) = loss.tail() else { continue };
        let ratio = |m: &Moment| m.outward * tail.g_prime(m.u) / (trace.degree * m.soft);
        let least = trace.moments.iter().map(ratio).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{}: ν g′/(g L), least over all steps", trace.what), least, 1.0 - 1e-12);
        // with dτ = L dt: ½ dρ² = ⟨θ, −∇ ln L⟩ dτ and du = ‖∇ ln L‖² dτ, so that ½ dρ² = (βρ)²/⟨θ, −∇ ln L⟩ du
        let late = &trace.moments[trace.moments.partition_point(|m| m.u < 1.0)..];
        let speed = |m: &Moment| (m.alignment * m.size).powi(2) / m.outward;
        let area: f64 = late.windows(2).map(|p| 0.5 * (speed(&p[0]) + speed(&p[1])) * (p[1].u - p[0].u)).sum();
        let grown = match (late.first(), late.last()) {
            (Some(first), Some(last)) => 0.5 * (last.size.powi(2) - first.size.powi(2)),
            _ => f64::NAN,
        };
        outcome.near(format!("{}: ½ρ² gained from ln 1/L = 1 on over ∫ L ν dt", trace.what), grown / area, 1.0, 1e-3);
    }
    Ok(outcome)
}

/// ln of both sides of the lemma at every moment but the first.
fn sides(trace: &Trace) -> Result<Vec<[f64; 2]>, ClaimError> {
    let (Some(first), loss) = (trace.moments.first(), loss_of(trace)?) else { return Ok(Vec::new()) };
    let Some(tail) = loss.tail() else { return Ok(Vec::new()) };
    let power = 2.0 / trace.degree;
    let constant = 2.0 * trace.degree.ln() + power * trace.soft_margin(first).ln();
    let integrand = |v: f64| v + 2.0 * tail.g_prime(v).ln() - (2.0 - power) * tail.g(v).ln();
    Ok(loss_bound_sides(&trace.course(), constant, integrand))
}

fn loss_bound(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    for trace in traces.iter().filter(|trace| trace.complete()) {
        let sides = sides(trace)?;
        // t − t₀ is a difference of two times, exact only after some steps
        let least = sides.iter().skip(5).map(|[left, right]| left - right).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{}: ln of the integral minus ln of the right side, least", trace.what), least, -1e-6);
        let (Some([left, right]), Some(first), Some(last)) =
            (sides.last(), trace.moments.first(), trace.moments.last())
        else {
            continue;
        };
        // the quotient tends to (γ̃(t)/γ̃(t₀))^{2/L}/β², because t is made of its last moments
        let limit =
            2.0 / trace.degree * (trace.soft_margin(last) / trace.soft_margin(first)).ln() - 2.0 * last.alignment.ln();
        outcome.near(
            format!("{}: quotient of the sides at the end over what γ̃ and β say", trace.what),
            (left - right - limit).exp(),
            1.0,
            0.1,
        );
    }
    Ok(outcome)
}

fn angles(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    for trace in traces.iter().filter(|trace| trace.complete()) {
        let excess = |m: &Moment| m.alignment.powi(-2) - 1.0;
        // over windows of a tenth of the run, by the trapezium rule
        let length = (trace.moments.len() / 10).max(2);
        let mut worst = f64::NEG_INFINITY;
        for window in trace.moments.chunks(length).filter(|window| window.len() > 1) {
            let area: f64 = window
                .windows(2)
                .map(|pair| 0.5 * (excess(&pair[0]) + excess(&pair[1])) * (pair[1].size / pair[0].size).ln())
                .sum();
            let (first, last) = (&window[0], &window[window.len() - 1]);
            let gain = (trace.soft_margin(last) / trace.soft_margin(first)).ln() / trace.degree;
            // the corollary: the least excess is at most the mean
            let least = window.iter().map(excess).fold(f64::INFINITY, smaller);
            let mean = gain / (last.size / first.size).ln();
            worst = larger(worst, larger(area / gain, least / mean));
        }
        // the integrand falls by orders of magnitude in the first windows, and the rule sums it from above
        outcome.at_most(
            format!("{}: ∫(β⁻² − 1) d ln ρ over (1/L) gain of ln γ̃, largest over ten windows", trace.what),
            worst,
            1.01,
        );
        let inside = trace.moments.iter().all(|m| m.alignment > 0.0 && m.alignment <= 1.0 + 1e-12);
        outcome.push(format!("{}: β", trace.what), "in (0, 1]", if inside { "is" } else { "is not" }, inside);
    }
    Ok(outcome)
}
