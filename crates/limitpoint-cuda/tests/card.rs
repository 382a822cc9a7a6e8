//! Every layer, both precisions and the steps of a card against the CPU's doubles. Skipped with a message where there is no card.
//!
//! The tests run side by side, as many as there are threads: what one records must not be disturbed by what others start.
#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use limitpoint::data::{Dataset, Inputs, Targets};

use limitpoint::engine::Evaluator;
use limitpoint::linalg::{Matrix, Panels};
use limitpoint::models::{ModelSpec, Shape};
use limitpoint::numeric::{RandomStream, Streams};
use limitpoint::params::{At, DiagonalMetric, MetricEntry, Parameters, Update};
use limitpoint::prelude::*;

/// Whether there is a card; says so if not.
fn card() -> bool {
    limitpoint_cuda::offer();
    match limitpoint_cuda::report() {
        Ok(report) => {
            println!("{report:?}");
            true
        }
        Err(error) => {
            println!("skipped: {error}");
            false
        }
    }
}

fn image(layers: &str, more: &str) -> ModelSpec {
    serde_json::from_str(&format!(r#"{{"image": {{"layers": "{layers}"{more}}}}}"#)).unwrap()
}

/// Models with the shape of their examples: every layer, kernels, strides, paddings, pools, biases, frozen layers.
fn models() -> Vec<(ModelSpec, Shape)> {
    let biased = r#", "biases": "all""#;
    let mut models: Vec<(ModelSpec, Shape)> = [
        ("dense", Shape::image(1, 3, 4), ""),
        ("conv 3 3x3, pool 2, conv 4 3x2 stride 2 padding 1, dense 5, dense", Shape::image(2, 9, 8), biased),
        ("average 2, conv 2 2x2 valid, pool 2 stride 1, dense", Shape::image(2, 9, 8), biased),
        ("pool 3 stride 2, conv 2 3x3, average 2 stride 1, dense 4, dense", Shape::image(2, 9, 8), ""),
        // tiles of all sides, strides with and without columns, windows of more than 31 entries
        ("conv 70 3x3, pool 2, conv 40 3x2 stride 2, dense 130, dense", Shape::image(3, 12, 11), biased),
        ("conv 3 7x5, average 3, conv 36 5x5, pool 2, dense", Shape::image(2, 16, 15), biased),
        // few entries, many rows or columns
        ("conv 3 9x3, conv 4 2x10, dense", Shape::image(2, 12, 11), biased),
        ("conv 8 5x5, pool 2, conv 16 3x3, pool 2, dense 64, dense", Shape::image(1, 28, 28), r#", "biases": "first""#),
    ]
    .into_iter()
    .map(|(layers, shape, more)| (image(layers, more), shape))
    .collect();
    models.extend(ModelSpec::examples().into_iter().map(|spec| (spec, Shape::vector(6))));
    models
}

struct Pair {
    /// The CPU in doubles, and the card.
    evaluators: [Box<dyn Evaluator>; 2],
    params: Vec<f64>,
}

/// A model on drawn examples, on both devices; nothing if the card does not compute it.
fn pair(spec: &ModelSpec, shape: &Shape, outputs: usize, examples: usize, precision: Precision) -> Option<Pair> {
    let mut stream = Streams::new(3).stream("card");
    let architecture = spec.architecture(shape, outputs).ok()?;
    let mut inputs = Matrix::zeros(examples, shape.len());
    stream.fill_normal(&mut inputs.data);
    let inputs = Inputs::from(inputs);
    let mut params = vec![0.0; architecture.layout().len()];
    stream.fill_normal(&mut params);
    for block in architecture.layout().blocks() {
        params[block.range()].iter_mut().for_each(|w| *w /= (block.fan_in as f64).sqrt());
    }
    let on = |device, precision| {
        let compute = Compute { device, precision, ..Compute::default() };
        compute.engine().unwrap().bind(&architecture, &inputs)
    };
    let card = on(Device::Cuda, precision).ok()?;
    Some(Pair { evaluators: [on(Device::Cpu, Precision::F64).unwrap(), card], params })
}

fn drawn(count: usize, stream: &mut RandomStream) -> Vec<f64> {
    let mut numbers = vec![0.0; count];
    stream.fill_normal(&mut numbers);
    numbers
}

/// The largest difference, relative to the largest number.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let size = a.iter().fold(1e-300f64, |size, v| size.max(v.abs()));
    let largest =
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0f64, |m, d| if d > m || d.is_nan() { d } else { m });
    largest / size
}

/// Scores and gradients of all examples, of a batch, and of all again.
#[test]
fn scores_and_gradients_are_those_of_the_cpu() {
    if !card() {
        return;
    }
    let mut tried = 0;
    for (precision, tolerance) in [(Precision::F64, 1e-12), (Precision::F32, 3e-5)] {
        for (spec, shape) in models() {
            for outputs in [1, 3] {
                let Some(Pair { mut evaluators, params }) = pair(&spec, &shape, outputs, 23, precision) else {
                    continue;
                };
                tried += 1;
                let mut stream = Streams::new(5).stream("cotangents");
                for rows in [None, Some(vec![4, 4, 22, 0, 7]), Some(vec![1, 2, 3, 4, 5]), None] {
                    let n = rows.as_ref().map_or(23, Vec::len);
                    let cotangent = drawn(n * outputs, &mut stream);
                    let found = evaluators.each_mut().map(|evaluator| {
                        evaluator.select(rows.as_deref());
                        let mut gradient = vec![f64::NAN; params.len()];
                        let pass = evaluator.forward(&params);
                        let scores = pass.scores().to_vec();
                        pass.pull_back(&params, &cotangent, &mut gradient);
                        assert_eq!(evaluator.bound().failure, None);
                        [scores, gradient]
                    });
                    for (cpu, card) in found[0].iter().zip(&found[1]) {
                        let distance = distance(cpu, card);
                        assert!(distance < tolerance, "{spec:?} {outputs} {precision:?} {rows:?}: {distance:e}");
                    }
                }
            }
        }
    }
    assert!(tried > 30, "{tried} models");
}

/// Steps on the card are those of the CPU, and the parameters come when they are read.
#[test]
fn steps_are_made_on_the_card() {
    if !card() {
        return;
    }
    let (spec, shape) = (image("conv 3 3x3, pool 2, dense 5, dense", r#", "biases": "all""#), Shape::image(2, 6, 6));
    for (precision, tolerance) in [(Precision::F64, 1e-12), (Precision::F32, 1e-5)] {
        let Pair { mut evaluators, params } = pair(&spec, &shape, 3, 20, precision).unwrap();
        let mut stream = Streams::new(6).stream("steps");
        let cotangents: Vec<Vec<f64>> = (0..12).map(|_| drawn(60, &mut stream)).collect();
        let ends = evaluators.each_mut().map(|evaluator| {
            let mut held = Parameters::new(&params);
            let mut scratch = vec![0.0; params.len()];
            for (step, cotangent) in cotangents.iter().enumerate() {
                // whole, batches of seven, and a point elsewhere in between
                let rows = (step % 3 > 0).then(|| (0..7).map(|k| (k * step) % 20).collect::<Vec<_>>());
                evaluator.select(rows.as_deref());
                let n = rows.as_ref().map_or(20, Vec::len);
                let update = if step % 4 == 3 { Update::AgainstSigns(1e-3) } else { Update::Along(-1e-3) };
                if step == 5 {
                    evaluator.scores(&params);
                }
                let pass = evaluator.forward(&held);
                let moved = pass.step(&mut held, &cotangent[..3 * n], update, &mut scratch);
                assert!(moved);
                if step == 8 {
                    held.write()[0] += 0.5;
                }
            }
            // nothing moves without a gradient
            evaluator.select(None);
            let pass = evaluator.forward(&held);
            assert!(!pass.step(&mut held, &[0.0; 60], Update::Along(1.0), &mut scratch));
            evaluator.score(At::from(&held));
            assert_eq!(evaluator.bound().failure, None);
            held.read().to_vec()
        });
        let far = distance(&ends[0], &ends[1]);
        assert!(far < tolerance && distance(&ends[0], &params) > 0.01, "{precision:?}: {far:e}");
    }
}

/// Steps by a metric of all functions, with a gap that stays, are those of the metric with the CPU's gradient.
#[test]
fn steps_by_a_metric_are_made_on_the_card() {
    if !card() {
        return;
    }
    let (spec, shape) = (image("conv 3 3x3, pool 2, dense 5, dense", r#", "biases": "all""#), Shape::image(2, 6, 6));
    let Pair { mut evaluators, params } = pair(&spec, &shape, 3, 20, Precision::F64).unwrap();
    let metric = DiagonalMetric::new(vec![
        (0..9, MetricEntry::One, 0.5),
        (9..40, MetricEntry::Hyperbolic { lambda: 0.01 }, 3.0),
        (50..params.len(), MetricEntry::Power { p: 10.0, lambda: 0.3 }, 2.0),
    ]);
    let [cpu, card] = &mut evaluators;
    assert!(card.bound().knows_metrics && !cpu.bound().knows_metrics);
    let (mut held, mut expected, mut scratch) = (Parameters::new(&params), params.clone(), vec![0.0; params.len()]);
    held.carry(metric.clone());
    for step in 0..6 {
        let cotangent: Vec<f64> = (0..60).map(|k| (0.3 * f64::from(k + step)).sin()).collect();
        assert!(card.forward(&held).step(&mut held, &cotangent, Update::Metric(-1e-2), &mut scratch));
        cpu.forward(&expected).pull_back(&expected, &cotangent, &mut scratch);
        metric.step(&mut expected, -1e-2, &scratch);
    }
    let far = distance(&expected, held.read());
    assert!(far < 1e-12 && distance(&params, &expected) > 0.01 && params[40..50] == held.read()[40..50], "{far:e}");
}

/// Two evaluators, and a batch among others, give the same bits.
#[test]
fn bits_repeat() {
    if !card() {
        return;
    }
    let (spec, shape) = (image("mnist-cnn", ""), Shape::image(1, 28, 28));
    let run = || {
        let Pair { mut evaluators, params } = pair(&spec, &shape, 10, 300, Precision::F32).unwrap();
        let (evaluator, mut held) = (&mut evaluators[1], Parameters::new(&params));
        let mut scratch = vec![0.0; params.len()];
        for step in 0..20 {
            let rows: Vec<usize> = (0..100).map(|k| (k * 7 + step) % 300).collect();
            evaluator.select(Some(&rows));
            let pass = evaluator.forward(&held);
            let cotangent: Vec<f64> = pass.scores().iter().map(|s| 1e-3 * s.sin()).collect();
            pass.step(&mut held, &cotangent, Update::Along(-0.01), &mut scratch);
        }
        assert_eq!(evaluator.bound().failure, None);
        held.read().to_vec()
    };
    assert_eq!(run(), run());
}

/// A hundred steps to a loss far below the smallest double, by optimisers on the card and on the host.
#[test]
fn runs_end_where_those_of_the_cpu_end() {
    if !card() {
        return;
    }
    let mut stream = Streams::new(9).stream("runs");
    let mut inputs = Matrix::zeros(40, 36);
    stream.fill_normal(&mut inputs.data);
    let labels: Vec<f64> = (0..40).map(|n| if inputs.row(n)[0] > 0.0 { 1.0 } else { -1.0 }).collect();
    let data = Dataset::new("points", inputs, Targets::Binary(labels), vec![1, 6, 6]).unwrap();
    let model = image("conv 3 3x3, pool 2, dense 8, dense", "");
    let metric = "blocks(layer1=natural-gradient(potential=hyperbolic(lambda=0.1)), rest=natural-gradient(potential=smoothed(p=10, lambda=0.5)))";
    for (optimiser, steps) in [("gradient", 100), ("sign", 100), ("adam", 60), (metric, 100)] {
        let end = |device| {
            let training = Training::new(&data, model.clone()).unwrap().optimiser(optimiser);
            let training = training.unwrap().device(device).at_most_steps(steps);
            training.run().unwrap()
        };
        let [cpu, card] = [Device::Cpu, Device::Cuda].map(end);
        let far = distance(&cpu.params, &card.params);
        println!("{optimiser}: ln L {} and {}, parameters {far:e}", cpu.log_loss, card.log_loss);
        assert!(far < 1e-8, "{optimiser}: {far:e}");
        assert!((cpu.log_loss - card.log_loss).abs() < 1e-6 * (1.0 + cpu.log_loss.abs()));
    }
}

/// Scores and gradients of the inputs, in panels of any fullness, by the map and by a copy of it.
#[test]
fn gradients_of_inputs_are_those_of_the_cpu() {
    if !card() {
        return;
    }
    let mut stream = Streams::new(7).stream("inputs");
    let mut tried = 0;
    for (spec, shape) in models() {
        let Ok(architecture) = spec.architecture(&shape, 3) else { continue };
        let mut params = drawn(architecture.layout().len(), &mut stream);
        for block in architecture.layout().blocks() {
            params[block.range()].iter_mut().for_each(|w| *w /= (block.fan_in as f64).sqrt());
        }
        let on = |device| Compute { device, ..Compute::default() }.engine().unwrap().map(&architecture, &params);
        let (Ok(mut cpu), Ok(card)) = (on(Device::Cpu), on(Device::Cuda)) else { continue };
        let mut card = card.fork();
        tried += 1;
        // the same number again and again: from the third time on what was recorded
        for count in [1, 48, 5, 5, 5, 5] {
            let mut found = Vec::new();
            let (inputs, weights) = (drawn(count * shape.len(), &mut stream), drawn(3 * count, &mut stream));
            for map in [&mut cpu, &mut card] {
                let mut x = Panels::<f32>::zeros(shape.len(), count);
                x.pack_transposed(&inputs);
                let (mut scores, mut cotangent) = (Panels::zeros(3, count), Panels::zeros(3, count));
                cotangent.pack_transposed(&weights);
                let mut gradient = Panels::zeros(shape.len(), count);
                map.scores(&x, &mut scores);
                map.pull_back(&cotangent, &mut gradient);
                assert_eq!(map.failure(), None);
                let all = |panels: &Panels<f32>| -> Vec<f64> {
                    let places = (0..panels.rows()).flat_map(|row| (0..count).map(move |n| (row, n)));
                    places.map(|(row, n)| f64::from(panels.get(row, n))).collect()
                };
                found.push([all(&scores), all(&gradient)]);
            }
            for (cpu, card) in found[0].iter().zip(&found[1]) {
                let far = distance(cpu, card);
                assert!(far < 1e-4, "{spec:?} {count}: {far:e}");
            }
        }
    }
    assert!(tried > 5, "{tried} models");
}
