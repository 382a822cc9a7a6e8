//! Paper B: optimisation geometry for linear models.
//!
//! Its statements are `limitpoint_claims`, which `limitpoint reproduce B` runs; here each is a test, named by what it
//! says. Forms that are wrong in print must be refuted.

use limitpoint::observers::Spacing;
use limitpoint::schedules::ScheduleSpec;
use limitpoint::training::Training;

use crate::support::*;

tests! {
    "B.";
    losses_are_of_two_families: "B.prop1",
    gradient_methods_converge_to_the_nearest_interpolant: "B.gd2.1",
    mirror_descent_converges_to_the_nearest_solution_in_its_divergence: "B.thm1",
    mirror_descent_on_an_affine_set_converges_to_the_nearest_point_of_both: "B.affine",
    momentum_in_primal_and_dual_coincide_for_quadratic_potentials: "B.quadmom",
    quadratic_norms_behave_like_gradient_descent: "B.quadnorm",
    dual_momentum_keeps_the_limit: "B.thm1a",
    primal_momentum_moves_the_limit: "B.ex2",
    one_momentum_step_moves_the_limit: "B.prop2a",
    natural_gradient_flow_is_mirror_flow: "B.eq10",
    natural_gradient_with_finite_steps_misses_the_mirror_limit: "B.ex3",
    one_natural_gradient_step_moves_the_limit: "B.prop3a",
    the_steepest_step_is_optimal_in_every_norm: "B.eq11",
    steepest_descent_in_l43_misses_the_minimum_norm_solution: "B.ex4",
    subgradients_of_norms_are_what_the_lemma_says: "B.lem18",
    stagewise_descent_follows_monotone_lasso_paths: "B.cd",
    the_regularisation_path_tends_to_the_largest_margin: "B.regpath",
    optimisation_and_regularisation_path_meet_in_the_limit_only: "B.path",
    gradient_descent_converges_to_the_largest_l2_margin: "B.gd3.1",
    steepest_descent_on_separable_data_maximises_the_margin_of_its_norm: "B.thm5",
    fast_methods_reach_the_largest_margin: "B.fast",
    the_gradient_is_at_least_the_margin_times_the_loss: "B.lem10",
    steps_within_the_bound_lower_the_loss: "B.lem11",
    steps_up_to_root_two_over_the_curvature_never_raise_the_loss: "B.lem12",
    the_finite_time_margin_bound_holds: "B.eq39-44",
    ada_boost_is_coordinate_descent: "B.adaboost",
    exact_line_search_can_miss_the_largest_l1_margin: "B.linesearch",
    the_limit_of_ada_grad_depends_on_its_start: "B.prop6",
    ada_grad_is_not_steepest_descent_in_the_printed_norm: "B.lem14.printed",
    adam_and_rms_prop_forget_their_start: "B.adaptive",
    factored_descent_is_the_printed_iteration_with_half_the_step: "B.eq15-19",
    asymmetric_factorisations_lift_to_symmetric_ones: "B.lift",
    factored_descent_maximises_the_margin_of_the_nuclear_norm: "B.thm7",
    factored_descent_on_the_squared_loss_depends_on_its_start: "B.thm7.contrast",
    other_factorisations_have_other_geometries: "B.disguise",
    gradients_concentrate_on_support_vectors: "B.lem8",
    there_are_at_most_as_many_support_vectors_as_dimensions: "B.claim1",
    increments_that_converge_in_direction_carry_the_iterates: "B.lem15",
    the_growth_lemmas_hold: "B.prop16",
    large_problems_cost_what_their_entries_cost: "B.scale",
}

/// Ct.bracket as a recorder shows it: in every norm and at every step margin ≤ bracket_upper.
#[test]
fn a_recorded_margin_never_exceeds_its_recorded_bound() {
    let training = Training::new(separable_data(3, 15, 6, 0.2), "linear").unwrap().seed(3).at_most_steps(3000);
    let training = training.loss("exponential").unwrap().initialiser("normal(deviation=1)").unwrap();
    let bound = ScheduleSpec::LinearBound { c: 1.0, feature_bound: None, cap: None, decay: 0.0 };
    let norms = ["l2", "l1", "linf", "l4/3"];
    let columns = norms.map(|norm| [format!("margin.{norm}"), format!("bracket_upper.{norm}")]).concat();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let training = training.schedule(bound).unwrap().record(Spacing::Linear { every: 10 }, &columns).unwrap();
    let metrics = training.run().unwrap().metrics;
    for norm in norms {
        let margins = metrics.column(&format!("margin.{norm}"));
        let bounds = metrics.column(&format!("bracket_upper.{norm}"));
        assert_eq!(margins.len(), 301);
        assert!(margins[300] > 0.0, "{norm} is not separated");
        for (margin, bound) in margins.iter().zip(bounds) {
            assert!(*margin <= bound * (1.0 + 1e-12), "{norm}: {margin} {bound}");
        }
    }
}
