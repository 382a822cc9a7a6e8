//! A square system of polynomial equations, F(z) = 0, that can be evaluated in several kinds of numbers.

use super::number::Number;

/// What an unknown stands for, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unknown {
    /// In words.
    pub what: &'static str,
    /// Of which active example.
    pub example: Option<usize>,
    /// Of which bundle.
    pub bundle: Option<usize>,
}

/// F and its Jacobian.
pub(super) trait System {
    /// Equations, and unknowns.
    fn size(&self) -> usize;

    /// What unknown `k` stands for.
    fn unknown(&self, k: usize) -> Unknown;

    /// F(z).
    fn residual<N: Number>(&self, z: &[N]) -> Vec<N>;

    /// ∂F/∂z, row by row.
    fn jacobian<N: Number>(&self, z: &[N]) -> Vec<N>;
}
