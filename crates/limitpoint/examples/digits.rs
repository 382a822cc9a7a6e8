//! Where does an optimiser go? Five optimisers fit the same handwritten threes and eights from the same start, each down
//! to L ≤ 10^−50. All of them classify every training image correctly; what differs is which margin they made large.
//!
//! Look for the stars: γ = min q / ‖θ‖^L is largest in the ℓ1 column for coordinate descent, in the ℓ2 column for gradient
//! descent, in the ℓ∞ column for sign descent and in the spectral column for spectral descent. The hyperbolic entropy has no
//! norm of its own at finite size; it tends to ℓ1, and comes second there.

#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]

use std::time::Instant;

use limitpoint::data::{DataSplit, Digits};
use limitpoint::diagnostics::{Probe, ProbeSpec};
use limitpoint::driver::{Batching, Descent, Process, run};
use limitpoint::losses::LossSpec;
use limitpoint::models::{Activation, Compute, Initialiser, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::objective::{Objective, Reduction};
use limitpoint::observers::{Recorder, Spacing, StopRule};
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::potentials::PotentialSpec;
use limitpoint::schedules::ScheduleSpec;

const NORMS: [NormSpec; 4] = [NormSpec::L1, NormSpec::L2, NormSpec::Linf, NormSpec::Spectral];

/// What one run ends with.
struct Line {
    name: &'static str,
    margins: Vec<f64>,
    rest: String,
}

fn train(name: &'static str, optimiser: &OptimiserSpec, split: &DataSplit) -> limitpoint::Result<Line> {
    let (begin, streams) = (Instant::now(), Streams::new(0));
    // squared ReLU has no kinks for coordinate descent to stick at; the network is homogeneous of degree 3
    let model = ModelSpec::network(&[32], Activation::ReluPower { power: 2 });
    let bind = |data| Objective::new(data, &model, &LossSpec::Exponential, Reduction::Sum, Compute::default());
    let objective = bind(&split.train)?;
    let layout = objective.layout().clone();
    let probe = ProbeSpec { norms: NORMS.to_vec(), ..Default::default() };
    let probe = Probe::new(&probe, &layout, objective.homogeneity(), false)?;
    let mut recorder = Recorder::new(probe, Spacing::default());
    let start = Initialiser::HeNormal { scale: 0.3 }.draw(&layout, &mut streams.stream("init"));
    let schedule: ScheduleSpec = "flow-resolved(resolution=0.1)".parse()?;
    let mut descent =
        Descent::new(objective, optimiser.build(&layout)?, schedule.build()?, Batching::Full, start, &streams)?;
    let rules = [StopRule::LogLoss { target: -50.0 * 10f64.ln() }, StopRule::Steps { count: 100_000 }];
    run(&mut descent, &rules, &mut [&mut recorder])?;

    let mut test = bind(split.test.as_ref().unwrap_or(&split.train))?;
    test.forward(descent.params());
    let (log10, steps) = (descent.log_loss() / 10f64.ln(), descent.step());
    let rest =
        format!("{log10:8.2} {steps:7} {:6.1} s {:5.1} %", begin.elapsed().as_secs_f64(), 100.0 * test.accuracy());
    let margin = |norm: &NormSpec| recorder.last(&format!("margin.{}", norm.key())).unwrap_or(f64::NAN);
    Ok(Line { name, margins: NORMS.iter().map(margin).collect(), rest })
}

fn main() -> limitpoint::Result<()> {
    let split = Digits { classes: Some([3, 8]), count: Some(100), ..Default::default() }.load(&Streams::new(0))?;
    println!("{}: {} images, 64-32-1 network\n", split.train.name, split.train.len());
    let lines = [
        train("coordinate", &OptimiserSpec::steepest(NormSpec::L1), &split)?,
        train("gradient", &OptimiserSpec::steepest(NormSpec::L2), &split)?,
        train("sign", &OptimiserSpec::steepest(NormSpec::Linf), &split)?,
        train("spectral", &OptimiserSpec::steepest(NormSpec::Spectral), &split)?,
        train("mirror", &OptimiserSpec::mirror(PotentialSpec::Hyperbolic { lambda: 1e-4 }), &split)?,
    ];
    println!(
        "{:<12} {:>10} {:>10} {:>10} {:>10}   log10 L   steps     time    test",
        "", "γ of ℓ1", "γ of ℓ2", "γ of ℓ∞", "γ of σ₁"
    );
    for line in &lines {
        let cell = |(column, margin): (usize, &f64)| {
            let best = lines.iter().all(|other| other.margins[column] <= *margin);
            format!("{margin:>10.2e}{}", if best { "*" } else { " " })
        };
        println!("{:<12} {} {}", line.name, line.margins.iter().enumerate().map(cell).collect::<String>(), line.rest);
    }
    let diagonal = (0..4).all(|i| lines.iter().all(|other| other.margins[i] <= lines[i].margins[i]));
    assert!(diagonal, "every steepest descent has the largest margin of its own norm");
    println!("\n* the largest of its column; σ₁ is the largest singular value of a layer");
    Ok(())
}
