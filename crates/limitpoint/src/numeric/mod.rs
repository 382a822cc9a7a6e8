//! Numbers that would underflow, kept exact.
//!
//! Users: everyone. Nothing here knows what is being computed.

mod log_scaled;
mod logs;
mod powers;
mod quadrature;
mod streams;
mod sums;
mod wide;

pub use log_scaled::LogScaled;
pub use logs::{log_add_exp, log_diff_exp, log_expm1, log_one_minus_exp, log_sum_exp, log1p_exp};
pub use powers::power_of_two;
pub use quadrature::integrate;
pub use streams::{RandomStream, StreamState, Streams};
pub use sums::{CompensatedSum, compensated_dot, compensated_sum};
pub use wide::wide;
