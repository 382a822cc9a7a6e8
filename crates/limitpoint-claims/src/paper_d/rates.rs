//! Theorem 4.3: how fast the loss falls.
//!
//! Where β → 1 the proof's inequalities become equalities: −dL/dt = (L ν/ρ)², hence for exponential tails the sharp
//! constant L(t) · t (ln t)^{2−2/L} → 1/(L² γ^{2/L}). For e^{−qᵏ} the degree kL and the margin γᵏ take their places.

use super::flows::LOSSES;
use crate::{Claim, ClaimError, Lab, Moments, Outcome, Sketch, measures};
use limitpoint::diagnostics::{DiagnosticsError, RateSeries, RateSettings, RateTheory, fit_rates};
use limitpoint::norms::NormSpec;

pub(super) const CLAIMS: [Claim; 1] = [Claim {
    id: "D.thm4.3",
    covers: &["D.thmA10", "D.corA11"],
    statement: "L(t) = Θ(g(ln t)^{2/L}/(t (ln t)²)) and ρ = Θ(g(ln t)^{1/L}) for degrees 1 to 4 and four losses, with the constants \
                1/(L² γ^{2/L}) and γ^{−1/L} of the aligned limit",
    experiments: &["d-rates"],
    try_out: rates,
    ..Claim::FORMULA
}];

fn rates(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, mut tasks) = (Outcome::default(), Vec::new());
    for loss in LOSSES {
        for factors in 1..=4 {
            let overrides = [format!("model.diagonal.factors={factors}"), format!("loss={loss}")];
            let found = lab.tasks("d-rates", &overrides)?;
            tasks.extend(found.into_iter().map(|task| (format!("{loss}, L = {factors}"), task)));
        }
    }
    let title = "The loss times t (ln t)^(2−2/L), as a multiple of 1/(L² γ^(2/L))";
    let mut sketch = Sketch::new("d-rates", title, "ln 1/L", "ratio").logarithmic(true, false);
    let columns = |_: &_| vec![measures::basics(), measures::size(NormSpec::L2)];
    for flow in lab.all_series(tasks, Moments::every(1), columns)? {
        let (name, factors) = (&flow.what, flow.degree);
        let flow = flow.when("step", |step| step > 0.0);
        let cubes = if name.starts_with("power") { 3.0 } else { 1.0 };
        // θ₁ᴸ = 1 and 2θ₂ᴸ = 1 at the solution, with all factors equal; the degree and the margin are those of f(q)
        let squared = factors * (1.0 + 0.5f64.powf(2.0 / factors));
        let (degree, margin) = (cubes * factors, squared.powf(-0.5 * factors).powf(cubes));
        let [log_loss, log_norm] = [flow.map(["u"], |[u]| -u), flow.map(["size"], |[size]| size.ln())];
        let log_time = flow.column("log_time");
        let series = RateSeries { log_time, log_loss: &log_loss, log_norm: &log_norm, margin_gap: None };
        let theory = RateTheory { degree, alpha: 2.0, limit_margin: Some(margin) };
        let report = fit_rates(&[series], &theory, &RateSettings::default()).map_err(DiagnosticsError::from)?;
        let constant = report.constant.map_or(f64::NAN, |constant| constant.last);
        outcome.near(format!("{name}: L t (ln t)^(2−2/L) over its sharp constant at the end"), constant, 1.0, 0.05);
        let last = degree * flow.last("size").ln() + margin.ln() - flow.last("log_time").ln();
        outcome.near(format!("{name}: γ ρ^L/ln t at the end"), last.exp(), 1.0, 0.05);
        if name.starts_with("exponential") {
            let ratio = |[time, u]: [f64; 2]| {
                let law = (2.0 - 2.0 / degree) * time.ln() + 2.0 * degree.ln() + 2.0 / degree * margin.ln();
                [u, (time - u + law).exp()]
            };
            let late = flow.rows(["log_time", "u"]).into_iter().filter(|[time, u]| *time > 2.0 && *u > 2.0);
            sketch = sketch.curve(name.clone(), late.map(ratio).collect());
        }
    }
    outcome.sketch(sketch.window([3.0, 2100.0], [0.0, 2.0]));
    Ok(outcome)
}
