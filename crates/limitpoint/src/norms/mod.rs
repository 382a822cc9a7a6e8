//! Every geometry of the library: norms, their duals, steepest directions and projections.
//!
//! An optimiser sees a geometry only through a norm ‖·‖ on the parameters. With G the gradient,
//!
//! ```text
//! dual norm            ‖G‖_* = max { ⟨G, v⟩ : ‖v‖ ≤ 1 }
//! unit minimiser       d(G)  ∈ argmin { ⟨G, d⟩ : ‖d‖ ≤ 1 },      ⟨G, d⟩ = −‖G‖_*
//! steepest direction   Δ     = ‖G‖_* d(G) ∈ argmin { ⟨G, v⟩ + ½‖v‖² },  ‖Δ‖ = ‖G‖_*,  ⟨G, Δ⟩ = −‖G‖_*²
//! ```
//!
//! For the last line put v = s·d with s = ‖v‖: the smallest value of ⟨G, v⟩ + ½s² at length s is −s‖G‖_* + ½s², which
//! s = ‖G‖_* minimises. The optimality condition −G ∈ ∂(½‖·‖²)(Δ) is what ties an optimiser to the margin of its norm
//! (papers A eq. 1 and B eq. 11), and the subdifferential of the norm is all a certificate needs:
//!
//! ```text
//! ∂‖·‖(θ) = { v : ⟨v, θ⟩ = ‖θ‖, ‖v‖_* ≤ 1 },      ∂‖·‖(0) = { v : ‖v‖_* ≤ 1 }          (A.lemA4, B.lem18)
//! ```
//!
//! Projections are Euclidean. Two facts build all of them: a norm ball and its polar split a vector (Moreau),
//! `v = prox_{λ‖·‖}(v) + P_{‖·‖_* ≤ λ}(v)`, and a subdifferential is a face of the dual ball, which one number, its
//! mass, scales to a cone (see the `face` file).
//!
//! Parameters are the whole flat vector of a [`ParamLayout`](crate::params::ParamLayout). Frozen blocks do not count:
//! norms skip them, directions and subgradients are 0 there, and ball projections leave them as they are.
//!
//! | file | norm | dual |
//! |---|---|---|
//! | `l1` | Σ\|vᵢ\| | max\|Gᵢ\| |
//! | `l2` | √Σvᵢ² (also Frobenius) | itself |
//! | `linf` | max\|vᵢ\| | Σ\|Gᵢ\| |
//! | `lp` | (Σ\|vᵢ\|ᵖ)^(1/p) | ℓq, 1/p + 1/q = 1 |
//! | `quadratic` | √(vᵀDv) | √(GᵀD⁻¹G) |
//! | `spectral` | σ₁ | Σσₖ |
//! | `nuclear` | Σσₖ | σ₁ |
//! | `group` | Σ or max of the rows' ℓ2 norms | max or Σ |
//! | `composite` | maxₗ cₗ‖Wₗ‖, Σₗ cₗ‖Wₗ‖ or √Σₗ(cₗ‖Wₗ‖)² | Σₗ‖Gₗ‖_*/cₗ, maxₗ‖Gₗ‖_*/cₗ or √Σₗ(‖Gₗ‖_*/cₗ)² |

mod canonical;
mod error;
mod spec;
mod text;

mod composite;
mod group;
mod l1;
mod l2;
mod linf;
mod lp;
mod nuclear;
mod quadratic;
mod spectral;
mod window;

mod face;
mod root;
mod simplex;
mod singular;

#[cfg(test)]
mod tests;

pub use canonical::{Canonical, NormPart, PlainNorm};
pub use composite::Rule;
pub use error::NormError;
pub use simplex::project_simplex;
pub use spec::{BlockNorm, NormSpec};

/// A norm on parameter vectors, with everything an optimiser or a certificate asks of it.
///
/// Vectors have the length of the layout the norm was built for; another length panics. Entries may have any size that
/// `f64` can hold: sums of powers are scaled first. A NaN entry gives a NaN answer, never a panic and never a silent 0;
/// so does a matrix whose singular values cannot be found. No method allocates, except that a projection onto the
/// spectral subdifferential may when the number of tied singular values changes.
///
/// ```
/// use limitpoint::norms::NormSpec;
/// let mut norm = NormSpec::Linf.build_vector(3)?;
/// let (gradient, mut direction) = ([3.0, 0.0, -1.0], [0.0; 3]);
/// assert_eq!(norm.value(&gradient), 3.0);
/// assert_eq!(norm.dual(&gradient), 4.0);
/// assert_eq!(norm.unit_minimiser(&gradient, &mut direction), 4.0);
/// assert_eq!(direction, [-1.0, 0.0, 1.0]);
/// norm.steepest_direction(&gradient, &mut direction);
/// assert_eq!(direction, [-4.0, 0.0, 4.0]);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub trait Norm: Send {
    /// ‖v‖.
    fn value(&mut self, v: &[f64]) -> f64;

    /// ‖g‖_* = max { ⟨g, v⟩ : ‖v‖ ≤ 1 }.
    fn dual(&mut self, g: &[f64]) -> f64;

    /// Writes the unit minimiser d ∈ argmin { ⟨g, d⟩ : ‖d‖ ≤ 1 }, which points downhill, and returns ‖g‖_* = −⟨g, d⟩.
    ///
    /// ‖d‖ = 1 unless g = 0, where d = 0. Where several minimisers exist, each norm documents which one it takes.
    fn unit_minimiser(&mut self, g: &[f64], out: &mut [f64]) -> f64;

    /// Writes the steepest direction Δ = ‖g‖_* d, which points downhill with ‖Δ‖ = ‖g‖_*, and returns ‖g‖_*.
    ///
    /// Paper A eq. (1), paper B eq. (11).
    fn steepest_direction(&mut self, g: &[f64], out: &mut [f64]) -> f64 {
        let dual = self.unit_minimiser(g, out);
        out.iter_mut().for_each(|x| *x *= dual);
        dual
    }

    /// params += factor · Δ, or factor · d if `unit`: a step of steepest descent. `scratch` holds a direction.
    ///
    /// The norms that run every training step do this in one pass.
    fn descend(&mut self, params: &mut [f64], g: &[f64], factor: f64, unit: bool, scratch: &mut [f64]) {
        let dual = self.unit_minimiser(g, scratch);
        crate::linalg::add_scaled(params, if unit { factor } else { factor * dual }, scratch);
    }

    /// Whether the dual norm is the largest |entry|, so that the dual norm of a vector is the largest of its parts.
    fn dual_is_largest_entry(&self) -> bool {
        false
    }

    /// Euclidean projection of `target` onto the subdifferential of the norm at `at`.
    ///
    /// At 0 this is the dual unit ball. `tolerance` is the activity tolerance τ ∈ [0, 1): entries, singular values,
    /// rows or layers below τ times the largest count as zero (norms that add up), those above 1 − τ times the largest
    /// count as tied with it (norms that take a maximum). τ = 0 is the exact set, up to the rounding of computed norms
    /// (1e-14).
    fn project_subdifferential(&mut self, at: &[f64], target: &[f64], tolerance: f64, out: &mut [f64]);

    /// Euclidean projection onto { v : ‖v‖ ≤ radius }. A negative or NaN radius, an empty ball, gives NaN.
    fn project_ball(&mut self, radius: f64, v: &mut [f64]);

    /// Euclidean projection onto the dual ball { v : ‖v‖_* ≤ radius }.
    ///
    /// By Moreau, v − `project_dual_ball(λ, v)` is the proximal step of λ‖·‖.
    fn project_dual_ball(&mut self, radius: f64, v: &mut [f64]);
}
