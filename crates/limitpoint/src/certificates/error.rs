//! What a certificate can refuse.

use crate::linalg::LinalgError;
use crate::memory::TooLarge;
use crate::norms::NormError;
use crate::params::ParamsError;
use crate::potentials::PotentialError;
use crate::reference::ReferenceError;

/// Why a point could not be judged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// Numbers of somebody else's model that do not fit together.
    #[error("a tangent problem from outside is refused: {what}")]
    Foreign {
        /// What is wrong.
        what: String,
    },
    /// Bytes that are no tangent file.
    #[error("this is no tangent file that can be checked: {what}")]
    TangentFile {
        /// What is wrong.
        what: String,
    },
    /// A model without a degree.
    #[error("the model is not homogeneous, so its limit is not a KKT point; leave biases to the first layer only")]
    NotHomogeneous,
    /// Residuals instead of margins.
    #[error("the targets are real numbers, which have no margin; certificates of a limit direction need labels")]
    NoMargins,
    /// A loss without a margin.
    #[error("a regression loss has no soft margin; certificates of a limit direction need a margin loss")]
    NotMarginLoss,
    /// A loss other than the exponential one, where a bound is known for that one only.
    #[error("the bounds of mirror flows are proved for the exponential loss only; evaluate the point with it")]
    NotExponential,
    /// A margin that is not positive.
    #[error("margin {row} is {margin}, but every margin must be positive; train until the data are separated")]
    NotSeparated {
        /// Which margin, from 0.
        row: usize,
        /// Its value.
        margin: f64,
    },
    /// A model that does not fit the targets.
    #[error(
        "the model has {} examples of {} scores, but the targets need {} of {}; bind it to the inputs of these targets",
        found.0, found.1, expected.0, expected.1
    )]
    Scores {
        /// Examples and scores an example of the model.
        found: (usize, usize),
        /// What the targets need.
        expected: (usize, usize),
    },
    /// A setting that makes no sense.
    #[error("{what} is {value}, but must be {range}")]
    OutOfRange {
        /// What the number sets.
        what: &'static str,
        /// The number.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// A potential whose horizon is not a norm of this library.
    #[error("the horizon of {potential} is not one of the library's norms: {why}")]
    NoHorizonNorm {
        /// Key of the potential.
        potential: &'static str,
        /// The reason.
        why: String,
    },
    /// A weight outside the domain of a horizon.
    #[error("weight {index} is {value}, but the horizon of {potential} lives on weights that are not negative")]
    OutsideDomain {
        /// Key of the potential.
        potential: &'static str,
        /// Index in the flat vector.
        index: usize,
        /// The weight.
        value: f64,
    },
    /// A reference problem was refused or did not converge.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The norm was refused.
    #[error(transparent)]
    Norm(#[from] NormError),
    /// The potential was refused.
    #[error(transparent)]
    Potential(#[from] PotentialError),
    /// The layout was refused.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// More memory than there is.
    #[error(transparent)]
    Memory(#[from] TooLarge),
    /// A decomposition failed.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
}
