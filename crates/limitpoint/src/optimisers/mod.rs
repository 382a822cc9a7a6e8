//! Discrete steps in a geometry, with all state explicit.
//!
//! An [`Optimiser`] turns a scaled gradient and a step size into new parameters. It never sees the data; what it
//! remembers is an [`OptimiserState`] that can be written down, read back and continued bit for bit. Step sizes come
//! from `schedules` as logarithms, gradients as [`LogScaled`], so η·∇L = exp(ln η + ln L) · ∇ln L is formed in one
//! place, [`step_factor`], and is exact when η grows like 1/L.
//!
//! | file | update |
//! |---|---|
//! | `steepest` | θ + η‖g‖_* d(g): gradient, sign, coordinate, spectral descent; their normalised forms |
//! | `clarke` | the minimum-dual-norm subgradient at kinks, used by `steepest` |
//! | `monotone_coordinate` | coordinate descent that skips entries whose step would raise the loss |
//! | `momentum` | heavy ball, Nesterov |
//! | `mirror` | ∇R(θ⁺) = ∇R(θ) − ηg, with dual or primal momentum |
//! | `constrained_mirror` | mirror descent on {Gw = h}, exponentiated gradient on the simplex |
//! | `natural_gradient` | θ − η ∇²R(θ)⁻¹ g |
//! | `adam` | Adam, AdamW, RMSProp; `adagrad` |
//! | `ada_boost` | the best weak learner, by AdaBoost's step |
//! | `sign_momentum` | Signum, Lion |
//! | `shampoo`, `muon` | matrix preconditioners |
//! | `dual_acceleration` | θ + ηL/θₜ · ‖y‖_* d(y), y a moving average of ∇ln L: margin gap Õ(1/t²) for linear models |
//! | `progressive_rescaling` | P(θ − ηg) onto balls whose radius doubles: margin gap e^−Ω(t) for linear models in ℓ2 |
//! | `switch` | one optimiser until an event, another after it |
//! | `adjusted` | another optimiser's, with a factor on its steps and decoupled weight decay |
//! | `blocks` | an optimiser of its own for every group of blocks |
//!
//! What they are called is in `spec`, `names` and `catalogue`; `build` makes them. `memory` says how fast each forgets
//! earlier gradients, `own_norm` which norm each belongs to, `hybrid_norm` which one a composition does.

mod ada_boost;
mod adagrad;
mod adam;
mod adjusted;
mod blocks;
mod build;
mod catalogue;
mod clarke;
mod constrained_mirror;
mod dual_acceleration;
mod hybrid_norm;
mod memory;
mod mirror;
mod moments;
mod momentum;
mod monotone_coordinate;
mod muon;
mod names;
mod natural_gradient;
mod own_norm;
mod progressive_rescaling;
mod shampoo;
mod sign_momentum;
mod spec;
mod state;
mod steepest;
mod switch;

#[cfg(test)]
mod composition_tests;
#[cfg(test)]
mod margin_tests;
#[cfg(test)]
mod tests;

pub use clarke::{MinimumNorm, minimum_norm};
pub use constrained_mirror::Constraint;
pub use mirror::MomentumSpace;
pub use muon::{Muon, OtherBlocks, PolarMethod};
pub use own_norm::NoOwnNorm;
pub use spec::OptimiserSpec;
pub use state::OptimiserState;
pub use steepest::{Scaling, Steepest};
pub use switch::Event;

use crate::norms::NormError;
use crate::numeric::LogScaled;
use crate::objective::Evaluation;
use crate::params::{DiagonalMetric, ParamsError, Update};
use crate::potentials::PotentialError;
use crate::schedules::StepContext;

/// One way of moving parameters downhill.
pub trait Optimiser: Send {
    /// Called before the gradient of each step is taken, with what is known at the current point.
    fn prepare(&mut self, context: &StepContext) {
        let _ = context;
    }

    /// Writes the point where the gradient must be taken, if it is not `params` itself (Nesterov's look-ahead).
    fn look_ahead(&mut self, params: &[f64], out: &mut [f64]) -> bool {
        let _ = (params, out);
        false
    }

    /// What it asks of the engine before its first step.
    fn wishes(&self) -> Wishes {
        Wishes::default()
    }

    /// The gradient this optimiser wants at `params`, where the evaluation was made.
    fn subgradient(&mut self, evaluation: Evaluation<'_>, params: &[f64], gradient: &mut LogScaled) {
        evaluation.backward(params, gradient);
    }

    /// The step of size exp(`log_step`) as a formula, where it treats every entry of a gradient of this `log_scale` for
    /// itself: the engine then makes it where the parameters are, together with the backward pass if it can. Whoever
    /// answers with one takes the objective's own gradient at θ itself: [`Optimiser::look_ahead`] and
    /// [`Optimiser::subgradient`] do what is provided. All others move on the host, in [`Optimiser::step`].
    fn update(&self, log_scale: f64, log_step: f64) -> Update {
        let _ = (log_scale, log_step);
        Update::Host
    }

    /// Moves `params` by one step of size exp(`log_step`).
    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        context: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError>;

    /// Called where something else has moved `params` since the last step, as weight decay does: what was derived from
    /// them is derived anew.
    fn displaced(&mut self, params: &[f64]) {
        let _ = params;
    }

    /// Numbers worth watching about the last step, by name: Muon's polar error, the kinks a minimum-norm step resolved
    /// and the duality gap it left. May cost more than a step.
    fn report(&mut self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Everything remembered between steps.
    fn state(&self) -> OptimiserState;

    /// Takes up a remembered state.
    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError>;
}

/// What an optimiser asks of an engine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wishes {
    /// The model's kinks, without which it would be another optimiser.
    pub kinks: bool,
    /// To step by this metric where the parameters are; an engine that knows none leaves the steps to the host.
    pub metric: Option<DiagonalMetric>,
}

/// exp(ln η + ln scale): the factor in front of the gradient's direction. A zero gradient gives 0.
///
/// ```
/// use limitpoint::optimisers::step_factor;
/// assert!((step_factor(5000.0 + 0.5f64.ln(), -5000.0) - 0.5).abs() < 1e-12);
/// assert_eq!(step_factor(3.0, f64::NEG_INFINITY), 0.0);
/// ```
pub fn step_factor(log_step: f64, log_scale: f64) -> f64 {
    if log_scale == f64::NEG_INFINITY { 0.0 } else { (log_step + log_scale).exp() }
}

/// What an optimiser can refuse or run into.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptimiserError {
    /// A name that is no optimiser with default settings.
    #[error(
        "'{0}' is no optimiser with default settings; use gradient, sign, coordinate, spectral, monotone-coordinate, \
         heavy-ball, nesterov, adam, adam-w, ada-grad, ada-boost, rms-prop, signum, lion, shampoo, muon, \
         dual-acceleration or progressive-rescaling"
    )]
    Unknown(String),
    /// A number out of range.
    #[error("{optimiser}: {what} is {value}, but must be {range}")]
    OutOfRange {
        /// Key of the optimiser.
        optimiser: &'static str,
        /// What the number sets.
        what: &'static str,
        /// The number.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// A saved state of another optimiser or another model.
    #[error("the saved state does not fit {optimiser}: {what}; resume with the settings the state was saved under")]
    WrongState {
        /// Key of the optimiser.
        optimiser: &'static str,
        /// What does not fit.
        what: String,
    },
    /// A norm whose square has no curvature to derive a step size from.
    #[error(
        "dual-acceleration: no step size is known for the norm '{0}', whose square is not strongly convex; use l2, a \
         quadratic norm or lp with 1 < p <= 2, or set modulus (1, say) to try it without a theorem"
    )]
    NotStronglyConvex(String),
    /// An affine constraint that cannot be kept.
    #[error("constrained-mirror: the constraint Gw = h cannot be kept: {0}")]
    Constraint(String),
    /// A step so long that weight decay would turn the weights around.
    #[error(
        "{optimiser}: a step of size η = {step:.4e} with the weight decay λ = {decay} would multiply the weights by 1 − ηλ = {:.4e}, \
         which must be positive; lower the decay, or use a schedule whose steps do not grow as the loss falls, such as \
         constant(rate=0.1)", 1.0 - step * decay
    )]
    Decay {
        /// Key of the optimiser.
        optimiser: &'static str,
        /// η, the factor of the part included.
        step: f64,
        /// λ.
        decay: f64,
    },
    /// Groups of blocks that do not fit the model.
    #[error("blocks: {0}")]
    Selection(ParamsError),
    /// No part at all.
    #[error(
        "blocks: no part is given; name groups of blocks and their optimisers, as in blocks(hidden=muon, rest=adam)"
    )]
    NoParts,
    /// An optimiser that asks the whole model about single steps.
    #[error(
        "blocks: '{optimiser}' of the part '{part}' chooses its gradient by looking at the whole model, so that it cannot move a \
         group of blocks alone; use coordinate there, or it for all blocks"
    )]
    WholeModel {
        /// The part.
        part: String,
        /// Key of its optimiser.
        optimiser: &'static str,
    },
    /// A part was refused, or its step failed.
    #[error("the part '{part}' of blocks: {source}")]
    Part {
        /// The blocks it is for, as they were written.
        part: String,
        /// What is wrong with it.
        source: Box<OptimiserError>,
    },
    /// A decomposition failed because the gradient is not finite.
    #[error(transparent)]
    Linalg(#[from] crate::linalg::LinalgError),
    /// The norm was refused.
    #[error(transparent)]
    Norm(#[from] NormError),
    /// The potential was refused, or a step left its domain.
    #[error(transparent)]
    Potential(#[from] PotentialError),
}

/// Checks `value` against a closed or half-open range given by a predicate.
fn require(
    optimiser: &'static str,
    what: &'static str,
    value: f64,
    range: &'static str,
    holds: bool,
) -> Result<(), OptimiserError> {
    if holds { Ok(()) } else { Err(OptimiserError::OutOfRange { optimiser, what, value, range }) }
}
