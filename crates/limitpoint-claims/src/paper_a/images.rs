//! Pairs of digits, and what is seen of a network that learns to tell them apart.

use std::f64::consts::LN_10;
use std::sync::Arc;

use limitpoint::data::{DataSpec, DataSplit, Dataset, Digits, ImageFolder};
use limitpoint::experiments::Task;
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;

use crate::{ClaimError, Columns, Lab, Moments, Series, measures};

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

    /// A run on these images: besides [`measures::basics`], accuracies and the margin and soft margin by each norm,
    /// under these names.
    pub fn follow(
        &self,
        lab: &Lab,
        task: &Task,
        norms: &[([&'static str; 2], NormSpec)],
        per_decade: u32,
    ) -> Result<Series, ClaimError> {
        let (task, _) = self.bind(task);
        let mut columns: Vec<Columns> = vec![measures::basics(), measures::accuracy(), measures::test_accuracy()];
        columns.extend(norms.iter().map(|(names, norm)| measures::margins(norm.clone()).named(*names)));
        lab.series_on(&task, &self.split, Moments::per_decade(per_decade), columns)
    }
}

/// The images of a pair: MNIST where it is present, the embedded 8×8 digits elsewhere. A hundred as in the paper; twenty
/// at quick scale, MNIST's halved to 14×14.
pub(super) fn images(lab: &Lab, pair: [usize; 2], seed: u64) -> Result<Arc<Images>, ClaimError> {
    lab.once(&format!("images {pair:?} {seed}"), || {
        let (count, halve) = lab.scales((20, true), (100, false), (100, false));
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

/// What was seen once all training images were on the right side and stayed there.
pub(super) fn separated(run: &Series) -> Series {
    run.after_last("accuracy", |accuracy| accuracy < 1.0)
}

/// A curve with positive coordinates, as logarithmic axes want it.
pub(super) fn positive(points: impl IntoIterator<Item = [f64; 2]>) -> Vec<[f64; 2]> {
    points.into_iter().filter(|[x, y]| *x > 0.0 && *y > 0.0).collect()
}

/// A column against steps.
pub(super) fn by_step(run: &Series, name: &str) -> Vec<[f64; 2]> {
    positive(run.curve("step", name, 1))
}

/// A column against −log₁₀ L.
pub(super) fn by_loss(run: &Series, name: &str) -> Vec<[f64; 2]> {
    positive(run.curve("u", name, 1).into_iter().map(|[u, value]| [u / LN_10, value]))
}
