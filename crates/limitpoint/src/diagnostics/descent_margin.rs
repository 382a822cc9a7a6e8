//! The smoothed margin that no admissible step of gradient descent lowers.

use crate::losses::{DescentScale, LossError};
use crate::numeric::integrate;

/// γ̂ = e^{φ(L)}/‖θ‖^d of a gradient descent with exponential loss that begins at L(t₀) < 1 (D section E.2, Mg.hat).
///
/// γ̃ = u/‖θ‖^d, u = ln 1/L, never falls along gradient flow; a step of descent can lower it a little. γ̂ is smoother
/// and grows a little more slowly, by what a step can lose. With κ, μ, λ of [`DescentScale`], c = ln 1/L(t₀) and v =
/// ln 1/w:
///
/// ```text
/// r(w) = (1 + 2 (1 + λ(w)) μ(w))/(w ln 1/w),   −φ′(x) = R(x) = sup {r(w) : x ≤ w ≤ L(t₀)}
/// φ(x) = ln u + I(x),   I(x) = −∫_u^∞ (R(e^−v) e^−v − 1/v) dv < 0,   φ(x) = ln u − c (1/u + 1/(2d u²)) for small x
/// ```
///
/// As a function of v, r is eᵛ/v + c eᵛ/v² plus c eᵛ/(d v³), or plus a multiple of v^{−1−2/d} for v < a = 2 − 2/d: a
/// sum of convex functions on either side of a. So the supremum over [c, v] is r(c), r(a) or r(v), and the range of v
/// falls into at most four pieces: r(c) until r exceeds it again, r up to a, the larger of r(c) and r(a), and r from
/// there on. Constant pieces and the last one are integrated by formulas, the second one by quadrature in ln v.
///
/// γ̂ < γ̃ ≤ γ̄ and γ̂/γ̄ = 1 − O(1/u) (D Lemma E.1; (20) prints e^I < 0 for e^I < 1).
///
/// ```
/// use limitpoint::diagnostics::DescentMargin;
/// let margin = DescentMargin::new(2.0, -10.0)?; // degree 2, L(t₀) = e⁻¹⁰
/// let phi = 100f64.ln() - 10.0 * (1.0 / 100.0 + 1.0 / (4.0 * 1e4));
/// assert!((margin.phi(-100.0) - phi).abs() < 1e-14);
/// assert!((margin.log_value(-100.0, 5.0) - (phi - 25f64.ln())).abs() < 1e-14);
/// assert!(margin.phi(-9.0).is_nan()); // above the loss of the start
/// # Ok::<(), limitpoint::losses::LossError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DescentMargin {
    scale: DescentScale,
    /// From the first value of u to infinity.
    pieces: Vec<Piece>,
}

/// A range of v in which R has one formula.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    from: f64,
    to: f64,
    shape: Shape,
    /// −I at `to`.
    rest: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    /// R is this constant, by its logarithm.
    Level { log_height: f64 },
    /// R = r where κ is constant.
    Plateau,
    /// R = r where κ = x uᵃ.
    Tail,
}

impl DescentMargin {
    /// For margins of this degree and a descent that begins at ln L(t₀) = `log_start` < 0.
    pub fn new(degree: f64, log_start: f64) -> Result<Self, LossError> {
        let scale = DescentScale::new(degree, log_start)?;
        let (start, a) = (-log_start, scale.plateau());
        let mut bounds = Vec::new();
        let mut height = log_slope(&scale, start);
        if start < a {
            let rise = first_above(&scale, height, start, a);
            bounds.push((start, rise, Shape::Level { log_height: height }));
            bounds.push((rise, a, Shape::Plateau));
            height = height.max(log_slope(&scale, a));
        }
        let from = start.max(a);
        // beyond 3 the slope of ln r is at least 1 − 3/v
        let mut to = from.max(3.0);
        while log_slope(&scale, to) <= height {
            to += to;
        }
        let rise = first_above(&scale, height, from, to);
        bounds.push((from, rise, Shape::Level { log_height: height }));
        bounds.push((rise, f64::INFINITY, Shape::Tail));
        let mut margin = Self { scale, pieces: Vec::new() };
        let mut rest = 0.0;
        for (from, to, shape) in bounds.into_iter().rev() {
            let piece = Piece { from, to, shape, rest };
            rest = margin.deficit_in(&piece, from);
            margin.pieces.push(piece);
        }
        margin.pieces.reverse();
        Ok(margin)
    }

    /// The functions κ, μ and λ behind it.
    pub fn scale(&self) -> &DescentScale {
        &self.scale
    }

    /// −I(x) = ln(γ̃/γ̂) > 0 at ln x = `log_loss`; NaN above L(t₀).
    pub fn deficit(&self, log_loss: f64) -> f64 {
        let u = -log_loss;
        if u.is_nan() || log_loss > self.scale.log_start() {
            return f64::NAN;
        }
        self.pieces.iter().find(|piece| u < piece.to).map_or(0.0, |piece| self.deficit_in(piece, u))
    }

    /// φ(x) at ln x = `log_loss`.
    pub fn phi(&self, log_loss: f64) -> f64 {
        (-log_loss).ln() - self.deficit(log_loss)
    }

    /// ln γ̂ at a point with this loss and this ‖θ‖₂.
    pub fn log_value(&self, log_loss: f64, size: f64) -> f64 {
        self.phi(log_loss) - self.scale.degree() * size.ln()
    }

    /// From here on φ is its closed form: the smallest such ln 1/x.
    pub fn closed_from(&self) -> f64 {
        self.pieces.last().map_or(f64::NAN, |piece| piece.from)
    }

    /// ∫ (R e^−v − 1/v) dv from `u` to the end of its piece, and what is left beyond.
    fn deficit_in(&self, piece: &Piece, u: f64) -> f64 {
        let (c, d) = (-self.scale.log_start(), self.scale.degree());
        piece.rest
            + match piece.shape {
                Shape::Level { log_height } => (log_height - u).exp() * -(u - piece.to).exp_m1() - (piece.to / u).ln(),
                Shape::Plateau => {
                    let a = self.scale.plateau();
                    let top = -self.scale.log_kappa(-a) - d.ln();
                    // (c/d)/κ ∫ e^−v v^{−1−2/d} dv with v = eˢ, in pieces of at most a half
                    let (low, high) = (u.ln(), piece.to.ln());
                    let count = ((high - low) / 0.5).ceil().max(1.0);
                    let width = (high - low) / count;
                    let part = |k: usize| {
                        let from = low + width * k as f64;
                        integrate(from, from + width, |s| (top - s.exp() - 2.0 * s / d).exp())
                    };
                    c * (1.0 / u - 1.0 / piece.to + (0..count as usize).map(part).sum::<f64>())
                }
                Shape::Tail => c * (1.0 + 0.5 / (d * u)) / u,
            }
    }
}

/// ln r at ln 1/w = v.
fn log_slope(scale: &DescentScale, v: f64) -> f64 {
    v - v.ln() + (2.0 * (1.0 + scale.lambda(-v)) * scale.mu(-v)).ln_1p()
}

/// Where r, convex and not above the level at `from`, exceeds it for good; `to` if it does not.
fn first_above(scale: &DescentScale, log_height: f64, from: f64, to: f64) -> f64 {
    let (mut low, mut high) = (from, to);
    if log_slope(scale, to) <= log_height {
        return to;
    }
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return high;
        }
        if log_slope(scale, middle) > log_height { high = middle } else { low = middle }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, by brute force: a running maximum of r on a fine grid, and the trapezium rule.
    fn by_definition(degree: f64, log_start: f64, log_loss: f64) -> f64 {
        let scale = DescentScale::new(degree, log_start).unwrap();
        let (start, u) = (-log_start, -log_loss);
        let end = u.max(start).max(12.0) + 30.0;
        let count = 400_000;
        let at = |k: usize| start * (end / start).powf(k as f64 / count as f64);
        let (mut most, mut area) = (f64::NEG_INFINITY, 0.0);
        let mut before: Option<[f64; 2]> = None;
        for k in 0..=count {
            let v = at(k);
            most = most.max(log_slope(&scale, v));
            let now = [v, (most - v).exp() - 1.0 / v];
            if let Some([old, height]) = before.filter(|[old, _]| *old >= u * (1.0 - 1e-12)) {
                area += 0.5 * (height + now[1]) * (v - old);
            }
            before = Some(now);
        }
        area + start * (1.0 / end + 0.5 / (degree * end * end))
    }

    #[test]
    fn pieces_agree_with_the_definition() {
        for degree in [0.7, 1.0, 1.3, 2.0, 3.0, 5.0] {
            for log_start in [-0.02, -0.3, -0.9, -1.4, -2.5, -6.0] {
                let margin = DescentMargin::new(degree, log_start).unwrap();
                let found = margin.deficit(log_start);
                let expected = by_definition(degree, log_start, log_start);
                assert!((found / expected - 1.0).abs() < 1e-6, "{degree} {log_start}: {found} {expected}");
            }
        }
    }

    #[test]
    fn the_derivative_is_the_supremum_and_never_falls_with_v() {
        for (degree, log_start) in [(3.0, -0.05), (3.0, -0.7), (2.0, -0.2), (1.5, -0.3), (1.0, -0.1), (3.0, -4.0)] {
            let margin = DescentMargin::new(degree, log_start).unwrap();
            let (mut most, mut last) = (f64::NEG_INFINITY, f64::INFINITY);
            for k in 1..2000 {
                let v = -log_start * 1.004f64.powi(k);
                most = most.max(log_slope(margin.scale(), v)).max(log_slope(margin.scale(), -log_start));
                if v < margin.scale().plateau() * 1.01 && v > margin.scale().plateau() {
                    continue; // the supremum at a is not on this grid
                }
                most = if v > margin.scale().plateau() && -log_start < margin.scale().plateau() {
                    most.max(log_slope(margin.scale(), margin.scale().plateau()))
                } else {
                    most
                };
                // dφ/dv = R e^−v
                let h = 1e-5 * v;
                let slope = (margin.phi(-v - h) - margin.phi(-v + h)) / (2.0 * h);
                let expected = (most - v).exp();
                assert!((slope / expected - 1.0).abs() < 1e-4, "{degree} {log_start} at {v}: {slope} {expected}");
                let phi_prime = slope.ln() + v;
                assert!(phi_prime >= last - 1e-6 || k == 1, "convexity at {v}");
                last = phi_prime;
            }
        }
    }

    #[test]
    fn it_lies_below_the_smoothed_margin_and_tends_to_it() {
        for (degree, log_start) in [(3.0, -0.05), (2.0, -1.0), (1.0, -0.5), (3.0, -50.0)] {
            let margin = DescentMargin::new(degree, log_start).unwrap();
            let u = [1.0, 2.0, 10.0, 1e3, 1e6].map(|factor| -log_start * factor);
            let deficits = u.map(|u| margin.deficit(-u));
            assert!(deficits.windows(2).all(|pair| pair[1] < pair[0]) && deficits[4] > 0.0, "{deficits:?}");
            assert!((deficits[4] * u[4] / -log_start - 1.0).abs() < 1e-3);
            assert!(margin.deficit(0.5 * log_start).is_nan() && margin.phi(f64::NAN).is_nan());
        }
    }
}
