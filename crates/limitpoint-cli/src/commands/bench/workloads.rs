//! Training steps of a workload, here and in other engines in turns.

use std::path::Path;
use std::time::{Duration, Instant};

use limitpoint::driver::{Advance, Descent, Process};
use limitpoint::engine::Precision;
use limitpoint::experiments::{ProductRate, Workload, WorkloadSpec};
use serde::Serialize;

use super::arguments::{Bench, Engine};
use super::median;
use super::peer::{Answer, Peer, write};
use super::scaling;
use crate::commands::say;

/// Results for one workload.
#[derive(Debug, Serialize)]
pub struct Report {
    pub workload: String,
    pub multiply_adds_per_step: f64,
    /// Median over the rounds.
    pub steps_per_second: f64,
    gigaflops: f64,
    /// Rate of a large matrix product on all threads, in the same precision and measured in the same rounds.
    gemm_gigaflops: f64,
    /// Share of that rate.
    pub share_of_gemm: f64,
    /// Steps after which losses are compared.
    steps: usize,
    /// ln L after these steps.
    pub log_loss: f64,
    pub peers: Vec<PeerReport>,
}

#[derive(Debug, Serialize)]
pub struct PeerReport {
    pub engine: &'static str,
    pub steps_per_second: f64,
    /// How many times faster limitpoint is.
    pub ratio: f64,
    pub log_loss: f64,
}

#[derive(Debug, Serialize)]
pub struct Output {
    threads: usize,
    workloads: Vec<Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scaling: Option<Vec<scaling::Line>>,
}

/// Measures these workloads.
pub fn measure(bench: &Bench, specs: &[WorkloadSpec], folder: &Path) -> anyhow::Result<Output> {
    let mut peers = start_peers(bench, &bench.chosen_engines(), folder)?;
    let mut product = ProductRate::new(bench.threads, Precision::F64);
    let one = |spec: &WorkloadSpec| in_turns(bench, spec, Precision::F64, &mut product, &mut peers, folder);
    let workloads = specs.iter().map(one).collect::<anyhow::Result<_>>()?;
    drop(peers);
    let scaling = if bench.scaling { Some(scaling::measure(bench.seconds, bench.threads)?) } else { None };
    Ok(Output { threads: bench.threads, workloads, scaling })
}

/// Those of the engines that the Python has.
pub fn start_peers(bench: &Bench, engines: &[Engine], folder: &Path) -> anyhow::Result<Vec<Peer>> {
    let mut peers = Vec::new();
    if let Some(python) = &bench.python {
        for engine in engines {
            match Peer::start(python, engine.name(), include_str!("peer.py"), bench.threads, folder)? {
                Some(peer) => peers.push(peer),
                None => say(&format!("{}: not installed in {}, left out", engine.name(), python.display())),
            }
        }
    }
    Ok(peers)
}

/// Measures one workload here and in every peer, in turns, with large products between.
pub fn in_turns(
    bench: &Bench,
    spec: &WorkloadSpec,
    precision: Precision,
    product: &mut ProductRate,
    peers: &mut [Peer],
    folder: &Path,
) -> anyhow::Result<Report> {
    let workload = spec.build();
    if !peers.is_empty() {
        write(&workload, precision, folder)?;
    }
    let (mut own, mut gemm) = (Vec::new(), Vec::new());
    let mut theirs: Vec<Vec<Answer>> = peers.iter().map(|_| Vec::new()).collect();
    let mut contestant = Contestant::new(&workload, bench.threads, precision)?;
    for _ in 0..bench.rounds {
        gemm.push(product.gigaflops());
        own.push(contestant.steps_per_second(bench.seconds)?);
        gemm.push(product.gigaflops());
        for (peer, answers) in peers.iter_mut().zip(&mut theirs) {
            // threads of the engine before spin for a moment after their last product
            std::thread::sleep(Duration::from_millis(300));
            answers.push(peer.measure(&spec.name, bench.seconds)?);
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    let (rate, gemm) = (median(own), median(gemm));
    let gigaflops = rate * spec.flops() / 1e9;
    let report = |(peer, answers): (&Peer, &Vec<Answer>)| {
        let theirs = median(answers.iter().map(|answer| answer.steps_per_second).collect());
        PeerReport {
            engine: peer.engine,
            steps_per_second: theirs,
            ratio: rate / theirs,
            log_loss: answers.last().map_or(f64::NAN, |answer| answer.log_loss),
        }
    };
    Ok(Report {
        workload: spec.name.clone(),
        multiply_adds_per_step: spec.multiply_adds(),
        steps_per_second: rate,
        gigaflops,
        gemm_gigaflops: gemm,
        share_of_gemm: gigaflops / gemm,
        steps: spec.chunk(),
        log_loss: contestant.log_loss,
        peers: peers.iter().zip(&theirs).map(report).collect(),
    })
}

/// A training run that starts again after every chunk of steps, as the peers do.
pub struct Contestant {
    descent: Descent,
    start: limitpoint::driver::DescentState,
    chunk: usize,
    /// ln L after the first chunk.
    log_loss: f64,
}

impl Contestant {
    /// Makes the first chunk of steps, which warms up.
    pub fn new(workload: &Workload, threads: usize, precision: Precision) -> anyhow::Result<Self> {
        let descent = workload.start(threads, precision)?;
        let (start, chunk) = (descent.state(), workload.spec.chunk());
        let mut contestant = Self { descent, start, chunk, log_loss: f64::NAN };
        for _ in 0..chunk {
            contestant.step()?;
        }
        // the objective averages, `Process::log_loss` sums
        contestant.log_loss = contestant.descent.log_loss() - (workload.spec.examples as f64).ln();
        Ok(contestant)
    }

    fn step(&mut self) -> anyhow::Result<()> {
        if let Advance::Ended(reason) = self.descent.advance()? {
            anyhow::bail!("a run that is timed ended early: {reason:?}");
        }
        Ok(())
    }

    /// Steps per second over at least `seconds`; starting again takes none of them.
    pub fn steps_per_second(&mut self, seconds: f64) -> anyhow::Result<f64> {
        let (mut count, mut spent) = (0u32, 0.0);
        while spent < seconds {
            self.descent.restore(&self.start)?;
            self.descent.refresh();
            let (before, begin) = (spent, Instant::now());
            for _ in 0..self.chunk {
                self.step()?;
                count += 1;
                spent = before + begin.elapsed().as_secs_f64();
                if spent >= seconds {
                    break;
                }
            }
        }
        Ok(f64::from(count) / spent)
    }
}

/// The table for people.
pub fn text(output: &Output) -> String {
    let mut out = format!("{} threads\n\n", output.threads);
    out += "workload      steps/s   GFLOP/s  large product  share   ln L after 100 steps\n";
    for report in &output.workloads {
        out += &format!(
            "{:<9} {:>11.0} {:>9.1} {:>14.1} {:>5.0}%   {:.12}\n",
            report.workload,
            report.steps_per_second,
            report.gigaflops,
            report.gemm_gigaflops,
            100.0 * report.share_of_gemm,
            report.log_loss
        );
        for peer in &report.peers {
            out += &format!(
                "  {:<14} {:>4.0} steps/s, limitpoint is {:.2}x as fast   {:.12}\n",
                peer.engine, peer.steps_per_second, peer.ratio, peer.log_loss
            );
        }
    }
    if let Some(lines) = &output.scaling {
        out += &scaling::text(lines);
    }
    out
}
