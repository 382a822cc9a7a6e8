//! Gauss–Legendre quadrature for smooth one-dimensional integrals.

/// Positive nodes and weights of the 16-point rule on [−1, 1] (roots of the Legendre polynomial P₁₆, Newton's method in
/// fifty digits).
const RULE: [(f64, f64); 8] = [
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_096),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_894),
    (0.865_631_202_387_831_8, 0.095_158_511_682_492_79),
    (0.755_404_408_355_003, 0.124_628_971_255_533_88),
    (0.617_876_244_402_643_8, 0.149_595_988_816_576_74),
    (0.458_016_777_657_227_37, 0.169_156_519_395_002_54),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_58),
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
];

/// ∫ f over [low, high] by the 16-point rule, exact for polynomials up to degree 31.
///
/// ```
/// use limitpoint::numeric::integrate;
/// assert!((integrate(1.0, 2.0, |x| 1.0 / x) - 2f64.ln()).abs() < 1e-14);
/// ```
pub fn integrate(low: f64, high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (centre, half) = (0.5 * (low + high), 0.5 * (high - low));
    half * RULE.iter().map(|(x, w)| w * (f(centre - half * x) + f(centre + half * x))).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_of_degree_31_are_exact() {
        for degree in 0..32 {
            let exact = 1.0 / f64::from(degree + 1);
            assert!((integrate(0.0, 1.0, |x| x.powi(degree)) - exact).abs() < 1e-15, "degree {degree}");
        }
        assert!((integrate(0.0, 1.0, |x| x.powi(60)) - 1.0 / 61.0).abs() > 1e-18);
    }
}
