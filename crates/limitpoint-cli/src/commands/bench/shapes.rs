//! `limitpoint bench --shapes`: full-batch steps of networks that nobody tuned for, against PyTorch.
//!
//! Examples, inputs, layers, units, outputs and precision are drawn from a seed or written down; everyone makes the same
//! steps with the same threads in the same precision, in turns. What counts is the faster way of PyTorch, and the
//! shapes where limitpoint is least ahead of it.

use std::path::Path;

use limitpoint::engine::Precision;
use limitpoint::experiments::{DrawnShapes, NetworkShape, ProductRate};
use serde::Serialize;

use super::arguments::{Bench, Engine};
use super::median;
use super::workloads::{Report, in_turns, start_peers};
use crate::commands::say;

/// Multiply–adds of a step beyond which a random shape is left out.
const MOST: f64 = 3e10;
/// Shapes that are named as the weakest.
const WEAKEST: usize = 3;
/// How far ln L of two engines may be apart after the same steps, in 64 and in 32 bits.
const APART: [f64; 2] = [1e-9, 1e-3];

/// Results for all shapes.
#[derive(Debug, Serialize)]
pub struct Output {
    threads: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    drawn: Option<Drawn>,
    shapes: Vec<Line>,
    /// Over all shapes, where PyTorch was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratios: Option<Ratios>,
}

/// How shapes were drawn.
#[derive(Debug, Serialize)]
struct Drawn {
    seed: u64,
    count: usize,
    /// Multiply–adds of a step beyond which a shape is left out.
    most_multiply_adds: f64,
    /// Shapes that were left out for their cost or their memory.
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    report: Report,
    seconds_per_step: f64,
    /// Of the faster way of PyTorch.
    torch_seconds_per_step: Option<f64>,
    /// How many times faster limitpoint is.
    ratio: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Ratios {
    smallest: f64,
    median: f64,
    /// The shapes with the smallest ratios, smallest first.
    weakest: Vec<String>,
}

/// Measures all shapes.
pub fn measure(bench: &Bench, folder: &Path) -> anyhow::Result<Output> {
    bench.shape.iter().try_for_each(NetworkShape::require)?;
    let DrawnShapes { shapes: random, left_out } = NetworkShape::draw(bench.seed, bench.shapes.unwrap_or(0), MOST);
    let drawn =
        bench.shapes.map(|_| Drawn { seed: bench.seed, count: random.len(), most_multiply_adds: MOST, left_out });
    let engines: Vec<Engine> = bench.chosen_engines().into_iter().filter(|engine| *engine != Engine::Jax).collect();
    let mut peers = start_peers(bench, &engines, folder)?;
    if peers.is_empty() {
        say("no --python with torch given: limitpoint alone is measured");
    }
    let mut products = [Precision::F64, Precision::F32].map(|precision| ProductRate::new(bench.threads, precision));
    let mut lines = Vec::new();
    for shape in bench.shape.iter().chain(&random) {
        let single = usize::from(shape.precision == Precision::F32);
        let (spec, product) = (shape.workload(), &mut products[single]);
        let report = in_turns(bench, &spec, shape.precision, product, &mut peers, folder)?;
        for peer in report.peers.iter().filter(|peer| (peer.log_loss - report.log_loss).abs() > APART[single]) {
            let (engine, theirs, own) = (peer.engine, peer.log_loss, report.log_loss);
            say(&format!("{shape}: ln L is {theirs} in {engine}, but {own} here; the two did not do the same"));
        }
        lines.push(Line::new(report));
    }
    let ratios = Ratios::of(&lines);
    Ok(Output { threads: bench.threads, drawn, shapes: lines, ratios })
}

impl Line {
    fn new(report: Report) -> Self {
        let fastest = report.peers.iter().map(|peer| peer.steps_per_second).reduce(f64::max);
        Self {
            seconds_per_step: report.steps_per_second.recip(),
            torch_seconds_per_step: fastest.map(f64::recip),
            ratio: fastest.map(|rate| report.steps_per_second / rate),
            report,
        }
    }
}

impl Ratios {
    fn of(lines: &[Line]) -> Option<Self> {
        let mut known: Vec<(f64, &str)> =
            lines.iter().filter_map(|line| Some((line.ratio?, line.report.workload.as_str()))).collect();
        known.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (smallest, _) = *known.first()?;
        let median = median(known.iter().map(|(ratio, _)| *ratio).collect());
        let weakest = known.iter().take(WEAKEST).map(|(_, shape)| (*shape).to_owned()).collect();
        Some(Self { smallest, median, weakest })
    }
}

/// The table for people.
pub fn text(output: &Output) -> String {
    let mut out = format!("full-batch steps of networks, {} threads\n", output.threads);
    if let Some(Drawn { seed, count, most_multiply_adds, left_out }) = &output.drawn {
        out += &format!(
            "{count} drawn from seed {seed}; {left_out} left out, beyond {most_multiply_adds:.0e} multiply-adds a step or \
             the memory\n"
        );
    }
    let shape = |line: &Line| line.report.workload.clone();
    let wide = output.shapes.iter().map(|line| shape(line).len()).max().unwrap_or(0).max(5);
    out += &format!("\n{:<wide$}  multiply-adds    ms/step  of product  PyTorch ms  ratio\n", "shape");
    for line in &output.shapes {
        let theirs = line.torch_seconds_per_step.map_or("-".to_owned(), |seconds| format!("{:.3}", 1e3 * seconds));
        let ratio = line.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        out += &format!(
            "{:<wide$}  {:>13.2e} {:>10.3} {:>10.0}%  {theirs:>10}  {ratio:>5}\n",
            shape(line),
            line.report.multiply_adds_per_step,
            1e3 * line.seconds_per_step,
            100.0 * line.report.share_of_gemm
        );
    }
    if let Some(ratios) = &output.ratios {
        out += &format!(
            "\nsmallest ratio {:.2}, median {:.2}; weakest: {}\n",
            ratios.smallest,
            ratios.median,
            ratios.weakest.join(", ")
        );
    }
    out
}
