//! How curved an exponential loss of homogeneous margins is, and how long a step may be.

use super::LossError;

/// The functions κ, μ and λ of a gradient descent that begins at L(t₀) < 1, for margins of degree d in the parameters.
///
/// With x the loss, u = ln 1/x, c = ln 1/L(t₀) and a = 2 − 2/d:
///
/// ```text
/// κ(x) = x uᵃ                 for d ≤ 1 or u ≥ a;  e^{a (ln a − 1)}, its largest value, for d > 1 and u < a
/// μ(x) = c/(2u)               at most ½ for x ≤ L(t₀)
/// λ(x) = x u^{1−2/d}/(d κ)    = 1/(d u) where κ = x uᵃ
/// H(x) = μ(x)/(C κ(x))        steps η ≤ H(L) are admissible (S5)
/// ```
///
/// ‖∇²L‖ ≤ 2 C κ(L) along the path for a constant C of the model, the data and the start, so H is the inverse of the
/// curvature times a factor that tends to 0. All of them take ln x and stay exact where x is not a float. κ and μ are
/// non-decreasing in x. D section E.1 and E.2 (D.s5); the proof needs ∫ μ(x)/(x ln 1/x) dx < ∞ near 0, not the printed
/// ∫ μ(x) dx < ∞.
///
/// ```
/// use limitpoint::losses::DescentScale;
/// let scale = DescentScale::new(2.0, -4.0)?; // degree 2, L(t₀) = e⁻⁴
/// assert_eq!(scale.mu(-4.0), 0.5);
/// assert_eq!(scale.mu(-4000.0), 0.0005);
/// assert_eq!(scale.log_kappa(-4000.0), -4000.0 + 4000f64.ln());
/// assert_eq!(scale.lambda(-4000.0), 1.0 / 8000.0);
/// let expected = 0.0005f64.ln() - 3.0 + 4000.0 - 4000f64.ln();
/// assert!((scale.log_bound(-4000.0, 3.0) - expected).abs() < 1e-11);
/// # Ok::<(), limitpoint::losses::LossError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DescentScale {
    degree: f64,
    /// c = ln 1/L(t₀).
    start: f64,
}

impl DescentScale {
    /// For margins of this degree and a descent that begins at ln L(t₀) = `log_start` < 0.
    pub fn new(degree: f64, log_start: f64) -> Result<Self, LossError> {
        let refuse = |what, value, range| Err(LossError::DescentScale { what, value, range });
        if !(degree > 0.0 && degree.is_finite()) {
            return refuse("the degree of the margins", degree, "a positive finite number; use a homogeneous model");
        }
        if !(log_start < 0.0 && log_start.is_finite()) {
            return refuse("ln L(t₀)", log_start, "negative and finite: start where the summed loss is below 1");
        }
        Ok(Self { degree, start: -log_start })
    }

    /// The degree d.
    pub fn degree(&self) -> f64 {
        self.degree
    }

    /// ln L(t₀).
    pub fn log_start(&self) -> f64 {
        -self.start
    }

    /// a = 2 − 2/d: κ stops growing at ln 1/x = a; not positive for d ≤ 1, where it never stops.
    pub fn plateau(&self) -> f64 {
        2.0 - 2.0 / self.degree
    }

    /// ln κ(x), for ln x = `log_loss` < 0.
    pub fn log_kappa(&self, log_loss: f64) -> f64 {
        let (u, a) = (-log_loss, self.plateau());
        if u < a { a * (a.ln() - 1.0) } else { a * u.ln() - u }
    }

    /// μ(x).
    pub fn mu(&self, log_loss: f64) -> f64 {
        self.start / (-2.0 * log_loss)
    }

    /// λ(x).
    pub fn lambda(&self, log_loss: f64) -> f64 {
        let u = -log_loss;
        if u < self.plateau() {
            ((1.0 - 2.0 / self.degree) * u.ln() - u - self.log_kappa(log_loss)).exp() / self.degree
        } else {
            1.0 / (self.degree * u)
        }
    }

    /// ln H(x) for the constant C of the curvature, given as its logarithm.
    pub fn log_bound(&self, log_loss: f64, log_curvature: f64) -> f64 {
        self.mu(log_loss).ln() - log_curvature - self.log_kappa(log_loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEGREES: [f64; 6] = [0.5, 1.0, 1.5, 2.0, 3.0, 7.0];

    /// As printed, with the loss as a number.
    #[test]
    fn the_functions_are_those_of_their_definition() {
        for degree in DEGREES {
            let scale = DescentScale::new(degree, 0.9f64.ln()).unwrap();
            for x in [0.9f64, 0.5, 0.2, 0.1, 1e-3, 1e-100] {
                let (u, a) = ((1.0 / x).ln(), 2.0 - 2.0 / degree);
                let kappa = if degree > 1.0 && x > (-a).exp() { (a * (a.ln() - 1.0)).exp() } else { x * u.powf(a) };
                let lambda = x * u.powf(1.0 - 2.0 / degree) / (degree * kappa);
                let log = x.ln();
                assert!((scale.log_kappa(log) - kappa.ln()).abs() < 1e-12, "{degree} {x}");
                assert!((scale.lambda(log) / lambda - 1.0).abs() < 1e-12, "{degree} {x}");
                assert!((scale.mu(log) - (1.0f64 / 0.9).ln() / (2.0 * u)).abs() < 1e-15, "{degree} {x}");
            }
        }
    }

    #[test]
    fn kappa_and_mu_do_not_decrease_and_kappa_does_not_jump() {
        for degree in DEGREES {
            let scale = DescentScale::new(degree, -1e-3).unwrap();
            let logs: Vec<f64> = (0..4000).map(|k| -20.0 + 0.005 * f64::from(k)).filter(|log| *log < -1e-3).collect();
            for pair in logs.windows(2) {
                let [before, after] = [pair[0], pair[1]].map(|log| scale.log_kappa(log));
                assert!(after >= before - 1e-15 && after - before < 0.1 + 40.0 * (1.0 - pair[1] / pair[0]).abs());
                assert!(scale.mu(pair[1]) > scale.mu(pair[0]));
            }
            let a = scale.plateau();
            if a > 0.0 {
                assert!((scale.log_kappa(-a * (1.0 - 1e-12)) - scale.log_kappa(-a * (1.0 + 1e-12))).abs() < 1e-11);
                assert!((scale.lambda(-a * (1.0 - 1e-12)) - scale.lambda(-a * (1.0 + 1e-12))).abs() < 1e-11);
            }
        }
    }

    #[test]
    fn what_has_no_descent_is_refused() {
        for (degree, log_start) in
            [(0.0, -1.0), (f64::NAN, -1.0), (2.0, 0.0), (2.0, f64::NAN), (2.0, f64::NEG_INFINITY)]
        {
            let error = DescentScale::new(degree, log_start).unwrap_err();
            assert!(error.to_string().contains("must be"), "{error}");
        }
    }
}
