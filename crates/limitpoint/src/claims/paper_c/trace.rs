//! Mirror flows that are watched at every step: what all theorems of the paper speak of.
//!
//! With dτ = L dt the flow is dz/dτ = −g, z = ∇R(θ) and g = ∇ ln L, and every derivative that a theorem needs is a
//! function of the point:
//!
//! ```text
//! du/dτ = v² = gᵀH⁻¹g,     dQ/dτ = w = ⟨θ, −g⟩ = L Σ rᵢ qᵢ,     p² = θᵀHθ,     β = w/(p v)
//! d ln γ̃/d ln Q = Q v²/(u w) − L/α ≥ L Q (v² − w²/p²)/w²        C Lemma D.1, both sides divided by d ln Q/dt
//! ```

use std::sync::Arc;

use rayon::prelude::*;

use crate::certificates::{KktBounds, Measure, mirror_bounds};
use crate::claims::arithmetic::{distance, larger, largest_fall};
use crate::claims::{ClaimError, Finished, Lab};
use crate::diagnostics::{Balance, Point, neuron_balance};
use crate::driver::{Advance, DriverError};
use crate::experiments::Task;
use crate::linalg::{dot, norm2};
use crate::observers::StopReason;
use crate::potentials::{MirrorPotential, PotentialSpec};

/// One step after separation; letters as above.
pub(super) struct Moment {
    /// ln t.
    pub log_time: f64,
    /// u = ln 1/L.
    pub u: f64,
    /// min qᵢ.
    pub smallest: f64,
    /// Q(∇R(θ)).
    pub conjugate: f64,
    /// (αQ)^{1/α}.
    pub gauge: f64,
    /// The horizon φ(θ).
    pub horizon: f64,
    /// Σⱼ kⱼ ln (αⱼQⱼ)^{1/αⱼ}, the logarithm of the product over layers (C Definition I.4).
    pub layers: f64,
    /// R(θ).
    pub value: f64,
    /// w.
    pub outward: f64,
    /// Σ rᵢ qᵢ.
    pub mean_margin: f64,
    /// v².
    pub climb: f64,
    /// p².
    pub position: f64,
    /// ‖θ‖₂.
    pub size: f64,
    /// ‖z‖₂.
    pub dual_size: f64,
    /// ‖d(z/‖z‖₂)/dτ‖₂.
    pub dual_speed: f64,
    /// Change of z/‖z‖₂ since the moment before.
    pub dual_turn: f64,
    /// Σ λᵢ (qᵢ/q_min − 1) with the multipliers of Lemma G.6.
    pub slack: f64,
    /// Change of the balance between layers since the start, relative to Q now.
    pub drift: f64,
    /// Change of the balance of single neurons since the start, relative to Q now; NaN unless there are two layers.
    pub neuron_drift: f64,
    /// Both sides of Lemma G.6 at every twentieth step, for potentials of degree 2 or more.
    pub bounds: Option<KktBounds>,
}

impl Moment {
    /// β.
    pub fn beta(&self) -> f64 {
        self.outward / (self.position * self.climb).sqrt()
    }

    /// What Lemma D.1 says of d ln γ̃/d ln Q, for a model of degree L.
    pub fn growth(&self, degree: f64) -> f64 {
        degree * self.conjugate * (self.climb - self.outward.powi(2) / self.position) / self.outward.powi(2)
    }
}

/// One run from separation to its end.
pub(super) struct Trace {
    /// The task in words.
    pub what: String,
    /// Key of the flow in the experiment.
    pub flow: String,
    /// Its potential.
    pub potential: PotentialSpec,
    /// L.
    pub degree: f64,
    /// α.
    pub alpha: f64,
    /// Number of margins.
    pub margins: usize,
    /// Every step after separation.
    pub moments: Vec<Moment>,
    /// The end.
    pub end: Finished,
}

/// How often the bounds are measured, which cost more than a step.
const RARELY: u64 = 20;

impl Trace {
    /// Runs a task and keeps what theorems need.
    pub fn of(lab: &Lab, what: String, task: &Task) -> Result<Self, ClaimError> {
        let training = lab.training(task, lab.data(task)?.train)?;
        let objective = training.objective()?;
        let (layout, homogeneity) = (objective.layout().clone(), objective.homogeneity().cloned());
        let potential = potential_of(task);
        let mut watcher = Watcher::new(potential.build(&layout)?, &potential, layout.len());
        let start = training.setup().initial(&layout);
        if let Some(homogeneity) = &homogeneity {
            watcher.balance = Balance::measure(&start, &layout, homogeneity, &mut *watcher.worker).values;
            watcher.neurons = neuron_balance(&start, &layout, homogeneity, &mut *watcher.worker);
        }
        let degree = homogeneity.map_or(f64::NAN, |homogeneity| homogeneity.degree);
        let (alpha, mut margins) = (watcher.worker.degree(), 0);
        let mut running = training.start()?;
        let process = running.process();
        let target = task.recipe.stop.log10_loss.unwrap_or(f64::NEG_INFINITY) * std::f64::consts::LN_10;
        let most = task.recipe.stop.steps.unwrap_or(u64::MAX);
        let (mut moments, mut reason) = (Vec::new(), StopReason::Observer);
        while process.log_loss() > target && process.step() < most {
            match process.advance() {
                Ok(Advance::Moved) => {}
                Ok(Advance::Ended(end)) => {
                    reason = end;
                    break;
                }
                // a stationary point before separation, of which no theorem speaks
                Err(DriverError::Flow(_)) if process.log_loss() >= 0.0 => break,
                Err(error) => return Err(error.into()),
            }
            if process.log_loss() >= 0.0 {
                continue;
            }
            process.show(&mut |snapshot| {
                margins = snapshot.point.margins.len();
                moments.push(watcher.look(&snapshot.point, snapshot.log_time, snapshot.step % RARELY == 0));
            });
        }
        let end = Finished { task: task.clone(), run: running.end_because(reason) };
        let flow = task.label.optimiser.clone();
        Ok(Self { what, flow, potential, degree, alpha, margins, moments, end })
    }

    /// γ̃_Q at a moment.
    pub fn soft_margin(&self, moment: &Moment) -> f64 {
        moment.u / moment.gauge.powf(self.degree)
    }

    /// The largest relative fall of a quantity from one moment to the next.
    pub fn fall(&self, quantity: impl Fn(&Moment) -> f64) -> f64 {
        largest_fall(self.moments.iter().map(quantity))
    }

    /// The largest value of a quantity; NaN if one is NaN or there is none.
    pub fn most(&self, quantity: impl Fn(&Moment) -> f64) -> f64 {
        self.moments.iter().map(quantity).reduce(larger).unwrap_or(f64::NAN)
    }

    /// The first and the last moment, of runs that got to their end with enough steps to prove something.
    pub fn ends(&self) -> Option<(&Moment, &Moment)> {
        let complete = self.moments.len() > 100 && self.end.reached_its_loss();
        self.moments.first().zip(self.moments.last()).filter(|_| complete)
    }
}

/// Measures moments.
struct Watcher<'a> {
    worker: Box<dyn MirrorPotential>,
    potential: &'a PotentialSpec,
    balance: Vec<f64>,
    neurons: Vec<f64>,
    /// z/‖z‖ of the moment before.
    direction: Vec<f64>,
    scratch: Vec<f64>,
    gauges: Vec<f64>,
}

impl<'a> Watcher<'a> {
    fn new(worker: Box<dyn MirrorPotential>, potential: &'a PotentialSpec, length: usize) -> Self {
        let (direction, scratch) = (vec![f64::NAN; length], vec![0.0; length]);
        Self { worker, potential, balance: Vec::new(), neurons: Vec::new(), direction, scratch, gauges: Vec::new() }
    }

    fn look(&mut self, point: &Point, log_time: f64, rarely: bool) -> Moment {
        let (theta, g, worker) = (point.params, &point.gradient.direction, &mut self.worker);
        let (conjugate, gauge) = (worker.conjugate_at(theta), worker.gauge(theta));
        worker.hessian_action(theta, theta, &mut self.scratch);
        let position = dot(theta, &self.scratch);
        worker.inverse_hessian_action(theta, g, &mut self.scratch);
        let (climb, outward) = (dot(g, &self.scratch), -dot(theta, g));
        worker.mirror_map(theta, &mut self.scratch);
        let dual_size = norm2(&self.scratch);
        let now: Vec<f64> = self.scratch.iter().map(|z| z / dual_size).collect();
        // the part of −g across z
        let along = dot(&now, g);
        let across: Vec<f64> = g.iter().zip(&now).map(|(g, z)| g - along * z).collect();
        let turn: Vec<f64> = now.iter().zip(&self.direction).map(|(now, then)| now - then).collect();
        let (smallest, degree, alpha) = (point.smallest_margin(), point.degree(), worker.degree());
        let factor = gauge.powf(2.0 - alpha) * smallest.powf(-2.0 / degree) * (position / climb).sqrt();
        let (mut slack, mut mean_margin) = (0.0, 0.0);
        for (q, weight) in point.margins.iter().zip(point.weights) {
            slack += factor * weight * (q - smallest);
            mean_margin += weight * q;
        }
        let (mut layers, mut drift, mut neuron_drift) = (f64::NAN, f64::NAN, f64::NAN);
        if let Some(homogeneity) = point.homogeneity {
            let balance = Balance::measure(theta, point.layout, homogeneity, &mut **worker);
            drift = balance.drift_since(&Balance { values: self.balance.clone() });
            let neurons = neuron_balance(theta, point.layout, homogeneity, &mut **worker);
            if !neurons.is_empty() {
                neuron_drift = distance(&neurons, &self.neurons) / conjugate;
            }
            worker.gauges_by_block(theta, &mut self.gauges);
            layers = homogeneity.groups.iter().zip(&self.gauges).map(|(group, gauge)| group.degree * gauge.ln()).sum();
        }
        let bounds = (rarely && alpha >= 2.0).then(|| mirror_bounds(point, self.potential, None).ok()).flatten();
        self.direction = now;
        Moment {
            log_time,
            u: -point.log_loss,
            smallest,
            conjugate,
            gauge,
            horizon: worker.horizon(theta),
            layers,
            value: worker.value(theta),
            outward,
            mean_margin,
            climb,
            position,
            size: norm2(theta),
            dual_size,
            dual_speed: norm2(&across) / dual_size,
            dual_turn: norm2(&turn),
            slack,
            drift,
            neuron_drift,
            bounds,
        }
    }
}

/// The potential of the mirror flow or descent that a task runs; Euclidean for others.
pub(super) fn potential_of(task: &Task) -> PotentialSpec {
    match task.measure() {
        Some(Measure::Potential(potential)) => potential,
        _ => PotentialSpec::Euclidean,
    }
}

/// How many traces there would be if every run separated its data.
pub(super) fn planned(lab: &Lab) -> usize {
    lab.choose(18, 48)
}

/// The traces all claims share: six potentials on two and three layers; those that separate their data.
pub(super) fn traces(lab: &Lab) -> Result<Arc<Vec<Trace>>, ClaimError> {
    lab.once("traces of mirror flows", || {
        let seeds = |quick: u64, full: u64| format!("seeds=0..{}", lab.choose(quick, full) - 1);
        // enough for those that separate their data
        let steps = || "stop.steps=30000".to_owned();
        let deep = ["model.widths=[6, 6]", "initialiser=normal(deviation=0.6)", "data.count=8", "stop.log10_loss=-13"];
        let settings: [(&str, Vec<String>); 2] = [
            ("two layers", vec![seeds(2, 5), steps()]),
            ("three layers", deep.iter().map(|text| (*text).to_owned()).chain([seeds(1, 3), steps()]).collect()),
        ];
        let mut tasks = Vec::new();
        for (name, overrides) in &settings {
            for task in lab.tasks("c-flows", overrides)? {
                tasks.push((format!("{name}, {}, seed {}", task.label.optimiser, task.label.seed), task));
            }
        }
        let all: Vec<Trace> =
            tasks.into_par_iter().map(|(what, task)| Trace::of(lab, what, &task)).collect::<Result<_, _>>()?;
        // some starts lead to a stationary point with L > 1, where nothing can be claimed
        Ok(all.into_iter().filter(|trace| !trace.moments.is_empty()).collect())
    })
}

/// Those with one potential for all layers.
pub(super) fn uniform(traces: &[Trace]) -> impl Iterator<Item = &Trace> {
    traces.iter().filter(|trace| trace.flow != "mixed")
}
