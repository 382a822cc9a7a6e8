//! Linear separation: the geometry of the step decides which maximal margin is found.
//!
//! Look for `gap` on the diagonal: each method closes the bracket lower ≤ γ* ≤ upper of its own norm, so its direction
//! is
//! *certified* to have the largest margin there is. In the other norms the gap stays open, however small the loss.

#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]

use limitpoint::data::Gaussians;
use limitpoint::diagnostics::{MarginBracket, margin_bracket};
use limitpoint::driver::{Batching, Descent, Process, run};
use limitpoint::engine::Compute;
use limitpoint::losses::LossSpec;
use limitpoint::models::ModelSpec;
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::objective::{Objective, Reduction};
use limitpoint::observers::StopRule;
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::schedules::ScheduleSpec;

fn main() -> limitpoint::Result<()> {
    let streams = Streams::new(0);
    let data = Gaussians { count: 40, dimension: 10, margin: 1.0, ..Default::default() }.generate(&streams)?.train;
    let norms = [NormSpec::L1, NormSpec::L2, NormSpec::Linf];
    for (name, own) in [("coordinate descent", 0), ("gradient descent", 1), ("sign descent", 2)] {
        let objective =
            Objective::new(&data, &ModelSpec::Linear, &LossSpec::Exponential, Reduction::Sum, Compute::default())?;
        let layout = objective.layout().clone();
        // steps c/(B² L) with B the largest dual norm of an example: the loss falls at every one of them
        let mut dual = norms[own].build(&layout)?;
        let inputs = data.dense()?;
        let bound = (0..data.len()).map(|i| dual.dual(inputs.row(i))).fold(0.0, f64::max);
        let schedule = "linear-bound(decay=0.25)".parse::<ScheduleSpec>()?.with_feature_bound(bound).build()?;
        let optimiser = OptimiserSpec::steepest(norms[own].clone()).build(&layout)?;
        let zero = vec![0.0; layout.len()];
        let mut descent = Descent::new(objective, optimiser, schedule, Batching::Full, zero, &streams)?;
        run(&mut descent, &[StopRule::Steps { count: 300_000 }], &mut [])?;
        println!("{name}, log10 L = {:.1}", descent.log_loss() / 10f64.ln());
        for (i, spec) in norms.iter().enumerate() {
            let mut norm = spec.build(&layout)?;
            let mut bracket = MarginBracket { lower: f64::NAN, upper: f64::NAN };
            descent.show(&mut |snapshot| bracket = margin_bracket(&snapshot.point, &mut *norm));
            let gap = (bracket.upper - bracket.lower) / bracket.upper;
            let mark = if i == own { "  <- its own norm" } else { "" };
            println!("  {:>4}: {:.6} <= γ* <= {:.6}   gap {gap:.1e}{mark}", spec.key(), bracket.lower, bracket.upper);
            assert_eq!(gap < 0.01, i == own, "only the bracket of the method's own norm closes");
        }
    }
    Ok(())
}
