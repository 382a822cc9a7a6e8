//! A run at its end.

use std::f64::consts::LN_10;
use std::sync::Arc;

use super::{Judgement, Metrics, Setup, TrainingError};
use crate::certificates::{Subject, Tolerances};
use crate::data::{Dataset, Targets};
use crate::diagnostics::DirectionCourse;
use crate::engine::Forward;
use crate::norms::NormSpec;
use crate::observers::StopReason;
use crate::params::ParamLayout;

/// What a training came to.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedRun {
    /// On which data.
    pub data: Arc<Dataset>,
    /// What was done.
    pub setup: Setup,
    /// Names and shapes of the parameters.
    pub layout: ParamLayout,
    /// Where it started.
    pub start: Vec<f64>,
    /// Where it ended.
    pub params: Vec<f64>,
    /// ln of the summed loss there.
    pub log_loss: f64,
    /// ln of the time travelled, Σ η for descent and t for flows.
    pub log_time: f64,
    /// Accepted steps.
    pub steps: u64,
    /// Why it ended.
    pub reason: StopReason,
    /// What was recorded; empty if nothing was asked for.
    pub metrics: Metrics,
    /// The path of the direction, where it was followed and is long enough to tell whether it ends.
    pub course: Option<DirectionCourse>,
}

impl TrainedRun {
    /// log₁₀ of the summed loss.
    pub fn log10_loss(&self) -> f64 {
        self.log_loss / LN_10
    }

    /// The scores of the model on data, example after example.
    pub fn scores(&self, data: &Dataset) -> Result<Vec<f64>, TrainingError> {
        Ok(self.setup.objective(data)?.evaluator().scores(&self.params).to_vec())
    }

    /// The share of examples that are classified correctly; not a number in regression.
    pub fn accuracy(&self, data: &Dataset) -> Result<f64, TrainingError> {
        let mut objective = self.setup.objective(data)?;
        objective.forward(&self.params);
        Ok(if objective.is_regression() { f64::NAN } else { objective.accuracy() })
    }

    /// The normalised margin min q/‖θ‖^L on the training data, negative where an example is still wrong.
    pub fn margin<N: TryInto<NormSpec>>(&self, norm: N) -> Result<f64, TrainingError>
    where
        TrainingError: From<N::Error>,
    {
        let mut objective = self.setup.objective(&self.data)?;
        if objective.is_regression() {
            return Err(TrainingError::NoMargin { why: "the targets are real numbers" });
        }
        let Some(degree) = objective.homogeneity().map(|homogeneity| homogeneity.degree) else {
            return Err(TrainingError::NoMargin { why: "the model is not homogeneous" });
        };
        let size = norm.try_into()?.build(&self.layout)?.value(&self.params);
        objective.forward(&self.params);
        let least = |least: f64, q: &f64| if *q < least || q.is_nan() { *q } else { least };
        Ok(objective.margins().iter().fold(f64::INFINITY, least) / size.powf(degree))
    }

    /// Judges what theory says of the limit in this norm: that a linear model has the largest margin there is, which
    /// exact solvers bracket; that a network is at a stationary point of it; in regression, that the nearest solution
    /// was found. The same claim, judge and tolerances as `limitpoint certify`.
    pub fn certify<N: TryInto<NormSpec>>(&self, norm: N) -> Result<Judgement, TrainingError>
    where
        TrainingError: From<N::Error>,
    {
        self.decide(Some(&norm.try_into()?), Tolerances::default())
    }

    /// The same in the geometry of who trained.
    pub fn certify_own(&self) -> Result<Judgement, TrainingError> {
        self.decide(None, Tolerances::default())
    }

    /// The same as exactly as one likes; without a norm, in the geometry of who trained.
    pub fn decide(&self, norm: Option<&NormSpec>, tolerances: Tolerances) -> Result<Judgement, TrainingError> {
        let claim = self.setup.claim(&self.data, norm)?;
        let start = matches!(self.data.targets, Targets::Values(_)).then_some(self.start.as_slice());
        let subject = Subject { data: &self.data, model: &self.setup.model, weights: &self.params, start };
        Ok(Judgement::of(claim, tolerances, &subject, self.course)?)
    }
}
