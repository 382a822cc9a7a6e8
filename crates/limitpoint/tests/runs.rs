//! Runs resume, repeat and fail as promised; no paper says so, every experiment needs it.

use limitpoint::data::{Dataset, Regression, Targets, TeacherStudent};
use limitpoint::diagnostics::{Instrument, InstrumentSpec};
use limitpoint::driver::{Advance, Batching, Descent, DescentState, Process, run};
use limitpoint::engine::Compute;
use limitpoint::linalg::Matrix;
use limitpoint::losses::LossSpec;
use limitpoint::models::{Activation, Initialiser, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::objective::{Objective, ObjectiveError, Reduction};
use limitpoint::observers::{Continue, Observer, Snapshot, Spacing, StopReason, StopRule};
use limitpoint::optimisers::{OptimiserSpec, Scaling};
use limitpoint::potentials::PotentialSpec;
use limitpoint::schedules::{ScheduleSpec, ScheduleState};
use limitpoint::training::Recorder;
use rayon::prelude::*;

/// max(z, 0)².
const SQUARED_RELU: Activation = Activation::ReluPower { power: 2 };

/// Gaussian inputs labelled by a sparse teacher of four neurons.
fn teacher_data(seed: u64, count: usize, dimension: usize) -> Dataset {
    let spec = TeacherStudent { count, test_count: 0, dimension, active: 3, width: 4, seed: None };
    spec.generate(&Streams::new(seed)).unwrap().train
}

/// The summed loss of a model on data.
fn objective(data: &Dataset, model: &ModelSpec, loss: &LossSpec) -> Objective {
    Objective::new(data, model, loss, Reduction::Sum, Compute::default()).unwrap()
}

/// Normal initial weights of this standard deviation.
fn normal_start(objective: &Objective, seed: u64, deviation: f64) -> Vec<f64> {
    Initialiser::Normal { deviation }.draw(objective.layout(), &mut Streams::new(seed).stream("init"))
}

/// The settings of a run; a fresh process is built from them whenever one is needed.
#[derive(Clone)]
struct Settings {
    optimiser: OptimiserSpec,
    schedule: ScheduleSpec,
    batching: Batching,
    activation: Activation,
}

impl Settings {
    fn start(&self, seed: u64) -> Descent {
        let model = ModelSpec::network(&[6], self.activation);
        let objective = objective(&teacher_data(seed, 11, 5), &model, &LossSpec::Logistic);
        let params = normal_start(&objective, seed, 0.5);
        let optimiser = self.optimiser.build(objective.layout()).unwrap();
        let schedule = self.schedule.build().unwrap();
        Descent::new(objective, optimiser, schedule, self.batching, params, &Streams::new(seed)).unwrap()
    }

    fn full(optimiser: OptimiserSpec, schedule: ScheduleSpec) -> Self {
        Self { optimiser, schedule, batching: Batching::Full, activation: SQUARED_RELU }
    }

    /// Mini-batches of 3 of 11 examples under the loss-based rate, which starts so high that epochs are taken back.
    fn mini() -> Self {
        Self {
            optimiser: OptimiserSpec::steepest(NormSpec::L2),
            schedule: loss_based(1.0),
            batching: Batching::Mini { size: 3 },
            activation: Activation::Relu,
        }
    }
}

fn loss_based(initial: f64) -> ScheduleSpec {
    ScheduleSpec::LossBased { initial, grow: 2f64.powf(0.2), shrink: 2f64.powf(0.1) }
}

/// All settings that are to resume and repeat.
fn all_settings() -> Vec<Settings> {
    let minimum_norm = OptimiserSpec::Steepest { norm: NormSpec::L1, scaling: Scaling::DualNorm, minimum_norm: true };
    let constant = ScheduleSpec::Constant { rate: 0.01 };
    vec![
        Settings::full(OptimiserSpec::steepest(NormSpec::Linf), ScheduleSpec::flow_resolved(0.05)),
        Settings::full(OptimiserSpec::steepest(NormSpec::L2), loss_based(0.1)),
        Settings::full("nesterov".parse().unwrap(), constant.clone()),
        Settings::full("adam".parse().unwrap(), constant.clone()),
        Settings::full("shampoo".parse().unwrap(), constant.clone()),
        Settings::full(
            OptimiserSpec::mirror(PotentialSpec::Hyperbolic { lambda: 0.1 }),
            ScheduleSpec::flow_resolved(0.05),
        ),
        Settings { activation: Activation::Relu, ..Settings::full(minimum_norm, ScheduleSpec::flow_resolved(0.05)) },
        Settings { batching: Batching::Mini { size: 4 }, ..Settings::full("heavy-ball".parse().unwrap(), constant) },
        Settings::mini(),
    ]
}

/// Everything a run has to agree in, as bits.
fn bits(process: &Descent) -> (Vec<u64>, u64, u64, u64) {
    let params = process.params().iter().map(|x| x.to_bits()).collect();
    (params, process.step(), process.log_time().to_bits(), process.log_loss().to_bits())
}

fn advance(process: &mut Descent, count: usize) {
    for _ in 0..count {
        assert_eq!(process.advance().unwrap(), Advance::Moved);
    }
}

/// A state written to text and read back, as a checkpoint is.
fn through_text(state: &DescentState) -> DescentState {
    toml::from_str(&toml::to_string(state).unwrap()).unwrap()
}

#[test]
fn a_run_saved_at_any_step_goes_on_bit_for_bit() {
    for settings in all_settings() {
        let mut stream = Streams::new(9).stream("stops");
        for seed in 0..3 {
            let stop = 1 + stream.below(60);
            let mut whole = settings.start(seed);
            advance(&mut whole, stop);
            let state = through_text(&whole.state());
            assert_eq!(state, whole.state());
            advance(&mut whole, 60);
            let mut resumed = settings.start(seed);
            resumed.restore(&state).unwrap();
            advance(&mut resumed, 60);
            assert_eq!(bits(&whole), bits(&resumed), "{:?} seed {seed} saved at {stop}", settings.optimiser);
            assert_eq!(whole.state(), resumed.state());
        }
    }
}

/// D.algK1: an epoch that raises the loss is taken back, in parameters, steps and time, and done again.
#[test]
fn an_epoch_that_raises_the_loss_is_taken_back() {
    let settings = Settings::mini();
    let mut process = settings.start(0);
    let (mut redone, mut accepted) = (0, 0);
    let mut before = process.state();
    for _ in 0..100 {
        // 11 examples in batches of 3 make 4 steps
        advance(&mut process, 4);
        let after = process.state();
        let ScheduleState::Adaptive { redos, .. } = after.schedule else { panic!("{:?}", after.schedule) };
        if redos > 0 {
            redone += 1;
            assert_eq!((&after.params, after.step), (&before.params, before.step));
            assert_eq!((after.log_time, after.full_loss), (before.log_time, before.full_loss));
        } else {
            accepted += 1;
            assert!(after.full_loss.0 <= before.full_loss.0 && after.step == before.step + 4);
        }
        assert_eq!(after.epoch, accepted);
        before = after;
    }
    assert!(redone > 5 && accepted > 5, "{redone} epochs redone, {accepted} accepted");
}

/// What is written down stands: nothing is shown of an epoch before it is accepted, and nothing of one that is taken
/// back.
#[test]
fn observers_see_only_epochs_that_stand() {
    struct Seen(Vec<(u64, f64)>);
    impl Observer for Seen {
        fn wants(&self, step: u64) -> bool {
            step % 3 == 1
        }
        fn observe(&mut self, snapshot: &Snapshot) -> Continue {
            self.0.push((snapshot.step, snapshot.point.log_loss));
            Continue::Yes
        }
    }
    let (mut process, mut seen) = (Settings::mini().start(0), Seen(Vec::new()));
    let rules = [StopRule::Steps { count: 120 }];
    run(&mut process, &rules, &mut [&mut seen]).unwrap();
    // a step that is one more than a multiple of three lies in every epoch of four steps
    let steps: Vec<u64> = seen.0.iter().map(|(step, _)| *step).collect();
    assert_eq!(steps, (1..=30).map(|epoch| 4 * epoch).collect::<Vec<_>>());
    assert!(seen.0.windows(2).all(|pair| pair[1].1 <= pair[0].1), "{:?}", seen.0);
}

#[test]
fn an_ensemble_on_many_threads_is_the_ensemble_on_one() {
    for settings in all_settings() {
        let member = |seed: u64| {
            let mut process = settings.start(seed);
            advance(&mut process, 50);
            bits(&process)
        };
        let sequential: Vec<_> = (0..20).map(member).collect();
        let parallel: Vec<_> = (0..20).into_par_iter().map(member).collect();
        assert_eq!(sequential, parallel, "{:?}", settings.optimiser);
        assert!(sequential.windows(2).all(|pair| pair[0] != pair[1]), "seeds must matter");
    }
}

fn recorder(process: &mut Descent, spacing: Spacing) -> Recorder {
    let objective = process.objective_mut();
    let potentials = vec![PotentialSpec::Hyperbolic { lambda: 0.1 }];
    let spec = InstrumentSpec { potentials, residual_tolerances: vec![1e-3], ..Default::default() };
    let probe = Instrument::new(&spec, objective.layout(), objective.homogeneity(), false).unwrap();
    Recorder::new(probe, spacing)
}

#[test]
fn watching_a_run_does_not_steer_it() {
    for settings in all_settings() {
        let end = [StopRule::Steps { count: 60 }];
        let mut alone = settings.start(4);
        run(&mut alone, &end, &mut []).unwrap();
        let mut watched = settings.start(4);
        let mut every_step = recorder(&mut watched, Spacing::Linear { every: 1 });
        run(&mut watched, &end, &mut [&mut every_step]).unwrap();
        // of epochs that may be taken back only the ends are shown, here every fourth step
        let undone = settings.batching != Batching::Full && settings.schedule == loss_based(1.0);
        assert_eq!(every_step.metrics().len(), if undone { 16 } else { 61 });
        assert_eq!(bits(&alone), bits(&watched), "{:?}", settings.optimiser);
        assert_eq!(alone.state(), watched.state());
    }
}

/// What is recorded does not depend on how often, even where epochs are taken back.
#[test]
fn a_sparse_record_is_part_of_the_dense_one() {
    let settings = Settings::mini();
    let record = |every| {
        let mut process = settings.start(0);
        let mut recorder = recorder(&mut process, Spacing::Linear { every });
        run(&mut process, &[StopRule::Steps { count: 60 }], &mut [&mut recorder]).unwrap();
        let table = recorder.metrics();
        let column = |name: &str| table.column(name).to_vec();
        let moments = column("step").into_iter().map(|step| step as u64).zip(column("log10_time"));
        moments.zip(column("log10_loss")).collect::<Vec<_>>()
    };
    let dense = record(1);
    // an epoch has four steps
    assert_eq!(dense.iter().map(|((step, _), _)| *step).collect::<Vec<_>>(), (0..=60).step_by(4).collect::<Vec<_>>());
    for every in [3, 7] {
        for row in record(every) {
            assert!(dense.contains(&row), "every {every}: {row:?} is in no dense record");
        }
    }
}

#[test]
fn a_run_that_overflows_stops_and_names_the_step() {
    let split = Regression::default().generate(&Streams::new(0)).unwrap();
    let objective = objective(&split.train, &ModelSpec::Linear, &LossSpec::Squared);
    let start = normal_start(&objective, 0, 1.0);
    let schedule = ScheduleSpec::Constant { rate: 1e3 };
    let optimiser = OptimiserSpec::steepest(NormSpec::L2).build(objective.layout()).unwrap();
    let schedule = schedule.build().unwrap();
    let mut process = Descent::new(objective, optimiser, schedule, Batching::Full, start, &Streams::new(0)).unwrap();
    let reason = run(&mut process, &[StopRule::Steps { count: 10_000 }], &mut []).unwrap();
    let StopReason::NotFinite { step, what } = reason else { panic!("{reason:?}") };
    assert_eq!(step, process.step());
    assert!((2..1000).contains(&step) && what.starts_with("ln L = "), "step {step}: {what}");
}

#[test]
fn a_loss_that_does_not_fit_the_targets_is_refused_with_a_remedy() {
    let rows: &[&[f64]] = &[&[1.0, 0.0], &[0.0, 1.0]];
    let refuse = |targets, loss: &LossSpec| {
        let data = Dataset::new("by hand", Matrix::from_rows(rows), targets, vec![2]).unwrap();
        let made = Objective::new(&data, &ModelSpec::Linear, loss, Reduction::Sum, Compute::default());
        match made.map(|_| ()) {
            Err(error @ ObjectiveError::Mismatch { .. }) => error.to_string(),
            other => panic!("{loss}: {other:?}"),
        }
    };
    let binary = || Targets::Binary(vec![1.0, -1.0]);
    let classes = || Targets::Classes { labels: vec![0, 1], count: 2 };
    let values = || Targets::Values(vec![0.5, 2.0]);
    for (targets, loss, hint) in [
        (binary(), LossSpec::Squared, "exponential, logistic"),
        (binary(), LossSpec::CrossEntropy, "logistic"),
        (classes(), LossSpec::Exponential, "cross-entropy"),
        (classes(), LossSpec::Huber { delta: 1.0 }, "cross-entropy"),
        (values(), LossSpec::Logistic, "squared"),
        (values(), LossSpec::CrossEntropy, "squared"),
    ] {
        let message = refuse(targets, &loss);
        assert!(message.contains(loss.key()) && message.contains("by hand"), "{message}");
        assert!(message.contains(hint), "no remedy: {message}");
    }
}
