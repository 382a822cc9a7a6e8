//! Final values of a group: the last row of every run that did not fail, taken over the seeds.

use crate::experiments::{ExperimentRecord, Group, RunRecord};

/// Mean and range of the finite ones among some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Finals {
    /// How many were finite.
    pub count: usize,
    /// Their mean; NaN if there are none.
    pub mean: f64,
    /// The smallest; NaN if there are none.
    pub low: f64,
    /// The largest; NaN if there are none.
    pub high: f64,
}

impl Finals {
    /// Over the finite values.
    pub fn over(values: impl IntoIterator<Item = f64>) -> Self {
        let none = Self { count: 0, mean: f64::NAN, low: f64::NAN, high: f64::NAN };
        let finite = values.into_iter().filter(|value| value.is_finite());
        let mut all = finite.fold(none, |so_far, value| {
            let count = so_far.count + 1;
            let share = 1.0 / count as f64;
            // a running mean, since a sum of large numbers could overflow
            let mean = if so_far.count == 0 { value } else { so_far.mean + (value * share - so_far.mean * share) };
            // min and max return the number when the other side is NaN
            Self { count, mean, low: so_far.low.min(value), high: so_far.high.max(value) }
        });
        all.mean = all.mean.max(all.low).min(all.high); // rounding must not carry it outside
        all
    }

    /// The last row of `column` over the runs of `group` that did not fail.
    pub fn of_column(record: &ExperimentRecord, group: &Group, column: &str) -> Self {
        Self::over(counted(record, group).filter_map(|run| run.metrics.last(column)))
    }

    /// Half the range; 0 for fewer than two values.
    pub fn spread(&self) -> f64 {
        if self.count < 2 { 0.0 } else { 0.5 * (self.high - self.low) }
    }
}

/// The runs of a group.
pub(super) fn runs<'a>(record: &'a ExperimentRecord, group: &'a Group) -> impl Iterator<Item = &'a RunRecord> {
    group.runs.iter().filter_map(|&index| record.runs.get(index))
}

/// The runs of a group that means are taken over: those that did not fail.
pub(super) fn counted<'a>(record: &'a ExperimentRecord, group: &'a Group) -> impl Iterator<Item = &'a RunRecord> {
    runs(record, group).filter(|run| !run.failed)
}

/// The geometry theory assigns to a group, where all its runs agree on one.
pub(super) fn geometry<'a>(record: &'a ExperimentRecord, group: &'a Group) -> Option<&'a str> {
    agreed(record, group, |run| run.geometry.as_deref())
}

/// Whether theory expects a group to maximise the margin of the norm `key`: its own, or that of its horizon.
pub(super) fn is_named(record: &ExperimentRecord, group: &Group, key: &str) -> bool {
    let own = agreed(record, group, |run| run.own_norm.as_deref());
    geometry(record, group).is_some_and(|geometry| geometry == key || own == Some(key))
}

/// Whether `key` is the norm a group belongs to, whether or not a theorem speaks of its margin.
pub(super) fn is_own(record: &ExperimentRecord, group: &Group, key: &str) -> bool {
    is_named(record, group, key) || agreed(record, group, |run| run.own_norm.as_deref()) == Some(key)
}

/// What all runs of a group agree on.
fn agreed<'a>(
    record: &'a ExperimentRecord,
    group: &'a Group,
    what: impl Fn(&'a RunRecord) -> Option<&'a str>,
) -> Option<&'a str> {
    let mut all = runs(record, group).map(what);
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// Names of the columns of any run that begin with `prefix`, without the prefix, in order of appearance.
pub(super) fn keys(record: &ExperimentRecord, prefix: &str) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for column in record.runs.iter().flat_map(|run| &run.metrics.columns) {
        if let Some(key) = column.strip_prefix(prefix).filter(|key| !keys.iter().any(|known| known == key)) {
            keys.push(key.to_owned());
        }
    }
    keys
}
