//! A two-layer ReLU network trained until L = 10^−10,000; the smallest positive double is about 10^−324.
//!
//! Look at the margin: between L = 10^−11 and L = 10^−10,000 it still grows by a fifth, although all examples have long
//! been classified correctly. The loss travels as ln L and the step size as ln η, so neither underflows nor overflows.

#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]

use limitpoint::data::Digits;
use limitpoint::diagnostics::normalised_margins;
use limitpoint::driver::{Batching, Descent, Process, run};
use limitpoint::engine::Compute;
use limitpoint::losses::LossSpec;
use limitpoint::models::{Initialiser, ModelSpec};
use limitpoint::numeric::Streams;
use limitpoint::objective::{Objective, Reduction};
use limitpoint::observers::{StopReason, StopRule};
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::schedules::ScheduleSpec;

fn main() -> limitpoint::Result<()> {
    let streams = Streams::new(1);
    let data = Digits { classes: Some([0, 1]), count: Some(100), ..Default::default() }.load(&streams)?.train;
    let objective =
        Objective::new(&data, &ModelSpec::relu(&[20]), &LossSpec::Logistic, Reduction::Sum, Compute::default())?;
    let layout = objective.layout().clone();
    let start = Initialiser::HeNormal { scale: 0.1 }.draw(&layout, &mut streams.stream("init"));
    let optimiser = OptimiserSpec::steepest(limitpoint::norms::NormSpec::L2).build(&layout)?;
    let schedule: ScheduleSpec = "loss-based".parse()?;
    let mut descent = Descent::new(objective, optimiser, schedule.build()?, Batching::Full, start, &streams)?;
    println!("{:>10} {:>9} {:>14} {:>12}", "log10 L", "steps", "ln Σ η", "ℓ2 margin");
    for power in [1.0, 10.0, 100.0, 1_000.0, 10_000.0] {
        let target = -power * 10f64.ln();
        let reason = run(&mut descent, &[StopRule::LogLoss { target }, StopRule::Steps { count: 100_000 }], &mut [])?;
        descent.show(&mut |snapshot| {
            let point = &snapshot.point;
            let margin = normalised_margins(point, point.length()).hard;
            let log10 = point.log_loss / 10f64.ln();
            println!("{log10:>10.1} {:>9} {:>14.1} {margin:>12.8}", snapshot.step, snapshot.log_time);
        });
        assert_eq!(reason, StopReason::Rule(StopRule::LogLoss { target }), "the loss keeps falling");
    }
    Ok(())
}
