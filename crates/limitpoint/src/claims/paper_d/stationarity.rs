//! Section 4.3 and appendix C: limit directions are KKT points of the margin problem.

use rayon::prelude::*;

use super::flows::traces;
use crate::certificates::{Slopes, tangent_certificate};
use crate::claims::arithmetic::larger;
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};
use crate::linalg::{Matrix, norm2};
use crate::norms::NormSpec;
use crate::reference::{MarginProblem, max_margin};

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "D.thm4.4",
        covers: &["D.thmA8", "D.eqP"],
        statement: "The direction of gradient flow tends to a KKT point of min ½‖θ‖² subject to qₙ ≥ 1, whose value along a \
                    direction is ½γ̄^{−2/L}: 1 − β and the judge's τ fall; linear networks of two and three layers tend to the \
                    support vector machine",
        experiments: &["d-flows"],
        try_out: limits,
    },
    Claim {
        id: "D.lemC8",
        covers: &[],
        statement: "With λₙ = q_min^{1−2/L} ρ e^{−f(qₙ)} f′(qₙ)/‖θ̇‖ the trajectory is an (ε, δ)-KKT point: ‖θ̃ − Σ λ h̃‖² = \
                    ‖θ̃‖² (2 − 2β) ≤ 2 (1 − β) γ̃(t₀)^{−2/L}, and for the exponential loss Σ λₙ (qₙ/q_min − 1) ≤ N/(e L \
                    γ̃(t₀)^{2/L} ln 1/L)",
        experiments: &["d-flows"],
        try_out: approximate_points,
    },
    Claim {
        id: "D.cor4.5",
        covers: &["D.lemC13"],
        statement: "The limit divided by L is the support vector machine of its own frozen gradients: the duality gap of the judge \
                    closes along the flow, and the Gram matrix of gradients is positive semidefinite",
        experiments: &["d-flows"],
        try_out: machine,
    },
];

fn limits(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    let mut sketch = Sketch::new("d-alignment", "1 − β along gradient flow", "ln 1/L", "1 − β").logarithmic(true, true);
    for trace in traces.iter().filter(|trace| trace.complete()) {
        let value =
            |m: &crate::claims::trace::Moment| (m.smallest / m.size.powf(trace.degree)).powf(-2.0 / trace.degree);
        let worst = trace.moments.iter().map(|m| (m.objective / value(m) - 1.0).abs()).fold(0.0, larger);
        outcome.at_most(format!("{}: ‖θ̃‖² against γ̄^(−2/L), relative", trace.what), worst, 1e-12);
        let (Some(first), Some(last)) = (trace.moments.first(), trace.moments.last()) else { continue };
        let fallen = (1.0 - last.alignment) / (1.0 - first.alignment);
        outcome.at_most(format!("{}: 1 − β at the end over that at separation", trace.what), fallen, 0.5);
        if trace.what.starts_with("two") && trace.what.ends_with("seed 0") {
            let points = trace.moments.iter().step_by(5).map(|m| [m.u, 1.0 - m.alignment]).collect();
            sketch = sketch.curve(trace.end.task.recipe.loss.key(), points);
        }
    }
    outcome.sketch(sketch);
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
                product = (0..block.cols)
                    .map(|c| product.iter().enumerate().map(|(r, p)| p * weights[r * block.cols + c]).sum())
                    .collect();
            }
            let problem = MarginProblem::linear(&run.data, NormSpec::L2)?;
            let reached = problem.margins(&product).into_iter().fold(f64::INFINITY, f64::min) / norm2(&product);
            let best = max_margin(&problem)?;
            outcome.near(
                format!("linear, {layers} layers: margin of the product over that of the judge"),
                reached / best.margin,
                1.0,
                1e-2,
            );
        }
    }
    Ok(outcome)
}

fn approximate_points(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, traces) = (Outcome::default(), traces(lab)?);
    for trace in traces.iter().filter(|trace| trace.complete()) {
        let Some(first) = trace.moments.first() else { continue };
        let start = trace.soft_margin(first).powf(-2.0 / trace.degree);
        let (mut identity, mut epsilon, mut delta) = (0.0, f64::NEG_INFINITY, f64::NEG_INFINITY);
        for m in &trace.moments {
            if let Some(rare) = &m.rare {
                // both sides relative to ‖θ̃‖²; rounding of the residual's entries enters squared
                identity = larger(identity, (rare.residuals[0].powi(2) - 2.0 * (1.0 - m.alignment)).abs());
                epsilon =
                    larger(epsilon, rare.residuals[0].powi(2) * m.objective / (2.0 * (1.0 - m.alignment) * start));
            }
            let bound = trace.margins as f64 * start / (std::f64::consts::E * trace.degree * m.u);
            delta = larger(delta, m.slack / bound);
        }
        outcome.at_most(format!("{}: |‖θ̃ − Σ λ h̃‖²/‖θ̃‖² − (2 − 2β)|", trace.what), identity, 1e-10);
        outcome.at_most(format!("{}: ε² over its bound, largest", trace.what), epsilon, 1.0 + 1e-9);
        if trace.end.task.recipe.loss.key() == "exponential" {
            outcome.at_most(format!("{}: δ over its bound, largest", trace.what), delta, 1.0);
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
        for task in lab.tasks("d-flows", &[format!("stop.log10_loss={level}"), "stop.steps=1000000".to_owned()])? {
            tasks.push((level, task));
        }
    }
    let gaps: Vec<(f64, f64, f64)> = tasks
        .par_iter()
        .map(|(level, task)| {
            let run = lab.finish(task)?;
            let mut objective = lab.objective(task, &run.data)?;
            let model = objective.tangents()?;
            let certificate =
                tangent_certificate(model, &run.data.targets, &run.params, &NormSpec::L2.into(), Slopes::Fixed)?;
            let gram = model.gradient_gram(&run.params);
            Ok((*level, certificate.machine_gap(), least_eigenvalue(&gram)?))
        })
        .collect::<Result<_, ClaimError>>()?;
    let words: Vec<String> = gaps.iter().map(|(level, gap, _)| format!("{gap:.1e} at L = 1e{level}")).collect();
    let falling = gaps.windows(2).all(|pair| pair[1].1 < pair[0].1);
    outcome.push("relative duality gap of the machine with frozen gradients", "falls", words.join(", "), falling);
    outcome.at_most("that at the end", gaps.last().map_or(f64::NAN, |(_, gap, _)| *gap), 1e-3);
    let least = gaps.iter().map(|(_, _, least)| -least).fold(f64::NEG_INFINITY, larger);
    outcome.at_most("minus the least eigenvalue of the Gram matrix over the largest", least, 1e-12);
    Ok(outcome)
}

/// The least over the largest eigenvalue of a symmetric matrix.
fn least_eigenvalue(gram: &Matrix) -> Result<f64, ClaimError> {
    let mut eigen = crate::linalg::Eigen::new(gram.rows);
    eigen.factor(&gram.data)?;
    let values = eigen.values();
    let largest = values.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    Ok(values.iter().copied().fold(f64::INFINITY, f64::min) / largest)
}
