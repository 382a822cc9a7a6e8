//! Natural gradient descent: mirror descent in the limit of small steps only.

use super::{distance, larger, limit_of_offset, path, plane_figure};
use crate::{Claim, ClaimError, Finished, Lab, Outcome};
use limitpoint::experiments::Task;
use limitpoint::models::Initialiser;

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "B.eq10",
        covers: &["B.eq9"],
        statement: "Natural gradient flow and mirror flow are the same curve; the limits of natural gradient descent \
                    tend to theirs linearly in the step size",
        experiments: &["b-example-3", "b-bregman"],
        try_out: flows,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.ex3",
        covers: &["B.fig1b"],
        statement: "With finite steps natural gradient descent ends at a solution that depends on the step size \
                    (Figure 1b)",
        experiments: &["b-example-3"],
        try_out: finite_steps,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.prop3a",
        statement: "One finite natural gradient step before the flow moves the limit, by a dual offset with a closed form",
        experiments: &["b-example-3"],
        try_out: one_step,
        ..Claim::FORMULA
    },
];

/// Example 3 at a rate; descent comes first, flows after it.
fn descent(lab: &Lab, rate: f64) -> Result<Task, ClaimError> {
    super::task(lab, "b-example-3", &format!("schedule=constant(rate={rate})"))
}

fn flow(lab: &Lab, name: &str, overrides: &[String]) -> Result<Task, ClaimError> {
    Ok(lab.tasks_of("b-example-3", overrides, &[name])?.remove(0))
}

/// The weights after one step.
fn first_step(lab: &Lab, rate: f64) -> Result<Vec<f64>, ClaimError> {
    let mut task = descent(lab, rate)?;
    task.recipe.stop.steps = Some(1);
    Ok(lab.finish(&task)?.run.params)
}

fn run(lab: &Lab, rate: f64) -> Result<Finished, ClaimError> {
    lab.finish(&descent(lab, rate)?)
}

fn flows(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    // mirror flow keeps 2 log w₁ − log w₂; natural gradient flow does as well as it is integrated
    let mut drifts = Vec::new();
    for (relative, absolute) in [(1e-6, 1e-9), (1e-9, 1e-12), (1e-12, 1e-14)] {
        let overrides = [format!("tolerance={{relative={relative}, absolute={absolute}}}")];
        let (path, end) = path(lab, &flow(lab, "natural-flow", &overrides)?, 1, f64::INFINITY)?;
        drifts.push(path.iter().map(|w| (2.0 * w[0].ln() - w[1].ln()).abs()).fold(0.0, larger));
        if relative == 1e-12 {
            outcome.point("limit of natural gradient flow", &end.params, &[0.5, 0.25], 1e-8);
        }
    }
    outcome.at_most("distance of natural gradient flow from the curve of mirror flow, in the dual", drifts[2], 1e-10);
    let falls = drifts[0] > drifts[1] && drifts[1] > drifts[2];
    let words = format!("{:.1e}, {:.1e}, {:.1e}", drifts[0], drifts[1], drifts[2]);
    outcome.push("the same at tolerances 1e-6, 1e-9, 1e-12", "falls with the tolerance", words, falls);
    let mirror = lab.finish(&flow(lab, "flow", &[])?)?;
    outcome.point("limit of mirror flow", &mirror.params, &[0.5, 0.25], 1e-8);
    // four equations in eight unknowns
    let limit = |flow: &str| -> Result<Vec<f64>, ClaimError> {
        let flow = format!("flows={{f={{{flow}={{potential=\"entropy\"}}}}}}");
        let overrides = [flow.as_str(), "tolerance={relative=1e-12, absolute=1e-14}"];
        Ok(lab.finish(&lab.tasks_of("b-bregman", &overrides, &["f"])?[0])?.run.params)
    };
    let apart = distance(&limit("mirror")?, &limit("natural-gradient")?);
    outcome.at_most("four equations in eight unknowns: distance of the two flows' limits", apart, 1e-8);
    let miss = |rate: f64| -> Result<f64, ClaimError> { Ok(run(lab, rate)?.params[0] - 0.5) };
    let (coarse, fine) = (miss(2e-3)?, miss(1e-3)?);
    outcome.near("ratio of the limits' errors at η = 0.002 and 0.001", coarse / fine, 2.0, 0.05);
    Ok(outcome)
}

/// Limits computed for the catalogue of claims, to six digits.
const REPLICA: [(f64, [f64; 2]); 8] = [
    (0.1, [0.6, 0.2]),
    (0.12, [0.810235, 0.094882]),
    (0.08, [0.543679, 0.228160]),
    (0.05, [0.514990, 0.242505]),
    (0.02, [0.504295, 0.247853]),
    (0.01, [0.501987, 0.249007]),
    (1e-3, [0.500187, 0.249907]),
    (1e-4, [0.500019, 0.249991]),
];

fn finite_steps(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for (rate, expected) in REPLICA {
        outcome.point(format!("limit at η = {rate}"), &run(lab, rate)?.params, &expected, 1e-6);
    }
    outcome.point("the first step at η = 0.1", &first_step(lab, 0.1)?, &[0.6, 0.2], 1e-15).by_theory();
    let refused = run(lab, 0.125);
    let words = refused.as_ref().err().map_or_else(|| "it ran".to_owned(), ToString::to_string);
    outcome.push("η = 1/8, whose first step reaches w₂ = 0", "an error that names the entry", words, refused.is_err());
    let mut sketch = plane_figure("figure-1b", "Figure 1b: natural gradient descent");
    for rate in [0.12, 0.1, 0.08, 0.05, 0.01] {
        sketch = sketch.curve(format!("η = {rate}"), path(lab, &descent(lab, rate)?, 1, 1000.0)?.0);
    }
    let (path, end) = path(lab, &flow(lab, "flow", &[])?, 1, f64::INFINITY)?;
    sketch = sketch.curve("flow, η → 0", path).dot("limit of the flow", [end.params[0], end.params[1]]);
    outcome.sketch(sketch.dot("smallest relative entropy to the start", [0.5, 0.25]).dot("start", [1.0, 1.0]));
    Ok(outcome)
}

fn one_step(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for rate in [0.05f64, 0.1, 0.12, 0.01] {
        let w = first_step(lab, rate)?;
        let offset = (16.0 * rate * rate / (1.0 - 8.0 * rate)).ln_1p();
        let what = format!("dual offset after one step of η = {rate}");
        outcome.near(what, 2.0 * w[0].ln() - w[1].ln(), offset, 1e-12).by_theory();
        let mut task = flow(lab, "flow", &[])?;
        task.recipe.initialiser = Initialiser::Given { values: w };
        let end = lab.finish(&task)?;
        let what = format!("limit of the flow after one step of η = {rate}");
        outcome.point(what, &end.params, &limit_of_offset(offset)?, 1e-8);
        if rate == 0.05 {
            outcome.point("the same (the catalogue's replica)", &end.params, &[0.510794, 0.244603], 1e-6);
        }
    }
    outcome.note(
        "The appendix has the step size inside its residual r and multiplies by it again; r = 2(1 − ⟨w₀, x⟩) = −4 here.",
    );
    Ok(outcome)
}
