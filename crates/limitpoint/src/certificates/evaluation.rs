//! A model, its targets and a loss evaluated at one point.

use super::CertificateError;
use crate::data::Targets;
use crate::diagnostics::Point;
use crate::engine::{Forward, Tangents};
use crate::losses::Loss;
use crate::models::{DegreeGroup, Homogeneity, MarginMap};
use crate::numeric::LogScaled;
use crate::params::ParamLayout;

/// Everything that [`Point`] borrows, owned.
///
/// ```
/// use limitpoint::certificates::Evaluation;
/// use limitpoint::data::Targets;
/// use limitpoint::linalg::Matrix;
/// use limitpoint::losses::LossSpec;
/// use limitpoint::engine::{Compute, Forward, cpu};
/// use limitpoint::models::ModelSpec;
/// let mut model = cpu::bind(&ModelSpec::Linear, &Matrix::from_rows(&[&[1.0, 2.0]]), 1, Compute::default()).unwrap();
/// let loss = LossSpec::Exponential.build().unwrap();
/// let evaluation = Evaluation::new(&mut *model, &Targets::Binary(vec![-1.0]), &*loss, &[-3.0, -4.0])?;
/// assert_eq!(evaluation.point().smallest_margin(), 11.0);
/// # Ok::<(), limitpoint::certificates::CertificateError>(())
/// ```
pub struct Evaluation<'a> {
    params: Vec<f64>,
    layout: ParamLayout,
    homogeneity: Option<Homogeneity>,
    layers: Vec<DegreeGroup>,
    loss: &'a dyn Loss,
    margins: Vec<f64>,
    per_example: usize,
    weights: Vec<f64>,
    gradient: LogScaled,
    regression: bool,
    smallest_preactivation: f64,
}

impl<'a> Evaluation<'a> {
    /// Evaluates margins, loss and gradient with the slopes that the model has at kinks.
    pub fn new(
        model: &mut dyn Tangents,
        targets: &Targets,
        loss: &'a dyn Loss,
        params: &[f64],
    ) -> Result<Self, CertificateError> {
        let (map, margins) = (MarginMap::new(targets), margins(model, targets, params)?);
        let mut weights = vec![0.0; margins.len()];
        let log_loss = loss.evaluate(&margins, map.per_example(), &mut weights);
        let mut cotangent = vec![0.0; model.examples() * model.outputs()];
        map.pull_back(&weights, None, &mut cotangent);
        let mut direction = vec![0.0; params.len()];
        model.resume().pull_back(params, &cotangent, &mut direction);
        Ok(Self {
            params: params.to_vec(),
            layout: model.layout().clone(),
            homogeneity: model.homogeneity().cloned(),
            layers: model.bound().layers.clone(),
            loss,
            margins,
            per_example: map.per_example(),
            weights,
            gradient: LogScaled { log_scale: log_loss, direction },
            regression: map.is_regression(),
            smallest_preactivation: model.smallest_preactivation(params).unwrap_or(f64::NAN),
        })
    }

    /// The point that diagnostics read.
    pub fn point(&self) -> Point<'_> {
        Point {
            params: &self.params,
            layout: &self.layout,
            homogeneity: self.homogeneity.as_ref(),
            layers: &self.layers,
            loss: self.loss,
            margins: &self.margins,
            per_example: self.per_example,
            weights: &self.weights,
            gradient: &self.gradient,
            log_loss: self.gradient.log_scale,
            regression: self.regression,
            smallest_preactivation: self.smallest_preactivation,
        }
    }
}

/// All margins of a model at `params`, after checking that the three fit; the model is set to all its examples.
pub(super) fn margins(
    model: &mut dyn Tangents,
    targets: &Targets,
    params: &[f64],
) -> Result<Vec<f64>, CertificateError> {
    model.layout().check(params)?;
    model.select(None);
    let (map, examples, outputs) = (MarginMap::new(targets), model.examples(), model.outputs());
    if (examples, outputs) != (targets.len(), map.outputs()) {
        let expected = (targets.len(), map.outputs());
        return Err(CertificateError::Scores { found: (examples, outputs), expected });
    }
    let mut margins = vec![0.0; examples * map.per_example()];
    map.margins(model.scores(params), None, &mut margins);
    Ok(margins)
}
