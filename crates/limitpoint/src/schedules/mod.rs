//! Step-size rules: from the step count, the log loss and the outcome of the last trial to ln η.
//!
//! A step size lives as its logarithm. Late in training the rules that follow the loss ask for η = α/L with L =
//! 10^−2000; ln η = ln α − ln L is an ordinary number and multiplies an equally scaled gradient exactly.
//!
//! Some rules look at what a step did before they let it stand: the caller keeps the old point, shows the outcome to
//! [`Schedule::review`], and goes back when the review is [`Review::Redo`]. Users: `optimisers`, `driver`.
//!
//! | file | rule |
//! |---|---|
//! | `constant` | η = rate |
//! | `polynomial` | η = rate · (t + 1)^−power |
//! | `rescaled` | η = rate, then factor · rate/L once the data are fitted |
//! | `linear_bound` | η = min{cap, c/(B² L)} |
//! | `loss_based` | η = α/L, α raised after epochs that lower the loss |
//! | `admissible` | η = c μ(L)/(C κ(L)), the bound (S5) of smooth homogeneous networks |
//! | `flow_resolved` | η = α/L, α kept so that no margin moves by more than c, nor ln L faster than a memory fades |

use serde::{Deserialize, Serialize};

mod adaptation;

mod admissible;
mod constant;
mod flow_resolved;
mod linear_bound;
mod loss_based;
mod polynomial;
mod rescaled;

mod error;
mod spec;
#[cfg(test)]
mod tests;
mod text;

pub use error::ScheduleError;
pub use spec::ScheduleSpec;

/// Redos in a row after which a rule says [`Review::GiveUp`].
pub const LARGEST_REDO_COUNT: u32 = 200;

/// What a rule may know before a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepContext {
    /// Accepted steps so far, from 0.
    pub step: u64,
    /// Accepted epochs so far, from 0.
    pub epoch: u64,
    /// ln of the objective, in its own reduction (sum or mean), at the current point.
    pub log_loss: f64,
    /// Whether every training example is classified correctly.
    pub all_correct: bool,
}

/// What a trial step (or epoch, see [`ReviewPeriod`]) did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialOutcome {
    /// ln of the objective before.
    pub log_loss_before: f64,
    /// ln of the objective after.
    pub log_loss_after: f64,
    /// maxᵢ |Δqᵢ|, the largest change of a margin.
    pub largest_margin_change: f64,
}

/// What to do with a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// Keep the new point.
    Accept,
    /// Return to the old point and try again with the new step size.
    Redo,
    /// Return to the old point and stop: [`LARGEST_REDO_COUNT`] trials in a row have failed.
    GiveUp,
}

/// How often a rule wants to see an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewPeriod {
    /// Every trial stands; [`Schedule::review`] always accepts.
    Never,
    /// After every step.
    Step,
    /// After every epoch; the steps within an epoch stand or fall together.
    Epoch,
}

/// A step-size rule.
///
/// ```
/// use limitpoint::schedules::{ScheduleSpec, StepContext};
/// let mut schedule = "rescaled(rate=0.5)".parse::<ScheduleSpec>()?.build()?;
/// let context = StepContext { step: 9, epoch: 9, log_loss: -5000.0, all_correct: true };
/// assert!((schedule.log_step(&context) - (5000.0 + (0.1f64 * 0.5).ln())).abs() < 1e-9);
/// # Ok::<(), limitpoint::schedules::ScheduleError>(())
/// ```
pub trait Schedule: Send + std::fmt::Debug {
    /// ln η for the next step. A NaN loss gives NaN to every rule that uses the loss.
    fn log_step(&mut self, context: &StepContext) -> f64;

    /// How often [`Schedule::review`] is to be called.
    fn review_period(&self) -> ReviewPeriod {
        ReviewPeriod::Never
    }

    /// Whether the caller must be able to return to the old point.
    fn may_redo(&self) -> bool {
        self.review_period() != ReviewPeriod::Never
    }

    /// Judges a trial and adapts the rule.
    fn review(&mut self, _outcome: &TrialOutcome) -> Review {
        Review::Accept
    }

    /// All that the rule remembers; enough to go on bit for bit.
    fn state(&self) -> ScheduleState {
        ScheduleState::Stateless
    }

    /// Goes back to a state taken from the same kind of rule.
    fn restore(&mut self, state: &ScheduleState) -> Result<(), ScheduleError> {
        match state {
            ScheduleState::Stateless => Ok(()),
            other => Err(ScheduleError::State { expected: "stateless", found: other.kind() }),
        }
    }
}

/// What a rule remembers between steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ScheduleState {
    /// Nothing: the rule is a function of the context.
    Stateless,
    /// The memory of a rule η = α/L with an adapted α.
    Adaptive {
        /// ln α.
        log_alpha: f64,
        /// ln of the loss that α is divided by, where it is held fixed during an epoch.
        log_reference: Option<f64>,
        /// Redos since the last acceptance.
        redos: u32,
    },
}

impl ScheduleState {
    /// The name of the variant.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stateless => "stateless",
            Self::Adaptive { .. } => "adaptive",
        }
    }
}
