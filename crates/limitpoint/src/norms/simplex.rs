//! Projection onto the simplex, the building block of every ball and face with corners.

/// Euclidean projection of `v` onto the simplex { x : xᵢ ≥ 0, Σ xᵢ = total }, in place.
///
/// ```text
/// xᵢ = max(vᵢ − τ, 0)   with τ such that Σ xᵢ = total
/// ```
///
/// τ is found by Newton's method on the convex decreasing function Σ max(vᵢ − τ, 0), started left of its zero at max v
/// − total. The set of positive entries then only shrinks, and the iteration stops, exact up to rounding, when it no
/// longer does. Michelot 1986, "A finite algorithm for finding the projection of a point onto the canonical simplex".
/// `total` must not be negative; NaN entries give NaN.
///
/// ```
/// let mut v = [0.9, 0.5, -3.0];
/// limitpoint::norms::project_simplex(&mut v, 1.0);
/// assert!((v[0] - 0.7).abs() < 1e-15 && (v[1] - 0.3).abs() < 1e-15 && v[2] == 0.0);
/// ```
pub fn project_simplex(v: &mut [f64], total: f64) {
    let threshold = Threshold::of_simplex(v.iter().copied(), total);
    v.iter_mut().for_each(|x| *x = threshold.excess(*x));
}

/// The number τ = reference + offset, kept in two parts so that x − τ stays accurate when x ≫ total.
#[derive(Debug, Clone, Copy)]
pub(super) struct Threshold {
    reference: f64,
    offset: f64,
}

impl Threshold {
    /// τ itself.
    pub(super) fn at(level: f64) -> Self {
        Self { reference: 0.0, offset: level }
    }

    /// The τ with Σ max(xᵢ − τ, 0) = total.
    pub(super) fn of_simplex(values: impl Iterator<Item = f64> + Clone, total: f64) -> Self {
        let reference = values.clone().fold(f64::NEG_INFINITY, larger);
        let (mut offset, mut kept) = (-total, usize::MAX);
        loop {
            let (mut sum, mut count) = (0.0, 0_usize);
            for below in values.clone().map(|x| x - reference).filter(|below| *below > offset) {
                sum += below;
                count += 1;
            }
            if count == 0 || count >= kept {
                return Self { reference, offset };
            }
            offset = (sum - total) / count as f64;
            kept = count;
        }
    }

    /// max(x − τ, 0).
    pub(super) fn excess(&self, x: f64) -> f64 {
        positive_part((x - self.reference) - self.offset)
    }
}

/// max(x, 0), NaN for NaN.
pub(super) fn positive_part(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// The larger of two numbers, NaN if either is.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// x moved into [−bound, bound], NaN for NaN.
pub(super) fn clip(x: f64, bound: f64) -> f64 {
    if x > bound {
        bound
    } else if x < -bound {
        -bound
    } else {
        x
    }
}

/// Whether no ball has this radius; the answer to such a question is NaN.
pub(super) fn refuse_radius(radius: f64, v: &mut [f64]) -> bool {
    if radius >= 0.0 {
        return false;
    }
    v.fill(f64::NAN);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    #[test]
    fn the_projection_is_on_the_simplex_and_closest() {
        let mut stream = Streams::new(0).stream("simplex");
        for (size, total, scale) in [(1, 2.0, 1.0), (5, 1.0, 1.0), (50, 0.1, 3.0), (50, 1.0, 1e-3), (7, 1.0, 1e8)] {
            let mut v = vec![0.0; size];
            stream.fill_normal(&mut v);
            v.iter_mut().for_each(|x| *x *= scale);
            let mut x = v.clone();
            project_simplex(&mut x, total);
            assert!((x.iter().sum::<f64>() - total).abs() < 1e-14 * total.max(1.0));
            assert!(x.iter().all(|x| *x >= 0.0));
            for corner in 0..size {
                let slack: f64 =
                    (0..size).map(|i| (v[i] - x[i]) * (if i == corner { total } else { 0.0 } - x[i])).sum();
                assert!(slack <= 1e-13 * scale.max(1.0), "size {size}: {slack}");
            }
        }
    }

    #[test]
    fn corner_cases() {
        let mut v = [3.0, -1.0];
        project_simplex(&mut v, 0.0);
        assert_eq!(v, [0.0, 0.0]);
        let mut v = [1.0, f64::NAN];
        project_simplex(&mut v, 1.0);
        assert!(v.iter().all(|x| x.is_nan()));
        project_simplex(&mut [], 1.0);
        assert!(positive_part(f64::NAN).is_nan() && larger(f64::NAN, 1.0).is_nan() && larger(1.0, f64::NAN).is_nan());
    }
}
