//! Bundles against panels, bit for bit.

use super::super::plan::Lowest;
use super::super::{DenseNetwork, Inputs};
use super::*;
use crate::engine::cpu::tests::normal;
use crate::engine::{Evaluator, Forward, Kinks, Tangents};
use crate::linalg::Matrix;
use crate::models::{Activation, Architecture, Layer, Shape};
use crate::numeric::Streams;
use crate::params::{Parameters, Update};

// enough for all passes over all examples to be shared out
const EXAMPLES: usize = 95;
const INPUTS: usize = 102;

/// One entry in six is not zero; an example and some neighbouring features have none.
fn images() -> Matrix {
    let mut inputs = Matrix { rows: EXAMPLES, cols: INPUTS, data: normal(EXAMPLES * INPUTS, 1, "data") };
    let mut kept = Streams::new(2).stream("data");
    for (i, x) in inputs.data.iter_mut().enumerate() {
        let (n, k) = (i / INPUTS, i % INPUTS);
        if kept.below(6) > 0 || n == 7 || (20..33).contains(&k) {
            *x = 0.0;
        }
    }
    inputs
}

fn network(widths: &[usize], outputs: usize, biases: &[bool], frozen: &[bool], scale: f64) -> Architecture {
    let mut layers = Vec::new();
    for (l, units) in widths.iter().copied().chain([outputs]).enumerate() {
        layers.push(Layer::Dense { units, bias: biases[l], frozen: frozen[l] });
        layers.extend((l < widths.len()).then_some(Layer::Activation(Activation::Relu)));
    }
    layers.push(Layer::Scale(scale));
    Architecture::new(Shape::vector(INPUTS), layers).unwrap()
}

/// The same network on bundles and on panels.
fn twins<T: Real>(architecture: &Architecture, threads: usize) -> [DenseNetwork<T>; 2] {
    let inputs = images().into();
    let sparse = DenseNetwork::new(architecture, &inputs, threads).unwrap();
    assert!(sparse.sparse.is_some(), "sparse enough");
    let mut full = DenseNetwork::new(architecture, &inputs, threads).unwrap();
    (full.plan.lowest, full.sparse, full.all) = (Lowest::Panels, None, Inputs::new(&inputs));
    [sparse, full]
}

/// Everything a network answers, while its parameters move in steps of both kinds.
fn walk<T: Real>(network: &mut DenseNetwork<T>, in_one_pass: bool) -> Vec<f64> {
    let mut start = normal(network.layout().len(), 3, "init");
    start.iter_mut().for_each(|w| *w *= 0.1);
    let (mut params, mut gradient, mut seen) = (Parameters::new(&start), Vec::new(), Vec::new());
    for step in 0..7 {
        gradient.clear();
        gradient.resize(start.len(), f64::NAN);
        let rows: Vec<usize> = (0..17 + step % 3).map(|n| (7 * n + 11 * step) % EXAMPLES).collect();
        network.select((step != 2 && step != 5).then_some(&rows[..]));
        let scores = if in_one_pass { network.scores(&params) } else { network.scores(params.read()) }.to_vec();
        let cotangent: Vec<f64> = scores.iter().enumerate().map(|(i, s)| 0.1 * s - 0.01 * i as f64).collect();
        let update = if step % 2 == 0 { Update::Along(-0.03) } else { Update::AgainstSigns(0.01) };
        if in_one_pass {
            network.resume().step(&mut params, &cotangent, update, &mut gradient);
        } else {
            network.resume().pull_back(&params, &cotangent, &mut gradient);
            seen.extend(&gradient);
            update.make(params.write(), &gradient);
        }
        if step == 3 {
            params.write()[5] += 0.25; // somebody else's change must be seen by the next forward pass
        }
        seen.extend(scores);
    }
    if !in_one_pass {
        seen.extend(network.per_example_gradients(params.read(), 0).data);
        seen.extend(network.gradient_gram(params.read()).data);
        seen.extend(network.nearest(params.read()));
        let kinks = network.near(params.read(), 1e-2);
        assert!(!kinks.is_empty());
        seen.extend(kinks.iter().map(|kink| (kink.unit * EXAMPLES + kink.example) as f64));
        network.weigh(&kinks.iter().map(|kink| (*kink, 0.7)).collect::<Vec<_>>());
        let cotangent = network.scores(&params).to_vec();
        network.resume().pull_back(&params, &cotangent, &mut gradient);
        network.weigh(&[]);
        seen.extend(&gradient);
    }
    assert!(seen.iter().all(|x| x.is_finite()));
    seen.extend(params.read());
    seen
}

fn check<T: Real>() {
    for (widths, outputs, biases, frozen) in [
        (vec![130], 3, [false; 4], [false; 4]),
        (vec![64], 2, [true; 4], [false; 4]),
        (vec![70, 9], 1, [true, false, true, false], [false; 4]),
        (vec![65, 9, 5], 3, [true; 4], [false, true, false, false]),
        (vec![40, 9], 3, [true; 4], [true, false, false, false]),
    ] {
        let architecture = network(&widths, outputs, &biases, &frozen, 0.5);
        let mut answers = Vec::new();
        for threads in [1, 2] {
            let [mut sparse, mut full] = twins::<T>(&architecture, threads);
            answers.push((walk(&mut sparse, false), walk(&mut sparse, true)));
            answers.push((walk(&mut full, false), walk(&mut full, true)));
        }
        for other in &answers[1..] {
            assert!(&answers[0] == other, "{architecture:?}");
        }
        let params = architecture.layout().len();
        let (two, one) = &answers[0];
        assert_eq!(one[one.len() - params..], two[two.len() - params..], "one pass moves as two do");
    }
}

#[test]
fn bundles_have_the_bits_of_panels() {
    check::<f64>();
    check::<f32>();
}

#[test]
fn a_large_set_is_scored_with_the_weights_a_step_left_behind() {
    let mut inputs = Matrix::zeros(4200, INPUTS);
    inputs.data.iter_mut().enumerate().filter(|(i, _)| i % 7 == 0).for_each(|(i, x)| *x = (i % 5) as f64 - 1.5);
    let architecture = network(&[20], 2, &[true; 2], &[false; 2], 1.0);
    let mut network = DenseNetwork::<f32>::new(&architecture, &inputs.into(), 2).unwrap();
    let mut params = Parameters::new(&vec![0.01; network.layout().len()]);
    let mut scratch = vec![0.0; network.layout().len()];
    for step in 0..3 {
        let rows: Vec<usize> = (0..50).map(|n| 83 * n + step).collect();
        network.select(Some(&rows));
        let cotangent: Vec<f64> = network.scores(&params).iter().map(|score| score - 1.0).collect();
        network.resume().step(&mut params, &cotangent, Update::Along(-1e-3), &mut scratch);
        network.select(None);
        let kept = network.scores(&params).to_vec();
        assert_eq!(kept, network.scores(params.read()), "step {step}");
    }
}

#[test]
fn an_empty_batch_has_no_scores_and_no_gradient() {
    let architecture = network(&[9], 2, &[true; 2], &[false; 2], 1.0);
    for mut network in twins::<f64>(&architecture, 1) {
        let params = vec![0.5; network.layout().len()];
        let mut gradient = vec![f64::NAN; params.len()];
        network.select(Some(&[]));
        assert!(network.scores(&params).is_empty());
        network.resume().pull_back(&params, &[], &mut gradient);
        assert!(gradient.iter().all(|g| *g == 0.0));
    }
}

#[test]
fn only_inputs_that_are_mostly_zero_go_into_bundles() {
    let mut inputs = SharedMatrix::from(images());
    assert!(Sparse::<f32>::pays(&inputs));
    inputs.change(|inputs| inputs.data.iter_mut().for_each(|x| *x += 1.0));
    assert!(!Sparse::<f32>::pays(&inputs));
    assert!(!Sparse::<f32>::pays(&Matrix::zeros(9, FEATURES - 1).into()));
}
