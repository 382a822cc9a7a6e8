//! What the README promises about repeating a run: the same seed gives the same bits, with any number of threads, and a
//! run that was saved and taken up again goes on as if nothing had happened.

use limitpoint::data::Digits;
use limitpoint::driver::{Batching, Descent, DescentState, Process};
use limitpoint::engine::{Compute, Precision};
use limitpoint::losses::LossSpec;
use limitpoint::models::{Initialiser, ModelSpec};
use limitpoint::numeric::Streams;
use limitpoint::objective::{Objective, Reduction};
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::schedules::ScheduleSpec;

/// (optimiser, schedule, batch size): every kind of memory a run has.
const RUNS: [(&str, &str, Option<usize>); 5] = [
    ("sign", "flow-resolved", None),
    ("adam", "constant(rate=0.01)", Some(30)),
    ("nesterov", "constant(rate=0.001)", None),
    ("shampoo", "constant(rate=0.01)", Some(60)),
    ("gradient", "loss-based", Some(30)),
];

fn start(run: (&str, &str, Option<usize>), threads: usize, seed: u64) -> limitpoint::Result<Descent> {
    let streams = Streams::new(seed);
    let data = Digits { classes: Some([4, 9]), count: Some(130), ..Default::default() }.load(&streams)?.train;
    let compute = Compute { threads, precision: Precision::F64 };
    let objective = Objective::new(&data, &ModelSpec::relu(&[96, 40]), &LossSpec::Logistic, Reduction::Mean, compute)?;
    let layout = objective.layout().clone();
    let params = Initialiser::HeNormal { scale: 1.0 }.draw(&layout, &mut streams.stream("init"));
    let optimiser = run.0.parse::<OptimiserSpec>().expect("a known optimiser").build(&layout)?;
    let schedule = run.1.parse::<ScheduleSpec>()?.build()?;
    let batching = run.2.map_or(Batching::Full, |size| Batching::Mini { size });
    Ok(Descent::new(objective, optimiser, schedule, batching, params, &streams)?)
}

fn advance(descent: &mut Descent, steps: usize) -> DescentState {
    for _ in 0..steps {
        descent.advance().unwrap();
    }
    descent.state()
}

#[test]
fn the_same_seed_gives_the_same_bits_with_any_number_of_threads() {
    for run in RUNS {
        let reference = advance(&mut start(run, 1, 7).unwrap(), 40);
        assert!(reference.params.iter().all(|w| w.is_finite()), "{run:?}");
        for threads in [1, 2, 3] {
            let again = advance(&mut start(run, threads, 7).unwrap(), 40);
            assert!(again == reference, "{run:?} with {threads} threads");
        }
        assert!(advance(&mut start(run, 1, 8).unwrap(), 40) != reference, "{run:?}: the seed matters");
    }
}

#[test]
fn a_run_that_was_saved_goes_on_bit_for_bit() {
    for run in RUNS {
        let mut whole = start(run, 1, 3).unwrap();
        // 13 steps end inside an epoch of batches
        let saved = advance(&mut whole, 13);
        let end = advance(&mut whole, 24);
        let mut resumed = start(run, 1, 3).unwrap();
        resumed.restore(&saved).unwrap();
        assert!(advance(&mut resumed, 24) == end, "{run:?}");
    }
}
