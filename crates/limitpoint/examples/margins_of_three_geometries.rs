//! Linear separation: the geometry of the step decides which maximal margin is found.
//!
//! Look for `certified` on the diagonal: the direction of each method is proven to have the largest margin there is in
//! its own norm, up to the gap that is shown. In the other norms the gap stays open, however small the loss.

#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]

use limitpoint::prelude::*;

fn main() -> limitpoint::Result<()> {
    let data =
        Gaussians { count: 40, dimension: 10, margin: 1.0, ..Default::default() }.generate(&Streams::new(0))?.train;
    // steps c/(B² L) with B the largest dual norm of an example: the loss falls at every one of them
    let training = Training::new(&data, ModelSpec::Linear)?
        .loss("exponential")?
        .initialiser("constant(value=0)")?
        .schedule("linear-bound(decay=0.25)")?
        .at_most_steps(300_000);
    for (optimiser, own) in [("coordinate", "l1"), ("gradient", "l2"), ("sign", "linf")] {
        let run = training.clone().optimiser(optimiser)?.run()?;
        println!("{optimiser} descent, log10 L = {:.1}", run.log10_loss());
        for norm in ["l1", "l2", "linf"] {
            let judgement = run.certify(norm)?;
            println!("  {norm:>4}: {judgement}{}", if norm == own { "  <- its own norm" } else { "" });
            assert_eq!(judgement.is_certified(), norm == own, "only its own margin is the largest");
        }
    }
    Ok(())
}
