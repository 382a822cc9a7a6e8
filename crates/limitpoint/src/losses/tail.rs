//! The scalar functions behind a margin loss.

use super::Loss;

/// The functions f and g of a margin loss ℓ(q) = exp(−f(q)).
///
/// ```text
/// f  increasing,   g = f⁻¹,   ℓ⁻¹(L) = g(ln 1/L)
/// ```
///
/// They turn a loss into a soft margin and carry the constants of assumption (B3): q f′(q) does not decrease beyond
/// b_f, and beyond b_g neither g′ nor f′ changes by more than a factor K when its argument is halved:
///
/// ```text
/// g′(u) ≤ K g′(θu) for u > b_g,   f′(q) ≤ K f′(θq) for q > g(b_g),   ½ ≤ θ < 1
/// ```
///
/// D.b3, D.remA1, D.remA2; A.thmA18 writes Φ for f.
///
/// ```
/// use limitpoint::losses::LossSpec;
/// let loss = LossSpec::Logistic.build()?;
/// let tail = loss.tail().unwrap();
/// assert!((tail.f(0.0) + 2f64.ln().ln()).abs() < 1e-15); // ℓ(0) = ln 2
/// assert!((tail.g(tail.f(1000.0)) - 1000.0).abs() < 1e-9);
/// # Ok::<(), limitpoint::losses::LossError>(())
/// ```
pub trait Tail {
    /// f(q) = −ln ℓ(q).
    fn f(&self, q: f64) -> f64;

    /// f′(q).
    fn f_prime(&self, q: f64) -> f64;

    /// g(u) = f⁻¹(u).
    fn g(&self, u: f64) -> f64;

    /// g′(u) = 1/f′(g(u)).
    fn g_prime(&self, u: f64) -> f64;

    /// b_f: q f′(q) does not decrease for q > b_f.
    fn b_f(&self) -> f64 {
        0.0
    }

    /// b_g ≥ max{2 f(b_f), f(2 b_f)}: where the growth condition starts.
    fn b_g(&self) -> f64;

    /// K of the growth condition.
    fn growth_constant(&self) -> f64;

    /// ln ℓ(b_f): a summed loss below ℓ(b_f) implies that every margin is positive.
    fn log_threshold(&self) -> f64 {
        -self.f(self.b_f())
    }

    /// ℓ⁻¹ of a loss known by its logarithm: g(−ln ℓ).
    fn inverse_from_log(&self, log_loss: f64) -> f64 {
        self.g(-log_loss)
    }
}

/// The soft margin g(−ln L) before division by ‖θ‖ᴸ; `None` for a regression loss.
///
/// It is at most the least margin, and within g′ · ln N of it (D.defA3, D.lemA5).
///
/// ```
/// use limitpoint::losses::{LossSpec, soft_margin};
/// let loss = LossSpec::Exponential.build()?;
/// assert_eq!(soft_margin(-3000.0, loss.as_ref()), Some(3000.0));
/// # Ok::<(), limitpoint::losses::LossError>(())
/// ```
pub fn soft_margin(log_loss: f64, loss: &dyn Loss) -> Option<f64> {
    loss.tail().map(|tail| tail.inverse_from_log(log_loss))
}
