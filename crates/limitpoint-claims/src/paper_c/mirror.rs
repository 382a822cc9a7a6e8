//! Mirror flows after separation: the columns that the theorems of the paper speak of.
//!
//! With dτ = L dt the flow is dz/dτ = −g, z = ∇R(θ) and g = ∇ ln L, and every derivative that a theorem needs is a
//! function of the point:
//!
//! ```text
//! du/dτ = v² = gᵀH⁻¹g,     dQ/dτ = w = ⟨θ, −g⟩ = L Σ rᵢ qᵢ,     p² = θᵀHθ,     β = w/(p v)
//! d ln γ̃/d ln Q = Q v²/(u w) − L/α ≥ L Q (v² − w²/p²)/w²        C Lemma D.1, both sides divided by d ln Q/dt
//! ```
//!
//! | column | what it is |
//! |---|---|
//! | `step`, `log_time`, `u`, `smallest`, `soft` | [`measures::basics`] |
//! | `alpha`, `conjugate`, `gauge`, `horizon`, `value` | α, Q(∇R(θ)), (αQ)^{1/α}, φ(θ), R(θ) |
//! | `climb`, `outward`, `position`, `mean_margin` | v², w, p², Σ rᵢqᵢ |
//! | `size`, `dual_size`, `dual_speed`, `dual_turn` | ‖θ‖₂, ‖z‖₂, ‖d(z/‖z‖)/dτ‖₂, and ‖Δ(z/‖z‖)‖₂ since the moment before |
//! | `slack` | Σ λᵢ(qᵢ/q_min − 1) with the multipliers of Lemma G.6 |
//! | `layers` | Σⱼ kⱼ ln (αⱼQⱼ)^{1/αⱼ}, the logarithm of the product over layers (C Definition I.4) |
//! | `drift`, `neuron_drift` | change of the balance between layers and of single neurons since the start, relative to Q |
//! | `epsilon`, `delta` | at every twentieth step, α ≥ 2: both of Lemma G.6 over their bounds, as certificates measure them |
//! | `soft_margin`, `beta`, `slope`, `bound` | u/(αQ)^{L/α}, β, and both sides of Lemma D.1 |

use std::sync::Arc;

use crate::arithmetic::distance;
use crate::measures::{self, own_potential};
use crate::{Claim, ClaimError, Columns, Lab, Moments, Outcome, Series};
use limitpoint::certificates::{Bounded, mirror_bounds};
use limitpoint::diagnostics::neuron_balance;
use limitpoint::experiments::Task;
use limitpoint::linalg::{dot, norm2};
use limitpoint::potentials::PotentialSpec;

/// The columns of one flow at every step after separation.
pub(super) fn series(lab: &Lab, tasks: Vec<(String, Task)>) -> Result<Vec<Series>, ClaimError> {
    let columns = |task: &Task| {
        let own = || own_potential(task);
        vec![
            measures::basics(),
            geometry(own()),
            dual(own()),
            layers(own()),
            measures::balance(own()),
            sides(own()).rarely(20),
        ]
    };
    let found = lab.all_series(tasks, Moments::every(1).separated().may_stall(), columns)?;
    let derived = |flow: Series| {
        let degree = flow.degree;
        flow.with("soft_margin", ["u", "gauge"], |[u, gauge]| u / gauge.powf(degree))
            .with("beta", ["outward", "position", "climb"], |[w, p, v]| w / (p * v).sqrt())
            .with("slope", ["conjugate", "climb", "u", "outward", "alpha"], |[q, v, u, w, alpha]| {
                q * v / (u * w) - degree / alpha
            })
            .with("bound", ["conjugate", "climb", "outward", "position"], |[q, v, w, p]| {
                degree * q * (v - w * w / p) / (w * w)
            })
    };
    Ok(found.into_iter().map(derived).collect())
}

/// A formula that is tried on the flows that all claims share.
pub(super) const ON_FLOWS: Claim = Claim { experiments: &["c-flows"], ..Claim::FORMULA };

/// `gauge`, `horizon` alone, for other runs.
pub(super) fn gauge(potential: PotentialSpec) -> Columns {
    Columns::new(["gauge", "horizon"], move |bound| {
        let mut worker = potential.build(bound.layout)?;
        Ok(Box::new(move |seen, out| {
            out.extend([worker.gauge(seen.point.params), worker.horizon(seen.point.params)]);
        }))
    })
}

/// What is a function of the potential and the point.
fn geometry(potential: PotentialSpec) -> Columns {
    let of_potential = ["alpha", "conjugate", "gauge", "horizon", "value"];
    let of_gradient = ["climb", "outward", "position", "mean_margin", "size", "slack"];
    Columns::new(of_potential.into_iter().chain(of_gradient), move |bound| {
        let (mut worker, mut scratch) = (potential.build(bound.layout)?, vec![0.0; bound.layout.len()]);
        Ok(Box::new(move |seen, out| {
            let (point, theta, g) = (seen.point, seen.point.params, &seen.point.gradient.direction);
            let (alpha, gauge) = (worker.degree(), worker.gauge(theta));
            out.extend([alpha, worker.conjugate_at(theta), gauge, worker.horizon(theta), worker.value(theta)]);
            worker.hessian_action(theta, theta, &mut scratch);
            let position = dot(theta, &scratch);
            worker.inverse_hessian_action(theta, g, &mut scratch);
            let climb = dot(g, &scratch);
            let (smallest, mut slack, mut mean) = (point.smallest_margin(), 0.0, 0.0);
            let factor = gauge.powf(2.0 - alpha) * smallest.powf(-2.0 / point.degree()) * (position / climb).sqrt();
            for (q, weight) in point.margins.iter().zip(point.weights) {
                slack += factor * weight * (q - smallest);
                mean += weight * q;
            }
            out.extend([climb, -dot(theta, g), position, mean, norm2(theta), slack]);
        }))
    })
}

/// The direction of z and how it turns.
fn dual(potential: PotentialSpec) -> Columns {
    Columns::new(["dual_size", "dual_speed", "dual_turn"], move |bound| {
        let (mut worker, length) = (potential.build(bound.layout)?, bound.layout.len());
        let (mut z, mut before) = (vec![0.0; length], vec![f64::NAN; length]);
        Ok(Box::new(move |seen, out| {
            let g = &seen.point.gradient.direction;
            worker.mirror_map(seen.point.params, &mut z);
            let size = norm2(&z);
            z.iter_mut().for_each(|z| *z /= size);
            // the part of −g across z
            let along = dot(&z, g);
            let across: Vec<f64> = g.iter().zip(&z).map(|(g, z)| g - along * z).collect();
            let turn: Vec<f64> = z.iter().zip(&before).map(|(now, then)| now - then).collect();
            before.copy_from_slice(&z);
            out.extend([size, norm2(&across) / size, norm2(&turn)]);
        }))
    })
}

/// `layers`, `neuron_drift`; NaN where the model is not homogeneous, and without single neurons.
fn layers(potential: PotentialSpec) -> Columns {
    Columns::new(["layers", "neuron_drift"], move |bound| {
        let (mut worker, layout) = (potential.build(bound.layout)?, bound.layout.clone());
        let Some(homogeneity) = bound.objective.homogeneity().cloned() else {
            return Ok(Box::new(|_, out| out.extend([f64::NAN; 2])));
        };
        let (start, mut gauges) = (neuron_balance(bound.start, &layout, &homogeneity, &mut *worker), Vec::new());
        Ok(Box::new(move |seen, out| {
            let theta = seen.point.params;
            worker.gauges_by_block(theta, &mut gauges);
            out.push(homogeneity.groups.iter().zip(&gauges).map(|(group, gauge)| group.degree * gauge.ln()).sum());
            let now = neuron_balance(theta, &layout, &homogeneity, &mut *worker);
            out.push(if now.is_empty() { f64::NAN } else { distance(&now, &start) / worker.conjugate_at(theta) });
        }))
    })
}

/// `epsilon`, `delta` over their bounds.
fn sides(potential: PotentialSpec) -> Columns {
    Columns::new(["epsilon", "delta"], move |_| {
        let potential = potential.clone();
        Ok(Box::new(move |seen, out| {
            let found = mirror_bounds(seen.point, &potential, None).ok();
            // −∞ where no bound is proved
            let share = |side: Option<&Bounded>| side.map_or(f64::NEG_INFINITY, |side| side.measured / side.bound);
            out.push(share(found.as_ref().and_then(|found| found.stationarity.as_ref())));
            out.push(share(found.as_ref().and_then(|found| found.slack.as_ref())));
        }))
    })
}

/// The flows all claims share: six potentials on two and three layers.
pub(super) struct Flows {
    /// Those that separate their data.
    pub all: Vec<Series>,
    /// The others.
    stalled: Vec<String>,
}

impl Flows {
    /// Runs them, or takes them from the shelf; runs that never separate their data are left out of the claim.
    pub fn of(lab: &Lab, outcome: &mut Outcome) -> Result<Arc<Self>, ClaimError> {
        let flows = lab.once("mirror flows", || {
            let deep =
                ["model.widths=[6, 6]", "initialiser=normal(deviation=0.6)", "data.count=8", "stop.log10_loss=-13"];
            let networks = [("two layers", &[][..], lab.choose(2, 5)), ("three layers", &deep, lab.choose(1, 3))];
            let mut tasks = Vec::new();
            for (name, own, seeds) in networks {
                // enough steps for those that separate their data
                let rest = ["stop.steps=30000".to_owned(), format!("seeds=0..{}", seeds - 1)];
                let overrides: Vec<&str> = own.iter().copied().chain(rest.iter().map(String::as_str)).collect();
                let named = |task: Task| (format!("{name}, {}, seed {}", task.label.optimiser, task.label.seed), task);
                tasks.extend(lab.tasks("c-flows", &overrides)?.into_iter().map(named));
            }
            let (stalled, all): (Vec<Series>, Vec<Series>) =
                series(lab, tasks)?.into_iter().partition(Series::is_empty);
            Ok(Self { all, stalled: stalled.into_iter().map(|flow| flow.what).collect() })
        })?;
        for flow in &flows.stalled {
            outcome.leave_out(flow, "it stalls at a stationary point with L > 1, where nothing is claimed");
        }
        Ok(flows)
    }

    /// The share of starts that separate their data.
    pub fn share(&self) -> f64 {
        self.all.len() as f64 / (self.all.len() + self.stalled.len()) as f64
    }

    /// Those under one flow of the experiment.
    pub fn under<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Series> {
        self.all.iter().filter(move |flow| flow.optimiser() == name)
    }

    /// Those with one potential for all layers.
    pub fn uniform(&self) -> impl Iterator<Item = &Series> {
        self.all.iter().filter(|flow| flow.optimiser() != "mixed")
    }

    /// All steps of all of them.
    pub fn steps(&self) -> usize {
        self.all.iter().map(Series::len).sum()
    }
}

/// Whether a flow got to its end; a comparison that fails if not.
pub(super) fn complete(outcome: &mut Outcome, flow: &Series) -> bool {
    if !flow.complete() {
        outcome.event(format!("{}: the run", flow.what), "reaches its end", "stopped early", false);
    }
    flow.complete()
}
