//! What all runs of an experiment say together: groups and bands, the table of final values, findings in words.
//!
//! ```text
//! runs ─► groups (equal but for the seed) ─► bands over time
//!      │                                  └► final values ─► table, winners ─► findings
//!      │                                                  ├► shares of the best: optimisers × norms
//!      │                                                  ├► curves and maps against what a sweep varies
//!      │                                                  └► the long table, for files
//!      └► failures
//! ```

mod failures;
mod finals;
mod findings;
mod groups;
mod quantities;
mod settings;
mod standing;
mod summary;
mod sweeps;
mod table;
mod words;

#[cfg(test)]
mod tests;

use super::{Analysis, ExperimentRecord, FailedRun};

/// Draws conclusions from an experiment; reads nothing but the record, so the same record gives the same words.
///
/// Numbers over seeds are taken over the finite values of runs that did not fail, and are NaN where there are none. A
/// finding is left out where the columns it needs were not measured.
///
/// ```
/// use limitpoint::experiments::{ExperimentRecord, Metrics, RunRecord, analyse};
/// let run = |optimiser: &str, margin: f64| RunRecord {
///     optimiser: optimiser.into(),
///     geometry: (optimiser == "sign").then(|| "linf".into()),
///     healthy: true,
///     metrics: Metrics {
///         columns: vec!["step".into(), "log10_loss".into(), "margin.linf".into()],
///         values: vec![vec![0.0, 10.0], vec![0.0, -5.0], vec![-0.1, margin]],
///     },
///     ..Default::default()
/// };
/// let record = ExperimentRecord { runs: vec![run("gd", 0.02), run("sign", 0.05)], ..Default::default() };
/// let analysis = analyse(&record);
/// assert!(analysis.summary.rows[1].cells[2].winner);
/// assert_eq!(analysis.findings[0].as_expected, Some(true)); // sign descent wins the margin of its own norm
/// ```
pub fn analyse(record: &ExperimentRecord) -> Analysis {
    let groups = groups::groups(record);
    let summary = summary::summary(record, &groups);
    let findings = findings::findings(record, &groups);
    let standing = standing::standing(record, &groups);
    let quantities = quantities::quantities(record);
    let (sweeps, maps) = sweeps::sweeps(record, &groups, &quantities);
    let table = table::long_table(record, &groups, &quantities);
    let failed = record.runs.iter().filter(|run| run.failed);
    let failures = failed.map(|run| FailedRun { run: run.name.clone(), reason: run.stop.clone() }).collect();
    Analysis {
        groups,
        summary,
        findings,
        failures,
        failure_kinds: failures::kinds(record),
        standing,
        sweeps,
        maps,
        table,
    }
}
