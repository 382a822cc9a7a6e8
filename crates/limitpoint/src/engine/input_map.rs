//! What an attack sees of a model.

use crate::linalg::{Panels, Real};

/// A model with settled parameters as a map from inputs to scores, many examples at a time.
///
/// Panels have an example in every column: inputs are features × examples, scores and cotangents outputs × examples.
/// Nothing is allocated once the first batch of a size has been seen.
pub trait InputMap<T: Real>: Send {
    /// Numbers an example has.
    fn features(&self) -> usize;

    /// Scores an example gets.
    fn outputs(&self) -> usize;

    /// scores[c, n] = Φ_c(xₙ).
    fn scores(&mut self, inputs: &Panels<T>, scores: &mut Panels<T>);

    /// gradient[:, n] = Σ_c cotangent[c, n] ∇ₓΦ_c(xₙ) at the inputs last given to [`InputMap::scores`], as often
    /// as one likes. At a kink the slope is the one from the left.
    fn pull_back(&mut self, cotangent: &Panels<T>, gradient: &mut Panels<T>);

    /// The same map with buffers of its own, for another thread.
    fn fork(&self) -> Box<dyn InputMap<T>>;

    /// What keeps it from computing, if something does; scores and gradients are NaN from then on.
    fn failure(&self) -> Option<String> {
        None
    }
}
