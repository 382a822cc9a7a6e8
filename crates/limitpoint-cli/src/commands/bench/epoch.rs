//! `limitpoint bench epoch`: an epoch of stochastic gradient descent on images of MNIST's shape, against PyTorch.
//!
//! 60,000 images of 784 pixels, a network 784-1024-10 without biases, cross-entropy, batches of 100 in random order;
//! then the loss of all images, which the loss-based rate asks for after every epoch. Products in 32 bits and the loss
//! in 64 on both sides; limitpoint keeps weights in 64 bits besides. The images are MNIST's where its files are found,
//! in the folder of fetched data or below `LIMITPOINT_SHARED_DATA`. Otherwise they are made up and like MNIST in what
//! limitpoint makes use of: a third of the pixels is zero in all images of a batch, because ink is in a box of 20×20
//! with frayed edges.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use limitpoint::data::{DataSpec, Dataset, ImageFolder, Targets, data_folder};
use limitpoint::driver::{Batching, Descent, Process};
use limitpoint::engine::{Compute, Precision};
use limitpoint::linalg::Matrix;
use limitpoint::losses::LossSpec;
use limitpoint::models::{Initialiser, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::objective::Reduction;
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::schedules::ScheduleSpec;
use limitpoint::training::Setup;
use serde::Serialize;

use super::peer::{Peer, write_numbers};
use super::{Bench, median};
use crate::commands::say;

const EXAMPLES: usize = 60_000;
const FEATURES: usize = 784;
const WIDTH: usize = 1024;
const CLASSES: usize = 10;
const BATCH: usize = 100;
const RATE: f64 = 0.01;

/// Epochs of both engines.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Where the images come from.
    images: &'static str,
    threads: usize,
    /// Seconds an epoch, median over the rounds.
    seconds: f64,
    /// Of products that leave no zeros out.
    gigaflops: f64,
    /// ln of the mean loss after one epoch.
    log_loss: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    torch: Option<TorchLine>,
}

#[derive(Debug, Serialize)]
struct TorchLine {
    seconds: f64,
    /// How many times faster limitpoint is.
    ratio: f64,
    log_loss: f64,
}

/// Where MNIST is, if it is here.
fn mnist_folder() -> Option<PathBuf> {
    let shared = std::env::var_os("LIMITPOINT_SHARED_DATA").map(PathBuf::from);
    data_folder().into_iter().chain(shared).map(|folder| folder.join("mnist")).find(|folder| folder.is_dir())
}

/// Two of MNIST's digits as ±1, if it is here.
pub(super) fn mnist_pair(positive: usize, negative: usize) -> anyhow::Result<Option<Dataset>> {
    let Some(folder) = mnist_folder() else { return Ok(None) };
    let folder = ImageFolder { dir: Some(folder), test_count: Some(0), ..Default::default() };
    let all = DataSpec::Mnist(folder).load(&Streams::new(0))?.train;
    let mut pair = all.pair(positive, negative)?;
    pair.input_shape = vec![pair.dimension()];
    Ok(Some(pair))
}

/// Pixels and labels of MNIST's training images.
fn mnist(folder: PathBuf) -> anyhow::Result<(Vec<u8>, Vec<usize>)> {
    let folder = ImageFolder { dir: Some(folder), test_count: Some(0), ..Default::default() };
    let data = DataSpec::Mnist(folder).load(&Streams::new(0))?.train;
    let inputs = data.dense()?;
    let Targets::Classes { labels, .. } = &data.targets else { bail!("the folder with MNIST has no labelled images") };
    if (inputs.rows, inputs.cols) != (EXAMPLES, FEATURES) {
        bail!(
            "MNIST has {} images of {} pixels here, but {EXAMPLES} of {FEATURES} are wanted",
            inputs.rows,
            inputs.cols
        );
    }
    Ok((inputs.data.iter().map(|pixel| (255.0 * pixel).round() as u8).collect(), labels.clone()))
}

/// Pixels and labels of made-up images: two bright rows for the class among sparse noise, in a box whose edges fray.
fn made_up() -> (Vec<u8>, Vec<usize>) {
    let mut data = Streams::new(0).stream("data");
    let mut pixels = vec![0u8; EXAMPLES * FEATURES];
    let mut labels = Vec::with_capacity(EXAMPLES);
    for image in pixels.chunks_exact_mut(FEATURES) {
        let label = data.below(CLASSES);
        for (i, pixel) in image.iter_mut().enumerate() {
            let (row, column, value) = (i / 28, i % 28, data.uniform());
            let outside = |at: usize| 4usize.saturating_sub(at).max(at.saturating_sub(23));
            // the chance of ink in the box, and one and two pixels outside of it
            let ink = [0.2, 0.05, 0.005].get(outside(row).max(outside(column))).copied().unwrap_or(0.0);
            let bright = ink == 0.2 && (row - 4) / 2 == label && value < 0.7;
            *pixel = if bright {
                200
            } else if value < ink {
                255 - (255.0 * value) as u8
            } else {
                0
            };
        }
        labels.push(label);
    }
    (pixels, labels)
}

/// Pixels as bytes, labels that depend on them, and a He normal start.
struct Task {
    images: &'static str,
    pixels: Vec<u8>,
    labels: Vec<usize>,
    params: Vec<f64>,
}

impl Task {
    fn new() -> anyhow::Result<Self> {
        let mut init = Streams::new(0).stream("init");
        let (images, (pixels, labels)) = match mnist_folder() {
            Some(folder) => ("mnist", mnist(folder)?),
            None => ("made up", made_up()),
        };
        let normal = |fan_in: usize, count: usize, init: &mut limitpoint::numeric::RandomStream| -> Vec<f64> {
            (0..count).map(|_| init.normal() * (2.0 / fan_in as f64).sqrt()).collect()
        };
        let params =
            [normal(FEATURES, WIDTH * FEATURES, &mut init), normal(WIDTH, CLASSES * WIDTH, &mut init)].concat();
        Ok(Self { images, pixels, labels, params })
    }

    fn start(&self, threads: usize) -> anyhow::Result<Descent> {
        let data = self.pixels.iter().map(|pixel| f64::from(*pixel) / 255.0).collect();
        let inputs = Matrix { rows: EXAMPLES, cols: FEATURES, data };
        let targets = Targets::Classes { labels: self.labels.clone(), count: CLASSES };
        let data = Dataset::new(self.images, inputs, targets, vec![28, 28])?;
        let setup = Setup {
            reduction: Reduction::Mean,
            initialiser: Initialiser::Given { values: self.params.clone() },
            schedule: ScheduleSpec::Constant { rate: RATE },
            batching: Batching::Mini { size: BATCH },
            compute: Compute { threads, precision: Precision::F32, ..Compute::default() },
            ..Setup::new(ModelSpec::relu(&[WIDTH]), LossSpec::CrossEntropy)
        };
        Ok(setup.descent(&OptimiserSpec::steepest(NormSpec::L2), setup.objective(&data)?, &data)?)
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let description = serde_json::json!({
            "examples": EXAMPLES, "features": FEATURES, "width": WIDTH, "classes": CLASSES, "batch": BATCH, "rate": RATE,
        });
        std::fs::write(folder.join("epoch.json"), description.to_string())?;
        std::fs::write(folder.join("epoch.pixels"), &self.pixels)?;
        write_numbers(folder, "epoch.labels", &self.labels.iter().map(|label| *label as f64).collect::<Vec<_>>())?;
        write_numbers(folder, "epoch.params", &self.params)
    }
}

/// Measures epochs of both engines in turn.
pub fn measure(bench: &Bench, folder: &Path) -> anyhow::Result<Line> {
    let task = Task::new()?;
    let mut peer = None;
    if let Some(python) = &bench.python {
        task.write(folder)?;
        peer = Peer::start(python, "torch", include_str!("epoch.py"), bench.threads, folder)?;
    }
    if peer.is_none() {
        say("no --python with torch given: limitpoint alone is measured");
    }
    let mut descent = task.start(bench.threads)?;
    let start = descent.state();
    let steps = EXAMPLES.div_ceil(BATCH);
    let (mut own, mut theirs, mut log_loss, mut their_loss) = (Vec::new(), Vec::new(), f64::NAN, f64::NAN);
    // the first round warms up
    for round in 0..=bench.rounds {
        descent.restore(&start)?;
        // the loss of the start is part of no epoch
        descent.refresh();
        let begin = Instant::now();
        for _ in 0..steps {
            descent.advance()?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        log_loss = descent.log_loss() - (EXAMPLES as f64).ln();
        if round > 0 {
            own.push(seconds);
        }
        std::thread::sleep(Duration::from_millis(300));
        if let Some(peer) = &mut peer {
            let answer = peer.measure("epoch", bench.seconds)?;
            their_loss = answer.log_loss;
            if round > 0 {
                theirs.push(steps as f64 / answer.steps_per_second);
            }
            std::thread::sleep(Duration::from_millis(300));
        }
    }
    let seconds = median(own);
    // forward and weight gradient of the first layer, all three products of the second; one more forward pass of both
    let products = 3.0 * (FEATURES * WIDTH) as f64 + 4.0 * (WIDTH * CLASSES) as f64;
    let torch = (!theirs.is_empty()).then(|| {
        let torch = median(theirs);
        TorchLine { seconds: torch, ratio: torch / seconds, log_loss: their_loss }
    });
    let gigaflops = 2.0 * EXAMPLES as f64 * products / seconds / 1e9;
    Ok(Line { images: task.images, threads: bench.threads, seconds, gigaflops, log_loss, torch })
}

/// The measurement for people.
pub fn text(line: &Line) -> String {
    let mut out = format!(
        "an epoch of 784-1024-10 on 60,000 images ({}), batches of 100, {} threads\n\nlimitpoint  {:>7.2} s  {:>6.1} GFLOP/s  ln L {:.4}\n",
        line.images, line.threads, line.seconds, line.gigaflops, line.log_loss
    );
    if let Some(torch) = &line.torch {
        out += &format!(
            "torch       {:>7.2} s  limitpoint is {:.2}x as fast  ln L {:.4}\n",
            torch.seconds, torch.ratio, torch.log_loss
        );
    }
    out
}
