//! A diagonal metric that an optimiser puts in front of the gradient.

use std::ops::Range;

/// An entry of a metric, as a function of the parameter it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricEntry {
    /// 1.
    One,
    /// √(θ² + λ).
    Hyperbolic {
        /// λ > 0.
        lambda: f64,
    },
    /// 1/((p − 1)|θ|^{p−2} + λ).
    Power {
        /// p ≥ 2.
        p: f64,
        /// λ > 0.
        lambda: f64,
    },
}

impl MetricEntry {
    /// Its value at a parameter.
    pub fn at(self, theta: f64) -> f64 {
        match self {
            Self::One => 1.0,
            Self::Hyperbolic { lambda } => (theta * theta + lambda).sqrt(),
            Self::Power { p, lambda } => 1.0 / ((p - 1.0) * theta.abs().powf(p - 2.0) + lambda),
        }
    }
}

/// The metric M(θ) of the step θ + c·M(θ)g: a range of entries after the other, each with its function and a factor. What no part
/// names does not move.
///
/// An optimiser describes its metric once, and the parameters carry it; an engine that knows metrics makes the steps
/// [`Update::Metric`](super::Update::Metric) where the parameters are, all others leave them to the host.
///
/// ```
/// use limitpoint::params::{DiagonalMetric, MetricEntry};
/// let metric = DiagonalMetric::new(vec![
///     (0..1, MetricEntry::One, 2.0),
///     (2..3, MetricEntry::Hyperbolic { lambda: 9.0 }, 1.0),
/// ]);
/// let mut params = [1.0, 1.0, 4.0];
/// metric.step(&mut params, -0.1, &[1.0, 1.0, 2.0]);
/// assert_eq!(params, [0.8, 1.0, 3.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DiagonalMetric {
    parts: Vec<(Range<usize>, MetricEntry, f64)>,
}

impl DiagonalMetric {
    /// Of parts with their factors, in the order of the parameters.
    pub fn new(parts: Vec<(Range<usize>, MetricEntry, f64)>) -> Self {
        debug_assert!(parts.windows(2).all(|pair| pair[0].0.end <= pair[1].0.start), "parts come in order");
        Self { parts }
    }

    /// Its parts.
    pub fn parts(&self) -> &[(Range<usize>, MetricEntry, f64)] {
        &self.parts
    }

    /// θ + c·M(θ)g.
    pub fn step(&self, params: &mut [f64], factor: f64, gradient: &[f64]) {
        for (range, entry, own) in &self.parts {
            for (theta, g) in params[range.clone()].iter_mut().zip(&gradient[range.clone()]) {
                *theta += factor * own * entry.at(*theta) * g;
            }
        }
    }
}
