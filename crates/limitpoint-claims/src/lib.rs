//! Statements of the papers as experiments.
//!
//! A [`Claim`] runs built-in experiments in a [`Lab`], asks the judge what the limit is, and compares: every comparison
//! is a [`Check`] with what was expected and what was measured. What comes of it is a [`Status`]: reproduced,
//! contradicted, not reproduced or undecided. These are not the words of certificates, whose bounds are theorems. Where
//! a paper prints a statement wrongly, the claim is the corrected form, and its printed form is a companion with
//! `.printed` at the end of its id. Ids are those of the catalogue of claims (`B.thm5`).
//!
//! | file | holds |
//! |---|---|
//! | `registry` | the claims of all papers, and which can be run |
//! | `lab`, `scale` | built-in experiments run in memory, and how much of them |
//! | `series`, `moments`, `recording` | named columns of measurements along runs, when and how they are taken |
//! | `columns`, `measures` | what is measured: how it is written, and what is ready-made |
//! | `comparisons` | what can be said of columns |
//! | `comparison_list` | their names, so that none is lost silently |
//! | `setting` | what was run: models, data as loaded, sizes, seeds |
//! | `outcome`, `status` | comparisons, and what they say |
//! | `record`, `kept` | all of it, for files and other programs; claims that are done |
//! | `exhibits/` | figures and tables of the papers in the papers' own settings, from runs in folders |
//! | `mirror_metrics` | metrics of mirror maps in front of the gradients of image networks |
//! | `gallery`, `claim_page` | claims with their figures and numbers, on one page, and each on its own |
//! | `typeset`, `mathml`, `signs` | sentences with formulas, and formulas, for browsers |
//! | `judge` | what the exact solver says of linear models |
//! | `statistics` | paired comparisons over seeds |
//! | `steepest` | the columns of steepest flows after separation |
//! | `arithmetic` | comparisons that keep a NaN |
//! | `paper_a/` | steepest descent in homogeneous networks |
//! | `paper_b/` | optimisation geometry for linear models |
//! | `paper_c/` | mirror flow in homogeneous networks |
//! | `paper_d/` | gradient flow and descent maximise the margin |

mod arithmetic;
mod claim_page;
mod columns;
mod comparison_list;
mod comparisons;
mod exhibits;
mod gallery;
mod judge;
mod kept;
mod lab;
mod mathml;
pub mod measures;
mod mirror_metrics;
mod moments;
mod outcome;
mod paper_a;
mod paper_b;
mod paper_c;
mod paper_d;
mod record;
mod recording;
mod registry;
mod scale;
mod scale_record;
mod series;
mod setting;
mod signs;
mod statistics;
mod status;
mod steepest;
mod typeset;

use limitpoint::report::Sketch;

pub use claim_page::{claim_page, page_name};
pub use columns::{Bound, Columns, Measure, Seen};
pub use comparison_list::comparison_list;
pub use exhibits::{
    CheckedExhibit, End, Estimate, Exhibit, ExhibitRecord, Extent, Gathered, MadeOf, Material, RUN_SETS, Reading, Row,
    RunSet, SetRecord, check_exhibit, exhibits, find_exhibits, finished_elsewhere, index, is_exhibit, keep_runs,
    keep_weights,
};
pub use gallery::gallery;
pub use kept::Kept;
pub use lab::{Finished, Lab};
pub use moments::Moments;
pub use outcome::{Check, Dropped, Origin, Outcome};
pub use record::ClaimRecord;
pub use registry::{Claim, ClaimEntry, claims, find_claims, open_claims};
pub use scale::Scale;
pub use scale_record::ScaleRecord;
pub use series::Series;
pub use setting::{DataUsed, Runs, Setting};
pub use status::{Kind, Status, summary};

/// Errors of the library, boxed as one.
macro_rules! pass_through {
    ($whole: ty: $($part: ty),*) => {
        $(impl From<$part> for $whole {
            fn from(error: $part) -> Self {
                Self::Part(Box::new(error.into()))
            }
        })*
    };
}

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
    /// Data that are not here.
    #[error("{what} is not here; `{remedy}` brings it")]
    Absent {
        /// The data.
        what: &'static str,
        /// What brings them.
        remedy: &'static str,
    },
    /// An experiment could not be run.
    #[error(transparent)]
    Run(#[from] limitpoint::experiments::RunError),
    /// The judge could not answer.
    #[error(transparent)]
    Reference(#[from] limitpoint::reference::ReferenceError),
    /// A certificate could not be made.
    #[error(transparent)]
    Certificate(#[from] limitpoint::certificates::CertificateError),
    /// A part was refused.
    #[error(transparent)]
    Part(#[from] Box<limitpoint::Error>),
}

pass_through!(ClaimError:
    limitpoint::data::DataError,
    limitpoint::data::NeedsDense,
    limitpoint::linalg::LinalgError,
    limitpoint::norms::NormError,
    limitpoint::params::ParamsError,
    limitpoint::losses::LossError,
    limitpoint::models::ModelError,
    limitpoint::objective::ObjectiveError,
    limitpoint::potentials::PotentialError,
    limitpoint::schedules::ScheduleError,
    limitpoint::optimisers::OptimiserError,
    limitpoint::flows::FlowError,
    limitpoint::diagnostics::DiagnosticsError,
    limitpoint::driver::DriverError,
    limitpoint::robustness::RobustnessError,
    limitpoint::training::TrainingError
);

impl From<limitpoint::experiments::RecipeError> for ClaimError {
    fn from(error: limitpoint::experiments::RecipeError) -> Self {
        Self::Run(error.into())
    }
}
