//! Gradient descent watched at every step, and at points between two steps: what appendix E speaks of.

use std::sync::Arc;

use rayon::prelude::*;

use crate::arithmetic::{larger, smaller};
use crate::{ClaimError, Columns, Lab, Moments, Series};
use limitpoint::experiments::Task;
use limitpoint::linalg::{Matrix, dot, norm2};
use limitpoint::models::Initialiser;
use limitpoint::numeric::{LogScaled, log_add_exp};
use limitpoint::objective::Objective;
use limitpoint::schedules::ScheduleSpec;
use limitpoint::training::AdmissibleDescent;

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

/// (P1) to (P4), by how much a step misses each: the columns of [`steps`] that are to be at most 0.
pub(super) const PARTS: [&str; 4] = ["(P1)", "(P2)", "(P3)", "(P4)"];

/// One step of descent, at the moment it leads to; losses relative to the loss before it. Nothing is measured at the
/// first moment, nor once the loss is above that of the start.
///
/// | column | what it is |
/// |---|---|
/// | `u`, `log_time`, `smallest`, `size` | ln 1/L, ln Σ η, min qₙ and ‖θ‖ before the step |
/// | `nu`, `printed_nu`, `outward` | ν/L, Σ e^{q} q/L as ν is printed in the proof of (P2), ⟨θ, −∇L⟩/L |
/// | `excess`, `eta` | β⁻² − 1, η L |
/// | `log_margin`, `log_soft`, `mu` | ln γ̂, ln γ̃, μ |
/// | `(P1)` … `(P4)` | by how much they are missed, the worst of a = ¼, ½, 1: in ln γ̃, relative to ρ², relative to L, in ln γ̂ |
/// | `grown`, `decrease` | ρ(t + 1)² − ρ² over ρ²; (L − L(t + 1))/(η ‖∇L‖²), between 1 − μ and 1 + μ |
/// | `turn`, `strayed` | ‖θ̂(t + 1) − θ̂‖; ‖Δθ + η∇L‖/‖θ‖, by what the driver's step differs from the one of the theory |
fn steps() -> Columns {
    let state = ["u", "log_time", "smallest", "size", "nu", "printed_nu", "outward", "excess", "eta", "log_margin"];
    let names = state.into_iter().chain(["log_soft", "mu"]).chain(PARTS);
    let columns = Columns::new(names.chain(["grown", "decrease", "turn", "strayed"]), |bound| {
        let (recipe, mut objective) = (&bound.task.recipe, bound.task.setup()?.objective(bound.data)?);
        let constants = AdmissibleDescent::new(&recipe.model, &recipe.loss, bound.data, &mut objective, bound.start)?;
        let (schedule, scale) = (recipe.schedule.clone(), *constants.margin.scale());
        let degree = scale.degree();
        let mut gradient = LogScaled::zeros(bound.start.len());
        let (mut log_time, mut gone) = (f64::NEG_INFINITY, false);
        Ok(Box::new(move |seen, out| {
            let (before, theta) = (seen.before, seen.point.params);
            if before.is_empty() || gone {
                return;
            }
            let evaluation = objective.forward(before);
            let u = -evaluation.log_loss();
            gone = u.is_nan() || -u > scale.log_start();
            if gone {
                return;
            }
            evaluation.backward(before, &mut gradient);
            let (g, size) = (&gradient.direction, norm2(before));
            let (square, outward) = (dot(g, g), -dot(before, g));
            let weighted = |sign: f64| -> f64 { objective.margins().iter().map(|q| (u + sign * q).exp() * q).sum() };
            let (nu, printed_nu) = (weighted(-1.0), weighted(1.0));
            let smallest = objective.margins().iter().copied().fold(f64::INFINITY, smaller);
            let across = square - (outward / size).powi(2);
            let (mu, lambda) = (scale.mu(-u), scale.lambda(-u));
            // ln η by the rule; of other rules it is seen in the step that was made
            let log_eta = match schedule {
                ScheduleSpec::Constant { rate } => rate.ln(),
                ScheduleSpec::Admissible { c, .. } => c.ln() + constants.log_step(-u),
                _ => {
                    let along: f64 = theta.iter().zip(before).zip(g).map(|((x, y), g)| (y - x) * g).sum();
                    (along / square).ln() + u
                }
            };
            let (eta, log_margin) = ((log_eta - u).exp(), constants.margin.log_value(-u, size));
            let (mut missed, mut grown, mut decrease) = ([f64::NEG_INFINITY; 4], f64::NAN, f64::NAN);
            for a in [0.25, 0.5, 1.0] {
                let ahead: Vec<f64> = before.iter().zip(g).map(|(x, g)| x - a * eta * g).collect();
                let next = -objective.forward(&ahead).log_loss();
                let length = norm2(&ahead);
                grown = ahead.iter().zip(before).map(|(x, y)| (x - y) * (x + y)).sum::<f64>() / (size * size);
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
            let length = norm2(theta);
            let turned: Vec<f64> = theta.iter().zip(before).map(|(x, y)| x / length - y / size).collect();
            let strayed: Vec<f64> = theta.iter().zip(before).zip(g).map(|((x, y), g)| x - y + eta * g).collect();
            let excess = square * size * size / (outward * outward) - 1.0;
            out.extend([u, log_time, smallest, size, nu, printed_nu, outward, excess, eta, log_margin]);
            out.extend([u.ln() - degree * size.ln(), mu]);
            out.extend(missed);
            out.extend([grown, decrease, norm2(&turned), norm2(&strayed) / size]);
            log_time = log_add_exp(log_time, log_eta);
        }))
    });
    columns.with_before()
}

/// `curvature`: ‖∇²L‖/(2 C κ(L)). `value`, `gradient`: the largest |q|/ρ^L over B₀ and ‖∇q‖/ρ^{L−1} over B₁.
fn bounds() -> Columns {
    Columns::new(["curvature", "value", "gradient"], |bound| {
        let (recipe, mut objective) = (&bound.task.recipe, bound.task.setup()?.objective(bound.data)?);
        let constants = AdmissibleDescent::new(&recipe.model, &recipe.loss, bound.data, &mut objective, bound.start)?;
        let scale = *constants.margin.scale();
        Ok(Box::new(move |seen, out| {
            let (theta, u, size) = (seen.point.params, -seen.point.log_loss, seen.point.length());
            let log_bound = std::f64::consts::LN_2 + constants.log_curvature + scale.log_kappa(-u);
            let norm = hessian_norm(&mut objective, theta, u).unwrap_or(f64::NAN);
            let largest = seen.point.margins.iter().map(|q| q.abs()).fold(0.0, larger);
            let steepest = objective.tangents().map_or(f64::NAN, |model| {
                let rows = model.per_example_gradients(theta, 0);
                (0..rows.rows).map(|n| norm2(rows.row(n))).fold(0.0, larger)
            });
            let [value, gradient] = [constants.bounds.value * size, constants.bounds.gradient];
            let power = size.powf(scale.degree() - 1.0);
            out.extend([(norm.ln() - u - log_bound).exp(), largest / (power * value), steepest / (power * gradient)]);
        }))
    })
}

/// A run.
pub(super) struct Walk {
    /// In words.
    pub what: String,
    /// Activation, in words.
    pub activation: &'static str,
    /// The multiple of H; NaN for other rules.
    pub factor: f64,
    /// B₀, B₁, B₂, C, γ̂.
    pub constants: AdmissibleDescent,
    /// L of the theory.
    pub degree: f64,
    /// Number of examples.
    pub examples: f64,
    /// The columns of every step.
    pub steps: Series,
    /// The largest of [`bounds`] over some points of the run.
    pub bounds: [f64; 3],
    /// Whether the loss stayed below that of the start.
    pub stayed: bool,
}

impl Walk {
    /// How many steps miss (P1) to (P4) by more than rounding; what is not a number misses.
    pub fn violations(&self) -> [usize; 4] {
        PARTS.map(|part| self.steps.column(part).iter().filter(|x| x.is_nan() || **x > ROUNDING).count())
    }

    /// Steps from one point to the next at which γ̂ falls by more than rounding, and the largest fall of ln γ̂.
    pub fn falls(&self) -> (usize, f64) {
        let falls = self.steps.pairs(["log_margin"], |[old], [new]| old - new);
        let count = falls.iter().filter(|fall| fall.is_nan() || **fall > ROUNDING).count();
        (count, falls.into_iter().fold(0.0, larger))
    }

    /// Whether every step keeps all four.
    pub fn keeps_all(&self) -> bool {
        self.stayed && self.violations() == [0; 4] && self.falls().0 == 0
    }

    fn of(lab: &Lab, what: String, activation: &'static str, task: &Task) -> Result<Self, ClaimError> {
        let constants = constants(lab, task)?;
        let factor = if let ScheduleSpec::Admissible { c, .. } = task.recipe.schedule { c } else { f64::NAN };
        let rarely = task.recipe.stop.steps.unwrap_or(1000).div_ceil(8);
        let run = lab.series(task, Moments::every(1), vec![steps(), bounds().rarely(rarely)])?;
        let stayed = run.column("u").iter().skip(1).all(|u| !u.is_nan());
        let (steps, bounds) =
            (run.when("u", |u| !u.is_nan()), ["curvature", "value", "gradient"].map(|name| run.most(name)));
        let (degree, examples) = (constants.margin.scale().degree(), run.end.data.len() as f64);
        Ok(Self { what, activation, factor, constants, degree, examples, steps, bounds, stayed })
    }
}

fn constants(lab: &Lab, task: &Task) -> Result<AdmissibleDescent, ClaimError> {
    let data = lab.data(task)?.train;
    let mut objective = lab.objective(task, &data)?;
    let start = task.setup()?.initial(objective.layout());
    Ok(AdmissibleDescent::new(&task.recipe.model, &task.recipe.loss, &data, &mut objective, &start)?)
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
    let mut eigen = limitpoint::linalg::Eigen::new(size);
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
                Ok(lab.tasks("d-descent", &overrides)?.remove(0))
            };
            let plain = task("admissible", long)?;
            let mut small = plain.clone();
            if let Initialiser::Given { values } = &mut small.recipe.initialiser {
                values.iter_mut().for_each(|x| *x *= shrink);
            }
            let rate = smallest_step(&constants(lab, &plain)?);
            let constant = task(&format!("constant(rate={rate})"), long)?;
            tasks[0].push((format!("{name}, η = H(L)"), name, plain));
            tasks[0].push((format!("{name}, η = H(L) from a smaller start"), name, small));
            tasks[0].push((format!("{name}, η = min H"), name, constant));
            for factor in FACTORS {
                let multiple = task(&format!("admissible(c={factor})"), lab.choose(1000, 10_000))?;
                tasks[1].push((format!("{name}, c = {factor}"), name, multiple));
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
fn smallest_step(constants: &AdmissibleDescent) -> f64 {
    let scale = constants.margin.scale();
    let lowest = (1.0 + scale.plateau()).max(-scale.log_start());
    constants.log_step(-lowest).exp()
}
