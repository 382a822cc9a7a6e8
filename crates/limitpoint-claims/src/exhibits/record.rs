//! The record of an exhibit: what was run, on what, and what came out.

use std::collections::BTreeMap;

use limitpoint::experiments::{DataRecord, Machine, RunRecord};
use limitpoint::report::Sketch;
use serde::{Deserialize, Serialize};

use super::material::{Gathered, Material};
use super::reading::{Reading, mean_and_spread};
use super::{Exhibit, MadeOf};
use crate::{Claim, ClaimError, ClaimRecord, Lab, find_claims};

/// How much of an exhibit has been run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Every run of the paper's setting is finished.
    Complete,
    /// Some are, or have begun.
    Partial,
    /// None has begun.
    NotRun,
}

impl Extent {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Partial => "in part",
            Self::NotRun => "not run",
        }
    }
}

/// How far the runs of one set have come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetRecord {
    /// Its name.
    pub name: String,
    /// Experiment and overrides.
    pub setting: String,
    /// Runs of the paper's setting.
    pub planned: usize,
    /// Those that are finished.
    pub finished: usize,
    /// Those that ended in trouble, with their reasons.
    pub failed: Vec<String>,
    /// Those that have begun, with the steps they made and those they are to make.
    pub begun: Vec<(String, u64, Option<u64>)>,
    /// Seeds of finished runs, and of all.
    pub seeds: [usize; 2],
    /// Seconds of all runs together, each on as many threads as it had.
    pub seconds: f64,
    /// Runs that a card has computed, the last part at least.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub on_cards: usize,
    /// The data, as they were loaded.
    pub data: DataRecord,
    /// The program that made the runs.
    pub version: String,
    /// Final weights by run: SHA-256, log₁₀ of the summed loss, margins by norm.
    pub ends: BTreeMap<String, End>,
}

/// Whether nothing need be said.
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Where a finished run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// SHA-256 of the weights.
    pub weights: String,
    /// log₁₀ of the summed loss.
    pub log10_loss: f64,
    /// Normalised margins by norm.
    pub margins: BTreeMap<String, f64>,
}

/// Everything about one exhibit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExhibitRecord {
    /// Its id.
    pub id: String,
    /// What it shows.
    pub shows: String,
    /// How much of it has been run.
    pub extent: Extent,
    /// The runs.
    pub sets: Vec<SetRecord>,
    /// The claims, where it is made of claims.
    pub claims: Vec<ClaimRecord>,
    /// Numbers, figures, words.
    pub reading: Reading,
    /// What the paper leaves open or what could not be followed.
    pub departures: Vec<String>,
    /// The machine that read it.
    pub machine: Machine,
    /// The program that read it.
    pub version: String,
}

impl ExhibitRecord {
    /// Reads an exhibit from its runs, or runs its claims, which are short. Nothing for an illustration.
    pub fn of(exhibit: &Exhibit, material: &Material, lab: &Lab) -> Result<Option<Self>, ClaimError> {
        let mut record = Self {
            id: exhibit.id.to_owned(),
            shows: exhibit.shows.to_owned(),
            extent: Extent::NotRun,
            sets: material.sets.values().map(set_record).collect(),
            claims: Vec::new(),
            reading: Reading::default(),
            departures: exhibit.departures.iter().map(|words| (*words).to_owned()).collect(),
            machine: Machine::this(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        match exhibit.made_of {
            MadeOf::Illustration => return Ok(None),
            MadeOf::Claims(ids) => {
                for id in ids {
                    let named = find_claims(id)?.into_iter().filter(|claim: &Claim| !claim.printed());
                    record.claims.extend(named.map(|claim| claim.run(lab)));
                }
                record.reading = of_claims(&mut record.claims);
                record.extent = Extent::Complete;
            }
            MadeOf::Runs { read, .. } => {
                record.reading = read(material)?;
                let all = |whole: fn(&SetRecord) -> bool| record.sets.iter().all(whole);
                record.extent = if all(|set| set.finished + set.failed.len() == set.planned) {
                    Extent::Complete
                } else if all(|set| set.begun.is_empty() && set.finished == 0) {
                    Extent::NotRun
                } else {
                    Extent::Partial
                };
            }
        }
        record.reading.figures.retain(|figure| shown(figure) > 0);
        for curve in record.reading.figures.iter_mut().flat_map(|figure| &mut figure.curves) {
            thin(&mut curve.points);
        }
        Ok(Some(record))
    }
}

/// How many curves, bands, clouds and dots there are to draw.
fn shown(figure: &Sketch) -> usize {
    figure.curves.iter().filter(|curve| !curve.points.is_empty()).count()
        + figure.bands.iter().filter(|band| !band.points.is_empty()).count()
        + figure.clouds.iter().filter(|cloud| !cloud.points.is_empty()).count()
        + figure.dots.len()
}

/// Leaves so many points of a curve that a picture shows no difference, its ends among them.
fn thin(points: &mut Vec<[f64; 2]>) {
    const MOST: usize = 500;
    if points.len() > MOST {
        let last = points.len() - 1;
        *points = (0..MOST).map(|k| points[k * last / (MOST - 1)]).collect();
    }
}

/// Numbers with a print beside them, and all figures.
fn of_claims(claims: &mut [ClaimRecord]) -> Reading {
    let mut reading = Reading::default();
    for claim in claims {
        for check in claim.checks.iter().filter(|check| check.printed.is_some()) {
            let values: Vec<f64> = check.value.into_iter().collect();
            reading.row(format!("{}: {}", claim.id, check.what), check.printed.map(|value| [value, 0.0]), &values);
        }
        let holding = claim.holding();
        reading.say(format!(
            "{} is {}: {holding} of {} comparisons hold. {}.",
            claim.id,
            claim.status,
            claim.checks.len(),
            claim.statement
        ));
        reading.words.extend(claim.notes.iter().cloned());
        reading.figures.append(&mut claim.figures);
    }
    reading
}

fn set_record(gathered: &Gathered) -> SetRecord {
    let runs: Vec<&RunRecord> = gathered.record.iter().flat_map(|record| &record.runs).collect();
    let finished: Vec<&RunRecord> = runs.iter().copied().filter(|run| run.healthy).collect();
    let target = |run: &RunRecord| {
        let same = |task: &&limitpoint::experiments::Task| task.label.optimiser == run.optimiser;
        gathered.planned.iter().find(same).and_then(|task| task.recipe.stop.steps)
    };
    let going = runs.iter().filter(|run| !run.healthy && !run.failed);
    let seeds = |seeds: &mut dyn Iterator<Item = u64>| seeds.collect::<std::collections::BTreeSet<_>>().len();
    let ends = finished.iter().filter_map(|run| {
        let columns = run.metrics.columns.iter().filter_map(|column| column.strip_prefix("margin."));
        let margins = columns.filter_map(|norm| Some((norm.to_owned(), run.metrics.last(&format!("margin.{norm}"))?)));
        let margins = margins.filter(|(_, value)| value.is_finite()).collect();
        let log10_loss = run.metrics.last("log10_loss").filter(|value| value.is_finite())?;
        Some((run.name.clone(), End { weights: run.weights.clone()?, log10_loss, margins }))
    });
    SetRecord {
        name: gathered.set.name.to_owned(),
        setting: gathered.set.words(),
        planned: gathered.planned.len(),
        finished: finished.len(),
        failed: runs.iter().filter(|run| run.failed).map(|run| format!("{}: {}", run.name, run.stop)).collect(),
        begun: going.map(|run| (run.name.clone(), run.steps, target(run))).collect(),
        seeds: [
            seeds(&mut finished.iter().map(|run| run.seed)),
            seeds(&mut gathered.planned.iter().map(|task| task.label.seed)),
        ],
        on_cards: runs.iter().filter(|run| !run.device.is_cpu()).count(),
        // from 0, because the sum of no numbers is −0
        seconds: runs.iter().fold(0.0, |sum, run| sum + run.seconds),
        data: gathered.record.as_ref().map(|record| record.data.clone()).unwrap_or_default(),
        version: gathered.record.as_ref().map_or_else(String::new, |record| record.version.clone()),
        ends: ends.collect(),
    }
}

impl ExhibitRecord {
    /// Runs that have begun, and numbers of ours with what figures show: of two records of an exhibit, one that has fewer of either
    /// has lost something.
    pub fn content(&self) -> [usize; 2] {
        let runs = self.sets.iter().map(|set| set.finished + set.failed.len() + set.begun.len()).sum();
        let numbers = self.reading.rows.iter().filter(|row| row.ours.is_some()).count();
        [runs, numbers + self.reading.figures.iter().map(shown).sum::<usize>()]
    }

    /// The geometric mean of ours over print, over all numbers that have both, and how many these are.
    pub fn typical_ratio(&self) -> Option<(f64, usize)> {
        let logs: Vec<f64> =
            self.reading.rows.iter().filter_map(|row| row.ratio()).filter(|r| *r > 0.0).map(f64::ln).collect();
        Some((mean_and_spread(&logs).0?.exp(), logs.len()))
    }
}
