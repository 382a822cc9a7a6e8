//! Normalised descent on balls that grow geometrically.

use std::ops::Range;

use super::{Optimiser, OptimiserError, OptimiserState, step_factor};
use crate::linalg::{add_scaled, dot};
use crate::norms::{Norm, NormSpec};
use crate::numeric::LogScaled;
use crate::params::ParamLayout;
use crate::schedules::StepContext;

/// Progressive rescaling gradient descent (PRGD).
///
/// ```text
/// warm-up   θ ← θ − η∇L(θ), `warm_up` times;                                           R₁ = growth · ‖θ‖
/// phase k   θ ← R_k θ/‖θ‖, then θ ← P(θ − η∇L(θ)) with P onto ‖θ‖ ≤ R_k, until it ends;  R_{k+1} = growth · R_k
/// ```
///
/// Wang, Min and Wu 2024, "Achieving margin maximization exponentially fast via progressive norm rescaling". ηL is
/// their constant step of ∇L/L, so the schedule must follow the loss; `linear-bound` does. Around the ray of the best
/// margin the normalised gradient pulls inwards as strongly far out as near the origin; but normalised descent moves
/// out by ηLγ a step, so its angle to the ray can only fall like 1/t. Stretching θ leaves the normalised margin as it
/// is and multiplies the distance to the ray by `growth`; some steps bring it back to the same O(1). So the angle falls
/// like 1/R_k, and for linear models in ℓ2, if the support vectors span the space of the data, with phases of a fixed
/// length that suffices,
///
/// ```text
/// γ − γ(θ) = O(1/R_k) = O(growth^(−t/phase))
/// ```
///
/// What suffices depends on the data: growth · (1 − ηLμ)^phase < 1, where μ is the smallest curvature of ln L across
/// the ray (the variance of the support vectors in the direction where they vary least). A phase that is too short lets
/// the angle stall for good. So a phase lasts `phase` steps and goes on until its own problem, min ln L over ‖θ‖ ≤ R_k,
/// is solved to `tolerance`: with g = ∇ ln L, whose dual norm is a bound on γ (B Lemma 10), and ln L ≥ −q_min,
///
/// ```text
/// R‖g‖_* − ⟨θ, −g⟩ ≤ tolerance   ⟹   γ − γ(θ) ≤ (tolerance + ln n)/R_k
/// ```
///
/// for the exponential loss and n margins, since ⟨θ, −g⟩ is the mean of the margins under the weights of the loss, that
/// is, their entropy minus ln L. A `tolerance` of 1e300 gives back the phases of fixed length. Below it they last like
/// ln R_k/(ηLμ), so a large `growth` pays more than in the original.
///
/// **Other norms.** The step stays Euclidean and P is the Euclidean projection onto the ball of the norm, so a phase
/// still solves min ln L over the ball, and the bound above holds in every norm; how long a phase lasts is proven in
/// none but ℓ2. The step size is bounded by the features in ℓ2, not in the dual norm.
///
/// The stretching is done at the end of a phase, before the next gradient is taken. From `largest` on the radius stays:
/// beyond about 10¹³ the margins lose the digits that the weights of the loss are made of. Since a stretching moves
/// margins by far more than a step, a schedule that bounds the change of margins (`flow-resolved`) refuses it and gives
/// up.
pub(super) struct ProgressiveRescaling {
    settings: RescalingSettings,
    norm: Box<dyn Norm>,
    trainable: Vec<Range<usize>>,
    /// R_k; infinite during the warm-up.
    radius: f64,
    /// Steps made in this phase.
    count: f64,
}

/// The settings, as in the specification.
#[derive(Debug, Clone, Copy)]
pub(super) struct RescalingSettings {
    pub growth: f64,
    pub phase: u32,
    pub warm_up: u32,
    pub tolerance: f64,
    pub largest: f64,
}

const KEY: &str = "progressive-rescaling";

impl ProgressiveRescaling {
    pub fn new(norm: &NormSpec, settings: RescalingSettings, layout: &ParamLayout) -> Result<Self, OptimiserError> {
        let RescalingSettings { growth, phase, warm_up, tolerance, largest } = settings;
        super::require(KEY, "growth", growth, "above 1 and finite", growth > 1.0 && growth.is_finite())?;
        super::require(KEY, "phase", f64::from(phase), "1 or more", phase >= 1)?;
        super::require(KEY, "warm_up", f64::from(warm_up), "1 or more", warm_up >= 1)?;
        let holds = tolerance > 0.0 && tolerance.is_finite();
        super::require(KEY, "tolerance", tolerance, "positive and finite", holds)?;
        super::require(KEY, "largest", largest, "positive and finite", largest > 0.0 && largest.is_finite())?;
        let trainable = layout.trainable_ranges();
        Ok(Self { settings, norm: norm.build(layout)?, trainable, radius: f64::INFINITY, count: 0.0 })
    }

    /// Whether no point of the ball has a smaller ln L by more than the tolerance, if ln L is convex.
    fn solved(&mut self, params: &[f64], gradient: &[f64]) -> bool {
        self.radius * self.norm.dual(gradient) + dot(params, gradient) <= self.settings.tolerance
    }

    /// Grows the ball and stretches θ to its surface; the origin stays where it is.
    fn stretch(&mut self, params: &mut [f64]) {
        let size = self.norm.value(params);
        if size == 0.0 {
            return;
        }
        let radius = if self.radius.is_finite() { self.radius } else { size };
        // never shrinks, even where the warm-up went beyond the largest radius
        self.radius = (self.settings.growth * radius).min(self.settings.largest).max(radius);
        let factor = self.radius / size;
        for range in &self.trainable {
            params[range.clone()].iter_mut().for_each(|theta| *theta *= factor);
        }
    }
}

impl Optimiser for ProgressiveRescaling {
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        let warming_up = self.radius == f64::INFINITY;
        self.count += 1.0;
        let ends = if warming_up {
            self.count >= f64::from(self.settings.warm_up)
        } else {
            self.count >= f64::from(self.settings.phase) && self.solved(params, &gradient.direction)
        };
        add_scaled(params, -step_factor(log_step, gradient.log_scale), &gradient.direction);
        if !warming_up {
            self.norm.project_ball(self.radius, params);
        }
        if ends {
            self.count = 0.0;
            self.stretch(params);
        }
        Ok(())
    }

    fn report(&mut self) -> Vec<(&'static str, f64)> {
        vec![("radius", self.radius)]
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new(KEY).with_number("radius", self.radius).with_number("count", self.count)
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check(KEY)?;
        self.radius = state.number("radius")?;
        self.count = state.number("count")?;
        Ok(())
    }
}
