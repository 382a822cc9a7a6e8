//! Paper D, "Gradient Descent Maximizes the Margin of Homogeneous Neural Networks": smoothed margins, rates, KKT
//! points.
//!
//! | file | section of the paper |
//! |---|---|
//! | `flows` | the gradient flows that the theorems are tried on |
//! | `margins` | 4.1, A.1–A.2, B, C.3, D.2: smoothed margins, and norm, loss and angle along the flow |
//! | `assumptions` | A.1, B.1, C.1, D.1: the functions f and g of a loss, homogeneity of subdifferentials, constraint qualification |
//! | `limits` | 4.2, 4.3, A.4, C: how fast the loss falls, KKT points |
//! | `layers` | G: margins per the product of the layers' norms |
//! | `courses` | stochastic gradient descent on ten digits, epoch by epoch |
//! | `training` | J, K.1: training to losses of 10^−800 |
//! | `convolutions` | J with convolutions and max-pools, at reduced size |
//! | `numerics` | K: loss-based rates and the arithmetic of tiny losses |
//! | `robustness` | J.2, Figure 8: how far images are from a wrong answer |
//! | `classes` | F: cross-entropy |
//! | `chain` | H: chain rules at kinks |
//! | `hat`, `hat_runs` | I: a direction that never converges |
//! | `groove` | beyond the paper: directions on the hat from anywhere |
//! | `descent_runs` | gradient descent watched at every step |
//! | `descent_steps` | E.1–E.2: admissible steps, and the margin γ̂ |
//! | `descent` | E.3–E.6: admissible steps never lower γ̂; rates and directions of descent |
//! | `kkt_notions` | C.1, C.4, C.5: approximate KKT points in finite time |

mod assumptions;
mod chain;
mod classes;
mod convolutions;
mod courses;
mod descent;
mod descent_runs;
mod descent_steps;
mod flows;
mod groove;
mod hat;
mod hat_runs;
mod kkt_notions;
mod layers;
mod limits;
mod margins;
mod numerics;
mod robustness;
mod training;

use super::Claim;

/// All claims of the paper that can be run, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let parts: [&[Claim]; 15] = [
        &margins::CLAIMS,
        &assumptions::CLAIMS,
        &limits::CLAIMS,
        &kkt_notions::CLAIMS,
        &descent_steps::CLAIMS,
        &descent::CLAIMS,
        &layers::CLAIMS,
        &training::CLAIMS,
        &robustness::CLAIMS,
        &convolutions::CLAIMS,
        &numerics::CLAIMS,
        &classes::CLAIMS,
        &chain::CLAIMS,
        &hat::CLAIMS,
        &groove::CLAIMS,
    ];
    parts.concat()
}
