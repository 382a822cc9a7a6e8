//! A step in one call against a gradient and a move, over all examples of the specification.

use super::*;
use crate::engine::Forward;
use crate::linalg::Matrix;
use crate::numeric::Streams;
use crate::params::{Parameters, Update};

/// Inputs of the kinds on which models step in their own way: few and many features, mostly zeros, enough examples for
/// shards and for pieces.
fn shapes(spec: &ModelSpec) -> Vec<Matrix> {
    let sizes: &[(usize, usize)] = match spec {
        ModelSpec::Linear | ModelSpec::Network { .. } => &[(9, 4), (203, 2), (31, 150), (70, 80), (4100, 3)],
        _ => &[(9, 4)],
    };
    let mut stream = Streams::new(21).stream("data");
    let mut matrices = Vec::new();
    for (rows, cols) in sizes {
        let mut x = tests::inputs(*rows, *cols, &mut stream);
        if *cols == 80 {
            x.data.iter_mut().enumerate().filter(|(i, _)| i % 5 > 0).for_each(|(_, x)| *x = 0.0);
        }
        matrices.push(x);
    }
    matrices
}

fn start(model: &dyn Tangents) -> Vec<f64> {
    let mut params = tests::normal(model.layout().len(), 22, "init");
    params.iter_mut().for_each(|w| *w *= 0.1);
    params
}

/// Three steps, in one call each or in two, and whether each had a gradient.
fn walk(model: &mut dyn Tangents, in_one: bool) -> (Vec<f64>, Vec<bool>) {
    let mut params = Parameters::new(&start(model));
    let (mut gradient, mut had) = (vec![f64::NAN; params.read().len()], Vec::new());
    for update in [Update::Along(-0.01), Update::AgainstSigns(0.02), Update::Along(0.03)] {
        let cotangent: Vec<f64> = model.scores(&params).iter().map(|score| 0.3 * score - 0.01).collect();
        if in_one {
            had.push(model.resume().step(&mut params, &cotangent, update, &mut gradient));
        } else {
            model.resume().pull_back(&params, &cotangent, &mut gradient);
            had.push(gradient.iter().any(|g| *g != 0.0));
            update.make(params.write(), &gradient);
        }
    }
    (params.read().to_vec(), had)
}

#[test]
fn a_step_in_one_call_has_the_bits_of_a_gradient_and_a_move() {
    let mut steps = 0;
    for spec in ModelSpec::examples() {
        for x in shapes(&spec) {
            for (outputs, precision) in [(1, Precision::F64), (3, Precision::F64), (1, Precision::F32)] {
                let mut answers = Vec::new();
                for threads in [1, 2] {
                    let Ok(mut model) = bind(&spec, &x, outputs, Compute { threads, precision, ..Compute::default() })
                    else {
                        continue;
                    };
                    answers.push(walk(&mut *model, false));
                    answers.push(walk(&mut *model, true));
                }
                let what = format!("{spec:?}, {}x{}, {outputs} outputs, {precision:?}", x.rows, x.cols);
                if let Some((first, others)) = answers.split_first() {
                    assert!(first.0.iter().all(|w| w.is_finite()), "{what}");
                    assert!(first.1.iter().all(|had| *had), "{what}");
                    assert!(others.iter().all(|other| other == first), "{what}");
                    steps += 1;
                }
            }
        }
    }
    assert!(steps > 50, "{steps}");
}

#[test]
fn a_step_without_a_gradient_says_so_and_moves_nothing() {
    for spec in ModelSpec::examples() {
        for x in shapes(&spec) {
            for threads in [1, 2] {
                let mut model = bind(&spec, &x, 1, Compute { threads, ..Default::default() }).unwrap();
                let mut params = Parameters::new(&start(&*model));
                let before = params.read().to_vec();
                let cotangent = vec![0.0; model.scores(&params).len()];
                let mut scratch = vec![f64::NAN; before.len()];
                let had = model.resume().step(&mut params, &cotangent, Update::Along(-0.5), &mut scratch);
                assert!(!had && params.read() == before, "{spec:?}, {}x{}", x.rows, x.cols);
            }
        }
    }
}
