//! Sums that do not lose the small terms.

/// A running sum with Neumaier's correction term.
///
/// ```
/// use limitpoint::numeric::CompensatedSum;
/// let mut sum = CompensatedSum::default();
/// for x in [1.0, 1e100, 1.0, -1e100] {
///     sum.add(x);
/// }
/// assert_eq!(sum.value(), 2.0); // plain summation says 0
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CompensatedSum {
    total: f64,
    correction: f64,
}

impl CompensatedSum {
    /// Adds one term.
    pub fn add(&mut self, x: f64) {
        let total = self.total + x;
        self.correction +=
            if self.total.abs() >= x.abs() { (self.total - total) + x } else { (x - total) + self.total };
        self.total = total;
    }

    /// The sum so far.
    pub fn value(&self) -> f64 {
        self.total + self.correction
    }
}

/// Σ xᵢ by Neumaier's algorithm: the error is that of one rounding, not of n.
pub fn compensated_sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sum = CompensatedSum::default();
    values.into_iter().for_each(|x| sum.add(x));
    sum.value()
}

/// Σ aᵢ bᵢ in twice the working precision (Ogita, Rump and Oishi 2005, algorithm Dot2).
///
/// ```
/// let dot = limitpoint::numeric::compensated_dot(&[1e8, 1.0, -1e8], &[1e8, 1.0, 1e8]);
/// assert_eq!(dot, 1.0);
/// ```
pub fn compensated_dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let mut sum = CompensatedSum::default();
    for (&x, &y) in a.iter().zip(b) {
        let product = x * y;
        sum.add(product);
        sum.add(x.mul_add(y, -product));
    }
    sum.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_tenths_make_a_hundred_thousand() {
        let sum = compensated_sum(std::iter::repeat_n(0.1, 1_000_000));
        assert_eq!(sum, 1_000_000.0 * 0.1);
    }
}
