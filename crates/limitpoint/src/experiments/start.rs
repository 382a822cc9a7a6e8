//! From a task to the process that runs it: the start, the trainer, the stop rules, and a word about its step size.

use std::f64::consts::LN_10;

use super::RunError;
use super::admissible::AdmissibleDescent;
use super::task::{Task, Trainer};
use crate::data::{Dataset, Inputs, Targets};
use crate::diagnostics::{feature_bound, sparse_feature_bound};
use crate::driver::{Batching, Descent, FlowRun, Process};
use crate::linalg::{Eigen, Matrix, matmul_nt, matmul_tn};
use crate::losses::LossSpec;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::objective::{Objective, Reduction};
use crate::observers::StopRule;
use crate::optimisers::{OptimiserSpec, Scaling};
use crate::params::ParamLayout;
use crate::schedules::ScheduleSpec;

/// The shorter side up to which the largest curvature of the squared loss is computed exactly.
const EXACT_SIDE: usize = 400;

impl Task {
    /// The initial parameters.
    pub fn initial(&self, layout: &ParamLayout) -> Vec<f64> {
        self.recipe.initialiser.draw(layout, &mut Streams::new(self.label.seed).stream("init"))
    }

    /// The process at its first point.
    pub fn start(&self, mut objective: Objective, data: &Dataset) -> Result<Box<dyn Process>, RunError> {
        let params = self.initial(objective.layout());
        match self.trainer() {
            Some(Trainer::Optimiser(spec, schedule)) => {
                let layout = objective.layout().clone();
                let mut schedule = Self::remembering(spec, schedule);
                if schedule.needs_feature_bound() {
                    schedule = schedule.with_feature_bound(bound(spec, data, &layout)?);
                }
                if schedule.needs_curvature() {
                    let recipe = &self.recipe;
                    let plain = *spec == OptimiserSpec::steepest(NormSpec::L2);
                    if !plain || recipe.batching != Batching::Full {
                        let why = "it is known for gradient descent on all examples; use optimiser = \"gradient\" and full batches";
                        return Err(RunError::NoAdmissibleStep { why: why.into() });
                    }
                    let found = AdmissibleDescent::new(&recipe.model, &recipe.loss, data, &mut objective, &params)?;
                    let scale = found.margin.scale();
                    schedule = schedule.with_curvature(scale.degree(), scale.log_start(), found.log_curvature);
                }
                let (optimiser, streams) = (spec.build(&layout)?, Streams::new(self.label.seed));
                let batching = self.recipe.batching;
                Ok(Box::new(Descent::new(objective, optimiser, schedule.build()?, batching, params, &streams)?))
            }
            Some(Trainer::Flow(spec)) => Ok(Box::new(FlowRun::new(objective, spec, self.recipe.tolerance, &params)?)),
            None => Err(RunError::NoTrainer { name: self.label.optimiser.clone() }),
        }
    }

    /// The stop rules that the driver watches.
    pub fn stop_rules(&self) -> Vec<StopRule> {
        let stop = &self.recipe.stop;
        let parts = [
            stop.log10_loss.map(|target| StopRule::LogLoss { target: target * LN_10 }),
            stop.steps.map(|count| StopRule::Steps { count }),
            stop.log10_time.map(|target| StopRule::LogTime { target: target * LN_10 }),
            stop.direction.map(|angle| StopRule::DirectionConverged { angle }),
        ];
        parts.into_iter().flatten().collect()
    }

    /// What to know about a fixed step size of steepest descent on a linear model that is longer than any proof covers;
    /// nothing where it is not, or where no bound is known.
    ///
    /// ```text
    /// exponential, logistic    η ≤ 1/(B² L(θ₀)),  B = maxₙ ‖xₙ‖_*                    B Theorem 5 and Lemma 12
    /// squared                  η < 2/M,  M = 2 λ_max(XᵀX) in ℓ2, 2 Σ ‖xₙ‖_*² beyond
    /// ```
    pub fn step_warning(&self, objective: &mut Objective, data: &Dataset) -> Result<Option<String>, RunError> {
        let Some(Trainer::Optimiser(
            OptimiserSpec::Steepest { norm, scaling: Scaling::DualNorm, .. },
            ScheduleSpec::Constant { rate } | ScheduleSpec::Polynomial { rate, .. },
        )) = self.trainer()
        else {
            return Ok(None);
        };
        if !self.recipe.model.is_linear() || matches!(data.targets, Targets::Classes { .. }) {
            return Ok(None);
        }
        let layout = objective.layout().clone();
        let per_example = if self.recipe.reduction == Reduction::Mean { 1.0 / data.len() as f64 } else { 1.0 };
        let (bound, words) = match self.recipe.loss {
            LossSpec::Exponential | LossSpec::Logistic => {
                let b = largest_feature(norm, data, &layout)?;
                let loss = objective.forward(&self.initial(&layout)).exp();
                let words = format!("1/(B² L(θ₀)) with B = max ‖x‖_* = {b:.4} and L(θ₀) = {loss:.4}, B Theorem 5");
                (1.0 / (b * b * loss), words)
            }
            LossSpec::Squared | LossSpec::Huber { .. } => {
                let Inputs::Dense(inputs) = &data.inputs else { return Ok(None) };
                let shorter = data.len().min(data.dimension());
                let (curvature, words) = if *norm == NormSpec::L2 && shorter <= EXACT_SIDE {
                    (2.0 * largest_eigenvalue(inputs)?, "2/(2 λ_max(XᵀX)), beyond which descent is unstable")
                } else {
                    let mut worker = norm.build(&layout)?;
                    let total: f64 = (0..data.len()).map(|n| worker.dual(inputs.row(n)).powi(2)).sum();
                    (2.0 * total, "2/(2 Σ ‖x‖_*²), below which the loss is proven to fall")
                };
                (2.0 / (curvature * per_example), words.to_owned())
            }
            _ => return Ok(None),
        };
        Ok((*rate > bound).then(|| {
            format!("warning: the step size {rate} is above {bound:.4e} = {words}; the loss may rise. Lower it.")
        }))
    }
}

/// B = maxᵢ ‖xᵢ‖_* in the optimiser's own norm, ℓ2 where it has none (B eq. 12).
fn bound(spec: &OptimiserSpec, data: &Dataset, layout: &ParamLayout) -> Result<f64, RunError> {
    let norm = match spec {
        OptimiserSpec::Steepest { norm, .. } | OptimiserSpec::DualAcceleration { norm, .. } => norm.clone(),
        OptimiserSpec::Adjusted { of, .. } => return bound(of, data, layout),
        _ => NormSpec::L2,
    };
    largest_feature(&norm, data, layout)
}

/// maxᵢ ‖xᵢ‖_*; features have the shape of the weights where there is one weight for each of them.
fn largest_feature(norm: &NormSpec, data: &Dataset, layout: &ParamLayout) -> Result<f64, RunError> {
    Ok(match &data.inputs {
        Inputs::Sparse(inputs) => sparse_feature_bound(inputs, norm)?,
        Inputs::Dense(inputs) if layout.len() == inputs.cols => feature_bound(inputs, &mut *norm.build(layout)?),
        Inputs::Dense(inputs) => feature_bound(inputs, &mut *norm.build_vector(inputs.cols)?),
    })
}

/// λ_max(XᵀX), from the smaller of XᵀX and XXᵀ.
fn largest_eigenvalue(x: &Matrix) -> Result<f64, RunError> {
    let size = x.rows.min(x.cols);
    let mut gram = vec![0.0; size * size];
    if x.rows <= x.cols {
        matmul_nt(&mut gram, &x.data, &x.data, x.rows, x.cols, x.rows);
    } else {
        matmul_tn(&mut gram, &x.data, &x.data, x.cols, x.rows, x.cols);
    }
    let mut eigen = Eigen::new(size);
    eigen.factor(&gram).map_err(crate::Error::from).map_err(Box::new)?;
    Ok(eigen.values().iter().copied().fold(0.0, f64::max))
}
