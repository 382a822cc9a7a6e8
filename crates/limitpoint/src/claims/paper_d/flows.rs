//! The gradient flows that the theorems are tried on: four losses, two and three layers.

use std::sync::Arc;

use rayon::prelude::*;

use crate::claims::trace::Trace;
use crate::claims::{ClaimError, Lab};
use crate::losses::Loss;

/// The losses of Remarks A.1 and A.2 and the two that Assumption (B3) adds, as the command line writes them.
pub(super) const LOSSES: [&str; 4] = ["exponential", "logistic", "power-exponential(k=3)", "power-logistic(k=3)"];

/// One watched flow for every loss, depth and seed whose start leads to separated data.
pub(super) fn traces(lab: &Lab) -> Result<Arc<Vec<Trace>>, ClaimError> {
    lab.once("gradient flows with four losses", || {
        let mut tasks = Vec::new();
        for loss in LOSSES {
            for (name, widths, seeds) in [("two layers", "[8]", [2, 5]), ("three layers", "[6, 6]", [1, 3])] {
                let seeds = lab.choose(seeds[0], seeds[1]);
                let mut overrides = vec![format!("loss={loss}"), format!("model.widths={widths}")];
                overrides.push(format!("seeds=0..{}", seeds - 1));
                if loss.starts_with("power") {
                    // margins go like the cube root of ln 1/L
                    overrides.push("stop.log10_loss=-4343".to_owned());
                }
                if name == "three layers" {
                    overrides.push("data.count=8".to_owned());
                }
                for task in lab.tasks("d-flows", &overrides)? {
                    tasks.push((format!("{name}, {loss}, seed {}", task.label.seed), task));
                }
            }
        }
        tasks.into_par_iter().map(|(what, task)| Trace::of(lab, what, &task)).collect()
    })
}

/// The loss of a trace.
pub(super) fn loss_of(trace: &Trace) -> Result<Box<dyn Loss>, ClaimError> {
    Ok(trace.end.task.recipe.loss.build()?)
}
