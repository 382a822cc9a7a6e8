//! Whole training problems, put together from specifications.
//!
//! A [`Recipe`] says all about an experiment. [`plan()`] makes one, or one for every point of a sweep, from a
//! [`RecipeSource`] (a TOML file or one of the [`builtins()`]) and overrides; [`schema()`] describes such files. An
//! [`Experiment`] runs it, any number of runs side by side, and leaves folders behind that an [`ExperimentRecord`]
//! reads back; [`analyse`] says what came out. [`ensemble()`] repeats a closure over seeds. [`Workload`] holds the
//! problems whose speed is measured, four that are fixed and those of a [`NetworkShape`]; the same definitions serve
//! `limitpoint bench`, the criterion benches and the comparison with other engines.

// recipes: from files and overrides to what is run
mod comparison;
mod complaint;
#[cfg(test)]
mod composition_tests;
mod glossary;
mod node;
#[cfg(test)]
mod number_tests;
mod overrides;
mod plan;
mod ranges;
mod read;
mod recipe;
#[cfg(test)]
mod recipe_tests;
mod schema;
mod shape;
mod shorthand;
mod source;
#[cfg(test)]
mod sparse_tests;
mod spot;
mod texts;
mod walk;

// runs: from a task to its files, and back after an interruption
mod checkpoint;
mod config;
mod damage;
mod experiment;
mod extend;
mod files;
mod fit;
mod hold;
mod journal;
mod locate;
mod manifest;
mod memory;
mod metrics;
mod parquet_file;
mod portrait;
mod run;
mod seal;
mod task;
mod watcher;
mod weights;

// the judge: what the limit is, and whether a run's claim holds
mod audit;
mod certify;
mod optima;
mod polish;
mod prove;
mod robustness;
mod tangent_check;

// records: what is left, and what it says
mod analysis;
mod conclusions;
mod in_memory;
mod listed;
mod live;
mod load;
mod record;
mod verify;

mod ensemble;
mod network_shape;
mod product_rate;
mod rates;
mod sweep;
#[cfg(test)]
mod training_tests;
mod workload;

pub use analysis::analyse;
pub use audit::{Audit, AuditedNorm, ForeignWeights, audit_weights, load_foreign_weights};
pub use certify::{
    CERTIFICATE_FILE, CertifyOptions, CheckedCertificate, certify_run, check_certificate, run_folders, save_certificate,
};
pub use checkpoint::{RunState, load_checkpoint, milestone_name, save_checkpoint};
pub use comparison::{Comparison, Difference, RunPair, SideBySide, SideBySideRow, compare_records};
pub use complaint::{Hint, RecipeError, Spot};
pub use conclusions::{
    Analysis, Band, FailedRun, FailureKind, Finding, Group, LongRow, LongRun, LongTable, MapPanel, Standing,
    StandingCell, StandingColumn, StandingRow, Summary, SummaryCell, SummaryColumn, SummaryRow, Sweep, SweepLine,
    SweepMap, SweepPanel, Table,
};
pub use damage::is_damage;
pub use ensemble::ensemble;
pub use experiment::{Experiment, RunOptions};
pub use files::{RecordError, write_atomically};
pub use glossary::{Instance, Setting, columns, explain, glossary, recipe_keys};
pub use hold::Owner;
pub use in_memory::NamedRun;
pub use journal::Mark;
pub use listed::{FIGURES, TABLES, save_figures, save_listed};
pub use live::LiveRecord;
pub use locate::{Loaded, experiment_data, run_data};
pub use manifest::{ExperimentManifest, Machine, RunEntry, RunManifest, Status, Timings};
pub use network_shape::{DrawnShapes, NetworkShape, ShapeError};
pub use optima::{OptimaRecord, Optimum};
pub use parquet_file::to_parquet;
pub use plan::{Plan, PlanPoint, plan};
pub use polish::{PolishedRun, WarmStart, polish_run, polished_file};
pub use product_rate::ProductRate;
pub use prove::{CheckedProof, ProveOptions, ProvedRun, check_proof, is_proof, proof_file, prove_run};
pub use rates::{OptimiserRates, rates};
pub use recipe::{CertificateRule, Observe, Recipe, Stop};
pub use record::{
    ActivationMaps, CertificateRecord, DataRecord, DecisionMap, ExperimentRecord, FeatureImages, HistogramRecord,
    Metrics, Portrait, ReferenceLine, RunRecord,
};
pub use robustness::{Part, RobustnessOptions, RunRobustness, run_robustness, trained_weights};
pub use schema::schema;
pub use seal::Seal;
pub use source::{RecipeSource, builtins};
pub use sweep::{
    Claim, Claims, Departure, FailedEntry, LaidOut, LeaseStanding, Leases, Merged, Moved, Next, RunningEntry,
    SweepStatus, WorkOptions, WorkOutcome, WorkerRecord, is_sweep, lay_out, merge, place, retry_failed, run_name,
    status, work,
};
pub use tangent_check::{CheckedTangent, check_tangent_file, is_tangent_file, save_tangent_file};
pub use task::{Task, TaskLabel};
pub use verify::{Damage, REPORT_FILE, Verification, save_page, verify};
pub use watcher::{Progress, Watcher};
pub use weights::load_weights;
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
    /// A run that cannot be judged yet.
    #[error("{} has no {file}; finish the run first with `limitpoint resume`", folder.display())]
    Unfinished {
        /// Its folder.
        folder: PathBuf,
        /// What is missing.
        file: &'static str,
    },
    /// Nothing is known about the limit of a run.
    #[error("nothing can be claimed of {run}: {why}")]
    NoClaim {
        /// Name of the run.
        run: String,
        /// Why, and the remedy.
        why: String,
    },
    /// Data that changed since the run.
    #[error(
        "the data of {} are not those it was trained on: SHA-256 {found} instead of {expected}; restore their files{}",
        folder.display(), listed(files)
    )]
    OtherData {
        /// Folder of the run.
        folder: PathBuf,
        /// Where they were found.
        files: Vec<PathBuf>,
        /// SHA-256 at the time of the run.
        expected: String,
        /// SHA-256 now.
        found: String,
    },
    /// Data that can no longer be read.
    #[error("the data of {} can no longer be read: {why}; restore them, their SHA-256 was {expected}", folder.display())]
    LostData {
        /// Folder of the run.
        folder: PathBuf,
        /// SHA-256 at the time of the run.
        expected: String,
        /// What is wrong with them.
        why: String,
    },
    /// Files of data that are nowhere.
    #[error(
        "the data were not found{}{}; name the folder that holds these files with --data-dir", listed(tried),
        expected.as_ref().map_or_else(String::new, |sum| format!("; their SHA-256 was {sum}"))
    )]
    NoData {
        /// The paths that were tried.
        tried: Vec<PathBuf>,
        /// SHA-256 at the time of the run; nothing for a run that begins.
        expected: Option<String>,
    },
    /// A setting that cannot change when an experiment goes on.
    #[error("an experiment can go on to a later stop only, not with {setting}: {why}")]
    NotLater {
        /// The override.
        setting: String,
        /// What is wrong with it.
        why: String,
    },
    /// A claim could not be judged, or a certificate not be read.
    #[error(transparent)]
    Certificate(#[from] crate::certificates::DocumentError),
    /// A run could not be polished.
    #[error(transparent)]
    Polish(#[from] crate::certificates::PolishError),
    /// Nothing can be proven about a run's model.
    #[error(transparent)]
    Proof(#[from] crate::proofs::ProofError),
    /// The recipe of a run's folder cannot be read.
    #[error("the recipe of a run cannot be read: {0}")]
    Unreadable(String),
    /// The recipe was refused.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A file of the run could not be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A part of the recipe was refused.
    #[error(transparent)]
    Part(#[from] Box<crate::Error>),
}

impl RunError {
    /// Whether files were changed or lost after they were written: those of a run, or those of its data.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Record(error) => error.is_damage(),
            Self::OtherData { .. } | Self::LostData { .. } | Self::Unreadable(_) => true,
            _ => false,
        }
    }
}

/// ` (a, b)`; nothing for no paths.
fn listed(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
}

crate::error::pass_through!(RunError:
    crate::data::DataError,
    crate::norms::NormError,
    crate::models::ModelError,
    crate::objective::ObjectiveError,
    crate::schedules::ScheduleError,
    crate::optimisers::OptimiserError,
    crate::flows::FlowError,
    crate::diagnostics::DiagnosticsError,
    crate::driver::DriverError,
    crate::robustness::RobustnessError,
    crate::certificates::CertificateError,
    crate::training::TrainingError
);
