//! Step sizes that suit an optimiser, and how deep it is followed.

use serde::{Deserialize, Serialize};

use super::Settings;
use crate::optimisers::OptimiserSpec;
use crate::schedules::ScheduleSpec;

/// One stretch of a run with one rule for its steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The rule.
    pub schedule: ScheduleSpec,
    /// It ends when log₁₀ L is at most this,
    pub log10_loss: f64,
    /// or after this many steps.
    pub steps: u64,
}

/// How a run is made.
///
/// By default every step moves margins by at most c (the flow-resolved rule, η = α/L), whose reach is the logarithm of
/// the loss, so that 10⁻¹⁰⁰⁰ is a matter of thousands of steps. What an optimiser remembers must be young compared with
/// the loss, or it would divide by gradients that are no longer true; so c is small against the rate f at which it
/// forgets:
///
/// ```text
/// c = min(1/4, f/2),   f = 1 − β for momentum,  (1 − β₂)/2 for the root of averaged squares
/// ```
///
/// Adam-like methods with ε > 0 forget their squares once √v ≪ ε: they get fine steps to L = ε·10⁻⁴, and steps by the
/// momentum alone below. Methods that set their own pace (dual acceleration, progressive rescaling) follow the step
/// bound of linear models.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// One after the other.
    pub stages: Vec<Stage>,
}

/// The largest change of a margin in a step.
const COARSEST: f64 = 0.25;
/// Where runs end by default.
const DEEPEST: f64 = -1000.0;
/// Where runs end whose steps are dear.
const DEAR: f64 = -300.0;
/// The most steps of a stage by default.
const MOST_STEPS: u64 = 200_000;
/// How many times as many steps a network may need: its largest margins grow faster than the least.
const MORE_STEPS: u64 = 4;
/// How far below ε the squares of Adam-like methods are still followed, in decades.
const BELOW_EPSILON: f64 = 4.0;
/// Where methods that remember squares and never stop minding them end: deep enough to tell geometries apart.
const SHALLOW: f64 = -16.0;

impl Pace {
    /// What suits an optimiser, with the settings that somebody chose instead.
    ///
    /// ```
    /// use limitpoint::fingerprint::{Pace, Settings};
    /// use limitpoint::optimisers::OptimiserSpec;
    /// let stages = |name: &str| Pace::of(&name.parse::<OptimiserSpec>().unwrap(), &Settings::default()).stages;
    /// assert_eq!((stages("gradient").len(), stages("adam").len()), (1, 2));
    /// assert_eq!(stages("adam")[0].log10_loss, -12.0); // ε = 1e-8, and four decades more
    /// ```
    pub fn of(spec: &OptimiserSpec, settings: &Settings) -> Self {
        let mut stages = match &settings.schedule {
            Some(schedule) => vec![Stage { schedule: schedule.clone(), log10_loss: DEEPEST, steps: MOST_STEPS }],
            None => Memory::of(spec).stages(),
        };
        let last = stages.len().saturating_sub(1);
        for (place, stage) in stages.iter_mut().enumerate() {
            if let Some(depth) = settings.log10_loss {
                stage.log10_loss = if place == last { depth } else { stage.log10_loss.max(depth) };
            }
            stage.steps = settings.steps.unwrap_or(stage.steps);
        }
        Self { stages }
    }
}

impl Pace {
    /// The same with finer steps and a shallower end, for problems whose gradients are looked at.
    pub(super) fn finer(&self, finest: f64, depth: f64) -> Self {
        let finer = |stage: &Stage| {
            let mut schedule = stage.schedule.clone();
            if let ScheduleSpec::FlowResolved { resolution, .. } = &mut schedule {
                *resolution = resolution.min(finest);
            }
            Stage { schedule, log10_loss: stage.log10_loss.max(depth), steps: MORE_STEPS * stage.steps }
        };
        Self { stages: self.stages.iter().map(finer).collect() }
    }
}

/// What an optimiser remembers of earlier gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Memory {
    /// The rate at which averages of gradients fade; infinite without such averages.
    forgets: f64,
    /// The rate at which the root of averaged squares fades, and ε.
    squares: Option<(f64, f64)>,
    /// Whether it rescales its own steps.
    own_pace: bool,
    /// Where runs end: earlier where a step is dear.
    depth: f64,
}

impl Memory {
    fn of(spec: &OptimiserSpec) -> Self {
        let fades = |beta: f64| if beta > 0.0 { 1.0 - beta } else { f64::INFINITY };
        let averages = |beta: f64| Self { forgets: fades(beta), squares: None, own_pace: false, depth: DEEPEST };
        let roots = |beta1: f64, beta2: f64, epsilon: f64| Self {
            squares: (beta2 > 0.0).then_some((0.5 * (1.0 - beta2), epsilon)),
            ..averages(beta1)
        };
        match *spec {
            OptimiserSpec::HeavyBall { momentum }
            | OptimiserSpec::Nesterov { momentum }
            | OptimiserSpec::Signum { momentum }
            | OptimiserSpec::Muon { momentum, .. } => averages(momentum),
            OptimiserSpec::Mirror { beta, .. } => averages(beta),
            OptimiserSpec::Lion { beta1, beta2, .. } => averages(beta1.max(beta2)),
            OptimiserSpec::Adam { beta1, beta2, epsilon } | OptimiserSpec::AdamW { beta1, beta2, epsilon, .. } => {
                roots(beta1, beta2, epsilon)
            }
            OptimiserSpec::RmsProp { decay, epsilon } => roots(0.0, decay, epsilon),
            OptimiserSpec::DualAcceleration { .. } | OptimiserSpec::ProgressiveRescaling { .. } => {
                Self { own_pace: true, ..averages(0.0) }
            }
            // two eigenvalue problems a step
            OptimiserSpec::Shampoo { accumulate: true, .. } => Self { depth: DEAR, ..averages(0.0) },
            _ => spec.parts().into_iter().map(Self::of).fold(averages(0.0), Self::and),
        }
    }

    /// The longer of two memories.
    fn and(self, other: Self) -> Self {
        let squares = match (self.squares, other.squares) {
            (Some((a, x)), Some((b, y))) => Some((a.min(b), x.min(y))),
            (one, other) => one.or(other),
        };
        let own_pace = self.own_pace || other.own_pace;
        Self { forgets: self.forgets.min(other.forgets), squares, own_pace, depth: self.depth.max(other.depth) }
    }

    fn stages(self) -> Vec<Stage> {
        let flow = |forgets: f64, log10_loss: f64| {
            let resolution = COARSEST.min(0.5 * forgets);
            let schedule = ScheduleSpec::flow_resolved(resolution);
            Stage { schedule, log10_loss, steps: MOST_STEPS }
        };
        if self.own_pace {
            let schedule = ScheduleSpec::LinearBound { c: 1.0, feature_bound: None, cap: None, decay: 0.0 };
            return vec![Stage { schedule, log10_loss: -1e9, steps: 20_000 }];
        }
        match self.squares {
            None => vec![flow(self.forgets, self.depth)],
            Some((squares, epsilon)) if epsilon > 0.0 => {
                let fine = flow(squares.min(self.forgets), epsilon.log10().min(0.0) - BELOW_EPSILON);
                vec![fine, flow(self.forgets, self.depth)]
            }
            Some((squares, _)) => vec![flow(squares.min(self.forgets), SHALLOW)],
        }
    }
}
