//! How long the steps of gradient descent may be on a smooth homogeneous model: the constants of condition (S5).

use super::TrainingError;
use crate::data::{Dataset, Inputs};
use crate::diagnostics::{DescentMargin, feature_bound, sparse_feature_bound};
use crate::linalg::norm2;
use crate::losses::LossSpec;
use crate::models::{ModelSpec, SphereBounds};
use crate::norms::NormSpec;
use crate::objective::{Objective, Reduction};

/// What D Theorem E.2 needs to know of a descent with exponential loss that begins at θ(t₀).
///
/// ```text
/// C = ½ (B₁² + ρ(t₀)^{−d} B₂) γ̂(t₀)^{−2} B₀^{2/d},   ‖∇²L‖ ≤ 2 C κ(L) while γ̃ ≥ γ̂(t₀) and ρ ≥ ρ(t₀)
/// ```
///
/// with analytic upper bounds for the suprema B₀, B₁, B₂, so that C is one too. D section E.2 (D.s5).
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissibleDescent {
    /// γ̂, and with it κ, μ and λ.
    pub margin: DescentMargin,
    /// B₀, B₁, B₂.
    pub bounds: SphereBounds,
    /// ln γ̂(t₀).
    pub log_first_margin: f64,
    /// ln C.
    pub log_curvature: f64,
}

impl AdmissibleDescent {
    /// The constants of a descent from `params`. Refused unless the loss is the summed exponential one, the model
    /// smooth and homogeneous, and the loss at `params` below 1.
    pub fn new(
        model: &ModelSpec,
        loss: &LossSpec,
        data: &Dataset,
        objective: &mut Objective,
        params: &[f64],
    ) -> Result<Self, TrainingError> {
        let refuse = |why: String| Err(TrainingError::NoAdmissibleStep { why });
        if !matches!(loss, LossSpec::Exponential | LossSpec::MulticlassExponential) {
            return refuse(format!("the loss is {loss}; use exponential"));
        }
        if objective.reduction() != Reduction::Sum {
            return refuse("the loss is a mean; use reduction = \"sum\"".into());
        }
        let longest = match &data.inputs {
            Inputs::Sparse(inputs) => sparse_feature_bound(inputs, &NormSpec::L2)?,
            Inputs::Dense(inputs) => feature_bound(inputs, &mut *NormSpec::L2.build_vector(inputs.cols())?),
        };
        let bounds = model.architecture_on(data).ok().and_then(|architecture| architecture.sphere_bounds(longest));
        let (Some(bounds), Some(degree)) = (bounds, objective.homogeneity().map(|homogeneity| homogeneity.degree))
        else {
            return refuse("the model is not homogeneous in all of its weights; drop biases and frozen layers".into());
        };
        if !bounds.hessian.is_finite() {
            return refuse("the activation has a kink; use relu-power with power = 2, or quadratic".into());
        }
        objective.layout().check(params)?;
        objective.select(None);
        let log_loss = objective.forward(params).log_loss();
        if log_loss.is_nan() || log_loss >= 0.0 {
            return refuse(format!(
                "the first loss is {:.3e}, but must be below 1; start where the data are separated, with larger \
                 weights, another seed or a given start",
                log_loss.exp()
            ));
        }
        let margin = DescentMargin::new(degree, log_loss)?;
        let size = norm2(params);
        let log_first_margin = margin.log_value(log_loss, size);
        let spread = (bounds.gradient.powi(2) + size.powf(-degree) * bounds.hessian).ln();
        let log_curvature = 0.5f64.ln() + spread - 2.0 * log_first_margin + 2.0 / degree * bounds.value.ln();
        Ok(Self { margin, bounds, log_first_margin, log_curvature })
    }

    /// ln H(L), the longest admissible step at this loss.
    pub fn log_step(&self, log_loss: f64) -> f64 {
        self.margin.scale().log_bound(log_loss, self.log_curvature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Targets;
    use crate::engine::Compute;
    use crate::linalg::Matrix;
    use crate::models::Activation;

    fn try_out(
        model: &ModelSpec,
        loss: LossSpec,
        reduction: Reduction,
        size: f64,
    ) -> Result<AdmissibleDescent, TrainingError> {
        let inputs = Matrix::from_rows(&[&[0.6, 0.8]]);
        let data = Dataset::new("one", inputs, Targets::Binary(vec![1.0]), vec![2]).unwrap();
        let mut objective = Objective::new(&data, model, &loss, reduction, Compute::default()).unwrap();
        let params = vec![size; objective.layout().len()];
        AdmissibleDescent::new(model, &loss, &data, &mut objective, &params)
    }

    /// One neuron w ∈ ℝ², a: q = a ⟨w, x⟩², ‖x‖ = 1; all numbers by hand.
    #[test]
    fn the_constant_of_one_neuron() {
        let model = ModelSpec::network(&[1], Activation::Quadratic);
        let found = try_out(&model, LossSpec::Exponential, Reduction::Sum, 2.0).unwrap();
        let (u, size) = (2.0 * 2.8f64.powi(2), 12f64.sqrt());
        let phi = u.ln() - u * (1.0 / u + 1.0 / (6.0 * u * u));
        let first = phi.exp() / size.powi(3);
        let b0 = 2.0 / 27f64.sqrt();
        let curvature = 0.5 * (2.0 + size.powi(-3) * (1.0 + 5f64.sqrt())) / (first * first) * b0.powf(2.0 / 3.0);
        assert!((found.log_first_margin - first.ln()).abs() < 1e-12);
        assert!((found.log_curvature - curvature.ln()).abs() < 1e-12, "{} {}", found.log_curvature, curvature.ln());
        let step = 0.5 / (curvature * (-u).exp() * u.powf(4.0 / 3.0));
        assert!((found.log_step(-u) - step.ln()).abs() < 1e-12);
    }

    #[test]
    fn refusals_name_the_remedy() {
        let quadratic = ModelSpec::network(&[1], Activation::Quadratic);
        for (model, loss, reduction, size, word) in [
            (&quadratic, LossSpec::Logistic, Reduction::Sum, 2.0, "use exponential"),
            (&quadratic, LossSpec::Exponential, Reduction::Mean, 2.0, "sum"),
            (&quadratic, LossSpec::Exponential, Reduction::Sum, -2.0, "below 1"),
            (&ModelSpec::relu(&[1]), LossSpec::Exponential, Reduction::Sum, 2.0, "kink"),
        ] {
            let error = try_out(model, loss, reduction, size).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
