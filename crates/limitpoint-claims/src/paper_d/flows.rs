//! The gradient flows that the theorems are tried on: four losses, two and three layers.

use std::sync::Arc;

use crate::{ClaimError, Lab, Outcome, Series, steepest};
use limitpoint::losses::Loss;

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

/// The loss of a flow.
pub(super) fn loss_of(flow: &Series) -> Result<Box<dyn Loss>, ClaimError> {
    Ok(flow.end.task.recipe.loss.build()?)
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
    let loss = loss_of(flow)?;
    let Some(tail) = loss.tail() else { return Ok(Vec::new()) };
    Ok(flow.map(["outward", "u", "soft"], |[outward, u, soft]| outward * tail.g_prime(u) / (flow.degree * soft)))
}
