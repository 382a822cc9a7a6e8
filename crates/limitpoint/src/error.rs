//! The one error type of the crate; each module keeps its own enum and is gathered here.

/// Everything that can be refused, by the module that refuses it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A decomposition failed or shapes disagree.
    #[error(transparent)]
    Linalg(#[from] crate::linalg::LinalgError),
    /// A parameter layout was ill formed.
    #[error(transparent)]
    Params(#[from] crate::params::ParamsError),
    /// A data set or its file was refused.
    #[error(transparent)]
    Data(#[from] crate::data::DataError),
    /// Sparse inputs where dense ones are needed.
    #[error(transparent)]
    NeedsDense(#[from] crate::data::NeedsDense),
    /// A norm was ill described.
    #[error(transparent)]
    Norm(#[from] crate::norms::NormError),
    /// A potential was ill described, or a point lies outside its domain.
    #[error(transparent)]
    Potential(#[from] crate::potentials::PotentialError),
    /// A loss was ill described.
    #[error(transparent)]
    Loss(#[from] crate::losses::LossError),
    /// A model was ill described.
    #[error(transparent)]
    Model(#[from] crate::models::ModelError),
    /// Model, data and loss do not fit together.
    #[error(transparent)]
    Objective(#[from] crate::objective::ObjectiveError),
    /// A schedule was ill described.
    #[error(transparent)]
    Schedule(#[from] crate::schedules::ScheduleError),
    /// An optimiser was ill described or failed.
    #[error(transparent)]
    Optimiser(#[from] crate::optimisers::OptimiserError),
    /// A flow was ill described or could not go on.
    #[error(transparent)]
    Flow(#[from] crate::flows::FlowError),
    /// An instrument was ill described.
    #[error(transparent)]
    Diagnostics(#[from] crate::diagnostics::DiagnosticsError),
    /// A reference problem could not be posed or solved.
    #[error(transparent)]
    Reference(#[from] crate::reference::ReferenceError),
    /// Robustness could not be measured.
    #[error(transparent)]
    Robustness(#[from] crate::robustness::RobustnessError),
    /// A point could not be judged.
    #[error(transparent)]
    Certificate(#[from] crate::certificates::CertificateError),
    /// A certificate could not be made, read or checked.
    #[error(transparent)]
    Document(#[from] crate::certificates::DocumentError),
    /// Nothing can be proven about a model.
    #[error(transparent)]
    Proof(#[from] crate::proofs::ProofError),
    /// A run could not go on.
    #[error(transparent)]
    Driver(#[from] crate::driver::DriverError),
    /// A training was refused.
    #[error(transparent)]
    Training(#[from] crate::training::TrainingError),
    /// An experiment file or an override was refused.
    #[error(transparent)]
    Recipe(#[from] crate::experiments::RecipeError),
}

/// Shorthand used across the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of parts of the library become the variant `Part` of an error type, by way of [`Error`].
macro_rules! pass_through {
    ($whole: ty: $($part: ty),*) => {
        $(impl From<$part> for $whole {
            fn from(error: $part) -> Self {
                Self::Part(Box::new(error.into()))
            }
        })*
    };
}
pub(crate) use pass_through;
