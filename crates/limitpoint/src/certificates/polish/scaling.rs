//! Scalings of the cell problem: how its cones and kinks look to Newton's method at a point.
//!
//! A kink with multipliers y₀ of t ≥ 0 and y₁ of t ≥ z, eliminated, leaves with d₀ = y₀/t, d₁ = y₁/(t − z)
//!
//! ```text
//! slope b − κ d₁/(d₀+d₁),   curvature d₀d₁/(d₀+d₁) of z,   κ²/(d₀+d₁) on the diagonal of the margins
//! ```
//!
//! A cone α ≥ ‖u‖₂ with dual (ζ₀, ζ) has the Nesterov–Todd point (w₀, w), w₀² − ‖w‖² = 1, and size η; eliminating α
//! leaves the Hessian (I − ŵŵᵀ)/η² + ŵŵᵀ/(η²(2w₀² − 1)) of u. Its second part vanishes at the solution: sizes of
//! neurons trade against each other at no cost until the margins decide. So that it survives rounding, blocks of
//! neurons are formed in a basis whose last vector is ŵ (Vandenberghe, "The CVXOPT linear and quadratic cone program
//! solvers", 2010, section 4).

use super::cell::{CellProgram, Iterate};
use super::shallow::Ball;
use crate::linalg::{dot, norm2};

/// Scalings at one point; arrays over kinks are examples × neurons.
pub(super) struct Scaling {
    /// d₁/(d₀+d₁).
    pub share: Vec<f64>,
    /// d₀ + d₁; 1 where there is no kink.
    pub stiffness: Vec<f64>,
    /// d₀d₁/(d₀+d₁).
    pub curvature: Vec<f64>,
    /// Curvature of u: per entry, in the neuron's own basis.
    pub diagonal: Vec<f64>,
    /// Reflection that maps ŵ_j to the last axis, for ℓ2: x − 2 v ⟨v, x⟩.
    pub reflection: Vec<f64>,
    /// ℓ2: η, w₀ and w.
    pub size: Vec<f64>,
    pub apex: Vec<f64>,
    pub axis: Vec<f64>,
}

impl Scaling {
    pub fn new(program: &CellProgram, x: &Iterate) -> Self {
        let kinks = x.t.len();
        let ratio = |k: usize| {
            if program.jumps[k] > 0.0 { (x.y0[k] / x.t[k], x.y1[k] / x.over[k]) } else { (1.0, 0.0) }
        };
        let (mut share, mut stiffness, mut curvature) = (vec![0.0; kinks], vec![1.0; kinks], vec![0.0; kinks]);
        for k in 0..kinks {
            let (d0, d1) = ratio(k);
            stiffness[k] = d0 + d1;
            share[k] = d1 / stiffness[k];
            curvature[k] = d0 * share[k];
        }
        let mut scaling = Self {
            share,
            stiffness,
            curvature,
            diagonal: Vec::new(),
            reflection: Vec::new(),
            size: Vec::new(),
            apex: Vec::new(),
            axis: Vec::new(),
        };
        match program.ball {
            Ball::Round => scaling.set_round(program.inputs.cols, x),
            Ball::Diamond => {
                let entry = |k: usize| {
                    let (p, q) = (x.upper_dual[k] / x.upper[k], x.lower_dual[k] / x.lower[k]);
                    4.0 * p * q / (p + q)
                };
                scaling.diagonal = (0..x.u.len()).map(entry).collect();
            }
            Ball::Cube => {
                let entry = |k: usize| x.upper_dual[k] / x.upper[k] + x.lower_dual[k] / x.lower[k];
                scaling.diagonal = (0..x.u.len()).map(entry).collect();
            }
        }
        scaling
    }

    fn set_round(&mut self, d: usize, x: &Iterate) {
        for (j, u) in x.u.chunks_exact(d).enumerate() {
            let zeta = &x.dual[j * d..(j + 1) * d];
            let (rx, rz) = (root(x.reach[j], norm2(u)), root(x.apex[j], norm2(zeta)));
            let (x0, z0) = (x.reach[j] / rx, x.apex[j] / rz);
            let inner = dot(u, zeta) / (rx * rz);
            let gamma = (0.5 * (1.0 + x0 * z0 + inner)).sqrt();
            let axis: Vec<f64> = u.iter().zip(zeta).map(|(u, z)| (u / rx - z / rz) / (2.0 * gamma)).collect();
            let length = norm2(&axis);
            let apex = length.hypot(1.0);
            let size = (rx / rz).sqrt();
            let mut diagonal = vec![1.0 / (size * size); d];
            diagonal[d - 1] /= 2.0 * apex * apex - 1.0;
            self.diagonal.extend(diagonal);
            self.reflection.extend(reflection(&axis, length));
            self.size.push(size);
            self.apex.push(apex);
            self.axis.extend(axis);
        }
    }

    /// W(a, v) of neuron j, or its inverse.
    pub fn apply(&self, j: usize, inverse: bool, a: f64, v: &[f64]) -> (f64, Vec<f64>) {
        let d = v.len();
        let (w, w0) = (&self.axis[j * d..(j + 1) * d], self.apex[j]);
        let (sign, size) = if inverse { (-1.0, 1.0 / self.size[j]) } else { (1.0, self.size[j]) };
        let along = dot(w, v);
        let rest = sign * a + along / (1.0 + w0);
        (size * (w0 * a + sign * along), v.iter().zip(w).map(|(v, w)| size * (v + rest * w)).collect())
    }

    /// W⁻²(a, v) of neuron j: (2 JwwᵀJ − J)/η² with J = diag(1, −I).
    pub fn hessian(&self, j: usize, a: f64, v: &[f64]) -> (f64, Vec<f64>) {
        let d = v.len();
        let (w, w0) = (&self.axis[j * d..(j + 1) * d], self.apex[j]);
        let eta2 = self.size[j] * self.size[j];
        let product = w0 * a - dot(w, v);
        ((2.0 * w0 * product - a) / eta2, v.iter().zip(w).map(|(v, w)| (v - 2.0 * w * product) / eta2).collect())
    }
}

/// √(a² − b²) for a > b ≥ 0.
fn root(a: f64, b: f64) -> f64 {
    ((a - b) * (a + b)).max(f64::MIN_POSITIVE).sqrt()
}

/// The unit v with (I − 2vvᵀ) axis/length = ± last axis.
fn reflection(axis: &[f64], length: f64) -> Vec<f64> {
    let mut v: Vec<f64> = axis.iter().map(|a| if length > 0.0 { a / length } else { 0.0 }).collect();
    let last = v.len() - 1;
    v[last] += if v[last] >= 0.0 { 1.0 } else { -1.0 };
    let size = norm2(&v);
    v.iter_mut().for_each(|x| *x /= size);
    v
}

/// The longest step, at most 1, that keeps every (a, v) + step·(da, dv) in the cone a ≥ ‖v‖₂.
pub(super) fn round_step(a: &[f64], v: &[f64], da: &[f64], dv: &[f64]) -> f64 {
    let d = v.len() / a.len();
    let mut longest: f64 = 1.0;
    for j in 0..a.len() {
        let (v, dv) = (&v[j * d..(j + 1) * d], &dv[j * d..(j + 1) * d]);
        let (square, half) = (da[j] * da[j] - dot(dv, dv), a[j] * da[j] - dot(v, dv));
        let length = norm2(v);
        let constant = (a[j] - length) * (a[j] + length);
        let discriminant = half * half - square * constant;
        if discriminant >= 0.0 && discriminant.sqrt() > half {
            longest = longest.min(constant / (discriminant.sqrt() - half));
        }
        if da[j] < 0.0 {
            longest = longest.min(-a[j] / da[j]);
        }
    }
    longest
}
