//! The exponential over slices, in plain arithmetic that the compiler can spread over vector lanes.
//!
//! A training step takes one exponential per margin; the library function is called one number at a time, this one is
//! inlined into the loop. It uses only +, −, × and bit shifts, in a fixed order, so the bits do not depend on the width
//! of the vector unit.

/// Below this argument the result is 0: exp(−708) ≈ 3·10^−308 is the last power kept at full precision.
const UNDERFLOW: f64 = -708.0;
/// Above this argument the result is ∞.
const OVERFLOW: f64 = 709.0;
/// 1.5 · 2⁵²: adding it rounds to the nearest integer and leaves that integer in the low bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// The leading 33 bits of ln 2, so that n · LN2_HIGH is exact for |n| < 2¹⁹.
const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
/// ln 2 − LN2_HIGH.
const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
/// 1/k! for k = 2 to 13.
const INVERSE_FACTORIALS: [f64; 12] = [
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5_040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
    1.0 / 6_227_020_800.0,
];

/// exp(x) to about one unit in the last place; exactly 0 below −708, ∞ above 709, NaN for NaN.
///
/// ```text
/// exp(x) = 2ⁿ exp(r),   n = round(x / ln 2),   r = x − n ln 2 (in two pieces),   |r| ≤ ln 2 / 2
/// exp(r) = 1 + (r + r² (1/2! + r/3! + … + r¹¹/13!))
/// ```
///
/// The remainder of the series is below 5·10^−18. Reduction after Cody and Waite 1980, chapter 6.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    // twelve terms as a tree (Estrin), which is shorter than a chain of twelve
    let c = INVERSE_FACTORIALS;
    let (r2, r4) = (r * r, (r * r) * (r * r));
    let low = (c[0] + c[1] * r) + (c[2] + c[3] * r) * r2;
    let middle = (c[4] + c[5] * r) + (c[6] + c[7] * r) * r2;
    let high = (c[8] + c[9] * r) + (c[10] + c[11] * r) * r2;
    let tail = low + (middle + high * r4) * r4;
    let fraction = 1.0 + (r + r2 * tail);
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let value = fraction * power;
    // comparisons with NaN are false, so a NaN falls through both
    let value = if x < UNDERFLOW { 0.0 } else { value };
    if x > OVERFLOW { f64::INFINITY } else { value }
}

/// Replaces every entry by its exponential: 0 below −708, ∞ above 709, NaN stays NaN.
///
/// Within about one unit in the last place of the true value elsewhere; each entry is independent of its neighbours.
///
/// ```
/// let mut values = [0.0, 1.0, -800.0];
/// limitpoint::losses::exp_slice(&mut values);
/// assert!(values[0] == 1.0 && (values[1] - std::f64::consts::E).abs() < 5e-16 && values[2] == 0.0);
/// ```
pub fn exp_slice(values: &mut [f64]) {
    crate::numeric::wide(
        #[inline(always)]
        || values.iter_mut().for_each(|x| *x = exp(*x)),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_library_over_the_whole_range() {
        let mut worst = 0.0f64;
        let points = 400_000;
        for i in 0..=points {
            let x = -708.0 + 1417.0 * f64::from(i) / f64::from(points);
            worst = worst.max((exp(x) / x.exp() - 1.0).abs());
        }
        for i in 0..100_000 {
            let x = -1.0 + 2e-5 * f64::from(i);
            worst = worst.max((exp(x) / x.exp() - 1.0).abs());
        }
        assert!(worst <= 4.5e-16, "{worst:e}");
    }

    #[test]
    fn special_values() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e300), 0.0);
        assert_eq!(exp(f64::INFINITY), f64::INFINITY);
        assert_eq!(exp(1e300), f64::INFINITY);
        assert!(exp(f64::NAN).is_nan());
        assert_eq!(exp(1e-300), 1.0);
        assert!(exp(-708.0) > 0.0 && exp(709.0).is_finite());
    }

    #[test]
    fn a_slice_has_the_bits_of_its_entries() {
        let mut values: Vec<f64> = (0..1003).map(|i| 3.7 - 0.731 * f64::from(i)).collect();
        let alone: Vec<u64> = values.iter().map(|x| exp(*x).to_bits()).collect();
        exp_slice(&mut values);
        assert_eq!(values.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), alone);
    }
}
