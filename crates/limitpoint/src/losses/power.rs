//! Losses whose tail is the exponential of an odd power.

use super::exp::exp;
use super::lanes::{degenerate, fill_degenerate, smallest, sum_terms, sum_terms_with_weights};
use super::logistic::{Logistic, mixed, separated};
use super::{Loss, LossFamily, Tail};

/// q^k by repeated multiplication, the same bits everywhere.
fn power(q: f64, k: u32) -> f64 {
    (0..k).fold(1.0, |product, _| product * q)
}

/// a^k − b^k for odd k without cancellation.
///
/// ```text
/// same sign:  (a − b)(a^(k−1) + a^(k−2) b + … + b^(k−1)), all terms of the sum ≥ 0
/// ```
///
/// At q = 10⁶ the cubes themselves are only known to ±64; their difference decides the weights.
fn power_difference(a: f64, b: f64, k: u32) -> f64 {
    if a.is_infinite() || a * b <= 0.0 {
        return power(a, k) - power(b, k);
    }
    let (mut sum, mut b_power) = (1.0, 1.0);
    for _ in 1..k {
        b_power *= b;
        sum = sum * a + b_power;
    }
    (a - b) * sum
}

/// The odd root, |u|^(1/k) with the sign of u, corrected by a Newton step.
fn root(u: f64, k: u32) -> f64 {
    match k {
        1 => u,
        3 => u.cbrt(),
        _ => {
            let guess = u.signum() * u.abs().powf(1.0 / f64::from(k));
            let slope = f64::from(k) * power(guess, k - 1);
            if slope.is_normal() && guess.is_finite() { guess - (power(guess, k) - u) / slope } else { guess }
        }
    }
}

/// ℓ(q) = exp(−q^k), k odd.
///
/// ```text
/// ln L = −m^k + ln Σᵢ exp(m^k − qᵢ^k),   weightᵢ = k qᵢ^(k−1) exp(m^k − qᵢ^k)/Σ,   m = min qᵢ
/// ```
///
/// f′(0) = 0, so assumption (B3.2) holds for q > 0 only. D.b3.
#[derive(Debug, Clone, Copy)]
pub(super) struct PowerExponential {
    pub(super) k: u32,
}

impl PowerExponential {
    fn kernel(&self, q: f64, least: f64) -> (f64, f64) {
        let term = exp(-power_difference(q, least, self.k));
        (term, slope(term, q, self.k))
    }
}

/// `term` · k q^(k−1), with 0 · ∞ = 0.
fn slope(term: f64, q: f64, k: u32) -> f64 {
    if term == 0.0 { 0.0 } else { term * f64::from(k) * power(q, k - 1) }
}

impl Loss for PowerExponential {
    fn evaluate(&self, margins: &[f64], _per_example: usize, weights: &mut [f64]) -> f64 {
        debug_assert_eq!(margins.len(), weights.len());
        let least = smallest(margins);
        if let Some(log_loss) = degenerate(margins, least) {
            return fill_degenerate(log_loss, weights);
        }
        sum_terms_with_weights(margins, weights, move |q| self.kernel(q, least)).ln() - power(least, self.k)
    }

    fn log_loss(&self, margins: &[f64], _per_example: usize) -> f64 {
        let least = smallest(margins);
        degenerate(margins, least)
            .unwrap_or_else(|| sum_terms(margins, move |q| self.kernel(q, least)).ln() - power(least, self.k))
    }

    fn family(&self) -> LossFamily {
        LossFamily::Margin
    }

    fn tail(&self) -> Option<&dyn Tail> {
        Some(self)
    }
}

impl Tail for PowerExponential {
    fn f(&self, q: f64) -> f64 {
        power(q, self.k)
    }

    fn f_prime(&self, q: f64) -> f64 {
        f64::from(self.k) * power(q, self.k - 1)
    }

    fn g(&self, u: f64) -> f64 {
        root(u, self.k)
    }

    /// u^(1/k − 1)/k; ∞ at u = 0.
    fn g_prime(&self, u: f64) -> f64 {
        1.0 / self.f_prime(root(u, self.k))
    }

    fn b_g(&self) -> f64 {
        0.0
    }

    /// 2^(k−1), from f′(q)/f′(q/2); g′ decreases and asks for no more than 1.
    fn growth_constant(&self) -> f64 {
        power(2.0, self.k - 1)
    }
}

/// ℓ(q) = ln(1 + exp(−q^k)), k odd: the logistic loss of q^k.
///
/// Evaluated like the logistic loss, with accurate differences qᵢ^k − m^k once all margins are positive. D.b3.
#[derive(Debug, Clone, Copy)]
pub(super) struct PowerLogistic {
    pub(super) k: u32,
}

impl PowerLogistic {
    /// The kernel and anchor for the least margin.
    fn kernel(&self, least: f64) -> (impl Fn(f64) -> (f64, f64) + Copy, f64) {
        let k = self.k;
        let anchor = power(least, k).max(0.0);
        let scale = exp(-anchor);
        let kernel = move |q: f64| {
            let (term, minus_derivative) =
                if least > 0.0 { separated(exp(-power_difference(q, least, k)), scale) } else { mixed(power(q, k)) };
            (term, slope(minus_derivative, q, k))
        };
        (kernel, anchor)
    }
}

impl Loss for PowerLogistic {
    fn evaluate(&self, margins: &[f64], _per_example: usize, weights: &mut [f64]) -> f64 {
        debug_assert_eq!(margins.len(), weights.len());
        let least = smallest(margins);
        if let Some(log_loss) = degenerate(margins, least) {
            return fill_degenerate(log_loss, weights);
        }
        let (kernel, anchor) = self.kernel(least);
        sum_terms_with_weights(margins, weights, kernel).ln() - anchor
    }

    fn log_loss(&self, margins: &[f64], _per_example: usize) -> f64 {
        let least = smallest(margins);
        degenerate(margins, least).unwrap_or_else(|| {
            let (kernel, anchor) = self.kernel(least);
            sum_terms(margins, kernel).ln() - anchor
        })
    }

    fn family(&self) -> LossFamily {
        LossFamily::Margin
    }

    fn tail(&self) -> Option<&dyn Tail> {
        Some(self)
    }
}

impl Tail for PowerLogistic {
    fn f(&self, q: f64) -> f64 {
        Logistic.f(power(q, self.k))
    }

    fn f_prime(&self, q: f64) -> f64 {
        f64::from(self.k) * power(q, self.k - 1) * Logistic.f_prime(power(q, self.k))
    }

    fn g(&self, u: f64) -> f64 {
        root(Logistic.g(u), self.k)
    }

    /// g_log′(u) g_log(u)^(1/k − 1)/k; ∞ at u = f(0).
    fn g_prime(&self, u: f64) -> f64 {
        let q = self.g(u);
        Logistic.g_prime(u) / (f64::from(self.k) * power(q, self.k - 1))
    }

    /// 2 f(0) = −2 ln ln 2.
    fn b_g(&self) -> f64 {
        Logistic.b_g()
    }

    /// 2^(k−1) · 2 ln 2: the power doubles k − 1 times and f_log′ rises from 1/(2 ln 2) at 0 to 1.
    fn growth_constant(&self) -> f64 {
        power(2.0, self.k) * std::f64::consts::LN_2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_cubes_are_exact_where_the_cubes_are_not() {
        // (10⁶ + 2^−30)³ − 10¹⁸ = 3·10¹²·2^−30 + …; the cubes carry only multiples of 128
        let (a, b) = (1e6 + 2f64.powi(-30), 1e6);
        let expected = 3e12 * 2f64.powi(-30);
        assert!((power_difference(a, b, 3) / expected - 1.0).abs() < 1e-12);
        assert_eq!(power_difference(2.0, -1.0, 5), 33.0);
        assert_eq!(power_difference(-1.0, -2.0, 3), 7.0);
        assert_eq!(power_difference(f64::INFINITY, 2.0, 3), f64::INFINITY);
    }

    #[test]
    fn weights_at_a_million_use_the_difference() {
        let gap = 2f64.powi(-42);
        let margins = [1e6, 1e6 + gap.max(f64::EPSILON * 1e6)];
        let difference = 3e12 * (margins[1] - margins[0]);
        let mut weights = [0.0; 2];
        for loss in [&PowerExponential { k: 3 } as &dyn Loss, &PowerLogistic { k: 3 }] {
            let log_loss = loss.evaluate(&margins, 1, &mut weights);
            assert!((log_loss / -1e18 - 1.0).abs() < 1e-15);
            assert!(((weights[1] / weights[0]).ln() / -difference - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn roots_undo_powers() {
        for k in [1, 3, 5, 7, 15] {
            for q in [-30.0, -1.0, -0.01, 0.0, 0.3, 2.0, 1e4] {
                let back = root(power(q, k), k);
                assert!((back - q).abs() <= 4e-16 * q.abs(), "{k} {q} {back}");
            }
        }
    }
}
