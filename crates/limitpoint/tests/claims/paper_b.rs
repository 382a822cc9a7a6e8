//! Paper B: optimisation geometry for linear models.

use limitpoint::data::{Dataset, GroundTruth, Regression, Targets};
use limitpoint::diagnostics::{Probe, ProbeSpec, margin_bracket};
use limitpoint::driver::{Advance, Batching, Descent, DriverError, Process, run};
use limitpoint::flows::{Flow, FlowSpec, Tolerance};
use limitpoint::linalg::{add_scaled, norm2};
use limitpoint::losses::LossSpec;
use limitpoint::models::ModelSpec;
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::objective::Objective;
use limitpoint::observers::{Recorder, Spacing, StopReason};
use limitpoint::optimisers::{MomentumSpace, OptimiserSpec};
use limitpoint::potentials::PotentialSpec;
use limitpoint::reference::{MarginProblem, max_margin};
use limitpoint::schedules::ScheduleSpec;

use crate::support::*;

/// Descent on a regression task with a constant step; ends early at loss 0.
fn limit_of(data: &Dataset, optimiser: &OptimiserSpec, rate: f64, start: &[f64], count: u64) -> Vec<f64> {
    let objective = objective(data, &ModelSpec::Linear, &LossSpec::Squared);
    let mut process = descent(objective, optimiser, &ScheduleSpec::Constant { rate }, start);
    match run(&mut process, &[steps(count)], &mut []).unwrap() {
        StopReason::Rule(_) | StopReason::Stationary => process.params().to_vec(),
        other => panic!("{other:?}"),
    }
}

/// B.gd2.1: the limit is w₀ + Xᵀ(XXᵀ)⁻¹(y − Xw₀), the projection of the start onto the solutions.
#[test]
fn gradient_methods_converge_to_the_nearest_interpolant() {
    let split = Regression { count: 5, dimension: 12, ..Default::default() }.generate(&Streams::new(4)).unwrap();
    let Some(GroundTruth::Solution { weights }) = &split.truth else { panic!("no solution") };
    let basis = row_space(&split.train.dense().unwrap());
    let mut start = vec![0.0; 12];
    Streams::new(4).stream("init").fill_normal(&mut start);
    let momentum = 0.9;
    // momentum is claimed from w₀ = 0 only
    let cases = [
        (OptimiserSpec::steepest(NormSpec::L2), Batching::Full, start.clone(), 0.01),
        (OptimiserSpec::steepest(NormSpec::L2), Batching::Mini { size: 2 }, start, 0.01),
        (OptimiserSpec::HeavyBall { momentum }, Batching::Full, vec![0.0; 12], 0.01),
        (OptimiserSpec::Nesterov { momentum }, Batching::Full, vec![0.0; 12], 0.01),
    ];
    for loss in [LossSpec::Squared, LossSpec::Huber { delta: 0.5 }] {
        for (spec, batching, start, rate) in &cases {
            let mut offset: Vec<f64> = weights.clone();
            add_scaled(&mut offset, -1.0, start);
            let mut expected = projection(&basis, &offset);
            add_scaled(&mut expected, 1.0, start);
            let objective = objective(&split.train, &ModelSpec::Linear, &loss);
            let optimiser = spec.build(objective.layout()).unwrap();
            let schedule = ScheduleSpec::Constant { rate: *rate }.build().unwrap();
            let mut process =
                Descent::new(objective, optimiser, schedule, *batching, start.clone(), &Streams::new(4)).unwrap();
            while process.step() < 6000 && process.advance().unwrap() == Advance::Moved {
                let mut moved = process.params().to_vec();
                add_scaled(&mut moved, -1.0, start);
                let mut outside = moved.clone();
                add_scaled(&mut outside, -1.0, &projection(&basis, &moved));
                assert!(norm2(&outside) < 1e-12, "{spec:?} leaves the span of the data");
            }
            let miss = distance(process.params(), &expected);
            assert!(miss < 1e-8, "{spec:?} {batching:?} {loss}: misses by {miss:e}");
        }
    }
}

/// x = (1, 2), y = 1: the task of Examples 2 and 3.
fn one_equation() -> Dataset {
    data(&[&[1.0, 2.0]], Targets::Values(vec![1.0]))
}

fn entropic(space: MomentumSpace, beta: f64, gamma: f64) -> OptimiserSpec {
    OptimiserSpec::Mirror { potential: PotentialSpec::Entropy, space, beta, gamma }
}

/// B.thm1a, B.eq7: from w₀ = argmin R, momentum added in the dual keeps the limit of mirror descent.
#[test]
fn dual_momentum_keeps_the_limit() {
    for (beta, gamma, rate) in [(0.9, 0.0, 0.01), (0.9, 0.9, 0.01), (0.5, 0.5, 0.05)] {
        let spec = entropic(MomentumSpace::Dual, beta, gamma);
        let limit = limit_of(&one_equation(), &spec, rate, &[1.0, 1.0], 20_000);
        assert!(distance(&limit, &[0.5, 0.25]) < 1e-9, "β = {beta}, γ = {gamma}: {limit:?}");
        // from any other start the minimiser of R over the solutions is missed
        let elsewhere = limit_of(&one_equation(), &spec, rate, &[2.0, 1.0], 20_000);
        assert!(distance(&elsewhere, &[0.5, 0.25]) > 0.05, "{elsewhere:?}");
    }
}

/// B.ex2: momentum added to the weights moves the limit of mirror descent, the more the larger the step.
///
/// Expected limits are the catalogue's replica, printed to six digits.
#[test]
fn primal_momentum_moves_the_limit() {
    let replica = [
        (0.5, 0.0, 0.01, [0.507385, 0.246307]),
        (0.5, 0.0, 0.02, [0.519652, 0.240174]),
        (0.5, 0.0, 0.05, [0.624330, 0.187835]),
        (0.5, 0.5, 0.01, [0.506758, 0.246621]),
        (0.5, 0.5, 0.05, [0.566282, 0.216859]),
        (0.9, 0.0, 0.001, [0.590859, 0.204571]),
        (0.9, 0.9, 0.001, [0.578830, 0.210585]),
        (0.9, 0.0, 2e-4, [0.507748, 0.246126]),
        // without β the look-ahead alone changes nothing
        (0.0, 0.0, 0.01, [0.5, 0.25]),
        (0.0, 0.9, 0.01, [0.5, 0.25]),
    ];
    for (beta, gamma, rate, expected) in replica {
        let spec = entropic(MomentumSpace::Primal, beta, gamma);
        let limit = limit_of(&one_equation(), &spec, rate, &[1.0, 1.0], 40_000);
        assert!(distance(&limit, &expected) < 1e-6, "β = {beta}, γ = {gamma}, η = {rate}: {limit:?}");
        assert!((limit[0] + 2.0 * limit[1] - 1.0).abs() < 1e-10, "{limit:?} does not fit the data");
    }
}

/// B.ex2: at β = 0.9 and η = 0.01 the extrapolated point leaves the positive orthant, which is said and not clamped.
#[test]
fn primal_momentum_that_leaves_the_domain_is_reported() {
    let objective = objective(&one_equation(), &ModelSpec::Linear, &LossSpec::Squared);
    let spec = entropic(MomentumSpace::Primal, 0.9, 0.0);
    let mut process = descent(objective, &spec, &ScheduleSpec::Constant { rate: 0.01 }, &[1.0, 1.0]);
    let error = run(&mut process, &[steps(1000)], &mut []).unwrap_err();
    let DriverError::Optimiser { step, .. } = &error else { panic!("{error:?}") };
    assert!(*step > 1 && error.to_string().starts_with(&format!("step {step}: ")), "{error}");
}

/// The limits of natural gradient descent with H = diag(1/w) from (1, 1).
fn natural_limit(rate: f64) -> Vec<f64> {
    let spec = OptimiserSpec::NaturalGradient { potential: PotentialSpec::Entropy };
    limit_of(&one_equation(), &spec, rate, &[1.0, 1.0], (60.0 / rate) as u64)
}

/// B.ex3: replica limits of the claims catalogue; at η = 0.1 the first step lands on the solution (0.6, 0.2).
#[test]
fn natural_gradient_with_finite_steps_misses_the_mirror_limit() {
    let replica = [
        (0.1, [0.6, 0.2]),
        (0.12, [0.810235, 0.094882]),
        (0.08, [0.543679, 0.228160]),
        (0.05, [0.514990, 0.242505]),
        (0.02, [0.504295, 0.247853]),
        (0.01, [0.501987, 0.249007]),
        (1e-3, [0.500187, 0.249907]),
    ];
    for (rate, expected) in replica {
        let limit = natural_limit(rate);
        assert!(distance(&limit, &expected) < 1e-6, "η = {rate}: {limit:?}");
    }
    let one_step = limit_of(
        &one_equation(),
        &OptimiserSpec::NaturalGradient { potential: PotentialSpec::Entropy },
        0.1,
        &[1.0, 1.0],
        1,
    );
    assert!(distance(&one_step, &[0.6, 0.2]) < 1e-15);
}

/// B.eq10: as η → 0 natural gradient and mirror descent agree, linearly in η.
#[test]
fn natural_gradient_tends_to_mirror_descent_linearly_in_the_step() {
    let miss = |rate: f64| natural_limit(rate)[0] - 0.5;
    let (coarse, fine) = (miss(2e-3), miss(1e-3));
    assert!((coarse / fine - 2.0).abs() < 0.05, "{coarse} {fine}");
    // and the mirror flow itself goes to the point both tend to
    let mut objective = objective(&one_equation(), &ModelSpec::Linear, &LossSpec::Squared);
    let spec = FlowSpec::Mirror { potential: PotentialSpec::Entropy };
    let mut flow = Flow::new(&spec, TIGHT, &mut objective, &[1.0, 1.0]).unwrap();
    while flow.log_loss() > -45.0 {
        flow.advance(&mut objective).unwrap();
    }
    assert!(distance(flow.params(), &[0.5, 0.25]) < 1e-8, "{:?}", flow.params());
}

/// (1,1,1) → 1 and (1,2,0) → 10: the task of Example 4; its solutions are (10 − 2s, s, s − 9).
fn two_equations() -> Dataset {
    data(&[&[1.0, 1.0, 1.0], &[1.0, 2.0, 0.0]], Targets::Values(vec![1.0, 10.0]))
}

/// Interpolants are reached only as closely as the flow is integrated.
const TIGHT: Tolerance = Tolerance { relative: 1e-12, absolute: 1e-14 };

const FOUR_THIRDS: NormSpec = NormSpec::Lp { p: 4.0 / 3.0 };

/// B.ex4: replica limits of the claims catalogue.
#[test]
fn steepest_descent_in_l43_ends_where_its_step_size_says() {
    let replica =
        [(0.001, 0.283861), (0.01, 0.295684), (0.05, 0.361810), (0.08, 0.440168), (0.1, 0.337062), (0.15, -1.114728)];
    for (rate, expected) in replica {
        let limit = limit_of(&two_equations(), &OptimiserSpec::steepest(FOUR_THIRDS), rate, &[0.0; 3], 20_000);
        assert!((limit[0] - expected).abs() < 1e-6, "η = {rate}: {limit:?}");
        let s = limit[1];
        assert!(distance(&limit, &[10.0 - 2.0 * s, s, s - 9.0]) < 1e-8, "{limit:?} does not fit the data");
    }
    // η = 0.2 is too long a step
    let objective = objective(&two_equations(), &ModelSpec::Linear, &LossSpec::Squared);
    let schedule = ScheduleSpec::Constant { rate: 0.2 };
    let mut process = descent(objective, &OptimiserSpec::steepest(FOUR_THIRDS), &schedule, &[0.0; 3]);
    let reason = run(&mut process, &[steps(20_000)], &mut []).unwrap();
    assert!(matches!(reason, StopReason::NotFinite { .. }), "{reason:?}");
}

/// B.ex4: the flow limit, which is not the minimum-norm solution (0.000230045, 4.999884977, −4.000115023).
#[test]
fn even_the_flow_in_l43_misses_the_minimum_norm_solution() {
    let mut objective = objective(&two_equations(), &ModelSpec::Linear, &LossSpec::Squared);
    let spec = FlowSpec::Steepest { norm: FOUR_THIRDS };
    let mut flow = Flow::new(&spec, TIGHT, &mut objective, &[0.0; 3]).unwrap();
    while flow.log_loss() > -45.0 {
        flow.advance(&mut objective).unwrap();
    }
    assert!(distance(flow.params(), &[0.2825957, 4.8587022, -4.1412979]) < 1e-6, "{:?}", flow.params());
    assert!(distance(flow.params(), &[0.000230045, 4.999884977, -4.000115023]) > 0.28);
    // descent tends to the flow's limit at first order in the step
    let miss = |rate: f64| {
        let limit =
            limit_of(&two_equations(), &OptimiserSpec::steepest(FOUR_THIRDS), rate, &[0.0; 3], (40.0 / rate) as u64);
        limit[0] - flow.params()[0]
    };
    let (coarse, fine) = (miss(4e-3), miss(2e-3));
    assert!((coarse / fine - 2.0).abs() < 0.05, "{coarse} {fine}");
}

/// A linear classification task with the exponential loss, its norm and B = maxₙ ‖xₙ‖_*.
fn classification(data: &Dataset, norm: &NormSpec) -> (Objective, f64) {
    let objective = objective(data, &ModelSpec::Linear, &LossSpec::Exponential);
    let mut worker = norm.build(objective.layout()).unwrap();
    let bound = (0..data.len()).map(|n| worker.dual(data.dense().unwrap().row(n))).fold(0.0, f64::max);
    (objective, bound)
}

/// η = c/(B² L).
fn bounded(c: f64, bound: f64) -> ScheduleSpec {
    ScheduleSpec::LinearBound { c, feature_bound: Some(bound), cap: None, decay: 0.0 }
}

const GEOMETRIES: [NormSpec; 4] = [NormSpec::L2, NormSpec::L1, NormSpec::Linf, FOUR_THIRDS];

/// B.thm5: margins converge to the judge's optimum γ* from below, from any start, and never exceed it.
///
/// B.lem9 and B.lem10 on the way: the two-sided bound brackets γ* at every iterate.
#[test]
fn steepest_descent_on_separable_data_maximises_the_margin_of_its_norm() {
    let quadratic = NormSpec::Quadratic { diagonal: vec![0.5, 1.0, 2.0, 3.0, 4.0] };
    for norm in GEOMETRIES.into_iter().chain([NormSpec::Lp { p: 3.0 }, quadratic]) {
        let data = separable_data(1, 12, 5, 0.5);
        let judge = max_margin(&MarginProblem::linear(&data, norm.clone()).unwrap()).unwrap();
        assert!(judge.bracket.relative_gap() < 1e-12, "{norm}: {:?}", judge.bracket);
        for seed in 0..2 {
            let (objective, bound) = classification(&data, &norm);
            let mut worker = norm.build(objective.layout()).unwrap();
            let start = normal_start(&objective, seed, 3.0 * seed as f64);
            // the weights of sign descent jump between a few corners, and the upper bound is as coarse as its steps
            let c = if norm == NormSpec::Linf { 0.2 } else { 1.0 };
            let mut process = descent(objective, &OptimiserSpec::steepest(norm.clone()), &bounded(c, bound), &start);
            let (mut lower, mut upper) = (f64::NEG_INFINITY, f64::INFINITY);
            watch(&mut process, &[steps(50_000)], |snapshot| {
                let bracket = margin_bracket(&snapshot.point, &mut *worker);
                if bracket.lower.is_finite() {
                    lower = lower.max(bracket.lower);
                }
                upper = upper.min(bracket.upper);
                let optimum = judge.margin;
                assert!(lower <= optimum * (1.0 + 1e-12), "{norm}: {lower} exceeds the optimum {optimum}");
                assert!(upper >= optimum * (1.0 - 1e-12), "{norm}: the bound {upper} is below the optimum {optimum}");
            });
            let gap = (upper - lower) / upper;
            assert!(gap < 5e-3, "{norm} from start {seed}: bracket [{lower}, {upper}] open by {gap:e}");
        }
    }
}

/// B.lem12: η = c/(B² L) never raises the loss for c ≤ √2.
#[test]
fn steps_up_to_root_two_over_the_curvature_never_raise_the_loss() {
    for norm in GEOMETRIES {
        for (c, seed) in [0.5, 1.0, 1.2, 1.414].into_iter().flat_map(|c| (0..10).map(move |seed| (c, seed))) {
            let (objective, bound) = classification(&separable_data(seed, 10, 4, 0.3), &norm);
            let start = normal_start(&objective, seed, 2.0);
            let mut process = descent(objective, &OptimiserSpec::steepest(norm.clone()), &bounded(c, bound), &start);
            for step in 0..300 {
                let before = process.log_loss();
                assert_eq!(process.advance().unwrap(), Advance::Moved);
                let rise = process.log_loss() - before;
                assert!(rise <= 1e-13 * before.abs(), "{} c = {c} seed {seed} step {step}: {rise:e}", norm.key());
            }
        }
    }
}

/// Ct.bracket as a recorder shows it: in every norm and at every step margin ≤ bracket_upper.
#[test]
fn a_recorded_margin_never_exceeds_its_recorded_bound() {
    let (objective, bound) = classification(&separable_data(3, 15, 6, 0.2), &NormSpec::L2);
    let norms = GEOMETRIES.to_vec();
    let spec = ProbeSpec { norms: norms.clone(), ..Default::default() };
    let probe = Probe::new(&spec, objective.layout(), objective.homogeneity(), true).unwrap();
    let mut recorder = Recorder::new(probe, Spacing::Linear { every: 10 });
    let start = normal_start(&objective, 3, 1.0);
    let mut process = descent(objective, &OptimiserSpec::steepest(NormSpec::L2), &bounded(1.0, bound), &start);
    run(&mut process, &[steps(3000)], &mut [&mut recorder]).unwrap();
    for norm in norms.iter().map(NormSpec::key) {
        let margins = recorder.series(&format!("margin.{norm}"));
        let bounds = recorder.series(&format!("bracket_upper.{norm}"));
        assert_eq!(margins.len(), 301);
        assert!(margins[300] > 0.0, "{norm} is not separated");
        for (margin, bound) in margins.iter().zip(&bounds) {
            assert!(*margin <= bound * (1.0 + 1e-12), "{norm}: {margin} {bound}");
        }
    }
}
