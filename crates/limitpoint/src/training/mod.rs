//! The one way to train something in memory: described, put together, run, judged.
//!
//! ```text
//! Training ──run()──────────────────────────────► TrainedRun ──► margin, certify, scores, metrics
//!    │                                                ▲
//!    └──start()──► RunningTraining ──step(), state()──┘
//! ```
//!
//! A [`Training`] is data and a [`Setup`], a plain description that can be cloned, sent to another thread and compared.
//! Only [`Setup::objective`] and [`Setup::start`] put model, loss, optimiser or flow, schedule and initial weights
//! together; experiments with folders, claims, fingerprints and benches all pass through them, so that the same
//! description gives the same bits everywhere.
//!
//! | file | holds |
//! |---|---|
//! | `setup`, `trainer` | what is trained and who trains it, with the defaults of everything that is not said |
//! | `start` | from the description to the process at its first point |
//! | `admissible` | the constants of steps that provably lower the loss of a smooth homogeneous model |
//! | `warning` | a word before steps that are longer than any proof covers |
//! | `builder` | [`Training`]: the description said in a few calls |
//! | `running`, `trained` | a run on its way, saved and resumed bit for bit; a run at its end |
//! | `recorder`, `metrics` | named columns of measurements in memory |
//! | `certificate_rule` | a gap at which a run ends, read off those columns |
//! | `path` | the path of the direction, which tells whether there is a limit to judge |
//! | `judgement` | what is claimed of a run's weights, with evidence and verdict |

mod admissible;
mod builder;
mod certificate_rule;
mod judgement;
mod metrics;
mod path;
mod recorder;
mod running;
mod setup;
mod start;
#[cfg(test)]
mod tests;
mod trained;
mod trainer;
mod warning;

pub use admissible::AdmissibleDescent;
pub use builder::Training;
pub use certificate_rule::CertificateRule;
pub use judgement::Judgement;
pub use metrics::Metrics;
pub use path::DirectionPath;
pub use recorder::Recorder;
pub use running::{RunningTraining, TrainingState};
pub use setup::{Setup, default_initialiser, default_loss, default_schedule};
pub use trained::TrainedRun;
pub use trainer::Trainer;

use std::convert::Infallible;

/// What keeps a training from being put together, run or judged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// Nothing ends the run.
    #[error("nothing ends the run; say until_log10_loss(-100.0), at_most_steps(1000) or another rule, or step by hand")]
    NeverStops,
    /// A rule that no number can meet.
    #[error("the run is to end at {what} {value}, but that is no finite number")]
    NoNumber {
        /// What is compared.
        what: &'static str,
        /// With what.
        value: f64,
    },
    /// A descent whose curvature is not bounded.
    #[error("no admissible step is known: {why}")]
    NoAdmissibleStep {
        /// Why, and the remedy.
        why: String,
    },
    /// A column that is not measured.
    #[error("no column is called '{name}'; there are {}", known.join(", "))]
    NoColumn {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A number that does not exist for this model or these data.
    #[error("there is no normalised margin: {why}")]
    NoMargin {
        /// Why.
        why: &'static str,
    },
    /// A saved state of a run that recorded something else.
    #[error("the saved state has other columns than this training records; resume with the training it was saved from")]
    OtherState,
    /// Nothing is known about the limit.
    #[error("nothing can be claimed: {why}")]
    NoClaim {
        /// Why, and the remedy.
        why: String,
    },
    /// A part was refused.
    #[error(transparent)]
    Part(#[from] Box<crate::Error>),
}

crate::error::pass_through!(TrainingError:
    crate::certificates::CertificateError,
    crate::certificates::DocumentError,
    crate::diagnostics::DiagnosticsError,
    crate::driver::DriverError,
    crate::flows::FlowError,
    crate::linalg::LinalgError,
    crate::losses::LossError,
    crate::models::ModelError,
    crate::norms::NormError,
    crate::objective::ObjectiveError,
    crate::optimisers::OptimiserError,
    crate::params::ParamsError,
    crate::schedules::ScheduleError
);

/// What is given as a specification, and not as text, is never refused.
impl From<Infallible> for TrainingError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
