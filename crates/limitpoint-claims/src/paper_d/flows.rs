//! The gradient flows that the theorems are tried on: four losses, two and three layers.

use std::sync::Arc;

use crate::{Check, Claim, ClaimError, Finished, Lab, Outcome, Series, steepest};

/// A formula that is tried on gradient flows.
pub(super) const ON_FLOWS: Claim = Claim { experiments: &["d-flows"], ..Claim::FORMULA };

/// The losses of Remarks A.1 and A.2 and the two that Assumption (B3) adds, as the command line writes them.
pub(super) const LOSSES: [&str; 4] = ["exponential", "logistic", "power-exponential(k=3)", "power-logistic(k=3)"];

/// One flow for every loss, depth and seed.
pub(super) fn flows(lab: &Lab) -> Result<Arc<Vec<Series>>, ClaimError> {
    lab.once("gradient flows with four losses", || {
        let mut tasks = Vec::new();
        for loss in LOSSES {
            for (name, widths, seeds) in [("two layers", "[8]", [2, 5]), ("three layers", "[6, 6]", [1, 3])] {
                let mut overrides = vec![format!("loss={loss}"), format!("model.widths={widths}")];
                overrides.push(format!("seeds=0..{}", lab.choose(seeds[0], seeds[1]) - 1));
                if loss.starts_with("power") {
                    // margins go like the cube root of ln 1/L
                    overrides.push("stop.log10_loss=-4343".to_owned());
                }
                if name == "three layers" {
                    overrides.push("data.count=8".to_owned());
                }
                for task in lab.tasks("d-flows", &overrides)? {
                    tasks.push((format!("{name}, {loss}, seed {}", task.label.seed), task));
                }
            }
        }
        steepest::flows(lab, tasks)
    })
}

/// Flows with exponential loss that go to 10^−10,000.
pub(super) fn long_flows(lab: &Lab) -> Result<Arc<Vec<Series>>, ClaimError> {
    lab.once("long gradient flows", || {
        let (linear, far) = ("data=gaussians(count=12, dimension=5, margin=0.5)", "stop.log10_loss=-10000");
        let sets = [
            ("linear", vec!["model=linear", linear, far]),
            ("two layers, squared ReLU", vec![far]),
            ("two layers, identity", vec!["model.widths=[4]", "model.activation=identity", linear, far]),
        ];
        let mut tasks = Vec::new();
        for (name, overrides) in sets {
            tasks.extend(lab.tasks("d-flows", &overrides)?.into_iter().map(|task| (name.to_owned(), task)));
        }
        steepest::flows(lab, tasks)
    })
}

/// The flows that get to their loss; the others are left out.
pub(super) fn complete<'a>(flows: &'a [Series], outcome: &mut Outcome) -> Vec<&'a Series> {
    for flow in flows.iter().filter(|flow| !flow.complete()) {
        outcome.leave_out(&*flow.what, format!("stays at ln L = {:.2}", flow.end.log_loss));
    }
    flows.iter().filter(|flow| flow.complete()).collect()
}

/// Adds comparisons and remarks about one thing, with its name before theirs.
pub(super) fn join(outcome: &mut Outcome, what: &str, part: Outcome) {
    let named = |words: String| format!("{what}: {words}");
    outcome.checks.extend(part.checks.into_iter().map(|check| Check { what: named(check.what), ..check }));
    outcome.notes.extend(part.notes.into_iter().map(named));
    outcome.dropped.extend(part.dropped);
}

/// What is said of every flow that gets to its loss.
pub(super) fn each_flow(
    lab: &Lab,
    compare: impl Fn(&Series) -> Result<Outcome, ClaimError>,
) -> Result<Outcome, ClaimError> {
    let (mut outcome, flows) = (Outcome::default(), flows(lab)?);
    for flow in complete(&flows, &mut outcome) {
        join(&mut outcome, &flow.what, compare(flow)?);
    }
    Ok(outcome)
}

/// The flow of the experiment down to each of these log₁₀ L.
pub(super) fn down_to(lab: &Lab, levels: [f64; 3]) -> Result<Vec<Finished>, ClaimError> {
    let mut tasks = Vec::new();
    for level in levels {
        tasks.extend(lab.tasks("d-flows", &[format!("stop.log10_loss={level}"), "stop.steps=1000000".to_owned()])?);
    }
    lab.finish_all(&tasks)
}

/// A number falls from each of these log₁₀ L to the next.
pub(super) fn falls(outcome: &mut Outcome, what: impl Into<String>, seen: &[f64], levels: [f64; 3]) {
    let words: Vec<String> = seen.iter().zip(levels).map(|(x, level)| format!("{x:.1e} at L = 1e{level}")).collect();
    let falling = seen.windows(2).all(|pair| pair[1] < pair[0]);
    outcome.push(what, "falls", words.join(", "), falling);
}

/// By how much ln γ̃ gains more in each step than Lemma 5.1 promises, L turn²/gain of ln ρ. By Cauchy and Schwarz the
/// inequality of rates gives (∫‖dθ̂‖)²/∫d ln ρ over a step, and a chord is no longer than its arc: no error of the step
/// enters.
pub(super) fn spare_gain(flow: &Series) -> Vec<f64> {
    flow.pairs(["soft_margin", "turn", "size"], |old, [margin, turn, size]| {
        (margin / old[0]).ln() - flow.degree * turn.powi(2) / (size / old[2]).ln()
    })
}

/// ν g′/(g L) at every moment, which Lemma B.5 says is at least 1.
pub(super) fn outward_share(flow: &Series) -> Result<Vec<f64>, ClaimError> {
    let loss = flow.end.task.recipe.loss.build()?;
    let Some(tail) = loss.tail() else { return Ok(Vec::new()) };
    Ok(flow.map(["outward", "u", "soft"], |[outward, u, soft]| outward * tail.g_prime(u) / (flow.degree * soft)))
}

/// γ̃/γ̃(t₀) over ln 1/L, at every fifth moment.
pub(super) fn since_separation(flow: &Series) -> Vec<[f64; 2]> {
    let start = flow.first("soft_margin");
    flow.curve("u", "soft_margin", 5).into_iter().map(|[u, margin]| [u, margin / start]).collect()
}
