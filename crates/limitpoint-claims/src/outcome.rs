//! What came out of a claim: comparisons, figures, remarks.

use limitpoint::report::Sketch;
use serde::{Deserialize, Serialize};

use crate::{Kind, Status};

/// Where a tolerance comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It follows from the statement, up to rounding.
    Theory,
    /// The paper states it.
    Paper,
    /// We chose it.
    #[default]
    Ours,
}

impl Origin {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Theory => "by theory",
            Self::Paper => "by the paper",
            Self::Ours => "our tolerance",
        }
    }
}

/// One comparison of what was expected with what was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What was measured.
    pub what: String,
    /// What the claim says about it.
    pub expected: String,
    /// What came out, in words.
    pub measured: String,
    /// The number that came out, where it is one and finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Whether it holds.
    pub holds: bool,
    /// Whether all that was measured is finite, and enough was measured; what is not holds nothing and contradicts nothing.
    pub finite: bool,
    /// Where the tolerance comes from.
    pub origin: Origin,
    /// What the catalogue of claims asks for, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<String>,
    /// The number in print.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<f64>,
}

impl Check {
    /// The tolerance follows from the statement.
    pub fn by_theory(&mut self) -> &mut Self {
        self.origin = Origin::Theory;
        self
    }

    /// The paper states the tolerance.
    pub fn by_paper(&mut self) -> &mut Self {
        self.origin = Origin::Paper;
        self
    }

    /// What was seen would hold, but is too little to say so: it decides nothing.
    pub fn too_few(&mut self) -> &mut Self {
        (self.holds, self.finite) = (false, false);
        self
    }

    /// The catalogue asks for something else: say what, and why it is not asked for here.
    pub fn catalogue_asks(&mut self, what: impl Into<String>) -> &mut Self {
        self.catalogue = Some(what.into());
        self
    }

    /// The paper's own number, to stand beside ours.
    pub fn printed(&mut self, value: f64) -> &mut Self {
        self.printed = Some(value);
        self
    }

    /// The paper's number beside ours, with their ratio and the size that ours was measured at; empty without one.
    pub fn beside_print(&self, scale: &str) -> String {
        let Some(printed) = self.printed else { return String::new() };
        let ratio = self.value.filter(|_| printed != 0.0);
        let ratio = ratio.map_or(String::new(), |value| format!(", ours over it {}", number(value / printed)));
        format!("the paper has {}{ratio}, ours at {scale} scale", number(printed))
    }
}

/// A run that no comparison speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// Which one.
    pub what: String,
    /// Why.
    pub reason: String,
}

/// The checks of one claim, in the order they were made.
///
/// ```
/// use limitpoint_claims::{Kind, Outcome, Status};
/// let mut outcome = Outcome::default();
/// outcome.near("π", 3.14159, std::f64::consts::PI, 1e-5);
/// assert_eq!(outcome.status(Kind::Formula, false), Status::Reproduced);
/// outcome.at_most("a distance", f64::NAN, 1.0);
/// assert_eq!(outcome.status(Kind::Formula, true), Status::Undecided); // what is not a number decides nothing
/// outcome.at_most("another", 2.0, 1.0);
/// assert_eq!(outcome.status(Kind::Formula, true), Status::Contradicted);
/// assert_eq!(outcome.status(Kind::Finding, true), Status::NotReproduced);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The comparisons.
    pub checks: Vec<Check>,
    /// Figures.
    pub sketches: Vec<Sketch>,
    /// What a reader should know beside the numbers.
    pub notes: Vec<String>,
    /// Runs that were left out.
    pub dropped: Vec<Dropped>,
}

impl Outcome {
    /// |measured − expected| ≤ tolerance.
    pub fn near(&mut self, what: impl Into<String>, measured: f64, expected: f64, tolerance: f64) -> &mut Check {
        let words = format!("{} within {}", number(expected), number(tolerance));
        self.number(what, words, measured, (measured - expected).abs() <= tolerance)
    }

    /// measured ≤ bound.
    pub fn at_most(&mut self, what: impl Into<String>, measured: f64, bound: f64) -> &mut Check {
        self.number(what, format!("at most {}", number(bound)), measured, measured <= bound)
    }

    /// measured ≥ bound.
    pub fn at_least(&mut self, what: impl Into<String>, measured: f64, bound: f64) -> &mut Check {
        self.number(what, format!("at least {}", number(bound)), measured, measured >= bound)
    }

    /// low ≤ measured ≤ high.
    pub fn between(&mut self, what: impl Into<String>, measured: f64, [low, high]: [f64; 2]) -> &mut Check {
        let words = format!("between {} and {}", number(low), number(high));
        self.number(what, words, measured, (low..=high).contains(&measured))
    }

    /// Every entry of `measured` within `tolerance` of `expected`.
    pub fn point(&mut self, what: impl Into<String>, measured: &[f64], expected: &[f64], tolerance: f64) -> &mut Check {
        let holds =
            measured.len() == expected.len() && measured.iter().zip(expected).all(|(m, e)| (m - e).abs() <= tolerance);
        let check =
            self.push(what, format!("{} within {}", vector(expected), number(tolerance)), vector(measured), holds);
        check.finite = measured.iter().all(|m| m.is_finite());
        check
    }

    /// Anything else, in words; words with NaN or an infinity in them hold nothing.
    pub fn push(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<String>,
        measured: impl Into<String>,
        holds: bool,
    ) -> &mut Check {
        let (what, expected, measured) = (what.into(), expected.into(), measured.into());
        let bad = |word: &str| matches!(word.trim_start_matches(['-', '+']), "NaN" | "inf");
        let finite = !measured.split(|c: char| !c.is_alphanumeric() && !"+-".contains(c)).any(bad);
        self.add(Check {
            what,
            expected,
            measured,
            value: None,
            holds: holds && finite,
            finite,
            origin: Origin::default(),
            catalogue: None,
            printed: None,
        })
    }

    /// Something that happens or does not; its words may speak of infinity, such as a run that diverges as it must.
    pub fn event(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<String>,
        happened: impl Into<String>,
        holds: bool,
    ) -> &mut Check {
        let check = self.push(what, expected, happened, holds);
        (check.finite, check.holds) = (true, holds);
        check
    }

    /// A comparison of one number that was made elsewhere.
    pub fn number(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<String>,
        measured: f64,
        holds: bool,
    ) -> &mut Check {
        let check = self.push(what, expected, number(measured), holds);
        check.finite = measured.is_finite();
        check.value = measured.is_finite().then_some(measured);
        // an infinity can satisfy an inequality, but nobody measured it
        check.holds = holds && check.finite;
        check
    }

    fn add(&mut self, check: Check) -> &mut Check {
        let place = self.checks.len();
        self.checks.push(check);
        &mut self.checks[place]
    }

    /// Adds a figure.
    pub fn sketch(&mut self, sketch: Sketch) {
        self.sketches.push(sketch);
    }

    /// Adds a remark.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Says that a run is left out, and why.
    pub fn leave_out(&mut self, what: impl Into<String>, reason: impl Into<String>) {
        self.dropped.push(Dropped { what: what.into(), reason: reason.into() });
    }

    /// What the comparisons say. A formula as printed is contradicted by one finite comparison that fails; anything
    /// else is not reproduced then. Without a comparison, or where only what is not finite fails, nothing is decided.
    pub fn status(&self, kind: Kind, printed: bool) -> Status {
        if self.checks.iter().any(|check| !check.holds && check.finite) {
            let wrong = printed && kind == Kind::Formula;
            return if wrong { Status::Contradicted } else { Status::NotReproduced };
        }
        let all = !self.checks.is_empty() && self.checks.iter().all(|check| check.holds);
        if all { Status::Reproduced } else { Status::Undecided }
    }
}

/// A number with the digits a reader wants.
pub(crate) fn number(value: f64) -> String {
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
pub(crate) fn decimals(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.4}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_not_finite_holds_or_contradicts() {
        let mut outcome = Outcome::default();
        assert_eq!(outcome.status(Kind::Formula, true), Status::Undecided);
        outcome.at_least("a", f64::INFINITY, 1.0);
        outcome.push("b", "falling", "0.1, NaN, 0.3", true);
        outcome.point("c", &[f64::NAN], &[0.0], 1.0);
        assert!(outcome.checks.iter().all(|check| !check.holds && !check.finite), "{outcome:?}");
        assert_eq!(outcome.status(Kind::Formula, true), Status::Undecided);
        let mut diverged = Outcome::default();
        diverged.event("e", "diverges", "ln L = NaN at step 3", true);
        assert_eq!(diverged.status(Kind::Formula, false), Status::Reproduced);
        outcome.push("d", "none", "3 of 5 (infinite words and a nanometre are words)", false);
        assert_eq!(outcome.status(Kind::Formula, true), Status::Contradicted);
        assert_eq!(outcome.status(Kind::Formula, false), Status::NotReproduced);
        assert_eq!(outcome.status(Kind::Finding, true), Status::NotReproduced);
        let mut few = Outcome::default();
        few.at_least("seeds", 1.0, 1.0).too_few();
        assert_eq!(few.status(Kind::Finding, true), Status::Undecided);
    }

    #[test]
    fn the_papers_number_stands_beside_ours() {
        let mut outcome = Outcome::default();
        outcome.at_least("ratio", 1.5, 1.0).printed(20.0).by_paper().catalogue_asks("10");
        let check = &outcome.checks[0];
        assert_eq!((check.origin, check.value), (Origin::Paper, Some(1.5)));
        assert_eq!(check.beside_print("quick"), "the paper has 20, ours over it 0.075, ours at quick scale");
    }
}
