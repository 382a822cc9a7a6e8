//! Balls: numbers of twice the digits of a double with a bound on how far they are off.
//!
//! ```text
//! (m, r) stands for every real x with |x − m| ≤ r,   m = high + low of 106 bits
//! ```
//!
//! Sums and products of pairs of doubles as [`Precise`] forms them are off by at most 3u² and 6u² of themselves,
//! u = 2⁻⁵³ (Joldes, Muller, Popescu 2017, algorithms 6 and 11); 2⁻¹⁰⁰ of the result is allowed for, and a little for
//! products so small that their last digits vanish.

use std::ops::{Add, Mul, Neg, Sub};

use crate::intervals::Interval;
use crate::linalg::Precise;

/// 2⁻¹⁰⁰, sixteen times what a sum or a product can be off by.
const ROUNDING: f64 = 7.888_609_052_210_118e-31;
/// More than what vanishes below the smallest double.
const TINY: f64 = 1e-290;

/// A number with a bound on its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ball {
    middle: Precise,
    radius: f64,
}

/// A sum of a few terms that are not negative, rounded up.
fn up(x: f64) -> f64 {
    x * (1.0 + 8.0 * f64::EPSILON) + TINY
}

impl Ball {
    /// Exactly this number.
    pub fn point(middle: Precise) -> Self {
        Self { middle, radius: 0.0 }
    }

    /// The number in the middle.
    pub fn middle(self) -> Precise {
        self.middle
    }

    /// All numbers of the ball, between two doubles.
    pub fn enclosure(self) -> Interval {
        let (low, radius) = (self.middle.low, self.radius);
        let rest = if radius == 0.0 {
            Interval::point(low)
        } else {
            Interval::new((low - radius).next_down(), (low + radius).next_up())
        };
        Interval::point(self.middle.high) + rest
    }

    fn size(self) -> f64 {
        self.middle.high.abs() * (1.0 + f64::EPSILON)
    }
}

impl Neg for Ball {
    type Output = Self;
    fn neg(self) -> Self {
        Self { middle: -self.middle, radius: self.radius }
    }
}

impl Add for Ball {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let middle = self.middle + other.middle;
        Self { middle, radius: up(self.radius + other.radius + ROUNDING * middle.high.abs()) }
    }
}

impl Sub for Ball {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Ball {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let middle = self.middle * other.middle;
        let spread = self.size() * other.radius + other.size() * self.radius + self.radius * other.radius;
        Self { middle, radius: up(spread + ROUNDING * middle.high.abs()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Streams;

    /// (1 + x)³ − 1 − 3x − 3x² − x³ is 0, and every ball on the way must hold it; the radius stays near 10⁻³⁰.
    #[test]
    fn balls_hold_identities_that_doubles_miss() {
        let mut draws = vec![0.0; 200];
        Streams::new(1).stream("balls").fill_normal(&mut draws);
        let one = Ball::point(1.0.into());
        for x in draws {
            let b = Ball::point(x.into());
            let (sum, three) = (one + b, Ball::point(3.0.into()));
            let zero = sum * sum * sum - one - three * b - three * b * b - b * b * b;
            let found = zero.enclosure();
            assert!(found.contains(0.0) && found.width() < 1e-26, "{x}: {found:?}");
        }
    }

    #[test]
    fn a_third_times_three_is_one_within_the_radius_and_no_radius_is_exact() {
        let third = Ball::point(Precise::from(1.0) / Precise::from(3.0));
        let product = third * Ball::point(3.0.into()) - Ball::point(1.0.into());
        assert!(product.enclosure().width() < 1e-29);
        assert_eq!(Ball::point(0.1.into()).enclosure(), Interval::point(0.1));
    }

    #[test]
    fn what_overflows_is_unknown() {
        let large = Ball::point(1e300.into());
        assert_eq!((large * large).enclosure(), Interval::WHOLE);
    }
}
