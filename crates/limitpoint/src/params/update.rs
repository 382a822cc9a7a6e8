//! What an optimiser wants done with a gradient.

use crate::linalg::sign;

/// A step, as an optimiser asks for it.
///
/// Most steps treat every parameter for itself. Such a step is a formula, and whoever computes gradients runs it where
/// the parameters are: threads share it out, or it is made while the gradient is made, which is then never written
/// down. All others are [`Update::Host`]: the optimiser is handed the gradient and moves the parameters itself.
///
/// ```
/// use limitpoint::params::Update;
/// let mut params = [1.0, 1.0, 1.0];
/// Update::Along(-0.5).make(&mut params, &[2.0, 0.0, -4.0]);
/// assert_eq!(params, [0.0, 1.0, 3.0]);
/// Update::AgainstSigns(0.25).make(&mut params, &[2.0, 0.0, -4.0]);
/// assert_eq!(params, [-0.25, 1.0, 3.25]);
/// assert!(!Update::Host.is_formula() && !Update::Along(f64::INFINITY).is_formula());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Update {
    /// θ + c·g.
    Along(f64),
    /// θ − c·sign(g), where a zero moves nothing.
    AgainstSigns(f64),
    /// θ + c·M(θ)g with the [`DiagonalMetric`](super::DiagonalMetric) M that the parameters carry; only engines that know metrics are asked for it.
    Metric(f64),
    /// Whatever the optimiser does with the gradient in its hands.
    Host,
}

impl Update {
    /// Where a parameter goes with this entry of the gradient; one that is not finite gives a number that is not. A
    /// host update, and one by a metric, which is not known here, leave it where it is.
    #[inline(always)]
    pub fn of(self, param: f64, gradient: f64) -> f64 {
        match self {
            Self::Along(factor) => param + factor * gradient,
            // a NaN compares false on both sides and would be passed over: 0 · NaN brings it back
            Self::AgainstSigns(length) => param - (length * sign(gradient) + 0.0 * gradient),
            Self::Metric(_) | Self::Host => param,
        }
    }

    /// Whether it is a formula with a finite number, so that a zero gradient moves nothing.
    pub fn is_formula(self) -> bool {
        match self {
            Self::Along(number) | Self::AgainstSigns(number) | Self::Metric(number) => number.is_finite(),
            Self::Host => false,
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
