//! Rates of synthetic runs with known exponents and of exactly integrated flows.

use super::*;
use crate::diagnostics::line_fit::{fit_line, student_quantile};
use crate::numeric::{Streams, log_add_exp};

/// A run as owned arrays.
struct Run {
    log_time: Vec<f64>,
    log_loss: Vec<f64>,
    log_norm: Vec<f64>,
    gap: Vec<f64>,
}

impl Run {
    fn series(&self) -> RateSeries<'_> {
        let Self { log_time, log_loss, log_norm, gap } = self;
        RateSeries { log_time, log_loss, log_norm, margin_gap: Some(gap) }
    }
}

/// The aligned flow du/dt = L² γ^{α/L} u^{2 − α/L} e^−u from u = 1 at t = 1, recorded at `us`.
///
/// t = 1 + (1/c) ∫ e^s s^{−a} ds with a = 2 − α/L is summed in logarithms, by the Gauss rule with three nodes on steps
/// of at most 0.05 (relative error below 1e-13). ‖θ‖ = (u/γ)^{1/L}; the gap is that of two tied margins, ln 2/‖θ‖^L.
fn flow(degree: f64, alpha: f64, margin: f64, us: &[f64]) -> Run {
    let (a, c) = (2.0 - alpha / degree, degree * degree * margin.powf(alpha / degree));
    let (mut u, mut log_time) = (1.0, 0.0);
    let mut log_times = Vec::new();
    for &target in us {
        let steps = ((target - u) / 0.05f64).ceil().max(1.0);
        let half = 0.5 * (target - u) / steps;
        for step in 0..steps as u64 {
            let middle = u + half * (2 * step + 1) as f64;
            let nodes = [(-0.6f64.sqrt(), 5.0 / 9.0), (0.0, 8.0 / 9.0), (0.6f64.sqrt(), 5.0 / 9.0)];
            let sum: f64 = nodes.iter().map(|(x, w)| w * (half * x).exp() * (middle + half * x).powf(-a)).sum();
            log_time = log_add_exp(log_time, middle + (half * sum / c).ln());
        }
        u = target;
        log_times.push(log_time);
    }
    Run {
        log_time: log_times,
        log_loss: us.iter().map(|u| -u).collect(),
        log_norm: us.iter().map(|u| (u / margin).ln() / degree).collect(),
        gap: us.iter().map(|u| 2f64.ln() * margin / u).collect(),
    }
}

fn spaced(from: f64, to: f64, count: u32) -> Vec<f64> {
    (0..count).map(|i| from * (to / from).powf(f64::from(i) / f64::from(count - 1))).collect()
}

fn theory(degree: f64, alpha: f64, margin: f64) -> RateTheory {
    RateTheory { degree, alpha, limit_margin: Some(margin) }
}

fn fit_of(report: &RateReport, law: RateLaw) -> &RateFit {
    report.fits.iter().find(|fit| fit.law == law).unwrap()
}

/// Residuals with autocorrelation `rho` and unit innovations, started long before.
fn noise(seed: u64, count: usize, rho: f64) -> Vec<f64> {
    let mut stream = Streams::new(seed).stream("noise");
    let mut value = 0.0;
    let mut draw = || {
        value = rho * value + stream.normal();
        value
    };
    (0..100).for_each(|_| _ = draw());
    (0..count).map(|_| draw()).collect()
}

#[test]
fn student_quantiles_agree_with_the_tables() {
    // Abramowitz and Stegun, table 26.10; the last from scipy.stats.t.ppf(0.975, 1000)
    for (degrees, quantile) in
        [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (30, 2.0423), (1000, 1.9623)]
    {
        assert!((student_quantile(degrees, 0.95) - quantile).abs() < 6e-5, "{degrees}");
    }
    assert!((student_quantile(10, 0.99) - 3.1693).abs() < 6e-5);
}

#[test]
fn intervals_hold_the_exponent_in_ninety_five_of_a_hundred_runs() {
    // seen: 0.948, 0.936, 0.938; the textbook interval for independent points: 0.940, 0.722, 0.454
    let x: Vec<f64> = spaced(70.0, 5000.0, 120).iter().map(|t| t.ln()).collect();
    for rho in [0.0, 0.5, 0.8] {
        let covered = (0..500).filter(|seed| {
            let y: Vec<f64> = x.iter().zip(noise(*seed, x.len(), rho)).map(|(x, e)| 2.0 - 1.5 * x + 0.01 * e).collect();
            let (low, high) = fit_line(&x, &y, 0.95).unwrap().interval;
            low <= -1.5 && -1.5 <= high
        });
        let share = covered.count() as f64 / 500.0;
        assert!((0.92..0.985).contains(&share), "rho {rho}: {share}");
    }
}

#[test]
fn intervals_across_runs_hold_the_exponent_in_ninety_five_of_a_hundred_groups() {
    let log_time = spaced(2.0, 5000.0, 100);
    let zeros = vec![0.0; log_time.len()];
    let covered = (0..200u64).filter(|group| {
        let runs: Vec<Vec<f64>> = (0..5)
            .map(|seed| {
                let noise = noise(1000 + 5 * group + seed, log_time.len(), 0.9);
                log_time.iter().zip(noise).map(|(t, e)| -t - 1.5 * t.ln() + 0.01 * e).collect()
            })
            .collect();
        let runs: Vec<RateSeries<'_>> = runs
            .iter()
            .map(|loss| RateSeries { log_time: &log_time, log_loss: loss, log_norm: &zeros, margin_gap: None })
            .collect();
        let report = fit_rates(&runs, &theory(4.0, 2.0, 1.0), &RateSettings::default()).unwrap();
        let fit = fit_of(&report, RateLaw::LossInLogTime);
        assert_eq!((fit.spread, fit.lines.len(), fit.expected), (Spread::AcrossRuns, 5, -1.5));
        fit.interval.0 <= -1.5 && -1.5 <= fit.interval.1
    });
    let share = covered.count() as f64 / 200.0;
    assert!((0.91..0.99).contains(&share), "{share}");
}

#[test]
fn the_exact_flow_shows_the_exponents_of_the_theorems() {
    // steepest flows of degree 1, 2, 3 and a mirror flow with α = 1, to e^5000
    for (degree, alpha) in [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0), (2.0, 1.0)] {
        let run = flow(degree, alpha, 0.5, &spaced(1.5, 5000.0, 200));
        let report = fit_rates(&[run.series()], &theory(degree, alpha, 0.5), &RateSettings::default()).unwrap();
        let exponent = 2.0 - alpha / degree;
        for fit in &report.fits {
            let tolerance = match fit.law {
                RateLaw::LossInTime => 5e-3,
                RateLaw::LossInItsLog => 2e-2 * exponent + 1e-9,
                _ => 6e-2 * (1.0 + exponent),
            };
            assert!((fit.slope - fit.expected).abs() < tolerance, "{degree} {alpha}: {fit:?}");
            assert!((fit.limit - fit.expected).abs() < 2e-3, "{degree} {alpha}: {fit:?}");
            assert_ne!(fit.approach, Approach::Disagrees, "{degree} {alpha}: {fit:?}");
        }
        assert_eq!(fit_of(&report, RateLaw::LossInLogTime).expected, -exponent);
        assert_eq!(fit_of(&report, RateLaw::NormInLogTime).expected, 1.0 / degree);
        let (from, to) = report.windows[0].log_time;
        assert!((60.0..120.0).contains(&from) && to > 4900.0, "{from} {to}");
        assert!((report.constant.unwrap().last - 1.0).abs() < 6e-3, "{:?}", report.constant);
    }
}

#[test]
fn the_constant_of_the_rate_agrees_with_the_catalogue() {
    // claims C.thm4.6: the exact one-dimensional flow of degree 2; its margin ½ follows from the first value
    for (u, ratio) in [(20.0, 0.864), (100.0, 0.957), (400.0, 0.986), (2000.0, 0.996)] {
        let run = flow(2.0, 2.0, 0.5, &spaced(1.5, u, 60));
        let report = fit_rates(&[run.series()], &theory(2.0, 2.0, 0.5), &RateSettings::default()).unwrap();
        let found = report.constant.unwrap().last;
        assert!((found - ratio).abs() < 6e-4, "u = {u}: {found}");
    }
}

#[test]
fn a_slow_approach_is_told_from_a_wrong_exponent() {
    let run = flow(2.0, 2.0, 0.5, &spaced(1.5, 300.0, 120));
    let right = fit_rates(&[run.series()], &theory(2.0, 2.0, 0.5), &RateSettings::default()).unwrap();
    let slow = fit_of(&right, RateLaw::LossInLogTime);
    assert_eq!(slow.approach, Approach::Approaching, "{slow:?}");
    // at u = 100 the local slope is off by (ln u + ln c − 1)/u = 0.043, with c = 2
    assert!((0.03..0.06).contains(&(slow.slope - slow.expected)) && slow.drift < -0.04, "{slow:?}");
    let sharp = fit_of(&right, RateLaw::LossInItsLog);
    assert!((sharp.slope - sharp.expected).abs() < 0.5 * (slow.slope - slow.expected), "{sharp:?}");
    let wrong = fit_rates(&[run.series()], &theory(3.0, 2.0, 0.5), &RateSettings::default()).unwrap();
    for law in [RateLaw::LossInLogTime, RateLaw::LossInItsLog, RateLaw::NormInLogTime] {
        assert_eq!(fit_of(&wrong, law).approach, Approach::Disagrees, "{:?}", fit_of(&wrong, law));
    }
}

#[test]
fn the_gap_may_close_faster_but_not_more_slowly() {
    let mut run = flow(1.0, 2.0, 1.0, &spaced(1.5, 1000.0, 100));
    let gap_of = |run: &Run| {
        let report = fit_rates(&[run.series()], &theory(1.0, 2.0, 1.0), &RateSettings::default()).unwrap();
        fit_of(&report, RateLaw::GapInLogTime).clone()
    };
    assert_eq!(gap_of(&run).bound, RateBound::AtMost);
    run.gap.iter_mut().for_each(|gap| *gap = gap.powi(2));
    let fast = gap_of(&run);
    assert!(fast.slope < -1.9 && fast.approach == Approach::Agrees, "{fast:?}");
    run.gap.iter_mut().for_each(|gap| *gap = gap.powf(0.25));
    assert_eq!(gap_of(&run).approach, Approach::Disagrees);
    // for α > 2 the theorem of the loss is an upper bound, that of the norm a lower one
    let bounds = RateTheory { degree: 2.0, alpha: 3.0, limit_margin: None };
    assert_eq!(RateLaw::LossInLogTime.expected(&bounds), (-0.5, RateBound::AtMost));
    assert_eq!(RateLaw::NormInLogTime.expected(&bounds), (0.5, RateBound::AtLeast));
}

#[test]
fn a_line_without_scatter_has_no_interval_beyond_rounding() {
    let x: Vec<f64> = (0..30).map(f64::from).collect();
    let y: Vec<f64> = x.iter().map(|x| 4.0 - 0.25 * x).collect();
    let line = fit_line(&x, &y, 0.95).unwrap();
    assert!((line.slope + 0.25).abs() < 1e-15 && (line.intercept - 4.0).abs() < 1e-14 && line.r_squared > 1.0 - 1e-15);
    assert!(line.interval.0 <= -0.25 && -0.25 <= line.interval.1 && line.interval.1 - line.interval.0 < 1e-13);
}

#[test]
fn unusable_points_are_refused_by_name() {
    let settings = RateSettings::default();
    let plain = theory(1.0, 2.0, 1.0);
    let run = || flow(1.0, 2.0, 1.0, &spaced(1.5, 200.0, 60));
    let refuse = |change: fn(&mut Run)| {
        let mut run = run();
        change(&mut run);
        fit_rates(&[run.series()], &plain, &settings).unwrap_err().to_string()
    };
    assert!(refuse(|run| run.log_loss[3] = f64::NAN).starts_with("ln L is NaN at point 3"));
    assert!(refuse(|run| run.log_norm[50] = f64::NAN).starts_with("ln of the norm is NaN at point 50"));
    assert!(refuse(|run| run.gap[59] = -1e-17).contains("the margin gap is -0.00000000000000001 at point 59"));
    assert!(refuse(|run| run.log_time[20] = 0.0).starts_with("ln t is 0 at point 20"));
    assert!(refuse(|run| run.log_time[59] = f64::INFINITY).starts_with("ln t is inf at point 59"));
    assert!(refuse(|run| run.log_norm.truncate(7)).contains("has 7 entries where 60 are needed"));
    assert!(refuse(|run| run.log_loss.iter_mut().for_each(|loss| *loss = -0.5)).contains("has 0 points"));
    let few = flow(1.0, 2.0, 1.0, &spaced(1.5, 200.0, 25));
    let error = fit_rates(&[few.series()], &plain, &settings).unwrap_err();
    assert!(matches!(error, RateError::TooFewPoints { needed: FEWEST_LATE_POINTS, .. }), "{error}");
    let whole = RateSettings { late: 1.0, ..settings };
    assert!(fit_rates(&[few.series()], &plain, &whole).is_ok());
    assert!(fit_rates(&[], &plain, &settings).is_err());
    for bad in [theory(0.0, 2.0, 1.0), theory(1.0, 0.5, 1.0), theory(1.0, 2.0, -1.0), theory(f64::NAN, 2.0, 1.0)] {
        assert!(matches!(fit_rates(&[run().series()], &bad, &settings), Err(RateError::Setting { .. })), "{bad:?}");
    }
    assert!(fit_rates(&[run().series()], &plain, &RateSettings { late: 0.0, ..settings }).is_err());
    let (x, y) = ([1.0; 9], [2.0; 9]);
    assert!(matches!(fit_line(&x, &y, 0.95), Err(RateError::NoSpread { points: 9, .. })));
    assert!(matches!(fit_line(&x, &y, 1.0), Err(RateError::Setting { .. })));
    assert!(matches!(fit_line(&x[..3], &y[..3], 0.95), Err(RateError::TooFewPoints { found: 3, .. })));
    assert!(matches!(fit_line(&x, &y[..3], 0.95), Err(RateError::Length { found: 3, .. })));
}
