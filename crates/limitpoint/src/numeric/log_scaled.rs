//! A vector whose size is kept apart from its direction.

use serde::{Deserialize, Serialize};

/// The vector exp(`log_scale`) · `direction`.
///
/// The gradient of a loss of 10^−2000 is such a vector: L · ∇ln L, where ∇ln L is of ordinary size. Both halves travel
/// together, so nobody can forget the factor.
///
/// ```
/// use limitpoint::numeric::LogScaled;
/// let gradient = LogScaled { log_scale: -5000.0, direction: vec![3.0, -4.0] };
/// // a step of length e^5000 along it is exact although e^−5000 underflows
/// assert_eq!(gradient.times_exp(5000.0), vec![3.0, -4.0]);
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LogScaled {
    /// Natural logarithm of the common factor; −∞ means the zero vector.
    pub log_scale: f64,
    /// The rest, of ordinary size.
    pub direction: Vec<f64>,
}

impl LogScaled {
    /// The zero vector with `length` entries.
    pub fn zeros(length: usize) -> Self {
        Self { log_scale: f64::NEG_INFINITY, direction: vec![0.0; length] }
    }

    /// Multiplies by exp(`log_factor`) and returns plain numbers; they may underflow to 0 or overflow to ∞.
    pub fn times_exp(&self, log_factor: f64) -> Vec<f64> {
        let factor = (self.log_scale + log_factor).exp();
        self.direction.iter().map(|x| if *x == 0.0 { 0.0 } else { factor * x }).collect()
    }

    /// The direction as an all-zero test sees it: true when the vector is exactly zero.
    pub fn is_zero(&self) -> bool {
        self.log_scale == f64::NEG_INFINITY || self.direction.iter().all(|x| *x == 0.0)
    }
}
