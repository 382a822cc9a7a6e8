//! The battery tells geometries apart, and known optimisers give known answers.

use super::*;

/// What two norms that differ on a probe have of each other's largest margin, at most.
const APART: f64 = 0.9;

fn keys(geometries: &[Candidate]) -> Vec<&str> {
    geometries.iter().map(|geometry| geometry.key.as_str()).collect()
}

#[test]
fn the_judge_proves_that_every_probe_tells_the_candidates_apart() {
    let geometries = Candidate::usual();
    let keys = keys(&geometries);
    for (probe, optima) in battery(&geometries).unwrap() {
        let matrices = probe.name.starts_with("matrices");
        // on a vector these three are one norm
        let same = |a: &str, b: &str| {
            let euclidean = ["l2", "spectral", "nuclear"];
            a == b || (!matrices && euclidean.contains(&a) && euclidean.contains(&b))
        };
        for (a, first) in keys.iter().enumerate() {
            assert!(optima.unique[a], "{}: {first} has more than one maximiser", probe.name);
            for (b, second) in keys.iter().enumerate() {
                let share = optima.cross[a][b];
                let words = format!("{}: the {second} maximiser has {share} of the {first} optimum", probe.name);
                if same(first, second) {
                    assert!((share - 1.0).abs() < 1e-7, "{words}");
                } else {
                    assert!(share > 0.0 && share <= APART, "{words}");
                    assert!(optima.rivals(b, a));
                }
            }
            assert!(optima.lead(a) >= 1.0 - APART - 1e-12);
        }
    }
}

/// Keys of the early and the late phase.
fn found(optimiser: &str) -> (Option<String>, Option<String>, Fingerprint) {
    let found = fingerprint(optimiser, &Settings::default()).unwrap();
    let early = found.early().and_then(|phase| phase.geometry.clone());
    let late = found.late().and_then(|phase| phase.geometry.clone());
    (early, late, found)
}

fn maximises(optimiser: &str, key: &str) {
    let (early, late, found) = found(optimiser);
    assert_eq!((early.as_deref(), late.as_deref()), (Some(key), Some(key)), "{}", found.answer);
    assert!(found.late().unwrap().confidence >= 0.8, "{}", found.answer);
    assert!(found.answer.contains("maximises the") && !found.answer.contains("early"), "{}", found.answer);
}

#[test]
fn steepest_descents_maximise_the_margin_of_their_norm() {
    let cases = [
        ("coordinate", "l1"),
        ("steepest(norm=lp:1.3333333333333333)", "l4/3"),
        ("gradient", "l2"),
        ("steepest(norm=lp:3)", "l3"),
        ("sign", "linf"),
        ("spectral", "spectral"),
        ("steepest(norm=nuclear)", "nuclear"),
    ];
    for (optimiser, key) in cases {
        maximises(optimiser, key);
    }
}

#[test]
fn momentum_keeps_the_geometry() {
    for (optimiser, key) in
        [("heavy-ball", "l2"), ("nesterov", "l2"), ("signum", "linf"), ("lion", "linf"), ("muon", "spectral")]
    {
        maximises(optimiser, key);
    }
}

#[test]
fn mirror_descent_maximises_the_margin_of_its_horizon() {
    maximises("mirror(potential=euclidean)", "l2");
    maximises("mirror(potential=smoothed(p=3, lambda=0))", "l3");
    maximises("mirror(potential=hyperbolic(lambda=1e-60))", "l1");
}

#[test]
fn adam_is_sign_like_until_epsilon_takes_over() {
    maximises("adam(epsilon=0)", "linf");
    let (early, late, found) = found("adam");
    assert_eq!((early.as_deref(), late.as_deref()), (Some("linf"), Some("l2")), "{}", found.answer);
    // ε = 1e-8 is where gradients stop mattering more
    let change = found.early().unwrap().log10_loss[1];
    assert!((-16.0..-6.0).contains(&change), "{}", found.answer);
    assert!(found.answer.contains("early") && found.answer.contains("late"), "{}", found.answer);
    // its first steps leave no unit of the convolution active: that is said, and nothing is read off it
    let trouble = found.convolution.trouble.unwrap();
    assert!(found.convolution.readings.is_empty() && trouble.contains("does not fit probe convolution"), "{trouble}");
    assert!(found.network.trouble.is_none() && !found.network.readings.is_empty());
}

#[test]
fn ada_grad_maximises_none_of_them() {
    let (early, late, found) = found("ada-grad");
    assert_eq!((early, late), (None, None), "{}", found.answer);
    assert!(found.answer.contains("none of these geometries"), "{}", found.answer);
}

#[test]
fn a_norm_can_be_added() {
    let settings = Settings { starts: 1, ..Settings::default() }.with_norm(NormSpec::Lp { p: 10.0 });
    let found = fingerprint("steepest(norm=lp:10)", &settings).unwrap();
    assert_eq!(found.late().unwrap().geometry.as_deref(), Some("l10"), "{}", found.answer);
}

#[test]
fn shares_are_shares_and_floors_hold_for_steepest_flows() {
    let found = fingerprint("gradient", &Settings::default()).unwrap();
    let l2 = keys(&found.geometries).iter().position(|key| *key == "l2").unwrap();
    assert_eq!(found.runs.len(), PROBES.len() * 2);
    for run in &found.runs {
        assert!(run.readings.len() > 10 && run.readings.last().unwrap().log10_loss <= -1000.0, "{}", run.reason);
        for reading in &run.readings {
            assert!(reading.shares.iter().all(|share| *share <= 1.0 + 1e-9), "{reading:?}");
            // steps resolve the flow, but are no flow
            assert!(reading.attained(l2) >= 0.98, "{} {reading:?}", run.probe);
        }
    }
}

#[test]
fn what_cannot_be_fingerprinted_is_refused_with_a_reason() {
    let refuse = |text: &str, settings: &Settings| fingerprint(text, settings).unwrap_err().to_string();
    let usual = Settings::default();
    assert!(refuse("gradeint", &usual).contains("gradient"));
    assert!(refuse("gradient,sign", &usual).contains("separate arguments"));
    assert!(refuse("mirror(potential=entropy)", &usual).contains("hyperbolic"));
    assert!(refuse("adam(epsilon=-1)", &usual).contains("-1"));
    assert!(refuse("sign", &Settings { starts: 0, ..Settings::default() }).contains("1 to 100"));
    let short = Settings { steps: Some(2), ..Settings::default() };
    assert!(refuse("gradient", &short).contains("--rate"));
}
