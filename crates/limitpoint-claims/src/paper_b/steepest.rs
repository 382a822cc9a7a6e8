//! The steepest step, and steepest descent on losses with a finite root.

use super::{distance, larger, path, values};
use crate::{Claim, ClaimError, Finished, Lab, Outcome, Sketch};
use limitpoint::linalg::dot;
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::observers::StopReason;
use limitpoint::params::ParamLayout;
use limitpoint::reference::{InterpolationTarget, interpolate};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "B.eq11",
        covers: &["B.eq12"],
        statement: "The steepest step Δ has ‖Δ‖ = ‖g‖_* and ⟨Δ, −g⟩ = ‖g‖_*², so that −g ∈ ∂½‖Δ‖², in every norm",
        try_out: step,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.ex4",
        covers: &["B.fig1c"],
        statement: "Steepest descent in ℓ4/3 ends at a solution that depends on the step size, and even its flow misses \
                    the solution of smallest ℓ4/3 norm (Figure 1c)",
        experiments: &["b-example-4"],
        try_out: four_thirds,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.lem18",
        covers: &["B.thm20", "B.thm21"],
        statement: "Subgradients of a norm at v ≠ 0 are the z with ‖z‖_* = 1 and ⟨z, v⟩ = ‖v‖, and z ∈ ∂½‖v‖² if and \
                    only if v ∈ ∂½‖z‖_*²; Stolz and Cesàro's theorem on the sequences the proofs use",
        try_out: subdifferentials,
        ..Claim::FORMULA
    },
];

fn layouts() -> Result<Vec<ParamLayout>, ClaimError> {
    let matrix = ParamLayout::new([("w", 4, 3)])?;
    Ok(vec![ParamLayout::vector(7), matrix])
}

/// Calls a measure on every norm of every layout with random gradients; keeps the worst.
fn worst_over_norms(
    lab: &Lab,
    measure: impl Fn(&mut dyn limitpoint::norms::Norm, &[f64], &[f64]) -> f64,
) -> Result<(f64, usize), ClaimError> {
    let (mut worst, mut count) = (0.0f64, 0);
    for layout in layouts()? {
        for spec in NormSpec::examples(&layout) {
            let (mut norm, mut stream) = (spec.build(&layout)?, Streams::new(5).stream(&spec.to_string()));
            let (mut g, mut v) = (vec![0.0; layout.len()], vec![0.0; layout.len()]);
            for _ in 0..lab.choose(50, 1000) {
                stream.fill_normal(&mut g);
                stream.fill_normal(&mut v);
                let miss = measure(&mut *norm, &g, &v);
                worst = larger(worst, miss);
                count += 1;
            }
        }
    }
    Ok((worst, count))
}

fn step(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let length = worst_over_norms(lab, |norm, g, _| {
        let mut delta = vec![0.0; g.len()];
        let dual = norm.steepest_direction(g, &mut delta);
        (norm.value(&delta) / dual - 1.0).abs()
    })?;
    outcome.at_most(format!("|‖Δ‖/‖g‖_* − 1| over {} random gradients", length.1), length.0, 1e-10).by_theory();
    let slope = worst_over_norms(lab, |norm, g, _| {
        let mut delta = vec![0.0; g.len()];
        let dual = norm.steepest_direction(g, &mut delta);
        (-dot(&delta, g) / (dual * dual) - 1.0).abs()
    })?;
    outcome.at_most(format!("|⟨Δ, −g⟩/‖g‖_*² − 1| over {} random gradients", slope.1), slope.0, 1e-10).by_theory();
    // the minimiser of ⟨g, v⟩ + ½‖v‖² has the value −½‖g‖_*², which no other v undercuts
    let optimal = worst_over_norms(lab, |norm, g, v| {
        let dual = norm.dual(g);
        let size = norm.value(v);
        // best multiple of v
        let scale = (-dot(g, v) / (size * size)).max(0.0);
        let value = scale * dot(g, v) + 0.5 * (scale * size).powi(2);
        ((-0.5 * dual * dual - value) / (dual * dual)).max(0.0)
    })?;
    outcome
        .at_most(format!("by how much one of {} random directions does better", optimal.1), optimal.0, 1e-12)
        .by_theory();
    outcome.note("The text states the optimality condition without the ½ in ½‖Δ‖².");
    Ok(outcome)
}

/// First coordinates of limits computed for the catalogue of claims.
const REPLICA: [(f64, f64); 6] =
    [(0.001, 0.283861), (0.01, 0.295684), (0.05, 0.361810), (0.08, 0.440168), (0.1, 0.337062), (0.15, -1.114728)];

/// The path and the end of Example 4 at a rate.
fn descend(lab: &Lab, rate: f64) -> Result<(Vec<[f64; 2]>, Finished), ClaimError> {
    let tasks = lab.tasks("b-example-4", &[format!("schedule=constant(rate={rate})")])?;
    path(lab, &tasks[0], if rate < 0.005 { 20 } else { 1 }, 4000.0)
}

fn four_thirds(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut sketch = Sketch::new("figure-1c", "Figure 1c: steepest descent in ℓ4/3", "w₁", "w₂")
        .window([-1.4, 1.4], [-0.3, 5.9])
        .reference("solutions (10 − 2s, s, s − 9)", vec![[-1.4, 5.7], [1.4, 4.3]]);
    let mut first = None;
    for (rate, expected) in REPLICA {
        let (path, end) = descend(lab, rate)?;
        outcome.near(format!("first coordinate of the limit at η = {rate}"), end.params[0], expected, 1e-6);
        let s = end.params[1];
        let off = distance(&end.params, &[10.0 - 2.0 * s, s, s - 9.0]);
        outcome.at_most(format!("distance to the solutions at η = {rate}"), off, 1e-8).by_theory();
        if [0.01, 0.05, 0.1, 0.15].contains(&rate) {
            sketch = sketch.curve(format!("η = {rate}"), path);
        }
        first.get_or_insert(end);
    }
    let diverging = descend(lab, 0.2)?.1;
    let words = diverging.reason.to_string();
    let said = matches!(diverging.reason, StopReason::NotFinite { .. });
    outcome.event("η = 0.2", "diverges, and says so", words, said);
    let tasks = lab.tasks::<&str>("b-example-4", &[])?;
    let (path, flow) = path(lab, &tasks[1], 1, f64::INFINITY)?;
    outcome.point("limit of the flow", &flow.params, &[0.2825957, 4.8587022, -4.1412979], 1e-6);
    let Some(run) = first else { return Ok(outcome) };
    let target = InterpolationTarget::Norm(NormSpec::Lp { p: 4.0 / 3.0 });
    let judge = interpolate(&*run.data.dense()?, values(&run.data), &target, &ParamLayout::vector(3), None)?;
    let replica = [0.000230045, 4.999884977, -4.000115023];
    outcome.point("the judge's solution of smallest ℓ4/3 norm", &judge.weights, &replica, 1e-8);
    outcome.near("its norm", judge.objective, 7.583650625, 1e-8);
    outcome.at_least("distance of the flow's limit to it", distance(&flow.params, &judge.weights), 0.28);
    let miss = |rate: f64| -> Result<f64, ClaimError> { Ok(descend(lab, rate)?.1.params[0] - flow.params[0]) };
    outcome.near("ratio of the errors at η = 0.004 and 0.002", miss(4e-3)? / miss(2e-3)?, 2.0, 0.05);
    sketch = sketch.curve("flow, η → 0", path).dot("limit of the flow", [flow.params[0], flow.params[1]]);
    sketch = sketch.dot("smallest ℓ4/3 norm", [judge.weights[0], judge.weights[1]]).dot("start", [0.0, 0.0]);
    outcome.sketch(sketch);
    Ok(outcome)
}

fn subdifferentials(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    // the projection of any vector onto ∂‖v‖ must satisfy both equations
    let (tied, count) = worst_over_norms(lab, |norm, g, v| {
        let mut z = vec![0.0; v.len()];
        norm.project_subdifferential(v, g, 0.0, &mut z);
        let size = norm.value(v);
        larger((norm.dual(&z) - 1.0).abs(), (dot(&z, v) / size - 1.0).abs())
    })?;
    outcome.at_most(format!("‖z‖_* = 1 and ⟨z, v⟩ = ‖v‖ of {count} projections onto ∂‖v‖"), tied, 1e-9).by_theory();
    let (young, count) = worst_over_norms(lab, |norm, g, _| {
        // v = −Δ(z) ∈ ∂½‖z‖_*², and then z ∈ ∂½‖v‖²: ½‖v‖² + ½‖z‖_*² = ⟨v, z⟩
        let mut v = vec![0.0; g.len()];
        let dual = norm.steepest_direction(g, &mut v);
        let value = norm.value(&v);
        ((0.5 * value * value + 0.5 * dual * dual + dot(&v, g)) / (dual * dual)).abs()
    })?;
    outcome.at_most(format!("½‖v‖² + ½‖z‖_*² − ⟨v, z⟩ for {count} pairs, relative"), young, 1e-10).by_theory();
    // aₜ/bₜ tends to the limit of Δa/Δb for increasing, divergent b: with b = Σ 1/u and a = Σ (2 + 1/√u)/u
    let (mut a, mut b) = (0.0, 0.0);
    let mut ratios = Vec::new();
    for u in 1..=4_000_000u32 {
        let h = 1.0 / f64::from(u);
        b += h;
        a += (2.0 + f64::from(u).sqrt().recip()) * h;
        if [40, 4_000, 4_000_000].contains(&u) {
            ratios.push(a / b - 2.0);
        }
    }
    let falls = ratios[0] > ratios[1] && ratios[1] > ratios[2] && ratios[2] > 0.0;
    let words = format!("{:.3}, {:.3}, {:.3}", ratios[0], ratios[1], ratios[2]);
    outcome.push(
        "Σ(2 + u^−½)/u over Σ 1/u, minus 2, at t = 40, 4·10³, 4·10⁶",
        "falls to 0",
        words,
        falls && ratios[2] < 0.2,
    );
    outcome.note("The second item is printed without the ½ and squares, and the first one needs v ≠ 0.");
    Ok(outcome)
}
