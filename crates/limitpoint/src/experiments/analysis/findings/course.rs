//! How training went: how far the loss fell, whether the direction settled, what ended in trouble.

use super::{NAMED, table};
use crate::experiments::analysis::failures::kinds;
use crate::experiments::analysis::finals::{Finals, counted};
use crate::experiments::analysis::words::{count, list, power_of_ten};
use crate::experiments::{ExperimentRecord, Finding, Group};

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
    let highest = finals.iter().map(|(_, finals)| finals.high).fold(f64::NAN, f64::max);
    if finals.is_empty() {
        return None;
    }
    let mut text = if highest - lowest < 0.1 {
        String::new()
    } else {
        format!("Between {} and {}. ", power_of_ten(lowest), power_of_ten(highest))
    };
    let accuracies: Vec<f64> = record.runs.iter().filter_map(|run| run.metrics.last("accuracy")).collect();
    let measured = accuracies.iter().filter(|accuracy| accuracy.is_finite()).count();
    let perfect = accuracies.iter().filter(|accuracy| **accuracy == 1.0).count();
    if measured > 0 {
        text += &format!("{perfect} of {} classified every training example correctly.", count(measured, "run"));
    }
    let explanation = if lowest < LOG10_SMALLEST_FLOAT {
        "A double-precision number cannot be smaller than about 10^−308; losses are kept as logarithms, so they can."
    } else {
        ""
    };
    let rows = finals.iter().map(|(group, finals)| {
        let steps = Finals::over(counted(record, group).map(|run| run.steps as f64));
        [group.label.clone(), power_of_ten(finals.mean), format!("{:.0}", steps.mean)]
    });
    let table = table(["optimiser", "loss at the end", "steps"], rows);
    let title = format!("The loss went to {}", power_of_ten(lowest));
    Some(Finding {
        title,
        text: text.trim_end().to_owned(),
        as_expected: None,
        in_part: false,
        explanation: explanation.to_owned(),
        table,
    })
}

/// Whether the direction of the weights settled.
pub(super) fn direction(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let turned: Vec<(&Group, f64)> = groups
        .iter()
        .map(|group| {
            let turns = counted(record, group)
                .flat_map(|run| run.metrics.column("direction_change").iter().rev().take(LAST_ROWS));
            (group, Finals::over(turns.copied()).high)
        })
        .filter(|(_, turn)| turn.is_finite())
        .collect();
    if turned.is_empty() {
        return None;
    }
    let endless: Vec<(&str, String)> = groups
        .iter()
        .filter_map(|group| {
            let course =
                counted(record, group).find_map(|run| run.metrics.direction_course().filter(|c| c.wanders()))?;
            Some((group.label.as_str(), format!("{course}")))
        })
        .collect();
    let name = |some: &[&(&Group, f64)]| list(&some.iter().map(|(g, _)| g.label.clone()).collect::<Vec<_>>(), NAMED);
    let (settled, turning): (Vec<_>, Vec<_>) = turned.iter().partition(|(_, turn)| *turn < SETTLED);
    let mut text = match (settled.is_empty(), turning.is_empty()) {
        (false, true) => format!("Less than {SETTLED} radians between the last measurements, for all."),
        _ => format!("Still turning: {}; their final values may change with more training.", name(&turning)),
    };
    if let Some((label, course)) = endless.first() {
        text = format!("{label}: the path is {course}.");
    }
    let title = match (settled.is_empty(), turning.is_empty()) {
        _ if !endless.is_empty() => "No limit direction",
        (false, true) => "The direction settled",
        (true, false) => "The direction was still turning",
        _ => "Some directions settled, others were still turning",
    };
    let mut explanation = format!(
        "Once the data are separated the weights keep growing, and what matters is their direction. The number is the \
         largest angle in radians between neighbours among the last {} measurements, over all seeds; below {SETTLED} we call \
         the direction settled.",
        LAST_ROWS + 1
    );
    if !endless.is_empty() {
        explanation += " No limit direction is in sight where the path does not get shorter from one doubling of the logarithm \
                        of the norm to the next, however little it turns between measurements.";
    }
    let rows = turned.iter().map(|(group, turn)| {
        let course = endless.iter().find(|(label, _)| *label == group.label).map_or("", |(_, course)| course);
        [group.label.clone(), format!("{turn:.1e}"), course.to_owned()]
    });
    let table = table(["optimiser", "last turn in radians", "path"], rows);
    Some(Finding { title: title.to_owned(), text, as_expected: None, in_part: false, explanation, table })
}

/// Runs that ended in trouble, with their reasons.
pub(super) fn trouble(record: &ExperimentRecord) -> Option<Finding> {
    let failures = kinds(record);
    let first = failures.first()?;
    let troubled: usize = failures.iter().map(|failure| failure.runs).sum();
    let title = format!("{troubled} of {} ended in trouble", count(record.runs.len(), "run"));
    let more = if failures.len() > 1 { " And others, for other reasons." } else { "" };
    let text = format!("{} ({}): {}.{more}", first.optimiser, first.which, first.reason.trim_end_matches('.'));
    let rows = failures.iter().map(|failure| {
        let runs = format!("{} of {}", failure.runs, failure.of);
        [failure.optimiser.clone(), runs, failure.which.clone(), failure.reason.clone()]
    });
    let table = table(["optimiser", "runs", "which", "why"], rows);
    let explanation = "These runs did not end by a rule of the recipe; no mean counts them.".to_owned();
    Some(Finding { title, text, as_expected: None, in_part: false, explanation, table })
}
