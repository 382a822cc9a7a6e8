//! Optimisers made of others: groups of blocks, step factors, weight decay.

use super::*;
use crate::norms::NormSpec;
use crate::numeric::Streams;
use crate::params::{Block, ParamLayout};
use crate::potentials::PotentialSpec;

/// A frozen block between trainable ones, so that slices are gathered and scattered.
fn layout() -> ParamLayout {
    ParamLayout::of([
        Block::weight(1, 4, 3),
        Block::bias(1, 4, 3).frozen(true),
        Block::weight(2, 3, 4),
        Block::weight(3, 1, 3),
    ])
    .unwrap()
}

fn context(step: u64) -> StepContext {
    StepContext { step, epoch: step, log_loss: -1.0, all_correct: false }
}

fn start(layout: &ParamLayout) -> Vec<f64> {
    let mut params = vec![0.0; layout.len()];
    Streams::new(1).stream("init").fill_normal(&mut params);
    params
}

fn gradient(layout: &ParamLayout, step: u64) -> LogScaled {
    let (mut direction, mut stream) = (vec![0.0; layout.len()], Streams::new(step).stream("gradient"));
    for block in layout.trainable() {
        stream.fill_normal(&mut direction[block.range()]);
    }
    direction.iter_mut().for_each(|g| *g *= 0.2);
    LogScaled { log_scale: -0.5 * step as f64, direction }
}

/// Parameters after some steps, gradients taken where nobody looks.
fn run(spec: &OptimiserSpec, layout: &ParamLayout, steps: u64) -> Vec<f64> {
    let (mut optimiser, mut params) = (spec.build(layout).unwrap(), start(layout));
    for step in 0..steps {
        optimiser.prepare(&context(step));
        optimiser.step(&mut params, &gradient(layout, step), &context(step), -2.0 + 0.3 * step as f64).unwrap();
    }
    params
}

fn parse(name: &str) -> OptimiserSpec {
    name.parse().unwrap()
}

fn adjusted(of: OptimiserSpec, factor: f64, decay: f64) -> OptimiserSpec {
    OptimiserSpec::Adjusted { of: Box::new(of), factor, decay }
}

/// All examples that can be a part; a choice of subgradient needs the whole model.
fn examples() -> Vec<OptimiserSpec> {
    let mut all = OptimiserSpec::examples();
    all.retain(|spec| OptimiserSpec::blocks([("all", spec.clone())]).build(&layout()).is_ok());
    assert_eq!(all.len() + 3, OptimiserSpec::examples().len());
    all
}

#[test]
fn one_part_for_all_blocks_is_the_optimiser_itself_bit_for_bit() {
    let with_frozen = layout();
    let moving = ParamLayout::of(with_frozen.blocks().iter().map(|block| block.clone().frozen(false))).unwrap();
    for spec in examples() {
        for key in ["all", "rest", "weights+biases", "layer*"] {
            let whole = OptimiserSpec::blocks([(key, spec.clone())]);
            assert_eq!(run(&whole, &moving, 12), run(&spec, &moving, 12), "{key}: {spec:?}");
            // sums over zeros of frozen entries are rounded in another order
            let (whole, plain) = (run(&whole, &with_frozen, 12), run(&spec, &with_frozen, 12));
            assert!(whole.iter().zip(&plain).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs())), "{key}: {spec:?}");
        }
        let whole = OptimiserSpec::blocks([("all", spec.clone())]);
        assert_eq!(whole.forgets(), spec.forgets(), "{spec:?}");
        assert_eq!(whole.own_norm(), spec.own_norm(), "{spec:?}");
    }
}

#[test]
fn parts_with_one_optimiser_move_as_it_does_where_it_treats_blocks_apart() {
    let (layout, mut exact) = (layout(), 0);
    for spec in examples() {
        // a sum or a maximum over all entries, or a simplex, is another one over a part
        let coupled = match &spec {
            OptimiserSpec::Steepest { norm, scaling, .. } => {
                *norm == NormSpec::L1 || (*scaling == Scaling::DualNorm && *norm != NormSpec::L2)
            }
            OptimiserSpec::DualAcceleration { norm, .. } => *norm != NormSpec::L2,
            OptimiserSpec::AdaBoost
            | OptimiserSpec::ConstrainedMirror { .. }
            | OptimiserSpec::ProgressiveRescaling { .. }
            | OptimiserSpec::Blocks(_) => true,
            _ => false,
        };
        if coupled {
            continue;
        }
        let parts = ["layer1", "hidden", "layer3.weight"].map(|key| (key, spec.clone()));
        let (split, whole) = (run(&OptimiserSpec::blocks(parts), &layout, 12), run(&spec, &layout, 12));
        // moments are stored relative to their largest entry, which differs from part to part
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-10 * (1.0 + b.abs());
        assert!(split.iter().zip(&whole).all(close), "{spec:?}");
        exact += usize::from(split == whole);
    }
    assert!(exact >= 10, "only {exact} agree bit for bit");
}

#[test]
fn every_group_moves_by_its_own_optimiser_whatever_the_order() {
    let layout = layout();
    let (muon, adam) = (parse("muon"), OptimiserSpec::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-8 });
    let hybrid = OptimiserSpec::blocks([("rest", adam.clone()), ("hidden", muon.clone())]);
    let moved = run(&hybrid, &layout, 8);
    // alone: the other blocks frozen
    for (spec, others) in [(&muon, vec!["layer1.weight", "layer3.weight"]), (&adam, vec!["layer2.weight"])] {
        let alone = layout.clone().freeze(&others).unwrap();
        let full = run(spec, &layout, 8);
        let own: Vec<&str> = alone.trainable().map(|block| block.name.as_str()).collect();
        for name in own {
            let range = layout.block(name).unwrap().range();
            for i in range {
                assert!((moved[i] - full[i]).abs() < 1e-12, "{name}");
            }
        }
    }
    let bias = layout.block("layer1.bias").unwrap().range();
    assert_eq!(moved[bias.clone()], start(&layout)[bias]);
    let turned = OptimiserSpec::blocks([("layer2", muon), ("layer1+last", adam)]);
    assert_eq!(run(&turned, &layout, 8), moved);
}

#[test]
fn muon_with_signs_for_vectors_is_a_composition() {
    let layout = layout();
    let muon = |others| OptimiserSpec::Muon { momentum: 0.0, nesterov: false, polar: PolarMethod::Exact, others };
    let signs = OptimiserSpec::Steepest { norm: NormSpec::Linf, scaling: Scaling::Unit, minimum_norm: false };
    let composed = OptimiserSpec::blocks([("matrices", muon(OtherBlocks::Polar)), ("*", signs)]);
    assert_eq!(run(&muon(OtherBlocks::Sign), &layout, 10), run(&composed, &layout, 10));
    assert_eq!(muon(OtherBlocks::Sign).own_norm(), composed.own_norm());
    // whether or not a model has matrices
    for blocks in [vec![("w", 4, 1)], vec![("w", 2, 2), ("v", 3, 3)]] {
        let layout = ParamLayout::new(blocks).unwrap();
        assert!(composed.own_norm().unwrap().build(&layout).is_ok());
    }
}

#[test]
fn a_factor_multiplies_the_step_of_its_part() {
    let layout = layout();
    let slower =
        OptimiserSpec::blocks([("first", adjusted(parse("gradient"), 0.25, 0.0)), ("rest", parse("gradient"))]);
    let (from, plain, slowed) = (start(&layout), run(&parse("gradient"), &layout, 1), run(&slower, &layout, 1));
    for (i, ((from, plain), slowed)) in from.iter().zip(&plain).zip(&slowed).enumerate() {
        let factor = if i < 12 { 0.25 } else { 1.0 };
        assert!((slowed - from - factor * (plain - from)).abs() < 1e-15, "{i}");
    }
}

#[test]
fn a_look_ahead_is_ahead_in_the_blocks_of_its_part() {
    let layout = layout();
    let spec = OptimiserSpec::blocks([("first", parse("nesterov")), ("rest", parse("gradient"))]);
    let mut optimiser = spec.build(&layout).unwrap();
    let (mut params, mut ahead) = (start(&layout), vec![f64::NAN; layout.len()]);
    optimiser.step(&mut params, &gradient(&layout, 0), &context(0), -2.0).unwrap();
    assert!(optimiser.look_ahead(&params, &mut ahead));
    assert!((0..12).all(|i| ahead[i] != params[i]) && ahead[12..] == params[12..]);
    let mut plain = OptimiserSpec::blocks([("all", parse("gradient"))]).build(&layout).unwrap();
    assert!(!plain.look_ahead(&params, &mut ahead));
}

#[test]
fn adam_with_decay_is_adam_w_bit_for_bit() {
    let layout = layout();
    let (beta1, beta2, epsilon) = (0.9, 0.99, 1e-8);
    let with_decay = |weight_decay| OptimiserSpec::AdamW { beta1, beta2, epsilon, weight_decay };
    let adam = OptimiserSpec::Adam { beta1, beta2, epsilon };
    for decay in [0.0, 1e-3, 0.1] {
        assert_eq!(run(&adjusted(adam.clone(), 1.0, decay), &layout, 10), run(&with_decay(decay), &layout, 10));
    }
    let parts = OptimiserSpec::blocks([("first", adjusted(adam.clone(), 1.0, 0.1)), ("rest", adam)]);
    let (parts, whole) = (run(&parts, &layout, 10), run(&with_decay(0.1), &layout, 10));
    assert!(parts[..12].iter().zip(&whole).all(|(a, b)| (a - b).abs() < 1e-12));
    assert_ne!(parts[16..], whole[16..]);
}

/// θ ← (1 − cηλ)θ before every step, for every optimiser.
#[test]
fn weights_decay_before_each_step_whatever_the_optimiser() {
    let (layout, factor, decay) = (layout(), 0.5, 0.2);
    for spec in OptimiserSpec::examples() {
        let (mut inner, mut expected) = (spec.build(&layout).unwrap(), start(&layout));
        let (mut decayed, mut params) = (adjusted(spec.clone(), factor, decay).build(&layout).unwrap(), start(&layout));
        for step in 0..6 {
            let (gradient, log_step) = (gradient(&layout, step), -2.0 + 0.3 * step as f64);
            inner.prepare(&context(step));
            decayed.prepare(&context(step));
            let own_step = log_step + f64::ln(factor);
            for range in layout.trainable_ranges() {
                expected[range].iter_mut().for_each(|theta| *theta *= 1.0 - own_step.exp() * decay);
            }
            inner.displaced(&expected);
            inner.step(&mut expected, &gradient, &context(step), own_step).unwrap();
            decayed.step(&mut params, &gradient, &context(step), log_step).unwrap();
        }
        assert_eq!(params, expected, "{spec:?}");
        // and they do not follow their old dual iterates
        assert_ne!(params, run(&adjusted(spec.clone(), factor, 0.0), &layout, 6), "{spec:?}");
    }
}

#[test]
fn decay_of_mirror_descent_with_the_euclidean_potential_is_that_of_gradient_descent() {
    let layout = layout();
    let decay = |spec| run(&adjusted(spec, 1.0, 0.3), &layout, 10);
    let plain = decay(parse("gradient"));
    for space in [MomentumSpace::Dual, MomentumSpace::Primal] {
        let mirror = OptimiserSpec::Mirror { potential: PotentialSpec::Euclidean, space, beta: 0.0, gamma: 0.0 };
        assert!(decay(mirror).iter().zip(&plain).all(|(a, b)| (a - b).abs() < 1e-12));
    }
    let ball = decay(OptimiserSpec::HeavyBall { momentum: 0.7 });
    let mirror = OptimiserSpec::Mirror {
        potential: PotentialSpec::Euclidean,
        space: MomentumSpace::Dual,
        beta: 0.7,
        gamma: 0.0,
    };
    assert!(decay(mirror).iter().zip(&ball).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn a_step_that_turns_the_weights_around_is_refused_with_its_numbers() {
    let layout = layout();
    let specs = [
        adjusted(parse("gradient"), 2.0, 0.5),
        OptimiserSpec::AdamW { beta1: 0.9, beta2: 0.9, epsilon: 0.0, weight_decay: 1.0 },
        OptimiserSpec::Lion { beta1: 0.9, beta2: 0.9, weight_decay: 1.0 },
    ];
    for spec in specs {
        let (mut optimiser, mut params) = (spec.build(&layout).unwrap(), start(&layout));
        optimiser.step(&mut params, &gradient(&layout, 0), &context(0), 0.9f64.ln()).unwrap();
        let error = optimiser.step(&mut params, &gradient(&layout, 1), &context(1), 3f64.ln()).unwrap_err();
        let OptimiserError::Decay { step, decay, .. } = error else { panic!("{error}") };
        let text = error.to_string();
        assert!(step * decay > 1.0 && text.contains(&format!("η = {step:.4e}")) && text.contains("schedule"), "{text}");
    }
    let part = OptimiserSpec::blocks([("first", adjusted(parse("adam"), 1.0, 1.0)), ("rest", parse("adam"))]);
    let mut optimiser = part.build(&layout).unwrap();
    let error = optimiser.step(&mut start(&layout), &gradient(&layout, 0), &context(0), 1.0).unwrap_err().to_string();
    assert!(error.starts_with("the part 'first' of blocks: adjusted: a step of size η = 2.7183e0"), "{error}");
}

#[test]
fn formulas_stay_formulas_with_a_factor_and_not_with_decay() {
    let layout = layout();
    let plain = |spec: OptimiserSpec| spec.build(&layout).unwrap().update(-3.0, 1.0);
    let gradient = parse("gradient");
    assert_eq!(plain(adjusted(gradient.clone(), 1.0, 0.0)), plain(gradient.clone()));
    assert_eq!(plain(adjusted(gradient.clone(), 2.0, 0.0)), Update::Along(-(1.0 + 2f64.ln() - 3.0).exp()));
    assert_eq!(plain(adjusted(gradient.clone(), 1.0, 0.1)), Update::Host);
    assert_eq!(plain(OptimiserSpec::blocks([("all", parse("adam"))])), Update::Host);
}

/// Engines that take up the metric step as the host does.
#[test]
fn metrics_of_parts_make_one_metric_that_steps_as_the_host_does() {
    let layout = layout();
    let natural = |potential: &str| parse(&format!("natural-gradient(potential={potential})"));
    let parts = [
        ("a", adjusted(natural("hyperbolic(lambda=0.3)"), 2.5, 0.0)),
        ("b", natural("smoothed(p=10, lambda=0.2)")),
        ("rest", parse("gradient")),
    ];
    let names: Vec<String> = layout.blocks().iter().map(|block| block.name.clone()).collect();
    let parts = parts
        .into_iter()
        .enumerate()
        .map(|(place, (key, spec))| (if key == "rest" { key.to_owned() } else { names[place].clone() }, spec));
    let parts: Vec<(String, OptimiserSpec)> = parts.collect();
    let spec = OptimiserSpec::blocks(parts.iter().map(|(name, spec)| (name.as_str(), spec.clone())));
    let mut optimiser = spec.build(&layout).unwrap();
    let metric = optimiser.wishes().metric.unwrap();
    let Update::Metric(factor) = optimiser.update(-3.0, 1.0) else { panic!("no metric") };
    assert_eq!(factor, -(-2f64).exp());
    let mut gradient = gradient(&layout, 0);
    gradient.log_scale = -3.0;
    let (mut host, mut engine) = (start(&layout), start(&layout));
    optimiser.step(&mut host, &gradient, &context(0), 1.0).unwrap();
    metric.step(&mut engine, factor, &gradient.direction);
    for (host, engine) in host.iter().zip(&engine) {
        assert!((host - engine).abs() <= 1e-14 * host.abs().max(1.0), "{host} {engine}");
    }
    assert_ne!(host, start(&layout));
    // an optimiser of another kind in any part, or a potential without a metric that engines know, and there is none
    let mixed = OptimiserSpec::blocks([(names[0].as_str(), natural("entropy")), ("rest", parse("gradient"))]);
    assert_eq!(mixed.build(&layout).unwrap().wishes().metric, None);
}

#[test]
fn parts_that_do_not_fit_are_refused_by_name() {
    let layout = layout();
    let refuse = |parts: &[(&str, OptimiserSpec)]| {
        let error = OptimiserSpec::blocks(parts.iter().cloned()).build(&layout).map(|_| ()).unwrap_err();
        error.to_string()
    };
    let adam = || parse("adam");
    let quadratic = OptimiserSpec::steepest(NormSpec::Quadratic { diagonal: vec![1.0, 2.0] });
    let minimum = OptimiserSpec::Steepest { norm: NormSpec::L1, scaling: Scaling::DualNorm, minimum_norm: true };
    for (parts, words) in [
        (vec![("hidden", adam())], "block 'layer1.weight' is trainable but not listed"),
        (vec![("hidden", adam()), ("layer2", adam()), ("rest", adam())], "block 'layer2.weight' is listed twice"),
        (vec![("*", adam()), ("rest", adam())], "'*' is listed twice"),
        (vec![("layer7", adam()), ("rest", adam())], "'layer7'"),
        (vec![("conv*", adam()), ("rest", adam())], "'conv*' selects no parameter block"),
        (vec![], "no part is given"),
        (vec![("first", quadratic), ("rest", adam())], "the part 'first' of blocks: the quadratic norm has 2"),
        (vec![("first", parse("monotone-coordinate")), ("rest", adam())], "'monotone-coordinate' of the part 'first'"),
        (vec![("first", adjusted(minimum, 1.0, 0.0)), ("rest", adam())], "steepest(minimum_norm=true)"),
        (vec![("all", adjusted(adam(), 0.0, 0.0))], "adjusted: factor is 0, but must be positive"),
        (vec![("all", adjusted(adam(), 1.0, -1.0))], "adjusted: decay is -1, but must be 0 or more"),
    ] {
        assert!(refuse(&parts).contains(words), "{words}: {}", refuse(&parts));
    }
    // what is frozen needs no part, and a rest of nothing does no harm
    assert!(OptimiserSpec::blocks([("weights", adam()), ("rest", adam())]).build(&layout).is_ok());
}

#[test]
fn a_state_of_other_parts_is_refused() {
    let layout = layout();
    let two = OptimiserSpec::blocks([("first", parse("adam")), ("rest", parse("muon"))]);
    let one = OptimiserSpec::blocks([("all", parse("adam"))]).build(&layout).unwrap().state();
    let error = two.build(&layout).unwrap().restore(&one).unwrap_err().to_string();
    assert!(error.contains("it has 1 parts where 2 are needed"), "{error}");
    let swapped = OptimiserSpec::blocks([("first", parse("muon")), ("rest", parse("adam"))]);
    assert!(two.build(&layout).unwrap().restore(&swapped.build(&layout).unwrap().state()).is_err());
}
