//! Paper B, "Characterizing Implicit Bias in Terms of Optimization Geometry": where every optimiser of a linear model
//! goes.
//!
//! | file | section of the paper |
//! |---|---|
//! | `nearest` | 2.1–2.4: losses with a finite root, gradient and mirror descent, constraints, quadratic norms |
//! | `momentum` | 2.2, Example 2: momentum in the dual and in the primal |
//! | `natural` | 2.3, Example 3: natural gradient descent |
//! | `steepest` | 2.4, Example 4: steepest descent in ℓ4/3; the steepest step |
//! | `stagewise` | 2.4 and 3: coordinate descent, LASSO path, regularisation path |
//! | `margins` | 3.1, 3.2: steepest descent on separable data, fast methods |
//! | `duality` | 3.2, appendix B: the lemmas behind Theorem 5, checked at every step |
//! | `boosting` | 3.2: coordinate descent as boosting |
//! | `adaptive` | 3.3: AdaGrad, Adam, RMSProp |
//! | `factored` | 4: matrix factorisation, deep linear and diagonal networks |
//! | `support` | 4, appendices C and D: support vectors and growth lemmas |
//! | `scale` | large dense and sparse problems |

mod adaptive;
mod boosting;
mod duality;
mod factored;
mod margins;
mod momentum;
mod natural;
mod nearest;
mod scale;
mod stagewise;
mod steepest;
mod support;

use super::arithmetic::{angle, distance, larger, smaller};
use super::columns::Seen;
use super::judge::{largest_margin, least_margin};
use super::lab::Finished;
use super::{Claim, ClaimError, Columns, Lab, Moments, Series, Sketch, measures};
use limitpoint::data::{Dataset, Targets};
use limitpoint::experiments::Task;
use limitpoint::linalg::Matrix;
use limitpoint::norms::NormSpec;
use limitpoint::params::ParamLayout;
use limitpoint::potentials::PotentialSpec;
use limitpoint::reference::{Interpolation, InterpolationTarget, interpolate};

/// All claims of the paper, in its order.
pub(super) fn claims() -> Vec<Claim> {
    let finite_root =
        [&nearest::CLAIMS[..], &momentum::CLAIMS, &natural::CLAIMS, &steepest::CLAIMS, &stagewise::CLAIMS];
    let separable = [&margins::CLAIMS[..], &duality::CLAIMS, &boosting::CLAIMS, &adaptive::CLAIMS];
    let factorisation = [&factored::CLAIMS[..], &support::CLAIMS, &scale::CLAIMS];
    [&finite_root[..], &separable, &factorisation].concat().concat()
}

/// The tasks of an experiment under settings with semicolons between them, such as `seed=1; stop.steps=100`.
fn tasks(lab: &Lab, experiment: &str, settings: &str) -> Result<Vec<Task>, ClaimError> {
    lab.tasks(experiment, &settings.split("; ").collect::<Vec<_>>())
}

/// The first of them.
fn task(lab: &Lab, experiment: &str, settings: &str) -> Result<Task, ClaimError> {
    Ok(tasks(lab, experiment, settings)?.remove(0))
}

/// The end of the first of them.
fn end(lab: &Lab, experiment: &str, settings: &str) -> Result<Finished, ClaimError> {
    Ok(lab.finish_all(&tasks(lab, experiment, settings)?)?.remove(0))
}

/// The targets of a regression task.
fn values(data: &Dataset) -> &[f64] {
    match &data.targets {
        Targets::Values(values) | Targets::Binary(values) => values,
        Targets::Classes { .. } => &[],
    }
}

/// yₙ⟨w, xₙ⟩ of all examples.
fn margins(data: &Dataset, w: &[f64]) -> Vec<f64> {
    values(data).iter().enumerate().map(|(n, y)| y * data.inputs.row_dot(n, w)).collect()
}

/// The judge's limit point of a run: the solution nearest to its start in the divergence of `potential`.
fn nearest_solution(run: &Finished, potential: PotentialSpec) -> Result<Vec<f64>, ClaimError> {
    let (target, layout) = (InterpolationTarget::Potential(potential), ParamLayout::vector(run.start.len()));
    Ok(interpolate(&*run.data.dense()?, values(&run.data), &target, &layout, Some(&run.start))?.weights)
}

/// The judge's solution with the smallest norm.
fn smallest_solution(data: &Dataset, norm: NormSpec, layout: &ParamLayout) -> Result<Interpolation, ClaimError> {
    Ok(interpolate(&*data.dense()?, values(data), &InterpolationTarget::Norm(norm), layout, None)?)
}

/// The judge's limit on w₁ + 2w₂ = 1 of mirror descent with the entropy from any start with 2 log w₁ − log w₂ =
/// `offset`, which its steps conserve (B Propositions 2a and 3a).
fn limit_of_offset(offset: f64) -> Result<Vec<f64>, ClaimError> {
    let (x, target) = (Matrix::from_rows(&[&[1.0, 2.0]]), InterpolationTarget::Potential(PotentialSpec::Entropy));
    let start = [(offset / 2.0).exp(), 1.0];
    Ok(interpolate(&x, &[1.0], &target, &ParamLayout::vector(2), Some(&start))?.weights)
}

/// An empty figure of the plane of Examples 2 and 3, with their solutions.
fn plane_figure(name: &str, title: &str) -> Sketch {
    let sketch = Sketch::new(name, title, "w₁", "w₂").window([0.35, 1.05], [0.0, 1.05]);
    sketch.reference("solutions w₁ + 2w₂ = 1", vec![[0.0, 0.5], [1.0, 0.0]])
}

/// [`measures::basics`], and the first weights as `w0`, `w1`, ….
fn weights(count: usize) -> Vec<Columns> {
    let weights = Columns::new((0..count).map(|i| format!("w{i}")), move |_| {
        Ok(Box::new(move |seen: &Seen, out: &mut Vec<f64>| out.extend_from_slice(&seen.point.params[..count])))
    });
    vec![measures::basics(), weights]
}

/// The first two weights at every k-th step before one, and at the end, for figures of the plane; and the end.
fn path(lab: &Lab, task: &Task, k: u64, before: f64) -> Result<(Vec<[f64; 2]>, Finished), ClaimError> {
    let run = lab.series(task, Moments::every(k), weights(2))?;
    let end = run.last("step");
    let shown = run.when("step", |step| step < before || step == end);
    Ok((shown.rows(["w0", "w1"]), run.end))
}

/// All weights at some moments, and what [`measures::basics`] measures there.
fn trajectory(lab: &Lab, task: &Task, moments: Moments) -> Result<(Vec<Vec<f64>>, Series), ClaimError> {
    let split = lab.data(task)?;
    let count = lab.objective(task, &split.train)?.layout().len();
    let run = lab.series_on(task, &split, moments, weights(count))?;
    let columns: Vec<&[f64]> = (0..count).map(|i| run.column(&format!("w{i}"))).collect();
    let trail = (0..run.len()).map(|moment| columns.iter().map(|column| column[moment]).collect()).collect();
    Ok((trail, run))
}
