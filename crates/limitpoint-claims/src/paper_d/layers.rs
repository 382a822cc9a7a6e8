//! Equation (4) and appendix G: margins per the product of the layers' norms.

use std::ops::Range;
use std::sync::Arc;

use super::flows::{LOSSES, ON_FLOWS, join};
use crate::arithmetic::larger;
use crate::{Claim, ClaimError, Columns, Lab, Moments, Outcome, Series, measures};
use limitpoint::diagnostics::layer_product;
use limitpoint::linalg::norm2;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "D.eq4",
        covers: &["D.eq5", "D.defG1", "D.lemG2", "D.defG3"],
        statement: "The smoothed margin per Π ρᵢ^{kᵢ} never falls along gradient flow either, and gains at least Σ kᵢ times a layer's \
                    squared turn over its gain of ln ρᵢ; ρᵢ²/kᵢ − ρⱼ²/kⱼ stays what it was; two and three layers, four losses",
        try_out: products,
        ..ON_FLOWS
    },
    Claim {
        id: "D.norm",
        statement: "Π ρᵢ^{kᵢ} ≤ Π kᵢ^{kᵢ/2} (ρ/√L)^L, which for layers of degree one is (ρ/√L)^L: the margin per product is at least \
                    L^{L/2} times the one per norm",
        try_out: means,
        ..ON_FLOWS
    },
];

/// `log_margin`: ln of g(u)/Π ρᵢ^{kᵢ}. `promised`: Σ kᵢ times a layer's squared turn over its gain of ln ρᵢ in the step
/// that led here. `drift`: the largest change of ρᵢ²/kᵢ − ρⱼ²/kⱼ since the start, per ρ². `share`: Π ρᵢ^{kᵢ} over its bound.
fn layers() -> Columns {
    let names = ["log_margin", "promised", "drift", "share"];
    let columns = Columns::new(names, |bound| {
        let Some(homogeneity) = bound.objective.homogeneity().cloned() else {
            return Ok(Box::new(|_, out| out.extend([f64::NAN; 4])));
        };
        let blocks = bound.layout.blocks();
        let layers = homogeneity.groups.iter().map(|group| (blocks[group.blocks[0]].range(), group.degree));
        let layers: Vec<(Range<usize>, f64)> = layers.collect();
        let total: f64 = layers.iter().map(|(_, k)| k).sum();
        let constant: f64 = layers.iter().map(|(_, k)| k.powf(0.5 * k)).product();
        let start = squares(bound.start, &layers);
        Ok(Box::new(move |seen, out| {
            let (point, now) = (seen.point, squares(seen.point.params, &layers));
            let (product, norm) = (layer_product(point.params, point.layout, point.layers), norm2(point.params));
            let promised = layers.iter().map(|(range, degree)| {
                let (new, old) = (&point.params[range.clone()], &seen.before[range.clone()]);
                let (size, old_size) = (norm2(new), norm2(old));
                let turn: f64 = new.iter().zip(old).map(|(x, y)| (x / size - y / old_size).powi(2)).sum();
                degree * turn / (size / old_size).ln()
            });
            let promised = if seen.before.is_empty() { f64::NAN } else { promised.sum() };
            let drifts = now.iter().zip(&start).map(|(x, old)| ((x - now[0]) - (old - start[0])).abs());
            let share = product / (constant * (norm / total.sqrt()).powf(total));
            let margin = (point.soft_minimum() / product).ln();
            out.extend([margin, promised, drifts.fold(0.0, larger) / (norm * norm), share]);
        }))
    });
    columns.with_before()
}

/// ρᵢ²/kᵢ for every layer.
fn squares(params: &[f64], layers: &[(Range<usize>, f64)]) -> Vec<f64> {
    layers.iter().map(|(range, degree)| norm2(&params[range.clone()]).powi(2) / degree).collect()
}

/// Flows of all losses, from the start on.
fn all(lab: &Lab) -> Result<Arc<Vec<Series>>, ClaimError> {
    lab.once("layers of gradient flows", || {
        let mut tasks = Vec::new();
        for loss in LOSSES {
            for (name, widths) in [("two layers", "[8]"), ("three layers", "[6, 6]")] {
                let overrides = [format!("loss={loss}"), format!("model.widths={widths}"), "data.count=8".to_owned()];
                let found = lab.tasks("d-flows", &overrides)?;
                tasks.extend(found.into_iter().map(|task| (format!("{name}, {loss}"), task)));
            }
        }
        lab.all_series(tasks, Moments::every(1), |_| vec![measures::basics(), layers()])
    })
}

fn products(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, all) = (Outcome::default(), all(lab)?);
    for flow in all.iter() {
        let (loss, mut about) = (flow.end.task.recipe.loss.build()?, Outcome::default());
        let threshold = loss.tail().map_or(f64::NEG_INFINITY, |tail| tail.log_threshold());
        let late = flow.when("u", |u| -u < threshold);
        let falls = late.pairs(["log_margin"], |[old], [new]| larger(-(new - old), 0.0));
        let steps = falls.len();
        let what = format!("largest relative fall of the margin per product over {steps} steps");
        about.largest(what, falls, 1e-12).by_theory();
        let spare = late.pairs(["log_margin", "promised"], |[old, _], [new, promised]| new - old - promised);
        about.smallest("gain of its logarithm minus what the layers' turns promise, least", spare, -1e-9).by_theory();
        about.at_most("change of ρᵢ²/kᵢ − ρⱼ²/kⱼ per ρ²", flow.most("drift"), 1e-8).by_theory();
        about.at_least("steps after separation", steps as f64, 50.0);
        join(&mut outcome, &flow.what, about);
    }
    Ok(outcome)
}

fn means(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, all) = (Outcome::default(), all(lab)?);
    for flow in all.iter() {
        let what = format!("{}: Π ρᵢ^(kᵢ) over its bound, largest", flow.what);
        outcome.at_most(what, flow.most("share"), 1.0 + 1e-12).by_theory();
        // balance: the layers' squares over their degrees become equal as they grow
        outcome.at_least(format!("{}: the same at the end", flow.what), flow.last("share"), 0.5);
    }
    Ok(outcome)
}
