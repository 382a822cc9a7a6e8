//! The laws every model obeys, over all examples of the specification.

use super::*;
use crate::engine::{Forward, Kink};
use crate::linalg::{Matrix, dot};
use crate::models::{Activation, Biases, OutputScale};
use crate::numeric::{RandomStream, Streams};
use crate::params::ParamLayout;

pub fn inputs(rows: usize, cols: usize, stream: &mut RandomStream) -> Matrix {
    let mut matrix = Matrix::zeros(rows, cols);
    stream.fill_normal(&mut matrix.data);
    matrix
}

pub fn gradient(model: &mut dyn Tangents, theta: &[f64], cotangent: &[f64]) -> Vec<f64> {
    let mut gradient = vec![f64::NAN; theta.len()];
    model.forward(theta).pull_back(theta, cotangent, &mut gradient);
    gradient
}

/// The first normal numbers of a stream.
pub fn normal(length: usize, seed: u64, stream: &str) -> Vec<f64> {
    inputs(1, length, &mut Streams::new(seed).stream(stream)).data
}

fn params(model: &dyn Tangents, stream: &mut RandomStream) -> Vec<f64> {
    let mut params = vec![0.0; model.layout().len()];
    stream.fill_normal(&mut params);
    // unit preactivations, so that powers of deep networks stay in the range of f32
    for block in model.layout().weights() {
        params[block.range()].iter_mut().for_each(|w| *w /= (block.cols as f64).sqrt());
    }
    params
}

/// Every example specification with one and, where it can, three outputs, at sizes that do not fill a panel.
fn all_models(examples: usize, features: usize) -> Vec<(String, Box<dyn Tangents>, Vec<f64>)> {
    let mut stream = Streams::new(11).stream("models");
    let mut models = Vec::new();
    for spec in ModelSpec::examples() {
        for outputs in [1, 3] {
            let x = inputs(examples, features, &mut stream);
            let single =
                matches!(spec, ModelSpec::Diagonal { .. } | ModelSpec::Matrix { .. } | ModelSpec::MexicanHat { .. });
            if single && outputs > 1 {
                continue;
            }
            let model = bind(&spec, &x, outputs, Compute::default()).unwrap();
            let theta = params(&*model, &mut stream);
            models.push((format!("{spec:?} with {outputs} outputs"), model, theta));
        }
    }
    models
}

/// Scores by the definition, one example at a time.
fn naive_scores(spec: &ModelSpec, x: &Matrix, outputs: usize, layout: &ParamLayout, theta: &[f64]) -> Vec<f64> {
    let (activation, scale) = match spec {
        ModelSpec::Network { activation, output_scale, widths, .. } => (
            *activation,
            match output_scale {
                OutputScale::One => 1.0,
                OutputScale::MeanField => 1.0 / *widths.last().unwrap() as f64,
                OutputScale::Factor(factor) => *factor,
            },
        ),
        _ => (Activation::Identity, 1.0),
    };
    let layers = layout.weights().count();
    let mut scores = Vec::new();
    for n in 0..x.rows {
        let mut a = x.row(n).to_vec();
        for l in 1..=layers {
            let w = layout.block(&format!("layer{l}.weight")).unwrap();
            let bias = layout.block(&format!("layer{l}.bias"));
            a = (0..w.rows)
                .map(|j| {
                    let row = &theta[w.offset + j * w.cols..w.offset + (j + 1) * w.cols];
                    let z =
                        row.iter().zip(&a).map(|(w, a)| w * a).sum::<f64>() + bias.map_or(0.0, |b| theta[b.offset + j]);
                    if l < layers { activation.value(z) } else { scale * z }
                })
                .collect();
        }
        assert_eq!(a.len(), outputs);
        scores.extend(a);
    }
    scores
}

#[test]
fn changing_one_parameter_gives_the_scores_of_the_changed_parameters() {
    for (what, mut model, theta) in all_models(9, 4) {
        let size = model.examples() * model.outputs();
        let (mut out, cotangent) = (vec![0.0; size], vec![1.0; size]);
        for entry in 0..theta.len() {
            let mut moved = theta.clone();
            moved[entry] += 0.3;
            let expected = model.scores(&moved).to_vec();
            // the order of calls in a run: scores, a gradient, then trials
            gradient(&mut *model, &theta, &cotangent);
            model.scores_after(&theta, entry, 0.3, &mut out);
            for (a, b) in out.iter().zip(&expected) {
                assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{what}, entry {entry}: {a} {b}");
            }
        }
    }
}

#[test]
fn scores_follow_the_definition_at_every_shape() {
    let mut stream = Streams::new(2).stream("shapes");
    let layered = |spec: &&ModelSpec| matches!(spec, ModelSpec::Linear | ModelSpec::Network { .. });
    for spec in &ModelSpec::examples().into_iter().filter(|spec| layered(&spec)).collect::<Vec<_>>() {
        for (examples, features) in [(1, 1), (7, 3), (25, 5), (50, 2), (31, 150)] {
            let x = inputs(examples, features, &mut stream);
            for outputs in [1, 4] {
                for precision in [Precision::F64, Precision::F32] {
                    let mut model = bind(spec, &x, outputs, Compute { precision, ..Compute::default() }).unwrap();
                    let theta = params(&*model, &mut stream);
                    let expected = naive_scores(spec, &x, outputs, model.layout(), &theta);
                    let size = expected.iter().fold(1.0f64, |m, s| m.max(s.abs()));
                    let tolerance = if precision == Precision::F64 { 1e-12 } else { 2e-4 };
                    for (score, value) in model.scores(&theta).iter().zip(&expected) {
                        assert!(
                            (score - value).abs() < tolerance * size,
                            "{spec:?} {examples}x{features} {precision:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_pull_back_is_the_derivative_of_the_scores() {
    for (name, mut model, theta) in all_models(6, 4) {
        let mut stream = Streams::new(3).stream("cotangent");
        let cotangent: Vec<f64> = (0..6 * model.outputs()).map(|_| stream.normal()).collect();
        let gradient = gradient(&mut *model, &theta, &cotangent);
        let layout = model.layout().clone();
        let size = 1.0 + crate::linalg::max_abs(&gradient);
        for block in layout.blocks() {
            for i in block.range() {
                let mut shifted = theta.clone();
                let h = 1e-6;
                let mut value = |shift: f64| {
                    shifted[i] = theta[i] + shift;
                    dot(model.scores(&shifted), &cotangent)
                };
                let difference = (value(h) - value(-h)) / (2.0 * h);
                let expected = if block.frozen { 0.0 } else { difference };
                assert!((gradient[i] - expected).abs() < 1e-6 * size, "{name}: {} entry {i}", block.name);
            }
        }
    }
}

#[test]
fn per_example_gradients_add_up_and_their_gram_matrix_is_brute_force() {
    for (name, mut model, theta) in all_models(9, 4) {
        let outputs = model.outputs();
        let jacobians: Vec<Matrix> = (0..outputs).map(|c| model.per_example_gradients(&theta, c)).collect();
        let mut stream = Streams::new(4).stream("cotangent");
        let cotangent: Vec<f64> = (0..9 * outputs).map(|_| stream.normal()).collect();
        let gradient = gradient(&mut *model, &theta, &cotangent);
        let mut sum = vec![0.0; theta.len()];
        for n in 0..9 {
            for (c, jacobian) in jacobians.iter().enumerate() {
                crate::linalg::add_scaled(&mut sum, cotangent[n * outputs + c], jacobian.row(n));
            }
        }
        let size = crate::linalg::max_abs(&sum).max(1.0);
        assert!(gradient.iter().zip(&sum).all(|(g, s)| (g - s).abs() < 1e-11 * size), "{name}");
        let gram = model.gradient_gram(&theta);
        for i in 0..9 * outputs {
            for j in 0..9 * outputs {
                let expected = dot(jacobians[i % outputs].row(i / outputs), jacobians[j % outputs].row(j / outputs));
                assert!((gram[(i, j)] - expected).abs() < 1e-10 * (1.0 + expected.abs()), "{name} {i} {j}");
            }
        }
    }
}

#[test]
fn measured_homogeneity_is_the_declared_one_in_total_and_group_by_group() {
    for (name, mut model, theta) in all_models(5, 4) {
        let base = model.scores(&theta).to_vec();
        let layout = model.layout().clone();
        let scaled_by = |blocks: &[usize], c: f64| {
            let mut scaled = theta.clone();
            for block in blocks {
                scaled[layout.blocks()[*block].range()].iter_mut().for_each(|w| *w *= c);
            }
            scaled
        };
        let all: Vec<usize> = (0..layout.blocks().len()).filter(|b| !layout.blocks()[*b].frozen).collect();
        match model.homogeneity().cloned() {
            None => {
                // a bias above the lowest trained layer: no degree fits all scores
                let doubled = model.scores(&scaled_by(&all, 2.0)).to_vec();
                let degrees: Vec<f64> = doubled.iter().zip(&base).map(|(d, b)| (d / b).abs().log2()).collect();
                let spread = degrees.iter().fold(0.0f64, |m, d| m.max((d - degrees[0]).abs()));
                assert!(spread > 1e-3, "{name} looks homogeneous: {degrees:?}");
            }
            Some(homogeneity) => {
                let mut cases = vec![(all, homogeneity.degree)];
                cases.extend(homogeneity.groups.iter().map(|group| (group.blocks.clone(), group.degree)));
                for (blocks, degree) in cases {
                    let scaled = model.scores(&scaled_by(&blocks, 1.5)).to_vec();
                    for (s, b) in scaled.iter().zip(&base) {
                        let expected = 1.5f64.powf(degree) * b;
                        assert!((s - expected).abs() < 1e-10 * (1.0 + expected.abs()), "{name} {blocks:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn gradients_obey_euler_and_scale_with_degree_minus_one() {
    for (name, mut model, theta) in all_models(5, 4) {
        let Some(homogeneity) = model.homogeneity().cloned() else { continue };
        let scores = model.scores(&theta).to_vec();
        let jacobian = model.per_example_gradients(&theta, 0);
        let layout = model.layout().clone();
        let scaled: Vec<f64> = {
            let mut scaled = theta.clone();
            for range in layout.trainable_ranges() {
                scaled[range].iter_mut().for_each(|w| *w *= 3.0);
            }
            scaled
        };
        let scaled_jacobian = model.per_example_gradients(&scaled, 0);
        for n in 0..5 {
            let euler = dot(jacobian.row(n), &theta);
            let expected = homogeneity.degree * scores[n * model.outputs()];
            assert!((euler - expected).abs() < 1e-10 * (1.0 + expected.abs()), "{name}");
            let factor = 3f64.powf(homogeneity.degree - 1.0);
            for (a, b) in jacobian.row(n).iter().zip(scaled_jacobian.row(n)) {
                assert!((factor * a - b).abs() < 1e-10 * (1.0 + b.abs()), "{name}");
            }
        }
    }
}

/// D.H: (Φ∘z)′ = ⟨h, z′⟩ along curves through weight space, at all times that are not at a kink.
#[test]
fn scores_have_a_chain_rule_along_curves() {
    for (name, mut model, from) in all_models(5, 4) {
        let mut stream = Streams::new(21).stream("curve");
        let to = params(&*model, &mut stream);
        let frozen: Vec<_> = model.layout().blocks().iter().filter(|b| b.frozen).map(|b| b.range()).collect();
        let place = |t: f64| -> Vec<f64> {
            let mut theta: Vec<f64> = from.iter().zip(&to).map(|(a, b)| a * t.cos() + b * t.sin()).collect();
            frozen.iter().for_each(|range| theta[range.clone()].copy_from_slice(&from[range.clone()]));
            theta
        };
        let (mut tried, step) = (0, 1e-6);
        for k in 0..40 {
            let t = 0.17 + 0.151 * f64::from(k);
            let theta = place(t);
            // preactivations move by no more than a few times the step
            if model.smallest_preactivation(&theta).is_some_and(|least| least < 1e-3) {
                continue;
            }
            tried += 1;
            let [before, after] = [t - step, t + step].map(|t| model.scores(&place(t)).to_vec());
            let velocity: Vec<f64> =
                place(t + step).iter().zip(place(t - step)).map(|(a, b)| (a - b) / (2.0 * step)).collect();
            for c in 0..model.outputs() {
                let jacobian = model.per_example_gradients(&theta, c);
                for n in 0..5 {
                    let rate = (after[n * model.outputs() + c] - before[n * model.outputs() + c]) / (2.0 * step);
                    let chain = dot(jacobian.row(n), &velocity);
                    let size = 1.0 + crate::linalg::norm2(jacobian.row(n)) * crate::linalg::norm2(&velocity);
                    assert!((rate - chain).abs() < 1e-6 * size, "{name} at {t}: {rate} {chain}");
                }
            }
        }
        assert!(tried >= 10, "{name}: only {tried} times are off kinks");
    }
}

/// D.lemC7: wherever margins are positive, −θ decreases 1 − q of all of them at once, at the rate L q, also with the
/// slopes on either side of a kink; so the margin problem satisfies the qualification of Mangasarian and Fromovitz.
#[test]
fn the_margin_problem_of_every_homogeneous_model_satisfies_the_constraint_qualification() {
    for (name, mut model, theta) in all_models(5, 4) {
        let Some(homogeneity) = model.homogeneity().cloned() else { continue };
        let ranges = model.layout().trainable_ranges();
        let reach = model.smallest_preactivation(&theta).unwrap_or(0.0);
        let nearest = model.kinks_near(&theta, 2.0 * reach);
        let scores = model.scores(&theta).to_vec();
        let jacobian = model.per_example_gradients(&theta, 0);
        for n in 0..5 {
            let score = scores[n * model.outputs()];
            // the label that makes the margin positive
            let outward: f64 = ranges.iter().map(|r| dot(&theta[r.clone()], &jacobian.row(n)[r.clone()])).sum();
            let (rate, margin) = (score.signum() * outward, score.abs());
            assert!((rate - homogeneity.degree * margin).abs() <= 1e-9 * (1.0 + margin), "{name}: {rate} {margin}");
            assert!(margin < 1e-9 || rate > 0.0, "{name}: {rate}");
        }
        // a unit that is moved onto its kink: both slopes obey the same identity
        let Some(kink) = nearest.iter().find(|kink| kink.layer == 0) else { continue };
        let weight = model.layout().block("layer1.weight").unwrap().clone();
        if weight.frozen || model.layout().block("layer1.bias").is_some() {
            continue;
        }
        let mut moved = theta.clone();
        let row = weight.offset + kink.unit * weight.cols..weight.offset + (kink.unit + 1) * weight.cols;
        moved[row].fill(0.0);
        let kinks = model.kinks_near(&moved, 1e-12);
        assert!(!kinks.is_empty(), "{name}");
        for share in [0.0, 0.5, 1.0] {
            model.weigh_kinks(&kinks.iter().map(|kink| (*kink, share)).collect::<Vec<_>>());
            let scores = model.scores(&moved).to_vec();
            let mut gradient = vec![0.0; moved.len()];
            model.resume().pull_back(&moved, &vec![1.0; scores.len()], &mut gradient);
            let outward: f64 = ranges.iter().map(|r| dot(&moved[r.clone()], &gradient[r.clone()])).sum();
            let total: f64 = scores.iter().sum();
            assert!((outward - homogeneity.degree * total).abs() <= 1e-9 * (1.0 + total.abs()), "{name}: {share}");
        }
        model.weigh_kinks(&[]);
    }
}

#[test]
fn one_two_and_three_threads_give_identical_bits() {
    let mut stream = Streams::new(6).stream("threads");
    // the last has sums that wait in its signals and in its weight gradient
    for (examples, features, widths) in [
        (250, 32, vec![1024]),
        (100, 784, vec![128]),
        (200, 2, vec![100, 100]),
        (64, 30, vec![300, 200, 150]),
        (700, 40, vec![388, 700]),
    ] {
        let x = inputs(examples, features, &mut stream);
        for outputs in [1, 10] {
            let mut reference: Option<Vec<u64>> = None;
            for threads in [1, 2, 3] {
                let compute = Compute { threads, ..Compute::default() };
                let mut model = bind(&ModelSpec::relu(&widths), &x, outputs, compute).unwrap();
                let theta = params(&*model, &mut Streams::new(7).stream("init"));
                let mut gradient = vec![0.0; theta.len()];
                let scores = model.scores(&theta).to_vec();
                model.resume().pull_back(&theta, &scores, &mut gradient);
                let bits: Vec<u64> = scores.iter().chain(&gradient).map(|x| x.to_bits()).collect();
                assert_eq!(reference.get_or_insert_with(|| bits.clone()), &bits, "{widths:?} {outputs} {threads}");
            }
        }
    }
}

#[test]
fn a_batch_is_the_same_model_on_fewer_rows() {
    let mut stream = Streams::new(8).stream("batch");
    let x = inputs(40, 4, &mut stream);
    for spec in ModelSpec::examples() {
        let mut model = bind(&spec, &x, 1, Compute::default()).unwrap();
        let theta = params(&*model, &mut stream);
        let all = model.scores(&theta).to_vec();
        for rows in [vec![3], vec![39, 0, 7, 7], (5..35).collect::<Vec<_>>()] {
            model.select(Some(&rows));
            assert_eq!(model.examples(), rows.len());
            let scores = model.scores(&theta).to_vec();
            for (score, row) in scores.iter().zip(&rows) {
                assert!((score - all[*row]).abs() < 1e-12 * (1.0 + score.abs()), "{spec:?}");
            }
        }
        model.select(None);
        assert_eq!(model.scores(&theta), all, "{spec:?}");
    }
}

#[test]
fn planar_networks_give_the_scores_of_the_general_kernels_bit_for_bit_and_their_gradients_to_rounding() {
    let mut stream = Streams::new(12).stream("planar");
    for activation in Activation::examples() {
        for biases in [Biases::None, Biases::First] {
            let spec = ModelSpec::Network {
                widths: vec![37],
                activation,
                biases,
                frozen: vec![],
                output_scale: OutputScale::MeanField,
            };
            let x = inputs(59, 2, &mut stream);
            let mut model = bind(&spec, &x, 1, Compute::default()).unwrap();
            let theta = params(&*model, &mut stream);
            let planar = model.scores(&theta).to_vec();
            let own = gradient(&mut *model, &theta, &planar);
            // a weighed kink sends the same network through the general kernels; slope as it would be anyway
            let bias = if biases == Biases::First { theta[37 * 2] } else { 0.0 };
            let slope = activation.slope(dot(&theta[..2], x.row(0)) + bias);
            model.weigh_kinks(&[(Kink { layer: 0, unit: 0, example: 0, slopes: (slope, slope) }, 0.5)]);
            let general = model.scores(&theta).to_vec();
            assert_eq!(planar, general, "{activation:?} {biases:?}");
            for (g, e) in own.iter().zip(gradient(&mut *model, &theta, &general)) {
                assert!((g - e).abs() <= 1e-13 * (1.0 + e.abs()), "{activation:?} {biases:?}");
            }
        }
    }
}

#[test]
fn weighed_kinks_interpolate_between_the_one_sided_gradients() {
    // one unit exactly on its kink for the first example: w = (1, −1), x = (1, 1)
    for widths in [vec![1], vec![1, 1]] {
        let x = Matrix::from_rows(&[&[1.0, 1.0], &[2.0, 1.0]]);
        let mut model = bind(&ModelSpec::relu(&widths), &x, 1, Compute::default()).unwrap();
        let theta = if widths.len() == 1 { vec![1.0, -1.0, 3.0] } else { vec![1.0, -1.0, 1.5, 2.0] };
        model.scores(&theta);
        let kinks = model.kinks_near(&theta, 1e-9);
        assert!(kinks.iter().any(|k| (k.layer, k.unit, k.example) == (0, 0, 0)), "{kinks:?}");
        let first: Vec<Kink> = kinks.into_iter().filter(|k| k.layer == 0).collect();
        let mut gradient_at = |e: f64| {
            let weighed: Vec<(Kink, f64)> = first.iter().map(|k| (*k, e)).collect();
            // the second layer of the deep net is on its kink too; open it so that signals pass
            let upper = Kink { layer: 1, unit: 0, example: 0, slopes: (0.0, 1.0) };
            let all: Vec<(Kink, f64)> =
                if widths.len() == 2 { weighed.iter().copied().chain([(upper, 1.0)]).collect() } else { weighed };
            model.weigh_kinks(&all);
            gradient(&mut *model, &theta, &[1.0, 0.0])
        };
        let (left, middle, right) = (gradient_at(0.0), gradient_at(0.25), gradient_at(1.0));
        assert_eq!(left, vec![0.0; theta.len()]);
        assert!(right[..2].iter().all(|g| *g == 3.0), "{right:?}");
        assert!(middle.iter().zip(&right).all(|(m, r)| *m == 0.25 * r));
    }
}

#[test]
fn impossible_models_are_refused_with_the_value() {
    let x = Matrix::zeros(3, 2);
    let message = |spec: ModelSpec, outputs| bind(&spec, &x, outputs, Compute::default()).err().unwrap().to_string();
    assert!(message(ModelSpec::relu(&[4, 0]), 1).contains("hidden layer 2 has width 0"));
    assert!(message(ModelSpec::network(&[4], Activation::LeakyRelu { slope: 2.0 }), 1).contains("but is given 2"));
    assert!(message(ModelSpec::Diagonal { factors: 2 }, 3).contains("targets need 3"));
    let frozen = |frozen: Vec<usize>, output_scale| ModelSpec::Network {
        widths: vec![2],
        activation: Activation::Relu,
        biases: Biases::None,
        frozen,
        output_scale,
    };
    assert!(message(frozen(vec![3], OutputScale::One), 1).contains("layers 1 to 2"));
    assert!(message(frozen(vec![1, 2], OutputScale::One), 1).contains("all layers are frozen"));
    assert!(message(frozen(vec![], OutputScale::Factor(-1.0)), 1).contains("is -1"));
    assert!(bind(&ModelSpec::Linear, Matrix::zeros(0, 2), 1, Compute::default()).is_err());
}

#[test]
fn a_nan_weight_makes_a_nan_score() {
    let mut stream = Streams::new(3).stream("nan");
    for activation in Activation::examples() {
        for (features, widths) in [(2, vec![9]), (5, vec![9]), (3, vec![9, 6])] {
            for precision in [Precision::F64, Precision::F32] {
                let spec = ModelSpec::Network {
                    widths: widths.clone(),
                    activation,
                    biases: Biases::None,
                    frozen: vec![],
                    output_scale: OutputScale::One,
                };
                let x = inputs(11, features, &mut stream);
                let mut model = bind(&spec, &x, 1, Compute { precision, ..Compute::default() }).unwrap();
                let mut theta = params(&*model, &mut stream);
                theta[1] = f64::NAN;
                assert!(model.scores(&theta).iter().all(|score| score.is_nan()), "{activation:?} {widths:?}");
            }
        }
    }
}
