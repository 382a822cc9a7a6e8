//! Long sums of products with proven bounds, many terms at a time.
//!
//! ```text
//! Σ xᵢyᵢ = s + Σ eᵢ       s the floating sums, eᵢ the exact errors of their steps and of the products
//! |fl(Σ eᵢ) − Σ eᵢ| ≤ 2(n + 8)·2⁻⁵³ fl(Σ |eᵢ|)      (Higham 2002, section 4.2; twice what it asks for, for fl(Σ |eᵢ|) itself)
//! ```
//!
//! [`ExactSum`](super::ExactSum) moves outwards at every term and is a little tighter; here the errors are added up to
//! nearest and one radius is added at the end, so that the loop has no branches and vectorises.

use super::{ExactSum, Interval, enclosed_sum};
use crate::numeric::{compensated_sum, wide};

/// Sums that are kept apart.
const LANES: usize = 8;
/// More than the error of a product that underflows.
const UNDERFLOW: f64 = 1e-300;

/// The sum after x·y is added, and the errors of the addition and of the product (Knuth's TwoSum, TwoProduct by a fused
/// multiply-add).
#[inline(always)]
fn with_product(before: f64, x: f64, y: f64) -> (f64, f64, f64) {
    let product = x * y;
    let sum = before + product;
    let part = sum - before;
    (sum, (before - (sum - part)) + (product - part), x.mul_add(y, -product))
}

/// How far a floating sum of the errors of `count` terms can be off, from the sum of their absolute values.
fn allowance(size: f64, count: usize) -> Interval {
    let radius = (2 * (count + LANES)) as f64 * f64::EPSILON * size + count as f64 * UNDERFLOW;
    Interval::new(-radius, radius)
}

/// Floating sums of xᵢyᵢ over whole groups of lanes, their errors, and the sizes of these.
fn summed(x: &[[f64; LANES]], y: &[[f64; LANES]]) -> [[f64; LANES]; 3] {
    wide(
        #[inline(always)]
        || {
            let (mut sums, mut errors, mut sizes) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            for (x, y) in x.iter().zip(y) {
                for lane in 0..LANES {
                    let (sum, rounded, lost) = with_product(sums[lane], x[lane], y[lane]);
                    sums[lane] = sum;
                    errors[lane] += rounded + lost;
                    sizes[lane] += rounded.abs() + lost.abs();
                }
            }
            [sums, errors, sizes]
        },
    )
}

/// Σ xᵢyᵢ of long vectors of doubles.
///
/// ```
/// use limitpoint::intervals::enclosed_long_dot;
/// let sum = enclosed_long_dot(&[1e8, 1.0, -1e8], &[1e8, 1.0, 1e8]);
/// assert!(sum.contains(1.0) && sum.width() < 1e-14);
/// ```
pub fn enclosed_long_dot(x: &[f64], y: &[f64]) -> Interval {
    let (groups_x, rest_x) = x.as_chunks::<LANES>();
    let (groups_y, rest_y) = y.as_chunks::<LANES>();
    let [sums, errors, sizes] = summed(groups_x, groups_y);
    let (mut rest, count) = (ExactSum::default(), groups_x.len());
    rest_x.iter().zip(rest_y).for_each(|(x, y)| rest.add_product(*x, *y));
    let points = sums.into_iter().chain(errors).map(Interval::point);
    enclosed_sum(points.chain(sizes.map(|size| allowance(size, count))).chain([rest.enclosure()]))
}

/// Σ xᵢyᵢ of long vectors in about twice the working precision, rounded.
pub(crate) fn long_dot(x: &[f64], y: &[f64]) -> f64 {
    let (groups_x, rest_x) = x.as_chunks::<LANES>();
    let (groups_y, rest_y) = y.as_chunks::<LANES>();
    let [sums, errors, _] = summed(groups_x, groups_y);
    let rest = rest_x.iter().zip(rest_y).flat_map(|(x, y)| [x * y, x.mul_add(*y, -(x * y))]);
    compensated_sum(sums.into_iter().chain(errors).chain(rest))
}

/// Σ pᵢ rowᵢ, entry by entry.
pub(crate) fn enclosed_combination<'a>(
    length: usize,
    terms: impl Iterator<Item = (f64, &'a [f64])>,
) -> impl Iterator<Item = Interval> {
    let (mut sums, mut errors, mut sizes) = (vec![0.0; length], vec![0.0; length], vec![0.0; length]);
    let mut count = 0;
    for (p, row) in terms {
        count += 1;
        wide(
            #[inline(always)]
            || {
                let entries = sums.iter_mut().zip(&mut errors).zip(&mut sizes).zip(row);
                for (((sum, error), size), x) in entries {
                    let (next, rounded, lost) = with_product(*sum, p, *x);
                    *sum = next;
                    *error += rounded + lost;
                    *size += rounded.abs() + lost.abs();
                }
            },
        );
    }
    let entry = move |((sum, error), size)| Interval::point(sum) + (Interval::point(error) + allowance(size, count));
    sums.into_iter().zip(errors).zip(sizes).map(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    #[test]
    fn both_ways_of_adding_up_enclose_the_same_number() {
        let mut stream = Streams::new(7).stream("lanes");
        for length in [0, 1, 7, 8, 9, 64, 1001] {
            let (mut x, mut y) = (vec![0.0; length], vec![0.0; length]);
            stream.fill_normal(&mut x);
            stream.fill_normal(&mut y);
            // terms of all sizes, most of which cancel
            for i in 0..length / 2 {
                (x[2 * i], y[2 * i]) = (1e9 * x[2 * i], y[2 * i] * 1e5);
                (x[2 * i + 1], y[2 * i + 1]) = (-x[2 * i], y[2 * i] * (1.0 + 1e-13));
            }
            let mut exact = ExactSum::default();
            x.iter().zip(&y).for_each(|(x, y)| exact.add_product(*x, *y));
            let (exact, long) = (exact.enclosure(), enclosed_long_dot(&x, &y));
            assert!(long.lo <= exact.hi && exact.lo <= long.hi, "{exact:?} {long:?}");
            let slack = 1e-15 * long.magnitude() + 1e-26 * x.iter().zip(&y).map(|(x, y)| (x * y).abs()).sum::<f64>();
            assert!(long.width() <= slack, "{long:?}");
            let rounded = long_dot(&x, &y);
            assert!(long.lo - slack <= rounded && rounded <= long.hi + slack, "{long:?} {rounded}");
            let entries: Vec<Interval> = enclosed_combination(1, x.chunks(1).zip(&y).map(|(x, y)| (*y, x))).collect();
            assert!(entries[0].lo <= exact.hi && exact.lo <= entries[0].hi, "{exact:?} {entries:?}");
        }
    }

    #[test]
    fn what_overflows_is_not_known_and_what_underflows_is_allowed_for() {
        assert_eq!(enclosed_long_dot(&[1e200], &[1e200]), Interval::WHOLE);
        let tiny = enclosed_long_dot(&[1e-200; 9], &[1e-200; 9]);
        assert!(tiny.lo < 0.0 && tiny.hi > 0.0 && tiny.hi < 1e-290);
    }
}
