//! Lemma 2.5 and equations 3, 4 and 7: what holds at every point of a mirror flow.

use super::mirror::{Flows, ON_FLOWS};
use crate::arithmetic::{distance, larger, largest_fall};
use crate::measures::own_potential;
use crate::{Claim, ClaimError, Lab, Outcome, Series};
use limitpoint::experiments::Task;
use limitpoint::linalg::{dot, max_abs};
use limitpoint::numeric::{LogScaled, RandomStream, Streams};
use limitpoint::objective::Objective;
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::params::ParamLayout;
use limitpoint::potentials::{MirrorPotential, PotentialSpec};
use limitpoint::schedules::StepContext;

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "C.lem2.5",
        statement: "Q(∇R(θ)) = ⟨θ, ∇R(θ)⟩ − R(θ), the largest value of ⟨x, ∇R(θ)⟩ − R(x) over all x, for every \
                    potential of the library",
        try_out: fenchel,
        ..Claim::FORMULA
    },
    Claim {
        id: "C.flow",
        statement: "d∇R(θ)/dt = −∇L is the same flow as dθ/dt = −∇²R(θ)⁻¹∇L, and along it dL/dt = −‖θ̇‖² in the metric \
                    ∇²R, so that the loss falls (the paper's middle expression −⟨h, θ̇⟩ has a minus too many)",
        try_out: energy,
        ..ON_FLOWS
    },
    Claim {
        id: "C.eq4",
        covers: &["C.eq7"],
        statement: "dQ/dt = ⟨θ, d∇R/dt⟩ = L Σ e^{−qᵢ} qᵢ ≥ L · Loss · ln(1/Loss) at every step after separation",
        try_out: growth,
        ..ON_FLOWS
    },
];

/// A layout that a potential fits.
pub(super) fn layout_for(spec: &PotentialSpec) -> Result<ParamLayout, ClaimError> {
    Ok(match spec {
        PotentialSpec::SpectralEntropy => ParamLayout::new([("w", 3, 3)])?,
        _ => ParamLayout::new([("w", 2, 3), ("a", 1, 2)])?,
    })
}

/// Random weights in the domain of a potential, of about the given size.
pub(super) fn draw(spec: &PotentialSpec, layout: &ParamLayout, stream: &mut RandomStream, size: f64) -> Vec<f64> {
    let mut theta = vec![0.0; layout.len()];
    stream.fill_normal(&mut theta);
    match spec {
        PotentialSpec::Entropy => theta.iter_mut().for_each(|x| *x = x.exp()),
        PotentialSpec::SpectralEntropy => {
            let root = theta.clone();
            limitpoint::linalg::matmul_nt(&mut theta, &root, &root, 3, 3, 3);
            (0..3).for_each(|i| theta[4 * i] += 0.3);
        }
        _ => {}
    }
    theta.iter_mut().for_each(|x| *x *= size);
    theta
}

fn fenchel(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for spec in PotentialSpec::examples() {
        let (layout, mut stream) = (layout_for(&spec)?, Streams::new(25).stream(&spec.to_string()));
        let mut worker = spec.build(&layout)?;
        let (mut z, mut back) = (vec![0.0; layout.len()], vec![0.0; layout.len()]);
        let (mut identity, mut excess, mut round_trip) = (0.0, f64::NEG_INFINITY, 0.0);
        for size in [0.01, 1.0, 30.0] {
            for _ in 0..lab.choose(10, 50) {
                let theta = draw(&spec, &layout, &mut stream, size);
                worker.mirror_map(&theta, &mut z);
                let (product, value, conjugate) = (dot(&theta, &z), worker.value(&theta), worker.conjugate_at(&theta));
                let scale = product.abs() + value.abs() + conjugate.abs();
                identity = larger(identity, (product - value - conjugate).abs() / scale);
                for _ in 0..10 {
                    let other = draw(&spec, &layout, &mut stream, size);
                    let (product, value) = (dot(&other, &z), worker.value(&other));
                    excess = larger(excess, (product - value - conjugate) / (product.abs() + value.abs() + conjugate));
                }
                worker.inverse_mirror_map(&z, &mut back);
                round_trip = larger(round_trip, distance(&back, &theta) / max_abs(&theta));
            }
        }
        let mut own = Outcome::default();
        own.at_most("|Q(∇R(θ)) − ⟨θ, ∇R⟩ + R|, relative", identity, 1e-12).by_theory();
        own.at_most("⟨x, ∇R(θ)⟩ − R(x) above Q(∇R(θ)), relative, over random x", excess, 1e-12).by_theory();
        own.at_most("maximiser ∇Q(∇R(θ)) against θ, relative", round_trip, 1e-8).by_theory();
        outcome.say_of(&spec.to_string(), own);
    }
    Ok(outcome)
}

/// A task's first point with what single steps from it need.
pub(super) struct Still {
    pub objective: Objective,
    worker: Box<dyn MirrorPotential>,
    potential: PotentialSpec,
    pub theta: Vec<f64>,
    dual: Vec<f64>,
    pub gradient: LogScaled,
    log_loss: f64,
    /// A step in units of 1/L that moves no dual entry by more than a thousandth of itself.
    step: f64,
}

impl Still {
    pub fn new(lab: &Lab, task: &Task) -> Result<Self, ClaimError> {
        let data = lab.data(task)?.train;
        let mut objective = lab.objective(task, &data)?;
        let theta = task.setup()?.initial(objective.layout());
        let potential = own_potential(task);
        let mut worker = potential.build(objective.layout())?;
        let (mut gradient, mut dual) = (LogScaled::zeros(theta.len()), vec![0.0; theta.len()]);
        let evaluation = objective.forward(&theta);
        let log_loss = evaluation.log_loss();
        evaluation.backward(&theta, &mut gradient);
        worker.mirror_map(&theta, &mut dual);
        let step = dual.iter().zip(&gradient.direction).map(|(z, g)| 1e-3 * (z / g).abs()).fold(1e-4, f64::min);
        Ok(Self { objective, worker, potential, theta, dual, gradient, log_loss, step })
    }

    /// θ after one step of an optimiser, h in units of 1/L.
    fn after(&self, optimiser: &OptimiserSpec, h: f64) -> Result<Vec<f64>, ClaimError> {
        let mut params = self.theta.clone();
        let context = StepContext { step: 0, epoch: 0, log_loss: self.log_loss, all_correct: false };
        let mut worker = optimiser.build(self.objective.layout())?;
        worker.step(&mut params, &self.gradient, &context, h.ln() - self.log_loss)?;
        Ok(params)
    }
}

/// 2 f(h/2) − f(h), which removes the error in h.
fn richardson(h: f64, mut f: impl FnMut(f64) -> Result<f64, ClaimError>) -> Result<f64, ClaimError> {
    Ok(2.0 * f(0.5 * h)? - f(h)?)
}

fn energy(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for task in lab.tasks("c-flows", &["seed=2"])? {
        let (mut still, mut own) = (Still::new(lab, &task)?, Outcome::default());
        let (h, g) = (still.step, still.gradient.direction.clone());
        let [mut velocity, mut back] = [0; 2].map(|_| vec![0.0; g.len()]);
        still.worker.inverse_hessian_action(&still.theta, &g, &mut velocity);
        still.worker.hessian_action(&still.theta, &velocity, &mut back);
        let (work, speed) = (dot(&g, &velocity), dot(&velocity, &back));
        own.near("‖θ̇‖² in the metric over −⟨∇L, θ̇⟩", speed / work, 1.0, 1e-10).by_theory();
        let mirror = OptimiserSpec::mirror(still.potential.clone());
        let slope = richardson(h, |h| {
            let params = still.after(&mirror, h)?;
            Ok((still.objective.forward(&params).log_loss() - still.log_loss).exp_m1() / h)
        })?;
        own.near("dL/dt along the mirror flow over −‖θ̇‖²", slope / -work, 1.0, 1e-5).by_theory();
        // the same velocity in the primal moves the dual at −∇L
        let metric = OptimiserSpec::NaturalGradient { potential: still.potential.clone() };
        let mut moved = |h: f64| -> Result<Vec<f64>, ClaimError> {
            let (params, mut dual) = (still.after(&metric, h)?, vec![0.0; g.len()]);
            still.worker.mirror_map(&params, &mut dual);
            Ok(dual.iter().zip(&still.dual).map(|(new, old)| (new - old) / h).collect())
        };
        let found: Vec<f64> = moved(h)?.iter().zip(moved(0.5 * h)?).map(|(whole, half)| whole - 2.0 * half).collect();
        let apart = distance(&found, &g) / max_abs(&g);
        own.at_most("d∇R/dt along θ̇ = −∇²R⁻¹∇L against −∇L, relative", apart, 1e-5).by_theory();
        outcome.say_of(&task.label.optimiser, own);
    }
    let flows = Flows::of(lab, &mut outcome)?;
    let falls = flows.all.iter().map(|flow| largest_fall(flow.column("u").iter().copied()));
    let what = format!("largest relative rise of ln L in {} steps of {} flows", flows.steps(), flows.all.len());
    outcome.largest(what, falls, 0.0).by_theory();
    Ok(outcome)
}

fn growth(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for task in lab.tasks("c-flows", &["seed=2"])? {
        let mut still = Still::new(lab, &task)?;
        let (theta, g) = (&still.theta, &still.gradient.direction);
        let (expected, before) = (-dot(theta, g), still.worker.conjugate_at(theta));
        let mirror = OptimiserSpec::mirror(still.potential.clone());
        // large enough that the difference of two Q keeps seven digits
        let h = larger(still.step, 1e-7 * before / expected.abs());
        let found = richardson(h, |h| {
            let params = still.after(&mirror, h)?;
            Ok((still.worker.conjugate_at(&params) - before) / h)
        })?;
        let name = format!("{}: dQ/dt by differences over ⟨θ, −∇L⟩", task.label.optimiser);
        outcome.near(name, found / expected, 1.0, 1e-6).by_theory();
    }
    let flows = Flows::of(lab, &mut outcome)?;
    let shares = |other: &'static str| {
        let share = move |flow: &Series| flow.map(["outward", other], |[w, other]| w / (flow.degree * other));
        flows.all.iter().flat_map(share)
    };
    let what = format!("|⟨θ, −∇L⟩/(L Σ e^(−qᵢ) qᵢ) − 1|, largest over {} steps", flows.steps());
    outcome.largest(what, shares("mean_margin").map(|share| (share - 1.0).abs()), 1e-10).by_theory();
    outcome.smallest("⟨θ, −∇L⟩ over L · Loss · ln(1/Loss), least", shares("u"), 1.0 - 1e-12).by_theory();
    Ok(outcome)
}
