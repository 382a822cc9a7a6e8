//! The potentials there is advice for.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::AdviceError;
use crate::models::Spread;
use crate::norms::NormSpec;
use crate::potentials::{Hyperbolic, PotentialError, ScalarPotential, Smoothed};

/// The potentials there is advice for; λ is what the advice is about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MirrorFamily {
    /// Gradient descent.
    Euclidean,
    /// t asinh(t/√λ) − √(t² + λ).
    Hyperbolic,
    /// |t|^p/p + λt²/2.
    Smoothed {
        /// p > 2.
        p: f64,
    },
}

impl MirrorFamily {
    /// The degree α of the horizon, a multiple of the ℓα norm.
    pub fn degree(&self) -> f64 {
        match *self {
            Self::Euclidean => 2.0,
            Self::Hyperbolic => 1.0,
            Self::Smoothed { p } => p,
        }
    }

    /// The ℓα norm.
    pub fn norm(&self) -> NormSpec {
        match *self {
            Self::Euclidean => NormSpec::L2,
            Self::Hyperbolic => NormSpec::L1,
            Self::Smoothed { p } => NormSpec::Lp { p },
        }
    }

    /// Descent with this potential, as recipes and overrides write it.
    pub fn optimiser(&self, lambda: f64) -> String {
        match *self {
            Self::Euclidean => "gradient".to_owned(),
            Self::Hyperbolic => format!("mirror(potential=hyperbolic(lambda={lambda:e}))"),
            Self::Smoothed { p } => format!("mirror(potential=smoothed(p={p},lambda={lambda:e}))"),
        }
    }

    /// 1/r″(t).
    pub fn inverse_curvature(&self, lambda: f64, t: f64) -> Result<f64, PotentialError> {
        Ok(1.0
            / match *self {
                Self::Euclidean => 1.0,
                Self::Hyperbolic => Hyperbolic::new(lambda)?.curvature(t),
                Self::Smoothed { p } => Smoothed::new(p, lambda)?.curvature(t),
            })
    }

    /// The λ → 0 limit of 1/r″(t).
    fn limit(&self, t: f64) -> f64 {
        match *self {
            Self::Euclidean => 1.0,
            Self::Hyperbolic => t.abs(),
            Self::Smoothed { p } => 1.0 / ((p - 1.0) * t.abs().powf(p - 2.0)),
        }
    }

    /// E[1/r″(θ₀)]; λ = 0 means the limit, which may be infinite.
    ///
    /// ```
    /// use limitpoint::advice::MirrorFamily;
    /// use limitpoint::models::Spread;
    /// let start = Spread::Normal { deviation: 0.1 };
    /// let mean = MirrorFamily::Hyperbolic.mean_inverse_curvature(0.0, &start);
    /// assert!((mean - 0.1 * (2.0 / std::f64::consts::PI).sqrt()).abs() < 1e-12); // E|θ|
    /// assert_eq!(MirrorFamily::Smoothed { p: 3.0 }.mean_inverse_curvature(0.0, &start), f64::INFINITY);
    /// ```
    pub fn mean_inverse_curvature(&self, lambda: f64, start: &Spread) -> f64 {
        start.mean(
            |t| {
                if lambda == 0.0 { self.limit(t) } else { self.inverse_curvature(lambda, t).unwrap_or(f64::NAN) }
            },
        )
    }
}

impl fmt::Display for MirrorFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Euclidean => f.write_str("euclidean"),
            Self::Hyperbolic => f.write_str("hyperbolic"),
            Self::Smoothed { p } => write!(f, "smoothed:{p}"),
        }
    }
}

impl FromStr for MirrorFamily {
    type Err = AdviceError;

    fn from_str(text: &str) -> Result<Self, AdviceError> {
        let refuse = || AdviceError::Family { text: text.to_owned() };
        match text.trim().split_once(':') {
            None if text.trim() == "euclidean" => Ok(Self::Euclidean),
            None if text.trim() == "hyperbolic" => Ok(Self::Hyperbolic),
            Some(("smoothed", p)) => {
                let p: f64 = p.trim().parse().map_err(|_| refuse())?;
                if p > 2.0 && p.is_finite() { Ok(Self::Smoothed { p }) } else { Err(refuse()) }
            }
            _ => Err(refuse()),
        }
    }
}
