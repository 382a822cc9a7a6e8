//! How fast the loss falls, the norm grows and the margin closes, against the theorems.
//!
//! With t the time (Σ η for descent), L the degree of homogeneity and α that of the mirror potential (2 for steepest
//! flows), u = ln 1/L(t) and γ the limit margin:
//!
//! ```text
//! L(t) = Θ(1 / (t (ln t)^{2 − α/L}))                A Lemma A.6, D Theorem 4.3, Corollary A.11 (α = 2), C Theorem 4.6
//! ‖θ(t)‖ = Θ((ln t)^{1/L})                          the same; for mirror flows ‖θ‖ stands for (αQ)^{1/α}
//! γ − γ(t) = O(1/ln t)                              Soudry et al. 2018, Theorem 5, for linear models
//! L(t) · t · (ln t)^{2 − α/L} → 1/(L² γ^{α/L})      Ct.rate
//! ```
//!
//! Taking logarithms makes each of them a line whose slope is an exponent:
//!
//! | law | y | x | slope |
//! |---|---|---|---|
//! | [`RateLaw::LossInTime`] | ln L | ln t | −1 |
//! | [`RateLaw::LossInLogTime`] | ln L + ln t | ln ln t | −(2 − α/L) |
//! | [`RateLaw::LossInItsLog`] | ln L + ln t | ln u | −(2 − α/L) |
//! | [`RateLaw::NormInLogTime`] | ln ‖θ‖ | ln ln t | 1/L |
//! | [`RateLaw::GapInLogTime`] | ln(γ − γ(t)) | ln ln t | −1 or less |
//!
//! These exponents are limits. On the exact flow the slope in ln ln t is off by a factor 1 − O(ln u/u), which at u =
//! 100 is still 4 %; since ln t = u − (2 − α/L) ln u + O(1), the same line against ln u is off by O(1/u) only. A slope
//! can so be outside its interval although the theorem holds: the interval speaks of scatter, the local slopes and
//! their extrapolation of the approach. For the loss exp(−qᵏ) give the degree kL and the margin γᵏ, since qᵏ is
//! homogeneous of degree kL. α > 2 turns the laws of loss and norm into bounds.

use serde::{Deserialize, Serialize};

use super::line_fit::{LineFit, RateError, check_confidence, mean};

/// Fewest points in the late window of a run.
pub const FEWEST_LATE_POINTS: usize = 20;

/// One run, a value per recorded point, in the order of time.
///
/// Everything that can be huge or tiny is a natural logarithm: times reach e^5000.
#[derive(Debug, Clone, Copy)]
pub struct RateSeries<'a> {
    /// ln t, increasing; −∞ at the start is allowed.
    pub log_time: &'a [f64],
    /// ln L of the summed loss.
    pub log_loss: &'a [f64],
    /// ln ‖θ‖ in the norm of the flow, or ln (αQ)^{1/α}.
    pub log_norm: &'a [f64],
    /// γ − γ(t) > 0, where the limit margin is known.
    pub margin_gap: Option<&'a [f64]>,
}

/// What the theorems need to know.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateTheory {
    /// L > 0, the degree of homogeneity of the model.
    pub degree: f64,
    /// α ≥ 1 of the potential; 2 for steepest flows.
    pub alpha: f64,
    /// γ, for the constant.
    pub limit_margin: Option<f64>,
}

/// How to fit.
///
/// | setting | default | meaning | range |
/// |---|---|---|---|
/// | `confidence` | 0.95 | of the intervals | between 0 and 1 |
/// | `late` | 0.5 | share of the span of ln ln t that counts as late | above 0, at most 1 |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateSettings {
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Share of the span of ln ln t that counts as late.
    pub late: f64,
}

impl Default for RateSettings {
    fn default() -> Self {
        Self { confidence: 0.95, late: 0.5 }
    }
}

/// Which line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateLaw {
    /// ln L against ln t.
    LossInTime,
    /// ln L + ln t against ln ln t.
    LossInLogTime,
    /// ln L + ln t against ln ln 1/L, which is asymptotically the same and settles sooner.
    LossInItsLog,
    /// ln ‖θ‖ against ln ln t.
    NormInLogTime,
    /// ln of the margin gap against ln ln t.
    GapInLogTime,
}

/// What a theorem says of a slope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateBound {
    /// Θ: equal to the exponent.
    Exact,
    /// O: the exponent or less.
    AtMost,
    /// Ω: the exponent or more.
    AtLeast,
}

/// Where the fitted slope stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approach {
    /// The interval holds the exponent, or the allowed side of it; or the slope is within 0.001 of it.
    Agrees,
    /// It does not, but every stretch of the window comes closer than the one before, and the extrapolated slope is at
    /// most half as far from the exponent as the fitted one.
    Approaching,
    /// Neither.
    Disagrees,
}

/// Where the interval comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// The scatter along one run, autocorrelation allowed for; see [`super::fit_line`].
    AlongRun,
    /// Student's t over the slopes of several runs.
    AcrossRuns,
}

/// The points of a run that were fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateWindow {
    /// The first of them; all later ones belong to it.
    pub first: usize,
    /// ln t of the first and the last.
    pub log_time: (f64, f64),
}

/// The slope of a stretch of the window, averaged over the runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LocalSlope {
    /// Mean ln t of the stretch.
    pub log_time: f64,
    /// Its slope.
    pub slope: f64,
}

/// One law, fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateFit {
    /// Which line.
    pub law: RateLaw,
    /// The exponent of the theorem.
    pub expected: f64,
    /// What the theorem says of it.
    pub bound: RateBound,
    /// The slope; the mean over runs if there are several.
    pub slope: f64,
    /// Its confidence interval.
    pub interval: (f64, f64),
    /// Whether the interval holds the exponent, or reaches to the allowed side of it.
    pub within: bool,
    /// Where the interval comes from.
    pub spread: Spread,
    /// The smallest R² of the runs; NaN where y does not vary.
    pub r_squared: f64,
    /// Slopes of four successive stretches of the window, with equally many points.
    pub local_slopes: Vec<LocalSlope>,
    /// The last local slope minus the first.
    pub drift: f64,
    /// The local slopes continued to t = ∞ along their leading correction, which falls like 1/ln t or (ln ln t)/ln t.
    pub limit: f64,
    /// How slope, interval and exponent compare.
    pub approach: Approach,
    /// The line of every run.
    pub lines: Vec<LineFit>,
}

/// L t (ln t)^{2 − α/L} · L² γ^{α/L}, which tends to 1 (Ct.rate); averaged over the runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateConstant {
    /// At the first point of the window.
    pub first: f64,
    /// At the last.
    pub last: f64,
}

/// All laws of a group of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateReport {
    /// The fits, in the order of the table above.
    pub fits: Vec<RateFit>,
    /// The sharp constant, where the limit margin is known.
    pub constant: Option<RateConstant>,
    /// The window of every run.
    pub windows: Vec<RateWindow>,
}

/// Fits every law to the late part of the runs.
///
/// The window of a run starts, among the points from which on ln t ≥ 1 and ln L ≤ −1, where ln ln t has come within the
/// share `late` of the rest of its span: with one half, at ln t = √(ln t₁ · ln t_end). One run gets the interval of
/// [`super::fit_line`]; several, which must be independent (seeds), get slope ± t_{k−1} s/√k from their own slopes. The gap is
/// fitted if every run has one.
///
/// ```
/// use limitpoint::diagnostics::{Approach, RateLaw, RateSeries, RateSettings, RateTheory, fit_rates};
/// // a linear model in one dimension: L = e^−u, t = e^u − 1, θ = u
/// let u: Vec<f64> = (1..200).map(|i| 0.5 * f64::from(i)).collect();
/// let log_time: Vec<f64> = u.iter().map(|u| u.exp_m1().ln()).collect();
/// let log_loss: Vec<f64> = u.iter().map(|u| -u).collect();
/// let log_norm: Vec<f64> = u.iter().map(|u| u.ln()).collect();
/// let run = RateSeries { log_time: &log_time, log_loss: &log_loss, log_norm: &log_norm, margin_gap: None };
/// let theory = RateTheory { degree: 1.0, alpha: 2.0, limit_margin: Some(1.0) };
/// let report = fit_rates(&[run], &theory, &RateSettings::default())?;
/// let norm = report.fits.iter().find(|fit| fit.law == RateLaw::NormInLogTime).unwrap();
/// assert!((norm.slope - 1.0).abs() < 1e-3 && norm.approach == Approach::Agrees);
/// assert!((report.constant.unwrap().last - 1.0).abs() < 1e-9);
/// # Ok::<(), limitpoint::diagnostics::RateError>(())
/// ```
pub fn fit_rates(
    runs: &[RateSeries<'_>],
    theory: &RateTheory,
    settings: &RateSettings,
) -> Result<RateReport, RateError> {
    check_theory(theory)?;
    check_confidence(settings.confidence)?;
    if !(settings.late > 0.0 && settings.late <= 1.0) {
        let (what, range) = ("the late share of the run", "above 0 and at most 1");
        return Err(RateError::Setting { what, value: settings.late, range });
    }
    if runs.is_empty() {
        return Err(RateError::TooFewPoints { what: "the list of runs", found: 0, needed: 1 });
    }
    let windows = runs.iter().map(|run| window(run, settings.late)).collect::<Result<Vec<_>, _>>()?;
    let mut laws = vec![RateLaw::LossInTime, RateLaw::LossInLogTime, RateLaw::LossInItsLog, RateLaw::NormInLogTime];
    if runs.iter().all(|run| run.margin_gap.is_some()) {
        laws.push(RateLaw::GapInLogTime);
    }
    let fits = laws
        .into_iter()
        .map(|law| {
            let points = runs.iter().zip(&windows).map(|(run, window)| law.points(run, window.first));
            law.fit(&points.collect::<Result<Vec<_>, _>>()?, theory, settings.confidence)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let constant = theory.limit_margin.map(|margin| {
        let at = |place: fn(&RateSeries<'_>, &RateWindow) -> usize| {
            let ratios =
                runs.iter().zip(&windows).map(|(run, w)| log_constant(run, place(run, w), theory, margin).exp());
            mean(&ratios.collect::<Vec<_>>())
        };
        RateConstant { first: at(|_, window| window.first), last: at(|run, _| run.log_time.len() - 1) }
    });
    Ok(RateReport { fits, constant, windows })
}

/// The late part of a run; see [`fit_rates`].
fn window(run: &RateSeries<'_>, late: f64) -> Result<RateWindow, RateError> {
    let count = run.log_time.len();
    for (what, series) in
        [("ln L", Some(run.log_loss)), ("ln of the norm", Some(run.log_norm)), ("the margin gap", run.margin_gap)]
    {
        let found = series.map_or(count, <[f64]>::len);
        if found != count {
            return Err(RateError::Length { what, found, expected: count });
        }
    }
    for (index, (&time, &loss)) in run.log_time.iter().zip(run.log_loss).enumerate() {
        let rises = index == 0 || time > run.log_time[index - 1];
        if !rises || time.is_nan() || time == f64::INFINITY {
            let (what, range) = ("ln t", "above the one before and below infinity");
            return Err(RateError::Value { what, index, value: time, range });
        }
        if !loss.is_finite() {
            return Err(RateError::Value { what: "ln L", index, value: loss, range: "finite" });
        }
    }
    let early = |index: &usize| run.log_time[*index] < 1.0 || run.log_loss[*index] > -1.0;
    let usable = (0..count).rev().find(early).map_or(0, |index| index + 1);
    let too_few = |found| RateError::TooFewPoints { what: "the late part of a run", found, needed: FEWEST_LATE_POINTS };
    if usable >= count {
        return Err(too_few(0));
    }
    let (start, end) = (run.log_time[usable].ln(), run.log_time[count - 1].ln());
    let from = end - late * (end - start);
    let first = (usable..count).find(|index| run.log_time[*index].ln() >= from).unwrap_or(count - 1);
    if count - first < FEWEST_LATE_POINTS {
        return Err(too_few(count - first));
    }
    Ok(RateWindow { first, log_time: (run.log_time[first], run.log_time[count - 1]) })
}

/// ln of L t (ln t)^{2 − α/L} L² γ^{α/L} at a point.
fn log_constant(run: &RateSeries<'_>, index: usize, theory: &RateTheory, margin: f64) -> f64 {
    let (time, ratio) = (run.log_time[index], theory.alpha / theory.degree);
    run.log_loss[index] + time + (2.0 - ratio) * time.ln() + 2.0 * theory.degree.ln() + ratio * margin.ln()
}

fn check_theory(theory: &RateTheory) -> Result<(), RateError> {
    let require = |what, value: f64, holds: bool, range| {
        if holds && value.is_finite() { Ok(()) } else { Err(RateError::Setting { what, value, range }) }
    };
    require("the degree of homogeneity", theory.degree, theory.degree > 0.0, "positive and finite")?;
    require("alpha of the potential", theory.alpha, theory.alpha >= 1.0, "1 or more and finite")?;
    let margin = theory.limit_margin.unwrap_or(1.0);
    require("the limit margin", margin, margin > 0.0, "positive and finite")
}

#[cfg(test)]
#[path = "rates_tests.rs"]
mod tests;
