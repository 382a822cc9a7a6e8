//! Statements of the papers as experiments with a verdict.
//!
//! A [`Claim`] runs built-in experiments in a [`Lab`], asks the judge what the limit is, and compares: every comparison
//! is a [`Check`] with what was expected and what was measured. It is certified if all checks hold and refuted if one
//! does not. Where a paper prints a statement wrongly, the claim is the corrected form, and its printed form is a
//! companion that must be refuted. Ids are those of the catalogue of claims (`B.thm5`); `.printed` marks companions.
//!
//! | file | holds |
//! |---|---|
//! | `registry` | the claims of all papers, and which can be run |
//! | `lab` | built-in experiments run in memory |
//! | `outcome` | checks, and the record they make |
//! | `sketch` | figures as finished numbers |
//! | `robust_accuracy` | the band between certified and attacked robustness |
//! | `statistics` | paired comparisons over seeds |
//! | `trace` | steepest flows watched at every step |
//! | `arithmetic` | comparisons that keep a NaN |
//! | `paper_a/` | steepest descent in homogeneous networks |
//! | `paper_b/` | optimisation geometry for linear models |
//! | `paper_c/` | mirror flow in homogeneous networks |
//! | `paper_d/` | gradient flow and descent maximise the margin |

mod arithmetic;
mod lab;
mod outcome;
mod paper_a;
mod paper_b;
mod paper_c;
mod paper_d;
mod registry;
mod robust_accuracy;
mod sketch;
mod statistics;
mod trace;

pub use lab::{Finished, Lab, Scale};
pub use outcome::{Check, ClaimRecord, Outcome};
pub use registry::{Claim, ClaimEntry, claims, find_claims, open_claims};
pub use robust_accuracy::robust_accuracy;
pub use sketch::{Brackets, Cloud, Curve, Dot, Sketch};

/// What keeps a claim from being tried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// No claim has this id.
    #[error("no claim is called '{id}'; {hint}")]
    Unknown {
        /// The id asked for.
        id: String,
        /// What there is.
        hint: String,
    },
    /// A run broke down.
    #[error("{what}: {reason}")]
    Ended {
        /// Which run.
        what: String,
        /// Why.
        reason: String,
    },
    /// An experiment could not be run.
    #[error(transparent)]
    Run(#[from] crate::experiments::RunError),
    /// The judge could not answer.
    #[error(transparent)]
    Reference(#[from] crate::reference::ReferenceError),
    /// A certificate could not be made.
    #[error(transparent)]
    Certificate(#[from] crate::certificates::CertificateError),
    /// A part was refused.
    #[error(transparent)]
    Part(#[from] Box<crate::Error>),
}

crate::error::pass_through!(ClaimError:
    crate::data::DataError,
    crate::data::NeedsDense,
    crate::linalg::LinalgError,
    crate::norms::NormError,
    crate::params::ParamsError,
    crate::losses::LossError,
    crate::models::ModelError,
    crate::objective::ObjectiveError,
    crate::potentials::PotentialError,
    crate::schedules::ScheduleError,
    crate::optimisers::OptimiserError,
    crate::flows::FlowError,
    crate::diagnostics::DiagnosticsError,
    crate::driver::DriverError,
    crate::robustness::RobustnessError,
    crate::training::TrainingError
);

impl From<crate::experiments::RecipeError> for ClaimError {
    fn from(error: crate::experiments::RecipeError) -> Self {
        Self::Run(error.into())
    }
}
