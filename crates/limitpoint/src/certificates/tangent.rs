//! The tangent problem of a homogeneous model at a point, and what its value says about the point.
//!
//! With margins q_k, subgradients h_k ∈ ∂q_k(θ) and degree L, Euler's identity ⟨h_k, θ⟩ = L q_k makes the point itself
//! a feasible direction of the tangent problem, so that its normalised value cannot exceed the best one:
//!
//! ```text
//! γ_tan = max_{‖v‖ ≤ 1} min_k ⟨h_k, v⟩ = min_{p ∈ Δ} ‖Σ p_k h_k‖_*  ≥  L q_min/‖θ‖
//! τ     = 1 − L q_min / (‖θ‖ γ_tan)  ∈ [0, 1]
//! ```
//!
//! τ = 0 says that θ/‖θ‖ solves the tangent problem, whose optimality conditions are those of a KKT point of min ½‖θ‖²
//! subject to q ≥ 1: weights p on the smallest margins only, and Σ p_k h_k/γ_tan ∈ ∂‖θ‖. Otherwise the solution v* is a
//! direction in which the normalised margin rises. The same problem is the support vector machine with features frozen
//! at θ (D Corollary 4.5, C Corollary I.1): with θ̃ = θ/q_min^{1/L}, the point θ̃/L is feasible for min ½‖w‖² subject
//! to ⟨h̃_k, w⟩ ≥ 1 and its relative duality gap is 1 − (1 − τ)². For a potential the norm is the horizon.
//!
//! **Kinks.** Where a ReLU sits on its kink, ∂q_k is a set, and a KKT point needs one suitable element, not all. One
//! fixed element gives an upper bound of τ that can be far too large. Clarke's version minimises over the elements too;
//! see the `clarke` file for which set that is and what is proved in deep networks.
//!
//! **What the numbers prove.** `tau` comes from the multipliers (an upper bound of γ_tan), `tau_lower` from the
//! direction (a lower bound), so τ lies between them. With kinks taken within a tolerance (|z| small but not 0) Euler's
//! identity holds up to `euler_defect`, and τ is certain up to that number.

use super::clarke::{self, Rows};
use super::{CertificateError, Geometry, evaluation};
use crate::data::Targets;
use crate::engine::{Forward, Tangents};
use crate::linalg::dot;
use crate::norms::NormSpec;
use crate::reference::{MarginProblem, MarginSolution, Multipliers, solve_margin, sparse_dot};

/// Entries of all rows above which smooth ℓ2 problems use the Gram matrix.
const DENSE: usize = 1 << 24;
/// Entries of all rows above which other problems begin with those of the smallest margins: half a gibibyte.
const MANY: usize = 1 << 26;

/// Which subgradients may be taken where a margin is not differentiable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Slopes {
    /// The model's own, from the left at a kink.
    Fixed,
    /// Clarke's: every slope between left and right at the kinks within `tolerance`.
    Clarke {
        /// Kinks with |z| ≤ `tolerance` · ‖a‖₂ · (largest ‖w_unit‖₂), a the unit's input; 0 is exact.
        tolerance: f64,
    },
}

/// What a τ covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// One fixed subgradient a margin; exact where the model is differentiable, otherwise an upper bound of Clarke's τ.
    Fixed,
    /// All of Clarke's subdifferential.
    Clarke,
    /// Some of its elements: an upper bound of Clarke's τ, whose lower bound is then 0.
    Partial,
}

/// A tangent problem with what is needed to read its solution.
#[derive(Debug, Clone, PartialEq)]
pub struct TangentProblem {
    /// Rows h, kinks and cone of the problem in the norm of the geometry.
    pub problem: MarginProblem,
    /// The margin that a row belongs to; more than one row a margin in deep networks only.
    pub margin_of_row: Vec<usize>,
    /// q_k, all positive.
    pub margins: Vec<f64>,
    /// The degree L.
    pub degree: f64,
    /// θ.
    pub params: Vec<f64>,
    /// ‖θ‖, without the geometry's factor.
    pub size: f64,
    /// The geometry.
    pub geometry: Geometry,
    /// Kinks within the tolerance, each counted once.
    pub kinks: usize,
    /// What the rows cover.
    pub coverage: Coverage,
}

impl TangentProblem {
    /// The tangent problem of a model at `params`; in deep networks with kinks in several layers, its first rows.
    pub fn new(
        model: &mut dyn Tangents,
        targets: &Targets,
        params: &[f64],
        geometry: &Geometry,
        slopes: Slopes,
    ) -> Result<Self, CertificateError> {
        let rows = Rows::new(model, targets, params, slopes)?;
        Self::from_rows(model, targets, params, geometry, rows)
    }

    pub(super) fn from_rows(
        model: &mut dyn Tangents,
        targets: &Targets,
        params: &[f64],
        geometry: &Geometry,
        rows: Rows,
    ) -> Result<Self, CertificateError> {
        let (margins, degree) = checked_margins(model, targets, params)?;
        geometry.check(params)?;
        let layout = model.layout().clone();
        let size = geometry.norm.build(&layout)?.value(params);
        let cone = geometry.non_negative.iter().flat_map(Clone::clone).map(|j| vec![(j, vec![1.0])]).collect();
        let Rows { rows, kinks, margin_of_row, coverage, count } = rows;
        let mut problem = MarginProblem::new(rows, geometry.norm.clone(), layout)?.with_kinks(kinks)?.with_cone(cone);
        if geometry.semidefinite {
            problem = problem.semidefinite()?;
        }
        let (params, geometry) = (params.to_vec(), geometry.clone());
        Ok(Self { problem, margin_of_row, margins, degree, params, size, geometry, kinks: count, coverage })
    }

    /// min q_k.
    pub fn smallest_margin(&self) -> f64 {
        self.margins.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// L q_min/‖θ‖, what θ itself achieves in the tangent problem.
    pub fn own_value(&self) -> f64 {
        self.degree * self.smallest_margin() / self.size
    }

    /// max over rows and slopes of |⟨h, θ⟩ − L q| / (L q_min): 0 up to rounding unless kinks are taken with a
    /// tolerance.
    pub fn euler_defect(&self) -> f64 {
        let products = (0..self.problem.rows.rows).map(|i| dot(self.problem.rows.row(i), &self.params));
        let (mut low, mut high): (Vec<f64>, Vec<f64>) = products.map(|product| (product, product)).unzip();
        for kink in &self.problem.kinks {
            let change = sparse_dot(&kink.change, &self.params);
            low[kink.row] += change.min(0.0);
            high[kink.row] += change.max(0.0);
        }
        let euler = |row: usize| self.degree * self.margins[self.margin_of_row[row]];
        let defect = |row: usize| (low[row] - euler(row)).abs().max((high[row] - euler(row)).abs());
        (0..low.len()).map(defect).fold(0.0, f64::max) / (self.degree * self.smallest_margin())
    }

    /// Solves the problem and reads τ off its bracket.
    pub fn certify(&self) -> Result<TangentCertificate, CertificateError> {
        let solution = solve_margin(&self.problem)?;
        Ok(self.conclude(solution))
    }

    /// The certificate that a solution proves; where the rows are only a part, the lower bound is that of θ itself.
    pub(super) fn conclude(&self, solution: MarginSolution) -> TangentCertificate {
        let MarginSolution { bracket, direction, multipliers, iterations } = solution;
        let own = self.own_value();
        let of_point = self.problem.margins(&self.params).into_iter().fold(f64::INFINITY, f64::min) / self.size;
        let lower = if self.coverage == Coverage::Partial { of_point } else { bracket.lower.max(of_point) };
        let upper = bracket.upper.max(lower);
        let mut weights = vec![0.0; self.margins.len()];
        self.margin_of_row.iter().zip(&multipliers.rows).for_each(|(&margin, p)| weights[margin] += p);
        TangentCertificate {
            tangent_margin_lower: lower,
            tangent_margin_upper: upper,
            tau: (1.0 - own / upper).max(0.0),
            tau_lower: (1.0 - own / lower).max(0.0),
            support: support(&weights),
            kinks: self.kinks,
            coverage: self.coverage,
            direction,
            multipliers,
            euler_defect: self.euler_defect(),
            rows: self.problem.rows.rows,
            iterations,
        }
    }
}

/// The pairs (margin, weight) with a weight that is not rounding, heaviest first.
pub(super) fn support(weights: &[f64]) -> Vec<(usize, f64)> {
    let total: f64 = weights.iter().sum();
    let mut support: Vec<(usize, f64)> =
        weights.iter().enumerate().map(|(k, p)| (k, p / total)).filter(|(_, p)| *p > 1e-9).collect();
    support.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    support
}

/// All margins, positive, and the degree of the model.
pub(super) fn checked_margins(
    model: &mut dyn Tangents,
    targets: &Targets,
    params: &[f64],
) -> Result<(Vec<f64>, f64), CertificateError> {
    if matches!(targets, Targets::Values(_)) {
        return Err(CertificateError::NoMargins);
    }
    let degree = model.homogeneity().ok_or(CertificateError::NotHomogeneous)?.degree;
    let margins = evaluation::margins(model, targets, params)?;
    match margins.iter().position(|q| q.is_nan() || *q <= 0.0) {
        Some(row) => Err(CertificateError::NotSeparated { row, margin: margins[row] }),
        None => Ok((margins, degree)),
    }
}

/// τ of a point with its proof.
#[derive(Debug, Clone, PartialEq)]
pub struct TangentCertificate {
    /// A lower bound of γ_tan, attained by `direction` (or by θ itself).
    pub tangent_margin_lower: f64,
    /// An upper bound of γ_tan, proved by `multipliers`.
    pub tangent_margin_upper: f64,
    /// τ from the upper bound: no element of the covered subdifferentials has a larger one.
    pub tau: f64,
    /// τ from the lower bound.
    pub tau_lower: f64,
    /// Support vectors of the frozen-feature machine: (margin, weight), weights of sum 1, heaviest first.
    pub support: Vec<(usize, f64)>,
    /// Kinks within the tolerance.
    pub kinks: usize,
    /// What τ covers.
    pub coverage: Coverage,
    /// v*, ‖v*‖ = 1, the direction of steepest growth of the smallest margin.
    pub direction: Vec<f64>,
    /// Dual weights of the rows and kinks of the last problem.
    pub multipliers: Multipliers,
    /// How well Euler's identity holds for all the slopes used, relative to L q_min.
    pub euler_defect: f64,
    /// Rows of the last problem.
    pub rows: usize,
    /// Interior-point iterations.
    pub iterations: usize,
}

impl TangentCertificate {
    /// Relative duality gap of θ̃/L in the frozen-feature machine, 1 − (1 − τ)² (Ct.ntk).
    pub fn machine_gap(&self) -> f64 {
        self.tau * (2.0 - self.tau)
    }
}

/// τ of a point, in any geometry.
///
/// Large ℓ2 problems with fixed slopes, or without kinks, are solved from the Gram matrix (see
/// [`tangent_certificate_from_gram`]); others from the rows of the smallest margins, to which those are added that the
/// solution violates.
///
/// [`tangent_certificate_from_gram`]: super::tangent_certificate_from_gram
///
/// ```
/// use limitpoint::certificates::{Slopes, tangent_certificate};
/// use limitpoint::data::Targets;
/// use limitpoint::linalg::Matrix;
/// use limitpoint::engine::{Compute, Forward, cpu};
/// use limitpoint::models::ModelSpec;
/// use limitpoint::norms::NormSpec;
/// // one point x = (3, 4), one neuron: w along x and |a| = |w| is the KKT point, and any other direction is not
/// let mut model = cpu::bind(&ModelSpec::relu(&[1]), &Matrix::from_rows(&[&[3.0, 4.0]]), 1, Compute::default()).unwrap();
/// let (targets, norm) = (Targets::Binary(vec![1.0]), NormSpec::L2.into());
/// let at = |theta: &[f64], model: &mut dyn limitpoint::engine::Tangents| {
///     tangent_certificate(model, &targets, theta, &norm, Slopes::Fixed).map(|certificate| certificate.tau)
/// };
/// assert!(at(&[0.6, 0.8, 1.0], &mut *model)? < 1e-12);
/// assert!(at(&[1.0, 0.0, 1.0], &mut *model)? > 0.1);
/// # Ok::<(), limitpoint::certificates::CertificateError>(())
/// ```
pub fn tangent_certificate(
    model: &mut dyn Tangents,
    targets: &Targets,
    params: &[f64],
    geometry: &Geometry,
    slopes: Slopes,
) -> Result<TangentCertificate, CertificateError> {
    let entries = targets.len().saturating_mul(model.outputs()).saturating_mul(model.layout().len());
    let plain = geometry.non_negative.is_empty() && !geometry.semidefinite;
    if plain && is_euclidean(&geometry.norm) && entries > DENSE {
        checked_margins(model, targets, params)?;
        if slopes == Slopes::Fixed {
            return super::gram::tangent_certificate_from_gram(model, targets, params);
        }
        if clarke::find_kinks(model, params, slopes)?.is_empty() {
            let smooth = super::gram::tangent_certificate_from_gram(model, targets, params)?;
            return Ok(TangentCertificate { coverage: Coverage::Clarke, ..smooth });
        }
    }
    if entries > MANY {
        return super::working_set::tangent_certificate_from_smallest(model, targets, params, geometry, slopes);
    }
    Ok(solve_tangent(model, targets, params, geometry, slopes)?.1)
}

/// Whether a norm is ‖·‖₂ of all trainable entries.
pub(super) fn is_euclidean(norm: &NormSpec) -> bool {
    norm.exponent() == Some(2.0)
}

/// The tangent problem with all the rows it needed, and its certificate.
pub fn solve_tangent(
    model: &mut dyn Tangents,
    targets: &Targets,
    params: &[f64],
    geometry: &Geometry,
    slopes: Slopes,
) -> Result<(TangentProblem, TangentCertificate), CertificateError> {
    let tangent = TangentProblem::new(model, targets, params, geometry, slopes)?;
    if tangent.coverage == Coverage::Partial {
        return clarke::generate(model, targets, tangent, slopes);
    }
    let certificate = tangent.certify()?;
    Ok((tangent, certificate))
}
