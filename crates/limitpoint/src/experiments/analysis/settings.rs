//! What a sweep varies: settings that differ between runs of the same optimiser.
//!
//! A sweep over optimisers is none in this sense: `optimiser=sign,adam` makes runs that are compared with each other.

use crate::experiments::{ExperimentRecord, RunRecord};

/// The keys that take several values for one and the same optimiser, in order of appearance.
pub(super) fn swept(record: &ExperimentRecord) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    let mut first: std::collections::HashMap<(&str, &str), &str> = std::collections::HashMap::new();
    for run in &record.runs {
        for (key, value) in &run.point {
            let known = first.entry((&run.optimiser, key)).or_insert(value);
            if known != value && !keys.contains(&key.as_str()) {
                keys.push(key);
            }
        }
    }
    // in the order of the recipe, whichever varied first
    let order = |key: &&str| record.runs.first().and_then(|run| run.point.iter().position(|(name, _)| name == key));
    keys.sort_by_key(order);
    keys
}

/// Those of the `swept` settings that a run has, `model.width=64, rate=0.1`; empty where nothing is swept.
pub(super) fn setting_of(swept: &[&str], run: &RunRecord) -> String {
    let varied = run.point.iter().filter(|(key, _)| swept.contains(&key.as_str()));
    varied.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}
