//! Paper C: mirror flow in homogeneous networks.
//!
//! Its statements are `limitpoint_claims`, which `limitpoint reproduce C` runs; here each is a test, named by what it
//! says. Forms that are wrong in print must be contradicted.

use limitpoint::diagnostics::Balance;
use limitpoint::driver::Process;
use limitpoint::flows::{FlowSpec, Tolerance};
use limitpoint::losses::LossSpec;
use limitpoint::models::ModelSpec;
use limitpoint::potentials::PotentialSpec;

use crate::support::*;

tests! {
    "C.";
    the_conjugate_at_the_dual_is_the_fenchel_young_sum: "C.lem2.5",
    the_loss_falls_at_the_squared_speed_in_the_metric: "C.flow",
    the_dual_potential_grows_at_the_mean_margin: "C.eq4",
    gradient_flow_conserves_the_balance_between_layers: "C.eq2",
    mirror_flow_conserves_the_balance_between_layers: "C.lem3.1",
    mirror_flow_conserves_the_balance_of_every_neuron: "C.nbal",
    layers_with_their_own_potentials_keep_balance_and_raise_their_common_margin: "C.defI4",
    the_soft_q_margin_lies_within_log_n_below_the_hard_one: "C.def2.2",
    potentials_satisfy_the_curvature_condition: "C.ass4.4",
    the_soft_q_margin_never_falls_after_separation: "C.thm4.5",
    the_loss_falls_at_least_as_fast_as_the_integral_says: "C.lemD2",
    the_dual_direction_turns_at_a_bounded_speed: "C.lemE1",
    the_time_integral_of_the_loss_has_an_asymptotic_inverse: "C.lemF1",
    loss_and_gauge_have_the_rates_of_their_degree: "C.thm4.6",
    the_gradient_of_the_gauge_approaches_that_of_the_horizon: "C.assG1",
    the_trajectory_is_an_approximate_kkt_point: "C.lemG6",
    the_gain_of_the_q_margin_bounds_the_misalignment: "C.beta",
    limit_directions_are_kkt_points_of_the_horizon: "C.thm4.7",
    primal_and_dual_directions_converge_together: "C.lemG9",
    frozen_features_make_a_support_vector_machine_of_the_limit: "C.corI1",
    products_of_weights_are_hyperbolic_mirror_flow_at_double_speed: "C.cor4.8",
    bounded_weights_keep_the_hyperbolic_gradient_from_the_sign: "C.g4",
    the_two_families_have_the_horizons_of_table_one: "C.tab1",
    the_balance_equation_has_the_solutions_of_figure_one: "C.fig1L",
    level_sets_of_the_hyperbolic_gauge_approach_the_l1_ball: "C.fig1R",
    the_time_until_the_horizon_shows_is_exponential_in_lambda_and_n: "C.lem4.10",
    the_recipes_of_table_ten_keep_the_first_update: "C.tab10",
    neurons_balance_and_students_come_near_the_judges_best_networks: "C.thm4.9",
    the_printed_steps_lead_to_the_margins_of_resolved_ones: "C.exp2L",
    each_mirror_map_wins_the_margin_of_its_own_horizon: "C.tab2",
    active_neurons_grow_with_the_degree_of_the_horizon: "C.fig2L",
    a_larger_lambda_makes_the_features_of_cubes_resemble_gradient_descent: "C.fig3",
    a_smaller_lambda_of_hyperbolic_entropy_gives_a_larger_l1_margin: "C.tab3",
    a_large_lambda_of_cubes_costs_l3_margin: "C.tab4",
    long_training_at_large_lambda_does_not_reach_the_margin: "C.tab5",
    each_mirror_map_wins_its_own_margin_in_three_layers: "C.exp3L",
    weights_are_sparse_or_dense_in_every_layer: "C.fig8",
    decision_regions_are_sectors: "C.fig11",
    a_smaller_lambda_of_hyperbolic_entropy_gives_a_larger_l1_margin_in_three_layers: "C.tab7",
    a_smaller_lambda_of_cubes_gives_a_larger_l3_margin_in_three_layers: "C.tab8",
    a_narrow_vgg_learns_images_in_three_metrics: "C.expVGG",
    hyperbolic_entropy_has_the_most_peaked_first_layer: "C.fig4L",
}

/// A flow reports the drift of its balance between layers, and nothing where its potential has no such law.
#[test]
fn a_flow_knows_how_far_its_balance_has_drifted() {
    for (potential, lawful) in
        [(PotentialSpec::Hyperbolic { lambda: 0.1 }, true), (PotentialSpec::SquaredLp { p: 1.5 }, false)]
    {
        let objective =
            objective(&teacher_data(1, 10, 5), &ModelSpec::network(&[8], SQUARED_RELU), &LossSpec::Exponential);
        let start = normal_start(&objective, 1, 0.6);
        let (layout, homogeneity) = (objective.layout().clone(), objective.homogeneity().unwrap().clone());
        let mut worker = potential.build(&layout).unwrap();
        let before = Balance::measure(&start, &layout, &homogeneity, &mut *worker);
        let mut process = flow(objective, &FlowSpec::Mirror { potential }, Tolerance::default(), &start);
        watch(&mut process, &[log_loss_below(-10.0), steps(20_000)], |_| ());
        assert!(process.log_loss() <= -10.0);
        let drift = Balance::measure(process.params(), &layout, &homogeneity, &mut *worker).drift_since(&before);
        match process.flow_mut().balance_drift() {
            Some(reported) => {
                assert!(lawful && (reported - drift).abs() <= 1e-12 && drift < 1e-8, "{reported:e} {drift:e}")
            }
            None => assert!(!lawful && drift > 1e-2, "{drift:e}"),
        }
    }
}
