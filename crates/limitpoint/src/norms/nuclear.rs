//! The nuclear norm: rank one steps.

use super::Norm;
use super::face::{Elementary, Face, Multiplier, activity, project_face};
use super::singular::{ScaledSvd, add_outer};
use crate::linalg::{add_scaled, dot};

/// Sum of the singular values of a matrix block.
///
/// ```text
/// ‖W‖ = Σσₖ(W),   ‖G‖_* = σ₁(G),   d = −u₁v₁ᵀ
/// ```
///
/// Ties: anything in the convex hull over the top singular space would do; the first pair of the decomposition is
/// taken. Subdifferential: UVᵀ + P with UᵀP = 0, PV = 0 and σ₁(P) ≤ 1, where U and V span the singular values above τσ₁
/// (and above rounding); the projection clips the singular values of (I − UUᵀ)Z(I − VVᵀ). Claims section 1, row
/// nuclear.
///
/// ```
/// use limitpoint::{norms::NormSpec, params::ParamLayout};
/// let layout = ParamLayout::new([("w", 2, 2)]).unwrap();
/// let (mut norm, mut direction) = (NormSpec::Nuclear.build(&layout)?, [0.0; 4]);
/// assert_eq!(norm.value(&[3.0, 0.0, 0.0, -4.0]), 7.0);
/// assert_eq!(norm.unit_minimiser(&[3.0, 0.0, 0.0, -4.0], &mut direction), 4.0);
/// assert!(direction[0].abs() < 1e-15 && (direction[3] - 1.0).abs() < 1e-15);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub(super) struct Nuclear {
    svd: ScaledSvd,
    /// Of the opened face: the rank of W, and the decomposition of the free part of the target.
    rank: usize,
    free: ScaledSvd,
    residual: Vec<f64>,
    row: Vec<f64>,
    face: Face,
}

impl Nuclear {
    pub(super) fn new(rows: usize, cols: usize) -> Self {
        Self {
            svd: ScaledSvd::new(rows, cols),
            rank: 0,
            free: ScaledSvd::new(rows, cols),
            residual: vec![0.0; rows * cols],
            row: vec![0.0; cols],
            face: Face::cap(rows.min(cols)),
        }
    }

    /// residual = (I − UUᵀ)Z(I − VVᵀ).
    fn remove_spans(&mut self, target: &[f64]) {
        let (svd, cols) = (self.svd.svd(), self.row.len());
        self.residual.copy_from_slice(target);
        for k in 0..self.rank {
            self.row.fill(0.0);
            for (u, row) in svd.left(k).iter().zip(self.residual.chunks_exact(cols)) {
                add_scaled(&mut self.row, *u, row);
            }
            add_outer(-1.0, svd.left(k), &self.row, &mut self.residual);
            let right = svd.right(k);
            for row in self.residual.chunks_exact_mut(cols) {
                let along = dot(row, right);
                add_scaled(row, -along, right);
            }
        }
    }
}

impl Norm for Nuclear {
    fn value(&mut self, v: &[f64]) -> f64 {
        self.svd.sum_of(v)
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        self.svd.largest_of(g)
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        let dual = self.svd.largest_of(g);
        if dual > 0.0 {
            self.svd.svd().recompose(|k, _| if k == 0 { -1.0 } else { 0.0 }, out);
        } else {
            out.fill(dual); // 0 or NaN
        }
        dual
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        project_face(self, at, target, tolerance, 1.0, out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.svd.project_sum_ball(radius, v);
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.svd.project_largest_ball(radius, v);
    }
}

impl Elementary for Nuclear {
    fn open_face(&mut self, at: &[f64], target: &[f64], tolerance: f64) -> bool {
        if !self.svd.factor(at) {
            return false;
        }
        let (svd, tau) = (self.svd.svd(), activity(tolerance));
        let values = svd.values();
        self.rank = values[..svd.rank()].iter().take_while(|s| **s / values[0] > tau).count();
        let full = self.rank == values.len();
        let pull = (0..self.rank).map(|k| self.svd.pairing(target, k, k)).sum();
        if full {
            self.residual.fill(0.0);
        } else {
            self.remove_spans(target);
        }
        if !self.free.factor(&self.residual) {
            return false;
        }
        let free = self.free.svd().values().iter().map(|s| s * self.free.scale());
        self.face.set_cap(self.rank as f64, pull, free);
        true
    }

    fn face(&self) -> &Face {
        &self.face
    }

    fn face_point(&mut self, _target: &[f64], multiplier: Multiplier, out: &mut [f64]) {
        let radii = self.face.entries();
        self.free.svd().recompose(|j, _| radii[j].min(multiplier.mass), out);
        for k in 0..self.rank {
            add_outer(multiplier.mass, self.svd.svd().left(k), self.svd.svd().right(k), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_part_is_clipped() {
        let (mut norm, mut out) = (Nuclear::new(3, 3), [0.0; 9]);
        let at = [2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        norm.project_subdifferential(&at, &[9.0, 9.0, 9.0, 9.0, 5.0, 0.0, 9.0, 0.0, 0.25], 0.0, &mut out);
        let expected = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.25];
        assert!(out.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-14), "{out:?}");
    }

    #[test]
    fn small_singular_values_are_free_within_the_tolerance() {
        let (mut norm, mut out) = (Nuclear::new(2, 2), [0.0; 4]);
        norm.project_subdifferential(&[1.0, 0.0, 0.0, 1e-4], &[1.0, 0.0, 0.0, -0.5], 0.0, &mut out);
        assert!((out[3] - 1.0).abs() < 1e-14);
        norm.project_subdifferential(&[1.0, 0.0, 0.0, 1e-4], &[1.0, 0.0, 0.0, -0.5], 1e-3, &mut out);
        assert!((out[3] + 0.5).abs() < 1e-14);
    }
}
