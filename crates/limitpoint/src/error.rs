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
    /// A loss was described wrongly.
    #[error(transparent)]
    Losses(#[from] crate::losses::LossError),
    /// A step-size rule was described wrongly or resumed from a foreign state.
    #[error(transparent)]
    Schedules(#[from] crate::schedules::ScheduleError),
}

/// Shorthand used across the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
