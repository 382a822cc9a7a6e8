//! Large problems: memory and time in proportion to the data.

use std::time::Instant;

use super::task;
use crate::comparisons::slope;
use crate::{Claim, ClaimError, Lab, Outcome, Scale, Sketch};
use limitpoint::data::Dataset;
use limitpoint::experiments::Task;

pub(super) const CLAIMS: [Claim; 1] = [Claim {
    id: "B.scale",
    statement: "Logistic problems of 10⁵ examples, dense with 10³ and sparse with 10⁶ features, train in memory proportional \
                to the data, at a cost per step that is linear in the entries that are not zero",
    experiments: &["b-large"],
    try_out: large,
    ..Claim::FINDING
}];

/// Seconds per step with as many threads as there are, the fastest of several groups, and ln L before and after.
fn measure(data: &Dataset, task: &Task, steps: usize) -> Result<(f64, f64, f64), ClaimError> {
    let mut setup = task.setup()?;
    setup.compute.threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut process = setup.start(setup.objective(data)?, data)?;
    let before = process.log_loss();
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let begin = Instant::now();
        for _ in 0..steps {
            process.advance()?;
        }
        best = best.min(begin.elapsed().as_secs_f64() / steps as f64);
    }
    Ok((best, before, process.log_loss()))
}

fn large(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let (count, dimension, wide) = lab.choose((5_000, 100, 50_000), (100_000, 1_000, 1_000_000));
    let steps = lab.choose(20, 10);
    // dense
    let dense = task(lab, "b-large", &format!("data={{gaussians={{count={count}, dimension={dimension}}}}}"))?;
    let data = lab.data(&dense)?.train;
    let (seconds, before, after) = measure(&data, &dense, steps)?;
    let what = format!("dense {count}×{dimension}: ln L after {} steps, from {before:.3}", 3 * steps);
    outcome.at_most(what, after, before - 0.1);
    outcome.note(format!("dense {count}×{dimension}: {:.2} ms a step", 1e3 * seconds));
    drop(data);
    // sparse, with more and more entries
    let mut points = Vec::new();
    for nonzeros in [10, 20, 50, 100] {
        let sparse = format!("data={{sparse-gaussians={{count={count}, dimension={wide}, nonzeros={nonzeros}}}}}");
        let task = task(lab, "b-large", &sparse)?;
        let data = lab.data(&task)?.train;
        let (name, entries) = (format!("sparse {count}×{wide}, {nonzeros} a row"), data.inputs.stored() as f64);
        outcome.near(format!("{name}: entries in memory"), entries, (count * nonzeros) as f64, 0.0);
        let (seconds, before, after) = measure(&data, &task, steps)?;
        let what = format!("{name}: ln L after {} steps, from {before:.3}", 3 * steps);
        outcome.at_most(what, after, before - 0.01);
        points.push([entries, 1e3 * seconds]);
    }
    // time = a·entries + b by least squares
    let [x, y] = [0, 1].map(|axis| points.iter().map(|p| p[axis]).sum::<f64>() / points.len() as f64);
    let slope = slope(&points);
    let residual: f64 = points.iter().map(|p| (p[1] - y - slope * (p[0] - x)).powi(2)).sum();
    let spread: f64 = points.iter().map(|p| (p[1] - y).powi(2)).sum();
    let explained = 1.0 - residual / spread;
    let line = [points[0][0], points[3][0]].map(|at| [at, y + slope * (at - x)]).to_vec();
    let sketch =
        Sketch::new("cost", "Cost of a step on sparse data", "entries that are not zero", "milliseconds a step");
    let sketch = sketch.curve("measured", points.clone());
    outcome.sketch(sketch.reference(format!("{:.2} ns an entry", 1e6 * slope), line));
    outcome.note(format!("a line explains {:.2} % of the variance of the times: {points:?}", 100.0 * explained));
    // a verdict on times only where steps are long enough for a clock on a busy machine
    if lab.scale() != Scale::Quick {
        outcome.at_least("share of the variance of the times that a line in the entries explains", explained, 0.95);
        if let Some(peak) = peak_memory() {
            // the largest data set is the dense one: twice in the order the passes read, once as it came
            let bytes = (8 * count * dimension) as f64;
            outcome.at_most("peak memory over the bytes of the largest data set", peak / bytes, 5.0);
        }
    }
    Ok(outcome)
}

/// The most memory this process has held, in bytes, where the system tells.
fn peak_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(1024.0 * line.split_whitespace().nth(1)?.parse::<f64>().ok()?)
}
