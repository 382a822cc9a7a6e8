//! Sweeps that any number of workers share, on any number of machines that see one folder.
//!
//! ```text
//! SWEEP/manifest.json  config.toml        as of any experiment
//! SWEEP/waiting/NAME/                     laid out, or given back with its checkpoints
//! SWEEP/running/WORKER/NAME/              claimed by a worker
//! SWEEP/NAME/                             finished or failed: the run folder of any experiment
//! SWEEP/failed/NAME                       why it failed, in words
//! SWEEP/workers/WORKER.json               who the worker is, and its heartbeat
//! ```
//!
//! A folder is in exactly one of these places, and goes from one to the next by a rename, which of many who try it at
//! once succeeds for one. So a claim needs no lock, a run is published as a whole, and a worker that was thought dead and
//! is not finds its folder gone: whatever it still wants to write has no place. `NAME` ends with a hash of the recipe, so
//! that the same point, laid out again or in another sweep, is the same run.
//!
//! A worker's heartbeat counts up. Others decide by whether they *see it change*, on their own monotonic clock; what any
//! wall clock says is never asked (see [`Leases`]).

mod claim;
mod lay_out;
mod lease;
mod merge;
mod place;
mod settle;
mod status;
mod worker;

pub use claim::{Claim, Claims, Moved, Next};
pub use lay_out::{LaidOut, lay_out, run_name};
pub use lease::{Leases, Standing as LeaseStanding, WorkerRecord};
pub use merge::{Merged, merge};
pub(super) use place::steadily;
pub use place::{is_sweep, place};
pub use status::{FailedEntry, RunningEntry, SweepStatus, retry_failed, status};
pub use worker::{Departure, WorkOptions, WorkOutcome, work};
