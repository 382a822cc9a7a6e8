//! What the trained weights look like and how they do on new examples.

use super::{NAMED, table};
use crate::experiments::analysis::finals::{Finals, counted, geometry, keys};
use crate::experiments::analysis::words::{count, list, percent, share};
use crate::experiments::{ExperimentRecord, Finding, Group, Table};

/// Which optimiser left most weights small, block by block.
pub(super) fn sparsity(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let blocks = keys(record, "small_fraction.");
    let shares: Vec<(&Group, Vec<f64>)> = groups
        .iter()
        .map(|group| {
            let of = |block| Finals::of_column(record, group, &format!("small_fraction.{block}")).mean;
            (group, blocks.iter().map(of).collect::<Vec<f64>>())
        })
        .filter(|(_, shares)| shares.iter().any(|share| share.is_finite()))
        .collect();
    if shares.is_empty() {
        return None;
    }
    let mut winners: Vec<&str> = Vec::new();
    let mut words = Vec::new();
    for (place, block) in blocks.iter().enumerate() {
        let mut here: Vec<(&str, f64)> =
            shares.iter().map(|(g, shares)| (g.label.as_str(), shares[place])).filter(|(_, s)| s.is_finite()).collect();
        here.sort_by(|a, b| b.1.total_cmp(&a.1));
        let Some((first, most)) = here.first().copied() else { continue };
        if most == 0.0 {
            words.push(format!("{block}: none"));
            continue;
        }
        words.push(format!("{block}: {first} {}", share(most)));
        let shared = here.get(1).is_some_and(|(_, share)| *share == most);
        if !shared && !winners.contains(&first) {
            winners.push(first);
        }
    }
    let title = match winners[..] {
        [only] if groups.len() > 1 => format!("Sparsest weights: {only}"),
        _ => "How many weights are small".to_owned(),
    };
    let columns = std::iter::once("optimiser").chain(blocks.iter().map(String::as_str)).map(str::to_owned).collect();
    let rows = shares
        .iter()
        .map(|(group, shares)| {
            std::iter::once(group.label.clone()).chain(shares.iter().map(|share| percent(*share))).collect()
        })
        .collect();
    let explanation =
        "A weight is small here if its absolute value is below one hundredth of the largest of its block.".to_owned();
    let text = format!("Largest share of small weights in {}.", list(&words, NAMED));
    Some(Finding { title, text, as_expected: None, in_part: false, explanation, table: Table { columns, rows } })
}

/// How far the balance between layers drifted.
pub(super) fn balance(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let mut rows: Vec<[String; 4]> = Vec::new();
    let (mut own, mut all) = (f64::NAN, f64::NAN);
    for key in keys(record, "balance_drift.") {
        let column = format!("balance_drift.{key}");
        for group in groups {
            let drifts = counted(record, group).flat_map(|run| run.metrics.column(&column).iter().copied());
            let largest = Finals::over(drifts).high;
            if !largest.is_finite() {
                continue;
            }
            let its = geometry(record, group) == Some(key.as_str());
            all = all.max(largest);
            if its {
                own = own.max(largest);
            }
            let mark = if its { "yes" } else { "" };
            rows.push([key.clone(), group.label.clone(), format!("{largest:.1e}"), mark.to_owned()]);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let text = if own.is_finite() {
        format!("It moved by up to {own:.1e} in the optimiser's own geometry, by up to {all:.1e} in others.")
    } else {
        format!("It moved by up to {all:.1e}.")
    };
    let explanation = "In continuous time, training in a mirror geometry keeps the differences in size between layers, \
                       measured in that geometry, as they were at the start; steps of finite size keep them approximately. \
                       The number is the largest change of a difference over the run, relative to the largest size at that \
                       time."
        .to_owned();
    let table = table(["measured by", "optimiser", "largest change", "its own geometry"], rows);
    Some(Finding {
        title: "Balance between layers".to_owned(),
        text,
        as_expected: None,
        in_part: false,
        explanation,
        table,
    })
}

/// How optimisers differ on the test examples.
pub(super) fn test_accuracy(record: &ExperimentRecord, groups: &[Group]) -> Option<Finding> {
    let mut finals: Vec<(&str, Finals)> = groups
        .iter()
        .map(|g| (g.label.as_str(), Finals::over(counted(record, g).filter_map(|run| run.test_accuracy))))
        .filter(|(_, finals)| finals.count > 0)
        .collect();
    finals.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
    let (title, text) = match &finals[..] {
        [] => return None,
        [(name, only)] => (format!("Test accuracy of {name}"), format!("{} at the end.", percent(only.mean))),
        [(best, first), .., (worst, last)] => {
            let difference = first.mean - last.mean;
            let mut text = format!("{best} {}, {worst} {}", percent(first.mean), percent(last.mean));
            if difference > 0.0 && record.data.test_examples > 0 {
                let examples = (difference * record.data.test_examples as f64).round() as usize;
                text += &format!(": apart by about {} of {}", count(examples, "example"), record.data.test_examples);
            }
            if difference > 0.0 && first.count > 1 && last.count > 1 {
                text += if last.high >= first.low {
                    "; their ranges over the seeds overlap"
                } else {
                    "; their ranges over the seeds do not overlap"
                };
            }
            let title = match difference {
                0.0 => "Test accuracy: no difference".to_owned(),
                _ => format!("Best on test examples: {best}"),
            };
            (title, text + ".")
        }
    };
    let rows = finals.iter().map(|(name, finals)| {
        let range = if finals.count > 1 {
            format!("{} to {}", percent(finals.low), percent(finals.high))
        } else {
            "–".to_owned()
        };
        [(*name).to_owned(), percent(finals.mean), range, finals.count.to_string()]
    });
    let table = table(["optimiser", "correct", "over the seeds", "seeds"], rows);
    let explanation = "Share of test examples classified correctly at the end.".to_owned();
    Some(Finding { title, text, as_expected: None, in_part: false, explanation, table })
}
