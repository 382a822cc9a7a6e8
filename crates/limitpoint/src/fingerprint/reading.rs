//! One run on one probe, read off at levels of the loss.

use std::f64::consts::LN_10;

use serde::{Deserialize, Serialize};

use super::battery::{Optima, ProbeSpec, task_from, workers};
use super::pace::Pace;
use super::{Candidate, FingerprintError};
use crate::driver::{Advance, Process};
use crate::norms::Norm;
use crate::objective::Objective;
use crate::training::Training;

/// What was read off a run at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// log₁₀ L.
    pub log10_loss: f64,
    /// Steps so far.
    pub steps: u64,
    /// ρ by candidate: the margin in its norm, relative to the judge's optimum.
    pub shares: Vec<f64>,
    /// What ρ is at least, at this loss, along the steepest flow of the candidate from the same start.
    pub floors: Vec<f64>,
}

impl Reading {
    /// ρ relative to the least that the candidate's own steepest flow has reached at this loss.
    ///
    /// Along the steepest flow in a norm, d‖θ‖ ≤ ‖∇L‖_* dt and d ln(1/L) = ‖∇L‖_*²/L dt with ‖∇L‖_*/L ≥ γ*, so that
    ///
    /// ```text
    /// γ*‖θ‖ ≤ γ*‖θ₀‖ + ln(L₀/L),   min yᵢ⟨θ, xᵢ⟩ ≥ ln(1/L)   and hence   ρ ≥ ln(1/L) / (ln(L₀/L) + γ*‖θ₀‖)
    /// ```
    ///
    /// for the exponential loss: at a moderate loss no optimiser can have the whole margin yet. A Theorem 3.1, B Lemma
    /// 10.
    pub fn attained(&self, candidate: usize) -> f64 {
        self.shares[candidate] / self.floors[candidate]
    }
}

/// A run on a probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeRun {
    /// The probe.
    pub probe: String,
    /// 0 starts at the origin, others at random points.
    pub start: u64,
    /// Steps made.
    pub steps: u64,
    /// Why it ended.
    pub reason: String,
    /// At every level of the loss that was reached, in order; the end comes last.
    pub readings: Vec<Reading>,
    /// By candidate, how far its nearest rival lies below 1 at its maximiser; 0 where it has no rival.
    pub leads: Vec<f64>,
    /// By candidate, the rivals it can be told from here.
    pub rivals: Vec<Vec<usize>>,
}

/// The first level: L = 10⁻¹, where every example is right.
pub(super) const FIRST_LEVEL: f64 = 1.0;
/// Levels per factor of ten of ln(1/L).
const PER_DECADE: f64 = 8.0;

/// −log₁₀ L of a level.
pub(super) fn level(number: usize) -> f64 {
    FIRST_LEVEL * 10f64.powf(number as f64 / PER_DECADE)
}

/// How a walk ended.
pub(super) struct Walked {
    pub steps: u64,
    pub log10_loss: f64,
    pub reason: String,
}

impl Walked {
    /// Refuses a walk that ended above the first level: nothing can be read off it.
    pub(super) fn must_fit(&self, optimiser: &str, probe: &str) -> Result<(), FingerprintError> {
        if self.log10_loss <= -FIRST_LEVEL {
            return Ok(());
        }
        let (log10_loss, steps, reason) = (self.log10_loss, self.steps, self.reason.clone());
        Err(FingerprintError::NotFitted { text: optimiser.into(), probe: probe.into(), log10_loss, steps, reason })
    }
}

/// Moves a run through the stages of its pace and shows it, after the steps that cross a level and at the end.
pub(super) fn walk(
    training: &Training,
    pace: &Pace,
    look: &mut dyn FnMut(&mut dyn Process) -> Result<(), FingerprintError>,
) -> Result<Walked, FingerprintError> {
    let (mut next, mut state, mut walked) = (0, None, None);
    for stage in &pace.stages {
        let mut running = training.clone().schedule(stage.schedule.clone())?.start()?;
        let process = running.process();
        if let Some(state) = &state {
            process.resume(state)?;
        }
        let begin = process.step();
        let mut reason = format!("log10 L reached {}", stage.log10_loss);
        let (mut goes_on, mut shown) = (true, false);
        while process.log_loss() > stage.log10_loss * LN_10 {
            if process.step() - begin >= stage.steps {
                (reason, goes_on) = (format!("{} steps made", stage.steps), false);
                break;
            }
            if let Advance::Ended(why) = process.advance()? {
                (reason, goes_on) = (why.to_string(), false);
                break;
            }
            let depth = -process.log_loss() / LN_10;
            shown = depth >= level(next);
            if shown {
                look(process)?;
                // several levels may be crossed in a step
                next = (next..).find(|number| level(*number) > depth).unwrap_or(next + 1);
            }
        }
        if !shown {
            look(process)?;
        }
        walked = Some(Walked { steps: process.step(), log10_loss: process.log_loss() / LN_10, reason });
        if !goes_on {
            break;
        }
        state = Some(process.save());
    }
    Ok(walked.unwrap_or(Walked { steps: 0, log10_loss: f64::NAN, reason: "no stage".to_owned() }))
}

/// Runs an optimiser on a probe.
pub(super) fn run(
    optimiser: &str,
    geometries: &[Candidate],
    probe: ProbeSpec,
    optima: &Optima,
    start: u64,
    pace: &Pace,
) -> Result<ProbeRun, FingerprintError> {
    let training = task_from(probe, optimiser, start)?.training()?;
    let mut reader = Reader::new(&training, geometries, optima)?;
    let mut readings = Vec::new();
    let walked = walk(&training, pace, &mut |process: &mut dyn Process| {
        let (log_loss, steps) = (process.log_loss(), process.step());
        readings.push(reader.read(process.params(), Some(log_loss), steps));
        Ok(())
    })?;
    walked.must_fit(optimiser, probe.name)?;
    Ok(ProbeRun::new(probe, optima, start, (walked.steps, walked.reason), readings))
}

impl ProbeRun {
    /// A run with its readings: steps made, and why it ended.
    pub(super) fn new(
        probe: ProbeSpec,
        optima: &Optima,
        start: u64,
        (steps, reason): (u64, String),
        readings: Vec<Reading>,
    ) -> Self {
        let all = 0..optima.margins.len();
        Self {
            probe: probe.name.to_owned(),
            start,
            steps,
            reason,
            readings,
            leads: all.clone().map(|a| optima.lead(a)).collect(),
            rivals: all.clone().map(|a| all.clone().filter(|b| optima.rivals(a, *b)).collect()).collect(),
        }
    }
}

/// Reads points of a run off.
pub(super) struct Reader<'a> {
    at: Objective,
    norms: Vec<Box<dyn Norm>>,
    optima: &'a Optima,
    first_log_loss: f64,
    lengths: Vec<f64>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        training: &Training,
        geometries: &[Candidate],
        optima: &'a Optima,
    ) -> Result<Self, FingerprintError> {
        let mut at = training.objective()?;
        let layout = at.layout().clone();
        let origin = training.setup().initial(&layout);
        let first_log_loss = at.forward(&origin).log_loss();
        let mut norms = workers(geometries, &layout)?;
        let lengths = norms.iter_mut().map(|norm| norm.value(&origin)).collect();
        Ok(Self { at, norms, optima, first_log_loss, lengths })
    }

    /// What is read off a point; its loss is computed where it is not known.
    pub(super) fn read(&mut self, params: &[f64], log_loss: Option<f64>, steps: u64) -> Reading {
        let found = self.at.forward(params).log_loss();
        let (log_loss, first) = (log_loss.unwrap_or(found), self.first_log_loss);
        let smaller = |least: f64, q: &f64| if *q < least || q.is_nan() { *q } else { least };
        let least = self.at.margins().iter().fold(f64::INFINITY, smaller);
        let share = |(norm, optimum): (&mut Box<dyn Norm>, &f64)| least / (norm.value(params) * optimum);
        let floor = |(length, optimum): (&f64, &f64)| -log_loss / (first - log_loss + optimum * length);
        Reading {
            log10_loss: log_loss / LN_10,
            steps,
            shares: self.norms.iter_mut().zip(&self.optima.margins).map(share).collect(),
            floors: self.lengths.iter().zip(&self.optima.margins).map(floor).collect(),
        }
    }
}
