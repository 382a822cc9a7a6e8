//! Krawczyk's test: a box around an approximate zero that must hold exactly one true zero.
//!
//! For any matrix C and any box X = x̃ ± r,
//!
//! ```text
//! K(X) = x̃ − C F(x̃) + (I − C F′(X))(X − x̃),     K(X) ⊂ interior of X  ⟹  F has exactly one zero in X, and it lies in K(X)
//! ```
//!
//! (Krawczyk 1969; Neumaier, *Interval Methods for Systems of Equations*, theorem 5.1.8). C is the inverse of the Jacobian
//! up to rounding; how it was found does not matter. F(x̃) is evaluated in balls of 106 bits, F′(X) in intervals, and the
//! product of C and F′(X) in plain doubles with a bound on everything that is rounded:
//!
//! ```text
//! |fl(C M) − C M| ≤ γ_n |C||M|,   γ_n = nu/(1 − nu),   for any order of the sums, fused or not     (Higham, section 3.5)
//! ```

use super::double_double::Ball;
use super::linear::inverse;
use super::number::Number;
use super::system::System;
use crate::intervals::Interval;
use crate::linalg::{Precise, dot, matmul};

/// Most steps of Newton's method.
const STEPS: usize = 60;
/// While steps are larger than this share of the unknowns, the inverse is made anew.
const NEAR: f64 = 1e-7;
/// Radii that are tried, as multiples of twice the rounding of F.
const WIDTHS: [f64; 8] = [1.0, 4.0, 16.0, 64.0, 512.0, 4096.0, 1e5, 1e7];
const UNIT: f64 = f64::EPSILON / 2.0;

/// Why no zero was found or proven; indices of unknowns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Miss {
    /// The Jacobian has no inverse.
    Singular(usize),
    /// Newton's method did not settle.
    Diverged(usize),
    /// No box is mapped into itself; the worst unknown with radius and radius of its image.
    NoInclusion(usize, f64, f64),
}

/// An approximate zero with an approximate inverse of the Jacobian there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Zero {
    /// x̃.
    pub midpoint: Vec<f64>,
    /// C, row by row, in ten significant digits.
    pub inverse: Vec<f64>,
}

/// Newton's method with residuals of 106 bits.
pub(super) fn newton(system: &impl System, start: &[f64]) -> Result<Zero, Miss> {
    let size = system.size();
    let mut point: Vec<Precise> = start.iter().map(|x| (*x).into()).collect();
    let mut matrix = Vec::new();
    let mut before = f64::INFINITY;
    for step in 0..STEPS {
        let rounded: Vec<f64> = point.iter().map(|x| x.high).collect();
        let scales = scales(&rounded);
        if step == 0 || before > NEAR {
            matrix = inverse(&system.jacobian(&rounded), size).map_err(Miss::Singular)?;
        }
        let balls: Vec<Ball> = point.iter().map(|x| Ball::point(*x)).collect();
        let residual: Vec<f64> = system.residual(&balls).iter().map(|f| f.middle().high).collect();
        let change: Vec<f64> = matrix.chunks_exact(size).map(|row| dot(row, &residual)).collect();
        let sizes = change.iter().zip(&scales).map(|(x, s)| x.abs() / s);
        let (worst, moved) =
            sizes.enumerate().fold((0, 0.0), |worst, (k, x)| if x > worst.1 || x.is_nan() { (k, x) } else { worst });
        if !moved.is_finite() || (step > 20 && moved > 1e-3) {
            return Err(Miss::Diverged(worst));
        }
        point.iter_mut().zip(&change).for_each(|(x, c)| *x -= (*c).into());
        // at 106 bits, or no longer moving
        if moved < 1e-26 || (moved < 1e-18 && moved > 0.1 * before) {
            let midpoint: Vec<f64> = point.iter().map(|x| x.high).collect();
            let fresh = inverse(&system.jacobian(&midpoint), size).map_err(Miss::Singular)?;
            return Ok(Zero { midpoint, inverse: fresh.iter().map(|x| short(*x)).collect() });
        }
        before = moved;
    }
    let (worst, _) =
        point.iter().enumerate().fold((0, 0.0), |w, (k, x)| if x.high.abs() > w.1 { (k, x.high.abs()) } else { w });
    Err(Miss::Diverged(worst))
}

/// Ten significant digits.
fn short(x: f64) -> f64 {
    format!("{x:.9e}").parse().unwrap_or(x)
}

/// Sizes that changes of the unknowns are compared with: their own, but not too small beside the others.
pub(super) fn scales(point: &[f64]) -> Vec<f64> {
    let mut sizes: Vec<f64> = point.iter().map(|x| x.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let typical = sizes.get(sizes.len() / 2).copied().unwrap_or(1.0);
    point.iter().map(|x| x.abs().max(1e-3 * typical).max(f64::MIN_POSITIVE)).collect()
}

/// The radii of a box around an approximate zero that is mapped into itself; `wider` multiplies the first that is tried.
pub(super) fn include(system: &impl System, zero: &Zero, wider: f64) -> Result<Vec<f64>, Miss> {
    let size = system.size();
    let points: Vec<Interval> = zero.midpoint.iter().map(|x| Interval::point(*x)).collect();
    // what plain intervals cannot tell from 0 decides how wide the box must be for those who check with them
    let rounding: Vec<f64> = system.residual(&points).iter().map(|f| f.magnitude()).collect();
    let sizes: Vec<f64> = zero.inverse.iter().map(|x| x.abs()).collect();
    let scales = scales(&zero.midpoint);
    let least = |k: usize| 2.0 * dot(&sizes[k * size..(k + 1) * size], &rounding) + 1e-16 * scales[k];
    let least: Vec<f64> = (0..size).map(least).collect();
    let balls: Vec<Ball> = zero.midpoint.iter().map(|x| Ball::exact(*x)).collect();
    let residual: Vec<Interval> = system.residual(&balls).iter().map(|f| f.enclosure()).collect();
    let shift: Vec<f64> = zero.inverse.chunks_exact(size).map(|row| weighted(row, &residual)).collect();
    let mut miss = Miss::NoInclusion(0, 0.0, f64::INFINITY);
    for width in WIDTHS {
        let radii: Vec<f64> = least.iter().map(|r| r * width * wider).collect();
        let boxed: Vec<Interval> = zero.midpoint.iter().zip(&radii).map(|(x, r)| around(*x, *r)).collect();
        let errors = distance_from_identity(&zero.inverse, &system.jacobian(&boxed), size);
        let image: Vec<f64> = errors
            .chunks_exact(size)
            .zip(&shift)
            .map(|(row, shift)| (shift + dot(row, &radii)) * (1.0 + 4.0 * (size + 4) as f64 * UNIT) + f64::MIN_POSITIVE)
            .collect();
        let ratio = |k: usize| image[k] / radii[k];
        let worst = (0..size).max_by(|&a, &b| ratio(a).total_cmp(&ratio(b))).unwrap_or(0);
        if size == 0 || ratio(worst) < 1.0 {
            return Ok(radii);
        }
        miss = Miss::NoInclusion(worst, radii[worst], image[worst]);
    }
    Err(miss)
}

/// x ± r, rounded outwards.
pub(super) fn around(x: f64, r: f64) -> Interval {
    Interval::new((x - r).next_down(), (x + r).next_up())
}

/// An upper bound of |Σ c_k f_k|.
fn weighted(row: &[f64], residual: &[Interval]) -> f64 {
    row.iter().zip(residual).fold(Interval::ZERO, |sum, (c, f)| sum + Interval::point(*c) * *f).magnitude()
}

/// Upper bounds of the entries of |I − C J|, all J in the box; infinite where nothing is known.
fn distance_from_identity(inverse: &[f64], jacobian: &[Interval], size: usize) -> Vec<f64> {
    let middle: Vec<f64> = jacobian.iter().map(|x| 0.5 * x.lo + 0.5 * x.hi).collect();
    let spread: Vec<f64> =
        jacobian.iter().zip(&middle).map(|(x, m)| (x.hi - m).next_up().max((m - x.lo).next_up())).collect();
    let absolute = |v: &[f64]| -> Vec<f64> { v.iter().map(|x| x.abs()).collect() };
    let sizes = absolute(inverse);
    let n = (size + 4) as f64 * UNIT;
    let gamma = n / (1.0 - n) * (1.0 + 4.0 * UNIT);
    // |C|·spread and γ|C||M| in one product
    let spread: Vec<f64> =
        spread.iter().zip(&middle).map(|(s, m)| (s + gamma * m.abs()) * (1.0 + 4.0 * UNIT)).collect();
    let product = |a: &[f64], b: &[f64]| {
        let mut out = vec![0.0; size * size];
        matmul(&mut out, a, b, size, size, size);
        out
    };
    let (centre, wide) = (product(inverse, &middle), product(&sizes, &spread));
    let entry = |at: usize| {
        let one = if at / size == at % size { 1.0 } else { 0.0 };
        // sums of few positive terms, each off by at most γ of itself
        let sum = (one - centre[at]).abs() * (1.0 + 4.0 * UNIT) + wide[at];
        let sum = sum * (1.0 + 4.0 * gamma) + 1e-290;
        if sum.is_nan() { f64::INFINITY } else { sum }
    };
    (0..size * size).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proofs::system::Unknown;

    /// x² + y² = 1, x = cy: two zeros for every c.
    struct Circle(f64);

    impl System for Circle {
        fn size(&self) -> usize {
            2
        }
        fn unknown(&self, _: usize) -> Unknown {
            Unknown { what: "the coordinate", example: None, bundle: None }
        }
        fn residual<N: Number>(&self, z: &[N]) -> Vec<N> {
            vec![z[0] * z[0] + z[1] * z[1] - N::exact(1.0), z[0] - z[1].scaled(self.0)]
        }
        fn jacobian<N: Number>(&self, z: &[N]) -> Vec<N> {
            vec![z[0].scaled(2.0), z[1].scaled(2.0), N::exact(1.0), N::exact(-self.0)]
        }
    }

    #[test]
    fn the_root_of_one_half_is_enclosed_to_the_last_bit() {
        let zero = newton(&Circle(1.0), &[0.8, 0.6]).unwrap();
        let radii = include(&Circle(1.0), &zero, 1.0).unwrap();
        let root = 0.5_f64.sqrt();
        assert_eq!(zero.midpoint, [root, root]);
        assert!(radii.iter().all(|r| *r < 1e-14), "{radii:?}");
    }

    #[test]
    fn no_box_is_proven_where_there_is_no_zero_or_a_double_one() {
        // moved away from the zero by far more than the box: the image lies elsewhere
        let mut zero = newton(&Circle(1.0), &[0.8, 0.6]).unwrap();
        zero.midpoint[0] += 1e-3;
        let radii = include(&Circle(1.0), &zero, 1.0);
        // a box as wide as the error does hold the zero; if one is proven, it must
        if let Ok(radii) = radii {
            assert!(radii[0] >= 1e-3);
        }
        let wrong = Zero { midpoint: vec![0.5, 0.5], inverse: zero.inverse };
        match include(&Circle(1.0), &wrong, 1.0) {
            Err(Miss::NoInclusion(..)) => {}
            Ok(radii) => assert!(radii[0] > 0.2, "{radii:?}"),
            Err(other) => panic!("{other:?}"),
        }
        assert_eq!(newton(&Circle(1.0), &[0.0, 0.0]), Err(Miss::Singular(0)));
    }
}
