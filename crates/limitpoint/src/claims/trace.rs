//! Steepest flows that are watched at every step: what the theorems of papers A and D speak of.

use crate::certificates::{BregmanProximity, Measure, bregman_proximity};
use crate::claims::arithmetic::largest_fall;
use crate::claims::{ClaimError, Finished, Lab};
use crate::data::Dataset;
use crate::diagnostics::{kkt_measure, soft_margin_growth, stationarity_residual};
use crate::driver::Advance;
use crate::experiments::Task;
use crate::linalg::dot;
use crate::norms::{BlockNorm, Norm, NormSpec};
use crate::observers::StopReason;
use crate::params::{ParamLayout, assign};

/// One step after separation. Norms are those of the algorithm unless said otherwise; g = ∇ ln L.
pub(super) struct Moment {
    /// ln Σ η.
    pub log_time: f64,
    /// u = ln 1/L.
    pub u: f64,
    /// min qᵢ.
    pub smallest: f64,
    /// g(u), the soft minimum of the margins.
    pub soft: f64,
    /// ‖θ‖.
    pub size: f64,
    /// ⟨θ, −g⟩.
    pub outward: f64,
    /// ⟨θ, −g⟩/(‖θ‖‖g‖_*).
    pub alignment: f64,
    /// What Theorem 3.1 says of d ln γ̃ / d ln g(u).
    pub growth: f64,
    /// Σ λᵢ (qᵢ/q_min − 1) with the paper's multipliers.
    pub slack: f64,
    /// ‖θ̃‖² (1 − β).
    pub gap: f64,
    /// ‖θ̃‖².
    pub objective: f64,
    /// ‖Δθ‖ of the step that led here.
    pub length: f64,
    /// ‖θ/‖θ‖ − θ⁻/‖θ⁻‖‖ of that step.
    pub turn: f64,
    /// The largest relative difference between the layers' ‖ΔWₗ‖ of that step, each in its layer's norm; NaN where the
    /// norm is not a maximum over layers.
    pub uneven: f64,
    /// ‖θ‖₁, ‖θ‖₂, ‖θ‖_∞.
    pub others: [f64; 3],
    /// Measured at every twentieth step only.
    pub rare: Option<Rare>,
}

/// What costs more than a step.
pub(super) struct Rare {
    /// min ‖z − k‖₂ over k ∈ ∂½‖θ̃‖², relative to ‖θ̃‖, with exact ties and with ties within 10 %.
    pub residuals: [f64; 2],
    /// Both sides of Proposition B.6.
    pub proximity: BregmanProximity,
}

/// One run from separation to its end.
pub(super) struct Trace {
    /// The task in words.
    pub what: String,
    /// Key of the optimiser in the experiment.
    pub optimiser: String,
    /// The degree L.
    pub degree: f64,
    /// Number of margins.
    pub margins: usize,
    /// Number of parameters.
    pub parameters: usize,
    /// Every step after separation.
    pub moments: Vec<Moment>,
    /// The end.
    pub end: Finished,
}

/// How often the rare measures are taken.
const RARELY: u64 = 20;

impl Trace {
    /// Runs a task and keeps what theorems need.
    pub fn of(lab: &Lab, what: String, task: &Task) -> Result<Self, ClaimError> {
        Self::on(lab, what, task, lab.data(task)?.train)
    }

    /// The same on data that are already in memory.
    pub fn on(lab: &Lab, what: String, task: &Task, data: Dataset) -> Result<Self, ClaimError> {
        let training = lab.training(task, data)?;
        let objective = training.objective()?;
        let layout = objective.layout().clone();
        let degree = objective.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
        let spec = norm_of(task);
        let mut norm = spec.build(&layout)?;
        let [mut l1, mut l2, mut linf] =
            [NormSpec::L1.build(&layout)?, NormSpec::L2.build(&layout)?, NormSpec::Linf.build(&layout)?];
        let mut layers = layer_norms(&spec, &layout)?;
        let mut scratch = [vec![0.0; layout.len()], vec![0.0; layout.len()]];
        let (mut before, mut moments, mut margins) = (Vec::new(), Vec::new(), 0);
        let threshold = objective.loss().tail().map_or(f64::NEG_INFINITY, |tail| tail.log_threshold());
        let mut running = training.start()?;
        let process = running.process();
        let target = task.recipe.stop.log10_loss.unwrap_or(f64::NEG_INFINITY) * std::f64::consts::LN_10;
        let most = task.recipe.stop.steps.unwrap_or(u64::MAX);
        // snapshots cost more than steps: none are taken before separation
        let mut reason = StopReason::Observer;
        while process.log_loss() > target && process.step() < most {
            before.clear();
            before.extend_from_slice(process.params());
            if let Advance::Ended(end) = process.advance()? {
                reason = end;
                break;
            }
            if process.log_loss() >= threshold {
                continue;
            }
            process.show(&mut |snapshot| {
                let point = &snapshot.point;
                let (size, kkt) = (norm.value(point.params), kkt_measure(point, &mut *norm));
                let step: Vec<f64> = point.params.iter().zip(&before).map(|(now, then)| now - then).collect();
                let then = norm.value(&before);
                let turn: Vec<f64> =
                    point.params.iter().zip(&before).map(|(now, old)| now / size - old / then).collect();
                let rare = (snapshot.step % RARELY == 0).then(|| Rare {
                    residuals: [0.0, 0.1]
                        .map(|tolerance| stationarity_residual(point, &mut *norm, tolerance, &mut scratch)),
                    proximity: bregman_proximity(point, &mut *norm, None),
                });
                margins = point.margins.len();
                moments.push(Moment {
                    log_time: snapshot.log_time,
                    u: -point.log_loss,
                    smallest: point.smallest_margin(),
                    soft: point.soft_minimum(),
                    size,
                    outward: -dot(point.params, &point.gradient.direction),
                    alignment: kkt.alignment,
                    growth: soft_margin_growth(point, &mut *norm),
                    slack: kkt.slack,
                    gap: kkt.fenchel_young_gap,
                    objective: kkt.objective,
                    length: norm.value(&step),
                    turn: norm.value(&turn),
                    uneven: unevenness(&step, &mut layers),
                    others: [l1.value(point.params), l2.value(point.params), linf.value(point.params)],
                    rare,
                });
            });
        }
        let end = Finished { task: task.clone(), run: running.end_because(reason) };
        let (optimiser, parameters) = (task.label.optimiser.clone(), layout.len());
        Ok(Self { what, optimiser, degree, margins, parameters, moments, end })
    }

    /// (ln 1/L, ln t) of every moment.
    pub fn course(&self) -> Vec<[f64; 2]> {
        self.moments.iter().map(|m| [m.u, m.log_time]).collect()
    }

    /// The soft margin at a moment.
    pub fn soft_margin(&self, moment: &Moment) -> f64 {
        moment.soft / moment.size.powf(self.degree)
    }

    /// The largest relative fall of a quantity from one moment to the next.
    pub fn fall(&self, quantity: impl Fn(&Moment) -> f64) -> f64 {
        largest_fall(self.moments.iter().map(quantity))
    }

    /// Whether the run got to its end with enough steps behind separation to prove something.
    pub fn complete(&self) -> bool {
        self.moments.len() > 100 && self.end.reached_its_loss()
    }
}

/// The norm of the steepest descent that a task runs; ℓ2 for other optimisers.
pub(super) fn norm_of(task: &Task) -> NormSpec {
    match task.measure() {
        Some(Measure::Norm(norm)) => norm,
        _ => NormSpec::L2,
    }
}

/// A layer's place, norm and weight.
type Layer = (std::ops::Range<usize>, Box<dyn Norm>, f64);

/// The layers with their own norms, where the norm is a maximum over layers.
fn layer_norms(spec: &NormSpec, layout: &ParamLayout) -> Result<Vec<Layer>, ClaimError> {
    let everywhere = [BlockNorm::new("*", NormSpec::Spectral)];
    let entries = match spec {
        NormSpec::Spectral => &everywhere,
        NormSpec::Max { blocks } => &blocks[..],
        _ => return Ok(Vec::new()),
    };
    let mut layers = Vec::new();
    for (block, entry) in assign(layout, entries, |entry| &entry.block)? {
        let alone = ParamLayout::of([block.clone()])?;
        layers.push((block.range(), entry.norm.build(&alone)?, entry.weight));
    }
    Ok(layers)
}

/// (largest − smallest)/largest of the layers' lengths.
fn unevenness(step: &[f64], layers: &mut [Layer]) -> f64 {
    let lengths: Vec<f64> =
        layers.iter_mut().map(|(range, norm, weight)| *weight * norm.value(&step[range.clone()])).collect();
    let (low, high) = lengths.iter().fold((f64::INFINITY, 0.0), |(low, high), x| (x.min(low), x.max(high)));
    if lengths.len() < 2 { f64::NAN } else { (high - low) / high }
}
