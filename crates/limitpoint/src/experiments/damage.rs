//! Whether an error means that a file is damaged or was tampered with, and not that something was asked wrongly.

use std::error::Error;

use super::{RecordError, RunError};
use crate::certificates::DocumentError;

/// Whether an error says that what was written is no longer what it was: a record that cannot be read, a certificate
/// that is none, data other than those a run was trained on. Programs end with another exit code for it.
///
/// ```
/// use limitpoint::experiments::{RecordError, RunError, is_damage};
/// let path = std::path::Path::new("metrics.csv");
/// assert!(is_damage(&RunError::from(RecordError::damaged(path, "ends in the middle of a line"))));
/// assert!(!is_damage(&RunError::Nothing));
/// ```
pub fn is_damage(error: &(dyn Error + 'static)) -> bool {
    let document = |error: &DocumentError| {
        use DocumentError::{NoTargets, NotLinear, OtherEvidence, Unreadable};
        matches!(error, Unreadable(_) | OtherEvidence | NotLinear { .. } | NoTargets { .. })
    };
    match error.downcast_ref::<RunError>() {
        Some(RunError::Certificate(error)) => document(error),
        Some(error) => error.is_damage(),
        None => {
            error.downcast_ref::<RecordError>().is_some_and(RecordError::is_damage)
                || error.downcast_ref::<DocumentError>().is_some_and(document)
        }
    }
}
