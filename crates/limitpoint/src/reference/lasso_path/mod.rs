//! The exact path of the lasso, from the largest penalty down to none.
//!
//! ```text
//! w(λ) = argmin ½‖Xw − y‖₂² + λ‖w‖₁          optimal ⇔ x_jᵀr = λ sgn(w_j) where w_j ≠ 0, |x_jᵀr| ≤ λ elsewhere
//! ```
//!
//! with r = y − Xw. On a set A of active columns with signs s both sides are affine in λ,
//!
//! ```text
//! w_A = p − λq,   p = argmin ‖X_A p − y‖₂,   q = (X_AᵀX_A)⁻¹s,   x_jᵀr = x_jᵀ(y − X_A p) + λ x_jᵀX_A q = α_j + λβ_j
//! ```
//!
//! so the path is piecewise linear: it bends where a column joins, |α_j + λβ_j| = λ, or leaves, w_j = 0 (Osborne,
//! Presnell and Turlach 2000; Efron, Hastie, Johnstone and Tibshirani 2004, section 3.1). Which columns are active
//! after a bend at λ is itself a small problem, on the columns with |x_jᵀr| = λ:
//!
//! ```text
//! q = argmin ½‖Xq‖₂² − Σ s_j q_j     over s_j q_j ≥ 0 where w_j = 0
//! ```
//!
//! It is solved by the active-set method of Lawson and Hanson 1974 (chapter 23), so that any number of columns may join
//! at once. Every piece is computed from the data, not from the piece before: errors do not add up. The pieces are in
//! `pieces`; this file strings them together.

mod pieces;
#[cfg(test)]
mod tests;

use super::ReferenceError;
use crate::linalg::{LinalgError, Matrix, max_abs, sign, sum_abs};
use pieces::Design;

/// Relative to λ: columns whose |x_jᵀr| is this close to λ join together.
const TIED: f64 = 1e-11;
/// λ/λ_max below which bends cannot be told from rounding: the last piece is continued to λ = 0.
const END: f64 = 1e-13;
/// Bends for every column and row that are followed before the method gives up.
const BENDS: usize = 50;

/// A bend of the path.
#[derive(Debug, Clone, PartialEq)]
pub struct LassoKnot {
    /// λ ≥ 0.
    pub lambda: f64,
    /// w(λ).
    pub weights: Vec<f64>,
    /// ‖w(λ)‖₁.
    pub norm: f64,
}

/// The path w(λ), linear between its knots; see [`lasso_path`].
#[derive(Debug, Clone, PartialEq)]
pub struct LassoPath {
    /// From λ_max, where w = 0, down to λ = 0.
    pub knots: Vec<LassoKnot>,
    stationarity: f64,
}

impl LassoPath {
    /// w(λ). Above λ_max it is 0; a negative λ counts as 0, and NaN gives NaN.
    pub fn at_lambda(&self, lambda: f64) -> Vec<f64> {
        self.between(|knot| knot.lambda <= lambda.max(0.0), |knot| knot.lambda, lambda)
    }

    /// The point of the path with ‖w‖₁ = c, which grows as λ falls. Beyond the end of the path it is the end.
    pub fn at_norm(&self, c: f64) -> Vec<f64> {
        self.between(|knot| knot.norm >= c, |knot| knot.norm, c)
    }

    /// Interpolates between the first knot that is `far` enough and the one before it.
    fn between(&self, far: impl Fn(&LassoKnot) -> bool, coordinate: impl Fn(&LassoKnot) -> f64, at: f64) -> Vec<f64> {
        let end = &self.knots[self.knots.len() - 1];
        if at.is_nan() {
            return vec![f64::NAN; end.weights.len()];
        }
        match self.knots.iter().position(far) {
            None => end.weights.clone(),
            Some(0) => self.knots[0].weights.clone(),
            Some(k) => {
                let (a, b) = (&self.knots[k - 1], &self.knots[k]);
                let share = ((at - coordinate(a)) / (coordinate(b) - coordinate(a))).clamp(0.0, 1.0);
                a.weights.iter().zip(&b.weights).map(|(a, b)| a + share * (b - a)).collect()
            }
        }
    }

    /// Whether no coordinate ever shrinks or changes its sign as λ falls, up to 1e-12 of the largest weight.
    ///
    /// Where this holds, forward stagewise and coordinate descent with small steps follow the path (Efron et al. 2004,
    /// theorem 2; B.cd).
    pub fn is_monotone(&self) -> bool {
        let slack = 1e-12 * self.knots.iter().map(|knot| max_abs(&knot.weights)).fold(0.0, f64::max);
        let grows = |(a, b): (&f64, &f64)| b * sign(*a) >= a.abs() - slack;
        self.knots.windows(2).all(|pair| pair[0].weights.iter().zip(&pair[1].weights).all(grows))
    }

    /// The worst violation over all knots of |x_jᵀr| ≤ λ and, where w_j ≠ 0, x_jᵀr = λ sgn(w_j); relative to λ_max.
    pub fn stationarity(&self) -> f64 {
        self.stationarity
    }
}

/// The whole path of min ½‖Xw − y‖₂² + λ‖w‖₁.
///
/// It begins at λ_max = ‖Xᵀy‖_∞ with w = 0 and ends at λ = 0 with the limit of w(λ): of all least-squares solutions one
/// of least ℓ1 norm, which interpolates if Xw = y has a solution (B.cd).
///
/// Conventions: of several equal (or opposite, or otherwise dependent) columns that are tied the first ones that
/// suffice are used, so w(λ) is one of several minimisers then; a column of zeros keeps the weight 0; y = 0, or any y
/// orthogonal to all columns, gives a path of one knot, w = 0 at λ = 0. Numbers that are not finite are refused.
///
/// ```
/// use limitpoint::linalg::Matrix;
/// use limitpoint::reference::lasso_path;
/// // orthonormal columns: soft thresholding, w_j = sgn(y_j) max(|y_j| − λ, 0)
/// let path = lasso_path(&Matrix::identity(2), &[3.0, -1.0])?;
/// let close = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-14);
/// assert!(close(&path.knots.iter().map(|knot| knot.lambda).collect::<Vec<_>>(), &[3.0, 1.0, 0.0]));
/// assert!(close(&path.at_lambda(2.0), &[1.0, 0.0]) && close(&path.at_norm(3.0), &[2.5, -0.5]));
/// assert!(path.is_monotone() && path.stationarity() < 1e-14);
/// # Ok::<(), limitpoint::reference::ReferenceError>(())
/// ```
pub fn lasso_path(x: &Matrix, y: &[f64]) -> Result<LassoPath, ReferenceError> {
    check(x, y)?;
    // in units of the largest entries nothing overflows
    let unit = |size: f64| if size > 0.0 { size } else { 1.0 };
    let (size, height) = (unit(max_abs(&x.data)), unit(max_abs(y)));
    let columns = (0..x.cols).map(|j| (0..x.rows).map(|i| x[(i, j)] / size).collect::<Vec<f64>>());
    let design = Design::new(columns.collect(), y.iter().map(|y| y / height).collect());
    if !(size * height).is_finite() || !(height / size).is_finite() {
        let range = "small enough for w and λ to be finite; rescale X and y";
        return Err(ReferenceError::OutOfRange { what: "the largest entry of X or y", value: size.max(height), range });
    }
    let knots: Vec<LassoKnot> = follow(&design)?
        .into_iter()
        .map(|(lambda, weights)| {
            let weights: Vec<f64> = weights.iter().map(|w| w * (height / size)).collect();
            LassoKnot { lambda: lambda * (size * height), norm: sum_abs(&weights), weights }
        })
        .collect();
    let largest = knots[0].lambda / (size * height);
    let violation = |knot: &LassoKnot| {
        let weights: Vec<f64> = knot.weights.iter().map(|w| w * (size / height)).collect();
        design.violation(knot.lambda / (size * height), &weights)
    };
    let worst = knots.iter().map(violation).fold(0.0, f64::max);
    Ok(LassoPath { knots, stationarity: if largest > 0.0 { worst / largest } else { 0.0 } })
}

fn check(x: &Matrix, y: &[f64]) -> Result<(), ReferenceError> {
    if x.rows == 0 || x.cols == 0 {
        return Err(ReferenceError::Rows { rows: x.rows, columns: x.cols, expected: x.cols.max(1) });
    }
    if y.len() != x.rows {
        return Err(LinalgError::Shape { what: "the vector of targets", found: y.len(), expected: x.rows }.into());
    }
    if let Some(at) = x.data.iter().position(|x| !x.is_finite()) {
        return Err(ReferenceError::NotFinite { row: at / x.cols, column: at % x.cols, value: x.data[at] });
    }
    match y.iter().find(|y| !y.is_finite()) {
        Some(&value) => Err(ReferenceError::OutOfRange { what: "a target", value, range: "finite" }),
        None => Ok(()),
    }
}

/// The knots: λ and w.
fn follow(design: &Design) -> Result<Vec<(f64, Vec<f64>)>, ReferenceError> {
    let mut w = vec![0.0; design.columns.len()];
    let largest = max_abs(&design.correlations(&w));
    if largest <= design.noise.iter().copied().fold(0.0, f64::max) {
        return Ok(vec![(0.0, w)]);
    }
    let (mut lambda, mut signs, mut support) = (largest, vec![0.0; w.len()], Vec::<usize>::new());
    let mut knots = vec![(lambda, w.clone())];
    let most = BENDS * (design.columns.len() + design.y.len());
    for _ in 0..most {
        let correlations = design.correlations(&w);
        let near = |j: &usize| correlations[*j].abs() >= lambda * (1.0 - TIED) - design.noise[*j];
        let tied: Vec<usize> = (0..w.len()).filter(|j| !support.contains(j)).filter(near).collect();
        tied.iter().for_each(|&j| signs[j] = sign(correlations[j]));
        let piece = design.turn(&support, &tied, &signs);
        let next = piece.end(lambda, &signs, &tied);
        let next = if next <= END * largest { 0.0 } else { next };
        let leaves = |k: &usize| next > 0.0 && piece.leaving(*k, &signs).is_some_and(|at| at >= next * (1.0 - TIED));
        w.fill(0.0);
        for k in (0..piece.active.len()).filter(|k| !leaves(k)) {
            w[piece.active[k]] = piece.weight(k, next, &signs);
        }
        support = (0..w.len()).filter(|j| w[*j] != 0.0).collect();
        if next < lambda {
            knots.push((next, w.clone()));
        }
        lambda = next;
        if lambda == 0.0 {
            return Ok(knots);
        }
    }
    Err(ReferenceError::NoConvergence {
        solver: "the lasso path",
        status: format!("still bending at λ/λ_max = {:.1e}", lambda / largest),
        iterations: most,
        gap: lambda / largest,
        remedy: "remove columns that nearly depend on each other",
    })
}
