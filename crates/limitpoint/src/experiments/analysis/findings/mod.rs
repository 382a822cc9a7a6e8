//! What can be said in words, for a reader who knows gradient descent but not the theory of its bias.
//!
//! Each finding says what was measured, gives the numbers, and where theory expects something, what and whether it was
//! seen. None says more than the numbers do.

mod course;
mod margins;
mod shape;
mod soft_margins;

use crate::experiments::record::{ExperimentRecord, Finding, Group};

/// All findings, in the order in which a reader wants them.
pub(super) fn findings(record: &ExperimentRecord, groups: &[Group]) -> Vec<Finding> {
    let mut all = margins::contests(record, groups);
    all.extend(soft_margins::monotony(record, groups));
    all.extend(course::loss(record, groups));
    all.extend(course::direction(record, groups));
    all.extend(shape::sparsity(record, groups));
    all.extend(shape::balance(record, groups));
    all.extend(shape::test_accuracy(record, groups));
    all.extend(course::trouble(record));
    all
}
