//! Normalised margins.

use super::Point;
use crate::linalg::norm2;
use crate::norms::Norm;

/// A hard margin and its smoothed form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MarginPair {
    /// q_min / size^L (Mg.hard).
    pub hard: f64,
    /// g(ln 1/L) / size^L (Mg.soft), never above `hard`; NaN for regression losses.
    pub soft: f64,
}

/// Margins divided by `size`^L, where `size` is ‖θ‖ in the norm of interest (A eq. 13, D Definition A.3).
///
/// NaN for models that are not homogeneous.
pub fn normalised_margins(point: &Point, size: f64) -> MarginPair {
    let scale = size.powf(point.degree());
    MarginPair { hard: point.smallest_margin() / scale, soft: point.soft_minimum() / scale }
}

/// What theory guarantees of the growth of the soft margin at this point: d ln γ̃ / d ln g(ln 1/L) is at least this
/// along the steepest flow of `norm`, and this is never negative (A Theorems 3.1, A.5 and A.18).
///
/// With s = g(ln 1/L), γ̃ = s/‖θ‖^L and ‖θ̇‖ = ‖∇L‖_* the flow has d ln s/dt = (g′/s)·‖∇L‖_*²/L and
/// d ln ‖θ‖^L/dt ≤ L‖∇L‖_*/‖θ‖. Their quotient does not depend on the speed at which the path is run through:
///
/// ```text
/// d ln γ̃ / d ln s  ≥  1 − L s / (g′(ln 1/L) ‖θ‖ ‖∇ln L‖_*)  ≥  1 − L s/(g′ ⟨θ, −∇ln L⟩)  ≥  0
/// ```
///
/// Not a number before separation, for regression losses and for models that are not homogeneous.
pub fn soft_margin_growth(point: &Point, norm: &mut dyn Norm) -> f64 {
    let Some(tail) = point.loss.tail().filter(|tail| point.log_loss < tail.log_threshold()) else { return f64::NAN };
    let u = -point.log_loss;
    let reach = norm.value(point.params) * norm.dual(&point.gradient.direction);
    1.0 - point.degree() * tail.g(u) / (tail.g_prime(u) * reach)
}

/// Π ‖w_i‖₂^{k_i} over the groups of a multi-homogeneous model (D eq. 4); NaN if not homogeneous.
///
/// A layer's bias counts with its weights.
///
/// ```
/// use limitpoint::diagnostics::layer_product;
/// use limitpoint::models::{DegreeGroup, Homogeneity};
/// use limitpoint::params::ParamLayout;
/// let layout = ParamLayout::new([("w", 1, 2), ("a", 1, 1)])?;
/// let group = |block| DegreeGroup { blocks: vec![block], degree: 1.0 };
/// let homogeneity = Homogeneity::of_groups(vec![group(0), group(1)]);
/// assert_eq!(layer_product(&[3.0, 4.0, 2.0], &layout, Some(&homogeneity)), 10.0);
/// # Ok::<(), limitpoint::params::ParamsError>(())
/// ```
pub fn layer_product(
    params: &[f64],
    layout: &crate::params::ParamLayout,
    homogeneity: Option<&crate::models::Homogeneity>,
) -> f64 {
    let Some(homogeneity) = homogeneity else { return f64::NAN };
    let size =
        |blocks: &[usize]| blocks.iter().map(|b| norm2(&params[layout.blocks()[*b].range()])).fold(0.0, f64::hypot);
    homogeneity.groups.iter().map(|group| size(&group.blocks).powf(group.degree)).product()
}
