//! What a descent needs to go on bit for bit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::numeric::StreamState;
use crate::optimisers::OptimiserState;
use crate::schedules::ScheduleState;

/// How examples are shared out over steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Batching {
    /// Every step sees all examples.
    #[default]
    Full,
    /// Every epoch is a fresh permutation, cut into batches of this size (the last one may be smaller).
    Mini {
        /// Examples per step.
        size: usize,
    },
}

/// Everything needed to go on bit for bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DescentState {
    /// θ.
    pub params: Vec<f64>,
    /// What the optimiser remembers.
    pub optimiser: OptimiserState,
    /// What the schedule remembers.
    pub schedule: ScheduleState,
    /// Accepted steps.
    pub step: u64,
    /// Accepted epochs.
    pub epoch: u64,
    /// ln Σ η.
    pub log_time: f64,
    /// ln L of the last full evaluation, in the objective's reduction, and whether all examples were correct.
    pub full_loss: (f64, bool),
    /// The order stream at the start of the current epoch, and the batches of it already used.
    pub order: (StreamState, usize),
    /// The start of the current epoch, where the schedule may go back to it.
    pub epoch_start: Option<EpochStart>,
}

/// What a rejected epoch returns to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochStart {
    /// θ.
    pub params: Vec<f64>,
    /// What the optimiser remembered.
    pub optimiser: OptimiserState,
    /// Accepted steps.
    pub step: u64,
    /// ln Σ η.
    pub log_time: f64,
}
