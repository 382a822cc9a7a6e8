//! Paper A: steepest descent, Adam and Shampoo in homogeneous networks.
//!
//! Its statements are `limitpoint_claims`, which `limitpoint reproduce A` runs; here each is a test, named by what it
//! says. Forms that are wrong in print must be refuted.

use limitpoint::driver::{Advance, Process};
use limitpoint::losses::LossSpec;
use limitpoint::models::ModelSpec;
use limitpoint::norms::NormSpec;
use limitpoint::optimisers::{OptimiserSpec, Scaling};
use limitpoint::schedules::ScheduleSpec;

use crate::support::*;

tests! {
    "A.";
    the_soft_margin_of_its_own_norm_never_falls_after_separation: "A.thm3.1",
    the_soft_margin_of_other_losses_never_falls_after_separation: "A.thmA18",
    the_soft_margin_of_another_norm_can_fall: "A.rem3.2",
    the_soft_margin_lies_within_log_n_below_the_hard_one: "A.lemA7",
    the_three_margins_are_ordered_like_their_norms: "A.eq13",
    the_loss_falls_at_the_square_of_the_dual_norm: "A.propA3",
    subdifferentials_of_norms_are_faces_of_the_dual_ball: "A.lemA4",
    the_loss_vanishes_and_the_norm_diverges_at_the_rate_of_the_lemma: "A.lemA6",
    directions_turn_at_most_twice_as_fast_as_weights_move: "A.lemA15",
    layers_move_at_equal_speed_in_the_modular_norm: "A.modular",
    rescaled_weights_are_feasible: "A.lemA9",
    the_margin_problem_satisfies_the_constraint_qualification: "A.lemA11",
    the_papers_multipliers_make_an_approximate_kkt_point: "A.propA13",
    the_gain_of_the_margin_bounds_the_misalignment: "A.lemA14",
    limit_directions_are_kkt_points: "A.thm3.4",
    the_bregman_divergence_is_the_misalignment: "A.propB6",
    the_bregman_proximity_measure_falls: "A.eq74",
    students_fit_their_teacher_but_not_by_one_sided_coordinate_descent: "A.expTS",
    each_algorithm_wins_the_margin_of_its_own_norm: "A.fig1L",
    the_papers_teacher_shows_no_order_of_test_accuracies_at_this_size: "A.fig1R",
    sparse_teachers_are_learnt_best_by_coordinate_descent: "A.fig1R.sparse",
    switching_after_separation_hardly_changes_the_test_accuracy: "A.fig1switch",
    adam_is_sign_descent_until_its_gradient_is_below_epsilon: "A.expAdam",
    sign_descent_keeps_its_margin_on_mnist_but_not_on_small_digits: "A.fig2",
    adam_without_memory_is_sign_descent_bit_for_bit: "A.adam",
    spectral_descent_ends_with_the_largest_spectral_margin: "A.expShampoo",
    shampoo_without_memory_is_the_polar_factor: "A.shampoo",
}

/// Claims section 0: coordinate descent on a ReLU network needs the minimum-norm subgradient.
///
/// With one-sided gradients it bounces across kinks: here almost half of all steps raise the loss, which stays above 1
/// (four of the seeds 0 to 7 end like that). With minimum-norm subgradients no step raises the loss or lowers the ℓ1
/// soft margin in the two runs below. Of the seeds 0 to 7, seven reach ln L = −5 without a rise, one of them with a
/// single fall of the margin by 5e-4; seed 3 approaches L = 1, where one example sees only dead neurons, and has small
/// rises where a step is longer than the reach in which kinks were looked for.
#[test]
fn coordinate_descent_on_relu_follows_the_flow_only_with_minimum_norm_subgradients() {
    for seed in [2, 7] {
        let run = |minimum_norm| {
            let objective = objective(&teacher_data(seed, 10, 5), &ModelSpec::relu(&[8]), &LossSpec::Exponential);
            let start = normal_start(&objective, seed, 0.3);
            let mut norm = NormSpec::L1.build(objective.layout()).unwrap();
            let spec = OptimiserSpec::Steepest { norm: NormSpec::L1, scaling: Scaling::DualNorm, minimum_norm };
            let mut process = descent(objective, &spec, &flow_resolved(0.05), &start);
            let (mut rises, mut soft_margins, mut before) = (0, Vec::new(), process.log_loss());
            while process.step() < 4000 && process.log_loss() > -5.0 {
                assert_eq!(process.advance().unwrap(), Advance::Moved);
                rises += u32::from(process.log_loss() > before);
                before = process.log_loss();
                if before < 0.0 {
                    soft_margins.push(-before / norm.value(process.params()).powi(2));
                }
            }
            (process.log_loss(), rises, soft_margins)
        };
        let (log_loss, rises, _) = run(false);
        assert!(log_loss > 0.0 && rises > 1000, "seed {seed} no longer chatters: {log_loss} {rises}");
        let (log_loss, rises, soft_margins) = run(true);
        assert!(log_loss <= -5.0 && rises == 0, "seed {seed}: {log_loss} {rises}");
        let fall = largest_fall(soft_margins);
        assert!(fall <= 1e-12, "seed {seed} falls by {fall:e}");
    }
}

/// What `monotone-coordinate` is for: where plain coordinate descent chatters at L > 1, unit steps that skip uphill
/// entries separate the data, and no step raises the loss.
#[test]
fn coordinate_descent_that_skips_uphill_steps_fits_relu_networks() {
    for seed in [2, 7] {
        let run = |spec: &OptimiserSpec| {
            let objective = objective(&teacher_data(seed, 10, 5), &ModelSpec::relu(&[8]), &LossSpec::Exponential);
            let start = normal_start(&objective, seed, 0.3);
            let mut process = descent(objective, spec, &ScheduleSpec::Constant { rate: 0.02 }, &start);
            let (mut rises, mut before) = (0, process.log_loss());
            while process.step() < 4000 && process.log_loss() > -5.0 {
                assert_eq!(process.advance().unwrap(), Advance::Moved);
                rises += u32::from(process.log_loss() > before);
                before = process.log_loss();
            }
            (process.log_loss(), rises)
        };
        let plain = OptimiserSpec::Steepest { norm: NormSpec::L1, scaling: Scaling::Unit, minimum_norm: false };
        let (log_loss, rises) = run(&plain);
        assert!(log_loss > 0.0 && rises > 1000, "seed {seed} no longer chatters: {log_loss} {rises}");
        let (log_loss, rises) = run(&OptimiserSpec::MonotoneCoordinate { scaling: Scaling::Unit });
        // the first step goes untried, since no step before it says how far
        assert!(log_loss <= -5.0 && rises <= 1, "seed {seed}: {log_loss} {rises}");
    }
}

/// A.fig1L at the size of the claims catalogue: d = 16, 32 neurons, 40 examples, ln L = −40.
#[test]
fn sign_gradient_and_coordinate_descent_each_win_their_own_margin() {
    for seed in 0..3 {
        let data = teacher_data(seed, 40, 16);
        let margins = [NormSpec::Linf, NormSpec::L2, NormSpec::L1].map(|norm| {
            let objective = objective(&data, &ModelSpec::network(&[32], SQUARED_RELU), &LossSpec::Exponential);
            let start = normal_start(&objective, seed, 0.3);
            let mut sizes =
                [NormSpec::Linf, NormSpec::L2, NormSpec::L1].map(|norm| norm.build(objective.layout()).unwrap());
            let mut process = descent(objective, &OptimiserSpec::steepest(norm), &flow_resolved(0.05), &start);
            while process.log_loss() > -40.0 {
                assert_eq!(process.advance().unwrap(), Advance::Moved);
            }
            let mut smallest = f64::NAN;
            process.show(&mut |snapshot| smallest = snapshot.point.smallest_margin());
            sizes.each_mut().map(|norm| smallest / norm.value(process.params()).powi(3))
        });
        let [sign, gradient, coordinate] = margins;
        assert!(sign[0] > gradient[0] && gradient[0] > coordinate[0], "γ₁: {margins:?}");
        assert!(gradient[1] > coordinate[1] && coordinate[1] > sign[1], "γ₂: {margins:?}");
        assert!(coordinate[2] > gradient[2] && gradient[2] > sign[2], "γ_∞: {margins:?}");
    }
}
