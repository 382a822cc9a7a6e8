//! Beyond the paper: what its last section leaves open about potentials of degree below 2 and about finite steps.

use rayon::prelude::*;

use super::balance::{drift, others};
use super::limits::long_runs;
use crate::claims::arithmetic::angle;
use crate::claims::{Claim, ClaimError, Finished, Lab, Outcome, Sketch};
use crate::potentials::PotentialSpec;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "X.17",
        covers: &[],
        statement: "Measured: mirror flow with potentials of degree between 1 and 2, and with half squared ℓp norms, \
                    tends to KKT points of its horizon's margin problem too, beyond the α ≥ 2 that the paper proves",
        experiments: &["c-flows"],
        try_out: open_degrees,
    },
    Claim {
        id: "X.18",
        covers: &[],
        statement: "Measured: exact mirror steps and metric steps θ − η∇²R(θ)⁻¹∇L leave the balance law in proportion \
                    to the step, and their late directions come together in proportion to the step as well",
        experiments: &["c-flows"],
        try_out: discretisations,
    },
];

fn open_degrees(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let potentials = ["power-smoothed:1.5,0.1", "power-smoothed:1.5,0", "power-smoothed:1.2,0.01", "squared-lp:1.5"];
    let overrides =
        ["initialiser=normal(deviation=0.3)", lab.choose("stop.log10_loss=-4343", "stop.log10_loss=-43430")];
    let title = "Fenchel–Young gap in the horizon of potentials of degree below 2, least so far";
    let mut sketch = Sketch::new("x-open-degrees", title, "ln 1/L", "1 − β").logarithmic(true, true);
    for (run, alpha) in long_runs(lab, &potentials, &overrides)?.iter().zip([1.5, 1.5, 1.2, 2.0]) {
        let (name, end) = (&run.name, run.depth());
        let (early, late) = (run.least_gap(end.sqrt()), run.least_gap(end));
        outcome.at_most(format!("{name}: Fenchel–Young gap, least up to ln 1/L = {end:.0}"), late, 0.2);
        // what is left of the start in the dual direction is 1/‖∇R‖ ~ ‖θ‖^{1−α}, and the gap is quadratic in it
        let law = -2.0 * (alpha - 1.0) / run.degree;
        let power = (late / early).ln() / end.sqrt().ln();
        let what = format!("{name}: power of ln 1/L at which it falls from {:.0} on, at most −2(α−1)/L", end.sqrt());
        outcome.at_most(what, power, law);
        let taus: Vec<f64> = run.certificates().map(|(_, certificate)| certificate.tau).collect();
        let words: Vec<String> = taus.iter().map(|tau| format!("{tau:.1e}")).collect();
        let falling = taus.len() > 2 && taus.windows(2).all(|pair| pair[1] < pair[0]);
        outcome.push(format!("{name}: τ of the judge, once a decade"), "falls", words.join(", "), falling);
        sketch = sketch.curve(name.trim_end_matches(", seed 0"), run.curve());
    }
    outcome.sketch(sketch);
    Ok(outcome)
}

/// Where the flow passes, by u = ln 1/L.
struct Path {
    knots: Vec<(f64, Vec<f64>)>,
}

impl Path {
    fn of(lab: &Lab, potential: &str) -> Result<Self, ClaimError> {
        let flow = format!("flows.long={{mirror={{potential='{potential}'}}}}");
        let mut tasks = lab.tasks("c-flows", &[flow, "stop.log10_loss=-14".to_owned()])?;
        tasks.retain(|task| task.label.optimiser == "long");
        let mut knots = Vec::new();
        for task in &tasks {
            lab.watch(
                task,
                |_| true,
                |snapshot| knots.push((-snapshot.point.log_loss, snapshot.point.params.to_vec())),
            )?;
        }
        Ok(Self { knots })
    }

    /// Between two steps, linearly.
    fn at(&self, u: f64) -> Vec<f64> {
        let index = self.knots.partition_point(|knot| knot.0 <= u).min(self.knots.len() - 1).max(1);
        let ((before, x), (after, y)) = (&self.knots[index - 1], &self.knots[index]);
        let s = (u - before) / (after - before);
        x.iter().zip(y).map(|(x, y)| (1.0 - s) * x + s * y).collect()
    }
}

/// One potential's runs with steps of growing length: exact mirror steps and metric steps.
struct Steps {
    resolution: f64,
    mirror: Finished,
    metric: Finished,
}

fn discretisations(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let resolutions = [0.2, 0.1, 0.05];
    for text in ["hyperbolic:0.1", "smoothed:3,1"] {
        let potential: PotentialSpec = text.parse()?;
        let runs: Vec<Steps> = resolutions
            .par_iter()
            .map(|&resolution| {
                let overrides = [
                    format!("schedule=flow-resolved(resolution={resolution})"),
                    "stop.log10_loss=-13".to_owned(),
                    "stop.steps=200000".to_owned(),
                ];
                let run = |kind: &str| {
                    let tasks = others(lab, &format!("{{{kind}={{potential='{text}'}}}}"), &overrides)?;
                    tasks.iter().map(|task| lab.finish(task)).collect::<Result<Vec<_>, _>>()
                };
                let (mut mirror, mut metric) = (run("mirror")?, run("natural-gradient")?);
                match (mirror.pop(), metric.pop()) {
                    (Some(mirror), Some(metric)) => Ok(Some(Steps { resolution, mirror, metric })),
                    _ => Ok(None),
                }
            })
            .filter_map(Result::transpose)
            .collect::<Result<_, ClaimError>>()?;
        let path = Path::of(lab, text)?;
        let [coarse, _, fine] = runs.as_slice() else {
            outcome.push(format!("{text}: runs"), "three", "some are missing", false);
            continue;
        };
        // steps are shorter where the resolution is finer, so that a law linear in η has power 1
        let power = |coarse_value: f64, fine_value: f64| {
            (coarse_value / fine_value).ln() / (coarse.resolution / fine.resolution).ln()
        };
        for (kind, far, near) in [("mirror", &coarse.mirror, &fine.mirror), ("metric", &coarse.metric, &fine.metric)] {
            let drifts = [drift(lab, far, &potential)?, drift(lab, near, &potential)?];
            let name = format!("{text}, {kind} steps");
            outcome.near(
                format!("{name}: power of η in the drift, {:.1e} at its finest", drifts[1]),
                power(drifts[0], drifts[1]),
                1.0,
                0.25,
            );
            let angles = [far, near].map(|end| angle(&end.params, &path.at(-end.log_loss)));
            let words =
                format!("{name}: power of η in the angle to the flow's direction, {:.1e} at its finest", angles[1]);
            outcome.near(words, power(angles[0], angles[1]), 1.0, 0.25);
        }
        let apart = |steps: &Steps| angle(&steps.mirror.params, &steps.metric.params);
        let words = format!("{text}: power of η in the angle between the two, {:.1e} at its finest", apart(fine));
        outcome.near(words, power(apart(coarse), apart(fine)), 1.0, 0.25);
    }
    Ok(outcome)
}
