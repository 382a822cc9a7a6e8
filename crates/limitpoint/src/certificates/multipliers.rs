//! (ε, δ)-approximate KKT points: what given multipliers prove, and the best multipliers.
//!
//! With θ̃ = θ/q_min^{1/L}, q̃ = q/q_min ≥ 1 and h̃_k = q_min^{1/L−1} h_k ∈ ∂q_k(θ̃), multipliers λ ≥ 0 for the problem
//! min ½φ² subject to q ≥ 1 (φ = s‖·‖ a norm or a horizon, φ_* = ‖·‖_*/s) give z = Σ λ_k h̃_k and
//!
//! ```text
//! Fenchel–Young gap   D = ½φ_*(z)² + ½φ(θ̃)² − ⟨z, θ̃⟩ ≥ 0,   0 exactly if z ∈ ∂½φ²(θ̃)       Ct.FY
//! slack               S = Σ λ_k (q̃_k − 1) ≥ 0,   max_k λ_k (q̃_k − 1)                        Ct.slack
//! residual            ε = min over k ∈ ∂½φ²(θ̃) of ‖z − k‖₂                                 Ct.res2
//! ```
//!
//! (ε, S) is the pair of A Definition A.12, (ε, max) that of C Definition G.4 and D Definition C.6; many classes have
//! one constraint for every wrong class (D Appendix F). At kinks z may use any slopes: λ_k h̃_k + Σ_j e_kj c̃_kj, 0 ≤
//! e_kj ≤ λ_k.
//!
//! **Best multipliers.** Euler's identity ⟨z, θ̃⟩ = L Σ λ_k q̃_k makes D + r S linear in λ but for ½φ_*(z)²:
//!
//! ```text
//! D + r S = ½φ_*(z)² + ½φ(θ̃)² − Σ λ_k b_k,        b_k = L q̃_k − r (q̃_k − 1)
//! ```
//!
//! For b > 0 put λ_k = c μ_k/b_k with Σμ = 1. The best c is s²/‖Σ μ_k h̃_k/b_k‖_*², and what remains is a margin
//! problem with the rows h̃_k/b_k, for every norm:
//!
//! ```text
//! min_λ D + r S = ½s² (‖θ̃‖² − 1/γ²),      γ = min_μ ‖Σ μ_k h̃_k/b_k‖_* = max_{‖v‖≤1} min_k ⟨h̃_k, v⟩/b_k
//! ```
//!
//! so a solver's bracket of γ brackets the minimum. r = 1 is Ct.nnls; r = 0 leaves the slack out (in ℓ2 this is the
//! non-negative least squares problem of ε); r = L has b = L: it is the tangent problem itself, and
//!
//! ```text
//! min D + L S = ½φ(θ̃)² (1 − (1 − τ)²),     hence  min D + S ≤ φ(θ̃)² τ   and in ℓ2  ε ≤ ‖θ̃‖ √(2τ)
//! ```
//!
//! Conversely multipliers with D + S = g φ(θ̃)², g < ½, prove τ ≤ (1 + L) g/(1 − √(2g)): from D ≥ ½(φ_*(z) − φ(θ̃))²
//! and D ≥ φ_*(z) φ(θ̃) − L Σλq̃. The two measures vanish together, at the same rate.

use super::residual::least_residual;
use super::{CertificateError, Evaluation, Geometry, Slopes, TangentProblem, solve_tangent};
use crate::data::Targets;
use crate::engine::Tangents;
use crate::linalg::{add_scaled, dot, norm2};
use crate::losses::Loss;
use crate::reference::{MarginProblem, Multipliers, solve_margin, sparse_dot};

/// Multipliers of a point and what they prove about θ̃ = θ/q_min^{1/L} in min ½φ² subject to q ≥ 1.
///
/// ```text
/// z = Σ λ_k ∇q_k(θ̃),   D = ½φ_*(z)² + ½φ(θ̃)² − ⟨z, θ̃⟩,   S = Σ λ_k (q_k(θ̃) − 1),   ε = min_{k ∈ ∂½φ²(θ̃)} ‖z − k‖₂
/// ```
///
/// A Definition A.12 asks for (ε, S), C Definition G.4 and D Definition C.6 for (ε, max λ_k(q_k(θ̃) − 1)).
#[derive(Debug, Clone, PartialEq)]
pub struct KktCertificate {
    /// λ of the rows, e of the kinks and s of the cone, at θ̃.
    pub multipliers: Multipliers,
    /// D.
    pub fenchel_young_gap: f64,
    /// S, the sum form of δ.
    pub slack: f64,
    /// max λ_k (q̃_k − 1), the form of δ for every constraint by itself.
    pub largest_slack: f64,
    /// ε.
    pub residual: f64,
    /// φ(θ̃)²; D and S divided by it, and ε divided by its root, do not change with the scale of the data.
    pub objective: f64,
}

/// The KKT measures of a point with three kinds of multipliers.
#[derive(Debug, Clone, PartialEq)]
pub struct KktReport {
    /// The papers' own: λ_k ∝ the weights of the loss, with the model's own slopes.
    pub papers: KktCertificate,
    /// Those that minimise D + S.
    pub best: KktCertificate,
    /// No multipliers of the rows of the tangent problem have a smaller D + S than this.
    pub best_lower: f64,
    /// Those with the least residual ε that was found.
    pub stationary: KktCertificate,
}

/// A tangent problem at θ̃, in the units of the margin problem min ½φ² subject to q ≥ 1.
pub(super) struct Scaled<'a> {
    pub tangent: &'a TangentProblem,
    /// q_min^{1/L − 1}: h̃ = factor · h.
    pub factor: f64,
    /// θ̃.
    pub point: Vec<f64>,
    /// q̃ of every row.
    pub margins: Vec<f64>,
}

impl<'a> Scaled<'a> {
    pub fn new(tangent: &'a TangentProblem) -> Self {
        let (q, degree) = (tangent.smallest_margin(), tangent.degree);
        let root = q.powf(1.0 / degree);
        Self {
            tangent,
            factor: root / q,
            point: tangent.params.iter().map(|t| t / root).collect(),
            margins: tangent.margin_of_row.iter().map(|&k| tangent.margins[k] / q).collect(),
        }
    }

    /// φ(θ̃)².
    pub fn objective(&self) -> f64 {
        (self.tangent.geometry.scale * self.tangent.size
            / self.tangent.smallest_margin().powf(1.0 / self.tangent.degree))
        .powi(2)
    }

    /// z, the cone's multipliers included.
    pub fn combine(&self, multipliers: &Multipliers) -> Vec<f64> {
        let mut z = self.tangent.problem.combine(multipliers);
        z.iter_mut().for_each(|x| *x *= self.factor);
        z
    }

    /// φ_*(z) of the multipliers, on the cone of the geometry.
    fn dual(&self, multipliers: &Multipliers) -> Result<f64, CertificateError> {
        let total: f64 = multipliers.rows.iter().sum();
        if total == 0.0 {
            return Ok(0.0);
        }
        let bracket = self.tangent.problem.bracket(&self.tangent.params, multipliers)?;
        Ok(bracket.upper.max(0.0) * total * self.factor / self.tangent.geometry.scale)
    }

    /// λ_k (q̃_k − 1) of every row.
    pub fn slacks(&self, multipliers: &Multipliers) -> Vec<f64> {
        multipliers.rows.iter().zip(&self.margins).map(|(p, q)| p * (q - 1.0)).collect()
    }

    /// D of the multipliers. Cone rows r act as constraints ⟨r, θ⟩ ≥ 0 with slack s⟨r, θ̃⟩, counted here.
    pub fn gap(&self, multipliers: &Multipliers) -> Result<f64, CertificateError> {
        let z = self.combine(multipliers);
        let cone: f64 = self
            .tangent
            .problem
            .cone
            .iter()
            .zip(&multipliers.cone)
            .map(|(row, s)| s * sparse_dot(row, &self.point))
            .sum();
        let gap =
            0.5 * self.dual(multipliers)?.powi(2) + 0.5 * self.objective() - dot(&z, &self.point) + cone * self.factor;
        Ok(gap.max(0.0))
    }

    /// What multipliers prove; `tolerance` is the activity tolerance of the subdifferential of the norm.
    pub fn measure(&self, multipliers: Multipliers, tolerance: f64) -> Result<KktCertificate, CertificateError> {
        let slacks = self.slacks(&multipliers);
        let mut z = self.combine(&multipliers);
        let nearest = self.nearest_subgradient(&z, tolerance)?;
        add_scaled(&mut z, -1.0, &nearest);
        Ok(KktCertificate {
            fenchel_young_gap: self.gap(&multipliers)?,
            slack: slacks.iter().sum(),
            largest_slack: slacks.iter().copied().fold(0.0, f64::max),
            residual: norm2(&z),
            objective: self.objective(),
            multipliers,
        })
    }

    /// The point of ∂½φ²(θ̃) = s²‖θ̃‖ ∂‖θ̃‖ nearest to z.
    pub fn nearest_subgradient(&self, z: &[f64], tolerance: f64) -> Result<Vec<f64>, CertificateError> {
        let problem = &self.tangent.problem;
        let mut norm = problem.norm.build(&problem.layout)?;
        let radius = self.tangent.geometry.scale * self.objective().sqrt();
        let target: Vec<f64> = z.iter().map(|x| x / radius).collect();
        let mut nearest = vec![0.0; z.len()];
        norm.project_subdifferential(&self.point, &target, tolerance, &mut nearest);
        nearest.iter_mut().for_each(|x| *x *= radius);
        Ok(nearest)
    }

    /// The minimiser of D + r S among multipliers of rows with b > 0, and a lower bound of the minimum over all λ ≥ 0.
    ///
    /// Rows with b_k ≤ 0 (only for r > L) get λ_k = 0. The bound is proved by v if ⟨h̃_k, v⟩ ≥ b_k there too, and is −∞
    /// otherwise.
    pub fn minimise(&self, r: f64) -> Result<(Multipliers, f64), CertificateError> {
        let (problem, scale) = (&self.tangent.problem, self.tangent.geometry.scale);
        let b: Vec<f64> = self.margins.iter().map(|q| self.tangent.degree * q - r * (q - 1.0)).collect();
        let kept: Vec<usize> = (0..b.len()).filter(|&i| b[i] > 0.0).collect();
        let scaled = self.divided(&b, &kept)?;
        let solution = solve_margin(&scaled)?;
        let (lower, upper) = (solution.bracket.lower, solution.bracket.upper);
        let c = (scale / upper).powi(2);
        let mut multipliers = Multipliers {
            rows: vec![0.0; b.len()],
            kinks: vec![0.0; problem.kinks.len()],
            cone: solution.multipliers.cone.iter().map(|s| c * s / self.factor).collect(),
        };
        kept.iter().zip(&solution.multipliers.rows).for_each(|(&i, mu)| multipliers.rows[i] = c * mu / b[i]);
        let own = problem.kinks.iter().enumerate().filter(|(_, kink)| b[kink.row] > 0.0);
        own.zip(&solution.multipliers.kinks).for_each(|((k, kink), e)| multipliers.kinks[k] = c * e / b[kink.row]);
        // v/lower is feasible: ⟨h̃_k, v⟩ ≥ b_k
        let products = problem.margins(&solution.direction);
        let proved = (0..b.len()).all(|i| b[i] > 0.0 || self.factor * products[i] >= b[i] * lower);
        let least = 0.5 * (self.objective() - (scale / lower).powi(2));
        Ok((problem.clean(&multipliers), if proved && lower > 0.0 { least } else { f64::NEG_INFINITY }))
    }

    /// The margin problem of the kept rows h̃_k/b_k.
    fn divided(&self, b: &[f64], kept: &[usize]) -> Result<MarginProblem, CertificateError> {
        let mut problem = self.tangent.problem.clone();
        let mut data = Vec::with_capacity(kept.len() * problem.rows.cols);
        kept.iter().for_each(|&i| data.extend(problem.rows.row(i).iter().map(|x| x * self.factor / b[i])));
        problem.rows = crate::linalg::Matrix::from_vec(kept.len(), problem.rows.cols, data)?;
        problem.kinks.retain_mut(|kink| {
            let factor = self.factor / b[kink.row];
            kink.change.iter_mut().for_each(|(_, run)| run.iter_mut().for_each(|x| *x *= factor));
            kept.binary_search(&kink.row).map(|row| kink.row = row).is_ok()
        });
        Ok(problem)
    }

    /// The papers' multipliers, from weights w_k = −∂ ln L/∂q_k of the margins.
    ///
    /// ```text
    /// λ_k = s² q_min^{1−2/L} (‖θ‖/‖Σ w h‖_*) w_k      A Proposition A.13, D Lemma C.8
    /// ```
    pub fn papers(&self, weights: &[f64]) -> Result<Multipliers, CertificateError> {
        let plain = Multipliers {
            rows: self.tangent.margin_of_row.iter().map(|&k| weights[k]).collect(),
            kinks: vec![0.0; self.tangent.problem.kinks.len()],
            cone: vec![0.0; self.tangent.problem.cone.len()],
        };
        let (q, degree, scale) = (self.tangent.smallest_margin(), self.tangent.degree, self.tangent.geometry.scale);
        let dual = self.dual(&plain)? * scale / self.factor;
        let factor = scale * scale * q.powf(1.0 - 2.0 / degree) * self.tangent.size / dual;
        Ok(Multipliers { rows: plain.rows.iter().map(|w| factor * w).collect(), ..plain })
    }
}

/// The multipliers with the smallest D + S, and a lower bound of it over all multipliers (Ct.nnls).
pub fn best_multipliers(tangent: &TangentProblem, tolerance: f64) -> Result<(KktCertificate, f64), CertificateError> {
    let scaled = Scaled::new(tangent);
    let (multipliers, lower) = scaled.minimise(1.0)?;
    Ok((scaled.measure(multipliers, tolerance)?, lower.max(0.0)))
}

/// The KKT measures of a point: the papers' multipliers, the best ones, and those of least residual.
///
/// `tolerance` is the activity tolerance at which ∂‖θ‖ is taken ([`Norm::project_subdifferential`]); 0 is exact. The
/// papers' multipliers use the model's own slopes, the others those that `slopes` allows.
///
/// [`Norm::project_subdifferential`]: crate::norms::Norm::project_subdifferential
pub fn kkt_report(
    model: &mut dyn Tangents,
    targets: &Targets,
    loss: &dyn Loss,
    params: &[f64],
    geometry: &Geometry,
    (slopes, tolerance): (Slopes, f64),
) -> Result<KktReport, CertificateError> {
    if !(0.0..1.0).contains(&tolerance) {
        let (what, range) = ("the activity tolerance", "in [0, 1)");
        return Err(CertificateError::OutOfRange { what, value: tolerance, range });
    }
    let fixed = TangentProblem::new(model, targets, params, geometry, Slopes::Fixed)?;
    let evaluation = Evaluation::new(model, targets, loss, params)?;
    let scaled = Scaled::new(&fixed);
    let papers = scaled.measure(scaled.papers(evaluation.point().weights)?, tolerance)?;
    let (tangent, _) = solve_tangent(model, targets, params, geometry, slopes)?;
    let (best, best_lower) = best_multipliers(&tangent, tolerance)?;
    let stationary = least_residual(&tangent, Some(&best), tolerance)?;
    Ok(KktReport { papers, best, best_lower, stationary })
}
