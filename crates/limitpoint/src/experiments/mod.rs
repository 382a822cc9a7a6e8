//! Whole training problems, put together from specifications.
//!
//! [`ensemble()`] repeats an experiment over seeds. [`Workload`] holds the fixed problems whose speed is measured; the same definitions serve `limitpoint bench`, the
//! criterion benches and the comparison with other engines.

mod ensemble;
mod workload;

pub use ensemble::ensemble;
pub use workload::{Workload, WorkloadSpec};
