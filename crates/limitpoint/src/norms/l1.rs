//! The ℓ1 norm: coordinate descent.

use super::Norm;
use super::face::{Elementary, Face, Multiplier, activity, project_face};
use super::simplex::{Threshold, clip, refuse_radius};
use crate::linalg::{max_abs, sign, sum_abs};

/// Entries this close to the largest, relatively, share the step of `l1-averaged`.
const TIE: f64 = 1e-12;

/// Sum of absolute values.
///
/// ```text
/// ‖v‖ = Σ|vᵢ|,   ‖g‖_* = max|gᵢ|,   d = −sgn(gⱼ) eⱼ with j = argmax|gᵢ|
/// ```
///
/// Ties: any convex combination of the maximisers is a minimiser. `l1` takes the one of lowest index; `l1-averaged`
/// moves all entries within relative 1e-12 of the largest equally, which with tiny steps is forward stagewise (B.cd).
/// Subdifferential: sgn(θᵢ) where |θᵢ| > τ‖θ‖_∞, any value in [−1, 1] elsewhere. Claims section 1, row l1.
///
/// ```
/// use limitpoint::norms::NormSpec;
/// let mut direction = [0.0; 3];
/// assert_eq!(NormSpec::L1.build_vector(3)?.unit_minimiser(&[1.0, -2.0, 2.0], &mut direction), 2.0);
/// assert_eq!(direction, [0.0, 1.0, 0.0]);
/// NormSpec::L1Averaged.build_vector(3)?.unit_minimiser(&[1.0, -2.0, 2.0], &mut direction);
/// assert_eq!(direction, [0.0, 0.5, -0.5]);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub(super) struct L1 {
    averaged: bool,
    /// Of the opened face: sgn(θᵢ), 0 where θᵢ counts as 0.
    signs: Vec<f64>,
    face: Face,
}

impl L1 {
    pub(super) fn new(size: usize, averaged: bool) -> Self {
        Self { averaged, signs: vec![0.0; size], face: Face::cap(size) }
    }
}

impl Norm for L1 {
    fn value(&mut self, v: &[f64]) -> f64 {
        sum_abs(v)
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        first_largest(g).1
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        let (first, largest) = first_largest(g);
        if largest.is_nan() {
            out.fill(f64::NAN);
        } else if self.averaged {
            let floor = largest * (1.0 - TIE);
            let share = 1.0 / g.iter().filter(|x| x.abs() >= floor).count() as f64;
            out.iter_mut().zip(g).for_each(|(o, &x)| *o = if x.abs() >= floor { sign(-x) * share } else { 0.0 });
        } else {
            out.fill(0.0);
            if largest > 0.0 {
                out[first] = sign(-g[first]);
            }
        }
        largest
    }

    fn dual_is_largest_entry(&self) -> bool {
        true
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        project_face(self, at, target, tolerance, 1.0, out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        project_sum_ball(radius, v);
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        project_max_ball(radius, v);
    }
}

impl Elementary for L1 {
    fn open_face(&mut self, at: &[f64], target: &[f64], tolerance: f64) -> bool {
        let (largest, tau) = (max_abs(at), activity(tolerance));
        let (mut count, mut pull) = (0.0, 0.0);
        for ((s, &x), &z) in self.signs.iter_mut().zip(at).zip(target) {
            *s = if x.abs() / largest > tau { sign(x) } else { 0.0 };
            count += s.abs();
            pull += if *s == 0.0 { 0.0 } else { *s * z };
        }
        let free = self.signs.iter().zip(target).filter(|(s, _)| **s == 0.0).map(|(_, z)| z.abs());
        self.face.set_cap(count, pull, free);
        true
    }

    fn face(&self) -> &Face {
        &self.face
    }

    fn face_point(&mut self, target: &[f64], multiplier: Multiplier, out: &mut [f64]) {
        let mass = multiplier.mass;
        for ((o, &s), &z) in out.iter_mut().zip(&self.signs).zip(target) {
            *o = if s == 0.0 { clip(z, mass) } else { mass * s };
        }
    }
}

/// Projection onto { Σ|vᵢ| ≤ radius }: the magnitudes are projected onto a simplex.
pub(super) fn project_sum_ball(radius: f64, v: &mut [f64]) {
    if refuse_radius(radius, v) || sum_abs(v) <= radius {
        return;
    }
    let threshold = Threshold::of_simplex(v.iter().map(|x| x.abs()), radius);
    v.iter_mut().for_each(|x| *x = threshold.excess(x.abs()).copysign(*x));
}

/// Projection onto { max|vᵢ| ≤ radius }.
pub(super) fn project_max_ball(radius: f64, v: &mut [f64]) {
    if !refuse_radius(radius, v) {
        v.iter_mut().for_each(|x| *x = clip(*x, radius));
    }
}

/// The first index of the largest |vᵢ| and that value: (0, 0) for an empty slice, NaN if any entry is NaN.
///
/// One pass in chunks. Magnitudes are compared as bit patterns, whose order is that of the numbers with NaN on top;
/// integer maxima vectorise where floating point ones do not.
pub(super) fn first_largest(v: &[f64]) -> (usize, f64) {
    const CHUNK: usize = 64;
    let magnitude = |x: &f64| x.to_bits() & (u64::MAX >> 1);
    let (mut best, mut start) = (0, 0);
    for (index, chunk) in v.chunks(CHUNK).enumerate() {
        let top = chunk.iter().map(magnitude).fold(0, u64::max);
        if top > best {
            (best, start) = (top, index * CHUNK);
        }
    }
    let within = v[start..].iter().position(|x| magnitude(x) == best).unwrap_or(0);
    (start + within, f64::from_bits(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_largest_is_found_in_any_chunk() {
        let mut v = vec![0.5; 300];
        (v[130], v[131], v[290]) = (-2.0, 2.0, 2.0);
        assert_eq!(first_largest(&v), (130, 2.0));
        assert_eq!(first_largest(&[]), (0, 0.0));
        assert_eq!(first_largest(&[-0.0, 0.0]), (0, 0.0));
        v[200] = -f64::NAN;
        assert!(first_largest(&v).1.is_nan());
    }

    #[test]
    fn small_entries_are_free_only_within_the_tolerance() {
        let mut norm = L1::new(3, false);
        let mut out = [0.0; 3];
        norm.project_subdifferential(&[2.0, -1e-4, 0.0], &[0.3, 0.2, 5.0], 0.0, &mut out);
        assert_eq!(out, [1.0, -1.0, 1.0]);
        norm.project_subdifferential(&[2.0, -1e-4, 0.0], &[0.3, 0.2, 5.0], 1e-3, &mut out);
        assert_eq!(out, [1.0, 0.2, 1.0]);
    }

    #[test]
    fn averaging_keeps_a_zero_gradient_at_rest() {
        let mut out = [7.0; 2];
        assert_eq!(L1::new(2, true).unit_minimiser(&[0.0, 0.0], &mut out), 0.0);
        assert_eq!(out.map(f64::abs), [0.0, 0.0]);
    }
}
