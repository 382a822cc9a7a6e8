//! The long table of final values: every group and every run with its settings and every quantity, for files.

use super::finals::{Finals, counted};
use super::quantities::Quantity;
use super::settings::swept;
use crate::experiments::{ExperimentRecord, Group, LongRow, LongRun, LongTable, RunRecord};

/// One row per group and one per run, in their order; means and ranges are over the seeds that did not fail.
pub(super) fn long_table(record: &ExperimentRecord, groups: &[Group], quantities: &[Quantity]) -> LongTable {
    let settings = swept(record);
    let values = |run: &RunRecord| -> Vec<String> {
        let value = |key: &&str| run.point.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
        settings.iter().map(|key| value(key).unwrap_or_default()).collect()
    };
    let row = |group: &Group| {
        let first = group.runs.first().and_then(|run| record.runs.get(*run));
        let live = || group.runs.iter().filter(|run| record.runs.get(**run).is_some_and(|run| !run.failed));
        let cells = quantities.iter().map(|quantity| {
            let Finals { mean, low, high, .. } = Finals::over(live().map(|run| quantity.values[*run]));
            [mean, low, high]
        });
        LongRow {
            optimiser: group.optimiser.clone(),
            settings: first.map(values).unwrap_or_default(),
            seeds: counted(record, group).count(),
            of: group.runs.len(),
            cells: cells.collect(),
        }
    };
    let single = |(index, run): (usize, &RunRecord)| LongRun {
        run: run.name.clone(),
        optimiser: run.optimiser.clone(),
        settings: values(run),
        seed: run.seed,
        steps: run.steps,
        state: match (run.failed, run.healthy) {
            (true, _) => "failed",
            (false, true) => "healthy",
            (false, false) => "going on",
        }
        .to_owned(),
        cells: quantities.iter().map(|quantity| quantity.values[index]).collect(),
    };
    LongTable {
        runs: record.runs.iter().enumerate().map(single).collect(),
        rows: groups.iter().map(row).collect(),
        settings: settings.iter().map(|key| (*key).to_owned()).collect(),
        quantities: quantities.iter().map(|quantity| (quantity.column.clone(), quantity.label.clone())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::experiments::RunRecord;
    use crate::experiments::analysis::analyse;
    use crate::experiments::analysis::tests::{record, run};

    #[test]
    fn seeds_become_one_row_and_failed_ones_do_not_count() {
        let at = |width: &str, seed: u64, margin: f64| RunRecord {
            point: vec![("width".into(), width.into())],
            ..run("gd", seed, &[("step", &[9.0]), ("margin.l2", &[margin])])
        };
        let failed = RunRecord { failed: true, ..at("10", 3, 1e9) };
        let table = analyse(&record(vec![at("10", 1, 1.0), at("10", 2, 2.0), failed, at("20", 1, 5.0)])).table;
        assert_eq!((table.settings, table.rows.len()), (vec!["width".to_owned()], 2));
        assert_eq!(table.quantities, [("margin.l2".to_owned(), "ℓ2 margin".to_owned())]);
        assert_eq!(
            table.runs.iter().map(|run| run.state.as_str()).collect::<Vec<_>>(),
            ["healthy", "healthy", "failed", "healthy"]
        );
        assert_eq!((table.runs[3].settings[0].as_str(), table.runs[3].cells[0]), ("20", 5.0));
        assert_eq!((table.rows[0].seeds, table.rows[0].of), (2, 3));
        assert_eq!((table.rows[0].cells[0], table.rows[1].cells[0]), ([1.5, 1.0, 2.0], [5.0, 5.0, 5.0]));
    }
}
