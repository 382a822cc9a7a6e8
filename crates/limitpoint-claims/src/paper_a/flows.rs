//! The flows that all theorems of the paper are tried on.

use std::sync::Arc;

use crate::{ClaimError, Lab, Series, steepest};

/// The flows all claims share: every norm, two and three layers, exponential, logistic and cross-entropy loss.
pub(super) fn flows(lab: &Lab) -> Result<Arc<Vec<Series>>, ClaimError> {
    lab.once("steepest flows", || {
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
        steepest::flows(lab, tasks)
    })
}

/// Those that a theorem about the exponential loss speaks of.
pub(super) fn exponential(flows: &[Series]) -> impl Iterator<Item = &Series> + Clone {
    flows.iter().filter(|flow| flow.what.contains("exponential"))
}

/// The values of a column of all flows, one after the other.
pub(super) fn all<'a>(flows: impl Iterator<Item = &'a Series>, name: &str) -> impl Iterator<Item = f64> {
    flows.flat_map(move |flow| flow.column(name).to_vec())
}
