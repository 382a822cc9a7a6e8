//! Proofs of small trained networks, in all norms and with all that makes equations degenerate, and of what is not so.

use super::*;
use crate::certificates::{PolishSettings, PolishStatus, polish};
use crate::data::{CircleTeacher, Dataset, Targets};
use crate::linalg::Matrix;
use crate::models::{Activation, Biases, ModelSpec, OutputScale};
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::training::Training;

fn network(width: usize, activation: Activation, biases: Biases) -> ModelSpec {
    let output_scale = OutputScale::MeanField;
    ModelSpec::Network { widths: vec![width], activation, biases, frozen: Vec::new(), output_scale }
}

fn circle(seed: u64) -> Dataset {
    CircleTeacher { count: 30, ..CircleTeacher::default() }.generate(&Streams::new(seed)).unwrap().train
}

/// Weights that an optimiser ends with, polished in its norm.
fn polished(data: &Dataset, model: &ModelSpec, optimiser: &str, norm: &NormSpec, seed: u64) -> Option<Vec<f64>> {
    let training = Training::new(data.clone(), model.clone()).unwrap().optimiser(optimiser).unwrap();
    let run = training.seed(seed).until_log10_loss(-8.0).at_most_steps(20_000).run().ok()?;
    let polished = polish(model, data, &run.params, norm, &PolishSettings::default()).ok()?;
    (polished.status == PolishStatus::Polished).then_some(polished.params)
}

fn proven(model: &ModelSpec, data: &Dataset, weights: &[f64], norm: &NormSpec) -> Proven {
    match prove(model, data, weights, norm, 500).unwrap() {
        Attempt::Proven(proven) => *proven,
        Attempt::Refused(refusal) => panic!("{norm}: {refusal}"),
    }
}

#[test]
fn trained_networks_are_proven_in_three_norms_and_the_numbers_agree_with_polish() {
    let mut count = 0;
    for (optimiser, norm) in [("gradient", NormSpec::L2), ("coordinate", NormSpec::L1), ("sign", NormSpec::Linf)] {
        for seed in 1..5 {
            let (data, model) = (circle(seed), network(12, Activation::Relu, Biases::None));
            let Some(weights) = polished(&data, &model, optimiser, &norm, seed) else { continue };
            let found = proven(&model, &data, &weights, &norm);
            let margin = found.findings.margin;
            assert!(margin.width() < 1e-9 * margin.lo && found.findings.radius < 1e-6, "{:?}", found.findings);
            let again = polish(&model, &data, &weights, &norm, &PolishSettings::default()).unwrap();
            assert!((again.margin_before / margin.lo - 1.0).abs() < 1e-6, "{} {margin:?}", again.margin_before);
            let angle = found.network.angle(&model, &data, &weights).unwrap();
            let nearer = found.network.angle(&model, &data, &found.midpoint).unwrap();
            assert!(angle.hi < 1e-4 && nearer.hi < 1e-7, "{angle:?} {nearer:?}");
            // in ℓ2 the kind is decided for networks as small as these
            assert!(norm != NormSpec::L2 || !matches!(found.findings.kind, PointKind::Undecided { .. }));
            count += 1;
        }
    }
    assert!(count >= 10, "{count} of 12 runs were polished");
}

#[test]
fn leaky_relu_and_biases_of_the_first_layer_are_proven_too() {
    for (activation, biases) in
        [(Activation::LeakyRelu { slope: 0.125 }, Biases::None), (Activation::Relu, Biases::First)]
    {
        for (optimiser, norm) in [("gradient", NormSpec::L2), ("coordinate", NormSpec::L1)] {
            let mut count = 0;
            for seed in 1..7 {
                let (data, model) = (circle(seed), network(12, activation, biases));
                let Some(weights) = polished(&data, &model, optimiser, &norm, seed) else { continue };
                let Attempt::Proven(found) = prove(&model, &data, &weights, &norm, 500).unwrap() else { continue };
                assert!(found.findings.margin.lo > 0.0 && found.findings.radius < 1e-6, "{:?}", found.findings);
                count += 1;
            }
            assert!(count >= 2, "only {count} runs with {activation:?} and {biases:?} were proven in {norm}");
        }
    }
}

#[test]
fn duplicates_and_split_neurons_change_nothing() {
    let (data, model) = (circle(2), network(12, Activation::Relu, Biases::None));
    let weights = polished(&data, &model, "gradient", &NormSpec::L2, 2).expect("a polished network");
    let margin = proven(&model, &data, &weights, &NormSpec::L2).findings.margin;
    // every example twice
    let twice: Vec<usize> = (0..data.len()).chain(0..data.len()).collect();
    let double = data.select(&twice).unwrap();
    let again = proven(&model, &double, &weights, &NormSpec::L2);
    assert!(again.findings.margin.lo <= margin.hi && margin.lo <= again.findings.margin.hi);
    // every neuron split into two of half its mass, in a network twice as wide; the mean-field factor halves the margin
    let half = 0.5_f64.sqrt();
    let (inner, outer) = weights.split_at(24);
    let split: Vec<f64> = [inner, inner, outer, outer].concat().iter().map(|w| w * half).collect();
    let wide = network(24, Activation::Relu, Biases::None);
    let found = proven(&wide, &data, &split, &NormSpec::L2);
    assert!((2.0 * found.findings.margin.lo / margin.lo - 1.0).abs() < 1e-9, "{:?} {margin:?}", found.findings.margin);
}

/// Random labels in three dimensions, learnt by few neurons.
fn random_labels(seed: u64) -> Dataset {
    let mut stream = Streams::new(seed).stream("random labels");
    let (rows, cols) = (16, 3);
    let (mut data, mut labels) = (vec![0.0; rows * cols], vec![0.0; rows]);
    stream.fill_normal(&mut data);
    stream.fill_normal(&mut labels);
    let labels = labels.iter().map(|y| y.signum()).collect();
    Dataset::new("random", Matrix { rows, cols, data }, Targets::Binary(labels), vec![cols]).unwrap()
}

#[test]
fn a_point_that_is_no_local_maximum_is_left_for_a_larger_margin() {
    let mut left = 0;
    for seed in 0..12 {
        let (data, model) = (random_labels(seed), ModelSpec::relu(&[24]));
        let Some(weights) = polished(&data, &model, "gradient", &NormSpec::L2, seed) else { continue };
        let Attempt::Proven(found) = prove(&model, &data, &weights, &NormSpec::L2, 500).unwrap() else { continue };
        let PointKind::NotLocalMaximum { ascent: way, .. } = &found.findings.kind else { continue };
        assert_eq!(ascent(&found).as_ref(), Some(way));
        // what the theorem promises, another program finds: a larger margin next to the point
        let better = [1e-2, 1e-3, 1e-1].iter().any(|push| {
            let start = pushed(&model, &data, &found.midpoint, way, *push).unwrap();
            let Ok(next) = polish(&model, &data, &start, &NormSpec::L2, &PolishSettings::default()) else {
                return false;
            };
            next.margin_after > found.findings.margin.hi * (1.0 + 1e-9)
        });
        assert!(better, "seed {seed}: {:?}", found.findings.kind);
        left += 1;
    }
    assert!(left >= 2, "only {left} points were no maximum");
}

#[test]
fn a_global_maximum_is_not_beaten_by_networks_trained_from_elsewhere() {
    for seed in 0..6 {
        let (data, model) = (circle(seed), network(12, Activation::Relu, Biases::None));
        let Some(weights) = polished(&data, &model, "gradient", &NormSpec::L2, seed) else { continue };
        let found = proven(&model, &data, &weights, &NormSpec::L2);
        if !matches!(found.findings.kind, PointKind::GlobalMaximum { .. }) {
            continue;
        }
        for other in 10..14 {
            let Some(weights) = polished(&data, &model, "gradient", &NormSpec::L2, other) else { continue };
            let Attempt::Proven(rival) = prove(&model, &data, &weights, &NormSpec::L2, 0).unwrap() else { continue };
            assert!(rival.findings.margin.lo <= found.findings.margin.hi, "{seed} {other}");
        }
    }
}

#[test]
fn what_is_wrong_in_a_proof_is_refused_with_the_check_that_fails() {
    let (data, model) = (circle(1), network(12, Activation::Relu, Biases::None));
    let weights = polished(&data, &model, "gradient", &NormSpec::L2, 1).expect("a polished network");
    let honest = proven(&model, &data, &weights, &NormSpec::L2).proof;
    let answer = |proof: &Proof, data: &Dataset| verify(proof, &model, data).unwrap();
    assert!(answer(&honest, &data).is_ok());
    let refused = |change: &dyn Fn(&mut Proof)| {
        let mut forged = honest.clone();
        change(&mut forged);
        answer(&forged, &data).expect_err("a forged proof").check
    };
    let bundle = |proof: &mut Proof, change: &dyn Fn(&mut RoundBundle)| match &mut proof.equations {
        Equations::L2(bundles) => change(&mut bundles[0]),
        _ => panic!("ℓ2"),
    };
    assert_eq!(refused(&|p| p.midpoint[0] += 100.0 * p.radius[0]), Check::Inclusion);
    assert_eq!(refused(&|p| p.radius.iter_mut().for_each(|r| *r *= 1e-9)), Check::Inclusion);
    assert_eq!(refused(&|p| p.inverse.iter_mut().for_each(|c| *c *= 3.0)), Check::Inclusion);
    assert_eq!(refused(&|p| p.midpoint[0] = f64::NAN), Check::Shape);
    assert_eq!(refused(&|p| p.active.truncate(p.active.len() - 1)), Check::Shape);
    assert_eq!(refused(&|p| p.active[0] = data.len()), Check::Shape);
    assert_eq!(refused(&|p| bundle(p, &|b| b.sign = -b.sign)), Check::Sides);
    assert_eq!(refused(&|p| bundle(p, &|b| b.units = vec![0, 0])), Check::Shape);
    assert_eq!(refused(&|p| bundle(p, &|b| b.sides = b.sides.replace('+', "x"))), Check::Shape);
    // an example beyond the margin, moved inside of it
    let inactive = (0..data.len()).find(|i| !honest.active.contains(i)).unwrap();
    let mut moved = data.dense().unwrap().into_owned();
    moved.row_mut(inactive).iter_mut().for_each(|x| *x *= 1e-3);
    let moved = Dataset::new("moved", moved, data.targets.clone(), vec![2]).unwrap();
    let refusal = answer(&honest, &moved).unwrap_err();
    assert_eq!((refusal.check, refusal.example), (Check::Inactive, Some(inactive)));
    // leaves that leave out a part of the sphere
    let mut forged = honest.clone();
    if let Some(cover) = &mut forged.sphere {
        cover.positive.pop();
        assert_eq!(answer(&forged, &data).unwrap_err().check, Check::Shape);
    }
}

#[test]
fn weights_far_from_a_kkt_point_are_refused_or_told_the_angle() {
    let (data, model) = (circle(1), network(12, Activation::Relu, Biases::None));
    let run = Training::new(data.clone(), model.clone()).unwrap().seed(1).until_log10_loss(-8.0).run().unwrap();
    match prove(&model, &data, &run.params, &NormSpec::L2, 0).unwrap() {
        Attempt::Refused(refusal) => assert!(!refusal.why.is_empty(), "{refusal}"),
        Attempt::Proven(found) => assert!(found.network.angle(&model, &data, &run.params).unwrap().lo > 1e-6),
    }
    let zeros = vec![0.0; run.params.len()];
    let Attempt::Refused(refusal) = prove(&model, &data, &zeros, &NormSpec::L2, 0).unwrap() else { panic!("zeros") };
    assert_eq!(refusal.check, Check::Separation);
    assert!(refusal.to_string().contains("every margin is positive"), "{refusal}");
}

#[test]
fn what_cannot_be_asked_is_an_error_with_the_reason() {
    let (data, relu) = (circle(1), network(3, Activation::Relu, Biases::None));
    let weights = vec![1.0; 9];
    let deep = ModelSpec::relu(&[3, 3]);
    let error = |model: &ModelSpec, weights: &[f64], norm: &NormSpec| {
        prove(model, &data, weights, norm, 0).expect_err("an error").to_string()
    };
    assert!(error(&ModelSpec::Linear, &weights, &NormSpec::L2).contains("no network"));
    assert!(error(&deep, &weights, &NormSpec::L2).contains("18 weights"));
    assert!(error(&deep, &[1.0; 18], &NormSpec::L1).contains("ℓ2 only"));
    assert!(error(&network(3, Activation::Quadratic, Biases::None), &weights, &NormSpec::L2).contains("activation"));
    assert!(error(&network(3, Activation::Relu, Biases::All), &weights, &NormSpec::L2).contains("biases"));
    assert!(error(&relu, &weights, &NormSpec::Spectral).contains("l1, l2 or linf"));
    assert!(error(&relu, &weights[..8], &NormSpec::L2).contains("9 weights"));
    let leaky = network(3, Activation::LeakyRelu { slope: 0.1 }, Biases::None);
    assert!(error(&leaky, &weights, &NormSpec::Linf).contains("must be ReLU"));
}
