//! What is trained, and how: everything but the data.

use super::{Trainer, TrainingError};
use crate::certificates::{Measure, RunClaim};
use crate::data::{Dataset, Targets};
use crate::driver::Batching;
use crate::engine::Compute;
use crate::flows::Tolerance;
use crate::losses::LossSpec;
use crate::models::{Initialiser, ModelSpec};
use crate::norms::NormSpec;
use crate::objective::Reduction;
use crate::observers::StopRule;
use crate::optimisers::OptimiserSpec;
use crate::schedules::ScheduleSpec;

/// A training without its data; no machine is built before it is run.
///
/// | setting | default | purpose |
/// |---|---|---|
/// | `model`, `loss` | required; [`default_loss`] of a [`super::Training`] | the problem |
/// | `reduction` | sum | whether the loss is summed or averaged |
/// | `initialiser` | He normal | the start |
/// | `trainer` | gradient descent | who trains: an optimiser or a flow |
/// | `schedule` | flow-resolved, 0.05 | step sizes of an optimiser |
/// | `tolerance` | 10⁻⁹ relative, 10⁻¹² absolute | local error of a flow |
/// | `batching` | all examples | examples of a step |
/// | `stop` | none | rules that end a run, whichever holds first |
/// | `seed` | 0 | draws the start and the order of batches |
/// | `compute` | one thread, f64 | how the products are computed; threads change no bit |
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The model.
    pub model: ModelSpec,
    /// The loss.
    pub loss: LossSpec,
    /// Whether the loss is summed or averaged over examples.
    pub reduction: Reduction,
    /// Where training starts.
    pub initialiser: Initialiser,
    /// Who trains.
    pub trainer: Trainer,
    /// Step sizes of an optimiser.
    pub schedule: ScheduleSpec,
    /// Local error of a flow.
    pub tolerance: Tolerance,
    /// How examples are shared out over steps.
    pub batching: Batching,
    /// When a run ends.
    pub stop: Vec<StopRule>,
    /// Draws the start and the order of batches.
    pub seed: u64,
    /// How the products are computed.
    pub compute: Compute,
}

/// Step sizes where nobody says which: no margin moves by more than 0.05 in a step.
pub fn default_schedule() -> ScheduleSpec {
    ScheduleSpec::flow_resolved(0.05)
}

/// The start where nobody says which.
pub fn default_initialiser() -> Initialiser {
    Initialiser::HeNormal { scale: 1.0 }
}

/// The loss that people use for such targets: logistic, cross-entropy or squared.
pub fn default_loss(targets: &Targets) -> LossSpec {
    match targets {
        Targets::Binary(_) => LossSpec::Logistic,
        Targets::Classes { .. } => LossSpec::CrossEntropy,
        Targets::Values(_) => LossSpec::Squared,
    }
}

impl Setup {
    /// A model and a loss, and defaults for everything else.
    pub fn new(model: ModelSpec, loss: LossSpec) -> Self {
        Self {
            model,
            loss,
            reduction: Reduction::default(),
            initialiser: default_initialiser(),
            trainer: Trainer::Optimiser(OptimiserSpec::steepest(NormSpec::L2)),
            schedule: default_schedule(),
            tolerance: Tolerance::default(),
            batching: Batching::default(),
            stop: Vec::new(),
            seed: 0,
            compute: Compute::default(),
        }
    }

    /// Refuses a run that would never end, and rules that no number can meet.
    pub fn check_stop(&self) -> Result<(), TrainingError> {
        if self.stop.is_empty() {
            return Err(TrainingError::NeverStops);
        }
        let number = |rule: &StopRule| match *rule {
            StopRule::LogLoss { target } => ("ln L =", target),
            StopRule::LogTime { target } => ("ln Σ η =", target),
            StopRule::DirectionConverged { angle } => ("a turn of", angle),
            StopRule::Steps { .. } => ("", 0.0),
        };
        match self.stop.iter().map(number).find(|(_, value)| !value.is_finite()) {
            Some((what, value)) => Err(TrainingError::NoNumber { what, value }),
            None => Ok(()),
        }
    }

    /// What is known about the limit on these data: in `norm`, or else in the geometry of who trains.
    ///
    /// Linear models have the largest margin there is, networks a stationary one; in regression mirror descent and
    /// gradient descent in quadratic norms end at the solution of Xw = y nearest to their start.
    pub fn claim(&self, data: &Dataset, norm: Option<&NormSpec>) -> Result<RunClaim, TrainingError> {
        let refuse = |why: &str| TrainingError::NoClaim { why: why.to_owned() };
        let measure = norm.map_or_else(|| self.trainer.measure(), |norm| Some(Measure::Norm(norm.clone())));
        let measure = measure.ok_or_else(|| refuse(&self.trainer.no_measure()))?;
        match (&data.targets, self.model.is_linear()) {
            (Targets::Values(_), true) => {
                let why = "its limit in regression is known for mirror descent and quadratic norms only";
                let potential = measure.potential().ok_or_else(|| refuse(why))?;
                Ok(RunClaim::NearestSolution { potential })
            }
            (Targets::Values(_), false) => Err(refuse("the limit of a network in regression is not known")),
            (_, true) => Ok(RunClaim::LargestMargin { measure }),
            (_, false) => Ok(RunClaim::StationaryMargin { measure }),
        }
    }
}
