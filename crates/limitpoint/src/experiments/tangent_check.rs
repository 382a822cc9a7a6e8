//! Tangent files: what they claim, checked from the file alone.

use std::path::Path;

use super::RunError;
use super::files::{RecordError, read_bytes, write_atomically};
use crate::certificates::{Disagreement, TangentFile};

/// A tangent file that was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedTangent {
    /// What the file says.
    pub file: TangentFile,
    /// What is not so; the file holds if this is empty.
    pub disagreements: Vec<Disagreement>,
}

/// Whether a file is a tangent file, by what is in it.
pub fn is_tangent_file(path: &Path) -> Result<bool, RunError> {
    Ok(TangentFile::is_one(&read_bytes(path)?))
}

/// Checks a tangent file; see [`TangentFile`] for what that says.
pub fn check_tangent_file(path: &Path) -> Result<CheckedTangent, RunError> {
    let damaged = |error: crate::certificates::CertificateError| RecordError::damaged(path, error.to_string());
    let file = TangentFile::from_bytes(&read_bytes(path)?).map_err(damaged)?;
    let disagreements = file.check().map_err(damaged)?;
    Ok(CheckedTangent { file, disagreements })
}

/// Writes a tangent file, as a whole or not at all.
pub fn save_tangent_file(path: &Path, file: &TangentFile) -> Result<(), RunError> {
    let bytes = file.to_bytes().map_err(|error| RecordError::refused(path, error.to_string()))?;
    Ok(write_atomically(path, &bytes)?)
}
