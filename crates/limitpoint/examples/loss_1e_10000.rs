//! A two-layer ReLU network trained until L = 10^−10,000; the smallest positive double is about 10^−324.
//!
//! Look at the margin: between L = 10^−11 and L = 10^−10,000 it still grows by a fifth, although all examples have long
//! been classified correctly. The loss travels as ln L and the step size as ln η, so neither underflows nor overflows.

#![expect(clippy::print_stdout, reason = "an example talks to the terminal")]

use limitpoint::diagnostics::normalised_margins;
use limitpoint::prelude::*;

fn main() -> limitpoint::Result<()> {
    let data = Digits { classes: Some([0, 1]), count: Some(100), ..Default::default() }.load(&Streams::new(1))?.train;
    let training = Training::new(&data, ModelSpec::relu(&[20]))?.initialiser("he-normal(scale=0.1)")?.seed(1);
    let mut running = training.schedule("loss-based")?.start()?;
    println!("{:>10} {:>9} {:>14} {:>12}", "log10 L", "steps", "ln Σ η", "ℓ2 margin");
    for power in [1.0, 10.0, 100.0, 1_000.0, 10_000.0] {
        while running.log_loss() > -power * 10f64.ln() {
            assert_eq!(running.step()?, None, "the loss keeps falling");
        }
        running.process().show(&mut |snapshot| {
            let point = &snapshot.point;
            let margin = normalised_margins(point, point.length()).hard;
            let log10 = point.log_loss / 10f64.ln();
            println!("{log10:>10.1} {:>9} {:>14.1} {margin:>12.8}", snapshot.step, snapshot.log_time);
        });
    }
    Ok(())
}
