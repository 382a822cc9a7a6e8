//! Polish: from a trained point to a certified KKT point of min ½‖θ‖² subject to q_i(θ) ≥ 1.
//!
//! Training only approaches its limit, logarithmically in time; this jumps to a limit point nearby and proves it. In
//! which way depends on the network, what it returns does not: a point, multipliers ([`KktProof`]) and the τ that they
//! prove.
//!
//! | network | method | file |
//! |---|---|---|
//! | two layers, piecewise linear, ℓ1, ℓ2, ℓ∞ | convex problems from cell to cell, then equations of the active set | `majorise`, `cell`, `finish` |
//! | two layers, powers of ReLU, ℓ1, ℓ2, ℓ∞ | one nonconvex interior point method | `curved` |
//! | dense networks of any depth, several classes, frozen layers, ℓ2, ℓ∞ | barriers with rounded kinks, then equations of the active set | `deep` |
//! | any other model or norm | tangent problems and line searches | `descend` |
//!
//! Neurons that end with no weight are *pruned*: both their weights are 0, where their conditions hold trivially.

mod active_set;
mod cell;
mod curved;
mod curved_system;
mod curved_terms;
mod deep;
mod descend;
mod factor;
mod finish;
mod majorise;
mod proof;
mod routes;
mod scaling;
mod shallow;
mod symmetric;

pub use proof::KktProof;

use self::routes::{Candidate, Outcome, cells, curved};
use self::shallow::{Ball, Shallow};
use super::{CertificateError, Geometry, Slopes, evaluation, tangent_certificate};
use crate::data::Dataset;
use crate::engine::{Compute, Forward, Tangents, cpu};
use crate::linalg::norm2;
use crate::models::{ModelError, ModelSpec};
use crate::norms::{Norm, NormError, NormSpec};
use crate::reference::ReferenceError;

/// What polish aims for.
///
/// | name | default | purpose | range |
/// |---|---|---|---|
/// | `target` | 1e-11 | stop at this τ | (0, 1) |
/// | `rounds` | 200 | convex problems, or tangent problems | ≥ 1 |
/// | `iterations` | 2000 | Newton steps of the curved problem | ≥ 1 |
/// | `kink_tolerance` | 1e-12 | kinks with \|z\| below this, relative to ‖a‖‖w‖, count as kinks | [0, 1) |
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolishSettings {
    /// The τ at which a point is good enough.
    pub target: f64,
    /// Most convex or tangent problems.
    pub rounds: usize,
    /// Most Newton steps where there is one nonconvex problem.
    pub iterations: usize,
    /// How close to 0, relatively, a preactivation on a kink has to be.
    pub kink_tolerance: f64,
}

impl Default for PolishSettings {
    fn default() -> Self {
        Self { target: 1e-11, rounds: 200, iterations: 2000, kink_tolerance: 1e-12 }
    }
}

/// How a point was polished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolishMethod {
    /// Convex problems from cell to cell.
    Cells,
    /// One nonconvex problem.
    Curved,
    /// Barrier problems with rounded kinks.
    Barrier,
    /// Tangent problems with line searches.
    Tangent,
}

/// Where polish ended.
#[derive(Debug, Clone, PartialEq)]
pub enum PolishStatus {
    /// τ is at most the target.
    Polished,
    /// It is not, for this reason; the point is the best one found.
    Stalled {
        /// What happened.
        why: String,
    },
}

/// A polished point with its proof.
#[derive(Debug, Clone, PartialEq)]
pub struct Polished {
    /// θ, as long as the point it was polished from.
    pub params: Vec<f64>,
    /// Key of the norm.
    pub norm: String,
    /// The method.
    pub method: PolishMethod,
    /// q_min/‖θ‖^L of the point given.
    pub margin_before: f64,
    /// q_min/‖θ‖^L of the polished point.
    pub margin_after: f64,
    /// Euclidean angle between the two points, in radians.
    pub angle: f64,
    /// Clarke's τ of the point given; NaN where the tangent problem could not be solved.
    pub tau_before: f64,
    /// The τ that `proof` proves.
    pub tau_after: f64,
    /// Multipliers of the margins and slopes at the kinks.
    pub proof: KktProof,
    /// Preactivations on a kink, of neurons that are alive.
    pub kinks: usize,
    /// Hidden units whose weights are all 0 now.
    pub pruned: Vec<usize>,
    /// Convex problems solved, or Newton systems of the curved problem.
    pub solves: usize,
    /// Interior-point iterations over all solves.
    pub iterations: usize,
    /// Whether the target was reached.
    pub status: PolishStatus,
}

/// Why a point could not be polished.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolishError {
    /// The point cannot be judged, for example because it does not separate the data.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The model was refused.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The norm was refused.
    #[error(transparent)]
    Norm(#[from] NormError),
    /// A setting that makes no sense.
    #[error("{what} is {value}, but must be {range}")]
    OutOfRange {
        /// What the number sets.
        what: &'static str,
        /// The number.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
}

/// Polishes a point that separates the data.
///
/// The polished point keeps the norm of the given one. Its margin is at least as large where the method is monotone
/// (all but the nonconvex one, which starts by moving away from the boundary).
///
/// ```
/// use limitpoint::certificates::{PolishSettings, polish};
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::models::ModelSpec;
/// use limitpoint::norms::NormSpec;
/// // one point x = (3, 4) and one neuron: in ℓ2 the limit has w along x and |a| = |w|
/// let data = Dataset::new("one", Matrix::from_rows(&[&[3.0, 4.0]]), Targets::Binary(vec![1.0]), vec![2]).unwrap();
/// let settings = PolishSettings::default();
/// let polished = polish(&ModelSpec::relu(&[1]), &data, &[1.0, 0.2, 0.7], &NormSpec::L2, &settings)?;
/// let [w1, w2, a] = polished.params[..] else { unreachable!() };
/// assert!(polished.tau_after < 1e-11);
/// // τ is quadratic in the distance from the limit
/// assert!((w1 / a - 0.6).abs() < 1e-6 && (w2 / a - 0.8).abs() < 1e-6);
/// # Ok::<(), limitpoint::certificates::PolishError>(())
/// ```
pub fn polish(
    spec: &ModelSpec,
    data: &Dataset,
    params: &[f64],
    norm: &NormSpec,
    settings: &PolishSettings,
) -> Result<Polished, PolishError> {
    settings.check()?;
    // the rows of the tangent problem are dense, whatever the inputs are
    data.dense().map_err(|error| CertificateError::from(ReferenceError::from(error)))?;
    let mut model = cpu::bind_to(spec, data, Compute::default())?;
    let mut measure = norm.build(model.layout())?;
    let margin_before = normalised_margin(&mut *model, data, params, &mut *measure)?;
    let slopes = Slopes::Clarke { tolerance: settings.kink_tolerance };
    let geometry = Geometry::from(norm.clone());
    let before = tangent_certificate(&mut *model, &data.targets, params, &geometry, slopes);
    let outcome = match (Shallow::new(spec, data), Ball::of(norm)) {
        (Some(shallow), Some(ball)) if shallow.activation.degree() == 1 => cells(&shallow, ball, params, settings),
        (Some(shallow), Some(ball)) => curved(&shallow, ball, params, settings),
        (None, Some(ball)) if ball != Ball::Diamond => {
            let deep = deep::Dense::new(spec, data).map(|dense| deep::deep(dense, ball, params, settings));
            match deep.filter(|outcome| !outcome.candidates.is_empty()) {
                Some(outcome) => outcome,
                None => descend::descend(&mut *model, data, params, &geometry, &mut *measure, settings)?,
            }
        }
        _ => descend::descend(&mut *model, data, params, &geometry, &mut *measure, settings)?,
    };
    let size = measure.value(params);
    let mut best: Option<(f64, Candidate)> = None;
    for mut candidate in outcome.candidates {
        let factor = size / measure.value(&candidate.params);
        if !factor.is_finite() {
            continue;
        }
        candidate.params.iter_mut().for_each(|w| *w *= factor);
        let tolerance = settings.kink_tolerance;
        let tau = match candidate.tau {
            Some(tau) => tau,
            None => candidate.proof.tau(&mut *model, &data.targets, &candidate.params, &mut *measure, tolerance)?,
        };
        if best.as_ref().is_none_or(|(least, _)| tau < *least) {
            best = Some((tau, candidate));
        }
        if tau <= settings.target {
            break;
        }
    }
    let unchanged = || {
        let proof = KktProof { weights: Vec::new(), slopes: Vec::new() };
        (f64::INFINITY, Candidate { params: params.to_vec(), proof, tau: None })
    };
    let (tau_after, Candidate { params: polished, proof, .. }) = best.unwrap_or_else(unchanged);
    let status =
        if tau_after <= settings.target { PolishStatus::Polished } else { PolishStatus::Stalled { why: outcome.why } };
    Ok(Polished {
        norm: norm.key(),
        method: outcome.method,
        margin_before,
        margin_after: normalised_margin(&mut *model, data, &polished, &mut *measure)?,
        angle: angle(params, &polished),
        tau_before: before.map_or(f64::NAN, |certificate| certificate.tau),
        tau_after,
        kinks: proof.slopes.len(),
        pruned: pruned(&*model, &polished),
        proof,
        params: polished,
        solves: outcome.solves,
        iterations: outcome.iterations,
        status,
    })
}

impl PolishSettings {
    fn check(&self) -> Result<(), PolishError> {
        let refuse = |what, value, range| Err(PolishError::OutOfRange { what, value, range });
        if !(self.target > 0.0 && self.target < 1.0) {
            return refuse("the target τ", self.target, "in (0, 1)");
        }
        if !(0.0..1.0).contains(&self.kink_tolerance) {
            return refuse("the kink tolerance", self.kink_tolerance, "in [0, 1)");
        }
        if self.rounds == 0 || self.iterations == 0 {
            return refuse("the number of rounds or iterations", 0.0, "at least 1");
        }
        Ok(())
    }
}

/// q_min/‖θ‖^L; refuses a point that does not separate the data.
fn normalised_margin(
    model: &mut dyn Tangents,
    data: &Dataset,
    params: &[f64],
    norm: &mut dyn Norm,
) -> Result<f64, PolishError> {
    let degree = model.homogeneity().ok_or(CertificateError::NotHomogeneous)?.degree;
    let margins = evaluation::margins(model, &data.targets, params)?;
    if let Some(row) = margins.iter().position(|q| q.is_nan() || *q <= 0.0) {
        return Err(CertificateError::NotSeparated { row, margin: margins[row] }.into());
    }
    Ok(margins.iter().copied().fold(f64::INFINITY, f64::min) / norm.value(params).powf(degree))
}

/// The angle between two vectors, accurate for small ones: 2 atan2(‖û − v̂‖, ‖û + v̂‖).
fn angle(u: &[f64], v: &[f64]) -> f64 {
    let (a, b) = (norm2(u), norm2(v));
    let (mut apart, mut together) = (0.0, 0.0);
    for (x, y) in u.iter().zip(v) {
        let (x, y) = (x / a, y / b);
        apart += (x - y) * (x - y);
        together += (x + y) * (x + y);
    }
    2.0 * apart.sqrt().atan2(together.sqrt())
}

/// Units of the last hidden layer that have no weight left.
fn pruned(model: &dyn Tangents, params: &[f64]) -> Vec<usize> {
    let weights: Vec<_> = model.layout().weights().collect();
    let [.., hidden, head] = &weights[..] else { return Vec::new() };
    let is_dead = |unit: &usize| {
        let row = &params[hidden.range()][unit * hidden.cols..(unit + 1) * hidden.cols];
        let column = params[head.range()].iter().skip(*unit).step_by(head.cols);
        row.iter().chain(column).all(|w| *w == 0.0)
    };
    (0..hidden.rows).filter(is_dead).collect()
}

#[cfg(test)]
mod tests;
