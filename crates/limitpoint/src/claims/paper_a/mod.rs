//! Paper A, "Flavors of Margin": steepest descent, Adam and Shampoo in homogeneous networks.
//!
//! | file | section of the paper |
//! |---|---|
//! | `adam` | 4.2: Adam is sign descent first and gradient descent later |
//! | `shampoo` | 4.3: Shampoo, Muon and the spectral margin |

mod adam;
mod shampoo;

use super::Claim;

/// All claims of the paper, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let parts: [&[Claim]; 2] = [&adam::CLAIMS, &shampoo::CLAIMS];
    parts.concat()
}
