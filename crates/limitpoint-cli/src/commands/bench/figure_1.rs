//! How long all runs of A Figure 1 take, here and in PyTorch.
//!
//! 20 seeds × 3 scales × (gradient, coordinate, sign descent and two switches) × 10⁵ steps are hours of work, so the
//! rate of each algorithm is measured and the whole is added up. Runs are independent: limitpoint makes one on each
//! thread, and PyTorch either does the same in as many processes or gives one process all threads, whichever is faster.

use std::path::Path;
use std::time::Instant;

use limitpoint::data::Dataset;
use limitpoint::driver::Process;
use limitpoint::experiments::Task;
use limitpoint_claims::{Lab, Scale};
use serde::Serialize;

use super::peer::{Answer, Peer, write_numbers};
use super::{Bench, arguments, median};
use crate::commands::say;

/// Runs of each algorithm in the figure, and their steps.
const RUNS: f64 = 60.0;
const STEPS: f64 = 1e5;
/// The constant rate of the peers. limitpoint makes the steps of the experiment, which are resolved and cost more.
const RATE: f64 = 6e-4;
/// Steps before limitpoint's rate is measured: coordinate descent is faster while it meets no kinks.
const WARM_UP: u64 = 2000;
/// The algorithms with the number of runs that spend their steps on them: a switched run is one of its second algorithm
/// for all but the first few steps.
const ALGORITHMS: [(&str, f64); 3] = [("gd", 1.0), ("cd", 2.0), ("sd", 2.0)];

/// Rates and times of one engine.
#[derive(Debug, Serialize)]
pub struct Line {
    engine: String,
    /// Processes side by side, and threads of each.
    processes: usize,
    threads: usize,
    /// Steps per second of gradient, coordinate and sign descent, all processes together.
    steps_per_second: [f64; 3],
    /// Hours for the whole figure.
    hours: f64,
    /// How many times faster limitpoint is.
    ratio: f64,
    /// ln L after 100 steps from the start, where limitpoint makes the same steps: gradient and sign descent.
    log_loss: [f64; 2],
}

/// Measures every engine there is.
pub fn measure(bench: &Bench, folder: &Path) -> anyhow::Result<Vec<Line>> {
    let lab = Lab::new(Scale::Full);
    let tasks = lab.tasks::<&str>("a-teacher", &[])?;
    let task = |name: &str| tasks.iter().find(|task| task.label.optimiser == name);
    let chosen: Vec<&Task> = ALGORITHMS.iter().filter_map(|(name, _)| task(name)).collect();
    let data = lab.data(chosen[0])?.train;
    describe(&lab, chosen[0], &data, folder)?;
    let mut engines: Vec<Engine> = Vec::new();
    if let Some(python) = &bench.python {
        for engine in [arguments::Engine::TorchEager, arguments::Engine::TorchCompile].map(arguments::Engine::name) {
            for (processes, threads) in [(bench.threads, 1), (1, bench.threads)] {
                let start = |_| Peer::start(python, engine, SCRIPT, threads, folder);
                match (0..processes).map(start).collect::<anyhow::Result<Option<Vec<Peer>>>>()? {
                    Some(peers) => engines.push(Engine { name: engine, peers, threads, answers: Vec::new() }),
                    None => say(&format!("{engine}: not installed in {}, left out", python.display())),
                }
            }
        }
    }
    let mut own: Vec<Vec<f64>> = vec![Vec::new(); 3];
    for _ in 0..bench.rounds {
        for (place, task) in chosen.iter().enumerate() {
            own[place].push(rate(&lab, task, bench)?);
            for engine in &mut engines {
                engine.ask(ALGORITHMS[place].0, bench.seconds)?;
            }
        }
    }
    let rates = [0, 1, 2].map(|place| median(own[place].clone()));
    let hours = hours(&rates);
    let constant = [format!("schedule=constant(rate={RATE})"), "optimisers.sd.steepest.scaling=unit".to_owned()];
    let constant = lab.tasks("a-teacher", &constant)?;
    let alike = |name: &str| constant.iter().find(|task| task.label.optimiser == name);
    let loss = |name: &str| alike(name).map_or(Ok(f64::NAN), |task| loss_after_100(&lab, task));
    let log_loss = [loss("gd")?, loss("sd")?];
    let name = "limitpoint".to_owned();
    let (processes, threads) = (bench.threads, 1);
    let mut lines =
        vec![Line { engine: name, processes, threads, steps_per_second: rates, hours, ratio: 1.0, log_loss }];
    lines.extend(engines.iter().map(|engine| engine.line(hours)));
    Ok(lines)
}

const SCRIPT: &str = include_str!("figure_1.py");

/// Peers that share the machine, and what they answered, algorithm by algorithm.
struct Engine {
    name: &'static str,
    peers: Vec<Peer>,
    threads: usize,
    answers: Vec<(&'static str, f64, f64)>,
}

impl Engine {
    /// Asks all processes at once.
    fn ask(&mut self, algorithm: &'static str, seconds: f64) -> anyhow::Result<()> {
        for peer in &mut self.peers {
            peer.ask(algorithm, seconds)?;
        }
        let answers = self.peers.iter_mut().map(Peer::answer).collect::<anyhow::Result<Vec<Answer>>>()?;
        let rate = answers.iter().map(|answer| answer.steps_per_second).sum();
        self.answers.push((algorithm, rate, answers[0].log_loss));
        Ok(())
    }

    fn line(&self, own_hours: f64) -> Line {
        let of = |name: &str| self.answers.iter().filter(|answer| answer.0 == name).collect::<Vec<_>>();
        let rates = ALGORITHMS.map(|(name, _)| median(of(name).iter().map(|answer| answer.1).collect()));
        let loss = |name: &str| of(name).last().map_or(f64::NAN, |answer| answer.2);
        let hours = hours(&rates);
        Line {
            engine: self.name.to_owned(),
            processes: self.peers.len(),
            threads: self.threads,
            steps_per_second: rates,
            hours,
            ratio: hours / own_hours,
            log_loss: [loss("gd"), loss("sd")],
        }
    }
}

fn hours(rates: &[f64; 3]) -> f64 {
    let seconds = |(rate, (_, share)): (&f64, &(&str, f64))| RUNS * share * STEPS / rate;
    rates.iter().zip(&ALGORITHMS).map(seconds).sum::<f64>() / 3600.0
}

/// Steps per second of as many runs side by side as there are threads, each past its first steps.
fn rate(lab: &Lab, task: &Task, bench: &Bench) -> anyhow::Result<f64> {
    let one = || -> anyhow::Result<f64> {
        let mut process = lab.start(task)?;
        advance(&mut *process, WARM_UP)?;
        let (mut count, begin) = (0, Instant::now());
        while begin.elapsed().as_secs_f64() < bench.seconds {
            advance(&mut *process, 50)?;
            count += 50;
        }
        Ok(f64::from(count) / begin.elapsed().as_secs_f64())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..bench.threads).map(|_| scope.spawn(one)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.map(|rate| rate.unwrap_or_else(|_| Err(anyhow::anyhow!("a run panicked")))).sum()
    })
}

fn advance(process: &mut dyn Process, steps: u64) -> anyhow::Result<()> {
    for _ in 0..steps {
        process.advance()?;
    }
    Ok(())
}

fn loss_after_100(lab: &Lab, task: &Task) -> anyhow::Result<f64> {
    let mut process = lab.start(task)?;
    advance(&mut *process, 100)?;
    Ok(process.log_loss())
}

/// Writes the problem where the script reads it.
fn describe(lab: &Lab, task: &Task, data: &Dataset, folder: &Path) -> anyhow::Result<()> {
    let layout = lab.objective(task, data)?.layout().clone();
    let width = layout.blocks()[0].rows;
    let description = serde_json::json!({
        "examples": data.len(), "features": data.dimension(), "width": width, "rate": RATE,
    });
    std::fs::write(folder.join("figure.json"), description.to_string())?;
    write_numbers(folder, "figure.inputs", &data.dense()?.data)?;
    write_numbers(folder, "figure.labels", data.signs()?)?;
    write_numbers(folder, "figure.params", &task.setup()?.initial(&layout))
}

/// The lines for people.
pub fn text(lines: &[Line]) -> String {
    let mut text = "A Figure 1: 20 seeds x 3 scales x (gd, cd, sd, gd-cd, gd-sd) x 100,000 steps\n\n\
                    engine          processes x threads     gd     cd     sd  steps/s   hours   limitpoint is\n"
        .to_owned();
    for line in lines {
        let [gd, cd, sd] = line.steps_per_second;
        text += &format!(
            "{:<15} {:>9} x {:<7} {gd:>8.0} {cd:>6.0} {sd:>6.0}  {:>14.2}   {:.2}x as fast   ln L {:.6}, {:.3}\n",
            line.engine, line.processes, line.threads, line.hours, line.ratio, line.log_loss[0], line.log_loss[1]
        );
    }
    text
}
