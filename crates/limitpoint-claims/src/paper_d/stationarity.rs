//! Section 4.3 and appendix C: limit directions are KKT points of the margin problem.

use rayon::prelude::*;

use super::flows::{complete, flows, long_flows};
use crate::{Claim, ClaimError, Finished, Lab, Outcome, Series, Sketch};
use limitpoint::certificates::{PolishSettings, Polished, Slopes, polish, tangent_certificate};
use limitpoint::linalg::{Matrix, norm2};
use limitpoint::norms::NormSpec;
use limitpoint::reference::{MarginProblem, max_margin};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "D.thm4.4",
        covers: &["D.thmA8", "D.eqP"],
        statement: "The direction of gradient flow tends to a KKT point of min ½‖θ‖² subject to qₙ ≥ 1, whose value along a \
                    direction is ½γ̄^{−2/L}: 1 − β and the judge's τ fall, and the direction comes closer to the KKT point that \
                    polishing finds; linear networks of two and three layers tend to the support vector machine",
        experiments: &["d-flows"],
        try_out: limits,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.lemC8",
        statement: "With λₙ = q_min^{1−2/L} ρ e^{−f(qₙ)} f′(qₙ)/‖θ̇‖ the trajectory is an (ε, δ)-KKT point: ‖θ̃ − Σ λ h̃‖² = \
                    ‖θ̃‖² (2 − 2β) ≤ 2 (1 − β) γ̃(t₀)^{−2/L}, and for the exponential loss Σ λₙ (qₙ/q_min − 1) ≤ N/(e L \
                    γ̃(t₀)^{2/L} ln 1/L)",
        experiments: &["d-flows"],
        try_out: approximate_points,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.cor4.5",
        covers: &["D.lemC13"],
        statement: "The limit divided by L is the support vector machine of its own frozen gradients: the duality gap of the judge \
                    closes along the flow, and the Gram matrix of gradients is positive semidefinite",
        experiments: &["d-flows"],
        try_out: machine,
        ..Claim::FORMULA
    },
];

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
        let (what, power) = (&flow.what, -2.0 / flow.degree);
        let value = |smallest: f64, size: f64| (smallest / size.powf(flow.degree)).powf(power);
        let apart =
            flow.map(["objective", "smallest", "size"], |[o, smallest, size]| (o / value(smallest, size) - 1.0).abs());
        outcome.largest(format!("{what}: ‖θ̃‖² against γ̄^(−2/L), relative"), apart, 1e-12).by_theory();
        let misaligned = flow.map(["alignment"], |[beta]| 1.0 - beta);
        outcome.falls(format!("{what}: 1 − β at the end over that at separation"), &misaligned, 0.5);
        let tau = late.tau_before / early.tau_before;
        outcome.at_most(format!("{what}: the judge's τ at the end over that at a tenth of ln 1/L"), tau, 1.0);
        outcome.at_most(format!("{what}: τ of the point polished from the end"), late.tau_after, 1e-11);
        let closer = late.angle / early.angle;
        outcome.at_most(format!("{what}: angle to that point over the one at a tenth of ln 1/L"), closer, 1.0);
        outcome.note(format!(
            "{what}: τ = {:.2e} at a tenth of ln 1/L and {:.2e} at the end; {:.2e} and {:.2e} rad from the polished points",
            early.tau_before, late.tau_before, early.angle, late.angle
        ));
        if what.starts_with("two") && what.ends_with("seed 0") {
            sketch = sketch.curve(flow.end.task.recipe.loss.key(), flow.curve("u", "misaligned", 5));
        }
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
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    for flow in complete(&flows, &mut outcome) {
        let start = flow.first("soft_margin").powf(-2.0 / flow.degree);
        // both sides relative to ‖θ̃‖²; rounding of the residual's entries enters squared
        let names = ["residual", "alignment", "objective"];
        let identity = flow.map(names, |[residual, beta, _]| (residual.powi(2) - 2.0 * (1.0 - beta)).abs());
        let what = format!("{}: |‖θ̃ − Σ λ h̃‖²/‖θ̃‖² − (2 − 2β)|", flow.what);
        outcome.largest(what, identity, 1e-10).by_theory();
        let bound = |beta: f64| 2.0 * (1.0 - beta) * start;
        let epsilon = flow.map(names, |[residual, beta, objective]| residual.powi(2) * objective / bound(beta));
        outcome.largest(format!("{}: ε² over its bound, largest", flow.what), epsilon, 1.0 + 1e-9).by_theory();
        if flow.end.task.recipe.loss.key() == "exponential" {
            let bound = |u: f64| flow.margins as f64 * start / (std::f64::consts::E * flow.degree * u);
            let delta = flow.map(["slack", "u"], |[slack, u]| slack / bound(u));
            outcome.largest(format!("{}: δ over its bound, largest", flow.what), delta, 1.0).by_theory();
        }
    }
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
    let mut tasks = Vec::new();
    for level in levels {
        tasks.extend(lab.tasks("d-flows", &[format!("stop.log10_loss={level}"), "stop.steps=1000000".to_owned()])?);
    }
    let judge = |run: Finished| -> Result<[f64; 2], ClaimError> {
        let mut objective = lab.objective(&run.task, &run.data)?;
        let (model, norm) = (objective.tangents()?, NormSpec::L2.into());
        let certificate = tangent_certificate(model, &run.data.targets, &run.params, &norm, Slopes::Fixed)?;
        Ok([certificate.machine_gap(), least_eigenvalue(&model.gradient_gram(&run.params))?])
    };
    let judged = lab.finish_all(&tasks)?.into_par_iter().map(judge).collect::<Result<Vec<_>, _>>()?;
    let gaps: Vec<f64> = judged.iter().map(|[gap, _]| *gap).collect();
    let words: Vec<String> =
        gaps.iter().zip(levels).map(|(gap, level)| format!("{gap:.1e} at L = 1e{level}")).collect();
    let falling = gaps.windows(2).all(|pair| pair[1] < pair[0]);
    outcome.push("relative duality gap of the machine with frozen gradients", "falls", words.join(", "), falling);
    outcome.at_most("that at the end", gaps.last().copied().unwrap_or(f64::NAN), 1e-3);
    let what = "minus the least eigenvalue of the Gram matrix over the largest";
    outcome.largest(what, judged.iter().map(|[_, least]| -least), 1e-12).by_theory();
    Ok(outcome)
}

/// The least over the largest eigenvalue of a symmetric matrix.
fn least_eigenvalue(gram: &Matrix) -> Result<f64, ClaimError> {
    let mut eigen = limitpoint::linalg::Eigen::new(gram.rows);
    eigen.factor(&gram.data)?;
    let values = eigen.values();
    let largest = values.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    Ok(values.iter().copied().fold(f64::INFINITY, f64::min) / largest)
}
