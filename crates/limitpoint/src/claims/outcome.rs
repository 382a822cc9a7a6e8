//! What came out of a claim: checks, and the record they make.

use serde::{Deserialize, Serialize};

use super::Sketch;
use crate::certificates::Verdict;

/// One comparison of what was expected with what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What was measured.
    pub what: String,
    /// What the claim says about it.
    pub expected: String,
    /// What came out.
    pub measured: String,
    /// Whether it holds.
    pub holds: bool,
}

/// The checks of one claim, in the order they were made.
///
/// ```
/// use limitpoint::certificates::Verdict;
/// use limitpoint::claims::Outcome;
/// let mut outcome = Outcome::default();
/// outcome.near("π", 3.14159, std::f64::consts::PI, 1e-5);
/// assert_eq!(outcome.verdict(), Verdict::Certified);
/// outcome.at_most("a distance", f64::NAN, 1.0);
/// assert_eq!(outcome.verdict(), Verdict::Refuted); // what is not a number holds nothing
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The comparisons.
    pub checks: Vec<Check>,
    /// Figures.
    pub sketches: Vec<Sketch>,
    /// What a reader should know beside the numbers.
    pub notes: Vec<String>,
}

impl Outcome {
    /// |measured − expected| ≤ tolerance.
    pub fn near(&mut self, what: impl Into<String>, measured: f64, expected: f64, tolerance: f64) {
        let words = format!("{} within {}", number(expected), number(tolerance));
        self.push(what, words, number(measured), (measured - expected).abs() <= tolerance);
    }

    /// measured ≤ bound.
    pub fn at_most(&mut self, what: impl Into<String>, measured: f64, bound: f64) {
        self.push(what, format!("at most {}", number(bound)), number(measured), measured <= bound);
    }

    /// measured ≥ bound.
    pub fn at_least(&mut self, what: impl Into<String>, measured: f64, bound: f64) {
        self.push(what, format!("at least {}", number(bound)), number(measured), measured >= bound);
    }

    /// Every entry of `measured` within `tolerance` of `expected`.
    pub fn point(&mut self, what: impl Into<String>, measured: &[f64], expected: &[f64], tolerance: f64) {
        let holds =
            measured.len() == expected.len() && measured.iter().zip(expected).all(|(m, e)| (m - e).abs() <= tolerance);
        self.push(what, format!("{} within {}", vector(expected), number(tolerance)), vector(measured), holds);
    }

    /// Anything else, in words.
    pub fn push(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<String>,
        measured: impl Into<String>,
        holds: bool,
    ) {
        let (what, expected, measured) = (what.into(), expected.into(), measured.into());
        self.checks.push(Check { what, expected, measured, holds });
    }

    /// Adds a figure.
    pub fn sketch(&mut self, sketch: Sketch) {
        self.sketches.push(sketch);
    }

    /// Adds a remark.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Certified if all checks hold, refuted if one does not; a claim without checks is refuted too.
    pub fn verdict(&self) -> Verdict {
        let certified = !self.checks.is_empty() && self.checks.iter().all(|check| check.holds);
        if certified { Verdict::Certified } else { Verdict::Refuted }
    }
}

/// A number with the digits a reader wants.
fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if (1e-3..1e6).contains(&size) {
        let text = format!("{value:.9}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{value:.3e}")
    }
}

/// The first entries of a vector.
fn vector(values: &[f64]) -> String {
    let shown: Vec<String> = values.iter().take(6).map(|value| number(*value)).collect();
    format!("({}{})", shown.join(", "), if values.len() > 6 { ", …" } else { "" })
}

/// Values with four decimals.
pub(super) fn decimals(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.4}")).collect::<Vec<_>>().join(", ")
}

/// The outcome of a claim, as files and other programs read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimRecord {
    /// Id of the claim; `.printed` at its end for a form that is wrong in print.
    pub id: String,
    /// What is claimed.
    pub statement: String,
    /// `certified`, `refuted` or `inconclusive`.
    pub verdict: String,
    /// What was expected: of the first check that fails, or of the first one.
    pub expected: String,
    /// What was measured there, and how many checks hold.
    pub measured: String,
    /// `quick` or `full`.
    pub scale: String,
    /// Seconds it took.
    pub seconds: f64,
    /// Whether this is the printed form of a claim that is wrong in print, so that it must be refuted.
    pub printed: bool,
    /// Whether the verdict is the one that was expected: certified, or refuted for a printed form.
    pub as_expected: bool,
    /// The built-in experiments it runs.
    pub experiments: Vec<String>,
    /// All comparisons.
    pub checks: Vec<Check>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Figures.
    pub figures: Vec<Sketch>,
}
