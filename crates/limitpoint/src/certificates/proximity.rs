//! Proximity to stationarity measured by a Bregman divergence (A Appendix B).
//!
//! With ψ = ½‖·‖_*² and m ∈ ∂ψ(z), the generalised Bregman divergence is (A Definition B.4)
//!
//! ```text
//! D^m_ψ(y, z) = ½‖y‖_*² − ½‖z‖_*² − ⟨m, y − z⟩ ≥ 0
//! ```
//!
//! θ̃ ∈ ∂ψ(k) for every k ∈ ∂½‖θ̃‖², and ½‖k‖_*² = ½‖θ̃‖² = ½⟨k, θ̃⟩, so that between z = Σ λ h̃ and any such k it is
//! the Fenchel–Young gap of z and θ̃, whatever k is. At the papers' multipliers (A Proposition B.6)
//!
//! ```text
//! D^θ̃_ψ(Σ λ_i h̃_i, k) = ‖θ̃‖² (1 − β)  ≤  γ̃^{−2/L} (1 − β)  ≤  γ̃(t₀)^{−2/L} (1 − β)
//! ```
//!
//! because ‖θ̃‖² = γ^{−2/L} and the soft margin γ̃ is at most the margin γ and does not fall.

use super::multipliers::Scaled;
use super::{CertificateError, TangentProblem};
use crate::diagnostics::{Point, kkt_measure};
use crate::linalg::dot;
use crate::norms::Norm;
use crate::reference::Multipliers;

/// D^m_ψ(y, z) = ½‖y‖_*² − ½‖z‖_*² − ⟨m, y − z⟩ (A Definition B.4); m must be a subgradient of ½‖·‖_*² at z.
///
/// ```
/// use limitpoint::certificates::bregman_divergence;
/// use limitpoint::norms::NormSpec;
/// let mut norm = NormSpec::L2.build_vector(2)?;
/// // in ℓ2 it is half the squared distance
/// assert_eq!(bregman_divergence(&mut *norm, &[3.0, 4.0], &[0.0, 4.0], &[0.0, 4.0]), 4.5);
/// # Ok::<(), limitpoint::norms::NormError>(())
/// ```
pub fn bregman_divergence(norm: &mut dyn Norm, y: &[f64], z: &[f64], m: &[f64]) -> f64 {
    0.5 * norm.dual(y).powi(2) - 0.5 * norm.dual(z).powi(2) - dot(m, y) + dot(m, z)
}

/// Both sides of A Proposition B.6 at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BregmanProximity {
    /// D^θ̃_ψ(Σ λ h̃, k) by its definition, for one k.
    pub divergence: f64,
    /// ‖θ̃‖² (1 − β), what the divergence equals.
    pub identity: f64,
    /// γ̃^{−2/L} (1 − β), what the proposition bounds it by.
    pub bound: f64,
    /// β.
    pub alignment: f64,
}

/// Measures the two sides of A Proposition B.6.
///
/// `soft_margin` is the reference γ̃(t₀), already divided by ‖θ‖^L; without one the soft margin of the point itself is
/// used, which is the tightest. NaN unless the model is homogeneous and all margins are positive.
pub fn bregman_proximity(point: &Point, norm: &mut dyn Norm, soft_margin: Option<f64>) -> BregmanProximity {
    let (q, degree, size) = (point.smallest_margin(), point.degree(), norm.value(point.params));
    let measure = kkt_measure(point, norm);
    let own = point.soft_minimum() / size.powf(degree);
    let (root, dual) = (q.powf(1.0 / degree), norm.dual(&point.gradient.direction));
    let theta: Vec<f64> = point.params.iter().map(|t| t / root).collect();
    let z: Vec<f64> = point.gradient.direction.iter().map(|g| -size / root * g / dual).collect();
    let mut k = vec![0.0; z.len()];
    // any subgradient does; the one nearest to z loses the fewest digits
    let target: Vec<f64> = z.iter().map(|x| x * root / size).collect();
    norm.project_subdifferential(&theta, &target, 0.0, &mut k);
    k.iter_mut().for_each(|x| *x *= size / root);
    BregmanProximity {
        divergence: bregman_divergence(norm, &z, &k, &theta),
        identity: measure.fenchel_young_gap,
        bound: soft_margin.unwrap_or(own).powf(-2.0 / degree) * (1.0 - measure.alignment),
        alignment: measure.alignment,
    }
}

/// The value of A eq. (74) between two bounds, with the multipliers that attain the upper one.
#[derive(Debug, Clone, PartialEq)]
pub struct ProximityMeasure {
    /// No multipliers do better than this.
    pub lower: f64,
    /// max(D, S) of `multipliers`.
    pub upper: f64,
    /// D.
    pub divergence: f64,
    /// S.
    pub slack: f64,
    /// λ, e and s at θ̃.
    pub multipliers: Multipliers,
}

/// The Bregman proximity measure of A eq. (74): the least ε with D(λ) ≤ ε and Σ λ_k(q̃_k − 1) ≤ ε for some λ ≥ 0.
///
/// D is convex and S linear in λ, so the least maximum is the largest of the least weighted means (von Neumann):
///
/// ```text
/// ε* = min_λ max(D, S) = max_{r ≥ 0} min_λ (D + r S)/(1 + r)
/// ```
///
/// Each inner minimum is a margin problem (see the `multipliers` file). r is bisected in w = r/(1 + r) until D and S
/// meet; where the minimiser jumps past the meeting point the multipliers of both sides are mixed. Stops when the
/// bounds agree to 1e-7 relative (or to 1e-13 of φ(θ̃)²), or after 60 problems.
pub fn proximity_measure(tangent: &TangentProblem) -> Result<ProximityMeasure, CertificateError> {
    let scaled = Scaled::new(tangent);
    let evaluate = |multipliers: Multipliers| -> Result<ProximityMeasure, CertificateError> {
        let (divergence, slack) = (scaled.gap(&multipliers)?, scaled.slacks(&multipliers).iter().sum::<f64>());
        Ok(ProximityMeasure { lower: 0.0, upper: divergence.max(slack), divergence, slack, multipliers })
    };
    let (multipliers, mut lower) = scaled.minimise(0.0)?;
    let mut below = evaluate(multipliers)?; // slack too large, or the answer
    let mut best = below.clone();
    if below.slack <= below.divergence {
        best.lower = lower.max(0.0);
        return Ok(best);
    }
    let mut above: Option<ProximityMeasure> = None;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let w = 0.5 * (low + high);
        let r = w / (1.0 - w);
        let (multipliers, least) = scaled.minimise(r)?;
        lower = lower.max(least / (1.0 + r));
        let found = evaluate(multipliers)?;
        if found.slack > found.divergence {
            (low, below) = (w, found);
        } else {
            (high, above) = (w, Some(found));
        }
        if let Some(above) = &above {
            let mixed = meet(&below, above, &evaluate)?;
            best = [mixed, above.clone()].into_iter().fold(best, |a, b| if b.upper < a.upper { b } else { a });
        }
        if best.upper - lower <= (1e-7 * best.upper).max(1e-13 * scaled.objective()) || high - low < 1e-12 {
            break;
        }
    }
    best.lower = lower.clamp(0.0, best.upper);
    Ok(best)
}

/// The mixture of two multipliers at which D and S agree, or nearly.
fn meet(
    below: &ProximityMeasure,
    above: &ProximityMeasure,
    evaluate: &dyn Fn(Multipliers) -> Result<ProximityMeasure, CertificateError>,
) -> Result<ProximityMeasure, CertificateError> {
    let mix = |t: f64| {
        let mix = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (1.0 - t) * a + t * b).collect();
        let (a, b) = (&below.multipliers, &above.multipliers);
        evaluate(Multipliers {
            rows: mix(&a.rows, &b.rows),
            kinks: mix(&a.kinks, &b.kinks),
            cone: mix(&a.cone, &b.cone),
        })
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..30 {
        let t = 0.5 * (low + high);
        let found = mix(t)?;
        if found.slack > found.divergence { low = t } else { high = t }
    }
    mix(high)
}
