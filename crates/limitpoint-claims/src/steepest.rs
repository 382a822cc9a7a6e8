//! Steepest flows after separation: the columns that the theorems of papers A and D speak of.
//!
//! | column | what it is; norms are the algorithm's own, g = ∇ ln L |
//! |---|---|
//! | `step`, `log_time`, `u`, `smallest`, `soft` | [`measures::basics`] |
//! | `size`, `outward`, `growth`, `length`, `turn` | ‖θ‖, ⟨θ, −g⟩, the bound of Theorem 3.1, the step that led here |
//! | `alignment`, `gap`, `slack`, `objective` | [`measures::kkt`] |
//! | `soft_margin`, `misaligned` | g(u)/‖θ‖^L and 1 − β |
//! | `size.l1`, `size.l2`, `size.linf` | ‖θ‖ in three norms |
//! | `uneven` | the largest relative difference between the layers' ‖ΔWₗ‖; NaN where the norm is not a maximum over layers |
//! | `residual`, `loose_residual`, `divergence`, `proximity_alignment` | at every twentieth step: Euclidean residuals with ties within 0 and 0.1, both sides of A Proposition B.6 |

use limitpoint::certificates::bregman_proximity;
use limitpoint::experiments::Task;
use limitpoint::norms::{BlockNorm, Norm, NormSpec};
use limitpoint::params::{ParamLayout, assign};

use crate::measures::{self, own_norm};
use crate::{ClaimError, Columns, Lab, Moments, Outcome, Series};

/// How often the rare measures are taken.
const RARELY: u64 = 20;

/// All of the columns.
pub(crate) fn columns(task: &Task) -> Vec<Columns> {
    let own = || own_norm(task);
    let norms = [("size.l1", NormSpec::L1), ("size.l2", NormSpec::L2), ("size.linf", NormSpec::Linf)];
    let mut columns = vec![
        measures::basics(),
        measures::size(own()),
        measures::outward(),
        measures::kkt(own()),
        measures::growth(own()),
        measures::steps(own()),
        unevenness(own()),
        measures::residual(own(), 0.0).rarely(RARELY),
        measures::residual(own(), 0.1).named(["loose_residual"]).rarely(RARELY),
        proximity(own()).rarely(RARELY),
    ];
    columns.extend(norms.map(|(name, norm)| measures::size(norm).named([name])));
    columns
}

/// Series of several named tasks with all of the columns, at every step after separation.
pub(crate) fn flows(lab: &Lab, tasks: Vec<(String, Task)>) -> Result<Vec<Series>, ClaimError> {
    let found = lab.all_series(tasks, Moments::every(1).separated(), columns)?;
    let derived = |series: Series| {
        let degree = series.degree;
        let series = series.with("soft_margin", ["soft", "size"], |[soft, size]| soft / size.powf(degree));
        series.with("misaligned", ["gap", "objective"], |[gap, objective]| gap / objective)
    };
    Ok(found.into_iter().map(derived).collect())
}

/// The flows that separate their data; the others, of which no theorem speaks, are left out.
pub(crate) fn separated<'a>(flows: impl IntoIterator<Item = &'a Series>, outcome: &mut Outcome) -> Vec<&'a Series> {
    let (never, chosen): (Vec<&Series>, Vec<&Series>) = flows.into_iter().partition(|flow| flow.is_empty());
    for flow in never {
        outcome.leave_out(&*flow.what, format!("never separates its data, stays at ln L = {:.2}", flow.end.log_loss));
    }
    chosen
}

/// `divergence`, `proximity_alignment`: D and β of A Proposition B.6.
fn proximity(norm: NormSpec) -> Columns {
    Columns::new(["divergence", "proximity_alignment"], move |bound| {
        let mut norm = norm.build(bound.layout)?;
        Ok(Box::new(move |seen, out| {
            let found = bregman_proximity(seen.point, &mut *norm, None);
            out.extend([found.divergence, found.alignment]);
        }))
    })
}

/// `uneven`: (largest − smallest)/largest of the layers' lengths of the step that led here.
pub(crate) fn unevenness(spec: NormSpec) -> Columns {
    let columns = Columns::new(["uneven"], move |bound| {
        let mut layers = layer_norms(&spec, bound.layout)?;
        Ok(Box::new(move |seen, out| {
            let step: Vec<f64> = seen.point.params.iter().zip(seen.before).map(|(now, then)| now - then).collect();
            out.push(if step.is_empty() { f64::NAN } else { difference(&step, &mut layers) });
        }))
    });
    columns.with_before()
}

/// A layer's place, norm and weight.
type Layer = (std::ops::Range<usize>, Box<dyn Norm>, f64);

/// The layers with their own norms, where the norm is a maximum over layers.
fn layer_norms(spec: &NormSpec, layout: &ParamLayout) -> Result<Vec<Layer>, ClaimError> {
    let everywhere = [BlockNorm::new("*", NormSpec::Spectral)];
    let entries = match spec {
        NormSpec::Spectral => &everywhere,
        NormSpec::Max { blocks } => &blocks[..],
        _ => return Ok(Vec::new()),
    };
    let mut layers = Vec::new();
    for (block, entry) in assign(layout, entries, |entry| &entry.block)? {
        let alone = ParamLayout::of([block.clone()])?;
        layers.push((block.range(), entry.norm.build(&alone)?, entry.weight));
    }
    Ok(layers)
}

/// (largest − smallest)/largest of the layers' lengths.
fn difference(step: &[f64], layers: &mut [Layer]) -> f64 {
    let lengths: Vec<f64> =
        layers.iter_mut().map(|(range, norm, weight)| *weight * norm.value(&step[range.clone()])).collect();
    let (low, high) = lengths.iter().fold((f64::INFINITY, 0.0), |(low, high), x| (x.min(low), x.max(high)));
    if lengths.len() < 2 { f64::NAN } else { (high - low) / high }
}
