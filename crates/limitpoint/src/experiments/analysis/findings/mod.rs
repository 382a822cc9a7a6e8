//! What can be said in words, for a reader who knows gradient descent but not the theory of its bias.
//!
//! Each finding is one or two lines; behind them an explanation and the numbers in a table. Where theory expects
//! something it says whether that was seen, of all it is expected of. None says more than the numbers do.

mod course;
mod margins;
mod memory;
mod shape;
mod soft_margins;

use crate::experiments::{ExperimentRecord, Finding, Group, Table};

/// The most names in the lines of a finding; its table has all.
const NAMED: usize = 3;

/// A table of the numbers behind a finding.
fn table<const N: usize>(columns: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Table {
    Table { columns: columns.map(str::to_owned).to_vec(), rows: rows.into_iter().map(|row| row.to_vec()).collect() }
}

/// All findings, in the order in which a reader wants them.
pub(super) fn findings(record: &ExperimentRecord, groups: &[Group]) -> Vec<Finding> {
    let mut all = margins::contests(record, groups);
    all.extend(memory::outrun(record, groups));
    all.extend(soft_margins::monotony(record, groups));
    all.extend(course::loss(record, groups));
    all.extend(course::direction(record, groups));
    all.extend(shape::sparsity(record, groups));
    all.extend(shape::balance(record, groups));
    all.extend(shape::test_accuracy(record, groups));
    all.extend(course::trouble(record));
    all
}
