//! When a run ends.

use serde::{Deserialize, Serialize};

use super::{Snapshot, Spacing};
use crate::diagnostics::angle;

/// A reason to stop that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum StopRule {
    /// ln L is at or below this.
    LogLoss {
        /// Natural logarithm of the target.
        target: f64,
    },
    /// This many steps are made.
    Steps {
        /// Their number.
        count: u64,
    },
    /// ln Σ η is at or above this.
    LogTime {
        /// Natural logarithm of the time.
        target: f64,
    },
    /// The direction of θ turned by less than `angle` radians while ‖θ‖₂ doubled.
    DirectionConverged {
        /// The angle in radians.
        angle: f64,
    },
}

/// Why a run ended; an outcome, not an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// A rule held.
    Rule(StopRule),
    /// An observer asked for it.
    Observer,
    /// The loss is exactly zero or the gradient vanishes: nothing more can happen.
    Stationary,
    /// The schedule rejected every step size it tried.
    ScheduleGaveUp,
    /// The loss or a parameter stopped being a number.
    NotFinite {
        /// The step that produced it.
        step: u64,
        /// What it was.
        what: String,
    },
}

/// Watches the stop rules of a run.
pub struct Stopper {
    rules: Vec<StopRule>,
    anchor: Option<(f64, Vec<f64>)>,
}

impl Stopper {
    /// Watches these rules.
    pub fn new(rules: &[StopRule]) -> Self {
        Self { rules: rules.to_vec(), anchor: None }
    }

    /// Whether a rule looks at the point itself, and not only at counters and the loss.
    pub fn needs_params(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule, StopRule::DirectionConverged { .. }))
    }

    /// The first rule that holds at a snapshot.
    pub fn check(&mut self, snapshot: &Snapshot) -> Option<StopRule> {
        let simple = self.check_counters(snapshot.step, snapshot.log_time, snapshot.point.log_loss);
        if simple.is_some() || !Spacing::default().includes(snapshot.step) {
            return simple;
        }
        for rule in &self.rules {
            let StopRule::DirectionConverged { angle: allowed } = rule else { continue };
            let size = snapshot.point.length();
            match &mut self.anchor {
                None => self.anchor = Some((size, snapshot.point.params.to_vec())),
                Some((anchor_size, direction)) if size >= 2.0 * *anchor_size => {
                    let turned = angle(direction, snapshot.point.params);
                    *anchor_size = size;
                    direction.copy_from_slice(snapshot.point.params);
                    if turned < *allowed {
                        return Some(*rule);
                    }
                }
                Some(_) => {}
            }
        }
        None
    }

    /// The first rule about steps, time or loss that holds; cheap enough for every step.
    pub fn check_counters(&self, step: u64, log_time: f64, log_loss: f64) -> Option<StopRule> {
        self.rules.iter().copied().find(|rule| match *rule {
            StopRule::LogLoss { target } => log_loss <= target,
            StopRule::Steps { count } => step >= count,
            StopRule::LogTime { target } => log_time >= target,
            StopRule::DirectionConverged { .. } => false,
        })
    }
}
