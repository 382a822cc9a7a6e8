//! Paper A, "Flavors of Margin": steepest descent, Adam and Shampoo in homogeneous networks; here the flows that its
//! theorems are tried on.
//!
//! | file | section of the paper |
//! |---|---|
//! | `soft_margins` | 3.1, A.2, A.5: the soft margin never falls after separation |
//! | `growth` | 2, A.1–A.2: identities of the flow, how fast the loss falls and the direction turns |
//! | `stationarity` | 3.2, A.3–A.4: KKT points, alignment, limit directions |
//! | `proximity` | B: Bregman proximity |
//! | `students` | the runs of 4.1 |
//! | `teacher` | 4.1: teacher and student |
//! | `images` | data and measurements of 4.2 and 4.3 |
//! | `adam_runs` | the runs of 4.2 |
//! | `updates` | C.1 and C.2: the update rules |
//! | `adam` | 4.2: Adam is sign descent first and gradient descent later |
//! | `shampoo` | 4.3: Shampoo, Muon and the spectral margin |

mod adam;
mod adam_runs;
mod growth;
mod images;
mod proximity;
mod shampoo;
mod soft_margins;
mod stationarity;
mod students;
mod teacher;
mod updates;

use std::sync::Arc;

use super::{Claim, ClaimError, Lab, Series, steepest};
use limitpoint::experiments::Task;

/// All claims of the paper, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let theorems = [&soft_margins::CLAIMS[..], &growth::CLAIMS, &stationarity::CLAIMS, &proximity::CLAIMS];
    let experiments = [&teacher::CLAIMS[..], &adam::CLAIMS, &shampoo::CLAIMS];
    [&theorems[..], &experiments].concat().concat()
}

/// A formula that is tried on the flows.
const ON_FLOWS: Claim = Claim { experiments: &["a-flows"], ..Claim::FORMULA };

/// The tasks of an experiment under settings with semicolons between them, such as `seed=1; stop.steps=100`.
fn tasks(lab: &Lab, experiment: &str, settings: &str) -> Result<Vec<Task>, ClaimError> {
    lab.tasks(experiment, &settings.split("; ").collect::<Vec<_>>())
}

/// A task under the name of its optimiser and its seed.
fn named(task: Task) -> (String, Task) {
    (format!("{}, seed {}", task.label.optimiser, task.label.seed), task)
}

/// The flows all claims share: every norm, two and three layers, exponential, logistic and cross-entropy loss.
fn flows(lab: &Lab) -> Result<Arc<Vec<Series>>, ClaimError> {
    lab.once("steepest flows", || {
        let seeds = |quick: u64, full: u64| format!("seeds=0..{}", lab.choose(quick, full) - 1);
        let (many, few) = (seeds(2, 10), seeds(1, 3));
        let deep = format!("{few}; model.widths=[10, 10]; initialiser=normal(deviation=0.35); data.count=10");
        let logistic = "loss=logistic; stop.log10_loss=-5";
        let mut all = Vec::new();
        for (name, experiment, settings) in [
            ("two layers, exponential", "a-flows", &many),
            ("three layers, exponential", "a-flows", &format!("{deep}; stop.log10_loss=-6")),
            ("two layers, logistic", "a-flows", &format!("{few}; {logistic}")),
            ("three layers, logistic", "a-flows", &format!("{deep}; {logistic}")),
            ("two layers, cross-entropy", "a-flows-classes", &few),
            ("three layers, cross-entropy", "a-flows-classes", &deep),
        ] {
            let tasks = tasks(lab, experiment, settings)?.into_iter().map(named);
            all.extend(tasks.map(|(run, task)| (format!("{name}, {run}"), task)));
        }
        steepest::flows(lab, all)
    })
}

/// Those that a theorem about the exponential loss speaks of.
fn exponential(flows: &[Series]) -> impl Iterator<Item = &Series> + Clone {
    flows.iter().filter(|flow| flow.what.contains("exponential"))
}

/// The values of a column of all flows, one after the other.
fn all<'a>(flows: impl Iterator<Item = &'a Series>, name: &str) -> impl Iterator<Item = f64> {
    flows.flat_map(move |flow| flow.column(name).to_vec())
}
