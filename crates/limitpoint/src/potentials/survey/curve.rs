//! A scalar potential as something that can be looked at: by name or by formula.

use std::fmt;
use std::str::FromStr;

use crate::potentials::{Formula, PotentialError, PotentialSpec, ScalarPotential};

/// A function r of one variable, known by name (`hyperbolic:0.1`) or by formula (`t^4/4 + t^2/2`).
///
/// Text whose first word is a key of [`PotentialSpec`] is a name; all other text is a [`Formula`].
///
/// ```
/// use limitpoint::potentials::ScalarCurve;
/// let (named, written): (ScalarCurve, ScalarCurve) = ("smoothed:4,1".parse()?, "t^4/4 + t^2/2".parse()?);
/// assert_eq!(named.sample(2.0).conjugate, 14.0); // 3/4 · 16 + 2
/// assert!((written.sample(2.0).conjugate - 14.0).abs() < 1e-14);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
pub struct ScalarCurve {
    text: String,
    kind: Kind,
}

enum Kind {
    Named(Box<dyn ScalarPotential>),
    Written { formula: Formula, shift: f64 },
}

/// What a scalar potential is at one place.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct ScalarSample {
    /// t.
    pub t: f64,
    /// r(t).
    pub value: f64,
    /// r′(t).
    pub slope: f64,
    /// r″(t).
    pub curvature: f64,
    /// q(t) = t r′(t) − r(t).
    pub conjugate: f64,
    /// A bound for the rounding error of r″.
    #[serde(skip)]
    pub(super) curvature_doubt: f64,
    /// A bound for the rounding error of q.
    #[serde(skip)]
    pub(super) conjugate_doubt: f64,
}

impl ScalarCurve {
    /// r and all that follows from it at t; not finite outside its domain.
    pub fn sample(&self, t: f64) -> ScalarSample {
        match &self.kind {
            Kind::Named(scalar) => {
                let (curvature, conjugate) = (scalar.curvature(t), scalar.conjugate(t));
                ScalarSample {
                    t,
                    value: scalar.value(t),
                    slope: scalar.slope(t),
                    curvature,
                    conjugate,
                    curvature_doubt: 8.0 * f64::EPSILON * curvature.abs(),
                    conjugate_doubt: 8.0 * f64::EPSILON * conjugate.abs(),
                }
            }
            Kind::Written { formula, shift } => {
                let jet = formula.jet(t);
                let [value, slope, curvature] = jet.terms;
                let product = t * slope;
                let conjugate_doubt =
                    t.abs() * jet.errors[1] + jet.errors[0] + f64::EPSILON * (product.abs() + value.abs());
                ScalarSample {
                    t,
                    value: value - shift,
                    slope,
                    curvature,
                    conjugate: product - (value - shift),
                    curvature_doubt: jet.errors[2],
                    conjugate_doubt,
                }
            }
        }
    }

    /// R as a formula, with its name where it has one.
    pub fn title(&self) -> String {
        let named =
            self.named().and_then(|scalar| PotentialSpec::catalogue().into_iter().find(|e| e.key == scalar.key()));
        match named {
            Some(entry) => format!("{}: R(θ) = {}", self.text, entry.formula),
            None => format!("R(t) = {}", self.text),
        }
    }

    /// q(t).
    pub fn conjugate(&self, t: f64) -> f64 {
        match &self.kind {
            Kind::Named(scalar) => scalar.conjugate(t),
            Kind::Written { .. } => self.sample(t).conjugate,
        }
    }

    /// q(t) and t² r″(t), where both are known to six digits at least relative to q.
    pub(super) fn read(&self, t: f64) -> Option<[f64; 2]> {
        let sample = self.sample(t);
        let growth = t * t * sample.curvature;
        let doubt = t * t * sample.curvature_doubt + sample.conjugate_doubt;
        let finite = sample.value.is_finite() && sample.conjugate.is_finite() && growth.is_finite();
        (finite && doubt <= 1e-6 * sample.conjugate.abs().max(growth.abs())).then_some([sample.conjugate, growth])
    }

    /// The same with r(0) taken off, so that q(0) = 0; nothing if r has no value at 0 or needs no shift.
    pub(super) fn through_the_origin(&self) -> Option<Self> {
        let Kind::Written { formula, shift } = &self.kind else { return None };
        let value = formula.derivatives(0.0)[0];
        let other = value.is_finite() && value != *shift;
        other.then(|| Self { text: self.text.clone(), kind: Kind::Written { formula: formula.clone(), shift: value } })
    }

    /// The closed form behind a name: its degree and coefficient.
    pub(super) fn named(&self) -> Option<&dyn ScalarPotential> {
        match &self.kind {
            Kind::Named(scalar) => Some(&**scalar),
            Kind::Written { .. } => None,
        }
    }
}

impl fmt::Display for ScalarCurve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ScalarCurve {
    type Err = PotentialError;

    fn from_str(text: &str) -> Result<Self, PotentialError> {
        let word = text.trim().split(':').next().unwrap_or_default().trim();
        let kind = if PotentialSpec::catalogue().iter().any(|entry| entry.key == word) {
            Kind::Named(text.trim().parse::<PotentialSpec>()?.scalar()?)
        } else {
            Kind::Written { formula: text.parse()?, shift: 0.0 }
        };
        Ok(Self { text: text.trim().to_owned(), kind })
    }
}
