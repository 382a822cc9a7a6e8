//! What is claimed of weights in memory, with evidence and verdict.

use std::fmt;

use crate::certificates::{DocumentError, Doubt, Evidence, RunClaim, Subject, Tolerances, Verdict, decide};
use crate::diagnostics::DirectionCourse;

/// A claim about weights, judged; [`crate::certificates::Certificate`] is the same as a file that can be checked again.
///
/// It reads as one line, the verdict and the numbers that decide it: `certified; margin 0.312 of 0.313, gap 3.1e-3`.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What is claimed.
    pub claim: RunClaim,
    /// How exactly.
    pub tolerances: Tolerances,
    /// What the verdict follows from.
    pub evidence: Evidence,
    /// The answer.
    pub verdict: Verdict,
    /// The path on which the direction came here, where it is known and long enough to tell whether it ends.
    pub course: Option<DirectionCourse>,
}

impl Judgement {
    /// Asks the judge. A direction whose path shows no end has no limit to make a claim of.
    pub fn of(
        claim: RunClaim,
        tolerances: Tolerances,
        subject: &Subject,
        course: Option<DirectionCourse>,
    ) -> Result<Self, DocumentError> {
        tolerances.check()?;
        let (evidence, verdict) = decide(&claim, &tolerances, subject)?;
        let verdict = verdict.after(&claim, course.as_ref());
        Ok(Self { claim, tolerances, evidence, verdict, course })
    }

    /// Whether the claim is proven.
    pub fn is_certified(&self) -> bool {
        self.verdict.is_certified()
    }

    /// The claim in words.
    pub fn statement(&self) -> String {
        self.claim.statement(self.tolerances.gap)
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.verdict, self.evidence.summary())?;
        match self.course.filter(|_| self.verdict == Verdict::Inconclusive(Doubt::NoLimitDirection)) {
            Some(course) => write!(f, "; the path of the direction is {course}"),
            None => Ok(()),
        }
    }
}
