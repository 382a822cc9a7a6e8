//! Proofs of dense networks: three layers, powers of ReLU, several classes, frozen layers; and what is not proven.

use super::super::{Attempt, Check, Equations, Proven, prove, verify};
use super::DenseNetwork;
use crate::certificates::{PolishSettings, polish};
use crate::data::{Dataset, Targets};
use crate::linalg::Matrix;
use crate::models::{Activation, ModelSpec};
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::training::Training;

/// Gaussian points with the sign of x₁x₂, or with one of three classes.
fn task(seed: u64, classes: usize) -> Dataset {
    let mut stream = Streams::new(seed).stream("dense");
    let (rows, cols) = (14, 3);
    let mut data = vec![0.0; rows * cols];
    stream.fill_normal(&mut data);
    let targets = if classes == 1 {
        Targets::Binary(data.chunks_exact(cols).map(|x| if x[0] * x[1] >= 0.0 { 1.0 } else { -1.0 }).collect())
    } else {
        let third = |x: &[f64]| ((x[1].atan2(x[0]) / std::f64::consts::TAU + 0.5) * 3.0) as usize % 3;
        Targets::Classes { labels: data.chunks_exact(cols).map(third).collect(), count: 3 }
    };
    Dataset::new("dense", Matrix { rows, cols, data }, targets, vec![cols]).unwrap()
}

/// The proof of a network that gradient descent trained, or why there is none.
fn attempt(model: &ModelSpec, data: &Dataset, seed: u64) -> Result<Proven, String> {
    let training = Training::new(data.clone(), model.clone()).unwrap().optimiser("gradient").unwrap();
    let run = training.seed(seed).until_log10_loss(-8.0).at_most_steps(20_000).run().map_err(|e| e.to_string())?;
    let norm = NormSpec::L2;
    let polished =
        polish(model, data, &run.params, &norm, &PolishSettings::default()).map_err(|error| error.to_string())?;
    match prove(model, data, &polished.params, &norm, 0).map_err(|error| error.to_string())? {
        Attempt::Proven(proven) => {
            let margin = proven.findings.margin;
            assert!((polished.margin_after / margin.lo - 1.0).abs() < 1e-6, "{} {margin:?}", polished.margin_after);
            Ok(*proven)
        }
        Attempt::Refused(refusal) => Err(format!("{refusal}; polished to τ = {:.1e}", polished.tau_after)),
    }
}

fn frozen(width: usize) -> ModelSpec {
    let mut model = ModelSpec::relu(&[width]);
    if let ModelSpec::Network { frozen, .. } = &mut model {
        *frozen = vec![1];
    }
    model
}

#[test]
fn three_layers_powers_classes_and_frozen_layers_are_proven() {
    let squared = ModelSpec::network(&[6], Activation::ReluPower { power: 2 });
    let leaky = ModelSpec::network(&[5, 4], Activation::LeakyRelu { slope: 0.1 });
    let cases = [
        ("three layers", ModelSpec::relu(&[7, 5]), 1),
        ("three layers, leaky", leaky, 1),
        ("squares", squared, 1),
        ("three classes", ModelSpec::relu(&[7]), 3),
        ("a frozen layer", frozen(12), 1),
    ];
    for (name, model, classes) in cases {
        let outcomes: Vec<Result<Proven, String>> =
            (1..5).map(|seed| attempt(&model, &task(seed, classes), seed)).collect();
        let proven: Vec<&Proven> = outcomes.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
        let refused: Vec<&String> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
        assert!(proven.len() >= 2, "{name}: {refused:#?}");
        for found in proven {
            assert!(found.findings.radius < 1e-6, "{name}: {:?}", found.findings);
            assert!(matches!(found.proof.equations, Equations::Dense(_)), "{name}");
        }
    }
}

#[test]
fn the_written_weights_are_the_proven_ones_and_changed_proofs_are_refused() {
    let (model, data) = (ModelSpec::relu(&[7, 5]), task(3, 1));
    let found = attempt(&model, &data, 3).unwrap_or_else(|why| panic!("{why}"));
    let angle = found.network.angle(&model, &data, &found.midpoint).unwrap();
    assert!(angle.hi < 1e-7, "{angle:?}");
    let refused = |proof: &super::super::Proof| verify(proof, &model, &data).unwrap().map(|_| ()).map_err(|r| r.check);
    assert_eq!(refused(&found.proof), Ok(()));
    let mut moved = found.proof.clone();
    moved.midpoint[0] += 1e-3;
    assert_eq!(refused(&moved), Err(Check::Inclusion));
    let edited = |edit: &dyn Fn(&mut DenseNetwork)| {
        let mut proof = found.proof.clone();
        if let Equations::Dense(network) = &mut proof.equations {
            edit(network);
        }
        proof
    };
    let flipped = edited(&|network| {
        let letters = &mut network.sides[0][0];
        *letters = letters.chars().map(|c| if c == '+' { '-' } else { c }).collect();
    });
    assert!(refused(&flipped).is_err());
    assert_eq!(refused(&edited(&|network| network.units[0][0] = 99)), Err(Check::Shape));
    assert_eq!(refused(&edited(&|network| network.margins.truncate(network.margins.len() - 1))), Err(Check::Shape));
    assert_eq!(refused(&edited(&|network| network.frozen.push(1.0))), Err(Check::Shape));
    // of other data it is no proof
    assert!(verify(&found.proof, &model, &task(7, 1)).unwrap().is_err());
}
