//! Paper C, "Implicit Bias of Mirror Flow in Homogeneous Neural Networks": potentials, balance, horizons, features.
//!
//! | file | section of the paper |
//! |---|---|
//! | `trace` | mirror flows watched at every step, which the theorems' claims share |
//! | `balance` | 2–3, I: identities of the flow and what it keeps in balance |
//! | `margins` | 4.1, C–E: Q-margins and how they grow |
//! | `rates` | 4.2, F: how fast the loss falls |
//! | `stationarity` | 4.3, G, I: KKT points of the horizon's margin problem |
//! | `hyperbolic` | 4.8, G.4: hyperbolic entropy, products of weights and ℓ1 |
//! | `figures` | Table 1, Figure 1: the two families of potentials |
//! | `courses` | mirror flows until their horizon shows |
//! | `reach` | 4.10, H: when the horizon can be seen |
//! | `recipes` | J.4: step sizes and λ by the scale of the start |
//! | `students` | the runs of J.1 and J.2 |
//! | `features` | 4.9, J.1: sparse and dense features |
//! | `lambda` | J.1, J.2: what λ does at finite time |
//! | `deep` | J.2: three layers |

mod balance;
mod courses;
mod deep;
mod features;
mod figures;
mod hyperbolic;
mod lambda;
mod margins;
mod rates;
mod reach;
mod recipes;
mod stationarity;
mod students;
mod trace;

use super::Claim;

/// All claims of the paper, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let parts: [&[Claim]; 11] = [
        &balance::CLAIMS,
        &margins::CLAIMS,
        &rates::CLAIMS,
        &stationarity::CLAIMS,
        &hyperbolic::CLAIMS,
        &figures::CLAIMS,
        &reach::CLAIMS,
        &recipes::CLAIMS,
        &features::CLAIMS,
        &deep::CLAIMS,
        &lambda::CLAIMS,
    ];
    parts.concat()
}
