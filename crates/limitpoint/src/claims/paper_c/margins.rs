//! Definitions 4.1 and 4.2, Assumption 4.4, Theorem 4.5 and appendices C to E: Q-margins and how they grow.

use super::identities::{draw, layout_for};
use super::trace::{Moment, Trace, planned, traces, uniform};
use crate::claims::arithmetic::{larger, loss_bound_sides, smaller};
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};
use crate::linalg::dot;
use crate::numeric::Streams;
use crate::potentials::PotentialSpec;

pub(super) const CLAIMS: [Claim; 5] = [
    Claim {
        id: "C.def2.2",
        covers: &["C.def4.1", "C.def4.2", "C.lem4.3"],
        statement: "q_min/(αQ)^{L/α} − ln N (αQ)^{−L/α} ≤ ln(1/L)/(αQ)^{L/α} ≤ q_min/(αQ)^{L/α} at every step, and the \
                    Euclidean potential gives back the ℓ2 margins",
        experiments: &["c-flows"],
        try_out: softness,
    },
    Claim {
        id: "C.ass4.4",
        covers: &[],
        statement: "α Q(∇R(θ)) ≥ θᵀ∇²R(θ)θ for every potential of the library, with the closed-form difference; \
                    Q(∇R(·)), not R, is asymptotically α-homogeneous",
        experiments: &[],
        try_out: curvature,
    },
    Claim {
        id: "C.ass4.4.printed",
        covers: &[],
        statement: "As printed in appendix C: R(θ) ~ ‖θ‖₁ for the hyperbolic entropy as ‖θ‖ → ∞",
        experiments: &[],
        try_out: printed_growth,
    },
    Claim {
        id: "C.thm4.5",
        covers: &["C.lemD1"],
        statement: "After separation the Q-soft margin never falls along a mirror flow and grows at least as fast as \
                    the tangential energy says, which is never negative; five potentials, two and three layers",
        experiments: &["c-flows"],
        try_out: monotony,
    },
    Claim {
        id: "C.lemD2",
        covers: &[],
        statement: "∫ (ln s)^{α/L−2} ds from 1/L(t₀) to 1/L(t) is at least L² γ̃(t₀)^{α/L} (t − t₀) for t ≥ t₀ (L²/α \
                    is printed, which is weaker), and the ratio of the sides tends to what alignment and margin growth \
                    say",
        experiments: &["c-flows"],
        try_out: loss_bound,
    },
];

fn softness(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let (mut above, mut below, mut horizon, mut steps) = (f64::NEG_INFINITY, f64::NEG_INFINITY, f64::INFINITY, 0);
    for trace in uniform(&traces) {
        let log = (trace.margins as f64).ln();
        for m in &trace.moments {
            let scale = m.gauge.powf(trace.degree);
            let (hard, soft) = (m.smallest / scale, m.u / scale);
            above = larger(above, (soft - hard) / hard);
            below = larger(below, (hard - log / scale - soft) / hard);
            horizon = smaller(horizon, m.gauge / m.horizon);
            steps += 1;
        }
    }
    outcome.at_most(format!("soft minus hard margin, relative, over {steps} steps"), above, 1e-12);
    outcome.at_most("hard margin minus ln N (αQ)^(−L/α) minus soft margin, relative", below, 1e-12);
    outcome.at_least("(αQ)^(1/α)/φ, least: Q-margins never exceed those of the horizon", horizon, 1.0 - 1e-12);
    for trace in traces.iter().filter(|trace| trace.flow == "euclidean") {
        let worst = trace.most(|m| (m.gauge / m.size - 1.0).abs());
        outcome.at_most(format!("{}: |(2Q)^(1/2)/‖θ‖₂ − 1|, largest", trace.what), worst, 4.0 * f64::EPSILON);
    }
    outcome.note(
        "(2Q)^{1/2} and ‖θ‖₂ are rounded on different ways, so that \"bit for bit\" means up to the last two bits.",
    );
    Ok(outcome)
}

fn curvature(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for spec in PotentialSpec::examples() {
        let (layout, mut stream) = (layout_for(&spec)?, Streams::new(44).stream(&spec.to_string()));
        let mut worker = spec.build(&layout)?;
        let (mut least, mut defect, mut horizon) = (f64::INFINITY, 0.0, f64::INFINITY);
        let (mut action, mut gauges, mut horizons) = (vec![0.0; layout.len()], Vec::new(), Vec::new());
        for size in [0.01, 1.0, 30.0, 1e4] {
            for _ in 0..lab.choose(20, 200) {
                let theta = draw(&spec, &layout, &mut stream, size);
                let slack = worker.curvature_slack(&theta);
                let (mut conjugates, degrees) = (Vec::new(), worker.degrees_by_block().to_vec());
                worker.conjugate_by_block(&theta, &mut conjugates);
                worker.hessian_action(&theta, &theta, &mut action);
                let scaled: f64 = conjugates.iter().zip(&degrees).map(|(q, alpha)| alpha * q).sum();
                least = smaller(least, slack / scaled);
                defect = larger(defect, (scaled - dot(&theta, &action) - slack).abs() / scaled);
                worker.gauges_by_block(&theta, &mut gauges);
                worker.horizons_by_block(&theta, &mut horizons);
                for (gauge, limit) in gauges.iter().zip(&horizons) {
                    horizon = smaller(horizon, gauge / limit);
                }
            }
        }
        outcome.at_least(format!("{spec}: (αQ − θᵀHθ)/(αQ), least"), least, -1e-12);
        outcome.at_most(format!("{spec}: closed form of αQ − θᵀHθ against its terms, relative"), defect, 1e-11);
        // φ ≤ (αQ)^{1/α} is the half of Assumption H.1 that the condition implies
        outcome.at_least(format!("{spec}: (αQ)^(1/α)/φ, least"), horizon, 1.0 - 1e-12);
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
    let mut worker = spec.build(&crate::params::ParamLayout::vector(1))?;
    let [near, middle, far] = [1e2, 1e4, 1e8].map(|t| worker.value(&[t]) / t);
    outcome.near("R(t)/t at t = 10⁸ over that at t = 10⁴", far / middle, 1.0, 0.1);
    outcome.note(format!(
        "R(t)/t is {near:.2}, {middle:.2}, {far:.2} at t = 10², 10⁴, 10⁸: R grows like t ln t, and only Q(∇R) = √(t² \
         + λ) like t."
    ));
    Ok(outcome)
}

/// d ln γ̃/d ln Q, exactly.
fn slope(trace: &Trace, m: &Moment) -> f64 {
    m.conjugate * m.climb / (m.u * m.outward) - trace.degree / trace.alpha
}

fn monotony(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let (mut energy, mut below, mut consistent) = (f64::INFINITY, f64::INFINITY, 0.0);
    let mut sketch = Sketch::new(
        "c-soft-margins",
        "Q-soft margins as multiples of their values at separation",
        "ln 1/L",
        "γ̃(t) / γ̃(t₀)",
    )
    .logarithmic(true, true);
    for trace in uniform(&traces) {
        let fall = trace.fall(|m| trace.soft_margin(m));
        outcome.at_most(format!("{}: largest relative fall of the Q-soft margin", trace.what), fall, 1e-12);
        let Some((first, last)) = trace.ends() else {
            outcome.push(format!("{}: the run", trace.what), "reaches its end", "stopped early", false);
            continue;
        };
        let rise = trace.soft_margin(last) / trace.soft_margin(first);
        outcome.at_least(format!("{}: growth of the Q-soft margin since separation", trace.what), rise, 1.5);
        for m in &trace.moments {
            energy = smaller(energy, 1.0 - m.outward.powi(2) / (m.position * m.climb));
            below = smaller(below, slope(trace, m) - m.growth(trace.degree));
        }
        // the slope at points is the slope of what was measured; from L = 1 on it falls too fast for the trapezium rule
        let late = &trace.moments[trace.moments.partition_point(|m| m.u < 1.0)..];
        let promised: f64 = late
            .windows(2)
            .map(|pair| {
                0.5 * (slope(trace, &pair[0]) + slope(trace, &pair[1])) * (pair[1].conjugate / pair[0].conjugate).ln()
            })
            .sum();
        let gained = match (late.first(), late.last()) {
            (Some(first), Some(last)) => (trace.soft_margin(last) / trace.soft_margin(first)).ln(),
            _ => f64::NAN,
        };
        consistent = larger(consistent, (promised / gained - 1.0).abs());
        if trace.what.starts_with("two") && trace.what.ends_with("seed 0") {
            let start = trace.soft_margin(first);
            let points = trace.moments.iter().step_by(5).map(|m| [m.u, trace.soft_margin(m) / start]).collect();
            sketch = sketch.curve(trace.flow.clone(), points);
        }
    }
    outcome.at_least("share of runs that separate their data", traces.len() as f64 / planned(lab) as f64, 0.5);
    if traces.len() < planned(lab) {
        let left = planned(lab) - traces.len();
        outcome.note(format!(
            "{left} more starts lead to stationary points with L > 1, of which the theorem says nothing."
        ));
    }
    outcome.at_least("E_tan Q/‖θ̇‖² = 1 − β², least over all steps", energy, -1e-14);
    outcome.at_least("d ln γ̃/d ln Q minus the bound of Lemma D.1, least over all steps", below, -1e-12);
    outcome.at_most("growth of ln γ̃ from ln 1/L = 1 on against the integral of its slope, relative", consistent, 0.01);
    outcome.sketch(sketch);
    Ok(outcome)
}

/// ln of both sides of the lemma at every moment but the first: ∫ v^{α/L−2} e^v dv from u(t₀), and L² γ̃(t₀)^{α/L} (t −
/// t₀).
fn sides(trace: &Trace) -> Vec<[f64; 2]> {
    let Some(first) = trace.moments.first() else { return Vec::new() };
    let power = trace.alpha / trace.degree;
    let constant = 2.0 * trace.degree.ln() + power * trace.soft_margin(first).ln();
    let course: Vec<[f64; 2]> = trace.moments.iter().map(|m| [m.u, m.log_time]).collect();
    loss_bound_sides(&course, constant, |v| (power - 2.0) * v.ln() + v)
}

fn loss_bound(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let (mut least, mut loss, mut growth) = (f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY);
    for trace in uniform(&traces) {
        let sides = sides(trace);
        // t − t₀ is a difference of two times, exact only after some steps
        least = sides.iter().skip(5).map(|[left, right]| left - right).fold(least, smaller);
        let (Some((first, last)), Some([left, right])) = (trace.ends(), sides.last()) else {
            outcome.push(format!("{}: the run", trace.what), "reaches its end", "stopped early", false);
            continue;
        };
        loss = larger(loss, -last.u);
        growth = smaller(growth, last.conjugate / first.conjugate);
        // dG/dt = L² γ̃^{α/L} (Σ rᵢqᵢ/u)² (αQ/p²)/β², and t is made of its last moments
        let power = trace.alpha / trace.degree;
        let limit = power * (trace.soft_margin(last) / trace.soft_margin(first)).ln()
            + 2.0 * (last.mean_margin / last.u / last.beta()).ln()
            + (trace.alpha * last.conjugate / last.position).ln();
        let name = format!("{}: ratio of the sides at ln 1/L = {:.0} over what β and γ̃ there say", trace.what, last.u);
        outcome.near(name, (left - right - limit).exp(), 1.0, 0.1);
    }
    outcome.at_least("ln of the integral minus ln of L² γ̃(t₀)^(α/L) (t − t₀), least over all steps", least, -1e-6);
    outcome.at_most("ln L at the end, largest", loss, -29.0);
    outcome.at_least("Q at the end over Q at separation, least", growth, 1.05);
    Ok(outcome)
}
