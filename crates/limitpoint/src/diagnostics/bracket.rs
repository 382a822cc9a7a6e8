//! A free two-sided bound on the best margin of a linear model.

use super::Point;
use crate::norms::Norm;

/// lower ≤ γ* ≤ upper, where γ* = max_{‖w‖≤1} min_k ⟨∇qₖ, w⟩.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MarginBracket {
    /// min qₖ/‖w‖: what this point achieves.
    pub lower: f64,
    /// ‖Σ rₖ ∇qₖ‖_* / Σ rₖ for the weights r of the loss: what no point can exceed.
    pub upper: f64,
}

/// The bracket of a linear model at a point (Ct.bracket, B Lemma 10).
///
/// For any r ≥ 0: min_k qₖ(w) Σr ≤ Σ rₖ qₖ(w) = ⟨Σ rₖ∇qₖ, w⟩ ≤ ‖Σ rₖ∇qₖ‖_* ‖w‖. With the weights of the loss the sum is
/// −∇ ln L, which is at hand.
pub fn margin_bracket(point: &Point, norm: &mut dyn Norm) -> MarginBracket {
    let total: f64 = point.weights.iter().sum();
    MarginBracket {
        lower: point.smallest_margin() / norm.value(point.params),
        upper: norm.dual(&point.gradient.direction) / total,
    }
}

/// B = max ‖xₙ‖_*, the bound on the features in the step size of B Theorem 5, for a linear model with one output.
///
/// ```
/// use limitpoint::diagnostics::feature_bound;
/// use limitpoint::linalg::Matrix;
/// use limitpoint::norms::NormSpec;
/// let inputs = Matrix::from_rows(&[&[1.0, -2.0], &[0.5, 0.5]]);
/// let mut sign_descent = NormSpec::Linf.build_vector(2)?;
/// assert_eq!(feature_bound(&inputs, &mut *sign_descent), 3.0);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub fn feature_bound(inputs: &crate::linalg::Matrix, norm: &mut dyn Norm) -> f64 {
    (0..inputs.rows).map(|n| norm.dual(inputs.row(n))).fold(0.0, f64::max)
}
