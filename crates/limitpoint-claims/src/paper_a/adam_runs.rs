//! The runs of section 4.2, made once for all claims about them, and the two phases found in them.

use std::sync::Arc;

use super::images::{self, separated};
use super::tasks;
use crate::{ClaimError, Lab, Series};
use limitpoint::experiments::Task;
use limitpoint::norms::NormSpec;

/// Precisions ε > 0 of Adam.
pub(super) const EPSILONS: [f64; 5] = [1e-4, 1e-6, 1e-8, 1e-10, 1e-12];

/// The pairs of digits of figures 2 and 6.
pub(super) const PAIRS: [[usize; 2]; 2] = [[3, 6], [2, 7]];

/// How step sizes are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leg {
    /// The paper's constant rate.
    Constant,
    /// Steps that follow the flow, down to a loss of 1e-300.
    Flow,
    /// The same with steps a tenth as long.
    Fine,
    /// Steps so short that the loss hardly changes within the memory of the second moment.
    Short,
}

/// Who trains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Who {
    Gradient,
    /// Also Adam without memory and with ε = 0.
    Sign,
    Adam {
        /// (β₁, β₂).
        memory: (f64, f64),
        epsilon: f64,
    },
}

impl Who {
    /// Adam with β₁ = β₂ = 0.
    pub fn forgetful(epsilon: f64) -> Self {
        Self::Adam { memory: (0.0, 0.0), epsilon }
    }

    /// For legends and checks.
    pub fn name(self) -> String {
        match self {
            Self::Gradient => "GD".into(),
            Self::Sign => "SD".into(),
            Self::Adam { memory: (0.0, 0.0), epsilon } => format!("Adam, ε = {epsilon:e}"),
            Self::Adam { memory: (beta1, beta2), epsilon } => format!("Adam, β = ({beta1}, {beta2}), ε = {epsilon:e}"),
        }
    }
}

pub(super) type Run = images::Run<(Leg, Who)>;
pub(super) type Runs = images::Runs<(Leg, Who)>;

impl Run {
    /// The pair and the seed, for checks.
    pub fn place(&self) -> String {
        format!("{} vs {}, seed {}", self.pair[0], self.pair[1], self.seed)
    }
}

impl Runs {
    /// Those of one leg by one optimiser.
    pub fn of(&self, leg: Leg, who: Who) -> impl Iterator<Item = &Run> {
        self.all.iter().filter(move |run| run.who == (leg, who))
    }

    /// The one of these with the pair and the seed of another run.
    pub fn beside(&self, other: &Run, leg: Leg, who: Who) -> Option<&Run> {
        self.of(leg, who).find(|run| run.pair == other.pair && run.seed == other.seed)
    }

    /// Runs everything, or hands out what was run before.
    pub fn get(lab: &Lab) -> Result<Arc<Self>, ClaimError> {
        lab.once("A.expAdam", || {
            let mut plan = Vec::new();
            for (pair, seeds) in [(PAIRS[0], lab.scales(2, 3, 3)), (PAIRS[1], lab.scales(1, 3, 3))] {
                for seed in 1..=seeds {
                    for (leg, who) in programme(lab, seed == 1 && pair == PAIRS[0]) {
                        plan.push((pair, seed, (leg, who), task(lab, seed, leg, who)?));
                    }
                }
            }
            let norms = [(["γ1", "soft γ1"], NormSpec::Linf), (["γ2", "soft γ2"], NormSpec::L2)];
            Self::make(lab, plan, &norms, 40)
        })
    }
}

/// What is run on a draw of images. What costs most is run on the first one only: the short steps, and at full scale,
/// where a flow takes half a minute, every second ε.
fn programme(lab: &Lab, first: bool) -> Vec<(Leg, Who)> {
    let mut programme = Vec::new();
    let every = if first { 1 } else { lab.scales(1, 2, 1) };
    for (leg, epsilons) in [(Leg::Constant, &EPSILONS[..lab.scales(5, 3, 5)]), (Leg::Flow, &EPSILONS[..])] {
        programme.extend([(leg, Who::Gradient), (leg, Who::Sign)]);
        programme.extend(epsilons.iter().step_by(every).map(|&epsilon| (leg, Who::forgetful(epsilon))));
    }
    for beta2 in [0.99, 0.999] {
        let adam = |epsilon| (Leg::Constant, Who::Adam { memory: (0.9, beta2), epsilon });
        programme.extend([1e-4, 1e-8, 0.0].map(adam));
    }
    if first {
        programme.push((Leg::Fine, Who::Sign));
        let adam = |epsilon| (Leg::Short, Who::Adam { memory: (0.9, 0.99), epsilon });
        programme.extend([1e-4, 1e-6, 1e-8].map(adam));
    }
    programme
}

/// The task of one of these runs.
pub(super) fn task(lab: &Lab, seed: u64, leg: Leg, who: Who) -> Result<Task, ClaimError> {
    let width = lab.scales(32, 128, 128);
    let (schedule, decades, steps) = match (leg, who) {
        // gradient descent is slow at this rate: it has not yet left the start when the others have ended
        (Leg::Constant, Who::Gradient) => ("constant(rate=0.003)", -300, lab.scales(20_000, 8_000, 1_000_000)),
        (Leg::Constant, _) => ("constant(rate=0.003)", -300, lab.scales(4_000, 1_500, 20_000)),
        (Leg::Flow, _) => ("flow-resolved(resolution=0.2)", -300, 100_000),
        (Leg::Fine, _) => ("flow-resolved(resolution=0.02)", -300, 1_000_000),
        (Leg::Short, _) => ("flow-resolved(resolution=0.004)", lab.scales(-9, -7, -7), 20_000),
    };
    let optimiser = match who {
        Who::Gradient => "gradient".into(),
        Who::Sign => "steepest(norm=linf, scaling=unit)".into(),
        Who::Adam { memory: (beta1, beta2), epsilon } => {
            format!("adam(beta1={beta1:?}, beta2={beta2:?}, epsilon={epsilon:e})")
        }
    };
    let course = format!("schedule={schedule}; stop.log10_loss={decades}; stop.steps={steps}");
    let settings = format!("optimiser={optimiser}; {course}; seed={seed}; model.widths=[{width}]");
    Ok(tasks(lab, "a-adam", &settings)?.remove(0))
}

/// The largest γ1 of a separated network, and what came after it; all NaN if it never separates the data, so that no
/// check about it holds.
pub(super) struct Phases {
    /// Where γ1 is largest: step, ln L, γ1.
    pub step: f64,
    pub log_loss: f64,
    pub peak: f64,
    /// 1 − γ1(end)/γ1(peak).
    pub fall: f64,
    /// γ2(end)/γ2(peak) − 1.
    pub rise: f64,
}

impl Phases {
    /// The phases of a run.
    pub fn of(run: &Series) -> Self {
        let seen = separated(run).rows(["γ1", "γ2", "step", "u"]);
        let peak = seen.into_iter().max_by(|a, b| a[0].total_cmp(&b[0]));
        let [one, two, step, u] = peak.unwrap_or([f64::NAN; 4]);
        let (fall, rise) = (1.0 - run.last("γ1") / one, run.last("γ2") / two - 1.0);
        Self { step, log_loss: -u, peak: one, fall, rise }
    }

    /// log₁₀ L where γ1 is largest.
    pub fn decades(&self) -> f64 {
        self.log_loss / std::f64::consts::LN_10
    }
}
