//! Definitions 4.1 and 4.2, Assumption 4.4, Theorem 4.5 and appendices C to E: Q-margins and how they grow,
//! and how fast the direction of the dual weights ∇R(θ) turns.

use rayon::prelude::*;

use super::identities::{draw, layout_for};
use super::mirror::{Flows, ON_FLOWS, complete};
use crate::arithmetic::{larger, loss_bound_sides, smaller};
use crate::measures::own_potential;
use crate::{Claim, ClaimError, Lab, Outcome, Series, Sketch};
use limitpoint::certificates::Geometry;
use limitpoint::linalg::{dot, norm2};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::params::ParamLayout;
use limitpoint::potentials::PotentialSpec;

pub(super) const CLAIMS: [Claim; 6] = [
    Claim {
        id: "C.def2.2",
        covers: &["C.def4.1", "C.def4.2", "C.lem4.3"],
        statement: "q_min/(αQ)^{L/α} − ln N (αQ)^{−L/α} ≤ ln(1/L)/(αQ)^{L/α} ≤ q_min/(αQ)^{L/α} at every step, and the \
                    Euclidean potential gives back the ℓ2 margins",
        try_out: softness,
        ..ON_FLOWS
    },
    Claim {
        id: "C.ass4.4",
        statement: "α Q(∇R(θ)) ≥ θᵀ∇²R(θ)θ for every potential of the library, with the closed-form difference; \
                    Q(∇R(·)), not R, is asymptotically α-homogeneous",
        try_out: curvature,
        ..Claim::FORMULA
    },
    Claim {
        id: "C.ass4.4.printed",
        statement: "As printed in appendix C: R(θ) ~ ‖θ‖₁ for the hyperbolic entropy as ‖θ‖ → ∞",
        try_out: printed_growth,
        ..Claim::MISPRINT
    },
    Claim {
        id: "C.thm4.5",
        covers: &["C.lemD1"],
        statement: "After separation the Q-soft margin never falls along a mirror flow and grows at least as fast as \
                    the tangential energy says, which is never negative; five potentials, two and three layers",
        try_out: monotony,
        ..ON_FLOWS
    },
    Claim {
        id: "C.lemD2",
        statement: "∫ (ln s)^{α/L−2} ds from 1/L(t₀) to 1/L(t) is at least L² γ̃(t₀)^{α/L} (t − t₀) for t ≥ t₀ (L²/α \
                    is printed, which is weaker), and the ratio of the sides tends to what alignment and margin growth \
                    say",
        try_out: loss_bound,
        ..ON_FLOWS
    },
    Claim {
        id: "C.lemE1",
        covers: &["C.lemE2"],
        statement: "The direction of ∇R(θ) turns at most at the speed 2B₁⟨θ, d∇R/dt⟩/(L γ̃ C₂ ‖θ‖ ‖∇R‖), and once R > 0 ln \
                    Q grows at least at the speed ⟨θ, d∇R/dt⟩/(‖θ‖ ‖∇R‖)",
        try_out: turning,
        ..ON_FLOWS
    },
];

fn softness(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let flows = Flows::of(lab, &mut outcome)?;
    let steps: usize = flows.uniform().map(Series::len).sum();
    let above = flows.uniform().flat_map(|flow| flow.map(["smallest", "u"], |[hard, soft]| (soft - hard) / hard));
    let what = format!("soft minus hard margin, relative, over {steps} steps");
    outcome.largest(what, above, 1e-12).by_theory();
    let below = flows.uniform().flat_map(|flow| {
        let log = (flow.margins as f64).ln();
        flow.map(["smallest", "u"], |[hard, soft]| (hard - log - soft) / hard)
    });
    let what = "hard margin minus ln N (αQ)^(−L/α) minus soft margin, relative";
    outcome.largest(what, below, 1e-12).by_theory();
    let horizon = flows.uniform().flat_map(|flow| flow.map(["gauge", "horizon"], |[gauge, phi]| gauge / phi));
    let what = "(αQ)^(1/α)/φ, least: Q-margins never exceed those of the horizon";
    outcome.smallest(what, horizon, 1.0 - 1e-12).by_theory();
    for flow in flows.under("euclidean") {
        let apart = flow.map(["gauge", "size"], |[gauge, size]| (gauge / size - 1.0).abs());
        let what = format!("{}: |(2Q)^(1/2)/‖θ‖₂ − 1|, largest", flow.what);
        outcome.largest(what, apart, 4.0 * f64::EPSILON).by_theory().catalogue_asks(
            "the same bits: (2Q)^(1/2) and ‖θ‖₂ are rounded on different ways, up to the last two bits",
        );
    }
    Ok(outcome)
}

fn curvature(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for spec in PotentialSpec::examples() {
        let (layout, mut stream) = (layout_for(&spec)?, Streams::new(44).stream(&spec.to_string()));
        let mut worker = spec.build(&layout)?;
        let (mut least, mut defect, mut horizon) = (f64::INFINITY, 0.0, f64::INFINITY);
        let (mut action, degrees) = (vec![0.0; layout.len()], worker.degrees_by_block().to_vec());
        let (mut conjugates, mut gauges, mut horizons) = (Vec::new(), Vec::new(), Vec::new());
        for size in [0.01, 1.0, 30.0, 1e4] {
            for _ in 0..lab.choose(20, 200) {
                let theta = draw(&spec, &layout, &mut stream, size);
                let slack = worker.curvature_slack(&theta);
                worker.conjugate_by_block(&theta, &mut conjugates);
                worker.hessian_action(&theta, &theta, &mut action);
                let scaled: f64 = conjugates.iter().zip(&degrees).map(|(q, alpha)| alpha * q).sum();
                least = smaller(least, slack / scaled);
                defect = larger(defect, (scaled - dot(&theta, &action) - slack).abs() / scaled);
                worker.gauges_by_block(&theta, &mut gauges);
                worker.horizons_by_block(&theta, &mut horizons);
                horizon = gauges.iter().zip(&horizons).map(|(gauge, limit)| gauge / limit).fold(horizon, smaller);
            }
        }
        let mut own = Outcome::default();
        own.at_least("(αQ − θᵀHθ)/(αQ), least", least, -1e-12).by_theory();
        own.at_most("closed form of αQ − θᵀHθ against its terms, relative", defect, 1e-11).by_theory();
        // φ ≤ (αQ)^{1/α} is the half of Assumption H.1 that the condition implies
        own.at_least("(αQ)^(1/α)/φ, least", horizon, 1.0 - 1e-12).by_theory();
        outcome.say_of(&spec.to_string(), own);
    }
    // Q(∇R) is asymptotically homogeneous: its local degree is α far out
    for spec in PotentialSpec::examples().iter().filter(|spec| !matches!(spec, PotentialSpec::Layers { .. })) {
        let layout = layout_for(spec)?;
        let mut worker = spec.build(&layout)?;
        let theta = draw(spec, &layout, &mut Streams::new(45).stream("far"), 1e7);
        let twice: Vec<f64> = theta.iter().map(|x| 2.0 * x).collect();
        let degree = (worker.conjugate_at(&twice) / worker.conjugate_at(&theta)).log2();
        outcome.near(format!("{spec}: local degree of Q(∇R) at ‖θ‖ ≈ 10⁷"), degree, worker.degree(), 1e-3);
    }
    Ok(outcome)
}

fn printed_growth(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let spec = PotentialSpec::Hyperbolic { lambda: 1.0 };
    let mut worker = spec.build(&ParamLayout::vector(1))?;
    // R(t)/t = ln(t/√λ + √(t²/λ + 1)) − √(t² + λ)/t, exactly
    let [near, middle, far] = [1e2, 1e4, 1e8].map(|t| worker.value(&[t]) / t);
    outcome.near("R(t)/t at t = 10⁸ over that at t = 10⁴", far / middle, 1.0, 0.1);
    outcome.note(format!(
        "Contradicted by derivation: R(t) = t arsinh(t/√λ) − √(t² + λ) grows like t ln t, so that R(t)/t, which is {near:.2}, \
         {middle:.2}, {far:.2} at t = 10², 10⁴, 10⁸, has no limit; only Q(∇R) = √(t² + λ) grows like t."
    ));
    Ok(outcome)
}

fn monotony(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let flows = Flows::of(lab, &mut outcome)?;
    let title = "Q-soft margins as multiples of their values at separation";
    let mut sketch = Sketch::new("c-soft-margins", title, "ln 1/L", "γ̃(t) / γ̃(t₀)").logarithmic(true, true);
    let mut consistent = Vec::new();
    for flow in flows.uniform() {
        let margin = flow.column("soft_margin");
        let what = format!("{}: largest relative fall of the Q-soft margin", flow.what);
        outcome.never_falls(what, margin, 1e-12).by_theory();
        if !complete(&mut outcome, flow) {
            continue;
        }
        outcome.rises(format!("{}: growth of the Q-soft margin since separation", flow.what), margin, 1.5);
        // the slope at points is the slope of what was measured; from L = 1 on it falls too fast for the trapezium rule
        let late = flow.after_last("u", |u| u < 1.0);
        let steps = late.pairs(["slope", "conjugate"], |old, new| 0.5 * (old[0] + new[0]) * (new[1] / old[1]).ln());
        let gained = (late.last("soft_margin") / late.first("soft_margin")).ln();
        consistent.push((steps.iter().sum::<f64>() / gained - 1.0).abs());
        if flow.what.starts_with("two") && flow.seed() == 0 {
            let curve = flow.curve("u", "soft_margin", 5).into_iter().map(|[u, now]| [u, now / margin[0]]);
            sketch = sketch.curve(flow.optimiser(), curve.collect());
        }
    }
    outcome.at_least("share of runs that separate their data", flows.share(), 0.5);
    let energy = flows.uniform().flat_map(|flow| flow.map(["beta"], |[beta]| 1.0 - beta * beta));
    outcome.smallest("E_tan Q/‖θ̇‖² = 1 − β², least over all steps", energy, -1e-14).by_theory();
    let below = flows.uniform().flat_map(|flow| flow.map(["slope", "bound"], |[slope, bound]| slope - bound));
    let what = "d ln γ̃/d ln Q minus the bound of Lemma D.1, least over all steps";
    outcome.smallest(what, below, -1e-12).by_theory();
    let what = "growth of ln γ̃ from ln 1/L = 1 on against the integral of its slope, relative";
    outcome.largest(what, consistent, 0.01);
    outcome.sketch(sketch);
    Ok(outcome)
}

/// ln of both sides of the lemma at every moment but the first: ∫ v^{α/L−2} e^v dv from u(t₀), and L² γ̃(t₀)^{α/L} (t −
/// t₀).
fn sides(flow: &Series) -> Vec<[f64; 2]> {
    let power = flow.first("alpha") / flow.degree;
    let constant = 2.0 * flow.degree.ln() + power * flow.first("soft_margin").ln();
    loss_bound_sides(&flow.rows(["u", "log_time"]), constant, |v| (power - 2.0) * v.ln() + v)
}

fn loss_bound(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let flows = Flows::of(lab, &mut outcome)?;
    for flow in flows.uniform().filter(|flow| complete(&mut outcome, flow)).collect::<Vec<_>>() {
        let [left, right] = sides(flow).last().copied().unwrap_or([f64::NAN; 2]);
        // dG/dt = L² γ̃^{α/L} (Σ rᵢqᵢ/u)² (αQ/p²)/β², and t is made of its last moments
        let [alpha, u, mean, beta] = ["alpha", "u", "mean_margin", "beta"].map(|name| flow.last(name));
        let limit = alpha / flow.degree * (flow.last("soft_margin") / flow.first("soft_margin")).ln()
            + 2.0 * (mean / u / beta).ln()
            + (alpha * flow.last("conjugate") / flow.last("position")).ln();
        let what = format!("{}: ratio of the sides at ln 1/L = {u:.0} over what β and γ̃ there say", flow.what);
        outcome.near(what, (left - right - limit).exp(), 1.0, 0.1);
    }
    // t − t₀ is a difference of two times, exact only after some steps
    let apart = flows.uniform().flat_map(|flow| sides(flow).into_iter().skip(5).map(|[left, right]| left - right));
    let what = "ln of the integral minus ln of L² γ̃(t₀)^(α/L) (t − t₀), least over all steps";
    outcome.smallest(what, apart, -1e-6).by_theory();
    outcome.largest("ln L at the end, largest", flows.uniform().map(|flow| -flow.last("u")), -29.0);
    let growth = flows.uniform().map(|flow| flow.last("conjugate") / flow.first("conjugate"));
    outcome.smallest("Q at the end over Q at separation, least", growth, 1.05);
    Ok(outcome)
}

/// The largest C₂ with (αQ)^{1/α} ≥ C₂‖θ‖₂ for all θ: that of the horizon, which lies below the gauge and is its limit.
fn smallest_ratio(geometry: &Geometry, entries: usize) -> f64 {
    match geometry.norm {
        // ‖θ‖_p ≥ n^{1/p − 1/2} ‖θ‖₂ for p ≥ 2
        NormSpec::Lp { p } if p > 2.0 => geometry.scale * (entries as f64).powf(1.0 / p - 0.5),
        _ => geometry.scale,
    }
}

/// B₁, the largest of ‖∇qᵢ(θ)‖₂/φ(θ)^{L−1} over examples and weights, from below: by a random search that starts at the
/// best of many directions and of the end of the flow. A larger B₁ would only make the lemma's bound larger.
fn steepest(lab: &Lab, flow: &Series) -> Result<(f64, Geometry), ClaimError> {
    let mut objective = lab.objective(&flow.end.task, &flow.end.data)?;
    let geometry = Geometry::of_potential(&own_potential(&flow.end.task), objective.layout())?;
    let mut norm = geometry.norm.build(objective.layout())?;
    let tangents = objective.tangents()?;
    let mut stream = Streams::new(1).stream("steepest");
    let (mut best, mut point) = (0.0, flow.end.params.clone());
    for round in 0..lab.choose(200, 2000) {
        let scale = norm2(&point) / (point.len() as f64).sqrt();
        let draw = |old: &f64| if round < 50 { stream.normal() } else { old + 0.3 * scale * stream.normal() };
        let drawn = point.iter().map(draw).collect();
        let trial = if round == 0 { flow.end.params.clone() } else { drawn };
        let size = geometry.scale * norm.value(&trial);
        let jacobian = tangents.per_example_gradients(&trial, 0);
        let largest = (0..jacobian.rows).map(|n| norm2(jacobian.row(n))).fold(0.0, larger);
        let found = largest / size.powf(flow.degree - 1.0);
        if found > best {
            (best, point) = (found, trial);
        }
    }
    Ok((best, geometry))
}

fn turning(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let flows = Flows::of(lab, &mut outcome)?;
    let chosen: Vec<&Series> = flows.uniform().collect();
    let constants: Vec<_> = chosen.par_iter().map(|flow| steepest(lab, flow)).collect::<Result<_, _>>()?;
    for (flow, (b1, geometry)) in chosen.into_iter().zip(constants) {
        let mut own = Outcome::default();
        let c2 = smallest_ratio(&geometry, flow.parameters);
        let gauge = flow.map(["gauge", "size"], |[gauge, size]| gauge / (c2 * size));
        own.smallest("(αQ)^(1/α) over C₂‖θ‖₂, least", gauge, 1.0 - 1e-12).by_theory();
        // both sides per dQ = ⟨θ, d∇R⟩
        let bound = |margin: f64, size: f64, dual: f64| 2.0 * b1 / (flow.degree * margin * c2 * size * dual);
        let names = ["soft_margin", "size", "dual_size", "dual_speed", "outward"];
        let shares = flow.map(names, |[margin, size, dual, speed, w]| speed / w / bound(margin, size, dual));
        own.largest("speed of the dual direction over its bound, largest", shares, 1.0).by_theory();
        // the same over whole steps, where the direction was seen to turn
        let names = ["soft_margin", "size", "dual_size", "dual_turn", "conjugate"];
        let turns = flow.pairs(names, |[a, b, c, _, old], [margin, size, dual, turn, now]| {
            turn / (larger(bound(a, b, c), bound(margin, size, dual)) * (now - old))
        });
        own.largest("turn of it over a step over the bound", turns, 1.0).by_theory();
        let positive = flow.when("value", |value| value > 0.0);
        let rates = positive.map(["size", "dual_size", "conjugate"], |[size, dual, q]| size * dual / q);
        let what = format!("‖θ‖‖∇R‖/Q at the {} steps with R > 0, least", positive.len());
        own.smallest(what, rates, 1.0 - 1e-12).by_theory();
        own.at_least("R at the end", flow.last("value"), 0.0).by_theory();
        outcome.say_of(&flow.what, own);
    }
    outcome.note("B₁ is searched for, so that it can only be too small, and the bound too strict.");
    Ok(outcome)
}
