//! Pairs of digits, and what is seen of a network that learns to tell them apart.

use std::f64::consts::LN_10;
use std::sync::Arc;

use crate::claims::{ClaimError, Lab};
use crate::data::{DataSpec, DataSplit, Dataset, Digits, ImageFolder};
use crate::experiments::Task;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::observers::{Spacing, StopReason};

/// Test images that accuracy is estimated on.
const TEST_COUNT: usize = 400;

/// Training and test images of one pair, drawn by one seed.
pub(super) struct Images {
    spec: DataSpec,
    split: DataSplit,
    /// Which images these are.
    pub name: String,
}

impl Images {
    /// A task that trains on these images, and the images.
    pub fn bind(&self, task: &Task) -> (Task, Dataset) {
        let mut task = task.clone();
        task.recipe.data = self.spec.clone();
        (task, self.split.train.clone())
    }
}

/// The images of a pair: MNIST where it is present, the embedded 8×8 digits elsewhere. A hundred at full scale; twenty
/// at quick scale, MNIST's halved to 14×14.
pub(super) fn images(lab: &Lab, pair: [usize; 2], seed: u64) -> Result<Arc<Images>, ClaimError> {
    lab.once(&format!("images {pair:?} {seed}"), || {
        let (count, halve) = lab.choose((20, true), (100, false));
        let (spec, what) = match lab.mnist() {
            Some(dir) => {
                let folder = ImageFolder {
                    dir: Some(dir),
                    pair: Some(pair),
                    count: Some(count),
                    test_count: Some(TEST_COUNT),
                    balanced: true,
                    halve,
                    ..Default::default()
                };
                (DataSpec::Mnist(folder), if halve { "MNIST, halved to 14×14" } else { "MNIST" })
            }
            None => {
                let digits = Digits { classes: Some(pair), count: Some(count), ..Default::default() };
                (DataSpec::Digits(digits), "the embedded 8×8 digits, since MNIST is not here")
            }
        };
        let split = spec.load(&Streams::new(seed))?;
        Ok(Images { spec, split, name: format!("{count} images of {what}") })
    })
}

/// What was seen at one step.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub step: u64,
    pub log_loss: f64,
    /// Share of the training images on the right side.
    pub accuracy: f64,
    /// The same for test images.
    pub test_accuracy: f64,
    /// min qᵢ/‖θ‖^L in every norm asked for.
    pub margins: Vec<f64>,
    /// The soft form in every norm.
    pub soft: Vec<f64>,
}

impl Sample {
    /// log₁₀ L.
    pub fn decades(&self) -> f64 {
        self.log_loss / LN_10
    }
}

/// A run as it was seen.
#[derive(Debug, Clone)]
pub(super) struct Course {
    pub samples: Vec<Sample>,
    pub reason: StopReason,
}

impl Course {
    /// Runs a task on these images and measures margins in these norms, `per_decade` times in a factor ten of steps.
    pub fn follow(
        lab: &Lab,
        task: &Task,
        images: &Images,
        norms: &[NormSpec],
        per_decade: u32,
    ) -> Result<Self, ClaimError> {
        let (task, train) = images.bind(task);
        let layout = lab.objective(&task, &train)?.layout().clone();
        let mut test = images.split.test.as_ref().map(|data| lab.objective(&task, data)).transpose()?;
        let mut workers = norms.iter().map(|norm| norm.build(&layout)).collect::<Result<Vec<_>, _>>()?;
        let spacing = Spacing::Logarithmic { per_decade };
        let mut samples = Vec::new();
        let end = lab.watch_on(
            &task,
            train,
            |step| spacing.includes(step),
            |snapshot| {
                let point = &snapshot.point;
                let (hard, soft) = (point.smallest_margin(), point.soft_minimum());
                let sizes: Vec<f64> =
                    workers.iter_mut().map(|norm| norm.value(point.params).powf(point.degree())).collect();
                let test_accuracy = test.as_mut().map_or(f64::NAN, |test| {
                    test.forward(point.params);
                    test.accuracy()
                });
                samples.push(Sample {
                    step: snapshot.step,
                    log_loss: point.log_loss,
                    accuracy: point.accuracy(),
                    test_accuracy,
                    margins: sizes.iter().map(|size| hard / size).collect(),
                    soft: sizes.iter().map(|size| soft / size).collect(),
                });
            },
        )?;
        Ok(Self { samples, reason: end.run.reason })
    }

    /// What was seen once all training images were on the right side and stayed there.
    pub fn separated(&self) -> &[Sample] {
        let wrong = self.samples.iter().rposition(|sample| sample.accuracy < 1.0);
        &self.samples[wrong.map_or(0, |last| last + 1)..]
    }

    /// The last sample.
    pub fn last(&self) -> Option<&Sample> {
        self.samples.last()
    }

    /// The margin in one of the norms at the end; NaN if nothing was seen.
    pub fn final_margin(&self, norm: usize) -> f64 {
        self.last().map_or(f64::NAN, |sample| sample.margins[norm])
    }

    /// The margin in one of the norms when log₁₀ L first fell to `decades`; NaN if it never did.
    pub fn margin_at(&self, decades: f64, norm: usize) -> f64 {
        self.samples.iter().find(|sample| sample.decades() <= decades).map_or(f64::NAN, |sample| sample.margins[norm])
    }

    /// One of the norms' margins against steps, where both are positive.
    pub fn by_step(&self, norm: usize) -> Vec<[f64; 2]> {
        self.curve(|sample| [sample.step as f64, sample.margins[norm]])
    }

    /// One of the norms' margins against −log₁₀ L, where both are positive.
    pub fn by_loss(&self, norm: usize) -> Vec<[f64; 2]> {
        self.curve(|sample| [-sample.decades(), sample.margins[norm]])
    }

    /// A curve with positive coordinates, as logarithmic axes want it.
    pub fn curve(&self, at: impl Fn(&Sample) -> [f64; 2]) -> Vec<[f64; 2]> {
        self.samples.iter().map(at).filter(|[x, y]| *x > 0.0 && *y > 0.0).collect()
    }
}
