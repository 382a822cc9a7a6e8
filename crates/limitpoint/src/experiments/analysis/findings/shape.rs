//! What the trained weights look like and how they do on new examples.

use crate::experiments::analysis::finals::{Finals, counted, geometry, keys, runs};
use crate::experiments::analysis::words::{count, list, percent};
use crate::experiments::record::{ExperimentRecord, Finding, Group};

/// Which optimiser left most weights small, block by block.
pub(super) fn sparsity(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let mut winners: Vec<&str> = Vec::new();
    let mut sentences = Vec::new();
    for block in keys(record, "small_fraction.") {
        let mut shares: Vec<(&str, f64)> = groups
            .iter()
            .map(|g| (g.label.as_str(), Finals::of_column(record, g, &format!("small_fraction.{block}")).mean))
            .filter(|(_, share)| share.is_finite())
            .collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        let Some((first, most)) = shares.first().copied() else { continue };
        if most == 0.0 {
            sentences.push(format!("In {block} no optimiser left such a weight."));
            continue;
        }
        let items: Vec<String> = shares.iter().map(|(name, share)| format!("{name} {}", percent(*share))).collect();
        sentences.push(format!("In {block}: {}.", list(&items)));
        let shared = shares.get(1).is_some_and(|(_, share)| *share == most);
        if !shared && !winners.contains(&first) {
            winners.push(first);
        }
    }
    if sentences.is_empty() {
        return None;
    }
    let title = match winners[..] {
        [only] if groups.len() > 1 => format!("Sparsest weights: {only}"),
        _ => "How many weights are small".to_owned(),
    };
    let text = format!(
        "A weight is small here if its absolute value is below one hundredth of the largest of its block. Shares of small \
         weights at the end: {}",
        sentences.join(" ")
    );
    Some(Finding { title, text, as_expected: None })
}

/// How far the balance between layers drifted.
pub(super) fn balance(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let mut sentences = Vec::new();
    for key in keys(record, "balance_drift.") {
        let column = format!("balance_drift.{key}");
        let items: Vec<String> = groups
            .iter()
            .filter_map(|group| {
                let drifts = runs(record, group).flat_map(|run| run.metrics.column(&column).iter().copied());
                let largest = Finals::over(drifts).high;
                let own = if geometry(record, group) == Some(key.as_str()) { ", its own geometry" } else { "" };
                largest.is_finite().then(|| format!("{} {largest:.1e}{own}", group.label))
            })
            .collect();
        if !items.is_empty() {
            sentences.push(format!("Measured by {key}: {}.", list(&items)));
        }
    }
    if sentences.is_empty() {
        return None;
    }
    let text = format!(
        "In continuous time, training in a mirror geometry keeps the differences in size between layers, measured in that \
         geometry, as they were at the start; steps of finite size keep them approximately. The number is the largest \
         change of a difference over the run, relative to the largest size at that time. {}",
        sentences.join(" ")
    );
    Some(Finding { title: "Balance between layers".to_owned(), text, as_expected: None })
}

/// How optimisers differ on the test examples.
pub(super) fn test_accuracy(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let mut finals: Vec<(&str, Finals)> = groups
        .iter()
        .map(|g| (g.label.as_str(), Finals::over(counted(record, g).filter_map(|run| run.test_accuracy))))
        .filter(|(_, finals)| finals.count > 0)
        .collect();
    finals.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
    let items: Vec<String> = finals.iter().map(|(name, finals)| format!("{name} {}", percent(finals.mean))).collect();
    let [(best, first), .., (worst, last)] = &finals[..] else {
        let ([only], [(name, _)]) = (&items[..], &finals[..]) else { return None };
        let text = format!("Share of test examples classified correctly at the end: {only}.");
        return Some(Finding { title: format!("Test accuracy of {name}"), text, as_expected: None });
    };
    let difference = first.mean - last.mean;
    let mut text = format!("Share of test examples classified correctly at the end: {}.", list(&items));
    let title = if difference == 0.0 {
        text.push_str(" All are equal.");
        "Test accuracy: no difference".to_owned()
    } else {
        text.push_str(&format!(" {best} and {worst} are {:.2} percentage points apart", 100.0 * difference));
        if record.data.test_examples > 0 {
            text.push_str(&format!(
                ", about {} of {}",
                count((difference * record.data.test_examples as f64).round() as usize, "example"),
                record.data.test_examples
            ));
        }
        text.push('.');
        if first.count > 1 && last.count > 1 {
            let overlap = last.high >= first.low;
            let verb = if overlap { "overlap" } else { "do not overlap" };
            text.push_str(&format!(" Their ranges over the seeds {verb}."));
        }
        format!("Best on test examples: {best}")
    };
    Some(Finding { title, text, as_expected: None })
}
