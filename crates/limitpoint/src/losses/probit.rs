//! The probit loss.

use std::f64::consts::LN_2;

use super::exp::exp;
use super::lanes::{degenerate, fill_degenerate, smallest, sum_terms, sum_terms_with_weights};
use super::{Loss, LossFamily, Tail};

/// √(2π).
const ROOT_TWO_PI: f64 = 2.506_628_274_631_000_5;

/// The Mills ratio R(q) = (1 − Φ(q))/φ(q) for q ≥ 0, with Φ and φ the normal distribution and density.
///
/// ```text
/// q < 2:  √(2π) e^{q²/2}/2 − (q + q³/3 + q⁵/(3·5) + …)
/// q ≥ 2:  1/(q + 1/(q + 2/(q + 3/(q + …))))      (Laplace's continued fraction, cut at 10 + 440/q² terms)
/// ```
///
/// Relative error below 10^−14. Abramowitz and Stegun 1964, 26.2.11 and 26.2.14.
fn mills_ratio(q: f64) -> f64 {
    if q < 2.0 {
        let square = q * q;
        let (mut term, mut sum, mut odd) = (q, q, 1.0);
        while term > 1e-18 {
            odd += 2.0;
            term *= square / odd;
            sum += term;
        }
        0.5 * ROOT_TWO_PI * (0.5 * square).exp() - sum
    } else {
        let terms = (10.0 + 440.0 / (q * q)) as u32;
        1.0 / (1..=terms).rev().fold(q, |denominator, k| q + f64::from(k) / denominator)
    }
}

/// e^{q²/2}(ℓ(q), −ℓ′(q)) for q ≥ 0.
///
/// With Q = 1 − Φ(q) = φ(q) R(q), ℓ = −ln(1 − Q) = φ R · (−ln(1 − Q)/Q) and −ℓ′ = φ/(1 − Q).
fn positive(q: f64) -> (f64, f64) {
    let ratio = mills_ratio(q);
    let upper = ratio * (-0.5 * q * q).exp() / ROOT_TWO_PI;
    let correction = if upper > 0.0 { -(-upper).ln_1p() / upper } else { 1.0 };
    (ratio * correction / ROOT_TWO_PI, 1.0 / (ROOT_TWO_PI * (1.0 - upper)))
}

/// (ℓ(q), −ℓ′(q)) for q ≤ 0: ℓ = q²/2 + ln √(2π) − ln R(−q), −ℓ′ = 1/R(−q).
fn negative(q: f64) -> (f64, f64) {
    let ratio = mills_ratio(-q);
    (0.5 * q * q + (ROOT_TWO_PI / ratio).ln(), 1.0 / ratio)
}

/// ℓ(q) = −ln Φ(q), with Φ the normal distribution function.
///
/// ```text
/// m > 0:  L = e^{−m²/2} Σᵢ exp(−(qᵢ − m)(qᵢ + m)/2) e^{qᵢ²/2} ℓ(qᵢ),   m = min qᵢ
/// m ≤ 0:  the plain sum, at least ln 2
/// ```
///
/// The tail is Gaussian: f(q) ≈ q²/2 + ln(q √(2π)). B.prop2 names the loss; the constants of (B3) are computed here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probit;

fn kernel(q: f64, least: f64) -> (f64, f64) {
    if least > 0.0 {
        let relative = exp(-0.5 * (q - least) * (q + least));
        if relative == 0.0 {
            return (0.0, 0.0);
        }
        let (term, slope) = positive(q);
        (relative * term, relative * slope)
    } else if q > 0.0 {
        let gaussian = (-0.5 * q * q).exp();
        if gaussian == 0.0 {
            return (0.0, 0.0);
        }
        let (term, slope) = positive(q);
        (gaussian * term, gaussian * slope)
    } else {
        negative(q)
    }
}

/// m²/2 for a positive least margin, else 0: ln of the factor taken out of L.
fn anchor(least: f64) -> f64 {
    if least > 0.0 { 0.5 * least * least } else { 0.0 }
}

impl Loss for Probit {
    fn evaluate(&self, margins: &[f64], _per_example: usize, weights: &mut [f64]) -> f64 {
        debug_assert_eq!(margins.len(), weights.len());
        let least = smallest(margins);
        if let Some(log_loss) = degenerate(margins, least) {
            return fill_degenerate(log_loss, weights);
        }
        sum_terms_with_weights(margins, weights, move |q| kernel(q, least)).ln() - anchor(least)
    }

    fn log_loss(&self, margins: &[f64], _per_example: usize) -> f64 {
        let least = smallest(margins);
        degenerate(margins, least).unwrap_or_else(|| sum_terms(margins, move |q| kernel(q, least)).ln() - anchor(least))
    }

    fn family(&self) -> LossFamily {
        LossFamily::Margin
    }

    fn tail(&self) -> Option<&dyn Tail> {
        Some(self)
    }
}

impl Tail for Probit {
    fn f(&self, q: f64) -> f64 {
        if q > 0.0 { 0.5 * q * q - positive(q).0.ln() } else { -negative(q).0.ln() }
    }

    fn f_prime(&self, q: f64) -> f64 {
        let (value, slope) = if q > 0.0 { positive(q) } else { negative(q) };
        slope / value
    }

    /// Solves f(q) = u by Newton's method inside a bracket, until a step is below ε (1 + |q|).
    ///
    /// Since Q(q) ≤ e^{−q²/2}/2 for q ≥ 0, the solution lies in [0, √(2u)] for u ≥ f(0), and otherwise in [−√(2y), 0]
    /// with y = e^−u − ln 2.
    fn g(&self, u: f64) -> f64 {
        if u.is_nan() || u == f64::INFINITY {
            return u;
        }
        let y = (-u).exp();
        let (mut low, mut high) = if y <= LN_2 { (0.0, (2.0 * u).sqrt()) } else { (-(2.0 * (y - LN_2)).sqrt(), 0.0) };
        if low == f64::NEG_INFINITY {
            return low;
        }
        let mut q = if y <= LN_2 { high } else { low };
        for _ in 0..200 {
            // on the left −ln Φ is convex and ordinary in size; on the right f itself is nearly quadratic
            let (residual, slope) = if y <= LN_2 {
                (self.f(q) - u, self.f_prime(q))
            } else {
                let (value, slope) = negative(q);
                (y - value, slope)
            };
            if residual > 0.0 {
                high = q
            } else {
                low = q
            }
            let mut next = q - residual / slope;
            if next.is_nan() || next < low || next > high {
                next = 0.5 * (low + high);
            }
            let step = (next - q).abs();
            q = next;
            if step <= f64::EPSILON * (1.0 + q.abs()) {
                break;
            }
        }
        q
    }

    fn g_prime(&self, u: f64) -> f64 {
        1.0 / self.f_prime(self.g(u))
    }

    /// 2 f(0) = −2 ln ln 2.
    fn b_g(&self) -> f64 {
        -2.0 * LN_2.ln()
    }

    /// f′(q) behaves like q: f′(q)/f′(q/2) stays below 2 and tends to it; g′ decreases.
    fn growth_constant(&self) -> f64 {
        2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    /// Expected numbers from mpmath with 40 digits.
    #[test]
    fn f_has_its_reference_values() {
        for (q, f) in [
            (-1000.0, -13.122_379_030_671_44),
            (-30.0, -6.118_804_533_627_462),
            (-5.0, -2.712_374_065_976_797_6),
            (-1.0, -0.610_320_659_384_032_7),
            (0.0, 0.366_512_920_581_664_33),
            (0.5, 0.997_103_861_506_378_3),
            (1.5, 2.671_571_865_809_439),
            (3.0, 6.607_050_892_556_622_6),
            (10.0, 53.231_285_150_512_47),
            (40.0, 804.608_442_013_753_8),
            (1000.0, 500_007.826_694_812_2),
        ] {
            assert!((Probit.f(q) - f).abs() <= 1e-14 * f.abs().max(1.0), "{q}: {}", Probit.f(q));
            assert!((Probit.log_example_loss(&[q]) + f).abs() <= 1e-14 * f.abs().max(1.0), "{q}");
        }
    }

    #[test]
    fn series_and_fraction_meet() {
        let (below, above) = (mills_ratio(2f64.next_down()), mills_ratio(2.0));
        assert!((below / above - 1.0).abs() < 1e-14, "{below} {above}");
        assert!((mills_ratio(0.0) - (PI / 2.0).sqrt()).abs() < 1e-15);
        assert!((mills_ratio(1e6) * 1e6 - 1.0).abs() < 1e-11);
        assert!(mills_ratio(f64::NAN).is_nan());
    }

    #[test]
    fn weights_at_a_million_use_the_difference_of_squares() {
        let margins: [f64; 2] = [1e6, 1e6 + 1.0 / 1024.0 / 1024.0];
        let expected = (-0.5 * (margins[1] - margins[0]) * (margins[1] + margins[0])).exp();
        let mut weights = [0.0; 2];
        Probit.evaluate(&margins, 1, &mut weights);
        assert!((weights[1] / weights[0] / expected - 1.0).abs() < 1e-12);
    }
}
