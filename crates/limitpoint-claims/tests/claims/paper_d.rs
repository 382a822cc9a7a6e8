//! Paper D: gradient flow and gradient descent maximise the ℓ2 margin.

use limitpoint::data::{Dataset, Targets};
use limitpoint::diagnostics::InstrumentSpec;
use limitpoint::driver::{Process, run};
use limitpoint::flows::{FlowSpec, Tolerance};
use limitpoint::linalg::{Matrix, dot, norm2};
use limitpoint::losses::LossSpec;
use limitpoint::models::{Activation, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::numeric::Streams;
use limitpoint::observers::{StopReason, StopRule};
use limitpoint::optimisers::OptimiserSpec;
use limitpoint::potentials::PotentialSpec;
use limitpoint::schedules::ScheduleSpec;
use limitpoint::training::Training;

use crate::support::*;

tests! {
    "D.";
    the_smoothed_margin_is_that_of_its_definition: "D.eq2",
    the_smoothed_margin_never_falls_after_separation: "D.thm4.1",
    the_smoothed_margin_gains_what_the_turn_of_the_direction_costs: "D.lem5.1",
    the_loss_brackets_the_smallest_margin: "D.lemA5",
    the_norm_grows_by_the_mean_margin: "D.eq6",
    the_loss_falls_at_least_as_fast_as_its_integral_says: "D.lemB6",
    the_gain_of_the_smoothed_margin_bounds_the_angle: "D.lemC9",
    four_losses_satisfy_the_assumptions: "D.b3",
    f_and_g_grow_like_powers: "D.lemD1",
    gradients_of_homogeneous_models_are_homogeneous: "D.thmB2",
    the_margin_problem_satisfies_the_constraint_qualification: "D.defC2",
    loss_and_norm_have_the_rates_of_their_degree: "D.thm4.3",
    limit_directions_are_kkt_points: "D.thm4.4",
    the_trajectory_is_an_approximate_kkt_point: "D.lemC8",
    the_limit_is_the_machine_of_its_own_gradients: "D.cor4.5",
    approximate_kkt_points_are_those_of_the_judge: "D.defC1",
    the_direction_turns_no_faster_than_the_norm_grows: "D.lemC11",
    an_approximate_kkt_point_is_met_in_finite_time: "D.thmA9",
    admissible_steps_are_the_inverse_of_the_curvature: "D.s5",
    the_margin_of_descent_lies_below_the_smoothed_one: "D.ghat",
    admissible_steps_never_lower_the_margin_of_descent: "D.thm4.2",
    descent_has_the_rates_of_the_flow: "D.corE6",
    descent_settles_in_the_direction_of_a_kkt_point: "D.eq22",
    the_margin_per_product_of_layers_never_falls: "D.eq4",
    the_product_of_layers_is_at_most_a_power_of_the_norm: "D.norm",
    biases_above_the_first_layer_break_homogeneity: "D.exp",
    a_constant_rate_enlarges_the_margin_slowly: "D.fig1a",
    the_loss_based_rate_goes_below_ten_to_minus_800: "D.fig1b",
    accuracy_barely_moves_while_the_margin_grows: "D.fig7",
    lower_losses_have_larger_margins: "D.tabl1",
    no_attack_comes_closer_than_the_margin_over_the_slope: "D.robust",
    lower_losses_are_harder_to_fool: "D.fig8",
    convolutions_at_a_constant_rate_enlarge_the_margin_slowly: "D.fig1a.conv",
    convolutions_at_the_loss_based_rate_go_below_ten_to_minus_800: "D.fig1b.conv",
    accuracy_of_convolutions_barely_moves_while_the_margin_grows: "D.fig7.conv",
    convolutions_at_lower_losses_have_larger_margins: "D.tabl1.conv",
    no_attack_on_convolutions_comes_closer_than_the_margin_over_the_slope: "D.robust.conv",
    convolutions_at_lower_losses_are_harder_to_fool: "D.fig8.conv",
    biased_networks_enlarge_their_margin_too: "D.bias",
    the_loss_based_rate_lowers_the_loss_from_epoch_to_epoch: "D.algK1",
    relative_losses_keep_their_digits: "D.algK2",
    the_smoothed_margin_of_three_classes_never_falls: "D.F",
    the_loss_falls_by_the_least_subgradient_squared: "D.H",
    a_direction_can_circle_for_ever: "D.hat",
}

/// Models of degree 1, 2 and 3.
fn models() -> [(f64, ModelSpec); 3] {
    [
        (1.0, ModelSpec::Linear),
        (2.0, ModelSpec::network(&[4], Activation::Identity)),
        (3.0, ModelSpec::network(&[6], SQUARED_RELU)),
    ]
}

/// D.thm4.3 in its sharp form (Ct.rate): L t (ln t)^{2 − 2/L} → 1/(L² γ^{2/L}) and ‖θ‖^L/ln t → 1/γ.
#[test]
fn the_loss_falls_at_the_rate_its_margin_and_degree_give() {
    for (degree, model) in models() {
        let objective = objective(&separable_data(2, 6, 3, 1.0), &model, &LossSpec::Exponential);
        let start = normal_start(&objective, 2, 0.5);
        let tolerance = Tolerance { relative: 1e-8, absolute: 1e-10 };
        let mut process = flow(objective, &FlowSpec::gradient(), tolerance, &start);
        for (target, allowed) in [(100.0, 0.2), (400.0, 0.06), (5000.0, 0.01)] {
            run(&mut process, &[StopRule::LogTime { target }], &mut []).unwrap();
            let log_time = process.log_time();
            assert!((target..target + 100.0).contains(&log_time), "{log_time}");
            let mut smallest = 0.0;
            process.show(&mut |snapshot| smallest = snapshot.point.smallest_margin());
            let size = norm2(process.flow_mut().params()).powf(degree);
            let margin = smallest / size;
            let log_rate = process.log_loss() + log_time + (2.0 - 2.0 / degree) * log_time.ln();
            let rate = log_rate.exp() * degree.powi(2) * margin.powf(2.0 / degree);
            let growth = size / log_time * margin;
            let what = format!("degree {degree}, ln t = {target}");
            assert!((rate - 1.0).abs() < allowed, "{what}: rate {rate}");
            assert!((growth - 1.0).abs() < allowed, "{what}: growth {growth}");
        }
    }
}

/// D.eq6, D.lemB5 and D.lem5.1 along gradient flow, in rescaled time (v = −∇ ln L is the velocity, u = ln 1/L):
///
/// ```text
/// ½ d‖θ‖²/dτ = ⟨θ, v⟩ = L Σ wₖqₖ ≥ L g(u)/g′(u)                             wₖ = −∂ ln L/∂qₖ
/// d ln γ̃/dτ = (g′/g)(u) ‖v‖² − L ⟨θ, v⟩/ρ²  ≥  L (d ln ρ/dτ)⁻¹ ‖dθ̂/dτ‖²     γ̃ = g(u)/ρ^L, θ̂ = θ/ρ
/// ```
#[test]
fn the_smoothed_margin_grows_at_least_as_fast_as_the_direction_turns() {
    // a start that separates the data: the slope of e^(−q³) vanishes at q = 0, where its flow gets stuck
    let task = |loss: &LossSpec| objective(&teacher_data(1, 10, 5), &ModelSpec::network(&[8], SQUARED_RELU), loss);
    let start = {
        let objective = task(&LossSpec::Exponential);
        let start = normal_start(&objective, 1, 0.6);
        let mut process = flow(objective, &FlowSpec::gradient(), Tolerance::default(), &start);
        run(&mut process, &[log_loss_below(-1.0), steps(5000)], &mut []).unwrap();
        process.flow_mut().params().to_vec()
    };
    let power = |k| [LossSpec::PowerExponential { k }, LossSpec::PowerLogistic { k }];
    for loss in [LossSpec::Exponential, LossSpec::Logistic].into_iter().chain(power(3)) {
        let mut process = flow(task(&loss), &FlowSpec::gradient(), Tolerance::default(), &start);
        // (τ, ln γ̃, d ln γ̃/dτ) of the step before
        let mut before: Option<(f64, f64, f64)> = None;
        let (mut looked_at, mut measured, mut integrated) = (0, 0.0, 0.0);
        while process.log_loss() > -100.0 && process.step() < 5000 {
            process.advance().unwrap();
            let tau = process.flow_mut().rescaled_time();
            process.show(&mut |snapshot| {
                let point = &snapshot.point;
                let tail = point.loss.tail().unwrap();
                if point.log_loss >= tail.log_threshold() {
                    return;
                }
                let (u, degree, g) = (-point.log_loss, point.degree(), &point.gradient.direction);
                let outward = -dot(point.params, g);
                let euler = degree * dot(point.weights, point.margins);
                assert!((outward / euler - 1.0).abs() < 1e-10, "{loss}: {outward} {euler}");
                assert!(outward >= degree * tail.g(u) / tail.g_prime(u) * (1.0 - 1e-12), "{loss}");
                let (square, speed) = (dot(point.params, point.params), dot(g, g));
                let slope = tail.g_prime(u) / tail.g(u) * speed - degree * outward / square;
                let turning = degree * (square / outward) * (speed - outward * outward / square) / square;
                assert!(slope >= turning - 1e-10 * slope.abs(), "{loss}: {slope} {turning}");
                let log_margin = tail.g(u).ln() - 0.5 * degree * square.ln();
                if let Some((last_tau, last, last_slope)) = before {
                    measured += log_margin - last;
                    integrated += 0.5 * (tau - last_tau) * (slope + last_slope);
                }
                before = Some((tau, log_margin, slope));
                looked_at += 1;
            });
        }
        assert!(looked_at >= 100, "{loss}: only {looked_at} points");
        // the slope is the slope: its integral along the flow is the measured growth
        assert!((measured / integrated - 1.0).abs() < 1e-3, "{loss}: {measured} {integrated}");
    }
}

/// D.lemG2, XP.8: ρᵢ²/kᵢ − ρⱼ²/kⱼ stays what it was, where layer i has degree kᵢ.
#[test]
fn gradient_flow_conserves_squared_layer_norms_over_degrees() {
    let model = ModelSpec::network(&[6, 5], SQUARED_RELU);
    let objective = objective(&teacher_data(1, 8, 4), &model, &LossSpec::Exponential);
    let layout = objective.layout().clone();
    let degrees: Vec<f64> = objective.homogeneity().unwrap().groups.iter().map(|group| group.degree).collect();
    assert_eq!(degrees, [4.0, 2.0, 1.0]);
    let start = normal_start(&objective, 1, 0.6);
    let ratios = |params: &[f64]| -> Vec<f64> {
        let square = |(k, block): (&f64, &limitpoint::params::Block)| norm2(&params[block.range()]).powi(2) / k;
        degrees.iter().zip(layout.blocks()).map(square).collect()
    };
    let before = ratios(&start);
    let mut process = flow(objective, &FlowSpec::gradient(), Tolerance::default(), &start);
    let reason = run(&mut process, &[log_loss_below(-50.0), steps(20_000)], &mut []).unwrap();
    assert_eq!(reason, StopReason::Rule(log_loss_below(-50.0)));
    let after = ratios(process.flow_mut().params());
    let growth: Vec<f64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
    assert!(growth[0] > 0.1 * before[0], "nothing grew: {growth:?}");
    assert!(spread(&growth) < 1e-7, "{growth:?}");
}

/// Three clouds around the corners of a triangle, in more dimensions than they need.
fn three_classes() -> Dataset {
    let mut stream = Streams::new(11).stream("data");
    let labels: Vec<usize> = (0..15).map(|n| n % 3).collect();
    let mut inputs = Matrix::zeros(15, 4);
    for (n, label) in labels.iter().enumerate() {
        stream.fill_normal(inputs.row_mut(n));
        inputs[(n, *label)] += 2.0;
    }
    Dataset::new("three clouds", inputs, Targets::Classes { labels, count: 3 }, vec![4]).unwrap()
}

/// D.F: with cross-entropy the soft margin −ln(e^L − 1)/ρ^L never falls once L < ln 2, when all examples are correct.
#[test]
fn the_soft_margin_of_cross_entropy_never_falls_after_separation() {
    for seed in 0..3 {
        let model = ModelSpec::network(&[10], SQUARED_RELU);
        let objective = objective(&three_classes(), &model, &LossSpec::CrossEntropy);
        let start = normal_start(&objective, seed, 0.3);
        let schedule = flow_resolved(0.02);
        let mut process = descent(objective, &OptimiserSpec::steepest(NormSpec::L2), &schedule, &start);
        let mut soft_margins = Vec::new();
        watch(&mut process, &[log_loss_below(-15.0), steps(50_000)], |snapshot| {
            let point = &snapshot.point;
            if point.log_loss >= 2f64.ln().ln() {
                return;
            }
            assert_eq!(point.accuracy(), 1.0);
            // −ln(e^L − 1) in plain numbers
            let soft = -point.log_loss.exp().exp_m1().ln();
            assert!((point.soft_minimum() / soft - 1.0).abs() < 1e-9, "{soft}");
            // q ≥ q̃ ≥ q − ln(C − 1), so the soft minimum lies within ln(N (C − 1)) of the smallest margin
            let smallest = point.smallest_margin();
            assert!(point.soft_minimum() <= smallest + 1e-12 && point.soft_minimum() >= smallest - 30f64.ln());
            soft_margins.push(point.soft_minimum() / point.length().powf(point.degree()));
        });
        assert!(process.log_loss() <= -15.0, "seed {seed} ended at {}", process.log_loss());
        let rise = soft_margins[soft_margins.len() - 1] / soft_margins[0];
        let fall = largest_fall(soft_margins);
        assert!(fall <= 1e-12 && rise > 1.5, "seed {seed} rises {rise}-fold, falls by {fall:e}");
    }
}

/// D.algK2: a loss of 10^−10000 is reached by rescaled steps, and every recorded number stays finite.
#[test]
fn losses_of_ten_to_the_minus_ten_thousand_stay_in_range() {
    let target = -10_000.0 * std::f64::consts::LN_10;
    let rescaled = ScheduleSpec::Rescaled { rate: 0.5, factor: 0.2, threshold: 0.1 };
    let cases = [(ModelSpec::Linear, rescaled), (ModelSpec::network(&[6], SQUARED_RELU), flow_resolved(1.0))];
    for ((model, schedule), loss) in
        cases.iter().flat_map(|case| [LossSpec::Exponential, LossSpec::Logistic].map(|loss| (case, loss)))
    {
        let probe = InstrumentSpec {
            norms: vec![NormSpec::L1, NormSpec::L2, NormSpec::Linf, NormSpec::Spectral],
            potentials: vec![
                PotentialSpec::Hyperbolic { lambda: 0.1 },
                PotentialSpec::Smoothed { p: 3.0, lambda: 1.0 },
            ],
            residual_tolerances: vec![0.0, 1e-3],
            ..Default::default()
        };
        let training = Training::new(separable_data(2, 6, 3, 1.0), model.clone()).unwrap().seed(2).observe(probe);
        let training = training.loss(loss.clone()).unwrap().initialiser("normal(deviation=0.3)").unwrap();
        let training = training.schedule(schedule.clone()).unwrap().at_most_steps(400_000);
        let run = training.until(log_loss_below(target)).run().unwrap();
        assert_eq!(run.reason, StopReason::Rule(log_loss_below(target)), "{loss} {schedule}");
        // from L < 1/e on, where all margins are positive and every quantity is defined
        let (margins, losses) = (run.metrics.column("smallest_margin"), run.metrics.column("log10_loss"));
        let separated: Vec<usize> =
            (1..run.metrics.len()).filter(|row| margins[*row] > 0.0 && losses[*row] < -1.0 / 10f64.ln()).collect();
        for (name, values) in run.metrics.columns.iter().zip(&run.metrics.values) {
            // the one quantity that these smooth models do not have
            if name != "smallest_preactivation" {
                let strange = separated.iter().find(|row| !values[**row].is_finite());
                assert_eq!(strange, None, "{loss} {schedule}: {name}");
            }
        }
        assert!(separated.len() > 20 && run.log_loss <= target);
    }
}
