//! Beyond the paper: what its last section leaves open about potentials of degree below 2 and about finite steps.

use super::balance::{drift, others};
use super::limits::long_runs;
use crate::arithmetic::angle;
use crate::measures;
use crate::{Claim, ClaimError, Columns, Finished, Lab, Moments, Outcome, Series, Sketch};
use limitpoint::potentials::PotentialSpec;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "X.17",
        statement: "Measured: mirror flow with potentials of degree between 1 and 2, and with half squared ℓp norms, \
                    tends to KKT points of its horizon's margin problem too, beyond the α ≥ 2 that the paper proves",
        experiments: &["c-flows"],
        try_out: open_degrees,
        ..Claim::FINDING
    },
    Claim {
        id: "X.18",
        statement: "Measured: exact mirror steps and metric steps θ − η∇²R(θ)⁻¹∇L leave the balance law in proportion \
                    to the step, and their late directions come together in proportion to the step as well",
        experiments: &["c-flows"],
        try_out: discretisations,
        ..Claim::FINDING
    },
];

fn open_degrees(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let potentials = ["power-smoothed:1.5,0.1", "power-smoothed:1.5,0", "power-smoothed:1.2,0.01", "squared-lp:1.5"];
    let overrides =
        ["initialiser=normal(deviation=0.3)", lab.choose("stop.log10_loss=-4343", "stop.log10_loss=-43430")];
    let title = "Fenchel–Young gap in the horizon of potentials of degree below 2, least so far";
    let mut sketch = Sketch::new("x-open-degrees", title, "ln 1/L", "1 − β").logarithmic(true, true);
    for (long, alpha) in long_runs(lab, &potentials, &overrides)?.iter().zip([1.5, 1.5, 1.2, 2.0]) {
        let (run, end, mut own) = (&long.run, long.depth(), Outcome::default());
        let (early, late) = (long.least_gap(end.sqrt()), long.least_gap(end));
        own.at_most(format!("Fenchel–Young gap, least up to ln 1/L = {end:.0}"), late, 0.2);
        // what is left of the start in the dual direction is 1/‖∇R‖ ~ ‖θ‖^{1−α}, and the gap is quadratic in it
        let law = -2.0 * (alpha - 1.0) / run.degree;
        let power = (late / early).ln() / end.sqrt().ln();
        let what = format!("power of ln 1/L at which it falls from {:.0} on, at most −2(α−1)/L", end.sqrt());
        own.at_most(what, power, law);
        long.taus(&mut own, "τ of the judge, once a decade", "falls", |taus| {
            taus.len() > 2 && taus.windows(2).all(|pair| pair[1] < pair[0])
        });
        outcome.say_of(&run.what, own);
        sketch = sketch.curve(run.what.trim_end_matches(", seed 0"), long.curve());
    }
    outcome.sketch(sketch);
    Ok(outcome)
}

/// The weights of a flow, w0, w1, …, and u = ln 1/L.
fn path(lab: &Lab, potential: &str, length: usize) -> Result<Series, ClaimError> {
    let flow = format!("flows.long={{mirror={{potential='{potential}'}}}}");
    let task = lab.tasks_of("c-flows", &[flow, "stop.log10_loss=-14".to_owned()], &["long"])?.remove(0);
    let weights =
        Columns::new((0..length).map(|k| format!("w{k}")), |_| Ok(Box::new(|seen, out| out.extend(seen.point.params))));
    lab.series(&task, Moments::every(1).below(0.0), vec![measures::basics(), weights])
}

/// Where it passes at u, between two steps linearly.
fn at(path: &Series, u: f64) -> Vec<f64> {
    let known = path.column("u");
    let index = known.partition_point(|known| *known <= u).min(known.len() - 1).max(1);
    let s = (u - known[index - 1]) / (known[index] - known[index - 1]);
    let weight = |k: usize| {
        let column = path.column(&format!("w{k}"));
        (1.0 - s) * column[index - 1] + s * column[index]
    };
    (0..path.parameters).map(weight).collect()
}

fn discretisations(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let resolutions = [0.2f64, 0.05];
    // steps are shorter where the resolution is finer, so that a law linear in η has power 1
    let power = |[coarse, fine]: [f64; 2]| (coarse / fine).ln() / (resolutions[0] / resolutions[1]).ln();
    for text in ["hyperbolic:0.1", "smoothed:3,1"] {
        let potential: PotentialSpec = text.parse()?;
        let run = |kind: &str, resolution: f64| {
            let schedule = format!("schedule=flow-resolved(resolution={resolution})");
            let overrides = [&schedule, "stop.log10_loss=-13", "stop.steps=200000"];
            lab.finish(&others(lab, &format!("{{{kind}={{potential='{text}'}}}}"), &overrides)?[0])
        };
        let ends = |kind: &str| -> Result<[Finished; 2], ClaimError> {
            Ok([run(kind, resolutions[0])?, run(kind, resolutions[1])?])
        };
        let mut proportional = |what: &str, found: [f64; 2]| {
            let what = format!("{text}{what}, {:.1e} at its finest", found[1]);
            outcome.near(what, power(found), 1.0, 0.25);
        };
        let (mirror, metric) = (ends("mirror")?, ends("natural-gradient")?);
        let path = path(lab, text, mirror[0].params.len())?;
        for (kind, ends) in [("mirror", &mirror), ("metric", &metric)] {
            let drifts = [drift(lab, &ends[0], &potential)?, drift(lab, &ends[1], &potential)?];
            proportional(&format!(", {kind} steps: power of η in the drift"), drifts);
            let angles = [0, 1].map(|k| angle(&ends[k].params, &at(&path, -ends[k].log_loss)));
            proportional(&format!(", {kind} steps: power of η in the angle to the flow's direction"), angles);
        }
        let apart = [0, 1].map(|k| angle(&mirror[k].params, &metric[k].params));
        proportional(": power of η in the angle between the two", apart);
    }
    Ok(outcome)
}
