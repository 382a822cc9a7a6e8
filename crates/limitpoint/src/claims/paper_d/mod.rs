//! Paper D, "Gradient Descent Maximizes the Margin of Homogeneous Neural Networks": smoothed margins, rates, KKT points.
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
//! | `classes` | F: cross-entropy |
//! | `chain` | H: chain rules at kinks |
//! | `hat`, `hat_algebra`, `hat_runs` | I: a direction that never converges |
//! | `groove` | beyond the paper: directions on the hat from anywhere |
//! | `models` | B.1, C.1: homogeneity of subdifferentials, constraint qualification |

mod chain;
mod classes;
mod flows;
mod groove;
mod growth;
mod hat;
mod hat_algebra;
mod hat_runs;
mod layers;
mod losses;
mod margins;
mod models;
mod rates;
mod stationarity;

use super::Claim;

/// All claims of the paper that can be run, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let parts: [&[Claim]; 11] = [
        &margins::CLAIMS,
        &growth::CLAIMS,
        &losses::CLAIMS,
        &models::CLAIMS,
        &rates::CLAIMS,
        &stationarity::CLAIMS,
        &layers::CLAIMS,
        &classes::CLAIMS,
        &chain::CLAIMS,
        &hat::CLAIMS,
        &groove::CLAIMS,
    ];
    parts.concat()
}
