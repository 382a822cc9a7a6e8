//! Weight histograms over time.

use super::{Continue, Observer, Snapshot, Spacing};
use crate::diagnostics::{Histogram, histogram};

/// The histograms of one snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramRow {
    /// Accepted steps.
    pub step: u64,
    /// One histogram per trainable block, by name.
    pub blocks: Vec<(String, Histogram)>,
}

/// Keeps a histogram of |w|/max|w| of every trainable block.
pub struct HistogramRecorder {
    bins: usize,
    spacing: Spacing,
    rows: Vec<HistogramRow>,
}

impl HistogramRecorder {
    /// Histograms with `bins` bins at the steps of `spacing`.
    pub fn new(bins: usize, spacing: Spacing) -> Self {
        Self { bins, spacing, rows: Vec::new() }
    }

    /// All histograms so far.
    pub fn rows(&self) -> &[HistogramRow] {
        &self.rows
    }
}

impl Observer for HistogramRecorder {
    fn wants(&self, step: u64) -> bool {
        self.spacing.includes(step)
    }

    fn observe(&mut self, snapshot: &Snapshot) -> Continue {
        let point = &snapshot.point;
        let of_block =
            |block: &crate::params::Block| (block.name.clone(), histogram(&point.params[block.range()], self.bins));
        let blocks = point.layout.trainable().map(of_block).collect();
        self.rows.retain(|row| row.step < snapshot.step);
        self.rows.push(HistogramRow { step: snapshot.step, blocks });
        Continue::Yes
    }
}
