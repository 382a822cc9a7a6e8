//! Paper A, "Flavors of Margin": steepest descent, Adam and Shampoo in homogeneous networks.
//!
//! | file | section of the paper |
//! |---|---|
//! | `images` | data and measurements of 4.2 and 4.3 |
//! | `adam_runs` | the runs of 4.2 |
//! | `adam_update`, `shampoo_update` | C.1 and C.2: the update rules |
//! | `adam` | 4.2: Adam is sign descent first and gradient descent later |
//! | `shampoo` | 4.3: Shampoo, Muon and the spectral margin |

mod adam;
mod adam_runs;
mod adam_update;
mod images;
mod shampoo;
mod shampoo_update;

use super::Claim;

/// All claims of the paper, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let parts: [&[Claim]; 2] = [&adam::CLAIMS, &shampoo::CLAIMS];
    parts.concat()
}
