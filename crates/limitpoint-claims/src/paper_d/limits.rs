//! Sections 4.2 and 4.3: how fast the loss falls, and that limit directions are KKT points of the margin problem.
//!
//! Where β → 1 the inequalities in the proof of Theorem 4.3 become equalities: −dL/dt = (L ν/ρ)², hence for exponential
//! tails the sharp constant L(t) · t (ln t)^{2−2/L} → 1/(L² γ^{2/L}). For e^{−qᵏ} the degree kL and the margin γᵏ take
//! their places.

use rayon::prelude::*;

use super::flows::{LOSSES, ON_FLOWS, complete, down_to, each_flow, falls, flows, join, long_flows};
use crate::{Claim, ClaimError, Finished, Lab, Moments, Outcome, Series, Sketch, measures};
use limitpoint::certificates::{PolishSettings, Polished, Slopes, polish, tangent_certificate};
use limitpoint::diagnostics::{DiagnosticsError, RateSeries, RateSettings, RateTheory, fit_rates};
use limitpoint::linalg::{Eigen, norm2};
use limitpoint::norms::NormSpec;
use limitpoint::reference::{MarginProblem, max_margin};

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "D.thm4.3",
        covers: &["D.thmA10", "D.corA11"],
        statement: "L(t) = Θ(g(ln t)^{2/L}/(t (ln t)²)) and ρ = Θ(g(ln t)^{1/L}) for degrees 1 to 4 and four losses, with the constants \
                    1/(L² γ^{2/L}) and γ^{−1/L} of the aligned limit",
        experiments: &["d-rates"],
        try_out: rates,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.thm4.4",
        covers: &["D.thmA8", "D.eqP"],
        statement: "The direction of gradient flow tends to a KKT point of min ½‖θ‖² subject to qₙ ≥ 1, whose value along a \
                    direction is ½γ̄^{−2/L}: 1 − β and the judge's τ fall, and the direction comes closer to the KKT point that \
                    polishing finds; linear networks of two and three layers tend to the support vector machine",
        try_out: limits,
        ..ON_FLOWS
    },
    Claim {
        id: "D.lemC8",
        statement: "With λₙ = q_min^{1−2/L} ρ e^{−f(qₙ)} f′(qₙ)/‖θ̇‖ the trajectory is an (ε, δ)-KKT point: ‖θ̃ − Σ λ h̃‖² = \
                    ‖θ̃‖² (2 − 2β) ≤ 2 (1 − β) γ̃(t₀)^{−2/L}, and for the exponential loss Σ λₙ (qₙ/q_min − 1) ≤ N/(e L \
                    γ̃(t₀)^{2/L} ln 1/L)",
        try_out: approximate_points,
        ..ON_FLOWS
    },
    Claim {
        id: "D.cor4.5",
        covers: &["D.lemC13"],
        statement: "The limit divided by L is the support vector machine of its own frozen gradients: the duality gap of the judge \
                    closes along the flow, and the Gram matrix of gradients is positive semidefinite",
        try_out: machine,
        ..ON_FLOWS
    },
];

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

/// The judge's τ of the last point, and the KKT point near it.
fn polished(end: &Finished) -> Result<Polished, ClaimError> {
    let (model, settings) = (&end.task.recipe.model, PolishSettings::default());
    polish(model, &end.data, &end.params, &NormSpec::L2, &settings)
        .map_err(|error| ClaimError::Ended { what: "polishing".to_owned(), reason: error.to_string() })
}

fn limits(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows, far) = (Outcome::default(), flows(lab)?, long_flows(lab)?);
    let flows = complete(&flows, &mut outcome);
    let judge = |flow: &&Series| -> Result<[Polished; 2], ClaimError> {
        let mut early = flow.end.task.clone();
        early.recipe.stop.log10_loss = early.recipe.stop.log10_loss.map(|decades| 0.1 * decades);
        Ok([polished(&lab.finish(&early)?)?, polished(&flow.end)?])
    };
    let judged = flows.par_iter().map(judge).collect::<Result<Vec<_>, _>>()?;
    let mut sketch = Sketch::new("d-alignment", "1 − β along gradient flow", "ln 1/L", "1 − β").logarithmic(true, true);
    for (flow, [early, late]) in flows.iter().zip(&judged) {
        let (what, power, mut about) = (&flow.what, -2.0 / flow.degree, Outcome::default());
        let value = |smallest: f64, size: f64| (smallest / size.powf(flow.degree)).powf(power);
        let apart =
            flow.map(["objective", "smallest", "size"], |[o, smallest, size]| (o / value(smallest, size) - 1.0).abs());
        about.largest("‖θ̃‖² against γ̄^(−2/L), relative", apart, 1e-12).by_theory();
        let misaligned = flow.map(["alignment"], |[beta]| 1.0 - beta);
        about.falls("1 − β at the end over that at separation", &misaligned, 0.5);
        let tau = late.tau_before / early.tau_before;
        about.at_most("the judge's τ at the end over that at a tenth of ln 1/L", tau, 1.0);
        about.at_most("τ of the point polished from the end", late.tau_after, 1e-11);
        about.at_most("angle to that point over the one at a tenth of ln 1/L", late.angle / early.angle, 1.0);
        about.note(format!(
            "τ = {:.2e} at a tenth of ln 1/L and {:.2e} at the end; {:.2e} and {:.2e} rad from the polished points",
            early.tau_before, late.tau_before, early.angle, late.angle
        ));
        if what.starts_with("two") && what.ends_with("seed 0") {
            sketch = sketch.curve(flow.end.task.recipe.loss.key(), flow.curve("u", "misaligned", 5));
        }
        join(&mut outcome, what, about);
    }
    outcome.sketch(sketch);
    for flow in far.iter().filter(|flow| flow.what.contains("squared")) {
        let least = flow.when("u", |u| u <= 1e4).least("misaligned");
        outcome.at_most(format!("{}: least 1 − β up to ln 1/L = 10⁴", flow.what), least, 0.02);
    }
    for (layers, widths) in [(2, "[4]"), (3, "[4, 4]")] {
        let overrides = [
            format!("model.widths={widths}"),
            "model.activation=identity".to_owned(),
            "data=gaussians(count=12, dimension=5, margin=0.5)".to_owned(),
            format!("stop.log10_loss={}", lab.choose(-434, -4343)),
        ];
        for run in lab.run("d-flows", &overrides)? {
            let layout = lab.objective(&run.task, &run.data)?.layout().clone();
            // the product of all layers, from the output back
            let mut product: Vec<f64> = vec![1.0];
            for block in layout.blocks().iter().rev() {
                let weights = &run.params[block.range()];
                let entry = |c: usize| product.iter().enumerate().map(|(r, p)| p * weights[r * block.cols + c]).sum();
                product = (0..block.cols).map(entry).collect();
            }
            let problem = MarginProblem::linear(&run.data, NormSpec::L2)?;
            let reached = problem.margins(&product).into_iter().fold(f64::INFINITY, f64::min) / norm2(&product);
            let best = max_margin(&problem)?.margin;
            let what = format!("linear, {layers} layers: margin of the product over that of the judge");
            outcome.near(what, reached / best, 1.0, 1e-2);
        }
    }
    Ok(outcome)
}

fn approximate_points(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = each_flow(lab, |flow| {
        let (mut outcome, start) = (Outcome::default(), flow.first("soft_margin").powf(-2.0 / flow.degree));
        // both sides relative to ‖θ̃‖²; rounding of the residual's entries enters squared
        let names = ["residual", "alignment", "objective"];
        let identity = flow.map(names, |[residual, beta, _]| (residual.powi(2) - 2.0 * (1.0 - beta)).abs());
        outcome.largest("|‖θ̃ − Σ λ h̃‖²/‖θ̃‖² − (2 − 2β)|", identity, 1e-10).by_theory();
        let bound = |beta: f64| 2.0 * (1.0 - beta) * start;
        let epsilon = flow.map(names, |[residual, beta, objective]| residual.powi(2) * objective / bound(beta));
        outcome.largest("ε² over its bound, largest", epsilon, 1.0 + 1e-9).by_theory();
        if flow.end.task.recipe.loss.key() == "exponential" {
            let bound = |u: f64| flow.margins as f64 * start / (std::f64::consts::E * flow.degree * u);
            let delta = flow.map(["slack", "u"], |[slack, u]| slack / bound(u));
            outcome.largest("δ over its bound, largest", delta, 1.0).by_theory();
        }
        Ok(outcome)
    })?;
    outcome.note(
        "The largest value of x e^{−x} is 1/e; with the printed e the bound on δ holds too, e² times weaker. The proof's ρ² in the \
         last display is one too many.",
    );
    Ok(outcome)
}

fn machine(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    // the gap falls by a factor of about four while ln 1/L grows tenfold
    let levels = [-10.0, -1000.0, -300_000.0];
    let judge = |run: Finished| -> Result<[f64; 2], ClaimError> {
        let mut objective = lab.objective(&run.task, &run.data)?;
        let (model, norm) = (objective.tangents()?, NormSpec::L2.into());
        let certificate = tangent_certificate(model, &run.data.targets, &run.params, &norm, Slopes::Fixed)?;
        let gram = model.gradient_gram(&run.params);
        let mut eigen = Eigen::new(gram.rows);
        eigen.factor(&gram.data)?;
        let largest = eigen.values().iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let least = eigen.values().iter().copied().fold(f64::INFINITY, f64::min);
        Ok([certificate.machine_gap(), least / largest])
    };
    let judged = down_to(lab, levels)?.into_par_iter().map(judge).collect::<Result<Vec<_>, _>>()?;
    let gaps: Vec<f64> = judged.iter().map(|[gap, _]| *gap).collect();
    falls(&mut outcome, "relative duality gap of the machine with frozen gradients", &gaps, levels);
    outcome.at_most("that at the end", gaps.last().copied().unwrap_or(f64::NAN), 1e-3);
    let what = "minus the least eigenvalue of the Gram matrix over the largest";
    outcome.largest(what, judged.iter().map(|[_, least]| -least), 1e-12).by_theory();
    Ok(outcome)
}
