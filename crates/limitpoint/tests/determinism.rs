//! What the README promises about repeating a run: the same seed gives the same bits, with any number of threads, and a
//! run that was saved and taken up again goes on as if nothing had happened.

use limitpoint::prelude::*;
use limitpoint::training::TrainingState;

/// (optimiser, schedule, batch size): every kind of memory a run has.
const RUNS: [(&str, &str, Option<usize>); 5] = [
    ("sign", "flow-resolved", None),
    ("adam", "constant(rate=0.01)", Some(30)),
    ("nesterov", "constant(rate=0.001)", None),
    ("shampoo", "constant(rate=0.01)", Some(60)),
    ("gradient", "loss-based", Some(30)),
];

fn training(run: (&str, &str, Option<usize>), threads: usize, seed: u64) -> limitpoint::Result<Training> {
    let data =
        Digits { classes: Some([4, 9]), count: Some(130), ..Default::default() }.load(&Streams::new(seed))?.train;
    let training = Training::new(data, ModelSpec::relu(&[96, 40]))?.reduction("mean")?.seed(seed).threads(threads);
    let training = training.optimiser(run.0)?.schedule(run.1)?;
    Ok(if let Some(size) = run.2 { training.batches_of(size) } else { training })
}

fn advance(running: &mut RunningTraining, steps: usize) -> TrainingState {
    for _ in 0..steps {
        running.step().unwrap();
    }
    running.state()
}

/// The state after 40 steps.
fn after_40(run: (&str, &str, Option<usize>), threads: usize, seed: u64) -> TrainingState {
    advance(&mut training(run, threads, seed).unwrap().start().unwrap(), 40)
}

#[test]
fn the_same_seed_gives_the_same_bits_with_any_number_of_threads() {
    for run in RUNS {
        let reference = after_40(run, 1, 7);
        for threads in [1, 2, 3] {
            assert!(after_40(run, threads, 7) == reference, "{run:?} with {threads} threads");
        }
        assert!(after_40(run, 1, 8) != reference, "{run:?}: the seed matters");
    }
}

#[test]
fn a_run_that_was_saved_goes_on_bit_for_bit() {
    for run in RUNS {
        let training = training(run, 1, 3).unwrap();
        let mut whole = training.start().unwrap();
        // 13 steps end inside an epoch of batches
        let saved = advance(&mut whole, 13);
        let end = advance(&mut whole, 24);
        assert!(whole.params().iter().all(|w| w.is_finite()), "{run:?}");
        assert!(advance(&mut training.resume(&saved).unwrap(), 24) == end, "{run:?}");
    }
}
