//! Singular values of one block, at any scale, and the projections that act on them.

use super::simplex::{Threshold, refuse_radius};
use crate::linalg::{Svd, dot, max_abs};

/// A singular value decomposition of a / max|a|, so that no square inside it overflows or underflows.
pub(super) struct ScaledSvd {
    svd: Svd,
    scaled: Vec<f64>,
    scale: f64,
}

impl ScaledSvd {
    pub(super) fn new(rows: usize, cols: usize) -> Self {
        Self { svd: Svd::new(rows, cols), scaled: vec![0.0; rows * cols], scale: 1.0 }
    }

    /// Decomposes a row-major matrix; false when it has non-finite entries.
    pub(super) fn factor(&mut self, a: &[f64]) -> bool {
        let largest = max_abs(a);
        if !largest.is_finite() {
            return false;
        }
        self.scale = if largest > 0.0 { largest } else { 1.0 };
        self.scaled.iter_mut().zip(a).for_each(|(s, x)| *s = x / self.scale);
        self.svd.factor(&self.scaled).is_ok()
    }

    /// The decomposition of the scaled matrix.
    pub(super) fn svd(&self) -> &Svd {
        &self.svd
    }

    /// The number the last matrix was divided by.
    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    /// σ₁ of the last matrix.
    pub(super) fn largest(&self) -> f64 {
        self.scale * self.svd.values()[0]
    }

    /// Σσₖ of the last matrix.
    pub(super) fn sum(&self) -> f64 {
        self.scale * self.svd.values().iter().sum::<f64>()
    }

    /// σ₁ of `a`, NaN if it has none.
    pub(super) fn largest_of(&mut self, a: &[f64]) -> f64 {
        if self.factor(a) { self.largest() } else { f64::NAN }
    }

    /// Σσₖ of `a`, NaN if it has none.
    pub(super) fn sum_of(&mut self, a: &[f64]) -> f64 {
        if self.factor(a) { self.sum() } else { f64::NAN }
    }

    /// uₖᵀ Z vₗ for the singular vectors of the last matrix.
    pub(super) fn pairing(&self, z: &[f64], k: usize, l: usize) -> f64 {
        let right = self.svd.right(l);
        self.svd.left(k).iter().zip(z.chunks_exact(right.len())).map(|(u, row)| u * dot(row, right)).sum()
    }

    /// Projection onto { σ₁ ≤ radius }: singular values above the radius are lowered to it.
    pub(super) fn project_largest_ball(&mut self, radius: f64, v: &mut [f64]) {
        if refuse_radius(radius, v) {
            return;
        }
        if !self.factor(v) {
            v.fill(f64::NAN);
        } else if self.largest() > radius {
            let scale = self.scale;
            self.svd.recompose(|_, s| (scale * s).min(radius), v);
        }
    }

    /// Projection onto { Σσₖ ≤ radius }: the singular values are projected onto a simplex.
    pub(super) fn project_sum_ball(&mut self, radius: f64, v: &mut [f64]) {
        if refuse_radius(radius, v) {
            return;
        }
        if !self.factor(v) {
            v.fill(f64::NAN);
        } else if self.sum() > radius {
            let scale = self.scale;
            let threshold = Threshold::of_simplex(self.svd.values().iter().map(|s| scale * s), radius);
            self.svd.recompose(|_, s| threshold.excess(scale * s), v);
        }
    }
}

/// out += weight · left rightᵀ, row-major.
pub(super) fn add_outer(weight: f64, left: &[f64], right: &[f64], out: &mut [f64]) {
    for (row, u) in out.chunks_exact_mut(right.len()).zip(left) {
        crate::linalg::add_scaled(row, weight * u, right);
    }
}
