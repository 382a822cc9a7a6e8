//! The steepest step, and steepest descent on losses with a finite root.

use super::{distance, larger, path, smallest_solution, task};
use crate::{Claim, ClaimError, Finished, Lab, Outcome, Sketch};
use limitpoint::linalg::dot;
use limitpoint::norms::{Norm, NormSpec};
use limitpoint::numeric::Streams;
use limitpoint::observers::StopReason;
use limitpoint::params::ParamLayout;

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

/// What a measure says of every norm on two layouts with random gradients g and vectors v.
fn over_norms<const N: usize>(
    lab: &Lab,
    measure: impl Fn(&mut dyn Norm, &[f64], &[f64]) -> [f64; N],
) -> Result<Vec<[f64; N]>, ClaimError> {
    let mut found = Vec::new();
    for layout in [ParamLayout::vector(7), ParamLayout::new([("w", 4, 3)])?] {
        for spec in NormSpec::examples(&layout) {
            let (mut norm, mut stream) = (spec.build(&layout)?, Streams::new(5).stream(&spec.to_string()));
            let (mut g, mut v) = (vec![0.0; layout.len()], vec![0.0; layout.len()]);
            for _ in 0..lab.choose(50, 1000) {
                stream.fill_normal(&mut g);
                stream.fill_normal(&mut v);
                found.push(measure(&mut *norm, &g, &v));
            }
        }
    }
    Ok(found)
}

fn step(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let found = over_norms(lab, |norm, g, v| {
        let mut delta = vec![0.0; g.len()];
        let dual = norm.steepest_direction(g, &mut delta);
        let length = (norm.value(&delta) / dual - 1.0).abs();
        let slope = (-dot(&delta, g) / (dual * dual) - 1.0).abs();
        // the minimiser of ⟨g, v⟩ + ½‖v‖² has the value −½‖g‖_*², which no other v, best scaled, undercuts
        let (dual, size) = (norm.dual(g), norm.value(v));
        let scale = (-dot(g, v) / (size * size)).max(0.0);
        let value = scale * dot(g, v) + 0.5 * (scale * size).powi(2);
        [length, slope, ((-0.5 * dual * dual - value) / (dual * dual)).max(0.0)]
    })?;
    let count = found.len();
    for (place, what, tolerance) in [
        (0, format!("|‖Δ‖/‖g‖_* − 1| over {count} random gradients"), 1e-10),
        (1, format!("|⟨Δ, −g⟩/‖g‖_*² − 1| over {count} random gradients"), 1e-10),
        (2, format!("by how much one of {count} random directions does better"), 1e-12),
    ] {
        outcome.largest(what, found.iter().map(|misses| misses[place]), tolerance).by_theory();
    }
    outcome.note("The text states the optimality condition without the ½ in ½‖Δ‖².");
    Ok(outcome)
}

/// First coordinates of limits computed for the catalogue of claims.
const REPLICA: [(f64, f64); 6] =
    [(0.001, 0.283861), (0.01, 0.295684), (0.05, 0.361810), (0.08, 0.440168), (0.1, 0.337062), (0.15, -1.114728)];

/// The path and the end of Example 4 at a rate.
fn descend(lab: &Lab, rate: f64) -> Result<(Vec<[f64; 2]>, Finished), ClaimError> {
    let task = task(lab, "b-example-4", &format!("schedule=constant(rate={rate})"))?;
    path(lab, &task, if rate < 0.005 { 20 } else { 1 }, 4000.0)
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
    let reason = descend(lab, 0.2)?.1.run.reason;
    let said = matches!(reason, StopReason::NotFinite { .. });
    outcome.event("η = 0.2", "diverges, and says so", reason.to_string(), said);
    let (path, flow) = path(lab, &lab.tasks::<&str>("b-example-4", &[])?[1], 1, f64::INFINITY)?;
    outcome.point("limit of the flow", &flow.params, &[0.2825957, 4.8587022, -4.1412979], 1e-6);
    let Some(run) = first else { return Ok(outcome) };
    let judge = smallest_solution(&run.data, NormSpec::Lp { p: 4.0 / 3.0 }, &ParamLayout::vector(3))?;
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
    let found = over_norms(lab, |norm, g, v| {
        let mut z = vec![0.0; v.len()];
        norm.project_subdifferential(v, g, 0.0, &mut z);
        let tied = larger((norm.dual(&z) - 1.0).abs(), (dot(&z, v) / norm.value(v) - 1.0).abs());
        // w = −Δ(g) ∈ ∂½‖g‖_*², and then g ∈ ∂½‖w‖²: ½‖w‖² + ½‖g‖_*² = ⟨w, g⟩
        let mut w = vec![0.0; g.len()];
        let dual = norm.steepest_direction(g, &mut w);
        let value = norm.value(&w);
        [tied, ((0.5 * value * value + 0.5 * dual * dual + dot(&w, g)) / (dual * dual)).abs()]
    })?;
    let what = format!("‖z‖_* = 1 and ⟨z, v⟩ = ‖v‖ of {} projections onto ∂‖v‖", found.len());
    outcome.largest(what, found.iter().map(|[tied, _]| *tied), 1e-9).by_theory();
    let what = format!("½‖v‖² + ½‖z‖_*² − ⟨v, z⟩ for {} pairs, relative", found.len());
    outcome.largest(what, found.iter().map(|[_, young]| *young), 1e-10).by_theory();
    // aₜ/bₜ tends to the limit of Δa/Δb for increasing, divergent b: with b = Σ 1/u and a = Σ (2 + 1/√u)/u
    let (mut a, mut b, mut ratios) = (0.0, 0.0, Vec::new());
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
    let what = "Σ(2 + u^−½)/u over Σ 1/u, minus 2, at t = 40, 4·10³, 4·10⁶";
    outcome.push(what, "falls to 0", words, falls && ratios[2] < 0.2);
    outcome.note("The second item is printed without the ½ and squares, and the first one needs v ≠ 0.");
    Ok(outcome)
}
