//! Ten classes of digits by stochastic gradient descent, followed epoch by epoch: the state of the loss-based rate is in no
//! snapshot, so that this is stepped by hand.

use std::f64::consts::LN_10;

use crate::arithmetic::{larger, smaller};
use crate::measures::layer_sizes;
use crate::{ClaimError, Lab};
use limitpoint::data::DataSplit;
use limitpoint::driver::{Advance, Batching, Process, ProcessState};
use limitpoint::experiments::Task;
use limitpoint::linalg::norm2;
use limitpoint::objective::Objective;
use limitpoint::observers::{Spacing, StopReason};
use limitpoint::schedules::ScheduleState;

/// What was seen after an accepted epoch.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub epoch: u64,
    /// log₁₀ of the mean loss.
    pub decades: f64,
    /// Shares of the training and of the test images that are right.
    pub accuracy: f64,
    pub test_accuracy: f64,
    /// min s, the smallest margin.
    pub smallest: f64,
    /// min s over the product of the layers' ℓ2 norms; of biases only the first layer's count.
    pub margin: f64,
    /// min s over ‖θ‖^L, with the weights that count above; L is the number of layers with weights.
    pub plain_margin: f64,
    /// log₁₀ α of the loss-based rate; NaN for others.
    pub log_rate: f64,
}

/// A run, epoch by epoch.
#[derive(Debug, Clone)]
pub(super) struct Course {
    pub what: String,
    pub samples: Vec<Sample>,
    /// The task, to build its model again.
    pub task: Task,
    /// Training and test images.
    pub split: DataSplit,
    /// Weights after the first epoch with a mean loss below 10^target, by target.
    pub kept: Vec<(f64, Vec<f64>)>,
    /// Epochs that were accepted and done again.
    pub accepted: u64,
    pub rejected: u64,
    /// Accepted epochs whose loss did not fall, and rejected ones that did not end where they began.
    pub risen: u64,
    pub displaced: u64,
    /// Largest difference of ln α from what the rule says.
    pub rate_error: f64,
    /// Why it ended, if not by the loss or the number of epochs.
    pub ended: Option<StopReason>,
}

/// When to stop and what to keep.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// log₁₀ of the mean loss to stop at.
    pub target: f64,
    /// Most accepted epochs.
    pub epochs: u64,
    /// Losses at which the weights are kept, falling.
    pub keep: Vec<f64>,
}

/// What a process shows after an epoch, on training and test images.
fn look(process: &dyn Process, epoch: u64, decades: f64, (train, test): &mut (Objective, Option<Objective>)) -> Sample {
    let params = process.params();
    train.forward(params);
    let smallest = train.margins().iter().copied().fold(f64::INFINITY, smaller);
    let sizes = layer_sizes(params, train.layout());
    let test_accuracy = test.as_mut().map_or(f64::NAN, |test| {
        test.forward(params);
        test.accuracy()
    });
    let (margin, plain_margin) =
        (smallest / sizes.iter().product::<f64>(), smallest / norm2(&sizes).powf(sizes.len() as f64));
    let (accuracy, log_rate) = (train.accuracy(), log_rate(process) / LN_10);
    Sample { epoch, decades, accuracy, test_accuracy, smallest, margin, plain_margin, log_rate }
}

/// ln α of an adaptive schedule; NaN for others.
fn log_rate(process: &dyn Process) -> f64 {
    match process.save() {
        ProcessState::Descent(state) => match state.schedule {
            ScheduleState::Adaptive { log_alpha, .. } => log_alpha,
            _ => f64::NAN,
        },
        ProcessState::Flow(_) => f64::NAN,
    }
}

impl Course {
    /// Trains a task on these images.
    pub fn follow(lab: &Lab, what: &str, task: &Task, split: &DataSplit, plan: &Plan) -> Result<Self, ClaimError> {
        let mut process = lab.start_on(task, &split.train)?;
        let images = split.train.len();
        let per_epoch = match task.recipe.batching {
            Batching::Full => 1,
            Batching::Mini { size } => images.div_ceil(size) as u64,
        };
        let test = split.test.as_ref().map(|data| lab.objective(task, data)).transpose()?;
        let mut eyes = (lab.objective(task, &split.train)?, test);
        let decades = |process: &dyn Process| (process.log_loss() - (images as f64).ln()) / LN_10;
        let mut course = Self {
            what: what.to_owned(),
            samples: vec![look(&*process, 0, decades(&*process), &mut eyes)],
            task: task.clone(),
            split: split.clone(),
            kept: Vec::new(),
            accepted: 0,
            rejected: 0,
            risen: 0,
            displaced: 0,
            rate_error: 0.0,
            ended: None,
        };
        let spacing = Spacing::Logarithmic { per_decade: 24 };
        let (grow, shrink) = (2f64.ln() / 5.0, -2f64.ln() / 10.0);
        let (mut start, mut loss) = (process.params().to_vec(), process.log_loss());
        let mut going = course.accepted < plan.epochs && decades(&*process) > plan.target;
        while going {
            let rate = log_rate(&*process);
            for _ in 0..per_epoch {
                if let Advance::Ended(reason) = process.advance()? {
                    course.ended = Some(reason);
                    return Ok(course);
                }
            }
            let accepted = process.step() == (course.accepted + 1) * per_epoch;
            if rate.is_finite() {
                let expected = rate + if accepted { grow } else { shrink };
                course.rate_error = larger(course.rate_error, (log_rate(&*process) - expected).abs());
            }
            if !accepted {
                course.rejected += 1;
                course.displaced += u64::from(process.params() != start.as_slice());
                continue;
            }
            course.accepted += 1;
            course.risen += u64::from(rate.is_finite() && process.log_loss() >= loss);
            loss = process.log_loss();
            start.copy_from_slice(process.params());
            let now = decades(&*process);
            // levels are kept in their order
            let before = course.kept.len();
            while let Some(level) = plan.keep.get(course.kept.len()).filter(|level| now <= **level) {
                course.kept.push((*level, start.clone()));
            }
            going = course.accepted < plan.epochs && now > plan.target;
            if course.kept.len() > before || spacing.includes(course.accepted) || !going {
                course.samples.push(look(&*process, course.accepted, now, &mut eyes));
            }
        }
        Ok(course)
    }

    /// What was seen from the epoch on after which every training image stayed right.
    pub fn fitted(&self) -> &[Sample] {
        let wrong = self.samples.iter().rposition(|sample| sample.accuracy < 1.0);
        &self.samples[wrong.map_or(0, |last| last + 1)..]
    }

    /// The last sample seen at or before this epoch.
    pub fn at_epoch(&self, epoch: u64) -> Option<&Sample> {
        self.samples.iter().rev().find(|sample| sample.epoch <= epoch)
    }

    /// The first sample at or below this loss.
    pub fn at_loss(&self, decades: f64) -> Option<&Sample> {
        self.samples.iter().find(|sample| sample.decades <= decades)
    }

    /// A curve over epochs, from the first one on.
    pub fn by_epoch(&self, value: impl Fn(&Sample) -> f64) -> Vec<[f64; 2]> {
        let later = self.samples.iter().filter(|sample| sample.epoch > 0);
        later.map(|sample| [sample.epoch as f64, value(sample)]).collect()
    }
}
