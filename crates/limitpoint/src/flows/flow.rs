//! Integration of a flow with error control.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::dormand_prince::{ERROR, MATRIX, STAGES, log_integral_of_exp, next_step};
use super::{FlowError, FlowSpec, Tolerance};
use crate::linalg::dot;
use crate::norms::{Norm, NormSpec};
use crate::numeric::{LogScaled, log_add_exp};
use crate::objective::Objective;
use crate::params::ParamLayout;
use crate::potentials::{MirrorPotential, PotentialSpec, balance_drift, grouped_conjugates};

/// A flow in progress.
///
/// The state is θ for steepest and natural gradient flows and z = ∇R(θ) for mirror flow. [`Flow::advance`] makes one
/// accepted step of the embedded pair in the rescaled time τ, dτ = L dt; a step is accepted when the root mean square
/// of error / (absolute + relative·|state|) is at most 1.
///
/// ```
/// use limitpoint::data::{Dataset, Targets};
/// use limitpoint::flows::{Flow, FlowSpec, Tolerance};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::losses::LossSpec;
/// use limitpoint::engine::Compute;
/// use limitpoint::models::ModelSpec;
/// use limitpoint::objective::{Objective, Reduction};
/// // one point x = 1, exponential loss: dw/dt = e^−w has the solution w = ln(1 + t)
/// let data = Dataset::new("point", Matrix::from_rows(&[&[1.0]]), Targets::Binary(vec![1.0]), vec![1])?;
/// let mut objective =
///     Objective::new(&data, &ModelSpec::Linear, &LossSpec::Exponential, Reduction::Sum, Compute::default())?;
/// let mut flow = Flow::new(&FlowSpec::gradient(), Tolerance::default(), &mut objective, &[0.0])?;
/// while flow.log_loss() > -5000.0 {
///     flow.advance(&mut objective)?;
/// }
/// assert!((flow.params()[0] - flow.log_time()).abs() < 1e-6); // w = ln t although t = e^5000
/// # Ok::<(), limitpoint::Error>(())
/// ```
pub struct Flow {
    field: Field,
    tolerance: Tolerance,
    trainable: Vec<Range<usize>>,
    state: Vec<f64>,
    params: Vec<f64>,
    stages: Vec<Vec<f64>>,
    trial: Vec<f64>,
    gradient: LogScaled,
    log_loss: f64,
    /// Whether time is rescaled, dτ = L dt; regression losses reach 0 at a finite τ and keep dτ = dt.
    rescaled: bool,
    /// du/dτ at the current point, u = −ln L.
    climb: f64,
    step: f64,
    /// τ so far.
    rescaled_time: f64,
    log_time: f64,
    accepted: u64,
    rejected: u64,
    balance: Option<BalanceMonitor>,
}

/// Everything needed to go on bit for bit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowState {
    /// θ.
    pub params: Vec<f64>,
    /// ∇R(θ) for mirror flow, θ for others.
    pub state: Vec<f64>,
    /// The slope at the current point.
    pub slope: Vec<f64>,
    /// ∇ ln L at the current point.
    pub gradient: Vec<f64>,
    /// ln of the gradient's scale.
    pub log_scale: f64,
    /// ln L.
    pub log_loss: f64,
    /// d(−ln L)/dτ.
    pub climb: f64,
    /// The next step size.
    pub step: f64,
    /// τ so far.
    pub rescaled_time: f64,
    /// ln t.
    pub log_time: f64,
    /// Accepted and rejected steps.
    pub steps: (u64, u64),
    /// Q_l/k_l at the start, where a balance law is watched.
    pub balance_start: Vec<f64>,
}

/// The right-hand side.
enum Field {
    Steepest(Box<dyn Norm>),
    Mirror(Box<dyn MirrorPotential>),
    NaturalGradient(Box<dyn MirrorPotential>),
}

/// Q_l/k_l of every layer group, whose differences a flow conserves.
struct BalanceMonitor {
    potential: Box<dyn MirrorPotential>,
    layout: ParamLayout,
    groups: Vec<(Vec<usize>, f64)>,
    start: Vec<f64>,
    now: Vec<f64>,
}

impl Flow {
    /// Starts a flow at `params`.
    pub fn new(
        spec: &FlowSpec,
        tolerance: Tolerance,
        objective: &mut Objective,
        params: &[f64],
    ) -> Result<Self, FlowError> {
        for (part, value) in [("relative", tolerance.relative), ("absolute", tolerance.absolute)] {
            if !(value > 0.0 && value <= 0.1) {
                return Err(FlowError::Tolerance { part, value });
            }
        }
        let layout = objective.layout().clone();
        let mut state = params.to_vec();
        let (field, conserved) = match spec {
            FlowSpec::Steepest { norm } => {
                let smooth = match norm.exponent() {
                    Some(p) => p != 1.0 && p.is_finite(),
                    None => matches!(norm, NormSpec::Quadratic { .. } | NormSpec::QuadraticDense { .. }),
                };
                if !smooth {
                    return Err(FlowError::NotSmooth { norm: norm.key() });
                }
                let euclidean = norm.exponent() == Some(2.0);
                (Field::Steepest(norm.build(&layout)?), euclidean.then_some(PotentialSpec::Euclidean))
            }
            FlowSpec::Mirror { potential } => {
                let mut worker = potential.build(&layout)?;
                worker.check_domain(params)?;
                worker.mirror_map(params, &mut state);
                let separable = worker.is_block_separable();
                (Field::Mirror(worker), separable.then(|| potential.clone()))
            }
            FlowSpec::NaturalGradient { potential } => {
                let worker = potential.build(&layout)?;
                worker.check_domain(params)?;
                let separable = worker.is_block_separable();
                (Field::NaturalGradient(worker), separable.then(|| potential.clone()))
            }
        };
        let groups: Vec<(Vec<usize>, f64)> = objective
            .homogeneity()
            .map(|homogeneity| homogeneity.pairs().map(|(blocks, degree)| (blocks.to_vec(), degree)).collect())
            .unwrap_or_default();
        let balance = match conserved {
            Some(potential) if groups.len() > 1 => Some(BalanceMonitor {
                potential: potential.build(&layout)?,
                layout: layout.clone(),
                groups,
                start: Vec::new(),
                now: Vec::new(),
            }),
            _ => None,
        };
        let length = params.len();
        let mut flow = Self {
            field,
            tolerance,
            trainable: layout.trainable_ranges(),
            state,
            params: params.to_vec(),
            stages: vec![vec![0.0; length]; STAGES],
            trial: vec![0.0; length],
            gradient: LogScaled::zeros(length),
            log_loss: f64::NAN,
            rescaled: !objective.has_finite_root(),
            climb: 0.0,
            step: 0.0,
            rescaled_time: 0.0,
            log_time: f64::NEG_INFINITY,
            accepted: 0,
            rejected: 0,
            balance,
        };
        if let Some(monitor) = &mut flow.balance {
            monitor.measure(&flow.params);
            monitor.start.clone_from(&monitor.now);
        }
        flow.evaluate(objective, 0);
        flow.log_loss = objective.log_loss();
        flow.climb = flow.climb();
        let speed = crate::linalg::norm2(&flow.stages[0]);
        flow.step = if speed > 0.0 { 1e-3 * (1.0 + crate::linalg::norm2(&flow.state)) / speed } else { 1.0 };
        Ok(flow)
    }

    /// Everything needed to go on bit for bit.
    pub fn state(&self) -> FlowState {
        FlowState {
            params: self.params.clone(),
            state: self.state.clone(),
            slope: self.stages[0].clone(),
            gradient: self.gradient.direction.clone(),
            log_scale: self.gradient.log_scale,
            log_loss: self.log_loss,
            climb: self.climb,
            step: self.step,
            rescaled_time: self.rescaled_time,
            log_time: self.log_time,
            steps: (self.accepted, self.rejected),
            balance_start: self.balance.as_ref().map_or_else(Vec::new, |monitor| monitor.start.clone()),
        }
    }

    /// Takes up a state saved by a flow with the same settings.
    pub fn restore(&mut self, saved: &FlowState) -> Result<(), FlowError> {
        let expected = self.params.len();
        for found in [&saved.params, &saved.state, &saved.slope, &saved.gradient].map(Vec::len) {
            if found != expected {
                return Err(FlowError::State { expected, found });
            }
        }
        self.params.copy_from_slice(&saved.params);
        self.state.copy_from_slice(&saved.state);
        self.stages[0].copy_from_slice(&saved.slope);
        self.gradient.direction.copy_from_slice(&saved.gradient);
        self.gradient.log_scale = saved.log_scale;
        (self.log_loss, self.climb, self.step) = (saved.log_loss, saved.climb, saved.step);
        (self.rescaled_time, self.log_time) = (saved.rescaled_time, saved.log_time);
        (self.accepted, self.rejected) = saved.steps;
        if let Some(monitor) = &mut self.balance {
            monitor.start.clone_from(&saved.balance_start);
        }
        Ok(())
    }

    /// θ at the current time.
    pub fn params(&self) -> &[f64] {
        &self.params
    }

    /// ln L at the current time.
    pub fn log_loss(&self) -> f64 {
        self.log_loss
    }

    /// ln t, plain time; −∞ at the start.
    pub fn log_time(&self) -> f64 {
        self.log_time
    }

    /// τ = ∫ L dt; plain time for regression losses.
    pub fn rescaled_time(&self) -> f64 {
        self.rescaled_time
    }

    /// ∇L at the current time.
    pub fn gradient(&self) -> &LogScaled {
        &self.gradient
    }

    /// Accepted and rejected steps.
    pub fn steps(&self) -> (u64, u64) {
        (self.accepted, self.rejected)
    }

    /// Largest change of Q_l/k_l − Q_m/k_m over pairs of layers since the start, relative to the largest Q_l/k_l now;
    /// nothing where no such law is known (one layer, ℓp flows, models that are not homogeneous).
    pub fn balance_drift(&mut self) -> Option<f64> {
        let monitor = self.balance.as_mut()?;
        monitor.measure(&self.params);
        Some(balance_drift(&monitor.now, &monitor.start))
    }

    /// du/dτ = −⟨∇ln L, dθ/dτ⟩ at the point whose slope is in `stages[0]`; uses `trial` as scratch.
    fn climb(&mut self) -> f64 {
        let velocity = match &mut self.field {
            Field::Steepest(_) | Field::NaturalGradient(_) => &self.stages[0],
            Field::Mirror(potential) => {
                potential.inverse_hessian_action(&self.params, &self.stages[0], &mut self.trial);
                &self.trial
            }
        };
        -dot(&self.gradient.direction, velocity)
    }

    /// The slope at `self.params`, into stage `stage`.
    fn evaluate(&mut self, objective: &mut Objective, stage: usize) {
        objective.forward(&self.params).backward(&self.params, &mut self.gradient);
        let factor = if self.rescaled { 1.0 } else { self.gradient.log_scale.exp() };
        let slope = &mut self.stages[stage];
        match &mut self.field {
            Field::Steepest(norm) => {
                norm.steepest_direction(&self.gradient.direction, slope);
                if !self.rescaled {
                    slope.iter_mut().for_each(|k| *k *= factor);
                }
            }
            Field::NaturalGradient(potential) => {
                potential.inverse_hessian_action(&self.params, &self.gradient.direction, slope);
                slope.iter_mut().for_each(|k| *k *= -factor);
            }
            Field::Mirror(_) => {
                slope.iter_mut().zip(&self.gradient.direction).for_each(|(k, g)| *k = -factor * g);
            }
        }
    }

    /// θ of a trial state, into `self.params`; frozen entries stay.
    fn params_of_trial(&mut self) {
        match &mut self.field {
            Field::Steepest(_) | Field::NaturalGradient(_) => self.params.copy_from_slice(&self.trial),
            Field::Mirror(potential) => {
                // stage 6 is free until the last evaluation and serves as scratch
                let scratch = &mut self.stages[STAGES - 1];
                potential.inverse_mirror_map(&self.trial, scratch);
                for range in &self.trainable {
                    self.params[range.clone()].copy_from_slice(&scratch[range.clone()]);
                }
            }
        }
    }

    /// Makes one accepted step.
    pub fn advance(&mut self, objective: &mut Objective) -> Result<(), FlowError> {
        let (old_loss, old_climb) = (self.log_loss, self.climb);
        loop {
            if self.step <= 1e-14 * self.rescaled_time || !self.step.is_finite() {
                // leave the last accepted point, not the rejected trial
                self.trial.copy_from_slice(&self.state);
                self.params_of_trial();
                self.evaluate(objective, 0);
                return Err(FlowError::Stalled { step: self.accepted, size: self.step, log_loss: old_loss });
            }
            for stage in 1..STAGES {
                self.trial.copy_from_slice(&self.state);
                for (weight, slope) in MATRIX[stage - 1].iter().zip(&self.stages[..stage]) {
                    if *weight != 0.0 {
                        crate::linalg::add_scaled(&mut self.trial, self.step * weight, slope);
                    }
                }
                self.params_of_trial();
                self.evaluate(objective, stage);
            }
            let error = self.error_of_trial();
            let log_loss = objective.log_loss();
            if error <= 1.0 && (log_loss.is_finite() || (!self.rescaled && log_loss == f64::NEG_INFINITY)) {
                let step = self.step;
                self.state.copy_from_slice(&self.trial);
                self.stages.swap(0, STAGES - 1);
                self.log_loss = log_loss;
                self.climb = self.climb();
                self.rescaled_time += step;
                self.log_time = if self.rescaled {
                    let (start, end) = ((-old_loss, old_climb), (-log_loss, self.climb));
                    log_add_exp(self.log_time, log_integral_of_exp(step, start, end))
                } else {
                    self.rescaled_time.ln()
                };
                self.accepted += 1;
                self.step = next_step(step, error);
                return Ok(());
            }
            self.rejected += 1;
            self.step =
                if error.is_finite() { next_step(self.step, error).min(0.9 * self.step) } else { 0.2 * self.step };
        }
    }

    /// Root mean square of the error estimate over the allowed error.
    fn error_of_trial(&self) -> f64 {
        let (mut sum, mut count) = (0.0, 0usize);
        for range in &self.trainable {
            for i in range.clone() {
                let error: f64 = ERROR.iter().zip(&self.stages).map(|(weight, slope)| weight * slope[i]).sum();
                let allowed =
                    self.tolerance.absolute + self.tolerance.relative * self.state[i].abs().max(self.trial[i].abs());
                sum += (self.step * error / allowed).powi(2);
                count += 1;
            }
        }
        (sum / count.max(1) as f64).sqrt()
    }
}

impl BalanceMonitor {
    fn measure(&mut self, params: &[f64]) {
        let groups = self.groups.iter().map(|(blocks, degree)| (blocks.as_slice(), *degree));
        grouped_conjugates(&mut *self.potential, &self.layout, groups, params, &mut self.now);
    }
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
