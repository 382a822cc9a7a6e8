use super::clarke::margin_gradients;
use super::test_nets::{Net, kinked, label, matrix, net, numbers};
use super::{
    CertificateError, Coverage, Geometry, Slopes, TangentCertificate, TangentProblem, margin_gram, solve_tangent,
    tangent_certificate, tangent_certificate_from_gram, tangent_certificate_from_smallest,
};
use crate::data::Targets;
use crate::engine::{Compute, Forward, Kink, Tangents, cpu};
use crate::linalg::{Matrix, dot};
use crate::models::{Activation, MarginMap, ModelSpec};
use crate::norms::NormSpec;
use crate::reference::{MarginProblem, solve_margin};

const CLARKE: Slopes = Slopes::Clarke { tolerance: 1e-9 };

fn certify(net: &mut Net, norm: NormSpec, slopes: Slopes) -> TangentCertificate {
    tangent_certificate(&mut *net.model, &net.targets, &net.theta, &norm.into(), slopes).unwrap()
}

/// max over ‖v‖ ≤ 1 of the concave min of margins by pattern search from many starts.
fn brute_force(problem: &MarginProblem) -> f64 {
    let size = problem.layout.len();
    let mut norm = problem.norm.build(&problem.layout).unwrap();
    let mut next = numbers(99);
    let mut best = f64::NEG_INFINITY;
    for _ in 0..60 {
        let mut v: Vec<f64> = (0..size).map(|_| next()).collect();
        let mut value = |v: &[f64]| problem.margins(v).into_iter().fold(f64::INFINITY, f64::min) / norm.value(v);
        let (mut at, mut step) = (value(&v), 0.5);
        while step > 1e-9 {
            let mut improved = false;
            for _ in 0..12 * size {
                let moved: Vec<f64> = v.iter().map(|x| x + step * next()).collect();
                let found = value(&moved);
                if found > at {
                    (v, at, improved) = (moved, found, true);
                }
            }
            step *= if improved { 1.0 } else { 0.6 };
        }
        best = best.max(at);
    }
    best
}

#[test]
fn tau_agrees_with_a_search_over_the_sphere_on_tiny_networks() {
    for (seed, activation) in
        [(1, Activation::Relu), (2, Activation::LeakyRelu { slope: 0.2 }), (3, Activation::ReluPower { power: 2 })]
    {
        let mut net = net(&[1], activation, &Matrix::from_rows(&[&[1.0, 0.4], &[0.9, -0.5]]), 1, seed);
        net.theta = vec![0.8, 0.3, 0.7];
        net.targets = label(&mut *net.model, &net.theta);
        let quadratic = NormSpec::Quadratic { diagonal: vec![1.0, 2.0, 0.5] };
        let others = [NormSpec::Spectral, NormSpec::Nuclear, NormSpec::Lp { p: 3.0 }, NormSpec::GroupL21];
        for norm in [NormSpec::L2, NormSpec::L1, NormSpec::Linf, quadratic].into_iter().chain(others) {
            let geometry = Geometry::from(norm);
            let tangent = TangentProblem::new(&mut *net.model, &net.targets, &net.theta, &geometry, CLARKE).unwrap();
            let certificate = tangent.certify().unwrap();
            let best = brute_force(&tangent.problem);
            let tau = 1.0 - tangent.own_value() / best;
            assert!((certificate.tau - tau).abs() < 1e-6, "{activation:?} {geometry:?}: {certificate:?} {tau}");
            assert!(certificate.tau >= certificate.tau_lower && certificate.tau - certificate.tau_lower < 1e-9);
            assert!(certificate.euler_defect < 1e-14);
        }
    }
}

#[test]
fn a_balanced_neuron_along_its_only_example_is_a_kkt_point_in_l2() {
    let inputs = Matrix::from_rows(&[&[3.0, 4.0]]);
    for activation in [Activation::Relu, Activation::ReluPower { power: 2 }] {
        let mut net = net(&[1], activation, &inputs, 1, 1);
        // max a(w·x)^k on a² + |w|² = 1: |w|² = k a²
        let k = f64::from(activation.degree());
        net.theta = vec![0.6 * k.sqrt(), 0.8 * k.sqrt(), -1.0];
        net.targets = label(&mut *net.model, &net.theta);
        let certificate = certify(&mut net, NormSpec::L2, CLARKE);
        assert!(certificate.tau < 1e-12, "{certificate:?}");
        assert_eq!(certificate.support, vec![(0, 1.0)]);
        // the direction of growth is θ itself
        let size = dot(&net.theta, &net.theta).sqrt();
        assert!(certificate.direction.iter().zip(&net.theta).all(|(v, t)| (v - t / size).abs() < 1e-9));
        net.theta[2] = -2.0; // not balanced
        assert!(certify(&mut net, NormSpec::L2, CLARKE).tau > 0.01);
    }
}

#[test]
fn on_a_kink_the_fixed_subgradient_is_wrong_and_clarkes_is_right() {
    let mut net = kinked();
    let fixed = certify(&mut net, NormSpec::L2, Slopes::Fixed);
    // both rows are (5x, 24)/… with x·x' dropped: γ = ½√2·√(25² + 24²), own = 2·120/10
    let expected = 1.0 - 24.0 / (0.5 * 2f64.sqrt() * (625.0f64 + 576.0).sqrt());
    assert!((fixed.tau - expected).abs() < 1e-10, "{} {expected}", fixed.tau);
    assert_eq!((fixed.kinks, fixed.coverage), (0, Coverage::Fixed));
    let clarke = certify(&mut net, NormSpec::L2, Slopes::Clarke { tolerance: 0.0 });
    assert!(clarke.tau < 1e-12, "{clarke:?}");
    assert_eq!((clarke.kinks, clarke.coverage), (2, Coverage::Clarke));
    let slope = clarke.multipliers.kinks[0] / clarke.multipliers.rows[0];
    assert!((slope - 7.0 / 25.0).abs() < 1e-6, "{slope}");
    // a point off the kink by less than the tolerance, on the side where its own slope is the right one
    net.theta[0] += 1e-8;
    assert!(certify(&mut net, NormSpec::L2, Slopes::Fixed).tau > 0.01);
    assert!(certify(&mut net, NormSpec::L2, Slopes::Clarke { tolerance: 0.0 }).tau > 0.01);
    let tolerant = certify(&mut net, NormSpec::L2, Slopes::Clarke { tolerance: 1e-7 });
    assert!(tolerant.tau < 1e-7 && tolerant.euler_defect < 1e-7, "{tolerant:?}");
}

#[test]
fn tau_and_support_do_not_change_with_the_scale_of_the_weights() {
    let mut scaled = net(&[4], Activation::Relu, &matrix(6, 3, 5), 1, 7);
    let mut geometries: Vec<Geometry> = [NormSpec::L2, NormSpec::L1, NormSpec::Linf].map(Geometry::from).to_vec();
    geometries.push(Geometry { scale: 3.0, ..NormSpec::L2.into() });
    let tau = |net: &mut Net, geometry: &Geometry| {
        tangent_certificate(&mut *net.model, &net.targets, &net.theta, geometry, CLARKE).unwrap()
    };
    for geometry in &geometries {
        let plain = tau(&mut scaled, geometry);
        scaled.theta.iter_mut().for_each(|t| *t *= 1e-3);
        let small = tau(&mut scaled, geometry);
        scaled.theta.iter_mut().for_each(|t| *t *= 1e3);
        assert!((plain.tau - small.tau).abs() < 1e-9, "{geometry:?}");
        assert_eq!(plain.support.len(), small.support.len());
        assert!(plain.tau > 0.0 && plain.tau < 1.0);
    }
    let (first, last) = (tau(&mut scaled, &geometries[0]), tau(&mut scaled, &geometries[3]));
    assert_eq!(first.tau, last.tau);
}

/// The rows of every choice of slopes, one problem without kinks.
fn every_vertex(net: &mut Net, kinks: &[Kink], norm: NormSpec) -> MarginProblem {
    let map = MarginMap::new(&net.targets);
    let (mut data, mut count) = (Vec::new(), 0);
    for bits in 0..1usize << kinks.len() {
        let slopes: Vec<(Kink, f64)> =
            kinks.iter().enumerate().map(|(k, kink)| (*kink, f64::from(u8::from(bits >> k & 1 == 1)))).collect();
        net.model.weigh_kinks(&slopes);
        let rows = margin_gradients(&mut *net.model, &map, &net.theta);
        count += rows.rows;
        data.extend(rows.data);
    }
    net.model.weigh_kinks(&[]);
    let rows = Matrix::from_vec(count, net.theta.len(), data).unwrap();
    MarginProblem::new(rows, norm, net.model.layout().clone()).unwrap()
}

/// Moves the weights of a unit along the example's input so that its preactivation is exactly or nearly 0.
fn put_on_kink(net: &mut Net, row: std::ops::Range<usize>, input: &[f64]) {
    let w = &mut net.theta[row];
    let factor = dot(w, input) / dot(input, input);
    w.iter_mut().zip(input).for_each(|(w, x)| *w -= factor * x);
}

#[test]
fn the_convex_form_in_e_equals_the_enumeration_of_all_slopes() {
    for outputs in [1, 3] {
        let inputs = matrix(5, 3, 11);
        let mut net = net(&[4], Activation::LeakyRelu { slope: 0.1 }, &inputs, outputs, 13);
        put_on_kink(&mut net, 0..3, inputs.row(0));
        put_on_kink(&mut net, 3..6, inputs.row(0));
        put_on_kink(&mut net, 6..9, inputs.row(3));
        net.targets = label(&mut *net.model, &net.theta);
        for norm in [NormSpec::L2, NormSpec::Linf, NormSpec::L1] {
            let certificate = certify(&mut net, norm.clone(), CLARKE);
            assert_eq!(certificate.kinks, 3);
            let kinks = net.model.kinks_near(&net.theta.clone(), 1e-9);
            let all = solve_margin(&every_vertex(&mut net, &kinks, norm.clone())).unwrap();
            let gap = (certificate.tangent_margin_upper / all.bracket.upper - 1.0).abs();
            assert!(gap < 1e-8, "{outputs} {norm:?}: {certificate:?} {all:?}");
            assert!(certify(&mut net, norm, Slopes::Fixed).tau >= certificate.tau);
        }
    }
}

#[test]
fn deep_kinks_in_two_layers_equal_the_enumeration_of_all_slopes() {
    for outputs in [1, 2] {
        for seed in [3, 4, 5] {
            let inputs = matrix(4, 2, 17);
            let mut deep = net(&[3, 3], Activation::LeakyRelu { slope: 0.2 }, &inputs, outputs, seed);
            put_on_kink(&mut deep, 0..2, inputs.row(0));
            put_on_kink(&mut deep, 2..4, inputs.row(1));
            let hidden = |theta: &[f64], x: &[f64]| -> Vec<f64> {
                let z = theta[..6].chunks_exact(2).map(|w| dot(w, x));
                z.map(|z| if z > 0.0 { z } else { 0.2 * z }).collect()
            };
            let (first, second) = (hidden(&deep.theta, inputs.row(0)), hidden(&deep.theta, inputs.row(2)));
            put_on_kink(&mut deep, 6..9, &first);
            put_on_kink(&mut deep, 9..12, &second);
            put_on_kink(&mut deep, 12..15, &first);
            deep.targets = label(&mut *deep.model, &deep.theta);
            let kinks = deep.model.kinks_near(&deep.theta.clone(), 1e-9);
            assert_eq!(kinks.len(), 5, "{kinks:?}");
            for norm in [NormSpec::L2, NormSpec::Linf] {
                let certificate = certify(&mut deep, norm.clone(), CLARKE);
                assert_eq!(certificate.coverage, Coverage::Clarke);
                let all = solve_margin(&every_vertex(&mut deep, &kinks, norm.clone())).unwrap();
                let gap = (certificate.tangent_margin_upper / all.bracket.upper - 1.0).abs();
                assert!(gap < 1e-8, "{outputs} {seed} {norm:?}: {gap} {certificate:?}");
                assert!(certificate.tau - certificate.tau_lower < 1e-8);
                assert!(certify(&mut deep, norm, Slopes::Fixed).tau >= certificate.tau);
            }
        }
    }
}

#[test]
fn a_deep_example_with_many_kinks_gets_an_upper_bound_only() {
    let inputs = Matrix::from_rows(&[&[1.0, 0.5]]);
    let mut deep = net(&[9, 9], Activation::LeakyRelu { slope: 0.5 }, &inputs, 1, 23);
    for unit in 0..7 {
        put_on_kink(&mut deep, 2 * unit..2 * unit + 2, &[1.0, 0.5]);
    }
    let z = deep.theta[..18].chunks_exact(2).map(|w| dot(w, &[1.0, 0.5]));
    let a: Vec<f64> = z.map(|z| if z > 0.0 { z } else { 0.5 * z }).collect();
    for unit in 0..8 {
        put_on_kink(&mut deep, 18 + 9 * unit..27 + 9 * unit, &a);
    }
    deep.targets = label(&mut *deep.model, &deep.theta);
    let certificate = certify(&mut deep, NormSpec::L2, CLARKE);
    assert_eq!((certificate.kinks, certificate.coverage), (15, Coverage::Partial));
    assert_eq!(certificate.tau_lower, 0.0);
    assert!(certificate.tau <= certify(&mut deep, NormSpec::L2, Slopes::Fixed).tau);
}

#[test]
fn multi_class_rows_are_differences_of_score_gradients() {
    let mut net = net(&[3], Activation::Relu, &matrix(4, 2, 29), 3, 31);
    let map = MarginMap::new(&net.targets);
    let Targets::Classes { labels, .. } = net.targets.clone() else { unreachable!() };
    let rows = margin_gradients(&mut *net.model, &map, &net.theta);
    let scores: Vec<Matrix> = (0..3).map(|c| net.model.per_example_gradients(&net.theta, c)).collect();
    for (n, &label) in labels.iter().enumerate() {
        for (k, j) in (0..3).filter(|&j| j != label).enumerate() {
            let expected = scores[label].row(n).iter().zip(scores[j].row(n)).map(|(a, b)| a - b);
            assert!(rows.row(2 * n + k).iter().zip(expected).all(|(r, e)| (r - e).abs() < 1e-15));
        }
    }
}

#[test]
fn the_positive_orthant_is_a_cone_of_the_entropy_geometry() {
    // ℓ1 on w ≥ 0 with rows (1, 0.3) and (0.2, −5): free signs allow v₂ < 0, entropy does not
    let inputs = Matrix::from_rows(&[&[1.0, 0.3], &[0.2, -5.0]]);
    let mut model = cpu::bind(&ModelSpec::Linear, &inputs, 1, Compute::default()).unwrap();
    let (targets, theta) = (Targets::Binary(vec![1.0, 1.0]), [1.0, 0.0]);
    let layout = model.layout().clone();
    let entropy = Geometry::of_potential(&crate::potentials::PotentialSpec::Entropy, &layout).unwrap();
    let on_cone = tangent_certificate(&mut *model, &targets, &theta, &entropy, CLARKE).unwrap();
    let l1 = NormSpec::L1.into();
    let free = tangent_certificate(&mut *model, &targets, &theta, &l1, CLARKE).unwrap();
    // on the cone v = (1, 0) is best: margins 1 and 0.2; without it v₂ < 0 lifts the second
    assert!(on_cone.tau < 1e-10, "{on_cone:?}");
    assert!(free.tau > 0.5, "{free:?}");
    let outside = tangent_certificate(&mut *model, &targets, &[1.0, -0.1], &entropy, CLARKE);
    assert!(matches!(outside, Err(CertificateError::OutsideDomain { index: 1, .. })));
}

#[test]
fn spectral_entropy_searches_semidefinite_directions_only() {
    let inputs = Matrix::from_rows(&[&[1.0, 0.2], &[-0.1, 1.0]]);
    let mut model = cpu::bind(&ModelSpec::Linear, &inputs, 2, Compute::default()).unwrap();
    let targets = Targets::Classes { labels: vec![0, 1], count: 2 };
    let theta = [1.5, 0.1, 0.1, 1.0];
    let spec = crate::potentials::PotentialSpec::SpectralEntropy;
    let geometry = Geometry::of_potential(&spec, model.layout()).unwrap();
    let certificate = tangent_certificate(&mut *model, &targets, &theta, &geometry, CLARKE).unwrap();
    // V = (a b; b 1 − a) with b² ≤ a(1 − a): margins a + 0.2b − b − 0.2(1−a) and −0.1b + 1 − a + 0.1a − b
    let margin = |a: f64, b: f64| (1.2 * a - 0.8 * b - 0.2).min(1.0 - 0.9 * a - 1.1 * b);
    let mut best = 0.0f64;
    for (i, j) in (0..=2000).flat_map(|i| (-1000..=1000).map(move |j| (i, j))) {
        let a = f64::from(i) / 2000.0;
        best = best.max(margin(a, (a * (1.0 - a)).sqrt() * f64::from(j) / 1000.0));
    }
    let expected = 1.0 - margin(1.5 / 2.5, 0.1 / 2.5) / best;
    assert!((certificate.tau - expected).abs() < 1e-4, "{certificate:?} {expected}");
}

#[test]
fn points_that_have_no_tangent_are_refused_by_name() {
    let inputs = matrix(3, 2, 37);
    let mut good = net(&[2], Activation::LeakyRelu { slope: 0.3 }, &inputs, 1, 41);
    let l2 = Geometry::from(NormSpec::L2);
    let refuse = |model: &mut dyn Tangents, targets: &Targets, theta: &[f64], slopes| {
        tangent_certificate(model, targets, theta, &l2, slopes).unwrap_err().to_string()
    };
    let flipped = match &good.targets {
        Targets::Binary(y) => Targets::Binary(y.iter().map(|y| -y).collect()),
        _ => unreachable!(),
    };
    assert!(refuse(&mut *good.model, &flipped, &good.theta, CLARKE).contains("must be positive"));
    let values = Targets::Values(vec![0.0; 3]);
    assert!(refuse(&mut *good.model, &values, &good.theta, CLARKE).contains("real numbers"));
    assert!(refuse(&mut *good.model, &good.targets, &good.theta[1..], CLARKE).contains("5 entries"));
    let other = Targets::Binary(vec![1.0; 4]);
    assert!(refuse(&mut *good.model, &other, &good.theta, CLARKE).contains("4 of 1"));
    let wide = Slopes::Clarke { tolerance: 2.0 };
    assert!(refuse(&mut *good.model, &good.targets, &good.theta, wide).contains("tolerance is 2"));
    let spec = ModelSpec::Network {
        widths: vec![2],
        activation: Activation::Relu,
        biases: crate::models::Biases::All,
        frozen: vec![],
        output_scale: crate::models::OutputScale::One,
    };
    let mut biased = cpu::bind(&spec, &inputs, 1, Compute::default()).unwrap();
    let theta = vec![0.1; biased.layout().len()];
    assert!(refuse(&mut *biased, &good.targets, &theta, CLARKE).contains("not homogeneous"));
}

#[test]
fn the_gram_matrix_gives_the_same_certificate_as_the_rows() {
    for outputs in [1, 3] {
        let mut net = net(&[6], Activation::LeakyRelu { slope: 0.1 }, &matrix(12, 4, 43), outputs, 47);
        let rows = certify(&mut net, NormSpec::L2, Slopes::Fixed);
        let gram = tangent_certificate_from_gram(&mut *net.model, &net.targets, &net.theta).unwrap();
        assert!((rows.tau - gram.tau).abs() < 1e-9, "{} {}", rows.tau, gram.tau);
        assert!(gram.tau - gram.tau_lower < 1e-9);
        assert!(rows.direction.iter().zip(&gram.direction).all(|(a, b)| (a - b).abs() < 1e-5));
        let by_rows = {
            let map = MarginMap::new(&net.targets);
            let rows = margin_gradients(&mut *net.model, &map, &net.theta);
            dot(rows.row(1), rows.row(rows.rows - 1))
        };
        let gram = margin_gram(&mut *net.model, &net.targets, &net.theta).unwrap();
        assert!((gram[(1, gram.cols - 1)] - by_rows).abs() < 1e-13);
    }
}

/// A convolution with a pool above it, with a preactivation on a kink and a window with a tie.
fn image_net(activation: Activation, outputs: usize, seed: u64) -> Net {
    use crate::engine::cpu::Cpu;
    use crate::models::{Architecture, Convolution, Layer, Padding, Pool, Pooling, Shape};
    let layers = vec![
        Layer::Convolution(Convolution { padding: Padding::Valid, ..Convolution::new(2, 2) }),
        Layer::Activation(activation),
        Layer::Pool(Pool { pooling: Pooling::Max, size: 2, stride: 2 }),
        Layer::Flatten,
        Layer::dense(outputs),
    ];
    let architecture = Architecture::new(Shape::image(1, 5, 5), layers).unwrap();
    let inputs = matrix(3, 25, seed);
    let mut model = Cpu(crate::engine::Compute::default()).tangents(&architecture, &(&inputs).into()).unwrap();
    let mut next = super::test_nets::numbers(seed + 100);
    let mut theta: Vec<f64> = (0..model.layout().len()).map(|_| next()).collect();
    let patch = |n: usize, y: usize, x: usize| [0, 1, 5, 6].map(|offset| inputs[(n, 5 * y + x + offset)]);
    // the first channel is on a kink at a pixel of the first example; the second ties two pixels of the second example
    let project = |w: &mut [f64], v: [f64; 4]| {
        let share = dot(w, &v) / dot(&v, &v);
        w.iter_mut().zip(v).for_each(|(w, v)| *w -= share * v);
    };
    project(&mut theta[..4], patch(0, 0, 0));
    let (a, b) = (patch(1, 0, 0), patch(1, 1, 1));
    project(&mut theta[4..8], std::array::from_fn(|k| a[k] - b[k]));
    let targets = label(&mut *model, &theta);
    Net { model, targets, theta }
}

#[test]
fn kinks_and_ties_of_image_networks_equal_the_enumeration_of_all_slopes() {
    let (mut ties, mut bent) = (0, 0);
    for outputs in [1, 2] {
        for seed in 1..9 {
            let mut net = image_net(Activation::LeakyRelu { slope: 0.2 }, outputs, seed);
            let kinks = net.model.kinks_near(&net.theta.clone(), 1e-9);
            bent += kinks.iter().filter(|kink| kink.slopes == (0.2, 1.0)).count();
            ties += kinks.iter().filter(|kink| kink.slopes == (0.0, 1.0)).count();
            for norm in [NormSpec::L2, NormSpec::Linf] {
                let certificate = certify(&mut net, norm.clone(), CLARKE);
                assert_eq!((certificate.coverage, certificate.kinks), (Coverage::Clarke, kinks.len()));
                let all = solve_margin(&every_vertex(&mut net, &kinks, norm.clone())).unwrap();
                let gap = (certificate.tangent_margin_upper / all.bracket.upper - 1.0).abs();
                assert!(gap < 1e-8, "{outputs} {seed} {norm:?}: {gap} {certificate:?}");
                assert!(certificate.euler_defect < 1e-9, "{}", certificate.euler_defect);
                assert!(certify(&mut net, norm, Slopes::Fixed).tau >= certificate.tau - 1e-12);
            }
        }
    }
    assert!(ties >= 3 && bent >= 3, "{ties} ties, {bent} kinks");
}

#[test]
fn the_smallest_margins_and_the_gram_matrix_give_the_certificate_of_all_rows() {
    let inputs = matrix(90, 5, 3);
    let dense = net(&[6], Activation::Relu, &inputs, 3, 5);
    let image = image_net(Activation::Relu, 3, 4);
    for (mut net, kinked) in [(dense, false), (image, true)] {
        for norm in [NormSpec::L2, NormSpec::L1, NormSpec::Linf] {
            for slopes in [Slopes::Fixed, CLARKE] {
                let (geometry, theta) = (norm.clone().into(), net.theta.clone());
                let whole = solve_tangent(&mut *net.model, &net.targets, &theta, &geometry, slopes).unwrap().1;
                let few = tangent_certificate_from_smallest(&mut *net.model, &net.targets, &theta, &geometry, slopes)
                    .unwrap();
                assert!(few.rows <= whole.rows.max(net.targets.len() * 2), "{} {}", few.rows, whole.rows);
                if kinked && slopes == CLARKE {
                    // violated vertices of several layers are not searched for here: an upper bound
                    assert!(few.tau >= whole.tau - 1e-8);
                    continue;
                }
                assert!((few.tau - whole.tau).abs() < 1e-8, "{norm:?}: {} {}", few.tau, whole.tau);
                assert!(few.tau - few.tau_lower < 1e-8, "{norm:?}: {} {}", few.tau, few.tau_lower);
            }
        }
        let whole = certify(&mut net, NormSpec::L2, Slopes::Fixed);
        let gram = tangent_certificate_from_gram(&mut *net.model, &net.targets, &net.theta).unwrap();
        assert!((gram.tau - whole.tau).abs() < 1e-8);
    }
}
