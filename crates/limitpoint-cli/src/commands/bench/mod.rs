//! `limitpoint bench`: steps per second, and ratios against other engines measured in the same minutes.

mod attack;
mod epoch;
mod figure_1;
mod peer;
mod scaling;
mod solve;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use limitpoint::driver::{Descent, Process};
use limitpoint::engine::Precision;
use limitpoint::experiments::{Workload, WorkloadSpec};
use limitpoint::linalg::{SharedSlice, Team, matmul};
use limitpoint::schedules::ScheduleSpec;
use serde::Serialize;

use self::peer::{ENGINES, Peer};
use crate::args::{Bench, Format};
use crate::commands::{print, say};
use crate::values;

/// Steps after which engines compare their losses.
const CHUNK: usize = 100;

/// Results for one workload.
#[derive(Debug, Serialize)]
struct Report {
    workload: &'static str,
    /// Median over the rounds.
    steps_per_second: f64,
    gigaflops: f64,
    /// Rate of a large matrix product on all threads, measured in the same rounds.
    gemm_gigaflops: f64,
    /// Share of that rate.
    share_of_gemm: f64,
    /// ln L after 100 steps.
    log_loss: f64,
    peers: Vec<PeerReport>,
}

#[derive(Debug, Serialize)]
struct PeerReport {
    engine: &'static str,
    steps_per_second: f64,
    /// How many times faster limitpoint is.
    ratio: f64,
    log_loss: f64,
}

#[derive(Debug, Serialize)]
struct Output {
    threads: usize,
    workloads: Vec<Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scaling: Option<Vec<scaling::Line>>,
}

/// Runs the verb.
pub fn run(bench: &Bench) -> anyhow::Result<ExitCode> {
    if bench.seconds > 600.0 {
        bail!("--seconds is {}, but must be at most 600", bench.seconds);
    }
    let bench = &Bench { threads: values::threads(Some(bench.threads), false), ..bench.clone() };
    let folder = std::env::temp_dir().join(format!("limitpoint-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = if bench.workloads == ["figure-1"] {
        figure_1::measure(bench, &folder).and_then(|lines| show(bench, &lines, &figure_1::text(&lines)))
    } else if bench.workloads == ["attack"] {
        attack::measure(bench, &folder).and_then(|lines| show(bench, &lines, &attack::text(&lines)))
    } else if bench.workloads == ["epoch"] {
        epoch::measure(bench, &folder).and_then(|line| show(bench, &line, &epoch::text(&line)))
    } else if bench.workloads == ["solve"] {
        solve::measure(bench, &folder).and_then(|lines| show(bench, &lines, &solve::text(&lines)))
    } else {
        chosen(&bench.workloads)
            .and_then(|workloads| measure(bench, &workloads, &folder))
            .and_then(|output| show(bench, &output, &text(&output)))
    };
    std::fs::remove_dir_all(&folder).ok();
    outcome.map(|()| ExitCode::SUCCESS)
}

fn show(bench: &Bench, value: &impl Serialize, text: &str) -> anyhow::Result<()> {
    match bench.format {
        Format::Json => print(&(serde_json::to_string_pretty(value)? + "\n")),
        Format::Text => print(text),
    }
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<Workload>> {
    let all = WorkloadSpec::all();
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|spec| !spec.name.eq_ignore_ascii_case(name))) {
        bail!(
            "there is no workload '{unknown}'; choose from W1, W2, W3, W4, or attack, epoch, solve or figure-1 alone"
        );
    }
    let wanted = |spec: &&WorkloadSpec| names.is_empty() || names.iter().any(|n| n.eq_ignore_ascii_case(spec.name));
    Ok(all.iter().filter(wanted).map(WorkloadSpec::build).collect())
}

fn measure(bench: &Bench, workloads: &[Workload], folder: &std::path::Path) -> anyhow::Result<Output> {
    let mut peers = Vec::new();
    if let Some(python) = &bench.python {
        for engine in ENGINES {
            match Peer::start(python, engine, bench.threads, folder)? {
                Some(peer) => peers.push(peer),
                None => say(&format!("{engine}: not installed in {}, left out", python.display())),
            }
        }
    }
    for workload in workloads {
        peer::write(workload, rate(&workload.spec), folder)?;
    }
    let mut product = LargeProduct::new(bench.threads);
    let mut reports = Vec::new();
    for workload in workloads {
        let (mut own, mut gemm) = (Vec::new(), Vec::new());
        let mut theirs: Vec<Vec<peer::Answer>> = peers.iter().map(|_| Vec::new()).collect();
        let log_loss = loss_after_a_chunk(workload, bench.threads)?;
        for _ in 0..bench.rounds {
            gemm.push(product.gigaflops());
            own.push(steps_per_second(workload, bench.threads, bench.seconds)?);
            gemm.push(product.gigaflops());
            for (peer, answers) in peers.iter_mut().zip(&mut theirs) {
                // threads of the engine before spin for a moment after their last product
                std::thread::sleep(Duration::from_millis(300));
                answers.push(peer.measure(workload.spec.name, bench.seconds)?);
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        let (rate, gemm) = (median(own), median(gemm));
        let gigaflops = rate * workload.spec.flops() / 1e9;
        let report = |(peer, answers): (&Peer, &Vec<peer::Answer>)| {
            let theirs = median(answers.iter().map(|answer| answer.steps_per_second).collect());
            PeerReport {
                engine: peer.engine,
                steps_per_second: theirs,
                ratio: rate / theirs,
                log_loss: answers.last().map_or(f64::NAN, |answer| answer.log_loss),
            }
        };
        reports.push(Report {
            workload: workload.spec.name,
            steps_per_second: rate,
            gigaflops,
            gemm_gigaflops: gemm,
            share_of_gemm: gigaflops / gemm,
            log_loss,
            peers: peers.iter().zip(&theirs).map(report).collect(),
        });
    }
    drop(peers);
    let scaling = if bench.scaling { Some(scaling::measure(bench.seconds, bench.threads)?) } else { None };
    Ok(Output { threads: bench.threads, workloads: reports, scaling })
}

/// The step size as peers write it: on ln L for schedules c/L, on L otherwise.
fn rate(spec: &WorkloadSpec) -> f64 {
    match spec.schedule {
        ScheduleSpec::LinearBound { c, .. } => c,
        ScheduleSpec::Constant { rate } => rate,
        _ => f64::NAN,
    }
}

fn loss_after_a_chunk(workload: &Workload, threads: usize) -> anyhow::Result<f64> {
    let mut descent = workload.start(threads, Precision::F64)?;
    for _ in 0..CHUNK {
        descent.advance()?;
    }
    // the objective averages, `Process::log_loss` sums
    Ok(descent.log_loss() - (workload.spec.examples as f64).ln())
}

/// Steps per second over at least `seconds`, restarting every 100 steps as the peers do.
pub(super) fn steps_per_second(workload: &Workload, threads: usize, seconds: f64) -> anyhow::Result<f64> {
    let mut descent: Descent = workload.start(threads, Precision::F64)?;
    let start = descent.state();
    let chunk = |descent: &mut Descent| -> anyhow::Result<()> {
        descent.restore(&start)?;
        for _ in 0..CHUNK {
            descent.advance()?;
        }
        Ok(())
    };
    chunk(&mut descent)?;
    let (mut count, begin) = (0, Instant::now());
    while begin.elapsed().as_secs_f64() < seconds {
        chunk(&mut descent)?;
        count += CHUNK;
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}

/// A product of two 768 × 768 matrices on every thread at the same time.
struct LargeProduct {
    team: Team,
    factor: Vec<f64>,
    products: Vec<Vec<f64>>,
}

impl LargeProduct {
    const SIZE: usize = 768;
    /// Long enough for the clock and the caches to settle.
    const SECONDS: f64 = 0.2;

    fn new(threads: usize) -> Self {
        let team = Team::new(threads);
        let factor = (0..Self::SIZE * Self::SIZE).map(|i| (i % 97) as f64 * 0.01).collect();
        let products = vec![vec![0.0; Self::SIZE * Self::SIZE]; team.threads()];
        Self { team, factor, products }
    }

    fn gigaflops(&mut self) -> f64 {
        let (shared, factor) = (SharedSlice::new(&mut self.products), &self.factor);
        let (mut count, begin) = (0, Instant::now());
        while begin.elapsed().as_secs_f64() < Self::SECONDS {
            self.team.run(|worker| {
                // SAFETY: each worker writes its own product.
                let own = unsafe { shared.part(worker..worker + 1) };
                matmul(&mut own[0], factor, factor, Self::SIZE, Self::SIZE, Self::SIZE);
            });
            count += self.team.threads();
        }
        2.0 * (Self::SIZE as f64).powi(3) * f64::from(count as u32) / begin.elapsed().as_secs_f64() / 1e9
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { 0.5 * (values[middle - 1] + values[middle]) }
}

fn text(output: &Output) -> String {
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
