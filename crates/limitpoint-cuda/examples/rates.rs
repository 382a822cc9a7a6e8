//! What a card gives: steps and evaluations a second of the image networks, and where the time of a step goes.
//!
//! Look for the gap between the whole step and the sum of its parts: it is what the host takes. A word that a network or a precision
//! contains (`rates f32`, `rates vgg`) measures only these.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use limitpoint::data::Inputs;
use limitpoint::engine::Evaluator;
use limitpoint::linalg::Matrix;
use limitpoint::models::{ModelError, ModelSpec, Shape};
use limitpoint::params::{Parameters, Update};
use limitpoint::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    limitpoint_cuda::offer();
    match limitpoint_cuda::report() {
        Ok(report) => println!("{report:?}"),
        Err(error) => {
            println!("nothing to measure: {error}");
            return Ok(());
        }
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    for precision in [Precision::F32, Precision::F64] {
        for (layers, shape, examples) in
            [("mnist-cnn", Shape::image(1, 28, 28), 60_000), ("vgg16", Shape::image(3, 32, 32), 10_000)]
        {
            let name = format!("{layers} {precision:?}").to_lowercase();
            if words.iter().all(|word| name.contains(word.as_str())) {
                network(layers, shape, examples, precision)?;
            }
        }
    }
    Ok(())
}

fn network(layers: &str, shape: Shape, examples: usize, precision: Precision) -> Result<(), ModelError> {
    // with biases in the first layer, as the papers have them
    let text = format!(r#"{{"image": {{"layers": "{layers}", "biases": "first"}}}}"#);
    let Ok(spec) = serde_json::from_str::<ModelSpec>(&text) else { return Ok(()) };
    let architecture = spec.architecture(&shape, 10)?;
    let mut stream = Streams::new(1).stream("rates");
    let mut inputs = Matrix::zeros(examples, shape.len());
    stream.fill_normal(&mut inputs.data);
    let compute = Compute { device: Device::Cuda, precision, ..Compute::default() };
    let mut evaluator = compute.engine()?.bind(&architecture, &Inputs::from(inputs))?;
    let mut params = vec![0.0; architecture.layout().len()];
    stream.fill_normal(&mut params);
    for block in architecture.layout().blocks() {
        params[block.range()].iter_mut().for_each(|w| *w *= (2.0 / block.fan_in as f64).sqrt());
    }
    let (mut held, mut scratch) = (Parameters::new(&params), params.clone());
    let rows: Vec<usize> = (0..100).map(|k| k * 97 % examples).collect();
    let cotangent = vec![1e-6; 1000];
    let mut timed = |what: &str, times: u32, work: &mut dyn FnMut(&mut dyn Evaluator)| {
        (0..3).for_each(|_| work(&mut *evaluator));
        let begin = Instant::now();
        (0..times).for_each(|_| work(&mut *evaluator));
        println!("{layers} {precision:?}: {what} {:.1} µs", begin.elapsed().as_secs_f64() * 1e6 / f64::from(times));
    };
    timed("step on 100", 300, &mut |evaluator| {
        evaluator.select(Some(&rows));
        let pass = evaluator.forward(&held);
        pass.step(&mut held, &cotangent, Update::Along(-1e-9), &mut scratch);
    });
    timed("scores of 100", 300, &mut |evaluator| {
        evaluator.select(Some(&rows));
        let _ = evaluator.forward(&held);
    });
    timed("scores of all", 3, &mut |evaluator| {
        evaluator.select(None);
        let _ = evaluator.forward(&held);
    });
    let all = vec![1e-6; examples * 10];
    timed("gradient of all", 1, &mut |evaluator| {
        evaluator.select(None);
        evaluator.forward(&held).pull_back(&held, &all, &mut scratch);
    });
    timed("parameters to the host and back", 5, &mut |evaluator| {
        held.write()[0] += 1e-9;
        evaluator.select(Some(&rows));
        let pass = evaluator.forward(&held);
        pass.step(&mut held, &cotangent, Update::Along(-1e-9), &mut scratch);
    });
    Ok(())
}
