//! The path of a run's direction, from its table of measurements.

use std::f64::consts::LN_10;

use super::record::Metrics;
use crate::diagnostics::DirectionCourse;

impl Metrics {
    /// The path of the direction since the loss was first below 1/e; nothing where it is too short to be judged, or
    /// where no norm was measured.
    ///
    /// ```
    /// use limitpoint::experiments::Metrics;
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
