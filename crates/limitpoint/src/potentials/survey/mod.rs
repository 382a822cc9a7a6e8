//! Everything the theory of mirror flow asks of a potential, measured: convexity, the curvature condition, the horizon.
//!
//! | file | holds |
//! |---|---|
//! | `curve` | a potential by name or by formula |
//! | `measure` | convexity, the curvature condition, gauges and level sets at finite scales |
//! | `words` | what the limit is, in words |

mod curve;
mod measure;
mod words;

use serde::Serialize;

use super::HorizonOutcome;
use super::horizon::predict_exact;

pub use curve::{ScalarCurve, ScalarSample};

/// What mirror flow with R(θ) = Σ r(θᵢ) can be said to do, from r alone.
///
/// ```text
/// q(t) = t r′(t) − r(t)                    Q(∇R(θ)) = Σ q(θᵢ)                          C.lem2.5
/// r″ > 0                                   R is a mirror potential
/// α q(t) ≥ t² r″(t)                        the margin of the gauge never falls          C.ass4.4, C.thm4.5
/// q(t) ~ c± |t|^α/α                        min ½ φ(θ)² over qᵢ ≥ 1, φ = (Σ c± |θᵢ|^α)^{1/α}   C.thm4.7, C.cor4.8
/// ```
///
/// Measured at 40 places per decade from |t| = 10⁻⁶ to 10⁶; a sign is believed where it exceeds the rounding error that
/// the arithmetic carries along. The limit is taken as in [`super::HorizonCalculator`], but from exact derivatives.
/// Where q is negative because r(0) > 0, r(0) is taken off first, which changes neither the flow nor the limit.
///
/// ```
/// use limitpoint::potentials::Survey;
/// let survey = Survey::of(&"t*asinh(t/0.3) - sqrt(t^2 + 0.09)".parse()?);
/// let limit = survey.limit.as_ref().expect("the hyperbolic entropy has a horizon");
/// assert!((limit.degree - 1.0).abs() < 1e-6 && survey.convex.holds);
/// assert!(survey.answer.contains("ℓ₁") && survey.answer.contains("min ½‖θ‖₁²"));
/// let survey = Survey::of(&"cosh(t)".parse()?);
/// assert!(survey.limit.is_none() && survey.answer.contains("no homogeneous limit"));
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Survey {
    /// The potential as it was given.
    pub potential: String,
    /// R as a formula, with its name where it has one.
    pub title: String,
    /// What mirror flow does with it, in a sentence.
    pub answer: String,
    /// What to know besides, in sentences.
    pub remarks: Vec<String>,
    /// Whether r″ > 0.
    pub convex: Shape,
    /// A stretch around or next to 0 on which r″ = 0, so that ∇R has no inverse: from, to.
    pub flat: Option<[f64; 2]>,
    /// Whether α q ≥ t² r″, where there is an α.
    pub curvature_condition: Option<CurvatureCondition>,
    /// The limit, if there is one.
    pub limit: Option<LimitGauge>,
    /// What was seen instead, if there is none.
    pub no_limit: Option<NoLimit>,
    /// The scale around which q turns from its behaviour at 0 to that at infinity.
    pub turning_scale: f64,
    /// The gauge at finite scales against its limit.
    pub gauges: Vec<GaugeRow>,
    /// Level sets of Σ q in the plane, each scaled to pass through (1, 0).
    pub level_sets: Vec<LevelSet>,
    /// r, r′, r″ and q around 0, for drawing.
    pub samples: Vec<ScalarSample>,
    /// (|t|, local degree t² r″/q) for positive and for negative t.
    pub local_degrees: [Vec<[f64; 2]>; 2],
}

/// An inequality on a range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shape {
    /// Whether it holds wherever it could be decided.
    pub holds: bool,
    /// From where to where it was looked at; sides outside the domain are left out.
    pub range: [f64; 2],
    /// Where its value is smallest, and the value.
    pub smallest: Option<[f64; 2]>,
    /// Stretches on which it fails: from, to.
    pub fails: Vec<[f64; 2]>,
    /// How many places rounding leaves undecided.
    pub undecided: usize,
}

/// The curvature condition C.ass4.4 with the degree that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvatureCondition {
    /// α q − t² r″ ≥ 0, relative to α q; 10⁻⁶ is forgiven, because α is measured.
    pub shape: Shape,
    /// The α in it.
    pub degree: f64,
    /// The least k ≥ 0 with α (q + k) ≥ t² r″, if there is one: R − k satisfies the condition, and has the same flow.
    pub constant: Option<f64>,
}

/// The limit gauge φ(θ) = (Σ c± |θᵢ|^α)^{1/α}.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitGauge {
    /// α.
    pub degree: f64,
    /// Estimated error of α.
    pub degree_error: f64,
    /// c₊; nothing if positive weights are outside the domain.
    pub positive: Option<f64>,
    /// c₋.
    pub negative: Option<f64>,
    /// Estimated relative error of c±.
    pub coefficient_error: f64,
    /// The gauge in words, such as "the ℓ₁ norm".
    pub name: String,
    /// φ as a formula.
    pub formula: String,
}

/// Why there is no limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoLimit {
    /// In words, with measured degrees.
    pub reason: String,
    /// (ln|t|, local degree) at every scale measured.
    pub local_degrees: Vec<[f64; 2]>,
}

/// The gauge at one scale, relative to the scale.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GaugeRow {
    /// s.
    pub scale: f64,
    /// gauge(s, 0)/s.
    pub axis: f64,
    /// gauge(s, s)/s.
    pub diagonal: f64,
    /// (gauge(s, s) − φ(s, s))/gauge(s, s).
    pub gap: f64,
    /// The local degree at s.
    pub local_degree: f64,
}

impl GaugeRow {
    /// The gap in per cent, without the noise below what is shown.
    pub fn gap_percent(&self) -> f64 {
        if self.gap.abs() < 5e-7 { 0.0 } else { 100.0 * self.gap }
    }
}

/// One level set of the gauge in the plane.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelSet {
    /// Where it meets the first axis; nothing for the limit.
    pub scale: Option<f64>,
    /// Points once around, divided by the scale.
    pub points: Vec<[f64; 2]>,
}

impl Survey {
    /// Looks at a potential.
    pub fn of(curve: &ScalarCurve) -> Self {
        let (outcome, shifted) = limit_of(curve);
        let curve = shifted.as_ref().unwrap_or(curve);
        let (prediction, evidence) = match &outcome {
            HorizonOutcome::Homogeneous(prediction) => (Some(prediction), None),
            HorizonOutcome::NoHomogeneousLimit(evidence) => (None, Some(evidence)),
        };
        let limit = prediction.map(|prediction| words::limit(prediction, curve));
        let no_limit = evidence.map(|evidence| NoLimit {
            reason: evidence.to_string(),
            local_degrees: evidence.local_degrees.iter().map(|(x, degree)| [*x, *degree]).collect(),
        });
        let convex = measure::convexity(curve);
        let curvature_condition = limit.as_ref().map(|limit| measure::condition(curve, limit.degree));
        let turning_scale = measure::turning_scale(curve);
        let mut survey = Self {
            potential: curve.to_string(),
            title: curve.title(),
            answer: String::new(),
            remarks: Vec::new(),
            gauges: measure::gauges(curve, prediction, turning_scale),
            level_sets: measure::level_sets(curve, prediction, turning_scale),
            samples: measure::samples(curve, turning_scale),
            local_degrees: [1.0, -1.0].map(|side| measure::local_degrees(curve, side, turning_scale)),
            convex,
            flat: measure::flat(curve),
            curvature_condition,
            limit,
            no_limit,
            turning_scale,
        };
        survey.answer = words::answer(&survey);
        survey.remarks = words::remarks(&survey, shifted.is_some());
        survey
    }

    /// Whether it is a mirror potential with a homogeneous limit that its flow can reach.
    pub fn has_limit(&self) -> bool {
        let reaches = self.limit.as_ref().is_some_and(|limit| !words::is_bounded(limit));
        self.convex.holds && self.flat.is_none() && reaches
    }
}

/// The horizon; and the potential without r(0), where q is negative with it.
fn limit_of(curve: &ScalarCurve) -> (HorizonOutcome, Option<ScalarCurve>) {
    let negative = [0.0, 10.0, -10.0].iter().any(|t| curve.conjugate(*t) < 0.0);
    match curve.through_the_origin().filter(|_| negative) {
        Some(shifted) => (predict_exact(|t| shifted.read(t)), Some(shifted)),
        None => (predict_exact(|t| curve.read(t)), None),
    }
}

/// The gauge (α Σ q(θᵢ))^{1/α}.
fn gauge(curve: &ScalarCurve, degree: f64, theta: &[f64]) -> f64 {
    super::root(degree * theta.iter().map(|&t| curve.conjugate(t)).sum::<f64>(), degree)
}

#[cfg(test)]
mod tests;
