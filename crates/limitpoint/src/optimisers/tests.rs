//! The laws every optimiser obeys, over all examples of the specification.

use super::*;
use crate::data::{Dataset, Targets};
use crate::engine::Compute;
use crate::linalg::{Matrix, sign};
use crate::losses::LossSpec;
use crate::models::ModelSpec;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::objective::{Objective, Reduction};
use crate::params::ParamLayout;
use crate::potentials::PotentialSpec;

fn layout() -> ParamLayout {
    ParamLayout::new([("layer1.weight", 4, 3), ("layer2.weight", 1, 4), ("extra", 2, 2)])
        .unwrap()
        .freeze(&["extra"])
        .unwrap()
}

fn context(step: u64) -> StepContext {
    StepContext { step, epoch: step, log_loss: -1.0, all_correct: false }
}

fn start(length: usize) -> Vec<f64> {
    let mut params = vec![0.0; length];
    Streams::new(1).stream("init").fill_normal(&mut params);
    params
}

/// A reproducible sequence of gradients, zero on the frozen block.
fn gradient(step: u64, log_scale: f64) -> LogScaled {
    let mut direction = vec![0.0; 20];
    Streams::new(step).stream("gradient").fill_normal(&mut direction[..16]);
    // below 1, as the edges of weak learners are
    direction.iter_mut().for_each(|g| *g *= 0.2);
    LogScaled { log_scale, direction }
}

#[test]
fn every_kind_has_an_example_and_a_catalogue_entry() {
    let keys: Vec<&str> = OptimiserSpec::examples().iter().map(OptimiserSpec::key).collect();
    for entry in OptimiserSpec::catalogue() {
        assert!(keys.contains(&entry.key), "no example of {}", entry.key);
    }
    assert!(keys.iter().all(|key| OptimiserSpec::catalogue().iter().any(|entry| entry.key == *key)));
}

#[test]
fn a_saved_state_continues_bit_for_bit() {
    let layout = layout();
    for spec in OptimiserSpec::examples() {
        let run = |optimiser: &mut dyn Optimiser, params: &mut Vec<f64>, steps: std::ops::Range<u64>| {
            for step in steps {
                optimiser.prepare(&context(step));
                optimiser.step(params, &gradient(step, -(step as f64)), &context(step), -3.0 + step as f64).unwrap();
            }
        };
        let (mut whole, mut params) = (spec.build(&layout).unwrap(), start(20));
        run(&mut *whole, &mut params, 0..12);
        let (mut first, mut half) = (spec.build(&layout).unwrap(), start(20));
        run(&mut *first, &mut half, 0..6);
        // through text, as a checkpoint would
        let text = toml::to_string(&first.state()).unwrap();
        let mut second = spec.build(&layout).unwrap();
        second.restore(&toml::from_str(&text).unwrap()).unwrap();
        run(&mut *second, &mut half, 6..12);
        assert_eq!(params, half, "{spec:?}");
        assert_eq!(whole.state(), second.state(), "{spec:?}");
    }
}

#[test]
fn a_step_that_treats_every_entry_for_itself_is_that_step() {
    let (layout, mut kinds) = (layout(), std::collections::HashSet::new());
    for spec in OptimiserSpec::examples() {
        let mut optimiser = spec.build(&layout).unwrap();
        for step in 0..3 {
            let (gradient, log_step) = (gradient(step, -7.0), 5.0 + step as f64);
            let update = optimiser.update(gradient.log_scale, log_step);
            if !update.is_formula() {
                continue;
            }
            let (mut by_step, mut by_move) = (start(20), start(20));
            optimiser.step(&mut by_step, &gradient, &context(step), log_step).unwrap();
            if let Update::Metric(factor) = update {
                // an engine's own arithmetic: the host multiplies in another order
                optimiser.wishes().metric.unwrap().step(&mut by_move, factor, &gradient.direction);
                let same = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14 * a.abs().max(1.0);
                assert!(by_step.iter().zip(&by_move).all(same), "{spec:?}: {by_step:?} {by_move:?}");
            } else {
                update.make(&mut by_move, &gradient.direction);
                assert_eq!(by_step, by_move, "{spec:?}");
            }
            assert_ne!(by_step, start(20), "{spec:?}");
            kinds.insert(std::mem::discriminant(&update));
        }
    }
    assert_eq!(kinds.len(), 3, "gradient descent, normalised sign descent and natural gradient are such steps");
}

#[test]
fn frozen_blocks_do_not_move_and_states_of_others_are_refused() {
    let layout = layout();
    for spec in OptimiserSpec::examples() {
        let (mut optimiser, mut params) = (spec.build(&layout).unwrap(), start(20));
        let before = params.clone();
        for step in 0..9 {
            optimiser.step(&mut params, &gradient(step, 0.0), &context(step), -2.0).unwrap();
        }
        assert_eq!(params[16..], before[16..], "{spec:?}");
        assert_ne!(params[..16], before[..16], "{spec:?}");
        assert!(optimiser.restore(&OptimiserState::new("another")).is_err(), "{spec:?}");
    }
}

#[test]
fn the_direction_of_a_run_does_not_depend_on_the_scale_of_the_loss() {
    // all losses multiplied by e^−5000 and all step sizes by e^5000 where the step is proportional to the gradient
    let layout = layout();
    for spec in OptimiserSpec::examples() {
        let normalised = matches!(
            spec,
            OptimiserSpec::Adam { epsilon: 0.0, .. }
                | OptimiserSpec::AdamW { .. }
                | OptimiserSpec::AdaGrad { .. }
                | OptimiserSpec::Signum { .. }
                | OptimiserSpec::Lion { .. }
                | OptimiserSpec::Shampoo { accumulate: false, .. }
                | OptimiserSpec::Muon { .. }
                | OptimiserSpec::AdaBoost
                | OptimiserSpec::Steepest { scaling: Scaling::Unit, .. }
                | OptimiserSpec::MonotoneCoordinate { scaling: Scaling::Unit }
        ) || matches!(&spec, OptimiserSpec::Blocks(parts) if parts.values().all(|part| part.own_norm() == Some(NormSpec::Linf)));
        // weight decay knows the size of steps
        let decays = matches!(spec, OptimiserSpec::Adjusted { decay, .. } if decay > 0.0);
        let depends_on_epsilon = matches!(
            spec,
            OptimiserSpec::Adam { epsilon: 1e-8, .. }
                | OptimiserSpec::RmsProp { .. }
                | OptimiserSpec::Shampoo { accumulate: true, .. }
                | OptimiserSpec::Switch { .. }
        );
        if depends_on_epsilon || decays {
            continue;
        }
        let run = |shift: f64| {
            let (mut optimiser, mut params) = (spec.build(&layout).unwrap(), start(20));
            for step in 0..10 {
                let log_step = -3.0 + if normalised { 0.0 } else { shift };
                optimiser.step(&mut params, &gradient(step, -shift), &context(step), log_step).unwrap();
            }
            params
        };
        for (plain, tiny) in run(0.0).iter().zip(run(5000.0)) {
            assert!((plain - tiny).abs() < 1e-9 * (1.0 + plain.abs()), "{spec:?}");
        }
    }
}

#[test]
fn every_optimiser_lowers_a_simple_loss() {
    let x = Matrix::from_rows(&[&[1.0, 0.2, 0.1], &[0.3, 1.0, -0.4], &[0.8, 0.9, 0.3]]);
    let data = Dataset::new("three points", x, Targets::Binary(vec![1.0; 3]), vec![3]).unwrap();
    for spec in OptimiserSpec::examples() {
        let mut objective =
            Objective::new(&data, &ModelSpec::Linear, &LossSpec::Logistic, Reduction::Sum, Compute::default()).unwrap();
        let mut optimiser = spec.build(objective.layout()).unwrap();
        let mut params = vec![0.1, -0.2, 0.1];
        let mut gradient = LogScaled::zeros(3);
        let before = objective.forward(&params).log_loss();
        for step in 0..200 {
            optimiser.subgradient(objective.forward(&params), &params, &mut gradient);
            optimiser.step(&mut params, &gradient, &context(step), 0.05f64.ln()).unwrap();
        }
        let after = objective.forward(&params).log_loss();
        assert!(after < before - 0.1, "{spec:?}: {before} -> {after}");
    }
}

#[test]
fn adam_without_memory_is_sign_descent_bit_for_bit() {
    let layout = layout();
    let adam = OptimiserSpec::Adam { beta1: 0.0, beta2: 0.0, epsilon: 0.0 };
    let sign_descent = OptimiserSpec::Steepest { norm: NormSpec::Linf, scaling: Scaling::Unit, minimum_norm: false };
    let (mut a, mut b) = (adam.build(&layout).unwrap(), sign_descent.build(&layout).unwrap());
    let (mut theta, mut phi) = (start(20), start(20));
    for step in 0..50 {
        let mut g = gradient(step, -40.0 * step as f64);
        g.direction[3] = 0.0; // 0/0 is 0
        a.step(&mut theta, &g, &context(step), -4.0).unwrap();
        b.step(&mut phi, &g, &context(step), -4.0).unwrap();
    }
    assert_eq!(theta, phi);
}

#[test]
fn adam_agrees_with_the_textbook_recursion() {
    let layout = ParamLayout::vector(3);
    let (beta1, beta2, epsilon, rate) = (0.9, 0.99, 1e-3, 0.05);
    let mut optimiser = OptimiserSpec::Adam { beta1, beta2, epsilon }.build(&layout).unwrap();
    let (mut theta, mut expected) = (vec![1.0, -2.0, 0.5], vec![1.0, -2.0, 0.5]);
    let (mut m, mut v) = ([0.0; 3], [0.0; 3]);
    for t in 1..=60 {
        let mut stream = Streams::new(t).stream("g");
        let g: Vec<f64> = (0..3).map(|_| stream.normal()).collect();
        let log_scale = -0.05 * t as f64;
        for i in 0..3 {
            let g = log_scale.exp() * g[i];
            m[i] = beta1 * m[i] + (1.0 - beta1) * g;
            v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
            let (m, v) = (m[i] / (1.0 - beta1.powi(t as i32)), v[i] / (1.0 - beta2.powi(t as i32)));
            expected[i] -= rate * m / (v.sqrt() + epsilon);
        }
        optimiser.step(&mut theta, &LogScaled { log_scale, direction: g }, &context(t), f64::ln(rate)).unwrap();
        assert!(theta.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-13));
    }
}

#[test]
fn shampoo_without_accumulation_and_muon_step_along_the_polar_factor() {
    let layout = ParamLayout::new([("w", 5, 3)]).unwrap();
    let specs = [OptimiserSpec::Shampoo { accumulate: false, epsilon: 0.0, power: 0.25 }, "muon".parse().unwrap()];
    for spec in specs {
        for rank in [1, 3] {
            let mut g = vec![0.0; 15];
            Streams::new(rank).stream("g").fill_normal(&mut g);
            if rank == 1 {
                (0..15).for_each(|i| g[i] = (1.0 + (i / 3) as f64) * (2.0 - (i % 3) as f64));
            }
            let mut svd = crate::linalg::Svd::new(5, 3);
            svd.factor(&g).unwrap();
            let mut polar = vec![0.0; 15];
            svd.polar_factor(&mut polar);
            let (mut optimiser, mut params) = (spec.build(&layout).unwrap(), vec![0.0; 15]);
            optimiser.step(&mut params, &LogScaled { log_scale: -900.0, direction: g }, &context(0), 0.0).unwrap();
            assert!(params.iter().zip(&polar).all(|(p, u)| (p + u).abs() < 1e-8), "{spec:?} rank {rank}");
            let mut spectral = NormSpec::Spectral.build(&layout).unwrap();
            assert!((spectral.value(&params) - 1.0).abs() < 1e-8);
        }
    }
}

#[test]
fn accumulating_shampoo_agrees_with_the_pseudo_inverse_powers() {
    // two steps on a 2×2 block, against L^−a G R^−a from eigendecompositions of plain sums
    let layout = ParamLayout::new([("w", 2, 2)]).unwrap();
    for power in [0.25, 0.5] {
        let mut optimiser = OptimiserSpec::Shampoo { accumulate: true, epsilon: 0.0, power }.build(&layout).unwrap();
        let (mut params, mut expected) = (vec![0.0; 4], vec![0.0; 4]);
        let (mut l, mut r) = (vec![0.0; 4], vec![0.0; 4]);
        for (step, g) in [[1.0, 2.0, 0.5, -1.0], [0.3, -0.2, 0.9, 0.4]].iter().enumerate() {
            let mut product = vec![0.0; 4];
            crate::linalg::matmul_nt(&mut product, g, g, 2, 2, 2);
            crate::linalg::add_scaled(&mut l, 1.0, &product);
            crate::linalg::matmul_tn(&mut product, g, g, 2, 2, 2);
            crate::linalg::add_scaled(&mut r, 1.0, &product);
            let root = |m: &[f64]| crate::linalg::symmetric_function(m, 2, |x| x.powf(-power)).unwrap();
            let mut half = vec![0.0; 4];
            crate::linalg::matmul(&mut half, &root(&l), g, 2, 2, 2);
            crate::linalg::matmul(&mut product, &half, &root(&r), 2, 2, 2);
            crate::linalg::add_scaled(&mut expected, -0.1, &product);
            let g = LogScaled { log_scale: 0.0, direction: g.to_vec() };
            optimiser.step(&mut params, &g, &context(step as u64), 0.1f64.ln()).unwrap();
        }
        assert!(params.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12), "{power}: {params:?} {expected:?}");
    }
    let without_memory = OptimiserSpec::Shampoo { accumulate: false, epsilon: 0.0, power: 0.5 };
    assert!(without_memory.build(&layout).err().unwrap().to_string().contains("power"));
}

#[test]
fn newton_schulz_reports_an_honest_polar_error() {
    let layout = ParamLayout::new([("w", 8, 5)]).unwrap();
    let error_after = |method| {
        let mut muon = Muon::new(0.0, false, method, OtherBlocks::Polar, &layout).unwrap();
        let mut g = vec![0.0; 40];
        Streams::new(3).stream("g").fill_normal(&mut g);
        let mut params = vec![0.0; 40];
        muon.step(&mut params, &LogScaled { log_scale: 0.0, direction: g }, &context(0), 0.0).unwrap();
        muon.polar_error().unwrap()
    };
    assert!(error_after(PolarMethod::Exact) < 1e-12);
    let error = error_after(PolarMethod::NewtonSchulz { iterations: 5 });
    assert!((0.01..0.4).contains(&error), "{error}");
    assert!(error_after(PolarMethod::NewtonSchulz { iterations: 1 }) > error);
}

#[test]
fn momentum_in_primal_and_dual_space_agree_for_the_euclidean_potential() {
    let layout = ParamLayout::vector(3);
    let run = |spec: OptimiserSpec| {
        let (mut optimiser, mut params) = (spec.build(&layout).unwrap(), vec![1.0, -1.0, 0.5]);
        let mut ahead = vec![0.0; 3];
        for step in 0..40 {
            // gradient of ½ Σ i θᵢ² at the point the optimiser asks for
            let at = if optimiser.look_ahead(&params, &mut ahead) { ahead.clone() } else { params.clone() };
            let direction = at.iter().enumerate().map(|(i, x)| (1.0 + i as f64) * x).collect();
            let g = LogScaled { log_scale: 0.0, direction };
            optimiser.step(&mut params, &g, &context(step), 0.05f64.ln()).unwrap();
        }
        params
    };
    let mirror = |space| OptimiserSpec::Mirror { potential: PotentialSpec::Euclidean, space, beta: 0.8, gamma: 0.8 };
    let nesterov = run(OptimiserSpec::Nesterov { momentum: 0.8 });
    for space in [MomentumSpace::Dual, MomentumSpace::Primal] {
        assert!(run(mirror(space)).iter().zip(&nesterov).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}

#[test]
fn leaving_the_domain_of_a_potential_is_reported_not_clamped() {
    let layout = ParamLayout::vector(2);
    let spec = OptimiserSpec::NaturalGradient { potential: PotentialSpec::Entropy };
    let (mut optimiser, mut params) = (spec.build(&layout).unwrap(), vec![1.0, 1.0]);
    let g = LogScaled { log_scale: 0.0, direction: vec![3.0, 0.0] };
    let error = optimiser.step(&mut params, &g, &context(0), 0.0).unwrap_err();
    assert!(matches!(error, OptimiserError::Potential(_)), "{error}");
    let mut mirror = OptimiserSpec::mirror(PotentialSpec::Entropy).build(&layout).unwrap();
    assert!(mirror.step(&mut [1.0, -1.0], &g, &context(0), 0.0).is_err());
}

#[test]
fn a_switch_happens_at_its_event_and_rescales_the_rate() {
    let layout = ParamLayout::vector(2);
    let spec = OptimiserSpec::Switch {
        first: Box::new(OptimiserSpec::steepest(NormSpec::L2)),
        second: Box::new(OptimiserSpec::Steepest { norm: NormSpec::Linf, scaling: Scaling::Unit, minimum_norm: false }),
        when: Event::PerfectAccuracy,
        rate_factor: 0.5,
    };
    let (mut optimiser, mut params) = (spec.build(&layout).unwrap(), vec![0.0, 0.0]);
    let g = LogScaled { log_scale: 0.0, direction: vec![3.0, -1.0] };
    optimiser.prepare(&context(0));
    optimiser.step(&mut params, &g, &context(0), 0.0).unwrap();
    assert_eq!(params, [-3.0, 1.0]);
    let correct = StepContext { all_correct: true, ..context(1) };
    optimiser.prepare(&correct);
    optimiser.step(&mut params, &g, &correct, 0.0).unwrap();
    assert_eq!(params, [-3.5, 1.5]);
    optimiser.prepare(&context(2));
    optimiser.step(&mut params, &g, &context(2), 0.0).unwrap();
    assert_eq!(params.iter().map(|p| sign(*p)).collect::<Vec<_>>(), [-1.0, 1.0]);
    assert_eq!(params, [-4.0, 2.0]); // once switched, it stays switched
}

#[test]
fn settings_out_of_range_are_named() {
    let layout = ParamLayout::vector(2);
    let message = |spec: OptimiserSpec| spec.build(&layout).err().unwrap().to_string();
    let adam = |beta1, epsilon| OptimiserSpec::Adam { beta1, beta2: 0.9, epsilon };
    assert_eq!(message(adam(1.0, 0.0)), "adam: beta1 is 1, but must be in [0, 1)");
    assert!(message(adam(0.9, -1e-8)).contains("epsilon is -0.00000001"));
    assert!(message(OptimiserSpec::HeavyBall { momentum: f64::NAN }).contains("NaN"));
    let muon = OptimiserSpec::Muon {
        momentum: 0.0,
        nesterov: false,
        polar: PolarMethod::NewtonSchulz { iterations: 0 },
        others: OtherBlocks::Polar,
    };
    assert!(message(muon).contains("iterations is 0"));
    assert!("sgin".parse::<OptimiserSpec>().unwrap_err().to_string().contains("coordinate"));
}

#[test]
fn a_redone_step_keeps_the_direction_that_resolves_the_kinks() {
    // the first example sits on the kink and must not rise, the second pulls: only both weights together do it
    let inputs = Matrix::from_rows(&[&[1.0, 0.5], &[1.0, -0.3]]);
    let data = Dataset::new("kink", inputs, Targets::Binary(vec![-1.0, 1.0]), vec![2]).unwrap();
    let (model, loss) = (ModelSpec::relu(&[1]), LossSpec::Exponential);
    let mut objective = Objective::new(&data, &model, &loss, Reduction::Sum, Compute::default()).unwrap();
    let spec = OptimiserSpec::Steepest { norm: NormSpec::L1, scaling: Scaling::DualNorm, minimum_norm: true };
    let mut optimiser = spec.build(objective.layout()).unwrap();
    optimiser.restore(&OptimiserState::new("steepest").with_number("reach", 0.1)).unwrap();
    let start = [0.3, -0.6, 1.0];
    let mut gradient = LogScaled::zeros(3);
    objective.forward(&start);
    optimiser.subgradient(objective.forward(&start), &start, &mut gradient);
    let state = optimiser.state();
    let mut moved = |log_step: f64| {
        let mut params = start;
        optimiser.restore(&state).unwrap();
        optimiser.step(&mut params, &gradient, &context(0), log_step).unwrap();
        [0, 1, 2].map(|i| params[i] - start[i])
    };
    let (tried, redone) = (moved(0.0), moved(0.25f64.ln()));
    assert!(tried[0].abs() > 0.01 && tried[1].abs() > 0.01, "{tried:?}");
    for (tried, redone) in tried.iter().zip(redone) {
        assert!((0.25 * tried - redone).abs() < 1e-15, "{tried} {redone}");
    }
}
