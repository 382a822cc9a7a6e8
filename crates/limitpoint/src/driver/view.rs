//! What observers see of a process.

use crate::diagnostics::Point;
use crate::numeric::LogScaled;
use crate::objective::{Objective, Reduction};
use crate::observers::Snapshot;

/// ln of the summed loss, whatever the reduction.
pub(super) fn summed(objective: &Objective, log_loss: f64) -> f64 {
    match objective.reduction() {
        Reduction::Sum => log_loss,
        Reduction::Mean => log_loss + (objective.total_examples() as f64).ln(),
    }
}

/// A snapshot of what an objective holds after forward and backward at `params`.
pub(super) fn snapshot<'a>(
    objective: &'a Objective,
    params: &'a [f64],
    gradient: &'a LogScaled,
    (step, epoch, log_time): (u64, u64, f64),
    smallest_preactivation: f64,
) -> Snapshot<'a> {
    let point = Point {
        params,
        layout: objective.layout(),
        homogeneity: objective.homogeneity(),
        layers: objective.layer_degrees(),
        loss: objective.loss(),
        margins: objective.margins(),
        per_example: objective.per_example(),
        weights: objective.weights(),
        gradient,
        log_loss: summed(objective, objective.log_loss()),
        regression: objective.is_regression(),
        smallest_preactivation,
    };
    Snapshot { step, epoch, log_time, point }
}
