//! The numbers a path is followed in.

use crate::linalg::{Precise, Scalar};

/// How far a kind of number lets the path be followed.
pub(super) trait Arithmetic: Scalar {
    /// Most steps.
    const ITERATIONS: usize;
    /// Distance to the end of the path at which the method ends.
    const ENOUGH: f64;
    /// Added to the diagonal of the reduced equations, for columns that nothing holds.
    const REGULARISATION: f64;
}

/// Newton's method takes over from here.
impl Arithmetic for f64 {
    const ITERATIONS: usize = 60;
    const ENOUGH: f64 = 1e-8;
    const REGULARISATION: f64 = 1e-10;
}

/// To the end.
impl Arithmetic for Precise {
    const ITERATIONS: usize = 160;
    const ENOUGH: f64 = 1e-26;
    const REGULARISATION: f64 = 1e-28;
}
