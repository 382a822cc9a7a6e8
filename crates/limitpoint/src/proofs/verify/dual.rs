//! Intervals that carry one derivative: equations written down once give their values and a column of their Jacobian.

use std::ops::{Add, Mul, Neg, Sub};

use crate::intervals::Interval;

/// Numbers that the equations are evaluated in.
pub(super) trait Ring:
    Copy + Add<Output = Self> + Mul<Output = Self> + Neg<Output = Self> + Sub<Output = Self>
{
    fn from(x: Interval) -> Self;
}

impl Ring for Interval {
    fn from(x: Interval) -> Self {
        x
    }
}

/// A value and its derivative along one unknown.
#[derive(Clone, Copy)]
pub(super) struct Dual(pub Interval, pub Interval);

impl Ring for Dual {
    fn from(x: Interval) -> Self {
        Self(x, Interval::ZERO)
    }
}

fn is_zero(x: Interval) -> bool {
    x.lo == 0.0 && x.hi == 0.0
}

/// a · b, without rounding where one of them is exactly 0.
pub(super) fn times(a: Interval, b: Interval) -> Interval {
    if is_zero(a) || is_zero(b) { Interval::ZERO } else { a * b }
}

/// a + b, without rounding where one of them is exactly 0.
fn plus(a: Interval, b: Interval) -> Interval {
    match (is_zero(a), is_zero(b)) {
        (true, _) => b,
        (_, true) => a,
        _ => a + b,
    }
}

impl Add for Dual {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(plus(self.0, other.0), plus(self.1, other.1))
    }
}

impl Mul for Dual {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self(times(self.0, other.0), plus(times(self.0, other.1), times(self.1, other.0)))
    }
}

impl Neg for Dual {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl Sub for Dual {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}
