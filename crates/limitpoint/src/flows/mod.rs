//! Continuous time: gradient flow, smooth steepest flows and mirror flow.
//!
//! ```text
//! steepest   dθ/dt = ‖g‖_* d(g)            mirror   d∇R(θ)/dt = −g            g = ∇L(θ) = L · ∇ln L
//! ```
//!
//! In plain time the late phase takes forever, so the flow runs in the rescaled time τ with dτ = L dt, where the
//! right-hand side is made of ∇ln L and of ordinary size; ln t is recovered by quadrature and may reach thousands. For
//! losses with a root, where plain time is the one that fits, the flow stays in it. An embedded Runge–Kutta pair
//! controls the local error, and the balance law of the papers (C Lemma 3.1), which holds exactly along the flow, is
//! monitored as an independent measure of the error made.

mod dormand_prince;
mod flow;
mod spec;

pub use flow::{Flow, FlowState};
pub use spec::{FlowError, FlowSpec, Tolerance};
