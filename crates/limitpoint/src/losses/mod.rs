//! From margins to the logarithm of the loss and one weight per margin.
//!
//! The late phase of training is the subject here, so a loss never appears as a plain number: `ln L = −1e6` is handled
//! like `ln L = −1`. A loss of one example is written
//!
//! ```text
//! ℓ(q) = exp(−f(q)),   L = Σᵢ ℓ(qᵢ),   ln L = log-sum-exp of −f(qᵢ),   weightᵢ = −∂ ln L/∂qᵢ = (ℓ(qᵢ)/L) f′(qᵢ)
//! ```
//!
//! and L is always the *sum*; means are the business of the objective. Losses for classification fall with the margin
//! and never reach 0 ([`LossFamily::Margin`]); losses for regression vanish exactly at residual 0
//! ([`LossFamily::Regression`]). Users: `objective`, `diagnostics`.
//!
//! | file | losses |
//! |---|---|
//! | `exponential` | e^−q, and Σⱼ e^−sⱼ for many classes |
//! | `logistic` | ln(1 + e^−q) |
//! | `cross_entropy` | ln(1 + Σⱼ e^−sⱼ) |
//! | `power` | e^(−q^k), ln(1 + e^(−q^k)) |
//! | `probit` | −ln Φ(q) |
//! | `regression` | squared, Huber, truncated squared |
//!
//! `descent_scale` says how curved an exponential loss of homogeneous margins is. Users of it: `schedules`,
//! `diagnostics`.

mod exp;
mod lanes;

mod cross_entropy;
mod descent_scale;
mod exponential;
mod logistic;
mod power;
mod probit;
mod regression;

mod spec;
mod tail;
#[cfg(test)]
mod tests;

pub use descent_scale::DescentScale;
pub use exp::exp_slice;
pub use spec::{LossError, LossSpec};
pub use tail::{Tail, soft_margin};

/// The two families of losses, which have different implicit biases (B.prop1, B.prop2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossFamily {
    /// Strictly decreasing in the margin, infimum 0 never attained: parameters grow without bound.
    Margin,
    /// Zero exactly at residual 0: parameters converge to an interpolant.
    Regression,
}

/// A loss of all margins at once.
///
/// `margins` lists the examples one after the other, `per_example` numbers each:
///
/// ```text
/// binary       per_example = 1       qᵢ = yᵢ f(xᵢ)
/// multi-class  per_example = C − 1   s_nj = Φ_y(xₙ) − Φ_j(xₙ),  j ≠ y
/// regression   per_example = 1 or more outputs   rᵢ = prediction − target
/// ```
///
/// Losses of one margin treat every entry as an example of its own. A NaN margin gives NaN; a margin −∞ gives ln L = ∞
/// and NaN weights; no margins, or all of them +∞, give −∞ and zero weights. Nothing is allocated.
///
/// ```
/// use limitpoint::losses::LossSpec;
/// let loss = LossSpec::Exponential.build()?;
/// let mut weights = [0.0; 2];
/// let log_loss = loss.evaluate(&[5000.0, 5000.0], 1, &mut weights);
/// assert_eq!(log_loss, -5000.0 + 2f64.ln());
/// assert_eq!(weights, [0.5, 0.5]);
/// # Ok::<(), limitpoint::losses::LossError>(())
/// ```
pub trait Loss: Send + Sync + std::fmt::Debug {
    /// ln L of the summed loss; writes `weights[k]` = −∂ ln L/∂`margins[k]`.
    ///
    /// `weights` is as long as `margins`, and that length is a multiple of `per_example`.
    fn evaluate(&self, margins: &[f64], per_example: usize, weights: &mut [f64]) -> f64;

    /// ln L alone, with the bits that [`Loss::evaluate`] returns.
    fn log_loss(&self, margins: &[f64], per_example: usize) -> f64;

    /// ln ℓ of one example, given its margins.
    fn log_example_loss(&self, example_margins: &[f64]) -> f64 {
        self.log_loss(example_margins, example_margins.len().max(1))
    }

    /// Whether the loss decreases for ever or has a root.
    fn family(&self) -> LossFamily;

    /// The functions f and g of a margin loss, in q or, with many classes, in q̃ = −ln Σⱼ e^−sⱼ; `None` for regression.
    fn tail(&self) -> Option<&dyn Tail>;
}
