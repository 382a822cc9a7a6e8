//! Separable data: steepest descent in any norm maximises the margin of that norm.

use super::{angle, end, largest_margin, least_margin, task, tasks};
use crate::measures::{self, own_norm};
use crate::{Claim, ClaimError, Finished, Lab, Moments, Outcome, Sketch};
use limitpoint::experiments::Task;
use limitpoint::norms::NormSpec;
use limitpoint::observers::StopReason;

pub(super) const CLAIMS: [Claim; 4] = [
    Claim {
        id: "B.gd3.1",
        statement: "Gradient descent on separable data converges in direction to the largest ℓ2 margin, from any start \
                    and with any steps within the bound",
        experiments: &["b-margins"],
        try_out: gradient_descent,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.thm5",
        statement: "Steepest descent in any norm, with steps up to 1/(B²L), converges to the largest margin of its norm, \
                    from any start; exponential, logistic and probit loss",
        experiments: &["b-margins", "b-matrix-margins"],
        try_out: every_norm,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.thm5.printed",
        statement: "As printed: steps up to max{η₊, 1/(B²L)} suffice, so that any constant step does",
        experiments: &["b-margins"],
        try_out: printed_bound,
        ..Claim::MISPRINT
    },
    Claim {
        id: "B.fast",
        statement: "First-order methods built for the margin reach the judge's optimum to 1e-8",
        experiments: &["b-margins"],
        try_out: fast_methods,
        ..Claim::FINDING
    },
];

/// Larger margins relative to the data need fewer steps to the same relative error.
const WIDE: &str = "data.margin=2";

fn gradient_descent(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let steps: u32 = lab.choose(600_000, 3_000_000);
    let (mut all, mut cases) = (Vec::new(), Vec::new());
    for c in [1.0, 0.7, 0.4] {
        // the same distance travelled, whatever the steps
        let course = format!("schedule=linear-bound(c={c}); stop.steps={}", (f64::from(steps) / c) as u64);
        for scale in [0.0, 1.0, 5.0] {
            let settings = format!("optimiser=gradient; {WIDE}; {course}; initialiser=normal(deviation={scale})");
            all.extend(tasks(lab, "b-margins", &settings)?);
            cases.push(format!("c = {c}, start of size {scale}: angle to the judge's direction"));
        }
    }
    for (what, end) in cases.into_iter().zip(lab.finish_all(&all)?) {
        let judge = largest_margin(&end.data, &end.task.recipe.model, &NormSpec::L2)?;
        outcome.at_most(what, angle(&end.params, &judge.direction), 1e-4);
    }
    Ok(outcome)
}

fn every_norm(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let (mut all, steps) = (Vec::new(), lab.choose(1_200_000, 5_000_000));
    let mut add = |name: &str, experiment: &str, more: &str| -> Result<(), ClaimError> {
        // c falls to 0 and its sum diverges, which is what the proof needs
        let settings = format!("schedule=linear-bound(c=1, decay=0.1); stop.steps={steps}; {more}");
        let found = tasks(lab, experiment, &settings)?.into_iter();
        all.extend(found.map(|task| (format!("{name}, {}", task.label.optimiser), task)));
        Ok(())
    };
    for seed in 1..=lab.choose(2, 5) {
        add(&format!("data {seed}"), "b-margins", &format!("{WIDE}; data.seed={seed}"))?;
    }
    for start in 1..=lab.choose(1, 3) {
        let more = format!("{WIDE}; seed={start}; initialiser=normal(deviation=3)");
        add(&format!("random start {start}"), "b-margins", &more)?;
    }
    add("logistic", "b-margins", &format!("{WIDE}; loss=logistic"))?;
    // its weights change by a factor e^(qΔq) when a margin q moves by Δq, so steps must be as short as 1/q: with steps
    // of one length, longer runs are no better
    let resolved = format!("{WIDE}; loss=probit; schedule=flow-resolved(resolution=0.0005); stop.steps=1200000");
    add("probit", "b-margins", &resolved)?;
    add("matrices", "b-matrix-margins", "data.margin=1")?;
    let mut sketch = Sketch::new("margins", "Theorem 5: the margin of its own norm", "steps", "1 − margin/γ*")
        .logarithmic(true, true);
    let columns = |task: &Task| vec![measures::basics(), measures::margins(own_norm(task))];
    for run in lab.all_series(all, Moments::per_decade(13), columns)? {
        // the start may be 0, which has no margin
        let run = run.after_last("step", |step| step == 0.0);
        let end = &run.end;
        let judge = largest_margin(&end.data, &end.task.recipe.model, &own_norm(&end.task))?;
        let (gap, asked) = (1.0 - run.last("margin") / judge.margin, "0.005 between bounds, after 2·10⁵ steps");
        outcome.at_most(format!("{}: 1 − margin/γ*", run.what), gap, 1e-4).catalogue_asks(asked);
        let above = run.map(["margin"], |[margin]| margin / judge.margin - 1.0);
        outcome.largest(format!("{}: how far a margin exceeds γ*", run.what), above, 1e-12).by_theory();
        if run.what.starts_with("data 1,") {
            let rows = run.rows(["step", "margin"]).into_iter().filter(|[_, margin]| *margin > 0.0);
            let curve = rows.map(|[step, margin]| [step.max(1.0), (1.0 - margin / judge.margin).max(1e-16)]);
            sketch = sketch.curve(run.optimiser(), curve.collect());
        }
    }
    outcome.sketch(sketch);
    outcome.note(
        "Steps proportional to 1/L are not bounded; the proof then needs c → 0 with a divergent sum, c_t = (t + 1)^−0.1 \
         here. With constant c it gives (1 − c/2)γ* only: sign descent with c = 1 stays 9e-4 below γ* on the first data.",
    );
    Ok(outcome)
}

fn printed_bound(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for rate in [30.0, 1000.0] {
        let settings = format!("optimiser=sign; schedule=constant(rate={rate}); stop.steps=2000");
        let run = lab.series(&task(lab, "b-margins", &settings)?, Moments::every(1), vec![measures::basics()])?;
        let rises = run.column("u").windows(2).filter(|pair| pair[1] < pair[0]).count();
        let words = format!("{rises} steps raise it; {}", run.end.reason);
        let bounded = !matches!(run.end.reason, StopReason::NotFinite { .. });
        let what = format!("loss under the constant step η₊ = {rate}");
        outcome.event(what, "never rises", words, rises == 0 && bounded).by_theory();
        let what = format!("1 − margin/γ* after {} steps of η₊ = {rate}", run.end.steps);
        outcome.at_most(what, gap(&run.end, &NormSpec::Linf)?, 1e-2);
    }
    outcome.note(
        "The proof uses both bounds, min{η₊, 1/(B²L)}; with max any constant step would be allowed, and these two are \
         counterexamples.",
    );
    Ok(outcome)
}

/// 1 − margin/γ* of the weights a run ended with.
fn gap(end: &Finished, norm: &NormSpec) -> Result<f64, ClaimError> {
    let judge = largest_margin(&end.data, &end.task.recipe.model, norm)?;
    let size = norm.build_vector(end.params.len())?.value(&end.params);
    Ok(1.0 - least_margin(&end.data, &end.params) / size / judge.margin)
}

fn fast_methods(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let run = |optimiser: &str, data: &str, steps: u64| -> Result<Finished, ClaimError> {
        let course = format!("schedule=linear-bound(c=1); stop.steps={steps}");
        end(lab, "b-margins", &format!("optimiser={optimiser}; {data}; {course}"))
    };
    let cases = [
        ("ℓ2", "dual-acceleration", NormSpec::L2),
        ("ℓ4/3", "dual-acceleration(norm=lp:1.3333333333333333)", NormSpec::Lp { p: 4.0 / 3.0 }),
    ];
    for (name, optimiser, norm) in cases {
        for seed in 1..=lab.choose(2, 5) {
            let end = run(optimiser, &format!("data.seed={seed}"), 400_000)?;
            let words = format!("dual acceleration, {name}, data {seed}, {} steps: 1 − margin/γ*", end.steps);
            outcome.at_most(words, gap(&end, &norm)?, 1e-8);
        }
    }
    // progressive rescaling is geometric where the support vectors span the space: of random data, take those
    let (mut wanted, mut seeds) = (lab.choose(2, 5), 1..=200);
    while let Some(seed) = seeds.next().filter(|_| wanted > 0) {
        let data = format!("data={{matrices={{count=20, rows=3, columns=1, margin=0.3, seed={seed}}}}}");
        let task = task(lab, "b-margins", &format!("optimiser=gradient; {data}"))?;
        let judge = largest_margin(&lab.data(&task)?.train, &task.recipe.model, &NormSpec::L2)?;
        if judge.support.len() < 3 {
            continue;
        }
        wanted -= 1;
        let end = run("progressive-rescaling", &data, 50_000)?;
        let words = format!("progressive rescaling, ℓ2, random data {seed}, {} steps: 1 − margin/γ*", end.steps);
        outcome.at_most(words, gap(&end, &NormSpec::L2)?, 1e-8);
        let plain = gap(&run("gradient", &data, 50_000)?, &NormSpec::L2)?;
        outcome.note(format!("gradient descent is then at {plain:.1e}"));
    }
    outcome.note("Ji, Srebro and Telgarsky 2021; Wang, Min and Wu 2024. No theorem covers ℓ1 and ℓ∞.");
    Ok(outcome)
}
