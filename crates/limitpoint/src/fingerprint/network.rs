//! The probes without a known optimum: a homogeneous dense network and a convolutional one.

use std::f64::consts::LN_10;

use serde::{Deserialize, Serialize};

use super::battery::{task, workers};
use super::pace::Pace;
use super::reading::{Walked, walk};
use super::{Candidate, FingerprintError, Settings};
use crate::diagnostics::kkt_measure;
use crate::driver::Process;
use crate::optimisers::OptimiserSpec;

/// The built-in experiments: a dense network, and one of images.
pub(super) const EXPERIMENTS: [&str; 2] = ["fingerprint-network", "fingerprint-convolution"];

/// Steepest descents that the margins of others are compared with.
const REFERENCES: [&str; 4] = ["coordinate", "gradient", "sign", "spectral"];

/// The largest change of a margin in a step: alignment is that of the last gradient, which larger steps shake.
const FINEST: f64 = 0.05;
/// Where runs end.
const DEPTH: f64 = -100.0;

/// A network at one moment; lists by candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkReading {
    /// log₁₀ L.
    pub log10_loss: f64,
    /// min qᵢ/‖θ‖^L, relative to the largest that a reference reached by the same loss; may exceed 1.
    pub relative: Vec<f64>,
    /// β = ⟨θ, −∇L⟩/(‖θ‖‖∇L‖_*) ≤ 1; 1 at KKT points of the norm's margin problem.
    pub alignment: Vec<f64>,
}

/// What a network says. Its limits are stationary points, of which there are many, so that this is evidence beside the
/// linear probes and no part of their answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NetworkEvidence {
    /// The references.
    pub references: Vec<String>,
    /// Readings at levels of the loss that the references reached too.
    pub readings: Vec<NetworkReading>,
    /// Why there are none, where the optimiser does not train networks, or does not fit this one.
    pub trouble: Option<String>,
}

impl NetworkEvidence {
    /// The last reading at a loss of at least 10 to this power, or the first one.
    pub fn at(&self, log10_loss: f64) -> Option<&NetworkReading> {
        let above = |reading: &&NetworkReading| reading.log10_loss >= log10_loss - 0.5;
        self.readings.iter().rev().find(above).or(self.readings.first())
    }
}

/// log₁₀ L, margins and alignments by candidate.
type Moment = (f64, Vec<f64>, Vec<f64>);

/// Runs the optimiser and the references from one start. An optimiser that stumbles over a network, as AdaBoost does
/// over features it cannot weigh, still has the fingerprint of its linear runs.
pub(super) fn evidence(
    experiment: &str,
    optimiser: &str,
    geometries: &[Candidate],
    pace: &Pace,
) -> Result<NetworkEvidence, FingerprintError> {
    let names = REFERENCES.map(str::to_owned).to_vec();
    let own = follow(experiment, optimiser, geometries, &pace.finer(FINEST, DEPTH)).and_then(|(own, walked)| {
        walked.must_fit(optimiser, experiment.trim_start_matches("fingerprint-"))?;
        Ok(own)
    });
    let own = match own {
        Ok(own) => own,
        Err(error) => {
            return Ok(NetworkEvidence { references: names, readings: Vec::new(), trouble: Some(error.to_string()) });
        }
    };
    let mut references = Vec::new();
    for name in REFERENCES {
        let spec: OptimiserSpec = super::battery::optimiser(name)?;
        let depth = own.last().map(|moment| moment.0);
        let settings = Settings { log10_loss: depth, ..Settings::default() };
        references.push(follow(experiment, name, geometries, &Pace::of(&spec, &settings).finer(FINEST, DEPTH))?.0);
    }
    let readings = own.into_iter().filter_map(|(log10_loss, margins, alignment)| {
        // of every reference, its first moment at this loss or below; their grid of levels is the same
        let met: Option<Vec<&Moment>> =
            references.iter().map(|run| run.iter().find(|moment| moment.0 <= log10_loss + 0.5)).collect();
        let met = met?;
        let best = |a: usize| met.iter().map(|moment| moment.1[a]).fold(f64::NEG_INFINITY, f64::max);
        let relative = margins.iter().enumerate().map(|(a, margin)| margin / best(a)).collect();
        Some(NetworkReading { log10_loss, relative, alignment })
    });
    Ok(NetworkEvidence { references: names, readings: readings.collect(), trouble: None })
}

fn follow(
    experiment: &str,
    optimiser: &str,
    geometries: &[Candidate],
    pace: &Pace,
) -> Result<(Vec<Moment>, Walked), FingerprintError> {
    let training = task(experiment, optimiser)?.training()?;
    let layout = training.objective()?.layout().clone();
    let mut norms = workers(geometries, &layout)?;
    let mut moments: Vec<Moment> = Vec::new();
    let walked = walk(&training, pace, &mut |process: &mut dyn Process| {
        process.show(&mut |snapshot| {
            let point = &snapshot.point;
            let measures: Vec<_> = norms.iter_mut().map(|norm| kkt_measure(point, &mut **norm)).collect();
            // ‖θ̃‖² = (‖θ‖/q^{1/L})², so that the margin is its power −L/2
            let margins = measures.iter().map(|measure| measure.objective.powf(-0.5 * point.degree())).collect();
            let alignment = measures.iter().map(|measure| measure.alignment).collect();
            moments.push((point.log_loss / LN_10, margins, alignment));
        });
        Ok(())
    })?;
    Ok((moments, walked))
}
