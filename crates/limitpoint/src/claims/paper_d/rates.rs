//! Theorem 4.3: how fast the loss falls.
//!
//! Where β → 1 the proof's inequalities become equalities: −dL/dt = (L ν/ρ)², hence for exponential tails the sharp
//! constant L(t) · t (ln t)^{2−2/L} → 1/(L² γ^{2/L}). For e^{−qᵏ} the degree kL and the margin γᵏ take their places.

use rayon::prelude::*;

use super::flows::LOSSES;
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};
use crate::diagnostics::{DiagnosticsError, RateSeries, RateSettings, RateTheory, fit_rates};
use crate::experiments::Task;
use crate::linalg::norm2;

pub(super) const CLAIMS: [Claim; 1] = [Claim {
    id: "D.thm4.3",
    covers: &["D.thmA10", "D.corA11"],
    statement: "L(t) = Θ(g(ln t)^{2/L}/(t (ln t)²)) and ρ = Θ(g(ln t)^{1/L}) for degrees 1 to 4 and four losses, with the constants \
                1/(L² γ^{2/L}) and γ^{−1/L} of the aligned limit",
    experiments: &["d-rates"],
    try_out: rates,
}];

struct Course {
    name: String,
    /// ln t, ln L, ln ρ.
    points: Vec<[f64; 3]>,
    /// The degree of f(q) in the weights.
    degree: f64,
    /// The margin of the limit to the power of that of f.
    margin: f64,
    /// L t (ln t)^{2−2/L} over its limit, at the end.
    constant: f64,
}

fn course(lab: &Lab, task: &Task, factors: f64) -> Result<Course, ClaimError> {
    let mut points = Vec::new();
    lab.watch(
        task,
        |step| step > 0,
        |snapshot| points.push([snapshot.log_time, snapshot.point.log_loss, norm2(snapshot.point.params).ln()]),
    )?;
    let cubes = if task.recipe.loss.key().starts_with("power") { 3.0 } else { 1.0 };
    // θ₁ᴸ = 1 and 2θ₂ᴸ = 1 at the solution, with all factors equal
    let squared = factors * (1.0 + 0.5f64.powf(2.0 / factors));
    let (degree, margin) = (cubes * factors, squared.powf(-0.5 * factors).powf(cubes));
    let column = |k: usize| points.iter().map(|point| point[k]).collect::<Vec<f64>>();
    let (log_time, log_loss, log_norm) = (column(0), column(1), column(2));
    let series = RateSeries { log_time: &log_time, log_loss: &log_loss, log_norm: &log_norm, margin_gap: None };
    let theory = RateTheory { degree, alpha: 2.0, limit_margin: Some(margin) };
    let report = fit_rates(&[series], &theory, &RateSettings::default()).map_err(DiagnosticsError::from)?;
    let constant = report.constant.map_or(f64::NAN, |constant| constant.last);
    Ok(Course { name: format!("{}, L = {factors}", task.recipe.loss), points, degree, margin, constant })
}

fn rates(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut tasks = Vec::new();
    for loss in LOSSES {
        for factors in 1..=4 {
            let overrides = [format!("model.diagonal.factors={factors}"), format!("loss={loss}")];
            tasks.extend(lab.tasks("d-rates", &overrides)?.into_iter().map(|task| (f64::from(factors), task)));
        }
    }
    let courses: Vec<Course> =
        tasks.par_iter().map(|(factors, task)| course(lab, task, *factors)).collect::<Result<_, _>>()?;
    let title = "The loss times t (ln t)^(2−2/L), as a multiple of 1/(L² γ^(2/L))";
    let mut sketch = Sketch::new("d-rates", title, "ln 1/L", "ratio").logarithmic(true, false);
    for Course { name, points, degree, margin, constant } in &courses {
        outcome.near(format!("{name}: L t (ln t)^(2−2/L) over its sharp constant at the end"), *constant, 1.0, 0.05);
        let last = points.last().map_or(f64::NAN, |[time, _, norm]| degree * norm + margin.ln() - time.ln());
        outcome.near(format!("{name}: γ ρ^L/ln t at the end"), last.exp(), 1.0, 0.05);
        if name.starts_with("exponential") {
            let ratio = |[time, loss, _]: &[f64; 3]| {
                (loss + time + (2.0 - 2.0 / degree) * time.ln() + 2.0 * degree.ln() + 2.0 / degree * margin.ln()).exp()
            };
            let late = points.iter().filter(|[time, loss, _]| *time > 2.0 && *loss < -2.0);
            sketch = sketch.curve(name.clone(), late.map(|point| [-point[1], ratio(point)]).collect());
        }
    }
    outcome.sketch(sketch.window([3.0, 2100.0], [0.0, 2.0]));
    Ok(outcome)
}
