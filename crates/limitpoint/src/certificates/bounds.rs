//! What the theorems allow the KKT measures of a point to be.
//!
//! Papers A, C and D bound ε by C₁√(1 − β) and δ by C₂/ln(1/L) at the multipliers of the trajectory. Their constants
//! hold the soft margin γ̃(t₀) at separation; the proofs give the same with the soft margin of the point itself, which
//! is larger, so the bounds here are the tightest the proofs yield, and any earlier γ̃ may be put in. Corrections of
//! the printed constants are marked.
//!
//! **Steepest flows** (A Propositions A.13 and B.6, D Lemma C.8), λ_k as in the `multipliers` file, M margins:
//!
//! ```text
//! D = ‖θ̃‖²(1 − β)  ≤ γ̃^{−2/L} (1 − β)
//! ε = √(2D) in ℓ2   ≤ C₁ √(1 − β),       C₁ = √2 γ̃^{−1/L}
//! S                ≤ C₂/u,              u = ln(1/L),   C₂ = κ (M − 1)/(e L γ̃^{2/L})
//! ```
//!
//! κ is 1 for the exponential loss (A prints M for M − 1; the smallest margin adds nothing). For ℓ = e^{−f} with one
//! margin an example κ = (u g′(u)/g(u)) K (q_max/(γ̃‖θ‖^L))^{log₂K}: D Lemma C.8, with max x e^{−x} = 1/e (printed e),
//! with the point's own q_max for B₁ρ^L, and with u g′/g instead of its bound 2K. It needs u ≥ b_g. For cross-entropy κ
//! = (u g′(u)/g(u))/ln 2: the weights are at most e^{−s}/L, L ≥ ln(1 + e^{−q_min}) ≥ e^{−q_min} ln 2 once separated,
//! and D Appendix F bounds ν.
//!
//! **Mirror flows** (C Lemma G.6, α ≥ 2, exponential loss) with H = ∇²R(θ), Q = Q(∇R(θ)), ν = Σ e^{−q}q and
//!
//! ```text
//! λ_k = (αQ)^{2/α−1} q_min^{1−2/L} (‖θ‖_H/‖θ̇‖_H) e^{−q_k},     ζ = (αQ)^{2/α−1} Hθ/q_min^{1/L},   γ̃ = u/(αQ)^{L/α}
//! ‖ζ − Σ λ h̃‖₂ ≤ C₁√(1 − β),   C₁² = 2 γ̃^{−2/L} ‖H‖₂ (αQ)^{2/α−1}
//! S ≤ C₂/u,                    C₂ = (M − 1)/(e L γ̃^{2/L})
//! ```
//!
//! from ‖Hx‖₂² ≤ ‖H‖₂ xᵀHx, θᵀHθ ≤ αQ (C.ass4.4) and q_min ≥ u. (C prints max(1, |H|) and Q for ‖H‖₂ and αQ.) ζ tends
//! to the gradient of ½φ² (C.lemG10), so this is a bound for approximate KKT points of the horizon's problem.

use super::CertificateError;
use crate::diagnostics::{Point, kkt_measure, mirror_measure};
use crate::linalg::{dot, norm2};
use crate::norms::Norm;
use crate::potentials::{MirrorPotential, PotentialSpec, QuadraticWeights};

/// A measured number and what a theorem says it cannot exceed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounded {
    /// What the point has.
    pub measured: f64,
    /// What the theorem allows.
    pub bound: f64,
}

impl Bounded {
    /// Whether the measured number is at most the bound, up to rounding of `slack` relative.
    pub fn holds(&self, slack: f64) -> bool {
        self.measured <= self.bound * (1.0 + slack)
    }
}

/// The measures of a point next to the bounds of the papers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KktBounds {
    /// D against γ̃^{−2/L}(1 − β); nothing for mirror flows.
    pub proximity: Option<Bounded>,
    /// ε against C₁√(1 − β): in ℓ2 for steepest flows, ‖ζ − Σλh̃‖₂ for mirror flows.
    pub stationarity: Option<Bounded>,
    /// S against C₂/u; nothing while u < b_g, where no bound is proved.
    pub slack: Option<Bounded>,
    /// C₁.
    pub c1: f64,
    /// C₂.
    pub c2: f64,
    /// β.
    pub alignment: f64,
    /// The soft margin γ̃ in the constants.
    pub soft_margin: f64,
}

/// Checks that a point has what every bound needs: a degree, positive margins, a margin loss and u > 0.
fn check(point: &Point) -> Result<(), CertificateError> {
    if point.regression {
        return Err(CertificateError::NoMargins);
    }
    if point.homogeneity.is_none() {
        return Err(CertificateError::NotHomogeneous);
    }
    if point.loss.tail().is_none() {
        return Err(CertificateError::NotMarginLoss);
    }
    if let Some(row) = point.margins.iter().position(|q| q.is_nan() || *q <= 0.0) {
        return Err(CertificateError::NotSeparated { row, margin: point.margins[row] });
    }
    if !(point.soft_minimum() > 0.0 && point.log_loss < 0.0) {
        let (what, range) = ("the logarithm of the loss", "negative, and the loss below that of a margin 0");
        return Err(CertificateError::OutOfRange { what, value: point.log_loss, range });
    }
    Ok(())
}

/// κ, by which the slack of a loss can exceed that of the exponential loss; `None` while u < b_g.
fn growth(point: &Point, soft_margin: f64, size: f64) -> Option<f64> {
    let (tail, u) = (point.loss.tail()?, -point.log_loss);
    let k = tail.growth_constant();
    let ratio = u * tail.g_prime(u) / tail.g(u);
    if k == 1.0 && tail.b_g() == 0.0 {
        return Some(ratio);
    }
    if u < tail.b_g() {
        return None;
    }
    if point.per_example > 1 {
        return Some(ratio / std::f64::consts::LN_2);
    }
    let largest = point.margins.iter().copied().fold(0.0, f64::max) / size.powf(point.degree());
    Some(ratio * k * (largest / soft_margin).powf(k.log2()))
}

/// The bounds of papers A and D at a point; `soft_margin` replaces the point's own γ̃ by an earlier one.
pub fn steepest_bounds(
    point: &Point,
    norm: &mut dyn Norm,
    soft_margin: Option<f64>,
) -> Result<KktBounds, CertificateError> {
    check(point)?;
    let (measure, size, degree) = (kkt_measure(point, norm), norm.value(point.params), point.degree());
    let gamma = soft_margin.unwrap_or(point.soft_minimum() / size.powf(degree));
    let scale = gamma.powf(-1.0 / degree);
    let distance = (1.0 - measure.alignment).max(0.0);
    let (c1, u) = (2f64.sqrt() * scale, -point.log_loss);
    let others = (point.margins.len() - 1) as f64;
    let kappa = growth(point, gamma, size);
    let c2 = kappa.unwrap_or(f64::NAN) * others * scale * scale / (std::f64::consts::E * degree);
    let proximity = Bounded { measured: measure.fenchel_young_gap, bound: scale * scale * distance };
    // in ℓ2, and only there, the dual norm of θ is its norm and ε² = 2D
    let euclidean = is_euclidean(point, norm);
    let stationarity = Bounded { measured: euclidean_residual(point), bound: c1 * distance.sqrt() };
    Ok(KktBounds {
        proximity: Some(proximity),
        stationarity: euclidean.then_some(stationarity),
        slack: kappa.map(|_| Bounded { measured: measure.slack, bound: c2 / u }),
        c1,
        c2,
        alignment: measure.alignment,
        soft_margin: gamma,
    })
}

/// Whether a norm and its dual are both ‖·‖₂ at the point and at its gradient.
fn is_euclidean(point: &Point, norm: &mut dyn Norm) -> bool {
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b;
    let g = &point.gradient.direction;
    same(norm.value(point.params), point.length()) && same(norm.dual(g), norm2(g))
}

/// ‖θ̃ − Σ λ h̃‖₂ of the papers' multipliers, from the vectors.
fn euclidean_residual(point: &Point) -> f64 {
    let g = &point.gradient.direction;
    let (size, dual) = (point.length(), norm2(g));
    let root = point.smallest_margin().powf(1.0 / point.degree());
    let mut squares = 0.0;
    for range in point.layout.trainable_ranges() {
        let pairs = point.params[range.clone()].iter().zip(&g[range]);
        squares += pairs.map(|(t, g)| (t / size + g / dual).powi(2)).sum::<f64>();
    }
    size / root * squares.sqrt()
}

/// Whether ∇²R is diagonal everywhere.
fn has_diagonal_hessian(spec: &PotentialSpec) -> bool {
    match spec {
        PotentialSpec::Quadratic(QuadraticWeights::Matrix(_))
        | PotentialSpec::SquaredLp { .. }
        | PotentialSpec::SpectralEntropy => false,
        PotentialSpec::Layers { blocks } => blocks.iter().all(|entry| has_diagonal_hessian(&entry.potential)),
        PotentialSpec::Euclidean
        | PotentialSpec::Quadratic(QuadraticWeights::Diagonal(_))
        | PotentialSpec::Entropy
        | PotentialSpec::Hyperbolic { .. }
        | PotentialSpec::Smoothed { .. }
        | PotentialSpec::PowerSmoothed { .. } => true,
    }
}

/// ‖∇²R(θ)‖₂ of a potential with a diagonal Hessian; `None` for the others.
fn hessian_bound(spec: &PotentialSpec, potential: &mut dyn MirrorPotential, params: &[f64]) -> Option<f64> {
    let mut action = vec![0.0; params.len()];
    potential.hessian_action(params, &vec![1.0; params.len()], &mut action);
    has_diagonal_hessian(spec).then(|| action.iter().copied().fold(0.0, f64::max))
}

/// The bounds of C Lemma G.6 at a point, for the exponential loss and potentials of degree α ≥ 2.
///
/// The bound on ε needs ‖H‖₂ and is left out for potentials whose Hessian is not diagonal.
pub fn mirror_bounds(
    point: &Point,
    spec: &PotentialSpec,
    soft_margin: Option<f64>,
) -> Result<KktBounds, CertificateError> {
    check(point)?;
    let mut potential = spec.build(point.layout)?;
    let (alpha, degree, u) = (potential.degree(), point.degree(), -point.log_loss);
    if alpha < 2.0 {
        let (what, range) = ("the degree of the potential", "at least 2 (C Theorem G.2)");
        return Err(CertificateError::OutOfRange { what, value: alpha, range });
    }
    let exponential = point.loss.tail().is_some_and(|tail| tail.growth_constant() == 1.0 && tail.b_g() == 0.0);
    if !exponential {
        return Err(CertificateError::NotExponential);
    }
    let (theta, g) = (point.params, &point.gradient.direction);
    let mut scratch = vec![0.0; theta.len()];
    let measure = mirror_measure(point, &mut *potential, &mut scratch);
    let gauge = measure.gauge; // (αQ)^{1/α}
    let gamma = soft_margin.unwrap_or(u / gauge.powf(degree));
    let (q, root) = (point.smallest_margin(), point.smallest_margin().powf(1.0 / degree));
    potential.hessian_action(theta, theta, &mut scratch);
    let position = dot(theta, &scratch).sqrt();
    let power = gauge.powf(2.0 - alpha); // (αQ)^{2/α−1}
    let mut velocity = vec![0.0; theta.len()];
    potential.inverse_hessian_action(theta, g, &mut velocity);
    let speed = dot(g, &velocity).sqrt();
    // Σ λ h̃ = −(αQ)^{2/α−1} q_min^{−1/L} (‖θ‖_H/‖θ̇‖_H) g, both for ∇ ln L
    let lambda = power * position / speed;
    let residual: Vec<f64> = scratch.iter().zip(g).map(|(h, g)| (power * h + lambda * g) / root).collect();
    let factor = lambda * q.powf(-2.0 / degree);
    let slack: f64 = point.margins.iter().zip(point.weights).map(|(m, w)| factor * w * (m - q)).sum();
    let scale = gamma.powf(-1.0 / degree);
    let distance = (1.0 - measure.beta).max(0.0);
    let norm = hessian_bound(spec, &mut *potential, theta);
    let c1 = norm.map_or(f64::NAN, |norm| scale * (2.0 * norm * power).sqrt());
    let c2 = (point.margins.len() - 1) as f64 * scale * scale / (std::f64::consts::E * degree);
    Ok(KktBounds {
        proximity: None,
        stationarity: norm.map(|_| Bounded { measured: norm2(&residual), bound: c1 * distance.sqrt() }),
        slack: Some(Bounded { measured: slack, bound: c2 / u }),
        c1,
        c2,
        alignment: measure.beta,
        soft_margin: gamma,
    })
}
