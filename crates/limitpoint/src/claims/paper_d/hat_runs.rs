//! Appendix I in training: what a run on the Mexican hat shows, and what stop rules and certificates say of it.

use crate::certificates::{Doubt, Measure, RunClaim, Subject, Tolerances, Verdict, decide};
use crate::claims::arithmetic::largest_fall;
use crate::claims::{ClaimError, Finished, Lab, Outcome, Sketch};
use crate::diagnostics::{DirectionCourse, angle};
use crate::norms::NormSpec;
use crate::observers::{Spacing, StopReason, StopRule};

/// What is seen of a run.
struct Seen {
    log_rho: f64,
    unit: [f64; 3],
    margin: f64,
}

/// The built-in run: the margin converges, the direction does not.
pub(super) fn training(
    lab: &Lab,
    outcome: &mut Outcome,
    spiral: Vec<[f64; 2]>,
) -> Result<Option<DirectionCourse>, ClaimError> {
    let mut sketch = Sketch::new("d-hat-spiral", "Direction (x, y)/ρ on the Mexican hat", "x/ρ", "y/ρ")
        .window([-1.67, 1.67], [-1.15, 1.15]) // the shape of the drawing, so that circles are round
        .reference("equator", (0..=360).map(|k| f64::from(k).to_radians()).map(|t| [t.cos(), t.sin()]).collect())
        .curve("along φ = 1/(1 − r²)", spiral);
    let mut found = None;
    for task in lab.tasks("d-hat", &[] as &[&str])? {
        let mut seen: Vec<Seen> = Vec::new();
        let spacing = Spacing::Logarithmic { per_decade: 100 };
        let end = lab.watch(
            &task,
            |step| spacing.includes(step),
            |snapshot| {
                let point = &snapshot.point;
                let rho = point.length();
                let unit = [0, 1, 2].map(|k| point.params[k] / rho);
                let margin = point.smallest_margin() / rho.powf(point.degree());
                seen.push(Seen { log_rho: rho.ln(), unit, margin });
            },
        )?;
        let reached = end.reached_its_loss();
        outcome.push(
            "run",
            "reaches its loss",
            format!("log10 L = {:.1}", end.log_loss / std::f64::consts::LN_10),
            reached,
        );
        outcome.at_most(
            "run: largest relative fall of the margin",
            largest_fall(seen.iter().map(|at| at.margin)),
            1e-12,
        );
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else { continue };
        outcome.near("run: normalised margin at the end", last.margin, 1.0, 1e-3);
        let halfway = seen.iter().find(|at| at.log_rho >= 0.5 * last.log_rho).map_or(f64::NAN, |at| at.margin);
        outcome.at_most(
            "run: what the margin gained while ln ρ doubled for the last time",
            last.margin - halfway,
            1e-4,
        );
        let path: Vec<[f64; 2]> = std::iter::once([first.log_rho, 0.0])
            .chain(seen.windows(2).map(|pair| [pair[1].log_rho, angle(&pair[0].unit, &pair[1].unit)]))
            .collect();
        outcome.at_least("run: length of the direction's path, rad", path.iter().map(|at| at[1]).sum(), 4.0);
        let course = DirectionCourse::of(&path);
        let words = course.map_or("too short".to_owned(), |course| course.to_string());
        outcome.push(
            "run: the path of the direction",
            "shows no end",
            words,
            course.is_some_and(|course| course.wanders()),
        );
        sketch = sketch.curve("trained in double precision", seen.iter().map(|at| [at.unit[0], at.unit[1]]).collect());
        sketch =
            sketch.dot("start", [first.unit[0], first.unit[1]]).dot("end of training", [last.unit[0], last.unit[1]]);
        stationary(outcome, &end, course)?;
        found = course;
    }
    outcome.sketch(sketch);
    outcome.note(
        "Rounding takes the trained weights off φ = 1/(1 − r²) to the bottom of the groove, φ − 1/(1 − r²) → π/2, where the \
         direction goes around too, more slowly (X.22).",
    );
    Ok(found)
}

/// Every limit point is a KKT point, so the point alone is certified; with its path it is not a limit.
fn stationary(outcome: &mut Outcome, end: &Finished, course: Option<DirectionCourse>) -> Result<(), ClaimError> {
    let claim = RunClaim::StationaryMargin { measure: Measure::Norm(NormSpec::L2) };
    let subject = Subject { data: &end.data, model: &end.task.recipe.model, weights: &end.params, start: None };
    let verdict = match decide(&claim, &Tolerances::default(), &subject) {
        Ok((_, verdict)) => verdict,
        Err(error) => {
            outcome.push("certificate of the last point", "is made", error.to_string(), false);
            return Ok(());
        }
    };
    outcome.push(
        "certificate of the last point, alone",
        "certified",
        verdict.to_string(),
        verdict == Verdict::Certified,
    );
    let whole = verdict.after(&claim, course.as_ref());
    let doubt = whole == Verdict::Inconclusive(Doubt::NoLimitDirection);
    outcome.push("certificate of the run", "inconclusive: no limit direction", whole.to_string(), doubt);
    Ok(())
}

/// What stop rules and paths say of this run and of runs whose directions converge.
pub(super) fn answers(lab: &Lab, outcome: &mut Outcome, course: Option<DirectionCourse>) -> Result<(), ClaimError> {
    for angle in [0.01, 0.001] {
        for end in lab.run("d-hat", &[format!("stop.direction={angle}")])? {
            let told = matches!(end.reason, StopReason::NoLimitDirection { .. });
            let what = format!("stop rule that waits for a turn below {angle} per doubling of ρ");
            outcome.push(what, "answers that there is no limit direction", end.reason.to_string(), told);
        }
    }
    let ordinary = [
        ("linear", "model=linear", "data=gaussians(count=8, dimension=5, margin=0.5)", "stop.log10_loss=-1000000"),
        // of many examples the explicit integrator would need steps in proportion to ln 1/L
        (
            "two layers",
            "model.widths=[8]",
            "data=points(inputs=[[1.0, 0.5, -0.3]], labels=[1.0])",
            "stop.log10_loss=-1e16",
        ),
    ];
    for (name, model, more, far) in ordinary {
        for task in lab.tasks("d-flows", &[model, more, far])? {
            let (mut path, mut before): (Vec<[f64; 2]>, Vec<f64>) = (Vec::new(), Vec::new());
            let spacing = Spacing::Logarithmic { per_decade: 100 };
            let end = lab.watch(
                &task,
                |step| spacing.includes(step),
                |snapshot| {
                    let params = snapshot.point.params;
                    if snapshot.point.log_loss <= DirectionCourse::BEGIN {
                        let turn = if before.is_empty() { 0.0 } else { angle(&before, params) };
                        path.push([snapshot.point.length().ln(), turn]);
                        before = params.to_vec();
                    }
                },
            )?;
            let judged = DirectionCourse::of(&path);
            let words = judged.map_or_else(|| format!("too short, {}", end.reason), |course| course.to_string());
            let ends = judged.is_some_and(|course| !course.wanders());
            outcome.push(format!("{name}: the path of the direction"), "comes to an end", words, ends);
        }
        for end in lab.run("d-flows", &[model, more, far, "stop.direction=0.01"])? {
            let told = matches!(end.reason, StopReason::Rule(StopRule::DirectionConverged { .. }));
            let what = format!("{name}: stop rule that waits for a turn below 0.01 per doubling of ρ");
            outcome.push(what, "answers that the direction converged", end.reason.to_string(), told);
        }
    }
    if let Some(course) = course {
        outcome.note(format!("Of the built-in run: {course}."));
    }
    Ok(())
}
