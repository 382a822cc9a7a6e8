//! Beyond the papers: open questions that were measured, each a claim of `limitpoint_claims` with an id in X.

use crate::support::tests;

tests! {
    "X.";
    potentials_of_degree_below_two_tend_to_kkt_points_too: "X.17",
    mirror_and_metric_steps_come_together_in_proportion_to_the_step: "X.18",
    directions_on_the_mexican_hat_circle_from_anywhere: "X.22",
}
