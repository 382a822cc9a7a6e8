//! Whole training problems, put together from specifications.
//!
//! A [`Recipe`] says what is trained and watched; an [`Experiment`] runs it, any number of runs side by side, and leaves
//! folders behind that an [`ExperimentRecord`] reads back. [`ensemble()`] repeats a closure over seeds. [`Workload`] holds the
//! fixed problems whose speed is measured; the same definitions serve `limitpoint bench`, the criterion benches and the
//! comparison with other engines.

mod analysis;
mod checkpoint;
mod ensemble;
mod experiment;
mod files;
mod journal;
mod manifest;
mod metrics;
mod parquet_file;
mod portrait;
mod recipe;
mod record;
mod run;
mod task;
mod workload;

pub use analysis::analyse;
pub use checkpoint::{RunState, load_checkpoint, save_checkpoint};
pub use ensemble::ensemble;
pub use experiment::{Experiment, RunOptions};
pub use files::{RecordError, write_atomically};
pub use journal::Mark;
pub use manifest::{ExperimentManifest, Machine, RunManifest, Status, Timings};
pub use parquet_file::to_parquet;
pub use recipe::{CertificateRule, Observe, Recipe, Stop};
pub use record::{
    Analysis, Band, DataRecord, DecisionMap, ExperimentRecord, FeatureImages, Finding, Group, HistogramRecord, Metrics,
    Portrait, ReferenceLine, RunRecord, Summary, SummaryCell, SummaryColumn, SummaryRow,
};
pub use run::{Progress, Watcher};
pub use task::{Task, TaskLabel};
pub use workload::{Workload, WorkloadSpec};

use std::path::PathBuf;

/// What keeps an experiment from running.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Nothing to run.
    #[error("the recipe names no optimiser and no flow; add [optimisers] or [flows]")]
    Nothing,
    /// A run without its optimiser.
    #[error("the recipe has no optimiser or flow called '{name}'")]
    NoTrainer {
        /// The name.
        name: String,
    },
    /// A folder of another experiment.
    #[error(
        "{} holds an experiment with another recipe; choose another folder with --out, or remove it", folder.display()
    )]
    OtherRecipe {
        /// The folder.
        folder: PathBuf,
    },
    /// No threads could be started.
    #[error("cannot start {threads} threads: {what}; ask for fewer with --threads")]
    Threads {
        /// How many.
        threads: usize,
        /// Why not.
        what: String,
    },
    /// The recipe cannot be written or read.
    #[error("the resolved recipe cannot be {doing}: {what}")]
    Recipe {
        /// What was attempted.
        doing: &'static str,
        /// Why it failed.
        what: String,
    },
    /// A file of the run could not be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A part of the recipe was refused.
    #[error(transparent)]
    Part(#[from] Box<crate::Error>),
}

/// Errors of all other modules pass through [`crate::Error`].
macro_rules! part {
    ($($error: ty),*) => {
        $(impl From<$error> for RunError {
            fn from(error: $error) -> Self {
                Self::Part(Box::new(error.into()))
            }
        })*
    };
}
part!(
    crate::data::DataError,
    crate::norms::NormError,
    crate::models::ModelError,
    crate::objective::ObjectiveError,
    crate::schedules::ScheduleError,
    crate::optimisers::OptimiserError,
    crate::flows::FlowError,
    crate::diagnostics::DiagnosticsError,
    crate::driver::DriverError
);
