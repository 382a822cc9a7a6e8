//! Model, data and loss as one oracle: ln L and ∇L as a scale and a direction.
//!
//! ```text
//! θ ──scores──► Φ ──margins──► q ──loss──► ln L, weights −∂ ln L/∂q ──pull back──► ∇ ln L,   ∇L = L · ∇ ln L
//! ```
//!
//! The gradient of L is returned as [`LogScaled`] with `log_scale` = ln L and `direction` = ∇ ln L, so neither half
//! underflows at L = 10^−1000. Norms, potentials and steps are not known here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::{Dataset, Targets};
use crate::losses::{Loss, LossError, LossFamily, LossSpec};
use crate::models::{Compute, Homogeneity, MarginMap, Model, ModelError, ModelSpec};
pub use crate::models::{Kink, KinkColumn};
use crate::numeric::LogScaled;
use crate::params::{Move, ParamLayout, Stamped};

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

/// What an objective can refuse.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectiveError {
    /// A loss of the wrong family for the targets.
    #[error("the loss '{loss}' needs {needs}, but the data '{data}' has {found}; choose {remedy}")]
    Mismatch {
        /// Key of the loss.
        loss: &'static str,
        /// Targets it needs.
        needs: &'static str,
        /// Name of the data.
        data: String,
        /// Targets there are.
        found: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Nothing to tell apart.
    #[error("the data '{data}' has {count} class; a margin needs at least 2")]
    TooFewClasses {
        /// Name of the data.
        data: String,
        /// Classes there are.
        count: usize,
    },
    /// The model was refused.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The loss was refused.
    #[error(transparent)]
    Loss(#[from] LossError),
}

/// The training problem: a function of the parameters.
///
/// ```
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::losses::LossSpec;
/// use limitpoint::models::{Compute, ModelSpec};
/// use limitpoint::numeric::LogScaled;
/// use limitpoint::objective::{Objective, Reduction};
/// let data = Dataset::new("one point", Matrix::from_rows(&[&[1.0, 0.0]]), Targets::Binary(vec![1.0]), vec![2])?;
/// let mut objective =
///     Objective::new(&data, &ModelSpec::Linear, &LossSpec::Exponential, Reduction::Sum, Compute::default())?;
/// let theta = [5000.0, 0.0];
/// assert_eq!(objective.forward(&theta), -5000.0); // ln L
/// let mut gradient = LogScaled::zeros(2);
/// objective.backward(&theta, &mut gradient);
/// assert_eq!(gradient, LogScaled { log_scale: -5000.0, direction: vec![-1.0, 0.0] });
/// # Ok::<(), limitpoint::Error>(())
/// ```
pub struct Objective {
    model: Box<dyn Model>,
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
        let map = MarginMap::new(&data.targets);
        let model = model.build(&data.inputs, map.outputs(), compute)?;
        let mut objective = Self {
            total: model.examples(),
            model,
            map,
            loss: loss.build()?,
            reduction,
            batch: Vec::new(),
            in_batch: false,
            margins: Vec::new(),
            weights: Vec::new(),
            cotangent: Vec::new(),
            log_loss: f64::NAN,
            trial: [Vec::new(), Vec::new()],
        };
        objective.resize();
        Ok(objective)
    }

    fn resize(&mut self) {
        let examples = self.model.examples();
        self.margins.resize(examples * self.map.per_example(), 0.0);
        self.weights.resize(self.margins.len(), 0.0);
        self.cotangent.resize(examples * self.map.outputs(), 0.0);
    }

    /// Restricts the objective to these examples, or returns to all of them.
    pub fn select(&mut self, rows: Option<&[usize]>) {
        if rows.is_none() && !self.in_batch {
            return;
        }
        self.in_batch = rows.is_some();
        self.batch.clear();
        self.batch.extend_from_slice(rows.unwrap_or_default());
        self.model.select(rows);
        self.resize();
    }

    /// ln L at `params`; keeps what [`Objective::backward`] needs. A NaN anywhere gives NaN.
    pub fn forward(&mut self, params: &[f64]) -> f64 {
        self.judge(|model| model.scores(params))
    }

    /// [`Objective::forward`] at parameters that [`Objective::descend`] may have moved last, which saves the model
    /// work.
    pub fn forward_of(&mut self, params: &Stamped) -> f64 {
        self.judge(|model| model.scores_of(params))
    }

    fn judge(&mut self, scores: impl for<'a> FnOnce(&'a mut dyn Model) -> &'a [f64]) -> f64 {
        let scores = scores(&mut *self.model);
        self.map.margins(scores, self.in_batch.then_some(self.batch.as_slice()), &mut self.margins);
        let sum = self.loss.evaluate(&self.margins, self.map.per_example(), &mut self.weights);
        self.log_loss = self.reduced(sum);
        self.log_loss
    }

    /// A sum over the current batch in the objective's reduction.
    fn reduced(&self, log_sum: f64) -> f64 {
        match self.reduction {
            Reduction::Sum => log_sum,
            Reduction::Mean => log_sum - (self.model.examples() as f64).ln(),
        }
    }

    /// ∇L at the parameters last given to [`Objective::forward`]; call it at most once after each forward.
    pub fn backward(&mut self, params: &[f64], gradient: &mut LogScaled) {
        self.map.pull_back(&self.weights, self.in_batch.then_some(self.batch.as_slice()), &mut self.cotangent);
        self.model.pull_back(params, &self.cotangent, &mut gradient.direction);
        gradient.log_scale = self.log_loss;
    }

    /// A move with ∇ ln L at the parameters last given to [`Objective::forward`], once after each forward: what
    /// [`Objective::backward`] and [`Objective::make_move`] do, in one pass where the model can. `scratch` is as long
    /// as the parameters and holds nothing of use afterwards. Answers whether an entry of the gradient was not zero.
    pub fn descend(&mut self, params: &mut Stamped, plain: Move, scratch: &mut [f64]) -> bool {
        self.map.pull_back(&self.weights, self.in_batch.then_some(self.batch.as_slice()), &mut self.cotangent);
        self.model.descend(params, &self.cotangent, plain, scratch)
    }

    /// A move of the parameters on the model's threads.
    pub fn make_move(&mut self, params: &mut [f64], plain: Move, gradient: &[f64]) {
        self.model.make_move(params, plain, gradient);
    }

    /// Σₖ `weights`ₖ ∇qₖ, for any weights of the margins, at the parameters last given to [`Objective::forward`].
    pub fn pull_back_margins(&mut self, params: &[f64], weights: &[f64], out: &mut [f64]) {
        self.map.pull_back(weights, self.in_batch.then_some(self.batch.as_slice()), &mut self.cotangent);
        self.cotangent.iter_mut().for_each(|c| *c = -*c);
        self.model.pull_back(params, &self.cotangent, out);
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
        correct as f64 / self.model.examples().max(1) as f64
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
        self.model.layout()
    }

    /// Homogeneity of the model.
    pub fn homogeneity(&self) -> Option<&Homogeneity> {
        self.model.homogeneity()
    }

    /// The model itself, for diagnostics.
    pub fn model_mut(&mut self) -> &mut dyn Model {
        &mut *self.model
    }

    /// ln L after `params[entry]` is changed by `change`, given that `params` were last given to
    /// [`Objective::forward`]; see [`Model::scores_after`].
    pub fn log_loss_after(&mut self, params: &[f64], entry: usize, change: f64) -> f64 {
        let [scores, margins] = &mut self.trial;
        scores.resize(self.cotangent.len(), 0.0);
        margins.resize(self.margins.len(), 0.0);
        self.model.scores_after(params, entry, change, scores);
        self.map.margins(scores, self.in_batch.then_some(self.batch.as_slice()), margins);
        let sum = self.loss.log_loss(margins, self.map.per_example());
        self.reduced(sum)
    }

    /// Kinks that a step of length `radius` can reach; see [`Model::kinks`].
    pub fn kinks(&mut self, params: &[f64], radius: f64) -> Vec<Kink> {
        self.model.kinks(params, radius)
    }

    /// min |z| over the preactivations with a kink; NaN for smooth models. Undoes the forward pass.
    pub fn smallest_preactivation(&mut self, params: &[f64]) -> f64 {
        self.model.smallest_preactivation(params).unwrap_or(f64::NAN)
    }

    /// How ∇ ln L changes with the slope at each kink, after a backward pass; see [`Model::kink_columns`].
    pub fn kink_columns(&mut self, params: &[f64], kinks: &[Kink]) -> Vec<KinkColumn> {
        self.model.kink_columns(params, &self.cotangent, kinks)
    }

    /// ∇L with slope (1 − e)·left + e·right at the given kinks: an element of the Clarke subdifferential.
    pub fn backward_at_kinks(&mut self, params: &[f64], kinks: &[(Kink, f64)], gradient: &mut LogScaled) {
        self.model.weigh_kinks(kinks);
        self.model.scores(params);
        self.backward(params, gradient);
        self.model.weigh_kinks(&[]);
    }
}

fn check_family(data: &Dataset, loss: &LossSpec) -> Result<(), ObjectiveError> {
    let found = match data.targets {
        Targets::Binary(_) => "labels ±1",
        Targets::Classes { .. } => "class labels",
        Targets::Values(_) => "real values",
    };
    let (needs, remedy) = match (loss.family(), loss.is_multiclass()) {
        (LossFamily::Regression, _) => ("real values", "exponential, logistic or cross-entropy for labels"),
        (LossFamily::Margin, false) => ("labels ±1", "cross-entropy for classes, squared for values"),
        (LossFamily::Margin, true) => ("class labels", "logistic for labels ±1, squared for values"),
    };
    if let Targets::Classes { count: count @ 0..2, .. } = data.targets {
        return Err(ObjectiveError::TooFewClasses { data: data.name.clone(), count });
    }
    if found == needs {
        return Ok(());
    }
    Err(ObjectiveError::Mismatch { loss: loss.key(), needs, data: data.name.clone(), found, remedy })
}
