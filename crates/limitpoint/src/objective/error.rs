//! What an objective can refuse.

use crate::data::{Dataset, Targets};
use crate::losses::{LossError, LossFamily, LossSpec};
use crate::models::ModelError;

/// What an objective can refuse.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectiveError {
    /// A loss of the wrong family for the targets.
    #[error("the loss '{loss}' needs {needs}, but the data '{data}' has {found}; choose {remedy}")]
    Mismatch {
        /// Key of the loss.
        loss: &'static str,
        /// Targets it needs.
        needs: &'static str,
        /// Name of the data.
        data: String,
        /// Targets there are.
        found: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Nothing to tell apart.
    #[error("the data '{data}' has {count} class; a margin needs at least 2")]
    TooFewClasses {
        /// Name of the data.
        data: String,
        /// Classes there are.
        count: usize,
    },
    /// A model that was bound to other data.
    #[error(
        "the model gives {outputs} scores for {examples} examples, but the data has {rows} examples and needs \
         {needed} scores; bind it to these data"
    )]
    Size {
        /// Examples of the model.
        examples: usize,
        /// Scores of an example of it.
        outputs: usize,
        /// Examples of the data.
        rows: usize,
        /// Scores an example needs.
        needed: usize,
    },
    /// An engine that only trains.
    #[error("this engine gives no per-example gradients; use the CPU")]
    NoTangents,
    /// The model was refused.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The loss was refused.
    #[error(transparent)]
    Loss(#[from] LossError),
}

/// Refuses a loss of the wrong family for the targets.
pub(super) fn check_family(data: &Dataset, loss: &LossSpec) -> Result<(), ObjectiveError> {
    let found = match data.targets {
        Targets::Binary(_) => "labels ±1",
        Targets::Classes { .. } => "class labels",
        Targets::Values(_) => "real values",
    };
    let (needs, remedy) = match (loss.family(), loss.is_multiclass()) {
        (LossFamily::Regression, _) => ("real values", "exponential, logistic or cross-entropy for labels"),
        (LossFamily::Margin, false) => ("labels ±1", "cross-entropy for classes, squared for values"),
        (LossFamily::Margin, true) => ("class labels", "logistic for labels ±1, squared for values"),
    };
    if let Targets::Classes { count: count @ 0..2, .. } = data.targets {
        return Err(ObjectiveError::TooFewClasses { data: data.name.clone(), count });
    }
    if found == needs {
        return Ok(());
    }
    Err(ObjectiveError::Mismatch { loss: loss.key(), needs, data: data.name.clone(), found, remedy })
}
