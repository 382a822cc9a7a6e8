//! Sums of per-margin terms: the loop that every loss shares.
//!
//! A loss is Σᵢ term(qᵢ) after a common factor exp(−anchor) was taken out, so that the terms neither overflow nor all
//! underflow. Terms are made block by block in a buffer on the stack and added in a fixed order, so the sum is the
//! same, bit for bit, with and without weights, and on any vector unit.

use crate::numeric::CompensatedSum;

/// Terms made at a time.
const BLOCK: usize = 512;
/// Partial sums inside a block.
const LANES: usize = 8;

/// The least margin, skipping NaN; +∞ for an empty slice.
pub(super) fn smallest(margins: &[f64]) -> f64 {
    let (groups, rest) = margins.as_chunks::<LANES>();
    let mut least = [f64::INFINITY; LANES];
    for group in groups {
        for lane in 0..LANES {
            least[lane] = if group[lane] < least[lane] { group[lane] } else { least[lane] };
        }
    }
    least.iter().chain(rest).fold(f64::INFINITY, |low, &q| if q < low { q } else { low })
}

/// ln L where the least margin is infinite and no sum is needed; `None` for a finite least margin.
///
/// All margins +∞ (or none at all) make L = 0, a margin −∞ makes L = ∞, and a NaN among them wins.
pub(super) fn degenerate(margins: &[f64], least: f64) -> Option<f64> {
    if least.is_finite() {
        None
    } else if margins.iter().any(|q| q.is_nan()) {
        Some(f64::NAN)
    } else {
        Some(-least)
    }
}

/// The weights that go with a [`degenerate`] ln L: 0 where the loss is 0, otherwise undefined (NaN).
pub(super) fn fill_degenerate(log_loss: f64, weights: &mut [f64]) -> f64 {
    weights.fill(if log_loss == f64::NEG_INFINITY { 0.0 } else { f64::NAN });
    log_loss
}

/// Σᵢ term(qᵢ), where `kernel` gives (term, −term′).
#[inline(always)]
pub(super) fn sum_terms(margins: &[f64], kernel: impl Fn(f64) -> (f64, f64) + Copy) -> f64 {
    crate::numeric::wide(
        #[inline(always)]
        || {
            // a copy of its own: behind a reference the compiler fears that a store changes it, and does not vectorise
            #[expect(clippy::redundant_locals, reason = "see above")]
            let kernel = kernel;
            let mut total = CompensatedSum::default();
            let mut terms = [0.0; BLOCK];
            for block in margins.chunks(BLOCK) {
                let terms = &mut terms[..block.len()];
                for (term, &q) in terms.iter_mut().zip(block) {
                    *term = kernel(q).0;
                }
                total.add(sum_block(terms));
            }
            total.value()
        },
    )
}

/// Σᵢ term(qᵢ), and leaves −term′(qᵢ) / Σ in `weights`.
#[inline(always)]
pub(super) fn sum_terms_with_weights(
    margins: &[f64],
    weights: &mut [f64],
    kernel: impl Fn(f64) -> (f64, f64) + Copy,
) -> f64 {
    crate::numeric::wide(
        #[inline(always)]
        || {
            // a copy of its own: behind a reference the compiler fears that a store changes it, and does not vectorise
            #[expect(clippy::redundant_locals, reason = "see above")]
            let kernel = kernel;
            let mut total = CompensatedSum::default();
            let mut terms = [0.0; BLOCK];
            for (block, slopes) in margins.chunks(BLOCK).zip(weights.chunks_mut(BLOCK)) {
                let terms = &mut terms[..block.len()];
                for ((term, slope), &q) in terms.iter_mut().zip(slopes).zip(block) {
                    (*term, *slope) = kernel(q);
                }
                total.add(sum_block(terms));
            }
            let total = total.value();
            divide(weights, total);
            total
        },
    )
}

/// Divides every entry by the same total.
#[inline(always)]
pub(super) fn divide(weights: &mut [f64], total: f64) {
    weights.iter_mut().for_each(|w| *w /= total);
}

/// The sum of one block, eight partial sums side by side.
#[inline(always)]
fn sum_block(terms: &[f64]) -> f64 {
    let (groups, rest) = terms.as_chunks::<LANES>();
    let mut partial = [0.0; LANES];
    for group in groups {
        for lane in 0..LANES {
            partial[lane] += group[lane];
        }
    }
    let [a, b, c, d, e, f, g, h] = partial;
    ((a + b) + (c + d)) + ((e + f) + (g + h)) + rest.iter().sum::<f64>()
}

/// P(z²) = Σₖ z²ᵏ/(2k+1) up to k = 16, for 0 ≤ z ≤ 1/3: the remainder is below 2·10^−18.
const ATANH_SERIES: [f64; 17] = {
    let mut coefficients = [0.0; 17];
    let mut k = 0;
    while k < 17 {
        coefficients[k] = 1.0 / (2 * k + 1) as f64;
        k += 1;
    }
    coefficients
};

/// ln(1 + x)/x for 0 ≤ x ≤ 1, without branches; 1 at x = 0.
///
/// ```text
/// ln(1 + x) = 2 artanh z = 2 z P(z²),   z = x/(2 + x) ≤ 1/3
/// ```
#[inline(always)]
pub(super) fn log1p_ratio(x: f64) -> f64 {
    let inverse = 1.0 / (2.0 + x);
    let square = (x * inverse) * (x * inverse);
    // seventeen terms as a tree (Estrin)
    let c = ATANH_SERIES;
    let (z2, z4, z8) = (square, square * square, (square * square) * (square * square));
    let first = (c[0] + c[1] * z2) + (c[2] + c[3] * z2) * z4;
    let second = (c[4] + c[5] * z2) + (c[6] + c[7] * z2) * z4;
    let third = (c[8] + c[9] * z2) + (c[10] + c[11] * z2) * z4;
    let fourth = (c[12] + c[13] * z2) + (c[14] + c[15] * z2) * z4;
    let series = (first + second * z8) + ((third + fourth * z8) + c[16] * (z8 * z8)) * (z8 * z8);
    2.0 * inverse * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_of_log1p_is_exact_to_a_few_bits() {
        assert_eq!(log1p_ratio(0.0), 1.0);
        for i in 1..=20_000 {
            let x = f64::from(i) / 20_000.0;
            assert!((log1p_ratio(x) / (x.ln_1p() / x) - 1.0).abs() < 9e-16, "{x}");
        }
        assert!(log1p_ratio(f64::NAN).is_nan());
    }

    #[test]
    fn sums_of_any_length_match_a_compensated_sum() {
        for n in [0usize, 1, 7, 8, 9, 511, 512, 513, 5000] {
            let q: Vec<f64> = (0..n).map(|i| 1.0 + (i as f64 * 0.37).sin()).collect();
            let exact = crate::numeric::compensated_sum(q.iter().map(|x| x * x));
            let mut weights = vec![f64::NAN; n];
            let plain = sum_terms(&q, |x| (x * x, x));
            let stored = sum_terms_with_weights(&q, &mut weights, |x| (x * x, x));
            assert_eq!(plain.to_bits(), stored.to_bits());
            assert!((plain - exact).abs() <= 1e-14 * exact);
            assert!(weights.iter().zip(&q).all(|(w, x)| *w == x / plain));
        }
    }

    #[test]
    fn the_smallest_of_any_length() {
        for n in 1..40 {
            for place in 0..n {
                let mut q = vec![5.0; n];
                q[place] = -3.0;
                assert_eq!(smallest(&q), -3.0);
            }
        }
        assert_eq!(smallest(&[]), f64::INFINITY);
        assert_eq!(smallest(&[f64::NAN, 2.0]), 2.0);
    }
}
