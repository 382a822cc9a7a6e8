//! Read-only snapshots and stop rules.
//!
//! Watching does not steer: an [`Observer`] sees a [`Snapshot`] and may say "stop", nothing more.

mod spacing;
mod stop;

pub use spacing::Spacing;
pub use stop::{Anchor, StopReason, StopRule, Stopper};

use crate::diagnostics::Point;

/// One moment of a run.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    /// Accepted steps so far.
    pub step: u64,
    /// Epochs so far; equals `step` for full batches.
    pub epoch: u64,
    /// ln Σ η, the time travelled; ln t for flows.
    pub log_time: f64,
    /// The point reached.
    pub point: Point<'a>,
}

/// Whether to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continue {
    /// Go on.
    Yes,
    /// Stop here.
    No,
}

/// Something that watches a run.
pub trait Observer {
    /// Whether this observer wants to see step `step`.
    fn wants(&self, step: u64) -> bool;

    /// Sees a snapshot.
    fn observe(&mut self, snapshot: &Snapshot) -> Continue;
}
