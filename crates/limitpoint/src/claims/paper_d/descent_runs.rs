//! Gradient descent watched at every step, and at points between two steps: what appendix E speaks of.

use std::sync::Arc;

use rayon::prelude::*;

use crate::claims::arithmetic::larger;
use crate::claims::{ClaimError, Lab};
use crate::driver::Advance;
use crate::experiments::Task;
use crate::linalg::{Matrix, dot, norm2};
use crate::models::Initialiser;
use crate::numeric::{LogScaled, log_add_exp};
use crate::objective::Objective;
use crate::schedules::ScheduleSpec;
use crate::training::AdmissibleDescent;

/// What is allowed for rounding.
pub(super) const ROUNDING: f64 = 1e-12;

/// An activation of the experiment.
pub(super) struct Kind {
    /// In words.
    pub name: &'static str,
    /// As the command line writes it.
    text: &'static str,
    /// Shrinks the start so that κ is constant at first.
    shrink: f64,
    /// The multiple of H that travels far; the next one of [`FACTORS`] is too long.
    far: f64,
}

pub(super) const KINDS: [Kind; 2] = [
    Kind { name: "squared ReLU", text: "relu-power(power=2)", shrink: 0.9375, far: 1e4 },
    Kind { name: "quadratic", text: "quadratic", shrink: 0.75, far: 1e3 },
];

/// One step of descent; losses relative to the loss before it.
pub(super) struct Step {
    /// u = ln 1/L before the step.
    pub u: f64,
    /// ln Σ η before the step.
    pub log_time: f64,
    /// min qₙ.
    pub smallest: f64,
    /// ‖θ‖.
    pub size: f64,
    /// ν/L.
    pub nu: f64,
    /// Σ e^{q} q/L, as ν is printed in the proof of (P2).
    pub printed_nu: f64,
    /// ⟨θ, −∇L⟩/L.
    pub outward: f64,
    /// β⁻² − 1.
    pub excess: f64,
    /// η L.
    pub step: f64,
    /// ln γ̂.
    pub log_margin: f64,
    /// By how much (P1) to (P4) are missed, the worst of a = ¼, ½, 1: in ln γ̃, relative to ρ², relative to L, in ln
    /// γ̂.
    pub missed: [f64; 4],
    /// ρ(t + 1)² − ρ² over ρ².
    pub grown: f64,
    /// (L − L(t + 1))/(η ‖∇L‖²), between 1 − μ and 1 + μ.
    pub decrease: f64,
    /// ‖θ̂(t + 1) − θ̂‖.
    pub turn: f64,
    /// ‖Δθ + η∇L‖/‖θ‖: what the driver's step differs by from the one of the theory.
    pub strayed: f64,
}

/// A run.
pub(super) struct Walk {
    /// In words.
    pub what: String,
    /// Activation, in words.
    pub activation: &'static str,
    /// The multiple of H.
    pub factor: f64,
    /// B₀, B₁, B₂, C, γ̂.
    pub constants: AdmissibleDescent,
    /// L of the theory.
    pub degree: f64,
    /// Number of examples.
    pub examples: f64,
    /// Every step.
    pub steps: Vec<Step>,
    /// Largest ‖∇²L‖/(2 C κ(L)) over some points of the run.
    pub curvature: f64,
    /// Largest |q|/ρ^L over B₀ and ‖∇q‖/ρ^{L−1} over B₁ at the same points.
    pub shares: [f64; 2],
    /// Whether the loss stayed below that of the start.
    pub stayed: bool,
}

impl Walk {
    /// μ at a step.
    pub fn mu(&self, step: &Step) -> f64 {
        self.constants.margin.scale().mu(-step.u)
    }

    /// ln γ̃ at a step.
    pub fn log_soft(&self, step: &Step) -> f64 {
        step.u.ln() - self.degree * step.size.ln()
    }

    /// How many steps miss (P1) to (P4) by more than rounding; what is not a number misses.
    pub fn violations(&self) -> [usize; 4] {
        [0, 1, 2, 3]
            .map(|k| self.steps.iter().filter(|step| step.missed[k].is_nan() || step.missed[k] > ROUNDING).count())
    }

    /// Steps from one point to the next at which γ̂ falls by more than rounding, and the largest fall of ln γ̂.
    pub fn falls(&self) -> (usize, f64) {
        let falls = self.steps.windows(2).map(|pair| pair[0].log_margin - pair[1].log_margin);
        falls.fold((0, 0.0), |(count, most), fall| {
            (count + usize::from(fall.is_nan() || fall > ROUNDING), larger(most, fall))
        })
    }

    /// Whether every step keeps all four.
    pub fn keeps_all(&self) -> bool {
        self.stayed && self.violations() == [0; 4] && self.falls().0 == 0
    }

    /// Runs a task.
    fn of(lab: &Lab, what: String, activation: &'static str, task: &Task) -> Result<Self, ClaimError> {
        let data = lab.data(task)?.train;
        let (recipe, mut objective) = (&task.recipe, lab.objective(task, &data)?);
        let start = task.setup()?.initial(objective.layout());
        let constants = AdmissibleDescent::new(&recipe.model, &recipe.loss, &data, &mut objective, &start)?;
        let scale = *constants.margin.scale();
        let degree = scale.degree();
        let factor = if let ScheduleSpec::Admissible { c, .. } = recipe.schedule { c } else { f64::NAN };
        // ln η by the rule; of other rules it is seen when the step is made
        let log_step = |u: f64| match recipe.schedule {
            ScheduleSpec::Constant { rate } => Some(rate.ln()),
            ScheduleSpec::Admissible { c, .. } => Some(c.ln() + constants.log_step(-u)),
            _ => None,
        };
        let mut process = lab.start_on(task, &data)?;
        let most = recipe.stop.steps.unwrap_or(1000) as usize;
        let look_at = most.div_ceil(8);
        let (mut theta, mut gradient) = (start, LogScaled::zeros(objective.layout().len()));
        let (mut curvature, mut shares, mut stayed) = (0.0, [0.0; 2], true);
        let (mut steps, mut log_time) = (Vec::with_capacity(most), f64::NEG_INFINITY);
        for count in 0..most {
            let evaluation = objective.forward(&theta);
            let u = -evaluation.log_loss();
            evaluation.backward(&theta, &mut gradient);
            if u.is_nan() || -u > scale.log_start() {
                stayed = false;
                break;
            }
            let size = norm2(&theta);
            if count % look_at == 0 {
                let rows = objective.tangents()?.per_example_gradients(&theta, 0);
                let steepest = (0..rows.rows).map(|n| norm2(rows.row(n))).fold(0.0, larger);
                let largest = objective.margins().iter().map(|q| q.abs()).fold(0.0, larger);
                shares[0] = larger(shares[0], largest / (size.powf(degree) * constants.bounds.value));
                shares[1] = larger(shares[1], steepest / (size.powf(degree - 1.0) * constants.bounds.gradient));
                let log_bound = std::f64::consts::LN_2 + constants.log_curvature + scale.log_kappa(-u);
                let norm = hessian_norm(&mut objective, &theta, u)?;
                curvature = larger(curvature, (norm.ln() - u - log_bound).exp());
                objective.forward(&theta).backward(&theta, &mut gradient);
            }
            let g = gradient.direction.clone();
            let (square, outward) = (dot(&g, &g), -dot(&theta, &g));
            let weighted = |sign: f64| -> f64 { objective.margins().iter().map(|q| (u + sign * q).exp() * q).sum() };
            let (nu, printed_nu) = (weighted(-1.0), weighted(1.0));
            let smallest = objective.margins().iter().copied().fold(f64::INFINITY, f64::min);
            let across = square - (outward / size).powi(2);
            let (mu, lambda) = (scale.mu(-u), scale.lambda(-u));
            let before = theta.clone();
            let ended = matches!(process.advance()?, Advance::Ended(_));
            theta.copy_from_slice(process.params());
            let log_eta = log_step(u).unwrap_or_else(|| {
                let along: f64 = theta.iter().zip(&before).zip(&g).map(|((x, y), g)| (y - x) * g).sum();
                (along / square).ln() + u
            });
            let eta = (log_eta - u).exp();
            let log_margin = constants.margin.log_value(-u, size);
            let (mut missed, mut grown, mut decrease) = ([f64::NEG_INFINITY; 4], f64::NAN, f64::NAN);
            for a in [0.25, 0.5, 1.0] {
                let ahead: Vec<f64> = before.iter().zip(&g).map(|(x, g)| x - a * eta * g).collect();
                let next = -objective.forward(&ahead).log_loss();
                let length = norm2(&ahead);
                grown = ahead.iter().zip(&before).map(|(x, y)| (x - y) * (x + y)).sum::<f64>() / (size * size);
                let least = 2.0 * degree * a * eta * nu / (size * size);
                let fallen = -(u - next).exp_m1();
                decrease = fallen / (a * eta * square);
                let gain = constants.margin.log_value(-next, length) - log_margin;
                let promised = size * size / (degree * nu * nu) * across * (length / size).ln();
                let now = [
                    constants.log_first_margin - (next.ln() - degree * length.ln()),
                    larger(least - grown, grown - least * (1.0 + lambda * mu)),
                    a * eta * (1.0 - mu) * square - fallen,
                    promised - gain,
                ];
                missed.iter_mut().zip(now).for_each(|(worst, x)| *worst = larger(*worst, x));
            }
            let length = norm2(&theta);
            let turned: Vec<f64> = theta.iter().zip(&before).map(|(x, y)| x / length - y / size).collect();
            let strayed: Vec<f64> = theta.iter().zip(&before).zip(&g).map(|((x, y), g)| x - y + eta * g).collect();
            steps.push(Step {
                u,
                log_time,
                smallest,
                size,
                nu,
                printed_nu,
                outward,
                excess: square * size * size / (outward * outward) - 1.0,
                step: eta,
                log_margin,
                missed,
                grown,
                decrease,
                turn: norm2(&turned),
                strayed: norm2(&strayed) / size,
            });
            log_time = log_add_exp(log_time, log_eta);
            if ended {
                break;
            }
        }
        let examples = data.len() as f64;
        Ok(Self { what, activation, factor, constants, degree, examples, steps, curvature, shares, stayed })
    }
}

/// ‖∇²L‖₂/L by central differences of the gradient.
fn hessian_norm(objective: &mut Objective, theta: &[f64], u: f64) -> Result<f64, ClaimError> {
    let size = theta.len();
    let step = 1e-5 * norm2(theta);
    let mut gradient = LogScaled::zeros(size);
    let mut hessian = Matrix::zeros(size, size);
    for i in 0..size {
        for sign in [1.0, -1.0] {
            let mut moved = theta.to_vec();
            moved[i] += sign * step;
            objective.forward(&moved).backward(&moved, &mut gradient);
            // ∇L/L(θ)
            for (j, slope) in gradient.times_exp(u).into_iter().enumerate() {
                hessian[(i, j)] += sign * slope / (2.0 * step);
            }
        }
    }
    for i in 0..size {
        for j in 0..i {
            let mean = 0.5 * (hessian[(i, j)] + hessian[(j, i)]);
            (hessian[(i, j)], hessian[(j, i)]) = (mean, mean);
        }
    }
    let mut eigen = crate::linalg::Eigen::new(size);
    eigen.factor(&hessian.data)?;
    Ok(eigen.values().iter().fold(0.0, |most, x| larger(most, x.abs())))
}

/// Which part of the runs a walk belongs to.
pub(super) struct Walks {
    /// Steps that satisfy (S5): H itself from two starts, and a constant.
    pub admissible: Vec<Walk>,
    /// One walk for each of [`FACTORS`], activation after activation.
    pub multiples: Vec<Walk>,
    /// A large multiple of H for many steps.
    pub far: Vec<Walk>,
    /// Steps that move a margin by up to 16, far too long.
    pub wild: Vec<Walk>,
}

/// The multiples of H that are tried.
const FACTORS: [f64; 7] = [1.0, 10.0, 100.0, 1e3, 3e3, 1e4, 1e5];

/// All runs.
pub(super) fn walks(lab: &Lab) -> Result<Arc<Walks>, ClaimError> {
    lab.once("gradient descent at every step", || {
        let mut tasks: [Vec<(String, &'static str, Task)>; 4] = Default::default();
        let long = lab.choose(10_000, 200_000);
        for Kind { name, text, shrink, far } in KINDS {
            let task = |schedule: &str, steps: usize| -> Result<Task, ClaimError> {
                let overrides =
                    [format!("model.activation={text}"), format!("schedule={schedule}"), format!("stop.steps={steps}")];
                let mut tasks = lab.tasks("d-descent", &overrides)?;
                tasks.pop().ok_or_else(|| crate::experiments::RunError::Nothing.into())
            };
            let plain = task("admissible", long)?;
            tasks[0].push((format!("{name}, η = H(L)"), name, plain.clone()));
            let mut small = plain.clone();
            if let Initialiser::Given { values } = &mut small.recipe.initialiser {
                values.iter_mut().for_each(|x| *x *= shrink);
            }
            tasks[0].push((format!("{name}, η = H(L) from a smaller start"), name, small));
            let rate = smallest_step(lab, &plain)?;
            tasks[0].push((format!("{name}, η = min H"), name, task(&format!("constant(rate={rate})"), long)?));
            for factor in FACTORS {
                let steps = lab.choose(1000, 10_000);
                tasks[1].push((
                    format!("{name}, c = {factor}"),
                    name,
                    task(&format!("admissible(c={factor})"), steps)?,
                ));
            }
            let travel = task(&format!("admissible(c={far})"), lab.choose(100_000, 400_000))?;
            tasks[2].push((format!("{name}, η = {far} H(L)"), name, travel));
            let wild = task("flow-resolved(resolution=16)", 600)?;
            tasks[3].push((format!("{name}, steps that move a margin by up to 16"), name, wild));
        }
        let run = |tasks: &[(String, &'static str, Task)]| -> Result<Vec<Walk>, ClaimError> {
            tasks.par_iter().map(|(what, name, task)| Walk::of(lab, what.clone(), name, task)).collect()
        };
        let [admissible, multiples, far, wild] = tasks;
        Ok(Walks { admissible: run(&admissible)?, multiples: run(&multiples)?, far: run(&far)?, wild: run(&wild)? })
    })
}

/// min H(x) over x ≤ L(t₀): as a function of u, H falls until u = 1 + a = 3 − 2/L and grows from there.
fn smallest_step(lab: &Lab, task: &Task) -> Result<f64, ClaimError> {
    let data = lab.data(task)?.train;
    let mut objective = lab.objective(task, &data)?;
    let start = task.setup()?.initial(objective.layout());
    let (model, loss) = (&task.recipe.model, &task.recipe.loss);
    let constants = AdmissibleDescent::new(model, loss, &data, &mut objective, &start)?;
    let scale = constants.margin.scale();
    let lowest = (1.0 + scale.plateau()).max(-scale.log_start());
    Ok(constants.log_step(-lowest).exp())
}
