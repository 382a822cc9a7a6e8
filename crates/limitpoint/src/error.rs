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
    /// A mirror potential was ill described, or weights left its domain.
    #[error(transparent)]
    Potential(#[from] crate::potentials::PotentialError),
}

/// Shorthand used across the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
