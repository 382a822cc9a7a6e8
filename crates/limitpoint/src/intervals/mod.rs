//! Numbers, norms and singular values with proven bounds: arithmetic that rounds outwards.
//!
//! | file | holds |
//! |---|---|
//! | `interval` | numbers between two others, and sums of products to twice the working precision |
//! | `enclosure` | norms and dual norms of vectors of intervals |
//! | `lanes` | long sums of products, many terms at a time |
//! | `spectrum` | singular values and eigenvalues |

mod enclosure;
mod interval;
mod lanes;
mod spectrum;

pub use enclosure::{enclosed_dual_norm, enclosed_norm};
pub(crate) use interval::ExactSum;
pub use interval::{Interval, enclosed_dot, enclosed_sum};
pub use lanes::enclosed_long_dot;
pub(crate) use lanes::{enclosed_combination, long_dot};
pub(crate) use spectrum::Spectrum;
