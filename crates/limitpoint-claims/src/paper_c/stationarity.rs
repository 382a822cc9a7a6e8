//! Appendix G but its limit: the gradient of the horizon, approximate KKT points along the flow, alignment.

use super::mirror::Flows;
use crate::arithmetic::{larger, smaller};
use crate::{Claim, ClaimError, Lab, Outcome, Series};
use limitpoint::linalg::norm2;
use limitpoint::norms::NormSpec;
use limitpoint::numeric::{RandomStream, Streams};
use limitpoint::params::ParamLayout;
use limitpoint::potentials::PotentialSpec;

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "C.assG1",
        covers: &["C.lemG10"],
        statement: "(αQ)^{2/α−1} ∇²R θ, the gradient of ½(αQ)^{2/α}, approaches that of ½φ² like ‖θ‖^{2−p} relative to \
                    ‖θ‖, with the constant C = 1 for every p > 2; for p = 2 and the horizon √(1+λ) ℓ2 they agree",
        try_out: horizon_gradient,
        ..Claim::FORMULA
    },
    Claim {
        id: "C.assG1.printed",
        statement: "As printed in Lemma G.10: the same with C = (p−1)^{1−2/p}, and with C = 1 + λ for p = 2 and the \
                    horizon ℓ2",
        try_out: printed_constant,
        ..Claim::MISPRINT
    },
    Claim {
        id: "C.lemG6",
        statement: "With λᵢ = (αQ)^{2/α−1} q_min^{1−2/L} ‖θ‖_H e^{−qᵢ}/‖θ̇‖_H the trajectory is an (ε, δ)-KKT point: \
                    δ ≤ (N−1)/(e L γ̃^{2/L} ln 1/L) for every α, and ε² ≤ 2‖H‖(αQ)^{2/α−1} γ̃^{−2/L} (1−β) for α ≥ 2",
        experiments: &["c-flows"],
        try_out: multipliers,
        ..Claim::FORMULA
    },
    Claim {
        id: "C.beta",
        covers: &["C.lemG7", "C.corG8"],
        statement: "∫ (β⁻² − 1) d ln Q ≤ (α/L) ln(γ̃(t₂)/γ̃(t₁)) for all t₁ < t₂ after separation, so that somewhere \
                    between them β is as close to 1 as the corollary says; 0 < β ≤ 1",
        experiments: &["c-flows"],
        try_out: alignment,
        ..Claim::FORMULA
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

fn horizon_gradient(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for p in [3.0, 4.0, 6.0] {
        // far enough for the power law, near enough for its digits
        let scales: Vec<f64> = (0..6).map(|k| 10f64.powf(1.0 + 3.0 / (p - 2.0) * f64::from(k) / 5.0)).collect();
        for lambda in [0.1, 1.0] {
            let found = distances(p, lambda, (1.0, (p - 1f64).powf(1.0 / p)), &scales)?;
            let name = format!("p = {p}, λ = {lambda}");
            let what = format!("{name}: power of ‖θ‖ at which the distance falls");
            let power = (found[5] / found[0]).ln() / (scales[5] / scales[0]).ln();
            outcome.near(what, power, 2.0 - p, 0.1);
            outcome.at_most(format!("{name}: distance at ‖θ‖ ≈ {:.0}", scales[5]), found[5], 1e-2);
        }
        let pure = distances(p, 0.0, (1.0, (p - 1f64).powf(1.0 / p)), &[1.0, 1e3])?;
        outcome.at_most(format!("p = {p}, λ = 0: distance, which is 0"), larger(pure[0], pure[1]), 1e-12).by_theory();
    }
    for lambda in [0.0, 0.1, 1.0] {
        let own = distances(2.0, lambda, (1.0, (1.0 + lambda).sqrt()), &[1.0, 1e3])?;
        let name = format!("p = 2, λ = {lambda}: distance for the horizon √(1+λ) ℓ2");
        outcome.at_most(name, larger(own[0], own[1]), 1e-12).by_theory();
        let table = distances(2.0, lambda, (1.0 / (1.0 + lambda), 1.0), &[1.0, 1e3])?;
        let name = format!("p = 2, λ = {lambda}: distance for the horizon ℓ2 and C = 1/(1+λ)");
        outcome.at_most(name, larger(table[0], table[1]), 1e-12).by_theory();
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
    outcome.note(
        "Contradicted by derivation: for λ = 0 both gradients are the same vector, so that C = 1; the proof takes (p−1)^{2/p} out \
         of a term that carries p−1, and the factor that is left cancels its C.",
    );
    Ok(outcome)
}

fn multipliers(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for flow in Flows::of(lab, &mut outcome)?.uniform() {
        let factor = (flow.margins as f64 - 1.0) / (std::f64::consts::E * flow.degree);
        let bound = |margin: f64, u: f64| factor / (margin.powf(2.0 / flow.degree) * u);
        let shares = flow.map(["slack", "soft_margin", "u"], |[slack, margin, u]| slack / bound(margin, u));
        outcome.largest(format!("{}: δ over its bound, largest", flow.what), shares, 1.0).by_theory();
        outcome.at_least(format!("{}: δ, least", flow.what), flow.least("slack"), -1e-12).by_theory();
        if flow.last("alpha") >= 2.0 {
            let what = format!("{}: ε over its bound, largest", flow.what);
            outcome.at_most(what, flow.most("epsilon"), 1.0 + 1e-9).by_theory();
            let what = format!("{}: δ over its bound, as certificates measure it", flow.what);
            outcome.at_most(what, flow.most("delta"), 1.0).by_theory();
        }
    }
    let peak = (1..4000).map(|k| 1e-3 * f64::from(k)).map(|x| x * (-x).exp()).fold(0.0, larger);
    outcome.near("largest x e^(−x)", peak, (-1f64).exp(), 1e-6).by_theory();
    outcome.note("The largest margin but one adds nothing to δ, so that N − 1 stands for the printed N.");
    Ok(outcome)
}

fn alignment(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut stream = Streams::new(14).stream("windows");
    for flow in Flows::of(lab, &mut outcome)?.uniform() {
        let name = &flow.what;
        outcome.at_least(format!("{name}: β, least"), flow.least("beta"), f64::MIN_POSITIVE).by_theory();
        outcome.at_most(format!("{name}: β, largest"), flow.most("beta"), 1.0 + 1e-12).by_theory();
        // 1 % for the trapezium rule over whole steps
        let found = windows(flow, &mut stream);
        let what = format!("{name}: (L/α)∫(β⁻² − 1) d ln Q over ln γ̃(t₂)/γ̃(t₁), largest");
        outcome.largest(what, found.iter().map(|window| window[0]), 1.01);
        let what = format!("{name}: least β⁻² − 1 of a window over the corollary's bound, largest");
        outcome.largest(what, found.iter().map(|window| window[1]), 1.01);
    }
    Ok(outcome)
}

/// Over random windows: both sides of Lemma G.7, and of Corollary G.8.
fn windows(flow: &Series, stream: &mut RandomStream) -> Vec<[f64; 2]> {
    let rows = flow.rows(["beta", "conjugate", "soft_margin"]);
    let rows: Vec<[f64; 3]> =
        rows.into_iter().map(|[beta, q, margin]| [beta.powi(-2) - 1.0, q.ln(), margin.ln()]).collect();
    let ratio = flow.degree / flow.last("alpha");
    let mut found = Vec::new();
    for _ in 0..30 {
        let (a, b) = (stream.below(rows.len()), stream.below(rows.len()));
        let (from, to) = (a.min(b), a.max(b));
        if to - from < 20 {
            continue;
        }
        let window = &rows[from..=to];
        let integral: f64 =
            window.windows(2).map(|pair| 0.5 * (pair[0][0] + pair[1][0]) * (pair[1][1] - pair[0][1])).sum();
        let [_, growth, gain] = [0, 1, 2].map(|k| rows[to][k] - rows[from][k]);
        let least = window.iter().map(|row| row[0]).fold(f64::INFINITY, smaller);
        found.push([ratio * integral / gain, ratio * least * growth / gain]);
    }
    found
}
