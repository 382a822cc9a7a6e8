//! Which geometry does an optimiser maximise the margin in?
//!
//! [`fingerprint()`] runs an optimiser on a fixed [`battery()`] of separable problems whose max-margin directions in
//! the candidate norms lie provably far apart, and reads off, while the loss falls, how much of every norm's largest
//! margin it has reached:
//!
//! ```text
//! ρ_a(θ) = min yᵢ⟨θ, xᵢ⟩ / (‖θ‖_a γ*_a),   γ*_a = max over ‖v‖_a ≤ 1 of min yᵢ⟨v, xᵢ⟩ by the judge,   0 ≤ ρ_a ≤ 1
//! ```
//!
//! A geometry is named by the norm that the parameters are measured in: coordinate descent maximises the ℓ1-norm
//! margin, sign descent the ℓ∞-norm margin. On a homogeneous network no optimum is known; there margins are compared
//! with the best that any reference descent reached from the same start, and alignment with the steepest direction is
//! evidence.
//!
//! | file | holds |
//! |---|---|
//! | `candidate` | the candidate norms and their names |
//! | `battery` | the probe problems, and the judge's optima on them |
//! | `pace` | step sizes that suit an optimiser, and how deep it is followed |
//! | `reading` | one run on one probe, read off at levels of the loss |
//! | `foreign` | the problems for optimisers that run elsewhere, and what their paths say |
//! | `network` | the probes without a known optimum |
//! | `answer` | phases, confidence, and the sentence that says it |

mod answer;
mod battery;
mod candidate;
mod foreign;
mod network;
mod pace;
mod reading;
#[cfg(test)]
mod tests;

pub use answer::{Moment, Phase, REACHED};
pub use battery::{Optima, PROBES, ProbeSpec, battery};
pub use candidate::Candidate;
pub use foreign::{ForeignPath, ForeignProbe, foreign_probes, read_paths};
pub use network::{NetworkEvidence, NetworkReading};
pub use pace::{Pace, Stage};
pub use reading::{ProbeRun, Reading};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::experiments::RecipeError;
use crate::norms::NormSpec;
use crate::optimisers::OptimiserSpec;
use crate::schedules::ScheduleSpec;

/// What keeps a fingerprint from being taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FingerprintError {
    /// More than one optimiser in one text.
    #[error("'{text}' names {count} optimisers, but one is fingerprinted at a time; give them as separate arguments")]
    Several {
        /// What was written.
        text: String,
        /// How many that is.
        count: usize,
    },
    /// Weights of both signs are needed.
    #[error(
        "'{text}' keeps every weight in the domain of its potential or constraint, but the probes need weights of both \
         signs; a potential on all of space has a fingerprint, such as mirror(potential=hyperbolic(lambda=1e-60))"
    )]
    OneSided {
        /// The optimiser.
        text: String,
    },
    /// A part of a composition that has no text.
    #[error("a part of the composition cannot be written down: {what}")]
    Unwritable {
        /// What is wrong with it.
        what: String,
    },
    /// No starts.
    #[error("the number of starts must be 1 to {most}, but is {starts}")]
    Starts {
        /// What was asked for.
        starts: usize,
        /// The most there can be.
        most: usize,
    },
    /// Training went nowhere.
    #[error(
        "{text} does not fit probe {probe}: its loss is still 10^{log10_loss:.2} after {steps} steps ({reason}); \
         choose another --schedule or --rate"
    )]
    NotFitted {
        /// The optimiser.
        text: String,
        /// On which problem.
        probe: String,
        /// log₁₀ of the loss it ended with.
        log10_loss: f64,
        /// Steps made.
        steps: u64,
        /// Why it ended.
        reason: String,
    },
    /// Data that ought to be separable are not.
    #[error("probe {probe} has no margin in {norm}; it cannot tell geometries apart")]
    NoMargin {
        /// The probe.
        probe: String,
        /// The norm.
        norm: String,
    },
    /// A run could not be made.
    #[error(transparent)]
    Run(#[from] crate::experiments::RunError),
    /// The judge could not answer.
    #[error(transparent)]
    Reference(#[from] crate::reference::ReferenceError),
    /// A part was refused.
    #[error(transparent)]
    Part(#[from] Box<crate::Error>),
}

crate::error::pass_through!(FingerprintError:
    crate::data::DataError,
    crate::norms::NormError,
    crate::models::ModelError,
    crate::objective::ObjectiveError,
    crate::driver::DriverError,
    crate::training::TrainingError
);

impl From<RecipeError> for FingerprintError {
    fn from(error: RecipeError) -> Self {
        Self::Run(error.into())
    }
}

/// How a fingerprint is taken.
///
/// | setting | default | purpose | range |
/// |---|---|---|---|
/// | `starts` | 2 | runs per probe: from 0, then from random points near 0 | 1 to 100 |
/// | `schedule` | by the kind of optimiser | step sizes | |
/// | `log10_loss` | by the kind of optimiser | how deep runs are followed | < −1 |
/// | `steps` | by the kind of optimiser | the most steps of a run | |
/// | `geometries` | [`Candidate::usual`] | norms that are compared | |
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Runs per probe.
    pub starts: usize,
    /// Step sizes, where the default should not be used.
    pub schedule: Option<ScheduleSpec>,
    /// log₁₀ of the loss at which runs end, where the default should not be used.
    pub log10_loss: Option<f64>,
    /// The most steps of a run, where the default should not be used.
    pub steps: Option<u64>,
    /// The norms that are compared.
    pub geometries: Vec<Candidate>,
}

impl Default for Settings {
    fn default() -> Self {
        let geometries = Candidate::usual();
        Self { starts: 2, schedule: None, log10_loss: None, steps: None, geometries }
    }
}

impl Settings {
    /// Adds a norm to the candidates, once.
    pub fn with_norm(mut self, norm: NormSpec) -> Self {
        if !self.geometries.iter().any(|geometry| geometry.norm == norm) {
            self.geometries.push(Candidate::new(norm));
        }
        self
    }
}

/// What was found out about an optimiser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The optimiser, as it was written.
    pub optimiser: String,
    /// The candidates; everything listed by geometry is in this order.
    pub geometries: Vec<Candidate>,
    /// How it was run.
    pub pace: Pace,
    /// Every run with what was read off it.
    pub runs: Vec<ProbeRun>,
    /// Stretches of the loss with one answer each, from separation to the end.
    pub phases: Vec<Phase>,
    /// The smallest shares of all runs, at the levels of the loss that all of them reached and at their ends.
    pub course: Vec<Moment>,
    /// The dense network.
    pub network: NetworkEvidence,
    /// The convolutional network.
    #[serde(default)]
    pub convolution: NetworkEvidence,
    /// The answer as a sentence.
    pub answer: String,
}

impl Fingerprint {
    /// The first phase with an answer; nothing if there is none.
    pub fn early(&self) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.geometry.is_some())
    }

    /// The last phase.
    pub fn late(&self) -> Option<&Phase> {
        self.phases.last()
    }

    /// The phases that speak for the optimiser: early and late where they differ, late alone where they do not.
    pub fn spoken(&self) -> Vec<&Phase> {
        let early = self.early().filter(|early| self.late().is_some_and(|late| late.geometry != early.geometry));
        early.into_iter().chain(self.late()).collect()
    }

    /// The table of a phase: what a row is of, and its numbers by candidate. Of a probe, the smallest shares over
    /// starts; of the networks, margins relative to the best reference, and alignments.
    pub fn table(&self, phase: &Phase) -> Vec<(String, Vec<f64>)> {
        let at_end = self.late() == Some(phase);
        let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
        for run in &self.runs {
            let reached = |reading: &&Reading| reading.log10_loss <= phase.clearest + 1e-9;
            let reading = if at_end { run.readings.last() } else { run.readings.iter().find(reached) };
            let Some(reading) = reading else { continue };
            match rows.iter_mut().find(|(name, _)| *name == run.probe) {
                Some((_, shares)) => {
                    shares.iter_mut().zip(&reading.shares).for_each(|(least, share)| *least = least.min(*share));
                }
                None => rows.push((run.probe.clone(), reading.shares.clone())),
            }
        }
        for (name, evidence) in [("network", &self.network), ("convolution", &self.convolution)] {
            if let Some(reading) = evidence.at(if at_end { f64::NEG_INFINITY } else { phase.clearest }) {
                rows.push((format!("{name}, best reference = 1"), reading.relative.clone()));
                rows.push((format!("{name}, alignment"), reading.alignment.clone()));
            }
        }
        rows
    }
}

/// The most starts.
const MOST_STARTS: usize = 100;

/// Takes the fingerprint of an optimiser, written as recipes and overrides write it: `gradient`, `adam(epsilon=0)`,
/// `steepest(norm=lp:3)`, `mirror(potential=smoothed(p=3, lambda=0))`.
///
/// ```
/// use limitpoint::fingerprint::{Settings, fingerprint};
/// let found = fingerprint("sign", &Settings { starts: 1, ..Settings::default() })?;
/// assert_eq!(found.late().and_then(|phase| phase.geometry.as_deref()), Some("linf"));
/// # Ok::<(), limitpoint::fingerprint::FingerprintError>(())
/// ```
pub fn fingerprint(optimiser: &str, settings: &Settings) -> Result<Fingerprint, FingerprintError> {
    take(optimiser, optimiser, optimiser, settings)
}

/// The fingerprint of an optimiser, or of every part of a composition: the linear problems have one block, which has to
/// be of one part, so that each part has a geometry of its own there. Their network is that of the whole composition.
///
/// ```
/// use limitpoint::fingerprint::{Settings, fingerprint_all};
/// let settings = Settings { starts: 1, log10_loss: Some(-100.0), ..Settings::default() };
/// let found = fingerprint_all("blocks(first=sign, rest=gradient)", &settings)?;
/// let geometries: Vec<_> = found.iter().map(|part| part.late().and_then(|phase| phase.geometry.as_deref())).collect();
/// assert_eq!(geometries, [Some("linf"), Some("l2")]);
/// assert!(found[0].answer.starts_with("first of blocks(first=sign, rest=gradient) maximises the ℓ∞ margin"));
/// # Ok::<(), limitpoint::fingerprint::FingerprintError>(())
/// ```
pub fn fingerprint_all(optimiser: &str, settings: &Settings) -> Result<Vec<Fingerprint>, FingerprintError> {
    let OptimiserSpec::Blocks(parts) = battery::optimiser(optimiser)? else {
        return Ok(vec![fingerprint(optimiser, settings)?]);
    };
    let one = |(blocks, part): (&String, &OptimiserSpec)| {
        take(&format!("{blocks} of {optimiser}"), &battery::written(part)?, optimiser, settings)
    };
    parts.iter().map(one).collect()
}

/// Takes the fingerprint of what is called `name`: of `linear` on the linear problems, of `whole` on the networks.
fn take(name: &str, linear: &str, whole: &str, settings: &Settings) -> Result<Fingerprint, FingerprintError> {
    if settings.starts == 0 || settings.starts > MOST_STARTS {
        return Err(FingerprintError::Starts { starts: settings.starts, most: MOST_STARTS });
    }
    let pace = Pace::of(&battery::optimiser(linear)?, settings);
    let network_pace = Pace::of(&battery::optimiser(whole)?, settings);
    let geometries = settings.geometries.clone();
    let mut jobs = Vec::new();
    for (probe, optima) in battery(&geometries)? {
        for start in 0..settings.starts as u64 {
            jobs.push((probe, optima.clone(), start));
        }
    }
    let (runs, networks) = rayon::join(
        || {
            jobs.into_par_iter()
                .map(|(probe, optima, start)| reading::run(linear, &geometries, probe, &optima, start, &pace))
                .collect::<Result<Vec<ProbeRun>, FingerprintError>>()
        },
        || {
            let [dense, images] = network::EXPERIMENTS;
            let evidence = |experiment| network::evidence(experiment, whole, &geometries, &network_pace);
            rayon::join(|| evidence(dense), || evidence(images))
        },
    );
    let (runs, network, convolution) = (runs?, networks.0?, networks.1?);
    let (phases, course) = answer::phases(&geometries, &runs);
    let answer = answer::sentence(name, &geometries, &phases);
    let optimiser = name.to_owned();
    Ok(Fingerprint { optimiser, geometries, pace, runs, phases, course, network, convolution, answer })
}
