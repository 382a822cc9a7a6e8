//! Exact KKT points of dense networks of any depth in ℓ2, on all their weights.
//!
//! Where neurons do not decouple (several layers, several classes, powers of ReLU, frozen layers) the unknowns are the weights
//! themselves, the multipliers of the active margins and the slopes at the kinks:
//!
//! ```text
//! θ − Σ_k λ_k ∇q_k(θ; s) + Σ_g η_g G_g θ = 0,     q_k = 1 on active margins,     z = 0 at kinks,     ⟨G_g θ̃, θ⟩ = 0
//! ```
//!
//! with h = s z at every unit of a piecewise linear activation: s = 1 on, α off, an unknown at a kink. Scaling between layers
//! is decided by ½‖θ‖², which is strictly convex along it. What is left free are *turns*: two units of a layer on the same sides of all
//! active examples can be turned into each other, w ↦ Rw, outgoing ↦ outgoing Rᵀ, without changing anything. G_g is the
//! generator of such a turn, and η_g makes the system square. At a zero every η is 0: along a turn neither ‖θ‖ nor Σ λ q
//! changes (where slopes differ, at a kink, z = 0 for both units), so that the product of the first line with G_g θ says
//! Σ_h η_h ⟨G_h θ, G_g θ⟩ = 0, and the G_h θ are independent because the Jacobian is regular.
//!
//! A unit whose weights are all 0 meets its conditions whatever the others are, and is left out.

mod forces;
mod model;
mod read;
mod record;
mod system;

pub(super) use model::DenseModel;
pub(super) use read::attempt;
pub use record::{DenseNetwork, Turn};

#[cfg(test)]
mod tests;
