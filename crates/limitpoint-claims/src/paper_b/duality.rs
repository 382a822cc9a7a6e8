//! The lemmas behind Theorem 5, checked at every step of runs.

use super::{largest_margin, tasks};
use crate::measures::{self, own_norm};
use crate::{Claim, ClaimError, Lab, Moments, Outcome, Series};
use limitpoint::data::Dataset;
use limitpoint::diagnostics::feature_bound;
use limitpoint::experiments::Task;
use limitpoint::numeric::Streams;

pub(super) const CLAIMS: [Claim; 5] = [
    Claim {
        id: "B.lem10",
        covers: &["B.lem9"],
        statement: "‖∇L(w)‖_* ≥ γ* L(w) at every w, and the largest margin equals min over the simplex of ‖Xᵀr‖_*",
        experiments: &["b-margins", "b-matrix-margins"],
        try_out: duality,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.lem11",
        statement: "With η ≤ min{η₊, 1/(B²L)} every step lowers the loss by at least (η/2)‖∇L‖_*², so that the sum of \
                    η‖∇L‖_*² is bounded; the Hessian is at most LB²",
        experiments: &["b-margins"],
        try_out: descent,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.lem11.printed",
        statement: "As printed: the same with η ≤ max{η₊, 1/(B²L)}",
        experiments: &["b-margins"],
        try_out: descent_printed,
        ..Claim::MISPRINT
    },
    Claim {
        id: "B.lem12",
        statement: "η = c/(B²L) never raises the loss for c ≤ √2",
        experiments: &["b-margins"],
        try_out: root_two,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.eq39-44",
        statement: "The margin after t steps is at least what Theorem 5's proof says, at every t",
        experiments: &["b-margins"],
        try_out: finite_time,
        ..Claim::FORMULA
    },
];

/// B = max ‖x‖_* in the norm and layout of a task.
fn bound(lab: &Lab, task: &Task, data: &Dataset) -> Result<f64, ClaimError> {
    let layout = lab.objective(task, data)?.layout().clone();
    Ok(feature_bound(&data.dense()?.into_owned().into(), &mut *own_norm(task).build(&layout)?))
}

/// ln 1/L, ‖∇ ln L‖_*, ‖w‖ and the smallest margin at every step of all runs under each of these settings.
fn every_step(lab: &Lab, each: impl IntoIterator<Item = String>) -> Result<Vec<Series>, ClaimError> {
    let mut named = Vec::new();
    for settings in each {
        let found = tasks(lab, "b-margins", &settings)?;
        named.extend(found.into_iter().map(|task| (task.label.optimiser.clone(), task)));
    }
    lab.all_series(named, Moments::every(1), |task| {
        vec![measures::basics(), measures::dual(own_norm(task)), measures::size(own_norm(task))]
    })
}

fn duality(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let (mut named, steps) = (Vec::new(), lab.choose(5_000, 100_000));
    for seed in 1..=lab.choose(2, 5) {
        for start in [0.0, 4.0] {
            let start = format!("data.seed={seed}; initialiser=normal(deviation={start})");
            let settings = format!("{start}; schedule=linear-bound(c=1); stop.steps={steps}");
            for experiment in ["b-margins", "b-matrix-margins"] {
                named.extend(tasks(lab, experiment, &settings)?.into_iter().map(|task| (settings.clone(), task)));
            }
        }
    }
    let runs = lab.all_series(named, Moments::every(1), |task| vec![measures::dual(own_norm(task))])?;
    let judge = |run: &Series| largest_margin(&run.end.data, &run.end.task.recipe.model, &own_norm(&run.end.task));
    let judges = runs.iter().map(judge).collect::<Result<Vec<_>, _>>()?;
    // ∇ ln L = ∇L/L
    let both = runs.iter().zip(&judges);
    let misses = both.flat_map(|(run, judge)| run.map(["dual"], |[dual]| 1.0 - dual / judge.margin));
    let steps: usize = runs.iter().map(Series::len).sum();
    let what = format!("1 − ‖∇L‖_*/(γ*L), largest over {steps} steps of {} runs", runs.len());
    outcome.largest(what, misses, 1e-12).by_theory();
    let gaps = judges.iter().map(|judge| judge.bracket.relative_gap());
    outcome.largest("duality gap of the judge over all data and norms, relative", gaps, 1e-9).by_theory();
    Ok(outcome)
}

fn descent(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let (mut short, mut telescoped) = (Vec::new(), Vec::new());
    for c in [0.3, 1.0] {
        let settings = format!("schedule=linear-bound(c={c}); stop.steps={}", lab.choose(3_000, 30_000));
        for run in every_step(lab, [settings])? {
            // η = c/(B²L): (L − L⁺)/L ≥ (ηL/2)‖∇ ln L‖²
            let scaled = c / bound(lab, &run.end.task, &run.end.data)?.powi(2);
            let promised = |slope: f64| 0.5 * scaled * slope * slope;
            short.extend(run.pairs(["u", "dual"], |[u, slope], [after, _]| promised(slope) + (u - after).exp_m1()));
            let (start, mut sum) = (run.first("u"), 0.0);
            // in units of L₀
            telescoped.extend(run.rows(["u", "dual"]).windows(2).map(|pair| {
                sum += 2.0 * promised(pair[0][1]) * (start - pair[0][0]).exp();
                sum + 2.0 * (start - pair[1][0]).exp_m1()
            }));
        }
    }
    let what = format!("(ηL/2)‖∇ ln L‖_*² − (L − L⁺)/L, largest of {} steps", short.len());
    outcome.largest(what, short, 1e-13).by_theory();
    let what = "Σ η‖∇L‖_*² − 2(L₀ − L_t), largest over all t, in units of L₀";
    outcome.largest(what, telescoped, 1e-12).by_theory();
    // vᵀHv ≤ L B² ‖v‖² for random v
    let mut excess = Vec::new();
    for task in lab.tasks::<&str>("b-margins", &[])? {
        let data = lab.data(&task)?.train;
        let (b, mut objective) = (bound(lab, &task, &data)?, lab.objective(&task, &data)?);
        let mut worker = own_norm(&task).build(objective.layout())?;
        let mut stream = Streams::new(7).stream("hessian");
        let (mut w, mut v) = (vec![0.0; data.dimension()], vec![0.0; data.dimension()]);
        for _ in 0..lab.choose(200, 2000) {
            stream.fill_normal(&mut w);
            stream.fill_normal(&mut v);
            objective.forward(&w);
            // exponential loss: vᵀHv/L = Σ pₙ⟨xₙ, v⟩²
            let weights = objective.weights().iter().enumerate();
            let curvature: f64 = weights.map(|(n, p)| p * data.inputs.row_dot(n, &v).powi(2)).sum();
            excess.push(curvature / (b * worker.value(&v)).powi(2) - 1.0);
        }
    }
    let what = "vᵀHv/(LB²‖v‖²) − 1, largest of random v and w in six norms";
    outcome.largest(what, excess, 1e-12).by_theory();
    Ok(outcome)
}

fn descent_printed(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, rate) = (Outcome::default(), 10.0);
    for run in every_step(lab, [format!("schedule=constant(rate={rate}); stop.steps=200")])? {
        let misses = run.pairs(["u", "dual"], |[u, slope], [after, _]| {
            0.5 * rate * (-u).exp() * slope * slope + (u - after).exp_m1()
        });
        let failed = misses.iter().filter(|miss| **miss > 1e-12).count();
        let what = format!("{}, η = {rate}, which η₊ = {rate} allows: steps lower the loss by (η/2)‖∇L‖²", run.what);
        outcome.push(what, "all", format!("{failed} of {} steps do not", misses.len()), failed == 0).by_theory();
    }
    outcome.note(
        "The proof uses η ≤ 1/(B²L) and η ≤ η₊ at once, so that max must be min: with max any constant step is allowed, and \
         one of 10 is a counterexample that anybody can recompute.",
    );
    Ok(outcome)
}

fn root_two(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for c in [0.5, 1.0, 1.2, 1.414] {
        let course = format!("data.margin=0.3; schedule=linear-bound(c={c}); stop.steps=300");
        let start = |seed| format!("{course}; data.seed={seed}; seed={seed}; initialiser=normal(deviation=2)");
        let runs = every_step(lab, (0..lab.choose(10, 50)).map(start))?;
        let rises = runs.iter().flat_map(|run| run.pairs(["u"], |[old], [new]| (old - new) / old.abs().max(1.0)));
        let what = format!("c = {c}: largest rise of ln L in {} runs, six norms", runs.len());
        outcome.largest(what, rises, 1e-13).by_theory();
    }
    Ok(outcome)
}

fn finite_time(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for c in [0.2, 1.0] {
        let steps = lab.choose(5_000, 100_000);
        let settings = format!("schedule=linear-bound(c={c}); initialiser=normal(deviation=1); stop.steps={steps}");
        for run in every_step(lab, [settings])? {
            let b = bound(lab, &run.end.task, &run.end.data)?;
            let scaled = c / (b * b);
            let (start, first_loss) = (run.first("size"), -run.first("u"));
            let (mut gains, mut path, mut errors) = (0.0, 0.0, 0.0);
            let rows = run.rows(["dual", "size", "smallest"]);
            let misses = rows.windows(2).map(|pair| {
                let (slope, [_, size, smallest]) = (pair[0][0], pair[1]);
                gains += scaled * slope * slope;
                path += scaled * slope;
                errors += 0.5 * scaled * scaled * b * b * slope * slope;
                gains / (path + start) - (errors + first_loss) / size - smallest / size
            });
            let what = format!("{}, c = {c}: bound − margin, largest over all steps", run.what);
            outcome.largest(what, misses, 1e-10).by_theory();
        }
    }
    Ok(outcome)
}
