//! Parameters that know whether anyone changed them since a model moved them.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::linalg::Aligned;

/// Names one state of one parameter vector; no two are alike in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(u64);

/// A parameter vector whose last move was stamped, until somebody else changes an entry.
///
/// A model that moves parameters itself may keep what it derived from them, such as a rounded copy, under the stamp of
/// that move. Every other way to write an entry goes through [`DerefMut`], which removes the stamp, so that equal
/// stamps mean equal parameters.
///
/// ```
/// use limitpoint::params::Stamped;
/// let mut params = Stamped::new(&[1.0, 2.0]);
/// assert_eq!(params.stamp(), None);
/// let stamp = params.change(|entries| entries[0] = 3.0);
/// assert_eq!((params[0], params.stamp()), (3.0, Some(stamp)));
/// params[1] = 4.0;
/// assert_eq!(params.stamp(), None);
/// ```
#[derive(Debug)]
pub struct Stamped {
    entries: Aligned<f64>,
    stamp: Option<Stamp>,
}

impl Stamped {
    /// Parameters without a stamp.
    pub fn new(params: &[f64]) -> Self {
        let mut entries = Aligned::zeros(params.len());
        entries.copy_from_slice(params);
        Self { entries, stamp: None }
    }

    /// The stamp of the last move, if nothing was written since.
    pub fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    /// Changes the entries and stamps the outcome with a new stamp.
    pub fn change(&mut self, work: impl FnOnce(&mut [f64])) -> Stamp {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        self.stamp = None; // also if `work` panics
        work(&mut self.entries);
        let stamp = Stamp(NEXT.fetch_add(1, Ordering::Relaxed));
        self.stamp = Some(stamp);
        stamp
    }
}

impl Deref for Stamped {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.entries
    }
}

impl DerefMut for Stamped {
    fn deref_mut(&mut self) -> &mut [f64] {
        self.stamp = None;
        &mut self.entries
    }
}
