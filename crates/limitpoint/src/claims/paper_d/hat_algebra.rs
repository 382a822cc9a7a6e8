//! Fractions of whole numbers, for identities that must hold exactly.

/// A fraction in lowest terms with a positive denominator; operations give nothing where 128 bits do not hold the
/// result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fraction {
    top: i128,
    bottom: i128,
}

impl Fraction {
    /// top/bottom; nothing over 0.
    pub fn new(top: i128, bottom: i128) -> Option<Self> {
        let (mut a, mut b) = (top.unsigned_abs(), bottom.unsigned_abs());
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let common = i128::try_from(a).ok()?.checked_mul(bottom.signum())?;
        Some(Self { top: top.checked_div(common)?, bottom: bottom.checked_div(common)? })
    }

    pub fn plus(self, other: Self) -> Option<Self> {
        let sum = self.top.checked_mul(other.bottom)?.checked_add(other.top.checked_mul(self.bottom)?)?;
        Self::new(sum, self.bottom.checked_mul(other.bottom)?)
    }

    pub fn minus(self, other: Self) -> Option<Self> {
        self.plus(Self { top: other.top.checked_neg()?, bottom: other.bottom })
    }

    pub fn times(self, other: Self) -> Option<Self> {
        Self::new(self.top.checked_mul(other.top)?, self.bottom.checked_mul(other.bottom)?)
    }

    pub fn over(self, other: Self) -> Option<Self> {
        Self::new(self.top.checked_mul(other.bottom)?, self.bottom.checked_mul(other.top)?)
    }

    /// The nearest double, but for rounding; 0 only if it is 0.
    pub fn value(self) -> f64 {
        self.top as f64 / self.bottom as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_exact_and_overflow_to_nothing() {
        let (third, sixth) = (Fraction::new(1, 3).unwrap(), Fraction::new(-2, -12).unwrap());
        assert_eq!(third.plus(sixth), Fraction::new(1, 2));
        assert_eq!(third.minus(third), Fraction::new(0, 7));
        assert_eq!(third.times(sixth), Fraction::new(1, 18));
        assert_eq!(third.over(sixth), Fraction::new(2, 1));
        assert_eq!(sixth.minus(third).unwrap().value(), -1.0 / 6.0);
        assert_eq!(Fraction::new(1, 0), None);
        assert_eq!(third.over(third.minus(third).unwrap()), None);
        let huge = Fraction::new(i128::MAX, 1).unwrap();
        assert_eq!(huge.times(huge), None);
    }
}
