//! Appendix I: a smooth homogeneous model whose direction never converges.

use std::f64::consts::TAU;

use super::hat_algebra::Fraction;
use crate::certificates::{Claim as Certified, Measure, Subject, Tolerances, Verdict, judge};
use crate::claims::arithmetic::{larger, largest_fall, smaller};
use crate::claims::{Claim, ClaimError, Finished, Lab, Outcome, Sketch};
use crate::diagnostics::{DirectionCourse, angle};
use crate::linalg::Matrix;
use crate::models::{Compute, HatShape, ModelSpec};
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::observers::{Spacing, StopReason};

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "D.hat",
        covers: &["D.fig2", "D.thmI1"],
        statement: "On the Mexican hat with C = 4r⁴/(4r⁴ + (1 − r²)³) the curve φ = 1/(1 − r²) is kept by gradient flow, along it \
                    the margin converges and the direction goes around for ever; stop rules and certificates say so",
        experiments: &["d-hat", "d-flows"],
        try_out: corrected,
    },
    Claim {
        id: "D.hat.printed",
        covers: &[],
        statement: "The curve φ = 1/(1 − r²) is kept by gradient flow with C = 4r⁴/(4r⁴ + (1 − r²)⁴)",
        experiments: &[],
        try_out: printed,
    },
];

/// r² of the radii 0.3, 0.5, 0.7 and 0.85.
const SQUARES: [(i128, i128); 4] = [(9, 100), (1, 4), (49, 100), (289, 400)];

/// r⁻²C and 4r²s³(1 − C) at r² = `square`: e^s dφ/dτ and e^s ds/dτ on the curve, exactly.
fn speeds((p, q): (i128, i128), exponent: u32) -> Option<[Fraction; 2]> {
    let (one, four) = (Fraction::new(1, 1)?, Fraction::new(4, 1)?);
    let square = Fraction::new(p, q)?;
    let gap = one.minus(square)?;
    let mut power = one;
    for _ in 0..exponent {
        power = power.times(gap)?;
    }
    let top = four.times(square)?.times(square)?;
    let c = top.over(top.plus(power)?)?;
    let s = one.over(gap)?;
    let rising = four.times(square)?.times(s)?.times(s)?.times(s)?.times(one.minus(c)?)?;
    Some([c.over(square)?, rising])
}

/// |dψ/dτ| on the curve relative to the sum of its two parts, exactly, then rounded; NaN where whole numbers overflow.
fn relative_drift(square: (i128, i128), exponent: u32) -> f64 {
    let drift = |[turning, rising]: [Fraction; 2]| turning.minus(rising)?.over(turning.plus(rising)?);
    speeds(square, exponent).and_then(drift).map_or(f64::NAN, |drift| drift.value().abs())
}

/// (u, v, w) on the curve at this gap 1 − r².
fn on_curve(gap: f64) -> [f64; 3] {
    let (r, s) = ((1.0 - gap).sqrt(), 1.0 / gap);
    [r * s.cos(), r * s.sin(), gap.sqrt()]
}

/// ds/dτ and dφ/dτ at a point of the unit sphere from a gradient of the model there.
fn motion([u, v, w]: [f64; 3], gradient: &[f64]) -> [f64; 2] {
    let outward = gradient[0] * u + gradient[1] * v + gradient[2] * w;
    let [du, dv, dw] = [gradient[0] - outward * u, gradient[1] - outward * v, gradient[2] - outward * w];
    [-2.0 * dw / w.powi(3), (u * dv - v * du) / (u * u + v * v)]
}

fn drifts(outcome: &mut Outcome, exponent: u32) -> Result<(), ClaimError> {
    let spec = ModelSpec::MexicanHat { degree: 1.0, exponent };
    let mut model = spec.build(&Matrix::from_rows(&[&[1.0]]), 1, Compute::default())?;
    for (p, q) in SQUARES {
        let gap = 1.0 - p as f64 / q as f64;
        let r = (1.0 - gap).sqrt();
        outcome.at_most(
            format!("r = {r:.2}: |dψ/dt| on ψ = 0 relative to its two parts, in exact fractions"),
            relative_drift((p, q), exponent),
            0.0,
        );
        let point = on_curve(gap);
        let [rising, turning] = motion(point, &model.per_example_gradients(&point, 0).data);
        outcome.at_most(
            format!("r = {r:.2}: the same from the model's gradient"),
            ((turning - rising) / (turning + rising)).abs(),
            1e-13,
        );
    }
    Ok(())
}

fn printed(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    drifts(&mut outcome, 4)?;
    outcome.note(
        "The proof multiplies ds/dr by f_r instead of (1 − r²) f_r. With the exponent 4 the relative drift is r²/(2 − r²).",
    );
    Ok(outcome)
}

fn corrected(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    gradients(&mut outcome)?;
    drifts(&mut outcome, 3)?;
    let spiral = endless(lab, &mut outcome);
    let course = training(lab, &mut outcome, spiral)?;
    answers(lab, &mut outcome, course)?;
    profile(&mut outcome);
    Ok(outcome)
}

/// The gradient against differences of the fourth order.
fn gradients(outcome: &mut Outcome) -> Result<(), ClaimError> {
    for exponent in [3, 4] {
        let spec = ModelSpec::MexicanHat { degree: 1.7, exponent };
        let mut model = spec.build(&Matrix::from_rows(&[&[1.0]]), 1, Compute::default())?;
        let mut stream = Streams::new(5).stream("points");
        let mut worst = 0.0;
        for _ in 0..500 {
            let mut theta = [0.0; 3];
            stream.fill_normal(&mut theta);
            let gradient = model.per_example_gradients(&theta, 0).data;
            let (size, step) = (crate::linalg::norm2(&gradient), 1e-3 * theta[2].abs().min(1.0));
            for k in 0..3 {
                let mut at = |shift: f64| {
                    let mut moved = theta;
                    moved[k] += shift * step;
                    model.scores(&moved)[0]
                };
                let difference = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step);
                worst = larger(worst, (difference - gradient[k]).abs() / size);
            }
        }
        outcome.at_most(
            format!("exponent {exponent}: gradient against differences, relative, 500 points"),
            worst,
            1e-7,
        );
    }
    Ok(())
}

/// Follows the flow back in time from far out to r = 0.3. Forwards ψ = 0 repels, like e^{s⁴}, and no arithmetic stays on it;
/// backwards it attracts, and every path from near it is the path that stays near it. With s as the time all numbers are of
/// size one: dψ/ds = dφ/ds − 1 and d ln ρ/ds = L (1 − f) e^s/(e^s ds/dτ). Returns the directions, from the end back.
fn endless(lab: &Lab, outcome: &mut Outcome) -> Vec<[f64; 2]> {
    let turns = lab.choose(5.0, 8.0);
    let begin: f64 = 1.0 / 0.91;
    let end = begin + turns * TAU;
    let slopes = |s: f64, psi: f64| {
        let shape = HatShape::new(1.0 / s, psi, 3);
        let rising = shape.rising();
        // (1 − f) e^s = e^s − e^s f
        [shape.turning() / rising - 1.0, (s.exp() - shape.value) / rising]
    };
    let (mut s, mut psi, mut log_rho) = (end, 0.01 / (4.0 * end.powi(3)), 0.0);
    let (mut early, mut late, mut slowest): (f64, f64, f64) = (0.0, 0.0, f64::INFINITY);
    let (mut spiral, mut marks) = (Vec::new(), vec![(end, 0.0)]);
    let mut wanted = end;
    while s > begin {
        // the curve attracts at the rate 4s³ of s
        let h = (1.0 / (4.0 * s.powi(3) + 100.0)).min(s - begin);
        let k1 = slopes(s, psi);
        let k2 = slopes(s - 0.5 * h, psi - 0.5 * h * k1[0]);
        let k3 = slopes(s - 0.5 * h, psi - 0.5 * h * k2[0]);
        let k4 = slopes(s - h, psi - h * k3[0]);
        let mean = [0, 1].map(|i| (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]) / 6.0);
        (s, psi, log_rho) = (s - h, psi - h * mean[0], log_rho - h * mean[1]);
        if end - s < 0.01 {
            early = larger(early, psi.abs());
        } else {
            late = larger(late, psi.abs());
        }
        slowest = smaller(slowest, 1.0 + mean[0]);
        if s <= wanted {
            let (r, phi) = ((1.0 - 1.0 / s).sqrt(), s + psi);
            spiral.push([r * phi.cos(), r * phi.sin()]);
            wanted = s - 0.03;
        }
        let passed = ((end - s) / TAU).floor() as usize;
        if passed >= marks.len() {
            marks.push((s, log_rho));
        }
    }
    // ln ρ counts from the start of the path
    marks.iter_mut().for_each(|mark| mark.1 -= log_rho);
    outcome.at_most(
        "flow back in time: |ψ| until s is 0.01 less, from 0.01/(4s³) on",
        early,
        0.0101 / (4.0 * end.powi(3)),
    );
    outcome.at_most(format!("flow back in time: |ψ| from there to r = 0.3, over {turns} turns"), late, 1e-12);
    outcome.at_least("φ gained by the path for every unit of s, least", slowest, 1.0 - 1e-2);
    let full = (end + psi - begin) / TAU;
    outcome.at_least("turns of the direction while s grows without bound", full, turns - 0.01);
    let growth: Vec<f64> = marks.windows(2).take(3).map(|pair| pair[0].1 / pair[1].1).collect();
    for (k, factor) in growth.iter().enumerate() {
        let far = marks[k].0;
        // ∫ r² e^s/C ds is (1 − 1/s + O(1/s²)) e^s
        outcome.near(
            format!("factor by which ln ρ grows in the turn up to s = {far:.1}, over e^2π"),
            factor / TAU.exp(),
            1.0,
            0.05,
        );
    }
    outcome.note(format!(
        "With the degree L the flow needs ln ρ = {:.2e} L for {turns} turns; every turn multiplies ln ρ by about e^2π = 535.",
        marks.first().map_or(f64::NAN, |mark| mark.1)
    ));
    spiral
}

/// What is seen of a run.
struct Seen {
    log_rho: f64,
    unit: [f64; 3],
    margin: f64,
}

/// The built-in run: the margin converges, the direction does not.
fn training(lab: &Lab, outcome: &mut Outcome, spiral: Vec<[f64; 2]>) -> Result<Option<DirectionCourse>, ClaimError> {
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
    let claim = Certified::StationaryMargin { measure: Measure::Norm(NormSpec::L2) };
    let subject = Subject { data: &end.data, model: &end.task.recipe.model, weights: &end.params, start: None };
    let verdict = match judge(&claim, &Tolerances::default(), &subject) {
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
    let doubt = whole == Verdict::Inconclusive(crate::certificates::Doubt::NoLimitDirection);
    outcome.push("certificate of the run", "inconclusive: no limit direction", whole.to_string(), doubt);
    Ok(())
}

/// What stop rules and paths say of this run and of runs whose directions converge.
fn answers(lab: &Lab, outcome: &mut Outcome, course: Option<DirectionCourse>) -> Result<(), ClaimError> {
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
            let told = matches!(end.reason, StopReason::Rule(crate::observers::StopRule::DirectionConverged { .. }));
            let what = format!("{name}: stop rule that waits for a turn below 0.01 per doubling of ρ");
            outcome.push(what, "answers that the direction converged", end.reason.to_string(), told);
        }
    }
    if let Some(course) = course {
        outcome.note(format!("Of the built-in run: {course}."));
    }
    Ok(())
}

/// Figure 2: the hat along four rays.
fn profile(outcome: &mut Outcome) {
    let mut sketch = Sketch::new("d-hat-profile", "The Mexican hat f along four rays", "r", "f");
    for (name, phi) in [("φ = 0", 0.0), ("φ = π/2", 0.25 * TAU), ("φ = π", 0.5 * TAU), ("φ = 3π/2", 0.75 * TAU)]
    {
        let at = |r: f64| {
            let gap = 1.0 - r * r;
            (-1.0 / gap).exp() * HatShape::new(gap, phi - 1.0 / gap, 3).value
        };
        sketch = sketch.curve(name, (0..200).map(|k| 0.005 * f64::from(k)).map(|r| [r, at(r)]).collect());
    }
    outcome.sketch(sketch);
}
