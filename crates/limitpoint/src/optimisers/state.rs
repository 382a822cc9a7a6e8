//! What an optimiser remembers, as named numbers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::OptimiserError;

/// Named vectors and numbers; everything a checkpoint has to keep of an optimiser.
///
/// ```
/// use limitpoint::optimisers::OptimiserState;
/// let state = OptimiserState::new("adam").with_number("count", 3.0).with_vector("first", &[1.0, 2.0]);
/// let mut first = [0.0; 2];
/// state.read_vector("first", &mut first)?;
/// assert_eq!((first, state.number("count")?), ([1.0, 2.0], 3.0));
/// assert!(state.number("cuont").is_err());
/// # Ok::<(), limitpoint::optimisers::OptimiserError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OptimiserState {
    /// Key of the optimiser that wrote it.
    pub optimiser: String,
    /// Numbers; infinities are allowed.
    pub numbers: BTreeMap<String, f64>,
    /// Vectors, usually as long as the parameters.
    pub vectors: BTreeMap<String, Vec<f64>>,
}

impl OptimiserState {
    /// An empty state.
    pub fn new(optimiser: &str) -> Self {
        Self { optimiser: optimiser.to_string(), numbers: BTreeMap::new(), vectors: BTreeMap::new() }
    }

    /// Adds a number.
    pub fn with_number(mut self, name: &str, value: f64) -> Self {
        self.numbers.insert(name.to_string(), value);
        self
    }

    /// Adds a vector.
    pub fn with_vector(mut self, name: &str, value: &[f64]) -> Self {
        self.vectors.insert(name.to_string(), value.to_vec());
        self
    }

    /// Adds all entries of another state under a prefix.
    pub fn with_nested(mut self, prefix: &str, other: &Self) -> Self {
        self.numbers.extend(other.numbers.iter().map(|(name, value)| (format!("{prefix}.{name}"), *value)));
        self.vectors.extend(other.vectors.iter().map(|(name, value)| (format!("{prefix}.{name}"), value.clone())));
        self
    }

    /// The part under a prefix, as a state of `optimiser`.
    pub fn nested(&self, prefix: &str, optimiser: &str) -> Self {
        let cut = |name: &String| name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')).map(str::to_string);
        Self {
            optimiser: optimiser.to_string(),
            numbers: self.numbers.iter().filter_map(|(name, value)| Some((cut(name)?, *value))).collect(),
            vectors: self.vectors.iter().filter_map(|(name, value)| Some((cut(name)?, value.clone()))).collect(),
        }
    }

    /// Refuses a state of another optimiser.
    pub fn check(&self, optimiser: &'static str) -> Result<(), OptimiserError> {
        if self.optimiser == optimiser {
            return Ok(());
        }
        Err(OptimiserError::WrongState { optimiser, what: format!("it was saved by '{}'", self.optimiser) })
    }

    /// A number that must be there.
    pub fn number(&self, name: &str) -> Result<f64, OptimiserError> {
        self.numbers.get(name).copied().ok_or_else(|| self.missing(name))
    }

    /// Copies a vector that must be there and fit.
    pub fn read_vector(&self, name: &str, out: &mut [f64]) -> Result<(), OptimiserError> {
        let vector = self.vectors.get(name).ok_or_else(|| self.missing(name))?;
        if vector.len() != out.len() {
            let what = format!("'{name}' has {} entries where {} are needed", vector.len(), out.len());
            return Err(OptimiserError::WrongState { optimiser: "the optimiser", what });
        }
        out.copy_from_slice(vector);
        Ok(())
    }

    fn missing(&self, name: &str) -> OptimiserError {
        OptimiserError::WrongState { optimiser: "the optimiser", what: format!("'{name}' is missing") }
    }
}
