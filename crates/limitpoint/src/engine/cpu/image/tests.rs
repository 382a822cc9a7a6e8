//! Laws of image networks, over random architectures.

use crate::engine::{Compute, Forward, Precision, Tangents, cpu::Cpu};
use crate::linalg::{Matrix, dot};
use crate::models::{Activation, Architecture, Convolution, Layer, Padding, Pool, Pooling, Shape};
use crate::numeric::{RandomStream, Streams};

/// One of `choices`.
fn one<T: Clone>(stream: &mut RandomStream, choices: &[T]) -> T {
    choices[(stream.uniform() * choices.len() as f64) as usize].clone()
}

/// Layers of images with strides, paddings, pools, biases and activations as they come, below dense ones.
fn drawn(stream: &mut RandomStream) -> Architecture {
    let shape = Shape::image(one(stream, &[1, 2, 3]), one(stream, &[7, 8, 11]), one(stream, &[6, 8, 9]));
    let activations = [
        Activation::Relu,
        Activation::LeakyRelu { slope: 0.2 },
        Activation::LeakyRelu { slope: 0.0 },
        Activation::Quadratic,
        Activation::Identity,
    ];
    let mut layers = Vec::new();
    for _ in 0..one(stream, &[1, 2]) {
        layers.push(Layer::Convolution(Convolution {
            channels: one(stream, &[1, 3, 8, 17]),
            kernel: [one(stream, &[1, 2, 3]), one(stream, &[1, 3])],
            stride: one(stream, &[1, 1, 2]),
            padding: one(stream, &[Padding::Same, Padding::Valid, Padding::Zeros(1)]),
            bias: one(stream, &[true, false]),
            frozen: one(stream, &[true, false, false, false]),
        }));
        layers.push(Layer::Activation(one(stream, &activations)));
        if one(stream, &[true, false]) {
            let (pooling, size) = (one(stream, &[Pooling::Max, Pooling::Average]), one(stream, &[1, 2]));
            layers.push(Layer::Pool(Pool { pooling, size, stride: one(stream, &[1, 2]) }));
        }
    }
    layers.push(Layer::Flatten);
    if one(stream, &[true, false]) {
        layers.push(Layer::Dense { units: 5, bias: true, frozen: one(stream, &[true, false]) });
        layers.push(Layer::Activation(Activation::Relu));
    }
    layers.extend([Layer::dense(one(stream, &[1, 3])), Layer::Scale(0.5)]);
    Architecture::new(shape, layers).unwrap()
}

/// Architectures with inputs, parameters and cotangents.
fn cases() -> impl Iterator<Item = (Architecture, Matrix, Vec<f64>, Vec<f64>)> {
    (0..24).map(|seed| {
        let mut stream = Streams::new(seed).stream("models");
        let architecture = drawn(&mut stream);
        let mut inputs = Matrix::zeros(5, architecture.input_shape().len());
        stream.fill_normal(&mut inputs.data);
        let mut theta = vec![0.0; architecture.layout().len()];
        stream.fill_normal(&mut theta);
        for block in architecture.layout().blocks() {
            let size = 1.5 / (block.fan_in as f64).sqrt();
            theta[block.range()].iter_mut().for_each(|w| *w *= size);
        }
        let mut cotangent = vec![0.0; 5 * architecture.outputs()];
        stream.fill_normal(&mut cotangent);
        (architecture, inputs, theta, cotangent)
    })
}

fn bound(architecture: &Architecture, inputs: &Matrix, threads: usize, precision: Precision) -> Box<dyn Tangents> {
    Cpu(Compute { threads, precision }).tangents(architecture, &inputs.into()).unwrap()
}

fn gradient(model: &mut dyn Tangents, theta: &[f64], cotangent: &[f64]) -> Vec<f64> {
    let mut gradient = vec![f64::NAN; theta.len()];
    model.forward(theta).pull_back(theta, cotangent, &mut gradient);
    gradient
}

/// An image through the layers by their definition, number by number.
fn by_definition(architecture: &Architecture, theta: &[f64], image: &[f64]) -> Vec<f64> {
    let (mut values, mut offset) = (image.to_vec(), 0);
    for (layer, before) in architecture.with_inputs() {
        let pixel = |values: &[f64], c: usize, y: isize, x: isize| {
            let (height, width) = (before.0[1] as isize, before.0[2] as isize);
            let inside = (0..height).contains(&y) && (0..width).contains(&x);
            if inside { values[(c as isize * height + y) as usize * width as usize + x as usize] } else { 0.0 }
        };
        values = match layer {
            Layer::Convolution(conv) => {
                let window = conv.window(before).unwrap();
                let ([height, width], size) = (window.size, conv.fan_in(before));
                let mut out = Vec::new();
                for o in 0..conv.channels {
                    let weights = &theta[offset + o * size..offset + (o + 1) * size];
                    let bias = if conv.bias { theta[offset + conv.channels * size + o] } else { 0.0 };
                    for y in 0..window.after[0] {
                        for x in 0..window.after[1] {
                            let corner = [y, x].map(|at| (at * window.stride) as isize);
                            out.push(
                                bias + weights
                                    .iter()
                                    .enumerate()
                                    .map(|(k, w)| {
                                        let (c, i, j) = (k / (height * width), k / width % height, k % width);
                                        let y = corner[0] + i as isize - window.zeros[0] as isize;
                                        let x = corner[1] + j as isize - window.zeros[1] as isize;
                                        w * pixel(&values, c, y, x)
                                    })
                                    .sum::<f64>(),
                            );
                        }
                    }
                }
                out
            }
            Layer::Pool(pool) => {
                let window = pool.window(before).unwrap();
                let mut out = Vec::new();
                for c in 0..before.0[0] {
                    for y in 0..window.after[0] {
                        for x in 0..window.after[1] {
                            let corner = [y, x].map(|at| (at * window.stride) as isize);
                            let inside = (0..pool.size * pool.size).map(|k| {
                                let [i, j] = [k / pool.size, k % pool.size].map(|at| at as isize);
                                pixel(&values, c, corner[0] + i, corner[1] + j)
                            });
                            out.push(match pool.pooling {
                                Pooling::Max => inside.fold(f64::NEG_INFINITY, f64::max),
                                Pooling::Average => inside.sum::<f64>() / (pool.size * pool.size) as f64,
                            });
                        }
                    }
                }
                out
            }
            Layer::Activation(activation) => values.iter().map(|z| activation.value(*z)).collect(),
            Layer::Scale(factor) => values.iter().map(|z| factor * z).collect(),
            Layer::Dense { units, bias, .. } => (0..*units)
                .map(|o| {
                    let row = &theta[offset + o * before.len()..offset + (o + 1) * before.len()];
                    dot(row, &values) + if *bias { theta[offset + units * before.len() + o] } else { 0.0 }
                })
                .collect(),
            _ => values,
        };
        offset += layer.blocks(1, before).iter().map(|block| block.rows * block.cols).sum::<usize>();
    }
    values
}

#[test]
fn scores_follow_the_definition() {
    for (architecture, inputs, theta, _) in cases() {
        let mut model = bound(&architecture, &inputs, 1, Precision::F64);
        let expected: Vec<f64> =
            (0..inputs.rows).flat_map(|n| by_definition(&architecture, &theta, inputs.row(n))).collect();
        for (score, expected) in model.scores(&theta).iter().zip(expected) {
            assert!((score - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{architecture:?}: {score} {expected}");
        }
    }
}

#[test]
fn gradients_are_central_differences_of_the_scores() {
    for (architecture, inputs, theta, cotangent) in cases() {
        let mut model = bound(&architecture, &inputs, 1, Precision::F64);
        let gradient = gradient(&mut *model, &theta, &cotangent);
        let size = gradient.iter().fold(0.0f64, |most, g| most.max(g.abs()));
        for block in architecture.layout().blocks() {
            for entry in block.range().step_by(1 + block.len() / 12) {
                let mut at = |change: f64| {
                    let mut moved = theta.clone();
                    moved[entry] += change;
                    dot(model.scores(&moved), &cotangent)
                };
                let difference = if block.frozen { 0.0 } else { (at(1e-6) - at(-1e-6)) / 2e-6 };
                assert!((difference - gradient[entry]).abs() <= 1e-7 * size, "{architecture:?}: entry {entry}");
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads_and_batches_have_the_scores_of_their_examples() {
    for (architecture, inputs, theta, cotangent) in cases() {
        for precision in [Precision::F64, Precision::F32] {
            let mut one = bound(&architecture, &inputs, 1, precision);
            let (scores, expected) = (one.scores(&theta).to_vec(), gradient(&mut *one, &theta, &cotangent));
            for threads in [2, 3] {
                let mut model = bound(&architecture, &inputs, threads, precision);
                assert_eq!(model.scores(&theta), scores);
                assert_eq!(gradient(&mut *model, &theta, &cotangent), expected);
            }
            let outputs = architecture.outputs();
            one.select(Some(&[3, 1]));
            assert_eq!(one.scores(&theta)[..outputs], scores[3 * outputs..4 * outputs]);
            assert_eq!(one.scores(&theta)[outputs..], scores[outputs..2 * outputs]);
        }
    }
}

#[test]
fn single_precision_is_near_and_rows_add_up() {
    for (architecture, inputs, theta, cotangent) in cases() {
        let [double, single] = [Precision::F64, Precision::F32].map(|precision| {
            let mut model = bound(&architecture, &inputs, 1, precision);
            gradient(&mut *model, &theta, &cotangent)
        });
        let size = double.iter().fold(0.0f64, |most, g| most.max(g.abs()));
        double.iter().zip(&single).for_each(|(a, b)| assert!((a - b).abs() <= 1e-4 * size, "{a} {b}"));
        let (outputs, mut sum) = (architecture.outputs(), vec![0.0; theta.len()]);
        let mut model = bound(&architecture, &inputs, 1, Precision::F64);
        for c in 0..outputs {
            let rows = model.per_example_gradients(&theta, c);
            for n in 0..inputs.rows {
                crate::linalg::add_scaled(&mut sum, cotangent[n * outputs + c], rows.row(n));
            }
        }
        double.iter().zip(&sum).for_each(|(a, b)| assert!((a - b).abs() <= 1e-12 * size, "{a} {b}"));
    }
}

/// A batch that does not fit at once has the scores and the gradient of its pieces.
#[test]
fn pieces_add_up() {
    for (architecture, inputs, theta, cotangent) in cases() {
        let mut whole = bound(&architecture, &inputs, 1, Precision::F64);
        let mut pieces = super::ImageNetwork::<f64>::within(&architecture, &inputs.clone().into(), 1, 2).unwrap();
        assert_eq!(whole.scores(&theta), pieces.scores(&theta));
        let expected = gradient(&mut *whole, &theta, &cotangent);
        let found = gradient(&mut pieces, &theta, &cotangent);
        let size = expected.iter().fold(0.0f64, |most, g| most.max(g.abs()));
        expected.iter().zip(&found).for_each(|(a, b)| assert!((a - b).abs() <= 1e-12 * size, "{a} {b}"));
    }
}
