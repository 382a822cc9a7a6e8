//! From the description of an optimiser to the worker.

use super::ada_boost::AdaBoost;
use super::adagrad::AdaGrad;
use super::adam::{Adam, AdamSettings};
use super::adjusted::Adjusted;
use super::blocks::Blocks;
use super::constrained_mirror::ConstrainedMirror;
use super::dual_acceleration::DualAcceleration;
use super::mirror::Mirror;
use super::momentum::Momentum;
use super::monotone_coordinate::MonotoneCoordinate;
use super::natural_gradient::NaturalGradient;
use super::progressive_rescaling::{ProgressiveRescaling, RescalingSettings};
use super::shampoo::Shampoo;
use super::sign_momentum::SignMomentum;
use super::steepest::Steepest;
use super::switch::Switch;
use super::{Muon, Optimiser, OptimiserError, OptimiserSpec};
use crate::params::ParamLayout;

impl OptimiserSpec {
    /// Checks the settings and makes the worker.
    pub fn build(&self, layout: &ParamLayout) -> Result<Box<dyn Optimiser>, OptimiserError> {
        let adam = |key, beta1, beta2, epsilon, weight_decay, correct_bias| {
            Adam::new(AdamSettings { key, beta1, beta2, epsilon, weight_decay, correct_bias }, layout)
        };
        Ok(match self {
            Self::Steepest { norm, scaling, minimum_norm } => {
                Box::new(Steepest::new(norm, *scaling, *minimum_norm, layout)?)
            }
            Self::MonotoneCoordinate { scaling } => Box::new(MonotoneCoordinate::new(*scaling, layout)),
            Self::HeavyBall { momentum } => Box::new(Momentum::new("heavy-ball", *momentum, 0.0, layout.len())?),
            Self::Nesterov { momentum } => Box::new(Momentum::new("nesterov", *momentum, *momentum, layout.len())?),
            Self::Mirror { potential, space, beta, gamma } => {
                Box::new(Mirror::new(potential, *space, (*beta, *gamma), layout)?)
            }
            Self::ConstrainedMirror { potential, constraint } => {
                Box::new(ConstrainedMirror::new(potential, constraint, layout)?)
            }
            Self::AdaBoost => Box::new(AdaBoost),
            Self::NaturalGradient { potential } => Box::new(NaturalGradient::new(potential, layout)?),
            Self::Adam { beta1, beta2, epsilon } => Box::new(adam("adam", *beta1, *beta2, *epsilon, 0.0, true)?),
            Self::AdamW { beta1, beta2, epsilon, weight_decay } => {
                Box::new(adam("adam-w", *beta1, *beta2, *epsilon, *weight_decay, true)?)
            }
            Self::AdaGrad { epsilon, initial } => Box::new(AdaGrad::new(*epsilon, *initial, layout)?),
            Self::RmsProp { decay, epsilon } => Box::new(adam("rms-prop", 0.0, *decay, *epsilon, 0.0, false)?),
            Self::Signum { momentum } => Box::new(SignMomentum::signum(*momentum, layout)?),
            Self::Lion { beta1, beta2, weight_decay } => {
                Box::new(SignMomentum::lion(*beta1, *beta2, *weight_decay, layout)?)
            }
            Self::Shampoo { accumulate, epsilon, power } => {
                Box::new(Shampoo::new(*accumulate, *epsilon, *power, layout)?)
            }
            Self::Muon { momentum, nesterov, polar, others } => {
                Box::new(Muon::new(*momentum, *nesterov, *polar, *others, layout)?)
            }
            Self::DualAcceleration { norm, modulus } => Box::new(DualAcceleration::new(norm, *modulus, layout)?),
            Self::ProgressiveRescaling { norm, growth, phase, warm_up, tolerance, largest } => {
                let (growth, phase, warm_up) = (*growth, *phase, *warm_up);
                let settings = RescalingSettings { growth, phase, warm_up, tolerance: *tolerance, largest: *largest };
                Box::new(ProgressiveRescaling::new(norm, settings, layout)?)
            }
            Self::Switch { first, second, when, rate_factor } => {
                let holds = *rate_factor > 0.0 && rate_factor.is_finite();
                super::require("switch", "rate_factor", *rate_factor, "positive and finite", holds)?;
                Box::new(Switch {
                    first: first.build(layout)?,
                    second: second.build(layout)?,
                    event: *when,
                    log_rate_factor: rate_factor.ln(),
                    switched: false,
                })
            }
            Self::Adjusted { of, factor, decay } => {
                Box::new(Adjusted::new(of.build(layout)?, *factor, *decay, layout)?)
            }
            Self::Blocks(parts) => Box::new(Blocks::new(parts, layout)?),
        })
    }
}
