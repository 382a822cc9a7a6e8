//! Paper C, "Implicit Bias of Mirror Flow in Homogeneous Neural Networks": potentials, balance, horizons, features.
//!
//! | file | section of the paper |
//! |---|---|
//! | `mirror` | the columns of mirror flows after separation, which the theorems' claims share |
//! | `identities` | 2–3: identities of the flow |
//! | `balance` | 2–3, I: what the flow keeps in balance, also with another potential in each layer |
//! | `margins` | 4.1, C–E: Q-margins and how they grow, and how fast the dual direction turns |
//! | `rates` | 4.2, F: how fast the loss falls |
//! | `stationarity` | G: approximate KKT points along the flow |
//! | `limits` | 4.3, G, I: KKT points of the horizon's margin problem |
//! | `hyperbolic` | 4.8, G.4: hyperbolic entropy, products of weights and ℓ1 |
//! | `figures` | Table 1, Figure 1: the two families of potentials |
//! | `courses` | mirror flows until their horizon shows |
//! | `reach` | 4.10, H: when the horizon can be seen |
//! | `recipes` | J.4: step sizes and λ by the scale of the start |
//! | `students` | the runs of J.1 and J.2 |
//! | `reformulation` | 4.9: what the horizon's problem asks of neurons |
//! | `features` | J.1: sparse and dense features, Table 2 in random draws of data and teacher |
//! | `lambda` | J.1, J.2: what λ does at finite time |
//! | `deep` | J.2: three layers |
//! | `vgg` | J.3: a narrow network in the manner of VGG on a part of CIFAR-10 |
//! | `beyond` | no section: open questions, ids X |

mod balance;
mod beyond;
mod courses;
mod deep;
mod features;
mod figures;
mod hyperbolic;
mod identities;
mod lambda;
mod limits;
mod margins;
mod mirror;
mod rates;
mod reach;
mod recipes;
mod reformulation;
mod stationarity;
mod students;
mod vgg;

use super::{Check, Claim, Outcome};

/// All claims of the paper, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let parts: [&[Claim]; 16] = [
        &identities::CLAIMS,
        &balance::CLAIMS,
        &margins::CLAIMS,
        &rates::CLAIMS,
        &stationarity::CLAIMS,
        &limits::CLAIMS,
        &hyperbolic::CLAIMS,
        &figures::CLAIMS,
        &reach::CLAIMS,
        &recipes::CLAIMS,
        &reformulation::CLAIMS,
        &features::CLAIMS,
        &deep::CLAIMS,
        &lambda::CLAIMS,
        &vgg::CLAIMS,
        &beyond::CLAIMS,
    ];
    parts.concat()
}

impl Outcome {
    /// Adds what is said of one case, its name before every comparison.
    fn say_of(&mut self, case: &str, said: Self) {
        let named = |check: Check| Check { what: format!("{case}: {}", check.what), ..check };
        self.checks.extend(said.checks.into_iter().map(named));
        self.sketches.extend(said.sketches);
        self.notes.extend(said.notes);
        self.dropped.extend(said.dropped);
    }
}
