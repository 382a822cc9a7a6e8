//! What can be said of columns of numbers: each is one [`Check`] with one measured number.
//!
//! | method | measures | holds if |
//! |---|---|---|
//! | [`Outcome::never_falls`] | the largest relative fall from one value to the next | at most the tolerance |
//! | [`Outcome::never_rises`] | the largest relative rise | at most the tolerance |
//! | [`Outcome::largest`] | the largest value | at most the bound |
//! | [`Outcome::smallest`] | the smallest value | at least the bound |
//! | [`Outcome::exceeds`] | the largest value | at least the bound: it happens somewhere |
//! | [`Outcome::rises`] | the last value over the first | at least the factor |
//! | [`Outcome::falls`] | the last value over the first | at most the factor |
//! | [`Outcome::slope`] | the least-squares slope | within the tolerance |
//! | [`Outcome::exponent`] | the slope of the logarithms | within the tolerance |
//! | [`Outcome::agree`] | the largest difference of two columns | at most the tolerance |
//! | [`Outcome::share`] | the share of cases that are so | at least the bound |
//! | [`Outcome::at_most`], [`Outcome::at_least`], [`Outcome::near`], [`Outcome::between`] | one number | |
//!
//! Columns without a value, and those with a NaN, measure NaN: nothing is held by what was not seen.

use crate::arithmetic::{larger, largest_fall, smaller};
use crate::{Check, Outcome};

impl Outcome {
    /// The largest relative fall from one value to the next is at most `tolerance`.
    pub fn never_falls(&mut self, what: impl Into<String>, values: &[f64], tolerance: f64) -> &mut Check {
        self.at_most(what, fall(values.iter().copied()), tolerance)
    }

    /// The largest relative rise from one value to the next is at most `tolerance`.
    pub fn never_rises(&mut self, what: impl Into<String>, values: &[f64], tolerance: f64) -> &mut Check {
        self.at_most(what, fall(values.iter().map(|value| -value)), tolerance)
    }

    /// The largest of all values is at most `bound`.
    pub fn largest(
        &mut self,
        what: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
        bound: f64,
    ) -> &mut Check {
        self.at_most(what, values.into_iter().reduce(larger).unwrap_or(f64::NAN), bound)
    }

    /// The smallest of all values is at least `bound`.
    pub fn smallest(
        &mut self,
        what: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
        bound: f64,
    ) -> &mut Check {
        self.at_least(what, values.into_iter().reduce(smaller).unwrap_or(f64::NAN), bound)
    }

    /// The largest of all values is at least `bound`: what is claimed to happen happens.
    pub fn exceeds(
        &mut self,
        what: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
        bound: f64,
    ) -> &mut Check {
        self.at_least(what, values.into_iter().reduce(larger).unwrap_or(f64::NAN), bound)
    }

    /// The last value is at least `factor` times the first.
    pub fn rises(&mut self, what: impl Into<String>, values: &[f64], factor: f64) -> &mut Check {
        self.at_least(what, last_over_first(values), factor)
    }

    /// The last value is at most `factor` times the first.
    pub fn falls(&mut self, what: impl Into<String>, values: &[f64], factor: f64) -> &mut Check {
        self.at_most(what, last_over_first(values), factor)
    }

    /// The least-squares slope through the points is near `expected`.
    pub fn slope(&mut self, what: impl Into<String>, points: &[[f64; 2]], expected: f64, tolerance: f64) -> &mut Check {
        self.near(what, slope(points), expected, tolerance)
    }

    /// The slope of ln y on ln x is near `expected`.
    pub fn exponent(
        &mut self,
        what: impl Into<String>,
        points: &[[f64; 2]],
        expected: f64,
        tolerance: f64,
    ) -> &mut Check {
        let logs: Vec<[f64; 2]> = points.iter().map(|point| point.map(f64::ln)).collect();
        self.slope(what, &logs, expected, tolerance)
    }

    /// Two columns differ by at most `tolerance`.
    pub fn agree(&mut self, what: impl Into<String>, a: &[f64], b: &[f64], tolerance: f64) -> &mut Check {
        let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs()).reduce(larger);
        self.at_most(what, apart.filter(|_| a.len() == b.len()).unwrap_or(f64::NAN), tolerance)
    }

    /// At least this share of all cases is so.
    pub fn share(
        &mut self,
        what: impl Into<String>,
        cases: impl IntoIterator<Item = bool>,
        at_least: f64,
    ) -> &mut Check {
        let (mut all, mut so) = (0, 0);
        for case in cases {
            all += 1;
            so += usize::from(case);
        }
        // 0/0 is NaN
        self.at_least(what, so as f64 / all as f64, at_least)
    }
}

/// NaN for columns of less than two values, which show no course.
fn fall(values: impl Iterator<Item = f64> + Clone) -> f64 {
    if values.clone().nth(1).is_some() { largest_fall(values) } else { f64::NAN }
}

fn last_over_first(values: &[f64]) -> f64 {
    match values {
        [first, .., last] => last / first,
        _ => f64::NAN,
    }
}

/// The least-squares slope of y on x; NaN without a spread.
pub(crate) fn slope(points: &[[f64; 2]]) -> f64 {
    let count = points.len() as f64;
    let [x, y] = [0, 1].map(|axis| points.iter().map(|point| point[axis]).sum::<f64>() / count);
    let product: f64 = points.iter().map(|point| (point[0] - x) * (point[1] - y)).sum();
    product / points.iter().map(|point| (point[0] - x).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number that one comparison measured, and whether it holds.
    fn one(compare: impl FnOnce(&mut Outcome) -> &mut Check) -> (Option<f64>, bool) {
        let mut outcome = Outcome::default();
        let check = compare(&mut outcome);
        (check.value, check.holds)
    }

    #[test]
    fn every_comparison_can_hold_and_can_fail() {
        let up = [1.0, 2.0, 4.0];
        assert_eq!(one(|o| o.never_falls("", &up, 0.0)), (Some(0.0), true));
        assert_eq!(one(|o| o.never_falls("", &[4.0, 2.0], 0.1)), (Some(0.5), false));
        assert_eq!(one(|o| o.never_rises("", &[4.0, 2.0], 0.1)), (Some(0.0), true));
        assert_eq!(one(|o| o.never_rises("", &up, 0.1)), (Some(1.0), false));
        assert_eq!(one(|o| o.largest("", up, 4.0)), (Some(4.0), true));
        assert_eq!(one(|o| o.smallest("", up, 2.0)), (Some(1.0), false));
        assert_eq!(one(|o| o.exceeds("", up, 3.0)), (Some(4.0), true));
        assert_eq!(one(|o| o.rises("", &up, 4.0)), (Some(4.0), true));
        assert_eq!(one(|o| o.falls("", &up, 1.0)), (Some(4.0), false));
        assert_eq!(one(|o| o.slope("", &[[0.0, 1.0], [2.0, 5.0]], 2.0, 0.0)), (Some(2.0), true));
        let (power, holds) = one(|o| o.exponent("", &[[1.0, 2.0], [4.0, 1.0]], -0.5, 1e-12));
        assert!(holds && (power.unwrap() + 0.5).abs() < 1e-12);
        assert_eq!(one(|o| o.agree("", &up, &[1.0, 2.0, 3.0], 0.5)), (Some(1.0), false));
        assert_eq!(one(|o| o.share("", [true, false], 0.5)), (Some(0.5), true));
    }

    #[test]
    fn nothing_is_held_by_what_was_not_seen() {
        let none: [f64; 0] = [];
        assert_eq!(one(|o| o.never_falls("", &[1.0], 1.0)), (None, false));
        assert_eq!(one(|o| o.largest("", [f64::NAN, 0.0], 1.0)), (None, false));
        assert_eq!(one(|o| o.rises("", &[1.0], 0.0)), (None, false));
        assert_eq!(one(|o| o.slope("", &[[1.0, 1.0]], 0.0, 1.0)), (None, false));
        assert_eq!(one(|o| o.agree("", &[1.0], &[1.0, 1.0], 1.0)), (None, false));
        assert_eq!(one(|o| o.share("", [], 0.0)), (None, false));
        assert_eq!(one(|o| o.smallest("", none, -1.0)), (None, false));
        assert_eq!(one(|o| o.largest("", none, 1.0)), (None, false));
    }
}
