//! The horizon of any separable potential, predicted from its values or its slopes alone.

use std::fmt;

use super::horizon_scales::{Known, SPACING, Scale, conjugate, sweep, sweep_exact};
use super::root;
use crate::numeric::compensated_sum;

/// Largest accepted error of the degree, and of ln c.
const DEGREE_TOLERANCE: f64 = 1e-4;
const COEFFICIENT_TOLERANCE: f64 = 1e-3;
/// Largest drift of the local degree over the last quarter of the scales that counts as none.
const SETTLED: f64 = 1e-7;
/// Relative error of a local degree by central differences.
const DIFFERENCE_ERROR: f64 = 1e-10;

/// Predicts the horizon of R(θ) = Σ r(θᵢ) when only r, or only r′, can be evaluated.
///
/// ```text
/// q(t) = t r′(t) − r(t),   α = lim d ln q/d ln t,   c± = lim α q(±t)/t^α,   φ(θ) = (Σ c_{sgn θᵢ} |θᵢ|^α)^{1/α}
/// ```
///
/// The local degree α(x) = d ln q/dx, x = ln t, is measured from t = 1 to t = 10¹⁰⁰ (or overflow). Exact stopping test:
///
/// 1. it moved by less than 10⁻⁷ over the last quarter of the scales: the last value is α;
/// 2. otherwise, its differences over thrice an eighth of the scales shrink by the same factor (logarithms within 10 %),
///    as they do for a sum of powers and do not for powers of ln t: Aitken's extrapolation gives α and the rate β, and
///    ln c = ln α + ln q − αx + (α(x) − α)/β adds the rest of the drift; accepted when the same computation one
///    eighth earlier agrees to 10⁻⁴ in α and 10⁻³ in ln c;
/// 3. otherwise, ln q over the last half of the scales is a straight line to 10⁻⁷, although its slope oscillates from place
///    to place (t² + cos t): the line gives α and c;
/// 4. otherwise there is [`HorizonOutcome::NoHomogeneousLimit`], with the measured degrees as evidence.
///
/// Degrees are reported as measured, not rounded to nearby fractions. A side on which r is not finite is outside the
/// domain. Beyond table 1 of paper C (C.tab1), whose horizons it reproduces.
///
/// ```
/// use limitpoint::potentials::HorizonCalculator;
/// let smooth_absolute_value = |t: f64| t * t.asinh() - (t * t + 1.0).sqrt();
/// let outcome = HorizonCalculator::from_value(smooth_absolute_value).predict();
/// let prediction = outcome.prediction().expect("the hyperbolic entropy has a horizon");
/// assert!((prediction.degree - 1.0).abs() < 1e-6);
/// assert!((prediction.horizon(&[3.0, -4.0]) - 7.0).abs() < 1e-5);
/// ```
pub struct HorizonCalculator<F> {
    function: F,
    known: Known,
}

/// What the calculator found.
#[derive(Debug, Clone, PartialEq)]
pub enum HorizonOutcome {
    /// q is asymptotically homogeneous.
    Homogeneous(HorizonPrediction),
    /// It is not, or not recognisably so in floating point.
    NoHomogeneousLimit(HorizonEvidence),
}

/// The limit gauge φ(θ) = (Σ c_{sgn θᵢ} |θᵢ|^α)^{1/α}.
#[derive(Debug, Clone, PartialEq)]
pub struct HorizonPrediction {
    /// α.
    pub degree: f64,
    /// Estimated error of α.
    pub degree_error: f64,
    /// c₊; `None` when positive weights are outside the domain.
    pub positive: Option<f64>,
    /// c₋; `None` when negative weights are outside the domain. 0 when that side grows with a smaller degree.
    pub negative: Option<f64>,
    /// Estimated relative error of the coefficients.
    pub coefficient_error: f64,
}

/// The measurements that show no limit.
#[derive(Debug, Clone, PartialEq)]
pub struct HorizonEvidence {
    /// What went wrong.
    pub reason: LimitFailure,
    /// +1 or −1: the side of the line it happened on.
    pub side: f64,
    /// (ln|t|, local degree) at every scale measured.
    pub local_degrees: Vec<(f64, f64)>,
}

/// Why there is no homogeneous limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitFailure {
    /// The local degree keeps growing, as for exponential growth.
    Growing,
    /// The local degree tends to 0: q stays bounded or grows like a logarithm.
    Vanishing,
    /// The local degree still moves too slowly to tell its limit, as for t ln t, whose q(t)/t diverges.
    Drifting,
    /// The local degree oscillates or is ruled by rounding.
    Irregular,
    /// The function is finite and q positive over too few scales.
    TooFewScales,
}

impl fmt::Display for HorizonEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.reason {
            LimitFailure::Growing => "keeps growing",
            LimitFailure::Vanishing => "tends to 0",
            LimitFailure::Drifting => "has not settled",
            LimitFailure::Irregular => "is irregular",
            LimitFailure::TooFewScales => "is known at too few scales",
        };
        let side = if self.side > 0.0 { "positive" } else { "negative" };
        write!(f, "no homogeneous limit: for {side} weights the local degree {what}")?;
        let count = self.local_degrees.len();
        for k in [count / 2, count.saturating_sub(1)] {
            if let Some((x, degree)) = self.local_degrees.get(k) {
                write!(f, "; it is {degree:.6} at ln t = {x:.1}")?;
            }
        }
        Ok(())
    }
}

impl HorizonOutcome {
    /// The prediction, if there is one.
    pub fn prediction(&self) -> Option<&HorizonPrediction> {
        match self {
            Self::Homogeneous(prediction) => Some(prediction),
            Self::NoHomogeneousLimit(_) => None,
        }
    }
}

impl HorizonPrediction {
    /// φ(θ); infinite if an entry lies outside the domain.
    pub fn horizon(&self, theta: &[f64]) -> f64 {
        let largest = crate::linalg::max_abs(theta);
        if largest == 0.0 || !largest.is_finite() {
            return largest;
        }
        let term = |&t: &f64| {
            let coefficient = if t > 0.0 { self.positive } else { self.negative };
            if t == 0.0 { 0.0 } else { coefficient.unwrap_or(f64::INFINITY) * (t.abs() / largest).powf(self.degree) }
        };
        largest * root(theta.iter().map(term).sum(), self.degree)
    }
}

/// The limit on one side.
struct Side {
    degree: f64,
    degree_error: f64,
    log_coefficient: f64,
    coefficient_error: f64,
}

impl<F: Fn(f64) -> f64> HorizonCalculator<F> {
    /// For a scalar potential r given by its values.
    pub fn from_value(function: F) -> Self {
        Self { function, known: Known::Value }
    }

    /// For a scalar potential given by its slope r′, with r(0) = 0.
    pub fn from_slope(function: F) -> Self {
        Self { function, known: Known::Slope }
    }

    /// q(t) = t r′(t) − r(t), by numerical differentiation or integration, to about ten digits.
    ///
    /// ```
    /// use limitpoint::potentials::HorizonCalculator;
    /// assert!((HorizonCalculator::from_value(|t: f64| t.powi(4)).conjugate(2.0) - 48.0).abs() < 1e-8);
    /// assert!((HorizonCalculator::from_slope(|t: f64| 4.0 * t.powi(3)).conjugate(-2.0) - 48.0).abs() < 1e-8);
    /// ```
    pub fn conjugate(&self, t: f64) -> f64 {
        conjugate(&self.function, self.known, t)
    }

    /// The finite-scale gauge (α Σ q(θᵢ))^{1/α} for a degree such as the predicted one.
    pub fn gauge(&self, degree: f64, theta: &[f64]) -> f64 {
        root(degree * compensated_sum(theta.iter().map(|&t| self.conjugate(t))), degree)
    }

    /// Measures both sides and takes the limit.
    pub fn predict(&self) -> HorizonOutcome {
        let finite = |side: f64| (self.function)(side).is_finite();
        predict(|side| finite(side).then(|| sweep(&self.function, self.known, side)))
    }
}

/// The horizon where q(t) and t² R″(t) can be evaluated; `read` answers nothing outside the domain of R or where
/// rounding has taken over.
pub(super) fn predict_exact(read: impl Fn(f64) -> Option<[f64; 2]>) -> HorizonOutcome {
    predict(|side| read(side).map(|_| sweep_exact(&read, side)))
}

/// The limit of both sides; `scales` answers nothing for a side outside the domain.
fn predict(scales: impl Fn(f64) -> Option<Vec<Scale>>) -> HorizonOutcome {
    let mut sides = [None, None];
    for (slot, side) in sides.iter_mut().zip([1.0, -1.0]) {
        let Some(scales) = scales(side) else { continue };
        match limit(&scales) {
            Ok(found) => *slot = Some(found),
            Err(reason) => {
                let local_degrees = scales.iter().map(|scale| (scale.log_t, scale.local_degree)).collect();
                return HorizonOutcome::NoHomogeneousLimit(HorizonEvidence { reason, side, local_degrees });
            }
        }
    }
    let Some(leading) = sides.iter().flatten().max_by(|a, b| a.degree.total_cmp(&b.degree)) else {
        let reason = LimitFailure::TooFewScales;
        return HorizonOutcome::NoHomogeneousLimit(HorizonEvidence { reason, side: 1.0, local_degrees: vec![] });
    };
    let coefficient = |side: &Side| {
        let equal = leading.degree - side.degree <= DEGREE_TOLERANCE;
        if equal { side.log_coefficient.exp() } else { 0.0 }
    };
    HorizonOutcome::Homogeneous(HorizonPrediction {
        degree: leading.degree,
        degree_error: leading.degree_error,
        positive: sides[0].as_ref().map(coefficient),
        negative: sides[1].as_ref().map(coefficient),
        coefficient_error: sides.iter().flatten().map(|side| side.coefficient_error).fold(0.0, f64::max),
    })
}

/// α and ln c of one side, by the rules of [`HorizonCalculator`].
fn limit(scales: &[Scale]) -> Result<Side, LimitFailure> {
    let count = scales.len();
    if count < 8 {
        let growing = count >= 3 && scales[count - 1].local_degree > 1.5 * scales[count / 2].local_degree;
        return Err(if growing { LimitFailure::Growing } else { LimitFailure::TooFewScales });
    }
    let last = scales[count - 1];
    let tail = &scales[count - count / 4..];
    let highest = tail.iter().map(|scale| scale.local_degree).fold(f64::NEG_INFINITY, f64::max);
    let lowest = tail.iter().map(|scale| scale.local_degree).fold(f64::INFINITY, f64::min);
    if highest - lowest <= SETTLED {
        if last.local_degree < DEGREE_TOLERANCE {
            return Err(LimitFailure::Vanishing);
        }
        let degree = last.local_degree;
        let degree_error = highest - lowest + DIFFERENCE_ERROR * degree;
        let log_coefficient = degree.ln() + last.log_conjugate - degree * last.log_t;
        return Ok(Side { degree, degree_error, log_coefficient, coefficient_error: degree_error * last.log_t });
    }
    let lag = (count / 8).max(1);
    let (now, earlier) = (extrapolate(scales, count - 1, lag), extrapolate(scales, count - 1 - lag, lag));
    if let (Some(now), Some(earlier)) = (&now, &earlier) {
        let degree_error = (now.degree - earlier.degree).abs() + DIFFERENCE_ERROR * now.degree;
        let coefficient_error = (now.log_coefficient - earlier.log_coefficient).abs();
        let same_rate = (now.rate - earlier.rate).abs() <= 0.1 * now.rate;
        let close = degree_error <= DEGREE_TOLERANCE && coefficient_error <= COEFFICIENT_TOLERANCE;
        if same_rate && close && now.degree > DEGREE_TOLERANCE {
            let (degree, log_coefficient) = (now.degree, now.log_coefficient);
            return Ok(Side { degree, degree_error, log_coefficient, coefficient_error });
        }
    }
    if let Some(side) = straight(&scales[count / 2..]) {
        return Ok(side);
    }
    let middle = scales[count / 2].local_degree;
    Err(if last.local_degree > 1.2 * middle && highest == last.local_degree {
        LimitFailure::Growing
    } else if last.local_degree < 0.05 {
        LimitFailure::Vanishing
    } else if now.is_some() {
        LimitFailure::Drifting
    } else {
        LimitFailure::Irregular
    })
}

/// α and c of a straight line through ln q, if it is one.
fn straight(scales: &[Scale]) -> Option<Side> {
    let (first, last) = (scales.first()?, scales.last()?);
    let degree = (last.log_conjugate - first.log_conjugate) / (last.log_t - first.log_t);
    let line = |scale: &Scale| last.log_conjugate + degree * (scale.log_t - last.log_t);
    let apart = scales.iter().map(|scale| (scale.log_conjugate - line(scale)).abs()).fold(0.0, f64::max);
    let found = scales.len() >= 8 && apart <= SETTLED && degree > DEGREE_TOLERANCE;
    found.then(|| {
        let degree_error = 2.0 * apart / (last.log_t - first.log_t) + DIFFERENCE_ERROR * degree;
        let log_coefficient = degree.ln() + last.log_conjugate - degree * last.log_t;
        Side { degree, degree_error, log_coefficient, coefficient_error: degree_error * last.log_t }
    })
}

struct Extrapolation {
    degree: f64,
    rate: f64,
    log_coefficient: f64,
}

/// Aitken's Δ² on three local degrees, `lag` scales apart; `None` unless their differences shrink geometrically.
fn extrapolate(scales: &[Scale], end: usize, lag: usize) -> Option<Extrapolation> {
    let at = |k: usize| end.checked_sub(k * lag).map(|index| scales[index].local_degree);
    let (third, second, first) = (at(0)?, at(1)?, at(2)?);
    let (step, before) = (third - second, second - first);
    let ratio = step / before;
    if !(ratio > 0.0 && ratio < 1.0) {
        return None;
    }
    let degree = third + step * ratio / (1.0 - ratio);
    let rate = -ratio.ln() / (lag as f64 * SPACING);
    let Scale { log_t, log_conjugate, .. } = scales[end];
    let log_coefficient = degree.ln() + log_conjugate - degree * log_t + (third - degree) / rate;
    Some(Extrapolation { degree, rate, log_coefficient })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::potentials::{Hyperbolic, PowerSmoothed, ScalarPotential, Smoothed};

    fn assert_predicts(name: &str, outcome: HorizonOutcome, degree: f64, coefficient: f64) {
        let HorizonOutcome::Homogeneous(found) = &outcome else { panic!("{name}: {outcome:?}") };
        assert!((found.degree - degree).abs() < 1e-4, "{name}: {found:?}");
        for side in [found.positive, found.negative].into_iter().flatten() {
            assert!((side / coefficient - 1.0).abs() < 1e-3, "{name}: {found:?}, expected {coefficient}");
        }
    }

    fn both<P: ScalarPotential>(name: &str, potential: &P) {
        let (degree, coefficient) = (potential.degree(), potential.horizon_coefficient());
        assert_predicts(name, HorizonCalculator::from_value(|t| potential.value(t)).predict(), degree, coefficient);
        assert_predicts(name, HorizonCalculator::from_slope(|t| potential.slope(t)).predict(), degree, coefficient);
    }

    #[test]
    fn the_horizons_of_table_one_are_found_from_values_and_from_slopes() {
        for lambda in [1e-8, 0.1, 1.0, 100.0] {
            both(&format!("hyperbolic {lambda}"), &Hyperbolic::new(lambda).unwrap());
        }
        for (p, lambda) in
            [(2.0, 0.0), (2.0, 0.5), (2.5, 0.3), (3.0, 0.0), (3.0, 1.0), (4.0, 0.1), (6.0, 10.0), (20.0, 1.0)]
        {
            both(&format!("smoothed {p} {lambda}"), &Smoothed::new(p, lambda).unwrap());
        }
        for (p, lambda) in [(1.5, 0.1), (1.2, 1.0), (1.9, 0.0)] {
            both(&format!("power-smoothed {p} {lambda}"), &PowerSmoothed::new(p, lambda).unwrap());
        }
    }

    #[test]
    fn slow_power_corrections_are_extrapolated() {
        both("smoothed 2.05", &Smoothed::new(2.05, 0.3).unwrap());
        both("smoothed 2.1", &Smoothed::new(2.1, 1.0).unwrap());
    }

    #[test]
    fn one_sided_and_uneven_potentials() {
        let entropy = HorizonCalculator::from_slope(f64::ln).predict();
        let found = entropy.prediction().unwrap();
        assert!((found.degree - 1.0).abs() < 1e-6 && (found.positive.unwrap() - 1.0).abs() < 1e-6);
        assert_eq!(found.negative, None);
        assert_eq!(found.horizon(&[1.0, -1.0]), f64::INFINITY);
        let uneven = HorizonCalculator::from_value(|t: f64| if t > 0.0 { t.powi(3) } else { 2.0 * t * t }).predict();
        let found = uneven.prediction().unwrap();
        assert_eq!(found.negative, Some(0.0));
        assert!((found.degree - 3.0).abs() < 1e-6 && (found.positive.unwrap() - 6.0).abs() < 1e-4);
        let skewed = HorizonCalculator::from_value(|t: f64| if t > 0.0 { t * t } else { 2.0 * t * t }).predict();
        let found = skewed.prediction().unwrap();
        assert!((found.horizon(&[1.0, 0.0]) - 2f64.sqrt()).abs() < 1e-6);
        assert!((found.horizon(&[0.0, -1.0]) - 2.0).abs() < 1e-6);
    }

    #[test]
    fn potentials_without_a_horizon_are_recognised() {
        let reason = |outcome: HorizonOutcome| match outcome {
            HorizonOutcome::NoHomogeneousLimit(evidence) => {
                assert!(evidence.to_string().starts_with("no homogeneous limit"));
                evidence.reason
            }
            HorizonOutcome::Homogeneous(found) => panic!("{found:?}"),
        };
        let value = |f: fn(f64) -> f64| reason(HorizonCalculator::from_value(f).predict());
        let slope = |f: fn(f64) -> f64| reason(HorizonCalculator::from_slope(f).predict());
        assert_eq!(value(f64::cosh), LimitFailure::Growing);
        assert_eq!(slope(f64::sinh), LimitFailure::Growing);
        // R′ = (ln²(e + t) − 1)/2 has q′ = t R″ ~ ln t, so q ~ t ln t: degree 1, but q/t diverges.
        let squared_logarithm = |t: f64| (t.signum()) * 0.5 * ((std::f64::consts::E + t.abs()).ln().powi(2) - 1.0);
        assert_eq!(reason(HorizonCalculator::from_slope(squared_logarithm).predict()), LimitFailure::Drifting);
        // A bounded q: R″ = 1/(1 + t²)^{3/2}.
        assert_eq!(slope(|t| t / (1.0 + t * t).sqrt()), LimitFailure::Vanishing);
        // q/t² oscillates with ln t for ever.
        assert_eq!(slope(|t: f64| t * (3.0 + (0.2 * (1.0 + t * t).ln()).sin())), LimitFailure::Irregular);
        assert_eq!(value(|_| f64::NAN), LimitFailure::TooFewScales);
    }

    #[test]
    fn the_gauge_at_given_weights_matches_the_closed_form() {
        let potential = Hyperbolic::new(0.1).unwrap();
        let theta = [0.3, -2.0, 0.0, 1e-4, 50.0];
        let exact: f64 = theta.iter().map(|&t| potential.conjugate(t)).sum();
        let from_value = HorizonCalculator::from_value(|t| potential.value(t)).gauge(1.0, &theta);
        assert!((from_value / exact - 1.0).abs() < 1e-10);
        let shifted = exact - theta.len() as f64 * 0.1f64.sqrt(); // R(0) = 0 moves q by −√λ per entry
        let from_slope = HorizonCalculator::from_slope(|t| potential.slope(t)).gauge(1.0, &theta);
        assert!((from_slope / shifted - 1.0).abs() < 1e-10);
    }
}
