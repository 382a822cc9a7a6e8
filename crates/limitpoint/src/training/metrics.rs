//! A table of named columns: the measurements of a run.

use std::f64::consts::LN_10;

use serde::{Deserialize, Serialize};

use crate::diagnostics::DirectionCourse;

/// A table of measurements, one row per snapshot; a missing number is NaN.
///
/// Columns always present: `step`, `epoch`, `log10_time`, `log10_loss` (base ten; they go far below what a float of the
/// loss itself could hold), `accuracy`, `smallest_margin`, `direction_change`. For each observed norm KEY: `norm.KEY`,
/// `margin.KEY` (normalised), `soft_margin.KEY`, `growth_bound.KEY`, `alignment.KEY`, `kkt_gap.KEY`, `kkt_slack.KEY`;
/// linear models also `bracket_upper.KEY`. For each potential KEY: `gauge.KEY`, `horizon.KEY`, `q_margin.KEY`,
/// `horizon_margin.KEY`, `mirror_beta.KEY`, `balance_drift.KEY`. For each block: `small_fraction.BLOCK`,
/// `participation.BLOCK`. For models of three weights: `direction.1` to `direction.3`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Metrics {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The columns' values, all of one length.
    pub values: Vec<Vec<f64>>,
}

impl Metrics {
    /// One column over time; empty if there is no such column.
    pub fn column(&self, name: &str) -> &[f64] {
        let index = self.columns.iter().position(|column| column == name);
        index.and_then(|index| self.values.get(index)).map_or(&[], Vec::as_slice)
    }

    /// The last value of a column.
    pub fn last(&self, name: &str) -> Option<f64> {
        self.column(name).last().copied()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.first().map_or(0, Vec::len)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These columns alone, in this order; those that are not there are left out.
    pub fn only(&self, columns: &[String]) -> Self {
        let find = |name: &String| self.columns.iter().position(|column| column == name);
        let kept: Vec<usize> = columns.iter().filter_map(find).collect();
        Self {
            columns: kept.iter().map(|place| self.columns[*place].clone()).collect(),
            values: kept.iter().map(|place| self.values[*place].clone()).collect(),
        }
    }

    /// The path of the direction since the loss was first below 1/e; nothing where it is too short to be judged, or
    /// where no norm was measured.
    ///
    /// ```
    /// use limitpoint::training::Metrics;
    /// let columns = ["log10_loss", "norm.l2", "direction_change"].map(String::from).to_vec();
    /// let sizes: Vec<f64> = (0..20).map(|k| f64::from(k).exp()).collect();
    /// let table =
    ///     |turns| Metrics { columns: columns.clone(), values: vec![vec![-9.0; 20], sizes.clone(), turns] };
    /// assert!(table(vec![0.1; 20]).direction_course().unwrap().wanders());
    /// assert!(!table(sizes.iter().map(|size| 1.0 / size).collect()).direction_course().unwrap().wanders());
    /// ```
    pub fn direction_course(&self) -> Option<DirectionCourse> {
        let mut norms = self.columns.iter().filter(|column| column.starts_with("norm."));
        // all norms grow alike, up to a constant
        let norm = norms.clone().find(|column| *column == "norm.l2").or_else(|| norms.next())?;
        let begin = self.column("log10_loss").iter().position(|log_loss| log_loss * LN_10 <= DirectionCourse::BEGIN)?;
        let rows = self.column(norm).iter().zip(self.column("direction_change")).skip(begin);
        DirectionCourse::of(&rows.map(|(size, turn)| [size.ln(), *turn]).collect::<Vec<_>>())
    }
}
