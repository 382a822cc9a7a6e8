//! The laws every potential obeys, run over every example on every layout it fits.
//!
//! M.1 round trip, M.2 Fenchel identity, M.3 Hessian, M.4 curvature condition, M.5 horizon: section 2 of the claims
//! catalogue. A new potential is tested by being listed in [`PotentialSpec::examples`].

use proptest::prelude::*;

use super::*;
use crate::linalg::{dot, norm2};
use crate::numeric::{RandomStream, Streams};
use crate::params::{ParamLayout, assign};

/// A vector, three blocks with the middle one frozen, and square blocks.
fn layouts() -> Vec<ParamLayout> {
    vec![
        ParamLayout::vector(5),
        ParamLayout::new([("w", 2, 3), ("a", 1, 2), ("v", 3, 1)]).unwrap().freeze(&["a"]).unwrap(),
        ParamLayout::new([("w", 2, 2), ("u", 1, 1), ("s", 3, 3)]).unwrap().freeze(&["u"]).unwrap(),
    ]
}

/// Every example on every layout it can be built for, plus dense quadratics of the right size.
fn cases() -> Vec<(PotentialSpec, ParamLayout)> {
    let mut cases = Vec::new();
    for layout in layouts() {
        let count: usize = layout.trainable().map(|block| block.len()).sum();
        let dense = (0..count)
            .map(|i| {
                (0..count).map(|j| if i == j { 2.0 } else { 0.9 / (1.0 + i.abs_diff(j) as f64).powi(2) }).collect()
            })
            .collect();
        let mut specs = PotentialSpec::examples();
        specs.push(PotentialSpec::Quadratic(QuadraticWeights::Matrix(dense)));
        specs.push(PotentialSpec::Quadratic(QuadraticWeights::Diagonal((0..count).map(|i| 0.5 + i as f64).collect())));
        specs.push("layers:w=entropy|*=squared-lp:1.5".parse().unwrap());
        cases.extend(specs.into_iter().filter_map(|spec| match spec.build(&layout) {
            Ok(_) => Some((spec, layout.clone())),
            Err(PotentialError::NotSquare { .. } | PotentialError::Params(_)) => None,
            Err(other) => panic!("{spec}: {other}"),
        }));
    }
    for example in PotentialSpec::examples() {
        assert!(cases.iter().any(|(spec, _)| *spec == example), "{example} fits no layout");
    }
    cases
}

/// Random weights inside the domain, of about the given size; frozen entries are 7.
fn weights(spec: &PotentialSpec, layout: &ParamLayout, stream: &mut RandomStream, size: f64) -> Vec<f64> {
    let mut theta = vec![7.0; layout.len()];
    for block in layout.trainable() {
        let slice = &mut theta[block.range()];
        stream.fill_normal(slice);
        let key = match spec {
            PotentialSpec::Layers { blocks } => {
                let own = assign(layout, blocks, |entry| &entry.block).unwrap();
                own.iter().find(|(other, _)| *other == block).unwrap().1.potential.key()
            }
            other => other.key(),
        };
        match key {
            "entropy" => slice.iter_mut().for_each(|x| *x = x.exp()),
            "spectral-entropy" => {
                let (n, root) = (block.rows, slice.to_vec());
                crate::linalg::matmul_nt(slice, &root, &root, n, n, n);
                (0..n).for_each(|i| slice[i * n + i] += 0.3);
            }
            _ => {}
        }
        slice.iter_mut().for_each(|x| *x *= size);
    }
    theta
}

/// A tangent vector: symmetric where the potential lives on symmetric matrices.
fn tangent(spec: &PotentialSpec, layout: &ParamLayout, stream: &mut RandomStream) -> Vec<f64> {
    let mut v = vec![0.0; layout.len()];
    for block in layout.trainable() {
        stream.fill_normal(&mut v[block.range()]);
        if *spec == PotentialSpec::SpectralEntropy {
            let (n, copy) = (block.rows, v[block.range()].to_vec());
            for (k, x) in v[block.range()].iter_mut().enumerate() {
                *x = 0.5 * (copy[k] + copy[k % n * n + k / n]);
            }
        }
    }
    v
}

fn trainable_dot(layout: &ParamLayout, a: &[f64], b: &[f64]) -> f64 {
    layout.trainable().map(|block| dot(&a[block.range()], &b[block.range()])).sum()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    norm2(&a.iter().zip(b).map(|(x, y)| x - y).collect::<Vec<_>>())
}

/// Runs `law` on random weights of three sizes for every case.
fn everywhere(
    name: &str,
    mut law: impl FnMut(&str, &mut dyn MirrorPotential, &PotentialSpec, &ParamLayout, &[f64], &mut RandomStream),
) {
    let mut stream = Streams::new(11).stream(name);
    for (spec, layout) in cases() {
        let mut potential = spec.build(&layout).unwrap();
        for size in [0.01, 1.0, 30.0] {
            let theta = weights(&spec, &layout, &mut stream, size);
            potential.check_domain(&theta).unwrap();
            law(&format!("{spec} size {size}"), potential.as_mut(), &spec, &layout, &theta, &mut stream);
        }
    }
}

#[test]
fn m1_the_inverse_mirror_map_inverts() {
    everywhere("m1", |name, potential, _, layout, theta, _| {
        let (mut dual, mut back, mut again) = (theta.to_vec(), theta.to_vec(), theta.to_vec());
        potential.mirror_map(theta, &mut dual);
        potential.inverse_mirror_map(&dual, &mut back);
        potential.mirror_map(&back, &mut again);
        for block in layout.trainable() {
            let range = block.range();
            assert!(
                distance(&theta[range.clone()], &back[range.clone()]) <= 1e-12 * norm2(&theta[range.clone()]),
                "{name}"
            );
            assert!(distance(&dual[range.clone()], &again[range.clone()]) <= 1e-12 * norm2(&dual[range]), "{name}");
        }
        for block in layout.blocks().iter().filter(|block| block.frozen) {
            assert!(dual[block.range()].iter().chain(&back[block.range()]).all(|x| *x == 0.0), "{name}");
        }
    });
}

#[test]
fn m1_round_trips_over_six_hundred_decades() {
    let layout = ParamLayout::vector(1);
    let (mut z, mut back, mut steep) = ([0.0], [0.0], [0.0]);
    for spec in PotentialSpec::examples().into_iter().filter(|spec| *spec != PotentialSpec::SpectralEntropy) {
        let mut potential = spec.build(&layout).unwrap();
        let mut representable = 0;
        for exponent in (-300..=300).step_by(10) {
            for mantissa in [1.0, -3.7, 9.9] {
                let theta = [mantissa * 10f64.powi(exponent)];
                if potential.check_domain(&theta).is_err() {
                    continue;
                }
                potential.mirror_map(&theta, &mut z);
                if !z[0].is_finite() || (z[0].abs() < 1e-305 && theta[0] != 1.0) {
                    continue; // the dual variable itself leaves the range of normal floats
                }
                representable += 1;
                potential.inverse_mirror_map(&z, &mut back);
                potential.hessian_action(&theta, &theta, &mut steep);
                // One rounding of z moves θ by |z|/(|θ| r″) roundings.
                let tolerance = 8.0 * f64::EPSILON * (1.0 + (z[0] / steep[0]).abs());
                assert!((back[0] / theta[0] - 1.0).abs() <= tolerance, "{spec}: {theta:?} -> {z:?} -> {back:?}");
            }
        }
        assert!(representable > 30, "{spec}: only {representable} magnitudes");
    }
}

#[test]
fn m2_the_fenchel_identity() {
    everywhere("m2", |name, potential, _, layout, theta, _| {
        let mut dual = theta.to_vec();
        potential.mirror_map(theta, &mut dual);
        let (value, conjugate) = (potential.value(theta), potential.conjugate_at(theta));
        let pairing = trainable_dot(layout, theta, &dual);
        let scale = value.abs() + conjugate.abs() + pairing.abs();
        assert!((value + conjugate - pairing).abs() <= 1e-12 * scale, "{name}: {value} + {conjugate} != {pairing}");
        assert!(
            (potential.log_conjugate_at(theta) - conjugate.ln()).abs() <= 1e-12 * (1.0 + conjugate.ln().abs()),
            "{name}"
        );
    });
}

#[test]
fn m2_the_conjugate_is_the_supremum() {
    everywhere("m2 supremum", |name, potential, spec, layout, theta, stream| {
        let mut dual = theta.to_vec();
        potential.mirror_map(theta, &mut dual);
        let conjugate = potential.conjugate_at(theta);
        for size in [0.01, 0.5, 40.0] {
            let other = weights(spec, layout, stream, size);
            let rival = trainable_dot(layout, &other, &dual) - potential.value(&other);
            assert!(rival <= conjugate + 1e-10 * (rival.abs() + conjugate.abs()), "{name}: {rival} > {conjugate}");
        }
    });
}

#[test]
fn m2_the_mirror_map_is_the_gradient() {
    everywhere("m2 gradient", |name, potential, spec, layout, theta, stream| {
        let (v, mut dual) = (tangent(spec, layout, stream), theta.to_vec());
        potential.mirror_map(theta, &mut dual);
        let slope = central(theta, &v, |point| potential.value(point));
        let exact = trainable_dot(layout, &dual, &v);
        let scale = norm2(&dual) * norm2(&v) + 1e-4 * potential.value(theta).abs();
        assert!((slope - exact).abs() <= 2e-6 * scale, "{name}: {slope} vs {exact}");
    });
}

/// The fourth-order central difference of f along v, with a step relative to the smallest entry that moves.
fn central(theta: &[f64], v: &[f64], mut f: impl FnMut(&[f64]) -> f64) -> f64 {
    let moving = theta.iter().zip(v).filter(|(_, x)| **x != 0.0);
    let h = 1e-3 * moving.map(|(t, x)| (t / x).abs()).fold(f64::INFINITY, f64::min).min(norm2(theta) / norm2(v));
    let mut at = |k: f64| f(&theta.iter().zip(v).map(|(t, x)| t + k * h * x).collect::<Vec<_>>());
    (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * h)
}

#[test]
fn m3_the_hessian_is_the_derivative_of_the_mirror_map() {
    everywhere("m3", |name, potential, spec, layout, theta, stream| {
        let (v, test) = (tangent(spec, layout, stream), tangent(spec, layout, stream));
        let (mut image, mut scratch) = (theta.to_vec(), theta.to_vec());
        potential.hessian_action(theta, &v, &mut image);
        let exact = trainable_dot(layout, &image, &test);
        let slope = central(theta, &v, |point| {
            potential.mirror_map(point, &mut scratch);
            trainable_dot(layout, &scratch, &test)
        });
        assert!((slope - exact).abs() <= 1e-6 * norm2(&image) * norm2(&test), "{name}: {slope} vs {exact}");
    });
}

#[test]
fn m3_the_hessian_is_symmetric_positive_and_its_inverse_undoes_it() {
    everywhere("m3 inverse", |name, potential, spec, layout, theta, stream| {
        let (v, w) = (tangent(spec, layout, stream), tangent(spec, layout, stream));
        let (mut hv, mut hw, mut back) = (theta.to_vec(), theta.to_vec(), theta.to_vec());
        potential.hessian_action(theta, &v, &mut hv);
        potential.hessian_action(theta, &w, &mut hw);
        let (left, right) = (dot(&hv, &w), dot(&hw, &v));
        assert!((left - right).abs() <= 1e-11 * norm2(&hv) * norm2(&w), "{name}");
        assert!(dot(&hv, &v) > 0.0, "{name}");
        potential.inverse_hessian_action(theta, &hv, &mut back);
        assert!(distance(&back, &v) <= 1e-9 * norm2(&v), "{name}: {back:?} vs {v:?}");
        potential.inverse_hessian_action(theta, &v, &mut back);
        potential.hessian_action(theta, &back, &mut hv);
        assert!(distance(&hv, &v) <= 1e-9 * norm2(&v), "{name}: {hv:?} vs {v:?}");
    });
}

#[test]
fn m4_the_curvature_condition_holds_with_the_stated_slack() {
    everywhere("m4", |name, potential, _, layout, theta, _| {
        let slack = potential.curvature_slack(theta);
        let (mut conjugates, mut image) = (Vec::new(), theta.to_vec());
        potential.conjugate_by_block(theta, &mut conjugates);
        potential.hessian_action(theta, theta, &mut image);
        let weighted: f64 = conjugates.iter().zip(potential.degrees_by_block()).map(|(q, degree)| q * degree).sum();
        assert!(slack >= 0.0, "{name}: {slack}");
        let direct = weighted - trainable_dot(layout, theta, &image);
        assert!((slack - direct).abs() <= 1e-12 * weighted, "{name}: {slack} vs {direct}");
    });
}

#[test]
fn m4_the_slack_is_that_of_the_table() {
    let theta = [0.3, -2.0, 0.0];
    let slack = |text: &str| {
        let spec: PotentialSpec = text.parse().unwrap();
        spec.build(&ParamLayout::vector(3)).unwrap().curvature_slack(&theta)
    };
    let hyperbolic: f64 = theta.iter().map(|t| 0.1 / (t * t + 0.1f64).sqrt()).sum();
    assert!((slack("hyperbolic:0.1") - hyperbolic).abs() < 1e-15);
    assert!((slack("smoothed:5,0.2") - 1.5 * 0.2 * 4.09).abs() < 1e-15);
    assert_eq!(slack("smoothed:5,0"), 0.0);
}

#[test]
fn m5_the_gauge_tends_to_the_horizon() {
    everywhere("m5", |name, potential, _, _, theta, _| {
        if potential.degrees_by_block().iter().any(|degree| *degree != potential.degree()) {
            return; // a sum of different degrees sees only the leading blocks; tested beside it
        }
        let horizon = potential.horizon(theta);
        let mut error = f64::INFINITY;
        for exponent in 2..=8 {
            let grown: Vec<f64> = theta.iter().map(|t| t * 10f64.powi(exponent)).collect();
            let next = (potential.gauge(&grown) * 10f64.powi(-exponent) / horizon - 1.0).abs();
            assert!(next <= error.max(1e-13), "{name} at 1e{exponent}: {next} after {error}");
            error = next;
        }
        assert!(error < 1e-3, "{name}: {error}");
    });
}

#[test]
fn m5_table_one_within_1e_4_at_a_million() {
    let theta = [0.3, -2.0, 0.7];
    let powers = |p: f64| theta.iter().map(|t: &f64| t.abs().powf(p)).sum::<f64>().powf(1.0 / p);
    for (text, expected) in [
        ("hyperbolic:0.1", powers(1.0)),
        ("smoothed:3,1", 2f64.cbrt() * powers(3.0)),
        ("smoothed:4,0.1", 3f64.powf(0.25) * powers(4.0)),
        ("smoothed:2,0.5", 1.5f64.sqrt() * powers(2.0)),
        ("power-smoothed:1.5,0.1", 0.5f64.powf(1.0 / 1.5) * powers(1.5)),
    ] {
        let mut potential = text.parse::<PotentialSpec>().unwrap().build(&ParamLayout::vector(3)).unwrap();
        assert!((potential.horizon(&theta) / expected - 1.0).abs() < 1e-14, "{text}");
        let grown = theta.map(|t| t * 1e6);
        assert!((potential.gauge(&grown) / 1e6 / expected - 1.0).abs() < 1e-4, "{text}");
    }
}

#[test]
fn gauges_and_horizons_are_finite_at_the_ends_of_the_range() {
    for text in [
        "euclidean",
        "quadratic:2",
        "hyperbolic:0.1",
        "smoothed:3,1",
        "smoothed:2.5,0.3",
        "power-smoothed:1.5,0.1",
        "squared-lp:1.5",
    ] {
        let mut potential = text.parse::<PotentialSpec>().unwrap().build(&ParamLayout::vector(2)).unwrap();
        let unit = potential.horizon(&[3.0, -4.0]);
        let huge = [3e250, -4e250];
        assert!((potential.horizon(&huge) / 1e250 / unit - 1.0).abs() < 1e-13, "{text}");
        assert!((potential.gauge(&huge) / 1e250 / unit - 1.0).abs() < 1e-12, "{text}");
        assert!(potential.gauge(&[3e-250, 0.0]).is_finite() && potential.gauge(&[0.0, 0.0]).is_finite(), "{text}");
    }
}

#[test]
fn the_horizon_bounds_hold_on_both_sides() {
    everywhere("bounds", |name, potential, _, _, theta, _| {
        let Some(bounds) = potential.horizon_bounds() else {
            assert!(potential.degrees_by_block().iter().any(|degree| *degree != potential.degree()), "{name}");
            return;
        };
        let (horizon, gauge) = (potential.horizon(theta), potential.gauge(theta));
        assert!(horizon <= gauge * (1.0 + 1e-13), "{name}: {horizon} > {gauge}");
        assert!(gauge <= (bounds.factor * horizon + bounds.offset) * (1.0 + 1e-13), "{name}: {gauge}");
        assert!((gauge - horizon) / gauge <= bounds.relative_gap(gauge) + 1e-13, "{name}");
    });
}

#[test]
fn the_horizon_bounds_have_the_constants_of_appendix_h() {
    let bounds = |text: &str| {
        let spec: PotentialSpec = text.parse().unwrap();
        spec.build(&ParamLayout::vector(100)).unwrap().horizon_bounds().unwrap()
    };
    let hyperbolic = bounds("hyperbolic:0.0001"); // λ = 1/n² makes the offset 1
    assert!(hyperbolic.factor == 1.0 && (hyperbolic.offset - 1.0).abs() < 1e-12);
    assert!((hyperbolic.log_time(2.0) - 1.0).abs() < 1e-12);
    let smoothed = bounds("smoothed:3,1");
    assert!((smoothed.factor.powi(3) - 3.5 / 2.0).abs() < 1e-13 && (smoothed.offset.powi(3) - 150.0).abs() < 1e-10);
}

/// The sharper bound pQ/φ^p − 1 ≤ p λ n^{1−2/p}/(2(p−1)‖θ‖_p^{p−2}), which vanishes as the weights grow.
#[test]
fn the_smoothed_gap_closes_at_the_predicted_rate() {
    let mut stream = Streams::new(3).stream("gap");
    for (p, lambda) in [(3.0, 1.0), (4.0, 0.1), (2.5, 2.0)] {
        let mut potential = PotentialSpec::Smoothed { p, lambda }.build(&ParamLayout::vector(6)).unwrap();
        for size in [0.1, 1.0, 100.0] {
            let mut theta = [0.0; 6];
            stream.fill_normal(&mut theta);
            theta.iter_mut().for_each(|t| *t *= size);
            let horizon = potential.horizon(&theta);
            let norm = horizon / (p - 1.0).powf(1.0 / p);
            let gap = p * potential.conjugate_at(&theta) / horizon.powf(p) - 1.0;
            let bound = p * lambda * 6f64.powf(1.0 - 2.0 / p) / (2.0 * (p - 1.0) * norm.powf(p - 2.0));
            assert!(gap > 0.0 && gap <= bound * (1.0 + 1e-10), "p {p} size {size}: {gap} > {bound}");
        }
    }
}

#[test]
fn blocks_and_entries_add_up_to_the_conjugate() {
    everywhere("entries", |name, potential, _, layout, theta, _| {
        let total = potential.conjugate_at(theta);
        let (mut blocks, mut gauges, mut horizons) = (Vec::new(), Vec::new(), Vec::new());
        potential.conjugate_by_block(theta, &mut blocks);
        potential.gauges_by_block(theta, &mut gauges);
        potential.horizons_by_block(theta, &mut horizons);
        assert_eq!(blocks.len(), layout.trainable().count());
        assert!((blocks.iter().sum::<f64>() / total - 1.0).abs() < 1e-13, "{name}");
        for (index, block) in layout.trainable().enumerate() {
            let degree = potential.degrees_by_block()[index];
            assert!((gauges[index].powf(degree) / (degree * blocks[index]) - 1.0).abs() < 1e-12, "{name}");
            assert!(horizons[index] > 0.0, "{name}");
            if let Some(all) = potential.conjugate_of_entries(index, theta, Entries::all(block)) {
                assert!((all / blocks[index] - 1.0).abs() < 1e-13, "{name}");
                let mut entries = |entries| potential.conjugate_of_entries(index, theta, entries).unwrap();
                let rows: f64 = (0..block.rows).map(|i| entries(Entries::row(block, i))).sum();
                let columns: f64 = (0..block.cols).map(|j| entries(Entries::column(block, j))).sum();
                assert!((rows / all - 1.0).abs() < 1e-13 && (columns / all - 1.0).abs() < 1e-13, "{name}");
            }
        }
        assert!(potential.conjugate_of_entries(9, theta, Entries::all(&layout.blocks()[0])).is_none(), "{name}");
    });
}

#[test]
fn per_neuron_conjugates_match_the_printed_balance() {
    let layout = ParamLayout::new([("w", 2, 3), ("a", 1, 2)]).unwrap();
    let mut potential = PotentialSpec::Hyperbolic { lambda: 0.1 }.build(&layout).unwrap();
    let theta = [0.3, -1.0, 2.0, 0.0, 0.5, -0.1, 1.5, -0.7];
    let smooth = |t: f64| (t * t + 0.1).sqrt();
    let into = potential.conjugate_of_entries(0, &theta, Entries::row(&layout.blocks()[0], 1)).unwrap();
    let out = potential.conjugate_of_entries(1, &theta, Entries::column(&layout.blocks()[1], 1)).unwrap();
    assert!((into - smooth(0.0) - smooth(0.5) - smooth(0.1)).abs() < 1e-15);
    assert!((out - smooth(0.7)).abs() < 1e-15);
}

#[test]
fn coupling_potentials_say_so() {
    let layout = &layouts()[1];
    for (spec, separable) in [("squared-lp:1.5", false), ("hyperbolic:1", true), ("layers:*=squared-lp:1.5", true)] {
        let potential = spec.parse::<PotentialSpec>().unwrap().build(layout).unwrap();
        assert_eq!(potential.is_block_separable(), separable, "{spec}");
    }
    assert!(PotentialSpec::SquaredLp { p: 1.5 }.build(&ParamLayout::vector(3)).unwrap().is_block_separable());
}

#[test]
fn bregman_divergences_are_positive_and_vanish_only_at_equality() {
    everywhere("bregman", |name, potential, spec, layout, theta, stream| {
        assert_eq!(potential.bregman_divergence(theta, theta).max(1e-25), 1e-25, "{name}");
        let (v, mut image, mut dual) = (tangent(spec, layout, stream), theta.to_vec(), theta.to_vec());
        potential.mirror_map(theta, &mut dual);
        potential.hessian_action(theta, &v, &mut image);
        let smallest =
            theta.iter().zip(&v).filter(|(_, x)| **x != 0.0).map(|(t, x)| (t / x).abs()).fold(f64::INFINITY, f64::min);
        // Close: D ≈ vᵀHv/2, far below the rounding of R itself.
        let h = 1e-7 * smallest;
        let near: Vec<f64> = theta.iter().zip(&v).map(|(t, x)| t + h * x).collect();
        let quadratic = 0.5 * h * h * dot(&image, &v);
        let divergence = potential.bregman_divergence(&near, theta);
        assert!((divergence / quadratic - 1.0).abs() < 1e-4, "{name}: {divergence} vs {quadratic}");
        // Far: the definition.
        let far = weights(spec, layout, stream, 1.0);
        let gap: Vec<f64> = far.iter().zip(theta).map(|(x, t)| x - t).collect();
        let (high, low, slope) = (potential.value(&far), potential.value(theta), trainable_dot(layout, &dual, &gap));
        let divergence = potential.bregman_divergence(&far, theta);
        assert!(divergence > 0.0, "{name}");
        let scale = high.abs() + low.abs() + slope.abs() + dot(&dual, &dual).sqrt() * norm2(theta);
        assert!((divergence - (high - low - slope)).abs() <= 1e-11 * scale, "{name}: {divergence}");
    });
}

/// C.lemG10: (αQ)^{2/α−1} Hθ is the gradient of ½(αQ)^{2/α}, and approaches that of ½φ² like ‖θ‖^{2−p}, with
/// constant 1.
#[test]
fn the_gradient_of_the_gauge_tends_to_that_of_the_horizon() {
    for p in [3.0, 4.0, 6.0] {
        let spec = PotentialSpec::Smoothed { p, lambda: 1.0 };
        let mut potential = spec.build(&ParamLayout::vector(3)).unwrap();
        let (direction, mut image) = ([0.5, -0.8, 0.33], [0.0; 3]);
        let mut defect = |scale: f64| {
            let theta = direction.map(|t| t * scale);
            potential.hessian_action(&theta, &theta, &mut image);
            let gradient = image.map(|x| x * (p * potential.conjugate_at(&theta)).powf(2.0 / p - 1.0));
            let slope = central(&theta, &[1.0, 0.3, -0.2], |point| 0.5 * potential.gauge(point).powi(2));
            assert!((slope / dot(&gradient, &[1.0, 0.3, -0.2]) - 1.0).abs() < 1e-7, "p {p} scale {scale}");
            // ∇ ½φ² = (p−1)^{2/p} ‖θ‖_p^{2−p} sgn|θ|^{p−1}
            let norm = theta.iter().map(|t| t.abs().powf(p)).sum::<f64>().powf(1.0 / p);
            let limit = theta.map(|t| (p - 1.0).powf(2.0 / p) * norm.powf(2.0 - p) * t.abs().powf(p - 2.0) * t);
            distance(&gradient, &limit) / norm2(&theta)
        };
        let (near, far) = (defect(50.0), defect(400.0));
        let slope = (far / near).ln() / 8f64.ln();
        assert!((slope - (2.0 - p)).abs() < 0.1, "p {p}: slope {slope}");
    }
}

#[test]
fn weights_outside_the_domain_are_named() {
    let layout = &layouts()[1];
    let mut theta = vec![1.0; layout.len()];
    theta[9] = -0.5; // entry 1 of block v
    let error = PotentialSpec::Entropy.build(layout).unwrap().check_domain(&theta).unwrap_err().to_string();
    assert!(error.contains("entry 1 of block 'v' is -0.5") && error.contains("hyperbolic"), "{error}");
    theta[9] = f64::NAN;
    theta[6] = f64::NAN; // frozen, ignored
    for spec in PotentialSpec::examples().into_iter().filter(|spec| *spec != PotentialSpec::SpectralEntropy) {
        let error = spec.build(layout).unwrap().check_domain(&theta).unwrap_err().to_string();
        assert!(error.contains("entry 1 of block 'v' is NaN"), "{spec}: {error}");
        let error = spec.build(layout).unwrap().check_domain(&[1.0]).unwrap_err().to_string();
        assert!(error.contains("1 entries was given for a layout of 11"), "{spec}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn separable_laws_hold_at_random_settings(
        t in -50.0..50.0f64, other in -50.0..50.0f64, log_lambda in -20.0..5.0f64, p in 2.0..9.0f64, low in 1.02..2.0f64,
    ) {
        fn laws<P: ScalarPotential>(potential: &P, t: f64, other: f64) -> Result<(), TestCaseError> {
            let (value, slope, conjugate) = (potential.value(t), potential.slope(t), potential.conjugate(t));
            let scale = value.abs() + conjugate.abs() + (t * slope).abs();
            prop_assert!((value + conjugate - t * slope).abs() <= 1e-13 * scale);
            let tolerance = 1e-14 * (1.0 + (slope / (t * potential.curvature(t))).abs());
            prop_assert!((potential.inverse_slope(slope) - t).abs() <= tolerance * t.abs());
            prop_assert!(potential.slack(t) >= -1e-15 * conjugate.abs());
            prop_assert!(potential.bregman(t, other) >= 0.0);
            let symmetric = (slope - potential.slope(other)) * (t - other);
            let both = potential.bregman(t, other) + potential.bregman(other, t);
            prop_assert!((both - symmetric).abs() <= 1e-11 * symmetric.abs() + 1e-300, "{} vs {}", both, symmetric);
            Ok(())
        }
        let lambda = log_lambda.exp();
        laws(&Hyperbolic::new(lambda).unwrap(), t, other)?;
        laws(&Smoothed::new(p, lambda).unwrap(), t, other)?;
        laws(&PowerSmoothed::new(low, lambda).unwrap(), t, other)?;
        laws(&PowerSmoothed::new(low, 0.0).unwrap(), t, other)?;
        laws(&Entropy, t.abs() + 1e-9, other.abs() + 1e-9)?;
    }
}
