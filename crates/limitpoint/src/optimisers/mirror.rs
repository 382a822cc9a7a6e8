//! Mirror descent, with dual and primal momentum.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Optimiser, OptimiserError, OptimiserState, step_factor};
use crate::numeric::LogScaled;
use crate::params::ParamLayout;
use crate::potentials::{MirrorPotential, PotentialSpec};
use crate::schedules::StepContext;

/// In which space the momentum of mirror descent is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MomentumSpace {
    /// β(∇R(θ) − ∇R(θ⁻)) is added to the dual iterate (B eq. 7); keeps the limit (B Theorem 1a).
    #[default]
    Dual,
    /// ∇R is taken at θ + β(θ − θ⁻) (B eq. 8); moves the limit (B Example 2).
    Primal,
}

/// Mirror descent on a potential R.
///
/// ```text
/// plain   ∇R(θ⁺) = ∇R(θ) − η g                                                       B eq. (4), C
/// dual    ∇R(θ⁺) = ∇R(θ) + β(∇R(θ) − ∇R(θ⁻)) − η ∇L(θ + γ(θ − θ⁻))                   B eq. (7)
/// primal  ∇R(θ⁺) = ∇R(θ + β(θ − θ⁻)) − η ∇L(θ + γ(θ − θ⁻))                            B eq. (8)
/// ```
///
/// The dual iterate ∇R(θ) is kept between steps rather than recomputed, so that it never leaves the span of the data by
/// rounding. An extrapolated point outside the potential's domain is an error that names the entry, never clamped.
pub(super) struct Mirror {
    potential: Box<dyn MirrorPotential>,
    space: MomentumSpace,
    beta: f64,
    gamma: f64,
    trainable: Vec<Range<usize>>,
    started: bool,
    dual: Vec<f64>,
    previous: Vec<f64>,
    displacement: Vec<f64>,
    scratch: Vec<f64>,
}

impl Mirror {
    pub fn new(
        spec: &PotentialSpec,
        space: MomentumSpace,
        (beta, gamma): (f64, f64),
        layout: &ParamLayout,
    ) -> Result<Self, OptimiserError> {
        super::require("mirror", "beta", beta, "in [0, 1)", (0.0..1.0).contains(&beta))?;
        super::require("mirror", "gamma", gamma, "0 or more and finite", gamma >= 0.0 && gamma.is_finite())?;
        let zeros = || vec![0.0; layout.len()];
        Ok(Self {
            potential: spec.build(layout)?,
            space,
            beta,
            gamma,
            trainable: layout.trainable_ranges(),
            started: false,
            dual: zeros(),
            previous: zeros(),
            displacement: zeros(),
            scratch: zeros(),
        })
    }

    /// θ + factor · (θ − θ⁻) into `out`.
    fn extrapolate(&self, params: &[f64], factor: f64, out: &mut [f64]) {
        out.copy_from_slice(params);
        crate::linalg::add_scaled(out, factor, &self.displacement);
    }
}

impl Optimiser for Mirror {
    fn look_ahead(&mut self, params: &[f64], out: &mut [f64]) -> bool {
        if self.gamma == 0.0 || !self.started {
            return false;
        }
        self.extrapolate(params, self.gamma, out);
        true
    }

    fn step(
        &mut self,
        params: &mut [f64],
        gradient: &LogScaled,
        _: &StepContext,
        log_step: f64,
    ) -> Result<(), OptimiserError> {
        if !self.started {
            self.potential.check_domain(params)?;
            self.potential.mirror_map(params, &mut self.dual);
            self.previous.copy_from_slice(&self.dual);
            self.started = true;
        }
        let factor = step_factor(log_step, gradient.log_scale);
        match self.space {
            MomentumSpace::Dual => {
                for ((z, old), g) in self.dual.iter_mut().zip(&mut self.previous).zip(&gradient.direction) {
                    let next = *z + self.beta * (*z - *old) - factor * g;
                    *old = *z;
                    *z = next;
                }
            }
            MomentumSpace::Primal => {
                if self.beta != 0.0 {
                    let mut point = std::mem::take(&mut self.scratch);
                    self.extrapolate(params, self.beta, &mut point);
                    let inside = self.potential.check_domain(&point);
                    if inside.is_ok() {
                        self.potential.mirror_map(&point, &mut self.dual);
                    }
                    self.scratch = point;
                    inside?;
                }
                crate::linalg::add_scaled(&mut self.dual, -factor, &gradient.direction);
            }
        }
        self.potential.inverse_mirror_map(&self.dual, &mut self.scratch);
        for range in &self.trainable {
            for i in range.clone() {
                self.displacement[i] = self.scratch[i] - params[i];
                params[i] = self.scratch[i];
            }
        }
        Ok(())
    }

    /// The dual iterate follows the weights, its momentum stays.
    fn displaced(&mut self, params: &[f64]) {
        if !self.started {
            return;
        }
        self.potential.mirror_map(params, &mut self.scratch);
        for ((z, old), new) in self.dual.iter_mut().zip(&mut self.previous).zip(&self.scratch) {
            *old += new - *z;
            *z = *new;
        }
    }

    fn state(&self) -> OptimiserState {
        OptimiserState::new("mirror")
            .with_number("started", f64::from(u8::from(self.started)))
            .with_vector("dual", &self.dual)
            .with_vector("previous", &self.previous)
            .with_vector("displacement", &self.displacement)
    }

    fn restore(&mut self, state: &OptimiserState) -> Result<(), OptimiserError> {
        state.check("mirror")?;
        self.started = state.number("started")? != 0.0;
        state.read_vector("dual", &mut self.dual)?;
        state.read_vector("previous", &mut self.previous)?;
        state.read_vector("displacement", &mut self.displacement)
    }
}
