//! Whether the loss fell faster than optimisers with a memory forget.

use std::f64::consts::LN_10;

use super::{NAMED, table};
use crate::experiments::analysis::finals::{Finals, counted};
use crate::experiments::analysis::words::list;
use crate::experiments::{ExperimentRecord, Finding, Group, RunRecord};

/// One finding over all groups whose loss fell by more in a step than their memory of gradients can follow.
pub(super) fn outrun(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let fast: Vec<(&Group, f64, f64)> = groups
        .iter()
        .filter_map(|group| {
            let forgets = counted(record, group).find_map(|run| run.forgets)?;
            let fell = Finals::over(counted(record, group).map(fall)).mean;
            (fell > forgets).then_some((group, fell, forgets))
        })
        .collect();
    let (_, fell, forgets) = fast.first()?;
    let mut names: Vec<String> = Vec::new();
    for (group, ..) in &fast {
        if !names.contains(&group.optimiser) {
            names.push(group.optimiser.clone());
        }
    }
    let title = format!("Faster than the memory of {}", list(&names, NAMED));
    let text = if *forgets > 0.0 {
        format!(
            "ln L fell by {fell:.1e} a step, the memory of gradients follows up to {forgets:.1e}: the margin may stay behind. \
             schedule=flow-resolved(memory=0.5) keeps step."
        )
    } else {
        format!(
            "ln L fell by {fell:.1e} a step, and earlier gradients are never forgotten: the margin may stay behind."
        )
    };
    let explanation = "Averages of gradients that shrink by e^−δ a step follow them while δ is below −ln β, roots of \
                       averaged squares while it is below −½ ln β. Beyond that they are ruled by gradients of long ago, \
                       and steps are not those the geometry asks for."
        .to_owned();
    let rows = fast.iter().map(|(g, fell, forgets)| [g.label.clone(), format!("{fell:.2e}"), format!("{forgets:.2e}")]);
    let table = table(["optimiser", "fall of ln L a step", "what it can follow"], rows);
    Some(Finding { title, text, as_expected: None, in_part: false, explanation, table })
}

/// The mean fall of ln L in a step over the second half of a run's rows.
fn fall(run: &RunRecord) -> f64 {
    let (steps, losses) = (run.metrics.column("step"), run.metrics.column("log10_loss"));
    let middle = steps.len() / 2;
    let ends = |values: &[f64]| Some((*values.get(middle)?, *values.last()?));
    let (Some((from, to)), Some((before, after))) = (ends(steps), ends(losses)) else { return f64::NAN };
    LN_10 * (before - after) / (to - from)
}
