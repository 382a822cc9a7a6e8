//! Laws of image networks, over random architectures.

use crate::engine::cpu::{Cpu, tests::gradient};
use crate::engine::{Compute, Forward, Precision, Tangents};
use crate::linalg::{Matrix, dot};
use crate::models::{Activation, Architecture, Convolution, Layer, Padding, Pool, Pooling, Shape};
use crate::numeric::{RandomStream, Streams};
use crate::params::{Parameters, Update};

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
    Cpu(Compute { threads, precision, ..Compute::default() }).tangents(architecture, &inputs.into()).unwrap()
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

/// A step in one call has the bits of a gradient and a move, in both precisions, whoever shares the work; the copies of
/// weights that move with them are those of the moved weights.
#[test]
fn steps_in_one_call_have_the_bits_of_a_gradient_and_a_move() {
    for (architecture, inputs, theta, cotangent) in cases() {
        for precision in [Precision::F64, Precision::F32] {
            let walk = |threads: usize, in_one: bool| {
                let mut model = bound(&architecture, &inputs, threads, precision);
                let mut params = Parameters::new(&theta);
                let mut gradient = vec![f64::NAN; theta.len()];
                for update in [Update::Along(-0.01), Update::AgainstSigns(0.02), Update::Along(0.03)] {
                    let pass = model.forward(&params);
                    if in_one {
                        pass.step(&mut params, &cotangent, update, &mut gradient);
                    } else {
                        pass.pull_back(&params, &cotangent, &mut gradient);
                        update.make(params.write(), &gradient);
                    }
                }
                (params.read().to_vec(), model.scores(&params).to_vec())
            };
            let expected = walk(1, false);
            assert!(expected.0 != theta, "{architecture:?}");
            for threads in [1, 2, 3] {
                assert!(walk(threads, true) == expected, "{architecture:?}, {threads} threads, {precision:?}");
            }
        }
    }
}

/// ⟨∇Φ_c(xₙ), ∇Φ_d(xₘ)⟩ from the rows is the Gram matrix that goes layer by layer, in one piece or several.
#[test]
fn the_gram_matrix_is_that_of_the_rows() {
    for (architecture, inputs, theta, _) in cases() {
        let mut model = bound(&architecture, &inputs, 1, Precision::F64);
        let outputs = architecture.outputs();
        let rows: Vec<Matrix> = (0..outputs).map(|c| model.per_example_gradients(&theta, c)).collect();
        let mut pieces = super::ImageNetwork::<f64>::within(&architecture, &inputs.clone().into(), 1, 2).unwrap();
        for gram in [model.gradient_gram(&theta), pieces.gradient_gram(&theta)] {
            let size = (0..gram.rows).fold(0.0f64, |most, i| most.max(gram[(i, i)]));
            for i in 0..gram.rows {
                for j in 0..gram.rows {
                    let expected = dot(rows[i % outputs].row(i / outputs), rows[j % outputs].row(j / outputs));
                    let found = gram[(i, j)];
                    assert!((found - expected).abs() <= 1e-12 * size, "{architecture:?}: {i} {j} {found} {expected}");
                }
            }
        }
        assert!(model.gram_bytes() >= 8 * (5 * outputs as u128).pow(2));
    }
}

/// An example whose slopes are set goes number by number; with the slopes it has anyway nothing changes.
#[test]
fn slopes_that_are_set_to_what_they_are_change_nothing() {
    for (architecture, inputs, theta, cotangent) in cases() {
        let mut model = bound(&architecture, &inputs, 1, Precision::F64);
        let expected = gradient(&mut *model, &theta, &cotangent);
        let size = expected.iter().fold(0.0f64, |most, g| most.max(g.abs()));
        // every kink there is, each at its own side
        let all = model.kinks_near(&theta, 1e3);
        let plain = super::plain::Plain::of(&architecture).unwrap();
        let mut own = Vec::new();
        for kink in all.iter().filter(|kink| kink.example % 2 == 0) {
            let trace = plain.forward(&theta, inputs.row(kink.example).to_vec());
            let activation = plain.steps.iter().position(|step| step.last_stage() == kink.layer);
            let right = activation.is_some_and(|l| trace.signals[l][kink.unit] > 0.0);
            own.push((*kink, f64::from(u8::from(right))));
        }
        model.weigh_kinks(&own);
        let found = gradient(&mut *model, &theta, &cotangent);
        expected.iter().zip(&found).for_each(|(a, b)| assert!((a - b).abs() <= 1e-12 * size, "{architecture:?}"));
        let weighed: Vec<Matrix> =
            (0..architecture.outputs()).map(|c| model.per_example_gradients(&theta, c)).collect();
        model.weigh_kinks(&[]);
        for (c, weighed) in weighed.iter().enumerate() {
            let rows = model.per_example_gradients(&theta, c);
            let size = rows.data.iter().fold(0.0f64, |most, g| most.max(g.abs()));
            rows.data.iter().zip(&weighed.data).for_each(|(a, b)| assert!((a - b).abs() <= 1e-12 * size));
        }
    }
}

/// min |z| by the definition, over the layers with a kink and the pixels that see anything.
#[test]
fn the_nearest_kink_is_the_smallest_preactivation() {
    for (architecture, inputs, theta, _) in cases() {
        let mut least = f64::INFINITY;
        for (at, layer) in architecture.layers().iter().enumerate() {
            if !matches!(layer, Layer::Activation(activation) if activation.kink().is_some()) {
                continue;
            }
            let below = Architecture::new(architecture.input_shape().clone(), architecture.layers()[..at].to_vec());
            let Ok(below) = below else { continue }; // all frozen: without parameters of its own it is no model
            for n in 0..inputs.rows {
                let z = by_definition(&below, &theta, inputs.row(n));
                least = z.iter().filter(|z| **z != 0.0).map(|z| z.abs()).fold(least, f64::min);
            }
        }
        let frozen_below = architecture.layout().blocks()[0].frozen;
        let mut model = bound(&architecture, &inputs, 2, Precision::F64);
        let mut pieces = super::ImageNetwork::<f64>::within(&architecture, &inputs.clone().into(), 1, 2).unwrap();
        let found = model.smallest_preactivation(&theta);
        let in_pieces = (&mut pieces as &mut dyn Tangents).smallest_preactivation(&theta);
        assert_eq!(found.is_some(), in_pieces.is_some());
        if least.is_finite() && !frozen_below {
            let found = found.unwrap();
            assert!((found - least).abs() <= 1e-12 && (in_pieces.unwrap() - least).abs() <= 1e-12, "{found} {least}");
        }
    }
}

/// One channel on 5×5 images: a kernel of 2×2, a pool of 2×2 and a dense layer, with or without an activation between.
fn pooled(activation: Option<Activation>) -> Architecture {
    let kernel = Convolution { padding: Padding::Valid, ..Convolution::new(1, 2) };
    let mut layers = vec![Layer::Convolution(kernel)];
    layers.extend(activation.map(Layer::Activation));
    layers.extend([Layer::Pool(Pool { pooling: Pooling::Max, size: 2, stride: 2 }), Layer::Flatten, Layer::dense(1)]);
    Architecture::new(Shape::image(1, 5, 5), layers).unwrap()
}

/// The 2×2 patch of a 5×5 image at an output pixel.
fn patch(image: &[f64], y: usize, x: usize) -> [f64; 4] {
    [0, 1, 5, 6].map(|offset| image[5 * y + x + offset])
}

/// A 5×5 image, the four weights of the kernel and the four above it.
fn drawn_pooled(seed: u64) -> (Matrix, Vec<f64>) {
    let mut stream = Streams::new(seed).stream("models");
    let (mut inputs, mut theta) = (Matrix::zeros(1, 25), vec![0.0; 8]);
    stream.fill_normal(&mut inputs.data);
    stream.fill_normal(&mut theta);
    (inputs, theta)
}

fn without(weights: &mut [f64], direction: &[f64]) {
    let share = dot(weights, direction) / dot(direction, direction);
    crate::linalg::add_scaled(weights, -share, direction);
}

/// On a kink of a convolution the two slopes give the gradients on the two sides, and those between lie between.
#[test]
fn slopes_at_a_kink_of_a_convolution_are_those_of_its_sides() {
    let mut tried = 0;
    for seed in 0..20 {
        let architecture = pooled(Some(Activation::LeakyRelu { slope: 0.3 }));
        let (inputs, mut theta) = drawn_pooled(seed);
        let patch = patch(&inputs.data, 2, 1);
        without(&mut theta[..4], &patch);
        let mut model = bound(&architecture, &inputs, 1, Precision::F64);
        let kinks: Vec<_> =
            model.kinks_near(&theta, 1e-12).into_iter().filter(|kink| kink.slopes == (0.3, 1.0)).collect();
        assert!(kinks.iter().any(|kink| (kink.layer, kink.unit, kink.example) == (0, 2 * 4 + 1, 0)), "{kinks:?}");
        assert_eq!(model.smallest_preactivation(&theta).map(|z| z < 1e-14), Some(true));
        let mut at = |e: f64| {
            model.weigh_kinks(&kinks.iter().map(|kink| (*kink, e)).collect::<Vec<_>>());
            gradient(&mut *model, &theta, &[1.0])
        };
        let (left, middle, right) = (at(0.0), at(0.5), at(1.0));
        let mut beside = |step: f64| {
            let mut moved = theta.clone();
            crate::linalg::add_scaled(&mut moved[..4], step, &patch);
            model.weigh_kinks(&[]);
            gradient(&mut *model, &moved, &[1.0])
        };
        for (expected, found) in [(beside(-1e-9), &left), (beside(1e-9), &right)] {
            expected.iter().zip(found).for_each(|(a, b)| assert!((a - b).abs() < 1e-7, "{seed}: {a} {b}"));
        }
        for k in 0..8 {
            assert!((middle[k] - 0.5 * (left[k] + right[k])).abs() < 1e-14);
        }
        let columns = model.kink_columns(&theta, &[1.0], &kinks);
        let sum: Vec<f64> = (0..8).map(|k| columns.iter().map(|column| column[0].1[k]).sum()).collect();
        assert!((0..8).all(|k| (sum[k] - (right[k] - left[k])).abs() < 1e-14));
        tried += usize::from(left != right); // the pool may look elsewhere
    }
    assert!(tried >= 3, "{tried}");
}

/// On a tie of a max-pool the vertices are the gradients of its pixels, and every convex combination can be taken.
#[test]
fn shares_of_a_tie_are_the_convex_combinations_of_its_pixels() {
    for seed in 0..20 {
        let architecture = pooled(None);
        let (inputs, mut theta) = drawn_pooled(seed);
        // the first window sees the patches at (0, 0), (0, 1), (1, 0) and (1, 1): three of them tie
        let patches = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|[y, x]| patch(&inputs.data, y, x));
        let apart = |a: usize, b: usize| std::array::from_fn::<f64, 4, _>(|k| patches[a][k] - patches[b][k]);
        let (first, mut second) = (apart(0, 2), apart(0, 3));
        without(&mut second, &first);
        without(&mut theta[..4], &first);
        without(&mut theta[..4], &second);
        let mut model = bound(&architecture, &inputs, 1, Precision::F64);
        let value = |k: usize| dot(&theta[..4], &patches[k]);
        let kinks = model.kinks_near(&theta, 1e-12);
        if value(1) > value(0) {
            assert!(kinks.is_empty(), "{seed}: the tie is below the largest: {kinks:?}");
            continue;
        }
        assert_eq!(kinks.len(), 2, "{seed}: {kinks:?}");
        // where the pool looks at one pixel everywhere else, the gradient of the kernel is affine in the patches
        let mut at = |shares: [f64; 2]| {
            model.weigh_kinks(&[(kinks[0], shares[0]), (kinks[1], shares[1])]);
            gradient(&mut *model, &theta, &[1.0])
        };
        let vertices = [at([0.0, 0.0]), at([1.0, 0.0]), at([0.0, 1.0])];
        assert_eq!(at([1.0, 1.0]), vertices[2], "the last takes all");
        // which of the three counts as the first is a matter of rounding
        let orders = [[0, 2, 3], [0, 3, 2], [2, 0, 3], [2, 3, 0], [3, 0, 2], [3, 2, 0]];
        let fits = |order: &[usize; 3]| {
            (1..3).all(|v| {
                (0..4).all(|k| {
                    let change = theta[4] * (patches[order[v]][k] - patches[order[0]][k]);
                    (vertices[v][k] - vertices[0][k] - change).abs() < 1e-12
                })
            })
        };
        assert!(orders.iter().any(fits), "{seed}: {vertices:?}");
        let (shares, mixed) = ([0.25, 0.4], at([0.25, 0.4]));
        let weights = [(1.0 - shares[0]) * (1.0 - shares[1]), shares[0] * (1.0 - shares[1]), shares[1]];
        for k in 0..8 {
            let expected: f64 = (0..3).map(|v| weights[v] * vertices[v][k]).sum();
            assert!((mixed[k] - expected).abs() < 1e-12, "{seed}: {k}");
        }
    }
}

/// Pixels that no step can part are no ties: off, of a zero patch, or of the same patch.
#[test]
fn ties_that_no_kernel_can_part_are_left_out() {
    let mut inputs = Matrix::zeros(1, 25);
    let theta = [1.0, 0.5, -0.25, 2.0, 1.0, 1.0, 1.0, 1.0];
    for architecture in [pooled(None), pooled(Some(Activation::Relu))] {
        let near = |inputs: &Matrix| bound(&architecture, inputs, 1, Precision::F64).kinks_near(&theta, 1e-9);
        inputs.data.fill(0.0);
        assert!(near(&inputs).is_empty(), "patches of zeros");
        inputs.data.fill(1.0);
        assert!(near(&inputs).is_empty(), "equal patches");
        inputs.data.fill(-1.0);
        assert!(near(&inputs).is_empty(), "equal patches, off");
    }
    // all of them off, by different numbers: σ of all is 0
    inputs.data.iter_mut().enumerate().for_each(|(k, x)| *x = -1.0 - k as f64);
    assert!(bound(&pooled(Some(Activation::Relu)), &inputs, 1, Precision::F64).kinks_near(&theta, 1e-9).is_empty());
}

/// Euler's identity layer by layer, ⟨θ_l, ∂f/∂θ_l⟩ = k_l f: what makes balances of layers change alike along a flow.
#[test]
fn every_layer_obeys_its_degree() {
    let mut tried = 0;
    for (architecture, inputs, theta, cotangent) in cases() {
        let Some(homogeneity) = architecture.homogeneity() else { continue };
        let mut model = bound(&architecture, &inputs, 1, Precision::F64);
        let value = dot(model.scores(&theta), &cotangent);
        let gradient = gradient(&mut *model, &theta, &cotangent);
        for group in &homogeneity.groups {
            let blocks = group.blocks.iter().map(|block| architecture.layout().blocks()[*block].range());
            let product: f64 = blocks.map(|own| dot(&theta[own.clone()], &gradient[own])).sum();
            let size = crate::linalg::norm2(&theta) * crate::linalg::norm2(&gradient);
            assert!((product - group.degree * value).abs() <= 1e-12 * size, "{architecture:?}: {group:?}");
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried}");
}

/// What a channel gains by its kernel it gains by the weights that read it: ⟨w_j, ∂f/∂w_j⟩ = k ⟨a_j, ∂f/∂a_j⟩, also through
/// a pool, so that the flow conserves Q(a_j) − Q(w_j, b_j)/k.
#[test]
fn channels_are_balanced_one_by_one() {
    use crate::diagnostics::neuron_balance;
    use crate::potentials::PotentialSpec;
    for (activation, degree) in [(Activation::Relu, 1.0), (Activation::ReluPower { power: 2 }, 2.0)] {
        let layers = vec![
            Layer::Convolution(Convolution { bias: true, ..Convolution::new(3, 3) }),
            Layer::Activation(activation),
            Layer::Pool(Pool { pooling: Pooling::Max, size: 2, stride: 2 }),
            Layer::Flatten,
            Layer::dense(1),
        ];
        let architecture = Architecture::new(Shape::image(2, 6, 6), layers).unwrap();
        let mut stream = Streams::new(5).stream("models");
        let (mut inputs, mut theta) = (Matrix::zeros(4, 72), vec![0.0; architecture.layout().len()]);
        stream.fill_normal(&mut inputs.data);
        stream.fill_normal(&mut theta);
        let mut model = bound(&architecture, &inputs, 1, Precision::F64);
        let gradient = gradient(&mut *model, &theta, &[0.3, -1.0, 0.5, 2.0]);
        let homogeneity = architecture.homogeneity().unwrap();
        let mut potential = PotentialSpec::Euclidean.build(architecture.layout()).unwrap();
        let mut balance = |theta: &[f64]| neuron_balance(theta, architecture.layout(), &homogeneity, &mut *potential);
        let before = balance(&theta);
        assert_eq!(before.len(), 3);
        // along the flow the rate of the balance vanishes: central differences of a quadratic are exact
        let moved = |step: f64| theta.iter().zip(&gradient).map(|(t, g)| t + step * g).collect::<Vec<f64>>();
        let (ahead, behind) = (balance(&moved(1e-3)), balance(&moved(-1e-3)));
        let size = dot(&theta, &theta).sqrt() * dot(&gradient, &gradient).sqrt();
        for j in 0..3 {
            let rate = (ahead[j] - behind[j]) / 2e-3;
            assert!(rate.abs() <= 1e-9 * size, "degree {degree}, channel {j}: {rate} of {size}");
        }
    }
}
