//! The Euclidean norm: gradient descent.

use super::Norm;
use super::face::{Elementary, Face, Multiplier, project_face};
use super::simplex::refuse_radius;
use crate::linalg::{dot, norm2};

/// Root of the sum of squares; on matrices the Frobenius norm.
///
/// ```text
/// ‖v‖ = √Σvᵢ²,   ‖g‖_* = ‖g‖,   d = −g/‖g‖
/// ```
///
/// No ties. The subdifferential at θ ≠ 0 is the single vector θ/‖θ‖. Claims section 1, row l2.
///
/// ```
/// use limitpoint::norms::NormSpec;
/// let mut direction = [0.0; 2];
/// assert_eq!(NormSpec::L2.build_vector(2)?.unit_minimiser(&[3.0, 4.0], &mut direction), 5.0);
/// assert_eq!(direction, [-0.6, -0.8]);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub(super) struct L2 {
    /// Of the opened face: θ/‖θ‖.
    gradient: Vec<f64>,
    face: Face,
}

impl L2 {
    pub(super) fn new(size: usize) -> Self {
        Self { gradient: vec![0.0; size], face: Face::cap(0) }
    }
}

impl Norm for L2 {
    fn value(&mut self, v: &[f64]) -> f64 {
        norm2(v)
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        norm2(g)
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        let length = norm2(g);
        // 0/1 instead of 0/0 keeps a zero gradient at rest; NaN passes through the division
        write_quotient(g, if length == 0.0 { -1.0 } else { -length }, out);
        length
    }

    fn descend(&mut self, params: &mut [f64], g: &[f64], factor: f64, unit: bool, _: &mut [f64]) {
        let length = if unit { norm2(g) } else { 1.0 };
        crate::linalg::add_scaled(params, if length == 0.0 { 0.0 } else { -factor / length }, g);
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        project_face(self, at, target, tolerance, 1.0, out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        project_euclidean_ball(radius, v);
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        project_euclidean_ball(radius, v);
    }
}

impl Elementary for L2 {
    fn open_face(&mut self, at: &[f64], target: &[f64], _tolerance: f64) -> bool {
        write_quotient(at, norm2(at), &mut self.gradient);
        self.face.set_cap(dot(&self.gradient, &self.gradient), dot(&self.gradient, target), std::iter::empty());
        true
    }

    fn face(&self) -> &Face {
        &self.face
    }

    fn face_point(&mut self, _target: &[f64], multiplier: Multiplier, out: &mut [f64]) {
        out.iter_mut().zip(&self.gradient).for_each(|(o, c)| *o = multiplier.mass * c);
    }
}

/// out = v / divisor.
pub(super) fn write_quotient(v: &[f64], divisor: f64, out: &mut [f64]) {
    out.iter_mut().zip(v).for_each(|(o, x)| *o = x / divisor);
}

/// Projection onto { ‖v‖₂ ≤ radius }.
pub(super) fn project_euclidean_ball(radius: f64, v: &mut [f64]) {
    if refuse_radius(radius, v) {
        return;
    }
    let length = norm2(v);
    if length > radius || length.is_nan() {
        v.iter_mut().for_each(|x| *x = *x / length * radius);
    }
}
