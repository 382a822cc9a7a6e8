//! Ten lines from data to a proof: train a network with sign descent, measure its margin, ask the judge.
//!
//! Look at the two lines: each has the margin in a norm, the verdict on the claim that the weights are at a stationary
//! point of it, and τ, the number that decides.

#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]

use limitpoint::prelude::*;

fn main() -> limitpoint::Result<()> {
    let data = Digits { classes: Some([0, 1]), count: Some(50), ..Default::default() }.load(&Streams::new(0))?.train;
    let run = Training::new(&data, ModelSpec::relu(&[32]))?.optimiser("sign")?.until_log10_loss(-100.0).run()?;
    println!("{} steps to L = 10^{:.0}", run.steps, run.log10_loss());
    for norm in ["linf", "l2"] {
        println!("{norm:>4}: margin {:.3e}, {}", run.margin(norm)?, run.certify(norm)?);
    }
    Ok(())
}
