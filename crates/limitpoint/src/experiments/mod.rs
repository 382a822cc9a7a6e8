//! Whole training problems, put together from specifications.
//!
//! [`Workload`] holds the fixed problems whose speed is measured; the same definitions serve `limitpoint bench`, the
//! criterion benches and the comparison with other engines.

mod workload;

pub use workload::{Workload, WorkloadSpec};
