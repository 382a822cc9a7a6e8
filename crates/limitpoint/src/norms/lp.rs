//! The ℓp norms between 1 and infinity.

use super::Norm;
use super::face::{Elementary, Face, Multiplier, project_face};
use super::root::increasing_root;
use super::simplex::refuse_radius;
use crate::linalg::{dot, max_abs, sign};

/// Powers of absolute values, 1 < p < ∞, with the dual exponent q = p/(p − 1).
///
/// ```text
/// ‖v‖ = (Σ|vᵢ|ᵖ)^(1/p),   ‖g‖_* = ‖g‖_q,   dᵢ = −sgn(gᵢ)|gᵢ|^(q−1)/‖g‖_q^(q−1)
/// ```
///
/// No ties; the subdifferential at θ ≠ 0 is the single vector sgn(θᵢ)|θᵢ|^(p−1)/‖θ‖_p^(p−1). Everything is computed
/// from a = |g|/max|g|, so no power overflows: d = −sgn(g) a^(q−1)/(Σa^q)^(1/p). p = 1 and p = ∞ build `l1` and `linf`.
/// Claims section 1, row lp.
///
/// ```
/// use limitpoint::norms::NormSpec;
/// let mut norm = NormSpec::Lp { p: 3.0 }.build_vector(2)?; // dual exponent 3/2
/// assert!((norm.value(&[3.0, -3.0]) - 3.0 * 2f64.powf(1.0 / 3.0)).abs() < 1e-14);
/// assert!((norm.dual(&[4.0, 4.0]) - 4.0 * 2f64.powf(2.0 / 3.0)).abs() < 1e-14);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub(super) struct Lp {
    primal: Exponent,
    /// Of the opened face: the gradient of the norm. Also the scratch of the ball projections.
    buffer: Vec<f64>,
    face: Face,
}

impl Lp {
    /// `p` must lie strictly between 1 and infinity.
    pub(super) fn new(size: usize, p: f64) -> Self {
        Self { primal: Exponent::new(p), buffer: vec![0.0; size], face: Face::cap(0) }
    }
}

impl Norm for Lp {
    fn value(&mut self, v: &[f64]) -> f64 {
        self.primal.norm(v)
    }

    fn dual(&mut self, g: &[f64]) -> f64 {
        self.primal.conjugate().norm(g)
    }

    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        let dual = self.primal.conjugate().gradient(g, out);
        out.iter_mut().for_each(|x| *x = -*x);
        dual
    }

    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]) {
        project_face(self, at, target, tolerance, 1.0, out);
    }

    fn project_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.primal.project_ball(radius, v, &mut self.buffer);
    }

    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]) {
        self.primal.conjugate().project_ball(radius, v, &mut self.buffer);
    }
}

impl Elementary for Lp {
    fn open_face(&mut self, at: &[f64], target: &[f64], _tolerance: f64) -> bool {
        self.primal.gradient(at, &mut self.buffer);
        self.face.set_cap(dot(&self.buffer, &self.buffer), dot(&self.buffer, target), std::iter::empty());
        true
    }

    fn face(&self) -> &Face {
        &self.face
    }

    fn face_point(&mut self, _target: &[f64], multiplier: Multiplier, out: &mut [f64]) {
        out.iter_mut().zip(&self.buffer).for_each(|(o, c)| *o = multiplier.mass * c);
    }
}

/// An exponent and its conjugate.
#[derive(Debug, Clone, Copy)]
struct Exponent {
    p: f64,
    q: f64,
}

impl Exponent {
    fn new(p: f64) -> Self {
        Self { p, q: p / (p - 1.0) }
    }

    fn conjugate(self) -> Self {
        Self { p: self.q, q: self.p }
    }

    /// p − 1, from whichever exponent is the smaller and so the more exact.
    fn less_one(self) -> f64 {
        if self.p < 2.0 { self.p - 1.0 } else { 1.0 / (self.q - 1.0) }
    }

    /// (Σ|vᵢ|ᵖ)^(1/p).
    fn norm(self, v: &[f64]) -> f64 {
        let largest = max_abs(v);
        if largest == 0.0 || !largest.is_finite() {
            return largest;
        }
        largest * v.iter().map(|x| (x.abs() / largest).powf(self.p)).sum::<f64>().powf(1.0 / self.p)
    }

    /// Writes the gradient of the norm, 0 at 0, and returns the norm.
    fn gradient(self, v: &[f64], out: &mut [f64]) -> f64 {
        let largest = max_abs(v);
        if largest == 0.0 || !largest.is_finite() {
            out.fill(if largest == 0.0 { 0.0 } else { f64::NAN });
            return largest;
        }
        let (power, mut sum) = (self.less_one(), 0.0);
        for (o, &x) in out.iter_mut().zip(v) {
            let a = x.abs() / largest;
            let slope = a.powf(power);
            sum += slope * a;
            *o = sign(x) * slope;
        }
        let scale = sum.powf(1.0 / self.q);
        out.iter_mut().for_each(|o| *o /= scale);
        largest * sum.powf(1.0 / self.p)
    }

    /// Projection onto { ‖v‖_p ≤ radius }.
    ///
    /// With a = |v|/max|v|, ε = radius/max|v| and x = radius · y the conditions are
    ///
    /// ```text
    /// ε yᵢ + c yᵢ^(p−1) = aᵢ,   ‖y‖_p = 1,   whence c = ‖a − εy‖_q ∈ [(‖a‖_p − ε)/n^max(0, 1/p−1/q), ‖a‖_q]
    /// ```
    ///
    /// ln‖y(c)‖_p falls with ln c; its zero is bracketed by these bounds, and each yᵢ comes from Newton's method.
    fn project_ball(self, radius: f64, v: &mut [f64], y: &mut [f64]) {
        if refuse_radius(radius, v) {
            return;
        }
        let (norm, largest) = (self.norm(v), max_abs(v));
        if norm <= radius {
            return;
        }
        if radius == 0.0 || !largest.is_finite() {
            v.fill(if largest.is_nan() { f64::NAN } else { 0.0 });
            return;
        }
        let epsilon = radius / largest;
        let spread = (v.len() as f64).powf((1.0 / self.p - 1.0 / self.q).max(0.0));
        let low = ((norm - radius) / largest / spread).ln();
        let high = (self.conjugate().norm(v) / largest).ln();
        let mut solve = |log_c: f64| {
            let c = log_c.exp();
            y.iter_mut().zip(v.iter()).for_each(|(y, x)| *y = self.solve(epsilon, c, x.abs() / largest));
            self.norm(y)
        };
        let log_c = increasing_root(low, high, |log_c| -solve(log_c).ln());
        let scale = radius / solve(log_c);
        v.iter_mut().zip(y.iter()).for_each(|(x, y)| *x = (y * scale).copysign(*x));
    }

    /// The y ≥ 0 with ε y + c y^(p−1) = a.
    ///
    /// Below p = 2 the unknown is t = y^(p−1), so that the equation is always A tˢ + B t = a with s ≥ 1: convex, and
    /// Newton's method falls monotonically to the root from the smaller of the roots of the two terms alone.
    fn solve(self, epsilon: f64, c: f64, a: f64) -> f64 {
        if self.p >= 2.0 {
            return power_equation(c, epsilon, self.less_one(), a);
        }
        let s = self.conjugate().less_one();
        power_equation(epsilon, c, s, a).powf(s)
    }
}

/// The t ≥ 0 with `curved` · tˢ + `straight` · t = a, for s ≥ 1.
fn power_equation(curved: f64, straight: f64, s: f64, a: f64) -> f64 {
    if a == 0.0 || curved == 0.0 {
        return if a == 0.0 { 0.0 } else { a / straight };
    }
    let mut t = (a / straight).min((a / curved).powf(1.0 / s));
    for _ in 0..100 {
        let power = curved * t.powf(s);
        let step = (power + straight * t - a) / (s * power / t + straight);
        let next = t - step;
        if !(next < t && next > 0.0) {
            break;
        }
        t = next;
        if step <= f64::EPSILON * t {
            break;
        }
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_equations_are_solved() {
        for s in [1.0, 1.5, 3.0, 40.0, 1e4] {
            for (curved, straight, a) in [(1.0, 1.0, 1.0), (1e-9, 1.0, 0.3), (1.0, 1e-9, 0.3), (1e6, 2.0, 1e-7)] {
                let t = power_equation(curved, straight, s, a);
                let back = curved * t.powf(s) + straight * t;
                assert!((back - a).abs() <= 1e-11 * a, "s = {s}: {back} against {a}");
            }
        }
        assert_eq!(power_equation(1.0, 1.0, 2.0, 0.0), 0.0);
        assert_eq!(power_equation(0.0, 2.0, 2.0, 1.0), 0.5);
        assert_eq!(power_equation(4.0, 0.0, 2.0, 1.0), 0.5);
    }

    #[test]
    fn the_gradient_does_not_overflow() {
        let mut out = [0.0; 2];
        for scale in [1e-300, 1.0, 1e300] {
            assert!((Exponent::new(4.0).gradient(&[scale, -scale], &mut out) / scale - 2f64.powf(0.25)).abs() < 1e-15);
            assert!(out.iter().all(|x| (x.abs() - 2f64.powf(-0.75)).abs() < 1e-15));
        }
    }
}
