//! From the description to the process that runs it: the only place that puts model, loss, optimiser or flow, schedule
//! and initial weights together.

use super::{AdmissibleDescent, Setup, Trainer, TrainingError};
use crate::data::{Dataset, Inputs};
use crate::diagnostics::{feature_bound, sparse_feature_bound};
use crate::driver::{Batching, Descent, FlowRun, Process};
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::objective::Objective;
use crate::optimisers::OptimiserSpec;
use crate::params::ParamLayout;

impl Setup {
    /// Model, data and loss as one oracle; the data may be others than those of the training, such as a test set.
    pub fn objective(&self, data: &Dataset) -> Result<Objective, TrainingError> {
        Ok(Objective::new(data, &self.model, &self.loss, self.reduction, self.compute)?)
    }

    /// The initial parameters.
    pub fn initial(&self, layout: &ParamLayout) -> Vec<f64> {
        self.initialiser.draw(layout, &mut Streams::new(self.seed).stream("init"))
    }

    /// The process at its first point; the objective is that of the data.
    pub fn start(&self, objective: Objective, data: &Dataset) -> Result<Box<dyn Process + Send>, TrainingError> {
        match &self.trainer {
            Trainer::Optimiser(spec) => Ok(Box::new(self.descent(spec, objective, data)?)),
            Trainer::Flow(spec) => {
                let params = self.initial(objective.layout());
                Ok(Box::new(FlowRun::new(objective, spec, self.tolerance, &params)?))
            }
        }
    }

    /// Descent with an optimiser at its first point, for those who need more of it than a process shows.
    pub fn descent(
        &self,
        spec: &OptimiserSpec,
        mut objective: Objective,
        data: &Dataset,
    ) -> Result<Descent, TrainingError> {
        let layout = objective.layout().clone();
        let params = self.initial(&layout);
        let mut schedule = self.schedule.clone().with_forgetting(spec.forgets());
        if schedule.needs_feature_bound() {
            schedule = schedule.with_feature_bound(bound(spec, data, &layout)?);
        }
        if schedule.needs_curvature() {
            let plain = *spec == OptimiserSpec::steepest(NormSpec::L2);
            if !plain || self.batching != Batching::Full {
                let why =
                    "it is known for gradient descent on all examples; use optimiser = \"gradient\" and full batches";
                return Err(TrainingError::NoAdmissibleStep { why: why.into() });
            }
            let found = AdmissibleDescent::new(&self.model, &self.loss, data, &mut objective, &params)?;
            let scale = found.margin.scale();
            schedule = schedule.with_curvature(scale.degree(), scale.log_start(), found.log_curvature);
        }
        let (optimiser, streams) = (spec.build(&layout)?, Streams::new(self.seed));
        Ok(Descent::new(objective, optimiser, schedule.build()?, self.batching, params, &streams)?)
    }
}

/// B = maxᵢ ‖xᵢ‖_* in the optimiser's own norm, ℓ2 where it has none (B eq. 12).
fn bound(spec: &OptimiserSpec, data: &Dataset, layout: &ParamLayout) -> Result<f64, TrainingError> {
    let norm = match spec {
        OptimiserSpec::Steepest { norm, .. } | OptimiserSpec::DualAcceleration { norm, .. } => norm.clone(),
        OptimiserSpec::Adjusted { of, .. } => return bound(of, data, layout),
        _ => NormSpec::L2,
    };
    largest_feature(&norm, data, layout)
}

/// maxᵢ ‖xᵢ‖_*; features have the shape of the weights where there is one weight for each of them.
pub(super) fn largest_feature(norm: &NormSpec, data: &Dataset, layout: &ParamLayout) -> Result<f64, TrainingError> {
    Ok(match &data.inputs {
        Inputs::Sparse(inputs) => sparse_feature_bound(inputs, norm)?,
        Inputs::Dense(inputs) if layout.len() == inputs.cols() => feature_bound(inputs, &mut *norm.build(layout)?),
        Inputs::Dense(inputs) => feature_bound(inputs, &mut *norm.build_vector(inputs.cols())?),
    })
}
