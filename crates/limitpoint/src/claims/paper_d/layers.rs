//! Equation (4) and appendix G: margins per the product of the layers' norms.

use rayon::prelude::*;

use super::flows::LOSSES;
use crate::claims::arithmetic::{larger, smaller};
use crate::claims::{Claim, ClaimError, Lab, Outcome};
use crate::diagnostics::layer_product;
use crate::experiments::Task;
use crate::linalg::norm2;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "D.eq4",
        covers: &["D.eq5", "D.defG1", "D.lemG2", "D.defG3"],
        statement: "The smoothed margin per Π ρᵢ^{kᵢ} never falls along gradient flow either, and gains at least Σ kᵢ times a layer's \
                    squared turn over its gain of ln ρᵢ; ρᵢ²/kᵢ − ρⱼ²/kⱼ stays what it was; two and three layers, four losses",
        experiments: &["d-flows"],
        try_out: products,
    },
    Claim {
        id: "D.norm",
        covers: &[],
        statement: "Π ρᵢ^{kᵢ} ≤ Π kᵢ^{kᵢ/2} (ρ/√L)^L, which for layers of degree one is (ρ/√L)^L: the margin per product is at least \
                    L^{L/2} times the one per norm",
        experiments: &["d-flows"],
        try_out: means,
    },
];

/// A flow, looked at for its layers.
struct Layers {
    what: String,
    /// Largest relative fall of the margin per product.
    fall: f64,
    /// Least of gain minus what the layers' turns promise.
    least: f64,
    /// Largest change of ρᵢ²/kᵢ − ρⱼ²/kⱼ, relative to ρ².
    drift: f64,
    /// Largest of Π ρᵢ^{kᵢ} over its bound, and at the end.
    share: [f64; 2],
    steps: usize,
}

fn look(lab: &Lab, what: &str, task: &Task) -> Result<Layers, ClaimError> {
    let data = lab.data(task)?.train;
    let objective = lab.objective(task, &data)?;
    let layout = objective.layout().clone();
    let Some(homogeneity) = objective.homogeneity().cloned() else {
        return Ok(Layers {
            what: what.into(),
            fall: f64::NAN,
            least: f64::NAN,
            drift: f64::NAN,
            share: [f64::NAN; 2],
            steps: 0,
        });
    };
    let threshold = objective.loss().tail().map_or(f64::NEG_INFINITY, |tail| tail.log_threshold());
    let degrees: Vec<f64> = homogeneity.groups.iter().map(|group| group.degree).collect();
    let total: f64 = degrees.iter().sum();
    let constant: f64 = degrees.iter().map(|k| k.powf(0.5 * k)).product();
    let ranges: Vec<_> = homogeneity.groups.iter().map(|group| layout.blocks()[group.blocks[0]].range()).collect();
    let mut found =
        Layers { what: what.into(), fall: 0.0, least: f64::INFINITY, drift: 0.0, share: [0.0; 2], steps: 0 };
    // ln γ̃, the layers' sizes and the weights of the step before; the first balance
    let mut before: Option<(f64, Vec<f64>, Vec<f64>)> = None;
    let mut first: Option<Vec<f64>> = None;
    lab.watch_on(
        task,
        data,
        |_| true,
        |snapshot| {
            let point = &snapshot.point;
            let sizes: Vec<f64> = ranges.iter().map(|range| norm2(&point.params[range.clone()])).collect();
            let squares: Vec<f64> = sizes.iter().zip(&degrees).map(|(size, k)| size * size / k).collect();
            let norm = norm2(point.params);
            let start = first.get_or_insert_with(|| squares.clone());
            for (now, then) in squares.iter().zip(start.iter()) {
                found.drift = larger(found.drift, ((now - squares[0]) - (then - start[0])).abs() / (norm * norm));
            }
            let product = layer_product(point.params, point.layout, point.homogeneity);
            let share = product / (constant * (norm / total.sqrt()).powf(total));
            found.share = [larger(found.share[0], share), share];
            if point.log_loss >= threshold {
                return;
            }
            let log_margin = (point.soft_minimum() / product).ln();
            if let Some((old, old_sizes, old_params)) = &before {
                let gain = log_margin - old;
                found.fall = larger(found.fall, -gain);
                let promised: f64 = ranges
                    .iter()
                    .enumerate()
                    .map(|(i, range)| {
                        let pairs = point.params[range.clone()].iter().zip(&old_params[range.clone()]);
                        let turn: f64 = pairs.map(|(x, y)| (x / sizes[i] - y / old_sizes[i]).powi(2)).sum();
                        degrees[i] * turn / (sizes[i] / old_sizes[i]).ln()
                    })
                    .sum();
                found.least = smaller(found.least, gain - promised);
                found.steps += 1;
            }
            before = Some((log_margin, sizes, point.params.to_vec()));
        },
    )?;
    Ok(found)
}

fn all(lab: &Lab) -> Result<std::sync::Arc<Vec<Layers>>, ClaimError> {
    lab.once("layers of gradient flows", || {
        let mut tasks = Vec::new();
        for loss in LOSSES {
            for (name, widths) in [("two layers", "[8]"), ("three layers", "[6, 6]")] {
                let overrides = [format!("loss={loss}"), format!("model.widths={widths}"), "data.count=8".to_owned()];
                tasks.extend(
                    lab.tasks("d-flows", &overrides)?.into_iter().map(|task| (format!("{name}, {loss}"), task)),
                );
            }
        }
        tasks.par_iter().map(|(what, task)| look(lab, what, task)).collect()
    })
}

fn products(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, all) = (Outcome::default(), all(lab)?);
    for Layers { what, fall, least, drift, steps, .. } in all.iter() {
        outcome.at_most(
            format!("{what}: largest relative fall of the margin per product over {steps} steps"),
            *fall,
            1e-12,
        );
        outcome.at_least(
            format!("{what}: gain of its logarithm minus what the layers' turns promise, least"),
            *least,
            -1e-9,
        );
        outcome.at_most(format!("{what}: change of ρᵢ²/kᵢ − ρⱼ²/kⱼ per ρ²"), *drift, 1e-8);
        outcome.at_least(format!("{what}: steps after separation"), *steps as f64, 50.0);
    }
    Ok(outcome)
}

fn means(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, all) = (Outcome::default(), all(lab)?);
    for Layers { what, share, .. } in all.iter() {
        outcome.at_most(format!("{what}: Π ρᵢ^(kᵢ) over its bound, largest"), share[0], 1.0 + 1e-12);
        // balance: the layers' squares over their degrees become equal as they grow
        outcome.at_least(format!("{what}: the same at the end"), share[1], 0.5);
    }
    Ok(outcome)
}
