//! What the data module refuses, always with the place, the value and what to do about it.

use std::path::{Path, PathBuf};

/// What can be wrong with data, their settings or their files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// No examples, or examples without inputs.
    #[error("{name} has {rows} examples of dimension {columns}; at least one example and one input are needed")]
    Empty {
        /// Which dataset.
        name: String,
        /// Number of examples.
        rows: usize,
        /// Number of inputs per example.
        columns: usize,
    },
    /// An input is NaN or infinite.
    #[error(
        "{name}: the input in row {row}, column {column} (counted from 0) is {value}; remove the row or fill in a finite number"
    )]
    NotFinite {
        /// Which dataset.
        name: String,
        /// Row of the first such entry, from 0.
        row: usize,
        /// Its column, from 0.
        column: usize,
        /// The entry.
        value: f64,
    },
    /// A target does not fit the task.
    #[error("{name}: the target of row {row} (counted from 0) is {value}; {remedy}")]
    Target {
        /// Which dataset.
        name: String,
        /// Row of the first such target, from 0.
        row: usize,
        /// The target.
        value: f64,
        /// What is allowed and how to get there.
        remedy: String,
    },
    /// The labels are 0 and 1, which could mean two tasks.
    #[error(
        "{name}: the targets are all 0 or 1, which may be two classes or a binary task; say task = \"binary\" \
         (1 becomes +1 and 0 becomes −1), task = \"classes\" or task = \"regression\" (on the command line --task binary or --task classes)"
    )]
    AmbiguousLabels {
        /// Which dataset.
        name: String,
    },
    /// Inputs and targets differ in number.
    #[error("{name} has {inputs} rows of inputs but {targets} targets; there must be one target per row")]
    Lengths {
        /// Which dataset.
        name: String,
        /// Rows of the input matrix.
        inputs: usize,
        /// Number of targets.
        targets: usize,
    },
    /// The shape of an example does not multiply to its dimension.
    #[error(
        "{name}: the input shape {shape:?} does not multiply to the dimension {dimension}; pass [{dimension}] for plain vectors"
    )]
    InputShape {
        /// Which dataset.
        name: String,
        /// The shape given.
        shape: Vec<usize>,
        /// Number of inputs per example.
        dimension: usize,
    },
    /// An index beyond the last example.
    #[error("{name} has {len} examples, so index {index} does not exist; indices run from 0 to {len} − 1")]
    Index {
        /// Which dataset.
        name: String,
        /// The index asked for.
        index: usize,
        /// Number of examples.
        len: usize,
    },
    /// More examples asked for than there are.
    #[error("{name}: {asked} examples asked for but only {available} {what}; lower the count")]
    TooFew {
        /// Which dataset.
        name: String,
        /// What there are too few of.
        what: String,
        /// Number asked for.
        asked: usize,
        /// Number there.
        available: usize,
    },
    /// An operation needs another kind of targets.
    #[error("{name}: {operation} needs {needed} targets, but these are {found}; choose the task accordingly")]
    TargetKind {
        /// Which dataset.
        name: String,
        /// What was asked for.
        operation: &'static str,
        /// The kind it works on.
        needed: &'static str,
        /// The kind found.
        found: &'static str,
    },
    /// A setting out of its range.
    #[error("{setting} is {value}, but must be {allowed}")]
    Setting {
        /// Name of the setting, as in the file.
        setting: &'static str,
        /// What was given.
        value: String,
        /// The range.
        allowed: String,
    },
    /// More examples than there is memory for.
    #[error(transparent)]
    TooLarge(#[from] crate::memory::TooLarge),
    /// A generator never produced both labels.
    #[error(
        "{name}: all {attempts} draws had a single label; raise the number of examples or of teacher neurons, or change the seed"
    )]
    OneLabel {
        /// Which generator.
        name: &'static str,
        /// Number of draws made.
        attempts: usize,
    },
    /// A transformation met a value it cannot work with.
    #[error("{name}: {problem}; {remedy}")]
    Transform {
        /// Which dataset.
        name: String,
        /// What is wrong, with its place.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Sparse inputs where only dense ones will do.
    #[error(transparent)]
    NeedsDense(#[from] super::NeedsDense),
    /// A matrix that could not be made.
    #[error(transparent)]
    Linalg(#[from] crate::linalg::LinalgError),
    /// A file could not be read.
    #[error("cannot read {}: {source}; check the path and its permissions", path.display())]
    Io {
        /// The path tried.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The contents of a file are not what its format requires.
    #[error("{file} ({format}), {position}: {problem}; {remedy}")]
    Format {
        /// The file.
        file: String,
        /// The format it was read as.
        format: &'static str,
        /// Where in the file.
        position: String,
        /// What is wrong, with the value.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// The format of a file cannot be told from its name.
    #[error(
        "cannot tell the format of {} from its name; set format to one of npy, npz, csv, svmlight, idx, cifar10 or safetensors",
        path.display()
    )]
    UnknownFormat {
        /// The path.
        path: PathBuf,
    },
    /// A well-known dataset was not found.
    #[error("{what} was not found{}; {remedy}", searched.as_ref().map_or(String::new(), |path| format!(" in {}", path.display())))]
    Missing {
        /// The dataset or file.
        what: String,
        /// The folder looked into, if any was known.
        searched: Option<PathBuf>,
        /// How to provide it.
        remedy: String,
    },
}

impl DataError {
    /// An input error for `path`.
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// A setting out of range.
    pub(crate) fn setting(setting: &'static str, value: impl std::fmt::Display, allowed: impl Into<String>) -> Self {
        Self::Setting { setting, value: value.to_string(), allowed: allowed.into() }
    }
}
