//! Paper D, "Gradient Descent Maximizes the Margin of Homogeneous Neural Networks": smoothed margins, rates, KKT
//! points.
//!
//! | file | section of the paper |
//! |---|---|
//! | `losses` | A.1, D.1: the functions f and g of a loss |
//! | `flows` | the gradient flows that the theorems are tried on |
//! | `margins` | 4.1, A.1–A.2, B.1: smoothed margins and how they grow |
//! | `growth` | B, C.3, D.2: norm, loss and angle along the flow |
//! | `stationarity` | 4.3, C: KKT points |
//! | `layers` | G: margins per the product of the layers' norms |
//! | `rates` | 4.2, A.4: how fast the loss falls |
//! | `epochs` | stochastic gradient descent on ten digits, epoch by epoch |
//! | `training` | J, K.1: training to losses of 10^−800 |
//! | `convolutions` | J with convolutions and max-pools, at reduced size |
//! | `numerics` | K: loss-based rates and the arithmetic of tiny losses |
//! | `robustness` | J.2, Figure 8: how far images are from a wrong answer |
//! | `classes` | F: cross-entropy |
//! | `chain` | H: chain rules at kinks |
//! | `hat`, `hat_runs` | I: a direction that never converges |
//! | `groove` | beyond the paper: directions on the hat from anywhere |
//! | `models` | B.1, C.1: homogeneity of subdifferentials, constraint qualification |
//! | `descent_runs` | gradient descent watched at every step |
//! | `descent_steps` | E.1–E.2: admissible steps, and the margin γ̂ |
//! | `descent` | E.3–E.4: admissible steps never lower γ̂ |
//! | `descent_rates` | E.4–E.6: rates and directions of descent |
//! | `kkt_notions` | C.1, C.4, C.5: approximate KKT points in finite time |

mod chain;
mod classes;
mod convolutions;
mod courses;
mod descent;
mod descent_rates;
mod descent_runs;
mod descent_steps;
mod epochs;
mod flows;
mod groove;
mod growth;
mod hat;
mod hat_runs;
mod kkt_notions;
mod layers;
mod losses;
mod margins;
mod models;
mod numerics;
mod rates;
mod robustness;
mod stationarity;
mod training;

use super::Claim;

/// All claims of the paper that can be run, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let parts: [&[Claim]; 19] = [
        &margins::CLAIMS,
        &growth::CLAIMS,
        &losses::CLAIMS,
        &models::CLAIMS,
        &rates::CLAIMS,
        &stationarity::CLAIMS,
        &kkt_notions::CLAIMS,
        &descent_steps::CLAIMS,
        &descent::CLAIMS,
        &descent_rates::CLAIMS,
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
