//! Steps that treat every parameter for itself.

use crate::linalg::sign;

/// A step in which an entry of the gradient moves its parameter and no other, so that threads can share it out, or make
/// it while the gradient is made.
///
/// ```
/// use limitpoint::params::Move;
/// let mut params = [1.0, 1.0, 1.0];
/// Move::Along(-0.5).make(&mut params, &[2.0, 0.0, -4.0]);
/// assert_eq!(params, [0.0, 1.0, 3.0]);
/// Move::AgainstSigns(0.25).make(&mut params, &[2.0, 0.0, -4.0]);
/// assert_eq!(params, [-0.25, 1.0, 3.25]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Move {
    /// θ + c·g.
    Along(f64),
    /// θ − c·sign(g), where a zero moves nothing.
    AgainstSigns(f64),
}

impl Move {
    /// Where a parameter goes with this entry of the gradient; one that is not finite gives a number that is not.
    #[inline(always)]
    pub fn of(self, param: f64, gradient: f64) -> f64 {
        match self {
            Self::Along(factor) => param + factor * gradient,
            // a NaN compares false on both sides and would be passed over: 0 · NaN brings it back
            Self::AgainstSigns(length) => param - (length * sign(gradient) + 0.0 * gradient),
        }
    }

    /// Whether its number is finite, so that a zero moves nothing.
    pub fn is_finite(self) -> bool {
        match self {
            Self::Along(number) | Self::AgainstSigns(number) => number.is_finite(),
        }
    }

    /// Moves all parameters.
    pub fn make(self, params: &mut [f64], gradient: &[f64]) {
        debug_assert_eq!(params.len(), gradient.len());
        crate::numeric::wide(
            #[inline(always)]
            || params.iter_mut().zip(gradient).for_each(|(param, g)| *param = self.of(*param, *g)),
        );
    }
}
