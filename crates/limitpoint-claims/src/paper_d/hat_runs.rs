//! Appendix I in training: what a run on the Mexican hat shows, and what stop rules and certificates say of it.

use super::hat::disc;
use crate::{ClaimError, Columns, Finished, Lab, Moments, Outcome, Series, measures};
use limitpoint::certificates::{Doubt, Measure, RunClaim, Subject, Tolerances, Verdict, decide};
use limitpoint::diagnostics::{DirectionCourse, angle};
use limitpoint::norms::NormSpec;
use limitpoint::observers::{StopReason, StopRule};

/// `log_rho`, and `turn`: the angle between the direction here and at the moment before, in radians.
fn path() -> Columns {
    Columns::new(["log_rho", "turn"], |_| {
        let mut before: Vec<f64> = Vec::new();
        Ok(Box::new(move |seen, out| {
            let params = seen.point.params;
            let turn = if before.is_empty() { 0.0 } else { angle(&before, params) };
            before = params.to_vec();
            out.extend([seen.point.length().ln(), turn]);
        }))
    })
}

/// What the path of the direction says.
fn course(flow: &Series) -> Option<DirectionCourse> {
    DirectionCourse::of(&flow.rows(["log_rho", "turn"]))
}

/// The built-in run: the margin converges, the direction does not.
pub(super) fn training(
    lab: &Lab,
    outcome: &mut Outcome,
    spiral: Vec<[f64; 2]>,
) -> Result<Option<DirectionCourse>, ClaimError> {
    let task = lab.tasks::<&str>("d-hat", &[])?.remove(0);
    let unit = |name: &str, k: usize| Columns::one(name, move |seen| seen.point.params[k] / seen.point.length());
    let columns = vec![measures::margins(NormSpec::L2), path(), unit("x", 0), unit("y", 1)];
    let flow = lab.series(&task, Moments::per_decade(100), columns)?;
    let words = format!("log10 L = {:.1}", flow.end.log_loss / std::f64::consts::LN_10);
    outcome.push("run", "reaches its loss", words, flow.end.reached_its_loss());
    let margins = flow.column("margin");
    outcome.never_falls("run: largest relative fall of the margin", margins, 1e-12).by_theory();
    outcome.near("run: normalised margin at the end", flow.last("margin"), 1.0, 1e-3);
    let halfway = flow.value_where("margin", "log_rho", |log_rho| log_rho >= 0.5 * flow.last("log_rho"));
    let gained = flow.last("margin") - halfway;
    outcome.at_most("run: what the margin gained while ln ρ doubled for the last time", gained, 1e-4);
    outcome.at_least("run: length of the direction's path, rad", flow.column("turn").iter().sum(), 4.0);
    let course = course(&flow);
    let words = course.map_or("too short".to_owned(), |course| course.to_string());
    let wanders = course.is_some_and(|course| course.wanders());
    outcome.push("run: the path of the direction", "shows no end", words, wanders);
    stationary(outcome, &flow.end, course);
    let sketch = disc("d-hat-spiral", "Direction (x, y)/ρ on the Mexican hat")
        .curve("along φ = 1/(1 − r²)", spiral)
        .curve("trained in double precision", flow.curve("x", "y", 1))
        .dot("start", ["x", "y"].map(|name| flow.first(name)))
        .dot("end of training", ["x", "y"].map(|name| flow.last(name)));
    outcome.sketch(sketch);
    outcome.note(
        "Rounding takes the trained weights off φ = 1/(1 − r²) to the bottom of the groove, φ − 1/(1 − r²) → π/2, where the \
         direction goes around too, more slowly (X.22).",
    );
    Ok(course)
}

/// Every limit point is a KKT point, so the point alone is certified; with its path it is not a limit.
fn stationary(outcome: &mut Outcome, end: &Finished, course: Option<DirectionCourse>) {
    let claim = RunClaim::StationaryMargin { measure: Measure::Norm(NormSpec::L2) };
    let subject = Subject { data: &end.data, model: &end.task.recipe.model, weights: &end.params, start: None };
    let verdict = match decide(&claim, &Tolerances::default(), &subject) {
        Ok((_, verdict)) => verdict,
        Err(error) => {
            outcome.push("certificate of the last point", "is made", error.to_string(), false);
            return;
        }
    };
    let certified = verdict == Verdict::Certified;
    outcome.push("certificate of the last point, alone", "certified", verdict.to_string(), certified);
    let whole = verdict.after(&claim, course.as_ref());
    let doubt = whole == Verdict::Inconclusive(Doubt::NoLimitDirection);
    outcome.push("certificate of the run", "inconclusive: no limit direction", whole.to_string(), doubt);
}

/// What stop rules and paths say of this run and of runs whose directions converge.
pub(super) fn answers(lab: &Lab, outcome: &mut Outcome, built_in: Option<DirectionCourse>) -> Result<(), ClaimError> {
    for angle in [0.01, 0.001] {
        for end in lab.run("d-hat", &[format!("stop.direction={angle}")])? {
            let told = matches!(end.reason, StopReason::NoLimitDirection { .. });
            let what = format!("stop rule that waits for a turn below {angle} per doubling of ρ");
            outcome.push(what, "answers that there is no limit direction", end.reason.to_string(), told);
        }
    }
    // of many examples the explicit integrator would need steps in proportion to ln 1/L with two layers
    let (many, one) =
        ("data=gaussians(count=8, dimension=5, margin=0.5)", "data=points(inputs=[[1.0, 0.5, -0.3]], labels=[1.0])");
    let linear = ("linear", "model=linear", many, "stop.log10_loss=-1000000");
    for (name, model, more, far) in [linear, ("two layers", "model.widths=[8]", one, "stop.log10_loss=-1e16")] {
        for task in lab.tasks("d-flows", &[model, more, far])? {
            let flow = lab.series(&task, Moments::per_decade(100).below(DirectionCourse::BEGIN), vec![path()])?;
            let judged = course(&flow);
            let words = judged.map_or_else(|| format!("too short, {}", flow.end.reason), |course| course.to_string());
            let ends = judged.is_some_and(|course| !course.wanders());
            outcome.push(format!("{name}: the path of the direction"), "comes to an end", words, ends);
        }
        for end in lab.run("d-flows", &[model, more, far, "stop.direction=0.01"])? {
            let told = matches!(end.reason, StopReason::Rule(StopRule::DirectionConverged { .. }));
            let what = format!("{name}: stop rule that waits for a turn below 0.01 per doubling of ρ");
            outcome.push(what, "answers that the direction converged", end.reason.to_string(), told);
        }
    }
    if let Some(course) = built_in {
        outcome.note(format!("Of the built-in run: {course}."));
    }
    Ok(())
}
