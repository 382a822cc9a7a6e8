//! A point of parameter space with what the objective says about it.

use crate::losses::{Loss, soft_margin};
use crate::models::{DegreeGroup, Homogeneity};
use crate::numeric::LogScaled;
use crate::params::ParamLayout;

/// Parameters and everything evaluated there; all borrowed, nothing can be changed through it.
#[derive(Clone, Copy)]
pub struct Point<'a> {
    /// θ.
    pub params: &'a [f64],
    /// Names and shapes of θ.
    pub layout: &'a ParamLayout,
    /// Degrees of the model; nothing if it is not homogeneous.
    pub homogeneity: Option<&'a Homogeneity>,
    /// Trained layers with their degrees, without the biases that break homogeneity.
    pub layers: &'a [DegreeGroup],
    /// The loss.
    pub loss: &'a dyn Loss,
    /// Margins qₖ, `per_example` of them an example; residuals for regression.
    pub margins: &'a [f64],
    /// Margins per example.
    pub per_example: usize,
    /// −∂ ln L/∂qₖ.
    pub weights: &'a [f64],
    /// ∇L as ln L and ∇ ln L.
    pub gradient: &'a LogScaled,
    /// ln of the *summed* loss.
    pub log_loss: f64,
    /// Whether the margins are residuals.
    pub regression: bool,
    /// min |z| over preactivations with a kink; NaN for smooth models.
    pub smallest_preactivation: f64,
}

impl Point<'_> {
    /// min qₖ; NaN for regression, where margins are residuals, and if a margin is NaN.
    pub fn smallest_margin(&self) -> f64 {
        if self.regression {
            return f64::NAN;
        }
        self.margins.iter().fold(f64::INFINITY, |least, q| if *q < least || q.is_nan() { *q } else { least })
    }

    /// g(ln 1/L), the smoothed minimum of the margins; NaN for regression losses.
    pub fn soft_minimum(&self) -> f64 {
        soft_margin(self.log_loss, self.loss).unwrap_or(f64::NAN)
    }

    /// The degree L, or NaN for a model that is not homogeneous.
    pub fn degree(&self) -> f64 {
        self.homogeneity.map_or(f64::NAN, |homogeneity| homogeneity.degree)
    }

    /// ‖θ‖₂ over the trainable entries.
    pub fn length(&self) -> f64 {
        let ranges = self.layout.trainable_ranges();
        ranges.into_iter().map(|range| crate::linalg::norm2(&self.params[range])).fold(0.0, f64::hypot)
    }

    /// The trainable entries, copied to the end of `out`, which is cleared first.
    pub fn trainable(&self, out: &mut Vec<f64>) {
        out.clear();
        self.layout.trainable_ranges().into_iter().for_each(|range| out.extend_from_slice(&self.params[range]));
    }

    /// The share of examples whose margins are all positive.
    pub fn accuracy(&self) -> f64 {
        let examples = self.margins.chunks_exact(self.per_example);
        let total = examples.len().max(1);
        examples.filter(|q| q.iter().all(|q| *q > 0.0)).count() as f64 / total as f64
    }
}
