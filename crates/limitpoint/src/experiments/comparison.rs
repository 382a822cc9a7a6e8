//! Two experiments or sweeps side by side: which runs both have, whether these agree in every bit, and what they ended
//! with.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::analysis::analyse;
use super::record::{ExperimentRecord, Metrics, RunRecord};

/// What two records have in common, and in what they differ.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Comparison {
    /// Runs that both have.
    pub pairs: Vec<RunPair>,
    /// Runs that only the first has, and only the second.
    pub only: [Vec<String>; 2],
    /// Final values of the runs that both have, side by side, means over their seeds.
    pub table: SideBySide,
}

/// A run that both have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunPair {
    /// Its name in the second.
    pub run: String,
    /// Where the measurements part; nothing if all are the same, bit for bit.
    pub difference: Option<Difference>,
    /// Whether the weights they ended with are the same, bit for bit; nothing while a run goes on.
    pub same_weights: Option<bool>,
}

impl RunPair {
    /// Whether both are finished with the same measurements and the same weights, bit for bit.
    pub fn is_equal(&self) -> bool {
        self.difference.is_none() && self.same_weights == Some(true)
    }
}

/// Where two tables of measurements part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The first column that differs, in the first row that does.
    pub column: String,
    /// The step of that row.
    pub step: f64,
    /// The two numbers.
    pub values: [f64; 2],
}

/// Final values of two records.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SideBySide {
    /// Name and heading of every quantity.
    pub columns: Vec<(String, String)>,
    /// One row for every optimiser at every setting that both have.
    pub rows: Vec<SideBySideRow>,
}

/// Runs of both that differ in their seed only.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideBySideRow {
    /// The optimiser and its setting.
    pub label: String,
    /// Seeds that count in the first and in the second: of runs that both have and that did not fail.
    pub seeds: [usize; 2],
    /// Means of every quantity in the first and in the second; NaN where nothing was measured.
    pub means: Vec<[f64; 2]>,
}

/// Compares two records. A run is the same in both where its name is, or else its optimiser, its settings and its seed.
///
/// ```
/// use limitpoint::experiments::{ExperimentRecord, Metrics, RunRecord, compare_records};
/// let run = |seed: u64, margin: f64| RunRecord {
///     name: format!("sign-seed{seed}"),
///     optimiser: "sign".into(),
///     seed,
///     weights: Some(margin.to_string()),
///     metrics: Metrics { columns: vec!["step".into(), "margin.linf".into()], values: vec![vec![9.0], vec![margin]] },
///     ..Default::default()
/// };
/// let record = |runs: Vec<RunRecord>| ExperimentRecord { runs, ..Default::default() };
/// let found = compare_records(&record(vec![run(1, 0.5), run(2, 0.6)]), &record(vec![run(2, 0.6), run(3, 0.7)]));
/// assert!(found.pairs.len() == 1 && found.pairs[0].is_equal());
/// assert_eq!(found.only, [["sign-seed1"], ["sign-seed3"]]);
/// assert_eq!(found.table.rows[0].means[0], [0.6, 0.6]);
/// ```
pub fn compare_records(first: &ExperimentRecord, second: &ExperimentRecord) -> Comparison {
    let by_name: HashMap<&str, usize> = places(first, |run| run.name.as_str());
    let by_point: HashMap<_, usize> = places(first, identity);
    let (mut pairs, mut taken, mut shared) = (Vec::new(), HashSet::new(), [Vec::new(), Vec::new()]);
    let mut only = [Vec::new(), Vec::new()];
    for run in &second.runs {
        let twin = by_name.get(run.name.as_str()).or_else(|| by_point.get(&identity(run)));
        let Some(&twin) = twin.filter(|twin| !taken.contains(*twin)) else {
            only[1].push(run.name.clone());
            continue;
        };
        taken.insert(twin);
        let twin = &first.runs[twin];
        pairs.push(RunPair {
            run: run.name.clone(),
            difference: first_difference(&twin.metrics, &run.metrics),
            same_weights: twin.weights.as_ref().zip(run.weights.as_ref()).map(|(a, b)| a == b),
        });
        shared[0].push(twin.clone());
        // under the settings of the first, so that both are in one row
        let (point, seed, optimiser) = (twin.point.clone(), twin.seed, twin.optimiser.clone());
        shared[1].push(RunRecord { point, seed, optimiser, ..run.clone() });
    }
    let left = first.runs.iter().enumerate().filter(|(place, _)| !taken.contains(place));
    only[0].extend(left.map(|(_, run)| run.name.clone()));
    Comparison { pairs, only, table: side_by_side(shared) }
}

fn places<'a, K: std::hash::Hash + Eq>(
    record: &'a ExperimentRecord,
    key: impl Fn(&'a RunRecord) -> K,
) -> HashMap<K, usize> {
    record.runs.iter().enumerate().map(|(place, run)| (key(run), place)).collect()
}

fn identity(run: &RunRecord) -> (&str, &[(String, String)], u64) {
    (&run.optimiser, &run.point, run.seed)
}

fn side_by_side(shared: [Vec<RunRecord>; 2]) -> SideBySide {
    // the runs of both are in one order, and so are their groups
    let [first, second] = shared.map(|runs| analyse(&ExperimentRecord { runs, ..ExperimentRecord::default() }));
    let columns = first.table.quantities.clone();
    let mean = |table: &super::LongTable, row: usize, column: &str| {
        let place = table.quantities.iter().position(|(known, _)| known == column);
        place.and_then(|place| Some(table.rows.get(row)?.cells.get(place)?[0])).unwrap_or(f64::NAN)
    };
    let row = |(number, group): (usize, &super::Group)| SideBySideRow {
        label: group.label.clone(),
        seeds: [&first.table, &second.table].map(|table| table.rows.get(number).map_or(0, |row| row.seeds)),
        means: columns
            .iter()
            .map(|(column, _)| [mean(&first.table, number, column), mean(&second.table, number, column)])
            .collect(),
    };
    SideBySide { rows: first.groups.iter().enumerate().map(row).collect(), columns }
}

/// The first row, and in it the first column, in which two tables are not the same.
fn first_difference(a: &Metrics, b: &Metrics) -> Option<Difference> {
    let steps = if a.len() >= b.len() { a.column("step") } else { b.column("step") };
    let names = || a.columns.iter().chain(b.columns.iter().filter(|name| !a.columns.contains(name)));
    for (row, &step) in steps.iter().enumerate() {
        for name in names() {
            let value = |table: &Metrics| table.column(name).get(row).copied().unwrap_or(f64::NAN);
            let (x, y) = (value(a), value(b));
            if x.to_bits() != y.to_bits() && !(x.is_nan() && y.is_nan()) {
                return Some(Difference { column: name.clone(), step, values: [x, y] });
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_part_at_the_first_other_bit() {
        let table = |x: &[f64]| Metrics {
            columns: vec!["step".into(), "x".into()],
            values: vec![(0..x.len()).map(|i| i as f64).collect(), x.to_vec()],
        };
        let a = table(&[1.0, f64::NAN, 3.0]);
        assert_eq!(first_difference(&a, &a.clone()), None);
        let found = first_difference(&a, &table(&[1.0, f64::NAN, 3.0000000000000004])).unwrap();
        assert_eq!((found.column.as_str(), found.step), ("x", 2.0));
        assert_eq!(first_difference(&a, &table(&[1.0])).unwrap().step, 1.0);
    }

    #[test]
    fn seeds_of_both_are_in_one_row_and_failed_ones_do_not_count() {
        let at = |name: &str, width: &str, seed: u64, margin: f64| RunRecord {
            name: name.into(),
            point: vec![("width".into(), width.into())],
            weights: Some(format!("{margin}")),
            optimiser: "gd".into(),
            seed,
            metrics: Metrics {
                columns: vec!["step".into(), "margin.l2".into()],
                values: vec![vec![9.0], vec![margin]],
            },
            ..RunRecord::default()
        };
        let record = |runs: Vec<RunRecord>| ExperimentRecord { runs, ..Default::default() };
        let first =
            record(vec![at("a", "1", 1, 1.0), at("b", "1", 2, 3.0), at("c", "2", 1, 5.0), at("d", "3", 1, 9.0)]);
        let failed = RunRecord { failed: true, ..at("z", "1", 2, 9.0) };
        // other names, another order, and one run that went another way
        let second = record(vec![at("x", "2", 1, 5.0), at("y", "1", 1, 1.0), failed, at("w", "4", 1, 0.0)]);
        let found = compare_records(&first, &second);
        assert_eq!(found.pairs.iter().filter(|pair| pair.is_equal()).count(), 2);
        let parted = found.pairs.iter().find(|pair| pair.run == "z").and_then(|pair| pair.difference.as_ref()).unwrap();
        assert_eq!((parted.column.as_str(), parted.values), ("margin.l2", [3.0, 9.0]));
        assert_eq!(found.only, [vec!["d".to_owned()], vec!["w".to_owned()]]);
        let row = |label: &str| found.table.rows.iter().find(|row| row.label.contains(label)).unwrap();
        assert_eq!((row("width=1").means[0], row("width=1").seeds), ([2.0, 1.0], [2, 1]));
        assert_eq!(row("width=2").means[0], [5.0, 5.0]);
    }
}
