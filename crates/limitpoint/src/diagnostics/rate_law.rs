//! One law of the rates, fitted to the late part of runs.

use super::line_fit::{RateError, fit_line, least_squares, mean, student_quantile};
use super::rates::{Approach, LocalSlope, RateBound, RateFit, RateLaw, RateSeries, RateTheory, Spread};

/// A slope this close to the exponent agrees with it, however narrow the interval: a run without scatter still keeps a
/// remainder of its transient.
const CLOSE: f64 = 1e-3;

/// Stretches of the window whose slopes are reported one by one.
const STRETCHES: usize = 4;

/// The points of one run as a law wants them.
pub(super) struct Points {
    log_time: Vec<f64>,
    x: Vec<f64>,
    y: Vec<f64>,
}

impl RateLaw {
    /// The line in words, y against x.
    pub fn formula(self) -> &'static str {
        match self {
            Self::LossInTime => "ln L against ln t",
            Self::LossInLogTime => "ln L + ln t against ln ln t",
            Self::LossInItsLog => "ln L + ln t against ln ln 1/L",
            Self::NormInLogTime => "ln ‖θ‖ against ln ln t",
            Self::GapInLogTime => "ln(γ − γ(t)) against ln ln t",
        }
    }

    /// The exponent of the theorem, and what it says of it.
    pub fn expected(self, theory: &RateTheory) -> (f64, RateBound) {
        let beyond = theory.alpha > 2.0;
        let (at_most, at_least) =
            if beyond { (RateBound::AtMost, RateBound::AtLeast) } else { (RateBound::Exact, RateBound::Exact) };
        match self {
            Self::LossInTime => (-1.0, at_most),
            Self::LossInLogTime | Self::LossInItsLog => (theory.alpha / theory.degree - 2.0, at_most),
            Self::NormInLogTime => (1.0 / theory.degree, at_least),
            Self::GapInLogTime => (-1.0, RateBound::AtMost),
        }
    }

    pub(super) fn points(self, run: &RateSeries<'_>, first: usize) -> Result<Points, RateError> {
        let log_time = run.log_time[first..].to_vec();
        let (times, losses) = (run.log_time[first..].iter(), run.log_loss[first..].iter());
        let log_log_time = || times.clone().map(|t| t.ln()).collect();
        let sums = || times.clone().zip(losses.clone()).map(|(t, loss)| loss + t).collect();
        let (x, y): (Vec<f64>, Vec<f64>) = match self {
            Self::LossInTime => (log_time.clone(), losses.copied().collect()),
            Self::LossInLogTime => (log_log_time(), sums()),
            Self::LossInItsLog => (losses.clone().map(|loss| (-loss).ln()).collect(), sums()),
            Self::NormInLogTime => (log_log_time(), run.log_norm[first..].to_vec()),
            Self::GapInLogTime => {
                let gaps = run.margin_gap.unwrap_or_default().iter().enumerate().skip(first);
                let logs = gaps.map(|(index, gap)| match gap {
                    gap if *gap > 0.0 && gap.is_finite() => Ok(gap.ln()),
                    &value => Err(RateError::Value { what: "the margin gap", index, value, range: POSITIVE_GAP }),
                });
                (log_log_time(), logs.collect::<Result<_, _>>()?)
            }
        };
        if let Some(place) = y.iter().position(|y| !y.is_finite()) {
            let what = if self == Self::NormInLogTime { "ln of the norm" } else { "ln L + ln t" };
            return Err(RateError::Value { what, index: first + place, value: y[place], range: "finite" });
        }
        Ok(Points { log_time, x, y })
    }

    /// The intercept of the local slopes against their leading correction.
    fn extrapolate(self, local_slopes: &[LocalSlope]) -> Result<f64, RateError> {
        let correction = |local: &LocalSlope| match self {
            Self::LossInTime | Self::LossInItsLog => 1.0 / local.log_time,
            Self::LossInLogTime | Self::NormInLogTime | Self::GapInLogTime => local.log_time.ln() / local.log_time,
        };
        let x: Vec<f64> = local_slopes.iter().map(correction).collect();
        let y: Vec<f64> = local_slopes.iter().map(|local| local.slope).collect();
        Ok(mean(&y) - least_squares(&x, &y)?.slope * mean(&x))
    }

    pub(super) fn fit(self, runs: &[Points], theory: &RateTheory, confidence: f64) -> Result<RateFit, RateError> {
        let (expected, bound) = self.expected(theory);
        let lines = runs.iter().map(|run| fit_line(&run.x, &run.y, confidence)).collect::<Result<Vec<_>, _>>()?;
        let (slope, interval, spread) = match lines.as_slice() {
            [line] => (line.slope, line.interval, Spread::AlongRun),
            lines => {
                let slopes: Vec<f64> = lines.iter().map(|line| line.slope).collect();
                let (slope, interval) = mean_interval(&slopes, confidence);
                (slope, interval, Spread::AcrossRuns)
            }
        };
        let local_slopes = (0..STRETCHES).map(|stretch| local_slope(runs, stretch)).collect::<Result<Vec<_>, _>>()?;
        let limit = self.extrapolate(&local_slopes)?;
        let distances: Vec<f64> = local_slopes.iter().map(|local| (local.slope - expected).abs()).collect();
        let closing = distances.windows(2).all(|pair| pair[1] < pair[0])
            && (limit - expected).abs() <= 0.5 * (slope - expected).abs();
        let within = match bound {
            RateBound::Exact => interval.0 <= expected && expected <= interval.1,
            RateBound::AtMost => interval.0 <= expected,
            RateBound::AtLeast => expected <= interval.1,
        };
        let approach = if within || (slope - expected).abs() <= CLOSE {
            Approach::Agrees
        } else if closing {
            Approach::Approaching
        } else {
            Approach::Disagrees
        };
        Ok(RateFit {
            law: self,
            expected,
            bound,
            slope,
            interval,
            within,
            spread,
            r_squared: lines.iter().map(|line| line.r_squared).fold(f64::NAN, f64::min),
            drift: local_slopes[STRETCHES - 1].slope - local_slopes[0].slope,
            local_slopes,
            limit,
            approach,
            lines,
        })
    }
}

/// What the error of a gap says.
const POSITIVE_GAP: &str = "positive and finite: below the limit margin by more than rounding";

/// The mean of independent values, and its interval by Student's t.
fn mean_interval(values: &[f64], confidence: f64) -> (f64, (f64, f64)) {
    let (centre, count) = (mean(values), values.len() as f64);
    let variance = values.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (count - 1.0);
    let half = student_quantile(values.len() as u32 - 1, confidence) * (variance / count).sqrt();
    (centre, (centre - half, centre + half))
}

/// The slope of one stretch, averaged over the runs.
fn local_slope(runs: &[Points], stretch: usize) -> Result<LocalSlope, RateError> {
    let (mut log_times, mut slopes) = (Vec::with_capacity(runs.len()), Vec::with_capacity(runs.len()));
    for run in runs {
        let cut = |stretch: usize| stretch * run.x.len() / STRETCHES;
        let range = cut(stretch)..cut(stretch + 1);
        log_times.push(mean(&run.log_time[range.clone()]));
        slopes.push(least_squares(&run.x[range.clone()], &run.y[range])?.slope);
    }
    Ok(LocalSlope { log_time: mean(&log_times), slope: mean(&slopes) })
}
