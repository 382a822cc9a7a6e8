//! Numbers with twice the digits of a double, for the few problems that need them.
//!
//! ```text
//! x = hi + lo,   |lo| ≤ ½ulp(hi):   106 bits, relative rounding errors of about 2⁻¹⁰⁴
//! ```
//!
//! The algorithms are Dekker's (1971) with fused multiply-adds; logarithms and exponentials are faer's. An operation
//! costs ten to twenty of a double's, so these numbers are for small problems whose answer lies far below the size of
//! what is added up.

use std::cmp::Ordering;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

use super::{Factor, LinalgError, Matrix, Scalar, Vectors};
use crate::numeric::wide;

/// A number with twice the digits of a double.
///
/// ```
/// use limitpoint::linalg::Precise;
/// let third = Precise::from(1.0) / Precise::from(3.0);
/// assert_eq!(third.high, 1.0 / 3.0);
/// assert!((third * Precise::from(3.0) - Precise::from(1.0)).high.abs() < 1e-31);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Precise {
    /// The nearest double.
    pub high: f64,
    /// What is missing from it.
    pub low: f64,
}

/// Sums that a dot product keeps apart.
const LANES: usize = 8;

impl Precise {
    const ZERO: Self = Self { high: 0.0, low: 0.0 };
    const ONE: Self = Self { high: 1.0, low: 0.0 };

    /// a·b of two doubles, exactly.
    #[inline(always)]
    fn product(a: f64, b: f64) -> Self {
        let high = a * b;
        Self { high, low: a.mul_add(b, -high) }
    }

    /// high + low for |low| ≤ |high|.
    #[inline(always)]
    fn renormalised(high: f64, low: f64) -> Self {
        let sum = high + low;
        Self { high: sum, low: low - (sum - high) }
    }
}

/// (s, e) with s = fl(a + b) and s + e = a + b.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

impl From<f64> for Precise {
    fn from(x: f64) -> Self {
        Self { high: x, low: 0.0 }
    }
}

impl PartialOrd for Precise {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.high.partial_cmp(&other.high) {
            Some(Ordering::Equal) => self.low.partial_cmp(&other.low),
            order => order,
        }
    }
}

impl Neg for Precise {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Add for Precise {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (high, error) = two_sum(self.high, other.high);
        let (low, lost) = two_sum(self.low, other.low);
        let partial = Self::renormalised(high, error + low);
        Self::renormalised(partial.high, partial.low + lost)
    }
}

impl Sub for Precise {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Precise {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let Self { high, low } = Self::product(self.high, other.high);
        Self::renormalised(high, self.low.mul_add(other.high, self.high.mul_add(other.low, low)))
    }
}

impl Div for Precise {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let first = self.high / other.high;
        let rest = self - other.times(first);
        let second = rest.high / other.high;
        let third = (rest - other.times(second)).high / other.high;
        Self::renormalised(first, second) + Self::from(third)
    }
}

impl AddAssign for Precise {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Precise {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Scalar for Precise {
    type Factor = PreciseCholesky;

    fn value(self) -> f64 {
        self.high
    }

    /// Newton's step from the root of the double, which doubles its digits (Karp and Markstein 1997).
    fn root(self) -> Self {
        if self.high == 0.0 {
            return Self::ZERO;
        }
        let inverse = self.high.sqrt().recip();
        let first = self.high * inverse;
        Self::renormalised(first, (self - Self::product(first, first)).high * (0.5 * inverse))
    }

    fn size(self) -> Self {
        if self.high < 0.0 { -self } else { self }
    }

    fn power(self, exponent: f64) -> Self {
        if self.high == 0.0 || exponent == 0.0 {
            return Self::from(self.high.powf(exponent));
        }
        let power = (faer::fx128 { 0: self.high, 1: self.low }.ln() * faer::fx128::from(exponent)).exp();
        Self { high: power.0, low: power.1 }
    }

    #[inline(always)]
    fn times(self, factor: f64) -> Self {
        let Self { high, low } = Self::product(self.high, factor);
        Self::renormalised(high, self.low.mul_add(factor, low))
    }
}

impl Vectors for Precise {
    fn norm2(v: &[Self]) -> Self {
        Self::dot(v, v).root()
    }

    fn dot(a: &[Self], b: &[Self]) -> Self {
        let lanes = wide(
            #[inline(always)]
            || {
                // independent sums, so that one does not wait for the last
                let mut lanes = [Self::ZERO; LANES];
                for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
                    for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
                        *lane += *a * *b;
                    }
                }
                lanes
            },
        );
        lanes.into_iter().fold(Self::ZERO, |all, lane| all + lane)
    }

    fn add_scaled(out: &mut [Self], factor: Self, x: &[Self]) {
        wide(
            #[inline(always)]
            || out.iter_mut().zip(x).for_each(|(out, x)| *out += factor * *x),
        );
    }

    fn matmul(c: &mut [Self], a: &[Self], b: &[Self], m: usize, k: usize, n: usize) {
        c[..m * n].fill(Self::ZERO);
        for i in 0..m {
            for l in 0..k {
                Self::add_scaled(&mut c[i * n..(i + 1) * n], a[i * k + l], &b[l * n..(l + 1) * n]);
            }
        }
    }

    fn add_gram(out: &mut [Self], rows: &Matrix, weights: &[Self]) {
        let n = rows.cols;
        let mut row = vec![Self::ZERO; n];
        for (k, weight) in weights.iter().enumerate() {
            row.iter_mut().zip(rows.row(k)).for_each(|(out, x)| *out = Self::from(*x));
            for i in 0..n {
                if row[i].high != 0.0 {
                    Self::add_scaled(&mut out[i * n..=i * n + i], *weight * row[i], &row[..=i]);
                }
            }
        }
    }
}

/// A = L Lᵀ in precise numbers.
pub struct PreciseCholesky {
    size: usize,
    /// L, row by row, with the inverses of its diagonal on the diagonal.
    factor: Vec<Precise>,
}

impl Factor<Precise> for PreciseCholesky {
    fn of(a: &[Precise], size: usize, floor: f64) -> Result<Self, LinalgError> {
        if a.len() != size * size {
            return Err(LinalgError::Shape { what: "the matrix to factor", found: a.len(), expected: size * size });
        }
        let mut factor = a.to_vec();
        for j in 0..size {
            let (above, below) = factor.split_at_mut(j * size);
            let row = &mut below[..=j];
            for k in 0..j {
                let earlier = &above[k * size..=k * size + k];
                let known = Precise::dot(&row[..k], &earlier[..k]);
                row[k] = (row[k] - known) * earlier[k];
            }
            let pivot = row[j] - Precise::dot(&row[..j], &row[..j]);
            row[j] = match pivot.high {
                pivot if pivot.is_nan() => return Err(LinalgError::NotPositive { size }),
                small if small <= floor && floor > 0.0 => Precise::ZERO,
                small if small <= 0.0 => return Err(LinalgError::NotPositive { size }),
                _ => Precise::ONE / pivot.root(),
            };
        }
        Ok(Self { size, factor })
    }

    fn solve(&mut self, x: &mut [Precise]) {
        let row = |i: usize| &self.factor[i * self.size..=i * self.size + i];
        for i in 0..self.size {
            x[i] = (x[i] - Precise::dot(&row(i)[..i], &x[..i])) * row(i)[i];
        }
        for i in (0..self.size).rev() {
            x[i] = x[i] * row(i)[i];
            let factor = -x[i];
            Precise::add_scaled(&mut x[..i], factor, &row(i)[..i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_has_thirty_digits() {
        let third = Precise::from(1.0) / Precise::from(3.0);
        let rest = third * Precise::from(3.0) - Precise::from(1.0);
        assert!(rest.high.abs() < 1e-31 && third.low != 0.0);
        let root = Precise::from(2.0).root();
        assert!((root * root - Precise::from(2.0)).high.abs() < 1e-30);
        // 3^2.5 squared is 3^5
        let power = Precise::from(3.0).power(2.5);
        assert!((power * power - Precise::from(243.0)).high.abs() < 1e-27);
        assert_eq!((Precise::ZERO.root().high, Precise::ZERO.power(1.5).high), (0.0, 0.0));
    }

    #[test]
    fn hilberts_matrix_is_solved_where_doubles_fail() {
        // condition number 1.6e13 at size 10; expected: all ones
        let size = 10;
        let entry = |i: usize, j: usize| Precise::from(1.0) / Precise::from((i + j + 1) as f64);
        let a: Vec<Precise> = (0..size * size).map(|at| entry(at / size, at % size)).collect();
        let mut x: Vec<Precise> =
            (0..size).map(|i| a[i * size..(i + 1) * size].iter().fold(Precise::ZERO, |sum, x| sum + *x)).collect();
        PreciseCholesky::of(&a, size, 0.0).unwrap().solve(&mut x);
        assert!(x.iter().all(|x| (*x - Precise::ONE).high.abs() < 1e-16), "{x:?}");
    }

    #[test]
    fn a_dependent_row_is_left_out_under_a_floor_and_refused_without() {
        let a = [1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 2.0].map(Precise::from);
        assert!(PreciseCholesky::of(&a, 3, 0.0).is_err());
        let mut x = [3.0, 3.0, 4.0].map(Precise::from);
        PreciseCholesky::of(&a, 3, 1e-28).unwrap().solve(&mut x);
        assert!((x[0] + x[1] - Precise::from(3.0)).high.abs() < 1e-28 && (x[2].high - 2.0).abs() < 1e-15);
    }

    #[test]
    fn weighted_grams_agree_with_those_of_doubles() {
        let rows = Matrix::from_rows(&[&[1.0, 2.0, 0.0], &[0.5, -1.0, 3.0]]);
        let (mut exact, mut plain) = (vec![Precise::ZERO; 9], vec![0.0; 9]);
        Precise::add_gram(&mut exact, &rows, &[2.0, 4.0].map(Precise::from));
        f64::add_gram(&mut plain, &rows, &[2.0, 4.0]);
        for (i, j) in [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)] {
            assert!((exact[i * 3 + j].high - plain[i * 3 + j]).abs() < 1e-14);
        }
    }
}
