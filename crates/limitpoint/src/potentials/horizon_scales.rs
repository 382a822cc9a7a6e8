//! q(t) = t R′(t) − R(t) and its local degree, from R alone or from ∇R alone, over a hundred decades of t.
//!
//! With x = ln|t| and S(x) = R(±eˣ), G(x) = R′(±eˣ):
//!
//! ```text
//! from R:    q = S′ − S,              t q′ = S″ − S′
//! from ∇R:   q = t G − ∫₀ᵗ R′(s) ds,  t q′ = t G′            (R(0) = 0)
//! local degree  α(x) = d ln q/dx = t q′/q
//! ```
//!
//! Derivatives in x are eighth-order central differences: a power of t is an exponential of x, so one step width suits
//! all scales. The integral is a sum of 16-point Gauss rules in x, begun 40 below, where e⁻⁴⁰ of it is left out.

use crate::numeric::integrate;

/// Which function the caller has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Value,
    Slope,
}

/// q at one scale of one side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// x = ln|t|.
    pub log_t: f64,
    /// ln q(t).
    pub log_conjugate: f64,
    /// d ln q/d ln t.
    pub local_degree: f64,
}

/// Distance of neighbouring scales in ln t.
pub(super) const SPACING: f64 = 0.5;
/// The last scale is t = 10¹⁰⁰.
const LAST_LOG: f64 = 230.258_509_299_404_57;
const PANEL: f64 = 0.25;
const BELOW: f64 = 40.0;
const FIRST: [f64; 4] = [4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0];
const SECOND: [f64; 4] = [8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0];

/// First and second derivative of f at x with step h.
fn derivatives(f: &impl Fn(f64) -> f64, x: f64, h: f64) -> (f64, f64) {
    let centre = f(x);
    let (mut first, mut second) = (0.0, -205.0 / 72.0 * centre);
    for k in 0..4 {
        let step = h * (k as f64 + 1.0);
        let (left, right) = (f(x - step), f(x + step));
        first += FIRST[k] * (right - left);
        second += SECOND[k] * (right + left);
    }
    (first / h, second / (h * h))
}

/// q(t) for one t.
pub(super) fn conjugate(f: &impl Fn(f64) -> f64, known: Known, t: f64) -> f64 {
    let (side, x) = (t.signum(), t.abs().ln());
    match known {
        Known::Value if t == 0.0 => -f(t),
        Known::Value => derivatives(&|y| f(side * y.exp()), x, 0.01).0 - f(t),
        Known::Slope if t == 0.0 => 0.0,
        Known::Slope => t * f(t) - integral(f, side, x - BELOW, x),
    }
}

/// ∫ R′(s) ds over s = side·e^y, y in [from, to], in panels.
fn integral(f: &impl Fn(f64) -> f64, side: f64, from: f64, to: f64) -> f64 {
    let panels = ((to - from) / PANEL).ceil().max(1.0) as usize;
    let width = (to - from) / panels as f64;
    let panel = |k: usize| {
        let low = from + k as f64 * width;
        integrate(low, low + width, |y| side * f(side * y.exp()) * y.exp())
    };
    (0..panels).map(panel).sum()
}

/// Every scale from t = 1 up to 10¹⁰⁰ or overflow, after the last one at which q is not positive.
///
/// Empty when the function is not finite already at ±1: the side lies outside the domain.
pub(super) fn sweep(f: &impl Fn(f64) -> f64, known: Known, side: f64) -> Vec<Scale> {
    let mut scales = Vec::new();
    let mut area = if known == Known::Slope { integral(f, side, -BELOW, 0.0) } else { 0.0 };
    let last = (LAST_LOG / SPACING).floor() as usize;
    for k in 0..=last {
        let x = k as f64 * SPACING;
        if known == Known::Slope && k > 0 {
            area += integral(f, side, x - SPACING, x);
        }
        let at = |h: f64| match known {
            Known::Value => {
                let curve = |y: f64| f(side * y.exp());
                let (first, second) = derivatives(&curve, x, h);
                (first - curve(x), second - first)
            }
            Known::Slope => {
                let t = side * x.exp();
                (t * f(t) - area, t * derivatives(&|y: f64| f(side * y.exp()), x, h).0)
            }
        };
        // The step suits degrees up to 4; steeper functions need a shorter one, found from the steepness it measures.
        let mut step = 0.03;
        let (mut conjugate, mut growth) = at(step);
        for _ in 0..6 {
            let shorter = (0.12 * (conjugate / growth).abs()).max(step / 8.0);
            if !(conjugate.is_finite() && growth.is_finite() && shorter < 0.7 * step) {
                break;
            }
            step = shorter;
            (conjugate, growth) = at(step);
        }
        if !conjugate.is_finite() || !growth.is_finite() {
            break;
        }
        if conjugate > 0.0 {
            let (log_conjugate, local_degree) = (conjugate.ln(), growth / conjugate);
            scales.push(Scale { log_t: x, log_conjugate, local_degree });
        } else {
            scales.clear();
        }
    }
    scales
}

/// Every scale from t = 1 up to 10¹⁰⁰ or overflow, where q(t) and t q′(t) = t² R″(t) are known exactly but for
/// rounding; `read` answers them, or nothing where rounding has taken over.
pub(super) fn sweep_exact(read: &impl Fn(f64) -> Option<[f64; 2]>, side: f64) -> Vec<Scale> {
    let mut scales = Vec::new();
    for k in 0..=(LAST_LOG / SPACING).floor() as usize {
        let log_t = k as f64 * SPACING;
        let Some([conjugate, growth]) = read(side * log_t.exp()) else { break };
        if !conjugate.is_finite() || !growth.is_finite() {
            break;
        }
        if conjugate > 0.0 {
            scales.push(Scale { log_t, log_conjugate: conjugate.ln(), local_degree: growth / conjugate });
        } else {
            scales.clear();
        }
    }
    scales
}
