//! Exact limit points of regression: the interpolating weights that a geometry prefers.
//!
//! ```text
//! argmin { D_R(w, w₀) : Xw = y }      mirror descent with the potential R from w₀          (B Theorem 1)
//! argmin { R(w) : Xw = y }            the same from argmin R, where z₀ = ∇R(w₀) = 0
//! argmin { ‖w − w₀‖ : Xw = y }        the nearest interpolating weights
//! ```
//!
//! For a potential the optimality conditions are ∇R(w) − ∇R(w₀) = Xᵀμ and Xw = y. Multipliers bound the optimum from
//! below, since R(w) + R*(z) ≥ ⟨w, z⟩ for all w and z:
//!
//! ```text
//! D_R(w, w₀) ≥ R*(z₀) − R*(z₀ + Xᵀμ) + ⟨μ, y⟩          for all w with Xw = y and all μ
//! ‖w‖ ≥ ⟨μ, y⟩/‖Xᵀμ‖_*
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `equations` | rank, contradictions, orthonormal rows |
//! | `newton` | Newton's method on the dual, and on both variables |
//! | `pieces` | domains, and the proof that no solution lies in them |
//! | `potential` | the interpolating point of a potential |
//! | `norm` | the interpolating point of a norm |

mod equations;
mod newton;
mod norm;
mod pieces;
mod potential;

#[cfg(test)]
mod tests;

use super::ReferenceError;
use crate::linalg::{LinalgError, Matrix};
use crate::norms::NormSpec;
use crate::params::ParamLayout;
use crate::potentials::PotentialSpec;

/// What is made small among all interpolating weights.
#[derive(Debug, Clone, PartialEq)]
pub enum InterpolationTarget {
    /// ‖w − w₀‖; w₀ = 0 without a start.
    Norm(NormSpec),
    /// D_R(w, w₀); R(w) without a start.
    Potential(PotentialSpec),
}

/// Interpolating weights with the proof that they are the ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Interpolation {
    /// w.
    pub weights: Vec<f64>,
    /// μ, one for every equation. For a norm they are scaled to ‖Xᵀμ‖_* = 1.
    pub multipliers: Vec<f64>,
    /// What was made small, at w.
    pub objective: f64,
    /// What the multipliers prove no interpolating weights can go below, up to the rounding of its terms.
    pub lower_bound: f64,
    /// ‖Xw − y‖₂/‖y‖₂; relative to ‖X‖‖w‖ where y = 0.
    pub residual: f64,
    /// How far ∇R(w) = ∇R(w₀) + Xᵀμ =: z is from true: in the worst block the smaller of
    /// ‖∇R(w) − z‖₂/(‖∇R(w)‖₂ + ‖∇R(w₀)‖₂) and ‖w − ∇R*(z)‖₂/‖w‖₂, of which rounding spoils the first where R is steep
    /// and the second where it is flat. For a norm 1 − ⟨Xᵀμ, w⟩/(‖Xᵀμ‖_*‖w‖).
    pub stationarity: f64,
    /// Number of independent equations.
    pub rank: usize,
    /// Steps of the method.
    pub iterations: usize,
}

impl Interpolation {
    /// `objective` − `lower_bound`; 0 up to rounding.
    pub fn gap(&self) -> f64 {
        self.objective - self.lower_bound
    }
}

/// The weights with Xw = y that a norm or a potential prefers: argmin of the norm, or of D_R(w, w(0)), over Xw = y.
///
/// `x` has a row for every equation and a column for every weight of the layout. Frozen blocks keep the weights of
/// `start`, or 0. Rows may depend on each other; contradictions are refused with [`ReferenceError::Inconsistent`], and
/// problems whose solutions all lie outside the domain of the potential with [`ReferenceError::OutsideDomain`] and
/// the multipliers' proof of that. Other affine constraints are more rows, see [`stack_equations`].
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::params::ParamLayout;
/// use limitpoint::potentials::PotentialSpec;
/// use limitpoint::reference::{InterpolationTarget, interpolate};
/// // w = (a, a²) with a + 2a² = 1, so a = ½ (B Example 2)
/// let (x, target) = (Matrix::from_rows(&[&[1.0, 2.0]]), InterpolationTarget::Potential(PotentialSpec::Entropy));
/// let found = interpolate(&x, &[1.0], &target, &ParamLayout::vector(2), Some(&[1.0, 1.0]))?;
/// assert!((found.weights[0] - 0.5).abs() < 1e-14 && (found.weights[1] - 0.25).abs() < 1e-14);
/// assert!(found.gap().abs() < 1e-14);
/// # Ok::<(), limitpoint::reference::ReferenceError>(())
/// ```
pub fn interpolate(
    x: &Matrix,
    y: &[f64],
    target: &InterpolationTarget,
    layout: &ParamLayout,
    start: Option<&[f64]>,
) -> Result<Interpolation, ReferenceError> {
    if x.rows == 0 || x.cols != layout.len() {
        return Err(ReferenceError::Rows { rows: x.rows, columns: x.cols, expected: layout.len() });
    }
    if y.len() != x.rows {
        return Err(LinalgError::Shape { what: "the vector of targets", found: y.len(), expected: x.rows }.into());
    }
    if let Some(at) = x.data.iter().position(|x| !x.is_finite()) {
        return Err(ReferenceError::NotFinite { row: at / x.cols, column: at % x.cols, value: x.data[at] });
    }
    if let Some(&value) = y.iter().find(|y| !y.is_finite()) {
        return Err(ReferenceError::OutOfRange { what: "a target", value, range: "finite" });
    }
    if let Some(start) = start {
        layout.check(start)?;
        if let Some(&value) = start.iter().find(|w| !w.is_finite()) {
            return Err(ReferenceError::OutOfRange { what: "a weight of the start", value, range: "finite" });
        }
    }
    match target {
        InterpolationTarget::Norm(spec) => norm::minimise(x, y, spec, layout, start),
        InterpolationTarget::Potential(spec) => potential::minimise(x, y, spec, layout, start),
    }
}

/// The equations Xw = y and Gw = h as one system, such as 1ᵀw = 1 for weights on the simplex.
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::reference::stack_equations;
/// let simplex = Matrix::from_rows(&[&[1.0, 1.0]]);
/// let (x, y) = stack_equations((&Matrix::from_rows(&[&[3.0, 1.0]]), &[2.0]), (&simplex, &[1.0]))?;
/// assert_eq!((x.rows, x.row(1), y), (2, &[1.0, 1.0][..], vec![2.0, 1.0]));
/// # Ok::<(), limitpoint::reference::ReferenceError>(())
/// ```
pub fn stack_equations(
    (x, y): (&Matrix, &[f64]),
    (g, h): (&Matrix, &[f64]),
) -> Result<(Matrix, Vec<f64>), ReferenceError> {
    if x.cols != g.cols {
        return Err(ReferenceError::Rows { rows: g.rows, columns: g.cols, expected: x.cols });
    }
    let data = [x.data.as_slice(), &g.data].concat();
    Ok((Matrix::from_vec(x.rows + g.rows, x.cols, data)?, [y, h].concat()))
}
