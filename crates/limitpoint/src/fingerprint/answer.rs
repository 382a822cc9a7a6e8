//! Phases, confidence, and the sentence that says it.

use serde::{Deserialize, Serialize};

use super::Candidate;
use super::reading::{ProbeRun, Reading, level};

/// The share of what a geometry's own steepest flow has at least reached from which on its margin counts as maximised.
pub const REACHED: f64 = 0.98;

/// The share of the optimum itself that is asked for besides: at a moderate loss a flow has to reach little.
const STANDING: f64 = 0.85;

/// The confidence from which on a phase names a geometry.
const CLEAR: f64 = 0.5;

/// A stretch of the loss with one answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Key of the geometry whose margin is maximised on every probe; nothing if there is none.
    pub geometry: Option<String>,
    /// Key of the geometry that comes nearest.
    pub nearest: String,
    /// log₁₀ L at the first and the last reading of the phase.
    pub log10_loss: [f64; 2],
    /// log₁₀ L at the reading that speaks for the phase: the clearest one, and for the last phase the end.
    pub clearest: f64,
    /// At that reading, in [0, 1]: how far the nearest rival lies behind, relative to how far it lies behind at the
    /// geometry's exact maximiser, averaged over runs; a run in which a rival leads counts as 0. Without a geometry,
    /// how far the nearest falls short, relative to a tenth.
    pub confidence: f64,
    /// By candidate, the smallest share of the judge's optimum over all runs, at that reading.
    pub shares: Vec<f64>,
}

/// One moment of all runs together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// log₁₀ L, the largest of all runs.
    pub log10_loss: f64,
    /// By candidate, the smallest share of the judge's optimum over all runs.
    pub shares: Vec<f64>,
}

/// The answers along the loss, and the shares they follow from: at every level that all runs reached, and at their
/// ends; equal neighbours are one phase.
///
/// At a level, the geometry that attains most in its worst run is maximised if [`Reading::attained`] is at least
/// [`REACHED`] in every run, its share of the optimum at least 0.85, and its confidence at least one half.
pub(super) fn phases(geometries: &[Candidate], runs: &[ProbeRun]) -> (Vec<Phase>, Vec<Moment>) {
    let deepest = |run: &ProbeRun| run.readings.iter().map(|reading| -reading.log10_loss).fold(0.0, f64::max);
    let common = runs.iter().map(deepest).fold(f64::INFINITY, f64::min);
    let (mut phases, mut course): (Vec<Phase>, Vec<Moment>) = Default::default();
    let moments = (0..).map(level).take_while(|depth| *depth <= common).map(Some).chain([None]);
    for depth in moments {
        // the first reading at this depth, or the last of all
        let at = |run: &ProbeRun| match depth {
            Some(depth) => run.readings.iter().position(|reading| -reading.log10_loss >= depth),
            None => run.readings.len().checked_sub(1),
        };
        let moment: Option<Vec<(&ProbeRun, &Reading)>> =
            runs.iter().map(|run| Some((run, &run.readings[at(run)?]))).collect();
        let Some(moment) = moment.filter(|moment| !moment.is_empty()) else { continue };
        let now = phase(geometries, &moment);
        course.push(Moment { log10_loss: now.clearest, shares: now.shares.clone() });
        match phases.last_mut() {
            Some(last) if last.geometry == now.geometry => {
                last.log10_loss[1] = now.log10_loss[1];
                // the end speaks for the last phase
                if now.confidence >= last.confidence || depth.is_none() {
                    *last = Phase { log10_loss: last.log10_loss, ..now };
                }
            }
            _ => phases.push(now),
        }
    }
    (phases, course)
}

/// What one reading of every run says.
fn phase(geometries: &[Candidate], moment: &[(&ProbeRun, &Reading)]) -> Phase {
    let smallest = |value: &dyn Fn(&Reading) -> f64| {
        moment
            .iter()
            .map(|(_, reading)| value(reading))
            .fold(f64::INFINITY, |a, b| if a < b || a.is_nan() { a } else { b })
    };
    let attained: Vec<f64> = (0..geometries.len()).map(|a| smallest(&|reading| reading.attained(a))).collect();
    let nearest = (0..geometries.len()).max_by(|a, b| attained[*a].total_cmp(&attained[*b])).unwrap_or(0);
    let shares: Vec<f64> = (0..geometries.len()).map(|a| smallest(&|reading| reading.shares[a])).collect();
    let sure = confidence(nearest, moment);
    let holds = attained[nearest] >= REACHED && shares[nearest] >= STANDING && sure >= CLEAR;
    let depth = moment.iter().map(|(_, reading)| reading.log10_loss).fold(f64::NEG_INFINITY, f64::max);
    Phase {
        geometry: holds.then(|| geometries[nearest].key.clone()),
        nearest: geometries[nearest].key.clone(),
        log10_loss: [depth; 2],
        clearest: depth,
        confidence: if holds { sure } else { doubt(attained[nearest]) },
        shares,
    }
}

/// The mean over runs of how clearly the answer leads, relative to how clearly it could.
///
/// ```text
/// (1 − attained by its best rival / attained by the answer) / (1 − what that rival has at the answer's maximiser),
/// within [0, 1]
/// ```
///
/// The denominator is the judge's: 1 means that rivals lie as far behind as the nearest does at the exact maximiser,
/// and a run in which a rival leads counts as 0, so that the share of runs that agree is part of it. Runs on which the
/// answer has no rival say nothing and are left out.
fn confidence(answer: usize, moment: &[(&ProbeRun, &Reading)]) -> f64 {
    let mut total = (0.0, 0.0);
    for (run, reading) in moment {
        let Some(rival) = run.rivals[answer].iter().map(|b| reading.attained(*b)).reduce(f64::max) else { continue };
        let lead = (1.0 - rival / reading.attained(answer)) / run.leads[answer];
        total = (total.0 + lead.clamp(0.0, 1.0), total.1 + 1.0);
    }
    if total.1 > 0.0 { total.0 / total.1 } else { 0.0 }
}

/// The confidence that no candidate is maximised: how far the nearest falls short of [`REACHED`], relative to a tenth;
/// 0 where one would do but does not lead clearly.
fn doubt(attained: f64) -> f64 {
    ((REACHED - attained) / 0.1).clamp(0.0, 1.0)
}

/// 10 to a power, as people write it.
fn power(log10: f64) -> String {
    format!("1e{log10:.0}")
}

/// The answer in words.
pub(super) fn sentence(optimiser: &str, geometries: &[Candidate], phases: &[Phase]) -> String {
    let label = |key: &str| geometries.iter().find(|g| g.key == key).map_or(key, |g| g.label.as_str()).to_owned();
    let Some(late) = phases.last() else { return format!("{optimiser}: nothing was read off") };
    let early = phases.iter().find(|phase| phase.geometry.is_some());
    let place = |key: &str| geometries.iter().position(|geometry| geometry.key == key).unwrap_or(0);
    let before = |early: &Phase, key: &str| {
        format!(
            "the {} margin early (L from {} to {}, confidence {:.2})",
            label(key),
            power(early.log10_loss[0]),
            power(early.log10_loss[1]),
            early.confidence
        )
    };
    let end = power(late.log10_loss[1]);
    match (early.and_then(|early| Some((early, early.geometry.as_deref()?))), late.geometry.as_deref()) {
        (Some((_, first)), Some(last)) if first == last => format!(
            "{optimiser} maximises the {} margin, from L = {} on (followed to {end}, confidence {:.2})",
            label(last),
            power(late.log10_loss[0]),
            late.confidence
        ),
        (Some((early, first)), Some(last)) => format!(
            "{optimiser} maximises {}, and the {} margin late (from L = {} on, followed to {end}, confidence {:.2})",
            before(early, first),
            label(last),
            power(late.log10_loss[0]),
            late.confidence
        ),
        (early, _) => {
            let share = late.shares[place(&late.nearest)];
            let first = early.map_or_else(String::new, |(early, key)| format!("{}; late, ", before(early, key)));
            format!(
                "{optimiser} maximises {first}none of these geometries at L = {end}: nearest is {}, with {share:.3} \
                 of the optimum on its worst probe (confidence {:.2})",
                label(&late.nearest),
                late.confidence
            )
        }
    }
}
