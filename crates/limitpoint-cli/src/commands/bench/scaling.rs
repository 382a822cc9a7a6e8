//! How the cost of a step grows with examples, width, depth and threads, and how ensembles spread over cores.

use std::time::Instant;

use limitpoint::driver::Process;
use limitpoint::engine::Precision;
use limitpoint::experiments::{WorkloadSpec, ensemble};
use serde::Serialize;

use super::median;
use super::workloads::Contestant;

/// One measurement.
#[derive(Debug, Serialize)]
pub struct Line {
    pub varied: &'static str,
    pub value: usize,
    pub microseconds: f64,
    pub gigaflops: f64,
}

/// Varies one size of a two-layer network at a time, around 256 examples, 64 features and width 256.
pub fn measure(seconds: f64, threads: usize) -> anyhow::Result<Vec<Line>> {
    let Some(first) = WorkloadSpec::all().into_iter().next() else { return Ok(Vec::new()) };
    let base = WorkloadSpec { examples: 256, features: 64, widths: vec![256], ..first };
    let mut lines = Vec::new();
    let mut add = |varied, value, spec: WorkloadSpec, threads| -> anyhow::Result<()> {
        let mut contestant = Contestant::new(&spec.build(), threads, Precision::F64)?;
        let rate = contestant.steps_per_second((0.2 * seconds).max(0.05))?;
        lines.push(Line { varied, value, microseconds: 1e6 / rate, gigaflops: rate * spec.flops() / 1e9 });
        Ok(())
    };
    for examples in [64, 256, 1024, 4096] {
        add("examples", examples, WorkloadSpec { examples, ..base.clone() }, threads)?;
    }
    for width in [64, 256, 1024, 4096] {
        add("width", width, WorkloadSpec { widths: vec![width], ..base.clone() }, threads)?;
    }
    for depth in 1..=4 {
        add("depth", depth, WorkloadSpec { widths: vec![256; depth], ..base.clone() }, threads)?;
    }
    for count in 1..=threads {
        add("threads", count, WorkloadSpec { widths: vec![1024], ..base.clone() }, count)?;
    }
    lines.extend(ensemble_lines()?);
    Ok(lines)
}

/// Twenty runs of W1 over 100 steps, one after the other and spread over the cores, in turn; medians of five rounds.
/// Microseconds are per step of a run.
fn ensemble_lines() -> anyhow::Result<Vec<Line>> {
    const STEPS: usize = 100;
    const ROUNDS: usize = 5;
    let Some(spec) = WorkloadSpec::all().into_iter().next() else { return Ok(Vec::new()) };
    let workload = spec.build();
    let seeds: Vec<u64> = (0..20).collect();
    let one = |_: u64| -> anyhow::Result<f64> {
        let mut descent = workload.start(1, Precision::F64)?;
        for _ in 0..STEPS {
            descent.advance()?;
        }
        Ok(descent.log_loss())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut seconds = [(1, Vec::new()), (cores, Vec::new())];
    for _ in 0..ROUNDS {
        for (value, seconds) in &mut seconds {
            let begin = Instant::now();
            let results: Vec<_> =
                if *value == 1 { seeds.iter().map(|s| one(*s)).collect() } else { ensemble(&seeds, one) };
            seconds.push(begin.elapsed().as_secs_f64());
            results.into_iter().collect::<anyhow::Result<Vec<f64>>>()?;
        }
    }
    let steps = (STEPS * seeds.len()) as f64;
    let line = |(value, seconds)| {
        let seconds = median(seconds);
        let gigaflops = steps * spec.flops() / seconds / 1e9;
        Line { varied: "ensemble", value, microseconds: 1e6 * seconds / steps, gigaflops }
    };
    Ok(seconds.map(line).into())
}

/// The measurements as a table.
pub fn text(lines: &[Line]) -> String {
    let mut out = String::from("\nvaried      value   µs/step  GFLOP/s\n");
    for line in lines {
        out += &format!("{:<9} {:>7} {:>9.1} {:>8.1}\n", line.varied, line.value, line.microseconds, line.gigaflops);
    }
    out
}
