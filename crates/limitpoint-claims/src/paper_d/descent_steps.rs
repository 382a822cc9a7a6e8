//! Appendix E.1 and E.2: which steps of gradient descent are admissible, and the margin γ̂.

use super::descent_runs::{ON_DESCENT, Walk, walks};
use super::flows::join;
use crate::arithmetic::smaller;
use crate::{Claim, ClaimError, Lab, Outcome};
use limitpoint::diagnostics::DescentMargin;
use limitpoint::losses::DescentScale;
use limitpoint::numeric::integrate;

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "D.s5",
        statement: "H(x) = μ(x)/(C κ(x)) is the inverse of a bound on the curvature: κ is continuous and does not \
                    decrease, ‖∇²L‖ ≤ 2 C κ(L) along the descent, and H is of order 1/(x (ln 1/x)^{3−2/L}) down to x \
                    = 10^−1000; squared ReLU and quadratic networks",
        try_out: steps,
        ..ON_DESCENT
    },
    Claim {
        id: "D.s5.printed",
        statement: "Any non-decreasing μ with values in (0, ½] and ∫ μ(x) dx < ∞ makes γ̂ well-defined",
        try_out: printed_integrability,
        ..Claim::MISPRINT
    },
    Claim {
        id: "D.ghat",
        covers: &["D.lemE1"],
        statement: "γ̂ = e^{φ(L)}/ρ^L is well-defined, φ(x) = ln u − ln 1/L(t₀) · (1/u + 1/(2L u²)) for small x, and \
                    γ̂ < γ̃ ≤ γ̄ with γ̂/γ̄ = 1 − O(1/u)",
        try_out: margin,
        ..ON_DESCENT
    },
    Claim {
        id: "D.ghat.printed",
        statement: "γ̂/γ̃ = e^{I(L)} < 0, and φ(x) ≥ ln ln 1/x",
        try_out: printed_margin,
        ..Claim::MISPRINT
    },
];

/// The degrees at which κ and φ are looked at.
const DEGREES: [f64; 5] = [0.5, 1.0, 2.0, 3.0, 6.0];

fn steps(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for degree in DEGREES {
        let scale = DescentScale::new(degree, -1e-3)?;
        let logs: Vec<f64> = (0..40_000).map(|k| -40.0 + 1e-3 * f64::from(k)).filter(|log| *log < -1e-3).collect();
        let rise = |pair: &[f64]| scale.log_kappa(pair[1]) - scale.log_kappa(pair[0]);
        let rises = logs.windows(2).map(rise);
        outcome.smallest(format!("L = {degree}: least change of ln κ over 0.001 of ln x"), rises, -1e-14).by_theory();
        // d ln κ/d ln x is at most 1 for L ≥ 1, and 1 − a/u below
        let slope = |log: f64| 1.0 + (-scale.plateau() / -(log + 1e-3)).max(0.0);
        let shares = logs.windows(2).map(|pair| rise(pair) / slope(pair[0]));
        outcome
            .largest(format!("L = {degree}: its largest change over that of its slope"), shares, 1.001e-3)
            .by_theory();
    }
    for Walk { steps, bounds: [curvature, value, gradient], .. } in walks.admissible.iter().chain(&walks.far) {
        let mut about = Outcome::default();
        let strayed = steps.most("strayed");
        about.at_most("steps of the driver against −η∇L, relative to ρ", strayed, 1e-14).by_theory();
        about.at_most("‖∇²L‖/(2 C κ(L)), largest", *curvature, 1.0).by_theory();
        about.at_most("|q|/(B₀ ρ^L), largest", *value, 1.0 + 1e-12).by_theory();
        about.at_most("‖∇q‖/(B₁ ρ^(L−1)), largest", *gradient, 1.0 + 1e-12).by_theory();
        join(&mut outcome, &steps.what, about);
    }
    let u = 1000.0 * std::f64::consts::LN_10;
    for Walk { steps, constants, bounds, .. } in walks.admissible.iter().filter(|walk| walk.factor == 1.0) {
        let (scale, mut about) = (constants.margin.scale(), Outcome::default());
        let order = (-0.5 * scale.log_start()).ln() - constants.log_curvature;
        let worst = [scale.plateau().max(-scale.log_start()), 100.0, u, 1e6]
            .map(|u| (constants.log_step(-u) - order - u + (3.0 - 2.0 / steps.degree) * u.ln()).abs() / u);
        let what = "ln H against ln of 1/(x u^(3−2/L)) times ln(1/L(t₀))/(2C), relative";
        about.largest(what, worst, 1e-14).by_theory();
        let [log_10, first] =
            [-u, scale.log_start()].map(|log_loss| constants.log_step(log_loss) / std::f64::consts::LN_10);
        about.note(format!(
            "C = {:.3e}, H = {:.2e} at L(t₀) = {:.3}, log₁₀ H = {log_10:.3} at L = 1e-1000; the curvature is at \
             most {:.2e} of its bound",
            constants.log_curvature.exp(),
            10f64.powf(first),
            scale.log_start().exp(),
            bounds[0]
        ));
        join(&mut outcome, &steps.what, about);
    }
    Ok(outcome)
}

fn printed_integrability(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    // μ = ½ is non-decreasing and ∫ μ dx = ¼ over (0, ½]
    // with v = ln 1/w the deficit is ∫ 2 (1 + λ) μ/v dv, λ = 1/(L v)
    let deficit = |to: f64| {
        let (from, to) = (2f64.ln().ln(), to.ln());
        let pieces = (2.0 * (to - from)).ceil();
        let width = (to - from) / pieces;
        let part = |k: f64| integrate(from + width * k, from + width * (k + 1.0), |s: f64| 1.0 + 1.0 / (2.0 * s.exp()));
        (0..pieces as u32).map(|k| part(f64::from(k))).sum::<f64>()
    };
    let parts = [1e3, 1e6, 1e12].map(deficit);
    outcome.at_most("growth of −I(½) for μ = ½ from ln 1/w ≤ 1e3 to 1e6", parts[1] - parts[0], 1e-3).by_paper();
    outcome.at_most("and to 1e12", parts[2] - parts[1], 1e-3).by_paper();
    outcome.note(
        "By an exact example: μ = ½ has ∫ μ dx = ¼ over (0, ½], but −I diverges like ln ln 1/w and γ̂ = 0; the proof needs ∫ μ(x)/(x \
         ln 1/x) dx < ∞ near 0.",
    );
    Ok(outcome)
}

/// −I by the definition: a running maximum of r on a fine grid of ln v, and the trapezium rule.
fn deficit_by_definition(scale: &DescentScale, from: f64) -> f64 {
    let start = -scale.log_start();
    let log_r = |v: f64| v - v.ln() + (2.0 * (1.0 + scale.lambda(-v)) * scale.mu(-v)).ln_1p();
    let (count, end) = (200_000, from.max(20.0) * 10.0);
    let width = (end / start).ln() / f64::from(count);
    let (mut most, mut area, mut last) = (f64::NEG_INFINITY, 0.0, f64::NAN);
    for k in 0..=count {
        let v = start * (width * f64::from(k)).exp();
        most = most.max(log_r(v));
        let height = (most - v).exp() * v - 1.0;
        if v >= from * (1.0 - 1e-9) {
            area += if last.is_nan() { 0.0 } else { 0.5 * width * (height + last) };
            last = height;
        }
    }
    // beyond the end r is its own supremum and e^−v r − 1/v = c (1/v² + 1/(L v³))
    area + start * (1.0 / end + 0.5 / (scale.degree() * end * end))
}

fn margin(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, walks) = (Outcome::default(), walks(lab)?);
    for degree in DEGREES {
        let (mut closed, mut general) = (Vec::new(), Vec::new());
        for log_start in [-0.05, -0.5, -1.2, -4.0, -30.0] {
            let hat = DescentMargin::new(degree, log_start)?;
            let (c, from) = (-log_start, hat.closed_from());
            for u in [from, 2.0 * from, 100.0 * from] {
                let formula = u.ln() - c * (1.0 / u + 1.0 / (2.0 * degree * u * u));
                let by_definition = u.ln() - numerical_tail(hat.scale(), u);
                closed.extend([(hat.phi(-u) - formula).abs(), (by_definition - formula).abs()]);
            }
            let found = hat.deficit(log_start);
            general.push((found - deficit_by_definition(hat.scale(), c)).abs() / found);
        }
        let what = format!("L = {degree}: φ by quadrature against its closed form for small x");
        outcome.largest(what, closed, 1e-8).by_theory();
        outcome.largest(format!("L = {degree}: −I(L(t₀)) against its definition, relative"), general, 1e-8).by_theory();
    }
    for Walk { steps, constants, .. } in walks.admissible.iter().chain(&walks.far) {
        let (c, closed_from) = (-constants.margin.scale().log_start(), constants.margin.closed_from());
        let (what, mut about) = (&steps.what, Outcome::default());
        let below = steps.map(["log_soft", "log_margin"], |[soft, margin]| soft - margin);
        let below = below.into_iter().fold(f64::INFINITY, smaller);
        about.push("ln γ̃ − ln γ̂, least", "above 0", format!("{below:.3e}"), below > 0.0).by_theory();
        let soft = steps.map(["u", "smallest"], |[u, smallest]| u / smallest - 1.0);
        about.largest("γ̃/γ̄ − 1, largest", soft, 1e-12).by_theory();
        let names = ["log_margin", "log_soft", "u", "smallest"];
        let shares = steps.clone().with("share", names, |[hat, soft, u, smallest]| (hat - soft).exp() * u / smallest);
        let late = shares.when("u", |u| u >= closed_from);
        if late.is_empty() {
            let reason = format!("never gets to ln 1/L = {closed_from:.0}, from where φ has its closed form");
            about.leave_out(format!("{what}, order of γ̂/γ̄"), reason);
        } else {
            let bound = |u: f64| c * (1.0 + 0.5 / (steps.degree * u)) + (steps.margins as f64).ln();
            let order = late.map(["share", "u"], |[share, u]| (1.0 - share) * u / bound(u));
            let words = "(1 − γ̂/γ̄) u over ln 1/L(t₀) (1 + 1/(2Lu)) + ln N, largest";
            about.largest(words, order, 1.0).by_theory();
        }
        let [[first, last], [from, to]] = ["share", "u"].map(|name| [shares.first(name), shares.last(name)]);
        about.note(format!(
            "γ̂/γ̄ = {first:.3} at ln 1/L = {from:.2}, {last:.3} at {to:.2}; closed form from {closed_from:.3} on"
        ));
        join(&mut outcome, what, about);
    }
    Ok(outcome)
}

/// ∫ (r e^−v − 1/v) dv from u on, by Gauss's rule in ln v up to 1e13 u.
fn numerical_tail(scale: &DescentScale, u: f64) -> f64 {
    let integrand = |s: f64| {
        let v = s.exp();
        2.0 * (1.0 + scale.lambda(-v)) * scale.mu(-v)
    };
    let from = u.ln();
    (0..60).map(|k| 0.5 * f64::from(k)).map(|k| integrate(from + k, from + k + 0.5, integrand)).sum()
}

fn printed_margin(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let hat = DescentMargin::new(3.0, -1.0)?;
    for u in [1.0, 5.0, 1000.0] {
        let ratio = (-hat.deficit(-u)).exp();
        outcome.push(format!("ln 1/L = {u}: γ̂/γ̃"), "below 0", format!("{ratio:.6}"), ratio < 0.0).by_paper();
        outcome.at_least(format!("ln 1/L = {u}: φ − ln ln 1/L"), hat.phi(-u) - f64::ln(u), 0.0).by_paper();
    }
    outcome.note("By derivation: an exponential is never below 0 (e^I is below 1), and φ = ln ln 1/x + I with I < 0, so φ ≤ ln ln 1/x, which is \
         what the proof of (P1) uses.");
    Ok(outcome)
}
