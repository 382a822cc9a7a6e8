//! Who wins which margin, and whether that is the optimiser whose norm it is.

use crate::experiments::analysis::finals::{Finals, counted, geometry, keys, runs};
use crate::experiments::analysis::summary::shares_first;
use crate::experiments::analysis::words::{count, list, norm_name, power_of_ten, scientific};
use crate::experiments::record::{ExperimentRecord, Finding, Group};

/// What is expected, said once.
const THEORY: &str = " Theory: steepest descent in a norm heads for the largest margin of its own norm (linear models: \
                      Gunasekar et al. 2018), or for a stationary point of it (homogeneous networks: Tsilivis et al., \
                      Flavors of Margin), which need not be the largest.";

/// One optimiser in a contest.
struct Contestant<'a> {
    group: &'a Group,
    finals: Finals,
    /// Whether theory assigns the contested norm to it.
    owner: bool,
}

/// The settings of a point of the sweep, and who ran there.
type Contest<'a> = (&'a [(String, String)], Vec<Contestant<'a>>);

/// How a contest ended for those to whom the norm belongs.
enum Outcome {
    /// Nobody's norm, or no positive margin: theory says nothing.
    Open,
    Won,
    Lost,
}

/// One finding per margin for which at least two optimisers have a final value at the same point of the sweep.
pub(super) fn contests(record: &ExperimentRecord, groups: &[Group]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for key in keys(record, "margin.") {
        let explain = findings.iter().all(|finding| finding.as_expected.is_none());
        findings.extend(contest(record, groups, &key, explain));
    }
    findings
}

/// The contest for one norm; `explain` says what theory expects and why, which one paragraph is enough for.
fn contest(record: &ExperimentRecord, groups: &[Group], key: &str, explain: bool) -> Option<Finding> {
    let name = norm_name(key);
    let mut points: Vec<Contest> = Vec::new();
    for group in groups {
        let Some(point) = runs(record, group).next().map(|run| run.point.as_slice()) else { continue };
        let finals = Finals::of_column(record, group, &format!("margin.{key}"));
        if finals.count == 0 {
            continue;
        }
        let contestant = Contestant { group, finals, owner: geometry(record, group) == Some(key) };
        match points.iter_mut().find(|(known, _)| *known == point) {
            Some((_, contestants)) => contestants.push(contestant),
            None => points.push((point, vec![contestant])),
        }
    }
    points.retain(|(_, contestants)| contestants.len() > 1);
    let mut winners: Vec<&str> = Vec::new();
    let mut sentences = Vec::new();
    let (mut won, mut lost) = (0, 0);
    for (_, contestants) in &mut points {
        contestants.sort_by(|a, b| b.finals.mean.total_cmp(&a.finals.mean));
        let first = contestants.first()?;
        if !winners.contains(&first.group.optimiser.as_str()) {
            winners.push(&first.group.optimiser);
        }
        let (text, outcome) = verdict(contestants, &name);
        sentences.push(text);
        match outcome {
            Outcome::Open => {}
            Outcome::Won => won += 1,
            Outcome::Lost => lost += 1,
        }
    }
    let title = match winners[..] {
        [] => return None,
        [only] => format!("Largest {name} margin: {only}"),
        _ => format!("Largest {name} margin: depends on the setting"),
    };
    let mut text = format!(
        "The {name} margin is the score by which the worst training example is on the right side, once the weights are \
         scaled to {name} norm one. {}",
        sentences.join(" ")
    );
    if won + lost > 0 {
        if explain {
            text.push_str(THEORY);
        }
        let groups = points.iter().flat_map(|(_, contestants)| contestants).map(|contestant| contestant.group);
        text.push_str(&format!(" Theory speaks of the limit; these runs ended at {}.", losses(record, groups)));
    }
    Some(Finding { title, text, as_expected: (won + lost > 0).then_some(lost == 0) })
}

/// Who is first at one point of the sweep, by how much, and whether the norm is theirs; contestants come sorted.
fn verdict(contestants: &[Contestant], name: &str) -> (String, Outcome) {
    let Some(first) = contestants.first() else { return (String::new(), Outcome::Open) };
    let show = |c: &Contestant| format!("{} ({})", c.group.label, scientific(c.finals.mean));
    let (ahead, behind): (Vec<&Contestant>, Vec<&Contestant>) =
        contestants.iter().partition(|c| shares_first(c.finals.mean, first.finals.mean));
    let shown = |some: &[&Contestant]| list(&some.iter().map(|c| show(c)).collect::<Vec<_>>());
    let mut text = match (ahead.len(), behind.is_empty()) {
        (_, true) => format!("At the end {} have the same.", shown(&ahead)),
        (1, false) => format!("At the end {} has the largest, before {}.", shown(&ahead), shown(&behind)),
        (_, false) => format!("At the end {} share the largest, before {}.", shown(&ahead), shown(&behind)),
    };
    if first.finals.mean <= 0.0 {
        text.push_str(" None is positive: on average no optimiser classified every training example correctly.");
        return (text, Outcome::Open);
    }
    if let Some(second) = behind.first().filter(|second| first.finals.count > 1 && second.finals.count > 1) {
        let overlap = second.finals.high >= ahead.iter().map(|c| c.finals.low).fold(f64::INFINITY, f64::min);
        text.push_str(&format!(
            " Over {} the ranges of the first and the next {}.",
            count(first.finals.count.max(second.finals.count), "seed"),
            if overlap { "overlap" } else { "do not overlap" }
        ));
    }
    let owners: Vec<&Contestant> = contestants.iter().filter(|c| c.owner).collect();
    let Some(best) = owners.first() else { return (text, Outcome::Open) };
    let names = list(&owners.iter().map(|c| c.group.label.clone()).collect::<Vec<_>>());
    if shares_first(best.finals.mean, first.finals.mean) {
        text.push_str(&format!(" {name} is the norm of {names}, so this is what theory suggests."));
        return (text, Outcome::Won);
    }
    let short = 100.0 * (1.0 - best.finals.mean / first.finals.mean);
    text.push_str(&format!(
        " {name} is the norm of {names}, which theory suggests as the winner; {} is {short:.1} % behind.",
        if owners.len() == 1 { "it" } else { "the best of them" }
    ));
    (text, Outcome::Lost)
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
