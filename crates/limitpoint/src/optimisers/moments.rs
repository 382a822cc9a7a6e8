//! Running averages of gradients whose size may fall by thousands of orders of magnitude.

use super::{OptimiserError, OptimiserState};
use crate::numeric::LogScaled;

/// A vector exp(`log_scale`) · `values` that is blended with scaled gradients, or with their squares.
///
/// After each blend the scale follows the largest entry, so the stored values neither overflow nor underflow however
/// far the loss has fallen since the first step.
#[derive(Debug, Clone)]
pub(super) struct ScaledMoment {
    pub log_scale: f64,
    pub values: Vec<f64>,
    peak: f64,
}

impl ScaledMoment {
    /// Zero.
    pub fn new(length: usize) -> Self {
        Self { log_scale: f64::NEG_INFINITY, values: vec![0.0; length], peak: 0.0 }
    }

    /// A constant vector, such as AdaGrad's initial accumulator.
    pub fn constant(length: usize, value: f64) -> Self {
        if value == 0.0 {
            return Self::new(length);
        }
        Self { log_scale: value.ln(), values: vec![1.0; length], peak: 1.0 }
    }

    /// Becomes a copy of another moment of the same length, without allocating.
    pub fn copy_from(&mut self, other: &Self) {
        self.log_scale = other.log_scale;
        self.peak = other.peak;
        self.values.copy_from_slice(&other.values);
    }

    /// self ← decay · self + gain · gradient.
    pub fn blend(&mut self, decay: f64, gain: f64, gradient: &LogScaled) {
        self.blend_with(decay, gain, gradient.log_scale, &gradient.direction, |g| g);
    }

    /// self ← decay · self + gain · gradient², entry by entry.
    pub fn blend_squares(&mut self, decay: f64, gain: f64, gradient: &LogScaled) {
        self.blend_with(decay, gain, 2.0 * gradient.log_scale, &gradient.direction, |g| g * g);
    }

    fn blend_with(&mut self, decay: f64, gain: f64, log_scale: f64, direction: &[f64], map: impl Fn(f64) -> f64) {
        // the size the old values will have, and the size of the new ones
        let old = if decay == 0.0 || self.peak == 0.0 { f64::NEG_INFINITY } else { self.log_scale + self.peak.ln() };
        let new = if gain == 0.0 { f64::NEG_INFINITY } else { log_scale };
        let scale = old.max(new);
        if scale == f64::NEG_INFINITY {
            self.log_scale = f64::NEG_INFINITY;
            self.peak = 0.0;
            self.values.fill(0.0);
            return;
        }
        let keep = if old == f64::NEG_INFINITY { 0.0 } else { decay * (self.log_scale - scale).exp() };
        let add = if new == f64::NEG_INFINITY { 0.0 } else { gain * (log_scale - scale).exp() };
        let mut peak = 0.0f64;
        for (value, &g) in self.values.iter_mut().zip(direction) {
            let kept = if keep == 0.0 { 0.0 } else { keep * *value };
            *value = kept + add * map(g);
            let size = value.abs();
            peak = if size > peak || size.is_nan() { size } else { peak };
        }
        self.log_scale = scale;
        self.peak = peak;
    }

    /// Adds this moment to a state.
    pub fn save(&self, name: &str, state: OptimiserState) -> OptimiserState {
        state
            .with_number(&format!("{name}.log_scale"), self.log_scale)
            .with_number(&format!("{name}.peak"), self.peak)
            .with_vector(name, &self.values)
    }

    /// Reads it back.
    pub fn load(&mut self, name: &str, state: &OptimiserState) -> Result<(), OptimiserError> {
        self.log_scale = state.number(&format!("{name}.log_scale"))?;
        self.peak = state.number(&format!("{name}.peak"))?;
        state.read_vector(name, &mut self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_follows_gradients_over_ten_thousand_orders_of_magnitude() {
        let mut moment = ScaledMoment::new(1);
        for t in 0..10_000 {
            moment.blend(0.5, 0.5, &LogScaled { log_scale: -f64::from(t), direction: vec![3.0] });
        }
        // Σ 0.5^(k+1) 3 e^(k − T) with T = 9999 is dominated by k ~ all terms with ratio e/2 > 1 going back in time:
        // m_T = 1.5 e^−T Σ_{k=0}^{T} (e/2)^k
        let ratio = std::f64::consts::E / 2.0;
        let expected = 1.5f64.ln() - 9999.0 + 10_000.0 * ratio.ln() - (ratio - 1.0).ln();
        let found = moment.log_scale + moment.values[0].ln();
        assert!((found - expected).abs() < 1e-8, "{found} {expected}");
    }

    #[test]
    fn zero_gradients_keep_zero() {
        let mut moment = ScaledMoment::new(2);
        moment.blend_squares(0.9, 0.1, &LogScaled::zeros(2));
        assert_eq!((moment.log_scale, moment.values), (f64::NEG_INFINITY, vec![0.0; 2]));
    }
}
