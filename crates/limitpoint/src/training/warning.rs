//! A word before steps that are longer than any proof covers.

use super::start::largest_feature;
use super::{Setup, Trainer, TrainingError};
use crate::data::{Dataset, Inputs, Targets};
use crate::linalg::{Eigen, SharedMatrix, matmul_nt, matmul_tn};
use crate::losses::LossSpec;
use crate::norms::NormSpec;
use crate::objective::{Objective, Reduction};
use crate::optimisers::{OptimiserSpec, Scaling};
use crate::schedules::ScheduleSpec;

/// The shorter side up to which the largest curvature of the squared loss is computed exactly.
const EXACT_SIDE: usize = 400;

impl Setup {
    /// What to know about a fixed step size of steepest descent on a linear model that is longer than any proof covers;
    /// nothing where it is not, or where no bound is known.
    ///
    /// ```text
    /// exponential, logistic    η ≤ 1/(B² L(θ₀)),  B = maxₙ ‖xₙ‖_*                    B Theorem 5 and Lemma 12
    /// squared                  η < 2/M,  M = 2 λ_max(XᵀX) in ℓ2, 2 Σ ‖xₙ‖_*² beyond
    /// ```
    pub fn step_warning(&self, objective: &mut Objective, data: &Dataset) -> Result<Option<String>, TrainingError> {
        let (
            Trainer::Optimiser(OptimiserSpec::Steepest { norm, scaling: Scaling::DualNorm, .. }),
            ScheduleSpec::Constant { rate } | ScheduleSpec::Polynomial { rate, .. },
        ) = (&self.trainer, &self.schedule)
        else {
            return Ok(None);
        };
        if !self.model.is_linear() || matches!(data.targets, Targets::Classes { .. }) {
            return Ok(None);
        }
        let layout = objective.layout().clone();
        let per_example = if self.reduction == Reduction::Mean { 1.0 / data.len() as f64 } else { 1.0 };
        let (bound, words) = match self.loss {
            LossSpec::Exponential | LossSpec::Logistic => {
                let b = largest_feature(norm, data, &layout)?;
                let loss = objective.forward(&self.initial(&layout)).log_loss().exp();
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

/// λ_max(XᵀX), from the smaller of XᵀX and XXᵀ.
fn largest_eigenvalue(inputs: &SharedMatrix) -> Result<f64, TrainingError> {
    let (rows, cols, x) = (inputs.rows(), inputs.cols(), inputs.entries());
    let size = rows.min(cols);
    let mut gram = vec![0.0; size * size];
    if rows <= cols {
        matmul_nt(&mut gram, x, x, rows, cols, rows);
    } else {
        matmul_tn(&mut gram, x, x, cols, rows, cols);
    }
    let mut eigen = Eigen::new(size);
    eigen.factor(&gram)?;
    Ok(eigen.values().iter().copied().fold(0.0, f64::max))
}
