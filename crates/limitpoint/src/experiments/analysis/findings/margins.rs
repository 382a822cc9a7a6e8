//! Who wins which margin, and whether those are the optimisers whose norm it is.

use super::{NAMED, table};
use crate::experiments::analysis::finals::{Finals, counted, is_named, keys};
use crate::experiments::analysis::summary::shares_first;
use crate::experiments::analysis::words::{count, list, norm_name, power_of_ten, scientific, share};
use crate::experiments::{ExperimentRecord, Finding, Group};

/// What is expected, behind every contest theory has a word in.
const THEORY: &str = " Theory: steepest descent in a norm heads for the largest margin of its own norm (linear models: \
                      Gunasekar et al. 2018), or for a stationary point of it (homogeneous networks: Tsilivis et al., \
                      Flavors of Margin), which need not be the largest. “As expected” means that one of those it speaks \
                      of comes first and no other of them is more than 1 % behind.";

/// Those whose norm it is may be this far behind the first of them.
const CLOSE: f64 = 0.99;

/// Names where a line has several lists of them.
const FEW: usize = 2;

/// One optimiser in a contest.
struct Contestant<'a> {
    group: &'a Group,
    finals: Finals,
    /// Whether theory assigns the contested norm to it.
    named: bool,
}

/// A setting of the sweep, and who ran there, the largest margin first.
type Contest<'a> = (&'a str, Vec<Contestant<'a>>);

/// How a contest ended for those to whom the norm belongs.
#[derive(PartialEq)]
enum Outcome {
    /// Nobody's norm, or no positive margin: theory says nothing.
    Open,
    /// One of them comes first, and all others are close.
    Won,
    /// One of them comes first, and another is behind.
    Partly,
    Lost,
}

/// One finding per margin for which at least two optimisers have a final value at the same point of the sweep.
pub(super) fn contests(record: &ExperimentRecord, groups: &[Group]) -> Vec<Finding> {
    keys(record, "margin.").iter().filter_map(|key| contest(record, groups, key)).collect()
}

/// The contest for one norm.
fn contest(record: &ExperimentRecord, groups: &[Group], key: &str) -> Option<Finding> {
    let name = norm_name(key);
    let mut contests: Vec<Contest> = Vec::new();
    for group in groups {
        let finals = Finals::of_column(record, group, &format!("margin.{key}"));
        if finals.count == 0 {
            continue;
        }
        let contestant = Contestant { group, finals, named: is_named(record, group, key) };
        match contests.iter_mut().find(|(known, _)| *known == group.setting) {
            Some((_, contestants)) => contestants.push(contestant),
            None => contests.push((&group.setting, vec![contestant])),
        }
    }
    contests.retain(|(_, contestants)| contestants.len() > 1);
    for (_, contestants) in &mut contests {
        contestants.sort_by(|a, b| b.finals.mean.total_cmp(&a.finals.mean));
    }
    let mut winners: Vec<(&str, usize)> = Vec::new();
    for winner in contests.iter().filter_map(|(_, contestants)| Some(contestants.first()?.group.optimiser.as_str())) {
        match winners.iter_mut().find(|(known, _)| *known == winner) {
            Some((_, times)) => *times += 1,
            None => winners.push((winner, 1)),
        }
    }
    winners.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let title = match winners[..] {
        [] => return None,
        [(only, _)] => format!("Largest {name} margin: {only}"),
        _ => format!("Largest {name} margin: depends on the setting"),
    };
    let outcomes: Vec<Outcome> = contests.iter().map(|(_, contestants)| outcome(contestants)).collect();
    let spoken = outcomes.iter().filter(|outcome| **outcome != Outcome::Open).count();
    let won = outcomes.iter().filter(|outcome| **outcome == Outcome::Won).count();
    let in_part = won < spoken && outcomes.iter().any(|outcome| matches!(outcome, Outcome::Won | Outcome::Partly));
    let text = match &contests[..] {
        [(_, contestants)] => one_setting(contestants, &name),
        several => many_settings(several, &winners, (won, spoken), &name),
    };
    let mut explanation = format!(
        "The {name} margin is the score by which the worst training example is on the right side, once the weights are \
         scaled to {name} norm one."
    );
    if spoken > 0 {
        explanation += THEORY;
        let groups = contests.iter().flat_map(|(_, contestants)| contestants).map(|contestant| contestant.group);
        explanation += &format!(" It speaks of the limit; these runs ended at {}.", losses(record, groups));
    }
    let rows = contests.iter().flat_map(|(_, contestants)| {
        let first = contestants.first().map_or(f64::NAN, |first| first.finals.mean);
        contestants.iter().map(move |c| {
            let named = if c.named { "yes" } else { "" };
            let range = if c.finals.count > 1 {
                format!("{} to {}", scientific(c.finals.low), scientific(c.finals.high))
            } else {
                "–".to_owned()
            };
            let part = if first > 0.0 { share(c.finals.mean / first) } else { "–".to_owned() };
            [c.group.label.clone(), scientific(c.finals.mean), part, range, named.to_owned()]
        })
    });
    let table = table(["optimiser", "margin", "of the largest", "over the seeds", "its own norm"], rows);
    Some(Finding { title, text, as_expected: (spoken > 0).then_some(won == spoken), in_part, explanation, table })
}

/// Whether those whose norm it is come first, all of them.
fn outcome(contestants: &[Contestant]) -> Outcome {
    let Some(first) = contestants.first().filter(|first| first.finals.mean > 0.0) else { return Outcome::Open };
    let largest = first.finals.mean;
    let named: Vec<f64> = contestants.iter().filter(|c| c.named).map(|c| c.finals.mean).collect();
    match named.first() {
        None => Outcome::Open,
        Some(best) if !shares_first(*best, largest) => Outcome::Lost,
        Some(_) if named.iter().all(|margin| *margin >= CLOSE * largest) => Outcome::Won,
        Some(_) => Outcome::Partly,
    }
}

/// Who is first, by how much, and how those fared whose norm it is; contestants come sorted.
fn one_setting(contestants: &[Contestant], name: &str) -> String {
    let Some(first) = contestants.first() else { return String::new() };
    let largest = first.finals.mean;
    let (ahead, behind): (Vec<&Contestant>, Vec<&Contestant>) =
        contestants.iter().partition(|c| shares_first(c.finals.mean, largest));
    let names = |some: &[&Contestant]| list(&some.iter().map(|c| c.group.optimiser.clone()).collect::<Vec<_>>(), FEW);
    let mut text = match behind.first() {
        None => format!("{} have the same, {}.", names(&ahead), scientific(largest)),
        Some(next) if largest > 0.0 => {
            let apart = share(next.finals.mean / largest);
            format!("{}: {}; next {} with {apart} of it", names(&ahead), scientific(largest), next.group.optimiser)
        }
        Some(_) => format!("{}: {}", names(&ahead), scientific(largest)),
    };
    if let Some(next) = behind.first() {
        let several = first.finals.count > 1 && next.finals.count > 1;
        let low = ahead.iter().map(|c| c.finals.low).fold(f64::INFINITY, f64::min);
        text += match (several, next.finals.high >= low) {
            (true, true) => "; the ranges of their seeds overlap.",
            (true, false) => "; the ranges of their seeds are apart.",
            (false, _) => ".",
        };
    }
    if largest <= 0.0 {
        return text + " None is positive: nobody classified every training example correctly.";
    }
    let named: Vec<&Contestant> = contestants.iter().filter(|c| c.named).collect();
    let short: Vec<String> = named
        .iter()
        .filter(|c| c.finals.mean < CLOSE * largest || !shares_first(named[0].finals.mean, largest))
        .map(|c| format!("{} has {}", c.group.optimiser, share(c.finals.mean / largest)))
        .collect();
    match (named.is_empty(), short.is_empty()) {
        (true, _) => text,
        (false, true) => text + &format!(" {name} is the norm of {}.", names(&named)),
        (false, false) => text + &format!(" {name} is the norm of {}, of which {}.", names(&named), list(&short, FEW)),
    }
}

/// Who is first in how many settings, and in how many those whose norm it is.
fn many_settings(contests: &[Contest], winners: &[(&str, usize)], (won, spoken): (usize, usize), name: &str) -> String {
    let words: Vec<String> = winners.iter().map(|(winner, times)| format!("{winner} in {times}")).collect();
    let text = format!("Of {} the largest has {}.", count(contests.len(), "setting"), list(&words, NAMED));
    let mut named: Vec<String> = Vec::new();
    for contestant in contests.iter().flat_map(|(_, contestants)| contestants).filter(|c| c.named) {
        if !named.contains(&contestant.group.optimiser) {
            named.push(contestant.group.optimiser.clone());
        }
    }
    match spoken {
        0 => text,
        _ => text + &format!(" {name} is the norm of {}: first in {won} of {spoken}.", list(&named, NAMED)),
    }
}

/// `losses around 10^−5.0` or `losses between 10^−300.1 and 10^−12.0`.
fn losses<'a>(record: &ExperimentRecord, groups: impl Iterator<Item = &'a Group>) -> String {
    let all =
        Finals::over(groups.flat_map(|group| counted(record, group)).filter_map(|run| run.metrics.last("log10_loss")));
    if all.count == 0 {
        "losses that were not recorded".to_owned()
    } else if all.high - all.low < 0.1 {
        format!("losses around {}", power_of_ten(all.mean))
    } else {
        format!("losses between {} and {}", power_of_ten(all.low), power_of_ten(all.high))
    }
}
