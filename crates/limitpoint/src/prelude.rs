//! What a program that trains and judges something needs: `use limitpoint::prelude::*;`.
//!
//! [`Training`] with what it is told ([`ModelSpec`], [`OptimiserSpec`], …, or their texts), data to train on, and what
//! comes back. Everything else is found in its module.

pub use crate::certificates::{Tolerances, Verdict};
pub use crate::data::{DataSpec, DataSplit, Dataset, Digits, Gaussians, Regression, Targets, TeacherStudent};
pub use crate::diagnostics::InstrumentSpec;
pub use crate::engine::{Compute, Device, Forward, Precision};
pub use crate::experiments::{RecipeSource, plan};
pub use crate::flows::FlowSpec;
pub use crate::linalg::Matrix;
pub use crate::losses::LossSpec;
pub use crate::models::{Activation, Initialiser, ModelSpec};
pub use crate::norms::NormSpec;
pub use crate::numeric::Streams;
pub use crate::observers::{Snapshot, Spacing, StopReason, StopRule};
pub use crate::optimisers::OptimiserSpec;
pub use crate::potentials::PotentialSpec;
pub use crate::schedules::ScheduleSpec;
pub use crate::training::{Judgement, Metrics, RunningTraining, TrainedRun, Training, TrainingError};
