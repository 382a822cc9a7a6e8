//! Paper A, "Flavors of Margin": steepest descent, Adam and Shampoo in homogeneous networks.
//!
//! | file | section of the paper |
//! |---|---|
//! | `flows` | the flows that the theorems are tried on |
//! | `soft_margins` | 3.1, A.2, A.5: the soft margin never falls after separation |
//! | `growth` | 2, A.1–A.2: identities of the flow, how fast the loss falls and the direction turns |
//! | `stationarity` | 3.2, A.3–A.4: KKT points, alignment, limit directions |
//! | `proximity` | B: Bregman proximity |
//! | `students` | the runs of 4.1 |
//! | `teacher` | 4.1: teacher and student |
//! | `images` | data and measurements of 4.2 and 4.3 |
//! | `adam_runs` | the runs of 4.2 |
//! | `adam_update`, `shampoo_update` | C.1 and C.2: the update rules |
//! | `adam` | 4.2: Adam is sign descent first and gradient descent later |
//! | `shampoo` | 4.3: Shampoo, Muon and the spectral margin |

mod adam;
mod adam_runs;
mod adam_update;
mod flows;
mod growth;
mod images;
mod proximity;
mod shampoo;
mod shampoo_update;
mod soft_margins;
mod stationarity;
mod students;
mod teacher;

use super::Claim;

/// All claims of the paper, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let parts: [&[Claim]; 7] = [
        &soft_margins::CLAIMS,
        &growth::CLAIMS,
        &stationarity::CLAIMS,
        &proximity::CLAIMS,
        &teacher::CLAIMS,
        &adam::CLAIMS,
        &shampoo::CLAIMS,
    ];
    parts.concat()
}
