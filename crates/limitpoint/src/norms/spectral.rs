//! The spectral norm: Shampoo without memory, Muon, and the modular norm of paper A.

use super::Norm;
use super::face::{Elementary, Face, Multiplier, project_face, rounded_activity};
use super::singular::{ScaledSvd, add_outer};
use crate::linalg::{Eigen, add_scaled};

/// Largest singular value of a matrix block.
///
/// ```text
/// ‖W‖ = σ₁(W),   ‖G‖_* = Σσₖ(G),   d = −UVᵀ over the nonzero singular values of G = UΣVᵀ
/// ```
///
/// On the null spaces of G any contraction would do; 0 is taken. Subdifferential: U₁MVᵀ₁ with M ⪰ 0 and tr M = 1 on the
/// singular spaces with σ ≥ (1 − τ)σ₁; the projection puts the eigenvalues of the symmetric part of UᵀZV on the
/// simplex. Claims section 1, row spectral.
///
/// ```
/// use limitpoint::{norms::NormSpec, params::ParamLayout};
/// let layout = ParamLayout::new([("w", 2, 2)]).unwrap();
/// let (mut norm, mut direction) = (NormSpec::Spectral.build(&layout)?, [0.0; 4]);
/// assert_eq!(norm.value(&[3.0, 0.0, 0.0, -4.0]), 4.0);
/// assert_eq!(norm.unit_minimiser(&[3.0, 0.0, 0.0, -4.0], &mut direction), 7.0);
/// assert!((direction[0] + 1.0).abs() < 1e-15 && (direction[3] - 1.0).abs() < 1e-15);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub(super) struct Spectral {
    svd: ScaledSvd,
    /// Of the opened face: the eigenvectors of the symmetric part of U₁ᵀZV₁, one after the other.
    rotation: Vec<f64>,
    compressed: Vec<f64>,
    /// Kept for the number of tied singular values met last.
    eigen: Option<(usize, Eigen)>,
    left: Vec<f64>,
    right: Vec<f64>,
    face: Face,
}

impl Spectral {
    pub(super) fn new(rows: usize, cols: usize) -> Self {
        let size = rows.min(cols);
        Self {
            svd: ScaledSvd::new(rows, cols),
            rotation: Vec::with_capacity(size * size),
            compressed: Vec::with_capacity(size * size),
            eigen: None,
            left: vec![0.0; rows],
            right: vec![0.0; cols],
            face: Face::simplex(size),
        }
    }
}

impl Norm for Spectral {
    fn value(&mut self, v: &[f64]) -> f64 {
        self.svd.largest_of(v)
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        self.svd.sum_of(g)
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        if !self.svd.factor(g) {
            out.fill(f64::NAN);
            return f64::NAN;
        }
        self.svd.svd().polar_factor(out);
        out.iter_mut().for_each(|x| *x = -*x);
        self.svd.sum()
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        project_face(self, at, target, tolerance, 1.0, out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.svd.project_largest_ball(radius, v);
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.svd.project_sum_ball(radius, v);
    }
}

impl Elementary for Spectral {
    fn open_face(&mut self, at: &[f64], target: &[f64], tolerance: f64) -> bool {
        if !self.svd.factor(at) {
            return false;
        }
        let values = self.svd.svd().values();
        let floor = (1.0 - rounded_activity(tolerance)) * values[0];
        let ties = values.iter().take_while(|s| **s >= floor).count();
        self.compressed.clear();
        self.rotation.clear();
        for k in 0..ties {
            for l in 0..ties {
                self.compressed.push(0.5 * (self.svd.pairing(target, k, l) + self.svd.pairing(target, l, k)));
            }
        }
        if ties == 1 {
            self.rotation.push(1.0);
            self.face.set_simplex(self.compressed.iter().copied());
            return true;
        }
        if self.eigen.as_ref().is_none_or(|(size, _)| *size != ties) {
            self.eigen = Some((ties, Eigen::new(ties)));
        }
        let Some((_, eigen)) = &mut self.eigen else { return false };
        if eigen.factor(&self.compressed).is_err() {
            return false;
        }
        (0..ties).for_each(|j| self.rotation.extend_from_slice(eigen.vector(j)));
        self.face.set_simplex(eigen.values().iter().copied());
        true
    }

    fn face(&self) -> &Face {
        &self.face
    }

    fn face_point(&mut self, _target: &[f64], multiplier: Multiplier, out: &mut [f64]) {
        out.fill(0.0);
        let coefficients = self.face.entries();
        for (coefficient, axis) in coefficients.iter().zip(self.rotation.chunks_exact(coefficients.len())) {
            let weight = multiplier.threshold.excess(*coefficient);
            if weight == 0.0 {
                continue;
            }
            self.left.fill(0.0);
            self.right.fill(0.0);
            for (k, &part) in axis.iter().enumerate() {
                add_scaled(&mut self.left, part, self.svd.svd().left(k));
                add_scaled(&mut self.right, part, self.svd.svd().right(k));
            }
            add_outer(weight, &self.left, &self.right, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_identity_the_subdifferential_is_the_density_matrices() {
        let (mut norm, mut out) = (Spectral::new(2, 2), [0.0; 4]);
        // the skew part of the target is lost, the eigenvalues 2 and 1 become 1 and 0
        norm.project_subdifferential(&[1.0, 0.0, 0.0, 1.0], &[2.0, 5.0, -5.0, 1.0], 0.0, &mut out);
        let expected = [1.0, 0.0, 0.0, 0.0];
        assert!(out.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-14), "{out:?}");
        // one active singular value: a single matrix, until the tolerance ties the second
        norm.project_subdifferential(&[1.0, 0.0, 0.0, 0.99], &[0.5, 0.0, 0.0, 0.5], 0.0, &mut out);
        assert!((out[0] - 1.0).abs() < 1e-14);
        norm.project_subdifferential(&[1.0, 0.0, 0.0, 0.99], &[0.5, 0.0, 0.0, 0.5], 0.02, &mut out);
        assert!((out[0] - 0.5).abs() < 1e-14 && (out[3] - 0.5).abs() < 1e-14);
    }

    #[test]
    fn null_spaces_stay_at_rest() {
        let (mut norm, mut out) = (Spectral::new(3, 2), [0.0; 6]);
        assert!((norm.unit_minimiser(&[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], &mut out) - 1.0).abs() < 1e-15);
        assert!((out[0] + 1.0).abs() < 1e-15 && out[1..].iter().all(|x| x.abs() < 1e-15));
    }
}
