//! Pairs of digits, and what is seen of networks that learn to tell them apart.

use std::f64::consts::LN_10;
use std::sync::Arc;

use rayon::prelude::*;

use limitpoint::data::{DataSpec, DataSplit, Dataset, Digits, ImageFolder};
use limitpoint::experiments::Task;
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;

use crate::{ClaimError, Columns, Lab, Moments, Outcome, Series, measures};

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
    pub fn bind(&self, mut task: Task) -> (Task, &Dataset) {
        task.recipe.data = self.spec.clone();
        (task, &self.split.train)
    }
}

/// A run on one draw of images.
pub(super) struct Run<Who> {
    pub pair: [usize; 2],
    pub seed: u64,
    pub who: Who,
    pub course: Series,
}

/// Runs on several draws of images.
pub(super) struct Runs<Who> {
    pub all: Vec<Run<Who>>,
    /// Which images were used.
    pub images: String,
}

impl<Who: Send> Runs<Who> {
    /// The runs of a plan: pair, seed, who trains and its task. Besides [`measures::basics`] they have accuracies and
    /// the margin and soft margin by each norm, under these names.
    pub fn make(
        lab: &Lab,
        plan: Vec<([usize; 2], u64, Who, Task)>,
        norms: &[([&'static str; 2], NormSpec)],
        per_decade: u32,
    ) -> Result<Self, ClaimError> {
        let mut drawn = Vec::new();
        for (pair, seed, who, task) in plan {
            drawn.push((pair, seed, who, task, images(lab, pair, seed)?));
        }
        let name = drawn.last().map_or(String::new(), |last| last.4.name.clone());
        let follow = |(pair, seed, who, task, images): (_, _, _, _, Arc<Images>)| {
            let mut columns: Vec<Columns> = vec![measures::basics(), measures::accuracy(), measures::test_accuracy()];
            columns.extend(norms.iter().map(|(names, norm)| measures::margins(norm.clone()).named(*names)));
            let (task, _) = images.bind(task);
            let course = lab.series_on(&task, &images.split, Moments::per_decade(per_decade), columns)?;
            Ok(Run { pair, seed, who, course })
        };
        Ok(Self { all: drawn.into_par_iter().map(follow).collect::<Result<_, ClaimError>>()?, images: name })
    }

    /// That none ended in trouble.
    pub fn check_ends(&self, outcome: &mut Outcome) {
        let trouble = self.all.iter().filter(|run| !run.course.end.reason.is_healthy()).count();
        outcome.at_most(format!("runs that ended in trouble, of {}", self.all.len()), trouble as f64, 0.0);
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
