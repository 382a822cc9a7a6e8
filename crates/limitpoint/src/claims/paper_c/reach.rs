//! To be written.

use crate::claims::Claim;

pub(super) const CLAIMS: [Claim; 0] = [];
