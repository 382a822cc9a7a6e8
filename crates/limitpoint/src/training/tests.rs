//! Runs in memory: sent, saved, recorded, judged, refused.

use super::*;
use crate::certificates::{Doubt, Tolerances, Verdict};
use crate::data::{Dataset, Digits, Gaussians, Regression, Targets};
use crate::driver::Process;
use crate::linalg::Matrix;
use crate::models::ModelSpec;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::observers::{Spacing, StopReason, StopRule};

fn digits(count: usize) -> Dataset {
    Digits { classes: Some([3, 8]), count: Some(count), ..Default::default() }.load(&Streams::new(2)).unwrap().train
}

fn clouds() -> Dataset {
    let spec = Gaussians { count: 20, dimension: 5, margin: 1.0, ..Default::default() };
    spec.generate(&Streams::new(1)).unwrap().train
}

#[test]
fn a_training_can_be_sent_to_another_thread_at_every_stage() {
    fn is_send<T: Send + 'static>(value: T) -> T {
        value
    }
    let training = is_send(Training::new(digits(20), ModelSpec::relu(&[3])).unwrap().at_most_steps(9));
    let here = training.run().unwrap();
    let there = std::thread::spawn(move || {
        let mut running = is_send(training.start().unwrap());
        running.step().unwrap();
        running
    });
    let mut running = there.join().unwrap();
    while running.step().unwrap().is_none() {}
    assert_eq!(is_send(running.end()), here);
}

#[test]
fn every_kind_of_run_goes_on_bit_for_bit_where_it_was_saved() {
    let network = |text: &str| Training::new(digits(30), ModelSpec::relu(&[5])).unwrap().optimiser(text).unwrap();
    // so high a rate that epochs are taken back
    let batches = network("gradient").batches_of(7).schedule("loss-based(initial=1)").unwrap();
    let trainings = [
        network("adam"),
        network("sign").threads(2),
        batches,
        network("gradient").until(StopRule::DirectionConverged { angle: 1e-9 }),
        Training::new(clouds(), "linear").unwrap().flow("mirror(potential=hyperbolic:0.1)").unwrap(),
    ];
    for training in trainings {
        let training = training.at_most_steps(60).record(Spacing::Linear { every: 5 }, &[]).unwrap();
        let whole = training.run().unwrap();
        assert_eq!(whole.reason, StopReason::Rule(StopRule::Steps { count: 60 }));
        assert_eq!(whole.metrics.last("step"), Some(60.0));
        for at in [0, 1, 23] {
            let mut first = training.start().unwrap();
            for _ in 0..at {
                first.step().unwrap();
            }
            let state = toml::to_string(&first.state()).unwrap();
            let mut second = training.resume(&toml::from_str(&state).unwrap()).unwrap();
            while second.step().unwrap().is_none() {}
            let second = second.end();
            // NaN is not equal to itself, so columns are compared by their bits
            let bits = |run: &TrainedRun| -> Vec<Vec<u64>> {
                run.metrics.values.iter().map(|values| values.iter().map(|x| x.to_bits()).collect()).collect()
            };
            assert_eq!(bits(&second), bits(&whole), "{:?}", training.setup().trainer);
            assert_eq!((&second.params, second.log_loss), (&whole.params, whole.log_loss));
            assert_eq!((second.steps, second.course), (whole.steps, whole.course));
        }
    }
}

#[test]
fn a_state_of_another_recording_or_another_process_is_refused() {
    let plain = Training::new(digits(20), "linear").unwrap();
    let recording = plain.clone().record(Spacing::default(), &[]).unwrap();
    let flow = plain.clone().flow("steepest(norm=l2)").unwrap();
    let state = plain.start().unwrap().state();
    assert!(matches!(recording.resume(&state), Err(TrainingError::OtherState)));
    assert!(flow.resume(&state).err().unwrap().to_string().contains("flow"));
}

#[test]
fn watching_and_recording_move_nothing() {
    let plain = Training::new(digits(25), ModelSpec::relu(&[4])).unwrap().at_most_steps(50);
    let mut seen = Vec::new();
    let watched = plain.watch(|step| step.is_multiple_of(20), |snapshot| seen.push(snapshot.step)).unwrap();
    let columns = ["log10_loss", "margin.spectral", "direction_change"];
    let recorded = plain.clone().record(Spacing::default(), &columns).unwrap().run().unwrap();
    let bare = plain.clone().without_path().run().unwrap();
    for run in [&watched, &recorded, &plain.run().unwrap()] {
        assert_eq!((&run.params, run.log_loss, run.steps), (&bare.params, bare.log_loss, 50));
    }
    assert_eq!(seen, [0, 20, 40, 50], "those wanted, and the last");
    assert_eq!(recorded.metrics.columns, columns);
    assert_eq!(recorded.metrics.last("margin.spectral"), Some(recorded.margin("spectral").unwrap()));
    assert_eq!(recorded.metrics.last("log10_loss"), Some(recorded.log10_loss()));
}

#[test]
fn the_path_is_that_of_the_recorded_columns() {
    let run = Training::new(clouds(), "linear").unwrap().loss("exponential").unwrap();
    let run = run
        .schedule("flow-resolved(resolution=1)")
        .unwrap()
        .until_log10_loss(-20_000.0)
        .record(Spacing::default(), &[])
        .unwrap()
        .run()
        .unwrap();
    let (followed, recorded) = (run.course.unwrap(), run.metrics.direction_course().unwrap());
    assert!((followed.growth - recorded.growth).abs() < 1e-9, "{followed} {recorded}");
    assert!(followed.lengths.iter().zip(recorded.lengths).all(|(a, b)| (a - b).abs() < 1e-9), "{followed} {recorded}");
    assert!(!followed.wanders());
}

#[test]
fn linear_models_are_judged_against_the_exact_optimum() {
    let training = Training::new(clouds(), ModelSpec::Linear).unwrap().loss("exponential").unwrap();
    let training = training.initialiser("constant(value=0)").unwrap().until_log10_loss(-400.0);
    for (optimiser, own) in [("coordinate", "l1"), ("gradient", "l2"), ("sign", "linf")] {
        let run = training.clone().optimiser(optimiser).unwrap().run().unwrap();
        for norm in ["l1", "l2", "linf"] {
            let judgement = run.certify(norm).unwrap();
            assert_eq!(judgement.is_certified(), norm == own, "{optimiser} in {norm}: {judgement}");
            let line = judgement.to_string();
            assert!(
                line.starts_with(judgement.verdict.word()) && line.contains("gap") && !line.contains('\n'),
                "{line}"
            );
        }
        assert_eq!(run.certify_own().unwrap(), run.certify(own).unwrap());
        let exact = Tolerances { gap: 1e-9, ..Tolerances::default() };
        assert!(!run.decide(None, exact).unwrap().is_certified(), "no run is that exact");
    }
}

#[test]
fn networks_are_judged_by_stationarity_and_regression_by_distance() {
    let run = Training::new(digits(30), ModelSpec::relu(&[6])).unwrap().at_most_steps(2).run().unwrap();
    assert_eq!(run.certify_own().unwrap().verdict, Verdict::Inconclusive(Doubt::NotYetSeparated));
    let longer = Training::new(digits(30), ModelSpec::relu(&[6])).unwrap().until_log10_loss(-200.0).run().unwrap();
    let judgement = longer.decide(None, Tolerances { gap: 0.05, ..Tolerances::default() }).unwrap();
    assert!(judgement.is_certified() && judgement.to_string().contains("τ"), "{judgement}");
    assert!(!longer.certify("linf").unwrap().is_certified(), "gradient descent maximises another margin");
    let data = Regression { count: 4, dimension: 8, ..Default::default() }.generate(&Streams::new(0)).unwrap().train;
    let training = Training::new(&data, "linear").unwrap().until_log10_loss(-24.0).at_most_steps(100_000);
    let run = training.run().unwrap();
    assert!(run.certify_own().unwrap().is_certified(), "{}", run.certify_own().unwrap());
    assert!(matches!(run.certify("linf"), Err(TrainingError::NoClaim { .. })));
    assert!(matches!(run.margin("l2"), Err(TrainingError::NoMargin { .. })));
    assert!(run.accuracy(&data).unwrap().is_nan());
    assert_eq!(run.scores(&data).unwrap().len(), data.len());
}

#[test]
fn scores_margins_and_accuracy_belong_together() {
    let inputs = Matrix::from_rows(&[&[1.0, 0.0], &[0.0, -2.0]]);
    let data = Dataset::new("two", inputs, Targets::Binary(vec![1.0, -1.0]), vec![2]).unwrap();
    let run = Training::new(&data, "linear").unwrap().initialiser("given(values=[3, 4])").unwrap();
    let run = run.at_most_steps(0).run().unwrap();
    assert_eq!((run.steps, &run.start, &run.params), (0, &vec![3.0, 4.0], &vec![3.0, 4.0]));
    assert_eq!(run.scores(&data).unwrap(), [3.0, -8.0]);
    assert_eq!(run.accuracy(&data).unwrap(), 1.0);
    assert_eq!((run.margin("l2").unwrap(), run.margin(NormSpec::L1).unwrap()), (3.0 / 5.0, 3.0 / 7.0));
}

#[test]
fn what_cannot_be_run_is_refused_with_a_remedy() {
    let training = Training::new(digits(20), "linear").unwrap();
    assert!(matches!(training.run(), Err(TrainingError::NeverStops)));
    let error = training.clone().until_log10_loss(f64::NAN).run().unwrap_err();
    assert!(matches!(error, TrainingError::NoNumber { .. }), "{error}");
    for (error, word) in [
        (Training::new(digits(20), "linaer").unwrap_err(), "linear"),
        (training.clone().optimiser("sgin").unwrap_err(), "sign"),
        (training.clone().loss("logistik").unwrap_err(), "logistic"),
        (training.clone().schedule("constant(rat=1)").unwrap_err(), "rate"),
        (training.clone().at_most_steps(1).run().unwrap().margin("l0.5").unwrap_err(), "0.5"),
        (training.clone().loss("squared").unwrap().start().err().unwrap(), "logistic"),
        (training.clone().batches_of(21).start().err().unwrap(), "20"),
        (training.clone().initialiser("given(values=[1])").unwrap().start().err().unwrap(), "64"),
    ] {
        assert!(error.to_string().contains(word), "{error}");
    }
    let unknown = training.record(Spacing::default(), &["margin.l2", "speed"]).unwrap().start().err().unwrap();
    assert!(
        matches!(&unknown, TrainingError::NoColumn { name, known } if name == "speed" && known.len() > 9),
        "{unknown}"
    );
}

#[test]
fn stepping_by_hand_comes_to_the_same_point() {
    let training = Training::new(digits(20), ModelSpec::relu(&[9])).unwrap().optimiser("muon").unwrap();
    let mut running = training.start().unwrap();
    let process: &mut dyn Process = running.process();
    (0..12).for_each(|_| drop(process.advance().unwrap()));
    let reason = StopReason::Rule(StopRule::Steps { count: 12 });
    let by_hand = running.end_because(reason.clone());
    let run = training.at_most_steps(12).run().unwrap();
    assert_eq!((&by_hand.params, by_hand.steps, &by_hand.reason), (&run.params, run.steps, &run.reason));
    assert_eq!(run.reason, reason);
}
