//! Numbers known to lie between two others: arithmetic that rounds outwards.
//!
//! An [`Interval`] [lo, hi] stands for any real number in it, and every operation here returns an interval that holds
//! all results of the exact operation, so that a bound computed with it is a theorem about the exact inputs. Three
//! facts about IEEE 754 carry the proofs:
//!
//! ```text
//! rounding    x ∘ y = fl(x ∘ y) + e,  |e| ≤ ½ulp,   for + − × ÷ √: the two neighbours of fl(x ∘ y) enclose the result
//! TwoSum      e of a sum is itself a double and six additions give it          (Knuth, TAOCP 2, section 4.2.2)
//! TwoProduct  e of a product is fma(x, y, −xy), exact from 2⁻⁹⁶⁹ on   (Ogita, Rump, Oishi 2005, Alg. 3.5)
//! ```
//!
//! Where the sign of e is known only one end has to move, and where e = 0 none does: operations on small integers are
//! exact. `powf` is rounded by the system's library, not by IEEE 754; see [`Interval::powf`] for what is allowed for
//! it. An end may be infinite, which means that nothing is known on that side.

use std::ops::{Add, Div, Mul, Neg, Sub};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Products from here on have a rounding error that is a double, with room to spare over 2⁻⁹⁶⁹.
const EXACT_PRODUCT: f64 = 1e-280;
/// More than the rounding error of any smaller product.
const TINY_ERROR: f64 = EXACT_PRODUCT * f64::EPSILON;
/// How far, in neighbouring doubles, a library's `pow` may be off.
const POWER_ALLOWANCE: usize = 4;

/// A closed interval of real numbers; lo ≤ hi, either may be infinite, neither is NaN.
///
/// ```
/// use limitpoint::intervals::Interval;
/// let third = Interval::point(1.0) / Interval::point(3.0);
/// assert!(third.lo < third.hi && third.hi - third.lo < 1e-16);
/// assert_eq!(Interval::point(3.0) * Interval::point(0.5), Interval::point(1.5)); // exact, so nothing is added
/// assert!((third * Interval::point(3.0)).contains(1.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub lo: f64,
    /// The upper end.
    pub hi: f64,
}

impl Interval {
    /// Nothing is known.
    pub const WHOLE: Self = Self { lo: f64::NEG_INFINITY, hi: f64::INFINITY };
    /// Exactly 0.
    pub const ZERO: Self = Self { lo: 0.0, hi: 0.0 };

    /// Exactly this number; the whole line for one that is not finite.
    pub fn point(x: f64) -> Self {
        Self::new(x, x)
    }

    /// Between two numbers; the whole line if they are out of order or no numbers.
    pub fn new(lo: f64, hi: f64) -> Self {
        if lo <= hi && lo < f64::INFINITY && hi > f64::NEG_INFINITY { Self { lo, hi } } else { Self::WHOLE }
    }

    /// Whether a number lies in it.
    pub fn contains(self, x: f64) -> bool {
        self.lo <= x && x <= self.hi
    }

    /// hi − lo, rounded up.
    pub fn width(self) -> f64 {
        (Self::point(self.hi) - Self::point(self.lo)).hi
    }

    /// The largest absolute value in it.
    pub fn magnitude(self) -> f64 {
        self.lo.abs().max(self.hi.abs())
    }

    /// |x|.
    pub fn abs(self) -> Self {
        if self.lo >= 0.0 {
            self
        } else if self.hi <= 0.0 {
            -self
        } else {
            Self { lo: 0.0, hi: self.magnitude() }
        }
    }

    /// The smaller of two.
    pub fn min(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.min(other.hi) }
    }

    /// The larger of two.
    pub fn max(self, other: Self) -> Self {
        Self { lo: self.lo.max(other.lo), hi: self.hi.max(other.hi) }
    }

    /// x², tighter than x·x where x may be negative.
    pub fn square(self) -> Self {
        let a = self.abs();
        a * a
    }

    /// √x for x ≥ 0; a part below 0 is left out, since what is enclosed is never negative where a root is taken.
    pub fn sqrt(self) -> Self {
        let root = |x: f64, up: bool| {
            let s = x.max(0.0).sqrt();
            // s² − x has the sign of s − √x, and its own sign is right unless x is tiny
            let error = if x > EXACT_PRODUCT || x <= 0.0 { -s.mul_add(s, -x.max(0.0)) } else { f64::NAN };
            if up { above(s, error) } else { below(s, error).max(0.0) }
        };
        Self::new(root(self.lo, false), if self.hi == f64::INFINITY { self.hi } else { root(self.hi, true) })
    }

    /// x^y for x ≥ 0 and y > 0.
    ///
    /// IEEE 754 does not round `pow`. The libraries Rust links to keep it within one unit in the last place (glibc and
    /// musl 0.52 by their own analysis, Apple's and Microsoft's below 1); four neighbouring doubles on either side are
    /// allowed for. x^y is monotone in x and, for fixed x, in y, so its extremes are at the corners. 0^y and 1^y are
    /// exact.
    pub fn powf(self, exponent: Self) -> Self {
        let (mut lo, mut hi) = (f64::INFINITY, 0.0_f64);
        for x in [self.lo.max(0.0), self.hi] {
            for y in [exponent.lo, exponent.hi] {
                let exact = x == 0.0 || x == 1.0 || y == 1.0;
                let steps = if exact { 0 } else { POWER_ALLOWANCE };
                let power = x.powf(y);
                lo = lo.min((0..steps).fold(power, |x, _| x.next_down()).max(0.0));
                hi = hi.max((0..steps).fold(power, |x, _| x.next_up()));
            }
        }
        Self::new(lo, hi)
    }
}

/// A lower bound of value + error; an error that is NaN is one of unknown sign, at most half a unit in the last place.
fn below(value: f64, error: f64) -> f64 {
    if error >= 0.0 { value } else { value.next_down() }
}

/// An upper bound of value + error.
fn above(value: f64, error: f64) -> f64 {
    if error <= 0.0 { value } else { value.next_up() }
}

/// (s, e) with s = fl(a + b) and s + e = a + b; e is NaN where s overflows.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let part = s - a;
    (s, (a - (s - part)) + (b - part))
}

/// (p, e) with p = fl(a·b) and p + e = a·b; e is NaN where that cannot be told. 0 · ∞ is 0: ends are bounds, not
/// values.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    if a == 0.0 || b == 0.0 {
        return (0.0, 0.0);
    }
    let p = a * b;
    (p, if p.abs() >= EXACT_PRODUCT { a.mul_add(b, -p) } else { f64::NAN })
}

/// (q, e) with q = fl(a/b) and e of the sign of a/b − q, or NaN where that cannot be told.
fn two_quotient(a: f64, b: f64) -> (f64, f64) {
    let q = a / b;
    if a == 0.0 {
        return (0.0, 0.0);
    }
    let safe = q.abs() > EXACT_PRODUCT && a.abs() > EXACT_PRODUCT && (q * b).is_finite();
    (q, if safe { -q.mul_add(b, -a) * b.signum() } else { f64::NAN })
}

impl Neg for Interval {
    type Output = Self;
    fn neg(self) -> Self {
        Self { lo: -self.hi, hi: -self.lo }
    }
}

impl Add for Interval {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let ((lo, low), (hi, high)) = (two_sum(self.lo, other.lo), two_sum(self.hi, other.hi));
        Self::new(below(lo, low), above(hi, high))
    }
}

impl Sub for Interval {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.add(-other)
    }
}

impl Mul for Interval {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let corners = [(self.lo, other.lo), (self.lo, other.hi), (self.hi, other.lo), (self.hi, other.hi)];
        hull(corners.map(|(a, b)| two_product(a, b)))
    }
}

impl Div for Interval {
    type Output = Self;
    /// The whole line if the divisor may be 0.
    fn div(self, other: Self) -> Self {
        if other.contains(0.0) || other.magnitude() == f64::INFINITY {
            return Self::WHOLE;
        }
        let corners = [(self.lo, other.lo), (self.lo, other.hi), (self.hi, other.lo), (self.hi, other.hi)];
        hull(corners.map(|(a, b)| two_quotient(a, b)))
    }
}

/// The smallest interval that holds all value + error.
fn hull(corners: [(f64, f64); 4]) -> Interval {
    let lo = corners.iter().map(|(value, error)| below(*value, *error)).fold(f64::INFINITY, f64::min);
    let hi = corners.iter().map(|(value, error)| above(*value, *error)).fold(f64::NEG_INFINITY, f64::max);
    Interval::new(lo, hi)
}

/// A sum of doubles and of their products, to about twice their precision.
///
/// ```text
/// Σ tᵢ = s + Σ eᵢ       s the floating sum, eᵢ the exact errors of its steps and of the products
/// ```
///
/// The errors are added up outwards, in `low` and `high`. Each of n terms leaves two errors of at most 2⁻⁵³M, M the
/// largest
/// |s| or |tᵢ| met, whose sums stay below 2n·2⁻⁵³M and move outwards by one unit in their last place 2n times on either
/// side. So the width is at most 8n²·2⁻¹⁰⁵M, and one unit in the last place of the result: for n = 1000 and M below
/// 10¹⁰ times the result, less than 10⁻¹⁵ of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExactSum {
    sum: f64,
    low: f64,
    high: f64,
}

impl ExactSum {
    /// The sum of one term.
    pub(crate) fn starting_at(x: f64) -> Self {
        Self { sum: x, low: 0.0, high: 0.0 }
    }

    /// Adds x.
    pub(crate) fn add(&mut self, x: f64) {
        let (sum, error) = two_sum(self.sum, x);
        self.sum = sum;
        self.correct(error, error);
    }

    /// Adds x·y.
    pub(crate) fn add_product(&mut self, x: f64, y: f64) {
        let (product, error) = two_product(x, y);
        self.add(product);
        if error.is_nan() {
            // a tiny product; an infinite one is caught at the end
            self.correct(-TINY_ERROR, TINY_ERROR);
        } else {
            self.correct(error, error);
        }
    }

    fn correct(&mut self, low: f64, high: f64) {
        if low != 0.0 || high != 0.0 {
            self.low = (self.low + low).next_down();
            self.high = (self.high + high).next_up();
        }
    }

    /// An enclosure of the sum; the whole line if it overflowed.
    pub(crate) fn enclosure(self) -> Interval {
        if self.sum.is_finite() && self.low.is_finite() && self.high.is_finite() {
            Interval::point(self.sum) + Interval::new(self.low, self.high)
        } else {
            Interval::WHOLE
        }
    }
}

/// Σ xᵢyᵢ of vectors of doubles.
pub fn enclosed_dot(x: &[f64], y: &[f64]) -> Interval {
    let mut sum = ExactSum::default();
    x.iter().zip(y).for_each(|(x, y)| sum.add_product(*x, *y));
    sum.enclosure()
}

/// Σ xᵢ of intervals.
pub fn enclosed_sum(terms: impl IntoIterator<Item = Interval>) -> Interval {
    let (mut low, mut high) = (ExactSum::default(), ExactSum::default());
    for term in terms {
        low.add(term.lo);
        high.add(term.hi);
    }
    Interval::new(low.enclosure().lo, high.enclosure().hi)
}

/// As `[lo, hi]`, an infinite end as null.
impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.lo, self.hi].map(|x| x.is_finite().then_some(x)).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let [lo, hi] = <[Option<f64>; 2]>::deserialize(deserializer)?;
        let (lo, hi) = (lo.unwrap_or(f64::NEG_INFINITY), hi.unwrap_or(f64::INFINITY));
        if lo <= hi {
            Ok(Self { lo, hi })
        } else {
            Err(D::Error::custom(format!("the bounds {lo} and {hi} are out of order")))
        }
    }
}

#[cfg(test)]
#[path = "interval_tests.rs"]
mod tests;
