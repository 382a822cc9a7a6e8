//! Surveys of potentials whose answers are known.

use super::*;
use crate::potentials::{PotentialError, PotentialSpec};

fn survey(text: &str) -> Survey {
    Survey::of(&text.parse().unwrap())
}

#[test]
fn named_potentials_and_their_formulas_have_the_same_horizon() {
    for (name, formula, degree, coefficient) in [
        ("hyperbolic:0.09", "t*asinh(t/0.3) - sqrt(t^2+0.09)", 1.0, 1.0),
        ("smoothed:3,1", "|t|^3/3 + t^2/2", 3.0, 2.0),
        ("smoothed:2,0.5", "t^2/2 + 0.5*t^2/2", 2.0, 1.5),
        ("euclidean", "t^2/2", 2.0, 1.0),
        ("power-smoothed:1.5,1", "(t^2+1)^0.75/1.5 - 1", 1.5, 0.5),
    ] {
        for survey in [survey(name), survey(formula)] {
            let limit = survey.limit.as_ref().unwrap_or_else(|| panic!("{}: {}", survey.potential, survey.answer));
            assert!((limit.degree - degree).abs() < 1e-5, "{}: {limit:?}", survey.potential);
            for side in [limit.positive, limit.negative] {
                assert!((side.unwrap() / coefficient - 1.0).abs() < 1e-4, "{}: {limit:?}", survey.potential);
            }
            assert!(survey.has_limit(), "{}: {:?}", survey.potential, survey.convex);
            let condition = survey.curvature_condition.unwrap().shape;
            assert!(condition.holds, "{}: {condition:?}", survey.potential);
        }
    }
}

#[test]
fn every_separable_potential_of_the_catalogue_is_surveyed_as_it_says_of_itself() {
    for spec in PotentialSpec::examples() {
        let scalar = match spec.scalar() {
            Ok(scalar) => scalar,
            Err(error) => {
                assert!(matches!(error, PotentialError::NotScalar { .. }), "{spec}: {error}");
                continue;
            }
        };
        let survey = survey(&spec.to_string());
        let limit = survey.limit.as_ref().unwrap_or_else(|| panic!("{spec}: {}", survey.answer));
        assert!((limit.degree - scalar.degree()).abs() < 1e-4, "{spec}: {limit:?}");
        let found = limit.positive.unwrap();
        assert!((found / scalar.horizon_coefficient() - 1.0).abs() < 1e-3, "{spec}: {limit:?}");
        assert!(survey.convex.holds && survey.curvature_condition.unwrap().shape.holds, "{spec}");
    }
}

#[test]
fn words_name_the_problem() {
    assert!(
        survey("hyperbolic:0.1").answer.ends_with(
            "the ℓ₁ norm; mirror flow with this potential tends to KKT points of min ½‖θ‖₁² subject to qᵢ ≥ 1"
        )
    );
    assert!(survey("t^4/4").answer.contains("α = 4: a multiple of the ℓ₄ norm"), "{}", survey("t^4/4").answer);
    assert!(survey("entropy").answer.contains("positive weights"), "{}", survey("entropy").answer);
    let uneven = survey("t^2/2 + (t - |t|)^2/8").answer; // t²/2 right of 0, t² left of it
    assert!(
        uneven.contains("unequal sides") && uneven.contains("(1 Σ_{θᵢ>0} |θᵢ|^2 + 2 Σ_{θᵢ<0} |θᵢ|^2)^(1/2)"),
        "{uneven}"
    );
    let free = survey("(t + |t|)^3 + t^2").answer;
    assert!(free.contains("negative weights cost nothing"), "{free}");
    let theorem = |text: &str| survey(text).remarks.iter().any(|remark| remark.contains("Theorem 4.7"));
    assert!(theorem("smoothed:3,1") && theorem("t^2/2") && !theorem("(t + |t|)^3 + t^2") && !theorem("|t|^1.5"));
}

#[test]
fn what_is_not_convex_is_told_where() {
    let found = survey("t^4/4 - t^2/2"); // R″ = 3t² − 1
    assert!(!found.convex.holds && found.answer.contains("not convex"), "{}", found.answer);
    let [from, to] = [found.convex.fails[0][0], found.convex.fails.last().unwrap()[1]];
    let edge = 1.0 / 3f64.sqrt();
    assert!(from > -edge && from < -0.9 * edge && to < edge && to > 0.9 * edge, "{:?}", found.convex.fails);
    assert!(!survey("-t^2").convex.holds && !survey("sin(t)").convex.holds);
}

#[test]
fn rounding_is_not_taken_for_a_failure() {
    // R″ = 10⁻⁸ (10⁻⁸ + t²)^(−3/2) is the difference of two numbers that agree in all digits at t = 10⁶
    let found = survey("sqrt(1e-8 + t^2)");
    assert!(found.convex.holds && found.convex.undecided > 0, "{:?}", found.convex);
    assert!(found.answer.contains("tends to 0"), "{}", found.answer);
    assert!(found.remarks[0].contains("R(0) was taken off"), "{:?}", found.remarks);
}

#[test]
fn a_curvature_condition_that_fails_is_found() {
    // q = t² − 0.9 (t sin t + cos t) tends to t², but t² R″ = (2 − 0.9 cos t) t² never stops going beyond 2q
    let wavy = survey("t^2 + 0.9*cos(t)");
    let limit = wavy.limit.as_ref().unwrap_or_else(|| panic!("{}", wavy.answer));
    assert!(wavy.convex.holds && (limit.degree - 2.0).abs() < 1e-6 && (limit.positive.unwrap() - 2.0).abs() < 1e-4);
    let condition = wavy.curvature_condition.as_ref().unwrap();
    assert!(!condition.shape.holds && !condition.shape.fails.is_empty() && condition.constant.is_none());
    assert!(wavy.remarks.iter().any(|remark| remark.contains("(C Assumption 4.4) fails")), "{:?}", wavy.remarks);
    // with q(0) = 0 the condition asks for α ≥ 2 at 0; a constant mends it
    let shifted = survey("(t^2+1)^0.75/1.5");
    let condition = shifted.curvature_condition.as_ref().unwrap();
    let constant = condition.constant.unwrap();
    assert!(!condition.shape.holds && constant > 0.0 && constant < 1.0, "{condition:?}");
    let mended = survey(&format!("(t^2+1)^0.75/1.5 - 2/3 - {}", 1.0001 * constant));
    assert!(mended.curvature_condition.unwrap().shape.holds);
}

#[test]
fn level_sets_pass_through_the_unit_point_and_approach_the_limit() {
    let found = survey("hyperbolic:1");
    let limit = found.level_sets.last().unwrap();
    assert!(limit.scale.is_none());
    assert!(limit.points.iter().all(|[x, y]| (x.abs() + y.abs() - 1.0).abs() < 1e-5));
    let mut deviations = Vec::new();
    for set in &found.level_sets[..found.level_sets.len() - 1] {
        assert_eq!(set.points.len(), 241);
        assert!((set.points[0][0] - 1.0).abs() < 1e-12 && set.points[0][1] == 0.0);
        let s = set.scale.unwrap();
        let level = (s * s + 1.0).sqrt() + 1.0;
        for [x, y] in &set.points {
            let q = (s * s * x * x + 1.0).sqrt() + (s * s * y * y + 1.0).sqrt();
            assert!((q / level - 1.0).abs() < 1e-12);
        }
        deviations.push(set.points.iter().map(|[x, y]| x.abs() + y.abs() - 1.0).fold(0.0, f64::max));
    }
    assert!(deviations.windows(2).all(|pair| pair[1] < pair[0]), "{deviations:?}");
    let gaps: Vec<f64> = found.gauges.iter().map(|row| row.gap).collect();
    assert!(gaps.windows(2).all(|pair| pair[1] <= pair[0]) && gaps[7] < 1e-11, "{gaps:?}");
}

#[test]
fn nonsense_is_refused_with_a_remedy() {
    let refuse = |text: &str| text.parse::<ScalarCurve>().err().unwrap().to_string();
    assert!(refuse("hyperbolic").contains("hyperbolic:LAMBDA"));
    assert!(refuse("hyperbolic:-1").contains("should be positive"));
    assert!(refuse("squared-lp:1.5").contains("or a formula in t"));
    assert!(refuse("t^").contains("ends too early"));
}

#[test]
fn potentials_without_an_inverse_or_with_bounded_slope_are_refused() {
    // flat for |t| < 1, and |t|²/2 − … beyond
    let flat = Survey::of(&"((|t| - 1 + abs(|t| - 1))/2)^2/2".parse().unwrap());
    assert!(flat.flat.is_some() && !flat.has_limit() && flat.answer.contains("no inverse"), "{}", flat.answer);
    // underflow far out is no flat stretch
    assert!(Survey::of(&"exp(t)".parse().unwrap()).flat.is_none());
    let bounded = Survey::of(&"-(t^2 + 1)^0.25".parse().unwrap());
    assert!(!bounded.has_limit(), "{}", bounded.answer);
}
