//! The shape of a weight vector: histograms, sparsity, active neurons, direction.

use serde::{Deserialize, Serialize};

use crate::linalg::{max_abs, norm2};

/// Counts of |w| relative to the largest, in equal bins of [0, 1].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Number of weights in each bin; the last bin includes the maximum.
    pub counts: Vec<usize>,
}

/// Bins |w|/max|w|.
///
/// ```
/// let h = limitpoint::diagnostics::histogram(&[0.1, -0.9, 4.0, 2.0], 2);
/// assert_eq!(h.counts, [2, 2]);
/// ```
pub fn histogram(weights: &[f64], bins: usize) -> Histogram {
    let largest = max_abs(weights);
    let mut counts = vec![0; bins.max(1)];
    for w in weights {
        let place = if largest > 0.0 { (w.abs() / largest * bins as f64) as usize } else { 0 };
        counts[place.min(bins.max(1) - 1)] += 1;
    }
    Histogram { counts }
}

/// The share of weights with |w| below `threshold` times the largest (0.01 in C.fig8).
pub fn small_fraction(weights: &[f64], threshold: f64) -> f64 {
    let largest = max_abs(weights);
    weights.iter().filter(|w| w.abs() < threshold * largest).count() as f64 / weights.len().max(1) as f64
}

/// The participation ratio (Σ|w|)²/Σw²: between 1 (one weight) and n (all equal).
pub fn participation(weights: &[f64]) -> f64 {
    let largest = max_abs(weights);
    if largest == 0.0 {
        return 0.0;
    }
    let sum: f64 = weights.iter().map(|w| w.abs() / largest).sum();
    sum * sum / weights.iter().map(|w| (w / largest).powi(2)).sum::<f64>()
}

/// Neurons of a hidden layer with ‖a_j‖₂‖w_j‖₂ above `threshold` times the largest (C.fig2 uses 1 %).
///
/// `incoming` is the layer's weight matrix (neurons × inputs), `outgoing` the next layer's with `columns` columns. A channel
/// of images is a neuron: the next layer has a run of as many columns for each, its pixels or the entries of a kernel.
///
/// ```
/// use limitpoint::diagnostics::active_neurons;
/// // three neurons with two inputs and one output; the second does nothing
/// assert_eq!(active_neurons(&[1.0, 0.0, 0.0, 1.0, 2.0, 2.0], (&[1.0, 0.0, -1.0], 3), 3, 0.01), 2);
/// // two channels of two pixels each
/// assert_eq!(active_neurons(&[1.0, 1.0], (&[0.0, 3.0, 0.0, 0.0], 4), 2, 0.01), 1);
/// ```
pub fn active_neurons(incoming: &[f64], (outgoing, columns): (&[f64], usize), neurons: usize, threshold: f64) -> usize {
    let inputs = incoming.len() / neurons.max(1);
    let each = (columns / neurons.max(1)).max(1);
    let strength = |j: usize| {
        let own = outgoing.chunks_exact(columns.max(1)).flat_map(|row| &row[j * each..(j + 1) * each]);
        let out: f64 = own.map(|a| a * a).sum::<f64>().sqrt();
        out * norm2(&incoming[j * inputs..(j + 1) * inputs])
    };
    let strengths: Vec<f64> = (0..neurons).map(strength).collect();
    let largest = max_abs(&strengths);
    strengths.iter().filter(|s| **s > threshold * largest && **s > 0.0).count()
}

/// Margins within `tolerance` of the smallest, relative to it: the size of the support set.
pub fn support_count(margins: &[f64], tolerance: f64) -> usize {
    let least = margins.iter().fold(f64::INFINITY, |least, q| least.min(*q));
    margins.iter().filter(|q| **q <= least + tolerance * least.abs()).count()
}

/// The angle between two vectors in radians, accurate also when it is tiny.
///
/// ```
/// let angle = limitpoint::diagnostics::angle(&[1.0, 0.0], &[5.0, 5e-9]);
/// assert!((angle - 1e-9).abs() < 1e-15);
/// ```
pub fn angle(a: &[f64], b: &[f64]) -> f64 {
    let (size_a, size_b) = (norm2(a), norm2(b));
    if size_a == 0.0 || size_b == 0.0 {
        return f64::NAN;
    }
    // Kahan: 2 atan2(‖a/‖a‖ − b/‖b‖‖, ‖a/‖a‖ + b/‖b‖‖)
    let (mut minus, mut plus) = (0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (x / size_a, y / size_b);
        minus += (x - y) * (x - y);
        plus += (x + y) * (x + y);
    }
    2.0 * f64::atan2(f64::sqrt(minus), f64::sqrt(plus))
}
