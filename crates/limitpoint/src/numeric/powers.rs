//! Powers of two: scales that leave every digit of a number as it is.

/// The largest power of two at most x > 0, so that x/2ᵏ lies in [1, 2); 1 for 0 and for what is not finite.
///
/// ```
/// use limitpoint::numeric::power_of_two;
/// assert_eq!((power_of_two(5.0), power_of_two(0.3), power_of_two(0.0)), (4.0, 0.25, 1.0));
/// assert_eq!(power_of_two(1e-310), f64::MIN_POSITIVE); // the smallest with all its digits
/// ```
pub fn power_of_two(x: f64) -> f64 {
    if x > 0.0 && x.is_finite() {
        // the exponent alone
        f64::from_bits(x.max(f64::MIN_POSITIVE).to_bits() & 0x7ff0_0000_0000_0000)
    } else {
        1.0
    }
}
