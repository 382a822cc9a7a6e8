//! How the weights of a layer are spread at the start, and expectations over it.

use serde::Serialize;

use crate::numeric::RandomStream;

/// The distribution of one weight at the start.
///
/// ```
/// use limitpoint::models::Spread;
/// let normal = Spread::Normal { deviation: 0.5 };
/// assert!((normal.mean(|t| t * t) - 0.25).abs() < 1e-12);
/// assert!((normal.mean(f64::abs) - 0.5 * (2.0 / std::f64::consts::PI).sqrt()).abs() < 1e-12);
/// assert_eq!(normal.mean(|t| 1.0 / t.abs()), f64::INFINITY);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// N(0, deviation²).
    Normal {
        /// σ.
        deviation: f64,
    },
    /// Uniform on [−reach, reach].
    Uniform {
        /// The largest weight.
        reach: f64,
    },
    /// One value for all.
    Constant {
        /// The value.
        value: f64,
    },
}

/// Distance of the nodes in ln|t|.
const SPACING: f64 = 0.01;
/// The smallest |t| is e^−LOWEST of the spread.
const LOWEST: f64 = 60.0;

impl Spread {
    /// A weight drawn from it.
    pub fn draw(&self, stream: &mut RandomStream) -> f64 {
        match *self {
            Self::Normal { deviation } => deviation * stream.normal(),
            Self::Uniform { reach } => stream.uniform_in(-reach, reach),
            Self::Constant { value } => value,
        }
    }

    /// The root mean square σ of the weights.
    pub fn deviation(&self) -> f64 {
        match *self {
            Self::Normal { deviation } => deviation,
            Self::Uniform { reach } => reach / 3f64.sqrt(),
            Self::Constant { value } => value.abs(),
        }
    }

    /// E f(θ₀) for an even f; infinite if the expectation does not exist.
    ///
    /// The integral over y = ln|t| by the trapezoidal rule: its integrand is analytic and falls off at both ends, so
    /// that the rule converges faster than any power of the spacing. It falls off as e^y at the lower end unless f has
    /// a pole there; then the lowest nodes carry weight, and the answer is ∞ (also for poles from about |t|^−0.65 on,
    /// whose integral exists). A uniform spread ends abruptly: four digits.
    pub fn mean(&self, f: impl Fn(f64) -> f64) -> f64 {
        match *self {
            Self::Constant { value } => f(value),
            // density of |t|/σ times dt = t dy
            Self::Normal { deviation } => {
                let density = |x: f64| (2.0 / std::f64::consts::PI).sqrt() * (-0.5 * x * x).exp() * x;
                trapezoidal(4.5, |y| density(y.exp()) * f(deviation * y.exp()), 1.0)
            }
            Self::Uniform { reach } => trapezoidal(0.0, |y| y.exp() * f(reach * y.exp()), 0.5),
        }
    }
}

/// ∫ over (−∞, high]; the last node counts `last`.
fn trapezoidal(high: f64, f: impl Fn(f64) -> f64, last: f64) -> f64 {
    let count = ((high + LOWEST) / SPACING).round() as usize;
    let node = |k: usize| f(high - k as f64 * SPACING);
    let sum: f64 = last * node(0) + (1..=count).map(node).sum::<f64>();
    let lowest = node(count).abs() / SPACING;
    if sum.is_nan() || sum.is_finite() && lowest <= 1e-9 * sum.abs() { SPACING * sum } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_a_uniform_spread() {
        let normal = Spread::Normal { deviation: 1e-3 };
        assert!((normal.mean(|t| t.powi(4)) / 3e-12 - 1.0).abs() < 1e-12);
        assert!((normal.mean(|_| 1.0) - 1.0).abs() < 1e-12);
        let uniform = Spread::Uniform { reach: 2.0 };
        assert!((uniform.mean(|t| t * t) - 4.0 / 3.0).abs() < 1e-4, "{}", uniform.mean(|t| t * t));
        assert!((uniform.deviation() - (4.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(Spread::Constant { value: -3.0 }.mean(|t| t * t), 9.0);
    }

    #[test]
    fn poles_that_can_be_integrated_are_and_others_are_infinite() {
        let normal = Spread::Normal { deviation: 1.0 };
        // E|t|^(−1/2) = 2^(−1/4) Γ(1/4)/√π, Γ(1/4) = 3.625 609 908 221 908
        let exact = 2f64.powf(-0.25) * 3.625_609_908_221_908 / std::f64::consts::PI.sqrt();
        assert!((normal.mean(|t| t.abs().powf(-0.5)) / exact - 1.0).abs() < 1e-9);
        assert_eq!(normal.mean(|t| t.powi(-2)), f64::INFINITY);
        assert!((normal.mean(|_| -1.0) + 1.0).abs() < 1e-12 && normal.mean(|_| f64::NAN).is_nan());
    }

    #[test]
    fn the_replica_of_the_catalogue_for_cubic_potentials() {
        // σ² E[1/(2|t| + σ²)], computed for the catalogue of claims: 0.124, 0.021, 0.0031
        for (sigma, expected) in [(1e-1, 0.124), (1e-2, 0.021), (1e-3, 0.0031)] {
            let found =
                sigma * sigma * Spread::Normal { deviation: sigma }.mean(|t| 1.0 / (2.0 * t.abs() + sigma * sigma));
            assert!((found / expected - 1.0).abs() < 0.03, "{sigma}: {found}");
        }
    }
}
