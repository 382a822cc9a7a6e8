//! How runs get on, for whoever wants to know.

use super::manifest::RunManifest;

/// Where a run stands, for progress bars.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Accepted steps.
    pub step: u64,
    /// log₁₀ of the loss.
    pub log10_loss: f64,
    /// Name and last value of the first observed margin.
    pub margin: Option<(String, f64)>,
    /// How much of the way to the nearest stop rule is done, in [0, 1], where that can be told.
    pub fraction: Option<f64>,
}

/// Someone who is told how runs get on; never steers them.
pub trait Watcher: Sync {
    /// A run begins or goes on.
    fn started(&self, _run: usize) {}
    /// About ten times a second.
    fn progress(&self, _run: usize, _progress: &Progress) {}
    /// Something worth knowing, such as a damaged checkpoint.
    fn note(&self, _run: usize, _text: &str) {}
    /// A run is complete, failed or interrupted.
    fn ended(&self, _run: usize, _manifest: &RunManifest) {}
}

/// Watches nothing.
impl Watcher for () {}
