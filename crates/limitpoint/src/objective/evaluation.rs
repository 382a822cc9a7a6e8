//! The objective after a forward pass.

use super::Objective;
use crate::engine::Forward;
use crate::numeric::LogScaled;
use crate::params::{At, Parameters, Update};

/// The objective at some parameters: what is known after a forward pass. It is used up by a gradient or a step.
pub struct Evaluation<'a> {
    pub(super) objective: &'a mut Objective,
}

impl<'a> Evaluation<'a> {
    /// ln L. A NaN anywhere gives NaN.
    pub fn log_loss(&self) -> f64 {
        self.objective.log_loss
    }

    /// Margins, [`Objective::per_example`] an example; residuals for regression.
    pub fn margins(&self) -> &[f64] {
        &self.objective.margins
    }

    /// The objective, for those who ask more of it before they go on with [`Objective::resume`].
    pub fn into_objective(self) -> &'a mut Objective {
        self.objective
    }

    /// ∇L at the parameters of the evaluation, which are given once more.
    pub fn backward<'p>(self, params: impl Into<At<'p>>, gradient: &mut LogScaled) {
        let objective = self.objective;
        objective.alive = None;
        objective.pull_weights();
        objective.evaluator.resume().pull_back(params, &objective.cotangent, &mut gradient.direction);
        gradient.log_scale = objective.log_loss;
    }

    /// A step with ∇ ln L, in one pass where the engine can: what [`Evaluation::backward`] and [`Update::make`] do.
    /// `scratch` is as long as the parameters and holds nothing of use afterwards. Answers whether an entry of the
    /// gradient was not zero.
    pub fn step(self, params: &mut Parameters, update: Update, scratch: &mut [f64]) -> bool {
        let objective = self.objective;
        objective.alive = None;
        objective.pull_weights();
        objective.evaluator.resume().step(params, &objective.cotangent, update, scratch)
    }

    /// Σₖ `weights`ₖ ∇qₖ, for any weights of the margins.
    pub fn pull_back_margins<'p>(self, params: impl Into<At<'p>>, weights: &[f64], out: &mut [f64]) {
        let objective = self.objective;
        objective.alive = None;
        let rows = objective.in_batch.then_some(objective.batch.as_slice());
        objective.map.pull_back(weights, rows, &mut objective.cotangent);
        objective.cotangent.iter_mut().for_each(|c| *c = -*c);
        objective.evaluator.resume().pull_back(params, &objective.cotangent, out);
    }
}
