//! The ℓ∞ norm: sign descent.

use super::Norm;
use super::face::{Elementary, Face, Multiplier, activity, project_face};
use super::l1::{first_largest, project_max_ball, project_sum_ball};
use crate::linalg::{max_abs, sign, sum_abs};
use crate::params::Update;

/// Largest absolute value; on matrices the entrywise maximum.
///
/// ```text
/// ‖v‖ = max|vᵢ|,   ‖g‖_* = Σ|gᵢ|,   d = −sgn(g)
/// ```
///
/// Where gᵢ = 0 any value in [−1, 1] would do; 0 is taken. Subdifferential: on the active entries |θᵢ| ≥ (1 − τ)‖θ‖_∞
/// the vectors sgn(θᵢ)μᵢ with μ on the probability simplex, 0 elsewhere. Claims section 1, row linf.
///
/// ```
/// use limitpoint::norms::NormSpec;
/// let mut norm = NormSpec::Linf.build_vector(3)?;
/// let mut nearest = [0.0; 3];
/// norm.project_subdifferential(&[2.0, -2.0, 1.0], &[0.9, -0.5, 7.0], 0.0, &mut nearest);
/// assert!((nearest[0] - 0.7).abs() < 1e-15 && (nearest[1] + 0.3).abs() < 1e-15 && nearest[2] == 0.0);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub(super) struct Linf {
    /// Of the opened face: the index of each active entry.
    active: Vec<usize>,
    /// Their signs.
    signs: Vec<f64>,
    face: Face,
}

impl Linf {
    pub(super) fn new(size: usize) -> Self {
        Self { active: Vec::with_capacity(size), signs: Vec::with_capacity(size), face: Face::simplex(size) }
    }
}

impl Norm for Linf {
    fn value(&mut self, v: &[f64]) -> f64 {
        first_largest(v).1
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        sum_abs(g)
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        let mut lanes = [0.0; 8];
        let (chunks, rest) = g.as_chunks::<8>();
        let (out_chunks, out_rest) = out.as_chunks_mut::<8>();
        for (x, o) in chunks.iter().zip(out_chunks) {
            for lane in 0..8 {
                lanes[lane] += x[lane].abs();
                o[lane] = sign(-x[lane]);
            }
        }
        let mut tail = 0.0;
        for (x, o) in rest.iter().zip(out_rest) {
            tail += x.abs();
            *o = sign(-*x);
        }
        let dual = lanes.iter().sum::<f64>() + tail;
        if dual.is_nan() {
            out.fill(f64::NAN);
        }
        dual
    }

    fn descend(&mut self, params: &mut [f64], g: &[f64], factor: f64, unit: bool, _: &mut [f64]) {
        let length = if unit { factor } else { factor * sum_abs(g) };
        Update::AgainstSigns(length).make(params, g);
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        project_face(self, at, target, tolerance, 1.0, out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        project_max_ball(radius, v);
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        project_sum_ball(radius, v);
    }
}

impl Elementary for Linf {
    fn open_face(&mut self, at: &[f64], target: &[f64], tolerance: f64) -> bool {
        let (largest, floor) = (max_abs(at), 1.0 - activity(tolerance));
        self.active.clear();
        self.signs.clear();
        for (i, &x) in at.iter().enumerate().filter(|(_, x)| x.abs() / largest >= floor) {
            self.active.push(i);
            self.signs.push(sign(x));
        }
        self.face.set_simplex(self.active.iter().zip(&self.signs).map(|(&i, s)| s * target[i]));
        true
    }

    fn face(&self) -> &Face {
        &self.face
    }

    fn face_point(&mut self, _target: &[f64], multiplier: Multiplier, out: &mut [f64]) {
        out.fill(0.0);
        for ((&i, s), coefficient) in self.active.iter().zip(&self.signs).zip(self.face.entries()) {
            out[i] = s * multiplier.threshold.excess(*coefficient);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fused_pass_agrees_with_the_plain_ones_at_every_length() {
        for size in 0..20 {
            let g: Vec<f64> = (0..size).map(|i| f64::from((i * 7) % 5) - 2.0).collect();
            let (mut norm, mut out) = (Linf::new(g.len()), vec![9.0; g.len()]);
            assert_eq!(norm.unit_minimiser(&g, &mut out), sum_abs(&g));
            assert!(g.iter().zip(&out).all(|(x, o)| *o == -sign(*x)));
        }
    }
}
