//! Whole training problems, put together from specifications.
//!
//! [`ensemble()`] repeats an experiment over seeds. [`Workload`] holds the fixed problems whose speed is measured; the same definitions serve `limitpoint bench`, the
//! criterion benches and the comparison with other engines.

mod analysis;
mod ensemble;
mod recipe;
mod record;
mod workload;

pub use analysis::analyse;
pub use ensemble::ensemble;
pub use recipe::{CertificateRule, Observe, Recipe, Stop};
pub use record::{
    Analysis, Band, DataRecord, DecisionMap, ExperimentRecord, FeatureImages, Finding, Group, HistogramRecord, Metrics,
    Portrait, ReferenceLine, RunRecord, Summary, SummaryCell, SummaryColumn, SummaryRow,
};
pub use workload::{Workload, WorkloadSpec};
