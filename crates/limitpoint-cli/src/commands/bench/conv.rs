//! `limitpoint bench conv`: networks of images against PyTorch and JAX, steps and evaluations.
//!
//! Full-batch steps of gradient descent on the mean cross-entropy of made-up images, from the same He normal start on
//! all sides; and the loss of 10,000 images. After a few steps from that start the parameters of every engine are
//! compared with ours.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use limitpoint::data::{Dataset, Targets};
use limitpoint::driver::{Descent, Process};
use limitpoint::engine::{Compute, Forward, Precision};
use limitpoint::linalg::Matrix;
use limitpoint::losses::LossSpec;
use limitpoint::models::{Architecture, Biases, Initialiser, Layer, ModelSpec, Pooling};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::objective::Reduction;
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::schedules::ScheduleSpec;
use limitpoint::training::Setup;
use serde::Serialize;
use serde_json::{Value, json};

use super::peer::{Peer, write_numbers};
use super::{Bench, median};
use crate::commands::say;

const CLASSES: usize = 10;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ConvCase {
    /// A small network with strides, paddings, both pools and biases on 100 images of 12×10, f64.
    Small,
    /// Steps of mnist-cnn on 100 images, f32.
    MnistF32,
    /// Steps of mnist-cnn on 100 images, f64.
    MnistF64,
    /// Steps of vgg16 on 100 images, f32, in one round.
    VggF32,
    /// The loss of mnist-cnn on 10,000 images, f32.
    Evaluation,
}

/// One case.
struct Case {
    text: &'static str,
    model: ModelSpec,
    image: [usize; 3],
    examples: usize,
    precision: Precision,
    /// Steps after which parameters are compared.
    steps: usize,
    rate: f64,
    evaluate: bool,
    /// Rounds that do, where one takes long.
    most_rounds: usize,
}

impl ConvCase {
    fn case(self) -> anyhow::Result<Case> {
        let (text, layers, image, examples, precision, steps) = match self {
            Self::Small => (
                "small network, 100 images, f64",
                "conv 6 3x3 stride 2, average 2 stride 1, conv 9 2x3 valid, pool 2, dense 7, dense",
                [2, 12, 10],
                100,
                Precision::F64,
                200,
            ),
            Self::MnistF32 => ("mnist-cnn, 100 images, f32", "mnist-cnn", [1, 28, 28], 100, Precision::F32, 20),
            Self::MnistF64 => ("mnist-cnn, 100 images, f64", "mnist-cnn", [1, 28, 28], 100, Precision::F64, 200),
            Self::VggF32 => ("vgg16, 100 images, f32", "vgg16", [3, 32, 32], 100, Precision::F32, 1),
            Self::Evaluation => {
                ("mnist-cnn, loss of 10,000 images, f32", "mnist-cnn", [1, 28, 28], 10_000, Precision::F32, 0)
            }
        };
        let mut model = ModelSpec::image(layers.parse()?);
        if let (Self::Small, ModelSpec::Image { biases, .. }) = (self, &mut model) {
            *biases = Biases::All;
        }
        let rate = match self {
            Self::Small => 0.3,
            Self::VggF32 => 1e-3,
            _ => 1e-2,
        };
        let (evaluate, most_rounds) = (self == Self::Evaluation, if self == Self::VggF32 { 1 } else { usize::MAX });
        Ok(Case { text, model, image, examples, precision, steps, rate, evaluate, most_rounds })
    }
}

/// One case in all engines.
#[derive(Debug, Serialize)]
pub struct Line {
    case: &'static str,
    threads: usize,
    /// Milliseconds a step or an evaluation, median over the rounds.
    milliseconds: f64,
    gigaflops: f64,
    /// ln of the mean loss where parameters are compared.
    log_loss: f64,
    peers: Vec<PeerLine>,
}

#[derive(Debug, Serialize)]
struct PeerLine {
    engine: &'static str,
    milliseconds: f64,
    /// How many times faster limitpoint is.
    ratio: f64,
    log_loss: f64,
    /// Largest distance of a parameter from ours, as a part of the largest parameter.
    apart: f64,
}

/// The layers as the script reads them.
fn description(architecture: &Architecture) -> Vec<Value> {
    let mut layers: Vec<Value> = Vec::new();
    for (layer, before) in architecture.with_inputs() {
        match layer {
            Layer::Convolution(conv) => {
                let Ok(window) = conv.window(before) else { continue };
                let after = |side: usize| {
                    let reach = (window.after[side] - 1) * window.stride + window.size[side];
                    reach.saturating_sub(window.before[side] + window.zeros[side])
                };
                let zeros = [window.zeros[0], window.zeros[1], after(0), after(1)];
                let mut blocks = vec![vec![conv.channels, before.0[0], window.size[0], window.size[1]]];
                blocks.extend(conv.bias.then(|| vec![conv.channels]));
                layers.push(
                    json!({ "kind": "conv", "stride": conv.stride, "zeros": zeros, "blocks": blocks, "relu": false }),
                );
            }
            Layer::Pool(pool) => {
                let kind = if pool.pooling == Pooling::Max { "max" } else { "average" };
                layers.push(json!({ "kind": kind, "size": pool.size, "stride": pool.stride, "relu": false }));
            }
            Layer::Dense { units, bias, .. } => {
                let mut blocks = vec![vec![*units, before.len()]];
                blocks.extend(bias.then(|| vec![*units]));
                layers.push(json!({ "kind": "dense", "blocks": blocks, "relu": false }));
            }
            Layer::Activation(_) => {
                if let Some(last) = layers.last_mut() {
                    last["relu"] = json!(true);
                }
            }
            _ => {}
        }
    }
    layers
}

/// A case with its images and its start.
struct Task {
    case: Case,
    data: Dataset,
    architecture: Architecture,
    params: Vec<f64>,
}

impl Task {
    fn new(case: Case) -> anyhow::Result<Self> {
        let mut stream = Streams::new(0).stream("data");
        let mut inputs = Matrix::zeros(case.examples, case.image.iter().product());
        stream.fill_normal(&mut inputs.data);
        let labels = (0..case.examples).map(|_| stream.below(CLASSES)).collect();
        let targets = Targets::Classes { labels, count: CLASSES };
        let data = Dataset::new("made up", inputs, targets, case.image.to_vec())?;
        let architecture = case.model.architecture_on(&data)?;
        let mut params = vec![0.0; architecture.layout().len()];
        Streams::new(0).stream("init").fill_normal(&mut params);
        for block in architecture.layout().blocks() {
            let size = if block.is_weight() { (2.0 / block.fan_in as f64).sqrt() } else { 0.1 };
            params[block.range()].iter_mut().for_each(|w| *w *= size);
        }
        Ok(Self { case, data, architecture, params })
    }

    fn start(&self, threads: usize) -> anyhow::Result<Descent> {
        let setup = Setup {
            reduction: Reduction::Mean,
            initialiser: Initialiser::Given { values: self.params.clone() },
            schedule: ScheduleSpec::Constant { rate: self.case.rate },
            compute: Compute { threads, precision: self.case.precision, ..Compute::default() },
            ..Setup::new(self.case.model.clone(), LossSpec::CrossEntropy)
        };
        Ok(setup.descent(&OptimiserSpec::steepest(NormSpec::L2), setup.objective(&self.data)?, &self.data)?)
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let description = json!({
            "layers": description(&self.architecture), "image": self.case.image, "precision": self.case.precision,
            "steps": self.case.steps, "rate": self.case.rate, "evaluate": self.case.evaluate,
        });
        std::fs::write(folder.join("conv.json"), description.to_string())?;
        let Targets::Classes { labels, .. } = &self.data.targets else { return Ok(()) };
        write_numbers(folder, "conv.labels", &labels.iter().map(|label| *label as f64).collect::<Vec<_>>())?;
        write_numbers(folder, "conv.inputs", &self.data.dense()?.data)?;
        write_numbers(folder, "conv.params", &self.params)
    }
}

/// Measures the cases one after the other, the engines of each in turn.
pub fn measure(bench: &Bench, folder: &Path) -> anyhow::Result<Vec<Line>> {
    let all = ConvCase::value_variants();
    let cases = all.iter().filter(|case| bench.cases.is_empty() || bench.cases.contains(case));
    cases.map(|case| measure_case(bench, Task::new(case.case()?)?, folder)).collect()
}

fn measure_case(bench: &Bench, task: Task, folder: &Path) -> anyhow::Result<Line> {
    say(&format!("measuring {}", task.case.text));
    let mut peers = Vec::new();
    if let Some(python) = &bench.python {
        task.write(folder)?;
        for engine in bench.chosen_engines() {
            peers.extend(Peer::start(python, engine.name(), include_str!("conv.py"), bench.threads, folder)?);
        }
    }
    let mut descent = task.start(bench.threads)?;
    let start = descent.state();
    for _ in 0..task.case.steps {
        descent.advance()?;
    }
    descent.refresh();
    let log_loss = descent.log_loss() - (task.case.examples as f64).ln();
    let end = descent.params().to_vec();
    let mut own = Vec::new();
    let mut theirs: Vec<(Vec<f64>, f64)> = peers.iter().map(|_| (Vec::new(), f64::NAN)).collect();
    let pause = || std::thread::sleep(Duration::from_millis(200));
    // evaluations have a network of their own, which no step keeps anything for
    let compute = Compute { threads: bench.threads, precision: task.case.precision, ..Compute::default() };
    let bind = || limitpoint::engine::cpu::bind_to(&task.case.model, &task.data, compute);
    let mut model = task.case.evaluate.then(bind).transpose()?;
    // the first round warms up
    for round in 0..=bench.rounds.min(task.case.most_rounds) {
        descent.restore(&start)?;
        descent.refresh();
        let (begin, mut count) = (Instant::now(), 0);
        while count == 0 || begin.elapsed().as_secs_f64() < bench.seconds {
            if let Some(model) = &mut model {
                model.scores(&task.params);
            } else {
                descent.advance()?;
            }
            count += 1;
        }
        let milliseconds = 1e3 * begin.elapsed().as_secs_f64() / f64::from(count);
        if round > 0 {
            own.push(milliseconds);
        }
        pause();
        for (peer, (times, loss)) in peers.iter_mut().zip(&mut theirs) {
            let answer = peer.measure("conv", bench.seconds)?;
            *loss = answer.log_loss;
            if round > 0 {
                times.push(1e3 / answer.steps_per_second);
            }
            pause();
        }
    }
    let milliseconds = median(own);
    let largest = end.iter().fold(f64::MIN_POSITIVE, |most, w| most.max(w.abs()));
    let peers = peers.iter().zip(theirs).map(|(peer, (times, log_loss))| {
        let bytes = std::fs::read(folder.join(format!("{}.end.f64", peer.engine)))?;
        let found = bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap_or([0; 8])));
        let apart = found.zip(&end).map(|(a, b)| (a - b).abs() / largest).fold(0.0, f64::max);
        let theirs = median(times);
        Ok(PeerLine { engine: peer.engine, milliseconds: theirs, ratio: theirs / milliseconds, log_loss, apart })
    });
    let peers = peers.collect::<anyhow::Result<_>>()?;
    let passes = if task.case.evaluate { 1.0 } else { 3.0 };
    let products = passes * task.case.examples as f64 * task.architecture.cost() as f64;
    let gigaflops = 2.0 * products / (1e6 * milliseconds);
    Ok(Line { case: task.case.text, threads: bench.threads, milliseconds, gigaflops, log_loss, peers })
}

/// The measurements for people.
pub fn text(lines: &[Line]) -> String {
    let mut out = String::new();
    for line in lines {
        out += &format!(
            "{}, {} threads\n  limitpoint     {:>9.2} ms  {:>6.1} GFLOP/s  ln L {:.6}\n",
            line.case, line.threads, line.milliseconds, line.gigaflops, line.log_loss
        );
        for peer in &line.peers {
            out += &format!(
                "  {:<14} {:>9.2} ms  limitpoint is {:.2}x as fast  ln L {:.6}, parameters {:.1e} apart\n",
                peer.engine, peer.milliseconds, peer.ratio, peer.log_loss, peer.apart
            );
        }
    }
    out
}
