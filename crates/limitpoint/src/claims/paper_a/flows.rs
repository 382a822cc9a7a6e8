//! The flows that all theorems of the paper are tried on.

use std::sync::Arc;

use rayon::prelude::*;

use crate::claims::trace::Trace;
use crate::claims::{ClaimError, Lab};

/// The traces all claims share: every norm, two and three layers, exponential, logistic and cross-entropy loss.
pub(super) fn traces(lab: &Lab) -> Result<Arc<Vec<Trace>>, ClaimError> {
    lab.once("traces of the flows", || {
        let seeds = |quick: u64, full: u64| format!("seeds=0..{}", lab.choose(quick, full) - 1);
        let deep =
            ["model.widths=[10, 10]", "initialiser=normal(deviation=0.35)", "data.count=10", "stop.log10_loss=-6"]
                .map(String::from);
        let logistic = ["loss=logistic".to_owned(), "stop.log10_loss=-5".to_owned()];
        let settings: Vec<(&str, &str, Vec<String>)> = vec![
            ("two layers, exponential", "a-flows", vec![seeds(2, 10)]),
            ("three layers, exponential", "a-flows", [&deep[..], &[seeds(1, 3)]].concat()),
            ("two layers, logistic", "a-flows", [&logistic[..], &[seeds(1, 3)]].concat()),
            ("three layers, logistic", "a-flows", [&deep[..], &logistic[..], &[seeds(1, 3)]].concat()),
            ("two layers, cross-entropy", "a-flows-classes", vec![seeds(1, 3)]),
            ("three layers, cross-entropy", "a-flows-classes", [&deep[..3], &[seeds(1, 3)]].concat()),
        ];
        let mut tasks = Vec::new();
        for (name, experiment, overrides) in &settings {
            for task in lab.tasks(experiment, overrides)? {
                tasks.push((format!("{name}, {}, seed {}", task.label.optimiser, task.label.seed), task));
            }
        }
        tasks.into_par_iter().map(|(what, task)| Trace::of(lab, what, &task)).collect()
    })
}

/// Those of the traces that a theorem about the exponential loss speaks of.
pub(super) fn exponential(traces: &[Trace]) -> impl Iterator<Item = &Trace> {
    traces.iter().filter(|trace| trace.what.contains("exponential"))
}
