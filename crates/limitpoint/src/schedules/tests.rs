//! What the rules promise, by hand and over all of [`ScheduleSpec::examples`].

use proptest::prelude::*;

use super::*;

fn context(step: u64, log_loss: f64) -> StepContext {
    StepContext { step, epoch: step, log_loss, all_correct: true }
}

fn outcome(before: f64, after: f64, change: f64) -> TrialOutcome {
    TrialOutcome { log_loss_before: before, log_loss_after: after, largest_margin_change: change }
}

fn build(text: &str) -> Box<dyn Schedule> {
    text.parse::<ScheduleSpec>().unwrap().build().unwrap()
}

fn all_schedules() -> Vec<(ScheduleSpec, Box<dyn Schedule>)> {
    ScheduleSpec::examples()
        .into_iter()
        .map(|spec| spec.with_feature_bound(3.0).with_curvature(3.0, -0.5, 2.0))
        .map(|spec| (spec.clone(), spec.build().unwrap()))
        .collect()
}

/// Fails to compile when a variant is added and not counted here.
fn position(spec: &ScheduleSpec) -> usize {
    match spec {
        ScheduleSpec::Constant { .. } => 0,
        ScheduleSpec::Rescaled { .. } => 1,
        ScheduleSpec::LossBased { .. } => 2,
        ScheduleSpec::LinearBound { .. } => 3,
        ScheduleSpec::Polynomial { .. } => 4,
        ScheduleSpec::Admissible { .. } => 5,
        ScheduleSpec::FlowResolved { .. } => 6,
    }
}

#[test]
fn examples_and_catalogue_name_every_rule_in_order() {
    let examples = ScheduleSpec::examples();
    assert_eq!(examples.iter().map(position).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    let keys: Vec<_> = ScheduleSpec::catalogue().iter().map(|entry| entry.key).collect();
    assert_eq!(keys, examples.iter().map(ScheduleSpec::key).collect::<Vec<_>>());
}

#[test]
fn texts_and_files_round_trip() {
    for spec in ScheduleSpec::examples().into_iter().chain(all_schedules().into_iter().map(|(spec, _)| spec)) {
        assert_eq!(spec.to_string().parse::<ScheduleSpec>().unwrap(), spec);
        let written = toml::to_string(&spec).unwrap();
        assert_eq!(toml::from_str::<ScheduleSpec>(&written).unwrap(), spec, "{written}");
    }
    #[derive(serde::Deserialize)]
    struct File {
        schedule: ScheduleSpec,
    }
    let read = |text: &str| toml::from_str::<File>(text).map(|file| file.schedule);
    assert_eq!(read("schedule = { loss-based = {} }").unwrap(), "loss-based".parse().unwrap());
    assert_eq!(read("schedule = { flow-resolved = {} }").unwrap(), "flow-resolved".parse().unwrap());
    assert_eq!(read("schedule = { linear-bound = {} }").unwrap(), "linear-bound".parse().unwrap());
    assert_eq!(read("schedule = { admissible = {} }").unwrap(), "admissible".parse().unwrap());
    assert_eq!(read("schedule = { rescaled = { rate = 2.0 } }").unwrap(), "rescaled(rate=2)".parse().unwrap());
    assert!(read("schedule = { constant = {} }").is_err());
    assert!(read("schedule = { constant = { rate = 1.0, power = 2.0 } }").is_err());
}

#[test]
fn refusals_name_the_setting_and_the_range() {
    for text in [
        "constant(rate=0)",
        "constant(rate=-1)",
        "constant(rate=NaN)",
        "constant(rate=inf)",
        "rescaled(factor=0)",
        "rescaled(threshold=-0.1)",
        "loss-based(initial=0)",
        "loss-based(grow=1)",
        "loss-based(shrink=0.9)",
        "linear-bound(c=1.5, feature_bound=1)",
        "linear-bound(c=0, feature_bound=1)",
        "linear-bound(feature_bound=0)",
        "linear-bound(feature_bound=1, cap=0)",
        "linear-bound(feature_bound=1, decay=1.1)",
        "polynomial(power=-1)",
        "admissible(c=0, degree=2, log_start=-1, log_curvature=0)",
        "admissible(degree=0, log_start=-1, log_curvature=0)",
        "admissible(degree=2, log_start=0, log_curvature=0)",
        "admissible(degree=2, log_start=-1, log_curvature=inf)",
        "flow-resolved(resolution=0)",
        "flow-resolved(grow=0.5)",
        "flow-resolved(shrink=1)",
        "flow-resolved(memory=1)",
        "flow-resolved(memory=0)",
        "flow-resolved(fall=-1)",
    ] {
        let error = text.parse::<ScheduleSpec>().unwrap().build().unwrap_err();
        let ScheduleError::Setting { name, rule, .. } = error else { panic!("{text}: {error}") };
        assert!(text.starts_with(rule) && text.contains(&format!("{name}=")), "{text}: {error}");
        assert!(error.to_string().contains("must be"), "{error}");
    }
    let missing = "linear-bound".parse::<ScheduleSpec>().unwrap();
    assert!(missing.needs_feature_bound());
    assert_eq!(missing.build().unwrap_err(), ScheduleError::FeatureBound);
    assert!(missing.build().unwrap_err().to_string().contains("with_feature_bound"));
    for text in ["admissible", "admissible(degree=2, log_start=-1)"] {
        let missing = text.parse::<ScheduleSpec>().unwrap();
        assert!(missing.needs_curvature());
        assert!(missing.build().unwrap_err().to_string().contains("with_curvature"));
    }
    assert!(build("linear-bound(c=1.4142135623730951, feature_bound=1)").log_step(&context(0, 0.0)) > 0.0);
    for text in ["", "cosine", "constant(rate", "constant(rate=x)", "constant(0.1)", "constant(power=1)"] {
        assert!(matches!(text.parse::<ScheduleSpec>(), Err(ScheduleError::Unknown { .. })), "{text}");
    }
}

#[test]
fn constant_and_polynomial_by_hand() {
    assert_eq!(build("constant(rate=0.25)").log_step(&context(7, -900.0)), 0.25f64.ln());
    let mut schedule = build("polynomial(rate=2, power=0.5)");
    assert_eq!(schedule.log_step(&context(0, f64::NAN)), 2f64.ln());
    assert!((schedule.log_step(&context(99, 0.0)) - 0.2f64.ln()).abs() < 1e-15);
}

/// C.exp2L: both conditions are needed, and the step is continuous at the switch.
#[test]
fn rescaling_waits_for_the_threshold_and_for_accuracy() {
    let mut schedule = build("rescaled(rate=0.5)");
    let wrong = StepContext { all_correct: false, ..context(5, -50.0) };
    assert_eq!(schedule.log_step(&wrong), 0.5f64.ln());
    assert_eq!(schedule.log_step(&context(5, 0.11f64.ln())), 0.5f64.ln());
    assert!((schedule.log_step(&context(5, 0.1f64.ln() - 1e-12)) - 0.5f64.ln()).abs() < 1e-11);
    assert!((schedule.log_step(&context(5, -50.0)) - (50.0 + 0.05f64.ln())).abs() < 1e-13);
}

/// B.thm5 with min in place of the printed max.
#[test]
fn the_linear_bound_is_a_minimum() {
    let mut schedule = build("linear-bound(c=1, feature_bound=2, cap=10)");
    assert!((schedule.log_step(&context(0, 0.0)) - 0.25f64.ln()).abs() < 1e-15);
    assert_eq!(schedule.log_step(&context(0, -5000.0)), 10f64.ln());
    assert!(schedule.log_step(&context(0, f64::NAN)).is_nan());
    let mut decaying = build("linear-bound(feature_bound=1, decay=1)");
    assert!((decaying.log_step(&context(9, -5000.0)) - (5000.0 - 10f64.ln())).abs() < 1e-11);
}

/// B.lem12 on a toy of one feature: exponential loss Σ e^{−b w}, steepest descent in one dimension.
#[test]
fn the_linear_bound_never_raises_the_loss() {
    let features = [2.0, 0.5, -1.0];
    let log_loss = |w: f64| crate::numeric::log_sum_exp(&features.map(|b| -b * w));
    for c in ["0.5", "1", "1.2", "1.414"] {
        let mut schedule = build(&format!("linear-bound(c={c}, feature_bound=2)"));
        let mut w = -30.0;
        for step in 0..400 {
            let before = log_loss(w);
            // −L′/L is the softmin average of the features
            let slope: f64 = features.iter().map(|b| b * (-b * w - before).exp()).sum();
            w += (schedule.log_step(&context(step, before)) + before).exp() * slope;
            assert!(log_loss(w) <= before + 1e-12, "{c} {step}");
        }
    }
}

/// D.s5 with the loss as a number, and at 1e-1000, where it is none.
#[test]
fn admissible_steps_are_those_of_their_definition() {
    let (start, curvature, degree) = (0.6f64, 7.5f64, 3.0);
    let (log_start, log_curvature) = (start.ln(), curvature.ln());
    let text =
        |c: f64| format!("admissible(c={c}, degree={degree}, log_start={log_start}, log_curvature={log_curvature})");
    let mut schedule = build(&text(1.0));
    for loss in [0.6f64, 0.4, 0.2, 1e-2, 1e-8, 1e-300] {
        let (u, a) = (-loss.ln(), 4.0 / 3.0);
        let mu = -log_start / (2.0 * u);
        let kappa = if u < a { (a * (a.ln() - 1.0)).exp() } else { loss * u.powf(a) };
        let step = schedule.log_step(&context(0, loss.ln()));
        assert!((step - (mu / (curvature * kappa)).ln()).abs() < 1e-12, "{loss}");
    }
    let u = 1000.0 * std::f64::consts::LN_10;
    let expected = u - (3.0 - 2.0 / degree) * u.ln() + (-log_start / (2.0 * curvature)).ln();
    assert!((schedule.log_step(&context(0, -u)) - expected).abs() < 1e-12 * u);
    assert!((build(&text(20.0)).log_step(&context(0, -u)) - expected - 20f64.ln()).abs() < 1e-12 * u);
    // a loss above the first one gets the first one's step
    assert_eq!(schedule.log_step(&context(9, 3.0)), schedule.log_step(&context(0, log_start)));
}

/// D.algK1, one review after the other.
#[test]
fn loss_based_raises_and_lowers_alpha_as_printed() {
    let mut schedule = build("loss-based");
    let start = schedule.log_step(&context(0, -3.0));
    assert!((start - (0.1f64.ln() + 3.0)).abs() < 1e-15);
    // the reference is held during the epoch, whatever the later steps report
    assert_eq!(schedule.log_step(&context(1, -3.4)), start);
    assert_eq!(schedule.review(&outcome(-3.0, -2.9, 9.0)), Review::Redo);
    let second = schedule.log_step(&context(0, -3.0));
    assert!((second - start + 0.1 * 2f64.ln()).abs() < 1e-14);
    assert_eq!(schedule.review(&outcome(-3.0, -3.0, 9.0)), Review::Accept); // ratio 1 counts as success
    let third = schedule.log_step(&context(1, -4.0));
    assert!((third - (0.1f64.ln() + 0.1 * 2f64.ln() + 4.0)).abs() < 1e-14);
    for after in [f64::NAN, f64::INFINITY] {
        assert_eq!(schedule.review(&outcome(-4.0, after, 1.0)), Review::Redo);
    }
    assert_eq!(schedule.review(&outcome(f64::NAN, -5.0, 1.0)), Review::Redo);
    assert_eq!(schedule.review(&outcome(-4.0, f64::NEG_INFINITY, 1.0)), Review::Accept); // a perfect regression fit
    assert_eq!(schedule.review_period(), ReviewPeriod::Epoch);
}

/// The whole loop of D.algK1 on L(w) = e^{−w} + 10^−3·w²: accepted epochs lower the loss, rejected ones leave w alone.
#[test]
fn loss_based_descends_on_a_toy() {
    let loss = |w: f64| (-w).exp() + 1e-3 * w * w;
    let slope = |w: f64| -(-w).exp() + 2e-3 * w;
    let mut schedule = build("loss-based(initial=4)");
    let (mut w, mut accepted, mut rejected) = (0.0, 0, 0);
    while accepted < 200 {
        let before = loss(w);
        let trial = w - schedule.log_step(&context(accepted, before.ln())).exp() * slope(w);
        match schedule.review(&outcome(before.ln(), loss(trial).ln(), 0.0)) {
            Review::Accept => {
                assert!(loss(trial).ln() <= before.ln());
                (w, accepted) = (trial, accepted + 1);
            }
            Review::Redo => rejected += 1,
            Review::GiveUp => break,
        }
    }
    assert!(rejected > 0 && accepted > 20);
    assert!(slope(w).abs() < 1e-3, "{w} {}", slope(w));
}

#[test]
fn flow_resolution_cuts_in_proportion_and_grows_back() {
    let mut schedule = build("flow-resolved(initial=1)");
    assert_eq!(schedule.log_step(&context(0, -2000.0)), 2000.0);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-11, "{a} {b}");
    assert_eq!(schedule.review(&outcome(-2000.0, -2000.1, 0.1)), Review::Redo);
    close(schedule.log_step(&context(0, 0.0)), 0.45f64.ln());
    assert_eq!(schedule.review(&outcome(-2000.0, -2000.1, 0.045)), Review::Accept);
    close(schedule.log_step(&context(0, 0.0)), 0.45f64.ln());
    assert_eq!(schedule.review(&outcome(-2000.0, -2000.1, 0.025)), Review::Accept);
    close(schedule.log_step(&context(0, 0.0)), (0.45f64 * 1.5).ln());
    assert_eq!(schedule.review(&outcome(-2000.0, -2000.0, 0.0)), Review::Accept);
    close(schedule.log_step(&context(0, 0.0)), (0.45f64 * 1.5).ln());
    assert_eq!(schedule.review(&outcome(-2000.0, -2000.1, f64::INFINITY)), Review::Redo);
    close(schedule.log_step(&context(0, 0.0)), (0.045f64 * 1.5).ln());
    assert_eq!(schedule.review(&outcome(-2000.0, -2000.1, f64::NAN)), Review::Redo);
    assert_eq!(schedule.review(&outcome(-2000.0, f64::NAN, 0.01)), Review::Redo);
    close(schedule.log_step(&context(0, 0.0)), (0.045f64 * 1.5 / 4.0).ln());
}

/// One margin q(w) = w³, exponential loss: every accepted step moves it by at most c, from any first α.
#[test]
fn flow_resolved_steps_respect_the_resolution() {
    for initial in ["1e-9", "0.1", "1e6"] {
        let mut schedule = build(&format!("flow-resolved(resolution=0.05, initial={initial})"));
        let (mut w, mut accepted, mut trials, mut large) = (1.0f64, 0, 0, 0);
        while accepted < 500 {
            trials += 1;
            let log_loss = -w.powi(3);
            // dL/dw = −3w² L, so the step is η · 3w² L
            let next = w + (schedule.log_step(&context(accepted, log_loss)) + log_loss).exp() * 3.0 * w * w;
            let change = (next.powi(3) - w.powi(3)).abs();
            match schedule.review(&outcome(log_loss, -next.powi(3), change)) {
                Review::Accept => {
                    assert!(change <= 0.05);
                    large += u32::from(change > 0.015);
                    (w, accepted) = (next, accepted + 1);
                }
                review => assert_eq!(review, Review::Redo),
            }
        }
        assert!(trials < 700 && large > 400, "{initial}: {trials} trials, {large} near the resolution");
    }
}

#[test]
fn a_hopeless_run_is_given_up() {
    for (spec, mut schedule) in all_schedules() {
        let failure = outcome(-1.0, f64::NAN, f64::NAN);
        if !schedule.may_redo() {
            assert_eq!(schedule.review_period(), ReviewPeriod::Never);
            assert_eq!(schedule.review(&failure), Review::Accept, "{spec}");
            continue;
        }
        for _ in 0..LARGEST_REDO_COUNT {
            assert_eq!(schedule.review(&failure), Review::Redo, "{spec}");
        }
        assert_eq!(schedule.review(&failure), Review::GiveUp, "{spec}");
        assert_eq!(schedule.review(&failure), Review::GiveUp, "{spec}");
        // an acceptance starts the count again
        assert_eq!(schedule.review(&outcome(-1.0, -1.1, 0.01)), Review::Accept, "{spec}");
        assert_eq!(schedule.review(&failure), Review::Redo, "{spec}");
    }
}

#[test]
fn states_of_another_kind_are_refused() {
    let adaptive = ScheduleState::Adaptive { log_alpha: 0.5, log_reference: None, redos: 0 };
    let damaged = ScheduleState::Adaptive { log_alpha: f64::NAN, log_reference: None, redos: 0 };
    for (spec, mut schedule) in all_schedules() {
        let before = schedule.state();
        let wrong = if schedule.may_redo() { ScheduleState::Stateless } else { adaptive };
        assert!(matches!(schedule.restore(&wrong), Err(ScheduleError::State { .. })), "{spec}");
        assert!(schedule.restore(&damaged).is_err(), "{spec}");
        assert_eq!(schedule.state(), before, "{spec}: a refused state changes nothing");
        schedule.restore(&before).unwrap();
    }
}

#[test]
fn a_zero_loss_and_a_broken_loss() {
    for (spec, mut schedule) in all_schedules() {
        assert!(schedule.log_step(&context(3, f64::NEG_INFINITY)).is_finite(), "{spec}");
    }
    for (spec, mut schedule) in all_schedules() {
        let uses_loss = !matches!(spec, ScheduleSpec::Constant { .. } | ScheduleSpec::Polynomial { .. });
        assert_eq!(schedule.log_step(&context(3, f64::NAN)).is_nan(), uses_loss, "{spec}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A run that is saved anywhere, even inside an epoch, goes on bit for bit.
    #[test]
    fn every_rule_resumes_bit_for_bit(
        events in prop::collection::vec((-9.0..9.0f64, 0.0..0.2f64, prop::bool::ANY), 2..30), cut in 0usize..30
    ) {
        for (spec, mut whole) in all_schedules() {
            let mut resumed = spec.build().unwrap();
            for (i, &(fall, change, reviewed)) in events.iter().enumerate() {
                if i == cut % events.len() {
                    let text = toml::to_string(&whole.state());
                    let state = match text {
                        Ok(text) => toml::from_str(&text).unwrap(),
                        Err(_) => whole.state(), // a bare string is not a TOML document
                    };
                    prop_assert_eq!(state, whole.state());
                    resumed.restore(&state).unwrap();
                }
                let log_loss = -70.0 * i as f64 / 3.0;
                let expected = whole.log_step(&context(i as u64, log_loss));
                let judged = outcome(log_loss, log_loss - fall, change);
                let review = reviewed.then(|| whole.review(&judged));
                if i >= cut % events.len() {
                    prop_assert_eq!(resumed.log_step(&context(i as u64, log_loss)).to_bits(), expected.to_bits());
                    prop_assert_eq!(reviewed.then(|| resumed.review(&judged)), review);
                }
            }
            prop_assert_eq!(whole.state(), resumed.state());
        }
    }

    /// ln η = ln α − ln L holds at any loss: shifting ln L shifts ln η.
    #[test]
    fn rules_that_divide_by_the_loss_are_exact_at_any_loss(log_loss in -1e6..-5.0f64) {
        for text in ["rescaled", "loss-based", "linear-bound(feature_bound=3)", "flow-resolved"] {
            let near = build(text).log_step(&context(0, -5.0));
            let far = build(text).log_step(&context(0, log_loss));
            prop_assert!((far - near - (-5.0 - log_loss)).abs() <= 1e-15 * log_loss.abs(), "{}", text);
        }
    }
}

/// Of the two bounds, on margins and on the fall of the loss, the one that is nearer decides; without the second nothing
/// changes.
#[test]
fn a_bound_on_the_fall_holds_steps_back() {
    let step = |schedule: &mut Box<dyn Schedule>| schedule.log_step(&context(0, 0.0));
    let mut schedule = "flow-resolved(resolution=0.1, memory=0.5)"
        .parse::<ScheduleSpec>()
        .unwrap()
        .with_forgetting(0.02)
        .build()
        .unwrap();
    let first = step(&mut schedule);
    // margins moved by a tenth of what they may, the loss fell by twice what it may
    assert_eq!(schedule.review(&outcome(0.0, -0.02, 0.01)), Review::Redo);
    assert!((step(&mut schedule) - first - 0.45f64.ln()).abs() < 1e-12);
    assert_eq!(schedule.review(&outcome(0.0, -0.009, 0.01)), Review::Accept);
    let held = step(&mut schedule);
    assert!((held - first - 0.45f64.ln()).abs() < 1e-12, "nine tenths of the bound: no growth");
    assert_eq!(schedule.review(&outcome(0.0, -0.001, 0.01)), Review::Accept);
    assert!(step(&mut schedule) > held);
    assert_eq!(schedule.review(&outcome(0.0, -0.001, 0.2)), Review::Redo);
    let mut free = build("flow-resolved(resolution=0.1, memory=0.5)");
    assert_eq!(free.review(&outcome(0.0, -5.0, 0.01)), Review::Accept, "nothing to remember");
    assert_eq!(
        "flow-resolved(memory=0.5, fall=0.25)".parse::<ScheduleSpec>().unwrap().to_string(),
        "flow-resolved(resolution=0.05, initial=0.1, grow=1.5, shrink=0.5, memory=0.5, fall=0.25)"
    );
}
