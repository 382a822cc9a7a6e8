//! Sums and differences of numbers known only by their logarithms.

/// The logarithm of a sum of exponentials.
///
/// ```text
/// ln Σᵢ exp(xᵢ) = M + ln Σᵢ exp(xᵢ − M),   M = max xᵢ
/// ```
///
/// Empty input, or only −∞, gives −∞ (the logarithm of zero); a +∞ gives +∞; a NaN gives NaN. Finite for any finite
/// input, since the largest exponent is 0.
///
/// ```
/// let two = limitpoint::numeric::log_sum_exp(&[-5000.0, -5000.0]);
/// assert_eq!(two, -5000.0 + 2f64.ln());
/// ```
pub fn log_sum_exp(values: &[f64]) -> f64 {
    let mut largest = f64::NEG_INFINITY;
    for &x in values {
        if x.is_nan() {
            return f64::NAN;
        }
        largest = largest.max(x);
    }
    if largest.is_infinite() {
        return largest;
    }
    largest + values.iter().map(|x| (x - largest).exp()).sum::<f64>().ln()
}

/// ln(eᵃ + eᵇ), symmetric in its arguments and exact when one is −∞.
///
/// ```
/// use limitpoint::numeric::log_add_exp;
/// assert_eq!(log_add_exp(f64::NEG_INFINITY, -7.0), -7.0);
/// assert_eq!(log_add_exp(-1e6, -1e6), -1e6 + 2f64.ln());
/// ```
pub fn log_add_exp(a: f64, b: f64) -> f64 {
    let (high, low) = if a >= b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY || high == f64::INFINITY {
        return high + 0.0 * low.clamp(-1.0, 1.0);
    }
    high + (low - high).exp().ln_1p()
}

/// ln(eᵃ − eᵇ) for a ≥ b; −∞ when they are equal and NaN when a < b.
///
/// ```
/// use limitpoint::numeric::log_diff_exp;
/// assert!((log_diff_exp(-1000.0, -1000.0 - 2f64.ln()) - (-1000.0 - 2f64.ln())).abs() < 1e-12);
/// assert_eq!(log_diff_exp(3.0, f64::NEG_INFINITY), 3.0);
/// assert!(log_diff_exp(0.0, 1.0).is_nan());
/// ```
pub fn log_diff_exp(a: f64, b: f64) -> f64 {
    if b == f64::NEG_INFINITY {
        return a;
    }
    a + log_one_minus_exp(b - a)
}

/// ln(1 − eˣ) for x ≤ 0, accurate at both ends.
///
/// Near 0 it is ln(−expm1(x)), far below it is ln_1p(−eˣ); the switch at −ln 2 loses at most one bit.
/// Mächler 2012, "Accurately computing log(1 − exp(−|a|))".
///
/// ```
/// use limitpoint::numeric::log_one_minus_exp;
/// assert_eq!(log_one_minus_exp(0.0), f64::NEG_INFINITY);
/// assert!((log_one_minus_exp(-1e-300) - (-300.0 * 10f64.ln())).abs() < 1e-9);
/// ```
pub fn log_one_minus_exp(x: f64) -> f64 {
    if x > -std::f64::consts::LN_2 { (-x.exp_m1()).ln() } else { (-x.exp()).ln_1p() }
}

/// ln(1 + eˣ), the softplus, without overflow and with full relative accuracy in the far negative tail.
///
/// ```
/// use limitpoint::numeric::log1p_exp;
/// assert_eq!(log1p_exp(0.0), 2f64.ln());
/// assert_eq!(log1p_exp(1e6), 1e6);
/// assert_eq!(log1p_exp(-700.0), (-700f64).exp());
/// ```
pub fn log1p_exp(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// ln(eˣ − 1) for x > 0: equals x for large x and ln x for tiny x.
///
/// ```
/// use limitpoint::numeric::log_expm1;
/// assert!((log_expm1(2f64.ln())).abs() < 1e-15);
/// assert_eq!(log_expm1(800.0), 800.0);
/// ```
pub fn log_expm1(x: f64) -> f64 {
    x + log_one_minus_exp(-x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn log_sum_exp_shifts_with_its_input(xs in prop::collection::vec(-30.0..30.0f64, 1..9), shift in -1e6..1e6f64) {
            let shifted: Vec<f64> = xs.iter().map(|x| x + shift).collect();
            prop_assert!((log_sum_exp(&shifted) - shift - log_sum_exp(&xs)).abs() < 1e-9);
        }

        #[test]
        fn difference_undoes_addition(a in -500.0..500.0f64, gap in 1e-3..8.0f64) {
            let sum = log_add_exp(a, a - gap);
            prop_assert!((log_diff_exp(sum, a) - (a - gap)).abs() < 4e-13 * gap.exp());
        }

        #[test]
        fn softplus_and_its_inverse_agree(x in -30.0..700.0f64) {
            prop_assert!((log_expm1(log1p_exp(x)) - x).abs() < 1e-9 * (1.0 + x.abs()));
        }
    }

    #[test]
    fn extremes_stay_defined() {
        assert_eq!(log_sum_exp(&[]), f64::NEG_INFINITY);
        assert_eq!(log_sum_exp(&[f64::INFINITY, 0.0]), f64::INFINITY);
        assert!(log_sum_exp(&[f64::NAN, 0.0]).is_nan());
        assert_eq!(log_add_exp(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(log_add_exp(f64::INFINITY, 1.0), f64::INFINITY);
        assert!(log_add_exp(f64::NAN, 1.0).is_nan());
    }
}
