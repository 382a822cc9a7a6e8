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

/// Π ‖w_i‖₂^{k_i} over the trained layers (D eq. 4); NaN without any.
///
/// The bias of the lowest trained layer counts with its weights. Those above break homogeneity and do not count, as in D appendix J.
///
/// ```
/// use limitpoint::diagnostics::layer_product;
/// use limitpoint::models::DegreeGroup;
/// use limitpoint::params::ParamLayout;
/// let layout = ParamLayout::new([("w", 1, 2), ("a", 1, 1)])?;
/// let group = |block| DegreeGroup { blocks: vec![block], degree: 1.0 };
/// assert_eq!(layer_product(&[3.0, 4.0, 2.0], &layout, &[group(0), group(1)]), 10.0);
/// # Ok::<(), limitpoint::params::ParamsError>(())
/// ```
pub fn layer_product(
    params: &[f64],
    layout: &crate::params::ParamLayout,
    layers: &[crate::models::DegreeGroup],
) -> f64 {
    if layers.is_empty() {
        return f64::NAN;
    }
    let size =
        |blocks: &[usize]| blocks.iter().map(|b| norm2(&params[layout.blocks()[*b].range()])).fold(0.0, f64::hypot);
    layers.iter().map(|layer| size(&layer.blocks).powf(layer.degree)).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{ModelSpec, Shape};

    #[test]
    fn biases_above_the_first_layer_do_not_count() {
        let product = |biases: &str, value: f64| {
            let text = format!(r#"{{"image": {{"layers": "conv 2 3x3, dense 3, dense", "biases": "{biases}"}}}}"#);
            let spec: ModelSpec = serde_json::from_str(&text).unwrap();
            let architecture = spec.architecture(&Shape::image(1, 4, 4), 2).unwrap();
            let mut params = vec![0.0; architecture.layout().len()];
            for block in architecture.layout().blocks() {
                params[block.range()].fill(if block.is_weight() { 0.5 } else { value });
            }
            let layers = architecture.layer_degrees();
            assert_eq!(layers.len(), 3, "{layers:?}");
            (layer_product(&params, architecture.layout(), &layers), architecture.homogeneity().is_some())
        };
        let (first, all) = (product("first", 2.0), product("all", 2.0));
        assert_eq!((first.0, first.1, all.1), (all.0, true, false));
        // that of the first does
        assert!(product("all", 0.0).0 < all.0 && product("all", 0.0).0 == product("none", 0.0).0);
        assert!(layer_product(&[1.0], &crate::params::ParamLayout::new([("w", 1, 1)]).unwrap(), &[]).is_nan());
    }
}
