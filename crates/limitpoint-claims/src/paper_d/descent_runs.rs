//! Gradient descent watched at every step, and at points between two steps: what appendix E speaks of.

use std::sync::Arc;

use rayon::prelude::*;

use crate::arithmetic::{larger, smaller};
use crate::columns::Bound;
use crate::{Claim, ClaimError, Columns, Lab, Moments, Series};
use limitpoint::experiments::Task;
use limitpoint::linalg::{Matrix, dot, norm2};
use limitpoint::models::Initialiser;
use limitpoint::numeric::{LogScaled, log_add_exp};
use limitpoint::objective::Objective;
use limitpoint::schedules::ScheduleSpec;
use limitpoint::training::AdmissibleDescent;

/// A formula that is tried on these runs.
pub(super) const ON_DESCENT: Claim = Claim { experiments: &["d-descent"], ..Claim::FORMULA };

/// What is allowed for rounding.
pub(super) const ROUNDING: f64 = 1e-12;

/// Activations of the experiment in words and as the command line writes them; what shrinks the start so that κ is
/// constant at first; the multiple of H that travels far, while the next one of [`FACTORS`] is too long.
pub(super) const KINDS: [(&str, &str, f64, f64); 2] =
    [("squared ReLU", "relu-power(power=2)", 0.9375, 1e4), ("quadratic", "quadratic", 0.75, 1e3)];

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
        let (mut objective, constants) = theory(bound)?;
        let (schedule, scale) = (bound.task.recipe.schedule.clone(), *constants.margin.scale());
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

/// The objective of a run, and the constants of a descent from its start.
fn theory(bound: &Bound) -> Result<(Objective, AdmissibleDescent), ClaimError> {
    let (recipe, mut objective) = (&bound.task.recipe, bound.task.setup()?.objective(bound.data)?);
    let constants = AdmissibleDescent::new(&recipe.model, &recipe.loss, bound.data, &mut objective, bound.start)?;
    Ok((objective, constants))
}

/// `curvature`: ‖∇²L‖/(2 C κ(L)). `value`, `gradient`: the largest |q|/ρ^L over B₀ and ‖∇q‖/ρ^{L−1} over B₁.
fn bounds() -> Columns {
    Columns::new(["curvature", "value", "gradient"], |bound| {
        let (mut objective, constants) = theory(bound)?;
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
    /// Activation, in words.
    pub activation: &'static str,
    /// The multiple of H; NaN for other rules.
    pub factor: f64,
    /// B₀, B₁, B₂, C, γ̂.
    pub constants: AdmissibleDescent,
    /// The columns of every step, under the name of the run.
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

    fn of(lab: &Lab, (what, activation, task): &Planned) -> Result<Self, ClaimError> {
        let (constants, activation) = (constants(lab, task)?, *activation);
        let factor = if let ScheduleSpec::Admissible { c, .. } = task.recipe.schedule { c } else { f64::NAN };
        let rarely = task.recipe.stop.steps.unwrap_or(1000).div_ceil(8);
        let run = lab.series(task, Moments::every(1), vec![steps(), bounds().rarely(rarely)])?.called(what);
        let stayed = run.column("u").iter().skip(1).all(|u| !u.is_nan());
        let bounds = ["curvature", "value", "gradient"].map(|name| run.most(name));
        Ok(Self { activation, factor, constants, steps: run.when("u", |u| !u.is_nan()), bounds, stayed })
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
    let means: Vec<f64> = hessian.data.iter().zip(&hessian.transpose().data).map(|(a, b)| 0.5 * (a + b)).collect();
    let mut eigen = limitpoint::linalg::Eigen::new(size);
    eigen.factor(&means)?;
    Ok(eigen.values().iter().fold(0.0, |most, x| larger(most, x.abs())))
}

/// All runs.
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

/// A run that is to be made: its name, its activation in words, and what is run.
type Planned = (String, &'static str, Task);

pub(super) fn walks(lab: &Lab) -> Result<Arc<Walks>, ClaimError> {
    lab.once("gradient descent at every step", || {
        let mut planned: [Vec<Planned>; 4] = Default::default();
        let long = lab.choose(10_000, 200_000);
        for (name, text, shrink, far) in KINDS {
            let plan = |what: String, schedule: String, steps: usize| -> Result<Planned, ClaimError> {
                let overrides =
                    [format!("model.activation={text}"), format!("schedule={schedule}"), format!("stop.steps={steps}")];
                Ok((format!("{name}, {what}"), name, lab.tasks("d-descent", &overrides)?.remove(0)))
            };
            let plain = plan("η = H(L)".into(), "admissible".into(), long)?;
            let mut small = plan("η = H(L) from a smaller start".into(), "admissible".into(), long)?;
            if let Initialiser::Given { values } = &mut small.2.recipe.initialiser {
                values.iter_mut().for_each(|x| *x *= shrink);
            }
            // min H(x) over x ≤ L(t₀): as a function of u, H falls until u = 1 + a = 3 − 2/L and grows from there
            let constants = constants(lab, &plain.2)?;
            let scale = constants.margin.scale();
            let rate = constants.log_step(-(1.0 + scale.plateau()).max(-scale.log_start())).exp();
            let constant = plan("η = min H".into(), format!("constant(rate={rate})"), long)?;
            planned[0].extend([plain, small, constant]);
            for factor in FACTORS {
                let steps = lab.choose(1000, 10_000);
                planned[1].push(plan(format!("c = {factor}"), format!("admissible(c={factor})"), steps)?);
            }
            let steps = lab.choose(100_000, 400_000);
            planned[2].push(plan(format!("η = {far} H(L)"), format!("admissible(c={far})"), steps)?);
            let schedule = "flow-resolved(resolution=16)".into();
            planned[3].push(plan("steps that move a margin by up to 16".into(), schedule, 600)?);
        }
        let run = |planned: &[Planned]| planned.par_iter().map(|one| Walk::of(lab, one)).collect::<Result<Vec<_>, _>>();
        let [admissible, multiples, far, wild] = planned;
        Ok(Walks { admissible: run(&admissible)?, multiples: run(&multiples)?, far: run(&far)?, wild: run(&wild)? })
    })
}
