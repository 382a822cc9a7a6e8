//! The runs behind the claims about training on digits, by stochastic gradient descent and epoch by epoch: the state of the
//! loss-based rate is in no snapshot, so that this is stepped by hand.

use std::f64::consts::LN_10;
use std::ops::RangeFrom;
use std::sync::Arc;

use rayon::prelude::*;

use crate::arithmetic::{larger, smaller};
use crate::{ClaimError, Lab, Scale};
use limitpoint::data::DataSplit;
use limitpoint::driver::{Advance, Batching, Process, ProcessState};
use limitpoint::experiments::Task;
use limitpoint::linalg::norm2;
use limitpoint::objective::Objective;
use limitpoint::observers::Spacing;
use limitpoint::params::ParamLayout;
use limitpoint::schedules::ScheduleState;

/// log₁₀ of the mean losses of Table 1.
pub(super) const LEVELS: [f64; 5] = [-10.0, -15.0, -20.0, -120.0, -800.0];

/// Those, and the losses on the way from the first fit to them.
pub(super) const KEPT: [f64; 8] = [-2.0, -3.0, -5.0, LEVELS[0], LEVELS[1], LEVELS[2], LEVELS[3], LEVELS[4]];

/// Places of the runs: the loss-based rate and a constant one with biases in the first layer, then with biases
/// everywhere; the others are shorter runs with the loss-based rate from other starts.
pub(super) const ADAPTED: usize = 0;
pub(super) const CONSTANT: usize = 1;
pub(super) const ADAPTED_BIASED: usize = 2;
pub(super) const CONSTANT_BIASED: usize = 3;
pub(super) const OTHERS: RangeFrom<usize> = 4..;

/// Dense layers, or convolutions as in the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    Dense,
    Convolutional,
}

/// A thousand images of MNIST and 128 hidden units: a loss of 10^-800 within minutes, where all images and 1024 units take days
/// and three thousand with 256 more than an hour.
const PART: [&str; 4] =
    ["data.mnist.count=1000", "data.mnist.test-count=2000", "data.mnist.balanced=true", "model.network.widths=[128]"];

/// All embedded digits but those for testing, and twice the hidden units.
const LARGER: [&str; 2] = [MORE, "model.network.widths=[128]"];

/// All embedded digits but those for testing.
const MORE: &str = "data.digits.count=1300";

/// The runs, made once. MNIST where it is, from full scale on: a part of it; for the dense network at the paper's scale
/// all of it, its epochs and its ten runs. The embedded digits otherwise. The convolutional network is that of the paper
/// with a quarter of its channels and a sixteenth of its hidden units.
pub(super) fn courses(lab: &Lab, network: Network) -> Result<Arc<Vec<Course>>, ClaimError> {
    let convolutional = "a quarter of the channels, 64 hidden units and a part of the images";
    let (name, all, instead) = match network {
        Network::Dense => ("", "model.network.biases=all", "a fully connected network with one hidden layer"),
        Network::Convolutional => (", convolutions", "model.image.biases=all", convolutional),
    };
    lab.once(&format!("ten digits{name}"), || {
        let paper = lab.scale() == Scale::Paper;
        let folder = if lab.scale() == Scale::Quick { None } else { lab.mnist() };
        if paper {
            lab.instead(instead);
        }
        let digits = (lab.scales(3000, 4000, 10_000), 0.1);
        let down_to = |biased: f64| [LEVELS[4], biased, LEVELS[2]];
        // epochs with a constant rate and its value; most epochs with the loss-based rate and log₁₀ of the mean losses
        // at which the first run with it stops, the biased one, and the repetitions; how many there are
        let (experiment, part, (epochs, rate), (most, targets), seeds): (_, &[&str], _, _, _) = match (network, &folder)
        {
            (Network::Dense, Some(_)) if paper => ("d-mnist", &[], (10_000, 0.01), (10_000, [f64::NEG_INFINITY; 3]), 9),
            (Network::Dense, Some(_)) => ("d-mnist", &PART, (1000, 0.05), (20_000, down_to(-120.0)), 2),
            (Network::Dense, None) => {
                let part: &[&str] = lab.scales(&[], &LARGER, &LARGER);
                let targets = down_to(lab.scales(-60.0, -120.0, LEVELS[4]));
                ("d-digits", part, digits, (100_000, targets), lab.scales(3, 9, 9))
            }
            (Network::Convolutional, Some(_)) => {
                ("d-mnist-convolutions", &[], (300, 0.05), (20_000, down_to(-60.0)), 2)
            }
            (Network::Convolutional, None) => {
                // six images of each class in one batch, with which a loss of 10^-800 is a matter of seconds
                let part: &[&str] = lab.scales(&["data.digits.count=60", "batching=full"], &[MORE], &[MORE]);
                ("d-convolutions", part, digits, (100_000, down_to(-120.0)), lab.scales(2, 9, 9))
            }
        };
        let folder = folder.map(|folder| format!("data.mnist.dir=\"{}\"", folder.display()));
        let overrides: Vec<String> = folder.into_iter().chain(part.iter().map(|text| (*text).to_owned())).collect();
        let constant = format!("schedule=constant(rate={rate})");
        let plain: Plan = (f64::NEG_INFINITY, epochs, &[]);
        let [far, biased, repeated] = targets.map(|target| -> Plan { (target, most, &KEPT) });
        let mut wanted = vec![
            ("loss-based rate".to_owned(), Vec::new(), far),
            ("constant rate".to_owned(), vec![constant.clone()], plain),
            ("loss-based rate, biases everywhere".to_owned(), vec![all.to_owned()], biased),
            ("constant rate, biases everywhere".to_owned(), vec![constant, all.to_owned()], plain),
        ];
        let again = |seed: u64| (format!("loss-based rate, seed {seed}"), vec![format!("seeds={seed}")], repeated);
        wanted.extend((1..=seeds).map(again));
        let make = |(what, extra, plan): &(String, Vec<String>, Plan)| -> Result<Course, ClaimError> {
            let task = lab.tasks(experiment, &[overrides.as_slice(), extra].concat())?.remove(0);
            Course::follow(lab, what, task, *plan)
        };
        wanted.par_iter().map(make).collect()
    })
}

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
}

/// log₁₀ of the mean loss to stop at, most accepted epochs, and the losses at which the weights are kept, falling.
type Plan = (f64, u64, &'static [f64]);

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

/// ln α of an adaptive schedule; NaN for others.
fn log_rate(process: &dyn Process) -> f64 {
    let ProcessState::Descent(state) = process.save() else { return f64::NAN };
    if let ScheduleState::Adaptive { log_alpha, .. } = state.schedule { log_alpha } else { f64::NAN }
}

impl Course {
    /// Trains a task until its loss or number of epochs is reached.
    fn follow(lab: &Lab, what: &str, task: Task, (target, epochs, keep): Plan) -> Result<Self, ClaimError> {
        let split = lab.data(&task)?;
        let mut process = lab.start_on(&task, &split.train)?;
        let images = split.train.len();
        let per_epoch = match task.recipe.batching {
            Batching::Full => 1,
            Batching::Mini { size } => images.div_ceil(size) as u64,
        };
        let test = split.test.as_ref().map(|data| lab.objective(&task, data)).transpose()?;
        let mut eyes = (lab.objective(&task, &split.train)?, test);
        let (what, samples, kept, rate_error) = (what.to_owned(), Vec::new(), Vec::new(), 0.0);
        let [accepted, rejected, risen, displaced] = [0; 4];
        let mut course = Self { what, samples, task, split, kept, accepted, rejected, risen, displaced, rate_error };
        let spacing = Spacing::Logarithmic { per_decade: 24 };
        loop {
            let (start, loss) = (process.params().to_vec(), process.log_loss());
            let decades = (loss - (images as f64).ln()) / LN_10;
            let before = course.kept.len();
            // levels are kept in their order
            while let Some(level) = keep.get(course.kept.len()).filter(|level| decades <= **level) {
                course.kept.push((*level, start.clone()));
            }
            let going = course.accepted < epochs && decades > target;
            let first = course.samples.is_empty();
            if first || course.kept.len() > before || spacing.includes(course.accepted) || !going {
                course.samples.push(look(&*process, course.accepted, decades, &mut eyes));
            }
            if !going {
                return Ok(course);
            }
            loop {
                let rate = log_rate(&*process);
                // to the end of the epoch, or back to its beginning: an attempt that loses its numbers ends where that happens
                let accepted = loop {
                    if let Advance::Ended(reason) = process.advance()? {
                        // a run that broke down shows nothing
                        return Err(ClaimError::Ended { what: course.what, reason: reason.to_string() });
                    }
                    match process.step() - course.accepted * per_epoch {
                        0 => break false,
                        made if made == per_epoch => break true,
                        _ => {}
                    }
                };
                if rate.is_finite() {
                    let expected = rate + if accepted { 2f64.ln() / 5.0 } else { -2f64.ln() / 10.0 };
                    course.rate_error = larger(course.rate_error, (log_rate(&*process) - expected).abs());
                }
                if accepted {
                    course.accepted += 1;
                    course.risen += u64::from(rate.is_finite() && process.log_loss() >= loss);
                    break;
                }
                course.rejected += 1;
                course.displaced += u64::from(process.params() != start.as_slice());
            }
        }
    }

    /// What was seen from the epoch on after which every training image stayed right.
    pub fn fitted(&self) -> &[Sample] {
        let wrong = self.samples.iter().rposition(|sample| sample.accuracy < 1.0);
        &self.samples[wrong.map_or(0, |last| last + 1)..]
    }

    /// A curve over epochs, from the first one on.
    pub fn by_epoch(&self, value: impl Fn(&Sample) -> f64) -> Vec<[f64; 2]> {
        let later = self.samples.iter().filter(|sample| sample.epoch > 0);
        later.map(|sample| [sample.epoch as f64, value(sample)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_that_lose_their_numbers_half_way_are_rejected_and_epochs_still_counted() {
        let lab = Lab::new(Scale::Quick);
        // steps so long that the scores overflow within the first epoch, of six batches; then ordinary ones
        let overrides = [
            "data.digits.count=60",
            "model.network.widths=[8]",
            "batching={mini={size=10}}",
            "schedule=loss-based(initial=1e100, shrink=1e102)",
        ];
        let task = lab.tasks("d-digits", &overrides).unwrap().remove(0);
        let course = Course::follow(&lab, "overflow", task, (f64::NEG_INFINITY, 3, &[])).unwrap();
        assert_eq!((course.accepted, course.displaced, course.risen), (3, 0, 0));
        assert!(course.rejected > 0 && course.samples.last().is_some_and(|sample| sample.epoch == 3));
    }
}
