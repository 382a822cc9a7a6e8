//! Accelerated margin maximisation in any norm, through the dual.

use super::{Optimiser, OptimiserError, OptimiserState, step_factor};
use crate::norms::{Norm, NormSpec, PlainNorm};
use crate::numeric::LogScaled;
use crate::params::ParamLayout;
use crate::schedules::StepContext;

/// Accelerated mirror descent on the dual of the margin problem, seen from the primal.
///
/// For linear margins qᵢ = ⟨zᵢ, w⟩ the best margin is a minimum over weights of the examples,
///
/// ```text
/// γ = max_{‖w‖≤1} minᵢ ⟨zᵢ, w⟩ = min_{p∈Δ} ‖Zᵀp‖_*,      φ(p) = ½‖Zᵀp‖_*²
/// ```
///
/// If ½‖·‖² is σ-strongly convex in ‖·‖, then ∇(½‖·‖_*²) is 1/σ-Lipschitz and φ is (B²/σ)-smooth in ℓ1 over the
/// simplex, B = maxᵢ ‖zᵢ‖_*. The accelerated method with the entropy as mirror map (Tseng 2008, algorithm 1) keeps an
/// average p̄ and a mirror sequence p, mixes them, and multiplies p by exp(−Z·(primal step)): p is the softmin of
/// Z·(sum of all primal steps) = Z·w. These are the weights the exponential loss gives at w, so Zᵀp = −∇L/L =: gₜ and
/// nothing else is needed:
///
/// ```text
/// mₜ   = (1 − θₜ₋₁) mₜ₋₁ + θₜ₋₁ gₜ          Zᵀp̄,  m₀ = g₀
/// yₜ   = (1 − θₜ) mₜ + θₜ gₜ                Zᵀ of the mixture
/// wₜ₊₁ = wₜ + (σ/B²)/θₜ · ‖yₜ‖_* d(yₜ)      d the unit vector with ⟨y, d⟩ = ‖y‖_*
/// θₜ   = 2/(t + 2)
/// ```
///
/// In ℓ2 with B ≤ 1 this is the method of Ji, Srebro and Telgarsky 2021, "Fast margin maximization via dual
/// acceleration", whose momentum is (t/2)·mₜ; γ − γ(wₜ) = O(ln n · ln t/t²) there. Wang, Hu, Muthukumar and Abernethy
/// 2023, "Faster margin maximization rates for generic optimization methods", treat other strongly convex norms. ‖wₜ‖
/// grows like t², and so does ln 1/L; once the weights have settled at their limit p the margins of the support differ
/// by constants, ln(pᵢ/pⱼ), and the gap is a constant over ‖wₜ‖. p̄ bounds the margin from above.
///
/// The step size is the one of ∇L, as everywhere: ηL stands where the formula has 1/B², and σ is put in here. So the
/// schedule `linear-bound` with c ≤ 1 is the theorem's step; a constant η falls behind as soon as L does. Averaging
/// normalised gradients is sound for the exponential loss, and for the logistic loss once all margins are large.
///
/// | norm | σ | what is known |
/// |---|---|---|
/// | ℓ2, Frobenius, quadratic | 1 | the theorem above |
/// | ℓp, 1 < p ≤ 2 | p − 1 | the same rate over σ |
/// | all others | 0 | nothing: ½‖·‖_*² has kinks, φ is not smooth; refused unless a `modulus` is given as a try |
///
/// Seen in tries with a modulus of 1 and 10⁴ steps: ℓ3 behaves like ℓ1.5, being curved where it matters; in ℓ1 and ℓ∞
/// the dual bound ‖Zᵀp̄‖_* came within 3·10⁻⁵ of γ, but wₜ jumps between corners, and its gap fell like 1/t, or stalled
/// for long. Models that are not linear, and mini-batches, are tries too.
pub(super) struct DualAcceleration {
    norm: Box<dyn Norm>,
    modulus: f64,
    /// t.
    count: f64,
    /// −mₜ: a running average of ∇ ln L.
    average: Vec<f64>,
    mixture: Vec<f64>,
    direction: Vec<f64>,
}

impl DualAcceleration {
    pub fn new(spec: &NormSpec, modulus: Option<f64>, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        let modulus = match modulus {
            Some(given) => {
                let holds = given > 0.0 && given.is_finite();
                super::require("dual-acceleration", "modulus", given, "positive and finite", holds)?;
                given
            }
            None => strong_convexity(spec, layout).ok_or_else(|| OptimiserError::NotStronglyConvex(spec.key()))?,
        };
        let zeros = || vec![0.0; layout.len()];
        let (average, mixture, direction) = (zeros(), zeros(), zeros());
        Ok(Self { norm: spec.build(layout)?, modulus, count: 0.0, average, mixture, direction })
    }
}

/// The largest σ with ½‖·‖² σ-strongly convex in ‖·‖, where it is positive.
///
/// Ball, Carlen and Lieb 1994 for ℓp; above p = 2 the curvature vanishes on the axes.
fn strong_convexity(norm: &NormSpec, layout: &ParamLayout) -> Option<f64> {
    let parts = norm.canonical(layout).ok()?.parts;
    let [part] = &parts[..] else { return None };
    match &part.norm {
        PlainNorm::L2 | PlainNorm::Quadratic(_) | PlainNorm::QuadraticDense(_) => Some(1.0),
        PlainNorm::Lp(p) if *p < 2.0 => Some(p - 1.0),
        PlainNorm::Lp(_)
        | PlainNorm::L1
        | PlainNorm::Linf
        | PlainNorm::Spectral
        | PlainNorm::Nuclear
        | PlainNorm::GroupL21
        | PlainNorm::GroupL2Inf => None,
    }
}

impl Optimiser for DualAcceleration {
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        let (theta, theta_before) = (2.0 / (self.count + 2.0), (2.0 / (self.count + 1.0)).min(1.0));
        for ((m, y), g) in self.average.iter_mut().zip(&mut self.mixture).zip(&gradient.direction) {
            *m += theta_before * (g - *m);
            *y = *m + theta * (g - *m);
        }
        let factor = step_factor(log_step, gradient.log_scale) * self.modulus / theta;
        self.norm.descend(params, &self.mixture, factor, false, &mut self.direction);
        self.count += 1.0;
        Ok(())
    }

    fn report(&mut self) -> Vec<(&'static str, f64)> {
        // ‖Zᵀp̄‖_*, which no margin of a linear model exceeds: p̄ is a distribution over the examples
        vec![("dual_bound", self.norm.dual(&self.average))]
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new("dual-acceleration").with_number("count", self.count).with_vector("average", &self.average)
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("dual-acceleration")?;
        self.count = state.number("count")?;
        state.read_vector("average", &mut self.average)
    }
}
