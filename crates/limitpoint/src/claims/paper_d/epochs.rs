//! Ten classes of digits by stochastic gradient descent, followed epoch by epoch.

use std::f64::consts::LN_10;

use crate::claims::{ClaimError, Lab};
use crate::data::{DataSplit, Dataset};
use crate::driver::{Advance, Batching, Process, ProcessState};
use crate::experiments::Task;
use crate::linalg::norm2;
use crate::objective::Objective;
use crate::observers::{Spacing, StopReason};
use crate::params::ParamLayout;
use crate::schedules::ScheduleState;

/// What was seen after an accepted epoch.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub epoch: u64,
    /// log₁₀ of the mean loss.
    pub decades: f64,
    /// Share of the training images that are right.
    pub accuracy: f64,
    /// The same for test images.
    pub test_accuracy: f64,
    /// min s over the product of the layers' ℓ2 norms; of biases only the first layer's count.
    pub margin: f64,
    /// min s over ‖θ‖², with the weights that count above.
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

/// Norms of the layers with degree one each: weights, and biases of the first layer.
fn layer_sizes(params: &[f64], layout: &ParamLayout) -> Vec<f64> {
    let mut sizes: Vec<f64> = Vec::new();
    for block in layout.blocks() {
        let size = norm2(&params[block.range()]);
        if block.is_weight() {
            sizes.push(size);
        } else if sizes.len() == 1 {
            sizes[0] = sizes[0].hypot(size);
        }
    }
    sizes
}

/// What evaluates a course on its way.
struct Eyes {
    train: Objective,
    test: Option<Objective>,
}

impl Eyes {
    fn look(&mut self, process: &dyn Process, epoch: u64, examples: usize) -> Sample {
        let params = process.params();
        self.train.forward(params);
        let least = self.train.margins().iter().copied().fold(f64::INFINITY, crate::claims::arithmetic::smaller);
        let sizes = layer_sizes(params, self.train.layout());
        let test_accuracy = self.test.as_mut().map_or(f64::NAN, |test| {
            test.forward(params);
            test.accuracy()
        });
        let degree = sizes.len() as f64;
        Sample {
            epoch,
            decades: (process.log_loss() - (examples as f64).ln()) / LN_10,
            accuracy: self.train.accuracy(),
            test_accuracy,
            margin: least / sizes.iter().product::<f64>(),
            plain_margin: least / norm2(&sizes).powf(degree),
            log_rate: log_rate(process) / LN_10,
        }
    }
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
        let train: &Dataset = &split.train;
        let mut process = lab.start_on(task, train)?;
        let examples = train.len();
        let per_epoch = match task.recipe.batching {
            Batching::Full => 1,
            Batching::Mini { size } => examples.div_ceil(size) as u64,
        };
        let mut eyes = Eyes {
            train: lab.objective(task, train)?,
            test: split.test.as_ref().map(|data| lab.objective(task, data)).transpose()?,
        };
        let mut course = Self {
            what: what.to_owned(),
            samples: vec![eyes.look(&*process, 0, examples)],
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
        let mut start = process.params().to_vec();
        let mut loss = process.log_loss();
        while course.accepted < plan.epochs && decades(loss, examples) > plan.target {
            let rate = log_rate(&*process);
            for _ in 0..per_epoch {
                if let Advance::Ended(reason) = process.advance()? {
                    course.ended = Some(reason);
                    return Ok(course);
                }
            }
            let accepted = process.step() == (course.accepted + 1) * per_epoch;
            let expected = rate + if accepted { grow } else { shrink };
            if rate.is_finite() {
                let error = (log_rate(&*process) - expected).abs();
                course.rate_error = crate::claims::arithmetic::larger(course.rate_error, error);
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
            let now = decades(loss, examples);
            // levels are kept in their order
            while let Some(level) = plan.keep.get(course.kept.len()).filter(|level| now <= **level) {
                course.kept.push((*level, start.clone()));
                course.see(&mut eyes, &*process, examples);
            }
            if spacing.includes(course.accepted) {
                course.see(&mut eyes, &*process, examples);
            }
        }
        course.see(&mut eyes, &*process, examples);
        Ok(course)
    }

    /// Adds a sample, unless this epoch was seen already.
    fn see(&mut self, eyes: &mut Eyes, process: &dyn Process, examples: usize) {
        if self.samples.last().is_none_or(|last| last.epoch < self.accepted) {
            self.samples.push(eyes.look(process, self.accepted, examples));
        }
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
        self.samples
            .iter()
            .filter(|sample| sample.epoch > 0)
            .map(|sample| [sample.epoch as f64, value(sample)])
            .collect()
    }
}

/// log₁₀ of the mean loss.
fn decades(log_sum: f64, examples: usize) -> f64 {
    (log_sum - (examples as f64).ln()) / LN_10
}
