//! The lemmas behind Theorem 5, checked at every step of runs.

use super::{larger, largest_margin, norm_of};
use crate::claims::{Claim, ClaimError, Lab, Outcome};
use crate::diagnostics::feature_bound;
use crate::experiments::Task;
use crate::numeric::Streams;
use rayon::prelude::*;

pub(super) const CLAIMS: [Claim; 5] = [
    Claim {
        id: "B.lem10",
        covers: &["B.lem9"],
        statement: "‖∇L(w)‖_* ≥ γ* L(w) at every w, and the largest margin equals min over the simplex of ‖Xᵀr‖_*",
        experiments: &["b-margins", "b-matrix-margins"],
        try_out: duality,
    },
    Claim {
        id: "B.lem11",
        covers: &[],
        statement: "With η ≤ min{η₊, 1/(B²L)} every step lowers the loss by at least (η/2)‖∇L‖_*², so that the sum of \
                    η‖∇L‖_*² is bounded; the Hessian is at most LB²",
        experiments: &["b-margins"],
        try_out: descent,
    },
    Claim {
        id: "B.lem11.printed",
        covers: &[],
        statement: "As printed: the same with η ≤ max{η₊, 1/(B²L)}",
        experiments: &["b-margins"],
        try_out: descent_printed,
    },
    Claim {
        id: "B.lem12",
        covers: &[],
        statement: "η = c/(B²L) never raises the loss for c ≤ √2",
        experiments: &["b-margins"],
        try_out: root_two,
    },
    Claim {
        id: "B.eq39-44",
        covers: &[],
        statement: "The margin after t steps is at least what Theorem 5's proof says, at every t",
        experiments: &["b-margins"],
        try_out: finite_time,
    },
];

/// B = max ‖x‖_* in the norm and layout of a task.
fn bound(lab: &Lab, task: &Task) -> Result<f64, ClaimError> {
    let data = lab.data(task)?.train;
    let layout = lab.objective(task, &data)?.layout().clone();
    Ok(feature_bound(&*data.dense()?, &mut *norm_of(task).build(&layout)?))
}

fn duality(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut tasks = Vec::new();
    for seed in 1..=lab.choose(2, 5) {
        for start in [0.0, 4.0] {
            let overrides = [
                format!("data.seed={seed}"),
                format!("initialiser=normal(deviation={start})"),
                "schedule=linear-bound(c=1)".to_owned(),
                format!("stop.steps={}", lab.choose(5_000, 100_000)),
            ];
            tasks.extend(lab.tasks("b-margins", &overrides)?);
            tasks.extend(lab.tasks("b-matrix-margins", &overrides)?);
        }
    }
    let count = tasks.len();
    let found: Vec<(f64, u64, f64)> = tasks
        .into_par_iter()
        .map(|task| {
            let (norm, data) = (norm_of(&task), lab.data(&task)?.train);
            let judge = largest_margin(&data, &task.recipe.model, &norm)?;
            let mut worker = norm.build(lab.objective(&task, &data)?.layout())?;
            let (mut worst, mut seen) = (f64::NEG_INFINITY, 0);
            lab.watch(
                &task,
                |_| true,
                |snapshot| {
                    // ∇ ln L = ∇L/L
                    worst = larger(worst, 1.0 - worker.dual(&snapshot.point.gradient.direction) / judge.margin);
                    seen += 1;
                },
            )?;
            Ok((worst, seen, judge.bracket.relative_gap()))
        })
        .collect::<Result<_, ClaimError>>()?;
    let worst = found.iter().map(|(worst, ..)| *worst).fold(f64::NEG_INFINITY, larger);
    let steps: u64 = found.iter().map(|(_, seen, _)| seen).sum();
    outcome.at_most(format!("1 − ‖∇L‖_*/(γ*L), largest over {steps} steps of {count} runs"), worst, 1e-12);
    let gap = found.iter().map(|(.., gap)| *gap).fold(0.0, larger);
    outcome.at_most("duality gap of the judge over all data and norms, relative", gap, 1e-9);
    Ok(outcome)
}

/// One step as the lemmas see it: ln L before and after, ‖∇ ln L‖_*, and ηL = c/B².
struct Seen {
    before: f64,
    after: f64,
    slope: f64,
    scaled: f64,
}

/// All steps of a task whose step is η = c/(B²L) with constant c.
fn steps(lab: &Lab, task: &Task, c: f64, b: f64) -> Result<Vec<Seen>, ClaimError> {
    let data = lab.data(task)?.train;
    let mut worker = norm_of(task).build(lab.objective(task, &data)?.layout())?;
    let mut trail: Vec<(f64, f64)> = Vec::new();
    lab.watch(
        task,
        |_| true,
        |snapshot| {
            trail.push((snapshot.point.log_loss, worker.dual(&snapshot.point.gradient.direction)));
        },
    )?;
    let scaled = c / (b * b);
    Ok(trail.windows(2).map(|w| Seen { before: w[0].0, after: w[1].0, slope: w[0].1, scaled }).collect())
}

fn descent(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let (mut worst, mut telescoped, mut count) = (f64::NEG_INFINITY, f64::NEG_INFINITY, 0);
    for c in [0.3, 1.0] {
        let overrides = [format!("schedule=linear-bound(c={c})"), format!("stop.steps={}", lab.choose(3_000, 30_000))];
        for task in lab.tasks("b-margins", &overrides)? {
            let b = bound(lab, &task)?;
            let mut sum = 0.0;
            let mut first = None;
            for step in steps(lab, &task, c, b)? {
                // (L − L⁺)/L ≥ (ηL/2)‖∇ ln L‖²
                let fall = -(step.after - step.before).exp_m1();
                let promised = 0.5 * step.scaled * step.slope * step.slope;
                worst = larger(worst, promised - fall);
                // in units of L₀
                let start = *first.get_or_insert(step.before);
                sum += 2.0 * promised * (step.before - start).exp();
                telescoped = larger(telescoped, sum - 2.0 * -(step.after - start).exp_m1());
                count += 1;
            }
        }
    }
    outcome.at_most(format!("(ηL/2)‖∇ ln L‖_*² − (L − L⁺)/L, largest of {count} steps"), worst, 1e-13);
    outcome.at_most("Σ η‖∇L‖_*² − 2(L₀ − L_t), largest over all t, in units of L₀", telescoped, 1e-12);
    // vᵀHv ≤ L B² ‖v‖² for random v
    let mut excess = f64::NEG_INFINITY;
    for task in lab.tasks::<&str>("b-margins", &[])? {
        let (data, b) = (lab.data(&task)?.train, bound(lab, &task)?);
        let mut objective = lab.objective(&task, &data)?;
        let mut worker = norm_of(&task).build(objective.layout())?;
        let mut stream = Streams::new(7).stream("hessian");
        let (mut w, mut v) = (vec![0.0; data.dimension()], vec![0.0; data.dimension()]);
        for _ in 0..lab.choose(200, 2000) {
            stream.fill_normal(&mut w);
            stream.fill_normal(&mut v);
            objective.forward(&w);
            // exponential loss: vᵀHv/L = Σ pₙ⟨xₙ, v⟩²
            let curvature: f64 =
                objective.weights().iter().enumerate().map(|(n, p)| p * data.inputs.row_dot(n, &v).powi(2)).sum();
            excess = larger(excess, curvature / (b * worker.value(&v)).powi(2) - 1.0);
        }
    }
    outcome.at_most("vᵀHv/(LB²‖v‖²) − 1, largest of random v and w in six norms", excess, 1e-12);
    Ok(outcome)
}

fn descent_printed(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let rate = 10.0;
    for task in lab.tasks("b-margins", &[format!("schedule=constant(rate={rate})"), "stop.steps=200".into()])? {
        let data = lab.data(&task)?.train;
        let mut worker = norm_of(&task).build(lab.objective(&task, &data)?.layout())?;
        let mut trail: Vec<(f64, f64)> = Vec::new();
        lab.watch(
            &task,
            |_| true,
            |snapshot| {
                trail.push((snapshot.point.log_loss, worker.dual(&snapshot.point.gradient.direction)));
            },
        )?;
        let failed = trail.windows(2).filter(|w| {
            let fall = -(w[1].0 - w[0].0).exp_m1();
            fall < 0.5 * rate * w[0].0.exp() * w[0].1 * w[0].1 - 1e-12
        });
        let words = format!("{} of {} steps do not", failed.count(), trail.len().saturating_sub(1));
        let holds = words.starts_with("0 ");
        let what = format!(
            "{}, η = {rate}, which η₊ = {rate} allows: steps lower the loss by (η/2)‖∇L‖²",
            task.label.optimiser
        );
        outcome.push(what, "all", words, holds);
    }
    Ok(outcome)
}

fn root_two(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for c in [0.5, 1.0, 1.2, 1.414] {
        let tasks: Vec<Task> = (0..lab.choose(10, 50))
            .map(|seed| {
                let overrides = [
                    format!("data.seed={seed}"),
                    "data.margin=0.3".to_owned(),
                    format!("schedule=linear-bound(c={c})"),
                    format!("seed={seed}"),
                    "initialiser=normal(deviation=2)".to_owned(),
                    "stop.steps=300".to_owned(),
                ];
                lab.tasks("b-margins", &overrides)
            })
            .collect::<Result<Vec<_>, _>>()?
            .concat();
        let rises: Vec<f64> = tasks
            .par_iter()
            .map(|task| {
                let mut worst = f64::NEG_INFINITY;
                let mut last: Option<f64> = None;
                lab.watch(
                    task,
                    |_| true,
                    |snapshot| {
                        let now = snapshot.point.log_loss;
                        if let Some(before) = last.replace(now) {
                            worst = larger(worst, (now - before) / before.abs().max(1.0));
                        }
                    },
                )?;
                Ok(worst)
            })
            .collect::<Result<_, ClaimError>>()?;
        let worst = rises.iter().copied().fold(f64::NEG_INFINITY, larger);
        outcome.at_most(format!("c = {c}: largest rise of ln L in {} runs, six norms", rises.len()), worst, 1e-13);
    }
    Ok(outcome)
}

fn finite_time(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for c in [0.2, 1.0] {
        let overrides = [
            format!("schedule=linear-bound(c={c})"),
            "initialiser=normal(deviation=1)".to_owned(),
            format!("stop.steps={}", lab.choose(5_000, 100_000)),
        ];
        for task in lab.tasks("b-margins", &overrides)? {
            let (data, b) = (lab.data(&task)?.train, bound(lab, &task)?);
            let mut worker = norm_of(&task).build(lab.objective(&task, &data)?.layout())?;
            let scaled = c / (b * b);
            let (mut gains, mut path, mut errors) = (0.0, 0.0, 0.0);
            let (mut start, mut first_loss, mut worst) = (f64::NAN, f64::NAN, f64::NEG_INFINITY);
            let mut previous: Option<f64> = None;
            lab.watch(
                &task,
                |_| true,
                |snapshot| {
                    let size = worker.value(snapshot.point.params);
                    if let Some(slope) = previous {
                        gains += scaled * slope * slope;
                        path += scaled * slope;
                        errors += 0.5 * scaled * scaled * b * b * slope * slope;
                        let promised = gains / (path + start) - (errors + first_loss) / size;
                        worst = larger(worst, promised - snapshot.point.smallest_margin() / size);
                    } else {
                        (start, first_loss) = (size, snapshot.point.log_loss);
                    }
                    previous = Some(worker.dual(&snapshot.point.gradient.direction));
                },
            )?;
            let name = &task.label.optimiser;
            outcome.at_most(format!("{name}, c = {c}: bound − margin, largest over all steps"), worst, 1e-10);
        }
    }
    Ok(outcome)
}
