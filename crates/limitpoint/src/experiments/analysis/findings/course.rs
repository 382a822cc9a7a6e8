//! How training went: how far the loss fell, whether the direction settled, what ended in trouble.

use crate::experiments::analysis::finals::{Finals, counted, runs};
use crate::experiments::analysis::words::{count, list, power_of_ten};
use crate::experiments::record::{ExperimentRecord, Finding, Group};

/// log₁₀ of the smallest number a float holds with full precision.
const LOG10_SMALLEST_FLOAT: f64 = -307.65;
/// A direction that turns by less than this many radians between measurements counts as settled.
const SETTLED: f64 = 1e-3;
/// Measurements at the end over which turning is watched; the very last interval is often short.
const LAST_ROWS: usize = 3;

/// How far the loss went.
pub(super) fn loss(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let finals: Vec<(&Group, Finals)> = groups
        .iter()
        .map(|group| (group, Finals::of_column(record, group, "log10_loss")))
        .filter(|(_, finals)| finals.count > 0)
        .collect();
    let lowest = finals.iter().map(|(_, finals)| finals.low).fold(f64::NAN, f64::min);
    if finals.is_empty() {
        return None;
    }
    let items: Vec<String> = finals
        .iter()
        .map(|(group, finals)| {
            let steps = Finals::over(counted(record, group).map(|run| run.steps as f64));
            let mean = if finals.count > 1 { " on average" } else { "" };
            format!("{} to {}{mean} after {:.0} steps", group.label, power_of_ten(finals.mean), steps.mean)
        })
        .collect();
    let mut text = format!("Where the training loss went: {}.", list(&items));
    if lowest < LOG10_SMALLEST_FLOAT {
        text.push_str(
            " A double-precision number cannot be smaller than about 10^−308; losses are kept as logarithms, so they can.",
        );
    }
    let accuracies: Vec<f64> = record.runs.iter().filter_map(|run| run.metrics.last("accuracy")).collect();
    let measured = accuracies.iter().filter(|accuracy| accuracy.is_finite()).count();
    let perfect = accuracies.iter().filter(|accuracy| **accuracy == 1.0).count();
    if measured > 0 {
        text.push_str(&format!(
            " {perfect} of {} classified every training example correctly at the end.",
            count(measured, "run")
        ));
    }
    let title = format!("The loss went to {}", power_of_ten(lowest));
    Some(Finding { title, text, as_expected: None })
}

/// Whether the direction of the weights settled.
pub(super) fn direction(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let turned: Vec<(&str, f64)> = groups
        .iter()
        .map(|group| {
            let turns =
                runs(record, group).flat_map(|run| run.metrics.column("direction_change").iter().rev().take(LAST_ROWS));
            (group.label.as_str(), Finals::over(turns.copied()).high)
        })
        .filter(|(_, turn)| turn.is_finite())
        .collect();
    if turned.is_empty() {
        return None;
    }
    let show = |some: &[&(&str, f64)]| {
        list(&some.iter().map(|(name, turn)| format!("{name} ({turn:.1e})")).collect::<Vec<_>>())
    };
    let (settled, turning): (Vec<_>, Vec<_>) = turned.iter().partition(|(_, turn)| *turn < SETTLED);
    let mut text = format!(
        "Once the data are separated the weights keep growing, and what matters is their direction. The number is the \
         largest angle in radians between neighbours among the last {} measurements, over all seeds; below {SETTLED} we call \
         the direction settled.",
        LAST_ROWS + 1
    );
    if !settled.is_empty() {
        text.push_str(&format!(" Settled by this measure: {}.", show(&settled)));
    }
    if !turning.is_empty() {
        text.push_str(&format!(
            " Still turning: {}; final values of these may still change with more training.",
            show(&turning)
        ));
    }
    let endless: Vec<String> = groups
        .iter()
        .filter_map(|group| {
            let course = runs(record, group).find_map(|run| run.metrics.direction_course().filter(|c| c.wanders()))?;
            Some(format!("{}: the path is {course}", group.label))
        })
        .collect();
    if !endless.is_empty() {
        text.push_str(&format!(
            " No limit direction is in sight where the path does not get shorter from one doubling of the logarithm of the \
             norm to the next, however little it turns between measurements. {}.",
            endless.join("; ")
        ));
    }
    let title = match (settled.is_empty(), turning.is_empty()) {
        _ if !endless.is_empty() => "No limit direction",
        (false, true) => "The direction settled",
        (true, false) => "The direction was still turning",
        _ => "Some directions settled, others were still turning",
    };
    Some(Finding { title: title.to_owned(), text, as_expected: None })
}

/// Runs that ended in trouble, with their reasons.
pub(super) fn trouble(record: &ExperimentRecord) -> Option<Finding> {
    let troubled: Vec<String> = record
        .runs
        .iter()
        .filter(|run| run.failed)
        .map(|run| {
            let settings: String = run.point.iter().map(|(name, value)| format!(", {name}={value}")).collect();
            let reason = if run.stop.is_empty() { "no reason was recorded" } else { run.stop.trim_end_matches('.') };
            format!(
                "{} (seed {}{settings}) after {}: {reason}",
                run.optimiser,
                run.seed,
                count(run.steps as usize, "step")
            )
        })
        .collect();
    if troubled.is_empty() {
        return None;
    }
    let title = format!("{} of {} ended in trouble", troubled.len(), count(record.runs.len(), "run"));
    let text = format!(
        "These runs did not end by a rule of the recipe; take their numbers, and means that include them, with care: {}.",
        troubled.join("; ")
    );
    Some(Finding { title, text, as_expected: None })
}
