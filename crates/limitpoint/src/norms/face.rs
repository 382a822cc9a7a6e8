//! Subdifferentials of norms as faces of the dual ball, and the one number that scales them.
//!
//! Away from 0 the subdifferential C of a norm is a face: it lies in a hyperplane that misses 0. Every v in the cone of
//! C is therefore v = mass · c with c ∈ C and one mass ≥ 0, and the projection problems are
//!
//! ```text
//! onto C                       minimise ½‖v − z‖²                  over mass = 1
//! with a price on the mass     minimise ½‖v − z‖² − price · mass   over mass ≥ 0
//! ```
//!
//! The second one is what a maximum over layers needs: its subdifferential shares one unit of mass among the layers,
//! and the price is the multiplier of that constraint. Two shapes of faces occur, [`Face::Simplex`] and [`Face::Cap`];
//! the norm finds the shape (`open_face`), the shape finds the [`Multiplier`], the norm turns it into a vector
//! (`face_point`).

use super::Norm;
use super::simplex::{Threshold, positive_part};
use crate::linalg::max_abs;

/// How a projection onto a face depends on its mass.
#[derive(Debug)]
pub(super) enum Face {
    /// v = Σ xⱼ eⱼ with orthonormal eⱼ, xⱼ ≥ 0 and mass Σ xⱼ; the coefficients are ⟨z, eⱼ⟩.
    Simplex {
        /// ⟨z, eⱼ⟩.
        coefficients: Vec<f64>,
    },
    /// v = mass · c + Σ xⱼ eⱼ with fixed c ⟂ eⱼ and |xⱼ| ≤ mass.
    Cap {
        /// ‖c‖².
        stiffness: f64,
        /// ⟨z, c⟩.
        pull: f64,
        /// |⟨z, eⱼ⟩|; empty when the norm is smooth, and then c is its gradient.
        radii: Vec<f64>,
    },
}

/// The solution of a face problem: the mass, and the threshold that a simplex puts on its coefficients.
#[derive(Debug, Clone, Copy)]
pub(super) struct Multiplier {
    pub(super) mass: f64,
    pub(super) threshold: Threshold,
}

impl Face {
    /// A simplex with room for `capacity` coefficients.
    pub(super) fn simplex(capacity: usize) -> Self {
        Self::Simplex { coefficients: Vec::with_capacity(capacity) }
    }

    /// A cap with room for `capacity` radii.
    pub(super) fn cap(capacity: usize) -> Self {
        Self::Cap { stiffness: 0.0, pull: 0.0, radii: Vec::with_capacity(capacity) }
    }

    /// Describes a simplex anew, in the buffer it has.
    pub(super) fn set_simplex(&mut self, values: impl Iterator<Item = f64>) {
        if let Self::Simplex { coefficients } = self {
            coefficients.clear();
            coefficients.extend(values);
        }
    }

    /// Describes a cap anew, in the buffer it has.
    pub(super) fn set_cap(&mut self, new_stiffness: f64, new_pull: f64, values: impl Iterator<Item = f64>) {
        if let Self::Cap { stiffness, pull, radii } = self {
            (*stiffness, *pull) = (new_stiffness, new_pull);
            radii.clear();
            radii.extend(values);
        }
    }

    /// The coefficients of a simplex, the radii of a cap.
    pub(super) fn entries(&self) -> &[f64] {
        match self {
            Self::Simplex { coefficients: entries } | Self::Cap { radii: entries, .. } => entries,
        }
    }

    /// The projection among the points of this mass.
    pub(super) fn with_mass(&self, mass: f64) -> Multiplier {
        let threshold = match self {
            Self::Simplex { coefficients } => Threshold::of_simplex(coefficients.iter().copied(), mass),
            Self::Cap { .. } => Threshold::at(0.0),
        };
        Multiplier { mass, threshold }
    }

    /// The projection at this price per unit of mass; the mass grows with the price.
    ///
    /// A simplex gives xⱼ = max(⟨z, eⱼ⟩ + price, 0). For a cap the mass is the zero of the concave increasing function
    /// stiffness · m − pull − price − Σ max(rⱼ − m, 0), or 0 if that is negative; Newton's method from 0 reaches it
    /// from below after finitely many steps, when the set of radii above m stays the same.
    pub(super) fn at_price(&self, price: f64) -> Multiplier {
        let threshold = Threshold::at(-price);
        let mass = match self {
            Self::Simplex { coefficients } => coefficients.iter().map(|x| threshold.excess(*x)).sum(),
            Self::Cap { stiffness, pull, radii } => {
                let (mut mass, mut kept) = (0.0, usize::MAX);
                loop {
                    let (mut sum, mut count) = (0.0, 0_usize);
                    for radius in radii.iter().filter(|radius| **radius > mass) {
                        sum += radius;
                        count += 1;
                    }
                    if count >= kept {
                        break mass;
                    }
                    mass = positive_part((pull + price + sum) / (stiffness + count as f64));
                    kept = count;
                }
            }
        };
        Multiplier { mass, threshold }
    }
}

/// A norm on one contiguous block, the piece from which composites are made.
pub(super) trait Elementary: Norm {
    /// Finds the face at `at` ≠ 0 and how `target` lies to it. False when it cannot be found (singular values of
    /// non-finite matrices).
    fn open_face(&mut self, at: &[f64], target: &[f64], tolerance: f64) -> bool;

    /// The face last opened.
    fn face(&self) -> &Face;

    /// Writes the point of the opened face, scaled to its mass, that the multiplier stands for.
    fn face_point(&mut self, target: &[f64], multiplier: Multiplier, out: &mut [f64]);
}

/// [`Norm::project_subdifferential`] for every elementary norm, onto `mass` times the subdifferential.
pub(super) fn project_face(
    norm: &mut (impl Elementary + ?Sized),
    at: &[f64],
    target: &[f64],
    tolerance: f64,
    mass: f64,
    out: &mut [f64],
) {
    let largest = max_abs(at);
    if largest == 0.0 {
        out.copy_from_slice(target);
        norm.project_dual_ball(mass, out);
    } else if largest.is_finite() && norm.open_face(at, target, tolerance) {
        let multiplier = norm.face().with_mass(mass);
        norm.face_point(target, multiplier, out);
    } else {
        out.fill(f64::NAN);
    }
}

/// The smallest tolerance for ties between computed norms, which carry rounding errors.
const ROUNDING: f64 = 1e-14;

/// τ, moved into [0, 1).
pub(super) fn activity(tolerance: f64) -> f64 {
    if tolerance > 0.0 { tolerance.min(1.0 - f64::EPSILON) } else { 0.0 }
}

/// τ for comparing computed norms.
pub(super) fn rounded_activity(tolerance: f64) -> f64 {
    activity(tolerance).max(ROUNDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mass_follows_the_price() {
        let mut simplex = Face::simplex(3);
        simplex.set_simplex([1.0, 0.5, -2.0].into_iter());
        assert_eq!(simplex.at_price(0.0).mass, 1.5);
        assert_eq!(simplex.at_price(-0.75).mass, 0.25);
        assert!((simplex.with_mass(0.25).threshold.excess(1.0) - 0.25).abs() < 1e-15);

        let mut cap = Face::cap(2);
        cap.set_cap(1.0, 1.0, [3.0, 0.5].into_iter());
        // m − 1 − max(3 − m, 0) − max(1/2 − m, 0) vanishes at 2
        assert_eq!(cap.at_price(0.0).mass, 2.0);
        assert_eq!(cap.at_price(-100.0).mass, 0.0);
        cap.set_cap(4.0, 2.0, [].into_iter());
        assert_eq!(cap.at_price(2.0).mass, 1.0);
    }

    #[test]
    fn nonsense_tolerances_are_tamed() {
        assert_eq!(activity(f64::NAN), 0.0);
        assert_eq!(activity(-1.0), 0.0);
        assert!(activity(5.0) < 1.0);
    }
}
