//! When a run ends.

use std::f64::consts::LN_10;
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Snapshot, Spacing};
use crate::diagnostics::{DirectionCourse, angle};

/// Growth of ln‖θ‖₂ from which on nobody waits for a direction whose path shows no end.
const PATIENCE: f64 = 64.0;

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
    /// The direction of θ turned by less than `angle` radians while ‖θ‖₂ doubled. If the path of the direction shows no
    /// end nevertheless, or still shows none when ln‖θ‖₂ has grown by 64, the run ends with
    /// [`StopReason::NoLimitDirection`].
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
    /// The time on the clock is used up.
    Seconds {
        /// The limit.
        limit: f64,
    },
    /// A certificate was reached.
    Certificate {
        /// Key of its norm.
        norm: String,
        /// The relative gap reached.
        gap: f64,
    },
    /// The path of the direction shows no end, so that it is no use to wait for one.
    NoLimitDirection {
        /// The lengths that say so.
        course: DirectionCourse,
    },
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

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(StopRule::LogLoss { target }) => write!(f, "log10 L reached {:.4}", target / LN_10),
            Self::Rule(StopRule::Steps { count }) => write!(f, "{count} steps made"),
            Self::Rule(StopRule::LogTime { target }) => write!(f, "log10 t reached {:.4}", target / LN_10),
            Self::Rule(StopRule::DirectionConverged { angle }) => {
                write!(f, "the direction turned by less than {angle} while the norm doubled")
            }
            Self::NoLimitDirection { course } => write!(f, "no limit direction: its path is {course}"),
            Self::Observer => f.write_str("an observer asked to stop"),
            Self::Seconds { limit } => write!(f, "{limit} seconds went by"),
            Self::Certificate { norm, gap } => write!(f, "the gap of the {norm} certificate fell to {gap:.3e}"),
            Self::Stationary => f.write_str("stationary: the gradient or the loss is exactly zero"),
            Self::ScheduleGaveUp => f.write_str("the schedule found no step size that makes progress"),
            Self::NotFinite { step, what } => write!(f, "not a finite number at step {step}: {what}"),
        }
    }
}

impl StopReason {
    /// Whether a run may well end like this; the others mean trouble.
    pub fn is_healthy(&self) -> bool {
        !matches!(self, Self::ScheduleGaveUp | Self::NotFinite { .. })
    }
}

/// Watches the stop rules of a run.
pub struct Stopper {
    rules: Vec<StopRule>,
    anchor: Option<Anchor>,
}

/// Where the direction was last compared; all that a [`Stopper`] remembers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// ‖θ‖₂ there.
    pub size: f64,
    /// θ there, trainable entries.
    pub direction: Vec<f64>,
    /// (ln‖θ‖₂, angle turned since the one before) at every comparison since the loss was below 1/e.
    #[serde(default)]
    pub path: Vec<[f64; 2]>,
}

impl Stopper {
    /// Watches these rules.
    pub fn new(rules: &[StopRule]) -> Self {
        Self { rules: rules.to_vec(), anchor: None }
    }

    /// What it remembers.
    pub fn state(&self) -> Option<Anchor> {
        self.anchor.clone()
    }

    /// Takes up a saved state.
    pub fn restore(&mut self, anchor: Option<Anchor>) {
        self.anchor = anchor;
    }

    /// Whether a rule looks at the point itself at this step, and not only at counters and the loss.
    pub fn wants(&self, step: u64) -> bool {
        Spacing::default().includes(step)
            && self.rules.iter().any(|rule| matches!(rule, StopRule::DirectionConverged { .. }))
    }

    /// Why a run ends at a snapshot, if it does; `steps` are those that it stands for, its own as a rule.
    pub fn check(&mut self, snapshot: &Snapshot, mut steps: Range<u64>) -> Option<StopReason> {
        let simple = self.check_counters(snapshot.step, snapshot.log_time, snapshot.point.log_loss);
        if simple.is_some() || !steps.any(|step| self.wants(step)) {
            return simple.map(StopReason::Rule);
        }
        let mut direction = Vec::new();
        snapshot.point.trainable(&mut direction);
        let size = snapshot.point.length();
        let (turned, mut path) = match &mut self.anchor {
            Some(before) if size >= 2.0 * before.size => {
                (angle(&before.direction, &direction), std::mem::take(&mut before.path))
            }
            Some(_) => return None,
            None => (f64::INFINITY, Vec::new()),
        };
        if snapshot.point.log_loss <= DirectionCourse::BEGIN {
            path.push([size.ln(), turned]);
        }
        let endless = DirectionCourse::of(&path).filter(DirectionCourse::wanders);
        let answer = |rule: &StopRule| match (*rule, endless) {
            (StopRule::DirectionConverged { angle }, Some(course)) if turned < angle || course.growth >= PATIENCE => {
                Some(StopReason::NoLimitDirection { course })
            }
            (StopRule::DirectionConverged { angle }, None) if turned < angle => Some(StopReason::Rule(*rule)),
            _ => None,
        };
        let reason = self.rules.iter().find_map(answer);
        self.anchor = Some(Anchor { size, direction, path });
        reason
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
