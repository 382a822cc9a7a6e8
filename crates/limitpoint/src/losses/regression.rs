//! Losses of a residual, with a root at 0.

use super::{Loss, LossFamily, Tail};
use crate::numeric::CompensatedSum;

/// A loss of the residual r = prediction − target that vanishes at r = 0 only (B.prop1).
///
/// ```text
/// squared              r²
/// Huber                r² for |r| ≤ δ,   2δ|r| − δ² beyond
/// truncated squared    min(r², τ²)
/// ```
///
/// All three agree with r² near the root, and share the zero-loss set {predictions = targets}. Residuals are divided by
/// the largest one first, so ln L is right for residuals of 10^−200 too:
///
/// ```text
/// ln L = 2 ln M + ln Σᵢ ℓ(rᵢ)/M²,   M = max |rᵢ| (truncated at τ),   weightᵢ = −ℓ′(rᵢ)/L
/// ```
///
/// L = 0 gives −∞ and zero weights. At the kink |r| = τ the slope of the inner side is taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Regression {
    Squared,
    Huber { delta: f64 },
    TruncatedSquared { threshold: f64 },
}

impl Regression {
    /// The size M by which residuals are divided; NaN residuals give NaN.
    fn scale(&self, residuals: &[f64]) -> f64 {
        if residuals.iter().any(|r| r.is_nan()) {
            return f64::NAN;
        }
        let largest = residuals.iter().fold(0.0f64, |high, r| high.max(r.abs()));
        match self {
            Self::TruncatedSquared { threshold } => largest.min(*threshold),
            _ => largest,
        }
    }

    /// (ℓ(r)/M², |ℓ′(r)|/M) of the residual r = `relative` · M.
    fn relative_terms(&self, relative: f64, scale: f64) -> (f64, f64) {
        let a = relative.abs();
        match self {
            Self::Squared => (a * a, 2.0 * a),
            Self::Huber { delta } => {
                let d = delta / scale;
                if a <= d { (a * a, 2.0 * a) } else { (d * (2.0 * a - d), 2.0 * d) }
            }
            Self::TruncatedSquared { threshold } => {
                let t = threshold / scale;
                if a <= t { (a * a, 2.0 * a) } else { (t * t, 0.0) }
            }
        }
    }
}

/// ln L where no sum is needed.
fn degenerate(scale: f64) -> Option<f64> {
    if scale == 0.0 {
        Some(f64::NEG_INFINITY)
    } else if scale.is_finite() {
        None
    } else {
        Some(scale)
    }
}

impl Loss for Regression {
    fn evaluate(&self, margins: &[f64], _per_example: usize, weights: &mut [f64]) -> f64 {
        debug_assert_eq!(margins.len(), weights.len());
        let scale = self.scale(margins);
        if let Some(log_loss) = degenerate(scale) {
            return super::lanes::fill_degenerate(log_loss, weights);
        }
        let mut total = CompensatedSum::default();
        for (weight, &residual) in weights.iter_mut().zip(margins) {
            let (term, slope) = self.relative_terms(residual / scale, scale);
            *weight = if slope == 0.0 { 0.0 } else { -slope.copysign(residual) };
            total.add(term);
        }
        let total = total.value();
        weights.iter_mut().for_each(|weight| *weight = *weight / total / scale);
        2.0 * scale.ln() + total.ln()
    }

    fn log_loss(&self, margins: &[f64], _per_example: usize) -> f64 {
        let scale = self.scale(margins);
        degenerate(scale).unwrap_or_else(|| {
            let mut total = CompensatedSum::default();
            margins.iter().for_each(|residual| total.add(self.relative_terms(residual / scale, scale).0));
            2.0 * scale.ln() + total.value().ln()
        })
    }

    fn family(&self) -> LossFamily {
        LossFamily::Regression
    }

    fn tail(&self) -> Option<&dyn Tail> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Regression; 3] =
        [Regression::Squared, Regression::Huber { delta: 1.0 }, Regression::TruncatedSquared { threshold: 2.0 }];

    #[test]
    fn values_by_hand() {
        let residuals = [0.5, -3.0];
        let expected: [f64; 3] = [0.25 + 9.0, 0.25 + 5.0, 0.25 + 4.0];
        let slopes = [[1.0, -6.0], [1.0, -2.0], [1.0, 0.0]];
        for ((loss, value), slope) in ALL.iter().zip(expected).zip(slopes) {
            let mut weights = [0.0; 2];
            let log_loss = loss.evaluate(&residuals, 1, &mut weights);
            assert!((log_loss - value.ln()).abs() < 1e-15, "{loss:?}");
            assert_eq!(log_loss, loss.log_loss(&residuals, 1));
            for (weight, slope) in weights.iter().zip(slope) {
                assert!((weight + slope / value).abs() < 1e-15, "{loss:?}");
            }
        }
    }

    #[test]
    fn a_perfect_fit_is_minus_infinity_with_zero_weights() {
        for loss in ALL {
            let mut weights = [1.0; 3];
            assert_eq!(loss.evaluate(&[0.0, -0.0, 0.0], 1, &mut weights), f64::NEG_INFINITY);
            assert_eq!(weights, [0.0; 3]);
            assert!(loss.log_loss(&[1e-9, 0.0], 1) > f64::NEG_INFINITY);
        }
    }

    #[test]
    fn sizes_from_tiny_to_huge() {
        for loss in ALL {
            let mut weights = [0.0; 2];
            let tiny = loss.evaluate(&[3e-200, 4e-200], 1, &mut weights);
            assert!((tiny - (25f64.ln() - 400.0 * std::f64::consts::LN_10)).abs() < 1e-12);
            assert!((weights[0] * 1e-200 + 6.0 / 25.0).abs() < 1e-14);
        }
        let huge = [1e200, -1e200];
        let ln10 = std::f64::consts::LN_10;
        assert!((ALL[0].log_loss(&huge, 1) - (2f64.ln() + 400.0 * ln10)).abs() < 1e-12);
        assert!((ALL[1].log_loss(&huge, 1) - (4f64.ln() + 200.0 * ln10)).abs() < 1e-12);
        assert!((ALL[2].log_loss(&huge, 1) - 8f64.ln()).abs() < 1e-15);
    }

    #[test]
    fn not_a_number_is_not_hidden() {
        for loss in ALL {
            assert!(loss.log_loss(&[1.0, f64::NAN], 1).is_nan());
            assert!(loss.log_loss(&[f64::NAN, 0.0], 1).is_nan());
            let mut weights = [0.0; 2];
            loss.evaluate(&[f64::NAN, f64::INFINITY], 1, &mut weights);
            assert!(weights.iter().all(|w| w.is_nan()));
        }
    }
}
