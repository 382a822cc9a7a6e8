//! The exponential loss, for two classes and for many.

use super::exp::exp;
use super::lanes::{degenerate, fill_degenerate, smallest, sum_terms, sum_terms_with_weights};
use super::{Loss, LossFamily, Tail};

/// ℓ(q) = e^−q; with several margins per example Σⱼ e^−sⱼ, which is the same flat sum.
///
/// ```text
/// ln L = −m + ln Σᵢ exp(m − qᵢ),   m = min qᵢ,   weightᵢ = exp(m − qᵢ)/Σₖ exp(m − qₖ)
/// ```
///
/// The weights are a softmax of −q and sum to 1. D.remA1; B.thm5.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exponential;

impl Loss for Exponential {
    fn evaluate(&self, margins: &[f64], _per_example: usize, weights: &mut [f64]) -> f64 {
        debug_assert_eq!(margins.len(), weights.len());
        let least = smallest(margins);
        if let Some(log_loss) = degenerate(margins, least) {
            return fill_degenerate(log_loss, weights);
        }
        sum_terms_with_weights(margins, weights, move |q| kernel(q, least)).ln() - least
    }

    fn log_loss(&self, margins: &[f64], _per_example: usize) -> f64 {
        let least = smallest(margins);
        degenerate(margins, least).unwrap_or_else(|| sum_terms(margins, move |q| kernel(q, least)).ln() - least)
    }

    fn family(&self) -> LossFamily {
        LossFamily::Margin
    }

    fn tail(&self) -> Option<&dyn Tail> {
        Some(self)
    }
}

#[inline(always)]
fn kernel(q: f64, least: f64) -> (f64, f64) {
    let term = exp(least - q);
    (term, term)
}

impl Tail for Exponential {
    fn f(&self, q: f64) -> f64 {
        q
    }

    fn f_prime(&self, _q: f64) -> f64 {
        1.0
    }

    fn g(&self, u: f64) -> f64 {
        u
    }

    fn g_prime(&self, _u: f64) -> f64 {
        1.0
    }

    fn b_g(&self) -> f64 {
        0.0
    }

    fn growth_constant(&self) -> f64 {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L = 10^−800: eight hundred powers of ten, far below the least double, against the exact logarithm.
    #[test]
    fn a_loss_of_ten_to_the_minus_eight_hundred() {
        let ln10 = std::f64::consts::LN_10;
        // ten examples with ℓ = 10^−801 each make L = 10^−800; ln 10^−800 = −1842.068074395236547… (mpmath, 30 digits)
        let margins = [801.0 * ln10; 10];
        let mut weights = [0.0; 10];
        let log_loss = Exponential.evaluate(&margins, 1, &mut weights);
        assert!((log_loss + 1_842.068_074_395_236_5).abs() < 1e-12);
        assert!(weights.iter().all(|w| (w - 0.1).abs() < 1e-16));
    }

    #[test]
    fn powers_of_two_give_exact_weights() {
        // ℓ = 2^−5000 · {1, 1/2, 1/4, 1/4}: L = 2^−4999
        let ln2 = std::f64::consts::LN_2;
        let margins = [5000.0 * ln2, 5001.0 * ln2, 5002.0 * ln2, 5002.0 * ln2];
        let mut weights = [0.0; 4];
        let log_loss = Exponential.evaluate(&margins, 1, &mut weights);
        assert!((log_loss + 4999.0 * ln2).abs() < 2e-12);
        for (weight, expected) in weights.iter().zip([0.5, 0.25, 0.125, 0.125]) {
            assert!((weight - expected).abs() < 1e-12);
        }
    }
}
