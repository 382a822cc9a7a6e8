//! The logistic loss.

use super::exp::exp;
use super::exponential::Exponential;
use super::lanes::{degenerate, fill_degenerate, log1p_ratio, smallest, sum_terms, sum_terms_with_weights};
use super::{Loss, LossFamily, Tail};
use crate::numeric::{log_expm1, log1p_exp};

/// ℓ(q) = ln(1 + e^−q).
///
/// With m the least margin and ρ(x) = ln(1 + x)/x,
///
/// ```text
/// m > 0:  L = e^−m Σᵢ eᵢ ρ(eᵢ e^−m),             eᵢ = exp(m − qᵢ)
/// m ≤ 0:  L = Σᵢ max(−qᵢ, 0) + ln(1 + e^−|qᵢ|)   (between ln 2 and ordinary size)
/// weightᵢ = 1/((1 + e^qᵢ) L)
/// ```
///
/// so nothing overflows and no term that matters underflows. Beyond m = 40 the factors ρ are 1 to the last bit and the
/// loss is the exponential one. D.remA2; A.thmA18.
#[derive(Debug, Clone, Copy)]
pub(super) struct Logistic;

impl Loss for Logistic {
    fn evaluate(&self, margins: &[f64], _per_example: usize, weights: &mut [f64]) -> f64 {
        debug_assert_eq!(margins.len(), weights.len());
        let least = smallest(margins);
        if let Some(log_loss) = degenerate(margins, least) {
            return fill_degenerate(log_loss, weights);
        }
        if least > EXPONENTIAL_FROM {
            Exponential.evaluate(margins, 1, weights)
        } else if least > 0.0 {
            let scale = exp(-least);
            sum_terms_with_weights(margins, weights, move |q| separated(exp(least - q), scale)).ln() - least
        } else {
            sum_terms_with_weights(margins, weights, mixed).ln()
        }
    }

    fn log_loss(&self, margins: &[f64], _per_example: usize) -> f64 {
        let least = smallest(margins);
        if let Some(log_loss) = degenerate(margins, least) {
            return log_loss;
        }
        if least > EXPONENTIAL_FROM {
            Exponential.log_loss(margins, 1)
        } else if least > 0.0 {
            let scale = exp(-least);
            sum_terms(margins, move |q| separated(exp(least - q), scale)).ln() - least
        } else {
            sum_terms(margins, mixed).ln()
        }
    }

    fn family(&self) -> LossFamily {
        LossFamily::Margin
    }

    fn tail(&self) -> Option<&dyn Tail> {
        Some(self)
    }
}

/// From here e^−q is below 2^−54 and ln(1 + e^−q) = e^−q in working precision.
const EXPONENTIAL_FROM: f64 = 40.0;

/// e^m (ℓ(q), −ℓ′(q)) for a margin q ≥ m > 0, given `relative` = e^(m−q) and `scale` = e^−m.
#[inline(always)]
pub(super) fn separated(relative: f64, scale: f64) -> (f64, f64) {
    let x = relative * scale;
    (relative * log1p_ratio(x), relative / (1.0 + x))
}

/// (ℓ(q), −ℓ′(q)) for a margin of any sign.
#[inline(always)]
pub(super) fn mixed(q: f64) -> (f64, f64) {
    let x = exp(-q.abs());
    let linear = if q < 0.0 { -q } else { 0.0 };
    let numerator = if q < 0.0 { 1.0 } else { x };
    (linear + x * log1p_ratio(x), numerator / (1.0 + x))
}

/// Beyond this argument the two-term series of f and g are exact to the last bit.
pub(super) const SERIES_FROM: f64 = 16.0;

impl Tail for Logistic {
    /// −ln ln(1 + e^−q).
    ///
    /// ```text
    /// q > 16:  q + x/2 − 5x²/24, x = e^−q;   q < −30:  −ln(−q + ln(1 + e^q))
    /// ```
    fn f(&self, q: f64) -> f64 {
        if q > SERIES_FROM {
            let x = (-q).exp();
            q + x * (0.5 - x * (5.0 / 24.0))
        } else {
            -log1p_exp(-q).ln()
        }
    }

    /// x/((1 + x) ln(1 + x)), x = e^−q; 1 − x/2 + 5x²/12 for q > 16.
    fn f_prime(&self, q: f64) -> f64 {
        let x = (-q.abs()).exp();
        if q > SERIES_FROM {
            1.0 - x * (0.5 - x * (5.0 / 12.0))
        } else if q > 0.0 {
            x / ((1.0 + x) * x.ln_1p())
        } else {
            1.0 / ((1.0 + x) * log1p_exp(-q))
        }
    }

    /// −ln(e^y − 1), y = e^−u; u − y/2 − y²/24 for u > 16.
    fn g(&self, u: f64) -> f64 {
        let y = (-u).exp();
        if u > SERIES_FROM { u - y * (0.5 + y / 24.0) } else { -log_expm1(y) }
    }

    /// y/(1 − e^−y), y = e^−u (the factor e^y missing from the printed formula is restored); 1 + y/2 + y²/12
    /// for u > 16.
    fn g_prime(&self, u: f64) -> f64 {
        let y = (-u).exp();
        if u > SERIES_FROM { 1.0 + y * (0.5 + y / 12.0) } else { -y / (-y).exp_m1() }
    }

    /// 2 f(0) = −2 ln ln 2.
    fn b_g(&self) -> f64 {
        2.0 * self.f(0.0)
    }

    /// The least constant, rounded up: f′(q)/f′(q/2) has its maximum 1.09443 near q = 1.83.
    fn growth_constant(&self) -> f64 {
        1.0945
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected numbers from mpmath with 30 digits.
    #[test]
    fn f_has_its_reference_values() {
        for (q, f) in [
            (-1e6, -13.815_510_557_964_274),
            (-35.0, -3.555_348_061_489_413_7),
            (-3.25, -1.190_292_059_744_877_2),
            (0.0, 0.366_512_920_581_664_33),
            (0.7, 0.908_357_163_802_132_9),
            (15.9, 15.900_000_062_185_298),
            (16.1, 16.100_000_050_913_016),
            (37.0, 37.0),
            (2000.0, 2000.0),
        ] {
            assert!((Logistic.f(q) - f).abs() <= 4e-16 * f.abs().max(1.0), "{q}: {}", Logistic.f(q));
            assert!((Logistic.log_example_loss(&[q]) + f).abs() <= 4e-16 * f.abs().max(1.0), "{q}");
        }
        assert!((Logistic.g_prime(1.0) - 1.195_192_3).abs() < 1e-6); // the printed formula would give 0.827313
    }

    /// Lo.5: the series takes over without a visible step.
    #[test]
    fn series_and_direct_forms_meet() {
        let (below, above) = (SERIES_FROM, SERIES_FROM.next_up());
        for h in [Logistic::f as fn(&Logistic, f64) -> f64, Logistic::f_prime, Logistic::g, Logistic::g_prime] {
            let (low, high) = (h(&Logistic, below), h(&Logistic, above));
            assert!((low - high).abs() <= 1e-14 * low.abs(), "{low} {high}");
        }
    }
}
