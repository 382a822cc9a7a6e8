//! Appendix G but its limit: the gradient of the horizon, approximate KKT points along the flow, alignment.

use super::trace::{Trace, traces, uniform};
use crate::claims::arithmetic::{larger, smaller};
use crate::claims::{Claim, ClaimError, Lab, Outcome};
use crate::linalg::norm2;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::params::ParamLayout;
use crate::potentials::PotentialSpec;

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "C.assG1",
        covers: &["C.lemG10"],
        statement: "(αQ)^{2/α−1} ∇²R θ, the gradient of ½(αQ)^{2/α}, approaches that of ½φ² like ‖θ‖^{2−p} relative to \
                    ‖θ‖, with the constant C = 1 for every p > 2; for p = 2 and the horizon √(1+λ) ℓ2 they agree",
        experiments: &[],
        try_out: horizon_gradient,
    },
    Claim {
        id: "C.assG1.printed",
        covers: &[],
        statement: "As printed in Lemma G.10: the same with C = (p−1)^{1−2/p}, and with C = 1 + λ for p = 2 and the \
                    horizon ℓ2",
        experiments: &[],
        try_out: printed_constant,
    },
    Claim {
        id: "C.lemG6",
        covers: &[],
        statement: "With λᵢ = (αQ)^{2/α−1} q_min^{1−2/L} ‖θ‖_H e^{−qᵢ}/‖θ̇‖_H the trajectory is an (ε, δ)-KKT point: \
                    δ ≤ (N−1)/(e L γ̃^{2/L} ln 1/L) for every α, and ε² ≤ 2‖H‖(αQ)^{2/α−1} γ̃^{−2/L} (1−β) for α ≥ 2",
        experiments: &["c-flows"],
        try_out: multipliers,
    },
    Claim {
        id: "C.beta",
        covers: &["C.lemG7", "C.corG8"],
        statement: "∫ (β⁻² − 1) d ln Q ≤ (α/L) ln(γ̃(t₂)/γ̃(t₁)) for all t₁ < t₂ after separation, so that somewhere \
                    between them β is as close to 1 as the corollary says; 0 < β ≤ 1",
        experiments: &["c-flows"],
        try_out: alignment,
    },
];

/// How far C (αQ)^{2/α−1}Hθ is from ∇½φ², relative to ‖θ‖₂, at s·θ for growing s. φ = factor · ℓp.
fn distances(p: f64, lambda: f64, (constant, factor): (f64, f64), scales: &[f64]) -> Result<Vec<f64>, ClaimError> {
    let layout = ParamLayout::vector(7);
    let mut worker = PotentialSpec::Smoothed { p, lambda }.build(&layout)?;
    let mut norm = NormSpec::Lp { p }.build(&layout)?;
    let (mut direction, mut stream) = (vec![0.0; 7], Streams::new(1).stream("direction"));
    stream.fill_normal(&mut direction);
    let (mut action, mut gradient) = (vec![0.0; 7], vec![0.0; 7]);
    let mut found = Vec::new();
    for scale in scales {
        let theta: Vec<f64> = direction.iter().map(|x| scale * x).collect();
        worker.hessian_action(&theta, &theta, &mut action);
        let power = constant * worker.gauge(&theta).powf(2.0 - p);
        // ∇½φ² = φ ∇φ; the norm is smooth, so its subdifferential is a point
        norm.project_subdifferential(&theta, &action, 0.0, &mut gradient);
        let size = factor * factor * norm.value(&theta);
        let gap: Vec<f64> = action.iter().zip(&gradient).map(|(h, g)| power * h - size * g).collect();
        found.push(norm2(&gap) / norm2(&theta));
    }
    Ok(found)
}

/// The slope of ln y against ln x between first and last.
fn slope(x: &[f64], y: &[f64]) -> f64 {
    let (last, end) = (x.len() - 1, y.len() - 1);
    (y[end] / y[0]).ln() / (x[last] / x[0]).ln()
}

fn horizon_gradient(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for p in [3.0, 4.0, 6.0] {
        // far enough for the power law, near enough for its digits
        let scales: Vec<f64> = (0..6).map(|k| 10f64.powf(1.0 + 3.0 / (p - 2.0) * f64::from(k) / 5.0)).collect();
        for lambda in [0.1, 1.0] {
            let found = distances(p, lambda, (1.0, (p - 1f64).powf(1.0 / p)), &scales)?;
            let name = format!("p = {p}, λ = {lambda}");
            outcome.near(
                format!("{name}: power of ‖θ‖ at which the distance falls"),
                slope(&scales, &found),
                2.0 - p,
                0.1,
            );
            outcome.at_most(format!("{name}: distance at ‖θ‖ ≈ {:.0}", scales[5]), found[5], 1e-2);
        }
        let pure = distances(p, 0.0, (1.0, (p - 1f64).powf(1.0 / p)), &[1.0, 1e3])?;
        outcome.at_most(format!("p = {p}, λ = 0: distance, which is 0"), larger(pure[0], pure[1]), 1e-12);
    }
    for lambda in [0.0, 0.1, 1.0] {
        let own = distances(2.0, lambda, (1.0, (1.0 + lambda).sqrt()), &[1.0, 1e3])?;
        outcome.at_most(
            format!("p = 2, λ = {lambda}: distance for the horizon √(1+λ) ℓ2"),
            larger(own[0], own[1]),
            1e-12,
        );
        let table = distances(2.0, lambda, (1.0 / (1.0 + lambda), 1.0), &[1.0, 1e3])?;
        let name = format!("p = 2, λ = {lambda}: distance for the horizon ℓ2 and C = 1/(1+λ)");
        outcome.at_most(name, larger(table[0], table[1]), 1e-12);
    }
    outcome.note("Assumption G.1 prints ∂φ² for ∂½φ²; its free constant C takes up the factor 2.");
    Ok(outcome)
}

fn printed_constant(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for p in [3.0f64, 4.0, 6.0] {
        let found = distances(p, 1.0, ((p - 1.0).powf(1.0 - 2.0 / p), (p - 1.0).powf(1.0 / p)), &[1e2, 1e6])?;
        outcome.at_most(format!("p = {p}: distance at ‖θ‖ ≈ 10⁶ over that at 10²"), found[1] / found[0], 0.1);
    }
    let found = distances(2.0, 1.0, (2.0, 1.0), &[1e6])?;
    outcome.at_most("p = 2, λ = 1, C = 1 + λ: distance at ‖θ‖ ≈ 10⁶", found[0], 1e-2);
    outcome.note("The proof takes (p−1)^{2/p} out of a term that carries p−1; the factor that is left cancels C.");
    Ok(outcome)
}

fn multipliers(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    for trace in uniform(&traces) {
        let factor = (trace.margins as f64 - 1.0) / (std::f64::consts::E * trace.degree);
        let bound = |m: &super::trace::Moment| factor / (trace.soft_margin(m).powf(2.0 / trace.degree) * m.u);
        let ratio = trace.most(|m| m.slack / bound(m));
        outcome.at_most(format!("{}: δ over its bound, largest", trace.what), ratio, 1.0);
        let least = trace.moments.iter().map(|m| m.slack).fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{}: δ, least", trace.what), least, -1e-12);
        if trace.alpha < 2.0 {
            continue;
        }
        let rare = || trace.moments.iter().filter_map(|m| m.bounds.as_ref());
        let stationarity = rare().filter_map(|bounds| bounds.stationarity.as_ref());
        let ratio = stationarity.map(|side| side.measured / side.bound).reduce(larger).unwrap_or(f64::NAN);
        outcome.at_most(format!("{}: ε over its bound, largest", trace.what), ratio, 1.0 + 1e-9);
        let slack = rare().filter_map(|bounds| bounds.slack.as_ref()).map(|side| side.measured / side.bound);
        let slack = slack.reduce(larger).unwrap_or(f64::NAN);
        outcome.at_most(format!("{}: δ over its bound, as certificates measure it", trace.what), slack, 1.0);
    }
    let peak = (1..4000).map(|k| 1e-3 * f64::from(k)).map(|x| x * (-x).exp()).fold(0.0, larger);
    outcome.near("largest x e^(−x)", peak, (-1f64).exp(), 1e-6);
    outcome.note("The largest margin but one adds nothing to δ, so that N − 1 stands for the printed N.");
    Ok(outcome)
}

fn alignment(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let mut stream = Streams::new(14).stream("windows");
    for trace in uniform(&traces) {
        let (low, high) = trace.moments.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), m| {
            (smaller(low, m.beta()), larger(high, m.beta()))
        });
        outcome.at_least(format!("{}: β, least", trace.what), low, f64::MIN_POSITIVE);
        outcome.at_most(format!("{}: β, largest", trace.what), high, 1.0 + 1e-12);
        let (integral, mean) = windows(trace, &mut stream);
        let name = &trace.what;
        outcome.at_most(format!("{name}: (L/α)∫(β⁻² − 1) d ln Q over ln γ̃(t₂)/γ̃(t₁), largest"), integral, 1.01);
        outcome.at_most(format!("{name}: least β⁻² − 1 of a window over the corollary's bound, largest"), mean, 1.01);
    }
    Ok(outcome)
}

/// Over random windows: both sides of Lemma G.7, and of Corollary G.8.
fn windows(trace: &Trace, stream: &mut crate::numeric::RandomStream) -> (f64, f64) {
    let (count, ratio) = (trace.moments.len(), trace.degree / trace.alpha);
    let (mut integrals, mut means) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for _ in 0..30 {
        let (a, b) = (stream.below(count), stream.below(count));
        let (from, to) = (a.min(b), a.max(b));
        if to - from < 20 {
            continue;
        }
        let window = &trace.moments[from..=to];
        let gap = |m: &super::trace::Moment| m.beta().powi(-2) - 1.0;
        let integral: f64 = window
            .windows(2)
            .map(|pair| 0.5 * (gap(&pair[0]) + gap(&pair[1])) * (pair[1].conjugate / pair[0].conjugate).ln())
            .sum();
        let (first, last) = (&window[0], &window[window.len() - 1]);
        let gain = (trace.soft_margin(last) / trace.soft_margin(first)).ln();
        integrals = larger(integrals, ratio * integral / gain);
        let least = window.iter().map(gap).fold(f64::INFINITY, smaller);
        means = larger(means, ratio * least * (last.conjugate / first.conjugate).ln() / gain);
    }
    // without a window nothing was compared
    if integrals == f64::NEG_INFINITY { (f64::NAN, f64::NAN) } else { (integrals, means) }
}
