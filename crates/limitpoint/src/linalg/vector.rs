//! Operations on plain slices, with a fixed order of summation.
//!
//! The long loops are compiled once for each instruction set and chosen at run time; the order of operations is the
//! same in all of them, so are the bits.

/// Σ aᵢ bᵢ, summed in eight fixed lanes so that it vectorises and never changes its bits.
///
/// ```
/// assert_eq!(limitpoint::linalg::dot(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
/// ```
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let (chunks_a, rest_a) = a.as_chunks::<8>();
    let (chunks_b, rest_b) = b.as_chunks::<8>();
    let tail: f64 = rest_a.iter().zip(rest_b).map(|(x, y)| x * y).sum();
    let lanes = crate::numeric::wide(
        #[inline(always)]
        || {
            let mut lanes = [0.0; 8];
            for (x, y) in chunks_a.iter().zip(chunks_b) {
                for lane in 0..8 {
                    lanes[lane] += x[lane] * y[lane];
                }
            }
            lanes
        },
    );
    lanes.iter().sum::<f64>() + tail
}

/// The Euclidean norm, safe from overflow and underflow.
///
/// ```
/// assert_eq!(limitpoint::linalg::norm2(&[3e-200, 4e-200]), 5e-200);
/// ```
pub fn norm2(v: &[f64]) -> f64 {
    let plain = dot(v, v);
    if (1e-280..1e280).contains(&plain) {
        return plain.sqrt();
    }
    let largest = max_abs(v);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * v.iter().map(|x| (x / largest) * (x / largest)).sum::<f64>().sqrt()
}

/// Σ |vᵢ|.
pub fn sum_abs(v: &[f64]) -> f64 {
    let (chunks, rest) = v.as_chunks::<8>();
    let tail: f64 = rest.iter().map(|x| x.abs()).sum();
    let lanes = crate::numeric::wide(
        #[inline(always)]
        || {
            let mut lanes = [0.0; 8];
            for x in chunks {
                for lane in 0..8 {
                    lanes[lane] += x[lane].abs();
                }
            }
            lanes
        },
    );
    lanes.iter().sum::<f64>() + tail
}

/// max |vᵢ|; 0 for an empty slice, NaN if any entry is NaN.
pub fn max_abs(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |largest: f64, x| {
        if x.is_nan() {
            f64::NAN
        } else if x.abs() > largest {
            x.abs()
        } else {
            largest
        }
    })
}

/// target += factor · v.
pub fn add_scaled(target: &mut [f64], factor: f64, v: &[f64]) {
    debug_assert_eq!(target.len(), v.len());
    crate::numeric::wide(
        #[inline(always)]
        || {
            for (t, x) in target.iter_mut().zip(v) {
                *t += factor * x;
            }
        },
    );
}

/// The sign of x with sign(0) = 0 (unlike `f64::signum`, which answers ±1 at ±0).
///
/// ```
/// assert_eq!([-2.0, 0.0, -0.0, 5.0].map(limitpoint::linalg::sign), [-1.0, 0.0, 0.0, 1.0]);
/// ```
#[inline(always)]
pub fn sign(x: f64) -> f64 {
    f64::from(u8::from(x > 0.0)) - f64::from(u8::from(x < 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nan_is_never_lost() {
        assert!(max_abs(&[1.0, f64::NAN, 2.0]).is_nan());
        assert!(max_abs(&[f64::NAN]).is_nan());
        assert!(norm2(&[1.0, f64::NAN]).is_nan());
        assert_eq!(norm2(&[1e200, 0.0]), 1e200);
    }
}
