//! Numbers that a system of equations can be evaluated in: doubles, balls of twice the digits, intervals.

use std::ops::{Add, Mul, Neg, Sub};

use super::double_double::Ball;
use crate::intervals::{Interval, enclosed_dot};
use crate::linalg::dot;

/// What the equations of a system need of a number.
pub(super) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// A double, exactly.
    fn exact(x: f64) -> Self;

    /// Σ x_k y_k of doubles.
    fn dot(x: &[f64], y: &[f64]) -> Self;

    /// 0.
    fn zero() -> Self {
        Self::exact(0.0)
    }

    /// c·self for a double that is often 0 or ±1.
    fn scaled(self, c: f64) -> Self {
        match c {
            0.0 => Self::zero(),
            1.0 => self,
            -1.0 => -self,
            _ => self * Self::exact(c),
        }
    }

    /// Σ x_k y_k of a vector of numbers and one of doubles.
    fn dot_with(x: &[Self], y: &[f64]) -> Self {
        x.iter().zip(y).fold(Self::zero(), |sum, (x, y)| sum + x.scaled(*y))
    }
}

impl Number for f64 {
    fn exact(x: f64) -> Self {
        x
    }

    fn dot(x: &[f64], y: &[f64]) -> Self {
        dot(x, y)
    }
}

impl Number for Interval {
    fn exact(x: f64) -> Self {
        Self::point(x)
    }

    fn dot(x: &[f64], y: &[f64]) -> Self {
        enclosed_dot(x, y)
    }
}

impl Number for Ball {
    fn exact(x: f64) -> Self {
        Self::point(x.into())
    }

    fn dot(x: &[f64], y: &[f64]) -> Self {
        x.iter().zip(y).fold(Self::zero(), |sum, (x, y)| sum + Self::exact(*x) * Self::exact(*y))
    }
}
