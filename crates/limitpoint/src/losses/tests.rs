//! Laws that every loss obeys, over all of [`LossSpec::examples`].

use proptest::prelude::*;

use super::{Loss, LossFamily, LossSpec, Tail, soft_margin};
use crate::numeric::log_sum_exp;

/// Every loss, a few with other settings too.
fn all_losses() -> Vec<(LossSpec, Box<dyn Loss>)> {
    let more = [
        LossSpec::PowerExponential { k: 5 },
        LossSpec::PowerLogistic { k: 1 },
        LossSpec::Huber { delta: 0.3 },
        LossSpec::TruncatedSquared { threshold: 4.0 },
    ];
    LossSpec::examples().into_iter().chain(more).map(|spec| (spec.clone(), spec.build().unwrap())).collect()
}

fn margin_losses() -> Vec<(LossSpec, Box<dyn Loss>)> {
    all_losses().into_iter().filter(|(_, loss)| loss.family() == LossFamily::Margin).collect()
}

/// A grid on [low, high].
fn grid(low: f64, high: f64, points: usize) -> impl Iterator<Item = f64> {
    (0..=points).map(move |i| low + (high - low) * i as f64 / points as f64)
}

/// A grid that visits every decade of [low, high].
fn log_grid(low: f64, high: f64, points: usize) -> impl Iterator<Item = f64> {
    grid(low.ln(), high.ln(), points).map(f64::exp)
}

/// The margin losses, each with the |q| from which f(q) determines q: a power is flat at 0.
fn tails() -> Vec<(LossSpec, Box<dyn Loss>, f64)> {
    margin_losses()
        .into_iter()
        .map(|(spec, loss)| {
            let flat_until = match spec {
                LossSpec::PowerExponential { k } | LossSpec::PowerLogistic { k } if k > 1 => 0.05,
                _ => 0.0,
            };
            (spec, loss, flat_until)
        })
        .collect()
}

/// Lo.1 and Lo.2.
#[test]
fn g_inverts_f_and_their_slopes_are_reciprocal() {
    for (spec, loss, flat_until) in tails() {
        let tail = loss.tail().unwrap();
        for q in grid(-20.0, 2000.0, 4040).chain(grid(-20.0, 20.0, 1001)).filter(|q| q.abs() >= flat_until) {
            let u = tail.f(q);
            // near a flat point u carries fewer digits of q: allow one rounding of u, seen through g′
            let blur = 4.0 * f64::EPSILON * u.abs().max(1.0) * tail.g_prime(u);
            let error = (tail.g(u) - q).abs();
            assert!(error <= 1e-12 * q.abs().max(1.0) + blur, "{spec}: q = {q}, error {error:e}");
            let product = tail.g_prime(u) * tail.f_prime(q);
            assert!((product - 1.0).abs() <= 1e-9, "{spec}: q = {q}, g′f′ = {product}");
        }
    }
}

#[test]
fn f_prime_is_the_derivative_of_f() {
    for (spec, loss, flat_until) in tails() {
        let tail = loss.tail().unwrap();
        for q in grid(-19.7, 40.3, 601).filter(|q| q.abs() > flat_until + 0.01) {
            let h = 1e-5 * q.abs().max(1.0);
            let difference = (tail.f(q + h) - tail.f(q - h)) / (2.0 * h);
            let exact = tail.f_prime(q);
            assert!((difference - exact).abs() <= 1e-6 * exact.abs().max(1e-3), "{spec}: {q} {difference} {exact}");
        }
    }
}

/// Lo.3; for the logistic loss on the whole line.
#[test]
fn margin_times_slope_never_decreases() {
    for (spec, loss) in margin_losses() {
        let tail = loss.tail().unwrap();
        assert!(tail.b_f() >= 0.0);
        let from = if matches!(spec, LossSpec::Logistic) { -700.0 } else { tail.b_f() };
        let mut last = f64::NEG_INFINITY;
        for q in grid(from, 60.0, 40_000).chain(grid(60.0, 3000.0, 4000)) {
            let product = q * tail.f_prime(q);
            assert!(product >= last - 1e-13 * last.abs(), "{spec}: {q}");
            last = product;
        }
        assert!(last > 1000.0, "{spec}: q f′(q) must be unbounded");
    }
}

/// Lo.4: the constants of (B3.4), by a dense scan.
#[test]
fn growth_constants_hold_and_are_not_idle() {
    for (spec, loss) in margin_losses() {
        let tail = loss.tail().unwrap();
        let (k, b_f, b_g) = (tail.growth_constant(), tail.b_f(), tail.b_g());
        assert!(b_g >= (2.0 * tail.f(b_f)).max(tail.f(2.0 * b_f)) - 1e-15, "{spec}");
        let start = tail.g(b_g);
        let mut worst = 0.0f64;
        for theta in [0.5, 0.6, 0.75, 0.9, 0.999] {
            for step in log_grid(1e-6, 3000.0, 3000) {
                let (u, q) = (b_g + step, start + step);
                worst = worst.max(tail.g_prime(u) / tail.g_prime(theta * u));
                worst = worst.max(tail.f_prime(q) / tail.f_prime(theta * q));
            }
        }
        assert!(worst <= k * (1.0 + 1e-12), "{spec}: {worst} > {k}");
        assert!(worst >= 0.7 * k, "{spec}: {worst} is far below {k}");
    }
}

/// The two families by scanning one margin: B.prop1 and B.prop2.
#[test]
fn losses_fall_into_their_families() {
    for (spec, loss) in all_losses() {
        assert_eq!(spec.family(), loss.family());
        match loss.family() {
            LossFamily::Margin => {
                let mut last = f64::INFINITY;
                for q in grid(-50.0, 50.0, 2000).chain(log_grid(51.0, 1e6, 300)) {
                    let value = loss.log_example_loss(&[q]);
                    // a power is flat at 0 to the last bit of 1 + q³
                    assert!(value < last || (value == last && q.abs() < 1e-2), "{spec}: {q}");
                    assert!(value.is_finite());
                    last = value;
                }
                assert!(last <= -1e6 + 1e-9, "{spec}: infimum 0");
                assert!(loss.tail().is_some());
            }
            LossFamily::Regression => {
                assert_eq!(loss.log_example_loss(&[0.0]), f64::NEG_INFINITY);
                for r in log_grid(1e-300, 1e6, 500) {
                    let (right, left) = (loss.log_example_loss(&[r]), loss.log_example_loss(&[-r]));
                    assert!(right.is_finite() && right == left, "{spec}: {r}");
                    assert!(right >= loss.log_example_loss(&[0.99 * r]), "{spec}: {r}");
                }
                assert!(loss.tail().is_none() && soft_margin(-1.0, loss.as_ref()).is_none());
            }
        }
    }
}

/// Plain arithmetic, where it is finite.
fn direct(spec: &LossSpec, margins: &[f64], per_example: usize) -> f64 {
    let each = |h: &dyn Fn(f64) -> f64| margins.iter().map(|&q| h(q)).sum::<f64>();
    match *spec {
        LossSpec::Exponential | LossSpec::MulticlassExponential => each(&|q| (-q).exp()),
        LossSpec::Logistic => each(&|q| (-q).exp().ln_1p()),
        LossSpec::CrossEntropy => {
            margins.chunks(per_example).map(|s| s.iter().map(|x| (-x).exp()).sum::<f64>().ln_1p()).sum()
        }
        LossSpec::PowerExponential { k } => each(&|q| (-q.powi(k as i32)).exp()),
        LossSpec::PowerLogistic { k } => each(&|q| (-q.powi(k as i32)).exp().ln_1p()),
        LossSpec::Probit => each(&|q| -normal_distribution(q).ln()),
        LossSpec::Squared => each(&|r| r * r),
        LossSpec::Huber { delta } => {
            each(&|r| if r.abs() <= delta { r * r } else { 2.0 * delta * r.abs() - delta * delta })
        }
        LossSpec::TruncatedSquared { threshold } => each(&|r| (r * r).min(threshold * threshold)),
    }
}

/// Φ by Simpson's rule from −12.
fn normal_distribution(q: f64) -> f64 {
    let (low, panels) = (-12.0, 2000);
    let h = (q - low) / f64::from(panels);
    let density = |x: f64| (-0.5 * x * x).exp();
    let inner: f64 = (1..panels).map(|i| if i % 2 == 1 { 4.0 } else { 2.0 } * density(low + h * f64::from(i))).sum();
    h / 3.0 * (density(low) + inner + density(q)) / (2.0 * std::f64::consts::PI).sqrt()
}

#[test]
fn the_log_domain_agrees_with_plain_arithmetic() {
    let sets: [&[f64]; 4] = [
        &[0.3, -1.2, 2.0, 0.9, 0.1, 1.5],
        &[1.5, 2.5, 0.4, 0.6],
        &[-0.3, -1.9],
        &[0.2, 0.9, 1.1, 1.4, 2.0, 1.9, 0.7, 3.0],
    ];
    for (spec, loss) in all_losses() {
        for margins in sets {
            let expected = direct(&spec, margins, 2).ln();
            let value = loss.log_loss(margins, 2);
            // Simpson's rule limits the probit comparison
            let tolerance = if matches!(spec, LossSpec::Probit) { 1e-9 } else { 1e-12 };
            assert!((value - expected).abs() <= tolerance * expected.abs().max(1.0), "{spec}: {value} {expected}");
        }
    }
}

/// Expected numbers from mpmath with 60 digits, see the head of the file.
#[test]
fn losses_and_weights_have_their_reference_values() {
    let numbers = |text: &str| text.split(',').map(|x| x.parse().unwrap()).collect::<Vec<f64>>();
    let mut rows = 0;
    for line in include_str!("references.txt").lines().filter(|line| !line.starts_with('#')) {
        let [key, margins, log_loss, weights] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (margins, expected) = (numbers(margins), numbers(weights));
        let loss = key.parse::<LossSpec>().unwrap().build().unwrap();
        let mut weights = vec![f64::NAN; margins.len()];
        let value = loss.evaluate(&margins, 1, &mut weights);
        let log_loss: f64 = log_loss.parse().unwrap();
        assert!((value - log_loss).abs() <= 4e-15 * log_loss.abs().max(1.0), "{line}: {value}");
        for (weight, expected) in weights.iter().zip(expected) {
            assert!((weight - expected).abs() <= 1e-12 * expected + 1e-300, "{line}: {weight:e}");
        }
        rows += 1;
    }
    assert_eq!(rows, 50);
}

#[test]
fn extreme_margins_stay_finite_and_weights_point_at_the_worst() {
    let mixtures: [&[f64]; 6] = [
        &[1e6, -1e6],
        &[1e6, 1e6 + 1.0],
        &[-1e6, -1e6 + 1.0],
        &[-1e6, 0.0, 1e6, 5.0],
        &[0.0, 1e6],
        &[1000.0, 1000.0, 1e6, 1001.0],
    ];
    for (spec, loss) in all_losses() {
        for margins in mixtures {
            let mut weights = vec![f64::NAN; margins.len()];
            let per_example = if spec.is_multiclass() { 2 } else { 1 };
            let log_loss = loss.evaluate(margins, per_example, &mut weights);
            assert!(log_loss.is_finite(), "{spec} {margins:?}");
            assert!(weights.iter().all(|w| w.is_finite()), "{spec} {margins:?} {weights:?}");
            assert_eq!(log_loss.to_bits(), loss.log_loss(margins, per_example).to_bits(), "{spec}");
            if loss.family() == LossFamily::Margin {
                assert!(weights.iter().all(|w| *w >= 0.0));
                // f(qmin) − ln N ≤ u ≤ f(qmin), with q̃ in place of q for many classes
                let least = margins
                    .chunks(if matches!(spec, LossSpec::CrossEntropy) { 2 } else { 1 })
                    .map(|s| -log_sum_exp(&s.iter().map(|x| -x).collect::<Vec<_>>()))
                    .fold(f64::INFINITY, f64::min);
                let top = loss.tail().unwrap().f(least);
                let slack = 1e-12 * top.abs().max(1.0);
                assert!(-log_loss <= top + slack, "{spec} {margins:?}");
                assert!(-log_loss >= top - (margins.len() as f64).ln() - slack, "{spec} {margins:?}");
            }
        }
    }
}

/// ln L = −10⁶ behaves like ln L = −1: a common shift of the margins is a shift of ln L and leaves the weights alone.
#[test]
fn exponential_tails_are_shift_invariant() {
    let base = [0.0, 0.25, 1.5, 3.0, 20.0, 0.125];
    for spec in [LossSpec::Exponential, LossSpec::Logistic, LossSpec::CrossEntropy, LossSpec::MulticlassExponential] {
        let loss = spec.build().unwrap();
        let mut weights = [[0.0; 6]; 2];
        let logs: Vec<f64> = [64.0, (1u32 << 20) as f64]
            .iter()
            .zip(&mut weights)
            .map(|(shift, weights)| loss.evaluate(&base.map(|q| q + shift), 3, weights) + shift)
            .collect();
        assert!((logs[0] - logs[1]).abs() < 2e-10, "{spec}"); // one rounding at 10⁶
        assert!(weights[0].iter().zip(weights[1]).all(|(a, b)| (a - b).abs() <= 1e-14 * b), "{spec}");
        assert!((weights[0].iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }
}

#[test]
fn not_a_number_is_never_hidden() {
    for (spec, loss) in all_losses() {
        for margins in
            [[f64::NAN, 1.0, 2.0, 3.0], [1e6, -1e6, 0.0, f64::NAN], [f64::NAN; 4], [f64::INFINITY, f64::NAN, 1e5, 1e5]]
        {
            let mut weights = [0.0; 4];
            assert!(loss.evaluate(&margins, 2, &mut weights).is_nan(), "{spec} {margins:?}");
            assert!(weights.iter().any(|w| w.is_nan()), "{spec}");
            assert!(loss.log_loss(&margins, 2).is_nan(), "{spec}");
        }
    }
}

#[test]
fn infinite_margins_and_none_at_all() {
    for (spec, loss) in margin_losses() {
        let mut weights = [1.0; 2];
        assert_eq!(loss.log_loss(&[], 1), f64::NEG_INFINITY);
        assert_eq!(loss.evaluate(&[f64::INFINITY; 2], 1, &mut weights), f64::NEG_INFINITY, "{spec}");
        assert_eq!(weights, [0.0; 2]);
        assert_eq!(loss.evaluate(&[f64::NEG_INFINITY, 0.0], 1, &mut weights), f64::INFINITY, "{spec}");
        assert!(weights.iter().all(|w| w.is_nan()));
        // one finished example leaves the loss of the other, from either side of 0
        for q in [2.0, -2.0] {
            let log_loss = loss.evaluate(&[f64::INFINITY, q], 1, &mut weights);
            assert!((log_loss - loss.log_example_loss(&[q])).abs() < 1e-14, "{spec}");
            assert!(weights[0] == 0.0 && weights[1] > 0.0, "{spec}");
        }
    }
}

/// The weights of `loss` against central differences of ln L.
fn check_weights(spec: &LossSpec, loss: &dyn Loss, margins: &[f64], per_example: usize) -> Result<(), TestCaseError> {
    let mut weights = vec![f64::NAN; margins.len()];
    let log_loss = loss.evaluate(margins, per_example, &mut weights);
    prop_assert_eq!(log_loss.to_bits(), loss.log_loss(margins, per_example).to_bits());
    // a steep loss of two margins that are nearly equal bends within the inverse of its slope
    let steepest = margins.iter().fold(1.0, |most: f64, &q| {
        let slope =
            (loss.log_example_loss(&vec![q - 1e-3; per_example]) - loss.log_example_loss(&vec![q; per_example])) / 1e-3;
        if slope.is_finite() { most.max(slope.abs()) } else { most }
    });
    let h = 1e-4f64.min(1e-2 / steepest);
    for i in 0..margins.len() {
        // a difference quotient across a kink proves nothing
        let kink = match *spec {
            LossSpec::Huber { delta } => delta,
            LossSpec::TruncatedSquared { threshold } => threshold,
            _ => f64::INFINITY,
        };
        if (margins[i].abs() - kink).abs() < 3.0 * h {
            continue;
        }
        let mut moved = margins.to_vec();
        let mut at = |steps: f64| {
            moved[i] = margins[i] + steps * h;
            loss.log_loss(&moved, per_example)
        };
        // fourth order, since the fifth power bends fast
        let difference = (8.0 * (at(-1.0) - at(1.0)) + at(2.0) - at(-2.0)) / (12.0 * h);
        let rounding = 16.0 * f64::EPSILON * log_loss.abs().max(1.0) / h;
        let tolerance = 1e-6 * weights[i].abs().max(1e-2) + rounding;
        prop_assert!(
            (difference - weights[i]).abs() <= tolerance,
            "{}: {:?} {} {}",
            spec,
            margins,
            difference,
            weights[i]
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn weights_are_minus_the_gradient(margins in prop::collection::vec(-3.0..6.0f64, 1..5), shift in -2.0..2.0f64) {
        let margins: Vec<f64> = margins.iter().flat_map(|q| [q + shift, 1.5 - q, 0.5 * q]).collect();
        // squared residuals must not all vanish
        prop_assume!(margins.iter().any(|q| q.abs() > 0.2));
        for (spec, loss) in all_losses() {
            check_weights(&spec, loss.as_ref(), &margins, 3)?;
        }
    }

    #[test]
    fn weights_are_minus_the_gradient_far_out(gaps in prop::collection::vec(0.0..2.0f64, 3..9), shift in 10.0..400.0f64) {
        let margins: Vec<f64> = gaps.iter().map(|q| q + shift).collect();
        for spec in [LossSpec::Exponential, LossSpec::Logistic, LossSpec::CrossEntropy, LossSpec::MulticlassExponential] {
            let count = margins.len() / 3 * 3;
            check_weights(&spec, spec.build().unwrap().as_ref(), &margins[..count], 3)?;
        }
    }

    #[test]
    fn the_order_of_examples_does_not_matter(margins in prop::collection::vec(-4.0..9.0f64, 2..40), turn in 1usize..40) {
        for (spec, loss) in all_losses() {
            let mut turned = margins.clone();
            turned.rotate_left(turn % margins.len());
            let (mut weights, mut turned_weights) = (vec![0.0; margins.len()], vec![0.0; margins.len()]);
            let log_loss = loss.evaluate(&margins, 1, &mut weights);
            let again = loss.evaluate(&turned, 1, &mut turned_weights);
            prop_assert!((log_loss - again).abs() <= 1e-13 * log_loss.abs().max(1.0), "{}", spec);
            weights.rotate_left(turn % margins.len());
            for (a, b) in weights.iter().zip(&turned_weights) {
                prop_assert!((a - b).abs() <= 1e-13 * b.abs(), "{}", spec);
            }
        }
    }

    /// D.lemA5, and the soft margin below the hard one.
    #[test]
    fn the_loss_brackets_the_margin(margins in prop::collection::vec(-5.0..5.0f64, 1..30), size in 0.01..200.0f64) {
        let margins: Vec<f64> = margins.iter().map(|q| q * size).collect();
        let least = margins.iter().copied().fold(f64::INFINITY, f64::min);
        for (spec, loss) in margin_losses() {
            let tail: &dyn Tail = loss.tail().unwrap();
            let log_loss = loss.log_loss(&margins, 1);
            let top = tail.f(least);
            let slack = 1e-12 * top.abs().max(1.0);
            prop_assert!(-log_loss <= top + slack, "{}", spec);
            prop_assert!(-log_loss >= top - (margins.len() as f64).ln() - slack, "{}", spec);
            let soft = soft_margin(log_loss, loss.as_ref()).unwrap();
            prop_assert!(soft <= least + 1e-5 * least.abs().max(1.0), "{} {} {}", spec, soft, least);
            if log_loss < tail.log_threshold() {
                prop_assert!(least > 0.0 && soft > -1e-9, "{}", spec);
            }
        }
    }

    #[test]
    fn raising_a_margin_never_raises_the_loss(
        margins in prop::collection::vec(-50.0..300.0f64, 2..12), place in 0usize..12, rise in 0.0..50.0f64
    ) {
        for (spec, loss) in margin_losses() {
            let before = loss.log_loss(&margins, 1);
            let mut raised = margins.clone();
            let place = place % margins.len();
            raised[place] += rise;
            prop_assert!(loss.log_loss(&raised, 1) <= before + 1e-14 * before.abs().max(1.0), "{}", spec);
        }
    }

    #[test]
    fn the_sum_is_the_sum_of_the_examples(margins in prop::collection::vec(-20.0..60.0f64, 1..12)) {
        let margins: Vec<f64> = margins.iter().flat_map(|q| [*q, 3.0 - q]).collect();
        for (spec, loss) in all_losses() {
            let per_example = if spec.is_multiclass() { 2 } else { 1 };
            let parts: Vec<f64> = margins.chunks(per_example).map(|s| loss.log_example_loss(s)).collect();
            let total = loss.log_loss(&margins, per_example);
            prop_assert!((total - log_sum_exp(&parts)).abs() <= 1e-13 * total.abs().max(1.0), "{}", spec);
        }
    }
}
