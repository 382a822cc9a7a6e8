//! Tangent problems of models that somebody else computes: margins and their gradients are given, not made here.

use super::tangent::{Coverage, TangentCertificate, TangentProblem};
use super::{CertificateError, Geometry};
use crate::linalg::Matrix;
use crate::norms::NormSpec;
use crate::params::ParamLayout;
use crate::reference::MarginProblem;

/// Weights of a model with margins q_k and gradients h = ∇q_k of some of them.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignTangent {
    /// Names and shapes of the weights that are judged.
    pub layout: ParamLayout,
    /// θ.
    pub params: Vec<f64>,
    /// All margins q_k.
    pub margins: Vec<f64>,
    /// L with ⟨∇q_k, θ⟩ = L q_k.
    pub degree: f64,
    /// Gradients, one a row.
    pub rows: Matrix,
    /// The margin that a row belongs to.
    pub margin_of_row: Vec<usize>,
}

impl ForeignTangent {
    /// Sizes agree, every margin is positive and every number finite.
    pub fn check(&self) -> Result<(), CertificateError> {
        self.layout.check(&self.params)?;
        if self.rows.cols != self.params.len() || self.rows.rows != self.margin_of_row.len() {
            let (found, expected) = (self.rows.cols, self.params.len());
            return Err(CertificateError::Foreign {
                what: format!("the rows have {found} entries for {expected} weights, or too few margins are named"),
            });
        }
        if let Some(row) = self.margins.iter().position(|q| q.is_nan() || *q <= 0.0) {
            return Err(CertificateError::NotSeparated { row, margin: self.margins[row] });
        }
        if let Some(row) = self.margin_of_row.iter().find(|row| **row >= self.margins.len()) {
            return Err(CertificateError::Foreign { what: format!("there is no margin {row}") });
        }
        let finite = self.params.iter().chain(&self.rows.data).chain([&self.degree]).all(|x| x.is_finite());
        if !finite || self.degree <= 0.0 {
            let what = "the degree, the weights and their gradients must be finite, the degree positive".to_owned();
            return Err(CertificateError::Foreign { what });
        }
        Ok(())
    }

    /// τ in a norm. Where not every margin has a row, τ is an upper bound and its lower bound that of θ itself.
    ///
    /// ```
    /// use limitpoint::certificates::ForeignTangent;
    /// use limitpoint::linalg::Matrix;
    /// use limitpoint::norms::NormSpec;
    /// use limitpoint::params::ParamLayout;
    /// // q = ⟨w, (3, 4)⟩ is largest along (3, 4)
    /// let at = |params: Vec<f64>| {
    ///     let (layout, rows) = (ParamLayout::vector(2), Matrix::from_rows(&[&[3.0, 4.0]]));
    ///     let margins = vec![3.0 * params[0] + 4.0 * params[1]];
    ///     ForeignTangent { layout, params, margins, degree: 1.0, rows, margin_of_row: vec![0] }.tau(&NormSpec::L2)
    /// };
    /// assert!(at(vec![0.6, 0.8])?.tau < 1e-12);
    /// assert!((at(vec![1.0, 0.0])?.tau - 0.4).abs() < 1e-9); // 1 − 3/5
    /// # Ok::<(), limitpoint::certificates::CertificateError>(())
    /// ```
    pub fn tau(&self, norm: &NormSpec) -> Result<TangentCertificate, CertificateError> {
        self.check()?;
        let mut seen = vec![false; self.margins.len()];
        self.margin_of_row.iter().for_each(|row| seen[*row] = true);
        let problem = TangentProblem {
            problem: MarginProblem::new(self.rows.clone(), norm.clone(), self.layout.clone())?,
            margin_of_row: self.margin_of_row.clone(),
            margins: self.margins.clone(),
            degree: self.degree,
            params: self.params.clone(),
            size: norm.build(&self.layout)?.value(&self.params),
            geometry: Geometry::from(norm.clone()),
            kinks: 0,
            coverage: if seen.iter().all(|seen| *seen) { Coverage::Fixed } else { Coverage::Partial },
        };
        problem.certify()
    }
}
