//! Numbers, norms and singular values with proven bounds: arithmetic that rounds outwards.
//!
//! | file | holds |
//! |---|---|
//! | `interval` | numbers between two others, and sums of products to twice the working precision |
//! | `enclosure` | norms and dual norms of vectors of intervals |
//! | `spectrum` | singular values and eigenvalues |

mod enclosure;
mod interval;
mod spectrum;

pub use enclosure::{enclosed_dual_norm, enclosed_norm};
pub(crate) use interval::ExactSum;
pub use interval::{Interval, enclosed_dot, enclosed_sum};
pub(crate) use spectrum::Spectrum;
