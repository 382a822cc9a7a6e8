//! Model, data and loss as one oracle: ln L and ∇L as a scale and a direction.
//!
//! ```text
//! θ ──scores──► Φ ──margins──► q ──loss──► ln L, weights −∂ ln L/∂q ──pull back──► ∇ ln L,   ∇L = L · ∇ ln L
//! ```
//!
//! The gradient of L is returned as [`LogScaled`] with `log_scale` = ln L and `direction` = ∇ ln L, so neither half
//! underflows at L = 10^−1000. Norms, potentials and steps are not known here.

mod error;
mod evaluation;

pub use error::ObjectiveError;
pub use evaluation::Evaluation;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use error::check_family;

use crate::data::Dataset;
use crate::engine::{Compute, Evaluator, Forward, Tangents};
pub use crate::engine::{Kink, KinkColumn};
use crate::losses::{Loss, LossFamily, LossSpec};
use crate::models::{DegreeGroup, Homogeneity, MarginMap, ModelSpec};
use crate::numeric::LogScaled;
use crate::params::{At, ParamLayout, Version};

/// Whether the loss is summed or averaged over the examples; a change of scale only, never of direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reduction {
    /// L = Σ ℓᵢ, the convention of all four papers' theorems.
    #[default]
    Sum,
    /// L = (1/N) Σ ℓᵢ.
    Mean,
}

/// The training problem: a function of the parameters.
///
/// ```
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::engine::Compute;
/// use limitpoint::linalg::Matrix;
/// use limitpoint::losses::LossSpec;
/// use limitpoint::models::ModelSpec;
/// use limitpoint::numeric::LogScaled;
/// use limitpoint::objective::{Objective, Reduction};
/// let data = Dataset::new("one point", Matrix::from_rows(&[&[1.0, 0.0]]), Targets::Binary(vec![1.0]), vec![2])?;
/// let mut objective =
///     Objective::new(&data, &ModelSpec::Linear, &LossSpec::Exponential, Reduction::Sum, Compute::default())?;
/// let theta = [5000.0, 0.0];
/// let evaluation = objective.forward(&theta);
/// assert_eq!(evaluation.log_loss(), -5000.0); // ln L
/// let mut gradient = LogScaled::zeros(2);
/// evaluation.backward(&theta, &mut gradient);
/// assert_eq!(gradient, LogScaled { log_scale: -5000.0, direction: vec![-1.0, 0.0] });
/// # Ok::<(), limitpoint::Error>(())
/// ```
pub struct Objective {
    evaluator: Box<dyn Evaluator>,
    map: MarginMap,
    loss: Box<dyn Loss>,
    reduction: Reduction,
    total: usize,
    /// The rows selected, while `in_batch`.
    batch: Vec<usize>,
    in_batch: bool,
    margins: Vec<f64>,
    weights: Vec<f64>,
    cotangent: Vec<f64>,
    log_loss: f64,
    /// The parameters whose forward pass the evaluator holds, not yet used up.
    alive: Option<Version>,
    /// Scores and margins of a trial.
    trial: [Vec<f64>; 2],
}

impl Objective {
    /// Puts the pieces together; refuses a loss that does not fit the targets.
    pub fn new(
        data: &Dataset,
        model: &ModelSpec,
        loss: &LossSpec,
        reduction: Reduction,
        compute: Compute,
    ) -> Result<Self, ObjectiveError> {
        check_family(data, loss)?;
        let evaluator = compute.engine()?.bind(&model.architecture_on(data)?, &data.inputs)?;
        Self::around(evaluator, data, loss, reduction)
    }

    /// The objective of a model that an engine has bound to the inputs of `data`.
    pub fn around(
        evaluator: Box<dyn Evaluator>,
        data: &Dataset,
        loss: &LossSpec,
        reduction: Reduction,
    ) -> Result<Self, ObjectiveError> {
        check_family(data, loss)?;
        let map = MarginMap::new(&data.targets);
        let (examples, outputs) = (evaluator.examples(), evaluator.outputs());
        if (examples, outputs) != (data.len(), map.outputs()) {
            return Err(ObjectiveError::Size { examples, outputs, rows: data.len(), needed: map.outputs() });
        }
        let mut objective = Self {
            total: examples,
            evaluator,
            map,
            loss: loss.build()?,
            reduction,
            batch: Vec::new(),
            in_batch: false,
            margins: Vec::new(),
            weights: Vec::new(),
            cotangent: Vec::new(),
            log_loss: f64::NAN,
            alive: None,
            trial: [Vec::new(), Vec::new()],
        };
        objective.resize();
        Ok(objective)
    }

    fn resize(&mut self) {
        let examples = self.evaluator.examples();
        self.margins.resize(examples * self.map.per_example(), 0.0);
        self.weights.resize(self.margins.len(), 0.0);
        self.cotangent.resize(examples * self.map.outputs(), 0.0);
    }

    /// Restricts the objective to these examples, or returns to all of them.
    pub fn select(&mut self, rows: Option<&[usize]>) {
        if rows.is_none() && !self.in_batch {
            return;
        }
        self.alive = None;
        self.in_batch = rows.is_some();
        self.batch.clear();
        self.batch.extend_from_slice(rows.unwrap_or_default());
        self.evaluator.select(rows);
        self.resize();
    }

    /// Evaluates the objective at `params`, unless the last evaluation was of exactly this version of them and is not
    /// used up.
    pub fn forward<'p>(&mut self, params: impl Into<At<'p>>) -> Evaluation<'_> {
        let at = params.into();
        if at.version.is_none() || at.version != self.alive {
            let pass = self.evaluator.forward(at);
            let rows = self.in_batch.then_some(self.batch.as_slice());
            self.map.margins(pass.scores(), rows, &mut self.margins);
            let sum = self.loss.evaluate(&self.margins, self.map.per_example(), &mut self.weights);
            self.log_loss = self.reduced(sum);
            self.alive = at.version;
        }
        Evaluation { objective: self }
    }

    /// The evaluation made last. Whoever asks knows that it was made at the parameters he goes on with, and that nobody
    /// has used it since; [`Objective::forward`] finds out by itself for [`crate::params::Parameters`].
    pub fn resume(&mut self) -> Evaluation<'_> {
        Evaluation { objective: self }
    }

    /// A sum over the current batch in the objective's reduction.
    fn reduced(&self, log_sum: f64) -> f64 {
        match self.reduction {
            Reduction::Sum => log_sum,
            Reduction::Mean => log_sum - (self.evaluator.examples() as f64).ln(),
        }
    }

    /// Turns the weights of the margins into cotangents of the scores.
    fn pull_weights(&mut self) {
        let rows = self.in_batch.then_some(self.batch.as_slice());
        self.map.pull_back(&self.weights, rows, &mut self.cotangent);
    }

    /// Margins of the last forward pass, [`Objective::per_example`] an example; residuals for regression.
    pub fn margins(&self) -> &[f64] {
        &self.margins
    }

    /// −∂ ln L/∂margins of the last forward pass.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// ln L of the last forward pass.
    pub fn log_loss(&self) -> f64 {
        self.log_loss
    }

    /// Margins per example.
    pub fn per_example(&self) -> usize {
        self.map.per_example()
    }

    /// Examples in the whole training set.
    pub fn total_examples(&self) -> usize {
        self.total
    }

    /// Whether the loss has a root at a finite point, as regression losses have.
    pub fn has_finite_root(&self) -> bool {
        self.loss.family() == LossFamily::Regression
    }

    /// Whether the task is regression, where margins are residuals.
    pub fn is_regression(&self) -> bool {
        self.map.is_regression()
    }

    /// Whether every margin of the last forward pass is positive: all examples are classified correctly.
    pub fn all_correct(&self) -> bool {
        !self.is_regression() && self.margins.iter().all(|q| *q > 0.0)
    }

    /// The share of examples whose margins are all positive.
    pub fn accuracy(&self) -> f64 {
        let correct = self.margins.chunks_exact(self.per_example()).filter(|q| q.iter().all(|q| *q > 0.0)).count();
        correct as f64 / self.evaluator.examples().max(1) as f64
    }

    /// The loss.
    pub fn loss(&self) -> &dyn Loss {
        &*self.loss
    }

    /// How the loss is reduced over examples.
    pub fn reduction(&self) -> Reduction {
        self.reduction
    }

    /// Names and shapes of the parameters.
    pub fn layout(&self) -> &ParamLayout {
        self.evaluator.layout()
    }

    /// Homogeneity of the model.
    pub fn homogeneity(&self) -> Option<&Homogeneity> {
        self.evaluator.homogeneity()
    }

    /// The trained layers with their degrees, without the biases that break homogeneity.
    pub fn layer_degrees(&self) -> &[DegreeGroup] {
        &self.evaluator.bound().layers
    }

    /// What keeps the engine from computing, if something does.
    pub fn failure(&self) -> Option<&str> {
        self.evaluator.bound().failure.as_deref()
    }

    /// The evaluator, for what an objective does not answer.
    pub fn evaluator(&mut self) -> &mut dyn Evaluator {
        self.alive = None;
        &mut *self.evaluator
    }

    /// The model for those who look closer, if its engine can.
    pub fn tangents(&mut self) -> Result<&mut dyn Tangents, ObjectiveError> {
        let found = self.evaluator.tangents();
        if found.is_some() {
            self.alive = None;
        }
        found.ok_or(ObjectiveError::NoTangents)
    }

    /// ln L after `params[entry]` is changed by `change`, given that `params` were last given to
    /// [`Objective::forward`]; see [`Tangents::scores_after`].
    pub fn log_loss_after(&mut self, params: &[f64], entry: usize, change: f64) -> f64 {
        self.alive = None;
        let [scores, margins] = &mut self.trial;
        scores.resize(self.cotangent.len(), 0.0);
        margins.resize(self.margins.len(), 0.0);
        match self.evaluator.tangents() {
            Some(tangents) => tangents.scores_after(params, entry, change, scores),
            None => {
                let mut moved = params.to_vec();
                moved[entry] += change;
                scores.copy_from_slice(self.evaluator.scores(&moved));
            }
        }
        self.map.margins(scores, self.in_batch.then_some(self.batch.as_slice()), margins);
        let sum = self.loss.log_loss(margins, self.map.per_example());
        self.reduced(sum)
    }

    /// Kinks that a step of length `radius` can reach; see [`crate::engine::Kinks::near`].
    pub fn kinks(&mut self, params: &[f64], radius: f64) -> Vec<Kink> {
        self.tangents().map_or_else(|_| Vec::new(), |model| model.kinks_near(params, radius))
    }

    /// min |z| over the preactivations with a kink; NaN for smooth models, and where the engine does not say.
    pub fn smallest_preactivation(&mut self, params: &[f64]) -> f64 {
        self.tangents().ok().and_then(|model| model.smallest_preactivation(params)).unwrap_or(f64::NAN)
    }

    /// How ∇ ln L changes with the slope at each kink, after a backward pass; see [`crate::engine::Kinks::columns`].
    pub fn kink_columns(&mut self, params: &[f64], kinks: &[Kink]) -> Vec<KinkColumn> {
        self.alive = None;
        let Some(model) = self.evaluator.tangents() else { return Vec::new() };
        model.kink_columns(params, &self.cotangent, kinks)
    }

    /// ∇L with slope (1 − e)·left + e·right at the given kinks: an element of the Clarke subdifferential, at the
    /// parameters last given to [`Objective::forward`].
    pub fn backward_at_kinks(&mut self, params: &[f64], kinks: &[(Kink, f64)], gradient: &mut LogScaled) {
        let weigh = |evaluator: &mut dyn Evaluator, kinks: &[(Kink, f64)]| {
            if let Some(model) = evaluator.tangents() {
                model.weigh_kinks(kinks);
            }
        };
        weigh(&mut *self.evaluator, kinks);
        self.evaluator.score(params.into());
        self.resume().backward(params, gradient);
        weigh(&mut *self.evaluator, &[]);
    }
}
