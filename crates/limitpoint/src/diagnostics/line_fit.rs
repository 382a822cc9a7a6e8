//! A straight line through points of one run, with an interval that knows they are not independent.

use serde::{Deserialize, Serialize};

/// Fewest points a line is fitted through.
pub const FEWEST_POINTS: usize = 8;

/// The largest autocorrelation believed; beyond it the points are as good as one smooth curve.
const LARGEST_AUTOCORRELATION: f64 = 0.97;

/// What a fit can refuse.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RateError {
    /// Not enough to fit.
    #[error("{what} has {found} points where at least {needed} are needed; record more often or train longer")]
    TooFewPoints {
        /// What was counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many would do.
        needed: usize,
    },
    /// Two series that belong together differ in length.
    #[error("{what} has {found} entries where {expected} are needed, one for every time")]
    Length {
        /// Which series.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The length required.
        expected: usize,
    },
    /// A value that cannot be used.
    #[error("{what} is {value} at point {index}, but must be {range}")]
    Value {
        /// Which series or setting.
        what: &'static str,
        /// Where, from 0.
        index: usize,
        /// The value.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// A setting out of range.
    #[error("{what} is {value}, but must be {range}")]
    Setting {
        /// What the number sets.
        what: &'static str,
        /// The number.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// All points have the same abscissa.
    #[error("all {points} points have the same {what}, {value}; a slope needs a spread")]
    NoSpread {
        /// Name of the abscissa.
        what: &'static str,
        /// Its value.
        value: f64,
        /// How many points.
        points: usize,
    },
}

/// A least-squares line y = intercept + slope · x.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LineFit {
    /// The slope.
    pub slope: f64,
    /// The value at x = 0.
    pub intercept: f64,
    /// Confidence interval of the slope.
    pub interval: (f64, f64),
    /// 1 − Σ residual²/Σ (y − ȳ)²; NaN where y does not vary.
    pub r_squared: f64,
    /// Root mean square of the residuals.
    pub residual: f64,
    /// Autocorrelation ρ of neighbouring residuals the interval allows for.
    pub autocorrelation: f64,
    /// Degrees of freedom of the Student quantile in the interval.
    pub degrees_of_freedom: u32,
    /// Number of points.
    pub points: usize,
}

/// Fits a line by least squares and gives its slope a confidence interval for autocorrelated residuals.
///
/// ```text
/// slope = Σ x̃ᵢ yᵢ / Σ x̃ᵢ²,   x̃ = x − x̄,   rᵢ the residuals
/// ρ     = ρ̂ + (2 + 4ρ̂)/n,   ρ̂ = Σ rᵢ₊₁rᵢ / Σ rᵢ²,   between 0 and 0.97
/// ω²    = Σ (rᵢ₊₁ − ρrᵢ)² / ((n − 3)(1 − ρ)²)                  long-run variance of the residuals
/// slope ± t_ν √(ω²/Σ x̃ᵢ²),   ν = n(1 − ρ)/(1 + ρ) − 2, between 3 and n − 2
/// ```
///
/// Points are taken in the order given, which should be that of time. For a trending abscissa least squares is as good
/// as generalised least squares (Grenander 1954), so only the variance needs the correlation: it is that of residuals
/// whitened by a first-order autoregression (Andrews and Monahan 1992), whose coefficient is first freed of its bias
/// −(2 + 4ρ)/n beside a fitted line; t_ν counts the points that are effectively independent. Smooth residuals, the sign
/// of a slope that still drifts, give ρ near 1 and a wide interval. Oscillating ones count as independent. Nothing
/// random is drawn. The interval is widened by what one rounding of every y can do to the slope.
///
/// ```
/// use limitpoint::diagnostics::fit_line;
/// let x: Vec<f64> = (0..20).map(f64::from).collect();
/// let y: Vec<f64> = x.iter().map(|x| 3.0 - 0.5 * x + if x % 2.0 == 0.0 { 0.1 } else { -0.1 }).collect();
/// let line = fit_line(&x, &y, 0.95)?;
/// assert!((line.slope + 0.5).abs() < 0.01 && line.interval.0 < -0.5 && -0.5 < line.interval.1);
/// # Ok::<(), limitpoint::diagnostics::RateError>(())
/// ```
pub fn fit_line(x: &[f64], y: &[f64], confidence: f64) -> Result<LineFit, RateError> {
    check_confidence(confidence)?;
    if x.len() != y.len() {
        return Err(RateError::Length { what: "y", found: y.len(), expected: x.len() });
    }
    if x.len() < FEWEST_POINTS {
        return Err(RateError::TooFewPoints { what: "a line", found: x.len(), needed: FEWEST_POINTS });
    }
    check_finite("x", x)?;
    check_finite("y", y)?;
    let plain = least_squares(x, y)?;
    let (n, (x_mean, y_mean)) = (x.len() as f64, (mean(x), mean(y)));
    let residuals: Vec<f64> = x.iter().zip(y).map(|(x, y)| (y - y_mean) - plain.slope * (x - x_mean)).collect();
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let neighbours: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let raw = if squares > 0.0 { neighbours / squares } else { 0.0 };
    let rho = (raw + (2.0 + 4.0 * raw) / n).clamp(0.0, LARGEST_AUTOCORRELATION);
    let whitened: f64 = residuals.windows(2).map(|pair| (pair[1] - rho * pair[0]).powi(2)).sum();
    let long_run = whitened / ((n - 3.0) * (1.0 - rho).powi(2));
    let degrees_of_freedom = (n * (1.0 - rho) / (1.0 + rho) - 2.0).clamp(3.0, n - 2.0) as u32;
    let largest = y.iter().fold(0.0f64, |largest, y| largest.max(y.abs()));
    let rounding = f64::EPSILON * largest * x.iter().map(|x| (x - x_mean).abs()).sum::<f64>() / plain.spread;
    let half = student_quantile(degrees_of_freedom, confidence) * (long_run / plain.spread).sqrt() + rounding;
    let variation: f64 = y.iter().map(|y| (y - y_mean).powi(2)).sum();
    Ok(LineFit {
        slope: plain.slope,
        intercept: y_mean - plain.slope * x_mean,
        interval: (plain.slope - half, plain.slope + half),
        r_squared: if variation > 0.0 { 1.0 - squares / variation } else { f64::NAN },
        residual: (squares / n).sqrt(),
        autocorrelation: rho,
        degrees_of_freedom,
        points: x.len(),
    })
}

/// A slope without its interval, and Σ x̃².
pub(super) struct PlainLine {
    pub slope: f64,
    pub spread: f64,
}

/// Least squares alone; the values must be finite.
pub(super) fn least_squares(x: &[f64], y: &[f64]) -> Result<PlainLine, RateError> {
    let (x_mean, y_mean) = (mean(x), mean(y));
    let spread: f64 = x.iter().map(|x| (x - x_mean).powi(2)).sum();
    let largest = x.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    // below this the spread is what rounding left of equal abscissae
    if spread <= x.len() as f64 * (4.0 * f64::EPSILON * largest).powi(2) {
        return Err(RateError::NoSpread { what: "x", value: x_mean, points: x.len() });
    }
    let product: f64 = x.iter().zip(y).map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
    Ok(PlainLine { slope: product / spread, spread })
}

/// The mean, from compensated sums.
pub(super) fn mean(values: &[f64]) -> f64 {
    crate::numeric::compensated_sum(values.iter().copied()) / values.len() as f64
}

/// Refuses a confidence outside (0, 1).
pub(super) fn check_confidence(confidence: f64) -> Result<(), RateError> {
    if confidence > 0.0 && confidence < 1.0 {
        return Ok(());
    }
    Err(RateError::Setting { what: "the confidence", value: confidence, range: "between 0 and 1, such as 0.95" })
}

/// Refuses a value that is not finite, naming its place.
fn check_finite(what: &'static str, values: &[f64]) -> Result<(), RateError> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(RateError::Value { what, index, value: values[index], range: "finite" }),
        None => Ok(()),
    }
}

/// The t with P(|T| ≤ t) = `confidence` for Student's T with ν degrees of freedom; ν above 1000 counts as 1000.
///
/// With θ = atan(t/√ν) the probability is a finite sum of powers of cos θ (Abramowitz and Stegun 26.7.3 and 26.7.4) and
/// grows with θ, so halving [0, π/2] finds it.
pub(super) fn student_quantile(degrees_of_freedom: u32, confidence: f64) -> f64 {
    let degrees = degrees_of_freedom.clamp(1, 1000);
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if student_probability(degrees, middle) < confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::from(degrees).sqrt() * (0.5 * (low + high)).tan()
}

/// P(|T| ≤ √ν tan θ).
fn student_probability(degrees: u32, theta: f64) -> f64 {
    let (sine, cosine) = theta.sin_cos();
    let odd = degrees % 2 == 1;
    // the terms are Π (k − 1)/k · cos² with k of the parity of ν, from 2 or 3 on
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = if degrees > 1 { term } else { 0.0 };
    let mut k = if odd { 3 } else { 2 };
    while k + 1 < degrees {
        term *= cosine * cosine * f64::from(k - 1) / f64::from(k);
        sum += term;
        k += 2;
    }
    if odd { (theta + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}
