//! A number with two derivatives, and how far rounding may have moved each of them.

use std::ops::{Add, Mul, Neg, Sub};

/// f(t), f′(t), f″(t) of an expression, carried through every operation (Griewank and Walther 2008, chapter 13), so
/// that derivatives are exact up to rounding. `errors` are first-order bounds of that rounding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Jet {
    pub terms: [f64; 3],
    pub errors: [f64; 3],
}

const ROUNDING: f64 = f64::EPSILON;

impl Jet {
    pub fn constant(value: f64) -> Self {
        Self { terms: [value, 0.0, 0.0], errors: [0.0; 3] }
    }

    pub fn variable(t: f64) -> Self {
        Self { terms: [t, 1.0, 0.0], errors: [0.0; 3] }
    }

    fn is_constant(&self) -> bool {
        self.terms[1] == 0.0 && self.terms[2] == 0.0 && self.errors[1] == 0.0
    }

    /// g(f), from g, g′ and g″ at f.
    pub fn apply(self, outer: [f64; 3]) -> Self {
        let ([f, f1, f2], [e, e1, e2]) = (self.terms, self.errors);
        let [g, g1, g2] = outer;
        if self.is_constant() {
            return Self { terms: [g, 0.0, 0.0], errors: [times(g1.abs(), e) + ROUNDING * g.abs(), 0.0, 0.0] };
        }
        let (bend, follow) = (times(g2, f1 * f1), times(g1, f2));
        // how g″ moves with f: as for powers, g‴ ≈ g″/f
        let relative = times(2.0 / f.abs().max(f64::MIN_POSITIVE), e);
        let errors = [
            times(g1.abs(), e) + ROUNDING * g.abs(),
            times(g1.abs(), e1) + times((g2 * f1).abs(), e) + ROUNDING * (g1 * f1).abs(),
            times(g2.abs(), 2.0 * f1.abs() * e1)
                + times(g1.abs(), e2)
                + times((g2 * f2).abs(), e)
                + times(bend.abs(), relative)
                + ROUNDING * (bend.abs() + follow.abs()),
        ];
        Self { terms: [g, times(g1, f1), bend + follow], errors }
    }

    /// g(f), from g, f g′ and f² g″ at f: for powers and logarithms these stay in range where g″ itself does not.
    pub fn apply_scaled(self, outer: [f64; 3]) -> Self {
        let ([f, f1, f2], [e, e1, e2]) = (self.terms, self.errors.map(|error| error / self.terms[0].abs()));
        let [g, g1, g2] = outer;
        if self.is_constant() {
            return Self { terms: [g, 0.0, 0.0], errors: [times(g1.abs(), e) + ROUNDING * g.abs(), 0.0, 0.0] };
        }
        let (r, s) = (f1 / f, f2 / f);
        let (bend, follow) = (times(g2, r * r), times(g1, s));
        let errors = [
            times(g1.abs(), e) + ROUNDING * g.abs(),
            times(g1.abs(), e1) + times((g2 * r).abs(), e) + ROUNDING * (g1 * r).abs(),
            times(g2.abs(), 2.0 * r.abs() * e1)
                + times(g1.abs(), e2)
                + times((g2 * s).abs() + 2.0 * bend.abs(), e)
                + ROUNDING * (bend.abs() + follow.abs()),
        ];
        Self { terms: [g, times(g1, r), bend + follow], errors }
    }

    /// f^g: a power with a constant exponent, else exp(g ln f).
    pub fn power(self, exponent: Self) -> Self {
        if exponent.is_constant() {
            let (x, n) = (self.terms[0], exponent.terms[0]);
            return match n {
                0.0 => Self::constant(1.0),
                1.0 => self,
                2.0 => self * self,
                // next to 0 the quotients f′/f are lost, the powers themselves are not
                _ if x == 0.0 => self.apply([x.powf(n), n * x.powf(n - 1.0), n * (n - 1.0) * x.powf(n - 2.0)]),
                _ => self.apply_scaled([1.0, n, n * (n - 1.0)].map(|factor| factor * x.powf(n))),
            };
        }
        (exponent * self.apply_scaled([self.terms[0].ln(), 1.0, -1.0])).exponential()
    }

    pub fn exponential(self) -> Self {
        self.apply([self.terms[0].exp(); 3])
    }

    /// 1/f.
    pub fn reciprocal(self) -> Self {
        let x = 1.0 / self.terms[0];
        self.apply_scaled([x, -x, 2.0 * x])
    }
}

/// A product in which an exact 0 wins over infinity: what does not move adds nothing.
fn times(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

impl Add for Jet {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let terms = std::array::from_fn(|k| self.terms[k] + other.terms[k]);
        let errors = std::array::from_fn(|k| {
            let sum: f64 = terms[k];
            self.errors[k] + other.errors[k] + if other.terms[k] == 0.0 { 0.0 } else { ROUNDING * sum.abs() }
        });
        Self { terms, errors }
    }
}

impl Neg for Jet {
    type Output = Self;
    fn neg(self) -> Self {
        Self { terms: self.terms.map(|x| -x), ..self }
    }
}

impl Sub for Jet {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Jet {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let ([a, a1, a2], [b, b1, b2]) = (self.terms, other.terms);
        let ([ea, ea1, ea2], [eb, eb1, eb2]) = (self.errors, other.errors);
        let error =
            |x: f64, ex: f64, y: f64, ey: f64| times(x.abs(), ey) + times(y.abs(), ex) + ROUNDING * times(x, y).abs();
        Self {
            terms: [a * b, times(a1, b) + times(a, b1), times(a2, b) + 2.0 * times(a1, b1) + times(a, b2)],
            errors: [
                error(a, ea, b, eb),
                error(a1, ea1, b, eb) + error(a, ea, b1, eb1),
                error(a2, ea2, b, eb) + 2.0 * error(a1, ea1, b1, eb1) + error(a, ea, b2, eb2),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_powers_and_quotients_have_the_derivatives_of_the_textbook() {
        let t = Jet::variable(2.0);
        assert_eq!((t * t * t).terms, [8.0, 12.0, 12.0]);
        assert_eq!(t.power(Jet::constant(3.0)).terms, [8.0, 12.0, 12.0]);
        assert_eq!((t * t).reciprocal().terms, [0.25, -0.25, 0.375]); // 1/t²: −2/t³, 6/t⁴
        let exponential = Jet::constant(2.0).power(t).terms; // 2^t
        let log = 2f64.ln();
        for (found, expected) in exponential.into_iter().zip([4.0, 4.0 * log, 4.0 * log * log]) {
            assert!((found - expected).abs() < 1e-14);
        }
    }

    #[test]
    fn cancellation_shows_in_the_errors() {
        // √(t² + 1) at 10⁸: f″ = 10⁻²⁴ is the difference of two terms of size 10⁻⁸
        let t = Jet::variable(1e8);
        let square = t * t + Jet::constant(1.0);
        let x = square.terms[0];
        let root = square.apply_scaled([1.0, 0.5, -0.25].map(|factor| factor * x.sqrt()));
        assert!(root.errors[2] > (root.terms[2] - 1e-24).abs(), "{root:?}");
        assert!(root.errors[0] < 1e-7 && root.errors[1] < 1e-14, "{root:?}");
    }
}
