//! The laws of norms (N.1 to N.5 of the claims, A.lemA4), each on every example and several layouts.

use super::*;
use crate::linalg::{dot, norm2};
use crate::numeric::{RandomStream, Streams};
use crate::params::{Block, ParamLayout, ParamsError};
use proptest::prelude::*;

/// Relative tolerance: looser where singular values are involved or multipliers are searched for.
fn tolerance(spec: &NormSpec) -> f64 {
    let text = spec.to_string();
    if ["spectral", "nuclear"].iter().any(|name| text.contains(name)) { 1e-10 } else { 1e-12 }
}

fn layouts() -> Vec<ParamLayout> {
    let blocks = [("w", 4, 3), ("row", 1, 4), ("column", 5, 1)];
    vec![
        ParamLayout::vector(7),
        ParamLayout::new([("w", 3, 5)]).unwrap(),
        ParamLayout::new(blocks).unwrap(),
        ParamLayout::new(blocks).unwrap().freeze(&["row"]).unwrap(),
        ParamLayout::new(blocks).unwrap().freeze(&["w", "column"]).unwrap(),
    ]
}

/// Runs a law on every example of every layout; the stream makes the vectors.
fn for_every_norm(law: impl Fn(&mut dyn Norm, &mut Sampler, f64)) {
    for layout in layouts() {
        for spec in NormSpec::examples(&layout) {
            let mut norm = spec.build(&layout).unwrap();
            let name = format!("{spec} on {:?}", layout.trainable().map(|b| (b.rows, b.cols)).collect::<Vec<_>>());
            let mut sampler = Sampler { layout: layout.clone(), stream: Streams::new(11).stream(&name), name };
            law(&mut *norm, &mut sampler, tolerance(&spec));
        }
    }
}

struct Sampler {
    layout: ParamLayout,
    stream: RandomStream,
    name: String,
}

impl Sampler {
    /// A random vector, zero on the frozen entries.
    fn normal(&mut self) -> Vec<f64> {
        let mut v = vec![0.0; self.layout.len()];
        for range in self.layout.trainable_ranges() {
            self.stream.fill_normal(&mut v[range]);
        }
        v
    }

    /// A vector with many equal, tied and zero entries.
    fn tied(&mut self) -> Vec<f64> {
        let mut v = self.normal();
        v.iter_mut().for_each(|x| *x = x.round().clamp(-1.0, 1.0));
        v
    }

    /// A point where the norm tends to have corners: all layers equally large, rows and entries tied.
    fn corner(&mut self, norm: &mut dyn Norm) -> Vec<f64> {
        let (v, mut out) = (self.tied(), vec![0.0; self.layout.len()]);
        norm.unit_minimiser(&v, &mut out);
        out
    }

    fn points(&mut self, norm: &mut dyn Norm) -> Vec<Vec<f64>> {
        let one = {
            let mut v = vec![0.0; self.layout.len()];
            let first = self.layout.trainable_ranges()[0].start;
            v[first] = -2.0;
            v
        };
        vec![self.normal(), self.normal(), self.tied(), self.tied(), self.corner(norm), self.corner(norm), one]
    }
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(x, y)| x - y).collect()
}

fn scaled(factor: f64, v: &[f64]) -> Vec<f64> {
    v.iter().map(|x| factor * x).collect()
}

#[test]
fn norms_are_homogeneous_and_satisfy_the_triangle_inequality() {
    for_every_norm(|norm, sampler, tol| {
        for _ in 0..20 {
            let (u, v) = (sampler.normal(), sampler.tied());
            let sum: Vec<f64> = u.iter().zip(&v).map(|(x, y)| x + y).collect();
            let (a, b) = (norm.value(&u), norm.dual(&u));
            assert!((norm.value(&scaled(-3.0, &u)) - 3.0 * a).abs() <= tol * a, "{}", sampler.name);
            assert!((norm.dual(&scaled(-3.0, &u)) - 3.0 * b).abs() <= tol * b, "{}", sampler.name);
            assert!(norm.value(&sum) <= (a + norm.value(&v)) * (1.0 + tol), "{}", sampler.name);
            assert!(norm.dual(&sum) <= (b + norm.dual(&v)) * (1.0 + tol), "{}", sampler.name);
            assert!(a > 0.0 && b > 0.0);
        }
        let zero = vec![0.0; sampler.layout.len()];
        assert_eq!((norm.value(&zero), norm.dual(&zero)), (0.0, 0.0));
    });
}

#[test]
fn hoelder_holds_on_random_pairs() {
    for_every_norm(|norm, sampler, tol| {
        for _ in 0..1000 {
            let (g, v) = (sampler.normal(), sampler.normal());
            assert!(dot(&g, &v) <= norm.dual(&g) * norm.value(&v) * (1.0 + tol), "{}", sampler.name);
        }
    });
}

#[test]
fn the_unit_minimiser_attains_the_dual_norm() {
    for_every_norm(|norm, sampler, tol| {
        let mut d = vec![f64::NAN; sampler.layout.len()];
        for g in sampler.points(norm) {
            let dual = norm.dual(&g);
            let returned = norm.unit_minimiser(&g, &mut d);
            if dual == 0.0 {
                assert!(d.iter().all(|x| *x == 0.0) && returned == 0.0);
                continue;
            }
            assert!((returned - dual).abs() <= tol * dual, "{}", sampler.name);
            assert!((norm.value(&d) - 1.0).abs() <= tol, "{}: {}", sampler.name, norm.value(&d));
            assert!((dot(&g, &d) + dual).abs() <= tol * dual, "{}", sampler.name);
            // N.5: −d is a subgradient of the dual norm at g
            for _ in 0..10 {
                let h = sampler.normal();
                assert!(-dot(&d, &h) <= norm.dual(&h) * (1.0 + tol), "{}", sampler.name);
            }
            // N.1 and N.2
            assert_eq!(norm.steepest_direction(&g, &mut d), returned);
            assert!((norm.value(&d) - dual).abs() <= tol * dual);
            assert!((dot(&g, &d) + dual * dual).abs() <= tol * dual * dual);
        }
        assert_eq!(norm.unit_minimiser(&vec![0.0; d.len()], &mut d), 0.0);
        assert!(d.iter().all(|x| *x == 0.0), "{}", sampler.name);
    });
}

#[test]
fn subgradients_attain_the_norm_and_bound_it_everywhere() {
    for_every_norm(|norm, sampler, tol| {
        let mut v = vec![0.0; sampler.layout.len()];
        for at in sampler.points(norm) {
            let size = norm.value(&at);
            if size == 0.0 {
                continue;
            }
            for target in [sampler.normal(), scaled(0.1, &sampler.normal()), scaled(10.0, &sampler.tied())] {
                norm.project_subdifferential(&at, &target, 0.0, &mut v);
                assert!((norm.dual(&v) - 1.0).abs() <= tol, "{}: dual {}", sampler.name, norm.dual(&v));
                assert!((dot(&v, &at) - size).abs() <= tol * size, "{}", sampler.name);
                for _ in 0..20 {
                    let d = sampler.normal();
                    let there: Vec<f64> = at.iter().zip(&d).map(|(x, y)| x + y).collect();
                    assert!(norm.value(&there) >= size + dot(&v, &d) - tol * (size + norm2(&d)), "{}", sampler.name);
                }
            }
        }
    });
}

#[test]
fn the_projection_onto_the_subdifferential_is_the_closest_member() {
    for_every_norm(|norm, sampler, tol| {
        let (mut nearest, mut member, mut again) = (sampler.normal(), sampler.normal(), sampler.normal());
        let mut points = sampler.points(norm);
        points.push(vec![0.0; nearest.len()]);
        for at in points {
            for scale in [0.3, 3.0] {
                let target = scaled(scale, &sampler.normal());
                norm.project_subdifferential(&at, &target, 0.0, &mut nearest);
                for reach in [2.0, 0.1, 1e-2, 1e-3, 1e-4] {
                    // members far away and, to notice small errors, next to the answer
                    let noise = scaled(reach, &sampler.normal());
                    let elsewhere: Vec<f64> = nearest.iter().zip(&noise).map(|(x, y)| x + y).collect();
                    norm.project_subdifferential(&at, &elsewhere, 0.0, &mut member);
                    let slack = dot(&minus(&target, &nearest), &minus(&member, &nearest));
                    assert!(slack <= 10.0 * tol * scale.max(1.0), "{}: {slack:e} at {at:?}", sampler.name);
                }
                norm.project_subdifferential(&at, &nearest, 0.0, &mut again);
                assert!(norm2(&minus(&nearest, &again)) <= 10.0 * tol, "{}: not a projection", sampler.name);
            }
        }
    });
}

#[test]
fn balls_are_projected_onto() {
    for_every_norm(|norm, sampler, tol| {
        for scale in [0.05, 1.0, 20.0] {
            for dual in [false, true] {
                let mut project = |v: &[f64], radius: f64| {
                    let mut v = v.to_vec();
                    if dual {
                        norm.project_dual_ball(radius, &mut v)
                    } else {
                        norm.project_ball(radius, &mut v)
                    }
                    let size = if dual { norm.dual(&v) } else { norm.value(&v) };
                    (v, size)
                };
                let radius = 1.5;
                let target = scaled(scale, &sampler.normal());
                let (nearest, size) = project(&target, radius);
                assert!(size <= radius * (1.0 + tol), "{}: {size}", sampler.name);
                let (_, start) = project(&target, f64::INFINITY);
                if start <= radius {
                    assert_eq!(nearest, target);
                } else {
                    assert!(size >= radius * (1.0 - 10.0 * tol), "{}: {size}", sampler.name);
                }
                let (again, _) = project(&nearest, radius);
                assert!(norm2(&minus(&nearest, &again)) <= 10.0 * tol, "{}: not idempotent", sampler.name);
                for reach in [scale, 0.1, 1e-2, 1e-3, 1e-4] {
                    let noise = scaled(reach, &sampler.normal());
                    let elsewhere: Vec<f64> = nearest.iter().zip(&noise).map(|(x, y)| x + y).collect();
                    let (member, _) = project(&elsewhere, radius);
                    let slack = dot(&minus(&target, &nearest), &minus(&member, &nearest));
                    assert!(slack <= 10.0 * tol * scale.max(1.0), "{} (dual: {dual}): {slack:e}", sampler.name);
                }
                let (origin, _) = project(&target, 0.0);
                assert!(origin.iter().all(|x| *x == 0.0), "{}", sampler.name);
                let (empty, _) = project(&target, -1.0);
                assert!(sampler.layout.trainable().all(|b| empty[b.range()].iter().all(|x| x.is_nan())));
                // the residual is normal to the ball: no member of it reaches further along the residual
                let residual = minus(&target, &nearest);
                let reach = radius * if dual { norm.value(&residual) } else { norm.dual(&residual) };
                let reached = dot(&residual, &nearest);
                assert!((reach - reached).abs() <= 10.0 * tol * scale.max(1.0), "{} (dual: {dual})", sampler.name);
            }
        }
    });
}

#[test]
fn any_scale_gives_the_same_geometry() {
    for_every_norm(|norm, sampler, tol| {
        let (v, target) = (sampler.normal(), sampler.normal());
        let [mut d, mut d_scaled, mut s, mut s_scaled, ball] = std::array::from_fn(|_| v.clone());
        let (size, dual) = (norm.value(&v), norm.unit_minimiser(&v, &mut d));
        norm.project_subdifferential(&v, &target, 0.0, &mut s);
        let mut ball_of_one = ball;
        norm.project_ball(0.5 * size, &mut ball_of_one);
        for scale in [1e-300, 1e-160, 1e160, 1e300] {
            let large = scaled(scale, &v);
            assert!((norm.value(&large) / scale / size - 1.0).abs() <= tol, "{} at {scale:e}", sampler.name);
            assert!((norm.dual(&large) / scale / dual - 1.0).abs() <= tol, "{} at {scale:e}", sampler.name);
            let found = norm.unit_minimiser(&large, &mut d_scaled);
            assert!((found / scale / dual - 1.0).abs() <= tol, "{} at {scale:e}", sampler.name);
            assert!(norm2(&minus(&d, &d_scaled)) <= tol, "{} at {scale:e}", sampler.name);
            norm.project_subdifferential(&large, &target, 0.0, &mut s_scaled);
            assert!(norm2(&minus(&s, &s_scaled)) <= 10.0 * tol, "{} at {scale:e}", sampler.name);
            let mut ball = large.clone();
            norm.project_ball(0.5 * size * scale, &mut ball);
            let back: Vec<f64> = ball.iter().map(|x| x / scale).collect();
            assert!(norm2(&minus(&ball_of_one, &back)) <= 100.0 * tol, "{} at {scale:e}", sampler.name);
        }
    });
}

#[test]
fn a_nan_is_never_lost_and_never_panics() {
    for_every_norm(|norm, sampler, _| {
        let clean = sampler.normal();
        let mut broken = clean.clone();
        let place = sampler.layout.trainable_ranges().last().unwrap().end - 1;
        broken[place] = f64::NAN;
        let has_nan = |v: &[f64]| v.iter().any(|x| x.is_nan());
        let mut out = clean.clone();
        assert!(norm.value(&broken).is_nan() && norm.dual(&broken).is_nan(), "{}", sampler.name);
        assert!(norm.unit_minimiser(&broken, &mut out).is_nan() && has_nan(&out), "{}", sampler.name);
        norm.project_subdifferential(&broken, &clean, 0.0, &mut out);
        assert!(has_nan(&out), "{}", sampler.name);
        norm.project_subdifferential(&clean, &broken, 0.5, &mut out);
        for v in [&mut broken.clone(), &mut vec![f64::INFINITY; broken.len()]] {
            norm.project_ball(1.0, v);
            norm.project_dual_ball(1.0, v);
        }
        norm.project_ball(1.0, &mut broken);
        assert!(has_nan(&broken), "{}", sampler.name);
        let mut infinite = clean.clone();
        infinite[place] = f64::INFINITY;
        assert!(!norm.value(&infinite).is_finite() && !norm.dual(&infinite).is_finite(), "{}", sampler.name);
        norm.project_subdifferential(&infinite, &clean, 0.0, &mut out);
    });
}

#[test]
fn frozen_entries_are_left_out() {
    for_every_norm(|norm, sampler, _| {
        let layout = sampler.layout.clone();
        let v = sampler.normal();
        let [mut dirty, mut out, mut reference] = std::array::from_fn(|_| v.clone());
        let frozen: Vec<usize> = layout.blocks().iter().filter(|b| b.frozen).flat_map(Block::range).collect();
        frozen.iter().for_each(|&i| (dirty[i], out[i]) = (f64::NAN, 7.0));
        assert_eq!(norm.value(&dirty), norm.value(&v), "{}", sampler.name);
        assert_eq!(norm.dual(&dirty), norm.dual(&v), "{}", sampler.name);
        norm.unit_minimiser(&v, &mut reference);
        norm.unit_minimiser(&dirty, &mut out);
        assert_eq!(out, reference, "{}", sampler.name);
        frozen.iter().for_each(|&i| out[i] = 7.0);
        norm.project_subdifferential(&v, &v, 0.0, &mut reference);
        norm.project_subdifferential(&dirty, &dirty, 0.0, &mut out);
        assert_eq!(out, reference, "{}", sampler.name);
        frozen.iter().for_each(|&i| dirty[i] = 5.0);
        norm.project_ball(0.1, &mut dirty);
        norm.project_dual_ball(0.01, &mut dirty);
        assert!(frozen.iter().all(|&i| dirty[i] == 5.0), "{}", sampler.name);
    });
}

#[test]
fn the_tolerance_makes_the_set_at_a_near_corner_that_of_the_corner() {
    for_every_norm(|norm, sampler, tol| {
        let corner = sampler.corner(norm);
        if norm.value(&corner) == 0.0 {
            return;
        }
        let noise = scaled(1e-9, &sampler.normal());
        let near: Vec<f64> = corner.iter().zip(&noise).map(|(x, y)| x + y).collect();
        let target = sampler.normal();
        let (mut exact, mut loose) = (target.clone(), target.clone());
        norm.project_subdifferential(&corner, &target, 1e-6, &mut exact);
        norm.project_subdifferential(&near, &target, 1e-6, &mut loose);
        // the gradient of ℓ4/3 moves by (1e-9)^(1/3); a wrong active set would move it by about 1
        assert!(norm2(&minus(&exact, &loose)) <= 1e-2, "{}", sampler.name);
        assert!((norm.dual(&loose) - 1.0).abs() <= 1e-5 + tol, "{}", sampler.name);
    });
}

#[test]
fn layers_that_share_the_maximum_share_one_unit_of_mass() {
    let layout = ParamLayout::new([("a", 1, 2), ("b", 1, 1)]).unwrap();
    let mut norm = "max(a=l2,b=2*linf)".parse::<NormSpec>().unwrap().build(&layout).unwrap();
    let mut out = [0.0; 3];
    // at (3, 4 | 2.5) both layers measure 5; v = (μ·(0.6, 0.8) | (1 − μ)·2), and the distance to z = (0.6, 0.8 | 1) is
    // (μ − 1)² + (1 − 2μ)², least at μ = 3/5
    norm.project_subdifferential(&[3.0, 4.0, 2.5], &[0.6, 0.8, 1.0], 0.0, &mut out);
    for (found, expected) in out.iter().zip([0.36, 0.48, 0.8]) {
        assert!((found - expected).abs() < 1e-14, "{out:?}");
    }
    // a layer that only nearly attains the maximum takes part once the tolerance says so
    norm.project_subdifferential(&[3.0, 4.0, 2.49], &[0.6, 0.8, 1.0], 0.0, &mut out);
    assert_eq!(out[2], 0.0);
    norm.project_subdifferential(&[3.0, 4.0, 2.49], &[0.6, 0.8, 1.0], 0.01, &mut out);
    assert!((out[2] - 0.8).abs() < 1e-14);
}

#[test]
fn matrix_norms_compose_over_blocks_as_documented() {
    let layout = ParamLayout::new([("w", 2, 2), ("a", 1, 2)]).unwrap();
    let v = [3.0, 0.0, 0.0, 1.0, 3.0, 4.0];
    for (spec, value, dual) in [
        (NormSpec::Spectral, 5.0, 9.0),
        (NormSpec::Nuclear, 9.0, 5.0),
        (NormSpec::GroupL2Inf, 5.0, 9.0),
        (NormSpec::GroupL21, 9.0, 5.0),
        (NormSpec::Frobenius, 35f64.sqrt(), 35f64.sqrt()),
        (NormSpec::Linf, 4.0, 11.0),
    ] {
        let mut norm = spec.build(&layout).unwrap();
        assert!((norm.value(&v) - value).abs() < 1e-14 && (norm.dual(&v) - dual).abs() < 1e-14, "{spec}");
    }
}

#[test]
fn settings_that_give_no_norm_are_refused() {
    let layout = ParamLayout::new([("w", 2, 2), ("a", 1, 2)]).unwrap();
    let error = |spec: NormSpec| spec.build(&layout).err().unwrap();
    let max = |blocks: Vec<BlockNorm>| NormSpec::Max { blocks };
    for p in [0.5, -1.0, f64::NAN, f64::NEG_INFINITY] {
        assert!(matches!(error(NormSpec::Lp { p }), NormError::Exponent { .. }));
    }
    assert!(matches!(
        error(NormSpec::Quadratic { diagonal: vec![1.0; 5] }),
        NormError::QuadraticSize { found: 5, expected: 6, .. }
    ));
    let rest = BlockNorm::new("*", NormSpec::L2);
    let named = |name: &str| BlockNorm::new(name, NormSpec::L2);
    assert!(matches!(error(max(vec![named("b"), rest.clone()])), NormError::Blocks(ParamsError::UnknownBlock { .. })));
    assert!(matches!(error(max(vec![named("a"), named("a")])), NormError::Blocks(ParamsError::ListedTwice(_))));
    assert_eq!(error(max(vec![named("a")])), NormError::Blocks(ParamsError::NotListed("w".into())));
    assert!(matches!(error(max(vec![])), NormError::Blocks(ParamsError::NotListed(_))));
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(error(max(vec![rest.clone().weighted(weight)])), NormError::Weight { .. }));
    }
    let nested = BlockNorm::new("*", NormSpec::Sum { blocks: vec![rest.clone()] });
    assert_eq!(error(max(vec![nested])), NormError::Nested("*".into()));
    let frozen = layout.clone().freeze(&["w", "a"]).unwrap();
    assert_eq!(NormSpec::L2.build(&frozen).err().unwrap(), NormError::NothingTrainable);
    assert!(NormSpec::L2.build_vector(0).is_err());
    // a frozen block need not be covered, but may be named
    let half = layout.clone().freeze(&["w"]).unwrap();
    assert!(max(vec![named("a")]).build(&half).is_ok() && max(vec![named("a"), named("w")]).build(&half).is_ok());
}

#[test]
fn examples_and_catalogue_cover_every_variant() {
    let number = |spec: &NormSpec| match spec {
        NormSpec::L1 => 0,
        NormSpec::L1Averaged => 1,
        NormSpec::L2 => 2,
        NormSpec::Linf => 3,
        NormSpec::Lp { .. } => 4,
        NormSpec::Quadratic { .. } => 5,
        NormSpec::QuadraticDense { .. } => 6,
        NormSpec::Frobenius => 7,
        NormSpec::Spectral => 8,
        NormSpec::Nuclear => 9,
        NormSpec::GroupL21 => 10,
        NormSpec::GroupL2Inf => 11,
        NormSpec::Max { .. } => 12,
        NormSpec::Sum { .. } => 13,
        NormSpec::Root { .. } => 14,
    };
    let mut seen: Vec<usize> = NormSpec::examples(&ParamLayout::vector(3)).iter().map(number).collect();
    seen.dedup();
    assert_eq!(seen, (0..15).collect::<Vec<_>>());
    assert_eq!(NormSpec::catalogue().len(), 15);
}

#[test]
fn specs_survive_files() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct File {
        norm: NormSpec,
    }
    for norm in NormSpec::examples(&ParamLayout::vector(3)) {
        let text = toml::to_string(&File { norm: norm.clone() }).unwrap();
        assert_eq!(toml::from_str::<File>(&text).unwrap().norm, norm, "{text}");
    }
    let read = |text: &str| toml::from_str::<File>(text).map(|file| file.norm);
    assert_eq!(read("norm = \"l1-averaged\"").unwrap(), NormSpec::L1Averaged);
    assert_eq!(read("norm = \"group21\"").unwrap(), NormSpec::GroupL21);
    assert_eq!(read("norm = { lp = { p = 3.0 } }").unwrap(), NormSpec::Lp { p: 3.0 });
    let max = read("norm = { max = { blocks = [{ block = \"*\", norm = \"spectral\" }] } }").unwrap();
    assert_eq!(max, NormSpec::Max { blocks: vec![BlockNorm::new("*", NormSpec::Spectral)] });
    assert!(read("norm = { lp = { p = 3.0, q = 1.5 } }").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn norms_are_ordered(v in prop::collection::vec(-10.0..10.0_f64, 12)) {
        let layout = ParamLayout::new([("w", 4, 3)]).unwrap();
        let size = |spec: NormSpec| spec.build(&layout).unwrap().value(&v);
        let up = 1.0 + 1e-12;
        let chain = [NormSpec::Linf, NormSpec::Lp { p: 4.0 }, NormSpec::L2, NormSpec::Lp { p: 1.25 }, NormSpec::L1];
        let sizes = chain.map(size);
        prop_assert!(sizes.is_sorted_by(|a, b| *a <= b * up), "{:?}", sizes);
        let sizes = [NormSpec::Spectral, NormSpec::Frobenius, NormSpec::Nuclear].map(size);
        prop_assert!(sizes.is_sorted_by(|a, b| *a <= b * up), "{:?}", sizes);
        prop_assert!(size(NormSpec::GroupL2Inf) <= size(NormSpec::Spectral) * up);
        prop_assert!(size(NormSpec::Frobenius) <= size(NormSpec::GroupL21) * up);
    }

    #[test]
    fn lp_tends_to_its_neighbours(v in prop::collection::vec(-10.0..10.0_f64, 1..9), radius in 0.1..5.0_f64) {
        for (p, limit) in [(1.0 + 1e-9, NormSpec::L1), (2.0 + 1e-9, NormSpec::L2), (1e9, NormSpec::Linf)] {
            let mut near = NormSpec::Lp { p }.build_vector(v.len()).unwrap();
            let mut limit = limit.build_vector(v.len()).unwrap();
            prop_assert!((near.value(&v) - limit.value(&v)).abs() <= 1e-7 * (1.0 + limit.value(&v)));
            prop_assert!((near.dual(&v) - limit.dual(&v)).abs() <= 1e-7 * (1.0 + limit.dual(&v)));
            let (mut a, mut b) = (v.clone(), v.clone());
            near.project_ball(radius, &mut a);
            limit.project_ball(radius, &mut b);
            prop_assert!(norm2(&minus(&a, &b)) <= 1e-6 * (1.0 + norm2(&v)), "p = {}: {:?} {:?}", p, a, b);
        }
    }
}
